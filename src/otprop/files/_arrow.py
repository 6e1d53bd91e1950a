"""Arrow columns: from Python values and text, with cells filled, and as the cells of delimited text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from otprop._optional import pa, pc
from otprop.files._distinct import DistinctValues
from otprop.files._errors import TableError, file_error
from otprop.files._layout import Dialect
from otprop.files._numbers import number_mask

Column = Sequence[Any] | np.ndarray
_BLOCK = 100_000  # texts joined at once
FORMULA = "=+-@\t\r\n"  # first characters that spreadsheets take for a formula


def to_arrow(column: Column) -> Any:
    """A new column as an Arrow array; None and NaN are missing."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "US":
        column = column.astype(object)
    array = pa.array(column, from_pandas=True)
    if pa.types.is_null(array.type) or pa.types.is_string(array.type):
        array = array.cast(pa.large_string())
    return array


def from_values(values: list[Any], name: str, origin: str) -> tuple[Any, str]:
    """Values of any types as an Arrow array, as JSON text with a note where the types do not fit together."""
    try:
        try:
            return pa.array(values), ""
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
            if all(value is None or type(value) in (int, float) for value in values):  # more than 64 bits
                return pa.array([None if value is None else float(value) for value in values]), ""
            texts = [value if value is None or isinstance(value, str) else plain_text(value) for value in values]
            return pa.array(texts, pa.large_string()), f"column {name!r} mixes types, so it is read as text"
    except (UnicodeError, OverflowError, RecursionError) as error:
        reason = "text that is not valid Unicode" if isinstance(error, UnicodeError) else "a value that is too large"
        raise file_error(origin, f": column {name!r} has {reason}", "fix it", column=name) from error


def as_json(value: Any) -> str:
    """A value as JSON, with text for what JSON has no type for."""
    if isinstance(value, float) and not np.isfinite(value):
        return "null"
    return json.dumps(value, ensure_ascii=False, default=_json_default)


def plain_text(value: Any) -> str:
    """A value as JSON without quotes around it."""
    return as_json(value).strip('"')


def _json_default(value: Any) -> str:
    return value.isoformat() if hasattr(value, "isoformat") else value.hex() if isinstance(value, bytes) else str(value)


def exact_column(text: Any) -> Any:
    """Text as the first type that would be written as the same text again; empty cells are missing."""
    text = pc.if_else(pc.equal(text, ""), pa.scalar(None, text.type), text)
    if text.null_count < len(text):
        for kind in (pa.int64(), pa.float64(), pa.bool_(), pa.date32(), pa.timestamp("s")):
            try:
                values = text.cast(kind)
                if as_text(values, "").equals(text):
                    return values
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                continue
    return text.cast(pa.string()) if text.nbytes < 2**31 else text


def with_columns(whole: Any, added: dict[str, Any]) -> Any:
    """The Arrow table with columns added at its end."""
    fields = [*whole.schema, *(pa.field(name, array.type) for name, array in added.items())]
    return pa.Table.from_arrays([*whole.columns, *added.values()], schema=pa.schema(fields, whole.schema.metadata))


def fill_column(whole: Any, fill: tuple[str, Column], origin: str) -> Any:
    """The Arrow table with values written into one column, whose type stays."""
    name, values = fill[0], to_arrow(fill[1])
    position = whole.schema.get_field_index(name)
    field, column = whole.schema.field(position), whole.column(position)
    kind = field.type
    if pa.types.is_null(kind):
        return whole.set_column(position, name, values)
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    try:
        new = values if values.type == plain else values.cast(plain)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        known = values.drop_null()
        example = repr(known[0].as_py()) if len(known) else "a label"
        problem = f"{example} cannot be written into column {name!r} of {origin}, whose type is {plain}"
        advice, arguments = "omit {} to get new columns", [("fill", None)]
        raise TableError(problem, advice, file=origin, column=name, arguments=arguments) from error
    old = column.cast(plain) if pa.types.is_dictionary(kind) else column
    result = pc.coalesce(pa.chunked_array([new], plain), old)
    if pa.types.is_dictionary(kind):
        result = _encode(result, column)
    return whole.set_column(position, field, result)


def _encode(filled: Any, column: Any) -> Any:
    """A filled column with the dictionary of the old one in its order, new values at the end."""
    kind = column.type
    known = column.unify_dictionaries().chunk(0).dictionary if column.num_chunks else pa.array([], kind.value_type)
    new = pc.unique(filled.drop_null())
    known = pa.concat_arrays([known, new.filter(pc.invert(pc.is_in(new, value_set=known)))])
    chunks = [pc.index_in(chunk, value_set=known).cast(kind.index_type) for chunk in filled.chunks]
    return pa.chunked_array(
        [pa.DictionaryArray.from_arrays(chunk, known, ordered=kind.ordered) for chunk in chunks], type=kind
    )


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
        values = [None if value is None else json.dumps(value, default=str) for value in array.to_pylist()]
        return pa.array(values, pa.large_string())
    try:
        return array.cast(pa.large_string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        problem = f"column {name!r} of type {kind} cannot be written as text"
        raise TableError(problem, "write to .parquet", column=name) from None


def to_cells(text: Any, dialect: Dialect, name: str) -> Any:
    """Text as cells: quoted where necessary, empty where missing."""
    text = pc.fill_null(text, pa.scalar("", text.type))
    special = "[" + re.escape(dialect.delimiter + dialect.quote) + r"\r\n]" + ("|^ " if dialect.blanks else "")
    quoted_cells = pc.match_substring_regex(text, special)
    if not pc.any(quoted_cells).as_py():
        return text
    if not dialect.quote:
        problem = f"column {name!r}: {text.filter(quoted_cells)[0].as_py()!r} cannot be written without quotes"
        raise TableError(problem, "do not pass {}", column=name, arguments=[("quote", "")])
    mark, nothing = pa.scalar(dialect.quote, text.type), pa.scalar("", text.type)
    doubled = pc.replace_substring(text, dialect.quote, dialect.quote * 2)
    return pc.if_else(quoted_cells, pc.binary_join_element_wise(mark, doubled, mark, nothing), text)


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
