"""Exact nearest rows, by brute force or in a k-d tree: one class for each kind of metric."""

from __future__ import annotations

from threading import Lock
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from scipy.spatial import cKDTree

from otprop._saving import saved_as
from otprop.geometry.pairwise import Metric, make_pairwise_cost
from otprop.geometry.parallel import row_blocks, rows_per_block
from otprop.geometry.row_matching import DuplicateRows
from otprop.geometry.scaling import max_abs, multiply_clipped, power_of_two, row_dots, row_max_abs

_LOCK = Lock()
TREE_FEATURES, TREE_ROWS = 5, 2000  # a k-d tree is fastest with at most this many features and at least this many rows
BLOCK_ENTRIES = 2**22  # distances that a thread holds at once
LARGEST = {np.float32: 1e15, np.float64: 1e145}  # of a standardised value: squares stay finite
SQUARABLE = 1e-100, 1e100  # magnitudes of rows that need no scaling
KNeighbors = tuple[np.ndarray, np.ndarray]  # indices and distances, both of shape (n_queries, k)
EUCLIDEAN, MANHATTAN = ("euclidean", "sqeuclidean", "l2"), ("manhattan", "cityblock", "l1")


class ExactSearch(Protocol):
    """Finds the nearest of its distinct rows, for blocks of `block_rows` queries."""

    rows: Any
    block_rows: int
    partitionable: bool  # large tables may be searched by `approximate_search`

    def transform(self, new: Any) -> Any: ...

    def nearest(self, queries: Any, k: int) -> KNeighbors: ...


def make_exact_search(rows: Any, duplicates: DuplicateRows, metric: str | Metric) -> ExactSearch:
    """The search that suits the metric and the rows."""
    distinct, name = duplicates.distinct(rows), metric if isinstance(metric, str) else ""
    fits_tree = rows.shape[1] <= TREE_FEATURES and distinct.shape[0] > TREE_ROWS and not sp.issparse(rows)
    if fits_tree and name in (*EUCLIDEAN, *MANHATTAN):
        return TreeSearch(DenseSearch(distinct, "euclidean"), 2 if name in EUCLIDEAN else 1)
    if name in (*EUCLIDEAN, "cosine", "inner"):
        kind = SparseSearch if sp.issparse(rows) else DenseSearch
        return kind(distinct, "euclidean" if name in EUCLIDEAN else name)
    return MetricSearch(rows, duplicates, metric)


@saved_as("geometry.tree_search")
class TreeSearch:
    """Search in a k-d tree, for rows with few features."""

    block_rows, partitionable = 512, False

    def __init__(self, vectors: DenseSearch, norm: int) -> None:
        self.rows, self._unit = vectors.rows, vectors.unit
        self._tree, self._norm = cKDTree(vectors.rows), norm

    def transform(self, new: np.ndarray) -> np.ndarray:
        return _in_units(new, self._unit)

    def nearest(self, queries: np.ndarray, k: int) -> KNeighbors:
        distances, indices = self._tree.query(queries, k=np.arange(1, k + 1), p=self._norm)
        return indices, multiply_clipped(distances, self._unit)


@saved_as("geometry.metric_search")
class MetricSearch:
    """Brute force with a metric of scikit-learn or a callable."""

    def __init__(self, rows: Any, duplicates: DuplicateRows, metric: str | Metric) -> None:
        self.rows, self._first = duplicates.distinct(rows), duplicates.first
        self._pairs = make_pairwise_cost(rows, metric, "metric")
        self.partitionable = not sp.issparse(rows)
        # small blocks: these metrics are slow, and an interrupt is only noticed between blocks
        self.block_rows = rows_per_block(self.rows.shape[0], 2**16 if callable(metric) else 2**20, 8, 512)

    def transform(self, new: Any) -> Any:
        return new

    def nearest(self, queries: Any, k: int) -> KNeighbors:
        return self.nearest_of(queries, np.arange(self.rows.shape[0]), k)

    def nearest_of(self, queries: Any, candidates: np.ndarray, k: int) -> KNeighbors:
        """The `k` nearest of the rows `candidates`."""
        block = self._pairs.columns(self._first[candidates], queries)(np.arange(queries.shape[0]))
        block = multiply_clipped(block, self._pairs.scale)
        rows, columns = k_smallest(block, k)
        return k_nearest(rows, candidates[columns], block[rows, columns], k)


