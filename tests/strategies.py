"""Hypothesis strategies that several tests share."""

from __future__ import annotations

from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays


@st.composite
def tables(draw, max_rows=25):
    """Rows with duplicates and constant features, at any scale, and any pattern of labels."""
    n_rows = draw(st.integers(2, max_rows))
    n_features = draw(st.integers(1, 4))
    X = draw(arrays(float, (n_rows, n_features), elements=st.floats(-1, 1, width=32)))
    if draw(st.booleans()):
        X[:, 0] = 1.0
    if draw(st.booleans()):
        X[n_rows // 2 :] = X[0]
    X = X * 10.0 ** draw(st.integers(-150, 150))
    n_classes = draw(st.integers(1, 4))
    y = draw(arrays(int, n_rows, elements=st.integers(-1, n_classes - 1)))
    assume((y != -1).any())
    return X, y
