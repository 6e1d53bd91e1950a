"""Texts, a model of them, and the features it makes."""

from __future__ import annotations

import numpy as np
import pytest

from otprop.table.features import Features

pd = pytest.importorskip("pandas")


TEXTS = [
    f"{'apple' if row % 2 else 'iron'} and {'pear' if row % 2 else 'gold'} {'x' * (row % 7)} number {row}"
    for row in range(60)
]


def frame(texts=TEXTS):
    return pd.DataFrame({"note": texts, "x": np.linspace(0, 1, len(texts)) ** 2})


def lengths(texts):
    return np.array([[len(text), text.count("a"), text.count("o"), 1.0] for text in texts])


def features(model, table=None):
    return Features(["note", "x"], text_model=model).fit(frame() if table is None else table)
