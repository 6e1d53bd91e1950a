"""Files of cells: what is written back, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import otprop
from otprop.cli import main
from otprop.files import TableError
from otprop.table.opening import open_table
from tests.files.h5ad import N, content, counts, write_h5ad

h5py = pytest.importorskip("h5py", reason="needs h5py")


def test_the_annotations_come_back_in_the_file_and_all_else_stays(tmp_path, capsys):
    path = write_h5ad(tmp_path / "cells.h5ad", X=sp.csr_matrix(counts()))
    before = path.read_bytes()
    assert main(["label", str(path), "--target", "kind", "--quiet"]) == 0
    assert path.read_bytes() == before
    old, new = content(path), content(tmp_path / "cells.labelled.h5ad")
    assert {name: new[name] for name in old} == old
    added = {name.split("/")[1] for name in set(new) - set(old)}
    assert added == {f"kind_{part}" for part in ("label", "certainty", "confidence", "novelty", "round", "source")}
    with h5py.File(tmp_path / "cells.labelled.h5ad") as file:
        labels = file["obs/kind_label"]
        found = labels["categories"].asstr()[()][labels["codes"][()]]
        assert file["obs"].attrs["column-order"].tolist()[:4] == ["n_genes", "kind", "fresh", "kind_label"]
    assert found.tolist() == ["B", "T"] * (N // 2)


def test_cells_are_written_as_a_table_without_their_vectors(tmp_path):
    path = write_h5ad(tmp_path / "cells.h5ad")
    assert main(["label", str(path), "--target", "kind", "-o", str(tmp_path / "out.csv"), "--quiet"]) == 0
    found = pd.read_csv(tmp_path / "out.csv")
    assert list(found.columns[:5]) == ["cell", "n_genes", "kind", "fresh", "kind_label"]
    assert found["kind_label"].tolist() == ["B", "T"] * (N // 2)


def test_files_that_hold_no_cells_are_refused(tmp_path):
    (tmp_path / "text.h5ad").write_text("no cells")
    with pytest.raises(TableError, match=r"is not an .h5ad file"):
        otprop.label(tmp_path / "text.h5ad", "kind")
    with h5py.File(tmp_path / "other.h5ad", "w") as file:
        file["numbers"] = [1, 2]
    with pytest.raises(TableError, match="holds no cells"):
        otprop.label(tmp_path / "other.h5ad", "kind")
    with h5py.File(tmp_path / "old.h5ad", "w") as file:
        file["obs"] = np.zeros(3, dtype=[("index", "S3"), ("kind", "i1")])
    with pytest.raises(TableError, match="old version of anndata"):
        otprop.label(tmp_path / "old.h5ad", "kind")
    with pytest.raises(TableError, match="there is no file"):
        otprop.label(tmp_path / "gone.h5ad", "kind")


def change(path, edit):
    with h5py.File(path, "r+") as file:
        edit(file)


def replace(group, name, **dataset):
    del group[name]
    group.create_dataset(name, **dataset)


def put(name, place, value):
    """An edit that changes one number of an array."""

    def edit(file):
        array = file[name][()]
        array[place] = value
        file[name][()] = array

    return edit


def external_link(file):
    del file["obs/n_genes"]
    file["obs/n_genes"] = h5py.ExternalLink("other.h5ad", "/obs/n_genes")


def soft_link(file):
    del file["obs/n_genes"]
    file["obs/n_genes"] = h5py.SoftLink("/obs/n_genes")


SPARSE = {"obsm": {}, "X": sp.csr_matrix(np.eye(N, 6) + 1)}


COLUMNS = {"obsm": {}, "X": sp.csc_matrix(np.eye(N, 6) + 1)}


DENSE = {"obsm": {}, "X": np.eye(N, 6)}


HUGE = {"shape": (N, 10**11), "dtype": "f4", "chunks": (1, 1000)}


@pytest.mark.parametrize(
    ("options", "edit", "reason"),
    [
        (SPARSE, put("X/indptr", 5, 10**9), "`X` cannot be read"),
        (SPARSE, put("X/indptr", 5, -7), "`X` cannot be read"),
        (SPARSE, put("X/indices", 5, 2**31 - 1), "`X` cannot be read"),
        (COLUMNS, put("X/indices", 5, -123456), "`X` cannot be read"),
        (COLUMNS, put("X/indptr", 3, 10**9), "`X` cannot be read"),
        (SPARSE, lambda file: file["X"].attrs.modify("shape", (N, 10**12)), "for 40 cells"),
        (SPARSE, lambda file: file["X"].attrs.modify("shape", (10**9, 6)), "for 40 cells"),
        (SPARSE, lambda file: file["X"].attrs.create("shape", "abc"), "`X` cannot be read"),
        (SPARSE, lambda file: replace(file["X"], "data", data=[b"a"] * 240), "holds no numbers"),
        (DENSE, lambda file: replace(file, "X", data=[[b"a"]] * N), "holds no numbers"),
        (DENSE, lambda file: replace(file, "X", **HUGE), "hardly any of it"),
        ({}, lambda file: replace(file["obsm"], "X_pca", **HUGE), "hardly any of it"),
        ({}, lambda file: replace(file["obsm"], "X_pca", data=np.ones((N, 2), complex)), "holds no numbers"),
        ({}, lambda file: replace(file["obs"], "barcode", shape=10**9, dtype="i8", chunks=(100,)), "hardly any of it"),
        ({}, lambda file: replace(file["obs"], "n_genes", data=np.arange(N - 1)), "for 40 cells"),
        ({}, lambda file: replace(file["obs"], "n_genes", data=np.ones((N, 2))), "`obs` cannot be read"),
        ({}, lambda file: replace(file["obs"], "n_genes", data=1), "is not an array"),
        ({}, put("obs/kind/codes", 3, 100), "`obs` cannot be read"),
        ({}, lambda file: replace(file["obs/kind"], "codes", data=np.zeros(N)), "not whole numbers"),
        ({}, lambda file: replace(file["obs/kind"], "codes", data=np.zeros(3, int)), "for 40 cells"),
        ({}, lambda file: replace(file["obs/kind"], "categories", data=[b"a\xff", b"b"]), "`obs` cannot be read"),
        ({}, lambda file: file["obs"].attrs.create("column-order", 5), "`obs` cannot be read"),
        ({}, external_link, "is a link"),
        ({}, soft_link, "is a link"),
    ],
)
def test_a_damaged_or_hostile_file_is_refused_in_one_sentence(tmp_path, options, edit, reason):
    path = write_h5ad(tmp_path / "cells.h5ad", **options)
    change(path, edit)
    with pytest.raises(TableError, match=reason) as caught:
        open_table(path)
    assert "\n" not in str(caught.value)


def test_a_file_of_cells_reads_no_other_file(tmp_path):
    (tmp_path / "secret").write_bytes(b"password" * N)
    path = write_h5ad(tmp_path / "cells.h5ad")
    storage = [(str(tmp_path / "secret"), 0, 8 * N)]
    change(path, lambda file: replace(file["obs"], "n_genes", shape=(N,), dtype="S8", external=storage))
    with pytest.raises(TableError, match="in another file, which is not read"):
        open_table(path)
