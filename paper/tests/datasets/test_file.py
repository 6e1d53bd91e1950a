"""A file of one's own as a data set."""

from __future__ import annotations

import gzip
import importlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from otprop_paper import datasets

FLOWERS = "length,width,species\n1,2.5,rose\n3,4.5,tulip\n5,6.5,rose\n"


def write(tmp_path: Path, text: str, name: str = "my.csv") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def test_a_csv_file_is_a_data_set_with_its_last_column_as_target(tmp_path: Path) -> None:
    flowers = datasets.load(write(tmp_path, FLOWERS))
    np.testing.assert_array_equal(flowers.X, [[1, 2.5], [3, 4.5], [5, 6.5]])
    np.testing.assert_array_equal(flowers.y, [0, 1, 0])
    assert flowers.X.dtype == np.float64
    assert flowers.class_names == ("rose", "tulip")
    assert flowers.feature_names == ("length", "width")


def test_a_path_may_be_text_relative_and_compressed(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, FLOWERS)
    (tmp_path / "my.csv.gz").write_bytes(gzip.compress(FLOWERS.encode()))
    for name in ("my.csv", "./my.csv", "my.csv.gz"):
        assert datasets.load(name).X.shape == (3, 2)


@pytest.mark.parametrize("separator", ["\t", ";"])
def test_tabs_and_the_semicolons_of_spreadsheets_separate_too(tmp_path: Path, separator: str) -> None:
    name = "my.tsv" if separator == "\t" else "my.csv"
    assert datasets.load(write(tmp_path, FLOWERS.replace(",", separator), name)).X.shape == (3, 2)


def test_a_decimal_comma_is_read_where_semicolons_separate(tmp_path: Path) -> None:
    loaded = datasets.load(write(tmp_path, "a;b;kind\n1,5;2;x\n2,5;3;y\n"))
    np.testing.assert_array_equal(loaded.X, [[1.5, 2.0], [2.5, 3.0]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,y,y\n1,0,0\n2,1,1\n", "more than one column named 'y'; rename them"),
        ("1,2,0\n3,4,1\n", "no line of column names: its first line holds the numbers 1, 2, 0"),
    ],
)
def test_a_header_that_would_mislead_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        datasets.load(write(tmp_path, text))