@saved_as("geometry.dense_search")
class DenseSearch:
    """Brute force by matrix products: Euclidean distances (also of unit rows, for cosines) or inner products.

    A score that orders the rows comes from a matrix product in single precision, of centered and scaled rows. The
    distances of all rows that could be among the nearest, given rounding errors, are then computed from differences.
    If these rows are too many, the scores are computed again in double precision.
    """

    partitionable = True

    def __init__(self, rows: Any, metric: str) -> None:
        self.metric = metric
        step = max(1, rows.shape[0] // 1000)
        largest = max_abs(rows)
        typical = 2 * float(np.median(row_max_abs(rows[::step]) / 2)) or largest  # a mean of two may overflow
        squarable = typical > SQUARABLE[0] and largest < SQUARABLE[1]
        self.unit = 1.0 if squarable else power_of_two(typical)
        self.rows = rows if squarable else _in_units(rows, self.unit)
        self.block_rows = rows_per_block(rows.shape[0], BLOCK_ENTRIES, 8, 512)
        self._longest = max(float(row_dots(self.rows[part]).max()) for part in row_blocks(rows.shape[0], 4096)) or 1.0
        if not sp.issparse(rows):
            sample = self.rows[::step]
            self._center = np.zeros(rows.shape[1]) if metric == "inner" else np.median(sample, axis=0)
            extent = float(np.median(row_max_abs(sample - self._center)))
            self._size = power_of_two(extent or max_abs(self.rows))
        self._standardized: dict[Any, tuple[np.ndarray, np.ndarray]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_standardized": {}}  # computed again when needed

    def free_memory(self) -> None:
        """Forget the standardised rows, which are computed again when needed."""
        self._standardized = {}

    def transform(self, new: Any) -> Any:
        """New rows in the units of the training rows."""
        return _in_units(new, self.unit)

    def standardize(self, rows: np.ndarray, dtype: Any) -> np.ndarray:
        """Dense rows centered, scaled and clipped, as matrix products use them."""
        with np.errstate(over="ignore"):
            rows = rows - self._center
            rows /= self._size
            rows = rows.astype(dtype, copy=False)
        return np.clip(rows, -LARGEST[dtype], LARGEST[dtype], out=rows)

    def standardized_rows(self, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
        """All rows standardised, and their squared norms."""
        with _LOCK:
            if dtype not in self._standardized:
                rows = np.empty(self.rows.shape, dtype=dtype)
                for block in row_blocks(len(rows), 4096):
                    rows[block] = self.standardize(self.rows[block], dtype)
                self._standardized[dtype] = rows, row_dots(rows)
            return self._standardized[dtype]

    def scores(self, queries: np.ndarray, rows: np.ndarray, squares: np.ndarray) -> np.ndarray:
        """Between standardised rows: squared distances up to a per-row constant, or minus twice the inner products."""
        scores = (-2 * queries) @ rows.T
        if self.metric != "inner":
            scores += squares
        return scores

    def nearest(self, queries: Any, k: int) -> KNeighbors:
        indices, distances = np.empty((queries.shape[0], k), dtype=np.intp), np.empty((queries.shape[0], k))
        open_queries = np.arange(queries.shape[0])
        for dtype in (np.float32, np.float64):
            part = queries[open_queries]
            standardized = self.standardize(part, dtype)
            rows, columns = self._candidates(standardized, k)
            done = np.ones(len(open_queries), dtype=bool)
            if dtype == np.float32:
                done = np.bincount(rows, minlength=len(open_queries)) <= 4 * k + 64
                done &= np.abs(standardized).max(axis=1) < LARGEST[dtype]
                rows, columns = rows[done[rows]], columns[done[rows]]
            indices[open_queries[done]], distances[open_queries[done]] = self.nearest_of(part, rows, columns, k)
            open_queries = open_queries[~done]
            if not len(open_queries):
                break
        return indices, distances

    def nearest_of(self, queries: Any, query_numbers: np.ndarray, candidates: np.ndarray, k: int) -> KNeighbors:
        """The `k` nearest of the candidates of each query, given as pairs sorted by query."""
        squares = np.empty(len(query_numbers))
        block_rows = 4096 if sp.issparse(queries) else max(1, 2**16 // queries.shape[1])
        for block in row_blocks(len(query_numbers), block_rows):
            left, right = queries[query_numbers[block]], self.rows[candidates[block]]
            squares[block] = row_dots(left, right) if self.metric == "inner" else row_dots(left - right)
        if self.metric == "inner":
            distances = np.maximum(1.0 - squares / self._longest, 0.0)
        else:
            distances = squares / 2 if self.metric == "cosine" else multiply_clipped(np.sqrt(squares), self.unit)
        return k_nearest(query_numbers, candidates, distances, k)

    def _candidates(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """All rows that could be among the `k` nearest, by a bound on the rounding errors of the scores.

        Near rows are hardly longer than the query, so its length bounds the error.
        """
        rows, squares = self.standardized_rows(queries.dtype.type)
        scores, precision = self.scores(queries, rows, squares), np.finfo(queries.dtype)
        bound = kth_smallest_bound(scores, k).astype(np.float64)
        rounding = float(precision.eps) * (8.0 + np.sqrt(queries.shape[1]))
        query_squares = row_dots(queries).astype(np.float64)
        if self.metric == "inner":
            size = 4 * np.sqrt(query_squares) * np.sqrt(float(squares.max()))
        else:
            size = 5.0 * query_squares + 2.0 * np.abs(bound)
        limit = bound + rounding * size + queries.shape[1] * float(precision.tiny)
        return entries_within(
            scores, limit.astype(queries.dtype), most=max(4 * k + 64, 2**28 // (self.block_rows * queries.shape[1]))
        )


@saved_as("geometry.sparse_search")
class SparseSearch(DenseSearch):
    """Brute force by products of sparse rows, in double precision."""

    partitionable = False

    def __init__(self, rows: Any, metric: str) -> None:
        super().__init__(rows, metric)
        self._transposed, self._squares = sp.csr_array(self.rows.T), row_dots(self.rows)

    def nearest(self, queries: Any, k: int) -> KNeighbors:
        n_queries, n_rows = queries.shape[0], self.rows.shape[0]
        indices, distances = np.empty((n_queries, k), dtype=np.intp), np.empty((n_queries, k))
        products = queries @ self._transposed
        overlapping = np.zeros(n_queries, dtype=bool)  # queries with at least k positive products
        if self.metric != "euclidean" and products.nnz < 0.1 * n_queries * n_rows:
            numbers = np.repeat(np.arange(n_queries), np.diff(products.indptr))
            positive = products.data > 0
            overlapping = np.bincount(numbers[positive], minlength=n_queries) >= k
            positive &= overlapping[numbers]
            nearest, _ = k_nearest(numbers[positive], products.indices[positive], -products.data[positive], k)
            numbers = np.repeat(np.flatnonzero(overlapping), k)
            indices[overlapping], distances[overlapping] = self.nearest_of(queries, numbers, nearest.ravel(), k)
        if not overlapping.all():
            rest = ~overlapping
            part, scores = (queries[rest], products[rest]) if overlapping.any() else (queries, products)
            scores = -2.0 * scores.toarray()
            if self.metric == "euclidean":
                scores += self._squares
            indices[rest], distances[rest] = self.nearest_of(part, *k_smallest(scores, k), k)
        return indices, distances


def _in_units(rows: Any, unit: float) -> Any:
    """Rows over `unit`, clipped so that they can be squared."""
    with np.errstate(over="ignore"):
        rows = rows / unit
    values = rows.data if sp.issparse(rows) else rows
    np.clip(values, -1e150, 1e150, out=values)
    return rows


def kth_smallest_bound(scores: np.ndarray, k: int) -> np.ndarray:
    """Per-row upper bound on the k-th smallest score, not far above it."""
    width, groups = scores.shape[1], max(256, 8 * k)
    if width >= 4 * groups:  # the k-th smallest of the groups' minima is such a bound, and cheaper
        scores = scores[:, : width // groups * groups].reshape(len(scores), -1, groups).min(axis=1)
    return np.partition(scores, k - 1, axis=1)[:, k - 1]


def entries_within(scores: np.ndarray, limits: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the scores within their row's limit, or of the `most` smallest where these are more."""
    rows, columns = np.divmod(np.flatnonzero(scores <= limits[:, None]), scores.shape[1])
    crowded = np.bincount(rows, minlength=len(scores)) > most
    if crowded.any():
        smallest = np.argpartition(scores[crowded], most - 1, axis=1)[:, :most]
        rows, columns = rows[~crowded[rows]], columns[~crowded[rows]]
        rows = np.concatenate([rows, np.repeat(np.flatnonzero(crowded), most)])
        columns = np.concatenate([columns, np.sort(smallest, axis=1).ravel()])
        order = np.argsort(rows, kind="stable")
        rows, columns = rows[order], columns[order]
    return rows, columns


def k_smallest(scores: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the `k` smallest scores of each row."""
    rows, columns = entries_within(scores, kth_smallest_bound(scores, k), most=4 * k + 64)
    columns, _ = k_nearest(rows, columns, scores[rows, columns], k)
    return np.repeat(np.arange(len(scores)), k), columns.ravel()


def k_nearest(queries: np.ndarray, candidates: np.ndarray, distances: np.ndarray, k: int) -> KNeighbors:
    """The `k` nearest candidates of each query; ties keep their order. The pairs are sorted by query."""
    starts = np.flatnonzero(np.diff(queries, prepend=-1))
    counts = np.diff(starts, append=len(queries))
    table = np.full((len(starts), counts.max(initial=k)), np.inf)
    table[np.repeat(np.arange(len(starts)), counts), np.arange(len(queries)) - np.repeat(starts, counts)] = distances
    order = np.argsort(table, axis=1, kind="stable")[:, :k]
    return candidates[starts[:, None] + order], np.take_along_axis(table, order, axis=1)
