"""Cells become labels: which are empty, which are classes, and what is refused or noted."""

from __future__ import annotations

import datetime
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from otprop.files import MISSING_MARKERS, read_table
from otprop.table.errors import ColumnError
from otprop.table.target import read_target


def test_codes_follow_the_classes_in_order():
    target = read_target(["b", None, "a", "b", ""], "y")
    assert target.classes == target.values == ["a", "b"]
    np.testing.assert_array_equal(target.codes, [1, -1, 0, 1, -1])
    np.testing.assert_array_equal(target.given, [True, False, True, True, False])


@pytest.mark.parametrize("empty", ["", "  ", "\t", "NA", "N/A", " nan ", "NaN", "null", "None", "<NA>", None, np.nan])
def test_empty_cells_are_unlabelled(empty):
    assert read_target(["a", "b", empty], "y").codes.tolist() == [0, 1, -1]


def test_nulls_of_pandas_are_unlabelled():
    pd = pytest.importorskip("pandas")
    assert read_target(["a", "b", pd.NA, pd.NaT], "y").codes.tolist() == [0, 1, -1, -1]


def test_a_class_may_be_called_none_which_is_noted():
    target = read_target(["none", "mild", None], "y")
    assert target.classes == ["mild", "none"]
    assert any("add unlabeled='none'" in note for note in target.notes)


@pytest.mark.parametrize("word", MISSING_MARKERS)
def test_what_is_missing_in_a_feature_is_unlabelled_in_the_target(word):
    table = read_table(io.BytesIO(f"x\ty\n{word}\t{word}\na\ta\nb\tb\n".encode()))
    assert table.frame(["x"])["x"].isna().tolist() == [True, False, False]
    assert read_target(table.cells("y"), "y").given.tolist() == [False, True, True]


def test_a_class_of_most_rows_is_suspected_where_hardly_any_row_is_left():
    cells = [*["open"] * 42, *["a"] * 8, *["b"] * 8, None, None]
    note = "'open' has 42 of 60 rows: if it marks unlabelled rows, add unlabeled='open'"
    assert note in read_target(cells, "y").notes
    assert note not in read_target([*cells, *[None] * 60], "y").notes
    with pytest.raises(ValueError, match=r"If 'open' \(42 of 58 rows\) marks .* rows, add unlabeled='open'\."):
        read_target(cells[:-2], "y")
    with pytest.raises(ValueError, match=r"If '\?' \(1 of 4 rows\) marks unlabelled rows, add unlabeled='\?'\."):
        read_target(["a", "a", "b", "?"], "y")


def test_a_word_taken_for_empty_is_noted():
    assert "cells of 'y' with 'NA' count as unlabelled" in read_target(["a", "a", "b", "b", "NA"], "y").notes


@pytest.mark.parametrize(("word", "cells"), [("?", ["a", "b", "?"]), ("-1", [0, 1, -1]), ("-1", [0.0, 1.0, -1.0])])
def test_what_is_named_marks_unlabelled_cells_too(word, cells):
    target = read_target([*cells, None], "y", [word])
    assert target.codes.tolist() == [0, 1, -1, -1]
    assert not [note for note in target.notes if "unlabelled" in note]


@pytest.mark.parametrize(("cells", "shown"), [(["a", "b", "?", None], "'?'"), ([0, 1, -1, None], "'-1'")])
def test_a_likely_marker_is_a_class_with_a_note(cells, shown):
    target = read_target(cells, "y")
    assert len(target.classes) == 3
    marked = f"{shown} (1 row) is taken as a class of 'y'; if it marks unlabelled rows, add unlabeled={shown}"
    assert marked in target.notes


def test_native_values_come_back_as_they_were():
    day = datetime.date(2020, 1, 2)
    for cells in ([2, 10, None], [True, False, None], [1.5, 2.5, None], [day, day.replace(day=3), None]):
        target = read_target(cells, "y")
        back = [None if code < 0 else target.values[code] for code in target.codes]
        assert back == cells
        assert [type(value) for value in back] == [type(value) for value in cells]


def test_numbers_are_in_order_of_size_also_as_text():
    assert read_target(["10", "9", "-3", None], "y").classes == ["-3", "9", "10"]


def test_labels_that_differ_only_in_case_or_blanks_are_listed():
    target = read_target(["Yes", "yes ", "no", "no", None], "y")
    assert target.classes == ["Yes", "no", "yes "]
    assert any("differ only in case or blanks: 'Yes', 'yes '" in note for note in target.notes)


def test_the_same_number_written_in_two_ways_is_two_classes_with_a_note():
    target = read_target(["1", "1.0", "2", None], "y")
    assert target.classes == ["1", "1.0", "2"]
    assert any("how a number is written: '1', '1.0'" in note for note in target.notes)


