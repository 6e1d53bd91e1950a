"""Random changes of a batch that do not change the classes."""

from __future__ import annotations

import math
from typing import Any

from otprop._validation import ParameterError
from otprop.deep._torch import functional, torch
from otprop.deep.networks import CHANNELS_FIRST, looks_channels_last


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
