"""Approximate nearest rows of large tables: rows are partitioned into cells, and only the nearest cells are searched.

This is an inverted file index. The number of cells to search is chosen so that a sample of rows finds a given share of
its true neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from otprop._saving import saved_as
from otprop.geometry.exact_search import (
    BLOCK_ENTRIES,
    DenseSearch,
    ExactSearch,
    KNeighbors,
    MetricSearch,
    entries_within,
    kth_smallest_bound,
)
from otprop.geometry.parallel import Jobs, in_fixed_blocks, row_blocks, rows_per_block
from otprop.geometry.scaling import row_dots

RECALL = 0.98  # the share of the true neighbours to be found, by comparing up to RECALL_PAIRS of all pairs
FALLBACK_RECALL = 0.96  # the share if that needs more pairs
RECALL_PAIRS, MAX_PAIRS = 0.2, 0.5  # shares of all pairs; above the second, brute force is used
MAX_WORK = 6e12  # as counted by `work_of`, about three minutes of one core: an upper bound on the cost of a search
SAMPLE_SIZE = 256  # rows whose true neighbours are found by brute force
PROJECTED_FEATURES = 64  # rows with more features are projected on principal components ...
EXPLAINED = 0.9  # ... that explain this share of the sum of squares
FIXED_ROWS, FIXED_QUERIES = 512, 64  # rows in a matrix product, where the result must not depend on their number


@saved_as("geometry.projection")
@dataclass(frozen=True)
class Projection:
    """Rows standardised, and projected on principal components if there are `directions`."""

    vectors: DenseSearch
    dtype: Any
    directions: np.ndarray | None = None

    def training_points(self, jobs: Jobs) -> np.ndarray:
        return self._project(self.vectors.standardized_rows(self.dtype)[0], jobs)

    def transform(self, rows: np.ndarray, jobs: Jobs) -> np.ndarray:
        return self._project(self.vectors.standardize(rows, self.dtype), jobs)

    def transform_each(self, rows: np.ndarray) -> np.ndarray:
        """The same, but the result of a row does not depend on the other rows."""
        standardized, directions = self.vectors.standardize(rows, self.dtype), self.directions
        if directions is None:
            return standardized
        return in_fixed_blocks(lambda block: block @ directions, standardized, FIXED_ROWS)

    def _project(self, rows: np.ndarray, jobs: Jobs) -> np.ndarray:
        if self.directions is None:
            return rows
        return np.concatenate(list(jobs.run(lambda block: rows[block] @ self.directions, row_blocks(len(rows), 4096))))


def _projections(vectors: DenseSearch) -> Iterator[Projection]:
    """Candidate projections, the fastest first and the most precise last."""
    n_rows, n_features = vectors.rows.shape
    if n_features > PROJECTED_FEATURES:
        sample = vectors.standardized_rows(np.float32)[0][:: max(1, n_rows // (10_000 if n_features <= 1000 else 1000))]
        directions = _principal_components(sample if vectors.metric == "inner" else sample - sample.mean(axis=0))
        if directions.shape[1] <= n_features / 2:
            yield Projection(vectors, np.float32, directions)
    yield Projection(vectors, np.float32)
    yield Projection(vectors, np.float64)


def _principal_components(sample: np.ndarray) -> np.ndarray:
    """The components that explain the share EXPLAINED of the sum of squares, as columns; a multiple of 16 of them."""
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


@saved_as("geometry.cells")
class Cells:
    """A partition of the rows by the nearest of some centers, found by a few steps of k-means on a sample."""

    def __init__(self, points: np.ndarray, jobs: Jobs, seed: int) -> None:
        n_cells = int(4 * np.sqrt(len(points)))
        sample = points[sample_rows(len(points), seed, 16 * n_cells)]
        self.centers = sample[:: len(sample) // n_cells][:n_cells].copy()
        for _ in range(4):
            labels = self.predict(sample, jobs)
            order, counts = np.argsort(labels, kind="stable"), np.bincount(labels, minlength=n_cells)
            starts = (np.cumsum(counts) - counts)[counts > 0]
            self.centers[counts > 0] = np.add.reduceat(sample[order], starts) / counts[counts > 0, None]
        self.labels = self.predict(points, jobs)
        self.order, self.sizes = np.argsort(self.labels, kind="stable"), np.bincount(self.labels, minlength=n_cells)
        self.places, self.starts = np.argsort(self.order), np.cumsum(self.sizes) - self.sizes
        gaps = row_dots(self.centers) - 2 * (self.centers @ self.centers.T)
        np.fill_diagonal(gaps, -np.inf)
        self.around = np.argsort(gaps, axis=1, kind="stable").astype(np.int32)  # by distance, each cell itself first

    def predict(self, points: np.ndarray, jobs: Jobs) -> np.ndarray:
        """The cell of the nearest center."""
        squares = row_dots(self.centers) / 2

        def nearest_center(block: slice) -> np.ndarray:
            return (squares - points[block] @ self.centers.T).argmin(axis=1)

        return np.concatenate(list(jobs.run(nearest_center, row_blocks(len(points), 1024))))

    def predict_each(self, points: np.ndarray) -> np.ndarray:
        """The same, but the result of a row does not depend on the other rows."""
        squares = row_dots(self.centers) / 2
        return in_fixed_blocks(lambda block: (squares - block @ self.centers.T).argmin(axis=1), points, FIXED_ROWS)

    def members(self, cells: np.ndarray) -> np.ndarray:
        """Positions in `order` of the rows in some cells."""
        sizes = self.sizes[cells]
        ends = np.cumsum(sizes)
        return np.arange(ends[-1]) + np.repeat(self.starts[cells] - ends + sizes, sizes)

    def ranks(self, cells: np.ndarray, others: np.ndarray) -> np.ndarray:
        """The ranks, by distance from each of `cells`, of the cells in the same row of `others`."""
        return np.argsort(self.around[cells], axis=1)[np.arange(len(cells))[:, None], others]

    def max_probes(self, n_probes: int, share: float) -> int:
        """The largest number of probes up to `n_probes` that compares at most `share` of all pairs; at least 1."""
        low, high = 1, max(1, min(n_probes, len(self.sizes)))
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.pair_share(middle) <= share else (low, middle - 1)
        return low

    def pair_share(self, n_probes: int) -> float:
        """The share of all pairs that is compared when each row searches `n_probes` cells."""
        return float(self.sizes @ self.sizes[self.around[:, :n_probes]].sum(axis=1)) / float(self.sizes.sum()) ** 2


def work_of(rows: Any) -> float:
    """The cost of comparing all pairs of rows: pairs times (features + 40)."""
    return float(rows.shape[0]) ** 2 * (rows.shape[1] + 40)


@saved_as("geometry.cell_search")
@dataclass(frozen=True)
class CellSearch:
    """Searches the `n_probes` cells nearest to a row's cell, and computes the distances of the best `n_candidates`."""

    exact: ExactSearch
    projection: Projection
    cells: Cells
    points: np.ndarray  # the projected rows, sorted by cell
    squares: np.ndarray
    n_candidates: int
    n_probes: int

    def blocks(self, labels: np.ndarray) -> list[tuple[int, np.ndarray]]:
        """Blocks of queries that lie in the same cell: the cell and the numbers of the queries."""
        order, counts = np.argsort(labels, kind="stable"), np.bincount(labels, minlength=len(self.cells.sizes))
        width = max(1, int(self.cells.pair_share(self.n_probes) * len(self.points)))
        block_rows = rows_per_block(width, min(self.exact.block_rows * len(self.points), BLOCK_ENTRIES), 8, 512)
        starts = np.cumsum(counts) - counts
        return [
            (int(cell), order[starts[cell] : starts[cell] + counts[cell]][block])
            for cell in np.flatnonzero(counts)
            for block in row_blocks(counts[cell], block_rows)
        ]

    def wider(self) -> CellSearch | None:
        """A search with twice the probes; None if brute force costs hardly more, `self` if more exceeds MAX_WORK."""
        wider = replace(self, n_probes=2 * self.n_probes, n_candidates=2 * self.n_candidates)
        share = self.cells.pair_share(wider.n_probes)
        if share > MAX_WORK / work_of(self.exact.rows):
            return self
        return wider if share <= MAX_PAIRS else None

    def nearest(
        self,
        queries: np.ndarray,
        points: np.ndarray | None,
        cell: int,
        numbers: np.ndarray,
        k: int,
        *,
        fixed: bool = False,
    ) -> KNeighbors:
        """The nearest rows of the queries `numbers`, which lie in `cell`; without `points` they are training rows.

        With `fixed`, the neighbours of a query do not depend on the other queries.
        """
        part = queries[numbers]
        n_probes = self.n_probes
        while self.cells.sizes[self.cells.around[cell, :n_probes]].sum() < k:
            n_probes *= 2
        where = self.cells.members(self.cells.around[cell, :n_probes])
        n_candidates = min(self.n_candidates, len(where))
        if isinstance(self.exact, MetricSearch):
            return self.exact.nearest_of(part, self.cells.order[where], k)
        vectors = self.projection.vectors
        projected = self.points[self.cells.places[numbers]] if points is None else points[numbers]
        points_there, squares_there = self.points[where], self.squares[where]
        if fixed:
            scores = in_fixed_blocks(
                lambda block: vectors.scores(block, points_there, squares_there), projected, FIXED_QUERIES
            )
        else:
            scores = vectors.scores(projected, points_there, squares_there)
        limits = kth_smallest_bound(scores, n_candidates)
        rows, columns = entries_within(scores, limits, most=min(2 * n_candidates, len(where)))
        return vectors.nearest_of(part, rows, self.cells.order[where[columns]], k)


