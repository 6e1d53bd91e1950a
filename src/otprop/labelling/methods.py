"""The estimator of a job: made by the name of its method and the parameters asked for; its parameters as used."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from otprop._otp import OTP
from otprop._paper_otp import PaperOTP
from otprop._validation import MAX_SEED, check_number
from otprop.geometry.pairwise import METRICS
from otprop.propagation.decisions import check_objective
from otprop.propagation.shares import check_prior
from otprop.table.errors import Hint, RequestError, unknown_name
from otprop.table.target import ClassNames

if TYPE_CHECKING:
    from otprop.labelling.job import Request

METHODS: dict[str, Callable[[], Any]] = {"otp": OTP, "otp-paper": PaperOTP}
MAX_SHARES = 20  # classes whose shares are listed for a person
ROUNDED = 0.02  # by which shares that were rounded may miss 1
_SET_HERE = ("unlabeled", "callback", "verbose")  # parameters of the estimator that are not settings
_NOT_FOR_TABLES = ("graph", "precomputed")  # costs for which X is not a table
_CHOSEN = ("epsilon", "marginal_strength")  # parameters that the estimator may choose: it has the value used as NAME_
_WITHOUT_EFFECT = ("callback", "verbose", "unlabeled", "warm_start")  # parameters that do not change the result


def make_estimator(request: Request, classes: Sequence[str]) -> Any:
    """The estimator of a request; `classes` are in the order of the class numbers."""
    method, seed, objective = request.method, request.seed, request.objective
    if method not in METHODS:
        raise RequestError("method", unknown_name("method", method, METHODS), method)
    if seed is not None and not (isinstance(seed, Integral) and 0 <= seed <= MAX_SEED):
        raise RequestError("random_state", f"give a whole number from 0 to {MAX_SEED}.", seed)
    if request.jobs == 0:
        raise RequestError("n_jobs", "give the number of threads, at least 1; or -1 for all.", request.jobs)
    if request.abstain_below is not None:
        check_number("abstain_below", request.abstain_below, least=0, most=1)
    estimator = METHODS[method]()
    known = estimator.get_params(deep=False)
    if isinstance(objective, Mapping):
        objective = costs_by_code(objective, classes)
    of_all = {"random_state": seed, "n_jobs": -1 if request.jobs is None else request.jobs}
    of_otp = {
        "abstain_below": request.abstain_below,
        "metric": request.metric,
        "class_prior": None if request.class_prior is None else shares_in_order(request.class_prior, classes),
        "objective": objective,
    }
    for name, value in of_otp.items():
        if value is not None and name not in known:
            hint = Hint("has no meaning with ", "method", method, "; it belongs to the method otp.")
            raise RequestError(name, hint)
    wanted = {name: value for name, value in {**of_all, **of_otp}.items() if value is not None and name in known}
    estimator.set_params(**wanted, **_checked_settings(request.settings, method, known, wanted))
    if isinstance(estimator, OTP) and isinstance(estimator.metric, str) and estimator.metric not in (*METRICS, "inner"):
        sentence = unknown_name("metric", estimator.metric, [*METRICS, "inner"])
        raise RequestError("metric", sentence, estimator.metric)
    estimator.check_parameters()
    check_prior(getattr(estimator, "class_prior", None), np.arange(len(classes)))
    return estimator


def _checked_settings(
    settings: Mapping[str, Any], method: str, known: Iterable[str], elsewhere: Collection[str]
) -> dict[str, Any]:
    """The settings, if they are parameters of the estimator; those in `elsewhere` are set by arguments of their own."""
    if not isinstance(settings, Mapping):
        raise RequestError("settings", "must be a mapping of parameters, such as {'n_neighbors': 15}.", settings)
    for name, value in settings.items():
        if name in _SET_HERE or name not in known:
            names = [name for name in known if name not in _SET_HERE and name not in elsewhere]
            raise RequestError("settings", unknown_name("parameter", name, names, of=method), f"{name}=...")
        if name in elsewhere:
            raise RequestError("settings", Hint("give it with ", name, after="."), f"{name}={value!r}")
        if name in ("class_prior", "objective"):
            what = "the shares" if name == "class_prior" else "it"
            hint = Hint(f"give {what} by the names of the classes, with ", name, after=".")
            raise RequestError("settings", hint, f"{name}=...")
        if name == "cost" and isinstance(value, str) and value in _NOT_FOR_TABLES:
            reason = "this needs a matrix between the rows, which a table is not."
            raise RequestError("settings", reason, f"cost={value}")
    return dict(settings)


def costs_by_code(costs: Mapping[Any, float], classes: Sequence[str]) -> dict[tuple[int, int], float]:
    """Costs by pair of class numbers from costs by pair of names: (true class, label given)."""
    check_objective("objective", costs)
    found: dict[tuple[int, int], float] = {}
    known = ClassNames(classes)
    for pair, cost in costs.items():
        names = [known.matching(name) for name in pair]
        for asked, name in zip(pair, names, strict=True):
            if name is None:
                why = unknown_name("class", str(asked), classes)
                raise RequestError("objective", why, {pair: cost})
        true, given = (classes.index(str(name)) for name in names)
        found[true, given] = float(cost)
    return found


def shares_in_order(prior: str | Mapping[Any, float], classes: Sequence[str]) -> str | list[float]:
    """The classes' shares in the order of `classes`, summing to 1; "uniform" as it is."""
    if isinstance(prior, str) and prior == "uniform":
        return prior
    if not isinstance(prior, Mapping):
        raise RequestError("class_prior", "must be 'uniform' or a mapping of every class to its share.", prior)
    shares: dict[str, float] = {}
    given = ClassNames(classes)
    for name, share in prior.items():
        known = given.matching(name)
        if known is None:
            raise RequestError("class_prior", unknown_name("class", str(name), classes), f"{name}={share}")
        if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share < float("inf"):
            raise RequestError("class_prior", "a share is a number of at least 0.", f"{name}={share}")
        if known in shares:
            raise RequestError("class_prior", f"the class {known!r} was given a share before.", f"{name}={share}")
        shares[known] = float(share)
    missing = [name for name in classes if name not in shares]
    if missing:
        raise RequestError("class_prior", f"lacks a share for {', '.join(map(repr, missing))}: name every class.")
    total = sum(shares.values())
    if total <= 0:
        raise RequestError("class_prior", "has no share above 0.")
    if abs(total - 1.0) > ROUNDED and any(0 < share < 1 for share in shares.values()):
        raise RequestError("class_prior", f"has shares that add up to {total:.4g}, not 1; or give numbers of rows.")
    return [shares[name] / total for name in classes]


