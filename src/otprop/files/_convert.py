"""Writing a table in another format than it came in."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, BinaryIO

from otprop.files._error import TableError, need
from otprop.files._layout import Dialect
from otprop.files._text import as_text, guard, lines, to_cells

if TYPE_CHECKING:
    from otprop.files._table import Column, Table


def convert(
    table: Table,
    kind: str,
    added: dict[str, Any],
    fill: tuple[str, Column] | None,
    excel_safe: bool = False,
    decimal: str = ".",
) -> Callable[[BinaryIO], None]:
    """A function that writes the table, filled and with columns added, in another format."""
    from otprop.files._arrays import write_arrays
    from otprop.files._columnar import write_columnar

    whole = table._arrow_text() if kind in ("csv", "tsv") else table._arrow()
    if fill is not None:
        whole = fill_column(whole, fill, table.origin)
    for name, array in added.items():
        whole = whole.append_column(name, array)
    if kind in ("csv", "tsv"):
        return _delimited(whole, kind, excel_safe, decimal)
    if kind == "npz":
        return write_arrays(whole)
    return write_columnar(whole, kind)


def exact_column(text: Any) -> Any:
    """Text as the first type under which every cell would be written the same way again; empty cells are missing."""
    pa, pc = need("pyarrow"), need("pyarrow.compute")
    text = pc.if_else(pc.equal(text, ""), pa.scalar(None, text.type), text)
    if text.null_count == len(text):
        return text.cast(pa.string()) if text.nbytes < 2**31 else text
    for kind in (pa.int64(), pa.float64(), pa.bool_(), pa.date32(), pa.timestamp("s")):
        try:
            values = text.cast(kind)
            if as_text(values, "").equals(text):
                return values
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            continue
    return text.cast(pa.string()) if text.nbytes < 2**31 else text


def fill_column(whole: Any, fill: tuple[str, Column], origin: str) -> Any:
    """The Arrow table with values written into one column; its type stays."""
    from otprop.files._table import to_arrow

    pa, pc = need("pyarrow"), need("pyarrow.compute")
    name, values = fill[0], to_arrow(fill[1])
    position = whole.schema.get_field_index(name)
    field, column = whole.schema.field(position), whole.column(position)
    kind = field.type
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    try:
        new = values if values.type == plain else values.cast(plain)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        given = values.drop_null()
        example = repr(given[0].as_py()) if len(given) else "a label"
        raise TableError(
            f"{example} cannot be written into column {name!r} of {origin}, whose type is {plain}; "
            "leave out --fill to get columns of their own."
        ) from error
    old = column.cast(plain) if pa.types.is_dictionary(kind) else column
    result = pc.coalesce(pa.chunked_array([new], plain), old)
    if pa.types.is_dictionary(kind):
        result = _encode(result, column)
    return whole.set_column(position, field, result)


def _encode(filled: Any, column: Any) -> Any:
    """A filled column with the dictionary of the old one, in its order, new words at its end."""
    pa, pc = need("pyarrow"), need("pyarrow.compute")
    kind = column.type
    words = column.unify_dictionaries().chunk(0).dictionary if column.num_chunks else pa.array([], kind.value_type)
    new = pc.unique(filled.drop_null())
    new = new.filter(pc.invert(pc.is_in(new, value_set=words)))
    words = pa.concat_arrays([words, new])
    chunks = [pc.index_in(chunk, value_set=words).cast(kind.index_type) for chunk in filled.chunks]
    return pa.chunked_array(
        [pa.DictionaryArray.from_arrays(chunk, words, ordered=kind.ordered) for chunk in chunks], type=kind
    )


def _delimited(whole: Any, kind: str, excel_safe: bool, decimal: str) -> Callable[[BinaryIO], None]:
    pa = need("pyarrow")
    dialect = Dialect("\t" if kind == "tsv" else ",", '"')
    cells = []
    for name, column in zip(whole.column_names, whole.columns, strict=True):
        text = as_text(column, name, decimal)
        if excel_safe and _is_text(column.type):
            text = guard(text, decimal)
        header = pa.array([name], pa.large_string())
        header = guard(header) if excel_safe else header
        column_cells = to_cells(text, dialect, name)
        cells.append(pa.concat_arrays([to_cells(header, dialect, name), column_cells]))

    def write(stream: BinaryIO) -> None:
        for block in lines(cells, dialect):
            stream.write(block)

    return write


def _is_text(kind: Any) -> bool:
    types = need("pyarrow").types
    if types.is_dictionary(kind):
        kind = kind.value_type
    return str(kind) in ("string", "large_string", "string_view")
