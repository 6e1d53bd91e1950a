"""Training without labels: features that match two augmented copies of the same row.

The loss is NT-Xent of SimCLR (Chen, Kornblith, Norouzi and Hinton, ICML 2020).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from otprop.deep._torch import functional, nn, torch
from otprop.deep.inference import capture_features
from otprop.deep.training import OnStep, TrainingConfig, augmented, check_finite, one_cycle

TEMPERATURE = 0.2
PROJECTION = 32  # dimension in which copies are compared; the features before it keep more information


def pretrain(module: Any, rows: Any, config: TrainingConfig, *, seed: int, on_step: OnStep | None = None) -> None:
    """Train a network in place, all but its last linear layer.

    Parameters
    ----------
    module : torch.nn.Module
    rows : tensor of shape (n_rows, ...)
    config : TrainingConfig
        With `augment`; a batch has `batch_size` rows, two copies of each.
    seed : int
        Of the batches; the network and `augment` use PyTorch's random numbers.
    on_step : callable or None

    Raises
    ------
    FloatingPointError
        The loss is no longer finite.
    """
    rng, size = np.random.default_rng(seed), min(config.batch_size, len(rows))
    features_of = capture_features(module)
    with torch.no_grad():
        n_features = features_of(rows[:2]).flatten(1).shape[1]
    projection = nn.Sequential(nn.Linear(n_features, n_features), nn.ReLU(), nn.Linear(n_features, PROJECTION))
    optimizer, schedule = one_cycle([*module.parameters(), *projection.parameters()], config)
    module.train()
    for step in range(1, config.n_steps + 1):
        batch = rows[torch.as_tensor(rng.choice(len(rows), size, replace=False))]
        # clones, since an augmentation may change its batch in place
        copies = torch.cat([augmented(batch.clone(), config.augment) for _ in range(2)])
        loss = _recognition_loss(projection(features_of(copies).flatten(1)))
        check_finite(loss, step, config)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if on_step is not None:
            on_step(step, config.n_steps)
    module.eval()


def side_by_side(features: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The columns of both, each block scaled to a total variance of one; the two make errors in different rows."""
    blocks = []
    for block in (features, rows):
        total = float(block.var(axis=0, dtype=np.float64).sum())
        blocks.append(block / np.float32(np.sqrt(total)) if total > 0 else block)
    return np.hstack(blocks)


def _recognition_loss(points: Any) -> Any:
    """Cross entropy of finding, for each point, its other copy: point i and point i + n are copies of one row."""
    points = functional.normalize(points, dim=1)
    likeness = points @ points.T / TEMPERATURE
    likeness.fill_diagonal_(-torch.inf)
    n_rows = len(points) // 2
    other = torch.arange(len(points)).roll(n_rows)
    return functional.cross_entropy(likeness, other)
