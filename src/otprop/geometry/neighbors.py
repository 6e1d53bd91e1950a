"""The nearest rows of every row: by brute force in small tables, through cells in large ones.

A large table is cut into cells by k-means on a sample. The neighbours of a cell's rows are sought in that cell and in
the cells around it, with one matrix product for many rows. How many cells are looked into is no parameter: the true
neighbours of a sample of rows, found by brute force, say how many the wanted recall needs, and a second sample says
what was reached. Whatever was found is measured in float64, from the differences of the rows.

The work is cut into pieces that do not depend on the number of threads, so the result does not either.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from hashlib import blake2b
from threading import Lock
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from scipy.spatial import cKDTree
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from otprop._checks import check_count
from otprop.geometry.euclidean import _largest, _power_of_two
from otprop.geometry.identical import row_keys
from otprop.geometry.pairs import Metric, check_cost, make_pairs

_LOCK = Lock()

Progress = Callable[[int, int], object]
Found = tuple[np.ndarray, np.ndarray]  # indices and distances, a line for every query

RECALL = 0.98  # the share of the true neighbours that is aimed at, by looking at up to DEAR of all pairs
FAIR_RECALL = 0.96  # what is aimed at where that is not enough
LEAST_RECALL = 0.95  # with less, the search is repeated in twice the cells
DEAR, TOO_DEAR = 0.2, 0.5  # more than half of all pairs: brute force, in the end, is as good
SAMPLE = 256  # rows whose true neighbours are found by brute force
EXACT_WORK = 1e11  # pairs times (features + 40) up to which brute force is used: about 3 s of one core
TREE_FEATURES, TREE_ROWS = 5, 2000  # a tree is fastest up to so many features and from so many rows on
PROJECTED_FEATURES = 64  # rows with more features are first compared in their principal directions ...
EXPLAINED = 0.9  # ... those that hold this share of the squares
BLOCK_ENTRIES = 2**22  # distances that a thread holds at once
FAR = {np.float32: 1e15, np.float64: 1e145}  # where rows end, in units of a usual row's extent: squares stay finite
EUCLIDEAN, MANHATTAN = ("euclidean", "sqeuclidean", "l2"), ("manhattan", "cityblock", "l1")


@dataclass(frozen=True)
class Neighbors:
    """Rows near each of some rows.

    Attributes
    ----------
    indices : ndarray of int32, shape (n_rows, k), the nearest first
    distances : ndarray of float64, shape (n_rows, k), ascending
    exact : bool, no nearer row was missed
    recall : float, the share of the true neighbours that was found: estimated on a sample, 1 where exact
    """

    indices: np.ndarray
    distances: np.ndarray
    exact: bool = True
    recall: float = 1.0

    def first(self, k: int) -> Neighbors:
        """The `k` nearest of these."""
        return replace(self, indices=self.indices[:, :k], distances=self.distances[:, :k])


class NeighborIndex:
    """Finds the rows of a table that are nearest to its own rows, or to new ones.

    Equal rows are searched for once, so any number of copies does no harm: they are one another's neighbours.

    Parameters
    ----------
    X : ndarray or sparse CSR array of shape (n_rows, n_features), finite
    metric : "euclidean" or "sqeuclidean" (both give plain distances, so that nothing overflows), "cosine", "inner"
        (1 minus the inner product, in units of the largest squared length of a row), another metric of scikit-learn,
        or a callable of two rows
    n_jobs : int or None, threads; None or -1 for all processors; no result depends on it
    seed : int, for the samples
    """

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
            raise ValueError("metric='precomputed' has no rows to search: give rows and a metric.")
        name = metric if isinstance(metric, str) else ""
        X = _as_rows(X)
        self.n_rows, self.n_features = X.shape
        self._jobs, self._seed = Jobs(n_jobs), seed
        self._unit_rows = _UnitRows(X) if name == "cosine" else None
        rows = X if self._unit_rows is None else self._unit_rows(X)
        self._copies = _Copies(rows)
        self._measure = _make_measure(rows, self._copies, metric)
        self._plans: dict[int, _Plan | None] = {}

    def graph(self, k: int, progress: Progress | None = None) -> Neighbors:
        """The `k` nearest other rows of every row, all the others where there are fewer.

        Parameters
        ----------
        k : int
        progress : callable of (rows done, rows in all), or None

        Returns
        -------
        Neighbors
        """
        check_count("k", k)
        k = min(int(k), self.n_rows - 1)
        rows = self._measure.rows
        near = self._search(rows, min(k + 1, rows.shape[0]), progress, planned=True)
        found, distances = self._copies.spread(near.indices, near.distances, k + 1)
        found, distances = _without_self(self._copies.of_every_row(found), self._copies.of_every_row(distances))
        return replace(near, indices=found, distances=distances)

    def query(self, X_new: Any, k: int, progress: Progress | None = None) -> Neighbors:
        """The `k` rows of the table nearest to each new row, all of them where there are fewer.

        Parameters
        ----------
        X_new : ndarray or sparse CSR array of shape (n_new, n_features)
        k : int
        progress : callable of (rows done, rows in all), or None

        Returns
        -------
        Neighbors
        """
        check_count("k", k)
        new = _as_rows(X_new)
        if new.shape[1] != self.n_features:
            raise ValueError(f"X has {new.shape[1]} features, but the table to search has {self.n_features}.")
        if sp.issparse(self._measure.rows):
            new = sp.csr_array(new)
        elif sp.issparse(new):
            new = new.toarray()
        queries = self._measure.enter(new if self._unit_rows is None else self._unit_rows(new))
        k = min(int(k), self.n_rows)
        few = min(k, self._measure.rows.shape[0])
        near = self._search(queries, few, progress, planned=new.shape[0] > SAMPLE)
        found, distances = self._copies.spread(near.indices, near.distances, k)
        return replace(near, indices=found, distances=distances)

    def _search(self, queries: Any, k: int, progress: Progress | None, planned: bool) -> Neighbors:
        """The nearest of the distinct rows; through cells, if that was `planned` and is worth it."""
        plan = self._plan(k) if planned else None
        while plan is not None:
            found, distances = self._found(queries, k, plan, progress)
            recall = self._recall(queries, found, distances)
            if recall >= LEAST_RECALL:
                return Neighbors(found, distances, exact=False, recall=recall)
            plan = self._plans[max(self._plans)] = plan.wider()
        return Neighbors(*self._found(queries, k, None, progress))

    def _plan(self, k: int) -> _Plan | None:
        """How the `k` nearest are sought through cells; None where they are not."""
        n_rows, n_features = self._measure.rows.shape
        if not self._measure.uses_cells or n_rows**2 * (n_features + 40) <= EXACT_WORK:
            return None
        if k > max(self._plans, default=0):
            with self._jobs.alone():
                self._plans = {k: _make_plan(self._measure, k, self._jobs, self._seed)}
        return self._plans[max(self._plans)]

    def _found(self, queries: Any, k: int, plan: _Plan | None, progress: Progress | None) -> Found:
        n_queries = queries.shape[0]
        found, distances = np.empty((n_queries, k), dtype=np.int32), np.empty((n_queries, k))
        done = 0
        for part, (indices, values) in self._pieces_found(queries, k, plan):
            found[part], distances[part] = indices, values
            done += len(indices)
            if progress is not None:
                progress(done, n_queries)
        return found, distances

    def _pieces_found(self, queries: Any, k: int, plan: _Plan | None) -> Iterator[tuple[Any, Found]]:
        if plan is None:
            parts = _parts(queries.shape[0], self._measure.lines)
            return zip(parts, self._jobs.run(lambda part: self._measure.nearest(queries[part], k), parts), strict=True)
        points = None if queries is self._measure.rows else plan.view.of_new(queries, self._jobs)
        pieces = plan.pieces(plan.cells.labels if points is None else plan.cells.labels_of(points, self._jobs))
        found = self._jobs.run(lambda piece: plan.near(queries, points, piece[0], piece[1], k), pieces)
        return zip([members for _, members in pieces], found, strict=True)

    def _recall(self, queries: Any, found: np.ndarray, distances: np.ndarray) -> float:
        """The share of the true neighbours among those found, on a sample that had no say in how to search."""
        sample = _sample(queries.shape[0], self._seed + 1)
        _, truth = _brute_force(self._measure, queries[sample], distances.shape[1], self._jobs)
        hit = distances[sample] <= truth[:, -1:] * (1 + 1e-12)
        if queries is self._measure.rows:  # finding oneself is no merit
            hit = hit[found[sample] != sample[:, None]]
        return float(hit.mean())


class Jobs:
    """Threads that work through a list of pieces; an interruption leaves at most one piece a thread to wait for."""

    def __init__(self, n_jobs: int | None) -> None:
        self.n = effective_n_jobs(-1 if n_jobs is None else n_jobs)

    @staticmethod
    def alone() -> Any:
        """A context in which a matrix product takes one thread: pieces run side by side instead, and round alike."""
        return threadpool_limits(limits=1, user_api="blas")

    def run(self, work: Callable[[Any], Any], pieces: Sequence[Any]) -> Iterator[Any]:
        """The result of every piece, in order."""
        if len(pieces) <= 1:
            yield from map(work, pieces)
            return
        with self.alone():
            if self.n == 1:
                yield from map(work, pieces)
                return
            with ThreadPoolExecutor(self.n) as pool:
                futures = deque(pool.submit(work, piece) for piece in pieces)
                try:
                    while futures:
                        yield futures.popleft().result()
                finally:
                    for future in futures:
                        future.cancel()


class _Measure(Protocol):
    """Finds the nearest of its distinct rows, for `lines` queries at a time."""

    rows: Any
    lines: int
    uses_cells: bool  # where there are many rows

    def enter(self, new: Any) -> Any: ...

    def nearest(self, queries: Any, k: int) -> Found: ...


def _make_measure(rows: Any, copies: _Copies, metric: str | Metric) -> _Measure:
    distinct, name = copies.once(rows), metric if isinstance(metric, str) else ""
    fits_tree = rows.shape[1] <= TREE_FEATURES and distinct.shape[0] > TREE_ROWS and not sp.issparse(rows)
    if fits_tree and name in (*EUCLIDEAN, *MANHATTAN):
        return _Tree(_Vectors(distinct, "euclidean"), 2 if name in EUCLIDEAN else 1)
    if name in (*EUCLIDEAN, "cosine", "inner"):
        kind = _SparseVectors if sp.issparse(rows) else _Vectors
        return kind(distinct, "euclidean" if name in EUCLIDEAN else name)
    return _Measured(rows, copies, metric)


class _Tree:
    """Rows with few features, in a tree."""

    lines, uses_cells = 512, False

    def __init__(self, vectors: _Vectors, norm: int) -> None:
        self.rows, self.enter, self._unit = vectors.rows, vectors.enter, vectors.unit
        self._tree, self._norm = cKDTree(vectors.rows), norm

    def nearest(self, queries: np.ndarray, k: int) -> Found:
        distances, found = self._tree.query(queries, k=np.arange(1, k + 1), p=self._norm)
        return found, _in_units(distances, self._unit)


class _Measured:
    """Rows that a metric of scikit-learn or a callable compares, pair by pair."""

    def __init__(self, rows: Any, copies: _Copies, metric: str | Metric) -> None:
        self.rows, self._first, self._pairs = copies.once(rows), copies.first, make_pairs(rows, metric)
        self.uses_cells = not sp.issparse(rows)
        # these are slow, and Ctrl-C is answered between blocks only
        self.lines = _lines(2**16 if callable(metric) else 2**20, self.rows.shape[0])

    def enter(self, new: Any) -> Any:
        return new

    def nearest(self, queries: Any, k: int) -> Found:
        return self.nearest_of(queries, np.arange(self.rows.shape[0]), k)

    def nearest_of(self, queries: Any, candidates: np.ndarray, k: int) -> Found:
        block = self._pairs.columns(self._first[candidates], queries)(np.arange(queries.shape[0]))
        owners, columns = _smallest(block, k)
        return _closest(owners, candidates[columns], block[owners, columns], k)


class _Vectors:
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
        usual = float(np.median(_row_largest(rows[::step]))) or largest
        self.unit = 1.0 if usual > 1e-100 and largest < 1e100 else _power_of_two(usual)
        self.rows = rows if self.unit == 1.0 else self.enter(rows)
        self.lines = _lines(BLOCK_ENTRIES, rows.shape[0])
        self._longest = max(float(_dots(self.rows[part]).max()) for part in _parts(rows.shape[0], 4096)) or 1.0
        if not sp.issparse(rows):
            sample = self.rows[::step]
            self._center = np.zeros(rows.shape[1]) if metric == "inner" else np.median(sample, axis=0)
            extent = float(np.median(_row_largest(sample - self._center)))
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
        for part in _parts(len(owners), 4096 if sp.issparse(queries) else max(1, 2**16 // queries.shape[1])):
            here, there = queries[owners[part]], self.rows[columns[part]]
            squares[part] = _dots(here, there) if self.metric == "inner" else _dots(here - there)
        if self.metric == "inner":
            distances = np.maximum(1.0 - squares / self._longest, 0.0)
        else:
            distances = squares / 2 if self.metric == "cosine" else _in_units(np.sqrt(squares), self.unit)
        return _closest(owners, columns, distances, k)

    def base(self, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
        with _LOCK:
            if dtype not in self._bases:
                placed = np.empty(self.rows.shape, dtype=dtype)
                for part in _parts(len(placed), 4096):
                    placed[part] = self.place(self.rows[part], dtype)
                self._bases[dtype] = placed, _dots(placed)
            return self._bases[dtype]

    def _candidates(self, here: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """All that could be among the `k` nearest: a near row is hardly longer than the query, which bounds errors."""
        there, squares = self.base(here.dtype.type)
        scores, own, kind = self.scores(here, there, squares), _dots(here), np.finfo(here.dtype)
        bound = _bound(scores, k).astype(np.float64)
        rounding = float(kind.eps) * (8.0 + np.sqrt(here.shape[1]))
        size = 4 * np.sqrt(own * squares.max()) if self.metric == "inner" else 5.0 * own + 2.0 * np.abs(bound)
        limit = bound + rounding * size + here.shape[1] * float(kind.tiny)
        return _up_to(scores, limit.astype(here.dtype), most=max(4 * k + 64, 2**28 // here.size))


class _SparseVectors(_Vectors):
    """Sparse rows, in double precision where they are."""

    uses_cells = False

    def __init__(self, rows: Any, metric: str) -> None:
        super().__init__(rows, metric)
        self._turned, self._squares = sp.csr_array(self.rows.T), _dots(self.rows)

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
            nearest, _ = _closest(owners[positive], products.indices[positive], -products.data[positive], k)
            owners = np.repeat(np.flatnonzero(by_overlap), k)
            found[by_overlap], distances[by_overlap] = self.closest(queries, owners, nearest.ravel(), k)
        if not by_overlap.all():
            part, rest = (queries[~by_overlap], products[~by_overlap]) if by_overlap.any() else (queries, products)
            scores = -2.0 * rest.toarray()
            if self.metric == "euclidean":
                scores += self._squares
            found[~by_overlap], distances[~by_overlap] = self.closest(part, *_smallest(scores, k), k)
        return found, distances


@dataclass(frozen=True)
class _View:
    """Rows as they are compared first: placed, and where there are many features projected."""

    vectors: _Vectors
    dtype: Any
    directions: np.ndarray | None = None

    def of_all(self, jobs: Jobs) -> np.ndarray:
        placed, _ = self.vectors.base(self.dtype)
        return placed if self.directions is None else self._projected(placed, jobs)

    def of_new(self, rows: np.ndarray, jobs: Jobs) -> np.ndarray:
        placed = self.vectors.place(rows, self.dtype)
        return placed if self.directions is None else self._projected(placed, jobs)

    def _projected(self, placed: np.ndarray, jobs: Jobs) -> np.ndarray:
        return np.concatenate(list(jobs.run(lambda part: placed[part] @ self.directions, _parts(len(placed), 4096))))


def _views(vectors: _Vectors) -> Iterator[_View]:
    """Ways to compare the rows, the quickest first and the most precise last."""
    n_rows, n_features = vectors.rows.shape
    if n_features > PROJECTED_FEATURES:
        sample = vectors.base(np.float32)[0][:: max(1, n_rows // (10_000 if n_features <= 1000 else 1000))]
        directions = _principal(sample if vectors.metric == "inner" else sample - sample.mean(axis=0))
        if directions.shape[1] <= n_features / 2:
            yield _View(vectors, np.float32, directions)
    yield _View(vectors, np.float32)
    yield _View(vectors, np.float64)


def _principal(sample: np.ndarray) -> np.ndarray:
    """The directions that hold the share EXPLAINED of the squares, as columns; a multiple of 16 of them."""
    wide = sample.shape[1] > len(sample)
    values, vectors = np.linalg.eigh((sample @ sample.T if wide else sample.T @ sample).astype(np.float64))
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    enough = int(np.searchsorted(np.cumsum(values), EXPLAINED * values.sum())) + 1
    kept = min(16 * -(-enough // 16), len(values))
    vectors = vectors[:, :kept]
    if wide:
        vectors = sample.T @ vectors
        vectors /= np.linalg.norm(vectors, axis=0)
    return np.ascontiguousarray(vectors, dtype=np.float32)


class _Cells:
    """Rows cut into cells around centers: where k-means on a sample of them ends after a few steps."""

    def __init__(self, points: np.ndarray, jobs: Jobs, seed: int) -> None:
        n_cells = int(4 * np.sqrt(len(points)))
        sample = points[_sample(len(points), seed, 16 * n_cells)]
        self.centers = sample[:: len(sample) // n_cells][:n_cells].copy()
        for _ in range(4):
            labels = self.labels_of(sample, jobs)
            order, counts = np.argsort(labels, kind="stable"), np.bincount(labels, minlength=n_cells)
            starts = (np.cumsum(counts) - counts)[counts > 0]
            self.centers[counts > 0] = np.add.reduceat(sample[order], starts) / counts[counts > 0, None]
        self.labels = self.labels_of(points, jobs)
        self.order, self.sizes = np.argsort(self.labels, kind="stable"), np.bincount(self.labels, minlength=n_cells)
        self.places, self.starts = np.argsort(self.order), np.cumsum(self.sizes) - self.sizes
        gaps = _dots(self.centers) - 2 * (self.centers @ self.centers.T)
        np.fill_diagonal(gaps, -np.inf)
        self.around = np.argsort(gaps, axis=1, kind="stable").astype(
            np.int32
        )  # the cells by nearness to each cell, itself first

    def labels_of(self, points: np.ndarray, jobs: Jobs) -> np.ndarray:
        """The cell of the nearest center."""
        squares = _dots(self.centers) / 2

        def of_some(part: slice) -> np.ndarray:
            return (squares - points[part] @ self.centers.T).argmin(axis=1)

        return np.concatenate(list(jobs.run(of_some, _parts(len(points), 1024))))

    def members(self, cells: np.ndarray) -> np.ndarray:
        """Positions in `order` of the rows in some cells."""
        sizes = self.sizes[cells]
        ends = np.cumsum(sizes)
        return np.arange(ends[-1]) + np.repeat(self.starts[cells] - ends + sizes, sizes)

    def ranks(self, cells: np.ndarray, others: np.ndarray) -> np.ndarray:
        """How many cells are nearer to each of `cells` than those in the same line of `others`."""
        return np.argsort(self.around[cells], axis=1)[np.arange(len(cells))[:, None], others]

    def share(self, n_probed: int) -> float:
        """The share of all pairs that is looked at when each cell's rows are sought in `n_probed` cells."""
        return float(self.sizes @ self.sizes[self.around[:, :n_probed]].sum(axis=1)) / float(self.sizes.sum()) ** 2


