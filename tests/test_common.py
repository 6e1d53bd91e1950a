"""scikit-learn's own checks, over both estimators in their settings."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from otprop import OTP, PaperOTP
from tests.estimators import nearness

EXPECTED = {"check_classifiers_classes": "feeds y in {-1, 1}, and -1 means unlabelled here"}
WEIGHTS = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")
AS_NEIGHBORS = "two equal rows are neighbours in the graph and two draws for the forest; one of weight 2 is neither"
AS_HIDDEN = "of two equal rows the one answers for the label of the other when that is hidden"


def expected(estimator):
    """The checks that cannot hold, each with its reason."""
    if isinstance(estimator, PaperOTP):
        return EXPECTED
    return EXPECTED | dict.fromkeys(WEIGHTS, AS_NEIGHBORS if estimator.cost == "diffusion" else AS_HIDDEN)


@pytest.mark.filterwarnings("ignore:The transport plan did not reach tol", "ignore:y holds -1 and 1 only")
@parametrize_with_checks(
    [
        OTP(),
        nearness(),
        PaperOTP(epsilon=0.5),
        PaperOTP(cost="cityblock", max_rounds=3, min_round_share=0.2),
    ],
    expected_failed_checks=expected,
)
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)
