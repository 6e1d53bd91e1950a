"""Made-up images, and what the tests of the networks share."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tests.estimators import geometry

NO_TORCH = "needs PyTorch: pip install '.[deep]' in a checkout of otprop"
CLASSES = ("across", "diagonal", "down")


def bars(n_rows: int = 150, side: int = 8, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Noisy images of a bar across, down, or along the diagonal, anywhere in the image, and their classes."""
    rng = np.random.default_rng(seed)
    X = 0.2 * rng.normal(size=(n_rows, side, side))
    truth = np.array(CLASSES)[np.arange(n_rows) % 3]
    for image, label in zip(X, truth, strict=True):
        at, steps = rng.integers(side), np.arange(side)
        where = {"across": (at, steps), "down": (steps, at), "diagonal": (steps, (steps + at) % side)}[str(label)]
        image[where] += 1.0
    return X.astype(np.float32), truth


def partly_labelled(truth: np.ndarray, per_class: int) -> np.ndarray:
    """The first labels of each class, None elsewhere."""
    y = np.full(len(truth), None, dtype=object)
    for label in np.unique(truth):
        rows = np.flatnonzero(truth == label)[:per_class]
        y[rows] = truth[rows]
    return y


def rolled(batch: Any) -> Any:
    """The images shifted along both sides by the same random number of pixels: a bar stays a bar."""
    import torch

    across, down = torch.randint(0, batch.shape[-1], (2,)).tolist()
    return torch.roll(batch, (down, across), dims=(-2, -1))


def narrow() -> Any:
    """A smaller network, by a partial function."""
    from otprop.deep import conv_net

    return partial(conv_net, channels=(4, 8))


def quick(**parameters: Any) -> Any:
    """A trainer that takes little time."""
    from otprop.deep import PseudoLabelTrainer

    defaults = {"n_rounds": 2, "n_steps": 40, "batch_size": 32, "transport": geometry(), "n_jobs": 1}
    return PseudoLabelTrainer(**(defaults | parameters))
