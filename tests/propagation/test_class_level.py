"""Our way: class costs from the geometry and from classifiers, each class shipping what it owes."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris, make_moons
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, pairwise_distances
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from otprop import OTP
from otprop.geometry.diffusion import DiffusionGraph
from otprop.propagation.rounds import certainty
from tests.estimators import geometry, hide, nearness
from tests.strategies import tables

SETTINGS = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
pytestmark = pytest.mark.filterwarnings("ignore:y holds -1 and 1 only")  # rightly


@pytest.fixture(scope="module")
def iris():
    X, truth = load_iris(return_X_y=True)
    return X, truth, hide(truth, 0.1)


@pytest.fixture(scope="module")
def default(iris):
    X, _, y = iris
    return OTP().fit(X, y)


@pytest.fixture(scope="module")
def alone(iris):
    """The geometry alone."""
    X, _, y = iris
    return geometry().fit(X, y)


def blobs(n_rows=40, n_classes=2, gap=4.0, seed=0, n_labels=2):
    """Clouds a `gap` apart, the first `n_labels` rows of each labelled."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n_rows) % n_classes
    X = rng.normal(size=(n_rows, 3)) + gap * truth[:, None]
    return X, truth, np.where(np.arange(n_rows) < n_labels * n_classes, truth, -1)


def check(model, X, y):
    """What holds of every fit."""
    y = np.asarray(y)
    given_rows = y != -1
    assert (model.transduction_[given_rows] == y[given_rows]).all()
    assert np.isin(model.transduction_, model.classes_).all()
    for values in (model.certainty_, model.confidence_):
        assert np.isfinite(values).all()
        assert (values >= 0).all()
        assert (values <= 1).all()
        assert (values[given_rows] == 1).all()
    for values in (model.label_distributions_, model.predict_proba(X)):
        assert np.isfinite(values).all()
        np.testing.assert_allclose(values.sum(axis=1), 1, atol=1e-9)
    np.testing.assert_array_equal(model.transduction_, model.classes_[model.label_distributions_.argmax(axis=1)])
    np.testing.assert_allclose(model.class_prior_.sum(), 1)
    reached = (model.certainty_ > 0) | given_rows
    np.testing.assert_allclose(model.certainty_[reached], certainty(model.label_distributions_[reached]), atol=1e-12)
    assert sorted(np.concatenate([np.flatnonzero(given_rows), *(r.rows for r in model.rounds_)])) == list(range(len(y)))


def test_two_half_moons_are_told_apart_from_three_labels_each():
    X, truth = make_moons(200, noise=0.08, random_state=0)
    y = np.full(200, -1)
    for code in (0, 1):
        y[np.flatnonzero(truth == code)[:3]] = code
    assert accuracy_score(truth, geometry().fit(X, y).transduction_) > 0.95


def test_classifiers_know_which_features_matter():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 20))
    truth = (X[:, 0] > 0).astype(int)
    y = np.where(np.arange(300) < 60, truth, -1)
    with_them, without = OTP().fit(X, y), geometry().fit(X, y)
    assert accuracy_score(truth, with_them.transduction_) > accuracy_score(truth, without.transduction_) + 0.05
    forest = next(source for source in with_them.evidence_ if source.name == "random_forest")
    assert forest.weight > 0
    assert forest.accuracy > 0.7


@pytest.mark.parametrize(("n_labels", "name"), [(59, "forest"), (60, "random_forest")])
def test_the_forest_is_a_random_one_from_30_labels_a_class_on(n_labels, name):
    X = np.random.default_rng(0).normal(size=(100, 3)) + 2 * (np.arange(100) % 2)[:, None]
    model = OTP().fit(X, np.where(np.arange(100) < n_labels, np.arange(100) % 2, -1))
    assert [source.name for source in model.evidence_ if "forest" in source.name] == [name]


def test_everything_holds_of_the_default(iris, default, alone):
    X, _, y = iris
    check(default, X, y)
    check(alone, X, y)
    assert [source.name for source in default.evidence_] == [
        "diffusion",
        "forest",
        "linear",
        "gaussian",
    ]
    assert [source.name for source in alone.evidence_] == ["diffusion"]
    assert all(source.weight >= 0 for source in default.evidence_)
    assert {setting["n_neighbors"] for setting in default.settings_} <= {10, 20}
    assert sum(setting["weight"] for setting in default.settings_) == pytest.approx(1)
    assert default.epsilon_ == 1
    assert 0 < default.marginal_strength_ < 0.5
    assert len(default.rounds_) <= 20


