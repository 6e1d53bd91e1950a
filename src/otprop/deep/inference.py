"""Outputs and features of a network for many rows, batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from otprop._validation import ParameterError
from otprop.deep._torch import nn, torch

ROWS_AT_ONCE = 1024


def class_log_proba(module: Any, rows: Any) -> np.ndarray:
    """Log-probabilities of the classes, in double precision, of shape (n_rows, n_classes)."""
    found = _over_batches(module, rows, lambda batch: module(batch))
    return np.asarray(found.double().log_softmax(dim=1).numpy())


def network_features(module: Any, rows: Any) -> np.ndarray:
    """The input of the linear layer that runs last, or ``module.features(rows)`` if it has that method.

    Returns
    -------
    ndarray of shape (n_rows, n_features)
    """
    return np.asarray(_over_batches(module, rows, capture_features(module)).flatten(1).numpy())


def capture_features(module: Any) -> Callable[[Any], Any]:
    """A function that returns the features of a batch as a tensor, with gradients if they are enabled."""
    if callable(getattr(module, "features", None)) and not isinstance(module.features, nn.Module):
        return lambda batch: module.features(batch)
    layers = [layer for layer in module.modules() if isinstance(layer, nn.Linear)]

    def run(batch: Any) -> Any:
        with _inputs_of(layers) as seen:
            module(batch)
        if not seen:
            raise ParameterError(
                "network",
                f"gives a {type(module).__name__} without a linear layer that runs, whose input would be the features; "
                "give it a method features(rows).",
            )
        return seen[-1]

    return run


def check_network(module: Any, rows: Any, n_classes: int) -> None:
    """Refuse the result of a factory unless it is a network with one output per class and with features."""
    if not isinstance(module, nn.Module):
        raise ParameterError(
            "network", f"must return a torch.nn.Module; got a {type(module).__name__} for rows of {_shape(rows)}."
        )
    few = rows[:2]
    found = _tried(module, few, lambda batch: module(batch), "")
    if tuple(found.shape) != (len(few), n_classes):
        raise ParameterError(
            "network",
            f"gives outputs of shape {tuple(found.shape)} for {len(few)} rows and {n_classes} classes; its last layer "
            f"must have {n_classes} outputs, the n_classes that the factory is called with.",
        )
    features = _tried(module, few, capture_features(module), "features of ")
    if not bool(features.isfinite().all()):
        raise ParameterError("network", "gives features that are not finite before any training.")


def _tried(module: Any, rows: Any, run: Callable[[Any], Any], what: str) -> Any:
    """The result of `run` for a few rows, or an error that names the network: its code may raise anything."""

    def checked(batch: Any) -> Any:
        found = run(batch)
        if not isinstance(found, torch.Tensor):
            raise ParameterError(
                "network", f"must give a tensor for {what}a batch of rows; got a {type(found).__name__}."
            )
        return found

    try:
        return _over_batches(module, rows, checked)
    except ParameterError:
        raise
    except Exception as error:
        raise ParameterError("network", f"does not take rows of shape {_shape(rows)}: {first_line(error)}") from error


def first_line(error: Exception) -> str:
    """The first line of the message of an error in the user's code; its type if the message is empty."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _over_batches(module: Any, rows: Any, run: Callable[[Any], Any]) -> Any:
    """The result of `run` for all rows in evaluation mode; the mode is restored."""
    was_training = module.training
    module.eval()
    try:
        with torch.no_grad():
            return torch.cat([run(rows[at : at + ROWS_AT_ONCE]) for at in range(0, len(rows), ROWS_AT_ONCE)])
    finally:
        module.train(was_training)


@contextmanager
def _inputs_of(layers: Sequence[Any]) -> Iterator[list[Any]]:
    """A list of the inputs of the layers in the order in which they run, which may differ from the module's."""
    seen: list[Any] = []
    handles = [layer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0])) for layer in layers]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


def _shape(rows: Any) -> tuple[int, ...]:
    return tuple(rows.shape[1:])
