"""A geometry is prepared once for a table and used by any fit of it."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_blobs
from sklearn.metrics import pairwise_distances

from otprop import OTP, FitCancelledError, Geometry


@pytest.fixture(scope="module")
def blobs():
    X, y = make_blobs([60] * 3, centers=2 * np.eye(3), random_state=0)
    shown = np.full(len(y), -1)
    shown[::8] = y[::8]
    return X, shown


@pytest.mark.parametrize("cost", ["diffusion", "sqeuclidean", "graph", "precomputed"])
@pytest.mark.parametrize("label_noise", [None, "auto"])
@pytest.mark.filterwarnings("ignore:.* given labels are doubtful")
def test_a_fit_with_a_prepared_geometry_is_that_without(blobs, cost, label_noise):
    X, y = blobs
    if cost in ("graph", "precomputed"):
        X = pairwise_distances(X)
        X = np.exp(-X) if cost == "graph" else X
    geometry = OTP(cost).prepare(X)
    assert isinstance(geometry, Geometry)
    for labels in (y, np.where(np.arange(len(y)) % 3, y, -1)):
        model = OTP(cost, label_noise=label_noise).fit(X, labels, geometry=geometry)
        fresh = OTP(cost, label_noise=label_noise).fit(X, labels)
        assert model.reused_
        np.testing.assert_array_equal(model.label_distributions_, fresh.label_distributions_)
        np.testing.assert_array_equal(model.predict_proba(X[:9]), fresh.predict_proba(X[:9]))


def test_neighbours_are_not_searched_again(blobs, monkeypatch):
    X, y = blobs
    geometry = OTP().prepare(X)
    monkeypatch.setattr("otprop.propagation.class_level.build_geometry", None)
    assert OTP(evidence=None).fit(X.copy(), y, geometry=geometry).reused_ == ("neighbours", "graphs", "scales")


@pytest.mark.parametrize("change", [{"metric": "manhattan"}, {"n_neighbors": 5}, {"cost": "sqeuclidean"}])
def test_a_geometry_of_other_parameters_is_refused(blobs, change):
    X, y = blobs
    with pytest.raises(ValueError, match="geometry was prepared for another X, cost, metric or n_neighbors"):
        OTP(**change).fit(X, y, geometry=OTP().prepare(X))


def test_a_geometry_of_other_rows_is_refused(blobs):
    X, y = blobs
    geometry = OTP().prepare(X)
    for other in (X + 1e-3, X[:, :2], sp.csr_array(X)):
        with pytest.raises(ValueError, match="geometry was prepared for another X"):
            OTP().fit(other, y, geometry=geometry)
    with pytest.raises(ValueError, match=r"geometry must be what prepare\(X\) returns"):
        OTP().fit(X, y, geometry="diffusion")


def test_labels_spread_over_a_graph_that_was_passed():
    """Two rings that the graph knows and the features do not."""
    X, n = np.random.default_rng(0).normal(size=(40, 3)), 40
    graph = np.roll(np.eye(n), 2, axis=1) + np.roll(np.eye(n), -2, axis=1)
    y = np.full(n, -1)
    y[[0, 20]], y[[1, 21]] = 0, 1
    model = OTP(evidence=None, warm_start=True)
    model.fit(X, y, geometry=model.prepare(X, graph=graph))
    np.testing.assert_array_equal(model.transduction_, np.arange(n) % 2)
    np.testing.assert_array_equal(model.predict(X[:10]), np.arange(10) % 2)
    assert model.predict_proba(np.zeros((1, 3))).shape == (1, 2)
    assert model.fit(X, y).reused_ == ()  # the graph is not kept for a fit that does not name it
    with pytest.raises(ValueError, match=r"graph must have the shape \(40, 40\)"):
        model.prepare(X, graph=graph[:3])
    with pytest.raises(ValueError, match="graph needs cost='diffusion'"):
        OTP("sqeuclidean").prepare(X, graph=graph)


def test_prepare_reports_its_progress_can_be_cancelled_and_leaves_the_estimator_as_it_was(blobs):
    X, _ = blobs
    model, steps = OTP(), []
    before = set(vars(model))
    model.set_progress(lambda done, total, step: steps.append(step)).prepare(X)
    assert set(steps) == {"neighbours"}
    assert set(vars(model)) - {"_on_progress"} == before
    model.set_progress(lambda done, total, step: model.cancel())
    with pytest.raises(FitCancelledError):
        model.prepare(np.random.default_rng(0).normal(size=(3000, 30)))


def test_prepare_refuses_what_fit_refuses(blobs):
    X, _ = blobs
    with pytest.raises(ValueError, match="n_neighbors must be"):
        OTP(n_neighbors=0).prepare(X)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        OTP().prepare([[np.nan], [1.0]])
    with pytest.raises(ValueError, match="square matrix of costs"):
        OTP("precomputed").prepare(X)
