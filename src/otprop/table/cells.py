"""Cells of biology as rows: the vector of a cell is a representation of `obsm`, or its expression, reduced."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from otprop.files._cells import CellsFile, CellsTable
from otprop.table.errors import Hint, RequestError, unknown_name
from otprop.table.frame import arrow_of_frame

USUAL = "X_pca"
EXPRESSION = "X"
DISTANCES = "distances"  # scanpy's name of a matrix that is not one of affinities
TOTAL = 1e4  # counts per cell after normalisation
MAX_GENES, MAX_PARTS = 2000, 50
_LOOKED_AT = 100_000  # values that tell counts from other numbers
_FAR = 1e12  # numbers beyond this, and below its inverse, are scaled


def is_cells_file(source: Any) -> bool:
    """Whether this names an `.h5ad` file."""
    return isinstance(source, (str, os.PathLike)) and Path(source).suffix.lower() == ".h5ad"


def is_anndata(data: Any) -> bool:
    """Whether this is an AnnData object."""
    return type(data).__module__.partition(".")[0] == "anndata" and hasattr(data, "obsm")


def read_cells(path: str | os.PathLike[str], use_rep: str | None = None, graph: str | None = None) -> CellsTable:
    """The cells of an `.h5ad` file; of its matrices, only those that are used are read.

    `use_rep` is the matrix of `obsm` with the vectors, or "X"; None for "X_pca" where there is one, else "X".
    `graph` is the matrix of `obsp` with the affinities between the cells, if one is to be used.
    """
    with CellsFile(Path(path)) as file:
        table = file.table()
        _choose(table, use_rep, file.representations(), partial(file.matrix, "obsm"), partial(file.matrix, "X"))
        _choose_graph(table, graph, file.graphs(), partial(file.matrix, "obsp"))
    return table


def table_of_cells(adata: Any, use_rep: str | None = None, graph: str | None = None) -> CellsTable:
    """The cells of an AnnData object; `use_rep` and `graph` as in `read_cells`."""
    whole = arrow_of_frame(adata.obs, [])
    columns = dict(zip(whole.column_names, whole.columns, strict=True))
    table = CellsTable("the AnnData object", [str(name) for name in adata.obs_names], columns, adata=adata)
    known = [name for name, matrix in adata.obsm.items() if getattr(matrix, "ndim", 0) == 2]
    _choose(table, use_rep, known, lambda name: adata.obsm[name], lambda: adata.X)
    _choose_graph(table, graph, list(adata.obsp), lambda name: adata.obsp[name])
    return table


def with_annotations(adata: Any, obs: Any) -> Any:
    """An AnnData object with another `obs`, which shares all else with the one that is given."""
    if adata.isbacked:
        raise RequestError("data", "is backed by a file; take the columns from `table`, or label the file itself.")
    if adata.is_view:  # whose matrices are copied at each access
        adata = adata.copy()
    texts = [name for name in obs.columns if name not in adata.obs and obs[name].dtype.kind not in "biufmM"]
    obs = obs.astype(dict.fromkeys(texts, "category"))  # as anndata writes text
    parts = ("obsm", "varm", "obsp", "varp", "layers")
    shared = {part: dict(getattr(adata, part)) for part in parts}
    shared["layers"].pop(None, None)  # which is X, from anndata 0.13 on
    made = type(adata)(X=adata.X, obs=obs, var=adata.var, uns=adata.uns, **shared)
    if adata.raw is not None:
        made.raw = adata
        made.raw._X, made.raw._var, made.raw._varm = adata.raw._X, adata.raw._var, adata.raw._varm
    return made


def _choose(table: CellsTable, use_rep: str | None, known: list[str], matrix: Any, expression: Any) -> None:
    """Give the table the vectors that were asked for, or those that there are."""
    name = use_rep or (USUAL if USUAL in known else EXPRESSION)
    if name in known:
        vectors = _checked(matrix(name), name, table)
    elif name == EXPRESSION:
        vectors = _reduced(expression(), table)
        if use_rep is None and known:
            there = f"the cells are compared by their expression; `obsm` has {', '.join(known)}, to be named with "
            table.notes.append(Hint(there, "use_rep"))
    else:
        raise RequestError("use_rep", unknown_name("matrix", name, [*known, EXPRESSION]), name)
    if vectors.shape[0] != table.n_rows or not vectors.shape[1]:
        raise RequestError("use_rep", f"has the shape {vectors.shape} for {table.n_rows} cells.", name)
    table.set_vectors(name, vectors)


def _choose_graph(table: CellsTable, name: str | None, known: list[str], matrix: Any) -> None:
    """Give the table the graph that was asked for."""
    if name is None:
        return
    if DISTANCES in name:
        raise RequestError("graph", "holds distances; name affinities, such as 'connectivities'.", name)
    if name not in known:
        if not known:
            why = f"{table.origin} has no matrix in `obsp`; scanpy.pp.neighbors makes 'connectivities'."
            raise RequestError("graph", why, name)
        raise RequestError("graph", unknown_name("matrix of `obsp`", name, known), name)
    graph = matrix(name)
    if graph.shape != (table.n_rows, table.n_rows) or graph.dtype.kind not in "fiub":
        raise RequestError("graph", f"must be a matrix of numbers between the {table.n_rows} cells.", name)
    table.graph = graph


def _checked(matrix: Any, name: str, table: CellsTable) -> np.ndarray:
    """The vectors of a representation; a note says how many cells have none."""
    found = matrix.toarray() if hasattr(matrix, "toarray") else np.asarray(matrix)
    if found.dtype.kind not in "fiub":
        raise RequestError("use_rep", "holds no numbers; name another matrix.", name)
    with np.errstate(over="ignore"):
        vectors = np.asarray(found, dtype=np.float32)
    n_odd = int((~np.isfinite(vectors)).any(axis=1).sum()) if vectors.ndim == 2 else 0
    if n_odd and n_odd == len(vectors):
        raise RequestError("use_rep", "holds infinity or NaN in every row; name another matrix.", name)
    if n_odd:
        table.notes.append(f"{n_odd} of {len(vectors)} cells have infinity or NaN in {name}, which counts as missing")
    return vectors


def _reduced(X: Any, table: CellsTable) -> np.ndarray:
    """The main directions of the most variable genes; counts are normalised per cell, and their logarithms taken."""
    import scipy.sparse as sp
    from sklearn.decomposition import PCA

    if X is None or X.ndim != 2 or not X.shape[1]:
        raise RequestError("use_rep", f"must name the vectors of the cells: {table.origin} has no X.")
    sparse = sp.issparse(X)
    if X.dtype.kind not in "fiub":
        raise RequestError("use_rep", f"must name the vectors of the cells: X of {table.origin} holds no numbers.")
    with np.errstate(over="ignore"):
        X = sp.csr_matrix(X, dtype=np.float32) if sparse else np.array(X, dtype=np.float32)
    values = X.data if sparse else X.ravel()
    if not np.isfinite(values).all():
        raise RequestError("use_rep", f"must name other vectors: X of {table.origin} holds infinity or NaN.")
    done = "as it is"
    largest = float(np.abs(values).max(initial=0.0))
    if largest > _FAR or 0 < largest < 1 / _FAR:  # squares of single precision must stay finite
        X = X * np.float32(1 / largest) if largest > _FAR else X / np.float32(largest)
        values = X.data if sparse else X.ravel()
    some = values[:: max(1, len(values) // _LOOKED_AT)]
    if len(some) and (some >= 0).all() and (some == np.floor(some)).all() and some.max() > 1:
        X, done = _normalised(X), "counts, normalised per cell, as logarithms"
    mean = np.asarray(X.mean(axis=0)).ravel()
    variance = np.asarray((X.multiply(X) if sparse else X**2).mean(axis=0)).ravel() - mean**2
    genes = np.sort(np.argsort(-variance, kind="stable")[:MAX_GENES])
    width = min(MAX_PARTS, X.shape[0] - 1, len(genes) - 1)
    table.notes.append(f"X ({done}): {len(genes)} genes in {max(width, 1)} dimensions")
    if width < 1 or not variance.any():
        return X[:, genes[:1]].toarray() if sparse else X[:, genes]
    solver = {"svd_solver": "arpack"} if sparse else {}
    return np.asarray(PCA(width, random_state=0, **solver).fit_transform(X[:, genes]), dtype=np.float32)


def _normalised(X: Any) -> Any:
    """Logarithms of counts, after each cell was given the same total."""
    from sklearn.preprocessing import normalize

    X = normalize(X, norm="l1") * np.float32(TOTAL)
    return X.log1p() if hasattr(X, "log1p") else np.log1p(X)