@dataclass(frozen=True)
class _Plan:
    """Where to look: in the `n_probed` cells around a row's own; the best `n_candidates` there are measured."""

    measure: _Measure
    view: _View
    cells: _Cells
    points: np.ndarray  # the rows in this view, cell after cell
    squares: np.ndarray
    n_candidates: int
    n_probed: int

    def pieces(self, labels: np.ndarray) -> list[tuple[int, np.ndarray]]:
        """Cells with rows that look for neighbours there."""
        order, counts = np.argsort(labels, kind="stable"), np.bincount(labels, minlength=len(self.cells.sizes))
        lines = _lines(min(self.measure.lines * len(self.points), BLOCK_ENTRIES), self._width)
        ends = np.cumsum(counts)
        return [
            (int(cell), order[start : min(start + lines, ends[cell])])
            for cell in np.flatnonzero(counts)
            for start in range(ends[cell] - counts[cell], ends[cell], lines)
        ]

    def wider(self) -> _Plan | None:
        """Twice the cells; None if brute force is hardly dearer."""
        plan = replace(self, n_probed=2 * self.n_probed, n_candidates=2 * self.n_candidates)
        return plan if self.cells.share(plan.n_probed) <= TOO_DEAR else None

    @property
    def _width(self) -> int:
        return max(1, int(self.cells.share(self.n_probed) * len(self.points)))

    def near(self, queries: np.ndarray, points: np.ndarray | None, cell: int, members: np.ndarray, k: int) -> Found:
        """The nearest rows of the queries `members`, which lie in `cell`; without `points` they are the rows."""
        part = queries[members]
        probed = self.n_probed  # more where the cells hold hardly anything
        while self.cells.sizes[self.cells.around[cell, :probed]].sum() < k:
            probed *= 2
        where = self.cells.members(self.cells.around[cell, :probed])
        n_candidates = min(self.n_candidates, len(where))
        if isinstance(self.measure, _Measured):
            return self.measure.nearest_of(part, self.cells.order[where], k)
        vectors = self.view.vectors
        here = self.points[self.cells.places[members]] if points is None else points[members]
        scores = vectors.scores(here, self.points[where], self.squares[where])
        owners, columns = _up_to(scores, _bound(scores, n_candidates), most=min(2 * n_candidates, len(where)))
        return vectors.closest(part, owners, self.cells.order[where[columns]], k)


