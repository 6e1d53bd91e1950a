"""`otprop label --corrections`: labels that were corrected or added by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.commands import corrections, label, run, write_rows
from tests.cli.conftest import read_rows

pytest.importorskip("pandas")


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


def test_a_column_carries_which_labels_were_chosen(lots: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = read_rows(lots)
    write_rows(lots, [row | {"how": "yes" if n < 4 else ""} for n, row in enumerate(rows)])
    assert label(lots, out, "--chosen", "how", "--json") == 0
    summary = json.loads(capsys.readouterr().out)
    assert next(use for use in summary["columns"] if use["name"] == "how")["role"] == "skipped"
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
