"""The job of `otprop label`: the labels and vectors of a table, a fitted estimator, and its outcome."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from otprop._progress import ProgressCallback, no_progress
from otprop.files import Table
from otprop.labelling.methods import make_estimator
from otprop.labelling.outcome import Outcome
from otprop.labelling.previous_run import MADE_BY_PREVIOUS_RUN, previous_columns
from otprop.propagation.rounds import certainty
from otprop.table.errors import Hint, NoFeaturesError, RequestError, unknown_name
from otprop.table.features import LEFT_OUT, ColumnUse, Features
from otprop.table.target import Target, read_target

MOST_SHARES = 20  # classes whose shares are listed for a person
_CHOSEN = ("epsilon", "marginal_strength")  # parameters that the estimator may choose: it has the value used as NAME_
_WITHOUT_EFFECT = ("callback", "verbose", "unlabeled")  # parameters that do not change the result


@dataclass(frozen=True)
class Request:
    """The parameters of a job; `otprop.label` documents them."""

    target: str
    method: str = "otp"
    settings: Mapping[str, Any] = field(default_factory=dict)
    features: Sequence[str] | None = None
    ignore: Sequence[str] = ()
    embedding: str | None = None
    text_model: Any = None
    unlabeled: Sequence[str] = ()
    merge_labels: bool = False
    numeric_classes: bool = False
    abstain_below: float | None = None
    class_prior: str | Mapping[Any, float] | None = None
    metric: str | None = None
    seed: int = 0
    jobs: int | None = None


@dataclass
class Job:
    """A table, its labels, how its columns become vectors, and the estimator that will label it.

    Attributes
    ----------
    table : Table
    request : Request
    target : Target
    features : Features
    estimator : estimator, fitted once `run` has returned
    previous : list of str, columns that an earlier run added, which are not used
    warnings : list of str, from the request and the estimator
    vectors : matrix, the features of the rows once `run` has returned
    """

    table: Table
    request: Request
    target: Target
    features: Features
    estimator: Any
    previous: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    vectors: Any = None

    @property
    def notes(self) -> list[str]:
        """What the user should know of the table, the target and the fit."""
        notes = [*self.features.notes, *self.table.notes, *self.target.notes, *self.warnings]
        return list(dict.fromkeys(notes))

    @property
    def columns(self) -> list[ColumnUse]:
        """What was done to each column, in the order of the table, once the features are fitted."""
        made = [ColumnUse(name, LEFT_OUT, MADE_BY_PREVIOUS_RUN, 0) for name in self.previous]
        place = {name: number for number, name in enumerate(self.table.names)}
        prefix = self.features.prefix or ""
        first = next((place[name] for name in self.table.names if prefix and name.startswith(prefix)), 0)
        return sorted([*self.features.columns, *made], key=lambda use: place.get(use.name, first))

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of the method as JSON can hold them: as used where the estimator chose, else as set."""
        params = self.estimator.get_params(deep=False)
        found = {name: _json_value(value) for name, value in params.items() if name not in _WITHOUT_EFFECT}
        for name in _CHOSEN:
            if name in found and hasattr(self.estimator, f"{name}_"):
                found[name] = _json_value(getattr(self.estimator, f"{name}_"))
        shares = _class_shares(self.estimator, self.target.classes)
        return found | ({"class_prior": shares} if shares else {})

    def fit_features(self) -> Any:
        """Fit the features on the frame of their columns, and return it."""
        frame = self.table.frame(self.features.wanted)
        try:
            self.features.fit(frame, self.target.given)
        except NoFeaturesError as error:
            made = [f"{name!r} ({MADE_BY_PREVIOUS_RUN})" for name in self.previous]
            raise NoFeaturesError([*error.reasons, *made]) from error
        return frame

    def run(self, progress: ProgressCallback = no_progress) -> Outcome:
        """Make the vectors, fit the estimator and return the outcome; `progress` is called from time to time."""
        start = perf_counter()
        progress(0, 0, "making features")
        self.vectors = self.features.transform(self.fit_features())
        progress(0, int((~self.target.given).sum()), "fitting")
        reports = hasattr(self.estimator, "set_progress")
        if reports:
            self.estimator.set_progress(progress)
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                self.estimator.fit(self.vectors, self.target.codes)
        finally:
            if reports:
                self.estimator.set_progress(None)
        messages = [str(warning.message) for warning in caught if issubclass(warning.category, UserWarning)]
        self.warnings += dict.fromkeys(messages)
        return self._outcome(perf_counter() - start)

    def _outcome(self, seconds: float) -> Outcome:
        fitted, target, n_rows = self.estimator, self.target, self.table.n_rows
        distributions = fitted.label_distributions_
        rounds = getattr(fitted, "round_", np.where(target.given, 0, 1))
        confidence = getattr(fitted, "confidence_", None)
        return Outcome(
            target=self.request.target,
            classes=target.classes,
            codes=np.asarray(fitted.transduction_, dtype=np.intp).reshape(n_rows),
            given=target.given,
            distributions=distributions,
            certainty=fitted.certainty_ if hasattr(fitted, "certainty_") else certainty(distributions),
            confidence=confidence,
            round=np.asarray(rounds),
            n_rounds=int(getattr(fitted, "n_iter_", 1)) if hasattr(fitted, "round_") else 1,
            n_hidden=int(getattr(fitted, "n_hidden_", 0)),
            error=getattr(fitted, "error_", None),
            coverage=fitted.coverage() if confidence is not None and not target.given.all() else [],
            sources=[(one.name, one.weight, one.accuracy) for one in getattr(fitted, "evidence_", [])],
            method=self.request.method,
            params=_parameter_texts(fitted, target.classes),
            seconds=seconds,
        )


