"""The preprocessing of the benchmark."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from otprop_paper import datasets
from otprop_paper.datasets import Dataset

METHODS = ("none", "standardize", "minmax", "range")


def table(X: np.ndarray, name: str = "mine.csv") -> Dataset:
    return Dataset(name, X, np.arange(len(X)) % 2, ("a", "b"))


def test_the_column_methods_are_scikit_learns_scalers() -> None:
    X = np.random.default_rng(0).normal(3, [1, 10, 100], size=(50, 3))
    np.testing.assert_allclose(datasets.prepare(table(X), "standardize").X, StandardScaler().fit_transform(X))
    np.testing.assert_allclose(datasets.prepare(table(X), "minmax").X, MinMaxScaler().fit_transform(X), atol=1e-14)


def test_one_range_for_the_whole_table_keeps_the_columns_proportions() -> None:
    X = np.array([[0.0, 4.0], [8.0, 16.0]])
    np.testing.assert_array_equal(datasets.prepare(table(X), "range").X, X / 16)


def test_digits_come_out_in_sixteenths_and_iris_as_it_is() -> None:
    digits, iris = datasets.load("digits1797"), datasets.load("iris")
    np.testing.assert_array_equal(datasets.prepare(digits).X, digits.X / 16)
    np.testing.assert_array_equal(datasets.prepare(iris).X, iris.X)


def test_a_file_of_ones_own_is_standardised() -> None:
    prepared = datasets.prepare(table(np.array([[1.0], [3.0]])))
    np.testing.assert_allclose(prepared.X, [[-1], [1]])
    description = datasets.describe(prepared)
    assert description.preprocessing == "standardize"
    assert (description.n_rows, description.class_counts) == (2, (1, 1))


@pytest.mark.parametrize("how", METHODS)
def test_the_labels_play_no_part_and_the_original_stays(how) -> None:
    wine = datasets.load("wine")
    before = wine.X.copy()
    one = datasets.prepare(wine, how)
    other = datasets.prepare(replace(wine, y=wine.y[::-1]), how)
    np.testing.assert_array_equal(one.X, other.X)
    one.X[:] = 0
    np.testing.assert_array_equal(wine.X, before)


@pytest.mark.parametrize("how", METHODS)
@given(scale=st.sampled_from([1e-150, 1e-9, 1.0, 1e150, 1e290]), shift=st.sampled_from([0.0, 1.0, 1e9]))
@settings(deadline=None, max_examples=15)
def test_any_finite_table_stays_finite_and_preparing_twice_changes_nothing(how, scale: float, shift: float) -> None:
    X = scale * (np.random.default_rng(0).normal(size=(20, 3)) + shift)
    X[:, 1] = X[0, 1]
    once = datasets.prepare(table(X), how)
    assert np.isfinite(once.X).all()
    np.testing.assert_allclose(datasets.prepare(once, how).X, once.X, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("how", ["standardize", "minmax"])
@pytest.mark.parametrize("value", [0.0, 0.1, -7.3, 1e17])
def test_a_constant_column_becomes_zero(how, value: float) -> None:
    X = np.column_stack([np.full(7, value), np.arange(7.0)])
    assert (datasets.prepare(table(X), how).X[:, 0] == 0).all()


def test_an_unknown_preprocessing_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"how must be one of 'none', 'standardize', 'minmax', 'range'; got 'whiten'"):
        datasets.prepare(datasets.load("iris"), "whiten")  # type: ignore[arg-type]
