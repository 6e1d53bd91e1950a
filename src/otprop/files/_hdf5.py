"""Members of an HDF5 file from anywhere: of this file alone, and not larger in memory than the file can mean."""

from __future__ import annotations

from typing import Any

import numpy as np

from otprop._errors import OtpropError
from otprop.files._optional import import_optional

SMALL = 2**28  # bytes that are read whatever the file says
TIMES_STORED = 200  # bytes in memory for each on disk, above that
MAX_COLUMNS = 10_000_000


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
    """All values of a dataset of at least one dimension.

    Parameters
    ----------
    dataset : h5py.Dataset
    n_rows : int or None, the length that it must have

    Returns
    -------
    ndarray
    """
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
