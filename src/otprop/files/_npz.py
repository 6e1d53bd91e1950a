"""Tables in NumPy archives (NPZ)."""

from __future__ import annotations

import io
import re
import zipfile
from collections import Counter
from typing import Any, BinaryIO

import numpy as np

from otprop._optional import pa
from otprop.files._arrow import Column
from otprop.files._errors import TableError, file_error, listed, one_line
from otprop.files._table import InputFile, Table, check_names
from otprop.files._writers import Writer, to_array, write_array

_NAME_ARRAYS = ("feature_names", "names", "columns")  # arrays that may name the columns of X


def read_arrays(file: BinaryIO, origin: str) -> tuple[dict[str, np.ndarray], list[str]]:
    """The arrays of an NPZ file, without those of Python objects, which are never unpickled.

    Parameters
    ----------
    file : binary file
    origin : str
        Its name, for messages.

    Returns
    -------
    arrays : dict of str to ndarray
    objects : list of str
        The names of the arrays that hold Python objects.

    Raises
    ------
    TableError
        The file or one of its members is damaged.

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> from otprop.files import read_arrays
    >>> file = io.BytesIO()
    >>> np.savez(file, X=np.eye(2))
    >>> _ = file.seek(0)
    >>> arrays, objects = read_arrays(file, "eye.npz")
    >>> arrays["X"].shape, objects
    ((2, 2), [])
    """
    arrays: dict[str, np.ndarray] = {}
    objects: list[str] = []
    name = ""
    try:
        with np.load(file, allow_pickle=False) as archive:
            for name in archive.files:
                try:
                    array = archive[name]
                except ValueError as error:
                    if "pickle" not in str(error) and "Object arrays" not in str(error):
                        raise
                    objects.append(name)
                    continue
                if not isinstance(array, np.ndarray):
                    raise file_error(origin, f": the member {name!r} is not a NumPy array", column=name)
                if array.size and not array.dtype.itemsize:
                    raise file_error(origin, f": the items of the array {name!r} have no size", column=name)
                arrays[name] = array
            name = archive.zip.testzip() or ""  # NumPy does not read a member to its end
            if name:
                raise ValueError("its checksum is wrong")
    except TableError:
        raise
    except Exception as error:  # NumPy, zipfile and zlib raise many kinds on damaged or encrypted members
        what = f": the array {name!r} is" if name else "is"
        problem = f"{what} damaged, cut short or encrypted ({one_line(error)})"
        raise file_error(origin, problem, column=name or None) from error
    return arrays, objects