def test_a_label_with_a_single_row_is_said():
    assert any("single row: 'b'" in note for note in read_target(["a", "a", "b", None], "y").notes)
    assert read_target(["a", "a", "b", "b", None], "y").notes == []


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([], "no rows"),
        ([None, "", "NA"], "no label in any of its 3 rows"),
        (["a", "a", None], "one class only \\('a', 2 rows\\)"),
        (["a", "b"], "a label in every row: nothing is left to do"),
        ([[1], [2], None], "holds cells of type list"),
        ([*np.linspace(0, 1, 100), None], "100 different numbers in 100 labelled rows.*a measurement"),
        ([*(f"{number / 7:.3f}" for number in range(100)), ""], "a measurement, not classes"),
        ([*(f"{number / 7:.2f}" for number in range(24)), ""], "24 different numbers in 24 labelled rows.*measurement"),
        ([*([0.17, 0.5, *range(1, 70)] * 8), None], "71 different numbers in 568 labelled rows.*measurement"),
    ],
)
def test_a_column_without_classes_to_spread_is_refused(cells, message):
    with pytest.raises(ValueError, match=f"the target 'y' .*{message}") as caught:
        read_target(cells, "y")
    assert "\n" not in str(caught.value)


def test_decimals_that_repeat_and_few_of_them_are_classes():
    assert len(read_target([*([0.5, 1.0, 1.5, 2.0] * 9), None], "y").classes) == 4
    assert len(read_target([0.5, 1.5, 2.5, None], "y").classes) == 3
    assert len(read_target([*range(10), None], "y").classes) == 10
    ratings = [number / 2 for number in range(1, 21)]
    assert len(read_target([*(ratings * 5), None], "y").classes) == 20
    assert len(read_target([*(list(range(70)) * 8), None], "y").classes) == 70


@pytest.mark.parametrize("cells", [[*range(24), None], [*(f"{number / 7:.2f}" for number in range(24)), ""]])
def test_numbers_that_hardly_repeat_are_classes_only_on_request(cells):
    with pytest.raises(ColumnError, match="24 different numbers") as caught:
        read_target(cells, "y")
    assert (caught.value.column, caught.value.hint.parameter) == ("y", "numeric_classes")
    assert len(read_target(cells, "y", numeric_classes=True).classes) == 24
    assert len(read_target([*range(24), *range(24), None], "y").classes) == 24


SPELLINGS = ["setosa"] * 6 + ["Setosa", "setosa ", "setoza", "setsoa", "setossa", "virginica", "virginica", None]


def test_labels_with_a_typing_error_are_named():
    notes = [note for note in read_target(SPELLINGS, "y").notes if "a typing error" in note]
    assert len(notes) == 3
    expected = "labels of 'y' that differ only in a typing error: 'setosa', 'setoza'; they are separate classes"
    assert any(note.startswith(expected) for note in notes)
    assert all(note.parameter == "merge_labels" for note in notes)


def test_labels_that_differ_only_in_spelling_are_merged_on_request():
    target = read_target(SPELLINGS, "y", merge=True)
    assert target.classes == target.values == ["setosa", "virginica"]
    assert target.codes.tolist() == [0] * 11 + [1, 1, -1]
    assert any("'setosa', 'setoza'; they are one class now" in note for note in target.notes)
    assert read_target(["1", "1.0", "1", "2", None], "y", merge=True).classes == ["1", "2"]


@pytest.mark.parametrize(
    "cells",
    [
        ["cat"] * 6 + ["bat", "car"],  # short words
        ["type1"] * 6 + ["type2"],  # another number
        ["winter", "winder"],  # as frequent
        ["setosa"] * 6 + ["virginica"],
    ],
)
def test_classes_that_are_merely_near_stay_apart(cells):
    target = read_target([*cells, None], "y", merge=True)
    assert len(target.classes) == len(set(cells))


def test_merging_all_labels_into_one_class_is_refused():
    with pytest.raises(ColumnError, match="one class only"):
        read_target(["yes", "Yes", "yes", None], "y", merge=True)


def test_many_classes_that_repeat_are_classes():
    assert len(read_target([*(list(range(100)) * 5), None], "y").classes) == 100


@given(st.lists(st.one_of(st.none(), st.text(max_size=4)), min_size=1, max_size=30))
def test_every_cell_has_its_own_text_as_label_or_none(cells):
    try:
        target = read_target(cells, "y")
    except ValueError:
        return
    for cell, code in zip(cells, target.codes, strict=True):
        if code >= 0:
            assert target.classes[code] == cell
        else:
            assert cell is None or not cell.strip() or cell.strip() in MISSING_MARKERS
