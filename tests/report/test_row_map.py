"""The map: which rows are drawn, and where."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from otprop.report.row_map import map_rows, rows_to_draw


def test_few_rows_are_all_drawn() -> None:
    assert rows_to_draw(np.zeros(100, bool)).tolist() == list(range(100))


def test_given_labels_and_asked_rows_are_drawn_and_the_rest_is_a_fair_sample() -> None:
    given = np.arange(100_000) % 100 == 0
    drawn = rows_to_draw(given, always=[7, 99_999], n=5000)
    assert len(drawn) == len(set(drawn)) == 5000
    assert given[drawn].sum() == 1000
    assert {7, 99_999} <= set(drawn.tolist())
    rest = drawn[~given[drawn]]
    counts = np.histogram(rest, bins=10, range=(0, 100_000))[0]
    assert counts.min() > 330  # 400 of each tenth of the file
    assert counts.max() < 470
    assert np.array_equal(drawn, rows_to_draw(given, always=[7, 99_999], n=5000))


def test_too_many_given_labels_are_sampled_too() -> None:
    drawn = rows_to_draw(np.arange(50_000) < 40_000, n=3000, n_given=1000)
    assert len(drawn) == 3000
    assert (drawn < 40_000).sum() == 1000


def test_pca_keeps_the_distances_of_rows_in_a_plane() -> None:
    rng = np.random.default_rng(0)
    flat = rng.normal(size=(60, 2))
    X = flat @ np.linalg.qr(rng.normal(size=(7, 2)))[0].T
    points = map_rows(X, np.arange(60))
    assert np.allclose(np.linalg.norm(points[0] - points, axis=1), np.linalg.norm(flat[0] - flat, axis=1))


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1), (2, 2), (30, 4)])
@pytest.mark.parametrize("sparse", [False, True])
def test_any_shape_has_a_place_for_every_row(shape: tuple[int, int], sparse: bool) -> None:
    X = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    points = map_rows(csr_matrix(X) if sparse else X, np.arange(shape[0]))
    assert points.shape == (shape[0], 2)
    assert np.isfinite(points).all()


def test_rows_that_are_all_the_same_have_a_place() -> None:
    assert np.isfinite(map_rows(np.ones((20, 3)), np.arange(20))).all()


def test_an_unknown_way_is_refused() -> None:
    with pytest.raises(ValueError, match="map is 'tsne'"):
        map_rows(np.eye(3), np.arange(3), how="tsne")


def test_without_umap_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(ImportError, match=r"pip install '\.\[umap\]'"):
        map_rows(np.eye(30), np.arange(30), how="umap")


def test_umap_places_every_row() -> None:
    if find_spec("umap") is None:
        pytest.skip("umap-learn is not installed")
    script = (
        "import numpy as np; from otprop.report.row_map import map_rows; "
        "X = np.random.default_rng(0).random((40, 4)); "
        "points = map_rows(X, np.arange(40), how='umap'); assert points.shape == (40, 2); "
        "assert np.isfinite(points).all() and np.ptp(points, axis=0).min() > 0"
    )
    plain = os.environ | {"NUMBA_DISABLE_JIT": "1"}  # compiling takes most of a minute
    subprocess.run([sys.executable, "-c", script], env=plain, check=True, capture_output=True)
