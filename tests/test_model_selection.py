"""Parameters chosen by hiding labels, never rows."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.metrics import f1_score, log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_is_fitted, validate_data

from otprop._base import Propagator
from otprop.model_selection import HiddenLabelSearch, HiddenLabelSplit, hidden_label_score


class KernelVote(Propagator):
    """The smallest estimator with this face: labelled rows vote, weighted by nearness."""

    def __init__(self, gamma: float = 1.0, unlabeled: Any = "auto") -> None:
        self.gamma = gamma
        self.unlabeled = unlabeled

    def fit(self, X: Any, y: Any) -> Self:
        if self.gamma < 0:
            raise ValueError("gamma must not be negative")
        X, labels = self._read(X, y)
        self.rows_, self.votes_ = X[labels.labeled], np.eye(len(labels.classes))[labels.codes[labels.labeled]]
        distributions = self._vote(X)
        return self._set_labels(labels, distributions.argmax(axis=1), distributions)

    def _vote(self, X: np.ndarray) -> np.ndarray:
        squared = ((X[:, None] - self.rows_[None]) ** 2).sum(axis=2)
        votes = np.exp(-self.gamma * (squared - squared.min(axis=1, keepdims=True))) @ self.votes_
        return votes / votes.sum(axis=1, keepdims=True)

    def predict_proba(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return self._vote(validate_data(self, X, reset=False, dtype=np.float64))


class Witness(BaseEstimator):
    """Keeps what it was fitted on, and answers what it is told to."""

    seen: list[tuple[Any, np.ndarray]] = []  # noqa: RUF012

    def __init__(self, answer: Any = None, distributions: Any = None) -> None:
        self.answer = answer
        self.distributions = distributions

    def fit(self, X: Any, y: Any) -> Self:
        Witness.seen.append((X, np.array(y)))
        self.classes_ = np.unique([label for label in y if label != -1])
        self.transduction_ = self.answer
        self.label_distributions_ = self.distributions
        return self


@pytest.fixture
def iris() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, true labels, and labels of which four in five are hidden."""
    X, truth = load_iris(return_X_y=True)
    return X, truth, np.where(np.arange(150) % 5 == 0, truth, -1)


# --- the splitter


@given(
    counts=st.lists(st.integers(1, 12), min_size=1, max_size=6).filter(lambda c: max(c) > 1),
    share=st.floats(0.01, 0.99),
    seed=st.integers(0, 99),
)
@settings(deadline=None)
def test_every_class_keeps_a_label_and_loses_about_its_share(counts: list[int], share: float, seed: int) -> None:
    y = np.random.default_rng(seed).permutation(np.r_[np.repeat(np.arange(len(counts)), counts), [-1] * 5])
    for kept, hidden in HiddenLabelSplit(3, share, random_state=seed).split(None, y):
        assert sorted([*kept, *hidden]) == np.flatnonzero(y != -1).tolist()
        assert len(hidden) >= 1
        kept_counts = np.bincount(y[kept], minlength=len(counts))
        hidden_counts = np.bincount(y[hidden], minlength=len(counts))
        assert kept_counts.min() >= 1
        wanted = np.maximum(1, round(share * sum(counts)))
        assert len(hidden) == min(wanted, sum(counts) - len(counts))
        assert (hidden_counts >= np.minimum(np.floor(share * np.array(counts)), np.array(counts) - 1)).all()


def test_shares_that_come_out_even_are_hidden_exactly() -> None:
    y = np.repeat(["a", "b", "c"], [8, 4, 40])
    for _, hidden in HiddenLabelSplit(hidden=0.25).split(None, y):
        assert np.unique(y[hidden], return_counts=True)[1].tolist() == [2, 1, 10]


def test_in_the_long_run_small_classes_lose_their_share_too() -> None:
    y = np.repeat([0, 1], [2, 6])
    split = HiddenLabelSplit(n_splits=400, hidden=0.25, random_state=0)
    lost = np.mean([np.sum(y[hidden] == 0) for _, hidden in split.split(None, y)])
    assert lost == pytest.approx(0.5, abs=0.1)


def test_the_same_seed_hides_the_same_labels_and_splits_differ() -> None:
    y = np.repeat([0, 1], 10)
    first, again = ([h.tolist() for _, h in HiddenLabelSplit(random_state=4).split(None, y)] for _ in range(2))
    assert first == again
    assert len({tuple(hidden) for hidden in first}) > 1
    assert HiddenLabelSplit(7).get_n_splits(None, y) == 7 == len(list(HiddenLabelSplit(7).split(None, y)))


