"""Tables in NumPy's archives: matrices and vectors with a row each."""

from __future__ import annotations

import io
import zipfile
from collections import Counter
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np

from otprop.files._convert import convert
from otprop.files._error import TableError, need, one_line
from otprop.files._source import Source
from otprop.files._table import Column, Table, check_names

_NAMES = ("feature_names", "names", "columns")  # arrays that may name the columns of X


class ArraysTable(Table):
    """The arrays of an archive as columns.

    Arrays with an entry per row are columns under their own names; those of more dimensions are a column for each of
    their entries, `X_0`, `X_1` and so on, or, for X, as the array `feature_names` says. Arrays of another length are no
    columns. All are written back as they were.
    """

    def __init__(self, source: Source) -> None:
        super().__init__(source, "npz")
        self.data = source.data
        self.arrays = self._read()
        self.n_rows = self._find_rows()
        self.columns: list[tuple[str, np.ndarray]] = []
        for name, array in self.arrays.items():
            if array.ndim and len(array) == self.n_rows and name not in self._namers():
                self._add(name, array)
        self.names = [name for name, _ in self.columns]
        check_names(self.names, self.origin)
        others = [name for name, array in self.arrays.items() if not array.ndim or len(array) != self.n_rows]
        others = [name for name in others if name not in self._namers()]
        if others:
            self._note(f"arrays without an entry per row, kept as they are: {', '.join(others)}")

    def _read(self) -> dict[str, np.ndarray]:
        arrays = {}
        try:
            with np.load(io.BytesIO(self.data), allow_pickle=False) as archive:
                for name in archive.files:
                    arrays[name] = self._load(archive, name)
        except (zipfile.BadZipFile, OSError, EOFError) as error:
            raise TableError(f"{self.origin} is cut short or damaged ({one_line(error)}).") from error
        return {name: array for name, array in arrays.items() if array is not None}

    def _load(self, archive: Any, name: str) -> np.ndarray | None:
        try:
            array: np.ndarray = archive[name]
        except ValueError as error:
            if "pickle" not in str(error):
                raise TableError(f"{self.origin}: the array {name!r} is damaged ({one_line(error)}).") from error
            self._note(f"the array {name!r} holds Python objects, which are not read; it is kept as it is")
            return None
        return array

    def _find_rows(self) -> int:
        lengths = [len(array) for array in self.arrays.values() if array.ndim]
        if "X" in self.arrays and self.arrays["X"].ndim:
            n_rows = len(self.arrays["X"])
        else:
            n_rows = Counter(lengths).most_common(1)[0][0] if lengths else 0
        if n_rows == 0:
            raise TableError(f"{self.origin} is empty: it has no array with rows.")
        return n_rows

    def _namers(self) -> tuple[str, ...]:
        """The array that names the columns of X, if there is one."""
        X = self.arrays.get("X")
        if X is not None and X.ndim == 2:
            for name in _NAMES:
                array = self.arrays.get(name)
                if array is not None and array.shape == X.shape[1:] and array.dtype.kind == "U":
                    return (name,)
        return ()

    def _add(self, name: str, array: np.ndarray) -> None:
        if array.dtype.kind not in "biufUSM":
            self._note(f"the array {name!r} of type {array.dtype} is no column; it is kept as it is")
        elif array.ndim == 1:
            self.columns.append((name, array))
        else:
            flat = array.reshape(self.n_rows, -1)
            namers = self._namers() if name == "X" else ()
            names = (
                [str(n) for n in self.arrays[namers[0]]] if namers else [f"{name}_{j}" for j in range(flat.shape[1])]
            )
            self.columns.extend((names[j], flat[:, j]) for j in range(flat.shape[1]))

    def _typed(self, position: int) -> Any:
        array = self.columns[position][1]
        if array.dtype.kind in "US":
            pa = need("pyarrow")
            return pa.array(self._cells(position), pa.large_string()).to_pandas()
        return array.astype(np.float64) if array.dtype == np.float16 else array

    def _as_text(self, position: int) -> Any:
        if self.columns[position][1].dtype.kind not in "US":
            return None
        pa = need("pyarrow")
        return pa.array(["" if cell is None else cell for cell in self._cells(position)], pa.large_string())

    def _cells(self, position: int) -> np.ndarray:
        array = self.columns[position][1]
        values = (array.astype(str) if array.dtype.kind == "S" else array).tolist()
        cells = np.empty(len(values), dtype=object)
        cells[:] = [None if value != value or value == "" else value for value in values]
        return cells

    def _arrow(self) -> Any:
        pa = need("pyarrow")
        arrays = [pa.array(array.astype(str) if array.dtype.kind == "S" else array) for _, array in self.columns]
        return pa.table(arrays, names=self.names)

    def _writer(
        self, kind: str, added: dict[str, Any], fill: tuple[str, Column] | None, excel_safe: bool
    ) -> Callable[[BinaryIO], None]:
        if kind != self.kind:
            return convert(self, kind, added, fill, excel_safe)
        there = [name for name in added if name in self.arrays]
        if there:
            raise TableError(f"{self.origin} already has an array {there[0]!r} that would be added; rename it.")
        new = {name: to_array(array) for name, array in added.items()}
        if fill is not None:
            new[fill[0]] = self._filled(*fill)

        def write(stream: BinaryIO) -> None:
            with zipfile.ZipFile(io.BytesIO(self.data)) as old, zipfile.ZipFile(stream, "w") as archive:
                packing = zipfile.ZIP_STORED
                for entry in old.infolist():
                    packing = entry.compress_type
                    if entry.filename.removesuffix(".npy") not in new:
                        archive.writestr(entry, old.read(entry), compress_type=packing)
                for name, array in new.items():
                    _write_array(archive, name, array, packing)

        return write

    def _filled(self, name: str, values: Column) -> np.ndarray:
        if name not in self.arrays:
            raise TableError(f"column {name!r} of {self.origin} is a part of a matrix, which cannot be filled.")
        old = self.arrays[name]
        mask = np.array([value is not None and value == value for value in values], dtype=bool)
        chosen = [value for value, keep in zip(values, mask, strict=True) if keep]
        kind = old.dtype
        try:
            new = np.array(chosen).astype(str) if kind.kind in "US" else np.array(chosen).astype(kind)
            if kind.kind == "S":
                new = np.char.encode(new, "utf-8")
        except (ValueError, OverflowError) as error:
            raise TableError(
                f"the labels cannot be written into the array {name!r} of {self.origin}, whose type is {kind} "
                f"({one_line(error)}); leave out --fill to get arrays of their own."
            ) from error
        result = old.astype(np.result_type(old, new)) if kind.kind in "US" and len(new) else old.copy()
        result[mask] = new
        return result


