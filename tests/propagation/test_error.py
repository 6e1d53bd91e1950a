"""An error rate that can be quoted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit

from otprop import OTP
from otprop.evidence import diffusion
from otprop.evidence.held_out import make_folds
from otprop.evidence.weights import cross_fitted_sum, fit_mixture, fit_weights, mix
from otprop.propagation.error import (
    ErrorEstimate,
    ErrorEvidence,
    ErrorPrior,
    error_interval,
    estimate_error,
    expected_error,
    intraclass_correlation,
    unseen_share,
    weighted_error,
    without_chosen,
)
from otprop.propagation.wrong_labels import WrongLabels

JUDGED = ErrorEvidence(held_out=0.2, doubt=0.1, unseen=0.0, n_labels=50, n_classes=2, n_rows=1000)
shares = st.floats(0, 1)


def overlapping(n_rows, gap, seed, n_features=3):
    """Two overlapping clouds, and their classes."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n_rows)
    return rng.normal(size=(n_rows, n_features)) + gap * truth[:, None], truth


# what is computed from the labels


def test_labels_whose_class_was_seen_once_tell_how_many_rows_are_of_classes_never_seen():
    assert unseen_share(3, 20) == pytest.approx(0.15)
    assert unseen_share(0, 20) == 0.0
    assert unseen_share(7, 7) == 0.0  # one of each class was asked for
    assert unseen_share(0, 0) == 0.0


def test_the_share_of_classes_never_seen_is_estimated_without_bias():
    rng = np.random.default_rng(0)
    sizes = rng.dirichlet(np.full(60, 0.3))
    said, true = [], []
    for _ in range(2000):
        counts = rng.multinomial(25, sizes)
        said.append(unseen_share(int((counts == 1).sum()), 25))
        true.append(sizes[counts == 0].sum())
    assert np.mean(said) == pytest.approx(np.mean(true), abs=0.01)
    assert np.mean(true) > 0.1


def test_a_missed_label_counts_as_many_rows_as_it_stands_for():
    right = np.array([1.0, 1.0, 0.0, 0.5])
    assert weighted_error(right, np.ones(4)) == pytest.approx(0.375)
    assert weighted_error(right, np.array([3.0, 3.0, 1.0, 1.0])) == pytest.approx(1.5 / 8)
    assert np.isnan(weighted_error(np.empty(0), np.empty(0)))


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 999), one=st.integers(0, 4))
def test_no_label_of_a_group_has_a_part_in_the_weights_that_judge_it(seed, one):
    rng = np.random.default_rng(seed)
    codes, group = rng.integers(0, 3, 40), np.arange(40) % 5
    said = [np.log(rng.dirichlet(np.ones(3), 40)) for _ in range(3)]
    other = codes.copy()
    other[group == one] = rng.integers(0, 3, 8)
    start = [0.5, 0.5, 0.5]
    found, changed = (
        cross_fitted_sum(said, each, group, start, np.ones(len(each), dtype=bool), np.ones(len(each)))[group == one]
        for each in (codes, other)
    )
    np.testing.assert_array_equal(found, changed)


def test_sources_that_know_nothing_look_good_on_labels_that_weighed_them_and_not_cross_fitted():
    seen, crossed = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        codes = rng.integers(0, 2, 30)
        said = [np.log(rng.dirichlet(np.ones(2), 30)) for _ in range(12)]
        start = [0.1] * 12
        total = np.tensordot(fit_weights(said, codes, start), np.stack(said), 1)
        seen.append(np.mean(total.argmax(axis=1) == codes))
        crossed.append(
            np.mean(
                cross_fitted_sum(said, codes, np.arange(30) % 5, start, np.ones(30, dtype=bool), np.ones(30)).argmax(
                    axis=1
                )
                == codes
            )
        )
    assert np.mean(seen) > 0.65
    assert np.mean(crossed) == pytest.approx(0.5, abs=0.05)


