"""How the commands refuse what they cannot do, and what they point out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from otprop.cli import main
from otprop.files import write_atomic
from tests.cli.conftest import read_rows

pytest.importorskip("pyarrow")

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
        ([], "otprop: the following arguments are required: COMMAND."),
        (["doctor", "--jsn"], "otprop doctor: there is no option --jsn; did you mean --json?"),
        (["predict", "a", "b", "c"], "otprop predict: unexpected argument: c; see --help."),
    ],
)
def test_a_slip_of_the_pen_is_told_in_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err == f"{words}\n"


def test_a_folder_is_no_file(lots: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["label", str(lots.parent), "--target", "y"]) == 2
    words = f"otprop label: {lots.parent} is a folder; name one for the results with -o, or one file in it.\n"
    assert capsys.readouterr().err == words
    empty = lots.parent / "empty"
    empty.mkdir()
    assert main(["label", str(empty), "--target", "y"]) == 2
    assert "names no file with an ending of a table" in capsys.readouterr().err


def test_a_map_that_needs_a_missing_package_is_refused_before_the_work(
    lots: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import otprop.cli.label as label

    monkeypatch.setattr(label, "find_spec", lambda name: None)
    monkeypatch.setattr(label, "read_input", lambda options: pytest.fail("the file was read"))
    assert main(["label", str(lots), "--target", "kind", "--map", "umap", "--report", str(lots.parent / "p.html")]) == 1
    assert "pip install '.[umap]' in a checkout of otprop" in capsys.readouterr().err


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


def test_what_changes_nothing_is_pointed_out(lots: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = ["--embedding", "", "--unlabeled", "zzz", "--unlabeled", "a"]
    assert main(["label", str(lots), "--target", "kind", *more, "--dry-run"]) == 0
    err = capsys.readouterr().err
    assert "note: without effect: --embedding, which is empty" in err
    assert "note: without effect: --unlabeled zzz; no cell of 'kind' says so" in err
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
    assert "no cell of 'kind' says so" not in err
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


def test_what_is_no_table_is_said_to_be(lots: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "notes.md"
    page.write_text("# Notes\n\n| a | b |\n|---|---|\n| 1 | x |\n", encoding="utf-8")
    pictures = tmp_path / "pics"
    pictures.mkdir()
    for number in range(3):
        (pictures / f"{number}.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    labels = np.array(["a", None, "b"], dtype=object)
    np.savez(tmp_path / "objects.npz", X=np.eye(3), kind=labels)
    for path, sentence in (
        (page, "notes.md is not a table: it is a text document by its name; save the table in it as CSV"),
        (pictures, "pics has no picture that can be read: 0.png is not a picture"),
        (
            pictures / "*.png",
            "*.png holds pictures ('0.png', '1.png', '2.png'), and no table; name their folder itself",
        ),
        (tmp_path / "objects.npz", "the array 'kind' holds Python objects, which are not read"),
    ):
        assert main(["label", str(path), "--target", "kind"]) == 2
        assert sentence in capsys.readouterr().err


def test_a_spreadsheet_of_an_old_name_is_written_as_xlsx(lots: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = lots.with_suffix(".xls")  # text, as some programs write it
    old.write_bytes(lots.read_bytes())
    command = ["label", str(old), "--target", "kind", "--method", "otp-paper"]
    assert main([*command, "-o", str(old.with_name("out.xls"))]) == 2
    assert "out.xls would be a spreadsheet of another format by its name" in capsys.readouterr().err
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
    assert f"{beside} is the input {beside}, which is never written" in capsys.readouterr().err
    assert beside.read_text() == "mine"


@pytest.mark.parametrize("output", ["--save", "--report"])
def test_tables_of_a_folder_are_never_written(lots: Path, capsys, output: str) -> None:
    before = lots.read_bytes()
    command = ["label", str(lots.parent), "--target", "kind", "-o", str(lots.parent / "out"), output, str(lots)]
    assert main([*command, "--force"]) == 2
    assert "is the input" in capsys.readouterr().err
    assert lots.read_bytes() == before


def test_a_cache_is_not_said_to_be_written(lots: Path, capsys, monkeypatch) -> None:
    def fail(*_, **__) -> None:
        write_atomic(lots.parent / "cache.npz", b"vectors")
        raise ValueError("it failed")

    monkeypatch.setattr("otprop.labelling.job.prepare", fail)
    assert main(["label", str(lots), "--target", "kind"]) == 1
    assert capsys.readouterr().err.strip() == "otprop label: it failed"
