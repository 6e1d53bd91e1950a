"""Training of a network: on weighted labels with early stopping, and without labels.

Batches are augmented, the learning rate goes through one cycle, and the weights are averaged. The loss without labels
is NT-Xent of SimCLR (Chen, Kornblith, Norouzi and Hinton, ICML 2020): features that match two copies of a row.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from otprop._optional import functional, nn, torch
from otprop._validation import ParameterError
from otprop.deep.networks import capture_features, class_log_proba, first_line

AVERAGE_DECAY = 0.99  # of the moving average of the weights, less in the first steps
WARM_UP = 0.2  # share of the steps in which the learning rate rises
N_CHECKS = 10  # evaluations on the held-out labels in a training
PATIENCE = 3  # consecutive evaluations with too high a loss after which training stops

OnStep = Callable[[int, int], None]  # steps done, total steps
TEMPERATURE = 0.2
PROJECTION = 32  # dimension in which copies are compared; the features before it keep more information
AUTO_SHARE = 0.1
LABELS_PER_CLASS = 20  # with at least this many labels per class, "auto" holds out some


@dataclass(frozen=True)
class TrainingConfig:
    """Settings of a training.

    Attributes
    ----------
    n_steps, batch_size : int
    learning_rate : float, the maximum of the cycle
    weight_decay : float
    augment : callable of a batch, or None
    """

    n_steps: int
    batch_size: int
    learning_rate: float
    weight_decay: float
    augment: Callable[[Any], Any] | None = None


@dataclass(frozen=True)
class HiddenLabels:
    """Held-out labelled rows for early stopping; `rows` is a tensor, `codes` are class numbers."""

    rows: Any
    codes: np.ndarray


@dataclass(frozen=True)
class Training:
    """The result of a training.

    Attributes
    ----------
    module : the network with averaged weights, in evaluation mode
    n_steps : int, steps made
    best_step : int, the step whose weights were kept
    loss : float, mean loss of the last tenth of the steps
    hidden_loss, hidden_accuracy : float, on the held-out labels; NaN if there are none
    """

    module: Any
    n_steps: int
    best_step: int
    loss: float
    hidden_loss: float
    hidden_accuracy: float


def train(
    module: Any,
    rows: Any,
    codes: np.ndarray,
    weights: np.ndarray,
    config: TrainingConfig,
    *,
    seed: int,
    hidden: HiddenLabels | None = None,
    on_step: OnStep | None = None,
) -> Training:
    """Train a network in place and return it with averaged weights.

    Parameters
    ----------
    module : torch.nn.Module
    rows : tensor of shape (n_rows, ...)
    codes : ndarray of int of shape (n_rows,)
    weights : ndarray of shape (n_rows,)
        A row is drawn into a batch in proportion to its weight.
    config : TrainingConfig
    seed : int
        Of the batches; the network and `augment` use PyTorch's random numbers.
    hidden : HiddenLabels or None
        None: all steps are made.
    on_step : callable or None

    Returns
    -------
    Training

    Raises
    ------
    FloatingPointError
        The loss is no longer finite.
    """
    draw = _RowDraws(weights, config.batch_size, seed)
    targets = torch.as_tensor(codes, dtype=torch.int64)
    optimizer, schedule = one_cycle(module.parameters(), config)
    average = copy.deepcopy(module)
    stopping = _EarlyStopping(hidden)
    losses: list[float] = []
    check_every = max(1, config.n_steps // N_CHECKS)
    module.train()
    for step in range(1, config.n_steps + 1):
        batch = torch.as_tensor(draw())
        loss = functional.cross_entropy(module(augmented(rows[batch], config.augment)), targets[batch])
        losses.append(check_finite(loss, step, config))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        _move_average(average, module, min(AVERAGE_DECAY, step / (step + 9)))
        if on_step is not None:
            on_step(step, config.n_steps)
        if (
            hidden is not None
            and (step % check_every == 0 or step == config.n_steps)
            and stopping.is_due(average, step)
        ):
            break
    if hidden is not None:
        average.load_state_dict(stopping.best_state)
    average.eval()
    recent = float(np.mean(losses[-check_every:]))
    best = stopping.best_step if hidden is not None else len(losses)
    return Training(average, len(losses), best, recent, stopping.best_loss, stopping.best_accuracy)


def augmented(batch: Any, augment: Callable[[Any], Any] | None) -> Any:
    """The batch after the user's augmentation, with its result checked."""
    if augment is None:
        return batch
    changed = augment(batch)
    if not isinstance(changed, torch.Tensor):
        kind = f"{type(changed).__module__}.{type(changed).__qualname__}".removeprefix("builtins.")
        advice = " Return torch.from_numpy of it." if isinstance(changed, np.ndarray) else ""
        raise ParameterError("augment", f"must return a tensor (torch.Tensor) for a batch; got a {kind}.{advice}")
    if changed.shape != batch.shape or changed.dtype != batch.dtype:
        raise ParameterError(
            "augment",
            f"must return a tensor of the shape {tuple(batch.shape)} and type {batch.dtype} it got; got "
            f"{tuple(changed.shape)} of {changed.dtype}.",
        )
    return changed


