"""The estimator, as a user meets it."""

from __future__ import annotations

import logging
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import accuracy_score, pairwise_distances
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from otprop import OTP

GOOD = ([[0.0], [1.0], [0.2], [0.8]], [0, 1, -1, -1])


def hide(y, share, seed=0):
    """`y` with -1 for all but a stratified share of its entries."""
    kept, _ = train_test_split(np.arange(len(y)), train_size=share, stratify=y, random_state=seed)
    hidden = np.full(len(y), -1)
    hidden[kept] = y[kept]
    return hidden


@pytest.fixture(scope="module")
def iris():
    X, truth = load_iris(return_X_y=True)
    return X, truth, hide(truth, 0.1)


@pytest.fixture(scope="module")
def fitted(iris):
    X, _, y = iris
    return OTP().fit(X, y)


def test_most_rows_of_iris_are_labelled_rightly(iris, fitted):
    _, truth, y = iris
    assert accuracy_score(truth[y == -1], fitted.transduction_[y == -1]) > 0.8


def test_the_attributes_fit_together(iris, fitted):
    _, _, y = iris
    given = y != -1
    assert (fitted.transduction_[given] == y[given]).all()
    assert (fitted.certainty_[given] == 1).all()
    assert (fitted.round_[given] == 0).all()
    assert (fitted.round_[~given] >= 1).all()
    assert fitted.round_.max() == len(fitted.rounds_) == fitted.n_iter_
    np.testing.assert_allclose(fitted.label_distributions_.sum(axis=1), 1, atol=1e-9)
    assert (fitted.classes_[fitted.label_distributions_.argmax(axis=1)] == fitted.transduction_).all()
    for round_ in fitted.rounds_:
        assert (fitted.round_[round_.rows] == round_.number).all()
        assert round_.converged
        assert max(round_.source_error, round_.target_error) <= 1e-6
        assert round_.seconds > 0
        assert round_.epsilon == fitted.epsilon_


def test_rows_are_labelled_above_the_threshold_of_their_round(fitted):
    for round_ in fitted.rounds_:
        assert (fitted.certainty_[round_.rows] >= round_.threshold - 1e-9).all()


@pytest.mark.parametrize("factor", [0.01, 0.1, 1.0, 10.0])
def test_prediction_on_the_training_rows_keeps_given_labels_and_agrees_with_the_rounds(iris, factor):
    X, _, y = iris
    model = OTP(epsilon=factor * 0.05).fit(X, y)
    predicted = model.predict(X)
    assert (predicted[y != -1] == y[y != -1]).all()
    sure = model.certainty_ >= 0.9
    assert np.mean(predicted[sure] == model.transduction_[sure]) >= 0.99


def test_prediction_agrees_with_the_rounds_on_digits_where_there_are_many():
    X, truth = load_digits(return_X_y=True)
    X, truth = X[:900], truth[:900]
    y = hide(truth, 0.05)
    model = OTP(epsilon=300.0).fit(X, y)
    assert len(model.rounds_) > 40
    predicted = model.predict(X)
    assert (predicted[y != -1] == y[y != -1]).all()
    sure = model.certainty_ >= 0.9
    assert np.mean(predicted[sure] == model.transduction_[sure]) >= 0.99


def test_identical_rows_with_different_labels_are_predicted_by_their_weight():
    X = [[0.0], [0.0], [0.0], [5.0], [0.1]]
    model = OTP(epsilon=0.1).fit(X, ["a", "a", "b", "b", None], sample_weight=[1, 1, 6, 1, 1])
    np.testing.assert_allclose(model.predict_proba([[0.0]]), [[0.25, 0.75]])


def test_new_rows_are_labelled_like_their_neighbours(fitted):
    probabilities = fitted.predict_proba([[5.0, 3.4, 1.5, 0.2], [6.9, 3.1, 5.4, 2.1]])
    assert fitted.predict([[5.0, 3.4, 1.5, 0.2], [6.9, 3.1, 5.4, 2.1]]).tolist() == [0, 2]
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)


def test_a_row_far_from_everything_is_predicted_without_overflow(fitted):
    assert np.isfinite(fitted.predict_proba([[1e200] * 4, [-1e300] * 4])).all()


