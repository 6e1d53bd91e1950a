"""Two small networks: a ConvNet for grey or colour images, and a multilayer perceptron for tables."""

from __future__ import annotations

from typing import Any

from otprop._validation import ParameterError
from otprop.deep._torch import nn

SMALLEST_IMAGE = 8  # pixels per side, enough for three poolings
CHANNELS_FIRST = "Rows of shape {} look like images with channels last: give np.moveaxis(images, -1, 1)."


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