def try_augmentation(rows: Any, config: TrainingConfig) -> None:
    """Try the augmentation before any work is done; the random state is restored."""
    batch = rows[torch.arange(config.batch_size) % len(rows)]
    try:
        with torch.random.fork_rng(devices=[]):
            augmented(batch, config.augment)
    except ParameterError:
        raise
    except Exception as error:
        shape = tuple(batch.shape)
        raise ParameterError("augment", f"fails for a batch of shape {shape}: {first_line(error)}") from error


class _RowDraws:
    """Draws of row numbers in proportion to weights, the same for the same seed."""

    def __init__(self, weights: np.ndarray, batch_size: int, seed: int) -> None:
        bounds = np.cumsum(weights, dtype=np.float64)
        self._bounds, self._size, self._rng = bounds / bounds[-1], batch_size, np.random.default_rng(seed)
        self._last = int(np.flatnonzero(weights)[-1])

    def __call__(self) -> np.ndarray:
        drawn = np.searchsorted(self._bounds, self._rng.random(self._size), side="right")
        return np.minimum(drawn, self._last)


class _EarlyStopping:
    """Keeps the last weights whose loss on held-out labels is not clearly above the lowest, and decides when to stop.

    Held-out labels are few: a loss is clearly above another if it exceeds it by more than the standard error of the
    difference.
    """

    def __init__(self, hidden: HiddenLabels | None) -> None:
        self._hidden, self._waited = hidden, 0
        self._lowest = np.empty(0)
        self.best_step = 0
        self.best_state: dict[str, Any] = {}
        self.best_loss, self.best_accuracy = float("nan"), float("nan")

    def is_due(self, module: Any, step: int) -> bool:
        """Evaluate on the held-out labels; true if the loss was too high for `PATIENCE` evaluations."""
        assert self._hidden is not None
        found, codes = class_log_proba(module, self._hidden.rows), self._hidden.codes
        losses = -found[np.arange(len(codes)), codes]
        if len(self._lowest) == 0 or losses.mean() < self._lowest.mean():
            self._lowest = losses
        excess = losses - self._lowest
        if excess.mean() > excess.std() / math.sqrt(max(1, len(codes) - 1)):
            self._waited += 1
            return self._waited >= PATIENCE
        self.best_loss, self.best_accuracy = float(losses.mean()), float((found.argmax(axis=1) == codes).mean())
        self.best_step, self.best_state = step, copy.deepcopy(module.state_dict())
        self._waited = 0
        return False


def one_cycle(parameters: Any, config: TrainingConfig) -> tuple[Any, Any]:
    """An optimiser and its learning rate, which rises in the first steps and falls to 0."""
    optimizer = torch.optim.AdamW(parameters, lr=config.learning_rate, weight_decay=config.weight_decay)
    n_rising = max(1, round(WARM_UP * config.n_steps))
    n_falling = max(1, config.n_steps - n_rising)

    def share(step: int) -> float:
        if step < n_rising:
            return (step + 1) / n_rising
        return (1 + math.cos(math.pi * (step - n_rising) / n_falling)) / 2

    return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, share)


def check_finite(loss: Any, step: int, config: TrainingConfig) -> float:
    """The value of a loss, or an error with advice if it is not finite."""
    value = float(loss.item())
    if not np.isfinite(value):
        raise FloatingPointError(
            f"the loss is {value} in step {step} of {config.n_steps}: lower learning_rate (now "
            f"{config.learning_rate:g}), or see whether the network or augment gives values that are not finite."
        )
    return value


def _move_average(average: Any, module: Any, decay: float) -> None:
    """Move the averaged weights and running statistics towards the current ones."""
    states = (net.state_dict(keep_vars=True).values() for net in (average, module))
    moved = {id(kept): (kept, now) for kept, now in zip(*states, strict=True)}  # a tied weight has two names
    with torch.no_grad():
        for kept, now in moved.values():
            if kept.dtype.is_floating_point:
                kept.lerp_(now, 1 - decay)
            else:
                kept.copy_(now)


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


def choose_hidden(codes: np.ndarray, share: float | str, n_classes: int, seed: int) -> np.ndarray:
    """Rows whose label is held out: the same share of every class, which keeps at least one label.

    Parameters
    ----------
    codes : ndarray of int, -1 where unlabelled
    share : float in [0, 1) or "auto"
        "auto": a tenth if every class has at least 20 labels, else none.
    n_classes, seed : int

    Returns
    -------
    ndarray of int, sorted
    """
    counts = np.bincount(codes[codes >= 0], minlength=n_classes)
    if isinstance(share, str):
        share = AUTO_SHARE if counts.min() >= LABELS_PER_CLASS else 0.0
    rng = np.random.default_rng(seed)
    hidden = []
    for code, count in enumerate(counts):
        n_hidden = min(round(share * count), count - 1)
        hidden.append(rng.permutation(np.flatnonzero(codes == code))[:n_hidden])
    return np.sort(np.concatenate(hidden))