@pytest.mark.parametrize("parameters", [{}, {"cost": "sqeuclidean"}, {"cost": "cityblock"}, {"metric": "cosine"}])
def test_prediction_on_the_training_rows_is_what_they_got(iris, parameters):
    X, _, y = iris
    model = geometry(**parameters).fit(X, y)
    once = np.delete(np.arange(len(X)), 142)  # a copy of row 101: equal rows have one prediction
    np.testing.assert_array_equal(model.predict(X)[once], model.transduction_[once])
    moved = model.predict(X + 1e-6)
    assert (moved == model.transduction_).mean() > 0.9


@pytest.mark.parametrize("factor", [1.0, 3.0])
def test_a_precomputed_cost_is_the_same_as_its_metric(iris, factor):
    X, _, y = iris
    costs = pairwise_distances(X, metric="cityblock") * factor
    by_name, by_matrix = nearness(cost="cityblock").fit(X, y), nearness(cost="precomputed").fit(costs, y)
    assert by_matrix.epsilon_ == pytest.approx(by_name.epsilon_ * factor)
    np.testing.assert_allclose(by_matrix.label_distributions_, by_name.label_distributions_, atol=1e-5)
    new = pairwise_distances(X[:5] + 0.1, X, metric="cityblock") * factor
    np.testing.assert_allclose(by_matrix.predict_proba(new), by_name.predict_proba(X[:5] + 0.1), atol=1e-5)


@pytest.mark.parametrize("metric", ["cosine", "manhattan", "chebyshev", lambda a, b: float(np.abs(a - b).max())])
def test_neighbours_can_be_near_by_any_metric(iris, metric):
    X, truth, _ = iris
    X, truth = X[::2], truth[::2]
    y = hide(truth, 0.2)
    model = geometry(metric=metric).fit(X, y)
    check(model, X, y)
    assert accuracy_score(truth, model.transduction_) > 0.8


@pytest.mark.parametrize("cost", ["sqeuclidean", "cityblock", "mahalanobis", lambda a, b: float(np.abs(a - b).sum())])
def test_classes_can_ship_over_any_cost_between_rows(iris, cost):
    X, truth, _ = iris
    X, truth = X[::2], truth[::2]
    y = hide(truth, 0.2)
    model = nearness(cost=cost).fit(X, y)
    check(model, X, y)
    assert accuracy_score(truth, model.transduction_) > 0.8
    assert [source.name for source in model.evidence_] == ["nearness"]
    assert model.settings_ == [{"cost": cost, "epsilon": model.epsilon_}]


def test_epsilon_is_the_one_given_in_the_units_of_the_cost(iris):
    X, _, y = iris
    model = nearness(epsilon=0.3).fit(X, y)
    scaled = nearness(epsilon=0.3e20).fit(X * 1e10, y)
    assert (model.epsilon_, scaled.epsilon_) == (0.3, 0.3e20)
    assert {round_.epsilon for round_ in model.rounds_} == {0.3}
    np.testing.assert_allclose(scaled.label_distributions_, model.label_distributions_, atol=1e-5)


def test_a_temperature_above_one_flattens_the_first_round(iris, alone):
    X, _, y = iris
    parameters = {"marginal_strength": 0, "max_rounds": 1}
    cold, plain, hot = (geometry(epsilon=epsilon, **parameters).fit(X, y) for epsilon in (0.5, 1.0, 4.0))
    left = y == -1
    assert (cold.certainty_[left] >= plain.certainty_[left]).all()
    assert (plain.certainty_[left] >= hot.certainty_[left]).all()
    assert hot.epsilon_ == 4
    np.testing.assert_array_equal(cold.transduction_, hot.transduction_)


@pytest.mark.parametrize("epsilon", [1e-300, 1e-30, 1e30, 1e300])
@pytest.mark.parametrize("cost", ["diffusion", "sqeuclidean", "cityblock"])
def test_any_epsilon_ends_with_finite_answers(cost, epsilon):
    X, _, y = blobs()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(geometry(cost=cost, epsilon=epsilon).fit(X, y), X, y)


# --- evidence


@pytest.mark.parametrize(
    ("evidence", "names"),
    [
        (None, ["diffusion"]),
        ([], ["diffusion"]),
        (["linear"], ["diffusion", "linear"]),
        ((GaussianNB(),), ["diffusion", "GaussianNB"]),
        ([KNeighborsClassifier(3), "forest"], ["diffusion", "KNeighborsClassifier", "forest"]),
    ],
)
def test_the_evidence_can_be_chosen(iris, evidence, names):
    X, truth, y = iris
    model = OTP(evidence=evidence).fit(X, y)
    check(model, X, y)
    assert [source.name for source in model.evidence_] == names
    assert accuracy_score(truth, model.transduction_) > 0.85


