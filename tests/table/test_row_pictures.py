"""Pictures of rows that are shown: which files, how large, and that nothing else is."""

from __future__ import annotations

import os
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from otprop.table import row_pictures
from otprop.table.row_pictures import LARGE, THUMBNAIL, NoPictureError, RowPictures, media_type, pictures_of_table, png
from tests.table.pictures import png_that_claims

Image = pytest.importorskip("PIL.Image", reason="reading pictures needs Pillow")

PNG = png(np.zeros((2, 2), dtype=np.uint8))


def of_names(folder: Path, *names: str | None) -> RowPictures:
    return RowPictures(folder, lambda row: names[row])


def opened(found: tuple[bytes, str]) -> Any:
    image = Image.open(BytesIO(found[0]))
    assert Image.MIME[image.format] == found[1]
    return image


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "table"
    (folder / "below").mkdir(parents=True)
    (folder / "below" / "a.png").write_bytes(PNG)
    (tmp_path / "secret.png").write_bytes(PNG)
    (folder / "text.png").write_text("<script>alert(1)</script>")
    (folder / "drawing.png").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    (folder / "empty.png").write_bytes(b"")
    (folder / "cut.png").write_bytes(png(np.random.default_rng(0).random((90, 90)))[:2000])
    (folder / "folder.png").mkdir()
    if os.name == "posix":
        (folder / "link.png").symlink_to(tmp_path / "secret.png")
        (folder / "inside.png").symlink_to(folder / "below" / "a.png")
        os.mkfifo(folder / "pipe.png")
    return folder


def test_a_picture_below_the_folder_is_shown(folder: Path) -> None:
    pictures = of_names(folder, "below/a.png", None, "", "inside.png" if os.name == "posix" else "below/a.png")
    assert pictures.are_files
    assert [pictures.has(row) for row in range(4)] == [True, False, False, True]
    assert [pictures.problem(row) for row in range(4)] == ["", "", "", ""]
    for row in (0, 3):
        assert opened(pictures.of_row(row)).size == (2, 2)


@pytest.mark.parametrize(
    "name",
    [
        *("missing.png", "../secret.png", "below/../../secret.png", "text.png", "drawing.png", "empty.png", "a\0.png"),
        *("folder.png", "/etc/passwd", "", "x" * 5000, "http://127.0.0.1/a.png", "file:///etc/passwd"),
        *(("link.png", "pipe.png") if os.name == "posix" else ()),
    ],
)
def test_no_other_file_is_shown(folder: Path, name: str) -> None:
    pictures = of_names(folder, name)
    for side in (THUMBNAIL, LARGE):
        with pytest.raises(NoPictureError) as error:
            pictures.of_row(0, side)
    assert pictures.problem(0) == (str(error.value) if name else "")


def test_a_damaged_picture_is_named_once_it_was_tried(folder: Path) -> None:
    pictures = of_names(folder, "cut.png")
    assert pictures.problem(0) == ""  # its beginning is that of a picture
    with pytest.raises(NoPictureError, match=r"cut\.png is damaged"):
        pictures.of_row(0)
    assert pictures.problem(0).startswith("cut.png is damaged")
    (folder / "cut.png").write_bytes(PNG)
    assert pictures.problem(0) == ""
    assert opened(pictures.of_row(0)).size == (2, 2)


def test_a_picture_that_is_deleted_or_replaced_is_not_shown_from_memory(folder: Path) -> None:
    pictures, path = of_names(folder, "below/a.png"), folder / "below" / "a.png"
    before = pictures.of_row(0, THUMBNAIL)
    assert pictures.of_row(0, THUMBNAIL) == before
    path.write_bytes(png(np.full((3, 5), 200, dtype=np.uint8)))
    assert opened(pictures.of_row(0, THUMBNAIL)).size == (5, 3)
    path.unlink()
    with pytest.raises(NoPictureError, match="is not there"):
        pictures.of_row(0, THUMBNAIL)


def test_a_picture_is_decoded_once_while_its_file_stays(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    decode = row_pictures.decode_picture
    monkeypatch.setattr(row_pictures, "decode_picture", lambda *data: calls.append(1) or decode(*data))
    pictures = of_names(folder, "below/a.png", "below/a.png")
    for row in (0, 0, 1, 0):
        pictures.of_row(row, THUMBNAIL)
    assert len(calls) == 2


def test_what_is_kept_has_a_limit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_pictures, "MAX_CACHED", 300)
    pictures = of_names(folder, *["below/a.png"] * 50)
    for row in range(50):
        pictures.of_row(row)
    assert sum(len(data) for _, data, _ in pictures._cache.values()) <= 300


