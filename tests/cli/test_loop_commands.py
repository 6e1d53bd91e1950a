"""`otprop suggest`, `otprop check` and `otprop label --corrections`."""

from __future__ import annotations

import csv
import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from otprop.cli import main
from otprop.cli.console import Messages
from otprop.files import TableError, read_table
from otprop.loop.labels_needed import LabelsNeeded
from tests.cli.conftest import read_rows

pytest.importorskip("pandas")

FAST = ["--set", "evidence=None"]


def run(command: str, path: Path, *more: str, target: str = "kind") -> int:
    return main([command, str(path), "--target", target, *more])


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.DictWriter(file, list(rows[0]))
        out.writeheader()
        out.writerows(rows)
    return path


def kind_of(number: str) -> str:
    """The true kind of a row of the file, counted from 1."""
    return "abc"[(int(number) - 1) % 3]


def corrections(path: Path, lots: Path, labels: dict[int, str], digest: str | None = None) -> Path:
    """Corrections as a page downloads them."""
    digest = read_table(lots).digest if digest is None else digest
    return write_rows(
        path, [{"row": row, "label": label, "was": "", "file_digest": digest} for row, label in labels.items()]
    )


@pytest.fixture
def out(lots: Path) -> Path:
    return lots.with_name("out.csv")


def label(lots: Path, out: Path, *more: str) -> int:
    return run("label", lots, *FAST, "-o", str(out), "--force", *more)


