"""Nearest neighbours of rows: by brute force in small tables, by an inverted file index in large ones.

A large table is partitioned into cells by k-means on a sample; the neighbours of a row are searched in the cells
nearest to its own. The number of cells to search is not a parameter: it is chosen so that a sample of rows reaches the
required recall, and the recall is then estimated on a second sample. Distances are always computed in float64 from the
differences of the rows. Results do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from otprop._saving import saved_as
from otprop._validation import InputError, check_count
from otprop.geometry.approximate_search import (
    SAMPLE_SIZE,
    CellSearch,
    brute_force,
    make_cell_search,
    sample_rows,
    work_of,
)
from otprop.geometry.exact_search import DenseSearch, KNeighbors, MetricSearch, make_exact_search
from otprop.geometry.pairwise import Metric, check_cost
from otprop.geometry.parallel import Jobs, row_blocks, single_threaded_blas
from otprop.geometry.row_matching import DuplicateRows
from otprop.geometry.scaling import UnitRows, as_float_rows

Progress = Callable[[int, int], object]  # called with the rows done and all rows
MIN_RECALL = 0.95  # with less, the search is repeated with twice the cells
EXACT_WORK = 1e11  # pairs times (features + 40) up to which brute force is used: about 3 s of one core


@dataclass(frozen=True)
class Neighbors:
    """The nearest neighbours of some rows.

    Attributes
    ----------
    indices : ndarray of int32, shape (n_rows, k), the nearest first
    distances : ndarray of float64, shape (n_rows, k), ascending
    exact : bool, whether these are certainly the nearest rows
    recall : float, the share of the true neighbours that was found: estimated on a sample, 1 where exact
    """

    indices: np.ndarray
    distances: np.ndarray
    exact: bool = True
    recall: float = 1.0

    def first(self, k: int) -> Neighbors:
        """The `k` nearest of these neighbours."""
        return replace(self, indices=self.indices[:, :k], distances=self.distances[:, :k])


@saved_as("geometry.neighbor_index")
class NeighborIndex:
    """Finds the nearest neighbours in a table, of its own rows or of new ones.

    Equal rows are searched for once, so that any number of duplicates is harmless.

    Parameters
    ----------
    X : ndarray or sparse CSR array of shape (n_rows, n_features), finite
    metric : "euclidean" or "sqeuclidean" (both give plain distances, which do not overflow), "cosine", "inner"
        (1 minus the inner product over the largest squared length of a row), another metric of scikit-learn, or a
        callable of two rows
    n_jobs : int or None, number of threads; None or -1 for all processors; results do not depend on it
    seed : int, for the samples
    """

    _frozen: int = 0  # the number of neighbours up to which the search of new rows is fixed
    _frozen_search: CellSearch | None = None

    def __init__(
        self,
        X: Any,
        metric: str | Metric = "euclidean",
        *,
        n_jobs: int | None = None,
        seed: int = 0,
    ) -> None:
        if not (isinstance(metric, str) and metric == "inner"):
            check_cost(metric)
        if isinstance(metric, str) and metric == "precomputed":
            raise InputError("metric='precomputed' has no rows to search: use a metric of rows.")
        name = metric if isinstance(metric, str) else ""
        X = as_float_rows(X)
        self.n_rows, self.n_features = X.shape
        self._jobs, self._seed = Jobs(n_jobs), seed
        self._unit_rows = UnitRows(X) if name == "cosine" else None
        rows = X if self._unit_rows is None else self._unit_rows(X)
        self._duplicates = DuplicateRows(rows)
        self._exact = make_exact_search(rows, self._duplicates, metric)
        self._approximate: dict[int, CellSearch | None] = {}

    @property
    def equal_rows_are_at_zero(self) -> bool:
        """Whether the distance of equal rows is exactly 0: it is a difference here, other metrics may round."""
        return not isinstance(self._exact, MetricSearch)

    def graph(self, k: int, progress: Progress | None = None) -> Neighbors:
        """The `k` nearest other rows of every row, or all others if there are fewer."""
        check_count("k", k)
        k = min(int(k), self.n_rows - 1)
        rows = self._exact.rows
        near = self._search(rows, min(k + 1, rows.shape[0]), progress, approximate=True)
        if isinstance(self._exact, DenseSearch) and not near.exact:
            self._exact.free_memory()  # the cells have a copy
        expanded = self._duplicates.expand(near.indices, near.distances, k + 1)
        indices, distances = _without_self(*map(self._duplicates.per_row, expanded))
        return replace(near, indices=indices, distances=distances)

    def freeze(self, k: int, n_queries: float) -> None:
        """Fix the search of new rows, so that the neighbours of a row do not depend on the other rows of the query.

        Otherwise, a few new rows are searched by brute force and many rows through cells. `k` is the largest number of
        neighbours that `query` will be asked for; `n_queries`, the expected total number of new rows, decides whether
        cells are worth their cost.
        """
        check_count("k", k)
        self._frozen = k = min(int(k), self.n_rows)
        k = min(k, self._exact.rows.shape[0])
        search = self._approximate_search(k, n_queries)
        sample = sample_rows(self._exact.rows.shape[0], self._seed + 1)
        queries = self._exact.rows[sample]
        _, truth = brute_force(self._exact, queries, k, self._jobs)
        while search is not None:
            self._frozen_search = search
            indices, distances = self._run_frozen(queries, k, None)
            hit = (distances <= truth[:, -1:] * (1 + 1e-12))[indices != sample[:, None]]
            wider = search if not len(hit) or hit.mean() >= MIN_RECALL else search.wider()
            if wider is search:
                break
            search = wider
        self._frozen_search = search

    def use_threads(self, n_jobs: int | None) -> None:
        """Set the number of threads; results do not depend on it."""
        self._jobs = Jobs(n_jobs)

    def query(self, X_new: Any, k: int, progress: Progress | None = None) -> Neighbors:
        """The `k` rows of the table nearest to each new row, or all of them if there are fewer."""
        check_count("k", k)
        new = as_float_rows(X_new)
        if new.shape[1] != self.n_features:
            raise InputError(f"X has {new.shape[1]} features, but the table to search has {self.n_features}.")
        if sp.issparse(self._exact.rows):
            new = sp.csr_array(new)
        elif sp.issparse(new):
            new = new.toarray()
        queries = self._exact.transform(new if self._unit_rows is None else self._unit_rows(new))
        k = min(int(k), self.n_rows)
        n_distinct = self._exact.rows.shape[0]
        if k <= self._frozen:
            found = self._run_frozen(queries, min(k, n_distinct), progress)
            near = Neighbors(*found, exact=self._frozen_search is None)
        else:
            near = self._search(queries, min(k, n_distinct), progress, approximate=new.shape[0] > SAMPLE_SIZE)
        indices, distances = self._duplicates.expand(near.indices, near.distances, k)
        return replace(near, indices=indices, distances=distances)

    def _search(self, queries: Any, k: int, progress: Progress | None, approximate: bool) -> Neighbors:
        """The nearest distinct rows; by the inverted file index if that is allowed and faster."""
        search = self._approximate_search(k) if approximate else None
        while search is not None:
            indices, distances = self._run(queries, k, search, progress)
            recall = self._recall(queries, indices, distances)
            wider = search if recall >= MIN_RECALL else search.wider()
            if wider is search:
                return Neighbors(indices, distances, exact=False, recall=recall)
            search = self._approximate[max(self._approximate)] = wider
        return Neighbors(*self._run(queries, k, None, progress))

    def _run_frozen(self, queries: Any, k: int, progress: Progress | None) -> KNeighbors:
        """Search by the plan of `freeze`."""
        with single_threaded_blas():
            return self._run(queries, k, self._frozen_search, progress, fixed=True)

    def _approximate_search(self, k: int, n_queries: float | None = None) -> CellSearch | None:
        """The inverted file index for the `k` nearest rows; None where brute force is used."""
        work = work_of(self._exact.rows)
        if n_queries is not None:
            work = max(work, work / self._exact.rows.shape[0] * n_queries)
        if not self._exact.partitionable or work <= EXACT_WORK:
            return None
        if k > max(self._approximate, default=0):
            with single_threaded_blas():
                self._approximate = {k: make_cell_search(self._exact, k, self._jobs, self._seed)}
        return self._approximate[max(self._approximate)]

    def _run(
        self, queries: Any, k: int, search: CellSearch | None, progress: Progress | None, fixed: bool = False
    ) -> KNeighbors:
        n_queries = queries.shape[0]
        indices, distances = np.empty((n_queries, k), dtype=np.int32), np.empty((n_queries, k))
        n_done = 0
        for block, found in self._blocks(queries, k, search, fixed):
            indices[block], distances[block] = found
            n_done += len(found[0])
            if progress is not None:
                progress(n_done, n_queries)
        return indices, distances

    def _blocks(self, queries: Any, k: int, search: CellSearch | None, fixed: bool) -> Iterator[tuple[Any, KNeighbors]]:
        """Blocks of queries with their neighbours."""
        if search is None:
            parts = row_blocks(queries.shape[0], self._exact.block_rows)
            return zip(parts, self._jobs.run(lambda part: self._exact.nearest(queries[part], k), parts), strict=True)
        points: np.ndarray | None = None
        cells = search.cells.labels  # of the training rows
        if fixed:
            points = search.projection.transform_each(queries)
            cells = search.cells.predict_each(points)
        elif queries is not self._exact.rows:
            points = search.projection.transform(queries, self._jobs)
            cells = search.cells.predict(points, self._jobs)
        blocks = search.blocks(cells)
        found = self._jobs.run(
            lambda block: search.nearest(queries, points, block[0], block[1], k, fixed=fixed), blocks
        )
        return zip([numbers for _, numbers in blocks], found, strict=True)

    def _recall(self, queries: Any, indices: np.ndarray, distances: np.ndarray) -> float:
        """The share of the true neighbours that was found, on another sample than the one the search was chosen on."""
        sample = sample_rows(queries.shape[0], self._seed + 1)
        _, truth = brute_force(self._exact, queries[sample], distances.shape[1], self._jobs)
        hit = distances[sample] <= truth[:, -1:] * (1 + 1e-12)
        if queries is self._exact.rows:  # a row always finds itself
            hit = hit[indices[sample] != sample[:, None]]
        return float(hit.mean())


def _without_self(indices: np.ndarray, distances: np.ndarray) -> KNeighbors:
    """Remove each row from its own neighbours; if it is not among them, remove the last one."""
    n_rows, k = indices.shape
    keep = indices != np.arange(n_rows)[:, None]
    keep[keep.all(axis=1), -1] = False
    return indices[keep].reshape(n_rows, k - 1), distances[keep].reshape(n_rows, k - 1)
