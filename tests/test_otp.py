"""The estimator, as a user meets it: what holds whichever way the labels go."""

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
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from otprop import OTP, PaperOTP
from tests.estimators import geometry, hide, nearness

GOOD = ([[0.0], [1.0], [0.2], [0.8]], [0, 1, -1, -1])
WAYS = {"default": OTP, "geometry": geometry, "nearness": nearness, "paper": PaperOTP}
QUICK = {name: way for name, way in WAYS.items() if name != "default"}

all_ways = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
quick_ways = pytest.mark.parametrize("way", QUICK.values(), ids=QUICK)  # where a forest would only take time


@pytest.fixture(scope="module")
def iris():
    X, truth = load_iris(return_X_y=True)
    return X, truth, hide(truth, 0.1)


@pytest.fixture(scope="module")
def models(iris):
    X, _, y = iris
    return {way: way().fit(X, y) for way in WAYS.values()}


@all_ways
def test_most_rows_of_iris_are_labelled_rightly(iris, models, way):
    _, truth, y = iris
    assert accuracy_score(truth[y == -1], models[way].transduction_[y == -1]) > 0.8


@all_ways
def test_the_attributes_fit_together(iris, models, way):
    _, _, y = iris
    given, model = y != -1, models[way]
    assert (model.transduction_[given] == y[given]).all()
    assert (model.certainty_[given] == 1).all()
    assert (model.round_[given] == 0).all()
    assert (model.round_[~given] >= 1).all()
    assert model.round_.max() == len(model.rounds_) == model.n_iter_
    np.testing.assert_allclose(model.label_distributions_.sum(axis=1), 1, atol=1e-9)
    assert (model.classes_[model.label_distributions_.argmax(axis=1)] == model.transduction_).all()
    for round_ in model.rounds_:
        assert (model.round_[round_.rows] == round_.number).all()
        assert (model.certainty_[round_.rows] >= round_.threshold - 1e-9).all()
        assert round_.converged
        assert max(round_.source_error, round_.target_error) <= 1e-6
        assert round_.seconds > 0
        assert round_.epsilon == model.epsilon_


@all_ways
def test_new_rows_are_labelled_like_their_neighbours(models, way):
    new = [[5.0, 3.4, 1.5, 0.25], [6.9, 3.1, 5.45, 2.1]]
    probabilities = models[way].predict_proba(new)
    assert models[way].predict(new).tolist() == [0, 2]
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)


@all_ways
def test_a_row_far_from_everything_is_predicted_without_overflow(models, way):
    far = models[way].predict_proba([[1e200] * 4, [-1e300] * 4])
    assert np.isfinite(far).all()
    np.testing.assert_allclose(far.sum(axis=1), 1)


@quick_ways
def test_string_labels_and_their_marker_come_through(iris, models, way):
    X, _, y = iris
    names = np.array(["setosa", "versicolor", "virginica"], dtype=object)
    text = np.where(y == -1, None, names[y])
    model = way().fit(X, text)
    assert model.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert (model.transduction_ == names[models[way].transduction_]).all()


@quick_ways
@pytest.mark.parametrize(
    ("y", "classes"),
    [
        ([True, False, None, None], [False, True]),
        ([2.0, 7.0, np.nan, np.nan], [2, 7]),
        (pd.Series(["a", "b", pd.NA, pd.NA], dtype="string"), ["a", "b"]),
        (pd.Categorical(["a", "b", None, None]), ["a", "b"]),
        (pl.Series([3, 5, None, None]), [3, 5]),
        (np.array([0, 1, 9, 9], dtype=np.uint8), [0, 1, 9]),
    ],
)
def test_labels_of_any_type_are_taken(way, y, classes):
    model = way().fit(GOOD[0], y)
    assert model.classes_.tolist() == classes
    assert np.isin(model.transduction_, model.classes_).all()


