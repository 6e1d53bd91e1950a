"""Labels of any type, and what counts as unlabelled."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from otprop import OTP
from otprop._labels import class_list, class_numbers, encode_labels, find_unlabeled

COLUMNS = {
    "ints with -1": np.array([2, -1, 7, 2]),
    "a list with None": ["a", None, "b", "a"],
    "objects with NaN": np.array(["a", np.nan, "b", "a"], dtype=object),
    "objects with -1 beside text": np.array(["a", -1, "b", "a"], dtype=object),
    "floats with NaN": np.array([0.0, np.nan, 1.0, 0.0]),
    "booleans with None": [False, None, True, False],
    "a list of ints with None": [3, None, 5, 3],
    "pandas text": pd.Series(["a", None, "b", "a"]),
    "pandas nullable integers": pd.Series([1, pd.NA, 2, 1], dtype="Int64"),
    "pandas nullable booleans": pd.Series([False, pd.NA, True, False], dtype="boolean"),
    "pandas strings": pd.Series(["a", pd.NA, "b", "a"], dtype="string"),
    "pandas categories": pd.Series(["a", None, "b", "a"], dtype="category"),
    "polars text": pl.Series(["a", None, "b", "a"]),
    "polars integers": pl.Series([1, None, 2, 1]),
    "pandas dates": pd.to_datetime(pd.Series(["2020-01-01", None, "2021-01-01", "2020-01-01"])),
    "dates": np.array(["2020-01-01", "NaT", "2021-01-01", "2020-01-01"], dtype="datetime64[D]"),
    "durations": np.array([1, "NaT", 2, 1], dtype="timedelta64[s]"),
    "masked integers": np.ma.masked_equal([3, -1, 5, 3], -1),
    "masked text": np.ma.array(["a", "?", "b", "a"], mask=[False, True, False, False]),
    "polars booleans": pl.Series([False, None, True, False]),
}


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS.keys())
def test_every_kind_of_column_is_read_with_its_own_marker(column):
    labels = encode_labels(column)
    assert labels.codes.tolist() == [0, -1, 1, 0]
    assert len(labels.classes) == 2
    assert labels.labeled.tolist() == [0, 2, 3]
    assert labels.unlabeled.tolist() == [1]


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS.keys())
def test_class_numbers_are_turned_back_into_the_labels_that_were_given(column):
    labels = encode_labels(column)
    values = list(column)
    back = labels.decode(np.array([0, 0, 1, 0]))
    assert back[0] == values[0]
    assert back[2] == values[2]
    assert back[1] == values[0]


def test_rows_left_unlabelled_come_back_as_the_marker():
    assert encode_labels([1, -1, 2]).decode(np.array([0, -1, 1])).tolist() == [1, -1, 2]
    assert encode_labels(["a", None]).decode(np.array([0, -1])).tolist() == ["a", None]
    assert np.isnan(encode_labels([1.0, np.nan]).decode(np.array([0, -1]))[1])
    assert encode_labels(pd.Series([1, pd.NA], dtype="Int64")).decode(np.array([0, -1]))[1] is pd.NA


def test_nullable_integers_stay_integers():
    for column in (pd.Series([1, pd.NA, 2], dtype="Int64"), pl.Series([1, None, 2])):
        assert encode_labels(column).classes.dtype.kind == "i"


def test_text_that_looks_like_a_number_stays_text():
    labels = encode_labels(np.array(["007", None, "1e5"], dtype=object))
    assert labels.classes.tolist() == ["007", "1e5"]


def test_a_marker_of_ones_own_makes_minus_one_a_class():
    labels = encode_labels([-1, 1, 0], unlabeled=0)
    assert labels.classes.tolist() == [-1, 1]
    assert labels.codes.tolist() == [0, 1, -1]


def test_true_is_not_the_marker_one():
    with pytest.warns(UserWarning, match="unlabeled=1 does not occur in y"):
        assert encode_labels(np.array([True, False, True]), unlabeled=1).codes.tolist() == [1, 0, 1]


def test_no_row_needs_to_be_unlabelled():
    assert encode_labels(["b", "a"]).codes.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0.0, -1.0, np.nan], r"two different markers .* -1 \(1 rows\) and NaN \(1 rows\)"),
        (np.array(["a", None, np.nan], dtype=object), "two different markers"),
        (np.array(["a", -1, "-1"], dtype=object), "the marker -1 is also a class"),
        ([-1, -1, -1], "y has no labelled row: all 3 entries"),
        ([None, None], "y has no labelled row"),
        ([np.inf, 1.0, 0.0], "y contains infinity"),
        (np.zeros((3, 2)), r"y should be a 1d array, got an array of shape \(3, 2\)"),
        ([0.1, 0.25, 0.7, 1.3], "Unknown label type"),
        (None, "requires y to be passed"),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_came(y, message):
    with pytest.raises(ValueError, match=message):
        encode_labels(y)


def test_labels_of_two_types_are_refused():
    with pytest.raises(TypeError, match=r"mixes labels of different types \(int, str\)"):
        encode_labels(["a", 1, None])


def test_a_missing_value_beside_a_marker_of_ones_own_is_refused():
    with pytest.raises(ValueError, match=r"None in addition to the marker unlabeled='\?'"):
        encode_labels(["a", "?", None], unlabeled="?")


def test_the_class_one_beside_the_missing_value_of_pandas_is_labelled():
    y = pd.array([1, None, None, 1], dtype="Int64")
    assert OTP(evidence=None).fit([[0.0], [1.0], [2.0], [3.0]], y).transduction_.tolist() == [1, 1, 1, 1]


@pytest.mark.filterwarnings("error")
def test_a_part_of_a_column_may_lack_labels_or_markers():
    values, missing = find_unlabeled([None, None])
    assert (values.tolist(), missing.tolist()) == ([None, None], [True, True])
    values, missing = find_unlabeled(np.array(["a", "b"]), "?")
    assert missing.tolist() == [False, False]
    assert find_unlabeled(["?", "b"], "?")[1].tolist() == [True, False]
    for name, column in COLUMNS.items():
        assert (find_unlabeled(column)[1] == (encode_labels(column).codes < 0)).all(), name


@pytest.mark.parametrize("unit", ["D", "s", "ns"])
def test_dates_have_a_class_number_whatever_their_unit_and_type(unit):
    classes = np.array(["2020-01-01", "2021-01-01"], dtype=f"M8[{unit}]")
    second = [np.datetime64("2021"), np.datetime64("2021-01-01", "ns"), pd.Timestamp("2021-01-01"), "2021-01-01"]
    assert class_numbers([*second, pd.Timestamp("2022-01-01"), "soon"], classes).tolist() == [1, 1, 1, 1, -1, -1]
    assert class_numbers(class_list(classes), classes).tolist() == [0, 1]


def test_classes_of_dates_can_be_named_in_class_prior():
    dates = np.array(["2020-01-01", "2021-01-01", "NaT"], dtype="M8[ns]")
    model = OTP(evidence=None, class_prior={pd.Timestamp("2021-01-01"): 0.75, np.datetime64("2020"): 0.25})
    X = np.array([[0.0], [5.0], [5.1]])
    np.testing.assert_allclose(model.fit(X, dates).class_prior_, [0.25, 0.75])
    with pytest.raises(ValueError, match=r"class_prior lacks .*datetime64\('2021-01-01"):
        OTP(class_prior={np.datetime64("2020"): 1.0}).fit(X, dates)


@pytest.mark.parametrize("entry", [["a"], {"a": 1}, {"a"}, np.array([1, 2])])
def test_labels_that_hold_several_values_are_refused_by_their_place(entry):
    y = np.empty(3, dtype=object)
    y[:] = ["a", None, None]
    y[1] = entry
    for labels in (y, pytest.importorskip("pandas").Series(list(y))):
        with pytest.raises(TypeError, match=f"got a {type(entry).__name__} in place 1"):
            encode_labels(labels)
