"""Normal distributions of the classes as a source."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import softmax
from scipy.stats import multivariate_normal
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from threadpoolctl import threadpool_limits

from otprop import OTP
from otprop.evidence import gaussian as module
from otprop.evidence.gaussian import COVARIANCES, GaussianModel, GaussianSource, Moments, fit_em, gaussian_pays
from otprop.evidence.held_out import make_folds
from otprop.evidence.scaling import ScaledRows
from otprop.evidence.weights import Powers


def clouds(n_rows=300, n_columns=4, distance=3.0, seed=0):
    """Two round clouds."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n_rows) % 2
    return rng.normal(size=(n_rows, n_columns)) + distance / np.sqrt(n_columns) * truth[:, None], truth


def rings(n_rows=400, n_columns=10, seed=0):
    """Two clouds with the same middle, one of them three times as wide."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n_rows) % 2
    return rng.normal(size=(n_rows, n_columns)) * np.where(truth == 1, 3.0, 1.0)[:, None], truth


def one_hot(codes, n_classes):
    return np.eye(n_classes)[codes]


def ask(X, codes, n_classes=2, n_jobs=1):
    held_out = make_folds(codes, n_classes, 0)
    source = GaussianSource(ScaledRows.of(X), n_classes, 0, n_jobs)
    return source, held_out, source.fit(codes, np.ones(len(X)), held_out)


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_probabilities_are_those_of_the_densities(covariance):
    X, truth = clouds(60, 3)
    model = GaussianModel.of(Moments.of(X, one_hot(truth, 2), by_class=covariance == "own"), covariance)
    whitening = np.broadcast_to(model.whitening, (2, 3, 3))
    densities = [
        share + multivariate_normal.logpdf(X, mean, np.linalg.inv(white.T @ white))
        for share, mean, white in zip(model.log_shares, model.means, whitening, strict=True)
    ]
    expected = softmax(np.array(densities).T, axis=1)
    np.testing.assert_allclose(softmax(model.log_proba(X), axis=1), expected, rtol=1e-8)


def test_with_many_labelled_rows_alone_the_shared_covariance_is_linear_discriminant_analysis():
    X, truth = clouds(4000, 3)
    model = fit_em(X, one_hot(truth, 2), np.empty((0, 3)), "shared", 1.0)
    expected = LinearDiscriminantAnalysis().fit(X, truth).predict_log_proba(X)
    found = np.log(softmax(model.log_proba(X), axis=1))
    assert np.abs(found - expected).max() < 0.05


def test_moments_by_class_and_for_all_classes_agree():
    X, truth = clouds(50, 3)
    apart, together = (Moments.of(X, one_hot(truth, 2), by_class=each) for each in (True, False))
    np.testing.assert_allclose(apart.second.sum(axis=0), together.second[0])
    np.testing.assert_allclose(apart.first, together.first)


def test_unlabelled_rows_move_the_classes_to_where_the_rows_are():
    X, truth = clouds(600, 2, distance=6.0)
    known = np.array([[-2.0, 0.0], [8.0, 5.0]])  # one label a class, both far from the middle of their cloud
    masses = np.eye(2)
    start = fit_em(known, masses, X, "diagonal", 0.0)
    found = fit_em(known, masses, X, "diagonal", 1.0)
    middles = np.array([X[truth == code].mean(axis=0) for code in (0, 1)])
    assert np.abs(found.means - middles).max() < 0.3 < np.abs(start.means - middles).max()


@pytest.mark.parametrize("make", [clouds, rings])
def test_it_finds_the_classes_of_all_rows_from_few_labels(make):
    X, truth = make()
    codes = np.where(np.arange(len(X)) < 20, truth, -1)
    source, held_out, output = ask(X, codes)
    for logs in (output.rows, output.held_out, output.cross_fitted):
        np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1, rtol=1e-5)
    assert (output.rows.argmax(axis=1) == truth)[codes < 0].mean() > 0.8
    assert (output.held_out.argmax(axis=1) == held_out.codes).mean() > 0.7
    np.testing.assert_allclose(source.predict_log_proba(X), output.rows, rtol=1e-4)


def test_one_cloud_inside_another_is_told_apart_better_with_it():
    X, truth = rings()
    codes = np.where(np.arange(len(X)) < 20, truth, -1)
    hidden = codes < 0
    with_it, without = (OTP(evidence=names, n_jobs=1).fit(X, codes) for names in (["linear", "gaussian"], ["linear"]))
    wrong = [(model.transduction_ != truth)[hidden].mean() for model in (with_it, without)]
    assert wrong[0] < 0.5 * wrong[1]


def test_labels_at_random_are_not_known_in_advance():
    rng = np.random.default_rng(3)
    codes = rng.permutation(np.arange(200) % 2)
    _, held_out, output = ask(rng.normal(size=(200, 3)), codes)
    right = (output.held_out.argmax(axis=1) == held_out.codes).mean()
    assert 0.35 < right < 0.65  # four standard deviations around a half


def test_a_held_out_row_is_judged_without_its_own_label(monkeypatch):
    monkeypatch.setattr(module, "COVARIANCES", ("own",))  # nothing to choose: no other label can have a part
    monkeypatch.setattr(module, "UNLABELED_WEIGHTS", (1.0,))
    monkeypatch.setattr(module, "POWERS", Powers((0.5,), start=0.5, penalty=1.0))
    X, truth = clouds(120, 3, distance=1.0)
    codes = np.where(np.arange(120) < 40, truth, -1)
    source = GaussianSource(ScaledRows.of(X), 2, 0)
    held_out = make_folds(codes, 2, 0)
    before = source.fit(codes, np.ones(120), held_out).held_out
    here = np.flatnonzero(held_out.group == held_out.group[0])  # the labels of a group are hidden together
    flipped = codes.copy()
    flipped[held_out.rows[here]] = 1 - codes[held_out.rows[here]]
    after = source.fit(flipped, np.ones(120), held_out).held_out
    np.testing.assert_array_equal(before[here], after[here])
    assert not np.array_equal(before, after)


def test_it_is_the_same_with_any_number_of_threads():
    X, truth = clouds(300, 30)
    codes = np.where(np.arange(300) < 60, truth, -1)
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.append(ask(X, codes, n_jobs=threads)[2])
    np.testing.assert_array_equal(found[0].rows, found[1].rows)
    np.testing.assert_array_equal(found[0].held_out, found[1].held_out)


def test_probabilities_of_a_new_row_do_not_depend_on_the_rows_that_come_with_it():
    X, truth = clouds(700, 5)
    source, _, _ = ask(X, np.where(np.arange(700) < 40, truth, -1))
    whole = source.predict_log_proba(X)
    for size in (1, 3, 512, 513):
        np.testing.assert_array_equal(source.predict_log_proba(X[:size]), whole[:size])


@pytest.mark.parametrize("scale", [1.0, 1e150, 1e-150])
def test_any_scale_constant_columns_and_columns_that_repeat_others(scale):
    X, truth = clouds()
    X = np.column_stack([X, X, X[:, 0] * 2]) * scale
    X = np.column_stack([X, np.full(len(X), 7.0)])
    codes = np.where(np.arange(len(X)) < 30, truth, -1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, _, output = ask(X, codes)
    assert np.isfinite(output.rows).all()
    assert (output.rows.argmax(axis=1) == truth).mean() > 0.8


@pytest.mark.parametrize("n_labels", [2, 3, 200])
def test_one_label_a_class_more_columns_than_labels_and_no_unlabelled_row(n_labels):
    X, truth = clouds(200, 40, distance=6.0)
    _, _, output = ask(X, np.where(np.arange(200) < n_labels, truth, -1))
    assert np.isfinite(output.rows).all()
    assert (output.rows.argmax(axis=1) == truth).mean() > 0.9


def test_a_sample_of_many_unlabelled_rows_is_enough(monkeypatch):
    monkeypatch.setattr(module, "MAX_UNLABELED", 50)
    X, truth = clouds(1000, distance=4.0)
    _, _, output = ask(X, np.where(np.arange(1000) < 10, truth, -1))
    assert (output.rows.argmax(axis=1) == truth).mean() > 0.95


def test_where_it_costs_too_much_it_is_left_out():
    assert gaussian_pays(2, np.empty((1000, 10)))
    assert not gaussian_pays(31, np.empty((1000, 10)))
    assert not gaussian_pays(2, np.empty((10, 301)))
    assert not gaussian_pays(2, np.empty((30_001, 1)))
    assert not gaussian_pays(2, sp.csr_array((1000, 10)))


@pytest.mark.parametrize("name", ["gaussian", "boosting"])
def test_sparse_rows_are_refused_by_the_name_of_the_parameter(name):
    X, truth = clouds(60)
    with pytest.raises(ValueError, match=f"evidence names '{name}', which does not accept sparse rows"):
        OTP(evidence=[name]).fit(sp.csr_array(X), np.where(np.arange(60) < 30, truth, -1))
