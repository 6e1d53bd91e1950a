"""Ways to find the nearest rows, by brute force or in a tree: one for each kind of metric."""

from __future__ import annotations

from threading import Lock
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from scipy.spatial import cKDTree

from otprop._saving import saved_as
from otprop.geometry.euclidean import _largest, _power_of_two
from otprop.geometry.pairwise import Metric, make_pairwise_cost
from otprop.geometry.parallel import in_parts, lines_at_once
from otprop.geometry.rows import Copies, row_dots, row_largest
from otprop.geometry.topk import Found, k_closest, k_smallest, up_to, upper_bound

_LOCK = Lock()
TREE_FEATURES, TREE_ROWS = 5, 2000  # a tree is fastest up to so many features and from so many rows on
BLOCK_ENTRIES = 2**22  # distances that a thread holds at once
FAR = {np.float32: 1e15, np.float64: 1e145}  # where rows end, in units of a usual row's extent: squares stay finite
EUCLIDEAN, MANHATTAN = ("euclidean", "sqeuclidean", "l2"), ("manhattan", "cityblock", "l1")


class Measure(Protocol):
    """Finds the nearest of its distinct rows, for `lines` queries at a time."""

    rows: Any
    lines: int
    uses_cells: bool  # where there are many rows

    def enter(self, new: Any) -> Any: ...

    def nearest(self, queries: Any, k: int) -> Found: ...


def make_measure(rows: Any, copies: Copies, metric: str | Metric) -> Measure:
    distinct, name = copies.once(rows), metric if isinstance(metric, str) else ""
    fits_tree = rows.shape[1] <= TREE_FEATURES and distinct.shape[0] > TREE_ROWS and not sp.issparse(rows)
    if fits_tree and name in (*EUCLIDEAN, *MANHATTAN):
        return Tree(Vectors(distinct, "euclidean"), 2 if name in EUCLIDEAN else 1)
    if name in (*EUCLIDEAN, "cosine", "inner"):
        kind = SparseVectors if sp.issparse(rows) else Vectors
        return kind(distinct, "euclidean" if name in EUCLIDEAN else name)
    return Measured(rows, copies, metric)


@saved_as("geometry.tree")
class Tree:
    """Rows with few features, in a tree."""

    lines, uses_cells = 512, False

    def __init__(self, vectors: Vectors, norm: int) -> None:
        self.rows, self.enter, self._unit = vectors.rows, vectors.enter, vectors.unit
        self._tree, self._norm = cKDTree(vectors.rows), norm

    def nearest(self, queries: np.ndarray, k: int) -> Found:
        distances, found = self._tree.query(queries, k=np.arange(1, k + 1), p=self._norm)
        return found, _in_units(distances, self._unit)


@saved_as("geometry.measured")
class Measured:
    """Rows that a metric of scikit-learn or a callable compares, pair by pair."""

    def __init__(self, rows: Any, copies: Copies, metric: str | Metric) -> None:
        self.rows, self._first, self._pairs = (
            copies.once(rows),
            copies.first,
            make_pairwise_cost(rows, metric, "metric"),
        )
        self.uses_cells = not sp.issparse(rows)
        # these are slow, and Ctrl-C is answered between blocks only
        self.lines = lines_at_once(2**16 if callable(metric) else 2**20, self.rows.shape[0])

    def enter(self, new: Any) -> Any:
        return new

    def nearest(self, queries: Any, k: int) -> Found:
        return self.nearest_of(queries, np.arange(self.rows.shape[0]), k)

    def nearest_of(self, queries: Any, candidates: np.ndarray, k: int) -> Found:
        block = self._pairs.columns(self._first[candidates], queries)(np.arange(queries.shape[0]))
        owners, columns = k_smallest(block, k)
        return k_closest(owners, candidates[columns], block[owners, columns], k)


