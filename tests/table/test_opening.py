"""Vectors from elsewhere: `.npy` beside a table, list columns, folders of Hugging Face data sets."""

from __future__ import annotations

import json
import os
import struct
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import ipc, parquet

import otprop
from otprop.cli import main
from otprop.files import TableError, read_table
from otprop.table.errors import RequestError
from otprop.table.opening import open_table

N = 30
KINDS = [["a", "b"][number % 2] if number < 8 else None for number in range(N)]
TRUTH = ["a", "b"] * (N // 2)


@pytest.fixture
def vectors():
    return (np.random.default_rng(0).normal(size=(N, 5)) + 6 * (np.arange(N) % 2)[:, None]).astype(np.float32)


@pytest.fixture
def table(tmp_path, vectors):
    """A CSV file of names and kinds with its vectors beside it."""
    pd.DataFrame({"name": [f"n{i}" for i in range(N)], "kind": KINDS}).to_csv(tmp_path / "t.csv", index=False)
    np.save(tmp_path / "X.npy", vectors)
    return tmp_path / "t.csv"


def test_a_npy_file_holds_the_vectors_of_a_table(table, tmp_path):
    result = otprop.label(table, "kind", vectors=tmp_path / "X.npy")
    assert [(use.name, use.role) for use in result.job.columns if not use.skipped] == [("X", "embedding")]
    assert result.table["kind_label"].tolist() == TRUTH
    assert "X" not in result.table
    assert result.call == "otprop.label('t.csv', 'kind', vectors='X.npy')"


def test_the_command_takes_vectors_to_label_and_to_predict(table, tmp_path):
    out, model, more = tmp_path / "out.csv", tmp_path / "kind.model", ["--vectors", str(tmp_path / "X.npy"), "--quiet"]
    assert main(["label", str(table), "--target", "kind", *more, "-o", str(out), "--save", str(model)]) == 0
    assert list(pd.read_csv(out).columns[:3]) == ["name", "kind", "kind_label"]
    assert main(["predict", str(model), str(table), *more, "-o", str(tmp_path / "again.csv")]) == 0
    assert pd.read_csv(tmp_path / "again.csv")["kind_label"].tolist() == TRUTH


def npy_header(shape):
    """A .npy file that promises an array of this shape, and has hardly anything of it."""
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x02\x00" + struct.pack("<I", len(header)) + header + b"\0" * 100


@pytest.mark.parametrize(
    ("array", "reason"),
    [
        (np.zeros((N - 1, 2)), f"it has {N - 1} rows"),
        (np.zeros(N), "one 2-D array"),
        (np.zeros((N, 0)), "one 2-D array"),
        (np.full((N, 2), "a"), "one 2-D array"),
        (np.full((N, 2), None), "expected a .npy file of numbers"),  # a pickle, which is not opened
        (np.full((N, 2), np.nan), "every row of it has infinity or NaN"),
        (npy_header((N, -4)), "expected a .npy file of numbers"),
        (npy_header((N, 10**12)), "expected a .npy file of numbers"),
        (npy_header("[" * 3000), "expected a .npy file of numbers"),
        (b"no array", "expected a .npy file of numbers"),
        (None, "there is no such file"),
    ],
)
def test_vectors_that_do_not_fit_are_refused(table, tmp_path, array, reason):
    path = tmp_path / "other.npy"
    if isinstance(array, bytes):
        path.write_bytes(array)
    elif array is not None:
        np.save(path, array, allow_pickle=True)
    with pytest.raises(RequestError, match=reason):
        otprop.label(table, "kind", vectors=path)


def test_vectors_are_named_by_a_plain_file(table, tmp_path, vectors):
    os.mkfifo(tmp_path / "pipe.npy")
    with pytest.raises(RequestError, match="it is not a plain file"):
        open_table(table, vectors=tmp_path / "pipe.npy")
    for name in ("a" * 5000, "a\0b"):
        with pytest.raises(RequestError, match="there is no such file"):
            open_table(table, vectors=name)
    with pytest.raises(RequestError, match="vectors must name"):
        open_table(table, vectors=vectors)


def test_vectors_near_the_largest_number_are_scaled_without_a_warning(table, tmp_path, vectors):
    np.save(tmp_path / "far.npy", vectors.astype(np.float64) / np.abs(vectors).max() * 1.7e308)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = otprop.label(table, "kind", vectors=tmp_path / "far.npy")
    assert result.table["kind_label"].tolist() == TRUTH


def test_rows_without_a_vector_are_counted(table, tmp_path, vectors):
    vectors[3, 1], vectors[5] = np.nan, np.inf
    np.save(tmp_path / "other.npy", vectors)
    assert open_table(table, vectors=tmp_path / "other.npy").notes[-1:] == [
        f"2 of {N} rows of other.npy have infinity or NaN"
    ]


def test_a_list_column_of_parquet_is_one_vector(tmp_path, vectors):
    fixed = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 5)
    for column in (pa.array(list(vectors)), fixed, pa.array(list(vectors), pa.large_list(pa.float32()))):
        parquet.write_table(pa.table({"v": column, "kind": KINDS}), tmp_path / "t.parquet")
        result = otprop.label(tmp_path / "t.parquet", "kind")
        assert [(use.role, use.width) for use in result.job.columns] == [("embedding", 5)]


