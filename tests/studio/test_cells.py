"""Cells as text, and the pictures of rows."""

from __future__ import annotations

import os
import struct
import zlib
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pandas")

from otprop.files import read_table
from otprop.studio.cells import Cells
from otprop.studio.images import MOST_BYTES, NoPictureError, Pictures, media_type, png

PNG = png(np.zeros((2, 2), dtype=np.uint8))


def cells_of(text: str, target: str = "kind", folder: Path = Path()) -> Cells:
    return Cells(read_table(BytesIO(text.encode())), target, folder)


def test_cells_are_those_of_the_file_without_the_target() -> None:
    cells = cells_of("id;price;kind\n007;1,50;a\n008;;\n")
    assert cells.columns == ["id", "price"]
    assert [cells.of_row(0), cells.of_row(1)] == [["007", "1,50"], ["008", ""]]


def test_columns_are_numbers_categories_text_pictures_or_vectors() -> None:
    remark = "a remark that is long enough to be read, and so wrapped on the page"
    cells = cells_of(f"n,c,t,p\n1,red,{remark!r},a.png\n2.5,blue,{remark!r},b/c.JPG\n".replace("'", '"'))
    assert cells.kinds == ["number", "category", "text", "image"]
    assert cells.text_columns == ["t"]
    data = BytesIO()
    np.savez(data, X=np.zeros((3, 20)), y=np.array(["a", "", ""]))
    data.seek(0)
    vectors = Cells(read_table(data), "y", Path())
    assert vectors.kinds == ["vector"]
    assert vectors.of_row(0) == ["[0, 0, 0, 0, 0, 0, 0, 0, … 20 values]"]


def test_a_search_ignores_case_and_takes_no_patterns() -> None:
    cells = cells_of("a,b,kind\nRed,x,\nblue,RED.,\ngreen,.,\n")
    assert cells.search("red").tolist() == [0, 1]
    assert cells.search(".").tolist() == [1, 2]
    assert cells.search(".*").tolist() == []


def test_short_cells_are_cut() -> None:
    cells = cells_of(f"a,kind\n{'x' * 500},\n")
    assert len(cells.of_row(0)[0]) == 500
    assert len(cells.of_row(0, 200)[0]) == 201


def test_fingerprints_tell_rows_apart_and_do_not_depend_on_their_place() -> None:
    one, two = cells_of("a,b,kind\n1,2,\n12,,x\n,12,\n"), cells_of("a,b,kind\n,12,z\n1,2,\n12,,\n")
    prints = one.fingerprints()
    assert len(set(prints)) == 3
    assert two.fingerprints([1, 2, 0]) == prints
    assert cells_of("a,new,b,kind\n1,9,2,\n").fingerprints([0], ["a", "b"]) == prints[:1]


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    folder = tmp_path / "table"
    (folder / "below").mkdir(parents=True)
    (folder / "below" / "a.png").write_bytes(PNG)
    (tmp_path / "secret.png").write_bytes(PNG)
    (folder / "text.png").write_text("<script>alert(1)</script>")
    (folder / "large.png").write_bytes(PNG + b"\0" * MOST_BYTES)
    (folder / "folder.png").mkdir()
    if os.name == "posix":
        (folder / "link.png").symlink_to(tmp_path / "secret.png")
        os.mkfifo(folder / "pipe.png")
    return folder


def test_a_picture_below_the_folder_is_shown(pictures: Path) -> None:
    cells = cells_of("p,kind\nbelow/a.png,\n,\n", folder=pictures)
    assert bool(cells.pictures)
    assert cells.pictures.are_files
    assert cells.pictures.of_row(0) == (PNG, "image/png")
    assert (cells.pictures.has(0), cells.pictures.has(1)) == (True, False)
    assert (cells.pictures.problem(0), cells.pictures.problem(1)) == ("", "")


@pytest.mark.parametrize(
    "name",
    [
        *("missing.png", "../secret.png", "below/../../secret.png", "text.png", "large.png", "folder.png", "a\0.png"),
        *("/etc/passwd", "link.png", "pipe.png", "", "x" * 5000, "http://127.0.0.1/a.png", "file:///etc/passwd"),
    ],
)
def test_no_other_file_is_shown(pictures: Path, name: str) -> None:
    import pyarrow as pa

    found = Pictures(pictures, pa.array([name]))
    with pytest.raises(NoPictureError) as error:
        found.of_row(0)
    assert found.problem(0) == (str(error.value) if name else "")


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\0\0\0\0WEBP", "image/webp"),
        (b"<svg xmlns=", None),
        (b"<html>", None),
        (b"%PDF", None),
        (b"", None),
    ],
)
def test_the_type_of_a_picture_is_that_of_its_bytes(start: bytes, kind: str | None) -> None:
    assert media_type(start + b"rest" if start else b"") == kind


@pytest.mark.parametrize("shape", [(5, 7), (5, 7, 1), (5, 7, 3)])
def test_an_array_becomes_a_png_with_its_pixels(shape: tuple[int, ...]) -> None:
    image = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    data = png(image)
    width, height = struct.unpack(">II", data[16:24])
    start = data.index(b"IDAT") + 4
    lines = np.frombuffer(zlib.decompress(data[start : data.index(b"IEND") - 8]), dtype=np.uint8)
    assert (width, height) == (7, 5)
    assert (lines.reshape(5, -1)[:, 1:].ravel() == image.ravel()).all()


def test_the_pictures_of_an_npz_file_go_by_row(tmp_path: Path) -> None:
    images = np.random.default_rng(0).random((4, 8, 8))
    np.savez(tmp_path / "digits.npz", images=images, kind=np.array(["a", "", "", ""]))
    cells = Cells(read_table(tmp_path / "digits.npz"), "kind", tmp_path)
    assert cells.pictures.has(3)
    assert cells.pictures.of_row(3) == (png(images[3]), "image/png")


@pytest.mark.skipif(os.name != "posix", reason="needs links")
@pytest.mark.parametrize("name", ["good.png", "inner/good.png"])
def test_a_picture_that_is_swapped_for_a_link_while_it_is_opened_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    folder, elsewhere = tmp_path / "table", tmp_path / "elsewhere"
    for place, content in ((folder / "inner", b"own"), (elsewhere, b"secret")):
        place.mkdir(parents=True)
        (place / "good.png").write_bytes(b"\x89PNG\r\n\x1a\n" + content)
    (folder / "good.png").write_bytes((folder / "inner" / "good.png").read_bytes())
    shown = Pictures(folder, pytest.importorskip("pyarrow").array([name]))
    assert shown.of_row(0)[0].endswith(b"own")
    resolve = Path.resolve

    def swap(path: Path, strict: bool = False) -> Path:
        found = resolve(path, strict)
        if path.name == "good.png":  # it has been found to be inside: now it is swapped
            part = folder / Path(name).parts[0]
            part.rename(tmp_path / "before")
            part.symlink_to(elsewhere if part.suffix == "" else elsewhere / "good.png")
        return found

    monkeypatch.setattr(Path, "resolve", swap)
    with pytest.raises(NoPictureError, match="cannot be read"):
        shown.of_row(0)
