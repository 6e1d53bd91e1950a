"""How the commands refuse what they cannot do, and what they point out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from otprop.cli import main
from otprop.files import write_atomic

pytest.importorskip("pyarrow")


def test_a_map_that_needs_a_missing_package_is_refused_before_the_work(
    lots: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import otprop.cli.label as label

    monkeypatch.setattr(label, "find_spec", lambda name: None)
    monkeypatch.setattr(label, "read_input", lambda options: pytest.fail("the file was read"))
    assert main(["label", str(lots), "--target", "kind", "--map", "umap", "--report", str(lots.parent / "p.html")]) == 1
    assert "pip install '.[umap]' in a checkout of otprop" in capsys.readouterr().err


def test_what_is_no_table_is_said_to_be(lots: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "notes.md"
    page.write_text("# Notes\n\n| a | b |\n|---|---|\n| 1 | x |\n", encoding="utf-8")
    pictures = tmp_path / "pics"
    pictures.mkdir()
    for number in range(3):
        (pictures / f"{number}.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    labels = np.array(["a", None, "b"], dtype=object)
    np.savez(tmp_path / "objects.npz", X=np.eye(3), kind=labels)
    for path, sentence in (
        (page, "notes.md is not a table: it is a text document by its name; save the table in it as CSV"),
        (pictures, "pics has no picture that can be read: 0.png is not a picture"),
        (
            pictures / "*.png",
            "*.png holds pictures ('0.png', '1.png', '2.png'), and no table; name their folder itself",
        ),
        (tmp_path / "objects.npz", "the array 'kind' holds Python objects, which are not read"),
    ):
        assert main(["label", str(path), "--target", "kind"]) == 2
        assert sentence in capsys.readouterr().err


def test_a_cache_is_not_said_to_be_written(lots: Path, capsys, monkeypatch) -> None:
    def fail(*_, **__) -> None:
        write_atomic(lots.parent / "cache.npz", b"vectors")
        raise ValueError("it failed")

    monkeypatch.setattr("otprop.labelling.job.prepare", fail)
    assert main(["label", str(lots), "--target", "kind"]) == 1
    assert capsys.readouterr().err.strip() == "otprop label: it failed"
