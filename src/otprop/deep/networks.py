"""Two small networks, random changes of their inputs, and the outputs and features of any network for many rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from otprop._optional import functional, nn, torch
from otprop._validation import ParameterError

SMALLEST_IMAGE = 8  # pixels per side, enough for three poolings
CHANNELS_FIRST = "Rows of shape {} look like images with channels last: give np.moveaxis(images, -1, 1)."
ROWS_AT_ONCE = 1024


def conv_net(shape: tuple[int, ...], n_classes: int, channels: tuple[int, int] = (16, 32), n_features: int = 64) -> Any:
    """Three convolutions with pooling and two linear layers; inputs are standardised by the network itself.

    Parameters
    ----------
    shape : tuple of int
        Of one image: (height, width) or (channels, height, width), with at least 8 pixels per side.
    n_classes : int
    channels : tuple of two int
        Channels of the first convolution, and of the two others.
    n_features : int
        Width of the last layer before the classes: the features over which labels are transported.

    Returns
    -------
    torch.nn.Module

    Examples
    --------
    >>> import torch
    >>> from otprop.deep import conv_net
    >>> conv_net((1, 28, 28), n_classes=10)(torch.zeros(5, 1, 28, 28)).shape
    torch.Size([5, 10])
    """
    if len(shape) not in (2, 3) or min(shape[-2:]) < SMALLEST_IMAGE:
        raise ParameterError(
            "network",
            "conv_net takes images of shape (height, width) or (channels, height, width) with at least "
            f"{SMALLEST_IMAGE} pixels a side; the rows have shape {shape}. Set image_shape, or use mlp for tables.",
        )
    first, others = channels
    n_inputs = shape[0] if len(shape) == 3 else 1
    height, width = (side // 8 for side in shape[-2:])
    return nn.Sequential(
        *([nn.Unflatten(1, (1, shape[0]))] if len(shape) == 2 else []),
        nn.BatchNorm2d(n_inputs, affine=False),
        *_convolution(n_inputs, first, 5),
        *_convolution(first, others, 3),
        *_convolution(others, others, 3),
        nn.Flatten(),
        *_linear(others * height * width, n_features),
        nn.Linear(n_features, n_classes),
    )


def mlp(shape: tuple[int, ...], n_classes: int, widths: tuple[int, ...] = (128, 64), dropout: float = 0.1) -> Any:
    """A multilayer perceptron; columns are standardised by the network itself.

    Parameters
    ----------
    shape : tuple of int
        Of one row: (n_columns,), or any other shape, which is flattened.
    n_classes : int
    widths : tuple of int
        Of the hidden layers; the last are the features over which labels are transported.
    dropout : float
        Share of the hidden units that is dropped in each training step.

    Returns
    -------
    torch.nn.Module

    Examples
    --------
    >>> import torch
    >>> from otprop.deep import mlp
    >>> mlp((13,), n_classes=3)(torch.zeros(5, 13)).shape
    torch.Size([5, 3])
    """
    n_columns = 1
    for side in shape:
        n_columns *= side
    layers = [nn.Flatten(), nn.BatchNorm1d(n_columns, affine=False)]
    for inputs, outputs in zip((n_columns, *widths[:-1]), widths, strict=True):
        layers += [*_linear(inputs, outputs), nn.Dropout(dropout)]
    return nn.Sequential(*layers, nn.Linear(widths[-1], n_classes))


def looks_channels_last(shape: tuple[int, ...]) -> bool:
    """Whether rows of this shape are likely images with their colours in the last axis."""
    return len(shape) == 3 and shape[-1] in (1, 3, 4) and min(shape[:2]) > shape[-1]


def _convolution(inputs: int, outputs: int, width: int) -> list[Any]:
    convolution = nn.Conv2d(inputs, outputs, width, padding=width // 2, bias=False)  # a norm follows
    return [convolution, nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2)]


def _linear(inputs: int, outputs: int) -> list[Any]:
    return [nn.Linear(inputs, outputs, bias=False), nn.BatchNorm1d(outputs), nn.ReLU()]


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


class RandomAffine:
    """Rotate, stretch, shear and shift each image of a batch at random; pixels from outside are 0.

    Parameters
    ----------
    degrees : float
        Largest angle.
    scale : float
        Largest change of the logarithm of width and height.
    shear : float
    shift : float
        Largest shift, as a share of the side.

    Examples
    --------
    >>> import torch
    >>> from otprop.deep import RandomAffine
    >>> RandomAffine()(torch.rand(4, 1, 28, 28)).shape
    torch.Size([4, 1, 28, 28])
    """

    def __init__(self, degrees: float = 15.0, scale: float = 0.15, shear: float = 0.2, shift: float = 0.09) -> None:
        self.degrees, self.scale, self.shear, self.shift = degrees, scale, shear, shift

    def __call__(self, batch: Any) -> Any:
        """A changed copy of a tensor of shape (n, height, width) or (n, channels, height, width)."""
        shape = tuple(batch.shape)
        if len(shape) not in (3, 4):
            raise ParameterError(
                "augment",
                "RandomAffine takes images of shape (height, width) or (channels, height, width); the rows have shape "
                f"{shape[1:]}. Set image_shape for flat rows of images, or omit augment.",
            )
        if looks_channels_last(shape[1:]):
            raise ParameterError("augment", f"RandomAffine takes channels first. {CHANNELS_FIRST.format(shape[1:])}")
        if batch.ndim == 3:
            return self(batch.unsqueeze(1)).squeeze(1)
        angle = self._draw(batch, math.radians(self.degrees))
        across, along = (torch.exp(self._draw(batch, self.scale)) for _ in range(2))
        cos, sin, shear = angle.cos(), angle.sin(), self._draw(batch, self.shear)
        # affine_grid measures in half sides
        right, down = (self._draw(batch, 2 * self.shift) for _ in range(2))
        top = torch.stack([cos * across, (shear - sin) * along, right], dim=1)
        bottom = torch.stack([sin * across, cos * along, down], dim=1)
        grid = functional.affine_grid(torch.stack([top, bottom], dim=1), batch.shape, align_corners=False)
        return functional.grid_sample(batch, grid, align_corners=False)

    @staticmethod
    def _draw(batch: Any, largest: float) -> Any:
        return (2 * torch.rand(len(batch), dtype=batch.dtype) - 1) * largest

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value}" for name, value in vars(self).items())
        return f"RandomAffine({values})"
