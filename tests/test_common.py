"""scikit-learn's own checks, over the estimator in its settings."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from otprop import OTP

EXPECTED = {"check_classifiers_classes": "feeds y in {-1, 1}, and -1 means unlabelled here"}


@pytest.mark.filterwarnings("ignore:The transport plan did not reach tol", "ignore:y holds -1 and 1 only")
@parametrize_with_checks(
    [OTP(), OTP.paper(epsilon=0.5), OTP(cost="cityblock", max_rounds=3, min_round_share=0.2)],
    expected_failed_checks=lambda estimator: EXPECTED,
)
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)
