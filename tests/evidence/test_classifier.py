"""Classifiers as sources of evidence."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from otprop.evidence import classifier, forest, linear
from otprop.evidence.classifier import ClassifierSource
from otprop.evidence.forest import ForestSource
from otprop.evidence.held_out import make_folds
from otprop.evidence.linear import LinearSource
from otprop.evidence.scaling import ScaledRows


@pytest.fixture(autouse=True)
def few_trees(monkeypatch):
    monkeypatch.setattr(forest, "N_TREES", 40)


def table(n_rows=60, n_classes=2, gap=3.0, seed=0):
    """Clouds a `gap` apart, two thirds of the rows labelled."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n_rows) % n_classes
    X = rng.normal(size=(n_rows, 3)) + gap * truth[:, None]
    return X, np.where(np.arange(n_rows) < 2 * n_rows // 3, truth, -1), truth


def sources(X, n_classes):
    features = ScaledRows.of(X)
    return [
        ForestSource(features, n_classes, 0, 1),
        LinearSource(features, n_classes, 0),
        ClassifierSource("GaussianNB", GaussianNB(), X, np.arange(n_classes)),
        ClassifierSource("KNeighborsClassifier", KNeighborsClassifier(3), X, np.arange(n_classes)),
    ]


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("labels", [40, 400])
def test_a_source_says_probabilities_of_every_row_and_of_the_hidden_ones(number, labels):
    X, codes, truth = table(labels * 3 // 2, n_classes=3)
    hidden = make_folds(codes, 3, 0)
    assert hidden.leave_one_out == (labels == 40)
    source = sources(X, 3)[number]
    says = source.fit(codes, np.ones(len(X)), hidden)
    assert says.rows.shape == (len(X), 3)
    assert says.held_out.shape == (len(hidden), 3)
    for logs in (says.rows, says.held_out):
        np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1, rtol=1e-5)
    assert (says.rows.argmax(axis=1) == truth).mean() > 0.9
    assert (says.held_out.argmax(axis=1) == hidden.codes).mean() > 0.85
    np.testing.assert_allclose(source.predict_log_proba(X), says.rows, rtol=1e-4)


@pytest.mark.parametrize("number", range(4))
def test_labels_at_random_are_not_known_in_advance(number):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 3))
    codes = rng.permutation(np.arange(200) % 2)
    hidden = make_folds(codes, 2, 0)
    says = sources(X, 2)[number].fit(codes, np.ones(200), hidden)
    right = (says.held_out.argmax(axis=1) == hidden.codes).mean()
    assert 0.35 < right < 0.65  # four standard deviations around a half; whoever saw the labels knows most of them


class Spy(ClassifierMixin, BaseEstimator):
    """Remembers what it was trained on, and what it was then asked."""

    asked: list = []  # noqa: RUF012

    def fit(self, X, y, sample_weight=None):
        self.classes_, self._seen = np.unique(y), set(X[:, 0])
        return self

    def predict_proba(self, X):
        Spy.asked.append((self._seen, set(X[:, 0])))
        return np.full((len(X), len(self.classes_)), 1 / len(self.classes_))


@pytest.mark.parametrize("n_rows", [30, 300])
def test_a_hidden_row_is_only_asked_of_a_classifier_that_was_not_shown_it(n_rows):
    X = np.arange(n_rows, dtype=float)[:, None]
    codes = np.arange(n_rows) % 2
    hidden = make_folds(codes, 2, 0)
    Spy.asked = []
    ClassifierSource("Spy", Spy(), X, np.arange(2)).fit(codes, np.ones(n_rows), hidden)
    *folds, (seen, asked) = Spy.asked
    assert seen == asked == set(X[:, 0])
    assert set().union(*(rows for _, rows in folds)) == set(X[hidden.rows, 0])
    for shown, rows in folds:
        assert shown
        assert not shown & rows


def test_weights_reach_the_classifiers_that_take_them():
    X = np.array([[0.0], [0.0], [1.0], [1.0], [0.5]])  # of equal rows one is in each class
    codes = np.array([0, 1, 0, 1, -1])
    hidden = make_folds(codes, 2, 0)
    weights = np.array([1.0, 9.0, 1.0, 9.0, 1.0])
    forest, linear, bayes, neighbors = sources(X, 2)
    for source in (forest, linear, bayes):
        plain, heavy = (source.fit(codes, given, hidden).rows[:, 1] for given in (np.ones(5), weights))
        np.testing.assert_allclose(np.exp(plain), 0.5, atol=0.01)
        np.testing.assert_allclose(np.exp(heavy), 0.9, atol=0.01)
    plain, heavy = (neighbors.fit(codes, given, hidden).rows for given in (np.ones(5), weights))
    np.testing.assert_array_equal(plain, heavy)  # it takes none