def test_settings_of_the_diffusion_are_mixed_without_the_group_that_they_judge():
    X, truth = overlapping(120, 1.0, 0)
    codes = np.where(np.arange(120) < 60, truth, -1)
    hidden = make_folds(codes, 2, 0)
    model = OTP(evidence=None, n_jobs=1).fit(X, codes)
    source = model._predictor.evidence.iterative
    fresh = diffusion.DiffusionSource(
        [diffusion.Setting(one.graph, one.n_neighbors, one.strength) for one in source.settings], 2, 1
    )
    masses = fresh._masses(codes, np.ones(120))
    unseen = []
    for setting in fresh.settings:
        setting.values = fresh._diffuse(setting, masses, 1)
        unseen.append(fresh._held_out_values(setting, masses, hidden, 1))
    crossed = fresh.fit(codes, np.ones(120), hidden).cross_fitted
    unseen = [values + setting.background for values, setting in zip(unseen, fresh.settings, strict=True)]
    here = hidden.group == 2
    parts = {name: getattr(hidden, name)[~here] for name in ("rows", "fold", "codes", "drawn", "weights")}
    others = fit_mixture([values[~here] for values in unseen], replace(hidden, **parts), diffusion.POWERS)
    expected = mix([values[here] for values in unseen], others.powers, others.weights)
    np.testing.assert_allclose(np.exp(crossed[here]), expected, atol=1e-6)


# what was learnt from other tables


def test_a_worked_example():
    prior = ErrorPrior(trust=0.5, shift=0.3, worth=0.8, partial=0.4)
    found = estimate_error(ErrorEvidence(0.25, 0.1, 0.04, n_labels=40, n_classes=6, n_rows=500), prior)
    held_out, doubt = 0.04 + 0.96 * 0.25, 0.04 + 0.96 * 0.1  # 0.28 and 0.136
    odds = 0.5 * logit((held_out * 40 + 0.5) / 41) + 0.5 * logit((doubt * 40 + 0.5) / 41)
    assert found.expected == pytest.approx(expit(odds + 20 / 40 * 0.3))
    assert found.expected == pytest.approx(0.2321, abs=1e-4)
    assert (found.concentration, found.n_rows) == (32.0, 500)


@given(held_out=shares, doubt=shares, unseen=st.floats(0, 0.9), more=shares, n=st.integers(1, 5000))
def test_the_expected_error_is_a_share_that_rises_with_what_speaks_for_errors(held_out, doubt, unseen, more, n):
    found = expected_error(held_out, doubt, unseen, n, 3)
    assert 0 < found < 1
    assert expected_error(held_out + (1 - held_out) * more, doubt, unseen, n, 3) >= found - 1e-12
    if held_out <= doubt:  # the held-out error does not contradict the probabilities
        assert found <= 1 - (1 - unseen) / 3
        assert expected_error(held_out, doubt + (1 - doubt) * more, unseen, n, 3) >= found - 1e-12
    assert expected_error(held_out, doubt, unseen + (0.9 - unseen) * more, n, 3) >= found - 1e-12


def test_expected_error_is_the_held_out_one_where_that_contradicts_the_probabilities():
    assert float(expected_error(0.4, 0.05, 0.0, 100, 2)) == pytest.approx(0.4, abs=0.01)
    assert float(expected_error(0.12, 0.05, 0.0, 20, 2)) < 0.12  # with few labels it does not


def test_labels_held_out_in_groups_give_a_wider_interval_than_as_many_single_ones():
    single = estimate_error(replace(JUDGED, n_labels=50))
    grouped = estimate_error(replace(JUDGED, n_labels=50, grouped=True))
    shifted = estimate_error(replace(JUDGED, n_labels=50, grouped=True, shifted=True))
    widths = [high - low for low, high in (each.interval for each in (single, grouped, shifted))]
    assert widths == sorted(widths)
    assert shifted.expected > grouped.expected > single.expected


