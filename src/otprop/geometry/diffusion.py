"""Diffusion over a graph of rows: how much of what starts at some rows arrives at each of the others.

With affinities W >= 0, degrees D and S = D^-1/2 W D^-1/2 the values are F = (I - a S)^-1 B: a column of B says how much
starts where, and the strength 0 < a < 1 how far it goes. F is not negative, and exactly 0 at rows that
are not connected to any source.

What counts are the shares of the columns in a row, and far from all sources a row's values are tiny. So errors are held
to a tolerance relative to the row: conjugate gradients find the rows whose values are not far below the largest; these
then are the sources of a smaller system for the other rows, in units of its own, and so on.
"""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, reverse_cuthill_mckee
from sklearn.exceptions import ConvergenceWarning

from otprop._saving import saved_as
from otprop._validation import check_number
from otprop.geometry.affinity import (
    SCALE_NEIGHBOR,
    check_affinity,
    local_scales,
    matrix_of,
    narrow,
    scaled_squares,
    self_tuned_weights,
)
from otprop.geometry.neighbors import Neighbors
from otprop.geometry.parallel import Jobs
from otprop.geometry.systems import DiffusionResult, System, all_columns, lowest_kept, threads

COLUMNS_AT_ONCE = 16  # of a block of the inverse
REORDERED_ROWS = 5000  # with more rows it pays to put neighbours next to one another
DIRECT_ROWS = 2000  # up to here a large block of the inverse comes from a dense matrix


