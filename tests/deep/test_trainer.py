"""Rounds of transport and training on made-up images."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from tests.deep.bars import NO_TORCH, bars, partly_labelled, quick, rolled
from tests.estimators import geometry

torch = pytest.importorskip("torch", reason=NO_TORCH)

from otprop.deep import NetworkClassifier, conv_net, mlp  # noqa: E402


@pytest.fixture(scope="module")
def images():
    X, truth = bars()
    return X, truth, partly_labelled(truth, 6)


@pytest.fixture(scope="module")
def fitted(images):
    X, _, y = images
    return quick(n_steps=150, n_rounds=3, augment=rolled).fit(X, y)


def test_rounds_label_more_rows_right_than_transport_over_the_pixels(images, fitted):
    X, truth, y = images
    unlabelled = y == None  # noqa: E711
    alone = geometry().fit(X.reshape(len(X), -1), y).transduction_
    before, after = ((labels == truth)[unlabelled].mean() for labels in (alone, fitted.transduction_))
    assert before < 0.9
    assert after > before + 0.1


def test_the_network_labels_images_that_come_later(fitted):
    X_new, truth_new = bars(60, seed=1)
    assert fitted.score(X_new, truth_new) > 0.8
    probabilities = fitted.predict_proba(X_new)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_array_equal(fitted.classes_[probabilities.argmax(axis=1)], fitted.predict(X_new))


def test_given_labels_are_kept_and_every_row_has_one(images, fitted):
    _, _, y = images
    given = np.flatnonzero(y != None)  # noqa: E711
    assert fitted.transduction_[given].tolist() == y[given].tolist()
    assert set(fitted.transduction_) == set(fitted.classes_)


def test_the_features_are_those_over_which_labels_were_transported(images, fitted):
    X, _, _ = images
    found = fitted.features(X)
    assert found.shape == (len(X), 64)
    labels = fitted.classes_[fitted.transport_.predict(found)]
    np.testing.assert_array_equal(labels, fitted.transduction_)


def test_a_record_of_each_round(fitted):
    first, second, _ = fitted.rounds_
    assert [record.number for record in fitted.rounds_] == [1, 2, 3]
    assert first.n_changed == 0
    assert second.n_changed == (first.codes != second.codes).sum() > 0
    assert 0 < first.certainty < 1
    assert all(record.n_steps == record.best_step == 150 for record in fitted.rounds_)
    assert np.isnan(first.hidden_accuracy), "six labels a class are too few to hide some"


def test_the_same_seed_gives_the_same_network_and_leaves_the_user_s_random_numbers_alone(images):
    X, _, y = images
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    runs = [quick(n_rounds=1, random_state=seed).fit(X, y).predict_proba(X) for seed in (3, 3, 4)]
    np.testing.assert_array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])
    assert torch.equal(torch.rand(3), expected)


def test_a_callback_can_stop_after_a_round_and_progress_reaches_the_end(images):
    X, _, y = images
    seen, progress = [], []
    model = quick(n_rounds=5, callback=lambda record: seen.append(record) or record.number == 2)
    model.set_progress(lambda done, total, step: progress.append((done, total, step))).fit(X, y)
    assert seen == model.rounds_
    assert len(seen) == 2
    assert [done for done, _, _ in progress] == sorted(done for done, _, _ in progress)
    assert progress[-1][:2] == (2, 5)
    assert {step.partition(":")[0] for _, _, step in progress[:-1]} == {"round 1", "round 2"}


def test_the_network_learns_features_without_labels_first(images):
    X, truth, y = images
    steps = []
    model = quick(n_rounds=1, augment=rolled, n_pretraining_steps=60)
    model.set_progress(lambda done, total, step: steps.append(step)).fit(X, y)
    assert steps[0] == "training without labels: step 3 of 60"
    alone = geometry().fit(X.reshape(len(X), -1), y).transduction_
    first = model.classes_[model.rounds_[0].codes]
    unlabelled = y == None  # noqa: E711
    assert (first == truth)[unlabelled].mean() > (alone == truth)[unlabelled].mean() + 0.05


def test_a_failed_fit_leaves_no_model_behind(images):
    X, _, y = images

    def fail(record):
        raise KeyError("stop")

    model = quick(n_rounds=1).fit(X, y)
    with pytest.raises(KeyError):
        model.set_params(callback=fail).fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_rows_of_a_table_become_images_by_their_shape(images):
    X, _, y = images
    flat = quick(n_rounds=1, image_shape=(8, 8)).fit(X.reshape(len(X), -1), y)
    as_images = quick(n_rounds=1).fit(X, y)
    np.testing.assert_array_equal(flat.transduction_, as_images.transduction_)


def test_no_warning_of_a_marker_that_is_not_the_user_s():
    X, truth = bars(30)
    quick(n_rounds=1, n_steps=2).fit(X, truth)
    with pytest.warns(UserWarning, match="unlabeled='' does not occur in y") as seen:
        quick(n_rounds=1, n_steps=2, unlabeled="").fit(X, truth)
    assert len(seen) == 1


def test_a_table_is_labelled_by_a_multilayer_perceptron():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(at, 1, (40, 4)) for at in (0.0, 5.0)])
    y = np.full(80, -1)
    y[[0, 1, 40, 41]] = 7, 7, 9, 9
    model = quick(network=mlp).fit(X, y)
    assert model.predict([[0.0] * 4, [5.0] * 4]).tolist() == [7, 9]


def test_class_shares_by_label_reach_the_transport(images):
    X, _, y = images
    shares = {"across": 0.2, "diagonal": 0.3, "down": 0.5}
    model = quick(n_rounds=1, transport=geometry(class_prior=shares)).fit(X, y)
    np.testing.assert_allclose(model.transport_.class_prior_, [0.2, 0.3, 0.5])


def test_class_shares_that_do_not_fit_the_labels_are_refused_before_any_work(images):
    X, _, y = images
    steps = []
    for shares, message in (
        ({"across": 0.5, "down": 0.5}, "class_prior lacks 'diagonal'"),
        ({"across": 0.2, "diagonal": 0.3, "down": 0.3, "circle": 0.2}, "class_prior names 'circle'"),
    ):
        model = quick(transport=geometry(class_prior=shares)).set_progress(lambda *step: steps.append(step))
        with pytest.raises(ValueError, match=message):
            model.fit(X, y)
    assert not steps


def test_labels_may_be_dates():
    X, truth = bars(30)
    dates = np.array(["2020", "2021", "2022"], dtype="M8[ns]")
    y = dates[np.unique(truth, return_inverse=True)[1]]
    y[9:] = np.datetime64("NaT")
    transport = geometry(class_prior={np.datetime64("2020"): 1, np.datetime64("2021"): 1, np.datetime64("2022"): 2})
    model = quick(n_rounds=1, n_steps=2, classes=dates, transport=transport).fit(X, y)
    np.testing.assert_array_equal(model.classes_, dates)
    np.testing.assert_allclose(model.transport_.class_prior_, [0.25, 0.25, 0.5])


def test_it_can_be_cloned_and_copied(images, fitted):
    import pickle

    X, _, _ = images
    assert clone(quick(network=conv_net)).network is conv_net
    copied = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copied.predict(X), fitted.predict(X))


def test_the_network_is_one_more_source_of_evidence(images):
    X, truth, y = images
    flat = X.reshape(len(X), -1)
    net = NetworkClassifier(image_shape=(8, 8), n_steps=60, batch_size=16, n_jobs=1)
    model = geometry(evidence=[("net", net)]).fit(flat, y)
    assert {"diffusion", "net"} == {source.name for source in model.evidence_}
    alone = geometry().fit(flat, y)
    unlabelled = y == None  # noqa: E711
    assert (model.transduction_ == truth)[unlabelled].mean() > (alone.transduction_ == truth)[unlabelled].mean()
    assert model.get_params()["net__n_steps"] == 60


def test_weights_decide_which_labels_a_classifier_learns():
    X, truth = bars(60)
    labels = np.concatenate([truth, np.roll(truth, 1)])
    weight = np.repeat([1.0, 0.0], 60)
    rows = np.concatenate([X, X])
    model = NetworkClassifier(n_steps=100, batch_size=32, n_jobs=1).fit(rows, labels, sample_weight=weight)
    assert model.score(X, truth) > 0.9


def test_expected_error_of_later_rounds_is_that_of_the_first_whose_features_saw_no_label():
    X, truth = bars()
    model = quick(n_rounds=3).fit(X, partly_labelled(truth, 5))
    assert len({record.expected_error for record in model.rounds_}) == 1
    assert model.rounds_[0].expected_error > 0