def to_array(column: Any) -> np.ndarray:
    """An Arrow column as an array that needs no pickle: missing text is empty, a missing number NaN."""
    pa = need("pyarrow")
    if pa.types.is_nested(column.type):
        raise TableError(f"a column of type {column.type} cannot be written to NPZ; write to .parquet.")
    if pa.types.is_dictionary(column.type):
        return to_array(column.cast(column.type.value_type))
    values = np.asarray(column.to_numpy(zero_copy_only=False) if isinstance(column, pa.Array) else column.to_numpy())
    if values.dtype.kind == "O":
        return np.array(["" if value is None else str(value) for value in values], dtype=str)
    return values


def write_arrays(whole: Any) -> Callable[[BinaryIO], None]:
    """A function that writes an Arrow table as an archive with an array for each column."""
    arrays = {name: to_array(column) for name, column in zip(whole.column_names, whole.columns, strict=True)}
    for name in arrays:
        if "/" in name or "\\" in name:
            raise TableError(f"column {name!r} cannot be the name of an array in NPZ; write to .parquet.")

    def write(stream: BinaryIO) -> None:
        with zipfile.ZipFile(stream, "w") as archive:
            for name, array in arrays.items():
                _write_array(archive, name, array, zipfile.ZIP_STORED)

    return write


def _write_array(archive: zipfile.ZipFile, name: str, array: np.ndarray, packing: int) -> None:
    entry = zipfile.ZipInfo(f"{name}.npy")  # dated 1980, so that the same arrays give the same bytes
    entry.compress_type = packing
    with archive.open(entry, "w", force_zip64=True) as member:
        np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)