@quick_ways
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_data_frames_give_the_same_labels_and_their_column_names_are_kept(iris, models, way, frame):
    X, _, y = iris
    names = ["a", "b", "c", "d"]
    table = frame(dict(zip(names, X.T, strict=True)))
    column = pd.Series(y, dtype="Int64").replace(-1, pd.NA) if frame is pd.DataFrame else pl.Series(y)
    model = way().fit(table, column)
    assert (model.transduction_ == models[way].transduction_).all()
    assert model.feature_names_in_.tolist() == names
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame(dict(zip(["a", "b", "c", "e"], X.T, strict=True))))


@quick_ways
def test_rows_may_be_dense_in_fit_and_sparse_in_predict(iris, models, way):
    X, _, _ = iris
    new = X + 0.01
    np.testing.assert_allclose(models[way].predict_proba(sp.csr_matrix(new)), models[way].predict_proba(new), atol=1e-9)


@quick_ways
def test_rows_may_be_sparse_in_fit(iris, models, way):
    X, _, y = iris
    model = way().fit(sp.coo_matrix(X), y)
    assert (model.transduction_ == models[way].transduction_).mean() > 0.98  # the graph has ties
    np.testing.assert_allclose(model.predict_proba(X), model.predict_proba(sp.csc_array(X)), atol=1e-9)


@quick_ways
def test_weights_are_routed_through_a_pipeline(iris, way):
    X, _, y = iris
    weights = np.random.default_rng(0).uniform(0.5, 2, len(y))
    with config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(StandardScaler(), way().set_fit_request(sample_weight=True))
        pipeline[0].set_fit_request(sample_weight=False)
        pipeline.fit(X, y, sample_weight=weights)
    direct = way().fit(StandardScaler().fit_transform(X), y, sample_weight=weights)
    np.testing.assert_array_equal(pipeline[-1].label_distributions_, direct.label_distributions_)


@quick_ways
def test_a_row_of_weight_zero_keeps_its_label_and_has_no_say(iris, way):
    X, truth, y = iris
    wrong = np.flatnonzero(y == -1)[:3]
    weights = np.ones(150)
    weights[wrong] = 0
    lies = y.copy()
    lies[wrong] = (truth[wrong] + 1) % 3
    model, without = way().fit(X, lies, sample_weight=weights), way().fit(X, y)
    assert (model.transduction_[wrong] == lies[wrong]).all()
    new = X + 0.01
    assert (model.predict(new) == without.predict(new)).mean() > 0.95


@all_ways
def test_a_clone_and_a_pickle_behave_like_the_original(iris, models, way):
    X, _, y = iris
    np.testing.assert_array_equal(clone(models[way]).fit(X, y).label_distributions_, models[way].label_distributions_)
    back = pickle.loads(pickle.dumps(models[way]))
    new = np.vstack([X, X + 0.01])
    np.testing.assert_array_equal(back.predict_proba(new), models[way].predict_proba(new))


@quick_ways
def test_a_grid_search_of_scikit_learn_can_turn_its_parameters(iris, way):
    X, truth, _ = iris
    search = GridSearchCV(way(), {"alpha": [0.5, 0.9]}, cv=3).fit(X, truth)
    assert search.best_score_ > 0.9


@quick_ways
def test_the_last_allowed_round_labels_all_that_is_left(iris, way):
    X, _, y = iris
    model = way(max_rounds=2, alpha=0.9999).fit(X, y)
    assert len(model.rounds_) == 2
    assert (model.round_ >= 0).all()
    assert (model.transduction_ != -1).all()


@quick_ways
def test_a_smallest_share_per_round_shortens_the_run(iris, way):
    X, _, y = iris
    model = way(epsilon=1.0, alpha=1.0, min_round_share=0.25).fit(X, y)
    for round_ in model.rounds_:
        assert len(round_.rows) >= 0.25 * round_.n_unlabeled
    assert len(model.rounds_) < 25


@quick_ways
def test_a_callback_sees_every_round_as_it_ends(iris, way):
    X, _, y = iris
    seen = []
    model = way(callback=seen.append).fit(X, y)
    assert seen == model.rounds_


