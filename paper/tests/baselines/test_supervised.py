import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.svm import LinearSVC

from otprop_paper.baselines import SelfTraining, Supervised


def test_the_default_is_logistic_regression_on_standardised_labelled_rows(iris):
    X, _, labels = iris
    given = labels >= 0
    peer = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(X[given], labels[given])
    model = Supervised().fit(X, labels)
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X))
    np.testing.assert_allclose(model.label_distributions_[~given], peer.predict_proba(X[~given]))


def test_unlabelled_rows_have_no_influence(iris):
    X, _, labels = iris
    moved = X + 100.0 * (labels < 0)[:, None]
    np.testing.assert_array_equal(
        Supervised().fit(X, labels).predict_proba(X), Supervised().fit(moved, labels).predict_proba(X)
    )


def test_extra_trees_come_by_name_with_two_hundred_trees(iris):
    X, _, labels = iris
    given = labels >= 0
    model = Supervised("extra_trees", random_state=3).fit(X, labels)
    assert isinstance(model.classifier_, ExtraTreesClassifier)
    assert len(model.classifier_.estimators_) == 200
    again = Supervised("extra_trees", random_state=3).fit(X, labels)
    np.testing.assert_array_equal(model.label_distributions_, again.label_distributions_)
    np.testing.assert_array_equal(model.predict(X[given]), labels[given])


def test_a_given_classifier_is_cloned_and_used(iris):
    X, _, labels = iris
    given = labels >= 0
    bayes = GaussianNB()
    model = Supervised(bayes).fit(X, labels)
    assert not hasattr(bayes, "theta_")
    np.testing.assert_allclose(model.predict_proba(X), GaussianNB().fit(X[given], labels[given]).predict_proba(X))


def test_a_classifier_without_probabilities_gives_one_hot_rows(iris):
    X, _, labels = iris
    model = Supervised(LinearSVC()).fit(X, labels)
    assert set(np.unique(model.label_distributions_)) == {0.0, 1.0}
    np.testing.assert_array_equal(model.label_distributions_.sum(axis=1), 1.0)


def test_self_training_is_scikit_learns(iris):
    X, _, labels = iris
    peer = SelfTrainingClassifier(GaussianNB(), threshold=0.9, max_iter=5).fit(X, labels)
    model = SelfTraining(GaussianNB(), threshold=0.9, max_iter=5).fit(X, labels)
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X))
    assert model.n_iter_ == peer.n_iter_ + 1


def test_self_training_lets_unlabelled_rows_speak(iris):
    X, _, labels = iris
    alone = Supervised().fit(X, labels).predict_proba(X)
    taught = SelfTraining(threshold=0.6).fit(X, labels).predict_proba(X)
    assert np.abs(alone - taught).max() > 0.01


def test_self_training_with_nothing_unlabelled_is_plain_training(iris):
    X, y, _ = iris
    np.testing.assert_array_equal(SelfTraining().fit(X, y).predict_proba(X), Supervised().fit(X, y).predict_proba(X))


def test_self_training_refuses_a_classifier_without_probabilities(iris):
    X, _, labels = iris
    with pytest.raises(TypeError, match="predict_proba"):
        SelfTraining(LinearSVC()).fit(X, labels)
