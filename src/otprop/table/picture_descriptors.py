"""Pictures as numbers without a trained network: gradients, grey and colour thumbnails, colours and textures."""

from __future__ import annotations

from typing import Any

import numpy as np

VERSION = "1"  # part of the name of the cache: change it with the numbers
SIDE = 64  # pixels of the picture that gradients are taken from
CELL, ORIENTATIONS = 8, 9
FAINT = 3e-3  # squared strength of gradients below which they count as noise
GREY_SIDE, COLOUR_SIDE = 16, 8
COLOUR_LEVELS = 4  # of each of red, green and blue
BLOCKS = (0, 576, 832, 960, 1024, 1060)  # where the blocks of `describe_picture` start, and the end
# each block is scaled by its weight over the root of its spread: blocks in which the pictures of a set hardly differ,
# such as the colours of grey pictures, then count less; chosen on digits, crops of photographs and drawn shapes
WEIGHTS = (0.78, 0.255, 0.28, 0.715, 1.30)
_CELLS = np.arange(SIDE)[:, None] // CELL * (SIDE // CELL) + np.arange(SIDE)[None, :] // CELL  # of each pixel


def describe_picture(image: Any) -> dict[str, np.ndarray]:
    """The blocks of numbers of an RGB image of Pillow, each of fixed length."""
    from PIL import Image

    small = image.resize((SIDE, SIDE), Image.Resampling.BOX if min(image.size) >= SIDE else Image.Resampling.BILINEAR)
    pixels = np.asarray(small, dtype=np.float32) / 255.0
    grey = pixels @ np.array([0.299, 0.587, 0.114], dtype=np.float32)
    chroma = np.stack([pixels[:, :, 0] - grey, pixels[:, :, 2] - grey], axis=2)
    return {
        "gradients": _gradients(grey),
        "grey": _pooled(grey[:, :, None], GREY_SIDE).ravel(),
        "colour": _pooled(chroma, COLOUR_SIDE).ravel(),
        "colours": _colours(pixels),
        "texture": _texture(grey),
    }


def _pooled(values: np.ndarray, side: int) -> np.ndarray:
    """Means over the cells of a grid of `side` x `side`."""
    step = SIDE // side
    return np.asarray(values.reshape(side, step, side, step, -1).mean(axis=(1, 3)))


def _gradients(grey: np.ndarray) -> np.ndarray:
    """Histograms of oriented gradients, one per cell, scaled by the strength in the cell and around it."""
    down, right = np.gradient(grey)
    strength = np.hypot(down, right)
    angle = np.mod(np.arctan2(down, right), np.pi) / np.pi * ORIENTATIONS
    share = angle - np.floor(angle)
    first = angle.astype(np.intp) % ORIENTATIONS
    places = _CELLS * ORIENTATIONS
    n_bins = (SIDE // CELL) ** 2 * ORIENTATIONS
    found = np.bincount((places + first).ravel(), (strength * (1 - share)).ravel(), n_bins)
    found += np.bincount((places + (first + 1) % ORIENTATIONS).ravel(), (strength * share).ravel(), n_bins)
    side = SIDE // CELL
    cells = found.reshape(side, side, ORIENTATIONS) / CELL**2
    energy = np.pad((cells**2).sum(axis=2), 1)
    around = sum(energy[i : i + side, j : j + side] for i in range(3) for j in range(3))
    return np.asarray(cells / np.sqrt(around + FAINT)[:, :, None]).ravel()


def _colours(pixels: np.ndarray) -> np.ndarray:
    """The roots of the shares of the colours: their distance is Hellinger's."""
    levels = np.minimum((pixels * COLOUR_LEVELS).astype(np.intp), COLOUR_LEVELS - 1)
    codes = (levels[:, :, 0] * COLOUR_LEVELS + levels[:, :, 1]) * COLOUR_LEVELS + levels[:, :, 2]
    counts = np.bincount(codes.ravel(), minlength=COLOUR_LEVELS**3)
    return np.asarray(np.sqrt(counts / counts.sum()))


def _texture(grey: np.ndarray) -> np.ndarray:
    """The roots of the shares of local binary patterns: which of the eight neighbours are brighter, up to rotation."""
    centre = grey[1:-1, 1:-1]
    codes = np.zeros(centre.shape, dtype=np.intp)
    for bit, (i, j) in enumerate(((0, 0), (0, 1), (0, 2), (1, 2), (2, 2), (2, 1), (2, 0), (1, 0))):
        codes |= (grey[i : i + SIDE - 2, j : j + SIDE - 2] > centre + 0.01).astype(np.intp) << bit
    counts = np.bincount(_ROTATED[codes].ravel(), minlength=_ROTATED.max() + 1)
    return np.asarray(np.sqrt(counts / counts.sum()))


def _rotation_classes() -> np.ndarray:
    """The number of the class of each pattern of eight bits under rotation."""
    least = [min(((code << n) | (code >> (8 - n))) & 255 for n in range(8)) for code in range(256)]
    return np.unique(least, return_inverse=True)[1]


_ROTATED = _rotation_classes()
