"""Options that commands share: what is read, and where outputs go."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from otprop.cli import main

pytest.importorskip("pyarrow")


def test_a_folder_is_no_file(lots: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["label", str(lots.parent), "--target", "y"]) == 2
    words = f"otprop label: {lots.parent} is a folder; name one for the results with -o, or one file in it.\n"
    assert capsys.readouterr().err == words
    empty = lots.parent / "empty"
    empty.mkdir()
    assert main(["label", str(empty), "--target", "y"]) == 2
    assert "no file has the ending of a table" in capsys.readouterr().err


def test_what_changes_nothing_is_pointed_out(lots: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = ["--embedding", "", "--unlabeled", "zzz", "--unlabeled", "a"]
    assert main(["label", str(lots), "--target", "kind", *more, "--dry-run"]) == 0
    err = capsys.readouterr().err
    assert "note: without effect: --embedding, which is empty" in err
    assert "note: without effect: --unlabeled zzz, as no cell of 'kind' holds it" in err
    assert "--unlabeled a" not in err


def test_options_of_text_files_are_pointed_out_where_there_is_no_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "lots.npz"
    weight = np.arange(30) // 10 * 10.0 + np.random.default_rng(0).normal(size=30)
    np.savez(path, weight=weight, kind=np.where(np.arange(30) % 10 < 3, np.arange(30) // 10, -1))
    more = ["--unlabeled", "-1", "--delimiter", ";", "--encoding", "utf-8", "--dry-run"]
    assert main(["label", str(path), "--target", "kind", *more]) == 0
    err = capsys.readouterr().err
    assert f"note: without effect: --delimiter, --encoding; {path} is not a text file" in err
    assert "no cell of 'kind' holds it" not in err
    assert "1 column used (1 number), 1 feature." in err


def test_the_formats_are_those_that_can_be_read() -> None:
    from otprop.cli._options import FORMATS
    from otprop.files import FORMATS as KNOWN

    assert set(FORMATS) == set(KNOWN)


@pytest.mark.parametrize("output", ["a.csv", "folder/out.csv"])
def test_an_output_through_links_that_loop_is_refused_in_one_line(output, tmp_path, capsys):
    for one, other in (("a.csv", "b.csv"), ("b.csv", "a.csv"), ("folder", "loop"), ("loop", "folder")):
        (tmp_path / one).symlink_to(tmp_path / other)
    (tmp_path / "t.csv").write_text("x,y\n1,a\n2,b\n3,\n")
    assert main(["label", str(tmp_path / "t.csv"), "--target", "y", "-o", str(tmp_path / output)]) == 1
    error = capsys.readouterr().err
    assert "Too many levels of symbolic links" in error
    assert error.count("\n") == 1


def test_a_spreadsheet_of_an_old_name_is_written_as_xlsx(lots: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = lots.with_suffix(".xls")  # text, as some programs write it
    old.write_bytes(lots.read_bytes())
    command = ["label", str(old), "--target", "kind", "--method", "otp-paper"]
    assert main([*command, "-o", str(old.with_name("out.xls"))]) == 2
    assert "out.xls has the ending of a spreadsheet of another format" in capsys.readouterr().err
    assert main([*command, "--dry-run"]) == 0
    assert "would write the table to" in (printed := capsys.readouterr().err)
    assert ".labelled.xlsx" in printed


@pytest.mark.parametrize("option", ["--votes-file", "--vectors", "--text-model", "--image-model"])
@pytest.mark.parametrize("output", ["-o", "--save", "--report"])
def test_files_beside_the_table_are_never_written(lots: Path, capsys, option: str, output: str) -> None:
    (beside := lots.parent / "beside.csv").write_text("mine")
    others = [] if output == "-o" else ["-o", str(lots.parent / "out.csv")]
    command = ["label", str(lots), "--target", "kind", option, str(beside), output, str(beside), "--force", *others]
    assert main(command) == 2
    assert f"{beside} is an input and is never overwritten" in capsys.readouterr().err
    assert beside.read_text() == "mine"


@pytest.mark.parametrize("output", ["--save", "--report"])
def test_tables_of_a_folder_are_never_written(lots: Path, capsys, output: str) -> None:
    before = lots.read_bytes()
    command = ["label", str(lots.parent), "--target", "kind", "-o", str(lots.parent / "out"), output, str(lots)]
    assert main([*command, "--force"]) == 2
    assert "is an input" in capsys.readouterr().err
    assert lots.read_bytes() == before


@pytest.mark.parametrize("command", ["label", "suggest", "check"])
def test_an_output_with_an_unknown_ending_is_refused_before_any_work(
    command: str, lots: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = lots.with_name("out.parqet")
    assert main([command, str(lots), "--target", "kind", "-o", str(out)]) == 2
    printed = capsys.readouterr().err
    assert f"{out} has the unknown ending '.parqet'; did you mean '.parquet'? Use .csv, .tsv, .parquet" in printed
    assert [path.name for path in lots.parent.iterdir()] == [lots.name]


def test_the_help_says_when_the_table_goes_to_standard_output(
    lots: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["label", "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "default: NAME.labelled.EXT next to FILE, - if FILE is -" in text
    with lots.open() as file:
        monkeypatch.setattr("sys.stdin", file)
        assert main(["label", "-", "--target", "kind", "--set", "evidence=None"]) == 0
    assert capsys.readouterr().out.startswith("lot,weight,colour,kind,kind_label,")