def write_dataset(folder, vectors, codes, n_files=2):
    """A folder as `Dataset.save_to_disk` writes it."""
    folder.mkdir()
    names = [f"data-{number:05d}-of-{n_files:05d}.arrow" for number in range(n_files)]
    whole = pa.table({"v": list(vectors), "kind": pa.array(codes, pa.int64())})
    for name, rows in zip(names, np.array_split(np.arange(len(codes)), n_files), strict=True):
        with ipc.new_stream(folder / name, whole.schema) as stream:
            stream.write_table(whole.take(pa.array(rows)))
    features = {"v": {"_type": "List"}, "kind": {"names": ["a", "b"], "_type": "ClassLabel"}}
    (folder / "dataset_info.json").write_text(json.dumps({"features": features}))
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": name} for name in names]}))
    return folder


def codes():
    return [number % 2 if number < 8 else -1 for number in range(N)]


def test_a_data_set_of_hugging_face_is_one_table(tmp_path, vectors):
    folder = write_dataset(tmp_path / "set", vectors, codes())
    assert open_table(folder).cells("kind").tolist() == KINDS
    assert otprop.label(folder, "kind").table["kind_label"].tolist() == TRUTH
    assert main(["label", str(folder), "--target", "kind", "-o", str(tmp_path / "out.parquet"), "--quiet"]) == 0
    assert parquet.read_table(tmp_path / "out.parquet")["kind_label"].to_pylist() == TRUTH


def test_one_file_of_a_data_set_is_a_table_too(tmp_path, vectors):
    folder = write_dataset(tmp_path / "set", vectors, codes(), n_files=1)
    assert read_table(folder / "data-00000-of-00001.arrow").n_rows == N


def test_a_small_data_set_does_not_grow_without_a_limit(tmp_path, vectors, monkeypatch):
    monkeypatch.setattr("otprop.files._limits.MIN_LIMIT", 100_000)
    folder = write_dataset(tmp_path / "set", vectors, codes(), n_files=1)
    whole = pa.table({"v": np.zeros(1_000_000), "kind": np.zeros(1_000_000, dtype=np.int64)})
    options = ipc.IpcWriteOptions(compression="zstd")
    with ipc.new_stream(folder / "data-00000-of-00001.arrow", whole.schema, options=options) as stream:
        stream.write_table(whole)
    with pytest.raises(TableError, match=r"has more than .* bytes once it is unpacked"):
        open_table(folder)
    assert open_table(folder, max_bytes=20_000_000).n_rows == 1_000_000


def test_a_data_set_is_written_as_csv_where_no_name_says_otherwise(tmp_path, vectors, capsysbinary):
    folder = write_dataset(tmp_path / "set", vectors, codes())
    command = ["label", str(folder), "--target", "kind", "--quiet", "--force", "-o"]
    assert main([*command, "-"]) == 0
    assert capsysbinary.readouterr().out.startswith(b"v,kind,kind_label")
    assert main([*command, str(folder / "state.json")]) == 2
    assert b"is one of the files of the input" in capsysbinary.readouterr().err