@quick_ways
@pytest.mark.parametrize("answer", [True, 1, np.True_])
def test_a_callback_can_stop_the_run_and_the_rest_stays_unlabelled(iris, way, answer):
    X, _, y = iris
    model = way(callback=lambda round_: answer).fit(X, y)
    left = model.round_ == -1
    assert len(model.rounds_) == 1
    assert left.any()
    assert (model.transduction_[left] == -1).all()
    assert (model.transduction_[~left] != -1).all()
    np.testing.assert_allclose(model.label_distributions_.sum(axis=1), 1)
    assert np.isfinite(model.predict_proba(X)).all()


def test_missing_values_are_sent_to_what_takes_them():
    with pytest.raises(ValueError, match=r"X contains NaN.*otprop\.label"):
        OTP().fit([[0.0], [np.nan], [1.0]], ["a", None, "b"])


def test_progress_is_one_scale_from_the_neighbours_to_the_last_round(iris):
    """So the time left follows from the time taken; every step once had a scale of its own, or none."""
    X, _, y = iris
    seen = []
    OTP().set_progress(lambda done, total, step: seen.append((done, total, step.split()[0]))).fit(X, y)
    assert {total for _, total, _ in seen} == {1.0}
    assert list(dict.fromkeys(step for _, _, step in seen)) == ["neighbours", "source", "round"]
    shares = [done for done, _, _ in seen]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    sources = [done for done, _, step in seen if step == "source"]
    np.testing.assert_allclose(np.diff(sources), (0.9 - 0.3) / len(sources))


@all_ways
def test_progress_goes_to_the_log_and_never_to_standard_output(iris, way, capsys, caplog):
    X, _, y = iris
    with caplog.at_level(logging.INFO, logger="otprop"):
        model = way(verbose=1).fit(X, y)
    assert sum("round" in message for message in caplog.messages) == len(model.rounds_)
    assert capsys.readouterr() == ("", "")


@all_ways
def test_nothing_is_said_unless_asked(iris, way, capsys, caplog):
    X, _, y = iris
    with caplog.at_level(logging.INFO):
        way().fit(X, y)
    assert capsys.readouterr() == ("", "")
    assert not caplog.messages


@all_ways
def test_with_nothing_unlabelled_there_is_no_round_and_prediction_still_works(iris, way):
    X, truth, _ = iris
    model = way().fit(X, truth)
    assert model.rounds_ == []
    assert (model.transduction_ == truth).all()
    assert (model.predict(X[:100]) == truth[:100]).all()  # the rest holds two equal rows of different classes
    assert accuracy_score(truth, model.predict(X + 0.01)) > 0.9


@all_ways
def test_a_single_class_is_given_to_every_row(way):
    model = way().fit([[0.0], [1.0], [9.0]], ["only", None, None])
    assert model.transduction_.tolist() == ["only"] * 3
    assert model.certainty_.tolist() == [1.0] * 3
    assert model.predict([[4.0]]).tolist() == ["only"]


@all_ways
def test_identical_rows_with_different_labels_are_predicted_by_their_weight(way):
    X = [[0.0], [0.0], [0.0], [5.0], [0.1]]
    model = way().fit(X, ["a", "a", "b", "b", None], sample_weight=[1, 1, 6, 1, 1])
    np.testing.assert_allclose(model.predict_proba([[0.0]]), [[0.25, 0.75]])


@quick_ways
def test_a_fit_that_fails_leaves_no_half_fitted_model(iris, way):
    X, _, y = iris

    def fail(round_):
        raise RuntimeError("stop here")

    model = way().fit(X, y)
    with pytest.raises(RuntimeError, match="stop here"):
        model.set_params(callback=fail).fit(X[:, :2], y)
    with pytest.raises(NotFittedError):
        model.predict(X)


@all_ways
def test_huge_weights_do_not_overflow(iris, way):
    X, _, y = iris
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # rows labelled later weigh next to nothing beside them
        model = way().fit(X, y, sample_weight=np.linspace(1, 1.7e308, len(y)))
    assert np.isfinite(model.label_distributions_).all()
    assert np.isfinite(model.predict_proba(X)).all()


