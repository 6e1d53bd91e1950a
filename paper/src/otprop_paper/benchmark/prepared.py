"""A data set as the tasks use it: prepared, fingerprinted, and with what its splits share computed once."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from otprop_paper.baselines._frame import Frame
from otprop_paper.baselines.graph import matrix_dtype, squared_distances
from otprop_paper.benchmark.grids import median_neighbor_distance
from otprop_paper.benchmark.released_code import squared_costs
from otprop_paper.datasets import Dataset, prepare


@dataclass(frozen=True, eq=False)
class PreparedData:
    """A prepared data set, small enough to be sent to a worker.

    Attributes
    ----------
    name : str
    X : ndarray of shape (n_rows, n_features), as every method sees it
    y : ndarray of int of shape (n_rows,)
    n_classes : int
    fingerprint : str, of X and y, part of the key of every result
    gap : float, the median distance of a row to its nearest other row
    """

    name: str
    X: np.ndarray = field(repr=False)
    y: np.ndarray = field(repr=False)
    n_classes: int
    fingerprint: str
    gap: float

    @classmethod
    def from_dataset(cls, dataset: Dataset) -> PreparedData:
        """Prepare a loaded data set."""
        ready = prepare(dataset)
        digest = hashlib.sha256(np.ascontiguousarray(ready.X).tobytes())
        digest.update(ready.y.astype(np.int64).tobytes())
        gap = median_neighbor_distance(ready.X)
        return cls(ready.name, ready.X, ready.y, len(ready.class_names), digest.hexdigest()[:16], gap)


class Labelings(NamedTuple):
    """The labels that a method found with one candidate.

    Attributes
    ----------
    params : dict
    found : ndarray of int of shape (n_sets, n_rows), for each set of labels the class of every row
    seconds : float, for all sets
    confidence : ndarray of shape (n_sets, n_rows) or None, the probability that each label is right
    """

    params: dict[str, Any]
    found: np.ndarray
    seconds: float
    confidence: np.ndarray | None = None


class DatasetCache:
    """What all splits of a data set share, computed at first use."""

    def __init__(self, data: PreparedData) -> None:
        self.data = data
        self.n_classes = data.n_classes
        self.frame = Frame.fit(data.X)

    @cached_property
    def rows(self) -> np.ndarray:
        """The rows, centred and scaled as the distance-based methods do."""
        return self.frame.transform(self.data.X)

    @cached_property
    def sq(self) -> np.ndarray:
        """Squared distances between all scaled rows."""
        return squared_distances(self.rows, dtype=matrix_dtype(len(self.rows)))

    @cached_property
    def costs(self) -> np.ndarray:
        """Squared distances in the units of the data, in float64, for the released loop."""
        return squared_costs(self.data.X)

    def sigma(self, ratio: float) -> float:
        """A width given in nearest-neighbour distances, in the units of the scaled rows."""
        return ratio * self.data.gap / self.frame.extent

    def epsilon(self, ratio: float) -> float:
        """An epsilon given in squared nearest-neighbour distances, in the units of the data."""
        return ratio * self.data.gap**2


_last: list[DatasetCache] = []


def dataset_cache(data: PreparedData) -> DatasetCache:
    """The cache of a data set; a worker keeps that of the last one only."""
    if not _last or _last[0].data.fingerprint != data.fingerprint or _last[0].data.name != data.name:
        _last.clear()  # free the memory of the old one before the new one grows
        _last.append(DatasetCache(data))
    return _last[0]
