"""Ids of the classes that a saved model can hold. Ids are stable, so renaming a class breaks no file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T", bound=type)


@dataclass(frozen=True)
class SavedClass:
    """How a class is saved; the attributes are the parameters of `saved_as`."""

    id: str
    kind: type
    drops: Collection[str] = ()
    replaces: Mapping[str, Any] = field(default_factory=dict)
    infinite: Collection[str] = ()
    nan: Collection[str] = ()


_BY_ID: dict[str, SavedClass] = {}
_BY_CLASS: dict[type, SavedClass] = {}


def saved_as(id: str, **options: Any) -> Callable[[T], T]:
    """Register a class under a stable id; every attribute is saved unless an option says otherwise.

    Parameters
    ----------
    id : str
        The name of the class in saved models. It never changes.
    **options
        `drops`: names of attributes that only fitting needs. `replaces`: attributes that are saved with another value.
        `infinite`: names of attributes that may hold infinity in a sound model, `nan`: infinity and NaN; elsewhere
        both are refused when a model is loaded.

    Examples
    --------
    >>> from otprop._saving import class_of_id, saved_as
    >>> @saved_as("example.shape", drops=("_cache",))
    ... class Shape:
    ...     pass
    >>> class_of_id("example.shape").kind is Shape
    True
    """

    def register(kind: T) -> T:
        known = _BY_ID.get(id)
        if known is not None and known.kind.__qualname__ != kind.__qualname__:
            raise ValueError(f"the id {id!r} belongs to {known.kind.__qualname__}.")
        _BY_ID[id] = _BY_CLASS[kind] = SavedClass(id, kind, **options)
        return kind

    return register


def class_of_id(id: str) -> SavedClass | None:
    """The class with this id, or None."""
    return _BY_ID.get(id)


def saved_class(kind: type) -> SavedClass | None:
    """How this class itself is saved, ignoring its parents; None if it cannot be saved."""
    return _BY_CLASS.get(kind)
