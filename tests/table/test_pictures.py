"""Pictures in files: what is read, and how; what is refused."""

from __future__ import annotations

import os
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO

import numpy as np
import pytest

from otprop.table import pictures
from otprop.table.pictures import PictureError, UnreadableFileError, decode_picture, read_plain_file
from tests.table.pictures import picture, png_that_claims

Image = pytest.importorskip("PIL.Image", reason="needs Pillow")


def saved(image, format, **options):
    out = BytesIO()
    image.save(out, format, **options)
    return out.getvalue()


@pytest.mark.parametrize("mode", ["RGB", "L", "P", "1", "CMYK", "LA", "RGBA", "I;16", "F"])
def test_a_picture_of_any_mode_is_read_in_colour(mode):
    image = Image.fromarray(np.full((8, 8), 300, np.uint16)) if mode == "I;16" else picture().convert(mode)
    found = decode_picture(saved(image, "TIFF"))
    assert (found.mode, found.size) == ("RGB", image.size)


def test_a_sixteen_bit_picture_keeps_its_contrast():
    values = np.linspace(0, 60_000, 64).astype(np.uint16).reshape(8, 8)
    grey = np.asarray(decode_picture(saved(Image.fromarray(values), "PNG")))[:, :, 0]
    assert grey.min() == 0
    assert grey.max() == 255
    assert len(np.unique(grey)) == 64


def test_pixels_that_are_not_finite_do_not_hide_the_others():
    grey = np.linspace(0, 1, 100, dtype=np.float32).reshape(10, 10)
    odd = grey.copy()
    odd[0, 0], odd[-1, -1] = np.nan, np.inf
    found, plain = (np.asarray(decode_picture(saved(Image.fromarray(one), "TIFF"))) for one in (odd, grey))
    assert np.abs(found.astype(int) - plain).max() <= 3


def test_a_picture_is_turned_as_its_exif_data_says():
    exif = Image.Exif()
    exif[0x0112] = 6  # turn by 90 degrees
    assert decode_picture(saved(picture(size=(10, 30)), "JPEG", exif=exif)).size == (10, 30)


def test_transparent_parts_are_white():
    clear = Image.new("RGBA", (4, 4), (0, 0, 0, 0))
    assert np.asarray(decode_picture(saved(clear, "PNG"))).min() == 255


def test_the_first_frame_of_an_animation_counts():
    red, green = Image.new("RGB", (4, 4), (255, 0, 0)), Image.new("RGB", (4, 4), (0, 255, 0))
    found = decode_picture(saved(red, "GIF", save_all=True, append_images=[green]))
    assert found.getpixel((0, 0)) == (255, 0, 0)


def jpeg_of_scans(n_more):
    """A JPEG file whose last scan comes again and again; each has some bytes and goes through all pixels."""
    data = saved(picture(), "JPEG", progressive=True)
    return data[:-2] + n_more * data[data.rindex(b"\xff\xda") : -2] + b"\xff\xd9"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"no picture", "is not a picture"),
        (saved(picture(), "JPEG")[:400], "is damaged"),
        (png_that_claims(60_000, 60_000), "100 million pixels"),
        (png_that_claims(11_000, 11_000), "11000 x 11000 pixels"),
        (png_that_claims(70_000, 1), "a side has at most 65535"),
        (jpeg_of_scans(100), "more than 64 scans"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "is not a picture"),  # would start Ghostscript
    ],
    ids=["text", "truncated", "bomb", "large", "long", "scans", "program"],
)
@pytest.mark.filterwarnings("ignore:Image size")
def test_a_file_that_is_no_sound_picture_is_refused(data, reason):
    with pytest.raises(PictureError, match=reason):
        decode_picture(data)


def test_a_usual_jpeg_with_a_film_behind_it_is_read():
    film = b"\xff\xda" * 1000  # as telephones write it, after the end of the picture
    thumbnail = Image.Exif()
    thumbnail[0x010E] = "\xff\xda" * 100
    for data in (jpeg_of_scans(1) + film, saved(picture(), "JPEG", exif=thumbnail)):
        assert decode_picture(data).mode == "RGB"


@pytest.mark.parametrize("strip", [1, 24, 10**6])
def test_a_picture_of_numbers_is_scaled_strip_by_strip(monkeypatch, strip):
    values = np.random.default_rng(0).normal(size=(9, 12)).astype(np.float32)
    values[4], values[5, :3] = np.nan, [np.inf, -np.inf, np.nan]
    monkeypatch.setattr(pictures, "STRIP_PIXELS", strip)
    found = np.asarray(decode_picture(saved(Image.fromarray(values), "TIFF")))[:, :, 0]
    finite = values[np.isfinite(values)].astype(float)
    expected = np.round(255 * (finite - finite.min()) / np.ptp(finite))
    np.testing.assert_array_equal(found[np.isfinite(values)], expected)
    np.testing.assert_array_equal(found[5, :3], [255, 0, 0])


def test_large_pictures_of_numbers_take_memory_for_their_bytes_only():
    data = saved(Image.fromarray(np.zeros((2000, 2000), np.uint16)), "PNG")
    tracemalloc.start()
    try:
        decode_picture(data)
        assert tracemalloc.get_traced_memory()[1] < 14 * 2000 * 2000  # float64 copies took 34 bytes per pixel
    finally:
        tracemalloc.stop()


def test_large_pictures_are_decoded_one_at_a_time(monkeypatch):
    running, most = [], []

    def in_colour(image):
        running.append(1)
        most.append(len(running))
        time.sleep(0.02)
        running.pop()
        return image

    monkeypatch.setattr(pictures, "LARGE_PIXELS", 50)
    monkeypatch.setattr(pictures, "_in_colour", in_colour)
    data = saved(picture(), "PNG")
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(decode_picture, [data] * 4))
    assert max(most) == 1


def test_what_is_not_a_plain_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(UnreadableFileError, match="not a plain file"):
        read_plain_file(tmp_path / "pipe.png")
    (tmp_path / "empty.png").touch()
    with pytest.raises(UnreadableFileError, match="is empty"):
        read_plain_file(tmp_path / "empty.png")
    with pytest.raises(UnreadableFileError, match="does not exist"):
        read_plain_file(tmp_path / "gone.png")
