"""Vectors of picture files."""

from __future__ import annotations

import numpy as np
import pytest

from otprop.table.picture_vectors import BLOCKS, WEIGHTS, Describer, describe_picture, picture_vectors
from tests.table.pictures import GREEN, RED, picture

Image = pytest.importorskip("PIL.Image", reason="needs Pillow")


@pytest.fixture(autouse=True)
def _no_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("OTPROP_IMAGE_CACHE", str(tmp_path / "cache"))


def test_descriptors_have_their_length_whatever_the_size():
    for size in [(1, 1), (3, 500), (64, 64), (500, 3)]:
        found = [len(block) for block in describe_picture(picture(size=size)).values()]
        assert np.cumsum([0, *found]).tolist() == list(BLOCKS)
    assert len(WEIGHTS) == len(BLOCKS) - 1


def test_descriptors_tell_colours_and_directions_apart():
    stripes = np.zeros((32, 32, 3), np.uint8)
    stripes[::4] = stripes[1::4] = 255
    across, along = describe_picture(Image.fromarray(stripes)), describe_picture(Image.fromarray(stripes).rotate(90))
    assert np.abs(across["gradients"] - along["gradients"]).max() > 0.1
    np.testing.assert_allclose(across["colours"], along["colours"], atol=0.2)
    red, green = describe_picture(picture(RED)), describe_picture(picture(GREEN))
    assert np.abs(red["colours"] - green["colours"]).max() > 0.5


class Counting(Describer):
    """Counts the pictures that it describes."""

    name = "counting"

    def __init__(self):
        self.n = 0

    def one(self, data):
        self.n += 1
        return super().one(data)


def test_each_content_is_described_once_and_kept(tmp_path):
    picture().save(tmp_path / "a.png")
    picture().save(tmp_path / "same.png")
    picture(GREEN).save(tmp_path / "b.png")
    names = ["a.png", "same.png", "b.png", None, "gone.png", "a.png"]
    first = Counting()
    vectors, problems = picture_vectors(names, tmp_path, first)
    assert first.n >= 2  # those that are the same may be looked at in one moment
    assert list(problems) == [4]
    assert np.isnan(vectors).all(axis=1).tolist() == [False, False, False, True, True, False]
    np.testing.assert_array_equal(vectors[0], vectors[1])

    again = Counting()  # as in another process
    np.testing.assert_array_equal(picture_vectors(names, tmp_path, again)[0], vectors)
    assert again.n == 0

    picture(RED, seed=1).save(tmp_path / "b.png")  # other content under the same name
    changed = picture_vectors(names, tmp_path, again)[0]
    assert again.n == 1
    assert (changed[2] != vectors[2]).any()


@pytest.mark.parametrize("content", [b"", b"damaged", None])
def test_a_damaged_cache_is_made_again(tmp_path, content):
    picture().save(tmp_path / "a.png")
    before = picture_vectors(["a.png"], tmp_path, Counting())[0]
    cache = tmp_path / "cache" / "counting.npz"
    cache.write_bytes(cache.read_bytes()[:-200] if content is None else content)
    again = Counting()
    np.testing.assert_array_equal(picture_vectors(["a.png"], tmp_path, again)[0], before)
    assert again.n == 1
