"""The labelling loop from Python: corrections, more labels, suggestions, labels that look wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import otprop
from otprop._validation import ParameterError
from tests.test_label import FAST, mixed_frame

pd = pytest.importorskip("pandas")

KINDS = np.array(["a", "b", "c"], dtype=object)


@pytest.fixture(scope="module")
def frame() -> Any:
    return mixed_frame()


@pytest.fixture(scope="module")
def first(frame: Any) -> Any:
    return otprop.label(frame, "kind", settings=FAST)


def truth(rows: Any) -> Any:
    return KINDS[np.asarray(rows) % 3]


def filled(suggested: Any) -> Any:
    """Suggested rows with their labels filled in."""
    suggested = suggested.copy()
    suggested["kind"] = truth(suggested.index)
    return suggested


@pytest.mark.parametrize("settings", [FAST, {}])
def test_adding_labels_gives_what_a_fresh_run_with_them_gives(frame: Any, settings: dict[str, Any]) -> None:
    rng = np.random.default_rng(1)
    result, labels, drawn = otprop.label(frame, "kind", settings=settings), {}, set()
    for turn in range(3):
        rows = rng.choice(90, 6, replace=False)  # some of them have a label already, some of those another one
        new = dict(zip(rows.tolist(), rng.choice(KINDS, 6).tolist(), strict=True))
        drawn |= set(new) - set(labels) if turn == 1 else set()
        labels |= new
        result = result.add(new, drawn=turn == 1)
        assert result.model.reused_[:2] == ("neighbours", "graphs")
    chosen = [row in labels and row not in drawn and row >= 12 for row in range(90)]
    with_labels = frame.copy()
    with_labels.loc[list(labels), "kind"] = list(labels.values())
    fresh = otprop.label(with_labels, "kind", settings=settings, chosen=chosen)
    for name in ("kind_label", "kind_certainty", "kind_confidence", "kind_novelty", "kind_round"):
        assert result.table[name].tolist() == fresh.table[name].tolist()
    assert result.outcome.expected_error == fresh.outcome.expected_error
    assert result.outcome.error_range == fresh.outcome.error_range
    np.testing.assert_array_equal(result.outcome.distributions, fresh.outcome.distributions)


def test_the_result_before_stays_as_it_was(frame: Any, first: Any) -> None:
    before, model = first.table.copy(), first.model
    second = first.add({40: "b", 41: "b"})
    assert first.model is model is not second.model
    pd.testing.assert_frame_equal(first.table, before)
    assert second.table["kind_source"].tolist().count("corrected") == 2
    assert second.job.vectors is first.job.vectors


def test_labels_come_as_mapping_series_frame_or_file(frame: Any, first: Any, tmp_path: Path) -> None:
    rows = [20, 33, 70]
    expected = first.add(dict(zip(rows, truth(rows), strict=True))).table
    file = pd.DataFrame({"row": np.array(rows) + 1, "label": truth(rows), "file_digest": first.job.table.digest})
    file.to_csv(tmp_path / "more.csv", index=False)
    for labels in (pd.Series(truth(rows), index=rows), file, str(tmp_path / "more.csv"), tmp_path / "more.csv"):
        pd.testing.assert_frame_equal(first.add(labels).table, expected)
    named = frame.set_axis([f"lot {number}" for number in range(90)])
    result = otprop.label(named, "kind", settings=FAST, corrections=pd.Series({"lot 20": "c", "lot 33": None}))
    assert result.table.loc["lot 20", ["kind_label", "kind_source"]].tolist() == ["c", "corrected"]
    assert result.table.loc["lot 33", "kind_source"] == "propagated"


def test_mappings_and_label_issues_go_by_the_index_of_the_frame(frame: Any, tmp_path: Path) -> None:
    frame = frame.assign(kind=frame["kind"].mask(frame.index == 1, "c"))  # the others say b
    named = frame.set_axis(np.arange(90)[::-1])  # row 1 is called 88
    result, plain = (otprop.label(one, "kind", settings=FAST) for one in (named, frame))
    assert set(result.label_issues.index) == {89 - row for row in plain.label_issues.index}
    second = result.add({88: "b", 69: "a"})
    assert second.table["kind_label"].tolist()[1] == "b"
    assert second.table.loc[69, ["kind_label", "kind_source"]].tolist() == ["a", "corrected"]
    frame.to_csv(tmp_path / "lots.csv", index=False)
    of_file = otprop.label(tmp_path / "lots.csv", "kind", settings=FAST)  # no index: counted from 0
    assert of_file.label_issues.index.tolist() == plain.label_issues.index.tolist()
    assert of_file.add({1: "b"}).table["kind_label"].tolist()[1] == "b"
    for wrong in (90, -1, "x", 1.5):
        with pytest.raises(ParameterError, match=f"labels name the row {wrong!r}: .* has 90 rows, counted from 0"):
            of_file.add({wrong: "a"})
    twice = otprop.label(frame.set_axis([0] * 90), "kind", settings=FAST)
    with pytest.raises(ParameterError, match=r"index of the DataFrame, which has equal entries\. Give"):
        twice.add({0: "a"})
    assert twice.add(pd.DataFrame({"row": [31], "label": ["b"]})).table["kind_source"].tolist()[30] == "corrected"


def test_a_result_says_how_many_labels_it_needs(first: Any, frame: Any) -> None:
    assert first.labels_needed(0.1) == first.model.labels_needed(0.1)
    with pytest.raises(ParameterError, match="method 'otp-paper' does not estimate its error"):
        otprop.label(frame, "kind", method="otp-paper").labels_needed(0.1)


def test_a_target_that_is_nearly_a_column_is_a_mistake(frame: Any) -> None:
    with pytest.raises(ParameterError, match=r"no column 'kinds'; did you mean 'kind'\? A new column must"):
        otprop.suggest(frame, "kinds")
    with pytest.raises(ParameterError, match="did you mean 'kind'"):
        otprop.label(frame, "Kind", corrections={3: "a", 4: "b"})
    assert "ripeness" in otprop.suggest(frame, "ripeness", 3)


def test_suggested_rows_that_are_filled_in_are_added(frame: Any, first: Any) -> None:
    suggested = first.suggest(10, random_share=0.3)
    assert list(suggested.columns) == ["reason", "kind", *frame.columns.drop("kind"), "file_digest"]
    assert suggested["kind"].isna().all()
    assert (suggested["reason"] == "random").sum() == 3
    assert suggested.index.name == "index"
    pd.testing.assert_frame_equal(
        suggested[["weight", "note"]], frame.loc[suggested.index, ["weight", "note"]], check_names=False
    )
    second = first.add(filled(suggested))
    is_drawn = suggested["reason"] == "random"
    assert not second.job.chosen[suggested.index[is_drawn]].any()
    assert second.job.chosen[suggested.index[~is_drawn]].all()
    fresh = otprop.label(frame, "kind", settings=FAST, corrections=filled(suggested))
    pd.testing.assert_frame_equal(second.table, fresh.table)


def test_rows_are_suggested_without_any_label(frame: Any) -> None:
    unlabelled = frame.drop(columns="kind")
    suggested = otprop.suggest(unlabelled, "kind", 9, random_share=0)
    assert set(suggested["reason"]) == {"typical"}
    assert suggested.index.nunique() == 9
    result = otprop.label(unlabelled, "kind", settings=FAST, corrections=filled(suggested))
    assert result.table["kind_source"].tolist().count("corrected") == 9
    assert (result.table["kind_label"] == truth(np.arange(90))).mean() > 0.5
    in_place = otprop.label(unlabelled, "kind", settings=FAST, corrections=filled(suggested), fill=True)
    assert in_place.table["kind"].tolist() == result.table["kind_label"].tolist()
    assert "label" in otprop.suggest(unlabelled, n=3)
    one_class = frame.assign(kind=frame["kind"].where(frame["kind"] == "a", None))
    assert set(otprop.suggest(one_class, "kind", 5)["reason"]) == {"typical", "random"}


def test_typical_rows_of_different_regions_come_first() -> None:
    rng = np.random.default_rng(0)
    centres = np.array([[0, 0], [30, 0], [0, 30], [30, 30]])
    spots = pd.DataFrame(np.vstack([centre + rng.normal(size=(25, 2)) for centre in centres]), columns=["x", "y"])
    found = otprop.suggest(spots, n=4, random_share=0)
    assert sorted(found.index // 25) == [0, 1, 2, 3]
    far = np.linalg.norm(found[["x", "y"]].to_numpy() - centres[found.index // 25], axis=1)
    assert far.max() < 1.5


def test_polars_frames_go_through_the_loop(frame: Any) -> None:
    polars = pytest.importorskip("polars")
    result = otprop.label(polars.from_pandas(frame), "kind", settings=FAST)
    suggested = result.suggest(4, random_share=0)
    labels = polars.Series(truth(suggested["index"].to_numpy()).tolist())
    second = result.add(suggested.with_columns(labels.alias("kind")))
    assert second.table["kind_source"].to_list().count("corrected") == 4
    expected = otprop.label(frame, "kind", settings=FAST).add(
        dict(zip(suggested["index"].to_list(), labels.to_list(), strict=True))
    )
    assert second.table["kind_label"].to_list() == expected.table["kind_label"].tolist()


def test_labels_of_other_types_become_those_of_the_target() -> None:
    frame = mixed_frame()
    for dtype, new in (("Int64", 4), ("float64", 4.0)):
        frame["kind"] = mixed_frame()["kind"].map({"a": 1, "b": 2, "c": 3}).astype(dtype)
        result = otprop.label(frame, "kind", settings=FAST, corrections={20: "3", 21: 2, 22: "4"})
        assert result.table["kind_label"].tolist()[20:23] == [3, 2, new]
        with pytest.raises(ParameterError, match=r"labels have the label 'red' for row 30; 'kind' holds (int|float)s"):
            result.add({30: "red"})


def test_given_labels_that_are_wrong_are_found() -> None:
    frame = mixed_frame(300)
    frame["weight"] = np.arange(300) % 3 * 10 + np.random.default_rng(1).normal(size=300)
    frame["kind"] = np.where(np.arange(300) < 90, truth(np.arange(300)), None)
    frame.loc[[10, 40], "kind"] = ["c", "a"]  # b and b
    result = otprop.label(frame, "kind", settings=FAST, features=["weight"])
    worst = result.label_issues.head(2)
    assert set(worst.index) == {10, 40}
    assert set(zip(worst["given"], worst["suggested"], strict=True)) == {("c", "b"), ("a", "b")}
    better = result.add({10: "b", 40: "b"})
    assert not {10, 40} & set(better.label_issues.index)
    assert better.table.loc[[10, 40], "kind"].tolist() == ["c", "a"]  # the cells of the table stay
    assert better.table.loc[[10, 40], "kind_label"].tolist() == ["b", "b"]
    assert any("replace the given label of rows 10, 40" in note for note in better.notes)
    filled_in = otprop.label(frame, "kind", settings=FAST, fill=True, corrections={10: "b"}).table
    assert filled_in["kind"].tolist()[10] == "b"


def test_a_label_that_is_confirmed_stays_given(first: Any) -> None:
    assert first.add({0: "a", 20: "c"}).table["kind_source"].tolist()[0] == "given"


def test_every_row_can_be_labelled_in_the_end(first: Any) -> None:
    whole = first.add(dict(enumerate(truth(range(90)).tolist())))
    assert whole.table["kind_label"].tolist() == truth(range(90)).tolist()
    with pytest.raises(ParameterError, match="a label in every row of the DataFrame: there is no row to suggest"):
        whole.suggest(3)


def test_bad_labels_are_refused_in_one_sentence_that_names_the_argument(frame: Any, first: Any) -> None:
    def row(number: Any, label: str = "a", **more: Any) -> Any:
        return pd.DataFrame({"row": [number], "label": [label], **{name: [cell] for name, cell in more.items()}})

    wrong: list[tuple[Any, str]] = [
        ({90: "a", 3: "b"}, r"labels name rows that the index of the DataFrame does not have: 90\."),
        ({-1: "a", "x": "a", 1.5: "a"}, r"does not have: -1, 'x', 1\.5\."),
        (row(91), r"labels name the row 91: .* counted from 1, without the header\."),
        (row(0), "labels name the row 0"),
        ([{3: "a"}, {3: "b"}], r"labels have two labels for row 3, 'a' and 'b': keep one\."),
        (
            row(5, file_digest="0" * 64),
            "was made from another file than the DataFrame.*: the contents differ. Pass the same table",
        ),
        (pd.DataFrame({"rows": [1], "label": ["a"]}), "a column 'row' counted from 1 or an index 'index'"),
        (pd.Series({"lot 3": "a"}), "index of the DataFrame does not have: 'lot 3'"),
        ({}, "labels hold no label"),
        ({3: None, 4: " "}, "labels hold no label: every label of the dict is empty"),
        (row(5, label=""), "labels hold no label: every label of the DataFrame is empty"),
        (7, "labels must say which row gets which label: a mapping such as .*; got 7 of type int"),
        ([1, 2], "labels must say which row gets which label: a mapping such as .*; got \\[1, 2\\] of type list"),
    ]
    for labels, sentence in wrong:
        with pytest.raises(ParameterError, match=sentence) as caught:
            first.add(labels)
        assert caught.value.parameter == "labels"
    for options, sentence in (
        ({"corrections": {90: "a"}}, "corrections name rows that the index of the DataFrame does not have: 90"),
        ({"corrections": first.suggest(3)}, "corrections hold no label: every label of the DataFrame is empty"),
        ({"chosen": "picked"}, "chosen='picked': there is no column 'picked'"),
        ({"chosen": [True]}, "chosen has 1 value, the DataFrame has 90 rows"),
        ({"chosen": "colour"}, "chosen must mark chosen labels .* the column 'colour' holds 'green', 'red', 'yellow'"),
    ):
        with pytest.raises(ParameterError, match=sentence):
            otprop.label(frame, "kind", settings=FAST, **options)
    for options, sentence in (({"n": 0}, "n must be"), ({"random_share": 2}, "random_share must be")):
        with pytest.raises(ParameterError, match=sentence):
            first.suggest(**options)
    with pytest.raises(ParameterError, match="target must name the column with the labels"):
        otprop.suggest(frame.assign(label=1))
    assert len(first.suggest(1000)) == 78  # all that are unlabelled


def test_a_new_class_is_taken_with_a_note(first: Any) -> None:
    second = first.add({30: "d", 31: "d"})
    assert second.outcome.classes == ["a", "b", "c", "d"]
    assert any("labels of the corrections that 'kind' does not have: 'd'" in note for note in second.notes)


def test_a_column_says_which_labels_were_chosen(frame: Any) -> None:
    reviewed = frame.assign(how=np.where(np.arange(90) < 5, "reviewed", None))
    result = otprop.label(reviewed, "kind", settings=FAST, chosen="how")
    plain = otprop.label(frame, "kind", settings=FAST, chosen=np.arange(90) < 5)
    assert result.job.chosen.tolist() == (np.arange(90) < 5).tolist()
    assert result.table["kind_confidence"].tolist() == plain.table["kind_confidence"].tolist()  # it is no feature
    again = otprop.label(result.table.drop(columns="how"), "kind", settings=FAST, chosen="kind_source", prefix="next_")
    assert not again.job.chosen.any()
    other = otprop.label(reviewed, "kind", method="otp-paper", chosen="how")
    assert any(note.startswith("without effect: chosen") for note in other.notes)


def test_methods_without_a_geometry_take_labels_too(frame: Any) -> None:
    result = otprop.label(frame, "kind", method="otp-paper").add({20: "c"})
    assert result.table["kind_source"].tolist()[20] == "corrected"
    assert len(result.suggest(4)) == 4
    assert len(result.label_issues) == 0


def test_the_call_that_repeats_it_leaves_data_out(frame: Any, tmp_path: Path) -> None:
    result = otprop.label(frame, "kind", method="otp-paper", corrections={20: "c"}, chosen=[False] * 90)
    assert result.call == "otprop.label(data, 'kind', method='otp-paper', corrections=..., chosen=...)"
    assert result.add({21: "a"}).add({22: "b"}).call.endswith("chosen=...).add(...)")
    path = tmp_path / "more.csv"
    path.write_text("row,label\n21,c\n")
    assert "corrections=['more.csv']" in otprop.label(frame, "kind", method="otp-paper", corrections=[str(path)]).call


def test_the_expected_error_counts_labels_drawn_at_random_alone(frame: Any, first: Any) -> None:
    assert first.outcome.n_held_out == first.outcome.n_judged == 12
    second = first.add({row: truth(row) for row in range(20, 40)})
    assert (second.outcome.n_held_out, second.outcome.n_judged) == (12, 32)
    assert first.add({row: truth(row) for row in range(20, 40)}, drawn=True).outcome.n_held_out == 32
    nothing_drawn = otprop.label(frame, "kind", settings=FAST, chosen=[True] * 90)
    assert nothing_drawn.outcome.n_held_out == 0
    assert nothing_drawn.outcome.error_range == (0.0, 1.0)


def test_a_series_of_polars_has_a_label_for_every_row_or_none(frame: Any) -> None:
    polars = pytest.importorskip("polars")
    result = otprop.label(polars.from_pandas(frame), "kind", settings=FAST)
    labels: list[str | None] = [None] * len(frame)
    labels[20] = "c"
    assert result.add(polars.Series(labels)).table["kind_source"].to_list()[20] == "corrected"
    with pytest.raises(ParameterError, match="labels are a Series of 2 labels; the DataFrame has 90 rows"):
        result.add(polars.Series(["a", "b"]))
    with pytest.raises(ParameterError, match="drawn='no': must be True or False"):
        result.add({20: "c"}, drawn="no")  # type: ignore[arg-type]
