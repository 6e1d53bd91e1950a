"""The cells of the table as text: what a person sees of a row, searches in, and what a row is recognised by."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from otprop.files import Table
from otprop.table.row_pictures import names_pictures, pictures_of_table

SHORT = 200  # characters of a cell that are shown on the map
MAX_FOUND = 100_000  # rows that a search returns
_SAMPLE = 500  # cells that decide what a column is
_LONG = 40  # mean number of characters from which a column is text to read
_NUMBERS_SHOWN = 8  # of a vector


class Cells:
    """All cells but those of the target, as text; `name` and `digest` are of the file."""

    def __init__(self, table: Table, target: str, folder: Path) -> None:
        import pyarrow as pa  # optional, and slow to import

        self.name, self.digest, self.n_rows = Path(table.origin).name, table.digest, table.n_rows
        self.columns = [name for name in table.names if name != target]
        self._texts: list[Any] = []
        self.kinds: list[str] = []  # as in `_kind`; "image": paths of pictures, "picture": the pictures as arrays
        for name in self.columns:
            cells = table.cells(name)
            self._texts.append(pa.array([_text(cell) for cell in cells], pa.large_string()))
            self.kinds.append(_kind(cells, self._texts[-1]))
        paths = next((place for place, kind in enumerate(self.kinds) if kind == "image"), None)
        column = None if paths is None else self.columns[paths]
        self.pictures = pictures_of_table(table, folder, column, lambda row: self._texts[paths or 0][row].as_py())
        if not self.pictures.are_files and self.pictures.column in self.columns:
            self.kinds[self.columns.index(self.pictures.column)] = "picture"

    @property
    def text_columns(self) -> list[str]:
        """The columns whose cells are text to read."""
        return [name for name, kind in zip(self.columns, self.kinds, strict=True) if kind == "text"]

    def of_row(self, row: int, most: int | None = None) -> list[str]:
        """The cells of a row, each cut after `most` characters; a picture has no text."""
        pairs = zip(self._texts, self.kinds, strict=True)
        texts = ["" if kind == "picture" else column[row].as_py() or "" for column, kind in pairs]
        return texts if most is None else [text if len(text) <= most else f"{text[:most]}…" for text in texts]

    def search(self, query: str) -> np.ndarray:
        """The rows that have the query in a cell, in any case of letters."""
        import pyarrow.compute as pc

        found = np.zeros(self.n_rows, dtype=bool)
        for column in self._texts:
            hits = pc.match_substring(column, query, ignore_case=True)
            found |= hits.fill_null(False).to_numpy(zero_copy_only=False)
        return np.flatnonzero(found)

    def fingerprints(self, rows: Sequence[int] | None = None, columns: Sequence[str] | None = None) -> list[str]:
        """A digest of the cells of each row, or of those in some columns; of all rows where none are named."""
        texts = [self._texts[self.columns.index(name)] for name in (self.columns if columns is None else columns)]
        taken = [(column if rows is None else column.take(_array(rows))).to_pylist() for column in texts]
        lines = zip(*taken, strict=True) if taken else [()] * (self.n_rows if rows is None else len(rows))
        return [_fingerprint(line) for line in lines]


def _array(rows: Sequence[int]) -> Any:
    import pyarrow as pa

    return pa.array(rows, pa.int64())


def _fingerprint(cells: Sequence[str | None]) -> str:
    digest = blake2b(digest_size=12)
    for cell in cells:
        data = b"\xff" if cell is None else cell.encode()  # no text has this byte
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


def _text(cell: Any) -> str | None:
    """A cell as a person reads it; None where it is empty."""
    if cell is None:
        return None
    if isinstance(cell, (np.ndarray, list, tuple)) and len(cell) > _NUMBERS_SHOWN:
        shown = ", ".join(_text(value) or "" for value in cell[:_NUMBERS_SHOWN])
        return f"[{shown}, … {len(cell)} values]"
    if isinstance(cell, (float, np.floating)):
        return format(float(cell), ".10g")
    return str(cell).encode("utf-8", "replace").decode("utf-8")


def _kind(cells: np.ndarray, texts: Any) -> str:
    """What a column is, from some of its cells."""
    known = [cell for cell in cells[: 20 * _SAMPLE] if cell is not None][:_SAMPLE]
    if known and isinstance(known[0], (np.ndarray, list, tuple)):
        return "vector"
    words = [str(cell) for cell in known]
    if names_pictures(words):
        return "image"
    if words and all(_is_number(word) for word in words):
        return "number"
    return "text" if sum(map(len, words)) > _LONG * len(words) else "category"


def _is_number(word: str) -> bool:
    try:
        float(word.replace(",", "."))
    except ValueError:
        return False
    return True
