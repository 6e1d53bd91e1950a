"""PaperOTP: its parameters, any finite input, and what should not matter."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from scipy.stats import ortho_group
from sklearn.exceptions import ConvergenceWarning

from otprop import OTP, PaperOTP
from tests.strategies import tables

# y of -1 and 1 only is warned of, rightly
pytestmark = pytest.mark.filterwarnings("ignore:y holds -1 and 1 only")

GOOD = ([[0.0], [1.0], [0.2], [0.8]], [0, 1, -1, -1])
OF_OTP = ("explain", "suggest", "coverage", "labels_needed", "freeze", "predict_confidence", "predict_with_confidence")
SETTINGS = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


def check(model, X, y):
    given_rows = y != -1
    assert (model.transduction_[given_rows] == y[given_rows]).all()
    assert np.isin(model.transduction_, model.classes_).all()
    for values in (model.label_distributions_, model.certainty_, model.predict_proba(X)):
        assert np.isfinite(values).all()
    assert (model.certainty_ >= 0).all()
    assert (model.certainty_ <= 1).all()
    np.testing.assert_allclose(model.label_distributions_.sum(axis=1), 1, atol=1e-9)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1, atol=1e-9)


@SETTINGS
@given(table=tables(), alpha=st.floats(0, 1))
def test_any_finite_table_and_any_pattern_of_labels_is_labelled(table, alpha):
    X, y = table
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = PaperOTP(alpha=alpha).fit(X, y)
    check(model, X, y)
    resolvable = np.ptp(X, axis=0).max() ** 2 < 1e8 * model.epsilon_  # else rounding alone may exceed the tolerance
    assert all(round_.converged for round_ in model.rounds_) or not resolvable


@SETTINGS
@given(table=tables(), exponent=st.integers(-12, 12))
def test_any_epsilon_ends_with_finite_answers_converged_or_not(table, exponent):
    X, y = table
    spread = float(np.ptp(X))
    epsilon = min(max(10.0**exponent * spread**2, 1e-300), 1e300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(PaperOTP(epsilon=epsilon).fit(X, y), X, y)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([[0.0], [0.0], [0.0]], [0, 1, -1]),
        ([[1.0], [2.0]], [0, -1]),
        ([[1.0], [2.0], [3.0]], [0, 1, 2]),
        ([[1.0], [2.0], [3.0], [4.0], [5.0]], [0, 1, 1, 0, -1]),
        ([[0.0], [1e300], [-1e300]], [0, 1, -1]),
        ([[5e-324], [0.0], [1e-320]], [0, 1, -1]),
        ([[1e9], [1e9 + 1e-6], [1e9 + 2e-6]], [0, 1, -1]),
        ([[0.0], [1.0], [1e8], [0.1]], [0, 1, -1, -1]),
        ([[0.0], [1.0], [1e-9], [1e-9]], [0, -1, -1, -1]),
    ],
)
def test_awkward_tables_are_labelled(X, y):
    X, y = np.array(X), np.array(y)
    check(PaperOTP().fit(X, y), X, y)


def test_a_far_outlier_does_not_change_the_labels_of_the_others():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(0, 1, (10, 3)), rng.normal(5, 1, (10, 3))])
    y = np.full(20, -1)
    y[[0, 10]] = [0, 1]
    X[-1] = 1e5
    model = PaperOTP().fit(X, y)
    assert (model.transduction_[:-1] == np.repeat([0, 1], 10)[:-1]).mean() > 0.9


@pytest.mark.parametrize("scale", [1.0, 1.3, 3.0, 1e20])
def test_where_all_rows_repeat_labelled_ones_scale_does_not_matter(scale):
    X = np.random.default_rng(0).integers(0, 2, (60, 3)).astype(float)
    y = np.where(np.arange(60) < 30, X[:, 0].astype(int), -1)
    plain, scaled = PaperOTP().fit(X, y), PaperOTP().fit(X * scale, y)
    assert scaled.epsilon_ == pytest.approx(plain.epsilon_ * scale**2)
    np.testing.assert_allclose(scaled.certainty_, plain.certainty_, atol=1e-5)


def test_hundreds_of_classes_with_one_label_each():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(440, 3))
    y = np.where(np.arange(440) < 400, np.arange(440), -1)
    model = PaperOTP().fit(X, y)
    check(model, X, y)


@st.composite
def blobs(draw):
    """Rows without ties, in two or three clouds that touch, a third of them labelled."""
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    n_rows, n_classes = draw(st.integers(12, 40)), draw(st.integers(2, 3))
    truth = np.arange(n_rows) % n_classes
    X = rng.normal(size=(n_rows, 3)) + 1.5 * truth[:, None]
    y = np.where(np.arange(n_rows) < max(n_classes, n_rows // 3), truth, -1)
    return X, y, rng


def same(first, second, order=slice(None)):
    """Both models gave the same labels, where every decision of the first was clear."""
    gaps = [min(round_.threshold_gap, round_.class_gap) for round_ in first.rounds_]
    assume(min(gaps) > 1e-6)
    assert (second.transduction_ == first.transduction_[order]).all()
    assert (second.round_ == first.round_[order]).all()
    np.testing.assert_allclose(second.certainty_, first.certainty_[order], atol=1e-5)


@SETTINGS
@given(data=blobs(), epsilon=st.sampled_from(["auto", 0.05, 0.5, 3.0]))
def test_the_order_of_the_rows_does_not_matter(data, epsilon):
    X, y, rng = data
    order = rng.permutation(len(X))
    same(PaperOTP(epsilon=epsilon).fit(X, y), PaperOTP(epsilon=epsilon).fit(X[order], y[order]), order)


@SETTINGS
@given(data=blobs(), epsilon=st.sampled_from(["auto", 0.5]))
def test_the_names_and_the_order_of_the_classes_do_not_matter(data, epsilon):
    X, y, _ = data
    names = np.array(["zebra", "mole", "ant"], dtype=object)
    first = PaperOTP(epsilon=epsilon).fit(X, y)
    second = PaperOTP(epsilon=epsilon).fit(X, np.where(y == -1, None, names[y]))
    gaps = [min(round_.threshold_gap, round_.class_gap) for round_ in first.rounds_]
    assume(min(gaps) > 1e-6)
    assert (second.transduction_ == names[first.transduction_]).all()
    assert (second.round_ == first.round_).all()


@SETTINGS
@given(data=blobs(), spreads=st.sampled_from([1.0, 1e3, 1e6]))
def test_moving_all_rows_does_not_matter(data, spreads):
    X, y, _ = data
    same(PaperOTP().fit(X, y), PaperOTP().fit(X + spreads * np.ptp(X), y))


@SETTINGS
@given(data=blobs())
def test_turning_all_rows_does_not_matter(data):
    X, y, rng = data
    rotation = ortho_group.rvs(3, random_state=int(rng.integers(1000)))
    same(PaperOTP().fit(X, y), PaperOTP().fit(X @ rotation, y))


@SETTINGS
@given(data=blobs(), exponent=st.floats(-100, 100))
def test_scaling_the_rows_does_not_matter_with_automatic_epsilon(data, exponent):
    X, y, _ = data
    same(PaperOTP().fit(X, y), PaperOTP().fit(X * 10.0**exponent, y))


@SETTINGS
@given(data=blobs(), exponent=st.floats(-100, 100))
def test_scaling_the_rows_and_epsilon_by_the_square_does_not_matter(data, exponent):
    X, y, _ = data
    scale = 10.0**exponent
    same(PaperOTP(epsilon=0.2).fit(X, y), PaperOTP(epsilon=0.2 * scale**2).fit(X * scale, y))


@pytest.mark.parametrize(
    ("change", "options"),
    [
        (lambda X: np.column_stack([X, np.full(len(X), 1e308)]), {}),
        (lambda X: X * 1e-320, {"evidence": None}),
        (lambda X: X * np.array([1e-300, 1.0]), {}),
        (lambda X: X, {"metric": "correlation"}),
    ],
    ids=["a constant column of 1e308", "tiny", "a tiny column", "an angle"],
)
@pytest.mark.parametrize("seed", range(3))
def test_training_rows_keep_their_labels_where_other_rows_are_at_a_distance_of_zero(change, options, seed):
    rng = np.random.default_rng(seed)
    truth = np.arange(60) % 3
    X = change(rng.normal(size=(60, 2)) + truth[:, None])
    X = X[np.sort(np.unique(X, axis=0, return_index=True)[1])]
    y = np.where(rng.random(len(X)) < 0.4, truth[: len(X)], -1)
    y[:3] = [0, 1, 2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = OTP(n_jobs=1, **options).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), model.transduction_)


def test_a_search_among_the_largest_numbers_warns_of_nothing():
    X = np.full((20, 2), 1.7e308)
    X[::2] *= 0.5
    y = np.full(20, -1)
    y[:2] = [0, 1]
    assert (OTP(evidence=None).fit(X, y).transduction_ == np.arange(20) % 2).all()


def test_the_defaults_are_those_of_the_paper():
    model = PaperOTP()
    assert (model.cost, model.alpha, model.max_rounds, model.min_round_share) == ("sqeuclidean", 0.9, None, 0.0)


def test_every_parameter_changes_something_and_none_belongs_to_class_level_alone():
    only_class_level = set(OTP().get_params()) - set(PaperOTP().get_params())
    assert only_class_level == {
        *("evidence", "marginal_strength", "class_prior", "metric", "n_neighbors", "diffusion"),
        *("abstain_below", "label_noise", "objective", "random_state", "n_jobs", "warm_start"),
    }
    assert set(PaperOTP().get_params()) <= set(OTP().get_params())


def test_what_needs_a_confidence_is_not_there():
    model = PaperOTP().fit(*GOOD)
    for name in (*OF_OTP, "confidence_", "evidence_", "settings_", "class_prior_", "expected_error_"):
        assert not hasattr(model, name), name
        assert hasattr(OTP(evidence=None).fit(*GOOD), name), name


def test_otp_paper_warns_and_returns_a_paper_otp():
    with pytest.warns(FutureWarning, match=r"OTP\.paper is deprecated.*use PaperOTP") as record:
        model = OTP.paper(0.016, alpha=0.8)
    assert record[0].filename == __file__
    assert type(model) is PaperOTP
    assert (model.epsilon, model.alpha) == (0.016, 0.8)
    np.testing.assert_array_equal(model.fit(*GOOD).transduction_, [0, 1, 0, 1])
