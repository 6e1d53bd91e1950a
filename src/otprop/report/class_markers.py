"""The colour and the shape that stand for a class in charts."""

from __future__ import annotations

import numpy as np

from otprop.report.svg import Chart, marker

# Okabe and Ito's colours with enough contrast on white and on black, distinct under any colour vision.
COLORS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
SHAPES = ("circle", "square", "triangle", "diamond", "wedge", "cross")
SHARED_MARKER = ("#8a6d5a", "circle")  # of all classes beyond the 36 largest

ClassMarker = tuple[str, str]  # color, shape


def class_markers(sizes: np.ndarray) -> list[ClassMarker]:
    """A colour and a shape for every class; two classes share at most one of them, until both run out."""
    n_shapes = len(SHAPES)
    unique = [
        (color, SHAPES[(number + shift) % n_shapes]) for shift in range(n_shapes) for number, color in enumerate(COLORS)
    ]
    if len(sizes) <= len(unique):
        return unique[: len(sizes)]
    markers = [SHARED_MARKER] * len(sizes)
    for one, number in zip(unique, np.sort(np.argsort(-sizes, kind="stable")[: len(unique)]), strict=True):
        markers[number] = one
    return markers


def marker_icon(one: ClassMarker) -> Chart:
    """The marker of a class next to its name."""
    color, shape = one
    return Chart(16, 16, [marker(shape, 8, 8, color, size=5.0)], shape, "swatch")