@saved_as("geometry.diffusion_graph", drops=("_S", "_order", "_roots", "degrees", "components"))
class DiffusionGraph:
    """A graph over rows along which values spread.

    Parameters
    ----------
    affinity : sparse or dense matrix of shape (n_rows, n_rows), see `check_affinity`
    scales : ndarray of shape (n_rows,) or None, the rows' scales if the affinities are self-tuned, for new rows
    scale_neighbor : int, which neighbour's distance a scale is
    name, stacklevel : what messages call the affinities, and how many calls up warnings point

    Attributes
    ----------
    n_rows : int
    degrees : ndarray of shape (n_rows,), the sums of the affinities, in units of the largest
    components : ndarray of shape (n_rows,), rows with the same number are connected
    """

    def __init__(
        self,
        affinity: Any,
        scales: np.ndarray | None = None,
        scale_neighbor: int = SCALE_NEIGHBOR,
        *,
        name: str = "affinity",
        stacklevel: int = 3,
    ) -> None:
        weights = check_affinity(affinity, name, stacklevel)
        weights.data /= weights.data.max(initial=0.0) or 1.0  # so that no sum overflows
        weights.eliminate_zeros()
        self.n_rows = weights.shape[0]
        self.scales, self.scale_neighbor = scales, scale_neighbor
        self.degrees = np.asarray(weights.sum(axis=1))
        self._order = np.arange(self.n_rows)
        if self.n_rows > REORDERED_ROWS:
            self._order = reverse_cuthill_mckee(weights, symmetric_mode=True)
            weights = narrow(weights[self._order][:, self._order])
        degrees = self.degrees[self._order]
        each = np.repeat(degrees, np.diff(weights.indptr))
        weights.data = np.sqrt(weights.data / each) * np.sqrt(weights.data / degrees[weights.indices])
        self._S = weights
        self._roots = np.sqrt(np.where(degrees > 0, degrees, 1.0))

    @classmethod
    def from_neighbors(
        cls, neighbors: Neighbors, k: int | None = None, scale_neighbor: int = SCALE_NEIGHBOR
    ) -> DiffusionGraph:
        """The graph of the `self_tuned_weights`, which can also `extend` values to new rows."""
        near = neighbors if k is None else neighbors.first(k)
        return cls(self_tuned_weights(near, None, scale_neighbor), local_scales(near, scale_neighbor), scale_neighbor)

    @cached_property
    def components(self) -> np.ndarray:
        labels = np.empty(self.n_rows, dtype=np.int32)
        labels[self._order] = connected_components(self._S, directed=False)[1]
        return labels

    def solve(
        self,
        sources: Any,
        strength: float,
        *,
        start: np.ndarray | None = None,
        tol: float = 1e-6,
        max_iter: int = 2000,
        n_jobs: int | None = None,
    ) -> DiffusionResult:
        """The values F with (I - strength S) F = sources.

        Parameters
        ----------
        sources : ndarray or sparse matrix of shape (n_rows, n_columns), not negative
        strength : float between 0 and 1, both excluded
        start : ndarray of shape (n_rows, n_columns) or None, values to start from
        tol : float, the error allowed, relative to the sum of a row's values
        max_iter : int, products with the graph, for each of the systems that the rows are solved in
        n_jobs : int or None, threads; None for all processors; no result depends on it

        Returns
        -------
        DiffusionResult
        """
        columns = self._check_sources(sources)[self._order]
        if start is not None and start.shape != columns.shape:
            raise ValueError(f"start must have the shape of sources, {columns.shape}; got {start.shape}.")
        given = None if start is None else np.maximum(start[self._order], 0.0)
        largest = columns.max(initial=0.0) or 1.0
        with threads(self.n_rows, n_jobs) as pool:
            result = all_columns(
                self._system(strength, pool),
                columns / largest,
                None if given is None else given / largest,
                np.flatnonzero(self._connected_to(columns.max(axis=1, initial=0.0) > 0)),
                tol,
                max_iter,
            )
        values = np.empty_like(result.values)
        values[self._order] = result.values * largest
        return replace(result, values=values)

    def block(
        self,
        rows: np.ndarray,
        strength: float,
        *,
        tol: float = 1e-4,
        max_iter: int = 2000,
        n_jobs: int | None = None,
    ) -> np.ndarray:
        """The lines and columns `rows` of the inverse (I - strength S)^-1.

        An entry is good to `tol`, relative to itself, down to about 1e-6 of the largest in its column.

        Parameters
        ----------
        rows : ndarray of int, shape (l,)
        strength, tol, max_iter, n_jobs : as in `solve`; `max_iter` for every 16 columns

        Returns
        -------
        ndarray of shape (l, l), symmetric and not negative
        """
        places = np.argsort(self._order)[rows]
        system = self._system(strength, None)
        if self.n_rows <= min(DIRECT_ROWS, 10 * len(places)):
            found = system.solve_directly(np.eye(self.n_rows)[:, places])[places]
        else:
            chunks = [places[i : i + COLUMNS_AT_ONCE] for i in range(0, len(places), COLUMNS_AT_ONCE)]

            def columns(chunk: np.ndarray) -> np.ndarray:
                rhs = np.zeros((self.n_rows, len(chunk)))
                rhs[chunk, np.arange(len(chunk))] = 1.0
                lowest = lowest_kept(1e-6, tol, strength)
                values, _, error = system.solve(rhs, None, tol=tol, lowest=lowest, max_iter=max_iter, separate=True)
                errors.append(error)
                return values[places]

            errors: list[float] = [0.0]
            found = np.hstack([np.empty((len(places), 0)), *Jobs(n_jobs).run(columns, chunks)])
            if max(errors) > tol:
                warnings.warn(
                    f"A block of the diffusion stopped at an error of {max(errors):.2g}, above tol={tol:g}. "
                    "Raise max_iter or tol, or lower the strength.",
                    ConvergenceWarning,
                    stacklevel=2,
                )
        return np.maximum((found + found.T) / 2, 0.0)

    def extend(self, new: Any, values: np.ndarray) -> np.ndarray:
        """Values at new rows: the mean of their neighbours' values, weighted by affinity.

        Parameters
        ----------
        new : Neighbors of the new rows, or a matrix of shape (n_new, n_rows) of affinities where the graph came so
        values : ndarray of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_new, n_columns), 0 for a row without any affinity
        """
        if not isinstance(new, Neighbors):
            affinity = sp.csr_array(new)
            if affinity.shape[1] != self.n_rows:
                raise ValueError(
                    f"The affinities of new rows must have {self.n_rows} columns; got {affinity.shape[1]}."
                )
            sums = np.asarray(affinity.sum(axis=1))[:, None]
            return (affinity @ values) / np.where(sums > 0, sums, 1.0)
        if self.scales is None:
            raise ValueError("This graph was given as affinities: new rows need affinities too, not neighbours.")
        own = local_scales(new, self.scale_neighbor)[:, None]
        exponents = np.minimum(scaled_squares(new.distances, own, self.scales[new.indices]), np.finfo(float).max)
        exponents -= exponents.min(axis=1, keepdims=True)
        weights = np.exp(-exponents)
        weights /= weights.sum(axis=1, keepdims=True)
        return matrix_of(weights, new.indices, self.n_rows) @ values

    def _check_sources(self, sources: Any) -> np.ndarray:
        columns = np.asarray(sources.toarray() if sp.issparse(sources) else sources, dtype=np.float64)
        if columns.ndim != 2 or len(columns) != self.n_rows:
            raise ValueError(f"sources must have shape ({self.n_rows}, n_columns); got {columns.shape}.")
        if not (np.isfinite(columns).all() and (columns >= 0).all()):
            raise ValueError("sources must be finite and not negative.")
        return columns

    def _system(self, strength: float, pool: ThreadPoolExecutor | None) -> System:
        check_number("strength", strength, above=0, below=1)
        return System(self._S, strength, self._roots, pool)

    def _connected_to(self, rows: np.ndarray) -> np.ndarray:
        """Which rows are connected to some of `rows`, all in the order of the system."""
        labels = self.components[self._order]
        return np.isin(labels, labels[rows])
