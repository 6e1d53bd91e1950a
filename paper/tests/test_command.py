"""The command: what it prints and writes, how it refuses, and that it survives being killed."""

from __future__ import annotations

import contextlib
import csv
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from paper.tests.made import blobs
from tests.cli.conftest import sigint_reaches_children

from otprop import __version__
from otprop_paper._command import main
from otprop_paper.benchmark.output import read_csv
from otprop_paper.benchmark.store import Store

METHODS = ("otp", "ls", "plcc", "1nn")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    dataset = blobs((40, 30, 30))
    path = tmp_path_factory.mktemp("data") / "blobs.npz"
    np.savez(path, X=dataset.X, y=dataset.y)
    return path


def _arguments(table: Path, out: Path, *more: str) -> list[str]:
    chosen = ["--datasets", str(table), "--methods", *METHODS, "--percent", "10", "30", "--splits", "2"]
    return [*chosen, "--jobs", "1", "--out", str(out), *more]


def _lines(path: Path) -> list[dict[str, str]]:
    """Everything but the times and the head."""
    with path.open() as file:
        rows = list(csv.DictReader(row for row in file if not row.startswith("#")))
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


def test_a_run_prints_the_tables_and_writes_three_files(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(_arguments(table, tmp_path)) == 0
    out, err = capsys.readouterr()
    assert "NMI on the unlabelled rows" in out
    assert "ARI on the unlabelled rows" in out
    assert err == ""  # no bar where there is no terminal
    assert "\x1b" not in out
    assert {path.name for path in tmp_path.glob("stratified*")} == {
        f"stratified-honest.{x}" for x in ("csv", "md", "html")
    }
    assert len(_lines(tmp_path / "stratified-honest.csv")) == 4 * 2 * 2


def test_the_two_ways_of_tuning_go_to_files_of_their_own(table: Path, tmp_path: Path) -> None:
    quick = ("--methods", "plcc", "1nn")
    assert main(_arguments(table, tmp_path, "--tuning", "honest", "oracle", "--labels", "equal", *quick)) == 0
    for tuning in ("honest", "oracle"):
        lines = _lines(tmp_path / f"equal-{tuning}.csv")
        assert {line["tuning"] for line in lines} == {tuning}
        assert {line["labels"] for line in lines} == {"equal"}


def test_the_paper_figure_and_the_difference_are_printed_for_its_data_sets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(
            [
                "--datasets",
                "iris",
                "--methods",
                "1nn",
                "plcc",
                "--splits",
                "1",
                "--jobs",
                "1",
                "--out",
                str(tmp_path),
            ]
        )
        == 0
    )
    out = capsys.readouterr().out
    assert "0.5187" in out  # PLCC on Iris at 5 %
    assert "diff" in out


def test_version_and_help() -> None:
    command = [sys.executable, "-m", "otprop_paper"]
    version = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    assert version.stdout.strip() == f"otprop {__version__}"


