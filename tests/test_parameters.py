"""The parameter `evidence`: named classifiers, nested parameters, routed metadata."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from otprop import OTP, PaperOTP
from tests.estimators import geometry, nearness

GOOD = ([[0.0], [1.0], [0.2], [0.8]], [0, 1, -1, -1])


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    shown = np.full(len(y), -1)
    shown[::6] = y[::6]
    return X, shown


class Recorder(ClassifierMixin, BaseEstimator):
    """Keeps what its fits were given."""

    calls: ClassVar[list] = []

    def fit(self, X, y, sample_weight=None, price=None):
        self.calls.append((len(X), sample_weight, price))
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.full((len(X), len(self.classes_)), 1 / len(self.classes_))


def test_a_named_classifier_has_nested_parameters(iris):
    model = OTP(evidence=["linear", ("near", KNeighborsClassifier(3))])
    assert model.get_params()["near__n_neighbors"] == 3
    model.set_params(near__n_neighbors=5)
    assert model.evidence[1][1].n_neighbors == 5
    model.set_params(near=LogisticRegression(C=7.0), near__max_iter=5000)
    assert model.get_params()["near__C"] == 7.0
    assert model.get_params()["near__max_iter"] == 5000
    copy = clone(model)
    assert copy.evidence[1][1] is not model.evidence[1][1]
    assert [source.name for source in copy.fit(*iris).evidence_] == ["diffusion", "linear", "near"]


def test_a_plain_classifier_is_named_after_its_type(iris):
    near, far = KNeighborsClassifier(1), KNeighborsClassifier(9)
    model = OTP(evidence=[near, far, make_pipeline(StandardScaler(), LogisticRegression())]).fit(*iris)
    names = [source.name for source in model.evidence_]
    assert names == ["diffusion", "KNeighborsClassifier 1", "KNeighborsClassifier 2", "Pipeline"]


@pytest.mark.parametrize(
    ("evidence", "message"),
    [
        ([("a__b", LogisticRegression())], "holds the name 'a__b'"),
        ([("alpha", LogisticRegression())], "holds the name 'alpha'.*parameter of OTP"),
        ([("forest", LogisticRegression())], "holds the name 'forest'.*source of OTP"),
        ([("a", LogisticRegression()), ("a", KNeighborsClassifier())], "holds the name 'a' twice"),
        ([("a", "forest")], "got \\('a', 'forest'\\) in it"),
        (["forest", "forest"], "holds 'forest' twice"),
        ([LogisticRegression], "holds the class LogisticRegression"),
        ("trees", "must be 'auto', None, or a list"),
        (3, "got 3"),
    ],
)
def test_evidence_that_cannot_be_used_is_refused(iris, evidence, message):
    with pytest.raises(ValueError, match=f"^evidence .*{message}"):
        OTP(evidence=evidence).fit(*iris)


def test_metadata_is_routed_to_the_classifiers_that_ask_for_it(iris):
    X, y = iris
    price, weight = np.arange(len(X)), np.linspace(1, 2, len(X))
    Recorder.calls = []
    with sklearn.config_context(enable_metadata_routing=True):
        asked = Recorder().set_fit_request(price=True, sample_weight=True)
        OTP(evidence=[("asks", asked)]).set_fit_request(sample_weight=True).fit(X, y, sample_weight=weight, price=price)
        labeled = np.flatnonzero(y >= 0)
        n_rows, given, priced = Recorder.calls[-1]  # the last fit has all labelled rows
        assert n_rows == len(labeled)
        np.testing.assert_array_equal(priced, price[labeled])
        np.testing.assert_array_equal(given, weight[labeled])
        with pytest.raises(TypeError, match=r"unexpected argument.*'cost'"):
            OTP(evidence=[("asks", asked)]).fit(X, y, cost=price)
    with pytest.raises(TypeError, match=r"fit\(\) got price.*enable_metadata_routing"):
        OTP().fit(X, y, price=price)


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


@pytest.mark.parametrize("way", [geometry, nearness])
@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"alpha": 1.5}, ValueError, "alpha must be 'auto' or a finite number >= 0 and <= 1; got 1.5"),
        ({"metric": "euclidian"}, ValueError, "metric must be .*; did you mean 'euclidean'"),
        ({"cost": 3}, TypeError, "cost must be 'diffusion', 'graph', 'precomputed', the name of a metric"),
        ({"marginal_strength": 2}, ValueError, "marginal_strength must be 'auto' or .*; got 2"),
        ({"diffusion": 1.0}, ValueError, "diffusion must be 'auto' or a finite number > 0 and < 1; got 1.0"),
        ({"n_neighbors": 0}, ValueError, "n_neighbors must be 'auto' or an integer >= 1; got 0"),
        ({"n_neighbors": "many"}, TypeError, "n_neighbors must be 'auto' or an integer >= 1; got 'many'"),
        ({"metric": "euclidian"}, ValueError, "metric must be a callable of two rows or one of .*'euclidian'"),
        ({"metric": 2}, TypeError, "metric must be a callable of two rows or one of .*; got 2"),
        ({"abstain_below": 1.1}, ValueError, "abstain_below must be None or a finite number .*; got 1.1"),
        ({"evidence": "forest"}, TypeError, "evidence must be 'auto', None, or a list .*; got 'forest'"),
        ({"evidence": ["trees"]}, ValueError, "evidence must be .*'forest', .*'linear', .*; got 'trees' in it"),
        ({"evidence": [GaussianNB]}, TypeError, r"the class GaussianNB; put an instance .*: GaussianNB\(\)"),
        ({"cost": "difusion"}, ValueError, "did you mean 'diffusion'.* Accepted: 'diffusion', 'graph'"),
        ({"evidence": [StandardScaler()]}, ValueError, "A classifier must have predict_proba"),
        ({"max_rounds": 0}, ValueError, "max_rounds must be 'auto' or None or an integer >= 1; got 0"),
        ({"max_rounds": "few"}, TypeError, "max_rounds must be 'auto' or None or an integer .*; got 'few'"),
        ({"random_state": "seed"}, ValueError, "random_state must be None, a whole number .*; got 'seed'"),
        ({"n_jobs": 0}, ValueError, "n_jobs must be None or an integer other than 0; got 0"),
        ({"n_jobs": "two"}, ValueError, "n_jobs must be None or an integer other than 0; got 'two'"),
        ({"n_jobs": True}, ValueError, "n_jobs must be None or an integer other than 0; got True"),
        ({"random_state": True}, ValueError, "a whole number from 0 to 4294967295 or a RandomState; got True"),
        (
            {"random_state": 2**40},
            ValueError,
            "a whole number from 0 to 4294967295 or a RandomState; got 1099511627776",
        ),
    ],
)
def test_bad_parameters_of_class_level_are_refused_by_name(way, parameters, error, message):
    with pytest.raises(error, match=message):
        way(**parameters).fit(*GOOD)
