"""Cells of a large table: where the nearest rows are sought, and in how many cells to find enough of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from otprop._saving import saved_as
from otprop.geometry.measures import BLOCK_ENTRIES, Measure, Measured, Vectors
from otprop.geometry.parallel import Jobs, in_parts, lines_at_once
from otprop.geometry.rows import row_dots
from otprop.geometry.topk import Found, up_to, upper_bound

RECALL = 0.98  # the share of the true neighbours that is aimed at, by looking at up to DEAR of all pairs
FAIR_RECALL = 0.96  # what is aimed at where that is not enough
DEAR, TOO_DEAR = 0.2, 0.5  # more than half of all pairs: brute force, in the end, is as good
MOST_WORK = 1e13  # as `work_of` counts it, some five minutes of one core: what a search may cost, whatever it misses
SAMPLE = 256  # rows whose true neighbours are found by brute force
PROJECTED_FEATURES = 64  # rows with more features are first compared in their principal directions ...
EXPLAINED = 0.9  # ... those that hold this share of the squares


@saved_as("geometry.view")
@dataclass(frozen=True)
class View:
    """Rows as they are compared first: placed, and where there are many features projected."""

    vectors: Vectors
    dtype: Any
    directions: np.ndarray | None = None

    def of_all(self, jobs: Jobs) -> np.ndarray:
        placed, _ = self.vectors.base(self.dtype)
        return placed if self.directions is None else self._projected(placed, jobs)

    def predict_log_proba(self, rows: np.ndarray, jobs: Jobs) -> np.ndarray:
        placed = self.vectors.place(rows, self.dtype)
        return placed if self.directions is None else self._projected(placed, jobs)

    def _projected(self, placed: np.ndarray, jobs: Jobs) -> np.ndarray:
        return np.concatenate(list(jobs.run(lambda part: placed[part] @ self.directions, in_parts(len(placed), 4096))))


def _views(vectors: Vectors) -> Iterator[View]:
    """Ways to compare the rows, the quickest first and the most precise last."""
    n_rows, n_features = vectors.rows.shape
    if n_features > PROJECTED_FEATURES:
        sample = vectors.base(np.float32)[0][:: max(1, n_rows // (10_000 if n_features <= 1000 else 1000))]
        directions = _principal(sample if vectors.metric == "inner" else sample - sample.mean(axis=0))
        if directions.shape[1] <= n_features / 2:
            yield View(vectors, np.float32, directions)
    yield View(vectors, np.float32)
    yield View(vectors, np.float64)


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


@saved_as("geometry.cells")
class Cells:
    """Rows cut into cells around centers: where k-means on a sample of them ends after a few steps."""

    def __init__(self, points: np.ndarray, jobs: Jobs, seed: int) -> None:
        n_cells = int(4 * np.sqrt(len(points)))
        sample = points[sample_rows(len(points), seed, 16 * n_cells)]
        self.centers = sample[:: len(sample) // n_cells][:n_cells].copy()
        for _ in range(4):
            labels = self.labels_of(sample, jobs)
            order, counts = np.argsort(labels, kind="stable"), np.bincount(labels, minlength=n_cells)
            starts = (np.cumsum(counts) - counts)[counts > 0]
            self.centers[counts > 0] = np.add.reduceat(sample[order], starts) / counts[counts > 0, None]
        self.labels = self.labels_of(points, jobs)
        self.order, self.sizes = np.argsort(self.labels, kind="stable"), np.bincount(self.labels, minlength=n_cells)
        self.places, self.starts = np.argsort(self.order), np.cumsum(self.sizes) - self.sizes
        gaps = row_dots(self.centers) - 2 * (self.centers @ self.centers.T)
        np.fill_diagonal(gaps, -np.inf)
        self.around = np.argsort(gaps, axis=1, kind="stable").astype(
            np.int32
        )  # the cells by nearness to each cell, itself first

    def labels_of(self, points: np.ndarray, jobs: Jobs) -> np.ndarray:
        """The cell of the nearest center."""
        squares = row_dots(self.centers) / 2

        def of_some(part: slice) -> np.ndarray:
            return (squares - points[part] @ self.centers.T).argmin(axis=1)

        return np.concatenate(list(jobs.run(of_some, in_parts(len(points), 1024))))

    def members(self, cells: np.ndarray) -> np.ndarray:
        """Positions in `order` of the rows in some cells."""
        sizes = self.sizes[cells]
        ends = np.cumsum(sizes)
        return np.arange(ends[-1]) + np.repeat(self.starts[cells] - ends + sizes, sizes)

    def ranks(self, cells: np.ndarray, others: np.ndarray) -> np.ndarray:
        """How many cells are nearer to each of `cells` than those in the same line of `others`."""
        return np.argsort(self.around[cells], axis=1)[np.arange(len(cells))[:, None], others]

    def most_probed(self, n_probed: int, share: float) -> int:
        """As many of `n_probed` cells as keep the share of all pairs below `share`; at least one."""
        low, high = 1, max(1, min(n_probed, len(self.sizes)))
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.share(middle) <= share else (low, middle - 1)
        return low

    def share(self, n_probed: int) -> float:
        """The share of all pairs that is looked at when each cell's rows are sought in `n_probed` cells."""
        return float(self.sizes @ self.sizes[self.around[:, :n_probed]].sum(axis=1)) / float(self.sizes.sum()) ** 2


