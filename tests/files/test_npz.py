"""NPZ: matrices are vectors, and every untouched array comes back."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest

from otprop.files import Reading, TableError, read_table


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
    assert table.names == ["X", "y"]
    assert table.n_rows == 3
    assert table.notes == [
        "the array 'X' is one vector of 2 numbers; an array feature_names makes it columns",
        "arrays without an entry per row, kept as they are: meta, scalar",
    ]
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


def test_a_matrix_is_one_vector_and_so_are_images():
    images = np.arange(24.0).reshape(4, 2, 3)
    table = read_table(archive(pixels=images, y=np.arange(4), one=np.ones((4, 1)), text=np.full((4, 2), "a")))
    assert table.names == ["pixels", "y", "one", "text_0", "text_1"]
    vectors = table.frame()["pixels"]
    np.testing.assert_array_equal(np.stack(vectors), images.reshape(4, 6))
    np.testing.assert_array_equal(np.stack(table.cells("pixels")), images.reshape(4, 6))
    assert table.frame()["one"].tolist() == [1.0] * 4
    assert table.readings(["pixels", "y"]) == {"y": Reading("number")}


def test_an_entry_of_a_matrix_can_be_read_under_the_name_it_had_in_version_0_1():
    table = read_table(archive(X=np.arange(6).reshape(3, 2), y=np.arange(3)))
    assert table.frame(["X_1", "y"])["X_1"].tolist() == [1, 3, 5]
    assert table.cells("X_0").tolist() == [0, 2, 4]
    assert table.has_column("X_1")
    assert table.has_column("X")
    assert not table.has_column("X_2")
    assert not table.has_column("y_0")
    assert table.names == ["X", "y"]


@pytest.mark.parametrize("format", ["parquet", "feather", "json"])
def test_vectors_are_lists_in_other_formats_and_matrices_again_in_npz(format):
    X = np.asfortranarray(np.arange(6, dtype=">f4").reshape(3, 2))
    out, back = io.BytesIO(), io.BytesIO()
    read_table(archive(X=X, y=np.arange(3))).write(out, {}, format=format)
    table = read_table(io.BytesIO(out.getvalue()))
    np.testing.assert_array_equal(np.stack(table.frame()["X"]), X)
    if format != "json":  # whose lists have no fixed size
        table.write(back, {}, format="npz")
        with np.load(io.BytesIO(back.getvalue())) as arrays:
            np.testing.assert_array_equal(arrays["X"], X)


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
    assert table.names == ["X", "y"]
    assert any("'secret' holds Python objects" in note for note in table.notes)
    out = io.BytesIO()
    table.write(out, {})
    with np.load(io.BytesIO(out.getvalue())) as arrays:
        assert "secret" in arrays.files


def test_the_array_that_names_the_columns_is_not_said_to_be_odd():
    table = read_table(archive(X=np.zeros((4, 2)), feature_names=np.array(["a", "b"]), y=np.arange(4)))
    assert table.names == ["a", "b", "y"]
    assert table.notes == []


def test_a_target_of_python_objects_is_refused_with_what_to_do():
    table = read_table(archive(X=np.eye(2), y=np.array(["a", None], dtype=object)))
    with pytest.raises(TableError, match=r"the array 'y' holds Python objects.*save it as text or numbers") as caught:
        table.cells("y")
    assert caught.value.column == "y"
    assert not table.has_column("y")
    assert "Python objects" in table.unread["y"]


def members(**contents: bytes) -> io.BytesIO:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in contents.items():
            file.writestr(f"{name}.npy", content)
    return out


def npy(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def huge() -> bytes:
    """An array that claims to have a trillion numbers."""
    return npy(np.zeros(4)).replace(b"(4,)", b"(4000000000000,)").replace(b" " * 13 + b"\n", b"\n")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"not an array", "'y' is not a NumPy array"),
        (npy(np.zeros(4))[:20], "the array 'y' is damaged, cut short or encrypted"),
        (npy(np.zeros(4)).replace(b"<f8", b"<q9"), "the array 'y' is damaged, cut short or encrypted"),
        (npy(np.zeros(4))[:-8], "the array 'y' is damaged, cut short or encrypted"),
        (npy(np.zeros(4)).replace(b"'<f8'", b"'|V0' "), "the items of the array 'y' have no size"),
        (npy(np.zeros(4)).replace(b"(4,)", b"(9**9"), "the array 'y' is damaged, cut short or encrypted"),
        (huge(), "the array 'y' is damaged, cut short or encrypted"),
    ],
)
def test_a_foreign_or_damaged_member_is_named(content, message):
    with pytest.raises(TableError, match=message) as caught:
        read_table(io.BytesIO(members(X=npy(np.eye(4)), y=content).getvalue()))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("offset", "value"), [(6, 1), (8, 99)])  # encrypted; packed in an unknown way
def test_a_member_that_cannot_be_unpacked_is_refused(offset, value):
    data = bytearray(members(y=npy(np.arange(3))).getvalue())
    for magic, start in ((b"PK\x03\x04", offset), (b"PK\x01\x02", offset + 2)):
        data[data.index(magic) + start] = value
    with pytest.raises(TableError, match="the array 'y' is damaged, cut short or encrypted"):
        read_table(io.BytesIO(bytes(data)))


def test_a_member_that_claims_to_be_longer_is_refused():
    data = bytearray(archive(y=np.arange(300)).getvalue())
    sizes = data.index(b"PK\x01\x02") + 20
    for at in (sizes + 1, sizes + 5):  # compressed or not
        data[at] += 1
    with pytest.raises(TableError, match="is damaged, cut short or encrypted"):
        read_table(io.BytesIO(bytes(data)))


def test_bytes_that_are_no_text_are_refused():
    with pytest.raises(TableError, match="the array 'y' has bytes that are not UTF-8"):
        read_table(archive(y=np.array([b"\xff", b"a"]))).cells("y")
