"""Fitting again with other labels: cheaper, and equal to a fresh fit."""

from __future__ import annotations

import pickle
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris

from otprop import OTP, FitCancelledError


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X, y


def labels(y, n, seed):
    rows = np.random.default_rng(seed).permutation(len(y))[:n]
    shown = np.full(len(y), -1)
    shown[rows] = y[rows]
    return shown


def equal(one, other):
    for name in ("transduction_", "label_distributions_", "confidence_", "certainty_", "round_", "class_prior_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


@pytest.mark.parametrize("cost", ["diffusion", "sqeuclidean"])
def test_any_sequence_of_labels_added_changed_and_removed_gives_what_fresh_fits_give(iris, cost):
    X, y = iris
    model = OTP(cost=cost, warm_start=True)
    for step, n in enumerate((12, 20, 15, 30)):
        shown = labels(y, n, seed=step)
        shown[np.flatnonzero(shown >= 0)[0]] = step % 3  # a label that may be wrong
        model.fit(X, shown)
        assert bool(model.reused_) == (step > 0)
        fresh = OTP(cost=cost).fit(X, shown)
        equal(model, fresh)
        np.testing.assert_array_equal(model.predict_proba(X + 0.1), fresh.predict_proba(X + 0.1))


def test_the_neighbours_are_found_once(iris, monkeypatch):
    X, y = iris
    model = OTP(warm_start=True).fit(X, labels(y, 12, 0))
    monkeypatch.setattr("otprop.propagation.class_level.build_geometry", None)
    model.fit(X.copy(), labels(y, 20, 1))
    assert model.reused_ == ("neighbours", "graphs", "scales")


def test_another_table_or_metric_is_noticed(iris):
    X, y = iris
    model = OTP(warm_start=True).fit(X, labels(y, 12, 0))
    changed = X.copy()
    changed[0, 0] += 1
    model.fit(changed, labels(y, 12, 0))
    assert model.reused_ == ()
    equal(model, OTP().fit(changed, labels(y, 12, 0)))
    model.set_params(metric="manhattan").fit(changed, labels(y, 12, 0))
    assert model.reused_ == ()


def test_without_warm_start_nothing_is_kept(iris):
    X, y = iris
    model = OTP().fit(X, labels(y, 12, 0)).fit(X, labels(y, 20, 0))
    assert model.reused_ == ()


def test_sparse_tables_are_recognised_too(iris):
    X, y = iris
    model = OTP(warm_start=True).fit(sp.csr_array(X), labels(y, 12, 0)).fit(sp.csr_array(X), labels(y, 20, 0))
    assert model.reused_
    equal(model, OTP().fit(sp.csr_array(X), labels(y, 20, 0)))


def test_copies_do_not_carry_what_is_kept(iris):
    X, y = iris
    warm, plain = OTP(warm_start=True), OTP()
    for model in (warm, plain):
        model.fit(X, labels(y, 12, 0))
    assert len(pickle.dumps(warm)) < 1.01 * len(pickle.dumps(plain))
    assert not hasattr(clone(warm), "reused_")


def test_a_fit_can_be_cancelled_from_another_thread_and_run_again(iris):
    X, y = iris
    shown = labels(y, 12, 0)
    model = OTP(warm_start=True)
    assert model.cancel() is False  # nothing runs
    steps = []

    def on_progress(done, total, step):
        steps.append(step)
        if step == "source forest":
            thread = threading.Thread(target=model.cancel)
            thread.start()
            thread.join()
            assert model.cancel() is True  # twice does no harm

    with pytest.raises(FitCancelledError, match="cancelled before the step 'source linear'"):
        model.set_progress(on_progress).fit(X, shown)
    assert not hasattr(model, "transduction_")
    assert steps[-1] == "source forest"
    model.set_progress(None).fit(X, shown)
    assert model.reused_  # the neighbours of the cancelled fit
    equal(model, OTP().fit(X, shown))