def _make_plan(measure: _Measure, k: int, jobs: Jobs, seed: int) -> _Plan | None:
    """The cheapest plan that finds enough of a sample's true neighbours; None if brute force is hardly dearer."""
    vectors = measure if isinstance(measure, _Vectors) else _Vectors(measure.rows, "euclidean")
    sample = _sample(measure.rows.shape[0], seed)
    truth, _ = _brute_force(measure, measure.rows[sample], k, jobs)
    for view in _views(vectors):
        points = view.of_all(jobs)
        squares = _dots(points)
        n_candidates, seen = k, np.ones(truth.shape, dtype=bool)
        if measure is vectors:
            n_candidates, seen = _candidates_needed(vectors, points, squares, sample, truth)
        if seen.mean() >= (1 + RECALL) / 2:
            break
    cells = _Cells(points, jobs, seed)
    ranks = np.where(seen, cells.ranks(cells.labels[sample], cells.labels[truth]), len(cells.sizes))
    ranks = np.sort(ranks[truth != sample[:, None]])
    for recall in (RECALL, FAIR_RECALL):
        n_probed = int(ranks[int(np.ceil(recall * len(ranks))) - 1]) + 1
        if n_probed <= len(cells.sizes) and cells.share(n_probed) <= DEAR:
            break
    if n_probed > len(cells.sizes) or cells.share(n_probed) > TOO_DEAR:
        return None
    return _Plan(measure, view, cells, points[cells.order], squares[cells.order], n_candidates, n_probed)


