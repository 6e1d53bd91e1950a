"""Given labels that look wrong."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import average_precision_score

from otprop import OTP
from otprop.loop.label_issues import label_trust, wrong_label_probabilities, wrong_share


def test_labels_that_contradict_sure_probabilities_are_wrong():
    probabilities = np.tile([0.98, 0.02], (1000, 1))
    codes = np.zeros(1000, dtype=int)
    codes[:100] = 1
    wrong = wrong_label_probabilities(probabilities, codes)
    assert wrong[:100].min() > 0.8 > 0.01 > wrong[100:].max()


@pytest.mark.parametrize("rate", [0.0, 0.05, 0.1, 0.2])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_no_more_labels_are_doubted_than_are_wrong(n_classes, rate):
    rng = np.random.default_rng(0)
    clean = rng.dirichlet(np.full(n_classes, 0.05), 20_000)
    true = (clean.cumsum(axis=1) > rng.random((len(clean), 1))).argmax(axis=1)
    is_wrong = rng.random(len(clean)) < rate
    codes = np.where(is_wrong, (true + rng.integers(1, n_classes, len(true))) % n_classes, true)
    fitted = clean * (1 - rate) + (1 - clean) * rate / (n_classes - 1)  # probabilities of labels as they are given
    wrong = wrong_label_probabilities(fitted, codes)
    assert wrong.mean() <= is_wrong.mean() + 1e-3
    if rate:
        assert average_precision_score(is_wrong, wrong) > 0.4 + rate


def test_labels_that_agree_with_calibrated_probabilities_are_hardly_doubted():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.5, 1, 5000)
    codes = (rng.random(5000) > p).astype(int)  # as often wrong as the probabilities say: noise of the classes
    wrong = wrong_label_probabilities(np.column_stack([p, 1 - p]), codes)
    assert wrong.mean() < 0.06  # a quarter of the labels contradict the others
    assert (wrong[(p > 0.95) & (codes == 1)] > 0.3).all()


@pytest.mark.parametrize("rate", [0.1, 0.2])
def test_the_probabilities_are_near_the_share_that_is_wrong_and_rather_low(rate):
    rng = np.random.default_rng(0)
    clean = rng.dirichlet([0.05, 0.05, 0.05], 5000)
    true = (clean.cumsum(axis=1) > rng.random((5000, 1))).argmax(axis=1)
    is_wrong = rng.random(5000) < rate
    codes = np.where(is_wrong, (true + rng.integers(1, 3, 5000)) % 3, true)
    wrong = wrong_label_probabilities(clean * (1 - rate) + (1 - clean) * rate / 2, codes)
    assert abs(wrong.mean() - rate) < 0.05
    for low, high in ((0.0, 0.1), (0.1, 0.6), (0.6, 1.0)):
        here = (wrong >= low) & (wrong < high)
        assert wrong[here].mean() - 0.03 < is_wrong[here].mean() < wrong[here].mean() + 0.25


def test_labels_all_contradicted_are_not_all_wrong():
    wrong = wrong_label_probabilities(np.tile([0.99, 0.01], (50, 1)), np.ones(50, dtype=int))
    assert np.isfinite(wrong).all()
    assert wrong_share(np.tile([0.99, 0.01], (50, 1)), np.ones(50, dtype=int)) <= 0.4


@pytest.mark.parametrize("n_classes", [1, 3])
def test_nothing_to_judge_is_no_trouble(n_classes):
    assert len(wrong_label_probabilities(np.empty((0, n_classes)), np.empty(0, dtype=int))) == 0


def test_flipped_labels_are_found_by_a_fit():
    X, y = make_blobs([150] * 4, centers=4 * np.eye(4), random_state=0)
    rng = np.random.default_rng(1)
    rows = rng.choice(len(y), 100, replace=False)
    shown = np.full(len(y), -1)
    shown[rows] = y[rows]
    flipped = rows[:10]
    shown[flipped] = (y[flipped] + 1) % 4
    model = OTP().fit(X, shown)
    doubt = np.zeros(len(y))
    for issue in model.label_issues_:
        assert issue.given == shown[issue.row] != issue.suggested
        doubt[issue.row] = issue.probability
    assert average_precision_score(np.isin(rows, flipped), doubt[rows]) > 0.9
    assert [issue.suggested == y[issue.row] for issue in model.label_issues_[:8]].count(True) >= 7
    np.testing.assert_array_equal(np.sort(model.held_out_rows_), np.sort(rows))
    np.testing.assert_allclose(model.held_out_proba_.sum(axis=1), 1)


@pytest.fixture(scope="module")
def flipped_blobs():
    """Blobs of which every fifth of 100 labels is wrong."""
    X, y = make_blobs([150] * 4, centers=2.5 * np.eye(4), random_state=0)
    rows = np.random.default_rng(1).choice(len(y), 100, replace=False)
    shown = np.full(len(y), -1)
    shown[rows] = y[rows]
    shown[rows[:20]] = (y[rows[:20]] + 1) % 4
    return X, y, shown, rows


def test_doubtful_labels_count_less_stay_as_given_and_are_announced(flipped_blobs):
    X, _, shown, rows = flipped_blobs
    plain = OTP(evidence=None).fit(X, shown)
    assert (plain.label_weights_ == 1).all()
    with pytest.warns(UserWarning, match=r"\d+ of 100 given labels are doubtful and count less") as caught:
        model = OTP(evidence=None, label_noise="auto", warm_start=True).fit(X, shown)
    doubted = np.flatnonzero(model.label_weights_ < 1)
    assert str(len(doubted)) in str(caught[0].message)
    assert set(doubted) <= set(rows)
    assert np.isin(doubted, rows[:20]).mean() > 0.6
    np.testing.assert_array_equal(model.transduction_[rows], shown[rows])
    assert model.label_weights_[rows[:20]].mean() < model.label_weights_[rows[20:]].mean() - 0.01
    with pytest.warns(UserWarning, match="count less"):
        again = model.fit(X, shown)  # with the geometry that was kept
    assert again.reused_
    weighted = OTP(evidence=None).fit(X, shown, sample_weight=model.label_weights_)
    np.testing.assert_array_equal(again.label_distributions_, weighted.label_distributions_)


def test_labels_that_nothing_contradicts_count_in_full(flipped_blobs):
    X, y, _, rows = flipped_blobs
    shown = np.full(len(y), -1)
    shown[rows] = y[rows]
    X = X + 20 * np.eye(4, X.shape[1])[y]
    plain, careful = OTP(evidence=None).fit(X, shown), OTP(evidence=None, label_noise="auto").fit(X, shown)
    np.testing.assert_array_equal(careful.label_distributions_, plain.label_distributions_)


def test_label_noise_is_off_or_auto(flipped_blobs):
    X, _, shown, _ = flipped_blobs
    with pytest.raises(ValueError, match=r"^label_noise must be None or 'auto'; got 0\.1"):
        OTP(label_noise=0.1).fit(X, shown)


def test_labels_of_a_hard_class_count_in_full():
    probabilities = np.tile([0.98, 0.01, 0.01], (60, 1))
    codes = np.zeros(60, dtype=int)
    codes[:3] = 1  # all contradicted: a rare class
    codes[3:10] = 2
    probabilities[4:10] = [0.01, 0.01, 0.98]  # one of seven contradicted
    trust = label_trust(probabilities, codes)
    assert (trust[:3] == 1).all()
    assert trust[3] < 0.9
    assert (trust[4:] == 1).all()
    assert len(label_trust(np.empty((0, 3)), np.empty(0, dtype=int))) == 0
