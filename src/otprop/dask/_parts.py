"""Dask frames, Dask arrays and delayed pairs as partitions: rows, labels, and the number of rows in each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from dask import delayed
from dask.array import Array, concatenate, from_array, from_delayed
from dask.delayed import Delayed

from otprop._validation import ParameterError, did_you_mean
from otprop.files import listed

Compute = Callable[[list[Any]], list[Any]]  # gives the values of delayed objects
ACCEPTED = (
    "a Dask frame with the name of its target as y, a Dask array with a vector y, or a list of delayed pairs (X, y)"
)


def is_frame(data: Any) -> bool:
    """Whether this is a Dask frame."""
    return hasattr(data, "npartitions") and hasattr(data, "to_delayed") and hasattr(data, "columns")


def is_distributed(data: Any) -> bool:
    """Whether this is a Dask frame or array, or a list of delayed objects."""
    return isinstance(data, Array) or is_frame(data) or _is_list_of(data, lambda one: isinstance(one, Delayed))


@dataclass(frozen=True)
class Parts:
    """The partitions of a collection."""

    rows: list[Any]  # Delayed, the rows of each partition
    labels: list[Any]  # Delayed, the labels of each; empty where there are none
    lengths: list[int]  # the number of rows of each
    frame: Any = field(default=None, repr=False)  # Dask frame or None, which results take divisions and index from

    @property
    def n_rows(self) -> int:
        """All rows."""
        return sum(self.lengths)

    @property
    def starts(self) -> list[int]:
        """The number of the first row of each partition."""
        return [0, *np.cumsum(self.lengths)[:-1].tolist()] if self.lengths else []

    def collect(self, results: Sequence[Any], dtype: Any, name: str, columns: Sequence[Any] | None = None) -> Any:
        """A lazy collection of the results, arrays partitioned as the rows: of vectors, or of matrices with `columns`.

        Of a frame a series or frame with its index, else a Dask array.
        """
        if self.frame is None:
            more = () if columns is None else (len(columns),)
            blocks = [
                from_delayed(one, (length, *more), dtype=dtype)
                for one, length in zip(results, self.lengths, strict=True)
            ]
            return concatenate(blocks)
        import pandas
        from dask.dataframe import from_delayed as frame_from_delayed

        meta_index = self.frame._meta.index
        if columns is None:
            kind = object if np.dtype(dtype).kind in "OU" else dtype
            meta: Any = pandas.Series([], dtype=kind, name=name, index=meta_index)
        else:
            meta = pandas.DataFrame(np.empty((0, len(columns)), dtype=dtype), columns=list(columns), index=meta_index)
        made = [delayed(_like)(one, rows.index, meta) for one, rows in zip(results, self.rows, strict=True)]
        return frame_from_delayed(made, meta=meta, divisions=self.frame.divisions, verify_meta=False)


def read_parts(X: Any, y: Any, compute: Compute) -> Parts:
    """The partitions of the rows and labels that `fit` was given."""
    if is_frame(X):
        return _of_frame(X, y, compute)
    if isinstance(X, Array):
        return _of_array(X, y, compute)
    if _is_list_of(X, _is_pair):
        if y is not None:
            raise ParameterError("y", "must be omitted if X is a list of delayed pairs, which hold it.")
        rows, labels = [delayed(pair[0]) for pair in X], [delayed(pair[1]) for pair in X]
        return _checked(Parts(rows, labels, _lengths(rows, compute)), compute)
    got = type(X).__name__
    if isinstance(X, (list, tuple)):
        place = next((number for number, one in enumerate(X) if not _is_pair(one)), None)
        got = f"an empty {got}" if place is None else f"a {got} whose entry {place} is not a pair of delayed objects"
    raise ParameterError("X", f"must be {ACCEPTED}; got {got}.")


def read_rows(X: Any, n_features: int, columns: Sequence[Any] | None, compute: Compute) -> Parts:
    """The partitions of new rows; their lengths are those known without computing, else computed.

    A frame must have the `columns` of the fit, in any order, or as many as it had features where they have no names.
    """
    if is_frame(X):
        missing = [] if columns is None else [name for name in columns if name not in X.columns]
        if missing:
            raise ParameterError("X", f"lacks the column {missing[0]!r}, which the fit had.")
        if columns is None and len(X.columns) != n_features:
            raise ParameterError("X", f"has {len(X.columns)} columns; the fit had {n_features} features.")
        return Parts(X.to_delayed(optimize_graph=False), [], [0] * X.npartitions, X)
    if isinstance(X, Array):
        rows, lengths = _rows_of_array(X, compute)
        if X.shape[1] != n_features:
            raise ParameterError("X", f"has {X.shape[1]} features; the fit had {n_features}.")
        return Parts(rows, [], lengths)
    return Parts(list(X), [], _lengths(list(X), compute))


def _of_frame(X: Any, y: Any, compute: Compute) -> Parts:
    names = list(X.columns)
    if not isinstance(y, (str, int)):
        hint = f"; give its name, {y.name!r}" if getattr(y, "name", None) in names else ""
        raise ParameterError("y", f"must be the name of the target, a column of X; got {type(y).__name__}{hint}.")
    if y not in names:
        known = [str(name) for name in names]
        hint = did_you_mean(str(y), known) or f"; there are {listed(known)}."
        raise ParameterError("y", f"={y!r} is not a column of X{hint}")
    if len(names) < 2:
        raise ParameterError("X", f"has no column other than the target {y!r}.")
    whole = X.to_delayed(optimize_graph=False)  # optimised, it may have other partitions than X
    rows, labels = [one.drop(columns=[y]) for one in whole], [one[y] for one in whole]
    return Parts(rows, labels, _lengths(whole, compute), X)


def _of_array(X: Any, y: Any, compute: Compute) -> Parts:
    rows, lengths = _rows_of_array(X, compute)
    if hasattr(y, "to_dask_array"):
        y = y.to_dask_array(lengths=True)
    elif not isinstance(y, Array):
        y = np.asarray(y) if not isinstance(y, (str, type(None))) else y
        if not isinstance(y, np.ndarray) or y.ndim != 1:
            raise ParameterError("y", "must be a vector of labels, one per row of X.")
    if isinstance(y, Array) and np.isnan(np.sum(y.shape)):
        y = y.compute_chunk_sizes()
    if y.shape != (sum(lengths),):
        raise ParameterError("y", f"has shape {y.shape}, expected ({sum(lengths)},): one label per row of X.")
    cut = tuple(lengths)
    vector = y.rechunk((cut,)) if isinstance(y, Array) else from_array(y, chunks=(cut,))
    return Parts(rows, list(vector.to_delayed().ravel()), lengths)


def _checked(parts: Parts, compute: Compute) -> Parts:
    """Refuse delayed pairs whose labels are not as many as their rows, or whose rows have other columns."""
    lengths = _lengths(parts.labels, compute)
    shapes = compute([delayed(np.shape)(one) for one in parts.rows])
    for number, shape in enumerate(shapes):
        if len(shape) != 2 or shape[1:] != shapes[0][1:]:
            raise ParameterError(
                "X", f"holds rows of shape {shape} in the pair {number}, and {shapes[0]} in the pair 0."
            )
    for number, (n_rows, n_labels) in enumerate(zip(parts.lengths, lengths, strict=True)):
        if n_rows != n_labels:
            raise ParameterError("X", f"holds {n_rows} rows and {n_labels} labels in the pair {number}.")
    return parts


def _rows_of_array(X: Any, compute: Compute) -> tuple[list[Any], list[int]]:
    """The rows of each chunk, and their number: as known without computing, else computed."""
    if X.ndim != 2:
        raise ParameterError("X", f"must have two dimensions; got {X.ndim}.")
    if X.numblocks[1] != 1:
        raise ParameterError(
            "X", f"is cut into {X.numblocks[1]} chunks of columns; a row must be whole: X.rechunk({{1: -1}})."
        )

    rows, lengths = [row[0] for row in X.to_delayed()], X.chunks[0]
    return rows, _lengths(rows, compute) if np.isnan(lengths).any() else [int(length) for length in lengths]


def _lengths(parts: Sequence[Any], compute: Compute) -> list[int]:
    return compute([delayed(_length)(one) for one in parts])


def _is_pair(one: Any) -> bool:
    return isinstance(one, (tuple, list)) and len(one) == 2 and all(isinstance(part, Delayed) for part in one)


def _is_list_of(data: Any, test: Callable[[Any], bool]) -> bool:
    return isinstance(data, (list, tuple)) and len(data) > 0 and all(map(test, data))


def _length(part: Any) -> int:
    return int(part.shape[0]) if hasattr(part, "shape") else len(part)


def _like(values: np.ndarray, index: Any, meta: Any) -> Any:
    """Values as a series or frame like `meta`."""
    if values.ndim == 1:
        return type(meta)(values, index=index, name=meta.name, dtype=meta.dtype)
    return type(meta)(values, index=index, columns=meta.columns)
