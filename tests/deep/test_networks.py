"""Small networks, their features, and random changes of their inputs."""

from __future__ import annotations

import numpy as np
import pytest

from tests.deep.bars import NO_TORCH, bars, partly_labelled, quick

torch = pytest.importorskip("torch", reason=NO_TORCH)

from otprop.deep import RandomAffine  # noqa: E402


@pytest.fixture(scope="module")
def images():
    X, truth = bars()
    return X, truth, partly_labelled(truth, 6)


def test_a_network_of_volumes(images):
    X, _, y = images

    def network(shape, n_classes):
        return torch.nn.Sequential(torch.nn.Conv3d(1, 2, 3), torch.nn.Flatten(), torch.nn.LazyLinear(n_classes))

    volumes = np.repeat(X[:, None, None], 3, axis=2)
    assert quick(network=network, n_rounds=1, n_steps=2).fit(volumes, y).predict(volumes[:4]).shape == (4,)


def test_a_module_may_say_what_its_features_are(images):
    X, _, y = images

    class WithFeatures(torch.nn.Module):
        def __init__(self, n_classes):
            super().__init__()
            self.body, self.head = torch.nn.Linear(64, 5), torch.nn.Linear(5, n_classes)

        def features(self, rows):
            return self.body(rows.flatten(1))

        def forward(self, rows):
            return self.head(torch.relu(self.features(rows)))

    model = quick(network=lambda shape, n_classes: WithFeatures(n_classes), n_rounds=1).fit(X, y)
    assert model.features(X).shape == (len(X), 5)
    assert model.features(X).min() < 0, "before the ReLU, as its method says"


class Backwards(torch.nn.Module):
    """Registers its layers in another order than it runs them, and one that it never runs."""

    def __init__(self, shape, n_classes):
        super().__init__()
        self.head, self.body, self.unused = (torch.nn.Linear(*size) for size in ((5, n_classes), (64, 5), (5, 2)))

    def forward(self, rows):
        return self.head(torch.relu(self.body(rows.flatten(1))))


def test_features_are_the_input_of_the_linear_layer_that_runs_last(images):
    X, _, y = images
    model = quick(network=Backwards, n_rounds=1, n_steps=5).fit(X, y)
    with torch.no_grad():
        expected = torch.relu(model.module_.body(torch.from_numpy(X).flatten(1)))
    np.testing.assert_allclose(model.features(X), expected, rtol=1e-6)


def test_augmented_images_keep_their_shape_and_mass():
    torch.manual_seed(0)
    batch = torch.zeros(20, 1, 28, 28)
    batch[:, :, 10:18, 10:18] = 1.0
    changed = RandomAffine()(batch)
    assert changed.shape == batch.shape
    assert not torch.equal(changed[0], changed[1])
    assert 0.5 < float(changed.sum() / batch.sum()) < 1.5
    torch.testing.assert_close(RandomAffine(0, 0, 0, 0)(batch), batch)
    assert RandomAffine()(batch[:, 0]).shape == (20, 28, 28)