@quick_ways
def test_minus_one_and_one_are_warned_of(way):
    with pytest.warns(UserWarning, match="y holds -1 and 1 only"):
        way().fit([[0.0], [1.0], [0.2]], [-1, 1, -1])


@quick_ways
@pytest.mark.parametrize(
    ("y", "parameters", "message"),
    [
        (np.array(["a", "nan", "b", "a"]), {}, "class 'nan' and no unlabelled row"),
        (["a", "", "b", "a"], {}, "class '' and no unlabelled row"),
        (["a", "x", "b", "a"], {"unlabeled": "?"}, "unlabeled='\\?' does not occur in y"),
    ],
)
def test_a_marker_that_was_likely_meant_is_pointed_out(way, y, parameters, message):
    with pytest.warns(UserWarning, match=message):
        way(**parameters).fit(GOOD[0], y)


def test_an_unfitted_model_says_so():
    with pytest.raises(NotFittedError, match="not fitted"):
        OTP().predict([[0.0]])
    with pytest.raises(NotFittedError, match="not fitted"):
        OTP().coverage()


@quick_ways
@pytest.mark.parametrize(
    ("parameters", "X", "y", "error", "message"),
    [
        ({}, *[GOOD[0], [-1] * 4], ValueError, "y has no labelled row"),
        ({}, [[0.0]], [0], ValueError, "minimum of 2 is required"),
        ({}, [[0.0], [np.nan], [0.2], [0.8]], GOOD[1], ValueError, "X contains NaN"),
        ({}, [[0.0], [np.inf], [0.2], [0.8]], GOOD[1], ValueError, "X contains infinity"),
        ({}, GOOD[0], [0, 1, -1], ValueError, "X has 4 rows and y 3. Give y one entry per row"),
        ({}, GOOD[0], sp.csr_array([[0, 1, -1, -1]]), TypeError, "got a sparse csr_array: use y.toarray"),
        ({}, GOOD[0], [0, [1], None, None], TypeError, "y must be a column .* got a list in place 1"),
        ({}, GOOD[0], [[0], [1, 2], [3], [4]], ValueError, "y must be a column .* lists of different lengths"),
        (
            {},
            np.array([["1"], ["u"], ["2"], ["3"]]),
            GOOD[1],
            ValueError,
            "X must be numbers; column 0 holds 'u'. Turn",
        ),
        (
            {},
            pd.DataFrame({"a": range(4), "b": list("1uvw")}),
            GOOD[1],
            ValueError,
            "the column 'b' holds 'u'. Turn it",
        ),
        (
            *({}, pd.DataFrame({"a": range(4), "day": pd.to_datetime(["2020-01-01"] * 4)}), GOOD[1], TypeError),
            "X must be numbers; the column 'day' holds dates or durations",
        ),
        (
            {"cost": "precomputed"},
            np.full((4, 4), np.inf),
            GOOD[1],
            ValueError,
            "X holds inf in row 0, column 0; every",
        ),
        ({}, GOOD[0], None, ValueError, "requires y to be passed"),
        ({"cost": "precomputed"}, GOOD[0], GOOD[1], ValueError, r"square matrix of costs .* got shape \(4, 1\)"),
        ({"cost": "precomputed"}, -np.ones((4, 4)), GOOD[1], ValueError, "negative cost -1.0"),
        ({"epsilon": 0}, *GOOD, ValueError, "epsilon must be 'auto' or a finite number > 0; got 0"),
        ({"epsilon": -1.0}, *GOOD, ValueError, "epsilon must be .*; got -1.0"),
        ({"epsilon": "small"}, *GOOD, TypeError, "epsilon must be 'auto' or a finite number > 0; got 'small'"),
        ({"epsilon": None}, *GOOD, TypeError, "epsilon must be .*; got None of type NoneType"),
        ({"epsilon": np.nan}, *GOOD, ValueError, "epsilon must be .*; got nan"),
        ({"alpha": -0.1}, *GOOD, ValueError, "alpha must be .*; got -0.1"),
        ({"alpha": "high"}, *GOOD, TypeError, "alpha must be .*; got 'high' of type str"),
        ({"cost": "euclidian"}, *GOOD, ValueError, "cost='euclidian' is not a known metric; did you mean 'euclidean'"),
        ({"min_round_share": 2}, *GOOD, ValueError, "min_round_share must be"),
        ({"max_iter": 2.5}, *GOOD, TypeError, "max_iter must be an integer >= 1; got 2.5"),
        ({"tol": 0.0}, *GOOD, ValueError, "tol must be"),
        ({"verbose": "loud"}, *GOOD, TypeError, "verbose must be a whole number or a boolean; got 'loud'"),
        ({"cost": "haversine"}, *GOOD, ValueError, "haversine' takes two columns"),
        ({"cost": "chebyshev"}, sp.csr_array(np.eye(4)), GOOD[1], ValueError, "does not take sparse rows"),
        ({}, GOOD[0], "0011", TypeError, "y must be a column of labels, one per row; got str"),
        ({}, GOOD[0], {0: 1}, TypeError, "y must be a column of labels, one per row; got dict"),
        ({}, GOOD[0], 3, TypeError, "y must be a column of labels, one per row; got int"),
        ({"unlabeled": [-1, 0]}, *GOOD, TypeError, "unlabeled must be one value"),
        ({"callback": "print"}, *GOOD, TypeError, "callback must be None or a function"),
        ({"cost": lambda a, b: -1.0}, *GOOD, ValueError, "gave a negative, infinite or NaN value"),
    ],
)
def test_bad_input_is_refused_by_name(way, parameters, X, y, error, message):
    with pytest.raises(error, match=message):
        way(**parameters).fit(X, y)


