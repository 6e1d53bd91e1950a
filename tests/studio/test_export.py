"""Exports are deleted with the studio, or by the next one where it was killed."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from otprop.studio.export import ExportFolder

KILLED = """
import os, signal
from otprop.studio.export import ExportFolder
folder = ExportFolder()
(folder.path / "lots.labelled.csv").write_text("1")
print(folder.path, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def test_a_folder_is_deleted_when_it_is_closed(temporary: Path) -> None:
    folder = ExportFolder()
    (folder.path / "a.csv").touch()
    folder.close()
    assert list(temporary.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_the_folder_of_a_killed_studio_is_deleted_by_the_next_start_and_those_in_use_stay(temporary: Path) -> None:
    (temporary / "elsewhere").mkdir()
    (temporary / "elsewhere" / "mine").touch()
    (temporary / "otprop-studio-link").symlink_to(temporary / "elsewhere")
    (temporary / "otprop-studio-file").touch()
    kept = {path.name for path in temporary.iterdir()}
    in_use = ExportFolder()
    done = subprocess.run([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, text=True, check=False)
    left = Path(done.stdout.strip())
    assert left.is_dir()
    folder = ExportFolder()
    assert not left.exists()
    assert {path.name for path in temporary.iterdir()} == {*kept, in_use.path.name, folder.path.name}
    assert (temporary / "elsewhere" / "mine").exists()
    for one in (in_use, folder):
        one.close()
