"""Small labelled tables that the baselines' tests share."""

import pytest
from paper.tests.made import hide
from sklearn.datasets import load_digits, load_iris


@pytest.fixture(scope="session")
def iris():
    X, y = load_iris(return_X_y=True)
    return X, y, hide(y, 0.1)


@pytest.fixture(scope="session")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:600], y[:600], hide(y[:600], 0.1)