@pytest.mark.parametrize("name", ["damaged.csv.gz", "damaged.npz"])
def test_a_damaged_archive_is_named(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name.endswith("npz"):
        np.savez_compressed(path, X=np.random.default_rng(0).normal(size=(200, 3)), y=np.arange(200) % 2)
    else:
        path.write_bytes(gzip.compress(FLOWERS.encode() * 50))
    content = bytearray(path.read_bytes())
    content[len(content) // 3 : len(content) // 3 + 20] = b"\xff" * 20
    path.write_bytes(bytes(content))
    with pytest.raises(ValueError, match=rf"{name}( cannot be read| is cut short or damaged)"):
        datasets.load(path)


@pytest.mark.parametrize("name", ["target", "Label", "CLASS", "y"])
def test_a_column_that_says_it_is_the_target_is_taken(tmp_path: Path, name: str) -> None:
    loaded = datasets.load(write(tmp_path, f"{name},a\n1,2\n0,3\n"))
    assert loaded.feature_names == ("a",)
    np.testing.assert_array_equal(loaded.y, [1, 0])
    assert loaded.class_names == ("0", "1")


def test_the_target_can_be_named(tmp_path: Path) -> None:
    path = write(tmp_path, "species,a,target\nrose,1,0\ntulip,2,1\n")
    assert datasets.load(path, target="species").class_names == ("rose", "tulip")
    with pytest.raises(ValueError, match=r"target must be a column of .*species, a, target\); got 'kind'"):
        datasets.load(path, target="kind")


def test_columns_that_are_not_numbers_are_left_out_by_name(tmp_path: Path) -> None:
    path = write(tmp_path, "id,a,flag,colour,target\nx1,1,True,red,0\nx2,2,False,blue,1\n")
    with pytest.warns(UserWarning, match="left out.*: id, colour"):
        loaded = datasets.load(path)
    assert loaded.feature_names == ("a", "flag")
    np.testing.assert_array_equal(loaded.X, [[1, 1], [2, 0]])


def test_the_row_numbers_of_a_saved_frame_are_no_feature(tmp_path: Path) -> None:
    pd.DataFrame({"a": [1.5, 2.5], "target": [0, 1]}).to_csv(tmp_path / "saved.csv")
    with pytest.warns(UserWarning, match="row numbers.: column 1"):
        assert datasets.load(tmp_path / "saved.csv").feature_names == ("a",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("a,target\n", "column names but no rows"),
        ("a,target\n1,x\n2,x\n", r"'target'.*one class only \(x\)"),
        ("a,target\nred,0\nblue,1\n", r"no numeric column.*columns: a"),
        ("target\n0\n1\n", "no numeric column"),
        ("a,b,target\n1,,0\n2,3,1\n3,,1\n", r"missing or infinite values in: b \(2\)"),
        ("a,target\ninf,0\n2,1\n", r"missing or infinite values in: a \(1\)"),
        ("a,target\n1,0\n2,\n", r"target column 'target'.*no label in 1 of 2 rows \(the first: row 1"),
        ("a,b\n1,0.5\n2,0.7\n", r"'b'.*continuous numbers.*target="),
        ("a,b\n1,2\n1,2,3,4,5\n", "has 5 cells, too many for the 2 columns"),
        ("5.1,3.5,rose\n4.9,3.0,tulip\n4.7,3.2,rose\n", r"no line of column names.*5\.1, 3\.5"),
    ],
)
def test_a_file_that_is_no_data_set_says_why(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        datasets.load(write(tmp_path, text))
    assert "my.csv" in str(caught.value)


def test_columns_called_by_number_are_names_all_the_same(tmp_path: Path) -> None:
    loaded = datasets.load(write(tmp_path, "0,1,target\n5,6,a\n7,8,b\n"))
    assert loaded.feature_names == ("0", "1")


def test_text_that_is_not_unicode_is_read_as_everywhere(tmp_path: Path) -> None:
    (tmp_path / "my.csv").write_bytes(b"a,target\n1,\xfc\n2,b\n")
    assert datasets.load(tmp_path / "my.csv").class_names == ("b", "ü")
    (tmp_path / "my.csv").write_bytes(b"a,target\n1,\x00\n2,b\n")
    with pytest.raises(ValueError, match=r"my\.csv has a NUL byte"):
        datasets.load(tmp_path / "my.csv")


def test_classes_keep_their_text_and_their_order_as_numbers(tmp_path: Path) -> None:
    assert datasets.load(write(tmp_path, "a,y\n1,yes\n2,no\n")).class_names == ("no", "yes")
    assert datasets.load(write(tmp_path, "a,y\n1,10\n2,9\n")).class_names == ("9", "10")
    assert datasets.load(write(tmp_path, "a,y\n1,10%\n2,9%\n")).class_names == ("10%", "9%")
    assert datasets.load(write(tmp_path, "a,y\n1,007\n2,008\n")).class_names == ("007", "008")


def test_json_is_a_data_set_too(tmp_path: Path) -> None:
    path = write(tmp_path, '{"a": 1, "y": "x"}\n{"a": 2.5, "y": "z"}\n', "my.jsonl")
    loaded = datasets.load(path)
    np.testing.assert_array_equal(loaded.X, [[1.0], [2.5]])
    assert loaded.class_names == ("x", "z")


def test_a_missing_file_a_folder_and_another_kind_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no file .*none\.csv"):
        datasets.load(tmp_path / "none.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder"):
        datasets.load(tmp_path / "folder.csv")
    with pytest.raises(ValueError, match=r"name must be a file that ends in \.csv, .*\.npz.*sheet\.ods'"):
        datasets.load(write(tmp_path, "", "sheet.ods"))
    with pytest.raises(ValueError, match="random_state is for 'waveform-generated' only"):
        datasets.load(tmp_path / "my.csv", random_state=1)


def test_without_pandas_a_csv_file_says_what_to_install(tmp_path: Path, monkeypatch) -> None:
    def no_pandas(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", no_pandas)
    with pytest.raises(ImportError, match=r"needs pyarrow: pip install '\.\[files\]'"):
        datasets.load(write(tmp_path, FLOWERS))


def test_parquet_is_read_where_pyarrow_is_installed(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"a": [1, 2, 3], "b": [0.5, 1.5, 2.5], "label": ["x", "y", "x"]})
    frame.to_parquet(tmp_path / "my.parquet")
    loaded = datasets.load(tmp_path / "my.parquet")
    np.testing.assert_array_equal(loaded.X, frame[["a", "b"]].to_numpy(float))
    assert loaded.class_names == ("x", "y")


def test_an_npz_file_is_read_without_pandas(tmp_path: Path) -> None:
    X = np.arange(6, dtype=np.uint8).reshape(3, 2)
    np.savez(tmp_path / "my.npz", X=X, y=np.array(["b", "a", "b"]), feature_names=np.array(["p", "q"]))
    loaded = datasets.load(tmp_path / "my.npz")
    np.testing.assert_array_equal(loaded.X, X)
    np.testing.assert_array_equal(loaded.y, [1, 0, 1])
    assert (loaded.class_names, loaded.feature_names) == (("a", "b"), ("p", "q"))
    np.savez(tmp_path / "other.npz", X=X, kind=np.array([3, 5, 3]), class_names=np.array(["three", "five"]))
    assert datasets.load(tmp_path / "other.npz", target="kind").class_names == ("three", "five")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": np.zeros((2, 2))}, "must hold the arrays X and y; it holds X"),
        ({"X": np.zeros((2, 2)), "y": np.arange(3)}, r"y of shape \(3,\)"),
        ({"X": np.zeros(2), "y": np.arange(2)}, r"X of shape \(2,\)"),
        ({"X": np.zeros((0, 2)), "y": np.arange(0)}, "is empty"),
        ({"X": np.full((2, 1), "a"), "y": np.arange(2)}, "no numeric column"),
        ({"X": np.array([[1, np.nan], [2, 3]]), "y": np.arange(2)}, r"column 1 \(1\)"),
        ({"X": np.zeros((2, 1)), "y": np.array([0, np.nan])}, "no label in 1 of 2"),
        ({"X": np.zeros((2, 1)), "y": np.zeros(2)}, "one class only"),
        ({"X": np.zeros((2, 1)), "y": np.arange(2), "feature_names": np.array(["a", "b"])}, "feature_names has shape"),
        ({"X": np.zeros((2, 1)), "y": np.array([None, 1])}, "Python objects are refused"),
    ],
)
def test_an_npz_file_that_is_no_data_set_says_why(tmp_path: Path, arrays, message: str) -> None:
    np.savez(tmp_path / "my.npz", **arrays)
    with pytest.raises(ValueError, match=message):
        datasets.load(tmp_path / "my.npz")
