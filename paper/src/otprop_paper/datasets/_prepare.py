"""The preprocessing of the benchmark: the same for every method, without a look at the labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from otprop._validation import check_choice
from otprop_paper.datasets._catalogue import CATALOGUE, PREPROCESSINGS, Preprocessing
from otprop_paper.datasets._dataset import Dataset

OWN_FILE: Preprocessing = "standardize"
OWN_FILE_REASON = "nothing is known about the units of the columns, so none may dominate by its unit"


def preprocessing_of(dataset: Dataset) -> tuple[Preprocessing, str]:
    """The declared preprocessing of a data set, and why."""
    entry = CATALOGUE.get(dataset.name)
    return (entry.preprocessing, entry.reason) if entry else (OWN_FILE, OWN_FILE_REASON)


def prepare(dataset: Dataset, how: Preprocessing | None = None) -> Dataset:
    """The data set with its features as every method of the benchmark sees them.

    The choice is fixed per data set (see `describe`) and does not depend on the labels. Statistics are taken over all
    rows, labelled or not, as in any transductive method.

    Parameters
    ----------
    dataset : Dataset
    how : {"none", "standardize", "minmax", "range"}, optional
        Another choice than the declared one. "standardize" gives each column mean 0 and variance 1,
        "minmax" brings each column to [0, 1], "range" brings the whole table to [0, 1] with one scale. A
        constant column becomes 0 under the first two. Files of your own are standardised by default.

    Returns
    -------
    Dataset
        A copy; the given one is unchanged.

    Examples
    --------
    >>> from otprop_paper import datasets
    >>> wine = datasets.prepare(datasets.load("wine"))
    >>> print(abs(wine.X.mean(axis=0)).max() < 1e-9)
    True
    """
    chosen = preprocessing_of(dataset)[0] if how is None else how
    check_choice("how", chosen, PREPROCESSINGS)
    return replace(dataset, X=_METHODS[chosen](np.asarray(dataset.X, dtype=np.float64)))


def _standardize(X: np.ndarray) -> np.ndarray:
    largest = np.abs(X).max(axis=0)
    Z = X / np.where(largest > 0, largest, 1)  # to [-1, 1] first: squares must neither overflow nor vanish
    Z -= Z.mean(axis=0)
    spread = np.abs(Z).max(axis=0)
    constant = spread <= 16 * np.finfo(np.float64).eps
    Z /= np.where(constant, 1, spread)
    Z -= Z.mean(axis=0)  # again, since the first mean of columns far from 0 was rounded
    Z /= np.where(constant, 1, np.sqrt(np.mean(np.square(Z), axis=0)))
    Z[:, constant] = 0
    return Z


def _minmax(X: np.ndarray) -> np.ndarray:
    return _to_unit(X, X.min(axis=0), X.max(axis=0))


def _range(X: np.ndarray) -> np.ndarray:
    return _to_unit(X, X.min(), X.max())


def _to_unit(X: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    width = high / 2 - low / 2  # halves: the difference of two finite numbers need not be finite
    Z = X / 2
    Z -= low / 2
    Z /= np.where(width > 0, width, 1)
    return Z


_METHODS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "none": np.array,
    "standardize": _standardize,
    "minmax": _minmax,
    "range": _range,
}