def test_single_labels_cannot_be_hidden() -> None:
    with pytest.raises(ValueError, match="no label of y can be hidden: each of the 3 classes has one"):
        next(HiddenLabelSplit().split(None, np.array([0, 1, 2, -1, -1])))


@pytest.mark.parametrize("hidden", [0.0, 1.0, -0.1, 3, "half", np.nan])
def test_a_share_that_is_none_is_refused(hidden: Any) -> None:
    with pytest.raises(ValueError, match="hidden must be a share"):
        HiddenLabelSplit(hidden=hidden)


@pytest.mark.parametrize("n_splits", [0, 2.5, True, "five"])
def test_a_number_of_splits_that_is_none_is_refused(n_splits: Any) -> None:
    with pytest.raises(ValueError, match="n_splits must be an integer"):
        HiddenLabelSplit(n_splits=n_splits)


# --- the score


def test_all_rows_stay_and_only_the_hidden_labels_are_gone() -> None:
    X, y = np.arange(12.0).reshape(6, 2), np.array([3, 3, 5, 5, -1, -1])
    Witness.seen.clear()
    hidden_label_score(Witness(answer=np.full(6, 3)), X, y, HiddenLabelSplit(4, 0.5, random_state=0))
    assert len(Witness.seen) == 4
    for seen_X, seen_y in Witness.seen:
        np.testing.assert_array_equal(seen_X, X)
        assert np.count_nonzero(seen_y == -1) == 4
        np.testing.assert_array_equal(seen_y[seen_y != -1], y[seen_y != -1])


def test_the_scores_are_taken_on_the_hidden_rows_alone() -> None:
    class Fixed:
        def split(self, X: Any, y: Any) -> list[tuple[list[int], list[int]]]:
            return [([0, 3, 6], [1, 2, 4, 5])]

    y = np.array([0, 0, 0, 1, 1, 1, 2, -1])
    answer = np.array([9, 0, 0, 9, 1, 2, 9, 9])
    p = np.tile([0.5, 0.3, 0.2], (8, 1))
    witness = Witness(answer, p)

    def score(scoring: Any) -> float:
        return hidden_label_score(witness, np.zeros((8, 1)), y, Fixed(), scoring=scoring)[0]

    assert score("accuracy") == 0.75
    assert score("log_loss") == pytest.approx(-log_loss([0, 0, 1, 1], p[:4], labels=[0, 1, 2]))
    assert score(lambda true, found: f1_score(true, found, average="macro")) == pytest.approx(
        f1_score([0, 0, 1, 1], [0, 0, 1, 2], average="macro")
    )
    assert score("ari") == pytest.approx(4 / 7)
    assert 0 < score("nmi") < 1


def test_rows_left_unlabelled_are_wrong_and_empty_distributions_improbable() -> None:
    y = np.array([0, 0, 1, 1])
    silent = Witness(np.full(4, -1), np.full((4, 2), np.nan))
    assert hidden_label_score(silent, np.zeros((4, 1)), y).max() == 0
    assert hidden_label_score(silent, np.zeros((4, 1)), y, scoring="log_loss").max() < -30


@pytest.mark.parametrize("marker", [-1, None, np.nan, "?"])
def test_labels_and_markers_of_any_type_give_the_same_scores(iris, marker: Any) -> None:
    X, truth, y = iris
    plain = hidden_label_score(KernelVote(), X, y)
    names = np.array(["setosa", "versicolor", "virginica"], dtype=object)
    text = np.where(y == -1, marker, names[truth])
    np.testing.assert_array_equal(hidden_label_score(KernelVote(unlabeled=marker), X, text), plain)
    assert plain.min() > 0.5


def test_a_pipeline_is_scored_by_its_last_step(iris) -> None:
    X, _, y = iris
    scaled = hidden_label_score(KernelVote(), StandardScaler().fit_transform(X), y)
    np.testing.assert_array_equal(hidden_label_score(make_pipeline(StandardScaler(), KernelVote()), X, y), scaled)


