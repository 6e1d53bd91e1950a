"""`otprop suggest`: which rows to label next."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from otprop.cli import main
from otprop.files import read_table
from tests.cli.commands import FAST, kind_of, label, run, write_rows
from tests.cli.conftest import read_rows

pytest.importorskip("pandas")


def test_suggested_rows_are_filled_in_and_given_back(lots: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = lots.with_name("rows.csv")
    assert run("suggest", lots, "-n", "10", "--random-share", "0.2", "-o", str(path), "--json") == 0
    printed = capsys.readouterr()
    found = json.loads(printed.out)["suggestions"]
    rows = read_rows(path)
    assert [int(row["row"]) for row in rows] == [one["row"] for one in found]
    assert [row["reason"] for row in rows].count("random") == 2
    assert list(rows[0]) == ["row", "reason", "kind", "lot", "weight", "colour", "file_digest"]
    original = read_rows(lots)
    for row in rows:
        place = int(row["row"]) - 1
        assert row["kind"] == original[place]["kind"] == ""
        assert [row[name] for name in ("lot", "weight", "colour")] == [
            original[place][name] for name in ("lot", "weight", "colour")
        ]
        assert f"{row['row']}  {row['reason']}" in printed.err
    assert f"then: otprop label {lots} --target kind --corrections {path}\n" in printed.err
    write_rows(path, [row | {"kind": kind_of(row["row"]) if n else ""} for n, row in enumerate(rows)])
    assert label(lots, out, "--corrections", str(path)) == 0
    assert "1 of 10 rows have no label and are not used" in capsys.readouterr().err
    after = read_rows(out)
    assert [after[int(row["row"]) - 1]["kind_source"] for row in rows] == ["propagated"] + ["corrected"] * 9


def test_the_next_command_replaces_the_output_of_an_earlier_one(lots: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = lots.with_name("rows.csv")
    assert run("label", lots, *FAST) == run("suggest", lots, "-n", "2", "-o", str(path)) == 0
    assert f"--corrections {path} --force\n" in capsys.readouterr().err


def test_the_next_command_has_the_options_that_decide_what_it_sees(
    lots: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = lots.with_name("rows.csv")
    options = ["--ignore", "colour", "lot", "--unlabeled", "--", "--unlabeled", "?", "--metric", "manhattan"]
    assert run("suggest", lots, "-n", "2", "-o", str(path), *options, "--delimiter", ",", "--goal", "0.05") == 0
    printed = capsys.readouterr().err
    command = next(line for line in printed.splitlines() if line.startswith("Fill in")).partition("then: otprop ")[2]
    assert "expected error of 0.05" in printed
    rows = read_rows(path)
    write_rows(path, [row | {"kind": kind_of(row["row"])} for row in rows])
    assert main([*shlex.split(command), "-o", str(lots.with_name("out.csv")), *FAST, "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    roles = {use["name"]: use["why"] for use in summary["columns"]}
    assert "ignore" in roles["colour"]
    assert summary["parameters"]["metric"] == "manhattan"
    assert summary["corrected"] == 2


def test_a_file_without_labels_is_labelled_by_suggested_rows(lots: Path, out: Path) -> None:
    bare, path = lots.with_name("bare.csv"), lots.with_name("rows.csv")
    write_rows(bare, [{name: row[name] for name in ("lot", "weight", "colour")} for row in read_rows(lots)])
    assert run("suggest", bare, "-n", "9", "-o", str(path)) == 0
    rows = read_rows(path)
    assert {row["reason"] for row in rows} == {"typical", "random"}
    write_rows(path, [row | {"kind": kind_of(row["row"])} for row in rows])
    assert run("label", bare, *FAST, "-o", str(out), "--corrections", str(path)) == 0
    labelled = read_rows(out)
    assert list(labelled[0])[:4] == ["lot", "weight", "colour", "kind_label"]
    right = [row["kind_label"] == kind_of(str(number)) for number, row in enumerate(labelled, 1)]
    assert sum(right) > 110
    assert run("label", bare, *FAST, "-o", str(out), "--corrections", str(path), "--fill", "--force") == 0
    assert [row["kind"] for row in read_rows(out)] == [row["kind_label"] for row in labelled]
    assert run("suggest", bare, "-n", "3", "--corrections", str(path), "--json", "--quiet") == 0


def test_rows_go_to_a_spreadsheet_or_to_standard_output(lots: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert run("suggest", lots, "-n", "2", "-o", "-", "--quiet") == 0
    assert capfdbinary.readouterr().out.startswith(b"row,reason,kind,lot,weight,colour,file_digest\n")
    pytest.importorskip("openpyxl")
    path = lots.with_name("rows.xlsx")
    assert run("suggest", lots, "-n", "2", "-o", str(path), "--quiet") == 0
    assert read_table(path).names[:3] == ["row", "reason", "kind"]


def test_a_table_with_columns_of_the_same_names_keeps_its_rows_apart(lots: Path, out: Path) -> None:
    other, path = lots.with_name("other.csv"), lots.with_name("rows.csv")
    rows = [{"row": 500 + n, "label": "x", **row} for n, row in enumerate(read_rows(lots))]
    write_rows(other, rows)
    assert run("suggest", other, "-n", "4", "-o", str(path)) == 0
    suggested = read_rows(path)
    assert all(1 <= int(row["row"]) <= 120 and row["label"] == "x" for row in suggested)
    write_rows(path, [row | {"kind": kind_of(row["row"])} for row in suggested])
    assert run("label", other, *FAST, "-o", str(out), "--corrections", str(path)) == 0
    assert [read_rows(out)[int(row["row"]) - 1]["kind_label"] for row in suggested] == [
        kind_of(row["row"]) for row in suggested
    ]


def test_bad_requests_for_rows_are_one_line(lots: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for options, sentence in (
        (["-n", "0"], "-n must be"),
        (["--random-share", "2"], "--random-share must be"),
        (["--goal", "2"], "--goal must be"),
        (["--corrections", "none.csv"], "none.csv"),
    ):
        assert run("suggest", lots, *options) == 2
        error = capsys.readouterr().err
        assert sentence in error
        assert error.count("\n") == 1
    assert run("suggest", lots, "-n", "500", "--json") == 0
    printed = capsys.readouterr()
    assert len(json.loads(printed.out)["suggestions"]) == 108
    assert "note: 500 rows were wanted, 108 are unlabelled" in printed.err
    whole = write_rows(
        lots.with_name("whole.csv"), [row | {"kind": "ab"[n % 2]} for n, row in enumerate(read_rows(lots))]
    )
    assert run("suggest", whole) == 2
    assert "--target has a label in every row" in capsys.readouterr().err
    assert run("check", lots, target="colr") == 2
    assert "did you mean 'colour'?" in capsys.readouterr().err
    one = write_rows(
        lots.with_name("one.csv"), [row | {"kind": "a" if n < 9 else ""} for n, row in enumerate(read_rows(lots))]
    )
    assert run("check", one) == 2
    assert "has one class only" in capsys.readouterr().err
