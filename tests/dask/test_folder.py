"""`otprop label` and `otprop predict` of a folder."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import otprop
from otprop.cli import folder as module
from otprop.cli import main
from otprop.dask import _cluster

LENGTHS = [300, 1, 400, 499]
FAST = ["--set", 'evidence=["linear"]']


@pytest.fixture(autouse=True)
def in_this_process(client, monkeypatch):
    """Use the cluster of the tests in place of a new one of processes."""

    @contextmanager
    def found(options):
        yield client

    monkeypatch.setattr(module, "_client", found)


def label(source, out, *more):
    return main(["label", str(source), "--target", "kind", "--ignore", "truth", *FAST, "-o", str(out), *more])


def read(out):
    paths = sorted(path for path in out.iterdir() if path.is_file())
    frames = [pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path) for path in paths]
    return pd.concat(frames, ignore_index=True)


def contents(out):
    return {path.name: path.read_bytes() for path in sorted(out.iterdir()) if path.is_file()}


def message(capsys):
    return " ".join(capsys.readouterr().err.split())


def test_every_file_gets_its_output_and_every_other_cell_stays(folder, tmp_path, capsys):
    source, out = folder(LENGTHS), tmp_path / "out"
    assert label(source, out, "--landmarks", "400", "--json", "--report", str(tmp_path / "page.html")) == 0
    printed = capsys.readouterr()
    summary = json.loads(printed.out)
    assert [path.name for path in sorted(out.glob("*.parquet"))] == [f"part-0{number}.parquet" for number in range(4)]
    for path in source.iterdir():
        before, after = pd.read_parquet(path), pd.read_parquet(out / path.name)
        pd.testing.assert_frame_equal(after[before.columns], before)
    found = read(out)
    assert list(found.columns)[-4:] == ["kind_label", "kind_certainty", "kind_confidence", "kind_source"]
    assert (found["kind_label"] == found["truth"]).mean() > 0.85
    given = found["kind"].notna()
    assert (found["kind_label"] == found["kind"])[given].all()
    assert set(found["kind_source"][given]) == {"given"}
    assert set(found["kind_source"][~given]) == {"propagated"}
    assert summary["rows"] == 1200
    assert summary["given"] == given.sum()
    assert summary["labelled"] == (~given).sum()
    assert summary["landmarks"] == 400 + given.sum()
    assert 0 < summary["expected_error"] < 0.3
    assert "4 files, 1200 rows" in printed.err
    assert (tmp_path / "page.html").stat().st_size > 10_000


def test_with_all_rows_as_landmarks_the_labels_are_those_of_one_file(folder, tmp_path):
    source, out = folder(LENGTHS), tmp_path / "out"
    assert label(source, out) == 0
    whole = read(source)
    expected = otprop.label(whole, "kind", ignore=["truth"], settings={"evidence": ["linear"]}).table
    found = read(out)
    for name in ("kind_label", "kind_confidence", "kind_certainty"):
        assert found[name].tolist() == expected[name].tolist()


def test_how_rows_are_cut_into_files_does_not_matter(folder, tmp_path):
    tables = []
    for number, lengths in enumerate(([1200], [1, 256, 257, 686])):
        source = folder(lengths, name=f"in{number}")
        assert label(source, tmp_path / f"out{number}", "--landmarks", "300", "--probabilities") == 0
        tables.append(read(tmp_path / f"out{number}"))
    added = [name for name in tables[0].columns if name.startswith("kind_")]
    assert len(added) == 7
    pd.testing.assert_frame_equal(tables[0][added], tables[1][added])


def test_text_files_are_read_as_the_first_one(folder, tmp_path):
    source = folder(LENGTHS, ending="csv")
    assert label(source, tmp_path / "out", "--landmarks", "400", "--fill") == 0
    found = read(tmp_path / "out")
    assert (found["kind"] == found["truth"]).mean() > 0.85
    assert list(found.columns)[-3:] == ["kind_certainty", "kind_confidence", "kind_source"]


def test_abstained_rows_stay_empty(folder, tmp_path):
    assert label(folder(LENGTHS), tmp_path / "out", "--landmarks", "400", "--abstain-below", "0.9") == 0
    found = read(tmp_path / "out")
    unsure = found["kind_source"] == "abstained"
    assert unsure.any()
    assert found["kind_label"][unsure].isna().all()
    assert (found["kind_confidence"][unsure] < 0.9).all()


def test_a_second_run_touches_nothing_and_finishes_what_is_missing(folder, tmp_path, capsys):
    source, out, model = folder(LENGTHS), tmp_path / "out", ["--save", str(tmp_path / "trees.model")]
    assert label(source, out, "--landmarks", "300", *model) == 0
    before, times = contents(out), {path.name: path.stat().st_mtime_ns for path in out.glob("*.parquet")}
    (out / "part-02.parquet").unlink()
    (out / ".part-02.parquet.0123abcd.part").write_bytes(b"half")
    capsys.readouterr()
    assert label(source, out, "--landmarks", "300", *model) == 0
    assert "4 files (3 done before), 1200 rows" in message(capsys)
    assert contents(out) == before
    for name, moment in times.items():
        assert ((out / name).stat().st_mtime_ns == moment) == (name != "part-02.parquet")


def test_a_changed_folder_or_other_options_are_refused(folder, tmp_path, capsys):
    source, out = folder(LENGTHS), tmp_path / "out"
    assert label(source, out, "--landmarks", "300") == 0
    capsys.readouterr()
    assert label(source, out, "--landmarks", "200") == 1
    assert "holds the results of a run with another 'landmarks'" in message(capsys)
    os.utime(source / "part-01.parquet", ns=(1, 1))
    assert label(source, out, "--landmarks", "300") == 1
    assert "part-01.parquet has changed; choose another output, pass --force to begin anew" in message(capsys)
    (source / "part-01.parquet").rename(source / "part-99.parquet")
    assert label(source, out, "--landmarks", "300") == 1
    assert "part-01.parquet is gone" in message(capsys)
    assert label(source, out, "--landmarks", "300", "--force") == 0


def test_files_of_the_user_are_not_overwritten(folder, tmp_path, capsys):
    source, out = folder(LENGTHS), tmp_path / "out"
    out.mkdir()
    (out / "part-03.parquet").write_bytes(b"mine")
    assert label(source, out) == 1
    assert "has 'part-03.parquet' already; pass --force" in message(capsys)
    assert (out / "part-03.parquet").read_bytes() == b"mine"
    assert label(source, source) == 1
    assert "which is never written" in message(capsys)


def test_a_damaged_file_is_named_and_the_others_are_labelled(folder, tmp_path, capsys):
    source, out = folder(LENGTHS), tmp_path / "out"
    whole = (source / "part-02.parquet").read_bytes()
    (source / "part-02.parquet").write_bytes(whole[: len(whole) // 2])
    assert label(source, out, "--landmarks", "300") == 1
    assert re.search(r"part-02\.parquet was not labelled: .* is cut short or damaged", message(capsys))
    assert sorted(path.name for path in out.glob("*.parquet")) == [f"part-0{number}.parquet" for number in (0, 1, 3)]
    (source / "part-02.parquet").write_bytes(whole)
    capsys.readouterr()
    assert label(source, out, "--landmarks", "300", "--json") == 0  # mended: labelled by the same model
    printed = capsys.readouterr()
    assert len(read(out)) == 1200
    assert "the model was made without the labels of 'part-02.parquet': begin anew" in " ".join(printed.err.split())
    low, high = json.loads(printed.out)["expected_error_range"]
    assert 0 <= low < high < 0.5


def test_a_file_that_vanishes_in_the_middle_is_named_and_the_others_are_labelled(folder, tmp_path, capsys, monkeypatch):
    source, out = folder(LENGTHS), tmp_path / "out"
    from otprop.dask import _folder

    fit = _folder._fit

    def fit_and_lose_a_file(run, sample, task):
        found = fit(run, sample, task)
        (source / "part-01.parquet").unlink()
        return found

    monkeypatch.setattr(_folder, "_fit", fit_and_lose_a_file)
    assert label(source, out, "--landmarks", "300") == 1
    assert "part-01.parquet was not labelled: there is no file" in message(capsys)
    assert len(read(out)) == 1199
    assert not list(out.rglob("*.part"))


def without_target(number, frame):
    return frame.drop(columns="kind") if number in (1, 3) else frame


def test_a_file_without_the_target_is_all_unlabelled(folder, tmp_path, capsys):
    assert label(folder(LENGTHS, change=without_target), tmp_path / "out", "--landmarks", "300") == 0
    assert "without a column 'kind'" in message(capsys)
    found = read(tmp_path / "out")
    assert (found["kind_label"] == found["truth"]).mean() > 0.8


def test_all_labels_may_be_in_one_file(folder, tmp_path):
    def change(number, frame):
        return frame if number == 2 else frame.assign(kind=pd.Series([None] * len(frame), dtype=object))

    assert label(folder(LENGTHS, change=change), tmp_path / "out", "--landmarks", "300") == 0


def test_whole_numbers_and_fractions_are_one_target(folder, tmp_path):
    def change(number, frame):
        codes = frame["kind"].map({"ash": 1.0, "elm": 2.0, "oak": 3.0})
        return frame.assign(kind=codes.astype("Int64") if number % 2 else codes)

    assert label(folder(LENGTHS, change=change), tmp_path / "out", "--landmarks", "300", "--json") == 0
    assert set(read(tmp_path / "out")["kind_label"]) == {1, 2, 3}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda number, frame: frame.drop(columns="x3") if number == 2 else frame,
            "part-02.parquet lacks the column 'x3', which part-00.parquet has; add it there, or leave it out with "
            "--ignore x3.",
        ),
        (
            lambda number, frame: frame.assign(x3=frame["x3"].astype(str)) if number == 2 else frame,
            "the column 'x3' holds numbers in part-00.parquet and text in part-02.parquet; give them one type",
        ),
        (
            lambda number, frame: frame.assign(kind=np.arange(len(frame))) if number == 1 else frame,
            "the column 'kind' holds text in part-00.parquet and numbers in part-01.parquet",
        ),
        (
            lambda number, frame: frame.assign(kind=pd.Series([None] * len(frame), dtype=object)),
            "has a label in its column 'kind': label some rows.",
        ),
        (lambda number, frame: frame.drop(columns="kind"), "--target kind: there is no column 'kind'"),
        (lambda number, frame: frame.assign(kind_label="x"), "already has 'kind_label'"),
    ],
)
def test_files_that_do_not_fit_together_are_refused_by_name(folder, tmp_path, capsys, change, words):
    assert label(folder(LENGTHS, change=change), tmp_path / "out") != 0
    assert words in message(capsys)
    assert not list((tmp_path / "out").glob("*.parquet"))


def test_categories_first_seen_later_and_files_without_rows_are_handled(folder, tmp_path, capsys):
    def change(number, frame):
        return frame.iloc[:0] if number == 1 else frame.assign(size="XXL") if number == 3 else frame

    assert label(folder(LENGTHS, change=change), tmp_path / "out", "--landmarks", "100") == 0
    assert "without rows, and left out: 'part-01.parquet'" in message(capsys)
    assert len(read(tmp_path / "out")) == 1199


def test_a_saved_model_labels_a_folder_as_it_labels_its_files(folder, tmp_path, capsys):
    source, out, model = folder(LENGTHS), tmp_path / "out", tmp_path / "trees.model"
    assert label(source, tmp_path / "first", "--landmarks", "300", "--save", str(model)) == 0
    assert main(["predict", str(model), str(source / "*.parquet"), "-o", str(out), "--json", "--jobs", "1"]) == 0
    assert json.loads(capsys.readouterr().out)["files"] == 4
    single = tmp_path / "single.parquet"
    assert main(["predict", str(model), str(source / "part-02.parquet"), "-o", str(single), "--jobs", "1"]) == 2
    assert "--jobs is for a folder or a pattern of files" in message(capsys)
    assert main(["predict", str(model), str(source / "part-02.parquet"), "-o", str(single)]) == 0
    pd.testing.assert_frame_equal(pd.read_parquet(out / "part-02.parquet"), pd.read_parquet(single))
    times = {path.name: path.stat().st_mtime_ns for path in out.glob("*.parquet")}
    assert main(["predict", str(model), str(source / "*.parquet"), "-o", str(out)]) == 0
    assert {path.name: path.stat().st_mtime_ns for path in out.glob("*.parquet")} == times
    lacking = folder([1200], name="other", change=lambda number, frame: frame.drop(columns="x0"))
    assert main(["predict", str(model), str(lacking), "-o", str(tmp_path / "no")]) == 1
    assert "part-00.parquet lacks 'x0', which the model needs" in message(capsys)


def test_a_folder_without_a_label_is_used_wrongly_and_nothing_is_left_behind(folder, tmp_path, capsys):
    def change(number, frame):
        return frame.assign(kind=pd.Series([None] * len(frame), dtype=object))

    assert label(folder(LENGTHS, change=change), tmp_path / "out") == 2
    assert "has a label in its column 'kind'" in message(capsys)
    assert not (tmp_path / "out").exists()


def test_a_dry_run_says_what_there_is_and_writes_nothing(folder, tmp_path, capsys):
    assert label(folder(LENGTHS), tmp_path / "out", "--dry-run") == 0
    assert "4 files, 1200 rows; the results would go to" in message(capsys)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--corrections", "c.csv"], "--corrections is for one file"),
        (["--method", "ls"], "--method ls labels one file; a folder is labelled by otp."),
        (["--landmarks", "1"], "--landmarks 1: give a number of rows, at least 2."),
        (["--target", "kin"], "did you mean 'kind'"),
        (["--ignore", "colour"], "there is no column 'colour'"),
    ],
)
def test_options_that_a_folder_cannot_have_are_refused(folder, tmp_path, capsys, arguments, words):
    assert label(folder([1200]), tmp_path / "out", *arguments) == 2
    assert words in message(capsys)


def test_how_text_files_are_read_can_be_said_for_a_folder(folder, tmp_path, capsys):
    plain, named = folder([700, 500], ending="csv"), tmp_path / "named"
    named.mkdir()
    for path in plain.iterdir():
        (named / f"{path.stem}.dat").write_text(path.read_text().replace(",", "~"))
    assert label(named, tmp_path / "none") == 1
    assert "names no file with an ending of a table" in (said := message(capsys))
    assert "--format csv" in said
    assert label(named, tmp_path / "none", "--format", "csv") == 1
    assert "--delimiter '~'" in message(capsys)
    assert not (tmp_path / "none").exists()
    assert label(plain, tmp_path / "a", "--landmarks", "200") == 0
    assert label(named, tmp_path / "b", "--landmarks", "200", "--format", "csv", "--delimiter", "~") == 0
    found = [pd.read_csv(tmp_path / "b" / f"part-0{number}.dat", sep="~") for number in range(2)]
    pd.testing.assert_frame_equal(pd.concat(found, ignore_index=True), read(tmp_path / "a"))
    assert label(named, tmp_path / "b", "--landmarks", "200", "--format", "csv") == 1
    assert "--delimiter" in message(capsys)


def test_a_refused_run_leaves_no_folder_behind(folder, tmp_path, capsys):
    source = folder([600, 600])
    assert label(source, tmp_path / "deep" / "out", "--target", "kin") == 2
    assert not (tmp_path / "deep").exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    assert label(source, tmp_path / "mine", "--target", "kin") == 2
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]
    assert label(source, tmp_path / "out.csv") == 2
    assert "the results of a folder go to a folder" in message(capsys)


def test_the_page_and_the_model_are_named_among_what_was_written(folder, tmp_path, capsys):
    page, model = tmp_path / "page.html", tmp_path / "kept.model"
    assert label(folder([1200]), tmp_path / "out", "--report", str(page), "--save", str(model), "--json") == 0
    printed = capsys.readouterr()
    assert str(page) in printed.err.replace("\n", "")
    assert str(model) in printed.err.replace("\n", "")
    assert json.loads(printed.out)["report"] == str(page)


def test_options_of_folders_are_refused_for_one_file(folder, tmp_path, capsys):
    file = folder([1200]) / "part-00.parquet"
    assert label(file, tmp_path / "out.parquet", "--landmarks", "100") == 2
    assert "--landmarks is for a folder or a pattern of files" in message(capsys)
    assert label(tmp_path / "nothing" / "*.parquet", tmp_path / "out") == 1
    assert "names no file with an ending of a table" in message(capsys)


def test_a_scheduler_that_does_not_answer_is_named(monkeypatch):
    monkeypatch.setattr(_cluster, "CONNECT_SECONDS", 0.2)
    with pytest.raises(_cluster.ClusterError, match=r"no scheduler answers at tcp://127\.0\.0\.1:9 "):
        _cluster.connect("tcp://127.0.0.1:9")
    with pytest.raises(
        _cluster.ClusterError, match=r"no scheduler answers at nonsense \(missing port number .*[^.]\)\.$"
    ):
        _cluster.connect("nonsense")


def test_workers_with_another_version_are_named(client, monkeypatch):
    class Other:
        scheduler = client.scheduler

        def run(self, function):
            return {"tcp://10.0.0.1:4000": "0.1.0"}

    with pytest.raises(_cluster.ClusterError, match=r"the worker at tcp://10\.0\.0\.1:4000 has otprop 0\.1\.0"):
        _cluster.check_workers(Other())


def test_one_file_is_labelled_without_dask(folder, tmp_path):
    file = folder([1200]) / "part-00.parquet"
    code = (
        "import sys\nfrom otprop.cli import main\n"
        f"status = main(['label', {str(file)!r}, '--target', 'kind', '--set', 'evidence=None', '--quiet'])\n"
        "import otprop, otprop.dask\n"
        "sys.exit(status or sum(name.split('.')[0] in ('dask', 'distributed') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_missing_extra_is_one_clear_line(monkeypatch):
    from otprop.dask import _optional

    monkeypatch.setattr(_optional, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"needs dask and distributed: pip install 'otprop\[dask\]'"):
        _optional.require_dask()
    assert Path(_optional.__file__).exists()
