"""Predictions of OTP: objectives, costs, sets of classes, and bounds of the error."""

from __future__ import annotations

import numpy as np
import pytest

from otprop import OTP
from otprop._validation import ParameterError


@pytest.fixture(scope="module")
def rare() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two overlapping classes, one with a tenth of the rows; the truth, and 60 random labels of 600 rows."""
    rng = np.random.default_rng(3)
    truth = np.where(rng.random(600) < 0.1, "yes", "no")
    X = rng.normal(size=(600, 2)) + 1.4 * (truth == "yes")[:, None]
    y = truth.astype(object)
    y[60:] = None
    return X, y, truth


def test_accuracy_labels_are_the_most_probable_classes(rare: tuple[np.ndarray, ...]) -> None:
    X, y, _ = rare
    model = OTP().fit(X, y)
    assert (model.transduction_ == model.classes_[model.label_distributions_.argmax(axis=1)]).all()
    assert (OTP(objective="accuracy").fit(X, y).confidence_ == model.confidence_).all()


def test_objective_changes_the_labels_and_not_the_distributions(rare: tuple[np.ndarray, ...]) -> None:
    X, y, truth = rare
    plain, balanced = OTP().fit(X, y), OTP(objective="balanced").fit(X, y)
    assert (plain.label_distributions_ == balanced.label_distributions_).all()
    left, found = y == None, {name: model.transduction_ == "yes" for name, model in [("a", plain), ("b", balanced)]}  # noqa: E711
    recall = {name: (labelled & (truth == "yes"))[left].sum() for name, labelled in found.items()}
    assert recall["b"] > 1.3 * recall["a"]
    assert (balanced.transduction_[:60] == truth[:60]).all()  # given labels stay
    assert balanced.expected_error_ > plain.expected_error_  # that of the labels chosen
    assert np.isclose(1 - balanced.confidence_[left].mean(), balanced.expected_error_)
    assert np.isclose(balanced.expected_cost_, 1 - np.mean([one.f1 for one in balanced.class_errors()]))
    assert plain.expected_cost_ == plain.expected_error_


def test_predict_follows_the_objective(rare: tuple[np.ndarray, ...]) -> None:
    X, y, _ = rare
    model = OTP(objective={("yes", "no"): 20}).fit(X, y)
    assert (model.predict(X) == model.transduction_).mean() > 0.99
    new = X + 0.01
    codes, probabilities, confidence = model.predict_all(new)
    assert (model.predict(new) == model.classes_[codes]).all()
    assert (codes != probabilities.argmax(axis=1)).any()
    assert np.allclose(model.predict_confidence(new), confidence)
    changed = codes != probabilities.argmax(axis=1)
    assert confidence[changed].max() <= 0.5 + 1e-9  # the label is not the most probable one


def test_cost_of_one_for_every_pair_is_accuracy(rare: tuple[np.ndarray, ...]) -> None:
    X, y, _ = rare
    plain, costs = OTP().fit(X, y), OTP(objective={("yes", "no"): 1, ("no", "yes"): 1}).fit(X, y)
    assert (plain.transduction_ == costs.transduction_).all()
    assert np.isclose(costs.expected_cost_, costs.expected_error_, atol=0.01)


@pytest.mark.parametrize(
    ("objective", "words"),
    [
        ("balnced", "did you mean 'balanced'"),
        (3, "must be 'accuracy', 'balanced', or costs"),
        ({}, "empty mapping"),
        ({"yes": 3}, "got the key 'yes'"),
        ({("yes", "no"): -1}, "must be a finite number >= 0"),
        ({("yes", "no"): float("nan")}, "must be a finite number >= 0"),
        ({("yes", "no"): 1e308}, "must be a finite number >= 0 and <= 1e+100"),
        ({("yes", "yes"): 2}, "only errors cost"),
        ({("yes", "maybe"): 2}, "'maybe', which no label shows"),
    ],
)
def test_objective_refuses_what_it_cannot_use(objective: object, words: str, rare: tuple[np.ndarray, ...]) -> None:
    X, y, _ = rare
    with pytest.raises(ParameterError, match="objective") as error:
        OTP(objective=objective).fit(X, y)
    assert words in str(error.value)


def test_objective_warns_of_a_class_with_one_label() -> None:
    X = np.vstack([np.random.default_rng(0).normal(c, 0.3, size=(20, 2)) for c in (0, 3)])
    y = np.full(40, -1)
    y[:5], y[20] = 0, 1
    with pytest.warns(UserWarning, match="rests on one label for the class 1"):
        OTP(objective="balanced").fit(X, y)
