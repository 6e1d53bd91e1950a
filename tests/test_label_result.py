"""What `otprop.label` returns: its rows, how it shows itself, its files, and more labels for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import otprop
from otprop._validation import ParameterError
from otprop.cli import main
from otprop.files import TableError
from tests.cli.conftest import read_rows
from tests.frames import FAST, KINDS, filled, mixed_frame, truth

pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def result() -> Any:
    return otprop.label(mixed_frame(), "kind", settings=FAST)


def test_a_result_prints_in_one_line_with_its_error_and_classes(result: Any) -> None:
    text = repr(result)
    assert text.startswith("<LabelResult of 'kind': 12 labels given, 78 rows labelled; expected error ")
    assert "\n" not in text
    assert text.count(" a ") == 1


def test_an_error_that_no_label_could_judge_is_not_shown_as_a_figure() -> None:
    frame = mixed_frame()
    first = frame.loc[frame["kind"].notna()].drop_duplicates("kind").index
    frame.loc[~frame.index.isin(first), "kind"] = None
    text = repr(otprop.label(frame, "kind", settings=FAST))
    assert "; expected error unknown; " in text


def test_a_notebook_shows_the_error_the_classes_and_a_map(result: Any) -> None:
    html = result._repr_html_()
    assert f"expected error {result.expected_error:.1%}" in html
    assert "<th>a</th>" in html
    assert html.count("<circle") == 90


def test_explain_gives_the_sources_and_the_result_of_a_row(result: Any) -> None:
    found = result.explain(40)
    assert found.columns.tolist() == ["weight", "a", "b", "c"]
    assert found.index[-1] == "together"
    assert len(found) > 1
    np.testing.assert_allclose(found[["a", "b", "c"]].sum(axis=1), 1.0)
    np.testing.assert_allclose(found.loc["together", ["a", "b", "c"]].astype(float), result.outcome.distributions[40])
    with pytest.raises(ParameterError, match="row='x': no such entry in the index"):
        result.explain("x")


def test_nearest_gives_labelled_rows_by_their_distance(result: Any) -> None:
    found = result.nearest(40)
    assert found["distance"].is_monotonic_increasing
    assert (result.table.loc[found.index, "kind_source"] == "given").all()
    assert found["label"].tolist() == result.table.loc[found.index, "kind"].tolist()


def test_the_rows_to_review_are_rows_of_the_table(result: Any) -> None:
    review = result.review(5)
    assert len(review) == 5
    assert set(review["kind_source"]) == {"propagated"}
    assert review.index[0] == result.table["kind_confidence"].idxmin()


def test_the_model_the_page_and_the_table_are_written(result: Any, tmp_path: Path) -> None:
    result.save(tmp_path / "kinds.model")
    result.report(tmp_path / "page.html")
    result.write(tmp_path / "out.csv")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "otprop.label(data, &#x27;kind&#x27;, settings=" in page or "otprop.label(data, &#39;kind&#39;" in page
    assert [row["kind_label"] for row in read_rows(tmp_path / "out.csv")] == result.table["kind_label"].tolist()
    assert main(["predict", str(tmp_path / "kinds.model"), str(tmp_path / "out.csv"), "--prefix", "again_"]) == 0
    again = read_rows(tmp_path / "out.labelled.csv")
    assert [row["again_label"] for row in again] == result.table["kind_label"].tolist()
    with pytest.raises(ValueError, match=r"kinds\.model"):
        result.save(tmp_path / "kinds.model")
    result.save(tmp_path / "kinds.model", force=True)


def test_a_table_with_an_unknown_ending_is_refused_before_the_model_is_written(result: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"out\.foo has the unknown ending '\.foo'; use \.csv"):
        result.write_files(tmp_path / "out.foo", model=tmp_path / "kinds.model")
    assert not list(tmp_path.iterdir())
    result.write(tmp_path / "out")
    assert len(read_rows(tmp_path / "out")) == len(result.table)


def test_the_result_can_be_looked_at(result: Any) -> None:
    assert result.estimator is result.job.estimator
    assert result.coverage()["share"].iloc[0] == 1.0
    assert "12 labels given, 78 rows labelled; expected error" in repr(result)
    assert "<th>a</th>" in result._repr_html_()
    odd = otprop.label(mixed_frame().replace({"kind": {"a": "<script>"}}), "kind", method="otp-paper")
    assert "<script>" not in odd._repr_html_()
    assert "&lt;script&gt;" in odd._repr_html_()


def test_a_negative_number_of_rows_cannot_be_reviewed(result: Any) -> None:
    with pytest.raises(ParameterError, match="n must be an integer >= 0; got -1"):
        result.review(-1)


def test_shares_of_the_outcome_are_those_of_the_fit(result: Any) -> None:
    assert list(result.outcome.shares.values()) == result.model.class_prior_.tolist()


def test_a_result_has_its_error_and_its_classes(result: Any) -> None:
    assert result.expected_error == result.outcome.expected_error
    assert result.error_range == result.outcome.error_range
    assert result.classes == ["a", "b", "c"]
    assert result.coverage().columns.tolist()[:2] == ["share", "n_rows"]


def test_a_result_gives_guarantees_by_class_and_row() -> None:
    frame = mixed_frame(300)
    frame["kind"] = np.where(np.arange(300) < 120, np.array(["a", "b", "c"], dtype=object)[np.arange(300) % 3], None)
    frame.index = [f"lot {number}" for number in range(300)]
    result = otprop.label(frame, "kind", settings=FAST)
    sets = result.label_sets(0.9)
    assert sets.index.tolist() == frame.index.tolist()
    assert sets.columns.tolist() == ["a", "b", "c"]
    assert (sets.to_numpy() == result.estimator.label_sets(0.9).members).all()
    assert sets.loc["lot 0"].tolist() == [True, False, False]
    assert result.confidence_for_risk(0.3) == result.estimator.confidence_for_risk(0.3)
    with pytest.raises(ValueError, match=r"an error of at most 0\.001 cannot be promised"):
        result.confidence_for_risk(0.001)
    plain = otprop.label(frame, "kind", method="otp-paper")
    for call in (lambda: plain.label_sets(), lambda: plain.confidence_for_risk(0.1)):
        with pytest.raises(ParameterError, match="'otp-paper' does not estimate its error"):
            call()


def test_a_model_that_cannot_be_saved_says_what_can_be_done(tmp_path: Path) -> None:
    import pickle

    from sklearn.linear_model import LogisticRegression

    class Own(LogisticRegression):
        """A classifier that model files do not know."""

    own = otprop.label(mixed_frame(), "kind", settings={"evidence": [("own", Own())]})
    with pytest.raises(otprop.OtpropError, match=r"Own, which a model file cannot hold\. Fit it again .* pickle"):
        own.save(tmp_path / "kinds.model")
    assert not (tmp_path / "kinds.model").exists()
    known = otprop.label(mixed_frame(30), "kind", settings={"evidence": [("own", LogisticRegression())]})
    assert pickle.loads(pickle.dumps(known)).table.equals(known.table)


@pytest.mark.parametrize("name", ["write", "save", "report"])
def test_what_was_read_is_never_written_even_by_force(tmp_path, name):
    folder = tmp_path / "notes"
    for number in range(16):
        kind = ("pets", "cars")[number % 2]
        place = folder / kind if number < 4 else folder
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{number:02d}.txt").write_text(f"{kind} and more {kind}, {number} times")
    (tmp_path / "labels.csv").write_text("name,label\n05,cars\n06,pets\n")
    (folder / "skipped.txt").write_bytes(bytes(range(256)) * 4)
    rows = pd.DataFrame({"row": [9], "label": ["pets"]})
    rows.to_csv(tmp_path / "rows.csv", index=False)
    for given in (None, tmp_path / "labels.csv"):
        result = otprop.label(folder, labels=given, settings={"evidence": None}).add(tmp_path / "rows.csv")
        read = [folder / "pets" / "00.txt", folder / "09.txt", folder / "skipped.txt", tmp_path / "rows.csv"]
        for path in [*read, *([] if given is None else [given])]:
            before = path.read_bytes()
            with pytest.raises(TableError, match="never overwritten"):
                getattr(result, name)(path, force=True)
            assert path.read_bytes() == before
    getattr(result, name)(folder / "new", force=True)  # a new file is welcome


@pytest.fixture(scope="module")
def frame() -> Any:
    return mixed_frame()


@pytest.fixture(scope="module")
def first(frame: Any) -> Any:
    return otprop.label(frame, "kind", settings=FAST)


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