def test_a_classifier_is_neither_fitted_nor_changed(iris):
    X, _, y = iris
    mine = GaussianNB()
    OTP(evidence=[mine]).fit(X, y)
    assert not hasattr(mine, "classes_")


def test_a_classifier_without_sample_weights_can_be_used_with_them(iris):
    X, _, y = iris
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    check(OTP(evidence=[KNeighborsClassifier(3)]).fit(X, y, sample_weight=weights), X, y)


def test_a_classifier_that_knows_nothing_is_hardly_heard(iris):
    X, _, y = iris
    rng = np.random.default_rng(0)

    class Guess(GaussianNB):
        def predict_proba(self, X):
            return rng.dirichlet(np.full(3, 0.2), len(X))

    model = OTP(evidence=[Guess(), GaussianNB()]).fit(X, y)
    weights = {source.name: source.weight for source in model.evidence_}
    assert weights["Guess"] < 0.1 < weights["GaussianNB"]


@pytest.mark.parametrize("cost", ["graph", "precomputed"])
def test_without_features_there_is_nothing_for_a_classifier(cost):
    X, _, y = blobs()
    square = pairwise_distances(X)
    assert len(OTP(cost=cost).fit(square, y).evidence_) == 1
    with pytest.raises(ValueError, match=rf"evidence=\['forest'\] needs the features .* cost='{cost}' does not have"):
        OTP(cost=cost, evidence=["forest"]).fit(square, y)


@pytest.mark.parametrize("size", [1e-3, 1e3, 1e-300, 1e300])
@pytest.mark.parametrize("cost", ["diffusion", "sqeuclidean"])
def test_weights_count_beside_one_another_and_not_by_their_size(iris, cost, size):
    X, _, y = iris
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    first, second = (geometry(cost=cost).fit(X, y, sample_weight=weights * factor) for factor in (1.0, size))
    np.testing.assert_allclose(second.label_distributions_, first.label_distributions_, atol=1e-4)
    np.testing.assert_allclose(second.predict_proba(X + 0.1), first.predict_proba(X + 0.1), atol=1e-4)


# --- shares


def test_without_shares_one_round_is_what_the_evidence_says(iris):
    X, _, y = iris
    model = geometry(marginal_strength=0, max_rounds=1, n_neighbors=10, diffusion=0.9).fit(X, y)
    same = geometry(marginal_strength=0, max_rounds=1, n_neighbors=10, diffusion=0.9, class_prior=[8, 1, 1]).fit(X, y)
    np.testing.assert_array_equal(model.label_distributions_, same.label_distributions_)
    assert len(model.rounds_) == 1


@pytest.mark.parametrize("prior", ["uniform", [2, 2, 2], {0: 0.1, 1: 0.1, 2: 0.1}])
def test_equal_shares_can_be_written_in_many_ways(iris, prior):
    X, _, y = iris
    model = geometry(class_prior=prior, marginal_strength=1).fit(X, y)
    np.testing.assert_allclose(model.class_prior_, 1 / 3)
    counts = np.bincount(model.transduction_)
    assert np.abs(counts - 50).max() <= 3


def test_shares_that_bind_move_the_labels(iris):
    X, _, y = iris
    counts = [
        np.bincount(geometry(class_prior=prior, marginal_strength=0.9).fit(X, y).transduction_, minlength=3)[1]
        for prior in ([1, 1, 1], [1, 0.3, 1.7])
    ]
    assert counts[1] < counts[0] - 10


def test_shares_are_inferred_where_labels_were_drawn_so_many_a_class():
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], [160, 40])
    X = rng.normal(size=(200, 2)) + 5.0 * truth[:, None]
    y = np.full(200, -1)
    y[np.r_[:10, 160:170]] = truth[np.r_[:10, 160:170]]
    prior = geometry().fit(X, y).class_prior_
    assert 0.6 < prior[0] < 0.9


def test_a_class_of_no_share_gets_no_more_rows():
    X, _, y = blobs()
    model = geometry(class_prior=[1, 0], marginal_strength=0.5).fit(X, y)
    assert (model.transduction_[y == -1] == 0).all()
    check(model, X, y)


@pytest.mark.parametrize("prior", ["equal", [0.5], {"a": 0.5}, [-1, 2], 3])
def test_shares_that_make_no_sense_are_refused_by_name(prior):
    X, _, y = blobs()
    with pytest.raises((ValueError, TypeError), match="class_prior"):
        geometry(class_prior=prior).fit(X, y)