def test_an_unknown_score_lists_the_known_ones(iris) -> None:
    X, _, y = iris
    with pytest.raises(ValueError, match=r"scoring='auc' .*'accuracy', 'log_loss', 'nmi', 'ari' or a callable"):
        hidden_label_score(KernelVote(), X, y, scoring="auc")  # type: ignore[arg-type]


def test_a_splitter_that_hides_a_whole_class_or_unlabelled_rows_is_refused(iris) -> None:
    X, _, y = iris

    class Wrong:
        def __init__(self, hidden: np.ndarray) -> None:
            self.hidden = hidden

        def split(self, X: Any, y: Any) -> list[tuple[np.ndarray, np.ndarray]]:
            return [(np.setdiff1d(np.flatnonzero(y != -1), self.hidden), self.hidden)]

    for hidden in (np.flatnonzero(y == 2), np.array([1, 2]), np.array([], dtype=int)):
        with pytest.raises(ValueError, match="must yield pairs"):
            hidden_label_score(KernelVote(), X, y, Wrong(hidden))


# --- the search


def test_the_search_finds_the_setting_that_finds_the_hidden_labels(iris) -> None:
    X, truth, y = iris
    search = HiddenLabelSearch(LabelSpreading(), {"gamma": [1e-7, 5.0, 1e-6]}).fit(X, y)
    assert search.best_params_ == {"gamma": 5.0}
    assert search.chosen_by_ == "hidden labels"
    alone = LabelSpreading(gamma=5.0).fit(X, y)
    np.testing.assert_array_equal(search.transduction_, alone.transduction_)
    np.testing.assert_array_equal(search.label_distributions_, alone.label_distributions_)
    np.testing.assert_array_equal(search.classes_, [0, 1, 2])
    np.testing.assert_array_equal(search.predict(X[:9]), alone.predict(X[:9]))
    np.testing.assert_array_equal(search.predict_proba(X[:9]), alone.predict_proba(X[:9]))
    assert search.n_features_in_ == 4
    assert np.mean(search.transduction_ == truth) > 0.9


def test_the_results_are_those_of_each_candidate_on_the_same_splits(iris) -> None:
    X, _, y = iris
    splitter = HiddenLabelSplit(3, 0.5, random_state=1)
    grid = [{"gamma": [0.01, 1.0]}, {"unlabeled": [-1]}]
    search = HiddenLabelSearch(KernelVote(gamma=9.0), grid, splitter=splitter, scoring="log_loss").fit(X, y)
    results = search.cv_results_
    assert results["params"] == [{"gamma": 0.01}, {"gamma": 1.0}, {"unlabeled": -1}]
    for i, params in enumerate(results["params"]):
        scores = hidden_label_score(
            clone(search.estimator).set_params(**params), X, y, splitter=splitter, scoring="log_loss"
        )
        np.testing.assert_allclose([results[f"split{j}_test_score"][i] for j in range(3)], scores)
        assert results["mean_test_score"][i] == pytest.approx(scores.mean())
    assert results["param_gamma"].mask.tolist() == [False, False, True]
    assert results["rank_test_score"][results["mean_test_score"].argmax()] == 1
    assert sorted(results["rank_test_score"]) == [1, 2, 3]
    assert search.best_score_ == results["mean_test_score"].max()
    assert {len(column) for column in results.values()} == {3}
    assert search.n_splits_ == 3


def test_with_one_label_a_class_the_declared_default_is_used_and_said(iris) -> None:
    X, _, _ = iris
    y = np.full(150, -1)
    y[[0, 50, 100]] = [0, 1, 2]
    search = HiddenLabelSearch(KernelVote(), {"gamma": [1.0, 2.0]}, default={"gamma": 0.5}).fit(X, y)
    assert (search.chosen_by_, search.best_params_) == ("default", {"gamma": 0.5})
    assert search.best_estimator_.gamma == 0.5
    assert np.isnan(search.best_score_)
    assert search.cv_results_["params"] == []
    undeclared = HiddenLabelSearch(KernelVote(gamma=3.0), {"gamma": [1.0, 2.0]}).fit(X, y)
    assert undeclared.best_estimator_.gamma == 3.0


def test_the_least_number_of_labels_a_class_must_have_can_be_raised(iris) -> None:
    X, truth, _ = iris
    y = np.full(150, -1)
    few = [0, 1, 2, 50, 51, 100]
    y[few] = truth[few]
    grid = {"gamma": [1.0, 2.0]}
    assert HiddenLabelSearch(KernelVote(), grid).fit(X, y).chosen_by_ == "hidden labels"
    assert HiddenLabelSearch(KernelVote(), grid, min_labels=2).fit(X, y).chosen_by_ == "default"


