"""`otprop studio`: how it starts, goes on, and refuses."""

from __future__ import annotations

import csv
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

import numpy as np
import pytest

from otprop.cli import main
from tests.studio.client import StudioClient

for module in ("starlette", "uvicorn", "pyarrow"):
    pytest.importorskip(module)


@contextmanager
def started(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command in a process of its own, and the address that it prints."""
    command = [sys.executable, "-m", "otprop", "studio", *arguments, "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            if process.poll() is None:
                process.kill()


def children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_killed_server_loses_nothing_and_the_next_start_goes_on(lots: Path) -> None:
    before = lots.read_bytes()
    with started(str(lots), "--target", "kind", "--port", "0") as (process, url):
        client = StudioClient(url)
        for row in range(20, 40):
            client.label(row, row % 3)
        workers = children(process.pid)
        assert workers
        process.send_signal(signal.SIGKILL)
        process.wait()
    end = monotonic() + 60
    while any(map(alive, workers)) and monotonic() < end:
        sleep(0.01)
    assert not any(map(alive, workers))
    with started(str(lots), "--target", "kind", "--port", str(client.port)) as (process, url):
        earlier, client = client, StudioClient(url)
        assert client.port == earlier.port
        earlier.get("/api/state", 401)  # its cookie was of the first start
        assert client.get("/api/state")["labels"] == 32
        page = client.events()
        next(page)
        for _ in range(2):  # an impatient person
            process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        page.close()
        assert process.returncode == 0
        assert "every label is saved in" in errors
        assert "Traceback" not in errors
    assert lots.read_bytes() == before


def test_a_port_that_is_taken_gives_the_next_one() -> None:
    from otprop.studio.run import bind

    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        listener, note = bind(taken)
        assert listener.getsockname()[1] > taken
        assert note.startswith(f"port {taken} is taken")
        listener.close()


def test_no_browser_is_said(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from otprop.cli import studio

    monkeypatch.setattr(studio.webbrowser, "open", lambda url: False)
    studio._tell("http://127.0.0.1:1/?token=x", Path("s.otprop"), browser=True)
    assert "open the address yourself" in capsys.readouterr().out


def wide(path: Path, cells: list[str]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["x", "kind"], *([f"{number % 7}.5", cell] for number, cell in enumerate(cells))])
    return path


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    status = main(["studio", *arguments, "--no-browser", "--port", "0"])
    return status, capsys.readouterr().err


def test_targets_that_are_no_classes_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    many = wide(tmp_path / "many.csv", [f"class {number}" for number in range(5_000)])
    status, sentence = refused(capsys, str(many), "--target", "kind")
    assert (status, "has 5000 classes; the studio takes up to 1000" in sentence) == (2, True)
    numbers = wide(tmp_path / "numbers.csv", [f"{value:.6f}" for value in np.linspace(0, 1, 200)])
    status, sentence = refused(capsys, str(numbers), "--target", "kind")
    assert (status, "a measurement, not classes?" in sentence) == (2, True)
    assert "--numeric-classes" in sentence


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--session", "missing/s.otprop"], "name another file with --session"),
        (["--port", "99999"], "--port 99999"),
        (["--sample", "1"], "--sample 1"),
        (["--ignore", "nothing"], "nothing"),
        (["--delimiter", "ab"], "--delimiter"),
    ],
)
def test_what_cannot_be_used_is_named(
    lots: Path, capsys: pytest.CaptureFixture[str], more: list[str], words: str
) -> None:
    assert main(["studio", str(lots), "--target", "kind", "--no-browser", *more]) in (1, 2)
    assert words in capsys.readouterr().err


def test_missing_files_and_standard_input_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "there is no file" in refused(capsys, str(tmp_path / "none.csv"), "--target", "kind")[1]
    assert "pass a file" in refused(capsys, "-", "--target", "kind")[1]
    assert not list(tmp_path.iterdir())


def test_a_missing_extra_is_one_line(
    lots: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from otprop.cli import studio

    monkeypatch.setattr(studio, "find_spec", lambda name: None)
    status, sentence = refused(capsys, str(lots), "--target", "kind")
    assert status == 1
    assert (
        sentence
        == "otprop studio: otprop studio needs starlette and uvicorn: pip install '.[studio]' in a checkout of otprop\n"
    )


def test_a_table_that_is_too_large_says_what_it_needs_and_offers_a_sample(lots: Path) -> None:
    from otprop.files import TableError, read_table
    from otprop.studio import source

    table = read_table(lots)
    with pytest.raises(TableError, match=r"120 rows, for which the studio needs about .* GB.*sample=200000"):
        source.check_size(table, 3, memory=1000)
    table.n_rows = 5_000_000
    with pytest.raises(TableError, match=r"5000000 rows.*20 GB of memory; it takes up to 2000000"):
        source.check_size(table, 3, memory=1e15)


def test_a_sample_has_the_same_rows_every_time(lots: Path) -> None:
    from otprop.labelling.job import Request
    from otprop.studio.source import Source, read_source

    tables = [read_source(Source(str(lots), Request("kind"), sample=30)) for _ in range(2)]
    whole = read_source(Source(str(lots), Request("kind")))
    assert tables[0].n_rows == 30
    assert tables[0].cells("lot").tolist() == tables[1].cells("lot").tolist()
    assert tables[0].digest == tables[1].digest != whole.digest
    assert "a sample of 30 of the 120 rows" in " ".join(tables[0].notes)


def test_the_labels_of_a_damaged_session_are_rescued(lots: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with started(str(lots), "--target", "kind", "--port", "0") as (process, url):
        StudioClient(url).label(20, 1)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    session, labels = lots.with_name(f"{lots.name}.otprop"), lots.with_name("labels.csv")
    with sqlite3.connect(session) as connection:
        connection.execute("INSERT INTO meta VALUES ('goal', 'soon')")
    connection.close()
    assert main(["studio", str(lots), "--target", "kind", "--no-browser"]) == 2
    said = capsys.readouterr().err
    assert (
        "is damaged (impossible goal: soon); name another file with --session, or write the labels that can be" in said
    )
    assert main(["studio", str(lots), "--target", "kind", "--rescue", str(labels)]) == 0
    assert "labels rescued: 1" in capsys.readouterr().err
    assert main(["label", str(lots), "--target", "kind", "--corrections", str(labels), "-o", f"{labels}.out.csv"]) == 0