def test_strength_grows_with_the_labels_up_to_a_half(iris):
    X, truth, _ = iris
    strengths = [geometry().fit(X, hide(truth, share)).marginal_strength_ for share in (0.05, 0.2, 0.9)]
    assert 0 < strengths[0] < strengths[1] < strengths[2] < 0.5
    assert geometry(marginal_strength=0.7).fit(X, truth).marginal_strength_ == 0.7


# --- confidence


def test_rows_below_the_confidence_asked_for_stay_unlabelled(iris, alone):
    X, _, y = iris
    bound = float(np.median(alone.confidence_[y == -1]))
    model = geometry(abstain_below=bound).fit(X, y)
    unsure = model.confidence_ < bound
    assert 0 < unsure.sum() < 150
    assert (model.transduction_[unsure] == -1).all()
    np.testing.assert_array_equal(model.transduction_[~unsure], alone.transduction_[~unsure])
    np.testing.assert_array_equal(model.label_distributions_, alone.label_distributions_)
    text = geometry(abstain_below=1.0).fit(X, np.where(y == -1, None, y.astype(str).astype(object)))
    assert {text.transduction_[place] for place in np.flatnonzero(y == -1)} == {None}
    assert (text.transduction_[y != -1] == y[y != -1].astype(str)).all()


