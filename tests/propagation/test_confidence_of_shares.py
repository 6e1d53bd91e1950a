"""How the shares of the classes enter the confidence of a label."""

from __future__ import annotations

import numpy as np
import pytest

from otprop import OTP


def clouds(centres, n_rows=240, n_labels=60, seed=0):
    """One cloud of rows around each centre, a class each; the first `n_labels` rows are labelled."""
    truth = np.arange(n_rows) % len(centres)
    X = np.random.default_rng(seed).normal(size=(n_rows, 2)) + np.array(centres)[truth]
    return X, np.where(np.arange(n_rows) < n_labels, truth, -1)


def test_a_held_out_label_counts_by_the_share_of_rows_that_its_class_stands_for():
    X, y = clouds([[12.0, 0.0], [0.0, 0.0], [1.0, 0.0]])  # the first class is easy, the other two overlap

    def fitted(class_prior):  # without a marginal to meet, the shares enter the calibration and nothing else
        return OTP(evidence=None, class_prior=class_prior, marginal_strength=0.0, max_rounds=1).fit(X, y)

    mostly_easy, mostly_hard = fitted([0.9, 0.05, 0.05]), fitted([0.05, 0.475, 0.475])
    np.testing.assert_allclose(mostly_easy.certainty_, mostly_hard.certainty_)
    unlabelled = y == -1
    assert (mostly_easy.confidence_[unlabelled] > mostly_hard.confidence_[unlabelled]).all()


@pytest.mark.parametrize("gap", [1.0, 3.0, 6.0])
def test_labels_that_a_class_gets_by_its_share_alone_are_trusted_no_more_than_the_share(gap):
    X, y = clouds([[0.0, 0.0], [gap, 0.0]], 200, 40)
    model = OTP(evidence=None, class_prior=[0.9, 0.1], marginal_strength=1.0, max_rounds=1).fit(X, y)
    unlabelled = y == -1
    assert (model.transduction_[unlabelled] == 0).mean() > 0.95  # the share given decides, against half of the rows
    assert model.confidence_[unlabelled].mean() == pytest.approx(0.9, abs=0.07)
