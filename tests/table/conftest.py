"""A cache of text vectors, and a text model in files."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests.table.texts import lengths


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("OTPROP_TEXT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def local(tmp_path, cache, monkeypatch):
    """A folder that stands for a sentence-transformers model, whose calls are listed in `calls`."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "modules.json").write_text("[]")
    calls = []

    def encode(texts):
        calls.append(list(texts))
        return lengths(texts)

    monkeypatch.setattr("otprop.table.text._load", lambda place: encode)
    return SimpleNamespace(folder=folder, calls=calls)