def work_of(rows: Any) -> float:
    """What looking at all pairs of rows costs, in features of pairs."""
    return float(rows.shape[0]) ** 2 * (rows.shape[1] + 40)


@saved_as("geometry.search_plan")
@dataclass(frozen=True)
class SearchPlan:
    """Where to look: in the `n_probed` cells around a row's own; the best `n_candidates` there are measured."""

    measure: Measure
    view: View
    cells: Cells
    points: np.ndarray  # the rows in this view, cell after cell
    squares: np.ndarray
    n_candidates: int
    n_probed: int

    def pieces(self, labels: np.ndarray) -> list[tuple[int, np.ndarray]]:
        """Cells with rows that look for neighbours there."""
        order, counts = np.argsort(labels, kind="stable"), np.bincount(labels, minlength=len(self.cells.sizes))
        lines = lines_at_once(min(self.measure.lines * len(self.points), BLOCK_ENTRIES), self._width)
        ends = np.cumsum(counts)
        return [
            (int(cell), order[start : min(start + lines, ends[cell])])
            for cell in np.flatnonzero(counts)
            for start in range(ends[cell] - counts[cell], ends[cell], lines)
        ]

    def wider(self) -> SearchPlan | None:
        """Twice the cells; None if brute force is hardly dearer, the same plan if there is no time for more."""
        plan = replace(self, n_probed=2 * self.n_probed, n_candidates=2 * self.n_candidates)
        share, affordable = self.cells.share(plan.n_probed), MOST_WORK / work_of(self.measure.rows)
        if share > affordable:
            return self
        return plan if share <= TOO_DEAR else None

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
        if isinstance(self.measure, Measured):
            return self.measure.nearest_of(part, self.cells.order[where], k)
        vectors = self.view.vectors
        here = self.points[self.cells.places[members]] if points is None else points[members]
        scores = vectors.scores(here, self.points[where], self.squares[where])
        owners, columns = up_to(scores, upper_bound(scores, n_candidates), most=min(2 * n_candidates, len(where)))
        return vectors.closest(part, owners, self.cells.order[where[columns]], k)


def make_plan(measure: Measure, k: int, jobs: Jobs, seed: int) -> SearchPlan | None:
    """The cheapest plan that finds enough of a sample's true neighbours; None if brute force is hardly dearer."""
    vectors = measure if isinstance(measure, Vectors) else Vectors(measure.rows, "euclidean")
    sample = sample_rows(measure.rows.shape[0], seed)
    truth, _ = brute_force(measure, measure.rows[sample], k, jobs)
    for view in _views(vectors):
        points = view.of_all(jobs)
        squares = row_dots(points)
        n_candidates, seen = k, np.ones(truth.shape, dtype=bool)
        if measure is vectors:
            n_candidates, seen = _candidates_needed(vectors, points, squares, sample, truth)
        if seen.mean() >= (1 + RECALL) / 2:
            break
    cells = Cells(points, jobs, seed)
    ranks = np.where(seen, cells.ranks(cells.labels[sample], cells.labels[truth]), len(cells.sizes))
    ranks = np.sort(ranks[truth != sample[:, None]])
    for recall in (RECALL, FAIR_RECALL):
        n_probed = int(ranks[int(np.ceil(recall * len(ranks))) - 1]) + 1
        if n_probed <= len(cells.sizes) and cells.share(n_probed) <= DEAR:
            break
    affordable = MOST_WORK / work_of(measure.rows)
    if affordable >= TOO_DEAR and (n_probed > len(cells.sizes) or cells.share(n_probed) > TOO_DEAR):
        return None
    n_probed = cells.most_probed(n_probed, affordable)
    return SearchPlan(measure, view, cells, points[cells.order], squares[cells.order], n_candidates, n_probed)


def _candidates_needed(
    vectors: Vectors, points: np.ndarray, squares: np.ndarray, sample: np.ndarray, truth: np.ndarray
) -> tuple[int, np.ndarray]:
    """How many of the rows with the best scores must be measured, and which true neighbours are then among them."""
    k = truth.shape[1]
    numbers = np.minimum([k + 4, 3 * k // 2 + 4, 2 * k + 4, 3 * k + 4, 4 * k + 4], len(points))
    seen = []
    for part in in_parts(len(sample), lines_at_once(BLOCK_ENTRIES, len(points))):
        scores = vectors.scores(points[sample[part]], points, squares)
        of_truth = np.take_along_axis(scores, truth[part], axis=1)
        limits = np.partition(scores, numbers - 1, axis=1)[:, numbers - 1]
        seen.append(of_truth[:, :, None] <= limits[:, None, :])
    each = np.concatenate(seen)
    enough = np.flatnonzero(each.mean(axis=(0, 1)) >= (1 + RECALL) / 2)
    chosen = enough[0] if len(enough) else len(numbers) - 1
    return int(numbers[chosen]), each[:, :, chosen]


def brute_force(measure: Measure, queries: Any, k: int, jobs: Jobs) -> Found:
    pieces = in_parts(queries.shape[0], measure.lines)
    found = list(jobs.run(lambda part: measure.nearest(queries[part], k), pieces))
    return np.concatenate([indices for indices, _ in found]), np.concatenate([values for _, values in found])


def sample_rows(n_rows: int, seed: int, size: int = SAMPLE) -> np.ndarray:
    return np.sort(np.random.default_rng(seed).choice(n_rows, min(size, n_rows), replace=False))
