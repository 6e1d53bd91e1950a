"""Data sets by name: found in the declared order, checked, and refused when they are not what they should be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris

from otprop_paper import datasets
from otprop_paper.datasets import _store
from otprop_paper.datasets._catalogue import CATALOGUE

SMALL = [name for name, entry in CATALOGUE.items() if entry.shape[0] <= 10_000 and not entry.generated]


def save_heart(folder: Path, **changes: np.ndarray) -> Path:
    """A file with the shape and class counts of Heart, its features marked by the folder's name."""
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {"X": np.full((270, 13), float(len(folder.name))), "y": np.repeat([0, 1], [150, 120])} | changes
    np.savez(folder / "heart.npz", **arrays)
    return folder / "heart.npz"


@pytest.mark.data
@pytest.mark.parametrize("name", SMALL)
def test_every_data_set_loads_with_its_declared_shape_and_classes(name: str, data_folder: Path, monkeypatch) -> None:
    monkeypatch.setenv("OTPROP_DATA", str(data_folder))
    dataset, entry = datasets.load(name), CATALOGUE[name]
    assert dataset.X.shape == entry.shape
    assert dataset.X.dtype == np.float64
    assert dataset.class_counts == entry.class_counts
    assert len(dataset.class_names) == len(entry.class_counts)
    assert dataset.feature_names is None or len(dataset.feature_names) == entry.shape[1]


@pytest.mark.data
def test_heart_and_dermatology_name_their_columns_in_the_files_order(data_folder: Path, monkeypatch) -> None:
    monkeypatch.setenv("OTPROP_DATA", str(data_folder))
    heart, dermatology = datasets.load("heart"), datasets.load("dermatology")
    column = dict(zip(heart.feature_names or (), heart.X.T, strict=True))
    assert set(column["sex"]) == {0, 1}
    assert column["serum cholesterol"].max() == 564
    assert column["maximum heart rate"].max() == 202
    family = dermatology.X[:, (dermatology.feature_names or ()).index("family history")]
    assert set(family) == {0, 1}


@pytest.mark.data
def test_the_paper_calls_the_ten_thousand_test_images_mnist(data_folder: Path, monkeypatch) -> None:
    monkeypatch.setenv("OTPROP_DATA", str(data_folder))
    assert datasets.load("MNIST").name == datasets.load("mnist").name == "mnist10k"


@pytest.mark.usefixtures("bare")
def test_what_scikit_learn_carries_needs_no_file() -> None:
    iris, digits = datasets.load("iris"), datasets.load("digits1797")
    np.testing.assert_array_equal(iris.X, load_iris().data)
    np.testing.assert_array_equal(digits.y, load_digits().target)
    assert iris.class_names == ("setosa", "versicolor", "virginica")
    assert "scikit-learn" in iris.source
    for name in datasets.names("scikit-learn"):
        assert datasets.load(name).class_counts == datasets.describe(name).class_counts


def test_the_folder_of_the_environment_comes_first_then_the_checkouts_then_the_cache(
    bare: Path, tmp_path: Path, monkeypatch
) -> None:
    save_heart(bare)
    assert datasets.load("heart").X[0, 0] == len("cache")
    save_heart(tmp_path / "beside")
    monkeypatch.setattr(_store, "checkout_folder", lambda: tmp_path / "beside")
    assert datasets.load("heart").X[0, 0] == len("beside")
    save_heart(tmp_path / "mine")
    monkeypatch.setenv("OTPROP_DATA", str(tmp_path / "mine"))
    heart = datasets.load("heart")
    assert heart.X[0, 0] == len("mine")
    assert heart.source == str(tmp_path / "mine" / "heart.npz")


