"""The job of `otprop label`: the labels and vectors of a table, a fitted estimator, and what it found."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from otprop._rounds import Round, certainty
from otprop.files import Table
from otprop.labelling.features import Features
from otprop.labelling.methods import make_estimator, suggest
from otprop.labelling.outcome import Outcome
from otprop.labelling.target import Target, read_target

Show = Callable[[float, float, str], None]  # work done, work in all, what is going on


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
    warned : list of str, what the estimator warned of
    vectors : matrix, the features of the rows once `run` is through
    """

    table: Table
    request: Request
    target: Target
    features: Features
    estimator: Any
    warned: list[str] = field(default_factory=list)
    vectors: Any = None

    @property
    def notes(self) -> list[str]:
        """What the user should know of the table, the target and the fit."""
        return list(dict.fromkeys([*self.table.notes, *self.target.notes, *self.warned]))

    def run(self, show: Show = lambda done, total, what: None) -> Outcome:
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
        self.vectors = self.features.fit_transform(self.table.frame(self.features.wanted))
        n_left = int((~self.target.given).sum())
        show(0, n_left, "fitting")
        if "callback" in self.estimator.get_params(deep=False):
            self.estimator.set_params(callback=_counter(show, n_left))
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            self.estimator.fit(self.vectors, self.target.codes)
        if "callback" in self.estimator.get_params(deep=False):
            self.estimator.set_params(callback=None)  # a model that is saved has no use for it
        told = (warning.message for warning in said if issubclass(warning.category, UserWarning))
        self.warned += dict.fromkeys(map(str, told))
        return self._outcome(perf_counter() - start)

    def _outcome(self, seconds: float) -> Outcome:
        fitted, target, n_rows = self.estimator, self.target, self.table.n_rows
        distributions = fitted.label_distributions_
        rounds = getattr(fitted, "round_", np.where(target.given, 0, 1))
        confidence = getattr(fitted, "confidence_", None)
        return Outcome(
            target=self.request.target,
            classes=[str(name) for name in target.classes],
            codes=np.asarray(fitted.transduction_, dtype=np.intp).reshape(n_rows),
            given=target.given,
            distributions=distributions,
            certainty=fitted.certainty_ if hasattr(fitted, "certainty_") else certainty(distributions),
            confidence=confidence,
            round=np.asarray(rounds),
            n_rounds=int(getattr(fitted, "n_iter_", 1)) if hasattr(fitted, "round_") else 1,
            coverage=fitted.coverage() if confidence is not None and not target.given.all() else [],
            sources=[(one.name, one.weight, one.accuracy) for one in getattr(fitted, "evidence_", [])],
            method=self.request.method,
            params=_in_words(fitted),
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
        raise ValueError(f"--target {request.target}: {suggest('column', request.target, table.names)}")
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
    features = Features(
        table.names, request.target, only=request.features, ignore=request.ignore, embedding=request.embedding
    )
    return Job(table, request, target, features, estimator)


def _counter(show: Show, n_left: int) -> Callable[[Round], bool]:
    done = 0

    def count(round_: Round) -> bool:
        nonlocal done
        done += len(round_.rows)
        show(done, n_left, f"round {round_.number}, {done} of {n_left} rows")
        return False

    return count


def _in_words(estimator: Any) -> dict[str, str]:
    """The parameters that decide the result, as used."""
    params = estimator.get_params(deep=False)
    found = {name: str(value) for name, value in params.items() if name not in ("callback", "verbose")}
    for name in ("epsilon", "class_prior", "marginal_strength"):
        chosen = getattr(estimator, f"{name}_", None)
        if name in found and chosen is not None:
            found[name] += f" (used: {np.array2string(np.asarray(chosen), precision=3, threshold=20)})"
    return found