def test_among_equals_the_default_is_preferred_then_the_first() -> None:
    X, y = np.r_[np.zeros(5), np.ones(5)][:, None], np.r_[[0] * 4, -1, [1] * 4, -1]
    grid = {"gamma": [1.0, 2.0, 3.0]}
    assert HiddenLabelSearch(KernelVote(9.0), grid).fit(X, y).best_params_ == {"gamma": 1.0}
    assert HiddenLabelSearch(KernelVote(9.0), grid, default={"gamma": 3.0}).fit(X, y).best_params_ == {"gamma": 3.0}
    assert HiddenLabelSearch(KernelVote(2.0), grid).fit(X, y).best_params_ == {"gamma": 2.0}


def test_the_number_of_processes_does_not_change_the_result(iris) -> None:
    X, _, y = iris
    grid = {"gamma": [0.1, 1.0]}
    alone, together = (
        HiddenLabelSearch(LabelSpreading(), grid, scoring="log_loss", n_jobs=n).fit(X, y) for n in (1, 2)
    )
    np.testing.assert_array_equal(alone.cv_results_["mean_test_score"], together.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(alone.transduction_, together.transduction_)


def test_without_refit_there_are_parameters_but_no_labels(iris) -> None:
    X, _, y = iris
    search = HiddenLabelSearch(KernelVote(), {"gamma": [1.0]}, refit=False).fit(X, y)
    assert search.best_params_ == {"gamma": 1.0}
    with pytest.raises(AttributeError, match="refit=False"):
        _ = search.transduction_
    with pytest.raises(AttributeError, match="refit=False"):
        search.predict(X)
    with pytest.raises(NotFittedError):
        HiddenLabelSearch(KernelVote(), {"gamma": [1.0]}).predict(X)


def test_predict_proba_exists_only_where_the_estimator_has_it() -> None:
    assert not hasattr(HiddenLabelSearch(Witness(), {}), "predict_proba")
    assert hasattr(HiddenLabelSearch(KernelVote(), {}), "predict_proba")


def test_a_parameter_the_estimator_lacks_is_said_before_anything_is_fitted() -> None:
    Witness.seen.clear()
    for search in (
        HiddenLabelSearch(Witness(), {"answer": [1], "sigma": [1]}),
        HiddenLabelSearch(Witness(), {"answer": [1]}, default={"sigma": 1}),
    ):
        with pytest.raises(ValueError, match="Invalid parameter 'sigma'"):
            search.fit(np.zeros((4, 1)), [0, 0, 1, 1])
    assert Witness.seen == []


def test_a_failing_candidate_is_named(iris) -> None:
    X, _, y = iris
    with pytest.raises(ValueError, match="must not be negative") as caught:
        HiddenLabelSearch(KernelVote(), {"gamma": [1.0, -2.0]}).fit(X, y)
    assert "{'gamma': -2.0}" in caught.value.__notes__[0]


def test_a_score_of_nan_has_no_best(iris) -> None:
    X, _, y = iris
    with pytest.raises(ValueError, match=r"gave NaN for \{'gamma': 1.0\}"):
        HiddenLabelSearch(KernelVote(), {"gamma": [1.0]}, scoring=lambda true, found: np.nan).fit(X, y)


def test_a_search_can_be_cloned_and_set_up_like_any_estimator(iris) -> None:
    X, _, y = iris
    search = clone(HiddenLabelSearch(KernelVote(), {"gamma": [1.0]}, splitter=HiddenLabelSplit(2)))
    search.set_params(estimator__gamma=4.0, param_grid={})
    assert search.fit(X, y).best_estimator_.gamma == 4.0


@parametrize_with_checks(
    [HiddenLabelSearch(KernelVote(), {"gamma": [0.5, 1.0]}, splitter=HiddenLabelSplit(2, random_state=0))],
    expected_failed_checks=lambda estimator: {
        "check_classifiers_classes": "feeds the classes -1 and 1, of which -1 marks an unlabelled row"
    },
)
def test_scikit_learns_own_checks_pass(estimator: Any, check: Any) -> None:
    check(estimator)
