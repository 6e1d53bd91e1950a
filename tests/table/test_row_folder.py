"""A folder of pictures as a table: where labels come from, and what is refused."""

from __future__ import annotations

import json
import os

import pandas as pd
import pytest

import otprop
from otprop.cli import main
from otprop.files import TableError
from otprop.table.errors import RequestError
from otprop.table.opening import open_table
from otprop.table.row_folder import PICTURES, row_files
from tests.table.pictures import GREEN, RED, picture, write_pictures

pytest.importorskip("PIL", reason="needs Pillow")


N = 30  # pictures in the folder


@pytest.fixture(autouse=True)
def _cache(monkeypatch, tmp_path):
    monkeypatch.setenv("OTPROP_IMAGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def photos(tmp_path):
    """Red and green pictures by turns."""
    write_pictures(tmp_path / "photos", N)
    return tmp_path / "photos"


def sorted_photos(folder, names=("red", "green")):
    """Four pictures of each colour in sub-folders, 20 more in the folder itself."""
    for name, colour in zip(names, (RED, GREEN), strict=True):
        (folder / name).mkdir(parents=True)
        for seed in range(4):
            picture(colour, seed).save(folder / name / f"p{seed}.png")
    for seed in range(20):
        picture(RED if seed % 2 else GREEN, seed % 4).save(folder / f"{seed}.png")
    return folder


def write_labels(path, rows, header="path,kind"):
    path.write_text("\n".join([header, *(",".join(row) for row in rows)]) + "\n")
    return path


def labels_of(table):
    return dict(zip(table.cells("path"), table.cells(table.default_target), strict=True))


def test_labels_come_from_a_file(photos, tmp_path):
    write_labels(
        tmp_path / "labels.csv", [("00.png", "green"), ("01.png", "red"), ("02.png", "green"), ("03.png", "red")]
    )
    result = otprop.label(photos, labels=tmp_path / "labels.csv")
    assert result.table["kind_label"].tolist() == ["green", "red"] * (N // 2)
    assert result.table["path"].tolist() == [f"{number:02d}.png" for number in range(N)]
    assert result.table["kind_source"].tolist() == ["given"] * 4 + ["propagated"] * (N - 4)


def test_labels_come_from_sub_folders(tmp_path):
    result = otprop.label(sorted_photos(tmp_path / "photos"))
    expected = {f"{n}.png": "red" if n % 2 else "green" for n in range(20)}
    expected |= {f"{name}/p{n}.png": name for name in ("red", "green") for n in range(4)}
    assert dict(zip(result.table["path"], result.table["label_label"], strict=True)) == expected


def test_suggest_and_check_need_no_target_for_a_folder_of_pictures(tmp_path):
    folder = sorted_photos(tmp_path / "photos")
    target = otprop.label(folder).job.target.name
    assert target in otprop.suggest(folder, n=2)
    assert "given" in otprop.check(folder)


def test_labels_come_from_a_mapping_or_a_frame(photos):
    known = {"00.png": "green", "01.png": "red"}
    frame = pd.DataFrame({"file": list(known), "label": list(known.values())})
    for labels in (known, frame):
        table = open_table(photos, labels=labels)
        assert table.default_target == "label"
        assert {name: label for name, label in labels_of(table).items() if label} == known


def test_a_label_file_may_name_a_picture_in_any_usual_way(photos, tmp_path):
    names = ["00.png", "01", "./02.png", "photos/03.png", os.path.abspath("photos/04.png"), "photos\\05.png"]
    write_labels(tmp_path / "labels.csv", [(name, "a") for name in names], "file,kind")
    found = labels_of(open_table(photos, labels=tmp_path / "labels.csv"))
    assert [name for name, label in found.items() if label] == [f"{number:02d}.png" for number in range(6)]


def test_labels_of_pictures_that_do_not_exist_are_named(photos, tmp_path):
    write_labels(tmp_path / "labels.csv", [("00.png", "a"), ("gone.png", "b")])
    table = open_table(photos, labels=tmp_path / "labels.csv")
    assert any("labels for 1 pictures that are not in" in note and "gone.png" in note for note in table.notes)


@pytest.mark.parametrize(
    ("rows", "header", "reason"),
    [
        ([("q.png", "x")], "path,kind", "no column with names of pictures"),
        ([("p0.png", "x")], "path,kind", "'p0.png', which can be green/p0.png, red/p0.png; write the path below"),
        ([("red/p0.png", "x"), ("red/p0.png", "y")], "path,kind", "two labels, 'x' and 'y'"),
        ([("red/p0.png",)], "path", "no column of labels"),
        ([("red/p0.png", "1", "x")], "path,size,colour", "must name the column .* 'size', 'colour'"),
    ],
    ids=["none", "two files", "two labels", "no labels", "which column"],
)
def test_a_label_file_that_cannot_be_understood_is_refused(tmp_path, rows, header, reason):
    folder = sorted_photos(tmp_path / "photos")
    with pytest.raises(ValueError, match=reason):
        open_table(folder, labels=write_labels(tmp_path / "labels.csv", rows, header))


def test_two_files_of_one_name_are_two_rows(tmp_path):
    names = open_table(sorted_photos(tmp_path / "photos")).cells("path").tolist()
    assert {"red/p0.png", "green/p0.png"} <= set(names)


def test_sub_folders_that_differ_in_case_are_pointed_out(tmp_path):
    result = otprop.label(sorted_photos(tmp_path / "photos", ("Cat", "cat")))
    assert any("differ only in case" in note for note in result.notes)


def test_damaged_pictures_are_skipped_and_named(photos):
    (photos / "07.png").write_text("no picture")
    table = open_table(photos, labels={"00.png": "a"})
    assert "07.png" not in table.cells("path")
    (note,) = table.notes
    assert note.startswith(f"1 of {N} pictures cannot be read and are skipped: 07.png is not a picture")
    for path in photos.iterdir():
        path.write_text("no picture")
    with pytest.raises(TableError, match="no picture that can be read"):
        open_table(photos)


def test_names_with_quotes_and_commas_come_back_as_they_are(photos):
    picture(RED, 1).save(photos / 'a, "b".png')
    assert 'a, "b".png' in open_table(photos).cells("path").tolist()


def test_a_folder_without_labels_says_where_to_put_them(photos):
    with pytest.raises(RequestError, match=r"none of the 30 pictures in .* has a label yet. Put some of each class"):
        otprop.label(photos)
    assert len(otprop.suggest(photos, "label", n=3)) == 3


def test_labels_are_only_for_a_folder_of_pictures(tmp_path):
    frame = pd.DataFrame({"size": [1.0, 2.0], "kind": ["a", None]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    for data in (frame, tmp_path / "t.csv"):
        with pytest.raises(RequestError, match="labels"):
            otprop.label(data, "kind", labels={"a": "b"})


def test_a_folder_of_tables_is_no_folder_of_pictures(photos, capsys):
    (photos / "t.csv").write_text("a,b\n1,2\n")
    assert main(["label", "photos", "--target", "b"]) == 2
    assert "is a folder" in capsys.readouterr().err
    assert open_table(photos, labels={"00.png": "a"}).n_rows == N  # the labels say what is meant


def test_pictures_far_below_a_folder_do_not_make_it_a_folder_of_pictures(tmp_path):
    write_pictures(tmp_path / "project" / "docs" / "static", 2)
    assert row_files(tmp_path / "project") is None  # "/" is not searched either
    assert row_files(tmp_path / "project" / "docs") is PICTURES
    assert row_files(tmp_path / "project", labels={"00.png": "a"}) is PICTURES


def test_the_command_labels_a_folder(photos, tmp_path, capsys):
    write_labels(
        tmp_path / "labels.csv", [("00.png", "green"), ("01.png", "red"), ("02.png", "green"), ("03.png", "red")]
    )
    command = ["label", "photos/", "--labels", "labels.csv", "--report", "page.html", "--save", "kind.model", "--json"]
    assert main(command) == 0
    assert json.loads(capsys.readouterr().out)["output"] == "photos.labelled.csv"
    found = pd.read_csv("photos.labelled.csv")
    assert found["kind_label"].tolist() == ["green", "red"] * (N // 2)
    assert main(["predict", "kind.model", "photos", "-o", "again.csv"]) == 0
    assert pd.read_csv("again.csv")["kind_label"].tolist() == ["green", "red"] * (N // 2)
    assert main(["suggest", "photos", "--labels", "labels.csv", "-n", "2", "-o", "rows.csv"]) == 0
    rows = pd.read_csv("rows.csv").assign(kind="red")
    rows.to_csv("rows.csv", index=False)
    assert main(["label", "photos", "--labels", "labels.csv", "--corrections", "rows.csv", "-o", "more.csv"]) == 0
    assert (pd.read_csv("more.csv")["kind_source"] == "corrected").sum() == 2


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["empty"], "empty has neither tables nor pictures nor texts."),
        (["photos"], "--labels are missing: none of the 30 pictures in photos has a label yet."),
        (["photos", "--labels", "none.csv"], "there is no file none.csv"),
    ],
)
def test_the_command_refuses_what_it_cannot_label(photos, tmp_path, capsys, arguments, reason):
    (tmp_path / "empty").mkdir()
    assert main(["label", *arguments]) != 0
    assert reason in capsys.readouterr().err


def test_progress_is_reported_while_pictures_are_read(photos):
    steps = []
    open_table(photos, progress=lambda done, total, step: steps.append((done, total, step)))
    assert steps == [(0, N, "reading pictures")]


def test_a_link_that_leads_to_itself_leaves_the_other_pictures(photos):
    (photos / "loop.png").symlink_to(photos / "loop.png")
    (photos / "again").symlink_to(photos)
    table = open_table(photos)
    assert table.n_rows == N
    assert "loop.png cannot be read" in table.notes[0]


def test_names_that_a_cell_cannot_hold_are_skipped_and_counted(photos):
    (photos / "00.png").rename(photos / " 00.png")
    (photos / "01.png").rename(os.fsdecode(os.fsencode(photos) + b"/\xff.png"))
    table = open_table(photos)
    assert table.n_rows == N - 2
    assert table.notes[0].startswith("2 pictures are skipped: their names begin or end with a blank")


@pytest.mark.parametrize("labels", [["red", "green"], 5])
def test_labels_that_name_no_picture_are_refused(photos, labels):
    with pytest.raises(RequestError, match="labels must be a file, a DataFrame or a dict"):
        open_table(photos, labels=labels)


def test_a_folder_without_pictures_is_called_so(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(RequestError, match="is a folder without pictures or texts; many tables"):
        otprop.label(tmp_path / "empty", "kind")


WORDS = {"pets": "the cat and the dog sleep on the sofa", "cars": "an engine with four wheels needs oil"}


@pytest.fixture
def notes(tmp_path):
    """Texts about pets and cars by turns, two of each in a sub-folder of their class."""
    folder = tmp_path / "notes"
    for name in WORDS:
        (folder / name).mkdir(parents=True)
    for number in range(24):
        kind = list(WORDS)[number % 2]
        place = folder / kind if number < 8 else folder
        (place / f"{number:02d}.txt").write_text(f"{WORDS[kind]}, {number} times")
    return folder


def test_a_folder_of_texts_is_labelled_by_sub_folders(notes):
    result = otprop.label(notes)
    assert list(result.table.columns[:4]) == ["path", "text", "label", "label_label"]
    assert [use.name for use in result.job.columns if not use.skipped] == ["text"]
    expected = [list(WORDS)[int(path[-6:-4]) % 2] for path in result.table["path"]]
    assert result.table["label_label"].tolist() == expected


def test_the_command_labels_a_folder_of_texts_by_a_file(notes, tmp_path):
    rows = [("00", "pets"), ("01", "cars"), ("02", "pets"), ("03", "cars"), ("gone.txt", "cars")]
    write_labels(tmp_path / "labels.csv", rows)
    assert main(["label", "notes/", "--labels", "labels.csv", "--quiet"]) == 0
    found = pd.read_csv("notes.labelled.csv")
    assert found["kind_label"].tolist() == [list(WORDS)[int(path[-6:-4]) % 2] for path in found["path"]]
    (note,) = open_table(notes, labels=tmp_path / "labels.csv").notes
    assert "has labels for 1 texts that are not in" in note


def test_long_texts_are_cut_and_those_that_are_none_are_named(notes):
    (notes / "long.txt").write_text("dog " * 5000)
    (notes / "old.txt").write_bytes("café".encode("cp1252"))
    (notes / "emoji.txt").write_text('a "cat" 🐈,\n道を渡る\n', encoding="utf-16")
    (notes / "bytes.txt").write_bytes(bytes(range(256)) * 4)
    (notes / "empty.txt").write_text(" \n")
    table = open_table(notes)
    texts = dict(zip(table.cells("path"), table.cells("text"), strict=True))
    assert len(texts["long.txt"]) == 5000
    assert texts["old.txt"] == "café"
    assert texts["emoji.txt"] == 'a "cat" 🐈,\n道を渡る'
    assert table.notes == [
        "1 of 29 texts are cut after 5000 characters",
        "2 of 29 texts are not UTF-8, their encoding is guessed: emoji.txt (utf-16-le), old.txt (cp1252)",
        "2 of 29 texts cannot be read and are skipped: bytes.txt is not text, empty.txt is empty",
    ]


@pytest.mark.parametrize("output", ["-o", "--save", "--report"])
def test_a_text_or_a_file_of_labels_is_never_written(notes, tmp_path, capsys, output):
    text = notes / "pets" / "00.txt"
    before = text.read_bytes()
    others = [] if output == "-o" else ["-o", "out.csv"]
    assert main(["label", "notes", output, str(text), "--force", *others]) == 2
    assert f"{text} is one of the files of the input notes, which are never overwritten" in capsys.readouterr().err
    assert text.read_bytes() == before
    write_labels(tmp_path / "labels.csv", [("00", "pets"), ("01", "cars")])
    command = ["label", "notes", "--labels", "labels.csv", output, "labels.csv", "--force", *others]
    assert main(command) == 2
    assert "labels.csv is an input" in capsys.readouterr().err
    assert main(["label", "notes", "-o", "notes/new.csv", "--dry-run"]) == 0  # a new file is welcome


def test_a_folder_of_texts_without_labels_says_where_to_put_them(tmp_path):
    (tmp_path / "plain").mkdir()
    for number in range(3):
        (tmp_path / "plain" / f"{number}.txt").write_text(f"text {number}")
    with pytest.raises(RequestError, match=r"none of the 3 texts in .* has a label yet"):
        otprop.label(tmp_path / "plain")
    with pytest.raises(RequestError, match="is a column of the texts"):
        otprop.label(tmp_path / "plain", "text")
    for path in (tmp_path / "plain").iterdir():
        path.write_text("")
    with pytest.raises(TableError, match="no text that can be read"):
        open_table(tmp_path / "plain")
