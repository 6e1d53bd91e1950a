"""Our way: class costs from the data's own geometry and from classifiers, each class shipping what it owes."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import softmax
from sklearn.utils import check_random_state

from otprop._labels import Labels
from otprop.evidence.classifier import ClassifierSource, Features, ForestSource, LinearSource, Source
from otprop.evidence.combined import Evidence
from otprop.evidence.diffusion import DiffusionSource, Setting
from otprop.evidence.held_out import MANY_ROWS, make_folds
from otprop.evidence.nearness import NearnessSource
from otprop.evidence.output import hits
from otprop.evidence.weights import relative
from otprop.geometry.diffusion import DiffusionGraph
from otprop.geometry.neighbors import NeighborIndex
from otprop.geometry.pairwise import SPARSE_METRICS, in_user_units, make_pairwise_cost
from otprop.geometry.row_matching import LabeledRows, digest, row_keys
from otprop.propagation.calibration import Calibration, calibrate
from otprop.propagation.class_rounds import ClassLevelRounds, tempered
from otprop.propagation.row_level import in_units_of
from otprop.propagation.shares import LABELS_A_CLASS, check_prior, infer_shares

logger = logging.getLogger("otprop")

NAMED_SOURCES = ("forest", "linear")
AUTO_NEIGHBORS = (10, 20)
AUTO_NEIGHBORS_MANY = (10,)  # from MANY_ROWS rows on
AUTO_DIFFUSION = (0.8, 0.95)
AUTO_ROUNDS = 20
AUTO_STRENGTH = 0.5  # with many labels; half as much with `LABELS_A_CLASS` of each class


class ClassLevelFit:
    """What `OTP` runs with ``marginals="class"``.

    Attributes
    ----------
    run : ClassLevelRounds, to iterate over
    evidence : Evidence
    prior : ndarray of shape (n_classes,), the classes' shares of all rows
    temperature : float, what the logits are divided by
    epsilon : float, as used: the temperature, or the scale of the kernel in the user's units
    """

    def __init__(self, model: Any, X: Any, labels: Labels, weights: np.ndarray) -> None:
        weights = weights.copy()
        weights[labels.labeled] = relative(weights[labels.labeled])  # rows that join later are measured by these
        self._model, self._X, self._labels, self._weights = model, X, labels, weights
        self._n_classes = len(labels.classes)
        self._seed = int(check_random_state(model.random_state).randint(2**31 - 1))
        prior = check_prior(model.class_prior, labels.classes)
        shown = np.where(weights > 0, labels.codes, -1)
        self.evidence = Evidence(self._geometry(), self._classifiers(), make_folds(shown, self._n_classes, self._seed))
        logits = self.evidence.fit(shown, weights)
        self._reached = self.evidence.iterative.reached()
        self.temperature = 1.0 if isinstance(model.epsilon, str) or not self._tempered else float(model.epsilon)
        self.epsilon = self._epsilon_used()
        counts = np.bincount(shown[shown >= 0], minlength=self._n_classes).astype(np.float64)
        if prior is None:
            prior = self._infer_prior(logits, counts)
        self.prior = prior
        if isinstance(model.marginal_strength, str):
            self.strength = AUTO_STRENGTH * counts.sum() / (counts.sum() + LABELS_A_CLASS * self._n_classes)
        else:
            self.strength = float(model.marginal_strength)
        self.run = ClassLevelRounds(
            self.evidence,
            logits,
            labels.codes,
            weights,
            prior,
            strength=self.strength,
            epsilon=self.temperature,
            alpha=None if isinstance(model.alpha, str) else model.alpha,
            max_rounds=AUTO_ROUNDS if isinstance(model.max_rounds, str) else model.max_rounds,
            min_round_share=model.min_round_share,
            tol=model.tol,
            max_iter=model.max_iter,
        )

    @property
    def settings(self) -> list[dict[str, Any]]:
        """What was chosen for the geometry, without the truth: one entry a setting that has a say."""
        iterative = self.evidence.iterative
        if isinstance(iterative, NearnessSource):
            return [{"cost": self._model.cost, "epsilon": self.epsilon}]
        assert isinstance(iterative, DiffusionSource)
        return [
            {
                "n_neighbors": setting.n_neighbors,
                "diffusion": setting.strength,
                "power": setting.power,
                "likelihood": setting.likelihood,
                "weight": setting.weight,
            }
            for setting in iterative.settings
        ]

    @cached_property
    def calibration(self) -> Calibration:
        """From the probability of a label to how probable it is that it is right, learnt from hidden labels."""
        run, hidden = self.run, self.evidence.hidden
        if len(hidden) == 0 and len(self._labels.unlabeled):
            logger.warning("confidence_ is not calibrated: no label could be hidden, since no class has two.")
        unseen = tempered(self.evidence.held_out_log_proba, self.temperature)
        if run.plan is not None:
            unseen = unseen + np.maximum(run.plan.h, -50.0)
        right = hits(unseen, hidden.codes)
        stands_for = (self.prior / np.maximum(hidden.counts, 1))[hidden.codes]
        return calibrate(softmax(unseen, axis=1).max(axis=1, initial=0.0), right, stands_for)

    def confidence(self) -> np.ndarray:
        """The calibrated probability of each row's label; 1 where it was given."""
        found = confidence_of(self.run.distributions, self._reached, self.calibration, self.prior)
        found[self._labels.labeled] = 1.0
        return found

    def answers(self) -> ClassLevelPredictor:
        """What answers for new rows, once the rounds are over."""
        return ClassLevelPredictor(self, self._X, self._labels, self._weights)

    @property
    def _tempered(self) -> bool:
        """Whether epsilon is the temperature of the class costs, and not the scale of a kernel."""
        return self._model.cost in ("diffusion", "graph") if isinstance(self._model.cost, str) else False

    def _epsilon_used(self) -> float:
        """Epsilon in the user's units: as asked, or as it was chosen."""
        iterative = self.evidence.iterative
        if not isinstance(self._model.epsilon, str):
            return float(self._model.epsilon)
        if isinstance(iterative, NearnessSource):
            return in_user_units(iterative.epsilon or 1.0, self._unit)
        return self.temperature

    def _geometry(self) -> DiffusionSource | NearnessSource:
        model = self._model
        self.index: NeighborIndex | None = None
        if not self._tempered:
            pairs = make_pairwise_cost(self._X, model.cost)
            epsilon = None if isinstance(model.epsilon, str) else in_units_of(pairs.scale, model.epsilon)
            self._unit = pairs.scale
            return NearnessSource(pairs, self._X.shape[0], self._n_classes, epsilon)
        strengths = AUTO_DIFFUSION if isinstance(model.diffusion, str) else (float(model.diffusion),)
        if model.cost == "graph":
            graphs: dict[int | None, DiffusionGraph] = {None: DiffusionGraph(self._X, name="X")}
            if not graphs[None].symmetric:
                warnings.warn("X is not symmetric: the larger of w_ij and w_ji is used.", UserWarning, stacklevel=4)
            if not graphs[None].degrees.any():
                warnings.warn("X has no affinity above 0: no label reaches another row.", UserWarning, stacklevel=4)
        else:
            graphs = dict(self._neighbor_graphs())
        settings = [Setting(graph, k, strength) for k, graph in graphs.items() for strength in strengths]
        return DiffusionSource(settings, self._n_classes, model.n_jobs)

    def _neighbor_graphs(self) -> list[tuple[int, DiffusionGraph]]:
        model, n_rows = self._model, self._X.shape[0]
        if isinstance(model.n_neighbors, str):
            wanted = AUTO_NEIGHBORS if n_rows <= MANY_ROWS else AUTO_NEIGHBORS_MANY
        else:
            wanted = (int(model.n_neighbors),)
        wanted = tuple(dict.fromkeys(min(k, n_rows - 1) for k in wanted))
        _check_metric(model.metric, self._X)
        self.index = NeighborIndex(self._X, model.metric, n_jobs=model.n_jobs)
        self.n_query = max(wanted)
        neighbors = self.index.graph(max(wanted), _log_neighbors)
        return [(k, DiffusionGraph.from_neighbors(neighbors, k)) for k in wanted]

    def _classifiers(self) -> list[Source]:
        model = self._model
        featureless = isinstance(model.cost, str) and model.cost in ("graph", "precomputed")
        if model.evidence is None or (isinstance(model.evidence, str) and featureless) or self._n_classes == 1:
            return []
        wanted = NAMED_SOURCES if isinstance(model.evidence, str) else model.evidence
        if len(wanted) and featureless:
            raise ValueError(
                f"evidence={model.evidence!r} needs the features of the rows, which cost={model.cost!r} does not have. "
                "Leave evidence at 'auto' or set it to None."
            )
        X, n_classes, seed = self._X, self._n_classes, self._seed
        features = Features(X)
        found: list[Source] = []
        for source in wanted:
            if isinstance(source, str) and source == "forest":
                found.append(ForestSource(features, X, n_classes, seed, -1 if model.n_jobs is None else model.n_jobs))
            elif isinstance(source, str) and source == "linear":
                found.append(LinearSource(features, X, n_classes, seed))
            else:
                found.append(ClassifierSource(_name_among(source, wanted), source, X, self._shown_labels()))
        return found

    def _shown_labels(self) -> np.ndarray:
        """What classifiers of the user's are shown for each class: the labels of y; numbers where they are dates."""
        classes = self._labels.classes
        return classes if classes.dtype.kind in "biufU" else np.arange(len(classes))

    def _infer_prior(self, logits: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """The classes' shares of all rows: what is labelled, and what is inferred of the rest."""
        left = self._labels.unlabeled
        reached = left[np.isfinite(logits[left]).all(axis=1)]
        shares = softmax(tempered(logits[reached], self.temperature), axis=1)
        hidden = self.evidence.hidden
        unseen = softmax(tempered(self.evidence.held_out_log_proba, self.temperature), axis=1)
        found = infer_shares(shares, unseen, hidden.codes, counts)
        total = counts + len(left) * found
        return np.asarray(total / total.sum())


def confidence_of(
    distributions: np.ndarray, reached: np.ndarray, calibration: Calibration, prior: np.ndarray
) -> np.ndarray:
    """How probable it is that each row's most probable class is right; at most its share where no label reaches."""
    found = calibration(distributions.max(axis=1))
    far = np.flatnonzero(~reached)  # no hidden label was like them
    found[far] = np.minimum(found[far], prior[distributions[far].argmax(axis=1)])
    return np.maximum(found, 1.0 / len(prior))


def _log_neighbors(done: int, total: int) -> None:
    logger.debug("neighbours of %d of %d rows", done, total)


def _name_among(source: Any, sources: Any) -> str:
    """The type of a classifier, with a number where there are several of it."""
    same = [other for other in sources if type(other) is type(source)]
    place = next(place for place, other in enumerate(same, start=1) if other is source)
    return type(source).__name__ + (f" {place}" if len(same) > 1 else "")


def _check_metric(metric: Any, X: Any) -> None:
    """Refuse a metric that does not go with these rows."""
    if sp.issparse(X) and metric not in (*SPARSE_METRICS, "inner"):
        accepted = ", ".join((*SPARSE_METRICS, "inner"))
        raise ValueError(f"metric={metric!r} does not take sparse rows. Use one of {accepted}, or X.toarray().")
    if isinstance(metric, str) and metric == "haversine" and X.shape[1] != 2:
        raise ValueError(
            f"metric='haversine' takes two columns, latitude and longitude in radians; X has {X.shape[1]}."
        )


class ClassLevelPredictor:
    """Class probabilities of new rows, and how far to trust them: through their neighbours, and from the classifiers.

    A row of the training table keeps what it was given or got there; with ``cost="graph"`` there is no telling whether
    a row is one of them.
    """

    def __init__(self, way: ClassLevelFit, X: Any, labels: Labels, weights: np.ndarray) -> None:
        run = way.run
        cost, metric = way._model.cost, way._model.metric
        self._evidence, self._index, self._temperature = way.evidence, way.index, way.temperature
        self._n_query = way.n_query if way.index is not None else 0
        self._plan, self._prior, self._distributions = run.plan, way.prior, run.distributions
        self._calibration = way.calibration
        self._precomputed = isinstance(cost, str) and cost == "precomputed"
        self._features = not (isinstance(cost, str) and cost in ("graph", "precomputed"))
        self._sparse = sp.issparse(X)
        self._zero_is_same = not (isinstance(metric, str) and metric == "inner")
        given = labels.labeled[weights[labels.labeled] > 0]
        self._given = LabeledRows(given, labels.codes[given], weights[given], X if self._features else None)
        self._known: dict[bytes, int] = {}
        if self._features and (self._index is None or not self._zero_is_same):
            for row, key in enumerate(row_keys(X)):
                self._known.setdefault(digest(key), row)

    def __call__(self, new: Any) -> tuple[np.ndarray, np.ndarray]:
        """Class probabilities of each row of `new`, and how probable it is that the most probable class is right."""
        if self._features and sp.issparse(new) != self._sparse:  # rows are compared in the form they had in training
            new = sp.csr_array(new) if self._sparse else new.toarray()
        neighbors = self._index.query(new, self._n_query) if self._index is not None else new
        logits, reached = self._evidence.predict_log_proba(neighbors, new)
        logits = tempered(logits, self._temperature)
        lost = ~np.isfinite(logits).any(axis=1)
        logits[lost] = 0.0
        found = self._plan.shares(logits) if self._plan is not None else softmax(logits, axis=1)
        found[lost] = self._prior
        if self._index is not None and self._zero_is_same:
            same = np.flatnonzero(neighbors.distances[:, 0] == 0)
            found[same] = self._distributions[neighbors.indices[same, 0]]
        for line, row, places in self._recognised(new):
            found[line] = self._distributions[row]
            if len(places):
                found[line] = self._given.votes(places, found.shape[1])
        return found, confidence_of(found, reached, self._calibration, self._prior)

    def _recognised(self, new: Any) -> Iterator[tuple[int, int, Any]]:
        """Lines of `new` that are rows of the training table: which, and which of the given ones they equal."""
        if self._precomputed:
            for line in np.flatnonzero(new.min(axis=1) == 0).tolist():
                yield line, int(new[line].argmin()), np.flatnonzero(new[line, self._given.rows] == 0)
        elif self._features:
            for line, key in enumerate(row_keys(new)):
                places, row = self._given.like(key), self._known.get(digest(key), -1)
                if places or row >= 0:
                    yield line, row, places
