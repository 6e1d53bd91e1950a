"""Vectors of a user's model: kept on disk, and made again by the same model."""

from __future__ import annotations

import numpy as np

from otprop.files import TableError
from tests.table.texts import TEXTS, features, frame


def test_each_text_is_encoded_once_and_read_from_the_cache_later(local, cache):
    X = features(local.folder).transform(frame())
    assert sum(map(len, local.calls)) == 60
    assert len(list(cache.glob("*.npz"))) == 1
    np.testing.assert_array_equal(features(str(local.folder)).transform(frame()), X)
    assert sum(map(len, local.calls)) == 60
    features(local.folder).transform(frame([*TEXTS, "a new one"]))
    assert local.calls[-1] == ["a new one"]
    next(cache.glob("*.npz")).write_bytes(b"damaged")
    np.testing.assert_array_equal(features(local.folder).transform(frame()), X)


def test_a_cache_on_a_full_disk_is_done_without(local, monkeypatch):
    def full(*args, **options):
        raise TableError("cannot write it: No space left on device")

    monkeypatch.setattr("otprop.table.model_vectors.write_atomic", full)
    assert features(local.folder).transform(frame()).shape == (60, 5)


def test_without_a_cache_nothing_is_written(local, cache, monkeypatch):
    monkeypatch.setenv("OTPROP_TEXT_CACHE", "")
    features(local.folder).transform(frame())
    assert not cache.exists()
    assert sum(map(len, local.calls)) == 60


def test_cache_is_in_the_users_cache_folder_unless_told_otherwise(local, cache, monkeypatch):
    monkeypatch.delenv("OTPROP_TEXT_CACHE")
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name, **rest: cache / name)
    features(local.folder)
    assert len(list((cache / "otprop" / "text").glob("*.npz"))) == 1


def test_another_model_has_another_cache(local, cache):
    features(local.folder)
    (local.folder / "weights").write_bytes(b"other")
    features(local.folder)
    assert len(list(cache.glob("*.npz"))) == 2
