"""The inputs of a run as short texts and digests, which are the same for equal runs in any process."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from otprop._optional import nn, torch

LONGEST = 60  # characters of a value in a message
PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis))
WITHOUT_EFFECT = ("callback", "n_jobs", "verbose")  # parameters of estimators that do not change the result

Part = tuple[str, str]  # its text in a message, and its digest


def fingerprint(rows: np.ndarray, codes: np.ndarray, settings: Mapping[str, Any], module: Any) -> dict[str, Part]:
    """The parts of a run by name: the rows X, the labels y, and each setting.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, ...)
    codes : ndarray of int of shape (n_rows,)
    settings : mapping of str to object
    module : torch.nn.Module, the result of the setting ``network`` for these rows

    Returns
    -------
    dict of str to (str, str)
        The text of the part in a message, and its digest.
    """
    n_labels, n_classes = int((codes >= 0).sum()), len(np.unique(codes[codes >= 0]))
    parts = {
        "X": (f"an array of shape {rows.shape}", _digest(describe(rows))),
        "y": (f"{n_labels} labels of {n_classes} classes", _digest(describe(np.asarray(codes, dtype=np.int64)))),
    }
    for name, value in settings.items():
        text = describe(value) + (describe(module) if name == "network" else "")
        parts[name] = (_shown(value), _digest(text))
    return parts


def differences(now: Mapping[str, Part], before: Mapping[str, Part]) -> list[str]:
    """The differences between two runs, each as a part of a sentence."""
    found, absent = [], ("absent", "")
    for name in dict.fromkeys([*now, *before]):
        (mine, digest), (theirs, other) = now.get(name, absent), before.get(name, absent)
        if digest != other:
            found.append(f"{name} is {mine}, the rounds were made with {theirs}" if mine != theirs else _changed(name))
    return found


def describe(value: Any, inside: tuple[int, ...] = ()) -> str:
    """A text that differs where the value, the code of a function or the architecture of a network does.

    Parameters
    ----------
    value : object
    inside : tuple of int, ids of the objects that hold this one, to stop at cycles

    Returns
    -------
    str, without addresses and orders that differ between processes
    """
    if id(value) in inside and not isinstance(value, PLAIN):
        return "..."
    inside = (*inside, id(value))
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, PLAIN):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__}[{', '.join(describe(each, inside) for each in value)}]"
    if isinstance(value, (set, frozenset)):
        return f"{type(value).__name__}[{', '.join(sorted(describe(each, inside) for each in value))}]"
    if isinstance(value, dict):
        return f"dict[{', '.join(f'{describe(k, inside)}: {describe(v, inside)}' for k, v in value.items())}]"
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        content = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
        return f"array {value.dtype} {value.shape} {hashlib.sha256(content.data).hexdigest()}"
    return _describe_code(value, inside)


def _describe_code(value: Any, inside: tuple[int, ...]) -> str:
    """Functions, classes, estimators, networks, and objects that can be called."""
    if isinstance(value, CodeType):
        consts = ", ".join(describe(each, inside) for each in value.co_consts)
        return f"code[{value.co_code.hex()} {value.co_exceptiontable.hex()} {value.co_names} {consts}]"
    if isinstance(value, FunctionType):
        held = [_content(cell) for cell in value.__closure__ or ()]
        parts = (value.__code__, value.__defaults__, value.__kwdefaults__, held)
        return f"function {value.__qualname__} {describe(parts, inside)}"
    if isinstance(value, MethodType):
        return f"method {describe((value.__func__, value.__self__), inside)}"
    if isinstance(value, partial):
        return f"partial {describe((value.func, value.args, value.keywords), inside)}"
    if isinstance(value, ModuleType):
        return f"module {value.__name__}"
    if isinstance(value, type):
        return f"class {value.__qualname__} {_methods(value, inside)}"
    if isinstance(value, BaseEstimator):
        params = {name: each for name, each in value.get_params(deep=False).items() if name not in WITHOUT_EFFECT}
        return f"{type(value).__qualname__} {describe(params, inside)}"
    if isinstance(value, torch.Tensor):
        return f"tensor {value.dtype} {describe(value.detach().cpu().double().numpy(), inside)}"
    if isinstance(value, nn.Module):
        return f"network {_without_addresses(value)} {_architecture(value, inside)}"
    state = vars(value) if callable(value) and hasattr(value, "__dict__") else {}
    return f"{_without_addresses(value)} {describe(type(value), inside)} {describe(state, inside)}"


def _architecture(module: Any, inside: tuple[int, ...]) -> str:
    """Names and shapes of the weights, and the code and the plain attributes of each part."""
    shapes = [(name, tuple(tensor.shape)) for name, tensor in module.state_dict().items()]
    parts = []
    for name, part in module.named_modules():
        plain = {key: held for key, held in vars(part).items() if isinstance(held, PLAIN) and key != "training"}
        parts.append((name, type(part), plain))
    return describe((shapes, parts), inside)


def _methods(kind: type, inside: tuple[int, ...]) -> str:
    """Methods and plain values of a class and its bases, without those of Python and PyTorch."""
    found: list[tuple[Any, ...]] = []
    for base in kind.__mro__:
        if base.__module__.partition(".")[0] in ("builtins", "torch", "numpy"):
            continue
        for name, member in sorted(vars(base).items()):
            function = getattr(member, "fget", None) or getattr(member, "__func__", member)
            if isinstance(function, FunctionType):
                found.append((name, function.__code__, function.__defaults__, function.__kwdefaults__))
            elif isinstance(member, (*PLAIN, tuple, list)) and not name.startswith("__"):
                found.append((name, member))
    return describe(found, inside)


def _content(cell: Any) -> Any:
    """The content of a closure cell; None if it is not set yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _without_addresses(value: Any) -> str:
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


def _shown(value: Any) -> str:
    text = " ".join(_without_addresses(value).split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def _changed(name: str) -> str:
    """A message for a part that differs although its text is the same."""
    if name in ("X", "y"):
        return f"{name} holds other {'values' if name == 'X' else 'labels'} than the rounds were made with"
    what = {"network": "in its code or its layers", "augment": "in its code or values"}.get(name, "in its values")
    return f"{name} differs {what} from the one that the rounds were made with"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
