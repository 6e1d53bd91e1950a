"""Files of cells: made, changed and read back."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

h5py = pytest.importorskip("h5py", reason="needs h5py")

N = 40


def write_matrix(place, name, matrix):
    if not sp.issparse(matrix):
        place.create_dataset(name, data=matrix)
        return
    group = place.create_group(name)
    group.attrs.update({"encoding-type": f"{matrix.format}_matrix", "shape": matrix.shape})
    for part in ("data", "indices", "indptr"):
        group.create_dataset(part, data=getattr(matrix, part))


def write_h5ad(path, *, X=None, obsm=None, obsp=None, kinds=None):
    """A file as anndata 0.8 and later writes it, with cells of two kinds by turns."""
    vectors = np.random.default_rng(0).normal(size=(N, 5)) + 6 * (np.arange(N) % 2)[:, None]
    codes = np.array([*([0, 1] * 4), *[-1] * (N - 8)], dtype=np.int8) if kinds is None else kinds
    with h5py.File(path, "w") as file:
        file.attrs["encoding-type"] = "anndata"
        obs = file.create_group("obs")
        obs.attrs.update({"_index": "barcode", "encoding-type": "dataframe", "encoding-version": "0.2.0"})
        obs.attrs["column-order"] = np.array(["n_genes", "kind", "fresh"], dtype=h5py.string_dtype())
        names = np.array([f"cell-{number}" for number in range(len(codes))], dtype=object)
        obs.create_dataset("barcode", data=names, dtype=h5py.string_dtype())
        obs.create_dataset("n_genes", data=np.arange(len(codes)))
        fresh = obs.create_group("fresh")
        fresh.create_dataset("values", data=np.arange(len(codes)) % 2 == 0)
        fresh.create_dataset("mask", data=np.arange(len(codes)) % 3 == 0)
        kind = obs.create_group("kind")
        kind.attrs["encoding-type"] = "categorical"
        kind.create_dataset("codes", data=codes)
        kind.create_dataset("categories", data=np.array(["B", "T"], dtype=object), dtype=h5py.string_dtype())
        matrices = file.create_group("obsm")
        for name, matrix in ({"X_pca": vectors} if obsm is None else obsm).items():
            matrices.create_dataset(name, data=matrix)
        if obsp is not None:
            between = file.create_group("obsp")
            for name, matrix in obsp.items():
                write_matrix(between, name, matrix)
        if X is not None:
            write_matrix(file, "X", X)
    return path


def content(path):
    """Every value of a file by its path."""
    found = {}

    def visit(name, element):
        found[name] = element[()].tolist() if isinstance(element, h5py.Dataset) else None

    with h5py.File(path) as file:
        file.visititems(visit)
    return found


def counts(n_genes=60):
    rng = np.random.default_rng(0)
    rates = np.where(np.arange(N)[:, None] % 2 == np.arange(n_genes)[None, :] % 2, 4.0, 0.3)
    return rng.poisson(rates * rng.uniform(1, 5, (N, 1)))