def prepare(table: Table, request: Request) -> Job:
    """Check everything that can be checked before the work begins; raises ParameterError, ColumnError or ValueError."""
    if request.target not in table.names:
        raise RequestError("target", unknown_name("column", request.target, table.names), request.target)
    target = read_target(
        table.cells(request.target),
        request.target,
        request.unlabeled,
        merge=request.merge_labels,
        numeric_classes=request.numeric_classes,
    )
    estimator = make_estimator(
        request.method,
        request.settings,
        abstain_below=request.abstain_below,
        class_prior=request.class_prior,
        metric=request.metric,
        seed=request.seed,
        jobs=request.jobs,
        classes=target.classes,
    )
    asked = set(request.features or ())
    previous = [name for name in previous_columns(table, request.target, target.classes) if name not in asked]
    features = Features(
        [name for name in table.names if name not in previous],
        request.target,
        only=request.features,
        ignore=[name for name in request.ignore if name not in previous],
        embedding=request.embedding,
        text_model=request.text_model,
    )
    empty = [Hint("without effect: ", "embedding", after=", which is empty")] if request.embedding == "" else []
    return Job(table, request, target, features, estimator, previous, list(empty))


def _json_value(value: Any) -> Any:
    """A value as JSON can hold it."""
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return [_json_value(each) for each in value] if isinstance(value, (list, tuple)) else str(value)


def _class_shares(estimator: Any, classes: Sequence[str]) -> dict[str, float] | None:
    """The classes' shares by name, as used, or else as asked for."""
    shares = getattr(estimator, "class_prior_", getattr(estimator, "class_prior", None))
    if shares is None or isinstance(shares, str):
        return None
    return {name: float(share) for name, share in zip(classes, shares, strict=True)}


def _parameter_texts(estimator: Any, classes: Sequence[str]) -> dict[str, str]:
    """The parameters that decide the result, as set and as used, for a person."""
    params = estimator.get_params(deep=False)
    found = {name: str(value) for name, value in params.items() if name not in _WITHOUT_EFFECT}
    for name in _CHOSEN:
        if name in found and hasattr(estimator, f"{name}_"):
            found[name] += f" (used: {float(getattr(estimator, f'{name}_')):.3g})"
    shares = _class_shares(estimator, classes)
    if shares:
        named = [f"{name} {share:.3g}" for name, share in shares.items()]
        more = f" and {len(named) - MOST_SHARES} more" if len(named) > MOST_SHARES else ""
        asked = params["class_prior"]
        how = f"{asked}, used: " if asked is None or isinstance(asked, str) else ""
        found["class_prior"] = how + ", ".join(named[:MOST_SHARES]) + more
    return found