def test_the_cache_is_in_the_users_cache_folder_unless_told_otherwise(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(_store, "checkout_folder", lambda: None)
    monkeypatch.delenv("OTPROP_DATA", raising=False)
    monkeypatch.delenv("OTPROP_CACHE", raising=False)
    monkeypatch.setattr(_store, "user_cache_path", lambda name, **rest: tmp_path / name)
    save_heart(tmp_path / "otprop")
    assert datasets.load("heart").source.startswith(str(tmp_path / "otprop"))


def test_a_data_set_that_is_nowhere_is_refused_with_where_it_was_looked_for(bare: Path, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("OTPROP_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError) as caught:
        datasets.load("heart")
    message = str(caught.value)
    assert str(tmp_path / "nowhere") in message
    assert str(bare) in message
    assert "scikit-learn" in message
    assert "download=True" in message
    monkeypatch.delenv("OTPROP_DATA")
    with pytest.raises(FileNotFoundError, match="OTPROP_DATA: not set"):
        datasets.load("heart")


@pytest.mark.usefixtures("bare")
def test_a_data_set_nobody_serves_says_so_even_when_a_download_is_asked_for() -> None:
    with pytest.raises(FileNotFoundError, match=r"cannot be downloaded.*'waveform-generated'"):
        datasets.load("waveform", download=True)


def test_an_unknown_name_lists_the_known_ones_and_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"name 'hart' .*; did you mean 'heart'.*Known: iris, heart.*covtype"):
        datasets.load("hart")
    with pytest.raises(ValueError, match="name must be"):
        datasets.load("  ")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X": np.zeros((303, 13))}, r"should be 270 x 13 .* found X of shape \(303, 13\)"),
        ({"y": np.zeros(9, dtype=int)}, r"y of shape \(9,\)"),
        ({"y": np.repeat([0, 1], [120, 150])}, r"should have 150, 120 rows, found \{0: 120, 1: 150\}"),
        ({"y": np.repeat([-1, 1], [150, 120])}, r"found \{-1: 150, 1: 120\}"),
        ({"y": np.repeat([0.0, 1.0], [150, 120])}, "y integers"),
        ({"X": np.full((270, 13), np.nan)}, "3510 missing or infinite"),
        ({"X": np.full((270, 13), "a")}, "X should hold numbers"),
        ({"class_names": np.array(["only one"])}, "2 class_names are needed, found 1"),
    ],
)
def test_a_file_that_is_not_the_data_set_is_refused(bare: Path, changes, message: str) -> None:
    save_heart(bare, **changes)
    with pytest.raises(ValueError, match=message):
        datasets.load("heart")


def test_a_damaged_file_is_refused_by_its_path(bare: Path) -> None:
    path = save_heart(bare)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(ValueError, match=r"heart\.npz cannot be read"):
        datasets.load("heart")
    path.write_bytes(b"")
    with pytest.raises(ValueError, match=r"heart\.npz cannot be read"):
        datasets.load("heart")
    np.savez(path, X=np.zeros((270, 13)))
    with pytest.raises(ValueError, match="has no array y; it holds X"):
        datasets.load("heart")


def test_a_pickle_in_a_file_is_never_opened(bare: Path) -> None:
    save_heart(bare, y=np.array([print] * 270, dtype=object))
    with pytest.raises(ValueError, match="Python objects are refused"):
        datasets.load("heart")


def test_generated_waveforms_follow_breimans_formula() -> None:
    drawn = datasets.load("waveform-generated", n_rows=30_000, random_state=3)
    i = np.arange(1, 22)
    h = [np.maximum(6 - abs(i - peak), 0) for peak in (7, 15, 11)]
    pairs = [(h[0], h[1]), (h[0], h[2]), (h[1], h[2])]
    for code, (first, second) in enumerate(pairs):
        rows = drawn.X[drawn.y == code]
        assert len(rows) == pytest.approx(10_000, abs=400)
        np.testing.assert_allclose(rows.mean(axis=0), (first + second) / 2, atol=0.1)
        np.testing.assert_allclose(rows.var(axis=0), 1 + (first - second) ** 2 / 12, rtol=0.12)


def test_generated_waveforms_depend_on_the_seed_only() -> None:
    first, again = (datasets.load("waveform-generated", n_rows=50, random_state=1) for _ in range(2))
    np.testing.assert_array_equal(first.X, again.X)
    assert not np.array_equal(first.X, datasets.load("waveform-generated", n_rows=50, random_state=2).X)
    assert datasets.load("waveform-generated").X.shape == (5000, 21)


@pytest.mark.parametrize("n_rows", [0, -3, 2.5, "many"])
def test_a_number_of_rows_that_is_none_is_refused(n_rows) -> None:
    with pytest.raises((ValueError, TypeError), match="n_rows must be"):
        datasets.load("waveform-generated", n_rows=n_rows)


def test_arguments_that_do_not_apply_are_refused() -> None:
    with pytest.raises(ValueError, match=r"n_rows is for 'waveform-generated' only.*; got 10"):
        datasets.load("iris", n_rows=10)
    with pytest.raises(ValueError, match="target is for files"):
        datasets.load("iris", target="species")


def test_the_seven_of_the_paper_come_in_its_order() -> None:
    papers = [datasets.describe(name).paper_name for name in datasets.names("paper")]
    assert papers == ["Iris", "Heart", "Ionosphere", "Dermatology", "Waveform", "Digits", "MNIST"]
    assert set(datasets.names("paper")) < set(datasets.names())
    with pytest.raises(ValueError, match="which must be one of 'all', 'paper', 'scikit-learn'; got 'every'"):
        datasets.names("every")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", datasets.names())
def test_every_data_set_declares_its_preprocessing_and_why(name: str) -> None:
    description = datasets.describe(name)
    assert description.preprocessing in {"none", "standardize", "minmax", "range"}
    assert len(description.reason) > 20
    assert sum(description.class_counts) in (0, description.n_rows)


def test_a_data_set_shows_what_it_is() -> None:
    assert repr(datasets.load("wine")).startswith("Dataset('wine', 178 x 13, 3 classes, from ")
