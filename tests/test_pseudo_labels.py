"""Labels and weights for a learner of the user's."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

from otprop import PaperOTP
from tests.estimators import geometry


@pytest.fixture
def blobs():
    """Forty rows of one class and ten of another, two labels of each."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(0, 1, (40, 2)), rng.normal(8, 1, (10, 2))])
    y = np.full(50, None, dtype=object)
    y[[0, 1]], y[[40, 41]] = "many", "few"
    return X, y


def test_all_classes_have_the_same_weight_where_all_rows_are_as_confident(blobs):
    X, y = blobs
    model = geometry().fit(X, y)
    model.confidence_[:] = 0.9
    _, labels, weight = model.pseudo_labels()
    assert weight[labels == "many"].sum() == pytest.approx(weight[labels == "few"].sum())
    assert weight.mean() == pytest.approx(1)


def test_within_a_class_weights_are_in_proportion_to_confidence(blobs):
    X, y = blobs
    model = geometry().fit(X, y)
    _, labels, weight = model.pseudo_labels()
    many = labels == "many"
    ratio = weight[many] / model.confidence_[many]
    np.testing.assert_allclose(ratio, ratio[0])


def test_a_classifier_learns_from_them(blobs):
    X, y = blobs
    rows, labels, weight = geometry().fit(X, y).pseudo_labels()
    learner = LogisticRegression().fit(rows, labels, sample_weight=weight)
    assert learner.predict([[0, 0], [8, 8]]).tolist() == ["many", "few"]


def test_the_paper_s_way_weighs_by_certainty(blobs):
    X, y = blobs
    model = PaperOTP().fit(X, y)
    rows, labels, weight = model.pseudo_labels()
    np.testing.assert_array_equal(rows, X)
    few = labels == "few"
    ratio = weight[few] / model.certainty_[few]
    np.testing.assert_allclose(ratio, ratio[0])


def test_rows_left_unlabelled_are_left_out(blobs):
    X, y = blobs
    whole = geometry().fit(X, y)
    threshold = float(np.median(whole.confidence_))
    rows, labels, _ = geometry(abstain_below=threshold).fit(X, y).pseudo_labels()
    kept = (whole.confidence_ >= threshold) | (whole.round_ == 0)
    assert 0 < kept.sum() < len(X)
    np.testing.assert_array_equal(rows, X[kept])
    assert set(labels) == {"few", "many"}


@pytest.mark.parametrize("kind", [pd.DataFrame, sp.csr_array, lambda X: X.reshape(-1, 1, 2), lambda X: X.tolist()])
def test_other_rows_can_take_the_place_of_those_of_the_fit(blobs, kind):
    X, y = blobs
    rows, labels, weight = geometry().fit(X, y).pseudo_labels(kind(X))
    assert rows.shape[0] == len(labels) == len(weight) == 50
    assert isinstance(rows, (pd.DataFrame, sp.csr_array, np.ndarray))


def test_rows_that_do_not_fit_or_are_missing_are_named(blobs):
    X, y = blobs
    model = geometry().fit(X, y)
    with pytest.raises(ValueError, match="X has 3 rows, but the model was fitted on 50"):
        model.pseudo_labels(X[:3])
    copied = pickle.loads(pickle.dumps(model))
    with pytest.raises(RuntimeError, match=r"pseudo_labels\(\) needs the rows.*pass X"):
        copied.pseudo_labels()
    np.testing.assert_array_equal(copied.pseudo_labels(X)[2], model.pseudo_labels()[2])