def test_the_table_of_coverage_says_what_abstaining_would_leave(iris, alone):
    X, _, y = iris
    table = alone.coverage()
    hidden = alone.confidence_[y == -1]
    assert table[0].share == 1
    assert table[0].n_rows == len(hidden)
    assert table[0].expected_error == pytest.approx(1 - hidden.mean())
    errors = [line.expected_error for line in table]
    assert errors == sorted(errors, reverse=True)
    line = table[len(table) // 2]
    model = geometry(abstain_below=line.confidence).fit(X, y)
    assert (model.transduction_[y == -1] != -1).sum() >= line.n_rows


def test_confidence_is_about_as_high_as_the_labels_are_right():
    right, confidence = [], []
    for seed in range(6):
        X, truth, _ = blobs(150, 3, gap=1.2, seed=seed)
        y = hide(truth, 0.2, seed)
        model = geometry().fit(X, y)
        right.append((model.transduction_ == truth)[y == -1].mean())
        confidence.append(model.confidence_[y == -1].mean())
    assert np.mean(right) < 0.95
    assert abs(np.mean(right) - np.mean(confidence)) < 0.11


def skewed(shares=(0.9, 0.1), n_rows=600, n_labels=20, gap=2.5, seed=0):
    """Overlapping clouds of unequal size with equally many labels each."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(len(shares)), np.round(np.array(shares) * n_rows).astype(int))
    X = rng.normal(size=(n_rows, 4))
    X[np.arange(n_rows), truth] += gap
    y = np.full(n_rows, -1)
    for code in range(len(shares)):
        y[rng.choice(np.flatnonzero(truth == code), n_labels, replace=False)] = code
    return X, truth, y


@pytest.mark.parametrize("shares", [(0.9, 0.1), (0.7, 0.3), (0.5, 0.5), (0.8, 0.15, 0.05)])
def test_equally_many_labels_a_class_do_not_hide_how_large_the_classes_are(shares):
    off = []
    for seed in range(2):
        X, truth, y = skewed(shares, seed=seed)
        model = OTP().fit(X, y)
        assert np.abs(model.class_prior_ - shares).max() < 0.08
        left = y == -1
        right = (model.transduction_ == truth)[left].mean()
        known = OTP(class_prior=shares).fit(X, y)
        assert right > (known.transduction_ == truth)[left].mean() - 0.03
        off.append(abs(model.confidence_[left].mean() - right))
    assert np.mean(off) < 0.09  # a single draw may look as if a class were missing


def test_a_cluster_that_no_label_reaches_is_labelled_without_confidence():
    X, _, y = skewed((0.5, 0.5), 200)
    far = np.random.default_rng(1).normal(size=(60, 4)) + 400.0 * np.eye(4)[0]
    model = OTP().fit(np.vstack([X, far]), np.append(y, np.full(60, -1)))
    assert model.confidence_[200:].max() <= model.class_prior_.max()
    assert model.confidence_[:200][y == -1].mean() > 0.85


@pytest.mark.parametrize("n_labels", [40, 100])
def test_where_copies_of_rows_are_parts_of_the_graph_confidence_agrees_with_the_expected_error(n_labels):
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 4, 250)
    centres = np.array([[0, 0], [2.5, 0], [0, 2.5], [2.5, 2.5]])
    rows = np.hstack([centres[kind] + rng.normal(size=(250, 2)), rng.normal(size=(250, 2))])
    X, truth = np.repeat(rows, 11, axis=0), np.repeat(kind, 11)
    X = X + 1e-3 * rng.normal(size=X.shape)
    y = np.full(len(X), -1)
    labelled = rng.choice(len(X), n_labels, replace=False)
    y[labelled] = truth[labelled]
    model = OTP(n_jobs=1).fit(X, y)
    assert model.coverage()[0].expected_error == pytest.approx(model.expected_error_, abs=1e-3)
    wrong = (model.transduction_ != truth)[y == -1].mean()
    assert abs(model.expected_error_ - wrong) < 0.15
    assert abs(model.predict_confidence(rows).mean() - (1 - wrong)) < 0.1


def test_confidence_is_never_below_that_of_a_guess():
    rng = np.random.default_rng(0)
    y = np.where(np.arange(120) < 40, rng.integers(2, size=120), -1)
    assert OTP().fit(rng.normal(size=(120, 3)), y).confidence_.min() >= 0.5


def test_where_no_label_can_be_hidden_the_log_says_that_confidence_is_not_calibrated(caplog):
    X, _, y = blobs(n_labels=1)
    with caplog.at_level("WARNING", logger="otprop"):
        geometry().fit(X, y)
        assert "confidence_ is not calibrated: no label drawn at random could be held out" in caplog.text
        caplog.clear()
        X, _, y = blobs(n_labels=2)
        geometry().fit(X, y)
        assert not caplog.text


def test_rows_left_by_a_callback_are_not_covered(iris):
    X, _, y = iris
    model = geometry(callback=lambda round_: True).fit(X, y)
    assert model.coverage()[0].n_rows == len(model.rounds_[0].rows) < (y == -1).sum()


def test_two_classifiers_of_one_type_are_told_apart(iris):
    X, _, y = iris
    evidence = [KNeighborsClassifier(1), GaussianNB(), KNeighborsClassifier(3)]
    names = [source.name for source in OTP(evidence=evidence).fit(X, y).evidence_]
    assert names == ["diffusion", "KNeighborsClassifier 1", "GaussianNB", "KNeighborsClassifier 2"]


def test_a_classifier_that_fails_is_named(iris):
    X, _, y = iris
    message = "KNeighborsClassifier, a classifier in evidence, failed: .*n_neighbors"
    with pytest.raises(ValueError, match=message):
        OTP(evidence=[KNeighborsClassifier(1000)]).fit(X, y)


def test_the_likelihood_shown_is_that_of_the_hidden_labels_alone(iris, alone):
    for setting in alone.settings_:
        assert setting["likelihood"] <= 0
    X, truth, _ = iris
    sure = geometry().fit(X[truth < 2], np.where(np.arange(100) % 2, truth[truth < 2], -1))
    assert max(setting["likelihood"] for setting in sure.settings_) > -0.002  # with a pull it would be lower


def test_the_warning_of_a_lopsided_graph_points_to_the_call():
    with pytest.warns(UserWarning, match="X is not symmetric") as caught:
        OTP(cost="graph").fit(sp.csr_array(sp.triu(chain(20))), [0] + [-1] * 18 + [1])
    assert caught[0].filename == __file__


def test_a_run_that_was_stopped_has_a_confidence_for_every_row(iris):
    X, _, y = iris
    model = geometry(callback=lambda round_: True).fit(X, y)
    left = model.round_ == -1
    order = np.argsort(model.label_distributions_[left].max(axis=1))
    assert (np.diff(model.confidence_[left][order]) >= 0).all()


def test_with_nothing_left_to_label_there_is_nothing_to_cover(iris):
    X, truth, _ = iris
    assert geometry().fit(X, truth).coverage() == []


# --- graphs of one's own


def chain(*sizes):
    """Affinities along chains of rows, one beside the other."""
    return sp.block_diag([sp.diags_array([1.0] * 2, offsets=[-1, 1], shape=(n, n)) for n in sizes], format="csr")


def test_labels_spread_over_a_graph_of_ones_own():
    y = np.full(40, -1)
    y[[0, 39]] = [0, 1]
    model = OTP(cost="graph").fit(chain(40), y)
    np.testing.assert_array_equal(model.transduction_, np.repeat([0, 1], 20))
    assert model.settings_[0]["n_neighbors"] is None
    new = np.zeros((2, 40))
    new[0, 3], new[1, 35] = 1, 2
    assert model.predict(sp.csr_array(new)).tolist() == model.predict(new).tolist() == [0, 1]


@pytest.mark.parametrize("make", [sp.csr_matrix, sp.coo_array, sp.csc_array, lambda graph: graph.toarray()])
def test_a_graph_may_come_in_any_form(make):
    y = np.full(20, -1)
    y[[0, 1, 19]] = [0, 0, 1]
    expected = OTP(cost="graph").fit(chain(20), y).label_distributions_
    for graph in (chain(20), chain(20) * 1e300, chain(20) + sp.eye_array(20)):
        found = OTP(cost="graph").fit(make(graph), y).label_distributions_
        np.testing.assert_allclose(found, expected, atol=1e-6)
    with pytest.warns(UserWarning, match="X is not symmetric: the larger of w_ij and w_ji is used"):
        model = OTP(cost="graph").fit(make(sp.csr_array(sp.triu(chain(20)))), y)
    np.testing.assert_allclose(model.label_distributions_, expected, atol=1e-6)


def test_rows_that_no_label_reaches_get_the_shares_of_the_classes_and_come_last():
    y = np.full(30, -1)
    y[[0, 1, 2, 19]] = [0, 0, 0, 1]
    graph = sp.block_diag([chain(20), chain(8), np.zeros((2, 2))], format="csr")
    model = OTP(cost="graph").fit(graph, y)
    check(model, graph, y)
    lost = np.arange(30) >= 20
    np.testing.assert_allclose(model.label_distributions_[lost], np.tile(model.class_prior_, (10, 1)))
    assert (model.certainty_[lost] == 0).all()
    assert (model.certainty_[~lost] > 0).all()
    assert (model.round_[lost] == len(model.rounds_)).all()
    assert (model.round_[~lost] < len(model.rounds_)).all()
    new = np.zeros((2, 30))
    new[0, 25] = 1  # near a row that no label reached; the other one is near no row
    np.testing.assert_allclose(model.predict_proba(new), np.tile(model.class_prior_, (2, 1)))


def test_a_row_that_no_label_reaches_is_not_of_the_first_class():
    y = np.full(12, -1)
    y[[0, 8, 9]] = [0, 1, 1]
    model = OTP(cost="graph", class_prior=[0.2, 0.8]).fit(chain(10, 2), y)
    assert (model.transduction_[10:] == 1).all()


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (np.ones((4, 3)), r"X must be a square matrix with one row and one column per row; got \(4, 3\)"),
        (np.eye(4) - np.ones((4, 4)), "X holds the negative affinity -1.0"),
    ],
)
def test_a_matrix_that_is_no_graph_is_refused(graph, message):
    with pytest.raises(ValueError, match=message):
        OTP(cost="graph").fit(graph, [0, 1, -1, -1])
    with pytest.raises(ValueError, match=r"X holds the negative affinity -1.0|X has 3 features"):
        OTP(cost="graph").fit(chain(4), [0, 1, -1, -1]).predict(graph)


def test_several_separate_groups_of_rows_are_no_trouble():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(30, 2)) + 1000.0 * group for group in range(4)])
    y = np.full(120, -1)
    y[[0, 1, 30, 31, 60]] = [0, 0, 1, 1, 0]  # none in the last group
    model = geometry().fit(X, y)
    check(model, X, y)
    np.testing.assert_array_equal(model.transduction_[:90], np.repeat([0, 1, 0], 30))
    assert (model.certainty_[90:] == 0).all()
    assert (model.round_[90:] == len(model.rounds_)).all()
    assert (OTP().fit(X, y).certainty_[90:] > 0).all()  # a classifier has something to say there


# --- any finite table


@SETTINGS
@given(table=tables(), alpha=st.sampled_from(["auto", 0.0, 0.7, 1.0]), strength=st.sampled_from(["auto", 0, 1]))
def test_any_finite_table_and_any_pattern_of_labels_is_labelled_by_diffusion(table, alpha, strength):
    X, y = table
    check(geometry(alpha=alpha, marginal_strength=strength).fit(X, y), X, y)


@SETTINGS
@given(table=tables(), cost=st.sampled_from(["sqeuclidean", "cityblock", "precomputed"]))
def test_any_finite_table_and_any_pattern_of_labels_is_labelled_by_nearness(table, cost):
    X, y = table
    if cost == "precomputed":
        X = pairwise_distances(X / (np.abs(X).max() or 1.0), metric="cityblock")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(nearness(cost=cost).fit(X, y), X, y)


@settings(SETTINGS, max_examples=8)
@given(table=tables(12))
def test_any_finite_table_and_any_pattern_of_labels_is_labelled_with_classifiers(table):
    X, y = table
    check(OTP(n_jobs=1).fit(X, y), X, y)


AWKWARD = {
    "two rows": ([[1.0], [2.0]], [0, -1]),
    "all the same row": (np.ones((10, 2)), [0, 1, *[-1] * 8]),
    "duplicates": (np.repeat(blobs(20)[0], 5, axis=0), np.repeat(blobs(20)[2], 5)),
    "one label a class": (blobs()[0], blobs(n_labels=1)[2]),
    "one class": (blobs()[0], np.where(blobs()[2] == 0, 0, -1)),
    "all labelled": (blobs()[0], blobs()[1]),
    "huge": (blobs()[0] * 1e150, blobs()[2]),
    "tiny": (blobs()[0] * 1e-150, blobs()[2]),
    "as large as floats go": (blobs()[0] * 1e307, blobs()[2]),
    "as small as floats go": (blobs()[0] * 1e-320, blobs()[2]),
    "far from the origin": (blobs()[0] + 1e9, blobs()[2]),
    "constant features": (np.column_stack([np.full(40, 3.0), blobs()[0], np.zeros(40)]), blobs()[2]),
    "an outlier": (np.vstack([blobs()[0], np.full((1, 3), 1e100)]), np.r_[blobs()[2], -1]),
    "more classes than hidden labels": (blobs(60, 30)[0], blobs(60, 30, n_labels=1)[2]),
}


@pytest.mark.parametrize("name", AWKWARD)
@pytest.mark.parametrize(
    "parameters",
    [{"n_jobs": 1}, {"evidence": None}, {"cost": "sqeuclidean", "evidence": None}],
    ids=["default", "geometry", "nearness"],
)
def test_awkward_tables_are_labelled(name, parameters):
    X, y = np.asarray(AWKWARD[name][0]), np.asarray(AWKWARD[name][1])
    check(OTP(**parameters).fit(X, y), X, y)


@pytest.mark.parametrize("change", [lambda X: X * 1e150, lambda X: X * 1e-150, lambda X: X + 1e9, lambda X: 3 * X])
@pytest.mark.parametrize("cost", ["diffusion", "sqeuclidean"])
def test_scale_and_place_do_not_matter(change, cost):
    X, _, y = blobs(60)
    first, second = geometry(cost=cost).fit(X, y), geometry(cost=cost).fit(change(X), y)
    np.testing.assert_array_equal(second.transduction_, first.transduction_)
    np.testing.assert_allclose(second.certainty_, first.certainty_, atol=1e-3)


def test_a_thousand_classes_with_one_label_each():
    X = np.random.default_rng(0).normal(size=(1200, 3))
    y = np.where(np.arange(1200) < 1000, np.arange(1200), -1)
    check(geometry(n_neighbors=5, diffusion=0.5, max_rounds=2).fit(X, y), X, y)


def test_sparse_rows_give_about_the_same_labels(iris):
    X, _, y = iris
    dense, sparse = OTP(evidence=["linear"]).fit(X, y), OTP(evidence=["linear"]).fit(sp.csr_array(X), y)
    check(sparse, sp.csr_array(X), y)
    assert (dense.transduction_ == sparse.transduction_).mean() > 0.9  # sparse columns are not centred
    only = [geometry().fit(rows, y).label_distributions_ for rows in (X, sp.csr_array(X))]
    assert np.abs(only[0] - only[1]).max(axis=1).mean() < 0.01  # but for ties among the neighbours


def test_the_order_of_the_rows_does_not_matter():
    X, _, y = blobs(60, gap=2.0)
    order = np.random.default_rng(0).permutation(60)
    first, second = geometry().fit(X, y), geometry().fit(X[order], y[order])
    np.testing.assert_array_equal(second.transduction_, first.transduction_[order])
    np.testing.assert_allclose(second.label_distributions_, first.label_distributions_[order], atol=1e-3)


def test_the_names_and_the_order_of_the_classes_do_not_matter():
    X, _, y = blobs(60, 3, gap=2.0)
    names = np.array(["zebra", "mole", "ant"], dtype=object)
    first, second = geometry().fit(X, y), geometry().fit(X, np.where(y == -1, None, names[y]))
    np.testing.assert_array_equal(second.transduction_, names[first.transduction_])


# --- seeds and threads


def test_the_same_seed_gives_the_same_answer_on_any_number_of_threads(iris):
    X, _, y = iris
    first, *others = (OTP(n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 1, 2))
    for other in others:
        np.testing.assert_array_equal(other.transduction_, first.transduction_)
        np.testing.assert_array_equal(other.round_, first.round_)
        np.testing.assert_allclose(other.label_distributions_, first.label_distributions_, atol=1e-6)
        np.testing.assert_allclose(other.predict_proba(X + 0.1), first.predict_proba(X + 0.1), atol=1e-6)
    again = OTP(n_jobs=1).fit(X, y)
    np.testing.assert_array_equal(again.label_distributions_, first.label_distributions_)


def test_another_seed_grows_another_forest(iris):
    X, _, y = iris
    one, other, same = (OTP(random_state=seed, n_jobs=1).fit(X, y) for seed in (1, 2, np.random.RandomState(1)))
    assert (one.label_distributions_ != other.label_distributions_).any()
    np.testing.assert_array_equal(one.label_distributions_, same.label_distributions_)


def test_a_forest_of_ones_own_can_be_evidence(iris):
    X, truth, y = iris
    model = OTP(evidence=[RandomForestClassifier(20, random_state=0)], n_jobs=1).fit(X, y)
    assert accuracy_score(truth, model.transduction_) > 0.85


def test_rows_of_the_training_table_are_predicted_with_the_confidence_they_had(iris, default):
    X, _, y = iris
    found = default.predict_confidence(X)
    propagated = y == -1
    np.testing.assert_allclose(found[propagated], default.confidence_[propagated], atol=0.01)  # two rows are equal
    assert (found[~propagated] > 0.9).all()


@pytest.mark.parametrize("twice", [["forest", "forest"], [GaussianNB()] * 2])
def test_a_source_counts_once(iris, twice):
    X, _, y = iris
    with pytest.raises(ValueError, match="twice; name every source once"):
        OTP(evidence=twice).fit(X, y)


def test_the_class_weights_of_a_classifier_are_by_the_users_labels(iris):
    X, truth, _ = iris
    names = np.array(["a", "b", "c"])[truth]
    y = np.where(np.arange(150) % 10 == 0, names, None)
    model = OTP(evidence=[LogisticRegression(class_weight={"a": 1, "b": 2, "c": 1}, max_iter=1000)]).fit(X, y)
    assert accuracy_score(names, model.transduction_.astype(str)) > 0.9


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"cost": "graph", "n_neighbors": 5}, "n_neighbors=5 has no meaning with cost='graph'; leave it at 'auto'"),
        ({"cost": "graph", "metric": "cosine"}, "metric='cosine' has no meaning with cost='graph'"),
        ({"cost": "sqeuclidean", "diffusion": 0.5}, "diffusion=0.5 has no meaning with cost='sqeuclidean'"),
    ],
)
def test_parameters_without_effect_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        OTP(**parameters).fit(chain(4), [0, 1, -1, -1])


def test_a_graph_without_edges_is_said_to_be_one():
    with pytest.warns(UserWarning, match="X has no affinity above 0"):
        OTP(cost="graph").fit(sp.csr_array((4, 4)), [0, 1, -1, -1])


def test_half_a_matrix_of_costs_is_said_to_be_one():
    D = pairwise_distances(np.arange(6.0)[:, None])
    y = [0, -1, -1, -1, -1, 1]
    with pytest.warns(UserWarning, match="X is not symmetric.*add its transpose"):
        OTP(cost="precomputed").fit(np.triu(D), y)


@pytest.mark.parametrize("metric", [lambda a: 1.0, lambda a, b: -1.0])
def test_a_metric_that_fails_is_called_a_metric(iris, metric):
    X, _, y = iris
    with pytest.raises((TypeError, ValueError), match=r"^metric=<function.*(failed on two rows|gave a negative)"):
        OTP(metric=metric).fit(X, y)


def test_a_prior_names_every_class_once(iris):
    X, _, y = iris
    with pytest.raises(ValueError, match="class_prior names a class twice"):
        OTP(class_prior={0: 1, "0": 2, 1: 1, 2: 1}).fit(X, y)


def test_a_diffusion_that_stops_early_is_reported(iris, monkeypatch):
    X, _, y = iris
    solve = DiffusionGraph.solve

    def give_up(self, *arguments, **others):
        return replace(solve(self, *arguments, **others), converged=False)

    monkeypatch.setattr(DiffusionGraph, "solve", give_up)
    with pytest.warns(ConvergenceWarning, match="diffusion of the labels did not converge"):
        geometry().fit(X, y)


def test_forests_are_left_out_where_classes_are_many():
    truth = np.tile(np.arange(101), 4)
    X = np.random.default_rng(0).normal(size=(404, 5)) + 20.0 * np.random.default_rng(1).normal(size=(101, 5))[truth]
    y = np.where(np.arange(404) < 202, truth, -1)
    model = OTP().fit(X, y)
    assert [source.name for source in model.evidence_] == ["diffusion", "linear"]
    assert accuracy_score(truth, model.transduction_) > 0.95