def test_string_labels_and_their_marker_come_through(iris):
    X, _, y = iris
    names = np.array(["setosa", "versicolor", "virginica"], dtype=object)
    text = np.where(y == -1, None, names[y])
    model = OTP().fit(X, text)
    assert model.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert (model.transduction_ == names[OTP().fit(X, y).transduction_]).all()


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_data_frames_give_the_same_labels_and_their_column_names_are_kept(iris, fitted, frame):
    X, _, y = iris
    names = ["a", "b", "c", "d"]
    table = frame(dict(zip(names, X.T, strict=True)))
    column = pd.Series(y, dtype="Int64").replace(-1, pd.NA) if frame is pd.DataFrame else pl.Series(y)
    model = OTP().fit(table, column)
    assert (model.transduction_ == fitted.transduction_).all()
    assert model.feature_names_in_.tolist() == names
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame(dict(zip(["a", "b", "c", "e"], X.T, strict=True))))


@pytest.mark.parametrize("make", [sp.csr_array, sp.coo_matrix, sp.csc_array])
def test_sparse_rows_give_the_same_labels(iris, fitted, make):
    X, _, y = iris
    model = OTP().fit(make(X), y)
    assert (model.transduction_ == fitted.transduction_).all()
    np.testing.assert_allclose(model.predict_proba(make(X)), fitted.predict_proba(X), atol=1e-6)


def test_a_precomputed_cost_is_the_same_as_its_metric(iris, fitted):
    X, _, y = iris
    costs = pairwise_distances(X, metric="sqeuclidean")
    model = OTP(cost="precomputed").fit(costs, y)
    assert (model.transduction_ == fitted.transduction_).all()
    assert model.epsilon_ == pytest.approx(fitted.epsilon_)
    np.testing.assert_allclose(model.predict_proba(costs[:5]), fitted.predict_proba(X[:5]), atol=1e-6)


@pytest.mark.parametrize("metric", ["euclidean", "cityblock", "cosine", "seuclidean", "mahalanobis", "chebyshev"])
def test_any_metric_of_scikit_learn_can_be_the_cost(iris, metric):
    X, truth, y = iris
    model = OTP(cost=metric).fit(X, y)
    assert accuracy_score(truth, model.transduction_) > 0.7
    assert all(round_.converged for round_ in model.rounds_)


def test_a_callable_can_be_the_cost(iris):
    X, truth, _ = iris
    X, y = X[::3], hide(truth[::3], 0.2)
    by_name = OTP(cost="cityblock").fit(X, y)
    by_call = OTP(cost=lambda one, other: float(np.abs(one - other).sum())).fit(X, y)
    assert (by_name.transduction_ == by_call.transduction_).all()


def test_weights_count_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = np.where(np.arange(40) < 8, np.arange(40) % 2, -1)
    weights = np.ones(40)
    weights[:4] = [3, 0, 2, 1]
    repeated = np.concatenate([np.repeat(np.arange(8), weights[:8].astype(int)), np.arange(8, 40)])
    weighted = OTP(epsilon=0.3, tol=1e-10).fit(X, y, sample_weight=weights)
    again = OTP(epsilon=0.3, tol=1e-10).fit(X[repeated], y[repeated])
    np.testing.assert_allclose(weighted.label_distributions_[8:], again.label_distributions_[repeated >= 8], atol=1e-7)


def test_weights_are_routed_through_a_pipeline(iris):
    X, _, y = iris
    weights = np.random.default_rng(0).uniform(0.5, 2, len(y))
    with config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(StandardScaler(), OTP().set_fit_request(sample_weight=True))
        pipeline[0].set_fit_request(sample_weight=False)
        pipeline.fit(X, y, sample_weight=weights)
    direct = OTP().fit(StandardScaler().fit_transform(X), y, sample_weight=weights)
    assert (pipeline[-1].transduction_ == direct.transduction_).all()


def test_a_clone_and_a_pickle_behave_like_the_original(iris, fitted):
    X, _, y = iris
    assert (clone(fitted).fit(X, y).transduction_ == fitted.transduction_).all()
    back = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(back.predict_proba(X), fitted.predict_proba(X))


def test_a_grid_search_of_scikit_learn_can_turn_its_parameters(iris):
    X, truth, _ = iris
    search = GridSearchCV(OTP(), {"alpha": [0.5, 0.9]}, cv=3).fit(X, truth)
    assert search.best_score_ > 0.9


def test_paper_is_the_printed_algorithm():
    model = OTP.paper(epsilon=0.016, alpha=0.8)
    assert (model.cost, model.epsilon, model.alpha, model.max_rounds) == ("sqeuclidean", 0.016, 0.8, None)


def test_the_last_allowed_round_labels_all_that_is_left(iris):
    X, _, y = iris
    model = OTP(max_rounds=2, alpha=0.999).fit(X, y)
    assert len(model.rounds_) == 2
    assert (model.round_ >= 0).all()
    assert (model.transduction_ != -1).all()


