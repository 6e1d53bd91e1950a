"""Arrow columns as the cells of delimited text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from otprop.files._distinct import DistinctValues
from otprop.files._errors import TableError
from otprop.files._layout import Dialect
from otprop.files._numbers import number_mask
from otprop.files._optional import pa, pc

_BLOCK = 100_000  # texts joined at once
FORMULA = "=+-@\t\r\n"  # first characters that spreadsheets take for a formula


def as_text(array: Any, name: str, decimal: str = ".") -> Any:
    """An Arrow column as text, null where it is missing; floats in their shortest exact form."""
    kind = array.type
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_dictionary(kind):
        return as_text(array.dictionary_decode(), name, decimal)
    if pa.types.is_floating(kind):
        values = [None if value is None else repr(value) for value in array.to_pylist()]
        text = pa.array(values, pa.large_string())
        return text if decimal == "." else pc.replace_substring(text, ".", decimal)
    if pa.types.is_nested(kind):
        return pa.array(
            [None if v is None else json.dumps(v, default=str) for v in array.to_pylist()], pa.large_string()
        )
    try:
        return array.cast(pa.large_string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise TableError(
            f"column {name!r} of type {kind} cannot be written as text", "write to .parquet", column=name
        ) from None


def to_cells(text: Any, dialect: Dialect, name: str) -> Any:
    """Text as cells: quoted where necessary, empty where missing."""
    text = pc.fill_null(text, pa.scalar("", text.type))
    special = "[" + re.escape(dialect.delimiter + dialect.quote) + r"\r\n]" + ("|^ " if dialect.blanks else "")
    quoted_cells = pc.match_substring_regex(text, special)
    if not pc.any(quoted_cells).as_py():
        return text
    if not dialect.quote:
        cell = text.filter(quoted_cells)[0].as_py()
        raise TableError(
            f"column {name!r}: {cell!r} cannot be written without quotes",
            "do not pass {}",
            column=name,
            arguments=[("quote", "")],
        )
    mark = pa.scalar(dialect.quote, text.type)
    nothing = pa.scalar("", text.type)
    quoted = pc.binary_join_element_wise(
        mark, pc.replace_substring(text, dialect.quote, dialect.quote * 2), mark, nothing
    )
    return pc.if_else(quoted_cells, quoted, text)


def guard(text: Any, decimal: str = ".") -> Any:
    """Text with an apostrophe before what a spreadsheet may take for a formula."""
    mask = pa.array(formulas(text, decimal))
    marked = pc.binary_join_element_wise(pa.scalar("'", text.type), text, pa.scalar("", text.type))
    return pc.if_else(mask, marked, text)


def formulas(text: Any, decimal: str = ".") -> np.ndarray:
    """Which texts a spreadsheet may read as a formula; numbers such as -5 are not formulas."""
    begins = pc.fill_null(pc.match_substring_regex(text, "^[" + re.escape(FORMULA) + "]"), False)
    begins = np.array(begins.to_numpy(zero_copy_only=False), dtype=bool)
    if begins.any():
        rows = np.flatnonzero(begins)
        distinct = DistinctValues.from_column(text.take(pa.array(rows)))
        plain, grouped = number_mask(distinct, decimal)
        control = distinct.match("^$")  # only blanks, which were trimmed
        begins[rows] = ~(plain | grouped | control)[distinct.codes]
    return begins


def pieces(body: bytes, starts: np.ndarray, stops: np.ndarray) -> Any:
    """The texts `body[starts[i]:stops[i]]` for ascending positions, without a loop."""
    cuts = np.empty(2 * len(starts) + 1, dtype=np.int64)
    cuts[0:-1:2], cuts[1::2], cuts[-1] = starts, stops, stops[-1] if len(stops) else 0
    every = pa.LargeStringArray.from_buffers(2 * len(starts), pa.py_buffer(cuts), pa.py_buffer(body))
    return every.take(pa.array(np.arange(0, 2 * len(starts), 2)))


def splice(body: bytes, starts: np.ndarray, stops: np.ndarray, instead: Any) -> Iterator[bytes]:
    """The text with every `body[starts[i]:stops[i]]` replaced; positions are ascending."""
    nothing = pa.scalar("", pa.large_string())
    done = 0
    for at in range(0, len(starts), _BLOCK):
        here = slice(at, min(at + _BLOCK, len(starts)))
        kept_from = np.append(done, stops[here][:-1])
        kept = pieces(body, kept_from, starts[here])
        joined = pc.binary_join_element_wise(kept, instead[here.start : here.stop], nothing)
        yield flat(joined)
        done = int(stops[here][-1])
    yield body[done:]


def flat(text: Any) -> bytes:
    """All texts of an array, concatenated."""
    if len(text) == 0:
        return b""
    offsets = np.frombuffer(text.buffers()[1], dtype=np.int64)
    first, last = int(offsets[text.offset]), int(offsets[text.offset + len(text)])
    return text.buffers()[2].slice(first, last - first).to_pybytes() if last > first else b""


def lines(columns: list[Any], dialect: Dialect) -> Iterator[bytes]:
    """Columns of cells as lines of text."""
    for at in range(0, len(columns[0]), _BLOCK):
        cells = [column[at : at + _BLOCK] for column in columns]
        joined = pc.binary_join_element_wise(*cells, pa.scalar(dialect.delimiter, pa.large_string()))
        ended = pc.binary_join_element_wise(
            joined, pa.scalar("", pa.large_string()), pa.scalar("\n", pa.large_string())
        )
        yield flat(ended)
