from __future__ import annotations

from pathlib import Path

import pytest

from otprop_paper.datasets import _store


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with no data set but scikit-learn's; gives the folder that would be the cache."""
    monkeypatch.delenv("OTPROP_DATA", raising=False)
    monkeypatch.setenv("OTPROP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(_store, "checkout_folder", lambda: None)
    return tmp_path / "cache"
