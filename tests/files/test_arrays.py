"""NPZ: matrices are columns, and every untouched array comes back."""

from __future__ import annotations

import io

import numpy as np
import pytest

from otprop.files import TableError, read_table


def archive(compressed=False, **arrays) -> io.BytesIO:
    out = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(out, **arrays)
    return io.BytesIO(out.getvalue())


def reread(table, added=None, fill=None) -> dict[str, np.ndarray]:
    out = io.BytesIO()
    table.write(out, added or {}, fill)
    with np.load(io.BytesIO(out.getvalue()), allow_pickle=False) as arrays:
        return dict(arrays)


@pytest.mark.parametrize("compressed", [False, True])
def test_untouched_arrays_come_back_and_new_ones_are_added(compressed):
    arrays = {
        "X": np.asfortranarray(np.arange(6, dtype=">f4").reshape(3, 2)),
        "y": np.array([1, -1, 2], dtype=np.int8),
        "meta": np.array(["a note"]),
        "scalar": np.array(3.5),
    }
    table = read_table(archive(compressed, **arrays))
    assert table.names == ["X_0", "X_1", "y"]
    assert table.n_rows == 3
    assert table.notes == ["arrays without an entry per row, kept as they are: meta, scalar"]
    out = reread(table, {"y_label": ["a", None, "b"], "y_certainty": [1.0, 0.5, None]})
    for name, array in arrays.items():
        assert out[name].dtype == array.dtype
        np.testing.assert_array_equal(out[name], array)
    assert out["y_label"].tolist() == ["a", "", "b"]
    np.testing.assert_array_equal(out["y_certainty"], [1.0, 0.5, np.nan])


def test_features_are_named_and_typed():
    table = read_table(archive(X=np.eye(2), feature_names=np.array(["red", "green"]), y=np.array(["a", ""])))
    frame = table.frame()
    assert frame.columns.tolist() == ["red", "green", "y"]
    assert frame["red"].tolist() == [1.0, 0.0]
    assert frame["y"].isna().tolist() == [False, True]
    assert table.cells("y").tolist() == ["a", None]


def test_images_are_columns_too():
    assert read_table(archive(X=np.zeros((4, 2, 3)), y=np.arange(4))).names[:6] == [f"X_{j}" for j in range(6)]


@pytest.mark.parametrize(
    ("y", "fill", "expected"),
    [
        (np.array([1, -1, -1], dtype=np.int8), [None, "2", None], np.array([1, 2, -1], dtype=np.int8)),
        (np.array(["a", "", ""]), [None, "longer", None], np.array(["a", "longer", ""])),
        (np.array([1.0, np.nan, np.nan]), [None, 2, 3], np.array([1.0, 2.0, 3.0])),
    ],
)
def test_filling_keeps_the_other_entries(y, fill, expected):
    out = reread(read_table(archive(X=np.eye(3), y=y)), fill=("y", fill))["y"]
    assert out.dtype == expected.dtype
    np.testing.assert_array_equal(out, expected)


def test_what_cannot_be_filled_is_refused():
    table = read_table(archive(X=np.eye(2), y=np.array([1, -1])))
    with pytest.raises(TableError, match="cannot be written into the array 'y'"):
        table.write(io.BytesIO(), {}, ("y", [None, "cat"]))
    with pytest.raises(TableError, match="part of a matrix"):
        table.write(io.BytesIO(), {}, ("X_0", [None, 1.0]))
    with pytest.raises(TableError, match="has no array with rows"):
        read_table(archive(X=np.zeros((0, 2))))


def test_python_objects_are_never_unpickled_and_stay():
    source = archive(X=np.eye(2), y=np.array([0, 1]), secret=np.array([{}, None], dtype=object))
    table = read_table(source)
    assert table.names == ["X_0", "X_1", "y"]
    assert any("'secret' holds Python objects" in note for note in table.notes)
    out = io.BytesIO()
    table.write(out, {})
    with np.load(io.BytesIO(out.getvalue())) as arrays:
        assert "secret" in arrays.files


def test_the_array_that_names_the_columns_is_not_said_to_be_odd():
    table = read_table(archive(X=np.zeros((4, 2)), feature_names=np.array(["a", "b"]), y=np.arange(4)))
    assert table.names == ["a", "b", "y"]
    assert table.notes == []