@saved_as("geometry.vectors", methods=("enter",))
class Vectors:
    """Rows compared by products: Euclidean (also between unit rows, for cosines) or by the inner product itself.

    A score, smaller for a nearer row, comes from a matrix product in single precision, of rows moved to the middle and
    scaled. Every row that could, but for rounding, be one of the nearest is then measured. Where that would be too
    many, the scores are computed again in double precision.
    """

    uses_cells = True

    def __init__(self, rows: Any, metric: str) -> None:
        self.metric = metric
        step = max(1, rows.shape[0] // 1000)
        largest = _largest(rows)
        usual = float(np.median(row_largest(rows[::step]))) or largest
        squarable = usual > 1e-100 and largest < 1e100
        self.unit = 1.0 if squarable else _power_of_two(usual)
        self.rows = rows if squarable else self.enter(rows)
        self.lines = lines_at_once(BLOCK_ENTRIES, rows.shape[0])
        self._longest = max(float(row_dots(self.rows[part]).max()) for part in in_parts(rows.shape[0], 4096)) or 1.0
        if not sp.issparse(rows):
            sample = self.rows[::step]
            self._center = np.zeros(rows.shape[1]) if metric == "inner" else np.median(sample, axis=0)
            extent = float(np.median(row_largest(sample - self._center)))
            self._size = _power_of_two(extent or _largest(self.rows))
        self._bases: dict[Any, tuple[np.ndarray, np.ndarray]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_bases": {}}  # these can be made again

    def enter(self, new: Any) -> Any:
        """Rows in units in which most can be squared; those too far away for it are brought a little nearer."""
        with np.errstate(over="ignore"):
            new = new / self.unit
        values = new.data if sp.issparse(new) else new
        np.clip(values, -1e150, 1e150, out=values)
        return new

    def place(self, rows: np.ndarray, dtype: Any) -> np.ndarray:
        """Dense rows as the products see them."""
        with np.errstate(over="ignore"):
            placed = rows - self._center
            placed /= self._size
            placed = placed.astype(dtype, copy=False)
        return np.clip(placed, -FAR[dtype], FAR[dtype], out=placed)

    def scores(self, here: np.ndarray, there: np.ndarray, squares: np.ndarray) -> np.ndarray:
        """From placed rows to placed rows: squared distances but for a constant a line, or minus twice the products."""
        scores = (-2 * here) @ there.T
        if self.metric != "inner":
            scores += squares
        return scores

    def nearest(self, queries: Any, k: int) -> Found:
        found, distances = np.empty((queries.shape[0], k), dtype=np.intp), np.empty((queries.shape[0], k))
        todo = np.arange(queries.shape[0])
        for dtype in (np.float32, np.float64):
            part = queries[todo]
            here = self.place(part, dtype)
            owners, columns = self._candidates(here, k)
            clear = np.ones(len(todo), dtype=bool)
            if dtype == np.float32:
                clear = np.bincount(owners, minlength=len(todo)) <= 4 * k + 64
                clear &= np.abs(here).max(axis=1) < FAR[dtype]
                owners, columns = owners[clear[owners]], columns[clear[owners]]
            found[todo[clear]], distances[todo[clear]] = self.closest(part, owners, columns, k)
            todo = todo[~clear]
            if not len(todo):
                break
        return found, distances

    def closest(self, queries: Any, owners: np.ndarray, columns: np.ndarray, k: int) -> Found:
        """The `k` nearest of the candidates `columns` of the queries `owners`, with their distances."""
        squares = np.empty(len(owners))
        for part in in_parts(len(owners), 4096 if sp.issparse(queries) else max(1, 2**16 // queries.shape[1])):
            here, there = queries[owners[part]], self.rows[columns[part]]
            squares[part] = row_dots(here, there) if self.metric == "inner" else row_dots(here - there)
        if self.metric == "inner":
            distances = np.maximum(1.0 - squares / self._longest, 0.0)
        else:
            distances = squares / 2 if self.metric == "cosine" else _in_units(np.sqrt(squares), self.unit)
        return k_closest(owners, columns, distances, k)

    def base(self, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
        with _LOCK:
            if dtype not in self._bases:
                placed = np.empty(self.rows.shape, dtype=dtype)
                for part in in_parts(len(placed), 4096):
                    placed[part] = self.place(self.rows[part], dtype)
                self._bases[dtype] = placed, row_dots(placed)
            return self._bases[dtype]

    def _candidates(self, here: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """All that could be among the `k` nearest: a near row is hardly longer than the query, which bounds errors."""
        there, squares = self.base(here.dtype.type)
        scores, own, kind = self.scores(here, there, squares), row_dots(here), np.finfo(here.dtype)
        bound = upper_bound(scores, k).astype(np.float64)
        rounding = float(kind.eps) * (8.0 + np.sqrt(here.shape[1]))
        size = 4 * np.sqrt(own * squares.max()) if self.metric == "inner" else 5.0 * own + 2.0 * np.abs(bound)
        limit = bound + rounding * size + here.shape[1] * float(kind.tiny)
        return up_to(scores, limit.astype(here.dtype), most=max(4 * k + 64, 2**28 // here.size))


@saved_as("geometry.sparse_vectors", methods=("enter",))
class SparseVectors(Vectors):
    """Sparse rows, in double precision where they are."""

    uses_cells = False

    def __init__(self, rows: Any, metric: str) -> None:
        super().__init__(rows, metric)
        self._turned, self._squares = sp.csr_array(self.rows.T), row_dots(self.rows)

    def nearest(self, queries: Any, k: int) -> Found:
        n_queries, n_rows = queries.shape[0], self.rows.shape[0]
        found, distances = np.empty((n_queries, k), dtype=np.intp), np.empty((n_queries, k))
        products = queries @ self._turned
        by_overlap = np.zeros(n_queries, dtype=bool)
        if self.metric != "euclidean" and products.nnz < 0.1 * n_queries * n_rows:
            owners = np.repeat(np.arange(n_queries), np.diff(products.indptr))
            positive = products.data > 0
            by_overlap = np.bincount(owners[positive], minlength=n_queries) >= k
            positive &= by_overlap[owners]
            nearest, _ = k_closest(owners[positive], products.indices[positive], -products.data[positive], k)
            owners = np.repeat(np.flatnonzero(by_overlap), k)
            found[by_overlap], distances[by_overlap] = self.closest(queries, owners, nearest.ravel(), k)
        if not by_overlap.all():
            part, rest = (queries[~by_overlap], products[~by_overlap]) if by_overlap.any() else (queries, products)
            scores = -2.0 * rest.toarray()
            if self.metric == "euclidean":
                scores += self._squares
            found[~by_overlap], distances[~by_overlap] = self.closest(part, *k_smallest(scores, k), k)
        return found, distances


def _in_units(distances: np.ndarray, unit: float) -> np.ndarray:
    with np.errstate(over="ignore"):
        return distances if unit == 1.0 else np.minimum(distances * unit, np.finfo(float).max)
