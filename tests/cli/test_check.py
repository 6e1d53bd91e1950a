"""`otprop check`: labels that look wrong."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from otprop.cli import main
from otprop.files import TableError, read_table
from tests.cli.commands import FAST, corrections, kind_of, label, run, write_rows
from tests.cli.conftest import read_rows

pytest.importorskip("pandas")


def test_labels_that_look_wrong_are_listed_and_corrected(
    lots: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = lots.with_name("issues.csv")
    rows = read_rows(lots)
    for number, row in enumerate(rows):
        row["kind"] = kind_of(str(number + 1))  # every row has a label
    rows[49]["kind"], rows[70]["kind"] = "c", "a"
    write_rows(lots, rows)
    assert run("check", lots, "-o", str(path), "--json", "--ignore", "colour") == 0
    printed = capsys.readouterr()
    found = {row["row"]: row for row in read_rows(path)}
    assert {"50", "71"} <= set(found)
    assert list(found["50"]) == ["row", "label", "given", "suggested", "probability", "file_digest"]
    assert (found["50"]["given"], found["50"]["suggested"], found["50"]["label"]) == ("c", "b", "")
    assert float(found["50"]["probability"]) > 0.5
    assert len(json.loads(printed.out)["label_issues"]) == len(found)
    assert "120 labels given, 120 of them judged by the others; " in printed.err
    assert f"{len(found)} are contradicted, " in printed.err
    assert " of these with a probability of 30% or more of being wrong. The most doubtful first:" in printed.err
    write_rows(path, [row | {"label": row["suggested"]} for row in found.values()])
    assert label(lots, out, "--corrections", str(path)) == 0  # nothing to propagate, but labels to write
    assert [read_rows(out)[n]["kind_label"] for n in (49, 70)] == ["b", "b"]


@pytest.mark.parametrize("ending", ["csv", "json", "jsonl", "parquet", "feather", "npz", "xlsx", "csv.gz"])
def test_a_file_whose_labels_none_contradicts_gets_a_list_without_rows(tmp_path: Path, ending: str) -> None:
    if ending == "xlsx":
        pytest.importorskip("openpyxl")
    path, out = tmp_path / "in.csv", tmp_path / f"issues.{ending}"
    path.write_text("x,kind\n" + "".join(f"{n}.5,{'a' if n == 0 else 'b' if n == 29 else ''}\n" for n in range(30)))
    out.write_text("the list of an earlier run")
    assert run("check", path, "-o", str(out), "--force", "--quiet") == 0
    with pytest.raises(TableError, match=r"no rows|empty|no array with rows"):
        read_table(out)
    if ending == "csv":
        assert out.read_text() == "row,label,given,suggested,probability,file_digest\n"


def test_quiet_commands_print_nothing_where_no_label_can_be_held_out(tmp_path: Path) -> None:
    """In a process of its own: pytest has handlers of its own for the log."""
    path = tmp_path / "in.csv"
    path.write_text("x,kind\n" + "".join(f"{n}.5,{'a' if n == 0 else 'b' if n == 29 else ''}\n" for n in range(30)))
    command = [sys.executable, "-m", "otprop", "label", str(path), "--target", "kind", "--quiet", *FAST]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_labels_that_look_wrong_come_with_the_command_that_lists_them(
    lots: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = read_rows(lots)
    for number, row in enumerate(rows[:60]):
        row["kind"] = kind_of(str(number + 1))
    rows[49]["kind"] = "c"
    write_rows(lots, rows)
    right = corrections(lots.with_name("corrections.csv"), lots, {20: kind_of("20")})
    assert label(lots, out, "--corrections", str(right), "--ignore", "colour") == 0
    said = next(line for line in capsys.readouterr().err.splitlines() if "wrong: otprop check" in line)
    command = shlex.split(said.partition(": otprop ")[2])
    assert main([*command, "--json"]) == 0
    assert 50 in [issue["row"] for issue in json.loads(capsys.readouterr().out)["label_issues"]]
    confirmed = corrections(lots.with_name("confirmed.csv"), lots, {50: "c"})
    command[command.index("--corrections") + 1 : command.index("--corrections") + 2] = [str(right), str(confirmed)]
    assert main([*command, "--json"]) == 0
    assert 50 not in [issue["row"] for issue in json.loads(capsys.readouterr().out)["label_issues"]]  # somebody looked


def test_a_list_of_no_issues_is_no_error(lots: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = lots.with_name("none.csv")
    path.write_text("row,label,given,suggested,probability,file_digest\n")
    assert label(lots, out, "--corrections", str(path)) == 0, capsys.readouterr().err