def test_a_smallest_share_per_round_shortens_the_run(iris):
    X, _, y = iris
    model = OTP(epsilon=1.0, alpha=1.0, min_round_share=0.25).fit(X, y)
    for round_ in model.rounds_:
        assert len(round_.rows) >= 0.25 * round_.n_unlabeled
    assert len(model.rounds_) < 25


def test_a_callback_sees_every_round_as_it_ends(iris):
    X, _, y = iris
    seen = []
    model = OTP(callback=seen.append).fit(X, y)
    assert seen == model.rounds_


def test_a_callback_can_stop_the_run_and_the_rest_stays_unlabelled(iris):
    X, _, y = iris
    model = OTP(callback=lambda round_: round_.number == 1).fit(X, y)
    left = model.round_ == -1
    assert len(model.rounds_) == 1
    assert left.any()
    assert (model.transduction_[left] == -1).all()
    assert (model.transduction_[~left] != -1).all()
    np.testing.assert_allclose(model.label_distributions_.sum(axis=1), 1)
    assert np.isfinite(model.predict_proba(X)).all()


def test_progress_goes_to_the_log_and_never_to_standard_output(iris, capsys, caplog):
    X, _, y = iris
    with caplog.at_level(logging.INFO, logger="otprop"):
        model = OTP(verbose=1).fit(X, y)
    assert sum("round" in message for message in caplog.messages) == len(model.rounds_)
    assert capsys.readouterr() == ("", "")


def test_nothing_is_said_unless_asked(iris, capsys, caplog):
    X, _, y = iris
    with caplog.at_level(logging.INFO):
        OTP().fit(X, y)
    assert capsys.readouterr() == ("", "")
    assert not caplog.messages


def test_an_unfinished_solve_warns_once_and_says_what_to_change(iris):
    X, _, y = iris
    with pytest.warns(
        ConvergenceWarning, match=r"did not reach tol=1e-06 in \d+ of \d+ rounds.*Raise epsilon"
    ) as record:
        model = OTP(max_iter=1, epsilon=1e-3).fit(X, y)
    assert len(record) == 1
    assert not all(round_.converged for round_ in model.rounds_)
    assert np.isfinite(model.label_distributions_).all()


def test_with_nothing_unlabelled_there_is_no_round_and_prediction_still_works(iris):
    X, truth, _ = iris
    model = OTP().fit(X, truth)
    assert model.rounds_ == []
    assert (model.transduction_ == truth).all()
    assert accuracy_score(truth, model.predict(X + 0.01)) > 0.9


def test_a_single_class_is_given_to_every_row():
    model = OTP().fit([[0.0], [1.0], [9.0]], ["only", None, None])
    assert model.transduction_.tolist() == ["only"] * 3
    assert model.certainty_.tolist() == [1.0] * 3


def test_costs_too_large_for_memory_give_the_same_labels(iris, fitted, monkeypatch):
    X, _, y = iris
    monkeypatch.setattr("otprop.geometry.cost.MEMORY_LIMIT", 0)
    model = OTP().fit(X, y)
    np.testing.assert_allclose(model.label_distributions_, fitted.label_distributions_, atol=1e-5)


@pytest.mark.parametrize("answer", [True, 1, np.True_])
def test_any_true_answer_of_a_callback_stops(iris, answer):
    X, _, y = iris
    assert len(OTP(callback=lambda round_: answer).fit(X, y).rounds_) == 1


