"""Training with hidden labels, and without labels."""

from __future__ import annotations

import numpy as np
import pytest

from tests.deep.bars import NO_TORCH, bars, partly_labelled, quick

torch = pytest.importorskip("torch", reason=NO_TORCH)

from otprop.deep import conv_net  # noqa: E402


@pytest.fixture(scope="module")
def images():
    X, truth = bars()
    return X, truth, partly_labelled(truth, 6)


def test_an_augmentation_may_change_its_batch_in_place():
    from otprop.deep.training import TrainingConfig, pretrain

    seen = []

    def noisy(batch):
        seen.append(batch)
        return batch.add_(torch.randn_like(batch))

    rows = torch.from_numpy(bars(30)[0])
    pretrain(conv_net((8, 8), 3), rows, TrainingConfig(1, 16, 0.01, 0.0, noisy), seed=0)
    assert not torch.equal(*seen)
    torch.testing.assert_close(rows, torch.from_numpy(bars(30)[0]))


def test_features_and_rows_count_the_same_side_by_side():
    from otprop.deep.training import side_by_side

    rng = np.random.default_rng(0)
    features, rows = rng.normal(0, 50, (40, 3)).astype(np.float32), rng.normal(0, 0.1, (40, 9)).astype(np.float32)
    both = side_by_side(features, rows)
    assert both.shape == (40, 12)
    assert both[:, :3].var(axis=0).sum() == pytest.approx(both[:, 3:].var(axis=0).sum(), rel=1e-4)
    np.testing.assert_array_equal(side_by_side(features, np.ones((40, 2)))[:, 3:], 1)


def test_hidden_labels_stop_the_training_and_are_not_trained_on(images, monkeypatch):
    from otprop.deep import trainer

    X, _, y = images
    trained_on = []

    def spy(module, rows, codes, weights, config, **others):
        trained_on.append(np.flatnonzero(weights))
        return train(module, rows, codes, weights, config, **others)

    train = trainer.train
    monkeypatch.setattr(trainer, "train", spy)
    model = quick(n_rounds=1, n_steps=400, hidden_share=0.5).fit(X, y)
    assert len(model.hidden_rows_) == 9
    assert all(y[row] is not None for row in model.hidden_rows_)
    assert not np.isin(model.hidden_rows_, trained_on[0]).any()
    record = model.rounds_[0]
    assert record.best_step <= record.n_steps
    assert 0 <= record.hidden_accuracy <= 1
    assert model.transduction_[model.hidden_rows_].tolist() == y[model.hidden_rows_].tolist()


def test_training_stops_once_the_loss_on_hidden_labels_rises():
    from otprop.deep.training import HiddenLabels, TrainingConfig, train

    X, truth = bars(60)
    codes = np.unique(truth, return_inverse=True)[1]
    rows = torch.from_numpy(X)
    wrong = HiddenLabels(rows, (codes + 1) % 3)  # the better the training, the higher their loss
    torch.manual_seed(0)
    module = conv_net((8, 8), 3)
    found = train(module, rows, codes, np.ones(60), TrainingConfig(200, 16, 0.01, 0.0), seed=0, hidden=wrong)
    assert found.best_step < found.n_steps < 200
