"""The nearest rows of every row: by brute force in small tables, through cells in large ones.

A large table is cut into cells by k-means on a sample. The neighbours of a cell's rows are sought in that cell and in
the cells around it, with one matrix product for many rows. How many cells are looked into is no parameter: the true
neighbours of a sample of rows, found by brute force, say how many the wanted recall needs, and a second sample says
what was reached. Whatever was found is measured in float64, from the differences of the rows.

The work is cut into pieces that do not depend on the number of threads, so the result does not either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from otprop._saving import saved_as
from otprop._validation import check_count
from otprop.geometry.cells import SAMPLE, SearchPlan, brute_force, make_plan, sample_rows, work_of
from otprop.geometry.measures import make_measure
from otprop.geometry.pairwise import Metric, check_cost
from otprop.geometry.parallel import Jobs, in_parts
from otprop.geometry.rows import Copies, UnitRows, as_rows
from otprop.geometry.topk import Found

Progress = Callable[[int, int], object]
LEAST_RECALL = 0.95  # with less, the search is repeated in twice the cells
EXACT_WORK = 1e11  # pairs times (features + 40) up to which brute force is used: about 3 s of one core


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


@saved_as("geometry.neighbor_index")
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
        X = as_rows(X)
        self.n_rows, self.n_features = X.shape
        self._jobs, self._seed = Jobs(n_jobs), seed
        self._unit_rows = UnitRows(X) if name == "cosine" else None
        rows = X if self._unit_rows is None else self._unit_rows(X)
        self._copies = Copies(rows)
        self._measure = make_measure(rows, self._copies, metric)
        self._plans: dict[int, SearchPlan | None] = {}

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
        new = as_rows(X_new)
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
            wider = plan if recall >= LEAST_RECALL else plan.wider()
            if wider is plan:
                return Neighbors(found, distances, exact=False, recall=recall)
            plan = self._plans[max(self._plans)] = wider
        return Neighbors(*self._found(queries, k, None, progress))

    def _plan(self, k: int) -> SearchPlan | None:
        """How the `k` nearest are sought through cells; None where they are not."""
        if not self._measure.uses_cells or work_of(self._measure.rows) <= EXACT_WORK:
            return None
        if k > max(self._plans, default=0):
            with self._jobs.alone():
                self._plans = {k: make_plan(self._measure, k, self._jobs, self._seed)}
        return self._plans[max(self._plans)]

    def _found(self, queries: Any, k: int, plan: SearchPlan | None, progress: Progress | None) -> Found:
        n_queries = queries.shape[0]
        found, distances = np.empty((n_queries, k), dtype=np.int32), np.empty((n_queries, k))
        done = 0
        for part, (indices, values) in self._pieces_found(queries, k, plan):
            found[part], distances[part] = indices, values
            done += len(indices)
            if progress is not None:
                progress(done, n_queries)
        return found, distances

    def _pieces_found(self, queries: Any, k: int, plan: SearchPlan | None) -> Iterator[tuple[Any, Found]]:
        if plan is None:
            parts = in_parts(queries.shape[0], self._measure.lines)
            return zip(parts, self._jobs.run(lambda part: self._measure.nearest(queries[part], k), parts), strict=True)
        points = None if queries is self._measure.rows else plan.view.predict_log_proba(queries, self._jobs)
        pieces = plan.pieces(plan.cells.labels if points is None else plan.cells.labels_of(points, self._jobs))
        found = self._jobs.run(lambda piece: plan.near(queries, points, piece[0], piece[1], k), pieces)
        return zip([members for _, members in pieces], found, strict=True)

    def _recall(self, queries: Any, found: np.ndarray, distances: np.ndarray) -> float:
        """The share of the true neighbours among those found, on a sample that had no say in how to search."""
        sample = sample_rows(queries.shape[0], self._seed + 1)
        _, truth = brute_force(self._measure, queries[sample], distances.shape[1], self._jobs)
        hit = distances[sample] <= truth[:, -1:] * (1 + 1e-12)
        if queries is self._measure.rows:  # finding oneself is no merit
            hit = hit[found[sample] != sample[:, None]]
        return float(hit.mean())


def _without_self(found: np.ndarray, distances: np.ndarray) -> Found:
    """One neighbour less a row: itself where it is among them, the last where it is not."""
    n_rows, k = found.shape
    keep = found != np.arange(n_rows)[:, None]
    keep[keep.all(axis=1), -1] = False
    return found[keep].reshape(n_rows, k - 1), distances[keep].reshape(n_rows, k - 1)