def test_corrections_are_labels_of_their_own_source(lots: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = corrections(lots.with_name("first.csv"), lots, {20: "c", 3: "a"})
    second = corrections(lots.with_name("second.csv"), lots, {20: "c", 31: "new"})
    assert label(lots, out, "--corrections", str(first), str(second), "--json") == 0
    printed = capsys.readouterr()
    rows = read_rows(out)
    assert [(rows[n]["kind"], rows[n]["kind_label"], rows[n]["kind_source"]) for n in (19, 2, 30, 0)] == [
        ("", "c", "corrected"),
        ("c", "a", "corrected"),
        ("", "new", "corrected"),
        ("a", "a", "given"),
    ]
    summary = json.loads(printed.out)
    assert (summary["given"], summary["corrected"]) == (14, 3)
    assert "14 labels given (3 by corrections), 106 rows labelled" in printed.err
    assert "note: labels of the corrections that 'kind' does not have: 'new'" in printed.err
    assert "corrections replace the given label of rows 3 (counted from 1)" in printed.err
    assert "stay as they are without --fill" in printed.err
    assert label(lots, out, "--corrections", str(first), "--fill") == 0
    assert [read_rows(out)[n]["kind"] for n in (0, 2, 19)] == ["a", "a", "c"]


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
    assert f"then: otprop label {lots} --target kind --corrections {path}" in printed.err
    write_rows(path, [row | {"kind": kind_of(row["row"]) if n else ""} for n, row in enumerate(rows)])
    assert label(lots, out, "--corrections", str(path)) == 0
    assert "1 of 10 rows have no label and are not used" in capsys.readouterr().err
    after = read_rows(out)
    assert [after[int(row["row"]) - 1]["kind_source"] for row in rows] == ["propagated"] + ["corrected"] * 9


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


def test_what_a_person_is_told_a_script_is_told_too(lots: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("suggest", lots, "-n", "2", "--json", "--goal", "0.1", target="ripeness") == 0
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert found["notes"][-1] == f"{lots} has no column 'ripeness' yet"
    assert "labels_needed" not in found
    assert "note: without effect: --goal; there are no two classes yet" in printed.err
    assert run("suggest", lots, "-n", "2", "--json", "--goal", "0.1") == 0
    needed = json.loads(capsys.readouterr().out)["labels_needed"]
    assert needed["error"] == 0.1
    assert 0 <= needed["low"] <= needed["value"] <= needed["high"] <= 108
    assert run("check", lots, "--json", "--delimiter", ",") == 0
    assert "column 'lot' has leading zeros, so it is read as text" in json.loads(capsys.readouterr().out)["notes"]
    assert run("suggest", lots, target="knd") == 2
    assert "--target knd: there is no column 'knd'; did you mean 'kind'? A new column" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("needed", "words"),
    [
        (LabelsNeeded(30, 10, 90), "About 30 more labels to an expected error of 0.05 (likely 10 to 90)."),
        (LabelsNeeded(330, 0, 330), "cannot be estimated yet (likely 0 to 330): one fit cannot show how fast"),
        (LabelsNeeded(80, 4, 200), "cannot be estimated yet (likely 4 to 200)"),
        (LabelsNeeded(0, 0, 0), "An expected error of 0.05 is reached already."),
        (LabelsNeeded(0, 0, 12), "is reached already, as far as can be said (likely 0 to 12 more labels)."),
        (LabelsNeeded(330, 80, 330), "takes at least 80 more labels, and perhaps all 330 rows left"),
    ],
)
def test_a_range_from_none_to_all_rows_is_no_estimate(
    needed: LabelsNeeded, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Messages(quiet=False).labels_needed(0.05, needed, 330)
    assert words in " ".join(capsys.readouterr().err.split())


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


def test_a_column_carries_which_labels_were_chosen(lots: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = read_rows(lots)
    write_rows(lots, [row | {"how": "yes" if n < 4 else ""} for n, row in enumerate(rows)])
    assert label(lots, out, "--chosen", "how", "--json") == 0
    summary = json.loads(capsys.readouterr().out)
    assert next(use for use in summary["columns"] if use["name"] == "how")["role"] == "left out"
    assert label(lots, out, "--chosen", "hwo") == 2
    assert "--chosen hwo: there is no column 'hwo'; did you mean 'how'?" in capsys.readouterr().err
    assert label(lots, out, "--chosen", "colour") == 2
    assert "--chosen must mark chosen labels" in capsys.readouterr().err


def test_an_output_can_say_which_labels_were_corrected(lots: Path, out: Path) -> None:
    path = corrections(lots.with_name("more.csv"), lots, {20: "b", 21: "c"})
    assert label(lots, out, "--corrections", str(path), "--fill") == 0
    again = lots.with_name("again.csv")
    rows = [row for row in read_rows(out) if row["kind_source"] != "propagated" or row["lot"] > "050"]
    rows = [row | {"kind": "" if row["kind_source"] == "propagated" else row["kind"]} for row in rows]
    write_rows(again, rows)
    summary = again.with_name("last.csv")
    assert label(again, summary, "--chosen", "kind_source", "--prefix", "next_") == 0


def test_bad_corrections_are_one_line_and_nothing_is_written(
    lots: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = lots.with_name("bad.csv")
    wrong: list[tuple[dict[int, str], str | None, str]] = [
        (
            {121: "a"},
            None,
            f"--corrections name the row '121' in {path}: {lots} has 120 rows, counted from 1, without the header.",
        ),
        ({20: "a"}, "0" * 64, f"{path} was made from another file than {lots}, or from an earlier state of it"),
    ]
    for labels, digest, sentence in wrong:
        corrections(path, lots, labels, digest)
        assert label(lots, out, "--corrections", str(path)) == 2
        error = capsys.readouterr().err
        assert sentence in error
        assert error.count("\n") == 1
    path.write_text("row,label\n20,a\n20,b\n")
    assert label(lots, out, "--corrections", str(path)) == 2
    assert (
        "--corrections have two labels for row 20 (counted from 1), 'a' and 'b': keep one." in capsys.readouterr().err
    )
    path.write_text("row,label\n20,\n21, \n")
    assert label(lots, out, "--corrections", str(path)) == 2
    assert (
        f"--corrections hold no label: every label of {path} is empty. Fill them in first." in capsys.readouterr().err
    )
    path.write_text("row,colour\n20,a\n")
    assert label(lots, out, "--corrections", str(path)) == 2
    assert "must have their labels in 'label' or 'kind', and a column 'row' counted from 1" in capsys.readouterr().err
    assert label(lots, out, "--corrections", str(path.with_name("none.csv"))) == 2
    assert "none.csv" in capsys.readouterr().err
    assert not out.exists()
    path.write_text("row,label\n20,b\n")
    assert label(lots, path, "--corrections", str(path)) == 2  # an input is never written
    assert path.read_text() == "row,label\n20,b\n"
    capsys.readouterr()
    assert label(lots, out, "--corrections", str(path)) == 0
    assert "does not say which file it is for (file_digest is missing)" in capsys.readouterr().err


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


def test_numbers_of_corrections_are_the_classes_of_their_value(
    lots: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = read_rows(lots)
    for row in rows:
        row["kind"] = {"a": "0", "b": "1", "c": "2", "": ""}[row["kind"]]
    write_rows(lots, rows)
    filled = corrections(lots.with_name("corrections.csv"), lots, {1: "0.0", 61: "0.0", 62: "1.0", 63: "3.0"})
    assert label(lots, out, "--corrections", str(filled)) == 0
    found = read_rows(out)
    assert [found[row]["kind_label"] for row in (60, 61, 62)] == ["0", "1", "3.0"]
    assert found[0]["kind_source"] == "given"
    notes = capsys.readouterr().err
    assert "matched to the classes: '0.0' is '0', '1.0' is '1'" in notes
    assert "that 'kind' does not have: '3.0'" in notes


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


def test_a_word_for_no_label_is_no_correction(lots: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = read_rows(lots)
    row = next(number for number, one in enumerate(rows, start=1) if one["kind"])
    path = corrections(lots.with_name("corrections.csv"), lots, {row: "NA", 100: "?", 101: "a"})
    assert label(lots, out, "--corrections", str(path), "--unlabeled", "?", "--fill") == 0
    assert "2 of 3 rows have no label and are not used" in capsys.readouterr().err
    assert read_rows(out)[row - 1]["kind"] == rows[row - 1]["kind"]
    corrections(path, lots, {row: "NA"})
    assert label(lots, out, "--corrections", str(path), "--force") == 2
    assert "hold no label: every label of" in capsys.readouterr().err


def test_labels_that_a_fit_filled_in_are_no_sample(lots: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    n_given = sum(bool(row["kind"]) for row in read_rows(lots))
    assert label(lots, out, "--fill", "--abstain-below", "0.5") == 0
    capsys.readouterr()
    rows = read_rows(out)
    rows[-1]["kind"] = ""
    write_rows(out, rows)
    assert run("label", out, "-o", str(out.with_name("next.csv")), "--chosen", "kind_source", "--prefix", "next_") == 0
    judged = capsys.readouterr().err.partition("estimated from ")[2].split()[0]
    assert int(judged) <= n_given


def test_a_list_of_no_issues_is_no_error(lots: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = lots.with_name("none.csv")
    path.write_text("row,label,given,suggested,probability,file_digest\n")
    assert label(lots, out, "--corrections", str(path)) == 0, capsys.readouterr().err