def make_cell_search(exact: ExactSearch, k: int, jobs: Jobs, seed: int) -> CellSearch | None:
    """The cheapest search that finds enough true neighbours of a sample; None if brute force costs hardly more."""
    vectors = exact if isinstance(exact, DenseSearch) else DenseSearch(exact.rows, "euclidean")
    sample = sample_rows(exact.rows.shape[0], seed)
    truth, _ = brute_force(exact, exact.rows[sample], k, jobs)
    for projection in _projections(vectors):
        points = projection.training_points(jobs)
        squares = row_dots(points)
        n_candidates, seen = k, np.ones(truth.shape, dtype=bool)
        if exact is vectors:
            n_candidates, seen = _candidates_needed(vectors, points, squares, sample, truth)
        if seen.mean() >= (1 + RECALL) / 2:
            break
    cells = Cells(points, jobs, seed)
    ranks = np.where(seen, cells.ranks(cells.labels[sample], cells.labels[truth]), len(cells.sizes))
    ranks = np.sort(ranks[truth != sample[:, None]])
    for recall in (RECALL, FALLBACK_RECALL):
        n_probes = int(ranks[int(np.ceil(recall * len(ranks))) - 1]) + 1
        if n_probes <= len(cells.sizes) and cells.pair_share(n_probes) <= RECALL_PAIRS:
            break
    affordable = MAX_WORK / work_of(exact.rows)
    if affordable >= MAX_PAIRS and (n_probes > len(cells.sizes) or cells.pair_share(n_probes) > MAX_PAIRS):
        return None
    n_probes = cells.max_probes(n_probes, affordable)
    return CellSearch(exact, projection, cells, points[cells.order], squares[cells.order], n_candidates, n_probes)