class NpzTable(Table):
    """The arrays of an archive as columns.

    Arrays with an entry per row are columns under their names. A matrix of numbers is one column of vectors, unless it
    is X and the array `feature_names` names its columns; the entries of a matrix of text are columns `X_0`, `X_1` and
    so on. Arrays of another length are not columns. All are written back as they were.
    """

    def __init__(self, file: InputFile) -> None:
        super().__init__(file, "npz")
        self.data = file.data
        self.arrays, objects = read_arrays(io.BytesIO(file.data), file.origin)
        for name in objects:
            self._note(f"the array {name!r} holds Python objects, which are not read; it is kept as it is")
            self.unread[name] = f"the array {name!r} holds Python objects, which are not read since that can run code"
        self.n_rows = self._find_rows()
        self.columns: list[tuple[str, np.ndarray]] = []
        name_array = self._find_name_array()
        others = []
        for name, array in self.arrays.items():
            if name == name_array:
                continue
            if array.ndim and len(array) == self.n_rows:
                self._add(name, array, name_array)
            else:
                others.append(name)
        self.names = [name for name, _ in self.columns]
        check_names(self.names, self.origin)
        if others:
            self._note(f"arrays without an entry per row, kept as they are: {', '.join(others)}")

    def _find_rows(self) -> int:
        lengths = [len(array) for array in self.arrays.values() if array.ndim]
        if "X" in self.arrays and self.arrays["X"].ndim:
            n_rows = len(self.arrays["X"])
        else:
            n_rows = Counter(lengths).most_common(1)[0][0] if lengths else 0
        if n_rows == 0:
            raise file_error(self.origin, "is empty: it has no array with rows")
        return n_rows

    def _find_name_array(self) -> str | None:
        """The array that names the columns of X, if there is one."""
        X = self.arrays.get("X")
        if X is None or X.ndim != 2:
            return None
        fits = (n for n in _NAME_ARRAYS if n in self.arrays and self.arrays[n].shape == X.shape[1:])
        return next((name for name in fits if self.arrays[name].dtype.kind == "U"), None)

    def _add(self, name: str, array: np.ndarray, name_array: str | None) -> None:
        flat = array.reshape(self.n_rows, -1)
        width = flat.shape[1]
        if array.dtype.kind not in "biufUSM" or not width:
            self.unread[name] = f"the array {name!r} of type {array.dtype} is not a column"
            self._note(f"{self.unread[name]}; it is kept as it is")
        elif array.ndim == 1 or width == 1:
            self.columns.append((name, flat[:, 0]))
        elif name == "X" and name_array:
            self.columns.extend((str(label), flat[:, j]) for j, label in enumerate(self.arrays[name_array]))
        elif array.dtype.kind in "biuf":
            self.columns.append((name, flat))
            if name == "X" and array.ndim == 2:
                self._note(f"the array 'X' is one vector of {width} numbers; an array feature_names makes it columns")
        else:
            self.columns.extend((f"{name}_{j}", flat[:, j]) for j in range(width))

    def _position(self, name: str) -> int:
        entry = re.fullmatch(r"(.+)_(\d{1,9})", name)
        if name in self.unread:
            advice = "save it as text or numbers, numpy.asarray(y, dtype=str) for instance"
            raise file_error(self.origin, f": {self.unread[name]}", advice, name)
        if name not in self._places and entry and entry[1] in self._places:  # a column of version 0.1.0
            matrix = self.columns[self._places[entry[1]]][1]
            if matrix.ndim == 2 and int(entry[2]) < matrix.shape[1]:
                self.columns.append((name, matrix[:, int(entry[2])]))
                return len(self.columns) - 1
        return super()._position(name)

    def _typed(self, position: int) -> Any:
        array = self.columns[position][1]
        if array.dtype.kind in "US":
            return pa.array(self._cells(position), pa.large_string()).to_pandas()
        array = array.astype(np.float64) if array.dtype == np.float16 else array
        return array if array.ndim == 1 else list(array)

    def _as_text(self, position: int) -> Any:
        if self.columns[position][1].dtype.kind not in "US":
            return None
        return pa.array(["" if cell is None else cell for cell in self._cells(position)], pa.large_string())

    def _cells(self, position: int) -> np.ndarray:
        array = self._plain(position)
        cells = np.empty(len(array), dtype=object)
        if array.ndim == 1:
            cells[:] = [None if value != value or value == "" else value for value in array.tolist()]
        else:
            cells[:] = list(array)
        return cells

    def _plain(self, position: int) -> np.ndarray:
        """A column with text in place of bytes."""
        name, array = self.columns[position]
        if array.dtype.kind != "S":
            return array
        try:
            return np.char.decode(array, "utf-8")
        except UnicodeDecodeError as error:
            problem = f": the array {name!r} has bytes that are not UTF-8"
            raise file_error(self.origin, problem, "save it as text", name) from error

    def _arrow(self) -> Any:
        arrays = []
        for array in map(self._plain, range(len(self.names))):
            if array.ndim == 2:
                array = np.ascontiguousarray(array, array.dtype.newbyteorder("="))
                arrays.append(pa.FixedSizeListArray.from_arrays(pa.array(array.ravel()), array.shape[1]))
            else:
                arrays.append(pa.array(array))
        return pa.table(arrays, names=self.names)

    def _writer(self, added: dict[str, Any], fill: tuple[str, Column] | None, excel_safe: bool) -> Writer:
        known = [name for name in added if name in self.arrays or name in self.unread]
        if known:
            problem = f"already has an array {listed(known)}, which would be added"
            raise file_error(self.origin, problem, "rename it", known[0])
        new = {name: to_array(array, name) for name, array in added.items()}
        if fill is not None:
            new[fill[0]] = self._filled(*fill)

        def write(stream: BinaryIO) -> None:
            with zipfile.ZipFile(io.BytesIO(self.data)) as old, zipfile.ZipFile(stream, "w") as archive:
                compression = zipfile.ZIP_STORED
                for entry in old.infolist():
                    compression = entry.compress_type
                    if entry.filename.removesuffix(".npy") not in new:
                        archive.writestr(entry, old.read(entry), compress_type=compression)
                for name, array in new.items():
                    write_array(archive, name, array, compression)

        return write

    def _filled(self, name: str, values: Column) -> np.ndarray:
        if name not in self.arrays or self.arrays[name].ndim != 1:
            problem = f"column {name!r} of {self.origin} is a matrix or a part of a matrix, which cannot be filled"
            raise TableError(problem, file=self.origin, column=name)
        old = self.arrays[name]
        mask = np.array([value is not None and value == value for value in values], dtype=bool)
        chosen = [value for value, keep in zip(values, mask, strict=True) if keep]
        kind = old.dtype
        try:
            new = np.array(chosen).astype(str) if kind.kind in "US" else np.array(chosen).astype(kind)
            if kind.kind == "S":
                new = np.char.encode(new, "utf-8")
        except (ValueError, OverflowError) as error:
            what = f"the array {name!r} of {self.origin}, whose type is {kind} ({one_line(error)})"
            advice, arguments = "omit {} to get new arrays", [("fill", None)]
            problem = f"the labels cannot be written into {what}"
            raise TableError(problem, advice, file=self.origin, column=name, arguments=arguments) from error
        result = old.astype(np.result_type(old, new)) if kind.kind in "US" and len(new) else old.copy()
        result[mask] = new
        return result