def test_the_help_begins_with_an_example_and_fits_a_screen(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert text.index("otprop-paper --quick  ") < text.index("--datasets NAME")
    assert len(text.splitlines()) <= 50


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--datasets", "irsi"], "is not a known data set; did you mean 'iris'"),
        (["--datasets", "no/such.csv"], "there is no file"),
        (["--datasets", "iris", "--methods", "lsp"], "did you mean 'ls'? Known: otp,"),
        (["--datasets", "iris", "--percent", "0"], "between 0 and 100"),
        (["--datasets", "iris", "--percent", "1"], "too few"),
        (["--datasets", "iris", "--splits", "0"], "at least 1"),
        (["--datasets", "iris", "--jobs", "0"], "--jobs must be at least 1"),
        (["--labels", "mine"], "invalid choice"),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main([*arguments, "--out", str(out)]) == 2
    assert said in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("a,b,class\n1,2,x\n3,4,x\n5,6,x\n", "one class only"),
        ("a,b,class\nu,v,x\nw,z,y\nu,z,x\n", "no numeric column"),
        ("a,b,class\n" + "1,2,x\n" * 30 + "3,4,y\n", "a class with 1 row"),
        ("a,b,class\n" + "1,2,x\n" * 60 + "3,4,y\n" * 2, "without a label"),
    ],
)
def test_a_file_that_cannot_be_split_is_refused(
    content: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pandas")
    path = tmp_path / "mine.csv"
    path.write_text(content)
    assert main(["--datasets", str(path), "--percent", "10", "--out", str(tmp_path / "out")]) == 2
    assert said in capsys.readouterr().err


def test_names_in_capitals_and_a_data_set_named_twice_count_once(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    again = f"{table.parent}/./{table.name}"
    command = ["--datasets", str(table), again, "--methods", "1NN", "1nn", "--percent", "10"]
    assert main([*command, "--splits", "2", "--jobs", "1", "--out", str(tmp_path / "out")]) == 0
    rows = read_csv(tmp_path / "out" / "stratified-honest.csv")
    assert [(row["method"], row["split"]) for row in rows] == [("1nn", 0), ("1nn", 1)]


def test_the_column_of_classes_can_be_named(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    path = tmp_path / "flowers.csv"
    lines = [f"{'rose' if number % 2 else 'tulip'},{number % 2 + rng.normal():.4f},{number}.5" for number in range(60)]
    path.write_text("kind,a,z\n" + "\n".join(lines) + "\n")
    command = ["--datasets", str(path), "--methods", "1nn", "--percent", "20", "--splits", "1"]
    command += ["--jobs", "1", "--out", str(tmp_path / "out")]
    assert main(command) == 2
    assert main([*command, "--target", "kind"]) == 0


def test_an_unwritable_folder_is_said_at_the_start(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main(_arguments(table, tmp_path / "file" / "out")) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_an_estimate_runs_nothing_and_ends_with_a_total(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(_arguments(table, tmp_path, "--estimate")) == 0
    out = capsys.readouterr().out
    assert [row.split()[1] for row in out.splitlines()[:-1]] == list(METHODS)
    assert "hours of one core" in out.splitlines()[-1]
    assert not list(tmp_path.glob("*.csv"))


KILLED = """
import signal, sys
from otprop_paper.benchmark.store import Store
from otprop_paper._command import main

add = Store.add

def killed(self, results):
    add(self, results)
    signal.raise_signal(signal.SIGKILL)  # its workers are not told

Store.add = killed
sys.exit(main(sys.argv[1:]))
"""


def _run_killed(arguments: list[str]) -> int:
    """The exit status of a run that is killed just after it has saved its first result."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    quiet = subprocess.DEVNULL
    command = [sys.executable, "-c", KILLED, *arguments]
    process = subprocess.Popen(command, env=environment, stdout=quiet, stderr=quiet, start_new_session=True)
    status = process.wait(timeout=600)
    _end_session(process.pid)
    return status


def _end_session(session: int) -> None:
    """End the workers that a killed run left, and wait until they are gone; they write nothing."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(session, signal.SIGKILL)
    while any(_is_in_session(path, session) for path in Path("/proc").glob("[0-9]*/stat")):
        time.sleep(0.05)


def _is_in_session(stat: Path, session: int) -> bool:
    try:
        state, _, _, sid = stat.read_text().rpartition(")")[2].split()[:4]
    except (OSError, ValueError):
        return False
    return int(sid) == session and state != "Z"


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_a_run_killed_again_and_again_ends_with_the_results_of_an_undisturbed_one(table: Path, tmp_path: Path) -> None:
    chosen = (
        "--methods",
        "otp-paper",
        "plcc",
        "1nn",
        "--percent",
        "10",
        "--splits",
        "2",
        "--tuning",
        "honest",
        "oracle",
    )
    assert main([*_arguments(table, tmp_path / "calm"), *chosen]) == 0
    disturbed, sizes = tmp_path / "disturbed", [0]
    for n_jobs in ("2", "1"):
        assert _run_killed([*_arguments(table, disturbed), *chosen, "--jobs", n_jobs]) == -signal.SIGKILL
        sizes.append((disturbed / "cells.jsonl").stat().st_size)
        assert not list(disturbed.glob("*.csv"))
    assert sizes == sorted(set(sizes))  # each run went on from the one before
    assert main([*_arguments(table, disturbed), *chosen]) == 0
    for tuning in ("honest", "oracle"):
        name = f"stratified-{tuning}.csv"
        assert _lines(disturbed / name) == _lines(tmp_path / "calm" / name)


def test_an_interrupted_run_says_that_it_can_go_on(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    add = Store.add

    def interrupted(self: Store, results: Any) -> None:
        add(self, results)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Store, "add", interrupted)
    with sigint_reaches_children():
        assert main([*_arguments(table, tmp_path), "--methods", "1nn"]) == 130
    expected = "otprop-paper: interrupted. Finished results are saved: the same command goes on from here.\n"
    assert capsys.readouterr().err == expected
    assert (tmp_path / "cells.jsonl").stat().st_size > 0
    assert not list(tmp_path.glob("*.csv"))