def _candidates_needed(
    vectors: DenseSearch, points: np.ndarray, squares: np.ndarray, sample: np.ndarray, truth: np.ndarray
) -> tuple[int, np.ndarray]:
    """The number of candidates needed by score, and which true neighbours are among them."""
    k = truth.shape[1]
    numbers = np.minimum([k + 4, 3 * k // 2 + 4, 2 * k + 4, 3 * k + 4, 4 * k + 4], len(points))
    seen = []
    for part in row_blocks(len(sample), rows_per_block(len(points), BLOCK_ENTRIES, 8, 512)):
        scores = vectors.scores(points[sample[part]], points, squares)
        of_truth = np.take_along_axis(scores, truth[part], axis=1)
        limits = np.partition(scores, numbers - 1, axis=1)[:, numbers - 1]
        seen.append(of_truth[:, :, None] <= limits[:, None, :])
    each = np.concatenate(seen)
    enough = np.flatnonzero(each.mean(axis=(0, 1)) >= (1 + RECALL) / 2)
    chosen = enough[0] if len(enough) else len(numbers) - 1
    return int(numbers[chosen]), each[:, :, chosen]


def brute_force(exact: ExactSearch, queries: Any, k: int, jobs: Jobs) -> KNeighbors:
    """The true nearest rows of all queries."""
    blocks = row_blocks(queries.shape[0], exact.block_rows)
    found = list(jobs.run(lambda block: exact.nearest(queries[block], k), blocks))
    return np.concatenate([indices for indices, _ in found]), np.concatenate([distances for _, distances in found])


def sample_rows(n_rows: int, seed: int, size: int = SAMPLE_SIZE) -> np.ndarray:
    return np.sort(np.random.default_rng(seed).choice(n_rows, min(size, n_rows), replace=False))
