"""scikit-learn's checks, and the promises every baseline makes, over all of them."""

import inspect

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import otprop_paper.baselines as baselines

REASON = "feeds y in {-1, 1}, and -1 means unlabelled here"
KNOWN_TO_SCIKIT_LEARN = {"LabelPropagation", "LabelSpreading"}  # by name: it gives these no -1


def make(cls, **parameters):
    seeded = {"random_state": 0} if "random_state" in inspect.signature(cls).parameters else {}
    return cls(**seeded, **parameters)


ESTIMATORS = [make(getattr(baselines, name)) for name in baselines.__all__]
ESTIMATORS += [baselines.LabelPropagation("knn"), baselines.LabelSpreading("knn")]
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)


def expected_failures(estimator):
    return {} if type(estimator).__name__ in KNOWN_TO_SCIKIT_LEARN else {"check_classifiers_classes": REASON}


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)


def assert_distributions(table, n_rows, n_classes):
    assert table.shape == (n_rows, n_classes)
    assert np.isfinite(table).all()
    assert (table >= 0).all()
    np.testing.assert_allclose(table.sum(axis=1), 1.0, atol=1e-9)


@every_estimator
def test_given_labels_are_kept_and_every_row_has_a_distribution(estimator, iris):
    X, _, labels = iris
    model = clone(estimator).fit(X, labels)
    given = labels >= 0
    np.testing.assert_array_equal(model.transduction_[given], labels[given])
    np.testing.assert_array_equal(model.label_distributions_[given], np.eye(3)[labels[given]])
    assert_distributions(model.label_distributions_, len(X), 3)
    assert_distributions(model.predict_proba(X + 0.01), len(X), 3)


@every_estimator
def test_it_does_far_better_than_chance_on_iris(estimator, iris):
    X, y, labels = iris
    hidden = labels < 0
    least = 0.5 if isinstance(estimator, baselines.CNMF) else 0.7  # its start decides: 0.59 to 0.96 here
    assert np.mean(clone(estimator).fit(X, labels).transduction_[hidden] == y[hidden]) > least


@every_estimator
def test_labels_may_be_text_with_none_for_unlabelled(estimator, iris):
    X, _, labels = iris
    names = np.array(["zebra", "ant", "mole"])
    text = [None if code < 0 else str(names[code]) for code in labels]
    # classes are numbered in sorted order, so the numeric labels must be renumbered alike for the same starts
    numbers = np.where(labels < 0, -1, np.array([2, 0, 1])[labels])
    expected = np.array(["ant", "mole", "zebra"])[clone(estimator).fit(X, numbers).transduction_]
    np.testing.assert_array_equal(clone(estimator).fit(X, text).transduction_, expected)


@every_estimator
def test_the_marker_can_be_named(estimator, iris):
    X, _, labels = iris
    model = clone(estimator).set_params(unlabeled=99).fit(X, np.where(labels < 0, 99, labels))
    np.testing.assert_array_equal(model.transduction_, clone(estimator).fit(X, labels).transduction_)


@every_estimator
def test_one_labelled_class_goes_to_all_rows_with_certainty(estimator, iris):
    X, _, labels = iris
    model = clone(estimator).fit(X, np.where(labels == 1, "only", None))
    assert set(model.transduction_) == {"only"}
    np.testing.assert_array_equal(model.label_distributions_, np.ones((len(X), 1)))
    np.testing.assert_array_equal(model.predict_proba(X[:4]), np.ones((4, 1)))


@every_estimator
@pytest.mark.parametrize(
    "change",
    [lambda X: X * 1e-150, lambda X: X * 1e150, lambda X: X + 1e9, lambda X: np.zeros_like(X), lambda X: X.round()],
    ids=["tiny", "huge", "shifted", "all rows equal", "repeated rows"],
)
def test_any_finite_rows_get_finite_distributions(estimator, change, iris):
    X, _, labels = iris
    X = change(X)
    model = clone(estimator).fit(X, labels)
    assert_distributions(model.label_distributions_, len(X), 3)
    assert_distributions(model.predict_proba(X), len(X), 3)


@every_estimator
def test_new_rows_beyond_all_bounds_get_finite_distributions(estimator, iris):
    X, _, labels = iris
    model = clone(estimator).fit(X, labels)
    assert_distributions(model.predict_proba(np.array([[1e200] * 4, [-1e200] * 4, [1e200, 0, 0, 0]])), 3, 3)


@every_estimator
def test_sparse_rows_give_the_same_labels_as_dense_ones_or_are_refused(estimator, digits):
    X, _, labels = digits
    if not get_tags(estimator).input_tags.sparse:
        with pytest.raises(TypeError, match=r"[Ss]parse"):
            clone(estimator).fit(sparse.csr_array(X), labels)
        return
    dense = clone(estimator).fit(X, labels)
    model = clone(estimator).fit(sparse.csr_array(X), labels)
    assert np.mean(model.transduction_ == dense.transduction_) > 0.98  # ties, and scaling without a shift
    assert np.mean(model.predict(sparse.csr_array(X)) == dense.predict(X)) > 0.98


@every_estimator
def test_the_same_input_gives_the_same_output(estimator, iris):
    X, _, labels = iris
    first, second = (clone(estimator).fit(X, labels) for _ in range(2))
    np.testing.assert_array_equal(first.label_distributions_, second.label_distributions_)


@pytest.mark.parametrize(
    ("name", "parameters", "error"),
    [
        ("LabelPropagation", {"kernel": "cosine"}, ValueError),
        ("LabelPropagation", {"sigma": 0.0}, ValueError),
        ("LabelPropagation", {"sigma": "wide"}, TypeError),
        ("LabelPropagation", {"n_neighbors": 0}, ValueError),
        ("LabelPropagation", {"max_iter": 1.5}, TypeError),
        ("LabelPropagation", {"tol": -1.0}, ValueError),
        ("LabelSpreading", {"kernel": 3}, ValueError),
        ("LabelSpreading", {"sigma": np.nan}, ValueError),
        ("LabelSpreading", {"alpha": 1.0}, ValueError),
        ("LabelSpreading", {"tol": np.inf}, ValueError),
        ("LNP", {"n_neighbors": "ten"}, TypeError),
        ("LNP", {"alpha": 0.0}, ValueError),
        ("LNP", {"tol": 0}, ValueError),
        ("LNP", {"max_iter": 0}, ValueError),
        ("CNMF", {"n_components": 0}, ValueError),
        ("CNMF", {"max_iter": True}, TypeError),
        ("CNMF", {"tol": -1}, ValueError),
        ("CNMF", {"n_init": 0}, ValueError),
        ("PLCC", {"strength": -1}, ValueError),
        ("PLCC", {"max_iter": None}, TypeError),
        ("KernelVote", {"epsilon": -0.1}, ValueError),
        ("Supervised", {"classifier": "forest"}, ValueError),
        ("Supervised", {"classifier": 7}, TypeError),
        ("SelfTraining", {"threshold": 1.0}, ValueError),
        ("SelfTraining", {"max_iter": 0}, ValueError),
    ],
)
def test_a_wrong_parameter_is_named_with_what_came(name, parameters, error, iris):
    X, _, labels = iris
    ((argument, value),) = parameters.items()
    with pytest.raises(error, match=rf"(?s)^{argument} must be .*; got {value!r}"):
        getattr(baselines, name)(**parameters).fit(X, labels)
