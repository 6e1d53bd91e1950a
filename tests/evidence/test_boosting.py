"""Boosted trees as a source."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from otprop.evidence import boosting as module
from otprop.evidence.boosting import BoostingSource, boosting_pays
from otprop.evidence.held_out import make_folds
from otprop.evidence.scaling import ScaledRows


def table(n_rows=240, n_classes=2, seed=0):
    """Classes that two columns of six decide, two thirds of the rows labelled."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 6))
    truth = np.digitize(X[:, 1] + X[:, 4], np.linspace(-1, 1, n_classes + 1)[1:-1])
    return X, np.where(np.arange(n_rows) < 2 * n_rows // 3, truth, -1), truth


def ask(X, codes, n_classes):
    hidden = make_folds(codes, n_classes, 0)
    source = BoostingSource(ScaledRows.of(X), n_classes, 0)
    return source, hidden, source.fit(codes, np.ones(len(X)), hidden)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_it_says_probabilities_of_every_row_and_of_the_hidden_ones(n_classes):
    X, codes, truth = table(n_classes=n_classes)
    source, hidden, says = ask(X, codes, n_classes)
    for logs in (says.rows, says.held_out):
        np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1, rtol=1e-5)
    assert (says.rows.argmax(axis=1) == truth)[codes < 0].mean() > 0.7
    assert (says.held_out.argmax(axis=1) == hidden.codes).mean() > 0.7
    np.testing.assert_allclose(source.predict_log_proba(X), says.rows, rtol=1e-4)


def test_labels_at_random_are_not_known_in_advance():
    rng = np.random.default_rng(3)
    codes = rng.permutation(np.arange(200) % 2)
    _, hidden, says = ask(rng.normal(size=(200, 3)), codes, 2)
    right = (says.held_out.argmax(axis=1) == hidden.codes).mean()
    assert 0.35 < right < 0.65  # four standard deviations around a half; whoever saw the labels knows most of them


def test_it_is_the_same_with_any_number_of_threads():
    X, codes, _ = table()
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.append(ask(X, codes, 2)[2])
    np.testing.assert_array_equal(found[0].rows, found[1].rows)
    np.testing.assert_array_equal(found[0].held_out, found[1].held_out)


@pytest.mark.parametrize("scale", [1.0, 1e150, 1e-150])
def test_any_scale_and_constant_columns(scale):
    X, codes, truth = table()
    X = np.column_stack([X * scale, np.full(len(X), 7.0)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, _, says = ask(X, codes, 2)
    assert (says.rows.argmax(axis=1) == truth).mean() > 0.8


def test_of_many_labels_some_are_enough(monkeypatch):
    monkeypatch.setattr(module, "MAX_TRAINED", 60)
    X, codes, truth = table()
    _, _, says = ask(X, codes, 2)
    assert (says.rows.argmax(axis=1) == truth).mean() > 0.7


def test_a_class_that_a_fold_hides_is_not_excluded():
    X, codes, _ = table()
    codes = np.where((codes == 1) & (np.arange(len(X)) > 8), -1, codes)
    _, _, says = ask(X, codes, 3)
    assert np.isfinite(says.rows).all()
    assert np.isfinite(says.held_out).all()


def test_it_speaks_where_it_pays():
    X = np.empty((1000, 10))
    assert boosting_pays(151, 2, X)
    assert not boosting_pays(150, 2, X)  # a forest with thorough trees is as good
    assert boosting_pays(151, 9, X)
    assert not boosting_pays(500, 10, X)
    assert not boosting_pays(500, 9, np.empty((1000, 300)))  # 300 columns for each of 9 classes: too long
    assert not boosting_pays(500, 2, sp.csr_array((1000, 10)))


def test_with_many_labels_three_trainings_serve_the_hidden_rows(monkeypatch):
    trained = []
    train = BoostingSource._train
    monkeypatch.setattr(BoostingSource, "_train", lambda self, *given: trained.append(0) or train(self, *given))
    for n_rows, n_trainings in ((210, 6), (240, 4)):
        trained.clear()
        X, codes, _ = table(n_rows)
        ask(X, codes, 2)
        assert len(trained) == n_trainings
