"""What reaches the terminal and the disk: escapes, file names, permissions, signals, a missing library."""

from __future__ import annotations

import gzip
import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from otprop.cli import main
from tests.cli.conftest import open_to_reader, read_rows, stopped_at_many_moments

pytest.importorskip("pyarrow")

SCRIPT = [sys.executable, "-m", "otprop"]
QUICK = ["--target", "kind", "--set", "evidence=None"]
ESCAPE, OVERRIDE = "\x1b[31mred\x1b[0m", "\u202eevil\u2066"


def test_names_from_a_file_print_no_escapes(lots: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hostile = lots.with_name(f"lots{OVERRIDE}.csv")
    text = (
        lots.read_text()
        .replace("kind", f"k{ESCAPE}")
        .replace(",a\n", f",a{ESCAPE}\n")
        .replace("lot,", f"lot{OVERRIDE},")
    )
    hostile.write_text(text)
    target = f"k{ESCAPE}"
    for more in (
        [],
        ["--dry-run"],
        ["--target", f"{target}x"],
        ["--class-prior", f"x{ESCAPE}=1"],
        ["--method", ESCAPE],
    ):
        options = ["--target", target, "--method", "otp-paper", "--force", *more]
        main(["label", str(hostile), *options])
        out, err = capsys.readouterr()
        assert "x1b" in err or "u202e" in err
        assert not {"\x1b", "\u202e", "\u2066"} & set(out + err)
    for command in ("suggest", "check"):
        assert (
            main([command, str(hostile), "--target", target, "-o", str(lots.with_name(f"{ESCAPE}.csv")), "--force"])
            == 0
        )
        out, err = capsys.readouterr()
        assert r"\x1b[31mred" in err
        assert not {"\x1b", "\u202e", "\u2066"} & set(out + err)
    model = lots.with_name("kinds.model")
    assert main(["label", str(hostile), "--target", target, "--force", "--save", str(model)]) == 0
    capsys.readouterr()
    assert main(["predict", str(model), str(hostile), "--force", "--prefix", "x"]) == 0
    err = capsys.readouterr().err
    assert r"a\x1b[31mred" in err
    assert "\x1b" not in err


@pytest.mark.skipif(sys.platform != "linux", reason="needs file names of any bytes")
def test_a_file_name_that_is_no_utf_8_can_be_summed_up(lots: Path) -> None:
    name = os.fsencode(lots.parent) + b"/lots\xff.csv"
    with open(name, "wb") as file:
        file.write(lots.read_bytes())
    done = subprocess.run([*SCRIPT, "label", name, *QUICK, "--json"], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.decode("utf-8"))
    assert os.fsencode(found["input"]) == name
    assert os.fsencode(found["output"]) == os.fsencode(lots.parent) + b"/lots\xff.labelled.csv"
    assert rb"lots\udcff" in done.stderr


def test_a_packed_file_that_grows_too_large_is_refused_with_the_option_that_allows_it(
    lots: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packed = lots.with_name("packed.csv.gz")
    packed.write_bytes(gzip.compress(lots.read_bytes()))
    for command in ("label", "suggest", "check"):
        assert main([command, str(packed), "--target", "kind", "--max-bytes", "1000"]) in (1, 2)
        err = capsys.readouterr().err
        assert "has more than 1,000 bytes once it is unpacked" in err
        assert "allow more with --max-bytes" in err
    assert main(["label", str(packed), *QUICK, "--max-bytes", "100000", "--quiet"]) == 0


@pytest.mark.skipif(os.name != "posix", reason="needs permissions")
def test_no_output_can_be_read_by_more_people_than_the_input(lots: Path) -> None:
    lots.chmod(0o600)
    outputs = [lots.with_name(name) for name in ("out.csv", "page.html", "kinds.model")]
    options = ["-o", str(outputs[0]), "--report", str(outputs[1]), "--save", str(outputs[2]), "--quiet"]
    assert main(["label", str(lots), *QUICK, *options]) == 0
    assert [stat.S_IMODE(path.stat().st_mode) for path in outputs] == [0o600] * 3
    for command in ("suggest", "check"):  # their outputs hold rows and labels of the input
        found = lots.with_name(f"{command}.csv")
        assert main([command, str(lots), "--target", "kind", "-o", str(found), "--quiet"]) == 0
        assert stat.S_IMODE(found.stat().st_mode) == 0o600
    lots.chmod(0o644)
    assert main(["label", str(lots), *QUICK, "-o", str(lots.with_name("open.csv")), "--quiet"]) == 0
    assert stat.S_IMODE(lots.with_name("open.csv").stat().st_mode) == 0o644


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_sigterm_is_answered_like_ctrl_c(lots: Path) -> None:
    out, pipe = lots.with_name("out.csv"), lots.with_name("pipe.csv")
    out.write_text("precious")
    os.mkfifo(pipe)  # it waits for the rows, so that the moment is known
    command = [*SCRIPT, "label", str(pipe), *QUICK, "-o", str(out), "--force"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    with open_to_reader(pipe, process) as rows:
        rows.write(lots.read_bytes()[:100])
        rows.flush()
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=600)
    assert process.returncode == 143
    assert err == "otprop label: terminated. No file was written or changed.\n"
    assert out.read_text() == "precious"
    assert {path.name for path in lots.parent.iterdir()} == {"lots.csv", "out.csv", "pipe.csv"}


WRITING = """
import signal, sys
import otprop.files._table as table
from otprop.cli import main

def stopped(table, out, added, *anything, **more):
    from otprop.files import write_atomic
    def half(file):
        file.write(b"half a table")
        file.flush()
        signal.raise_signal(signal.SIGTERM)
    write_atomic(out, half, True)

table.Table.write = stopped
sys.exit(main(sys.argv[1:]))
"""


def test_sigterm_while_a_file_is_written_leaves_no_part_of_it(lots: Path) -> None:
    out, model = lots.with_name("out.csv"), lots.with_name("kinds.model")
    command = [sys.executable, "-c", WRITING, "label", str(lots), *QUICK, "-o", str(out), "--save", str(model)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (143, f"otprop label: terminated. Written before that: {model}.\n")
    assert {path.name for path in lots.parent.iterdir()} == {"lots.csv", "kinds.model"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_sigterm_at_any_moment_leaves_the_old_output_or_the_new_one_and_nothing_else(lots: Path) -> None:
    out = lots.with_name("out.csv")
    command = ["label", str(lots), *QUICK, "-o", str(out), "--force", "--quiet"]
    found = stopped_at_many_moments("SIGTERM", out, command)
    assert {status for status, _, _ in found} <= {0, 143, -signal.SIGTERM}  # the last: before a line of ours was run
    assert 143 in {status for status, _, _ in found}
    assert {content for _, content, _ in found} <= {"old", "new"}
    assert all(names == ["lots.csv", "out.csv"] for _, _, names in found)


def test_a_loser_of_a_race_claims_nothing(
    lots: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import otprop.labelling.job as job

    out, run = lots.with_name("out.csv"), job.Job.run

    def raced(self: job.Job, *anything: object) -> object:
        out.write_text("of another process")
        return run(self)

    monkeypatch.setattr(job.Job, "run", raced)
    assert main(["label", str(lots), *QUICK, "-o", str(out)]) == 2
    assert "Written before that" not in capsys.readouterr().err
    assert out.read_text() == "of another process"


def test_labels_are_merged_and_numbers_taken_as_classes_on_request(
    lots: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = lots.read_text()
    lots.write_text(text.replace(",a\n", ",apple\n").replace(",apple\n", ",Apple\n", 1))
    assert main(["label", str(lots), *QUICK, "--dry-run"]) == 0
    assert (
        "'Apple', 'apple'; they are separate classes; to make them one, use --merge-labels" in capsys.readouterr().err
    )
    out = lots.with_name("merged.csv")
    assert main(["label", str(lots), *QUICK, "--merge-labels", "-o", str(out)]) == 0
    assert {row["kind_label"] for row in read_rows(out)} == {"apple", "b", "c"}
    assert main(["label", str(lots), *QUICK, "--merge-labels", "--fill", "-o", str(out), "--force"]) == 0
    filled = [row["kind"] for row in read_rows(out)]
    assert filled.count("Apple") == 1  # a cell that was filled stays as it was
    assert set(filled) == {"Apple", "apple", "b", "c"}
    numbers = lots.with_name("numbers.csv")
    numbers.write_text("weight,kind\n" + "".join(f"{n / 7:.2f},{n if n < 20 else ''}\n" for n in range(60)))
    assert main(["label", str(numbers), *QUICK]) == 2
    assert "where each number is a class, use --numeric-classes." in capsys.readouterr().err
    assert main(["label", str(numbers), *QUICK, "--numeric-classes"]) == 0