def is_class_level(estimator: Any) -> bool:
    """Whether the estimator has confidence, suggestions and explanations."""
    return isinstance(estimator, OTP)


def parameters_used(estimator: Any, classes: Sequence[str]) -> dict[str, Any]:
    """The parameters of a method as JSON can hold them: as used where the estimator chose, else as set."""
    params = estimator.get_params(deep=False)
    found = {name: _json_value(value) for name, value in params.items() if name not in _WITHOUT_EFFECT}
    for name in _CHOSEN:
        if name in found and hasattr(estimator, f"{name}_"):
            found[name] = _json_value(getattr(estimator, f"{name}_"))
    shares = class_shares(estimator, classes)
    return found | ({"class_prior": shares} if shares else {})


def _json_value(value: Any) -> Any:
    """A value as JSON can hold it."""
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return [_json_value(each) for each in value] if isinstance(value, (list, tuple)) else str(value)


def class_shares(estimator: Any, classes: Sequence[str]) -> dict[str, float] | None:
    """The classes' shares by name, as used, or else as asked for."""
    shares = getattr(estimator, "class_prior_", getattr(estimator, "class_prior", None))
    if shares is None or isinstance(shares, str):
        return None
    return {name: float(share) for name, share in zip(classes, shares, strict=True)}


def parameter_texts(estimator: Any, classes: Sequence[str]) -> dict[str, str]:
    """The parameters that decide the result, as set and as used, for a person."""
    params = estimator.get_params(deep=False)
    found = {name: str(value) for name, value in params.items() if name not in _WITHOUT_EFFECT}
    for name in _CHOSEN:
        if name in found and hasattr(estimator, f"{name}_"):
            found[name] += f" (used: {float(getattr(estimator, f'{name}_')):.3g})"
    shares = class_shares(estimator, classes)
    if shares:
        named = [f"{name} {share:.3g}" for name, share in shares.items()]
        more = f" and {len(named) - MAX_SHARES} more" if len(named) > MAX_SHARES else ""
        asked = params["class_prior"]
        how = f"{asked}, used: " if asked is None or isinstance(asked, str) else ""
        found["class_prior"] = how + ", ".join(named[:MAX_SHARES]) + more
    return found
