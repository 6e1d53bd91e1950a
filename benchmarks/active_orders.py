"""Orders in which to label rows, for active.py: ours, and what GraphLearning and scikit-activeml offer."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from otprop import OTP
from otprop.geometry.diffusion import local_scales
from otprop.geometry.neighbors import NeighborIndex
from otprop.loop.suggestions import label_uncertainty, suggest_rows

MOST_FEATURES = 50  # the rows that the other packages see have at most so many columns
N_EIGENVECTORS = 100
ONE_AT_A_TIME = 2000  # rows up to which GraphLearning's model is fitted after every label; else after every batch


@dataclass
class State:
    """What an order may look at.

    Attributes
    ----------
    X : ndarray, the rows
    shown : ndarray of int, classes given so far, -1 elsewhere
    pool : ndarray of bool, rows that may be picked
    model : OTP fitted to the labels so far, None where no two classes were shown
    rng : Generator
    seed : int
    truth : callable, the class of a row that is given to the annotator
    kept : dict, what an order wants to keep
    """

    X: np.ndarray
    shown: np.ndarray
    pool: np.ndarray
    rng: np.random.Generator
    seed: int
    truth: Callable[[int], int]
    model: OTP | None = None
    kept: dict[str, Any] = field(default_factory=dict)

    @property
    def candidates(self) -> np.ndarray:
        """Rows that may be picked now."""
        return np.flatnonzero(self.pool & (self.shown < 0))

    @property
    def rows(self) -> np.ndarray:
        """The rows as other packages want them: standardised, of moderate width, the median distance being 1."""
        if "rows" not in self.kept:
            rows = StandardScaler().fit_transform(self.X)
            if rows.shape[1] > MOST_FEATURES:
                rows = PCA(MOST_FEATURES, random_state=0).fit_transform(rows)
            some = rows[:500]
            self.kept["rows"] = rows / np.median(pairwise_distances(some)[np.triu_indices(len(some), 1)])
        return np.asarray(self.kept["rows"])


Picks = list[tuple[int, bool]]  # rows, and whether each was drawn at random


def ours(state: State, n: int) -> Picks:
    """`OTP.suggest`, and typical rows of different regions where there is no model yet."""
    if state.model is None:
        typicality = -local_scales(NeighborIndex(state.X, "euclidean").graph(min(10, len(state.X) - 1)))
        found = suggest_rows(state.X, state.candidates, n, typicality=typicality, seed=state.seed)
    else:
        found = state.model.suggest(n, candidates=state.candidates)
    return [(one.row, not one.chosen) for one in found]


def random(state: State, n: int) -> Picks:
    """Rows drawn at random."""
    return [(int(row), True) for row in state.rng.permutation(state.candidates)[:n]]


def _best(state: State, values: np.ndarray, n: int) -> Picks:
    rows = state.candidates
    return [(int(row), False) for row in rows[np.argsort(-values, kind="stable")[:n]]]


def least_confidence(state: State, n: int) -> Picks:
    """Rows whose best class is least probable under OTP."""
    if state.model is None:
        return random(state, n)
    return _best(state, 1.0 - state.model.label_distributions_[state.candidates].max(axis=1), n)


def margin(state: State, n: int) -> Picks:
    """Rows whose two best classes are closest under OTP."""
    if state.model is None:
        return random(state, n)
    return _best(state, label_uncertainty(state.model.label_distributions_[state.candidates]), n)


def _graph_learning(name: str, spectral: bool, **options: Any) -> Callable[[State, int], Picks]:
    def pick(state: State, n: int) -> Picks:
        import graphlearning as gl

        labelled = np.flatnonzero(state.shown >= 0)
        if len(labelled) == 0:
            return random(state, n)
        if "model" not in state.kept:
            distances, neighbors = NearestNeighbors(n_neighbors=11).fit(state.rows).kneighbors(state.rows)
            weights = gl.weightmatrix.knn(None, 11, kernel="uniform", knn_data=(neighbors, distances))
            state.kept["model"] = gl.ssl.laplace(weights)
            if spectral:
                k = min(N_EIGENVECTORS, len(state.X) - 2)
                values, vectors = gl.graph(weights).eigen_decomp(normalization="normalized", k=k)
                state.kept["spectrum"] = {"C": np.diag(1.0 / (values + 1e-11)), "V": vectors}
        codes = np.unique(state.shown[labelled])  # the model wants classes without gaps
        learner = gl.active_learning.active_learner(
            state.kept["model"],
            getattr(gl.active_learning, name),
            labelled,
            np.searchsorted(codes, state.shown[labelled]),
            **state.kept.get("spectrum", {}),
            **options,
        )
        found: list[int] = []
        step = 1 if len(state.X) <= ONE_AT_A_TIME else n
        while len(found) < n:
            left = np.setdiff1d(state.candidates, found)
            query = learner.select_queries(batch_size=min(step, n - len(found)), candidate_ind=left)
            found += query.tolist()
            truth = np.array([state.truth(row) for row in query])
            if len(found) < n and np.isin(truth, codes).all():
                learner.update(query, np.searchsorted(codes, truth))
            elif len(found) < n:  # a new class: the model is made anew with the next batch
                found += _next(learner, state, found, n)
        return [(int(row), False) for row in found]

    return pick


def _next(learner: Any, state: State, found: list[int], n: int) -> list[int]:
    left = np.setdiff1d(state.candidates, found)
    return [int(row) for row in learner.select_queries(batch_size=n - len(found), candidate_ind=left)]


def _activeml(make: Callable[[State], Any], most_rows: int | None = None) -> Callable[[State, int], Picks]:
    def pick(state: State, n: int) -> Picks:
        if most_rows is not None and len(state.X) > most_rows:
            raise NotImplementedError
        shown = np.where(state.shown < 0, np.nan, state.shown)
        strategy, more = make(state)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rows = strategy.query(state.rows, shown, candidates=state.candidates, batch_size=n, **more)
        return [(int(row), False) for row in rows]

    return pick


def _typiclust(state: State) -> Any:
    from skactiveml.pool import TypiClust

    return TypiClust(random_state=state.seed, cluster_algo_dict={"n_init": 1}), {}


def _probcover(state: State) -> Any:
    from skactiveml.pool import ProbCover

    if "probcover" not in state.kept:
        state.kept["probcover"] = ProbCover(random_state=state.seed, n_classes=state.kept["n_classes"])
    return state.kept["probcover"], {"update": False}


def _badge(state: State) -> Any:
    from skactiveml.classifier import SklearnClassifier
    from skactiveml.pool import Badge

    classes = np.arange(state.kept["n_classes"])
    model = SklearnClassifier(LogisticRegression(max_iter=200), classes=classes, random_state=state.seed)
    return Badge(random_state=state.seed), {"clf": model}


ORDERS: dict[str, Callable[[State, int], Picks]] = {
    "ours": ours,
    "random": random,
    "least confidence": least_confidence,
    "margin": margin,
    "uncertainty norm": _graph_learning("unc_sampling", False, unc_method="unc_2norm"),
    "VOpt": _graph_learning("var_opt", True),
    "model change": _graph_learning("model_change", True),
    "TypiClust": _activeml(_typiclust),
    "ProbCover": _activeml(_probcover, most_rows=5000),
    "BADGE": _activeml(_badge),
}
NEEDS_MODEL = ("ours", "least confidence", "margin")
FROM_NONE = ("ours", "random", "TypiClust", "ProbCover")
