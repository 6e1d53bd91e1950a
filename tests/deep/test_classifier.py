"""A network as a classifier of scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from tests.deep.bars import NO_TORCH, bars, quick
from tests.estimators import geometry

torch = pytest.importorskip("torch", reason=NO_TORCH)

from otprop.deep import NetworkClassifier  # noqa: E402

TINY = {"n_steps": 25, "batch_size": 16, "learning_rate": 0.1, "n_jobs": 1}
BY_CHANCE = "a weight is how often a row is drawn, so that other draws are made than with the row repeated"
EXPECTED = {"check_sample_weight_equivalence_on_dense_data": BY_CHANCE}


class TinyNet(torch.nn.Sequential):
    """A class, since the name of a function has its address, which differs between the processes of the tests."""

    def __init__(self, shape, n_classes):
        (width,) = shape
        norm, first, last = torch.nn.BatchNorm1d(width), torch.nn.Linear(width, 8), torch.nn.Linear(8, n_classes)
        super().__init__(norm, first, torch.nn.ReLU(), last)


@parametrize_with_checks([NetworkClassifier(TinyNet, **TINY)], expected_failed_checks=lambda _: EXPECTED)
def test_scikit_learn_accepts_the_classifier(estimator, check):
    check(estimator)


def test_minus_one_is_a_class_like_any_other():
    X, truth = bars(60)
    y = np.where(truth == "down", 1, -1)
    model = NetworkClassifier(**TINY).fit(X, y)
    assert model.classes_.tolist() == [-1, 1]
    flat, labels = X.reshape(60, -1), np.where(np.arange(60) < 40, y, 0)
    both = geometry(evidence=[("net", NetworkClassifier(**TINY))], unlabeled=0).fit(flat, labels)
    assert both.classes_.tolist() == [-1, 1]
    assert "net" in {source.name for source in both.evidence_}


@pytest.mark.parametrize("missing", [None, np.nan])
def test_a_row_without_a_label_is_refused(missing):
    with pytest.raises(ValueError, match=r"y has 1 unlabelled rows .*remove them"):
        NetworkClassifier().fit([[0.0], [1.0], [2.0]], np.array([-1, 1, missing], dtype=object))


def test_threads_for_all_processors_can_be_asked_for_as_in_otp():
    X, truth = bars(30)
    before, seen = torch.get_num_threads(), []
    options = {"n_steps": 2, "n_jobs": -1, "augment": lambda batch: seen.append(torch.get_num_threads()) or batch}
    NetworkClassifier(**options).fit(X, truth)
    quick(n_rounds=1, **options).fit(X, truth)
    assert min(seen) >= 1
    assert torch.get_num_threads() == before