def test_rows_of_weight_zero_are_not_shown():
    X, codes, _ = table()
    weights = np.where(np.arange(60) < 10, 0.0, 1.0)
    without = np.where(np.arange(60) < 10, -1, codes)
    for one, other in zip(sources(X, 2), sources(X, 2), strict=True):
        hidden = make_folds(without, 2, 0)
        first, second = one.fit(codes, weights, hidden), other.fit(without, np.ones(60), hidden)
        np.testing.assert_allclose(first.rows, second.rows, atol=1e-6)


def test_a_class_without_a_label_here_is_not_excluded():
    X, codes, _ = table()
    for source in sources(X, 4):
        says = source.fit(codes, np.ones(60), make_folds(codes, 4, 0))
        assert says.rows.shape == (60, 4)
        assert np.isfinite(says.rows).all()
        assert np.isfinite(says.held_out).all()


def test_one_class_leaves_nothing_to_tell_apart():
    X = np.arange(6.0)[:, None]
    codes = np.array([0, 0, 0, -1, -1, -1])
    for source in sources(X, 2):
        says = source.fit(codes, np.ones(6), make_folds(codes, 2, 0))
        assert (says.rows.argmax(axis=1) == 0).all()
        assert (says.held_out.argmax(axis=1) == 0).all()


def test_of_many_labels_some_are_enough(monkeypatch):
    monkeypatch.setattr(linear, "MAX_LABELS", 20)
    monkeypatch.setattr(forest, "MAX_OUT_OF_BAG", 50)
    monkeypatch.setattr(classifier, "BLOCK_ENTRIES", 14)
    X, codes, truth = table(150)
    for source in sources(X, 2)[:2]:
        says = source.fit(codes, np.ones(150), make_folds(codes, 2, 0))
        assert (says.rows.argmax(axis=1) == truth).mean() > 0.9


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda shares: shares * np.nan, "gave values that are not probabilities: .* got values from nan to nan"),
        (lambda shares: shares * 100, "gave values that are not probabilities: .* sum to 1 in every row"),
        (lambda shares: shares * 3 - 1, "gave values that are not probabilities"),
        (np.log, "gave values that are not probabilities"),
        (lambda shares: shares[1:], r"gave probabilities of shape \(\d+, 2\) for \d+ rows and its 2 classes"),
        (lambda shares: shares[:, :1], "gave probabilities of shape"),
    ],
)
def test_a_classifier_whose_probabilities_are_none_is_named(answer, message):
    class Broken(LogisticRegression):
        def predict_proba(self, X):
            return answer(super().predict_proba(X))

    X, codes, _ = table()
    with pytest.raises(ValueError, match=f"Broken, a classifier in evidence, {message}"):
        ClassifierSource("Broken", Broken(), X, np.arange(2)).fit(codes, np.ones(60), make_folds(codes, 2, 0))


def test_a_classifier_that_cannot_be_cloned_is_named():
    class Odd:
        def fit(self, X, y):
            return self

        def predict_proba(self, X):
            return np.ones((len(X), 2)) / 2

    X, codes, _ = table()
    with pytest.raises(ValueError, match="Odd, a classifier in evidence, failed: Cannot clone object"):
        ClassifierSource("Odd", Odd(), X, np.arange(2)).fit(codes, np.ones(60), make_folds(codes, 2, 0))


def test_a_classifier_sees_the_labels_that_the_user_gave():
    X, codes, truth = table()
    classes = np.array(["no", "yes"])
    frozen = FrozenEstimator(LogisticRegression(class_weight={"no": 1, "yes": 2}).fit(X, classes[truth]))
    says = ClassifierSource("frozen", frozen, X, classes).fit(codes, np.ones(60), make_folds(codes, 2, 0))
    assert (says.rows.argmax(axis=1) == truth).mean() > 0.9


def test_a_classifier_that_knows_other_classes_is_refused():
    X, codes, truth = table()
    frozen = FrozenEstimator(LogisticRegression().fit(X, np.array(["no", "perhaps"])[truth]))
    with pytest.raises(ValueError, match=r"knows the class 'perhaps', which y does not have.*\['no', 'yes'\]"):
        ClassifierSource("frozen", frozen, X, np.array(["no", "yes"])).fit(codes, np.ones(60), make_folds(codes, 2, 0))


def test_what_the_users_classifier_warns_of_is_heard_and_ours_is_not():
    X, codes, _ = table(gap=0.3)
    with pytest.warns(ConvergenceWarning):
        ClassifierSource("own", LogisticRegression(max_iter=1), X, np.arange(2)).fit(
            codes, np.ones(60), make_folds(codes, 2, 0)
        )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LinearSource(ScaledRows.of(X), 2, 0).fit(codes, np.ones(60), make_folds(codes, 2, 0))