def test_intraclass_correlation_is_high_where_whole_groups_are_wrong_and_low_where_errors_are_spread():
    groups = np.repeat(np.arange(40), 5)
    whole, spread = np.repeat(np.arange(40) % 2, 5).astype(float), np.tile([1.0, 0.0, 0.0, 0.0, 1.0], 40)
    assert intraclass_correlation(whole, groups) > 0.85
    assert intraclass_correlation(spread, groups) < 0.05
    assert 0 < intraclass_correlation(whole[:5], groups[:5]) < 1  # one group tells nothing


def test_with_many_labels_it_is_what_was_seen_and_with_few_it_is_more():
    found = [float(expected_error(0.1, 0.1, 0.0, n, 4)) for n in (10, 50, 1000, 10**6)]
    assert found == sorted(found, reverse=True)
    assert found[-1] == pytest.approx(0.1, abs=1e-4)
    assert found[0] > 0.13


def test_where_no_label_could_be_held_out_nothing_is_known():
    found = estimate_error(replace(JUDGED, held_out=float("nan")))
    assert found.expected == JUDGED.doubt
    assert found.interval == (0.0, 1.0)


def test_the_range_narrows_with_the_labels_and_with_the_rows():
    by_labels = [replace(JUDGED, n_labels=n) for n in (5, 20, 100, 2000)]
    by_rows = [replace(JUDGED, n_rows=n) for n in (5, 50, 5000)]
    for judged in (by_labels, by_rows):
        ranges = [estimate_error(one).interval for one in judged]
        widths = [high - low for low, high in ranges]
        assert widths == sorted(widths, reverse=True)


@pytest.mark.parametrize(("mean", "labels", "n_rows"), [(0.2, 16, 1000), (0.05, 160, 150), (0.4, 40, 60)])
def test_the_range_holds_nine_times_in_ten_where_errors_are_as_the_model_says(mean, labels, n_rows):
    rng = np.random.default_rng(0)
    rates = rng.beta(mean * labels, (1 - mean) * labels, 20_000)
    errors = rng.binomial(n_rows, rates) / n_rows
    low, high = error_interval(mean, labels, n_rows)
    assert np.mean((errors >= low) & (errors <= high)) == pytest.approx(0.9, abs=0.025)
    assert np.mean(errors < low) == pytest.approx(np.mean(errors > high), abs=0.03)


def test_no_error_at_all_is_likely_where_less_than_one_was_to_be_seen():
    assert error_interval(0.01, 50, 1000)[0] == 0.0
    assert error_interval(0.03, 50, 1000)[0] > 0.0


@given(expected=shares, labels=st.floats(0.01, 1e5), n_rows=st.integers(1, 10**6))
def test_a_range_is_within_0_and_1_and_holds_what_is_expected(expected, labels, n_rows):
    low, high = error_interval(expected, labels, n_rows)
    assert 0 <= low <= expected <= high <= 1


def test_less_is_known_of_a_part_of_the_rows():
    whole = ErrorEstimate(0.1, 100.0, 400)
    assert whole.of_part(0.1, 400) == whole
    low, high = whole.of_part(0.1, 100).interval
    assert low < whole.interval[0]
    assert high > whole.interval[1]
    assert whole.of_part(0.01, 100).interval[1] < high


# what a model says


def test_confidence_expected_error_and_coverage_say_the_same():
    X, truth = overlapping(300, 1.0, 1)
    y = np.where(np.arange(300) < 40, truth, -1)
    model = OTP(n_jobs=1).fit(X, y)
    assert 1 - model.confidence_[y == -1].mean() == pytest.approx(model.expected_error_, abs=1e-6)
    whole = model.coverage()[0]
    assert whole.share == 1.0
    assert whole.expected_error == pytest.approx(model.expected_error_, abs=1e-6)
    assert (whole.low, whole.high) == pytest.approx(model.error_range_, abs=1e-6)


