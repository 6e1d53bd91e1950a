"""The methods of `otprop label`: an estimator by the name it has in the benchmark, with parameters given as words."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

from otprop import OTP
from otprop.baselines import (
    CNMF,
    LNP,
    PLCC,
    KernelVote,
    LabelPropagation,
    LabelSpreading,
    NearestNeighbor,
    SelfTraining,
    Supervised,
)
from otprop.geometry.pairwise import METRICS as DISTANCES
from otprop.propagation.shares import check_prior

METHODS: dict[str, Callable[[], Any]] = {
    "otp": OTP,
    "otp-paper": OTP.paper,
    "lp": lambda: LabelPropagation("knn"),
    "ls": lambda: LabelSpreading("knn"),
    "lnp": LNP,
    "cnmf": CNMF,
    "plcc": PLCC,
    "1nn": NearestNeighbor,
    "vote": KernelVote,
    "logistic": lambda: Supervised("logistic"),
    "trees": lambda: Supervised("extra_trees"),
    "self-logistic": lambda: SelfTraining("logistic"),
    "self-trees": lambda: SelfTraining("extra_trees"),
}
MOST_SEED = 2**32 - 1
_OURS_TO_SET = ("unlabeled", "callback", "verbose")  # the command sees to these itself
_NOT_FOR_TABLES = ("graph", "precomputed")  # costs for which X is no table
_OPTIONS = {  # parameters that have an option of their own
    "abstain_below": "--abstain-below",
    "class_prior": "--class-prior",
    "metric": "--metric",
    "n_jobs": "--jobs",
    "random_state": "--seed",
}


class RequestError(ValueError):
    """What was asked for cannot be done with this table; the message is one line for the user."""


def make_estimator(
    method: str,
    settings: Sequence[str] = (),
    *,
    abstain_below: float | None = None,
    class_prior: Sequence[str] | None = None,
    metric: str | None = None,
    seed: int | None = None,
    jobs: int | None = None,
    classes: Sequence[str] = (),
) -> Any:
    """An unfitted estimator.

    Parameters
    ----------
    method : str, one of `METHODS`
    settings : sequence of "name=value", parameters of the estimator
    abstain_below, metric, seed, jobs : as in the command; None where not given
    class_prior : sequence of str or None, ["uniform"] or "class=share" for every class
    classes : sequence of str, in the order of the class numbers

    Returns
    -------
    estimator
    """
    if method not in METHODS:
        raise RequestError(f"--method {method}: {suggest('method', method, METHODS)}")
    if seed is not None and not 0 <= seed <= MOST_SEED:
        raise RequestError(f"--seed {seed}: give a whole number from 0 to {MOST_SEED}.")
    if jobs == 0:
        raise RequestError("--jobs 0: give the number of threads, at least 1; or -1 for all.")
    estimator = METHODS[method]()
    known = estimator.get_params(deep=False)
    wanted: dict[str, Any] = {}
    if seed is not None and "random_state" in known:
        wanted["random_state"] = seed
    if jobs is not None and "n_jobs" in known:
        wanted["n_jobs"] = jobs
    for name, value in (
        ("abstain_below", abstain_below),
        ("metric", metric),
        ("class_prior", None if class_prior is None else read_prior(class_prior, classes)),
    ):
        if value is None:
            continue
        if name not in known or method == "otp-paper":
            raise RequestError(f"{_OPTIONS[name]} has no meaning with --method {method}; it belongs to --method otp.")
        wanted[name] = value
    wanted |= _read_settings(settings, method, known)
    estimator.set_params(**wanted)
    _check(estimator, len(classes))
    return estimator


def _read_settings(settings: Sequence[str], method: str, known: Iterable[str]) -> dict[str, Any]:
    found = {}
    for name, value in (read_setting(setting) for setting in settings):
        if name in _OURS_TO_SET or name not in known:
            names = [name for name in known if name not in _OURS_TO_SET]
            raise RequestError(f"--set {name}=...: {suggest(f'parameter of {method}', name, names)}")
        if name == "class_prior":
            raise RequestError("--set class_prior=...: say it by the names of the classes, with --class-prior.")
        if name == "cost" and value in _NOT_FOR_TABLES:
            raise RequestError(f"--set cost={value}: this needs a matrix between the rows, which a table is not.")
        found[name] = value
    return found


def _check(estimator: Any, n_classes: int) -> None:
    """Refuse parameters before the work, not after reading a large file, as far as the estimator can."""
    metric = getattr(estimator, "metric", None)
    if isinstance(estimator, OTP) and isinstance(metric, str):
        known = [*DISTANCES, "inner"]
        if metric not in known:
            raise RequestError(f"--metric {metric}: {suggest('metric', metric, known)}")
    try:
        estimator.check_parameters()
        check_prior(getattr(estimator, "class_prior", None), np.arange(n_classes))
    except (ValueError, TypeError) as error:
        raise in_options(error, estimator) from error


def in_options(error: Exception, estimator: Any) -> Exception:
    """An error of the estimator in the words of the command, if it is about a parameter; else as it is.

    Parameters
    ----------
    error : Exception
    estimator : estimator

    Returns
    -------
    Exception
    """
    words = str(error)
    for name in estimator.get_params(deep=False):
        if words.startswith((f"{name} ", f"{name}=")):
            option = _OPTIONS.get(name, f"--set {name}")
            return RequestError(option + words.removeprefix(name).replace("must be None or", "must be", 1))
    return error


def read_setting(setting: str) -> tuple[str, Any]:
    """A name and a value from "name=value": a number, True, None, a list, or else the word itself.

    Parameters
    ----------
    setting : str

    Returns
    -------
    name : str
    value : object
    """
    name, equals, words = setting.partition("=")
    if not equals or not name.strip():
        raise RequestError(f"--set {setting}: write it as name=value, for example --set n_neighbors=15.")
    try:
        return name.strip(), ast.literal_eval(words.strip())
    except (ValueError, SyntaxError):
        return name.strip(), words.strip()


def read_prior(words: Sequence[str], classes: Sequence[str]) -> Any:
    """The classes' shares from the command line.

    Parameters
    ----------
    words : sequence of str, ["uniform"] or "class=share" for every class
    classes : sequence of str

    Returns
    -------
    "uniform" or list of float, in the order of `classes`
    """
    if list(words) == ["uniform"]:
        return "uniform"
    shares: dict[str, float] = {}
    for word in words:
        name, equals, number = word.rpartition("=")
        try:
            share = float(number)
        except ValueError:
            share = -1.0
        if not equals or not 0 <= share < float("inf"):
            raise RequestError(
                f"--class-prior {word}: write 'uniform', or class=share for every class, as in yes=0.2 no=0.8."
            )
        if name not in classes:
            raise RequestError(f"--class-prior {word}: {suggest('class of the target', name, classes)}")
        if name in shares:
            raise RequestError(f"--class-prior {word}: the class {name!r} was given a share before.")
        shares[name] = share
    missing = [name for name in classes if name not in shares]
    if missing:
        raise RequestError(f"--class-prior lacks a share for {', '.join(map(repr, missing))}: name every class.")
    total = sum(shares.values())
    if total <= 0:
        raise RequestError("--class-prior has no share above 0.")
    return [shares[name] / total for name in classes]


def suggest(what: str, name: str, known: Iterable[str]) -> str:
    """Words on a name that is not known, with the nearest names that are, or all of them.

    Parameters
    ----------
    what : str, the kind of thing that was named
    name : str, as it came
    known : iterable of str

    Returns
    -------
    str
    """
    known = list(known)
    near = get_close_matches(name, known, 3, 0.6) or [each for each in known if each.lower() == name.lower()]
    if near:
        return f"there is no {what} {name!r}; did you mean {' or '.join(map(repr, near))}?"
    listed = ", ".join(map(repr, known[:20])) + (f" and {len(known) - 20} more" if len(known) > 20 else "")
    return f"there is no {what} {name!r}; there are {listed}."
