"""Exports are deleted with the studio, or by the next one where it was killed."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from otprop.studio.export import ExportFolder, rescue_labels
from otprop.studio.session_file import SessionError
from tests.studio.sessions import Lots, opened

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


def test_what_can_be_read_of_a_damaged_session_is_rescued(tmp_path: Path) -> None:
    lots = Lots([f"lot {number}" for number in range(2000)])
    session = opened(tmp_path, lots)
    session.label(range(2000), 0, drawn=True)
    session.label(range(1000), 1)
    session.close()
    whole = bytearray((tmp_path / "s.otprop").read_bytes())
    n_pages, found = len(whole) // 4096, []
    for page in range(n_pages // 2, n_pages // 2 + 5):
        damaged = whole.copy()
        damaged[4096 * page : 4096 * (page + 1)] = b"\xff" * 4096
        (tmp_path / "damaged.otprop").write_bytes(damaged)
        found.append(rescue_labels(tmp_path / "damaged.otprop", tmp_path / f"{page}.csv"))
    assert min(found) > 1500
    (tmp_path / "none.otprop").write_bytes(b"SQLite format 3\0" + b"\1" * 5000)
    for name in ("none.otprop", "missing.otprop"):
        with pytest.raises(SessionError, match=r"no label can be read|cannot read the session file"):
            rescue_labels(tmp_path / name, tmp_path / "none.csv")
