"""Cells of biology: `.h5ad` files and AnnData objects."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import otprop
from otprop.cli import main
from otprop.files import TableError
from otprop.table.errors import RequestError
from otprop.table.opening import open_table
from tests.files.h5ad import N, counts, write_h5ad

h5py = pytest.importorskip("h5py", reason="needs h5py")
pytestmark = pytest.mark.filterwarnings("ignore:The '.*' option is deprecated")  # anndata sets options of pandas


def test_labels_can_go_into_the_annotation_itself(tmp_path):
    path = write_h5ad(tmp_path / "cells.h5ad")
    out = tmp_path / "out.h5ad"
    assert main(["label", str(path), "--target", "kind", "--fill", "-o", str(out), "--quiet"]) == 0
    assert open_table(out).cells("kind").tolist() == ["B", "T"] * (N // 2)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix, sp.csc_matrix], ids=["dense", "csr", "csc"])
def test_expression_is_used_where_there_is_no_representation(tmp_path, make):
    path = write_h5ad(tmp_path / "cells.h5ad", X=make(counts().astype(np.float32)), obsm={})
    result = otprop.label(path, "kind")
    assert result.table["kind_label"].tolist() == ["B", "T"] * (N // 2)
    assert any("normalised per cell" in note for note in result.notes)


def test_only_the_representation_counts_unless_more_is_asked_for(tmp_path):
    path = write_h5ad(tmp_path / "cells.h5ad")
    job = otprop.label(path, "kind").job
    assert [use.name for use in job.columns if not use.skipped] == ["X_pca"]
    job = otprop.label(path, "kind", features=["n_genes", "X_pca"]).job
    assert [use.role for use in job.columns if use.name == "X_pca"] == ["embedding"]


@pytest.mark.parametrize(
    ("options", "use_rep", "reason"),
    [
        ({}, "X_scvi", "there is no matrix 'X_scvi'"),
        ({"obsm": {}}, None, "has no X"),
        ({"obsm": {}, "X": np.full((N, 3), np.nan)}, None, "infinity or NaN"),
        ({"kinds": np.array([], dtype=np.int8)}, None, "has no cells"),
        ({"obsm": {"X_pca": np.zeros((3, 2))}}, None, r"has the shape \(3, 2\) for 40 cells"),
    ],
    ids=["unknown", "nothing", "not finite", "no cells", "other cells"],
)
def test_cells_without_vectors_are_refused(tmp_path, options, use_rep, reason):
    path = write_h5ad(tmp_path / "cells.h5ad", **options)
    with pytest.raises(ValueError, match=reason):
        otprop.label(path, "kind", use_rep=use_rep)


def test_a_representation_is_only_for_cells():
    frame = pd.DataFrame({"size": [1.0, 2.0], "kind": ["a", None]})
    with pytest.raises(RequestError, match="use_rep"):
        otprop.label(frame, "kind", use_rep="X_pca")
    with pytest.raises(RequestError, match="graph"):
        otprop.label(frame, "kind", graph="connectivities")


def same_kind():
    """A graph that links each cell to the next two of its kind."""
    steps = sp.diags_array([np.ones(N - 2), np.ones(N - 4)], offsets=[2, 4], shape=(N, N))
    return sp.csr_matrix(steps + steps.T)


def test_labels_spread_over_a_graph_of_the_file(tmp_path):
    noise = {"X_pca": np.random.default_rng(0).normal(size=(N, 5))}
    path = write_h5ad(tmp_path / "cells.h5ad", obsm=noise, obsp={"connectivities": same_kind()})
    out = tmp_path / "out.csv"
    words = ["--target", "kind", "--graph", "connectivities", "-o", str(out), "--quiet", "--set", "evidence=None"]
    assert main(["label", str(path), *words]) == 0
    assert pd.read_csv(out)["kind_label"].tolist() == ["B", "T"] * (N // 2)
    result = otprop.label(path, "kind", graph="connectivities")
    assert {setting["n_neighbors"] for setting in result.estimator.settings_} == {None}
    assert len(result.predict(path)) == N


@pytest.mark.parametrize(
    ("obsp", "options", "reason"),
    [
        (None, {}, "has no matrix in `obsp`; scanpy.pp.neighbors makes"),
        ({"mine": np.eye(N)}, {}, "there is no matrix of `obsp` 'connectivities'; there are 'mine'"),
        ({"connectivities": np.ones((N, 3))}, {}, "must be a matrix of numbers between the 40 cells"),
        ({"connectivities": -np.ones((N, N))}, {}, "holds the negative affinity -1.0"),
        ({"connectivities": np.eye(N)}, {"graph": "distances"}, "holds distances; name affinities"),
        ({"connectivities": np.eye(N)}, {"method": "otp-paper"}, "graph needs the method otp"),
        ({"connectivities": np.eye(N)}, {"settings": {"cost": "sqeuclidean"}}, "graph needs cost='diffusion'"),
    ],
    ids=["none", "unknown", "shape", "negative", "distances", "paper", "cost"],
)
def test_a_graph_that_cannot_be_used_is_refused(tmp_path, obsp, options, reason):
    path = write_h5ad(tmp_path / "cells.h5ad", obsp=obsp)
    with pytest.raises(ValueError, match=reason):
        otprop.label(path, "kind", **{"graph": "connectivities", **options})


@pytest.fixture
def adata():
    anndata = pytest.importorskip("anndata", reason="needs anndata")
    kinds = pd.Categorical([*(["B", "T"] * 4), *[None] * (N - 8)])
    obs = pd.DataFrame({"kind": kinds}, index=[f"cell-{number}" for number in range(N)])
    made = anndata.AnnData(sp.csr_matrix(counts().astype(np.float32)), obs=obs)
    made.obsm["X_pca"] = np.random.default_rng(0).normal(size=(N, 5)) + 6 * (np.arange(N) % 2)[:, None]
    made.obsp["connectivities"], made.layers["raw"] = same_kind(), made.X.copy()
    made.uns["note"], made.raw = "kept", made
    return made


def test_an_anndata_object_comes_back_with_annotations(adata):
    result = otprop.label(adata, "kind", use_rep="X_pca")
    assert list(adata.obs.columns) == ["kind"]
    found = result.adata
    assert found.obs["kind_label"].tolist() == ["B", "T"] * (N // 2)
    assert found.obs_names.tolist() == adata.obs_names.tolist()
    assert found.X is adata.X
    assert found.raw.X is adata.raw.X
    assert found.uns["note"] == "kept"
    assert found.obsp["connectivities"] is adata.obsp["connectivities"]
    assert found.layers["raw"] is adata.layers["raw"]
    assert {str(found.obs[name].dtype) for name in ("kind", "kind_label", "kind_source")} == {"category"}
    assert result.add({"cell-9": "B"}).adata.obs.loc["cell-9", "kind_source"] == "corrected"
    with pytest.raises(TableError, match="has the ending of a file of cells"):
        result.write("out.h5ad")


def test_a_view_of_an_anndata_object_is_labelled_like_the_object(adata):
    found = otprop.label(adata[:30], "kind", graph="connectivities").adata
    assert found.obs["kind_label"].tolist() == ["B", "T"] * 15
    assert found.obsp["connectivities"].shape == (30, 30)
    with pytest.raises(TableError, match="has no cells"):
        otprop.label(adata[:0], "kind")


def test_cells_to_label_next_have_their_names(adata):
    for found in (otprop.suggest(adata, "kind", n=3), otprop.label(adata, "kind").suggest(3)):
        assert set(found.index) < set(adata.obs_names)
        assert list(found.columns) == ["reason", "kind", "file_digest"]


def test_an_anndata_object_and_its_file_get_the_same_labels(adata, tmp_path):
    adata.write_h5ad(tmp_path / "cells.h5ad")
    result = otprop.label(tmp_path / "cells.h5ad", "kind")
    result.write(tmp_path / "out.h5ad")
    anndata = pytest.importorskip("anndata", reason="needs anndata")
    found, expected = anndata.read_h5ad(tmp_path / "out.h5ad"), otprop.label(adata, "kind").adata
    pd.testing.assert_frame_equal(found.obs, expected.obs, check_dtype=False, check_categorical=False)
    assert (found.X != adata.X).nnz == 0


def test_a_backed_anndata_object_is_read_and_not_copied(adata, tmp_path):
    adata.write_h5ad(tmp_path / "cells.h5ad")
    anndata = pytest.importorskip("anndata", reason="needs anndata")
    result = otprop.label(anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r"), "kind")
    assert result.table["kind_label"].tolist() == ["B", "T"] * (N // 2)
    with pytest.raises(RequestError, match="is backed by a file"):
        _ = result.adata


@pytest.mark.parametrize("scale", [1e30, 1e-30])
def test_expression_of_any_scale_gives_the_same_directions(tmp_path, scale):
    X = np.random.default_rng(0).normal(size=(N, 6))
    plain, scaled = (
        np.stack(open_table(write_h5ad(tmp_path / f"{number}.h5ad", obsm={}, X=X * factor)).cells("X"))
        for number, factor in enumerate((1.0, scale))
    )
    plain, scaled = (vectors.astype(np.float64) / np.abs(vectors).max() for vectors in (plain, scaled))
    np.testing.assert_allclose(np.abs(scaled), np.abs(plain), atol=1e-3)


def test_cells_whose_vectors_are_not_finite_are_counted_and_all_are_refused(tmp_path):
    vectors = np.ones((N, 2))
    vectors[:3, 0] = np.nan, np.inf, 1e300
    found = open_table(write_h5ad(tmp_path / "some.h5ad", obsm={"X_pca": vectors}))
    assert found.notes == ["3 of 40 cells have infinity or NaN in X_pca, which counts as missing"]
    with pytest.raises(RequestError, match="in every row"):
        open_table(write_h5ad(tmp_path / "all.h5ad", obsm={"X_pca": vectors * np.nan}))


def test_expression_without_a_count_is_constant(tmp_path):
    path = write_h5ad(tmp_path / "cells.h5ad", obsm={}, X=sp.csr_matrix((N, 6)))
    with pytest.raises(ValueError, match=r"'X' \(constant\)"):
        otprop.label(path, "kind")
