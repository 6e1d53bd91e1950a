"""Rows of overlapping classes, and voters who err."""

from __future__ import annotations

import numpy as np

from otprop import OTP

NAMES = np.array(["ash", "elm", "oak"])


def trees(n_rows=240, n_labels=24, n_classes=3, distance=1.0, seed=0):
    """Rows of overlapping classes, their classes, and y with a few labels."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n_rows)
    X = rng.normal(size=(n_rows, 4)) + distance * np.eye(n_classes, 4)[truth]
    return X, truth, np.where(np.arange(n_rows) < n_labels, truth, -1)


def voter(truth, error, seed, n_classes=3):
    """Votes that are wrong in a share of the rows."""
    rng = np.random.default_rng([seed, 7])
    wrong = (truth + rng.integers(1, n_classes, size=len(truth))) % n_classes
    return np.where(rng.random(len(truth)) < error, wrong, truth)


def quick():
    """An OTP with one small classifier."""
    return OTP(evidence=["linear"])


def accuracy(X, truth, y, votes=None):
    model = quick().fit(X, y, votes=votes)
    return (model.transduction_ == truth)[y == -1].mean()
