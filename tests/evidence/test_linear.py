"""Logistic regression as a source."""

from __future__ import annotations

import numpy as np

from otprop.evidence.held_out import make_folds
from otprop.evidence.linear import LinearSource
from otprop.evidence.scaling import ScaledRows


def test_linear_source_does_not_depend_on_the_units_of_the_columns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    truth = (X @ [1.0, -2.0, 0.5] > 0).astype(int)
    codes = np.where(np.arange(80) < 40, truth, -1)

    def answers(rows):
        source = LinearSource(ScaledRows.of(rows), 2, 0)
        return source.fit(codes, np.ones(80), make_folds(codes, 2, 0)).rows

    plain = answers(X)
    np.testing.assert_allclose(answers(X * [1e-6, 1.0, 1e6] + [5.0, 0.0, -3.0]), plain, atol=1e-3)
    assert (plain.argmax(axis=1) == truth)[40:].mean() > 0.9
