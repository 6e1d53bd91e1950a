"""The job of `otprop label`: the labels and vectors of a table, a fitted estimator, and what it found."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from otprop._progress import ProgressCallback
from otprop.files import Table
from otprop.labelling.methods import RequestError, in_options, make_estimator, suggest
from otprop.labelling.outcome import Outcome
from otprop.labelling.previous_run import MADE_BY_PREVIOUS_RUN, previous_columns
from otprop.labelling.progress import follow_log
from otprop.propagation.rounds import certainty
from otprop.table.features import LEFT_OUT, ColumnUse, Features
from otprop.table.target import Target, read_target

MOST_SHARES = 20  # classes whose shares are written out for a person
_CHOSEN = ("epsilon", "marginal_strength")  # parameters of which the estimator says what it took
_UNTOLD = ("callback", "verbose", "unlabeled")  # parameters that do not decide the result


@dataclass(frozen=True)
class Request:
    """What a user asks for.

    Attributes
    ----------
    target : str, the column with the labels
    method : str, a method's name in the benchmark
    settings : sequence of "name=value", parameters of the method
    features, ignore : sequence of str, the columns to use, or to leave out
    embedding : str or None, the prefix of columns that are one vector
    unlabeled : sequence of str, what marks a cell as unlabelled beside being empty
    abstain_below, class_prior, metric, seed, jobs : as in the command
    """

    target: str
    method: str = "otp"
    settings: Sequence[str] = ()
    features: Sequence[str] | None = None
    ignore: Sequence[str] = ()
    embedding: str | None = None
    unlabeled: Sequence[str] = ()
    abstain_below: float | None = None
    class_prior: Sequence[str] | None = None
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
    estimator : estimator, fitted once `run` is through
    earlier : list of str, columns that an earlier run made, which are not used
    warned : list of str, what the request or the estimator gave reason to warn of
    vectors : matrix, the features of the rows once `run` is through
    """

    table: Table
    request: Request
    target: Target
    features: Features
    estimator: Any
    earlier: list[str] = field(default_factory=list)
    warned: list[str] = field(default_factory=list)
    vectors: Any = None

    @property
    def notes(self) -> list[str]:
        """What the user should know of the table, the target and the fit."""
        return list(dict.fromkeys([*self.table.notes, *self.target.notes, *self.warned]))

    @property
    def columns(self) -> list[ColumnUse]:
        """What was done to each column, in the order of the table, once the features are fitted."""
        uses = [*self.features.columns, *(ColumnUse(name, LEFT_OUT, MADE_BY_PREVIOUS_RUN, 0) for name in self.earlier)]
        place = {name: number for number, name in enumerate(self.table.names)}
        prefix = self.features.prefix or ""
        first = next((place[name] for name in self.table.names if prefix and name.startswith(prefix)), 0)
        return sorted(uses, key=lambda use: place.get(use.name, first))

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of the method as JSON can hold them: as used where the estimator tells, else as set."""
        params = self.estimator.get_params(deep=False)
        found = {name: _plain(value) for name, value in params.items() if name not in _UNTOLD}
        for name in _CHOSEN:
            if name in found and hasattr(self.estimator, f"{name}_"):
                found[name] = _plain(getattr(self.estimator, f"{name}_"))
        shares = _shares(self.estimator, self.target.classes)
        return found | ({"class_prior": shares} if shares else {})

    def fit_features(self) -> Any:
        """Learn what each column becomes.

        Returns
        -------
        pandas.DataFrame, the columns it was learnt from
        """
        frame = self.table.frame(self.features.wanted)
        try:
            self.features.fit(frame)
        except ValueError as error:
            also = (
                f" Left out, too: {', '.join(map(repr, self.earlier))} ({MADE_BY_PREVIOUS_RUN})."
                if self.earlier
                else ""
            )
            raise RequestError(f"{error}{also}") from error
        return frame

    def run(self, show: ProgressCallback = lambda done, total, what: None) -> Outcome:
        """Make the vectors, fit, and say what came out.

        Parameters
        ----------
        show : callable, told how far it is

        Returns
        -------
        Outcome
        """
        start = perf_counter()
        show(0, 0, "making features")
        self.vectors = self.features.transform(self.fit_features())
        n_left = int((~self.target.given).sum())
        show(0, n_left, "fitting")
        with warnings.catch_warnings(record=True) as said, follow_log(show, n_left) as progress:
            warnings.simplefilter("always")
            counts = "callback" in self.estimator.get_params(deep=False)
            if counts:
                self.estimator.set_params(callback=progress.count)
            try:
                self.estimator.fit(self.vectors, self.target.codes)
            except (ValueError, TypeError) as error:
                raise in_options(error, self.estimator) from error
            if counts:
                self.estimator.set_params(callback=None)  # a model that is saved has no use for it
        told = (warning.message for warning in said if issubclass(warning.category, UserWarning))
        self.warned += dict.fromkeys([*map(str, told), *progress.warned])
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
            params=_in_words(fitted, target.classes),
            seconds=seconds,
        )


def prepare(table: Table, request: Request) -> Job:
    """Check everything that can be checked before the work begins.

    Parameters
    ----------
    table : Table
    request : Request

    Returns
    -------
    Job
    """
    if request.target not in table.names:
        raise RequestError(f"--target {request.target}: {suggest('column', request.target, table.names)}")
    target = read_target(table.cells(request.target), request.target, request.unlabeled)
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
    earlier = [name for name in previous_columns(table, request.target, target.classes) if name not in asked]
    features = Features(
        [name for name in table.names if name not in earlier],
        request.target,
        only=request.features,
        ignore=[name for name in request.ignore if name not in earlier],
        embedding=request.embedding,
    )
    warned = ["without effect: --embedding, which is empty"] if request.embedding == "" else []
    return Job(table, request, target, features, estimator, earlier, warned)


def _plain(value: Any) -> Any:
    """A value as JSON can hold it."""
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return [_plain(each) for each in value] if isinstance(value, (list, tuple)) else str(value)


def _shares(estimator: Any, classes: Sequence[str]) -> dict[str, float] | None:
    """The classes' shares by name, as used, or else as asked for."""
    shares = getattr(estimator, "class_prior_", getattr(estimator, "class_prior", None))
    if shares is None or isinstance(shares, str):
        return None
    return {name: float(share) for name, share in zip(classes, shares, strict=True)}


def _in_words(estimator: Any, classes: Sequence[str]) -> dict[str, str]:
    """The parameters that decide the result, as set and as used, for a person."""
    params = estimator.get_params(deep=False)
    found = {name: str(value) for name, value in params.items() if name not in _UNTOLD}
    for name in _CHOSEN:
        if name in found and hasattr(estimator, f"{name}_"):
            found[name] += f" (used: {float(getattr(estimator, f'{name}_')):.3g})"
    shares = _shares(estimator, classes)
    if shares:
        named = [f"{name} {share:.3g}" for name, share in shares.items()]
        more = f" and {len(named) - MOST_SHARES} more" if len(named) > MOST_SHARES else ""
        asked = params["class_prior"]
        how = f"{asked}, used: " if asked is None or isinstance(asked, str) else ""
        found["class_prior"] = how + ", ".join(named[:MOST_SHARES]) + more
    return found
