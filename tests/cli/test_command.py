"""The command line: what cannot be parsed, and how a command ends."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from otprop.cli import main
from tests.cli.conftest import read_rows, sigint_reaches_children

pytest.importorskip("pyarrow")

QUICK = ["--target", "kind", "--set", "evidence=None"]
SWALLOWED = """
import signal, sys
import otprop.cli.label as label
from otprop.cli import main

def importing(options, arguments):
    try:
        signal.raise_signal(getattr(signal, sys.argv[1]))
    except KeyboardInterrupt:
        raise ValueError("a compiled module cannot be imported") from None

label.run_command = importing
sys.exit(main(sys.argv[2:]))
"""
WITHOUT_RICH = """
import sys
sys.modules["rich"] = None
import otprop
print(otprop.label.__name__)  # which needs none
from otprop.cli import main
sys.exit(main(sys.argv[1:]))
"""


FAST = ["--set", "evidence=None"]  # the geometry alone


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--target", "kin"], "did you mean 'kind'"),
        (["--method", "otpp"], "did you mean 'otp'"),
        (["--set", "n_neighbor=3"], "n_neighbors"),
        (["--set", "n_neighbors"], "name=value"),
        (["--set", "n_neighbors=0"], "--set n_neighbors must be 'auto' or an integer >= 1"),
        (["--method", "otp-paper", "--set", "alpha=-1"], "--set alpha must be"),
        (["--set", "class_prior=[1,2,3]"], "--class-prior"),
        (["--set", "cost=graph"], "which a table is not"),
        (["--set", "cost=precomputed"], "which a table is not"),
        (["--features", "wieght"], "did you mean 'weight'"),
        (["--ignore", "weight", "colour", "lot"], "no column"),
        (["--ignore", "weight", "colour"], "no column"),
        (["--class-prior", "a=0.5", "b=0.5"], "lacks a share for 'c'"),
        (["--class-prior", "a=x"], "class=share"),
        (["--class-prior", "a=0.1", "b=0.1", "c=0.1"], "has shares that add up to 0.3, not 1"),
        (["--abstain-below", "0.9", "--method", "otp-paper"], "has no meaning with --method otp-paper"),
        (["--abstain-below", "2"], "--abstain-below must be a finite number"),
        (["--json", "-o", "-"], "standard output"),
        (["--report", "same", "-o", "same"], "different names"),
        (["--report", "-"], "--report -"),
        (["--save", "-"], "--save -"),
        (["--map", "pca"], "--report"),
        (["--metric", "eucledian"], "--metric eucledian: there is no metric 'eucledian'; did you mean 'euclidean'"),
        (["--metric", "haversine", "--ignore", "colour", *FAST], "--metric='haversine' takes two columns"),
        (["--jobs", "0"], "--jobs 0"),
        (["--seed", "4294967296"], "4294967295"),
        (["--seed", "-1"], "--seed -1"),
        (["--seed", "x"], "--seed: invalid int value: 'x'"),
        (["--encoding", "foo"], "--encoding must be"),
        (["--delimiter", ";;"], "--delimiter must be one"),
        (["--quote", "ab"], "--quote must be one"),
        (["--decimal", "x"], "--decimal: invalid choice: 'x'"),
        (["--max-bytes", "0"], "--max-bytes must be"),
        (["-o", ""], "-o is empty"),
        (["--taget", "kind"], "there is no option --taget; did you mean --target?"),
        (["--xyz"], "there is no option --xyz; --help lists them."),
        (["--bogus"], "there is no option --bogus; --help lists them."),
        (["--features", "wing"], "--features wing: there is no column 'wing'; there are 'lot'"),
        (["--features", "weight", "weight"], "--features weight: is named twice."),
        (["--features", "weight", "--ignore", "weight"], "--features weight: this column is also in --ignore; take it"),
        (["--votes", "lot", "--ignore", "lot"], "--votes lot: this column is also in --ignore; take it"),
        (["--report", "page.pdf"], "page.pdf would not be a web page by its name, and the report is one; use .html"),
    ],
)
def test_a_command_that_cannot_be_run_is_refused_in_one_line(
    lots: Path, capsys: pytest.CaptureFixture[str], more: list[str], words: str
) -> None:
    assert main(["label", str(lots), *(["--target", "kind"] if "--target" not in more else []), *more]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert words in err
    assert err.count("\n") == 1
    assert err.startswith("otprop label: ")
    assert list(lots.parent.iterdir()) == [lots]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["lable", "lots.csv"], "otprop: there is no command 'lable'; did you mean label?"),
        (["label", "lots.csv"], "otprop label: the following arguments are required: --target."),
        (
            [],
            "otprop: a command is missing; there are label, suggest, check, studio, predict, doctor."
            " See otprop --help.",
        ),
        (["--versoin"], "otprop: there is no option --versoin; did you mean --version?"),
        (["doctor", "--jsn"], "otprop doctor: there is no option --jsn; did you mean --json?"),
        (["predict", "a", "b", "c"], "otprop predict: unexpected argument: c; see --help."),
    ],
)
def test_a_slip_of_the_pen_is_told_in_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err == f"{words}\n"


@pytest.mark.parametrize("option", [["--unlabeled", "--"], ["--unlabeled=--"]])
def test_two_dashes_can_mark_unlabelled_cells(lots: Path, option: list[str]) -> None:
    lines = lots.read_text().splitlines()
    lots.write_text("\n".join(f"{line}--" if line.endswith(",") else line for line in lines) + "\n")
    assert main(["label", str(lots), "--target", "kind", *option, *FAST, "--quiet"]) == 0
    assert {row["kind_label"] for row in read_rows(lots.with_name("lots.labelled.csv"))} == {"a", "b", "c"}


def test_an_argument_given_as_an_option_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", "--model", "lots.model", "lots.csv"]) == 2
    assert "there is no option --model: MODEL is the first argument, without a name; see" in capsys.readouterr().err
    assert main(["predict", "lots.model", "--file=lots.csv"]) == 2
    assert "there is no option --file: FILE is the second argument" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "status", "word"), [("SIGINT", 130, "interrupted"), ("SIGTERM", 143, "terminated")])
def test_a_signal_that_an_import_turns_into_another_error_is_still_a_signal(
    lots: Path, name: str, status: int, word: str
) -> None:
    command = [sys.executable, "-c", SWALLOWED, name, "label", str(lots), *QUICK]
    with sigint_reaches_children():
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == status
    assert done.stderr.startswith(f"otprop label: {word}. No file was written")


def test_the_handler_of_the_process_is_given_back(lots: Path) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    assert main(["label", str(lots), *QUICK, "--dry-run", "--quiet"]) == 0
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before


def test_a_command_without_rich_says_what_to_install(lots: Path) -> None:
    command = [sys.executable, "-c", WITHOUT_RICH, "label", str(lots), *QUICK]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "label\n")
    assert done.stderr == "otprop label: this command needs rich: pip install '.[files]' in a checkout of otprop\n"


def _label(path: Path, *more: str) -> int:
    return main(["label", str(path), "--target", "kind", *FAST, *more])


def test_an_unexpected_error_is_one_line_and_debug_shows_where(
    lots: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import otprop.labelling.job as job

    def broken(*anything: object) -> None:
        raise RuntimeError("of no known kind")

    monkeypatch.setattr(job.Job, "run", broken)
    assert _label(lots) == 1
    err = capsys.readouterr().err
    assert "RuntimeError: of no known kind" in err
    assert "Traceback" not in err
    assert _label(lots, "--debug") == 1
    assert "Traceback" in capsys.readouterr().err
