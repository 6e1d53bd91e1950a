"""Cells of biology: the annotations of an `.h5ad` file or an AnnData object, and one vector per cell."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from otprop._errors import OtpropError
from otprop._optional import import_optional, pa, pandas
from otprop.files._arrow import Column
from otprop.files._columnar import ArrowTable
from otprop.files._errors import NoRowsError, TableError, file_error, one_line
from otprop.files._table import InputFile, free_name
from otprop.files._writers import Writer

SMALL = 2**28  # bytes that are read whatever the file says
TIMES_STORED = 200  # bytes in memory for each on disk, above that
MAX_COLUMNS = 10_000_000
_NEWER = "open it with anndata 0.8 or later and write it again"


class MemberError(OtpropError, ValueError):
    """A member of an HDF5 file must not be read; the message says why."""


def member(group: Any, name: str) -> Any:
    """A member by its name; no link is followed, since it may lead to another file."""
    h5py = import_optional("h5py", "anndata")
    found = group
    for part in name.split("/"):
        link = found.get(part, getlink=True) if isinstance(found, h5py.Group) else None
        if link is None:
            raise MemberError(f"there is no {name!r} in it")
        if not isinstance(link, h5py.HardLink):
            raise MemberError(f"{name!r} is a link, which is not followed")
        found = found[part]
    return found


def values(dataset: Any, n_rows: int | None = None) -> np.ndarray:
    """All values of a dataset of at least one dimension; `n_rows` is the length that it must have."""
    if not hasattr(dataset, "dtype") or not dataset.shape:
        raise MemberError(f"{_name(dataset)} is not an array")
    if dataset.external or dataset.is_virtual:
        raise MemberError(f"{_name(dataset)} is in another file, which is not read")
    if n_rows is not None and dataset.shape[0] != n_rows:
        raise MemberError(f"{_name(dataset)} has the shape {dataset.shape} for {n_rows} cells")
    size = int(np.prod([int(length) for length in dataset.shape], dtype=object)) * dataset.dtype.itemsize
    if size > max(SMALL, TIMES_STORED * dataset.id.get_storage_size()):
        raise MemberError(f"{_name(dataset)} has the shape {dataset.shape}, and the file holds hardly any of it")
    return np.asarray(dataset[()])


def numbers(dataset: Any, n_rows: int | None = None) -> np.ndarray:
    """All values of a dataset of numbers; `n_rows` as in `values`."""
    if getattr(getattr(dataset, "dtype", None), "kind", "") not in tuple("fiub"):
        raise MemberError(f"{_name(dataset)} holds no numbers")
    return values(dataset, n_rows)


def sparse_matrix(group: Any, kind: str, shape: Any, n_rows: int) -> Any:
    """A sparse matrix whose parts fit each other, by rows."""
    import scipy.sparse as sp

    lengths = tuple(int(length) for length in np.ravel(shape))
    if len(lengths) != 2 or lengths[0] != n_rows or not 0 <= lengths[1] <= MAX_COLUMNS:
        raise MemberError(f"{_name(group)} has the shape {lengths} for {n_rows} cells")
    make = sp.csr_matrix if kind == "csr_matrix" else sp.csc_matrix
    parts = tuple(numbers(member(group, part)) for part in ("data", "indices", "indptr"))
    found = make(parts, shape=lengths)
    found.check_format(full_check=True)  # compiled code follows the indices without a check
    return found.tocsr()


def _name(element: Any) -> str:
    return repr(str(getattr(element, "name", "") or element).lstrip("/"))


class CellsTable(ArrowTable):
    """The annotations of cells (`obs`, Arrow arrays) as columns, with their names and their vectors.

    They are from the `.h5ad` file `path`, or from the AnnData object `adata`.
    """

    def __init__(
        self, origin: str, names: Any, annotations: Mapping[str, Any], *, path: Path | None = None, adata: Any = None
    ) -> None:
        super().__init__(InputFile(origin, path, b"", "h5ad", None), "h5ad")
        if path is None:
            self.digest = sha256(repr(list(names)).encode()).hexdigest()
        else:
            with path.open("rb") as file:
                self.digest = file_digest(file, "sha256").hexdigest()
        self.adata = adata
        if not len(names):
            raise NoRowsError(f"{origin} has no cells", file=origin)
        self.vectors = ""
        self.names_column = free_name("cell", annotations)
        cells = {self.names_column: pa.array(names, pa.large_string())}
        self._set_table(pa.table({**cells, **annotations} if adata is None else {**annotations, **cells}))

    def set_vectors(self, name: str, vectors: np.ndarray) -> None:
        """Add the vectors of the cells as a column, the only one to label by unless others are asked for."""
        self.vectors = free_name(name, self.table.column_names)
        flat = pa.array(np.ascontiguousarray(vectors, dtype=np.float32).ravel())
        column = pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])
        self._set_table(self.table.append_column(self.vectors, column))
        self.default_features = [self.vectors]

    def _arrow(self) -> Any:
        return self.table.drop_columns([self.vectors]) if self.vectors else self.table

    def _writer(self, added: dict[str, Any], fill: tuple[str, Column] | None, excel_safe: bool) -> Writer:
        if self.path is None:
            advice = "name a CSV or Parquet file, or write the attribute `adata` of the result with its own method"
            raise TableError(f"{self.origin} cannot be written as .h5ad from here", advice)
        path = self.path
        columns = {name: column.to_pylist() for name, column in added.items()}
        if fill is not None:
            old = self.cells(fill[0])
            columns = {fill[0]: [a if b is None else b for a, b in zip(old, fill[1], strict=True)], **columns}

        def write(stream: BinaryIO) -> None:
            with tempfile.TemporaryDirectory(prefix="otprop-") as folder:
                copy = Path(folder) / "cells.h5ad"  # HDF5 writes in place: all else stays as it is, byte for byte
                shutil.copyfile(path, copy)
                os.chmod(copy, 0o600)
                _add_annotations(copy, columns)
                with copy.open("rb") as file:
                    shutil.copyfileobj(file, stream)

        return write


class CellsFile:
    """An `.h5ad` file, open for reading; what is not asked for stays on disk."""

    def __init__(self, path: str | Path) -> None:
        self.path, self.origin = Path(path), str(path)
        h5py = import_optional("h5py", "anndata")
        if not self.path.is_file():
            what = f"{path} is not a plain file" if self.path.exists() else f"there is no file {self.path}"
            raise TableError(what, file=self.path)
        try:
            self._file = h5py.File(self.path, "r")
        except OSError as error:
            raise file_error(path, f"is not an .h5ad file, or is damaged ({one_line(error)})") from None
        self._n_cells = 0

    def __enter__(self) -> CellsFile:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def table(self) -> CellsTable:
        """The annotations of the cells."""
        if "obs" not in self._file:
            raise file_error(self.origin, "is an HDF5 file without `obs`: it holds no cells")
        with self._reading("obs"):
            obs = member(self._file, "obs")
            old = not hasattr(obs, "keys") or "_index" not in obs.attrs
        if old:
            raise file_error(self.origin, "was written by an old version of anndata", _NEWER)
        with self._reading("obs"):
            names = _column(obs, _text(obs.attrs["_index"]), None).to_pylist()
            order = dict.fromkeys(_text(name) for name in obs.attrs.get("column-order", ()))
            columns = {name: _column(obs, name, len(names)) for name in order}
        self._n_cells = len(names)
        return CellsTable(self.origin, names, columns, path=self.path)

    def representations(self) -> list[str]:
        """The names of the matrices in `obsm` that hold a vector per cell."""
        if "obsm" not in self._file:
            return []
        with self._reading("obsm"):
            found = member(self._file, "obsm")
            return [name for name in getattr(found, "keys", list)() if getattr(member(found, name), "ndim", 0) == 2]

    def graphs(self) -> list[str]:
        """The names of the matrices between the cells, in `obsp`."""
        with self._reading("obsp"):
            return list(member(self._file, "obsp").keys()) if "obsp" in self._file else []

    def matrix(self, part: str, name: str = "") -> Any:
        """`X`, or a matrix of `obsm` or `obsp`, dense or sparse as it is; None where there is no `X`."""
        if part not in self._file:
            return None
        with self._reading(part):
            return _matrix(member(self._file, f"{part}/{name}" if name else part), self._n_cells)

    @contextmanager
    def _reading(self, part: str) -> Iterator[None]:
        """Turn errors of h5py, SciPy and Arrow into one that names the part of the file."""
        try:
            yield
        except (
            *(LookupError, ValueError, TypeError, AttributeError, OSError, RuntimeError, MemoryError),
            pa.ArrowException,
        ) as error:
            raise file_error(self.origin, f": `{part}` cannot be read ({one_line(error)})") from None


def _column(obs: Any, name: str, n_cells: int | None) -> Any:
    """A column of `obs` as an Arrow array."""
    found = member(obs, name)
    if hasattr(found, "keys"):
        if "categories" in found:
            return _categories(member(found, "categories"), member(found, "codes"), n_cells)
        mask = values(member(found, "mask"), n_cells).astype(bool)
        return pa.array(_array(values(member(found, "values"), n_cells)).to_pylist(), mask=mask)
    if "categories" in found.attrs:  # anndata 0.7
        reference = found.attrs["categories"]
        h5py = import_optional("h5py", "anndata")
        if not isinstance(reference, h5py.Reference):
            raise MemberError(f"the categories of {name!r} are not a reference")
        return _categories(obs[reference], found, n_cells)
    return _array(values(found, n_cells))


def _matrix(found: Any, n_cells: int) -> Any:
    """A dense or sparse matrix of numbers with a row per cell; None for a single number."""
    if not hasattr(found, "keys"):
        return None if not found.shape else numbers(found, n_cells)
    kind = _text(found.attrs.get("encoding-type", "")) or f"{_text(found.attrs.get('h5sparse_format', ''))}_matrix"
    shape = found.attrs.get("shape", found.attrs.get("h5sparse_shape"))
    if kind not in ("csr_matrix", "csc_matrix") or shape is None:
        raise MemberError(f"its kind {kind!r} is unknown")
    return sparse_matrix(found, kind, shape, n_cells)


def _categories(categories: Any, codes: Any, n_cells: int | None) -> Any:
    places = values(codes, n_cells)
    if places.dtype.kind not in "iu" or places.ndim != 1:
        raise MemberError("the codes of a column are not whole numbers")
    taken = _array(values(categories)).take(pa.array(np.where(places < 0, 0, places), mask=places < 0))
    return taken.dictionary_encode()


def _array(cells: np.ndarray) -> Any:
    if cells.dtype.kind in "OS":
        return pa.array([_text(cell) for cell in cells], pa.large_string())
    return pa.array(cells, from_pandas=True)


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _add_annotations(path: Path, columns: Mapping[str, list[Any]]) -> None:
    """Add columns to `obs` of a file, or replace them."""
    h5py = import_optional("h5py", "anndata")
    with h5py.File(path, "r+") as file:
        obs = file["obs"]
        order = [_text(name) for name in obs.attrs["column-order"]]
        for name, cells in columns.items():
            if name in obs:
                del obs[name]
            _add_column(h5py, obs, name, cells)
        order += [name for name in columns if name not in order]
        obs.attrs["column-order"] = np.array(order, dtype=h5py.string_dtype())


def _add_column(h5py: Any, obs: Any, name: str, cells: list[Any]) -> None:
    known = [cell for cell in cells if cell is not None]
    if known and all(isinstance(cell, (bool, np.bool_)) for cell in known) and len(known) == len(cells):
        found = obs.create_dataset(name, data=np.array(cells, dtype=bool))
        _encoding(found, "array")
    elif known and all(isinstance(cell, (int, float)) for cell in known):
        whole = len(known) == len(cells) and all(isinstance(cell, int) for cell in known)
        numbers = cells if whole else [np.nan if cell is None else float(cell) for cell in cells]
        _encoding(obs.create_dataset(name, data=np.array(numbers)), "array")
    else:
        texts = pandas.Categorical([None if cell is None else str(cell) for cell in cells])
        group = obs.create_group(name)
        _encoding(group, "categorical")
        group.attrs["ordered"] = False
        _encoding(group.create_dataset("codes", data=texts.codes), "array")
        classes = np.array(texts.categories, dtype=object)
        _encoding(group.create_dataset("categories", data=classes, dtype=h5py.string_dtype()), "string-array")


def _encoding(element: Any, kind: str) -> None:
    element.attrs["encoding-type"], element.attrs["encoding-version"] = kind, "0.2.0"