@quick_ways
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, 1.0], r"sample_weight has shape \(2,\), expected \(4,\)"),
        ([-1.0, 1.0, 1.0, 1.0], "sample_weight must be finite and not negative"),
        ([0.0, 0.0, 1.0, 1.0], "sample_weight is zero for every labelled row"),
        (["a"] * 4, "sample_weight must be numbers"),
    ],
)
def test_bad_weights_are_refused(way, weights, message):
    with pytest.raises((ValueError, TypeError), match=message):
        way().fit(*GOOD, sample_weight=weights)


@quick_ways
@pytest.mark.parametrize("bad", [{"tol": -1.0}, {"callback": lambda round_: int("none")}, {"cost": "precomputed"}])
def test_a_fit_that_fails_leaves_no_older_model_behind(way, bad):
    model = way().fit(*GOOD)
    with pytest.raises(ValueError, match=r"tol|invalid literal|square"):
        model.set_params(**bad).fit(*GOOD)
    assert not {name for name in vars(model) if name.endswith("_")} - {"n_features_in_"}  # of the X that came last
    with pytest.raises(NotFittedError):
        model.predict(GOOD[0])


@quick_ways
def test_rows_near_the_end_of_the_floats_are_predicted_without_a_warning(way):
    X = np.array([[0.0, 1.0], [1.0, 0.0], [0.2, 0.9], [0.8, 0.1]]) * 1e307
    model = way().fit(X, [0, 1, -1, -1])
    assert model.predict(np.full((2, 2), 1.2e308)).shape == (2,)


def test_one_enormous_value_does_not_disturb_the_other_rows(iris):
    X, truth, y = iris
    X = np.vstack([X, X[0]])
    X[-1, 0] = 1e200
    model = geometry().fit(X, np.append(y, -1))
    assert np.isfinite(model.label_distributions_).all()
    assert accuracy_score(truth, model.transduction_[:-1]) > 0.8


def test_labels_of_one_class_tell_nothing_about_the_error():
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = OTP().fit(X, ["a" if row < 20 else None for row in range(60)])
    assert set(model.transduction_) == {"a"}
    assert model.error_range_ == (0.0, 1.0)


def test_one_class_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("WARNING", logger="otprop"):
        OTP().fit(np.arange(12.0).reshape(-1, 1), [0, 0, 0, *[-1] * 9])
    assert "y has one class: every row gets it, and the expected error cannot be estimated." in caplog.messages
