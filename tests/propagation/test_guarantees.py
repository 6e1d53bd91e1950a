"""Sets of classes, and the confidence that bounds the error."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from otprop import OTP
from otprop._validation import ParameterError
from otprop.propagation.class_errors import JudgedLabels
from otprop.propagation.guarantees import (
    error_bound,
    label_sets,
    labels_for_risk,
    set_thresholds,
    share_for_risk,
)

ALL_TREES = True  # the promise depends on how good the held-out predictions are


def judged(codes: np.ndarray, worth: float = 1.0) -> JudgedLabels:
    n = len(codes)
    return JudgedLabels(np.arange(n), codes, np.zeros((n, 2)), np.ones(n), np.ones(n), worth)


def test_threshold_is_the_conformal_quantile() -> None:
    of_true = np.arange(1, 20) / 20  # 19 labels of one class: the 18th largest of 20 ranks covers 0.9
    thresholds, by_class = set_thresholds(judged(np.zeros(19, dtype=int)), np.column_stack([of_true, 1 - of_true]), 0.9)
    assert np.isclose(thresholds[0], 2 / 20)
    assert by_class.tolist() == [True, False]


@pytest.mark.parametrize(("n_labels", "own"), [(8, False), (9, True)])
def test_a_class_has_its_own_threshold_from_nine_labels_on(n_labels: int, own: bool) -> None:
    codes = np.repeat([0, 1], [40, n_labels])
    probabilities = np.random.default_rng(0).dirichlet([1, 1], size=len(codes))
    assert set_thresholds(judged(codes), probabilities, 0.9)[1].tolist() == [True, own]


def test_every_class_is_in_the_set_where_labels_are_too_few() -> None:
    thresholds, by_class = set_thresholds(judged(np.array([0, 1, 0])), np.full((3, 2), 0.5), 0.9)
    assert thresholds.tolist() == [0.0, 0.0]
    assert not by_class.any()


def test_labels_of_groups_count_as_fewer() -> None:
    codes = np.zeros(20, dtype=int)
    probabilities = np.random.default_rng(0).dirichlet([1, 1], size=20)
    assert set_thresholds(judged(codes), probabilities, 0.9)[1][0]
    assert not set_thresholds(judged(codes, worth=0.4), probabilities, 0.9)[1][0]


def test_a_set_is_never_empty() -> None:
    members = label_sets(np.array([[0.6, 0.4], [0.5, 0.5]]), np.array([0.9, 0.45]))
    assert members.tolist() == [[True, False], [True, True]]


def test_sets_cover_exchangeable_rows_in_every_class() -> None:
    rng, covered = np.random.default_rng(0), []
    for _ in range(300):
        codes = rng.choice(2, p=[0.8, 0.2], size=400)
        first = 1 / (1 + np.exp(-(1 - 2 * codes) - rng.normal(size=400)))
        probabilities = np.column_stack([first, 1 - first])
        thresholds, _ = set_thresholds(judged(codes[:100]), probabilities[:100], 0.9)
        right = label_sets(probabilities[100:], thresholds)[np.arange(300), codes[100:]]
        covered.append([right[codes[100:] == code].mean() for code in (0, 1)])
    assert (np.mean(covered, axis=0) > 0.89).all()
    assert (np.mean(covered, axis=0) < 0.96).all()


def test_error_bound_is_that_of_clopper_and_pearson() -> None:
    exact = binomtest(3, 80).proportion_ci(confidence_level=0.8, method="exact").high  # 0.1 on either side
    assert np.isclose(error_bound(3, 80, 0.9), exact)
    assert error_bound(5, 5, 0.9) == 1.0


def test_labels_for_risk_are_the_fewest_that_prove_it() -> None:
    needed = labels_for_risk(0.02, 0.9)
    assert needed == 114
    assert error_bound(0, needed, 0.9) <= 0.02 < error_bound(0, needed - 1, 0.9)


def test_share_for_risk_stops_before_the_errors_begin() -> None:
    confidence, codes = np.linspace(1, 0.5, 400), np.zeros(400, dtype=int)
    right = (np.arange(400) < 200).astype(float)
    share = share_for_risk(confidence, right, judged(codes), 10**6, 0.05, 0.9)
    assert share is not None
    assert 0.5 < share < 0.53  # a few wrong ones are allowed
    assert share_for_risk(confidence, 1 - right, judged(codes), 10**6, 0.05, 0.9) is None
    assert share_for_risk(confidence[:20], right[:20], judged(codes[:20]), 10**6, 0.05, 0.9) is None


def test_share_for_risk_is_smaller_for_few_rows() -> None:
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.5, 1, size=400)
    right = (rng.random(400) < confidence).astype(float)
    many, few = (share_for_risk(confidence, right, judged(np.zeros(400, dtype=int)), n, 0.1, 0.9) for n in (10**6, 400))
    assert many is not None
    assert few is None or few < many


def test_share_for_risk_survives_a_wrong_label_among_the_most_confident() -> None:
    confidence, codes = np.linspace(0.96, 0.94, 200), np.zeros(200, dtype=int)
    right = (np.arange(200) % 20 != 0).astype(float)  # the very first one is wrong, and 5 % in all
    assert share_for_risk(confidence, right, judged(codes), 10**6, 0.1, 0.9) == 1.0


def test_share_for_risk_without_a_label_promises_nothing() -> None:
    none = JudgedLabels.none(2)
    assert share_for_risk(none.confidence, none.confidence, none, 100, 0.1, 0.9) is None


def test_promise_is_kept_in_nine_of_ten_draws() -> None:
    rng, broken = np.random.default_rng(0), 0
    for _ in range(150):
        confidence = rng.uniform(0.5, 1, size=300)
        right = (rng.random(300) < confidence).astype(float)
        share = share_for_risk(confidence, right, judged(np.zeros(300, dtype=int)), 10**6, 0.1, 0.9)
        if share is not None:
            broken += 1 - (1 - share / 4) > 0.1  # mean confidence of the rows above 1 - share / 2
    assert 0 < broken / 150 <= 0.12


@pytest.fixture(scope="module")
def fitted() -> tuple[OTP, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    truth = rng.choice(["a", "b"], size=700)
    X = rng.normal(size=(700, 2)) + 2.2 * (truth == "b")[:, None]
    y = np.where(np.arange(700) < 200, truth, None)
    return OTP().fit(X, y), truth, y


def test_label_sets_hold_the_truth_as_often_as_asked(fitted: tuple[OTP, np.ndarray, np.ndarray]) -> None:
    model, truth, _ = fitted
    sets = model.label_sets(0.9)
    codes = np.searchsorted(model.classes_, truth)
    assert sets.by_class.all()
    assert (sets.members[:200].sum(axis=1) == 1).all()
    assert sets.members[:200][np.arange(200), codes[:200]].all()
    assert 0.86 < sets.members[200:][np.arange(500), codes[200:]].mean() < 0.98
    assert model.label_sets(0.99).members.sum() > sets.members.sum()
    new = model.label_sets(0.9, model._rows[200:] + 1e-3)
    assert new.members.shape == (500, 2)
    assert (new.members == sets.members[200:]).mean() > 0.9


def test_confidence_for_risk_is_a_threshold_for_abstaining(fitted: tuple[OTP, np.ndarray, np.ndarray]) -> None:
    model, truth, y = fitted
    threshold = model.confidence_for_risk(0.05)
    careful = OTP(abstain_below=threshold).fit(model._rows, y)
    labelled = (careful.transduction_ != None) & (y == None)  # noqa: E711
    assert 100 < labelled.sum() < 500
    assert (careful.transduction_ != truth)[labelled].mean() <= 0.05


def test_nothing_is_promised_where_no_label_could_be_held_out() -> None:
    model = OTP(evidence=None).fit([[0.0], [0.1], [1.0], [1.1]], ["a", None, "b", None])
    with pytest.raises(ValueError, match="from 0 held-out labels"):
        model.confidence_for_risk(0.1)
    assert model.label_sets(0.5).members.any(axis=1).all()


def test_confidence_for_risk_says_what_it_takes(fitted: tuple[OTP, np.ndarray, np.ndarray]) -> None:
    with pytest.raises(ValueError, match=r"cannot be promised .* at least 460 that are all right"):
        fitted[0].confidence_for_risk(0.005)


def test_labels_that_were_all_chosen_guarantee_nothing(fitted: tuple[OTP, np.ndarray, np.ndarray]) -> None:
    model, _, y = fitted
    picked = OTP(evidence=None).fit(model._rows, y, chosen=np.ones(len(y), dtype=bool))
    assert picked.label_sets(0.9).members[200:].all()
    with pytest.raises(ValueError, match="from 0 held-out labels drawn at random: it takes at least 7"):
        picked.confidence_for_risk(0.3)


def test_labels_in_groups_promise_less() -> None:
    confidence, codes = np.full(120, 0.99), np.zeros(120, dtype=int)
    assert share_for_risk(confidence, np.ones(120), judged(codes), 10**6, 0.02, 0.9) == 1.0
    assert share_for_risk(confidence, np.ones(120), judged(codes, worth=0.5), 10**6, 0.02, 0.9) is None


def test_votes_alone_guarantee_nothing_and_follow_the_objective() -> None:
    rng = np.random.default_rng(0)
    truth = np.where(rng.random(200) < 0.1, "yes", "no")
    votes = np.array([np.where(rng.random(200) < 0.25, rng.permutation(truth), truth) for _ in range(3)]).T
    X, y = rng.normal(size=(200, 2)), np.full(200, None)
    options = {"evidence": None, "objective": {("yes", "no"): 100}}
    with pytest.warns(UserWarning, match="votes alone decide"):
        plain, careful = OTP(evidence=None).fit(X, y, votes=votes), OTP(**options).fit(X, y, votes=votes)
    assert (careful.transduction_ == "yes").sum() > (plain.transduction_ == "yes").sum()
    assert careful.expected_cost_ != plain.expected_cost_ == plain.expected_error_
    assert plain.label_sets(0.9).members.all()
    with pytest.raises(ValueError, match="from 0 held-out labels"):
        plain.confidence_for_risk(0.1)


def test_no_error_can_be_bound_where_every_row_has_a_label(fitted: tuple[OTP, np.ndarray, np.ndarray]) -> None:
    model, truth, _ = fitted
    with pytest.raises(ValueError, match="every row has a given label"):
        OTP(evidence=None).fit(model._rows, truth).confidence_for_risk(0.1)


@pytest.mark.parametrize("value", [0, 1, -0.1, "much", None])
def test_coverage_and_risk_must_lie_between_0_and_1(value: object, fitted: tuple[OTP, np.ndarray, np.ndarray]) -> None:
    for call in (fitted[0].label_sets, fitted[0].confidence_for_risk):
        with pytest.raises(ParameterError, match="must be a finite number > 0 and < 1"):
            call(value)  # type: ignore[arg-type]