def test_the_announced_range_of_models_holds():
    inside, off = [], []
    for seed in range(6):  # `make trust` has hundreds of runs on real tables
        X, truth = overlapping(250, 0.9, seed)
        y = np.where(np.arange(250) < 30, truth, -1)
        model = OTP(n_jobs=1).fit(X, y)
        error = np.mean(model.transduction_[30:] != truth[30:])
        inside.append(model.error_range_[0] <= error <= model.error_range_[1])
        off.append(model.expected_error_ - error)
    assert sum(inside) >= 5
    assert abs(np.mean(off)) < 0.05


def test_classes_seen_once_raise_the_expected_error_unless_the_shares_are_known():
    X, truth = overlapping(200, 4.0, 0)
    truth[:10:2] = 2  # five rows of a third class, one of which is labelled
    y = np.where(np.arange(200) >= 160, truth, -1)
    y[0] = 2
    model, known = OTP(n_jobs=1).fit(X, y), OTP(n_jobs=1, class_prior=[0.48, 0.48, 0.04]).fit(X, y)
    assert model.error_.evidence.unseen == pytest.approx(1 / 41)
    assert known.error_.evidence.unseen == 0.0
    assert known.expected_error_ < model.expected_error_


def test_labels_that_were_chosen_count_for_the_probabilities_and_not_for_the_held_out_error():
    prior = ErrorPrior(trust=0.5, shift=0.3, worth=0.8, partial=0.4)
    evidence = ErrorEvidence(0.25, 0.1, 0.0, n_labels=20, n_classes=6, n_rows=500, n_chosen=60)
    found = estimate_error(evidence, prior)
    odds = 0.5 * logit((0.25 * 20 + 0.5) / 21) + 0.5 * logit((0.1 * 80 + 0.5) / 81)
    assert found.expected == pytest.approx(expit(odds + 20 / 80 * 0.3))
    assert found.concentration == pytest.approx(0.8 * (20 + 0.2 * 60))
    assert found.expected < estimate_error(replace(evidence, n_chosen=0), prior).expected


# labels that were chosen


def near_and_far(seed):
    """Clouds with 40 labels drawn at random, 40 picked between the clouds, and who was picked."""
    X, truth = overlapping(500, 2.0, seed, n_features=2)
    y = np.where(np.arange(500) < 40, truth, -1)
    between = np.argsort(np.abs(X.sum(axis=1) - 2.0)[40:])[:40] + 40
    y[between] = truth[between]
    chosen = np.zeros(500, dtype=bool)
    chosen[between] = True
    return X, truth, y, chosen


def test_doubtful_rows_that_were_picked_do_not_raise_the_expected_error():
    told, untold = [], []
    for seed in range(3):
        X, truth, y, chosen = near_and_far(seed)
        left = y == -1
        for found, picked in ((told, chosen), (untold, None)):
            model = OTP(n_jobs=1).fit(X, y, chosen=picked)
            found.append(model.expected_error_ - np.mean(model.transduction_[left] != truth[left]))
    assert np.mean(untold) > np.mean(told) + 0.005
    assert abs(np.mean(told)) < 0.06


def test_rows_picked_from_one_class_do_not_change_the_shares():
    off = {"told": [], "untold": []}
    for seed in range(3):
        X, truth = overlapping(500, 0.7, seed)
        y = np.where(np.arange(500) < 60, truth, -1)
        picked = np.flatnonzero(truth[60:] == 1)[:60] + 60
        y[picked] = 1
        for word, chosen in (("told", np.isin(np.arange(500), picked)), ("untold", None)):
            off[word].append(OTP(n_jobs=1).fit(X, y, chosen=chosen).class_prior_[1] - np.mean(truth == 1))
    assert np.mean(off["untold"]) > 0.05
    assert abs(np.mean(off["told"])) < 0.03


def test_rows_that_were_picked_are_no_longer_among_those_whose_error_is_announced():
    assert without_chosen(0.2, 80, 20, 12) == pytest.approx(8 / 80)
    assert without_chosen(0.2, 80, 0, 0) == 0.2
    assert without_chosen(0.1, 80, 20, 15) == 0.0
    assert without_chosen(0.1, 0, 20, 2) == 0.1
    assert np.isnan(without_chosen(float("nan"), 80, 20, 2))