def test_a_large_picture_is_made_small_and_upright_and_loses_its_metadata(folder: Path) -> None:
    exif = Image.Exif()
    exif[0x0112], exif[0x010E] = 6, "where I live"  # turned by 90 degrees; a description
    Image.new("RGB", (2000, 1000), "red").save(folder / "photo.jpg", exif=exif, comment=b"where I live")
    for side in (THUMBNAIL, LARGE):
        data, kind = of_names(folder, "photo.jpg").of_row(0, side)
        assert kind == "image/jpeg"
        assert opened((data, kind)).size == (side // 2, side)
        assert b"where I live" not in data


@pytest.mark.parametrize("name", ["a.bmp", "a.tif", "a.webp", "a.gif"])
def test_every_format_is_shown_as_one_that_browsers_know(folder: Path, name: str) -> None:
    Image.new("RGB", (300, 200), "green").save(folder / name)
    pictures = of_names(folder, name)
    assert pictures.problem(0) == ""
    assert opened(pictures.of_row(0, THUMBNAIL)).format == "JPEG"


def test_a_bomb_is_refused(folder: Path) -> None:
    (folder / "bomb.png").write_bytes(png_that_claims(50_000, 50_000))
    pictures = of_names(folder, "bomb.png")
    with pytest.raises(NoPictureError, match="million pixels"):
        pictures.of_row(0, THUMBNAIL)
    assert "million pixels" in pictures.problem(0)


def test_without_pillow_pictures_are_shown_as_they_are(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_pictures, "has_pillow", lambda: False)
    Image.new("RGB", (30, 20)).save(folder / "a.tif")
    with (folder / "large.png").open("wb") as file:
        file.write(PNG)
        file.truncate(row_pictures.MAX_PLAIN_BYTES + 1)
    pictures = of_names(folder, "below/a.png", "a.tif", "large.png")
    assert pictures.of_row(0, THUMBNAIL) == (PNG, "image/png")
    for row in (1, 2):
        with pytest.raises(NoPictureError):
            pictures.of_row(row)


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
    found = np.asarray(Image.open(BytesIO(png(image))))
    assert (found.ravel() == image.ravel()).all()


def test_the_pictures_of_an_npz_file_go_by_row(tmp_path: Path) -> None:
    from otprop.files import read_table

    images, palette = np.random.default_rng(0).random((4, 8, 8)), np.zeros((3, 9, 9))
    np.savez(tmp_path / "digits.npz", palette=palette, images=images, kind=np.array(["a", "", "", ""]))
    pictures = pictures_of_table(read_table(tmp_path / "digits.npz"), tmp_path, None, lambda row: None)
    assert pictures.column == "images"  # the other array has no entry per row
    assert pictures.has(3)
    assert pictures.of_row(3) == (png(images[3]), "image/png")


@pytest.mark.skipif(os.name != "posix", reason="needs links")
@pytest.mark.parametrize("name", ["good.png", "inner/good.png"])
def test_a_picture_that_is_swapped_for_a_link_while_it_is_opened_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    folder, elsewhere = tmp_path / "table", tmp_path / "elsewhere"
    for place in (folder / "inner", elsewhere):
        place.mkdir(parents=True)
        (place / "good.png").write_bytes(PNG)
    (folder / "good.png").write_bytes(PNG)
    shown = of_names(folder, name)
    assert shown.of_row(0)[1] == "image/png"
    resolve = Path.resolve

    def swap(path: Path, strict: bool = False) -> Path:
        found = resolve(path, strict)
        part = folder / Path(name).parts[0]
        if path.name == "good.png" and not part.is_symlink():  # it has been found to be inside: now it is swapped
            part.rename(tmp_path / "before")
            part.symlink_to(elsewhere if part.suffix == "" else elsewhere / "good.png")
        return found

    monkeypatch.setattr(Path, "resolve", swap)
    with pytest.raises(NoPictureError, match="cannot be read"):
        shown.of_row(0, THUMBNAIL)


def test_an_array_of_numbers_becomes_a_png_of_its_finite_range() -> None:
    image = np.array([[0.0, 1.0, np.nan], [2.0, np.inf, -np.inf]])
    found = np.asarray(Image.open(BytesIO(png(image))))
    assert found.tolist() == [[0, 128, 0], [255, 255, 0]]
    wide = np.asarray(Image.open(BytesIO(png(np.array([[-1.7e308, 0.0], [1.7e308, 1.7e308]])))))
    assert wide.tolist() == [[0, 128], [255, 255]]
    assert not np.asarray(Image.open(BytesIO(png(np.full((2, 2), np.nan))))).any()
