"""`otprop label`: what it writes and says, and how it refuses."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from otprop._progress import ProgressCallback
from otprop.cli import main
from tests.cli.conftest import open_to_reader, read_rows, sigint_reaches_children, stopped_at_many_moments

pytest.importorskip("pyarrow")

FAST = ["--set", "evidence=None"]  # the geometry alone
SCRIPT = [sys.executable, "-m", "otprop"]


def _label(path: Path, *more: str) -> int:
    return main(["label", str(path), "--target", "kind", *FAST, *more])


def test_the_empty_cells_get_labels_and_everything_else_stays(lots: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = lots.read_bytes()
    assert _label(lots) == 0
    assert lots.read_bytes() == before
    out, err = capsys.readouterr()
    assert out == ""
    assert "12 labels given, 108 rows labelled" in err
    assert "lot (" in err  # the identifier was left out, and named
    written = lots.with_name("lots.labelled.csv")
    for old, new in zip(before.splitlines(), written.read_bytes().splitlines(), strict=True):
        assert new.startswith(old + b",")
    rows = read_rows(written)
    assert [row["kind_label"] for row in rows] == [("a", "b", "c")[number % 3] for number in range(120)]
    assert {row["kind_source"] for row in rows[:12]} == {"given"}
    assert {row["kind_source"] for row in rows[12:]} == {"propagated"}
    assert {row["kind_round"] for row in rows[:12]} == {"0"}
    assert all(0 <= float(row[f"kind_{what}"]) <= 1 for row in rows for what in ("certainty", "confidence"))
    assert list(rows[0])[4:] == [
        "kind_label",
        "kind_certainty",
        "kind_confidence",
        "kind_novelty",
        "kind_round",
        "kind_source",
    ]


def test_fill_writes_into_the_target_column_itself(lots: Path, tmp_path: Path) -> None:
    out = tmp_path / "filled.csv"
    assert _label(lots, "--fill", "-o", str(out), "--probabilities", "--prefix", "new ") == 0
    rows = read_rows(out)
    assert [row["kind"] for row in rows] == [("a", "b", "c")[number % 3] for number in range(120)]
    assert list(rows[0])[4:8] == ["new certainty", "new confidence", "new novelty", "new round"]
    assert sum(float(rows[40][f"new p_{name}"]) for name in "abc") == pytest.approx(1, abs=1e-5)


def test_rows_under_the_confidence_asked_for_stay_unlabelled(lots: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    assert _label(lots, "--abstain-below", "1", "-o", str(out)) == 0
    rows = read_rows(out)[12:]
    abstained = [row for row in rows if row["kind_source"] == "abstained"]
    assert abstained
    assert all(row["kind_label"] == "" and row["kind_round"] == "-1" for row in abstained)


def test_the_algorithm_of_the_paper_can_label(lots: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    assert main(["label", str(lots), "--target", "kind", "--method", "otp-paper", "-o", str(out), "--quiet"]) == 0
    labels = [row["kind_label"] for row in read_rows(out)]
    assert np.mean([label == ("a", "b", "c")[number % 3] for number, label in enumerate(labels)]) > 0.6


def test_a_summary_for_scripts_is_json_on_standard_output(lots: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _label(lots, "--json", "--quiet") == 0
    out, err = capsys.readouterr()
    assert err == ""
    found = json.loads(out)
    assert (found["given"], found["labelled"], found["abstained"]) == (12, 108, 0)
    of_a = found["classes"]["a"]
    assert (of_a["given"], of_a["labelled"]) == (4, 36)
    assert of_a["precision_range"][0] <= of_a["precision"] <= of_a["precision_range"][1] == 1.0
    assert 0 < of_a["recall"] < 1 < of_a["expected"]
    assert {use["name"]: use["role"] for use in found["columns"]}["weight"] == "number"
    assert found["output"] == str(lots.with_name("lots.labelled.csv"))
    assert found["parameters"]["evidence"] is None
    assert found["parameters"]["epsilon"] == 1.0  # as used
    assert sum(found["parameters"]["class_prior"].values()) == pytest.approx(1)
    assert list(found["parameters"]["class_prior"]) == ["a", "b", "c"]


def test_a_dry_run_tells_a_script_its_plan(lots: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _label(lots, "--json", "--dry-run", "--class-prior", "a=1", "b=1", "c=2") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["dry_run"] is True
    assert (found["rows"], found["given"], found["to_label"]) == (120, 12, 108)
    assert found["classes"]["a"] == {"given": 4}
    assert found["parameters"]["class_prior"] == {"a": 0.25, "b": 0.25, "c": 0.5}
    assert [use["name"] for use in found["columns"]] == ["lot", "weight", "colour"]
    assert list(lots.parent.iterdir()) == [lots]


def test_a_dry_run_says_what_it_would_do_and_writes_nothing(lots: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _label(lots, "--dry-run", "--report", "page.html") == 0
    err = capsys.readouterr().err
    assert "120 rows, 12 labelled with 3 classes, 108 to label by otp" in err
    assert "would write the table to" in err
    assert "page.html" in err
    assert list(lots.parent.iterdir()) == [lots]


def test_the_page_shows_the_command_and_the_rows(lots: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert _label(lots, "--report", str(page)) == 0
    text = page.read_text(encoding="utf-8")
    assert "otprop label" in text
    assert "lots.csv" in text
    assert str(tmp_path) not in text  # names of files only: a page goes to other people
    assert "http://" not in text.replace("http://www.w3.org", "")
    assert "https://" not in text
    assert re.search(r"None, used: a 0\.\d+, b 0\.\d+, c 0\.\d+", text)  # the classes' shares by name


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("weight,kind\n", "no rows"),
        ("weight,kind\n1,\n2,\n", "no label"),
        ("weight,kind\n1,a\n2,a\n3,\n", "one class"),
        ("weight,kind\n1,a\n2,b\n", "nothing"),
        ("weight,weight,kind\n1,1,a\n2,2,b\n3,3,\n", "'weight'"),
        ("weight,kind\n1,a\n2,b,7\n3,\n", "row 2"),
        ("weight,kind\n1,a\n2\n3,\n", "row 2"),
        ("weight,kind\n1,a\n2,b\x00\n3,\n", "NUL"),
        ("id,kind\nx,a\ny,b\nz,\n", "identifier"),
    ],
)
def test_a_file_that_cannot_be_labelled_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    assert main(["label", str(path), "--target", "kind"]) in (1, 2)
    out, err = capsys.readouterr()
    assert out == ""
    assert words in err
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == [path]


def test_labels_that_differ_only_in_case_are_pointed_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "case.csv"
    path.write_text("weight,kind\n1,a\n1.1,a\n2,A\n2.1,A\n3,b\n3.1,b\n1.05,\n3.05,\n")
    assert main(["label", str(path), "--target", "kind", *FAST]) == 0
    assert "'A'" in capsys.readouterr().err


def test_an_existing_output_is_kept_unless_forced(lots: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = lots.with_name("out.csv")
    out.write_text("precious")
    assert _label(lots, "-o", str(out)) == 2
    assert out.read_text() == "precious"
    assert "--force" in capsys.readouterr().err
    assert _label(lots, "-o", str(out), "--force") == 0
    assert len(read_rows(out)) == 120


def test_the_input_is_never_written(lots: Path) -> None:
    before = lots.read_bytes()
    for option in ("-o", "--report", "--save"):
        assert _label(lots, option, str(lots), "--force") == 2
    assert lots.read_bytes() == before


def test_the_expected_error_says_that_it_assumes_a_label_of_every_class(
    lots: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _label(lots) == 0
    assert "Expected error of the new labels, if every class has a label: " in capsys.readouterr().err
    lines = lots.read_text().splitlines()
    lots.write_text("\n".join([*lines[:-3], *(f"{line}once {n}" for n, line in enumerate(lines[-3:]))]) + "\n")
    assert _label(lots, "-o", str(lots.with_name("again.csv"))) == 0
    err = capsys.readouterr().err
    assert "held-out labels." in err  # the error counts rows of classes without a label
    assert "if every class has a label" not in err


def test_what_was_written_before_a_failure_is_named(
    lots: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from otprop.files import Table, TableError

    def full(*anything: object, **more: object) -> None:
        raise TableError("cannot write out.csv: No space left on device") from OSError(28, "No space left on device")

    model, page = tmp_path / "kinds.model", tmp_path / "page.html"
    monkeypatch.setattr(Table, "write", full)
    assert _label(lots, "--save", str(model), "--report", str(page), "--quiet") == 1
    assert capsys.readouterr().err.endswith(f"No space left on device. Written before that: {model}, {page}.\n")


@pytest.mark.parametrize(("ending", "words"), [("xlsx", "cannot be in an Excel cell"), ("npz", "name of an array")])
def test_a_format_that_cannot_hold_the_table_is_refused_before_the_work(
    lots: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, ending: str, words: str
) -> None:
    if ending == "xlsx":
        pytest.importorskip("openpyxl")
    lots.write_text(lots.read_text().replace("red", "\x1bred").replace("weight", "kg/lot"))
    monkeypatch.delattr("otprop.labelling.job.Job.run")  # it is not called
    model, page = lots.with_name("kinds.model"), lots.with_name("page.html")
    outputs = ["-o", str(lots.with_name(f"out.{ending}")), "--save", str(model), "--report", str(page)]
    for more in ([], ["--dry-run"]):
        assert _label(lots, *outputs, *more) == 2
        assert words in capsys.readouterr().err
    assert list(lots.parent.iterdir()) == [lots]


def test_a_page_that_fails_leaves_nothing_behind(
    lots: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import otprop.report.label_page as page

    def interrupted(*anything: object, **more: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(page, "make_page", interrupted)
    assert _label(lots, "--save", str(tmp_path / "kinds.model"), "--report", str(tmp_path / "page.html")) == 130
    assert "No file was written" in capsys.readouterr().err
    assert list(lots.parent.iterdir()) == [lots]


def test_the_bar_shows_the_steps_of_the_estimator(lots: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import otprop.cli.label as label
    from otprop import OTP
    from otprop.labelling.methods import METHODS

    class Reporting(OTP):
        """An estimator that reports one step."""

        def set_progress(self, callback: ProgressCallback | None) -> None:
            self.calls = [*getattr(self, "calls", []), callback]

        def fit(self, X: Any, y: Any, sample_weight: Any = None, **more: Any) -> Any:
            self.calls[-1](3, 108, "round 1")
            return super().fit(X, y)

    steps: list[tuple[float, float, str]] = []

    @contextmanager
    def bar(quiet: bool) -> Iterator[ProgressCallback]:
        yield lambda *step: steps.append(step)

    made = Reporting(evidence=None)
    monkeypatch.setitem(METHODS, "otp", lambda: made)
    monkeypatch.setattr(label, "bar", bar)
    assert _label(lots, "--quiet") == 0
    assert [step for _, _, step in steps] == [
        *(f"reading {lots}", "making features", "fitting", "round 1", "writing"),
    ]
    assert (3, 108, "round 1") in steps
    assert made.calls[-1] is None  # no model keeps the callback


def test_warnings_of_the_estimator_are_notes(
    lots: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from otprop import OTP

    fit = OTP.fit

    def warning_fit(self: OTP, X: Any, y: Any, **more: Any) -> OTP:
        warnings.warn("confidence_ is not calibrated", UserWarning, stacklevel=2)
        return fit(self, X, y, **more)

    monkeypatch.setattr(OTP, "fit", warning_fit)
    assert _label(lots) == 0
    assert "note: confidence_ is not calibrated" in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_ctrl_c_is_answered_at_once_and_leaves_the_old_output(lots: Path) -> None:
    out, pipe = lots.with_name("out.csv"), lots.with_name("pipe.csv")
    out.write_text("precious")
    os.mkfifo(pipe)  # it waits for the rows, so that the moment is known
    command = [*SCRIPT, "label", str(pipe), "--target", "kind", "-o", str(out), "--force"]
    with sigint_reaches_children():
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    with open_to_reader(pipe, process) as rows:
        rows.write(lots.read_bytes()[:100])
        rows.flush()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=600)
    assert process.returncode == 130
    assert "otprop label: interrupted. No file was written" in err
    assert "Traceback" not in err
    assert out.read_text() == "precious"


def test_an_interrupted_fit_writes_nothing(lots: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from otprop import OTP

    def interrupted(*anything: object, **more: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(OTP, "fit", interrupted)
    assert _label(lots) == 130
    assert list(lots.parent.iterdir()) == [lots]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_at_any_moment_there_is_the_old_output_or_the_new_one(lots: Path) -> None:
    """Some moments; `make fuzz` tries hundreds."""
    out, before = lots.with_name("out.csv"), lots.read_bytes()
    command = ["label", str(lots), "--target", "kind", *FAST, "-o", str(out), "--force", "--quiet"]
    found = stopped_at_many_moments("SIGKILL", out, command)
    assert found[0][0] == -signal.SIGKILL
    assert {content for _, content, _ in found} <= {"old", "new"}
    assert lots.read_bytes() == before
