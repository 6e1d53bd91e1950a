"""Labels that a user adds: how their rows and classes are named; types and new classes, in linear time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import otprop
from otprop._validation import ParameterError
from otprop.cli import main
from otprop.labelling.corrections import Corrections, corrected_cells
from otprop.table.target import ClassNames
from tests.frames import mixed_frame

pd = pytest.importorskip("pandas")

QUICK = {"method": "otp", "settings": {"evidence": None}}


@pytest.fixture(scope="module")
def frame() -> Any:
    return mixed_frame(60).replace({"kind": {"a": "bad", "b": "good", "c": "excellent"}})


@pytest.fixture(scope="module")
def result(frame: Any) -> Any:
    return otprop.label(frame, "kind", **QUICK)


@pytest.mark.parametrize(("word", "meant"), [("bda", "bad"), ("Good", "good"), ("excelent", "excellent")])
def test_a_label_that_looks_mistyped_is_asked_about(result: Any, word: str, meant: str) -> None:
    with pytest.raises(ParameterError, match=rf"'{word}' for row 30, .*; did you mean '{meant}'\?.*new_classes=True"):
        result.add({30: word})
    assert word in result.add({30: word}, new_classes=True).classes


@pytest.mark.parametrize("word", ["mad", "grade 2", "fair"])
def test_a_label_that_is_a_word_of_its_own_is_a_new_class(result: Any, word: str) -> None:
    assert word in result.add({30: word}).classes


@pytest.mark.parametrize("label", [["bad"], {"bad": 1}, {"bad"}, np.array(["bad"])])
def test_a_label_that_is_no_single_value_is_refused(result: Any, frame: Any, label: Any) -> None:
    why = rf"have a label of type {type(label).__name__} for row 30; labels are text or numbers\."
    with pytest.raises(ParameterError, match=f"labels {why}"):
        result.add({30: label})
    with pytest.raises(ParameterError, match=f"corrections {why}"):
        otprop.label(frame, "kind", corrections={30: label}, **QUICK)


def test_a_list_in_a_frame_of_corrections_is_refused(frame: Any) -> None:
    rows = pd.DataFrame({"row": [31], "label": [["bad"]]})
    with pytest.raises(ParameterError, match=r"of type list for row 31 \(counted from 1\); labels are"):
        otprop.label(frame, "kind", corrections=rows, **QUICK)


def test_the_command_asks_about_a_mistyped_label(frame: Any, tmp_path: Path, capsys: Any) -> None:
    frame.to_csv(tmp_path / "lots.csv", index=False)
    pd.DataFrame({"row": [31], "label": ["bda"]}).to_csv(tmp_path / "more.csv", index=False)
    command = ["label", str(tmp_path / "lots.csv"), "--target", "kind", "--corrections", str(tmp_path / "more.csv")]
    assert main([*command, "--set", "evidence=None"]) == 2
    assert "did you mean 'bad'? To make it a class, use --new-classes." in capsys.readouterr().err
    assert main([*command, "--set", "evidence=None", "--new-classes", "--quiet"]) == 0


def test_a_list_of_labels_names_no_rows(result: Any) -> None:
    for labels in (["se", "ve"], [1, 2], ("good", "bad")):
        with pytest.raises(ParameterError, match="labels must say which row gets which label: a mapping such as"):
            result.add(labels)
    with pytest.raises(ValueError, match=r"there is no file no\.csv"):
        result.add(["no.csv"])


def test_labels_beside_an_empty_target_are_found_or_asked_for(frame: Any, result: Any) -> None:
    rows = result.suggest(3)
    found = result.add(rows.assign(label="good"))  # the target column stays empty
    assert (found.table.loc[rows.index, "kind_label"] == "good").all()
    with_label = frame.assign(label="box")  # a feature of that name is no label
    own = otprop.label(with_label, "kind", **QUICK)
    with pytest.raises(ParameterError, match=r"'kind' of .* is empty\. Put the labels there, not in 'label'"):
        own.add(own.suggest(3))


def test_rows_have_one_name_in_frames_and_files(frame: Any, tmp_path: Path) -> None:
    named = frame.set_axis([f"lot {number}" for number in range(len(frame))]).rename_axis("lot")
    for data in (frame, named, named.rename_axis(None)):
        result = otprop.label(data, "kind", **QUICK)
        rows = result.suggest(4)
        assert "row" not in rows
        assert set(rows.index) <= set(result.table.index)
        rows["kind"] = "good"
        path = tmp_path / f"rows {id(data)}.csv"
        rows.to_csv(path)
        expected = result.add(dict.fromkeys(rows.index, "good")).table
        pd.testing.assert_series_equal(result.add(rows).table["kind_label"], expected["kind_label"])
        pd.testing.assert_series_equal(result.add(path).table["kind_label"], expected["kind_label"])
        with pytest.raises(ParameterError, match=r"a column 'row' counted from 1 or an index '(index|lot)'"):
            result.add(rows.reset_index(drop=True))  # rows 0 to 3 are not what was suggested


def test_rows_of_a_file_and_of_polars_are_counted_from_0(frame: Any, tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    frame.to_csv(tmp_path / "lots.csv", index=False)
    of_file = otprop.label(tmp_path / "lots.csv", "kind", **QUICK)
    of_polars = otprop.label(polars.from_pandas(frame), "kind", **QUICK)
    rows = of_file.suggest(3)
    assert rows["weight"].astype(float).tolist() == of_file.table.loc[rows.index, "weight"].tolist()
    assert of_polars.suggest(3)["index"].to_list() == rows.index.tolist()
    filled = of_polars.suggest(3).with_columns(kind=polars.lit("good"))
    assert (
        of_polars.add(filled).table["kind_label"].to_list()
        == of_file.add(rows.assign(kind="good")).table["kind_label"].to_list()
    )


def test_add_opens_a_text_model_once(frame: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from otprop.table import features

    opened: list[Any] = []
    real = features.open_text_model
    monkeypatch.setattr(features, "open_text_model", lambda model: opened.append(model) or real(model))
    result = otprop.label(frame, "kind", text_model=lambda texts: [[len(text), 1.0] for text in texts], **QUICK)
    result.add({30: "good"})
    assert len(opened) == 1


class Label:
    """A label that counts how often it is written out."""

    written = 0

    def __init__(self, name):
        self.name = name

    def __str__(self):
        Label.written += 1
        return self.name


def cells_of(values):
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


def test_new_classes_are_compared_with_the_known_ones_once_each():
    n = 200
    cells = cells_of([Label(f"a{row}") for row in range(n)])
    new = Corrections({row: Label(f"new {row}") for row in range(n)})
    Label.written = 0
    found, corrected, notes = corrected_cells(cells, new, "kind")
    assert Label.written < 20 * n
    assert corrected.all()
    assert [cell.name for cell in found[:2]] == ["new 0", "new 1"]
    assert notes[0].startswith("labels of the corrections that 'kind' does not have: 'new 0'")


def test_labels_are_matched_as_numbers_and_each_class_is_read_as_one_once(monkeypatch):
    read = []
    monkeypatch.setattr("otprop.table.target.as_number", lambda text: read.append(text) or float(text))
    cells = cells_of([f"{row}" for row in range(100)])
    found, corrected, notes = corrected_cells(cells, Corrections({row: f"{row}.0" for row in range(100)}), "kind")
    assert found.tolist() == cells.tolist()
    assert not corrected.any()
    assert notes[0].startswith("labels of the corrections are matched to the classes: '0.0' is '0'")
    assert len(read) <= 200


def test_a_number_that_two_classes_share_is_a_new_class():
    cells = cells_of(["1", "1.0", "2"])
    found, _, notes = corrected_cells(cells, Corrections({2: "1.00"}), "kind")
    assert found[2] == "1.00"
    assert notes[0] == "labels of the corrections that 'kind' does not have: '1.00'"


def test_a_letter_too_many_in_a_short_class_is_asked_about_and_another_short_word_is_not():
    names = ClassNames(["Yes", "No", "cat"])
    assert names.mistyped("Yess") == "Yes"
    assert names.mistyped("bat") is None
