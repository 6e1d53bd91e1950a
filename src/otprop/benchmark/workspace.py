"""A data set as the jobs see it: prepared, fingerprinted, and with what its splits share computed once."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from otprop.baselines._rows import Frame
from otprop.baselines.graph import matrix_dtype, squared_distances
from otprop.benchmark.authors import squared_costs
from otprop.benchmark.grids import typical_gap
from otprop.datasets import Dataset, prepare


@dataclass(frozen=True, eq=False)
class Data:
    """A prepared data set, small enough to be sent to a worker.

    Attributes
    ----------
    name : str
    X : ndarray of shape (n_rows, n_features), as every method sees it
    y : ndarray of int of shape (n_rows,)
    n_classes : int
    fingerprint : str, of X and y: results of another table are never taken for this one's
    gap : float, the median distance of a row to its nearest other row
    """

    name: str
    X: np.ndarray = field(repr=False)
    y: np.ndarray = field(repr=False)
    n_classes: int
    fingerprint: str
    gap: float

    @classmethod
    def of(cls, dataset: Dataset) -> Data:
        """Prepare a loaded data set.

        Parameters
        ----------
        dataset : Dataset

        Returns
        -------
        Data
        """
        ready = prepare(dataset)
        digest = hashlib.sha256(np.ascontiguousarray(ready.X).tobytes())
        digest.update(ready.y.astype(np.int64).tobytes())
        gap = typical_gap(ready.X)
        return cls(ready.name, ready.X, ready.y, len(ready.class_names), digest.hexdigest()[:16], gap)


class Workspace:
    """What all splits of a data set share, computed when first asked for and kept for the next job."""

    def __init__(self, data: Data) -> None:
        self.data = data
        self.n_classes = data.n_classes
        self.frame = Frame.around(data.X)

    @cached_property
    def rows(self) -> np.ndarray:
        """The rows in the frame of the distance-based methods."""
        return self.frame.place(self.data.X)

    @cached_property
    def sq(self) -> np.ndarray:
        """Squared distances between all rows in that frame."""
        return squared_distances(self.rows, dtype=matrix_dtype(len(self.rows)))

    @cached_property
    def costs(self) -> np.ndarray:
        """Squared distances in the data's own units, in float64, for the released loop."""
        return squared_costs(self.data.X)

    def sigma(self, ratio: float) -> float:
        """A width given in nearest-neighbour distances, in the frame."""
        return ratio * self.data.gap / self.frame.extent

    def epsilon(self, ratio: float) -> float:
        """An epsilon given in squared nearest-neighbour distances, in the data's own units."""
        return ratio * self.data.gap**2


_kept: list[Workspace] = []


def workspace(data: Data) -> Workspace:
    """The workspace of a data set; a worker keeps that of the last one only.

    Parameters
    ----------
    data : Data

    Returns
    -------
    Workspace
    """
    if not _kept or _kept[0].data.fingerprint != data.fingerprint or _kept[0].data.name != data.name:
        _kept[:] = []  # let go of the old one before the new one grows
        _kept.append(Workspace(data))
    return _kept[0]


Labelled = tuple[dict[str, Any], np.ndarray, float]
