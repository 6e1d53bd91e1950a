"""Small labelled tables that the baselines' tests share."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris


def hide(y, share, seed=0):
    """`y` with -1 in place of most labels; every class keeps at least one."""
    rng = np.random.default_rng(seed)
    hidden = rng.random(len(y)) >= share
    for label in np.unique(y):
        hidden[rng.choice(np.flatnonzero(y == label))] = False
    return np.where(hidden, -1, y)


@pytest.fixture(scope="session")
def iris():
    X, y = load_iris(return_X_y=True)
    return X, y, hide(y, 0.1)


@pytest.fixture(scope="session")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:600], y[:600], hide(y[:600], 0.1)
