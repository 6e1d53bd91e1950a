"""Arrow columns: from Python values, from text, and with cells filled."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from otprop.files._errors import TableError
from otprop.files._optional import pa, pc
from otprop.files._text import as_text

Column = Sequence[Any] | np.ndarray


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
        raise TableError(f"{origin}: column {name!r} has {reason}", "fix it", file=origin, column=name) from error


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
        raise TableError(
            f"{example} cannot be written into column {name!r} of {origin}, whose type is {plain}",
            "omit {} to get new columns",
            file=origin,
            column=name,
            arguments=[("fill", None)],
        ) from error
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