def test_a_fit_that_fails_leaves_no_half_fitted_model(iris):
    X, _, y = iris

    def fail(round_):
        raise RuntimeError("stop here")

    model = OTP().fit(X, y)
    with pytest.raises(RuntimeError, match="stop here"):
        model.set_params(callback=fail).fit(X[:, :2], y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_rows_may_be_dense_in_fit_and_sparse_in_predict(iris, fitted):
    X, _, _ = iris
    np.testing.assert_allclose(fitted.predict_proba(sp.csr_matrix(X)), fitted.predict_proba(X), atol=1e-9)


def test_huge_weights_do_not_overflow(iris):
    X, _, y = iris
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # rows labelled later weigh next to nothing beside them
        model = OTP().fit(X, y, sample_weight=np.full(len(y), 1.7e308))
    assert np.isfinite(model.label_distributions_).all()


def test_minus_one_and_one_are_warned_of():
    with pytest.warns(UserWarning, match="y holds -1 and 1 only"):
        OTP().fit([[0.0], [1.0], [0.2]], [-1, 1, -1])


@pytest.mark.parametrize(
    ("y", "parameters", "message"),
    [
        (np.array(["a", "nan", "b", "a"]), {}, "class 'nan' and no unlabelled row"),
        (["a", "", "b", "a"], {}, "class '' and no unlabelled row"),
        (["a", "x", "b", "a"], {"unlabeled": "?"}, "unlabeled='\\?' does not occur in y"),
    ],
)
def test_a_marker_that_was_likely_meant_is_pointed_out(y, parameters, message):
    with pytest.warns(UserWarning, match=message):
        OTP(**parameters).fit(GOOD[0], y)


def test_an_unfitted_model_says_so():
    with pytest.raises(Exception, match="not fitted"):
        OTP().predict([[0.0]])


@pytest.mark.parametrize(
    ("parameters", "X", "y", "error", "message"),
    [
        ({}, *[GOOD[0], [-1] * 4], ValueError, "y has no labelled row"),
        ({}, [[0.0]], [0], ValueError, "minimum of 2 is required"),
        ({}, [[0.0], [np.nan], [0.2], [0.8]], GOOD[1], ValueError, "X contains NaN"),
        ({}, [[0.0], [np.inf], [0.2], [0.8]], GOOD[1], ValueError, "X contains infinity"),
        ({}, GOOD[0], [0, 1, -1], ValueError, "inconsistent numbers of samples"),
        ({"cost": "precomputed"}, GOOD[0], GOOD[1], ValueError, r"square matrix of costs .* got shape \(4, 1\)"),
        ({"cost": "precomputed"}, -np.ones((4, 4)), GOOD[1], ValueError, "negative cost -1.0"),
        ({"epsilon": 0}, *GOOD, ValueError, "epsilon must be 'auto' or a finite number > 0; got 0"),
        ({"epsilon": -1.0}, *GOOD, ValueError, "epsilon must be .*; got -1.0"),
        ({"epsilon": "small"}, *GOOD, TypeError, "epsilon must be 'auto' or a finite number > 0; got 'small'"),
        ({"epsilon": None}, *GOOD, TypeError, "epsilon must be .*; got None of type NoneType"),
        ({"epsilon": np.nan}, *GOOD, ValueError, "epsilon must be .*; got nan"),
        ({"alpha": 1.5}, *GOOD, ValueError, "alpha must be a finite number >= 0 and <= 1; got 1.5"),
        ({"alpha": -0.1}, *GOOD, ValueError, "alpha must be .*; got -0.1"),
        ({"alpha": "high"}, *GOOD, TypeError, "alpha must be .*; got 'high' of type str"),
        ({"cost": "euclidian"}, *GOOD, ValueError, "cost='euclidian' is not a known metric; did you mean 'euclidean'"),
        ({"cost": 3}, *GOOD, TypeError, "cost must be the name of a metric"),
        ({"max_rounds": 0}, *GOOD, ValueError, "max_rounds must be an integer >= 1; got 0"),
        ({"max_iter": 2.5}, *GOOD, TypeError, "max_iter must be an integer >= 1; got 2.5"),
        ({"tol": 0.0}, *GOOD, ValueError, "tol must be"),
        ({"verbose": "loud"}, *GOOD, TypeError, "verbose must be a whole number or a boolean; got 'loud'"),
        ({"cost": "haversine"}, *GOOD, ValueError, "haversine' takes two columns"),
        ({"cost": "chebyshev"}, sp.csr_array(np.eye(4)), GOOD[1], ValueError, "does not take sparse rows"),
        ({}, GOOD[0], "0011", TypeError, "y must be a column of labels, one a row; got str"),
        ({}, GOOD[0], {0: 1}, TypeError, "y must be a column of labels, one a row; got dict"),
        ({}, GOOD[0], 3, TypeError, "y must be a column of labels, one a row; got int"),
        ({"unlabeled": [-1, 0]}, *GOOD, TypeError, "unlabeled must be one value"),
        ({"callback": "print"}, *GOOD, TypeError, "callback must be None or a function"),
        ({"cost": lambda a, b: -1.0}, *GOOD, ValueError, "negative, infinite or NaN cost"),
    ],
)
def test_bad_input_is_refused_by_name(parameters, X, y, error, message):
    with pytest.raises(error, match=message):
        OTP(**parameters).fit(X, y)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, 1.0], r"sample_weight has shape \(2,\), expected \(4,\)"),
        ([-1.0, 1.0, 1.0, 1.0], "sample_weight must be finite and not negative"),
        ([0.0, 0.0, 1.0, 1.0], "sample_weight is zero for every labelled row"),
        (["a"] * 4, "sample_weight must be numbers"),
    ],
)
def test_bad_weights_are_refused(weights, message):
    with pytest.raises((ValueError, TypeError), match=message):
        OTP().fit(*GOOD, sample_weight=weights)
