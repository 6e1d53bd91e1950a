"""PaperOTP beside OTP: its parameters, what it does not have, and its deprecated name."""

from __future__ import annotations

import numpy as np
import pytest

from otprop import OTP, PaperOTP

GOOD = ([[0.0], [1.0], [0.2], [0.8]], [0, 1, -1, -1])
OF_OTP = ("explain", "suggest", "coverage", "labels_needed", "freeze", "predict_confidence", "predict_with_confidence")


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


@pytest.mark.parametrize(
    ("parameters", "kind", "message"),
    [
        ({"cost": "diffusion"}, ValueError, r"cost='diffusion' is not a known metric.*Accepted: 'precomputed'"),
        ({"cost": "graph"}, ValueError, "cost='graph' is not a known metric"),
        ({"cost": 3}, TypeError, "cost must be 'precomputed', the name of a metric or a callable; got 3"),
        ({"alpha": "auto"}, ValueError, "alpha must be a finite number >= 0 and <= 1; got 'auto'"),
        ({"epsilon": 0}, ValueError, "epsilon must be 'auto' or a finite number > 0; got 0"),
        ({"max_rounds": "auto"}, ValueError, "max_rounds must be None or an integer >= 1; got 'auto'"),
        ({"tol": 0}, ValueError, "tol must be"),
        ({"callback": 1}, ValueError, "callback must be None or a function of one round; got 1"),
    ],
)
def test_wrong_parameters_are_refused_by_name(parameters, kind, message):
    with pytest.raises(kind, match=message):
        PaperOTP(**parameters).fit(*GOOD)


def test_otp_paper_warns_and_returns_a_paper_otp():
    with pytest.warns(FutureWarning, match=r"OTP\.paper is deprecated.*use PaperOTP") as record:
        model = OTP.paper(0.016, alpha=0.8)
    assert record[0].filename == __file__
    assert type(model) is PaperOTP
    assert (model.epsilon, model.alpha) == (0.016, 0.8)
    np.testing.assert_array_equal(model.fit(*GOOD).transduction_, [0, 1, 0, 1])
