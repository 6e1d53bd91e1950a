"""`otprop label` and `otprop predict` of a folder."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest

import otprop
from otprop.cli import folder as module
from otprop.cli import main
from otprop.dask import _cluster
from otprop.files import read_table
from tests.dask.conftest import write_folder

LENGTHS = [300, 1, 400, 499]
FAST = ["--set", 'evidence=["linear"]']


@pytest.fixture(autouse=True, scope="module")
def in_this_process(client):
    """Use the cluster of the tests in place of a new one of processes."""

    @contextmanager
    def found(options):
        yield client

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_client", found)
        yield


def label(source, out, *more):
    return main(["label", str(source), "--target", "kind", "--ignore", "truth", *FAST, "-o", str(out), *more])


@pytest.fixture(scope="module")
def first_run(tmp_path_factory, table, in_this_process):
    """A folder of two files and its results, for all tests: `labelled` gives a copy."""
    home = tmp_path_factory.mktemp("first")
    assert label(write_folder(home / "in", table, [700, 500]), home / "out", "--landmarks", "300", "--quiet") == 0
    return home


@pytest.fixture
def labelled(first_run, tmp_path):
    """A folder of two files and its results with 300 landmarks, as the run has left them."""
    return tuple(shutil.copytree(first_run / name, tmp_path / name) for name in ("in", "out"))


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


def test_groups_of_a_folder_are_those_of_one_file(folder, tmp_path):
    def change(number, frame):
        return frame.assign(site=[f"{number}-{row % 5}" for row in range(len(frame))])

    source, used = folder([700, 500], change=change), ["x0", "x1", "x2", "x3", "x4"]
    assert label(source, tmp_path / "out", "--groups", "site", "--features", *used) == 0
    more = {"ignore": ["truth"], "features": used, "settings": {"evidence": ["linear"]}}
    expected = otprop.label(read(source), "kind", groups="site", **more).table["kind_confidence"].tolist()
    assert read(tmp_path / "out")["kind_confidence"].tolist() == expected
    assert otprop.label(read(source), "kind", **more).table["kind_confidence"].tolist() != expected


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


def test_a_changed_folder_or_other_options_are_refused(labelled, capsys):
    source, out = labelled
    assert label(source, out, "--landmarks", "200") == 2
    assert "holds the results of a run with another 'landmarks'" in message(capsys)
    os.utime(source / "part-01.parquet", ns=(1, 1))
    assert label(source, out, "--landmarks", "300") == 2
    assert "part-01.parquet has changed; choose another output, pass --force to start over" in message(capsys)
    (source / "part-01.parquet").rename(source / "part-99.parquet")
    assert label(source, out, "--landmarks", "300") == 2
    assert "part-01.parquet is gone" in message(capsys)
    assert label(source, out, "--landmarks", "300", "--force") == 0


def test_files_of_the_user_are_not_overwritten(folder, tmp_path, capsys):
    source, out = folder(LENGTHS), tmp_path / "out"
    out.mkdir()
    (out / "part-03.parquet").write_bytes(b"mine")
    assert label(source, out) == 2
    assert "has 'part-03.parquet' already; pass --force" in message(capsys)
    assert (out / "part-03.parquet").read_bytes() == b"mine"
    assert label(source, source) == 2
    assert "inputs are never overwritten" in message(capsys)


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
    assert "the model was made without the labels of 'part-02.parquet': start over" in " ".join(printed.err.split())
    low, high = json.loads(printed.out)["expected_error_range"]
    assert 0 <= low < high < 0.5


def test_a_file_that_vanishes_in_the_middle_is_named_and_the_others_are_labelled(folder, tmp_path, capsys, monkeypatch):
    source, out = folder(LENGTHS), tmp_path / "out"
    from otprop.dask import _folder

    fit = _folder._Run.fit

    def fit_and_lose_a_file(run, sample, task):
        found = fit(run, sample, task)
        (source / "part-01.parquet").unlink()
        return found

    monkeypatch.setattr(_folder._Run, "fit", fit_and_lose_a_file)
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
            "part-02.parquet lacks the column 'x3', which part-00.parquet has; add it there, or skip it with "
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
    assert "skipped, no rows: 'part-01.parquet'" in message(capsys)
    assert len(read(tmp_path / "out")) == 1199


def test_a_saved_model_labels_a_folder_as_it_labels_its_files(folder, tmp_path, capsys):
    source, out, model = folder(LENGTHS), tmp_path / "out", tmp_path / "trees.model"
    less = ["--abstain-below", "0.9"]  # rows that come later get a label all the same
    assert label(source, tmp_path / "first", "--landmarks", "300", "--save", str(model), *less) == 0
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
    assert main(["predict", str(model), str(lacking), "-o", str(tmp_path / "no")]) == 2
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
        (["--votes-file", "v.csv"], "--votes-file is for one file: its rows are counted in it. Put the votes into"),
        (["--votes", "size", "--landmarks", "300"], "--votes count for landmarks only, and the files have 1200 rows"),
        (["--method", "otp-paper"], "--method otp-paper labels one file; a folder is labelled by otp."),
        (["--landmarks", "1"], "--landmarks 1: give a number of rows, at least 2."),
        (["--target", "kin"], "did you mean 'kind'"),
        (["--ignore", "colour"], "there is no column 'colour'"),
        (["--report", "page.pdf"], "page.pdf would not be a web page by its name"),
    ],
)
def test_options_that_a_folder_cannot_have_are_refused(folder, tmp_path, capsys, arguments, words):
    assert label(folder([1200]), tmp_path / "out", *arguments) == 2
    assert words in message(capsys)


def test_votes_count_in_a_folder_whose_rows_are_all_landmarks(folder, tmp_path):
    def with_votes(number, part):
        wrong = np.random.default_rng(number).random(len(part)) < 0.1
        return part.assign(llm=np.where(wrong, "ash", part["truth"]))

    source = folder([700, 500], change=with_votes)
    assert label(source, tmp_path / "out", "--votes", "llm", "--features", "size") == 0
    found = read(tmp_path / "out")
    left = found["kind"].isna()
    assert (found["kind_label"] == found["llm"])[left].mean() > 0.95  # the only feature tells nothing


def test_how_text_files_are_read_can_be_said_for_a_folder(folder, tmp_path, capsys):
    plain, named = folder([700, 500], ending="csv"), tmp_path / "named"
    named.mkdir()
    for path in plain.iterdir():
        (named / f"{path.stem}.dat").write_text(path.read_text().replace(",", "~"))
    assert label(named, tmp_path / "none") == 2
    assert "no file has the ending of a table" in (said := message(capsys))
    assert "--format csv" in said
    assert label(named, tmp_path / "none", "--format", "csv") == 2
    assert "--delimiter '~'" in message(capsys)
    assert not (tmp_path / "none").exists()
    assert label(plain, tmp_path / "a", "--landmarks", "200") == 0
    assert label(named, tmp_path / "b", "--landmarks", "200", "--format", "csv", "--delimiter", "~") == 0
    found = [pd.read_csv(tmp_path / "b" / f"part-0{number}.dat", sep="~") for number in range(2)]
    pd.testing.assert_frame_equal(pd.concat(found, ignore_index=True), read(tmp_path / "a"))
    assert label(named, tmp_path / "b", "--landmarks", "200", "--format", "csv") == 2
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
    assert label(tmp_path / "nothing" / "*.parquet", tmp_path / "out") == 2
    assert "no file matches" in message(capsys)


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
    monkeypatch.setattr(otprop.dask, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"needs dask and distributed: pip install '\.\[dask\]'"):
        otprop.dask.require_dask()


def change_after_the_fit(monkeypatch, change):
    """Call a function when the model is there and no file is labelled yet."""
    from otprop.dask import _folder

    fit = _folder._Run.fit

    def fit_and_change(run, sample, task):
        found = fit(run, sample, task)
        change()
        return found

    monkeypatch.setattr(_folder._Run, "fit", fit_and_change)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_file_that_changes_after_the_fit_is_named_and_not_labelled(folder, tmp_path, capsys, monkeypatch, ending):
    source, out = folder(LENGTHS, ending=ending), tmp_path / "out"
    changed = source / f"part-02.{ending}"

    def turn_around():
        frame = pd.read_parquet(changed) if ending == "parquet" else pd.read_csv(changed)
        frame = frame.iloc[::-1]
        frame.to_parquet(changed) if ending == "parquet" else frame.to_csv(changed, index=False)
        os.utime(changed, ns=times)  # as tools do that keep the time

    times = (changed.stat().st_atime_ns, changed.stat().st_mtime_ns)
    change_after_the_fit(monkeypatch, turn_around)
    assert label(source, out, "--landmarks", "300") == 1
    assert f"part-02.{ending} was not labelled: {changed} has changed since the run began" in message(capsys)
    assert sorted(path.stem for path in out.iterdir() if path.is_file()) == ["part-00", "part-01", "part-03"]


def test_labels_that_the_fit_did_not_see_are_not_taken_for_landmarks(folder, tmp_path, capsys):
    source, out = folder(LENGTHS), tmp_path / "out"
    assert label(source, out) == 0
    times = (source / "part-02.parquet").stat().st_mtime_ns
    (out / "part-02.parquet").unlink()
    frame = pd.read_parquet(source / "part-02.parquet")
    frame.iloc[::-1].reset_index(drop=True).to_parquet(source / "part-02.parquet")
    os.utime(source / "part-02.parquet", ns=(times, times))
    manifest = out / "_otprop" / "manifest.json"
    found = json.loads(manifest.read_text())
    found["inputs"]["part-02.parquet"][1] = (source / "part-02.parquet").stat().st_size
    manifest.write_text(json.dumps(found))
    capsys.readouterr()
    assert label(source, out) == 1
    assert "part-02.parquet was not labelled: rows that the fit saw have changed since" in message(capsys)


def test_a_file_that_was_mended_and_changes_again_is_labelled_again(folder, tmp_path):
    source, out = folder(LENGTHS), tmp_path / "out"
    whole = (source / "part-02.parquet").read_bytes()
    (source / "part-02.parquet").write_bytes(whole[: len(whole) // 2])
    assert label(source, out, "--landmarks", "300") == 1
    (source / "part-02.parquet").write_bytes(whole)
    assert label(source, out, "--landmarks", "300") == 0
    pd.read_parquet(source / "part-02.parquet").iloc[:7].to_parquet(source / "part-02.parquet")
    assert label(source, out, "--landmarks", "300") == 0
    assert len(pd.read_parquet(out / "part-02.parquet")) == 7


@pytest.mark.parametrize("name", ["", "done", "model", "manifest.json", "landmarks.npy", "lock", "mode"])
@pytest.mark.parametrize("more", [[], ["--force"]])
def test_no_link_is_followed_in_the_state_of_a_run(folder, tmp_path, capsys, name, more):
    source, out, mine = folder([1200]), tmp_path / "out", tmp_path / "mine"
    is_folder = name in ("", "done")
    mine.mkdir() if is_folder else mine.write_text("mine")
    if is_folder:
        (mine / "settings.json").write_text("mine")
    link = out / "_otprop" / name
    link.parent.mkdir(parents=True)
    link.symlink_to(mine)
    assert label(source, out, *more) == 2
    assert "is a link; a run makes files and folders only; remove it." in message(capsys)
    assert (mine / "settings.json" if is_folder else mine).read_text() == "mine"
    assert not (out / "part-00.parquet").exists()


def test_no_output_is_written_through_a_link(labelled, tmp_path, capsys):
    (source, out), mine = labelled, tmp_path / "mine"
    mine.write_text("mine")
    (out / "part-01.parquet").unlink()
    (out / "part-01.parquet").symlink_to(mine)
    assert label(source, out, "--landmarks", "300") == 2
    assert "has 'part-01.parquet', changed since or not written by this run; move them away" in message(capsys)
    assert label(source, out, "--landmarks", "300", "--force") == 2
    assert "has links or something else in the place of 'part-01.parquet'; remove them" in message(capsys)
    assert mine.read_text() == "mine"


def test_a_pipe_in_the_place_of_an_output_is_refused_and_not_waited_for(folder, tmp_path, capsys):
    source, out = folder([1200]), tmp_path / "out"
    out.mkdir()
    os.mkfifo(out / "part-00.parquet")
    assert label(source, out, "--force") == 2
    assert "has links or something else in the place of 'part-00.parquet'; remove them" in message(capsys)


def test_an_output_that_was_edited_is_not_overwritten_by_a_second_run(folder, tmp_path, capsys):
    source, out = folder([700, 500], ending="csv"), tmp_path / "out"
    assert label(source, out, "--landmarks", "300") == 0
    edited = (out / "part-00.csv").read_text() + "edited\n"
    (out / "part-00.csv").write_text(edited)
    capsys.readouterr()
    assert label(source, out, "--landmarks", "300") == 2
    assert "has 'part-00.csv', changed since or not written by this run" in message(capsys)
    assert (out / "part-00.csv").read_text() == edited
    assert label(source, out, "--landmarks", "300", "--force") == 0


def test_a_forced_run_that_was_stopped_is_resumed_without_force(labelled, monkeypatch):
    source, out = labelled

    def stop(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("otprop.dask._folder._Run.label_files", stop)
        assert label(source, out, "--landmarks", "200", "--force") == 130
    assert label(source, out, "--landmarks", "200") == 0


@pytest.mark.skipif(os.name != "posix", reason="has no such permissions")
@pytest.mark.parametrize("modes", [(0o600, 0o644), (0o640, 0o604)])
def test_what_is_made_from_private_files_is_private(folder, tmp_path, modes):
    source, out = folder([700, 500]), tmp_path / "out"
    for path, mode in zip(sorted(source.iterdir()), modes, strict=True):
        path.chmod(mode)
    files = ["--report", str(tmp_path / "page.html"), "--save", str(tmp_path / "kept.model")]
    assert label(source, out, "--landmarks", "300", *files) == 0
    made = [path for path in (out / "_otprop").rglob("*") if path.is_file()]
    for path in (*made, tmp_path / "page.html", tmp_path / "kept.model"):
        assert path.stat().st_mode & 0o077 == 0, path
    assert len(made) == 7  # lock, manifest, model, landmarks, mode and two records


@pytest.mark.parametrize("more", [[], ["--dry-run"], ["--force"]])
def test_an_output_that_is_a_loop_of_links_is_refused_in_one_line(folder, tmp_path, capsys, more):
    (tmp_path / "out").symlink_to("out")
    assert label(folder([1200]), tmp_path / "out", *more) == 1
    said = capsys.readouterr().err
    assert re.search(r"cannot (read|write to) .*out.*: (Too many levels of symbolic links|File exists)", said)
    assert said.count("\n") == 1


def test_files_of_a_folder_that_hold_nothing_are_skipped(folder, tmp_path, capsys):
    source = folder([1200], ending="csv")
    header = (source / "part-00.csv").read_text().splitlines()[0]
    (source / "part-01.csv").write_text("")
    (source / "part-02.csv").write_text(header + "\n")
    assert label(source, tmp_path / "out", "--landmarks", "300") == 0
    assert "skipped, no rows: 'part-01.csv', 'part-02.csv'" in message(capsys)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_target_that_a_file_lacks_is_added_where_it_is_filled_in(folder, tmp_path, ending):
    source, out = folder(LENGTHS, ending=ending, change=without_target), tmp_path / "out"
    assert label(source, out, "--landmarks", "300", "--fill") == 0
    found = read(out)
    assert len(found) == 1200
    assert (found["kind"] == found["truth"]).mean() > 0.8
    assert "kind_label" not in found


def test_a_text_file_is_parsed_three_times_at_most(folder, tmp_path, monkeypatch):
    from otprop.dask import _inputs

    parsed = []
    monkeypatch.setattr(
        _inputs, "read_table", lambda path, **options: parsed.append(path) or read_table(path, **options)
    )
    assert label(folder([700, 500], ending="csv"), tmp_path / "out", "--landmarks", "300") == 0
    assert 2 <= len(parsed) <= 6  # to look at it, to sample it, to label it


def damage(**changes):
    def change(found):
        for name, value in changes.items():
            place = found["summary"] if name in found["summary"] else found
            place[name] = value
        return found

    return change


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda found: 3, "not a JSON object"),
        (lambda found: [], "not a JSON object"),
        (lambda found: {**found, "more": 1}, "unknown entries"),
        (lambda found: {**found, "format": 2}, "another format"),
        (lambda found: {name: value for name, value in found.items() if name != "version"}, "entries are missing"),
        (damage(summary={}), "its entry 'classes' is damaged"),
        (damage(summary=[]), "its entry 'summary' is damaged"),
        (damage(inputs={"a": 1}), "its entry 'inputs' is damaged"),
        (damage(starts={"part-00.parquet": -1}), "its entry 'starts' is damaged"),
        (damage(codes={"ash": 7}), "its entry 'codes' is damaged"),
        (damage(classes="ash"), "its entry 'classes' is damaged"),
        (damage(expected=float("nan")), "its entry 'expected' is damaged"),
        (damage(n_held_out=True), "its entry 'n_held_out' is damaged"),
        (damage(concentration="1"), "its entry 'concentration' is damaged"),
        (damage(version="0\n1"), "its entry 'version' is damaged"),
    ],
)
def test_a_damaged_manifest_is_refused_in_one_line(labelled, capsys, change, reason):
    source, out = labelled
    manifest = out / "_otprop" / "manifest.json"
    manifest.write_text(json.dumps(change(json.loads(manifest.read_text()))))
    assert label(source, out, "--landmarks", "300") == 2
    assert f"manifest.json cannot be read ({reason}); remove it to start over." in message(capsys)


@pytest.mark.parametrize("text", ["[]", "3", "{}", "{", "[" * 10**5, '{"bytes": 1, "rows": 2, "tally": []}'])
def test_a_damaged_record_never_counts_as_done(labelled, capsys, text):
    source, out = labelled
    record = out / "_otprop" / "done" / "part-00.parquet.json"
    content = (out / "part-00.parquet").read_bytes()
    record.write_text(text)
    status = label(source, out, "--landmarks", "300")
    assert (out / "part-00.parquet").read_bytes() == content
    said = message(capsys)
    assert (status, "1 done before" in said) == (0, True) if text == "{}" else (1, False)
    assert status == 0 or "has 'part-00.parquet', changed since or not written by this run" in said