def _candidates_needed(
    vectors: _Vectors, points: np.ndarray, squares: np.ndarray, sample: np.ndarray, truth: np.ndarray
) -> tuple[int, np.ndarray]:
    """How many of the rows with the best scores must be measured, and which true neighbours are then among them."""
    k = truth.shape[1]
    numbers = np.minimum([k + 4, 3 * k // 2 + 4, 2 * k + 4, 3 * k + 4, 4 * k + 4], len(points))
    seen = []
    for part in _parts(len(sample), _lines(BLOCK_ENTRIES, len(points))):
        scores = vectors.scores(points[sample[part]], points, squares)
        of_truth = np.take_along_axis(scores, truth[part], axis=1)
        limits = np.partition(scores, numbers - 1, axis=1)[:, numbers - 1]
        seen.append(of_truth[:, :, None] <= limits[:, None, :])
    each = np.concatenate(seen)
    enough = np.flatnonzero(each.mean(axis=(0, 1)) >= (1 + RECALL) / 2)
    chosen = enough[0] if len(enough) else len(numbers) - 1
    return int(numbers[chosen]), each[:, :, chosen]


def _brute_force(measure: _Measure, queries: Any, k: int, jobs: Jobs) -> Found:
    pieces = _parts(queries.shape[0], measure.lines)
    found = list(jobs.run(lambda part: measure.nearest(queries[part], k), pieces))
    return np.concatenate([indices for indices, _ in found]), np.concatenate([values for _, values in found])


class _Copies:
    """Equal rows: which they are, and how what was found for one of them becomes the others' too."""

    def __init__(self, rows: Any) -> None:
        self.group = np.arange(rows.shape[0])
        suspects = np.arange(rows.shape[0]) if sp.issparse(rows) else _perhaps_equal(rows)
        seen: dict[bytes, int] = {}
        for part in _parts(len(suspects), 4096):
            numbers = suspects[part]
            for number, key in zip(numbers.tolist(), row_keys(rows[numbers]), strict=True):
                self.group[number] = seen.setdefault(blake2b(key, digest_size=16).digest(), number)
        self.any = len(seen) < len(suspects)
        self.group = np.unique(self.group, return_inverse=True)[1]
        self.order, self.sizes = np.argsort(self.group, kind="stable"), np.bincount(self.group)
        self.starts = np.cumsum(self.sizes) - self.sizes
        self.first = self.order[self.starts]

    def once(self, rows: Any) -> Any:
        """The rows without repetitions."""
        return rows[self.first] if self.any else rows

    def of_every_row(self, values: np.ndarray) -> np.ndarray:
        return values[self.group] if self.any else values

    def spread(self, found: np.ndarray, distances: np.ndarray, k: int) -> Found:
        """Neighbours among distinct rows as the `k` nearest of all rows."""
        if not self.any:
            return found, distances
        sizes = self.sizes[found]
        before = np.cumsum(sizes, axis=1) - sizes
        taken = np.clip(k - before, 0, sizes)  # each line sums to k
        groups = np.repeat(found.ravel(), taken.ravel())
        copy = np.arange(groups.size) % k - np.repeat(before.ravel(), taken.ravel())
        rows = self.order[self.starts[groups] + copy].astype(np.int32)
        return rows.reshape(-1, k), np.repeat(distances.ravel(), taken.ravel()).reshape(-1, k)


def _perhaps_equal(rows: np.ndarray) -> np.ndarray:
    """Numbers of the rows that may have an equal, by a sum of their bits in random proportions."""
    factors = np.random.default_rng(0).integers(2**63, size=rows.shape[1], dtype=np.uint64) * 2 + 1
    sums = np.empty(len(rows), dtype=np.uint64)
    for part in _parts(len(rows), 1024):
        bits = (rows[part] + 0.0).view(np.uint64)  # -0.0 becomes 0.0
        bits ^= bits >> np.uint64(32)
        sums[part] = (bits * factors).sum(axis=1)
    _, which, counts = np.unique(sums, return_inverse=True, return_counts=True)
    return np.flatnonzero(counts[which] > 1)


class _UnitRows:
    """Rows scaled to length one. Where the table has rows of zeros they get a direction of their own."""

    def __init__(self, X: Any) -> None:
        self._has_zeros = bool((_row_largest(X) == 0).any())

    def __call__(self, rows: Any) -> Any:
        largest = _row_largest(rows)
        zero = largest == 0
        first = np.ldexp(1.0, -np.clip(np.frexp(largest)[1], -1021, 1023))  # squares must not overflow
        lengths = np.sqrt(_dots(self._scaled(rows, first)))
        rows = self._scaled(self._scaled(rows, first), 1.0 / np.where(zero, 1.0, lengths))
        if not self._has_zeros:
            return rows
        extra = zero.astype(np.float64)[:, None]
        return sp.csr_array(sp.hstack([rows, extra])) if sp.issparse(rows) else np.hstack([rows, extra])

    @staticmethod
    def _scaled(rows: Any, factors: np.ndarray) -> Any:
        return sp.csr_array(sp.diags_array(factors) @ rows) if sp.issparse(rows) else rows * factors[:, None]


def _without_self(found: np.ndarray, distances: np.ndarray) -> Found:
    """One neighbour less a row: itself where it is among them, the last where it is not."""
    n_rows, k = found.shape
    keep = found != np.arange(n_rows)[:, None]
    keep[keep.all(axis=1), -1] = False
    return found[keep].reshape(n_rows, k - 1), distances[keep].reshape(n_rows, k - 1)


def _bound(scores: np.ndarray, k: int) -> np.ndarray:
    """A number a line that at least `k` of its scores do not exceed, and not many more."""
    width, groups = scores.shape[1], max(256, 8 * k)
    if width >= 4 * groups:  # the smallest of each group are scores too
        scores = scores[:, : width // groups * groups].reshape(len(scores), -1, groups).min(axis=1)
    return np.partition(scores, k - 1, axis=1)[:, k - 1]


def _up_to(scores: np.ndarray, limit: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Lines and columns of the scores up to a limit for their line, or of the `most` smallest if they are more."""
    owners, columns = np.divmod(np.flatnonzero(scores <= limit[:, None]), scores.shape[1])
    crowded = np.bincount(owners, minlength=len(scores)) > most
    if crowded.any():
        smallest = np.argpartition(scores[crowded], most - 1, axis=1)[:, :most]
        owners, columns = owners[~crowded[owners]], columns[~crowded[owners]]
        owners = np.concatenate([owners, np.repeat(np.flatnonzero(crowded), most)])
        columns = np.concatenate([columns, np.sort(smallest, axis=1).ravel()])
        order = np.argsort(owners, kind="stable")
        owners, columns = owners[order], columns[order]
    return owners, columns


def _smallest(scores: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Lines and columns of the `k` smallest scores of each line."""
    owners, columns = _up_to(scores, _bound(scores, k), most=4 * k + 64)
    columns, _ = _closest(owners, columns, scores[owners, columns], k)
    return np.repeat(np.arange(len(scores)), k), columns.ravel()


def _closest(owners: np.ndarray, columns: np.ndarray, distances: np.ndarray, k: int) -> Found:
    """The `k` nearest candidates of each owner, of equally near ones the first. Candidates lie owner by owner."""
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    counts = np.diff(starts, append=len(owners))
    table = np.full((len(starts), counts.max(initial=k)), np.inf)
    table[np.repeat(np.arange(len(starts)), counts), np.arange(len(owners)) - np.repeat(starts, counts)] = distances
    order = np.argsort(table, axis=1, kind="stable")[:, :k]
    return columns[starts[:, None] + order], np.take_along_axis(table, order, axis=1)


def _as_rows(X: Any) -> Any:
    return sp.csr_array(X, dtype=np.float64) if sp.issparse(X) else np.ascontiguousarray(X, dtype=np.float64)


def _dots(here: Any, there: Any = None) -> np.ndarray:
    """The inner product of each row with the one beside it, or with itself."""
    there = here if there is None else there
    return np.asarray(here.multiply(there).sum(axis=1)) if sp.issparse(here) else np.einsum("ij,ij->i", here, there)


def _row_largest(rows: Any) -> np.ndarray:
    """The largest absolute value of each row."""
    if sp.issparse(rows):
        return abs(rows).max(axis=1).toarray().ravel()
    return np.maximum(rows.max(axis=1), -rows.min(axis=1))


def _in_units(distances: np.ndarray, unit: float) -> np.ndarray:
    with np.errstate(over="ignore"):
        return distances if unit == 1.0 else np.minimum(distances * unit, np.finfo(float).max)


def _sample(n_rows: int, seed: int, size: int = SAMPLE) -> np.ndarray:
    return np.sort(np.random.default_rng(seed).choice(n_rows, min(size, n_rows), replace=False))


def _lines(entries: int, width: int) -> int:
    return int(np.clip(entries // max(1, width), 8, 512))


def _parts(n_rows: int, lines: int) -> list[slice]:
    return [slice(start, min(start + lines, n_rows)) for start in range(0, n_rows, lines)]
