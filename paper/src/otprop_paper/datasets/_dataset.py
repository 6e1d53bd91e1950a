"""A loaded data set."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A table of numbers with the class of every row.

    Attributes
    ----------
    name : str
        The name it is known by, or the file it was read from.
    X : ndarray of shape (n_rows, n_features), float64
    y : ndarray of shape (n_rows,), int
        Class numbers, from 0.
    class_names : tuple of str
        The name of each class number.
    feature_names : tuple of str or None
        None where they are unknown.
    source : str
        Where this copy came from.

    Examples
    --------
    >>> from otprop_paper.datasets import load
    >>> iris = load("iris")
    >>> iris.X.shape, iris.class_counts, iris.class_names[0]
    ((150, 4), (50, 50, 50), 'setosa')
    """

    name: str
    X: np.ndarray
    y: np.ndarray
    class_names: tuple[str, ...]
    feature_names: tuple[str, ...] | None = None
    source: str = ""

    @property
    def class_counts(self) -> tuple[int, ...]:
        """How many rows each class has."""
        return tuple(int(count) for count in np.bincount(self.y, minlength=len(self.class_names)))

    def __repr__(self) -> str:
        rows, features = self.X.shape
        return f"Dataset({self.name!r}, {rows} x {features}, {len(self.class_names)} classes, from {self.source!r})"
