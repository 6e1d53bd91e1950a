"""OTP, the estimator: parameters, validation and attributes around the rounds of the propagation."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from otprop._base import Propagator
from otprop._labels import UNLABELED, Labels
from otprop._progress import log_round
from otprop._saving import saved_as
from otprop._validation import check_choice, check_count, check_number, did_you_mean
from otprop.geometry.pairwise import METRICS, check_cost, check_cost_matrix, check_values
from otprop.propagation.calibration import Coverage, coverage_table
from otprop.propagation.class_level import NAMED_SOURCES, ClassLevelFit
from otprop.propagation.rounds import Round
from otprop.propagation.row_level import RowLevelFit

logger = logging.getLogger("otprop")


@saved_as("otp", replaces={"callback": None, "verbose": 0}, nan=("settings_",))
class OTP(Propagator):
    """Optimal Transport Propagation: label the unlabelled rows of a table.

    Labels are transported to the other rows. The cost of giving a class to a row comes from several sources that add
    up: how the labels diffuse over the graph of the rows, and what classifiers trained on the labelled rows say;
    each counts by what it says of labels hidden from it. Optimal transport then shares out the rows among the
    classes, each of which ships about the mass it owes. Rows whose class is certain get their label and help with
    the rest in the next round, until every row has one. Nothing needs to be tuned.

    ``OTP.paper`` is Algorithm 1 of El Hamri, Bennani and Falih, "Label Propagation Through Optimal Transport", IJCNN
    2021: the same class with other parameters.

    Parameters
    ----------
    cost : str or callable, default="diffusion"
        The geometry. "diffusion": labels spread over the graph of nearest neighbours. "graph": the same over a graph
        of one's own, X being its sparse matrix of affinities. Or what it costs to carry a label from one row to
        another (Eq. 8): "sqeuclidean", any other metric of scikit-learn's ``pairwise_distances``, a callable of two
        rows, or "precomputed" for an X that is the matrix of costs itself.
    evidence : "auto", None, or list, default="auto"
        Classifiers that speak beside the geometry: "forest" (extra trees), "linear" (logistic regression), or any
        classifier of scikit-learn's with ``predict_proba``, which is cloned and trained on the labelled rows, as an
        array of numbers without column names, and their labels. "auto": both where X has features. None: no one.
    marginals : {"class", "balanced"}, default="class"
        Who ships: "class", each class as a whole; "balanced", each labelled row its own mass, as in the paper. The
        latter needs a cost between rows.
    marginal_strength : "auto" or float in [0, 1], default="auto"
        How far the classes' shares bind: 0, not at all (a vote), to 1, exactly. "auto": up to a half, the less the
        fewer labels there are.
    epsilon : "auto" or float, default="auto"
        With "diffusion" and "graph" the temperature: above 1 the class probabilities become flatter. "auto": 1, since
        the sources are calibrated. With a cost between rows, the entropic regularisation (Eq. 9) in the units of the
        cost; "auto" takes it from hidden labels, and with ``marginals="balanced"`` a tenth of the median cost from an
        unlabelled row to its nearest labelled one.
    alpha : "auto" or float, default="auto"
        Certainty above which a row is labelled in a round. When no row exceeds it, the most certain ones are
        labelled (Eq. 15). "auto": rows whose class has a probability above 0.9, at least a tenth of those left; a
        certainty of 0.9 with "balanced".
    class_prior : None, "uniform", array or dict, default=None
        The classes' shares of all rows, in the order of ``classes_`` or by class. None: inferred from the labels and
        the rows together, since labels may have been drawn so many a class.
    metric : str or callable, default="euclidean"
        What neighbours are near by, with "diffusion": "euclidean", "cosine", "inner", "manhattan", or what else
        scikit-learn can search by.
    n_neighbors : "auto" or int, default="auto"
        Of each row in the graph. "auto": 10 and 20, weighed by what they say of hidden labels; 10 from 30 000 rows on.
    diffusion : "auto" or float below 1, default="auto"
        How far labels spread over the graph. "auto": 0.8 and 0.95, weighed in the same way.
    abstain_below : float or None, default=None
        Rows with less confidence than this stay unlabelled: the marker in ``transduction_``.
    max_rounds : "auto", int or None, default="auto"
        The last of these rounds labels all that is left. None: as many as it takes. "auto": 20, or None with
        "balanced".
    min_round_share : float, default=0.0
        At least this share of the rows still unlabelled gets a label in every round, certain or not.
    tol : float, default=1e-6
        L1 error accepted in each marginal of the plan, of a total mass of one.
    max_iter : int, default=20000
        Iterations of the solver per round.
    unlabeled : default="auto"
        What marks a row of y as unlabelled. "auto": -1, None, NaN or ``pandas.NA``, whichever y uses.
    random_state : int, RandomState or None, default=0
        Seed of the forest and of which labels are hidden.
    n_jobs : int or None, default=None
        Threads for the neighbours and the forest. None: all there are. The result does not depend on it.
    callback : callable or None, default=None
        Called with the record of each round, as in ``rounds_``. Returning something true stops after that round: rows
        still unlabelled then keep the marker in ``transduction_``, with the distribution and certainty they
        had last and -1 in ``round_``.
    verbose : int, default=0
        Show the rounds: as a progress bar where a terminal is attached, in the log "otprop" elsewhere.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    transduction_ : ndarray of shape (n_rows,)
        A label for every row.
    label_distributions_ : ndarray of shape (n_rows, n_classes)
        The class probabilities with which each row was labelled.
    certainty_ : ndarray of shape (n_rows,)
        Eq. 12, from 0 (all classes alike) to 1 (one class); 1 for the given labels.
    confidence_ : ndarray of shape (n_rows,)
        How probable it is that the label is right, calibrated on hidden labels (as it is, where no class has two); 1
        for the given ones. At most the share of their class for rows that no given label reaches over the graph, of
        which hidden labels tell nothing. Not with "balanced".
    round_ : ndarray of int of shape (n_rows,)
        The round in which each row was labelled; 0 where the label was given.
    rounds_ : list of Round
        A record per round: rows, threshold, solver iterations, marginal errors, gaps, seconds.
    evidence_ : list of Contribution
        Each source with its weight, and its accuracy and likelihood on hidden labels. Not with "balanced".
    settings_ : list of dict
        What was chosen for the geometry, each setting with its weight. Not with "balanced".
    class_prior_ : ndarray of shape (n_classes,)
        The classes' shares of all rows, as used. Not with "balanced".
    marginal_strength_ : float
        As used. Not with "balanced".
    n_hidden_ : int
        How many given labels were hidden in turn, for the weights and the confidence. Not with "balanced".
    epsilon_ : float
        The epsilon used.
    n_iter_ : int
        Number of rounds, at least 1.
    n_features_in_ : int
    feature_names_in_ : ndarray, where X has names for its columns

    Notes
    -----
    ``predict`` asks new rows' neighbours among the training rows, and the classifiers. A row of the training table is
    predicted to have the label it was given or got there.

    With ``marginals="balanced"`` it asks of a new row what the rounds would have said of it, had it been one more
    unlabelled row without mass: it goes through the rounds with the potentials of each, and takes its class from the
    first whose threshold it passes, or from the one in which it was most certain. Of runs with very many rounds only
    some of the later ones are kept, so that rows labelled in between may differ from ``transduction_``.

    ``sample_weight`` says how much a labelled row counts beside the others. Rows labelled in a round join with about
    0.1 times the mean weight of the given ones; with "balanced", each with a weight of 1.

    Examples
    --------
    >>> import numpy as np
    >>> from otprop import OTP
    >>> X = np.array([[0.0], [0.1], [0.2], [1.0], [1.1], [1.2]])
    >>> model = OTP().fit(X, ["left", None, None, "right", None, None])
    >>> model.transduction_
    array(['left', 'left', 'left', 'right', 'right', 'right'], dtype='<U5')
    >>> model.predict([[0.3], [0.9]])
    array(['left', 'right'], dtype='<U5')
    """

    def __init__(
        self,
        cost: str | Callable[[np.ndarray, np.ndarray], float] = "diffusion",
        *,
        evidence: str | Sequence[Any] | None = "auto",
        marginals: str = "class",
        marginal_strength: float | str = "auto",
        epsilon: float | str = "auto",
        alpha: float | str = "auto",
        class_prior: Any = None,
        metric: str | Callable[[np.ndarray, np.ndarray], float] = "euclidean",
        n_neighbors: int | str = "auto",
        diffusion: float | str = "auto",
        abstain_below: float | None = None,
        max_rounds: int | str | None = "auto",
        min_round_share: float = 0.0,
        tol: float = 1e-6,
        max_iter: int = 20_000,
        unlabeled: Any = "auto",
        random_state: Any = 0,
        n_jobs: int | None = None,
        callback: Callable[[Round], Any] | None = None,
        verbose: int | bool = 0,
    ) -> None:
        self.cost = cost
        self.evidence = evidence
        self.marginals = marginals
        self.marginal_strength = marginal_strength
        self.epsilon = epsilon
        self.alpha = alpha
        self.class_prior = class_prior
        self.metric = metric
        self.n_neighbors = n_neighbors
        self.diffusion = diffusion
        self.abstain_below = abstain_below
        self.max_rounds = max_rounds
        self.min_round_share = min_round_share
        self.tol = tol
        self.max_iter = max_iter
        self.unlabeled = unlabeled
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.callback = callback
        self.verbose = verbose

    @classmethod
    def paper(cls, epsilon: float | str = "auto", alpha: float = 0.9) -> Self:
        """Algorithm 1 as printed: squared Euclidean cost, uniform marginals, alpha with the rule of Eq. 15.

        Parameters
        ----------
        epsilon : float or "auto"
        alpha : float

        Returns
        -------
        OTP, not yet fitted
        """
        return cls(
            cost="sqeuclidean", evidence=None, marginals="balanced", epsilon=epsilon, alpha=alpha, max_rounds=None
        )

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Label every row of X.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_features)
            With ``cost="precomputed"`` the costs between all rows and with ``cost="graph"`` their affinities, of shape
            (n_rows, n_rows).
        y : array-like of shape (n_rows,)
            Labels of any one type, with a marker where a row is unlabelled.
        sample_weight : array-like of shape (n_rows,) or None
            Weights of the labelled rows; those of the others are not used.

        Returns
        -------
        self
        """
        self._forget()
        self.check_parameters()
        X, labels = self._read(X, y, **self._row_checks())
        if self.cost == "precomputed":
            check_cost_matrix(X, len(X))
            _warn_of_asymmetry(X)
        _warn_of_binary_labels(labels)
        weights = _row_weights(sample_weight, labels)
        way = (RowLevelFit if self.marginals == "balanced" else ClassLevelFit)(self, X, labels, weights)
        self._report(way)
        self.rounds_ = self._run(way.run, way.epsilon)
        self.epsilon_ = way.epsilon
        self.certainty_, self.round_ = way.run.certainty, way.run.round
        self.n_iter_ = max(1, len(self.rounds_))
        codes = way.run.codes
        if isinstance(way, ClassLevelFit):
            _warn_of_diffusion(way)
            self.confidence_, self.n_hidden_ = way.confidence(), len(way.evidence.hidden)
            if self.abstain_below is not None:
                unsure = (self.confidence_ < self.abstain_below) & (labels.codes == UNLABELED)
                codes = np.where(unsure, UNLABELED, codes)
        self._answers = way.answers()
        return self._set_labels(labels, codes, way.run.distributions)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities of new rows; see the notes of the class for how they come about.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_features)
            With ``cost="precomputed"`` the costs to the training rows, with ``cost="graph"`` the affinities, of
            shape (n_rows, n_training_rows).

        Returns
        -------
        ndarray of shape (n_rows, n_classes), columns in the order of ``classes_``
        """
        return self.predict_with_confidence(X)[0]

    def predict_confidence(self, X: Any) -> np.ndarray:
        """How probable it is that ``predict`` is right, for new rows.

        By the calibration that ``confidence_`` has from the hidden labels: it holds for rows that come from where the
        training rows came from. ``predict`` labels every row; ``abstain_below`` is not heeded there.

        Parameters
        ----------
        X : as in ``predict_proba``

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        found = self.predict_with_confidence(X)[1]
        if found is None:
            raise AttributeError("predict_confidence() needs confidence_, which marginals='balanced' does not have.")
        return found

    def predict_with_confidence(self, X: Any) -> tuple[np.ndarray, np.ndarray | None]:
        """Class probabilities and confidence of new rows in one pass.

        Parameters
        ----------
        X : as in ``predict_proba``

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_classes)
        confidence : ndarray of shape (n_rows,), or None with ``marginals="balanced"``
        """
        check_is_fitted(self)
        X = self._read_rows(X, reset=False, **self._row_checks())
        if self.cost == "precomputed":
            check_cost_matrix(X, self.n_features_in_)
        if self.cost == "graph":
            check_values(X, "affinity")
        return self._answers(X)

    def coverage(self) -> list[Coverage]:
        """The error to expect when only the most confident rows are labelled, at shares from all to a tenth.

        Of the rows that were labelled, that is: not of those given, nor of those left where a callback stopped.

        Returns
        -------
        list of Coverage
            Each with ``share``, ``n_rows``, ``confidence`` (what ``abstain_below`` would have to be),
            ``expected_error``, and ``low`` and ``high``, between which the real error is nine times in ten as far as
            the number of hidden labels can tell.
        """
        check_is_fitted(self)
        if self.marginals == "balanced":
            raise AttributeError("coverage() needs confidence_, which marginals='balanced' does not have.")
        return coverage_table(self.confidence_[self.round_ > 0], self.n_hidden_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.cost != "precomputed"
        tags.input_tags.pairwise = self.cost in ("precomputed", "graph") if isinstance(self.cost, str) else False
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_answers")

    def _row_checks(self) -> dict[str, Any]:
        """What X may be: whether sparse, and whether it is a matrix, of whose values messages of our own speak."""
        if isinstance(self.cost, str) and self.cost in ("precomputed", "graph"):
            return {"accept_sparse": False if self.cost == "precomputed" else "csr", "ensure_all_finite": False}
        return {"accept_sparse": "csr"}

    def _forget(self) -> None:
        """Drop what an earlier fit left: whatever happens now, the old model is no more."""
        for name in list(vars(self)):
            if name == "_answers" or (name.endswith("_") and not name.startswith("_")):
                delattr(self, name)

    def _report(self, way: RowLevelFit | ClassLevelFit) -> None:
        """Say what was chosen: in attributes, and in the log."""
        if not isinstance(way, ClassLevelFit):
            return
        self.evidence_, self.settings_ = way.evidence.contributions, way.settings
        self.class_prior_, self.marginal_strength_ = way.prior, way.strength
        level = logging.INFO if self.verbose else logging.DEBUG
        for source in self.evidence_:
            logger.log(
                level,
                "%s: weight %.2f, accuracy %.3f on %d hidden labels",
                source.name,
                source.weight,
                source.accuracy,
                len(way.evidence.hidden),
            )
        for setting in self.settings_:
            logger.log(level, "geometry: %s", ", ".join(f"{name} {value}" for name, value in setting.items()))
        logger.log(level, "strength %.2f, class shares %s", way.strength, np.array2string(way.prior, precision=3))

    def _run(self, run: Any, epsilon: float) -> list[Round]:
        rounds: list[Round] = []
        level = logging.INFO if self.verbose else logging.DEBUG
        for round_ in run:
            round_ = replace(round_, epsilon=epsilon)
            rounds.append(round_)
            log_round(round_, level)
            if self.callback is not None and self.callback(round_):
                break
        missed = [round_ for round_ in rounds if not round_.converged]
        if missed:
            worst = max(max(round_.source_error, round_.target_error) for round_ in missed)
            warnings.warn(
                f"The transport plan did not reach tol={self.tol:g} in {len(missed)} of {len(rounds)} rounds (largest "
                f"error {worst:.1e}). Labels were assigned all the same. Raise epsilon (used: {epsilon:.3g}), "
                f"max_iter or tol.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return rounds

    def check_parameters(self) -> None:
        check_cost(self.cost, ("diffusion", "graph", "precomputed"))
        check_choice("marginals", self.marginals, ("class", "balanced"))
        check_number("marginal_strength", self.marginal_strength, least=0, most=1, words=["auto"])
        check_number("epsilon", self.epsilon, above=0, words=["auto"])
        check_number("alpha", self.alpha, least=0, most=1, words=["auto"])
        check_number("diffusion", self.diffusion, above=0, below=1, words=["auto"])
        check_number("min_round_share", self.min_round_share, least=0, most=1)
        check_number("tol", self.tol, above=0, most=1)
        check_count("max_iter", self.max_iter)
        check_count("n_neighbors", self.n_neighbors, words=["auto"])
        check_count("max_rounds", self.max_rounds, words=["auto", None])
        check_number("abstain_below", self.abstain_below, least=0, most=1, words=[None])
        if self.callback is not None and not callable(self.callback):
            raise TypeError(f"callback must be None or a function of one round; got {self.callback!r}.")
        if not isinstance(self.verbose, (bool, int, np.bool_, np.integer)):
            raise TypeError(f"verbose must be a whole number or a boolean; got {self.verbose!r}.")
        if self.n_jobs is not None and (not isinstance(self.n_jobs, (int, np.integer)) or int(self.n_jobs) == 0):
            raise ValueError(f"n_jobs must be None or an integer other than 0; got {self.n_jobs!r}.")
        try:
            check_random_state(self.random_state)
        except ValueError as error:
            raise ValueError(
                f"random_state must be None, a whole number >= 0 or a RandomState; got {self.random_state!r}."
            ) from error
        self._check_metric()
        self._check_evidence()
        if self.marginals == "balanced":
            self._check_balanced()
        elif self.cost != "diffusion":
            self._refuse_idle(f"cost={self.cost!r}", metric="euclidean", n_neighbors="auto")
            if self.cost != "graph":
                self._refuse_idle(f"cost={self.cost!r}", diffusion="auto")

    def _check_metric(self) -> None:
        known = (*METRICS, "inner")
        if callable(self.metric) or (isinstance(self.metric, str) and self.metric in known):
            return
        near = did_you_mean(self.metric, known)
        accepted = f"metric must be a callable of two rows or one of {', '.join(known)}; got {self.metric!r}{near}."
        raise ValueError(accepted) if isinstance(self.metric, str) else TypeError(accepted)

    def _check_evidence(self) -> None:
        accepted = f"'auto', None, or a list of classifiers and of names among {', '.join(map(repr, NAMED_SOURCES))}"
        if self.evidence is None or (isinstance(self.evidence, str) and self.evidence == "auto"):
            return
        if isinstance(self.evidence, str) or not isinstance(self.evidence, Sequence):
            raise TypeError(f"evidence must be {accepted}; got {self.evidence!r}.")
        for place, source in enumerate(self.evidence):
            if any(source is other or (isinstance(source, str) and source == other) for other in self.evidence[:place]):
                raise ValueError(f"evidence holds {source!r} twice; name every source once.")
            if isinstance(source, type) and hasattr(source, "predict_proba"):
                raise TypeError(
                    f"evidence holds the class {source.__name__}; put an instance of it there: {source.__name__}()."
                )
            named = isinstance(source, str) and source in NAMED_SOURCES
            if not named and (isinstance(source, (str, type)) or not hasattr(source, "predict_proba")):
                raise ValueError(
                    f"evidence must be {accepted}; got {source!r} in it. A classifier must have predict_proba."
                )

    def _check_balanced(self) -> None:
        """Refuse what has no meaning where every labelled row ships its own mass."""
        if isinstance(self.cost, str) and self.cost in ("diffusion", "graph"):
            raise ValueError(
                f"marginals='balanced' needs a cost between rows, which cost={self.cost!r} is not. "
                "Use cost='sqeuclidean' or another metric, or OTP.paper()."
            )
        with_what = "marginals='balanced'"
        self._refuse_idle(with_what, evidence="auto" if self.evidence is not None else None, metric="euclidean")
        self._refuse_idle(with_what, n_neighbors="auto", diffusion="auto", class_prior=None, abstain_below=None)
        if self.marginal_strength != 1:  # the marginals bind exactly
            self._refuse_idle(with_what, marginal_strength="auto")

    def _refuse_idle(self, with_what: str, **usual: Any) -> None:
        """Refuse parameters that something else leaves without an effect, unless they are as usual."""
        for name, allowed in usual.items():
            value = getattr(self, name)
            if value is allowed or (isinstance(value, str) and value == allowed):
                continue
            raise ValueError(f"{name}={value!r} has no meaning with {with_what}; leave it at {allowed!r}.")


def _row_weights(sample_weight: Any, labels: Labels) -> np.ndarray:
    """A weight for every row: as given for the labelled ones, 1 for the others."""
    weights = np.ones(len(labels.codes))
    if sample_weight is None:
        return weights
    try:
        given = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        kind = type(sample_weight).__name__
        raise TypeError(f"sample_weight must be numbers, one a row; got a {kind}: {str(error)[:200]}.") from error
    if given.ndim == 0:
        given = np.full(len(weights), float(given))
    if given.shape != weights.shape:
        raise ValueError(f"sample_weight has shape {given.shape}, expected ({len(weights)},): one weight a row.")
    given = given[labels.labeled]
    if not given.any():
        raise ValueError("sample_weight is zero for every labelled row: at least one needs a weight above zero.")
    if not np.isfinite(given).all() or (given < 0).any():
        raise ValueError(
            "sample_weight must be finite and not negative; "
            f"got values from {given.min()} to {given.max()} on the labelled rows."
        )
    weights[labels.labeled] = given
    return weights


def _warn_of_asymmetry(matrix: np.ndarray) -> None:
    for start in range(0, len(matrix), 256):  # in blocks, since the matrix may fill the memory
        if not np.allclose(matrix[start : start + 256], matrix[:, start : start + 256].T, rtol=1e-5):
            warnings.warn(
                "X is not symmetric: line i, column j is taken for the cost from row i to row j. If only a half of the "
                "matrix is filled, add its transpose.",
                UserWarning,
                stacklevel=3,
            )
            return


def _warn_of_diffusion(way: ClassLevelFit) -> None:
    if not way.evidence.iterative.converged:
        warnings.warn(
            "The diffusion did not reach its tolerance. Labels were assigned all the same. Lower `diffusion`.",
            ConvergenceWarning,
            stacklevel=3,
        )


def _warn_of_binary_labels(labels: Labels) -> None:
    """Labels -1 and 1 are a usual way to write two classes, but -1 means unlabelled here."""
    if labels.classes.tolist() == [1] and len(labels.unlabeled) and labels.marker == -1:
        warnings.warn(
            "y holds -1 and 1 only. -1 marks an unlabelled row here, so every row gets the class 1. If both are "
            "classes, name another marker with the parameter `unlabeled`.",
            UserWarning,
            stacklevel=3,
        )