def test_labels_that_were_all_drawn_need_no_word():
    X, truth = overlapping(120, 1.5, 0)
    y = np.where(np.arange(120) < 24, truth, -1)
    plain = OTP(n_jobs=1).fit(X, y)
    for chosen in (np.zeros(120, dtype=bool), [0] * 120, y == -1):  # what it says of unlabelled rows means nothing
        same = OTP(n_jobs=1).fit(X, y, chosen=chosen)
        assert same.error_range_ == plain.error_range_
        np.testing.assert_array_equal(same.confidence_, plain.confidence_)


def test_the_fewer_labels_were_drawn_the_less_is_known():
    X, truth = overlapping(200, 1.5, 0)
    y = np.where(np.arange(200) < 40, truth, -1)
    ranges = [OTP(n_jobs=1).fit(X, y, chosen=np.arange(200) >= n).error_range_ for n in (40, 12, 0)]
    widths = [high - low for low, high in ranges]
    assert widths[0] < widths[1] < widths[2]
    assert ranges[2] == (0.0, 1.0)


@pytest.mark.parametrize(
    ("chosen", "kind", "message"),
    [
        ([True, False], ValueError, r"chosen has shape \(2,\), expected \(6,\)"),
        (["yes"] * 6, TypeError, "chosen must be a boolean array"),
        ([2] * 6, TypeError, "chosen must be a boolean array"),
    ],
)
def test_what_is_no_word_on_each_row_is_refused(chosen, kind, message):
    X = np.array([[0.0], [0.1], [0.2], [1.0], [1.1], [1.2]])
    with pytest.raises(kind, match=message):
        OTP().fit(X, [0, 0, -1, 1, 1, -1], chosen=chosen)


# wrong labels


def noisy(share, spread=0.02):
    """Shares of wrong labels around one."""
    shares = np.linspace(0.0, 0.3, 31)
    return WrongLabels(shares, -0.5 * ((shares - share) / spread) ** 2)


def test_without_a_sign_of_wrong_labels_the_error_is_what_it_is_without_them():
    found, without = estimate_error(JUDGED, wrong_labels=noisy(0.0, spread=1e-4)), estimate_error(JUDGED)
    assert (found.expected, *found.interval) == pytest.approx((without.expected, *without.interval), abs=1e-6)


def test_wrong_labels_are_subtracted_from_the_error():
    clean, some, many = (estimate_error(JUDGED, wrong_labels=noisy(share)).expected for share in (0.0, 0.05, 0.1))
    assert many < some < clean


def test_how_many_labels_are_wrong_is_uncertain_and_widens_the_interval():
    sure, unsure = (estimate_error(JUDGED, wrong_labels=noisy(0.07, spread)) for spread in (0.001, 0.03))
    assert unsure.concentration < 0.9 * sure.concentration


def test_an_error_shows_through_wrong_labels_as_the_formula_says():
    share, real = 0.2, 0.1
    shown = real + share * (1.0 - real * 2)  # two classes
    found = estimate_error(replace(JUDGED, held_out=shown, doubt=shown), wrong_labels=noisy(share, spread=0.001))
    assert found.expected == pytest.approx(
        estimate_error(replace(JUDGED, held_out=real, doubt=real)).expected, abs=0.02
    )


def test_labels_held_out_in_groups_are_not_corrected():
    grouped = replace(JUDGED, grouped=True)
    assert estimate_error(grouped, wrong_labels=noisy(0.2)) == estimate_error(grouped)


def test_all_probabilities_stay_in_range_where_labels_are_random():
    found = estimate_error(replace(JUDGED, held_out=0.01, doubt=0.0), wrong_labels=noisy(0.3))
    assert 0.0 <= found.interval[0] <= found.expected <= found.interval[1] <= 1.0
