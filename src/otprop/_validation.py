"""Checks of parameters: an error names the parameter, its value and what is accepted."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from numbers import Integral, Real
from os import PathLike, fspath
from typing import Any

import numpy as np

from otprop._errors import OtpropError

MAX_SEED = 2**32 - 1  # of NumPy's RandomState


class InputError(OtpropError, ValueError, TypeError):
    """Rows, labels, weights or a call that cannot be used; see `ParameterError` for the value of a parameter."""


class ParameterError(OtpropError, ValueError, TypeError):
    """A parameter has a value that cannot be used.

    Attributes
    ----------
    parameter : str, its name
    reason : str, the rest of the sentence that starts with the name, or with "name=value" if it starts with "="
    """

    parameter: str
    reason: str

    def __init__(self, parameter: str, reason: str) -> None:
        super().__init__(f"{parameter}{'' if reason.startswith('=') else ' '}{reason}")
        self.parameter, self.reason = parameter, reason

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.parameter, self.reason)


def check_number(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    below: float | None = None,
    least: float | None = None,
    most: float | None = None,
    words: Iterable[str | None] = (),
) -> None:
    """Refuse `value` unless it is a finite number inside the open (above, below) or closed (least, most) bounds.

    Or one of `words`, which may include None.
    """
    words = tuple(words)
    if (value is None or isinstance(value, str)) and value in words:
        return
    bounds = [
        f"{sign} {bound:g}"
        for sign, bound in ((">", above), (">=", least), ("<", below), ("<=", most))
        if bound is not None
    ]
    accepted = " or ".join([*(repr(word) for word in words), f"a finite number {' and '.join(bounds)}".rstrip()])
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise ParameterError(name, f"must be {accepted}; got {value!r} of type {type(value).__name__}.")
    number = float(value)
    inside = (
        np.isfinite(number)
        and (above is None or number > above)
        and (least is None or number >= least)
        and (below is None or number < below)
        and (most is None or number <= most)
    )
    if not inside:
        raise ParameterError(name, f"must be {accepted}; got {value!r}.")


def check_count(name: str, value: Any, least: int = 1, words: Iterable[str | None] = ()) -> None:
    """Refuse `value` unless it is a whole number of at least `least`, or one of `words`, which may include None."""
    words = tuple(words)
    if (value is None or isinstance(value, str)) and value in words:
        return
    accepted = " or ".join([*(repr(word) for word in words), f"an integer >= {least}"])
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral):
        raise ParameterError(name, f"must be {accepted}; got {value!r} of type {type(value).__name__}.")
    if int(value) < least:
        raise ParameterError(name, f"must be {accepted}; got {value!r}.")


def check_n_jobs(name: str, value: Any) -> None:
    """Refuse `value` unless it is None or a number of threads; -1 is one per processor, as in joblib."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or int(value) == 0:
        raise ParameterError(name, f"must be None or an integer other than 0; got {value!r}.")


def check_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    """Refuse `value` unless it is one of the `choices`."""
    choices = tuple(choices)
    if not isinstance(value, str) or value not in choices:
        raise ParameterError(name, f"must be one of {', '.join(map(repr, choices))}; got {value!r}.")


def check_bool(name: str, value: Any) -> None:
    """Refuse `value` unless it is True or False; a text such as "no" would count as true."""
    if not isinstance(value, (bool, np.bool_)):
        raise ParameterError(name, f"={value!r}: must be True or False.")


def check_path(name: str, value: Any) -> str:
    """The path as text; refuses what is not a path, or empty."""
    if not isinstance(value, (str, PathLike)):
        raise ParameterError(name, f"must be a path; got {value!r} of type {type(value).__name__}.")
    if value == "":
        raise ParameterError(name, "is an empty path; name a file.")
    return fspath(value)


def is_missing(value: Any) -> bool:
    """Whether a value is a null of any kind: None, NaN, NaT or NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return np.ndim(value) == 0 and bool(value != value)


def did_you_mean(name: Any, known: Iterable[str], most: int = 1, cutoff: float = 0.65) -> str:
    """The end of a message about an unknown name: up to `most` similar known names; empty if there are none."""
    if not isinstance(name, str):
        return ""
    bare = {each.lstrip("-"): each for each in known}  # all options share their dashes, which make none similar
    near = [bare[each] for each in get_close_matches(name.lstrip("-"), bare, n=most, cutoff=cutoff)]
    near = near or [each for each in bare.values() if each.lower() == name.lower()][:most]
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""


def forget_fit(estimator: Any, private: Iterable[str] = ()) -> None:
    """Delete the attributes of an earlier fit, so that a failed fit leaves no old model behind."""
    for name in list(vars(estimator)):
        if name in private or (name.endswith("_") and not name.startswith("_")):
            delattr(estimator, name)
