"""Fetching through scikit-learn: only on request, checked, and kept in the cache."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import sklearn.datasets
from sklearn.utils import Bunch

from otprop.files import TableError
from otprop_paper import datasets
from otprop_paper.datasets import _store


def dermatology_as_openml_has_it() -> Bunch:
    """34 columns with age, missing in places, and labels as text."""
    rng = np.random.default_rng(0)
    counts = (112, 61, 72, 49, 52, 20)
    features = [*(f"f{i}" for i in range(33)), "Age"]
    data = rng.integers(0, 4, size=(366, 34)).astype(float)
    data[::50, 33] = np.nan
    return Bunch(data=data, target=np.repeat(list("123456"), counts).astype(object), feature_names=features)


@pytest.fixture
def openml(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Stands in for the network; gives the list of data ids asked for."""
    asked: list[int] = []

    def fetch(*, data_id: int, as_frame: bool, parser: str) -> Bunch:
        asked.append(data_id)
        return dermatology_as_openml_has_it()

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
    return asked


@pytest.mark.usefixtures("bare")
def test_nothing_is_fetched_unless_asked_for(openml: list[int]) -> None:
    with pytest.raises(FileNotFoundError):
        datasets.load("dermatology")
    assert openml == []


def test_a_fetched_data_set_is_kept_and_not_fetched_again(bare: Path, openml: list[int]) -> None:
    first = datasets.load("dermatology", download=True)
    again = datasets.load("dermatology", download=True)
    assert openml == [35]
    assert first.source == "OpenML 35"
    assert again.source == str(bare / "dermatology.npz")
    np.testing.assert_array_equal(first.X, again.X)
    np.testing.assert_array_equal(first.y, again.y)
    assert again.X.dtype == np.float64
    assert [path.name for path in bare.iterdir()] == ["dermatology.npz"]


@pytest.mark.usefixtures("bare", "openml")
def test_age_the_column_with_missing_values_is_left_out() -> None:
    loaded = datasets.load("dermatology", download=True)
    np.testing.assert_array_equal(loaded.X, dermatology_as_openml_has_it().data[:, :33])
    assert loaded.class_counts == (112, 61, 72, 49, 52, 20)


@pytest.mark.usefixtures("openml")
def test_a_fetched_table_of_another_shape_is_refused_and_not_kept(bare: Path) -> None:
    with pytest.raises(ValueError, match=r"'heart' from OpenML 53 .*should be 270 x 13.*\(366, 34\)"):
        datasets.load("heart", download=True)
    assert list(bare.iterdir()) == []


@pytest.mark.usefixtures("bare")
def test_no_connection_is_said_with_what_to_do(monkeypatch) -> None:
    def fail(**_: object) -> None:
        raise ConnectionError("no route")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fail)
    with pytest.raises(OSError, match=r"download of 'heart' failed \(no route\).*OTPROP_DATA"):
        datasets.load("heart", download=True)


def test_a_cache_that_cannot_be_written_is_said_before_anything_is_fetched(
    tmp_path: Path, bare: Path, monkeypatch, openml: list[int]
) -> None:
    (tmp_path / "a file").write_text("")
    monkeypatch.setenv("OTPROP_CACHE", str(tmp_path / "a file"))
    with pytest.raises(OSError, match="Set OTPROP_CACHE"):
        datasets.load("dermatology", download=True)
    assert openml == []


def test_a_failed_write_leaves_neither_half_a_file_nor_a_trace(bare: Path, openml: list[int], monkeypatch) -> None:
    def full_disk(file, **arrays: np.ndarray) -> None:
        file.write(b"PK half of it")
        raise OSError("no space left on device")

    monkeypatch.setattr(_store.np, "savez_compressed", full_disk)
    with pytest.raises(TableError, match=r"cannot write .*dermatology\.npz: no space left"):
        datasets.load("dermatology", download=True)
    assert list(bare.iterdir()) == []


@pytest.mark.usefixtures("bare")
def test_the_mnist_of_the_paper_is_the_last_ten_thousand_rows(monkeypatch) -> None:
    counts = (980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009)
    y = np.r_[np.zeros(60_000, dtype=int), np.repeat(range(10), counts)]
    data = np.zeros((70_000, 784), dtype=np.uint8)
    data[60_000:] = 7

    def fetch(**_: object) -> Bunch:
        return Bunch(data=data, target=y.astype(str), feature_names=[])

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
    mnist = datasets.load("mnist", download=True)
    assert mnist.X.min() == 7
    np.testing.assert_array_equal(mnist.y, y[60_000:])
