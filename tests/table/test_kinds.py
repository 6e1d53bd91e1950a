"""Which encoder a column gets, and which columns are left out."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal

import numpy as np
import pytest

from otprop.table.features import Features
from tests.table.frames import fitted, mixed, one, reasons, roles

pd = pytest.importorskip("pandas")


def test_each_column_gets_the_role_of_its_values():
    found = roles(fitted(mixed(), embedding="e_"))
    assert found == {
        "row": "skipped",
        "code": "skipped",
        "age": "number",
        "income": "number",
        "same": "skipped",
        "empty": "skipped",
        "member": "boolean",
        "colour": "category",
        "city": "text",
        "when": "date",
        "note": "text",
        "vector": "embedding",
        "e_*": "embedding",
    }


@pytest.mark.parametrize(
    "values",
    [
        list(range(5, 25)),
        np.random.default_rng(0).permutation(30),
        [number for number in range(5, 45) if number % 9],
        [f"id-{number}" for number in range(20)],
        [None, *(f"{number:04d}" for number in range(20))],
    ],
)
def test_identifiers_are_skipped_unless_they_are_asked_for(values):
    frame = pd.DataFrame({"it": values, "x": np.linspace(0, 1, len(values)) ** 2})
    assert reasons(fitted(frame))["it"].startswith("identifier")
    assert roles(fitted(frame, only=["it", "x"]))["it"] != "skipped"


@pytest.mark.parametrize(
    "values",
    [
        np.random.default_rng(0).normal(size=30),
        np.arange(30) + 0.5,
        np.random.default_rng(0).choice(10_000, 30, replace=False),
        np.sort(np.random.default_rng(0).choice(10_000, 30, replace=True))[::-1],  # sorted prices
        [*np.sort(np.random.default_rng(0).choice(10_000, 30, replace=False)), 17],
        pd.date_range("2020-01-01", periods=30),
        [f"a small note about number {number}" for number in range(30)],
        [3, 1, 2, 3] * 5,
    ],
)
def test_measurements_dates_and_prose_are_no_identifiers(values):
    features, _ = one(values)
    assert roles(features)["it"] != "skipped"


def test_cells_of_python_objects_are_read_by_what_they_are():
    frame = pd.DataFrame(
        {
            "truth": pd.Series([True, False, None, True] * 3, dtype=object),
            "money": pd.Series([Decimal("1.5"), Decimal("2.5"), None, Decimal("7")] * 3, dtype=object),
            "day": pd.Series([datetime.date(2020, 1, 1), datetime.date(2021, 5, 3), None] * 4, dtype=object),
            "both": pd.Series([1, "a", None] * 4, dtype=object),
            "nested": pd.Series([{"a": 1}, {"b": 2}, None] * 4, dtype=object),
            "kind": pd.Series(["u", "v", None] * 4, dtype="category"),
            "waited": pd.to_timedelta(np.arange(12) ** 2, "s"),
        }
    )
    features = fitted(frame)
    assert list(roles(features).values()) == [
        *("boolean", "number", "date", "category", "skipped", "category", "number")
    ]
    assert np.isfinite(features.transform(frame)).all()


@pytest.mark.parametrize("name", ["id", "lotId", "Unnamed: 0", "", "lot", "n"])
def test_numbers_that_only_rise_are_an_index_whatever_their_gaps_and_name(name):
    frame = pd.DataFrame({name: [2 * number**2 for number in range(20)], "x": np.linspace(0, 1, 20) ** 2})
    assert [use.is_identifier for use in fitted(frame).columns] == [True, False]
    nameless = name in ("", "Unnamed: 0")  # in any order
    assert fitted(frame.sample(frac=1, random_state=0)).columns[0].is_identifier == nameless
    assert roles(fitted(frame, only=[name, "x"]))[name] == "number"
    assert fitted(frame.iloc[::-1]).columns[0].is_identifier == (nameless or name in ("id", "lotId"))


def leaking(n: int = 200, n_given: int = 20):
    """A table of which some rows are labelled, with columns that were written together with the labels."""
    frame = mixed(n)[["age", "colour", "note"]]
    given = np.arange(n) % (n // n_given) == 0
    frame["reviewer"] = np.where(given, "anna", None)
    days = pd.Series(pd.date_range("2024-01-01", periods=n), index=frame.index)
    frame["label_date"] = days.where(given)
    frame["species_note"] = np.where(given & (np.arange(n) % 20 == 0), "looks like an old one", "")
    frame["nearly"] = np.where(given | (np.arange(n) == 7), 1.0 + np.arange(n), np.nan)
    frame["outcome"] = np.where(given, np.where(np.arange(n) % 20 == 0, "good", "bad"), "unknown")
    frame["checked"] = given
    frame["score"] = np.where(given, 1.0 + np.arange(n) % 3, -1.0)
    frame["usual"] = np.where(np.random.default_rng(2).random(n) < 0.02, "rare", "usual")
    frame["seldom"] = np.where(np.random.default_rng(1).random(n) < 0.1, 1.5, np.nan)
    return frame, given


def test_columns_that_are_filled_only_where_the_target_is_are_skipped_and_named():
    frame, given = leaking()
    features = Features(list(frame.columns)).fit(frame, given)
    filled, differ = "filled only where the target is", "other values in the labelled rows than elsewhere"
    leaks = [name for name, why in reasons(features).items() if why == filled]
    assert leaks == ["reviewer", "label_date", "species_note", "nearly"]
    assert [name for name, why in reasons(features).items() if why == differ] == ["outcome", "checked", "score"]
    assert len(features.notes) == 2
    assert re.match(r"'reviewer', 'label_date', .* are filled only where the target is", features.notes[0])
    assert re.match(f"'outcome', 'checked', 'score' have {differ}, as if", features.notes[1])
    assert [note.parameter for note in features.notes] == ["features", "features"]
    assert Features(list(frame.columns)).fit(frame).notes == []


def test_such_columns_are_used_where_they_are_asked_for():
    frame, given = leaking()
    features = Features(list(frame.columns), only=["age", "reviewer"]).fit(frame, given)
    assert roles(features)["reviewer"] != "skipped"


def test_text_whose_order_of_day_and_month_is_open_is_no_date():
    features = fitted(pd.DataFrame({"it": pd.date_range("2020-01-01", periods=50)}))
    with pytest.raises(ValueError, match="column 'it' holds '11/02/2024' in row 2, where dates are expected"):
        features.transform(pd.DataFrame({"it": ["2024-02-11", "11/02/2024"]}))