def test_a_damaged_data_set_is_refused(tmp_path, vectors):
    folder = write_dataset(tmp_path / "set", vectors, [7] * N)  # there is no class 7
    with pytest.raises(TableError, match="not a sound folder"):
        open_table(folder)
    (folder / "data-00000-of-00002.arrow").write_bytes(b"\xff\xff\xff\xffdamaged")
    with pytest.raises(TableError, match="cut short or damaged"):
        open_table(folder)
    with pytest.raises(TableError, match="cut short or damaged"):
        read_table(folder / "data-00000-of-00002.arrow")


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("state.json", "[]", "state.json is not a JSON object"),
        ("state.json", "{}", "names no files in the folder"),
        ("state.json", '{"_data_files": [{"filename": 5}]}', "names no files in the folder"),
        ("state.json", '{"_data_files": [{"filename": "../t.arrow"}]}', "names no files in the folder"),
        ("state.json", '{"_data_files": [{"filename": "gone.arrow"}]}', "gone.arrow is missing"),
        ("state.json", '{"_data_files": [{"filename": "pipe.arrow"}]}', "pipe.arrow is not a plain file"),
        ("state.json", json.dumps({"_data_files": [{"filename": "data-00000-of-00002.arrow"}] * 9}), "a file twice"),
        ("state.json", '{"_data_files": [], "_indices_data_files": [{"filename": "i.arrow"}]}', "flatten_indices"),
        ("state.json", "[" * 100_000, "not a sound folder"),
        ("dataset_info.json", '{"features": [1]}', "is not a JSON object"),
        ("dataset_info.json", '{"features": {"kind": {"_type": "ClassLabel"}}}', "does not name the classes"),
        ("dataset_info.json", '{"features": {"kind": {"_type": "ClassLabel", "names": "ab"}}}', "does not name"),
        (
            "dataset_info.json",
            '{"features": {"v": {"_type": "ClassLabel", "names": []}}}',
            "of class numbers",
        ),
        (
            "dataset_info.json",
            '{"features": {"x": {"_type": "ClassLabel", "names": []}}}',
            "of class numbers",
        ),
    ],
)
def test_the_texts_of_a_data_set_are_checked(tmp_path, vectors, name, text, reason):
    folder = write_dataset(tmp_path / "set", vectors, codes())
    os.mkfifo(folder / "pipe.arrow")
    (folder / name).write_text(text)
    with pytest.raises(TableError, match=reason):
        open_table(folder)


def test_a_data_set_with_splits_names_them(tmp_path, vectors):
    (tmp_path / "cells").mkdir()
    for split in ("train", "test"):
        write_dataset(tmp_path / "cells" / split, vectors, codes())
    (tmp_path / "cells" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    with pytest.raises(TableError, match="is a DatasetDict with the splits 'test', 'train'; name one of them"):
        open_table(tmp_path / "cells")
    assert main(["label", str(tmp_path / "cells"), "--target", "kind"]) != 0
    assert open_table(tmp_path / "cells" / "train").n_rows == len(codes())


@pytest.mark.parametrize("scale", [1e300, 1e-300])
def test_vectors_of_any_scale_give_the_same_labels(tmp_path, vectors, scale):
    kinds = np.array(["" if kind is None else kind for kind in KINDS])
    found = []
    plain = vectors.astype(np.float64)
    for name, values in (("one", plain), ("other", plain * scale)):
        np.savez(tmp_path / f"{name}.npz", X=values, kind=kinds)
        pd.DataFrame({"kind": KINDS}).to_csv(tmp_path / f"{name}.csv", index=False)
        np.save(tmp_path / f"{name}.npy", values)
        for source, more in ((f"{name}.npz", {}), (f"{name}.csv", {"vectors": tmp_path / f"{name}.npy"})):
            result = otprop.label(tmp_path / source, "kind", settings={"evidence": ["linear"]}, **more)
            assert result.table["kind_label"].tolist() == TRUTH
            found.append(result.outcome.distributions)
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], atol=1e-4)


def test_numbers_beyond_double_precision_are_infinite(table, tmp_path, vectors):
    wide = vectors.astype(np.longdouble)
    wide[3, 1] = np.longdouble("1e4000") if np.finfo(np.longdouble).max > 1e308 else np.inf
    np.save(tmp_path / "other.npy", wide)
    result = otprop.label(table, "kind", vectors=tmp_path / "other.npy", settings={"evidence": ["linear"]})
    assert result.table["kind_label"].notna().all()
