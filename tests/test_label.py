"""`otprop.label`: what the command does, for a DataFrame."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import otprop
from otprop._validation import ParameterError
from otprop.cli import main
from otprop.files import TableError, read_table
from otprop.labelling.fit_notes import _note_on_no_gain
from otprop.table.errors import ColumnError
from tests.cli.conftest import lots, read_rows  # noqa: F401
from tests.frames import FAST, filled, mixed_frame, truth

pd = pytest.importorskip("pandas")


@pytest.mark.parametrize("method", ["otp", "otp-paper"])
@pytest.mark.parametrize("make", [lambda frame: frame, lambda frame: pytest.importorskip("polars").from_pandas(frame)])
def test_a_frame_gets_the_labels_that_the_command_gives_its_csv(tmp_path: Path, make: Any, method: str) -> None:
    frame, path, out = mixed_frame(), tmp_path / "lots.csv", tmp_path / "out.csv"
    frame.to_csv(path, index=False)
    options = ["--target", "kind", "--method", method, "--probabilities", "-o", str(out), "--quiet"]
    assert main(["label", str(path), *options]) == 0
    result = otprop.label(make(frame), "kind", method=method, probabilities=True)
    expected = read_rows(out)
    assert list(result.table.columns) == list(expected[0])
    assert list(result.table["kind_label"]) == [row["kind_label"] for row in expected]
    assert list(result.table["kind_source"]) == [row["kind_source"] for row in expected]
    numbers = [name for name in expected[0] if name.startswith(("kind_certainty", "kind_confidence", "kind_p_"))]
    for name in [*numbers, "kind_round"]:
        np.testing.assert_allclose(list(result.table[name]), [float(row[name]) for row in expected], atol=1.1e-6)


def test_a_path_a_table_and_a_frame_are_labelled_alike(lots: Path) -> None:  # noqa: F811
    results = [otprop.label(data, "kind", settings=FAST) for data in (str(lots), lots, read_table(lots))]
    frame = pd.read_csv(lots, dtype={"lot": str})
    frame.index = [f"row {number}" for number in range(len(frame))]
    results.append(otprop.label(frame, "kind", settings=FAST))
    assert results[3].table.index.tolist() == frame.index.tolist()
    for result in results[1:]:
        assert result.table["kind_label"].tolist() == results[0].table["kind_label"].tolist()
    assert "kind_label" not in frame


@pytest.fixture(scope="module")
def result() -> Any:
    return otprop.label(mixed_frame(), "kind", settings=FAST)


def test_labels_can_go_into_the_target_itself(result: Any) -> None:
    filled = otprop.label(mixed_frame(), "kind", settings=FAST, fill=True).table
    assert filled["kind"].tolist() == result.table["kind_label"].tolist()
    assert "kind_label" not in filled


@pytest.mark.parametrize("unlabeled", [-1, "-1", [-1], ["-1"], (-1.0,)])
def test_a_number_that_marks_unlabelled_rows_is_given_as_it_is(unlabeled: Any) -> None:
    frame = pd.DataFrame({"weight": [1.0, 1.2, 1.1, 9.0, 9.1, 9.3], "kind": [0, -1, -1, 1, -1, -1]})
    result = otprop.label(frame, "kind", unlabeled=unlabeled)
    assert result.table["kind_label"].tolist() == [0, 0, 0, 1, 1, 1]


def test_the_result_keeps_the_rows_in_the_order_they_had() -> None:
    frame = mixed_frame()
    result = otprop.label(frame, "kind")
    before = otprop.label(frame.copy(), "kind").table
    frame["weight"] = 0.0
    frame.index = frame.index[::-1]
    assert result.table.equals(before)
    assert len(result.suggest(3)) == 3


def test_errors_name_the_parameter_and_no_flag() -> None:
    frame = mixed_frame()
    wrong: list[dict[str, Any]] = [
        {"target": "kindd"},
        {"target": "kind", "method": "otpp"},
        {"target": "kind", "features": ["wieght"]},
        {"target": "kind", "settings": {"n_neighbors": 0}},
        {"target": "kind", "class_prior": {"a": 1.0}},
        {"target": "kind", "abstain_below": 2},
        {"target": "kind", "embedding": "e_"},
        {"target": None},
        {"target": "kind", "settings": "n"},
        {"target": "kind", "random_state": "x"},
        {"target": "kind", "features": "weight"},
        {"target": "kind", "ignore": "weight"},
    ]
    names = ["target", "method", "features", "n_neighbors", "class_prior", "abstain_below", "embedding"]
    names += ["target", "settings", "random_state", "features", "ignore"]
    for options, name in zip(wrong, names, strict=True):
        with pytest.raises(ParameterError) as caught:
            otprop.label(frame, **options)
        assert caught.value.parameter == name
        assert "--" not in str(caught.value)
    with pytest.raises(ColumnError, match=r"the DataFrame already has 'kind_label'.* prefix='kind_2_'"):
        otprop.label(frame.assign(kind_label="x"), "kind")
    with pytest.raises(TableError, match="the DataFrame has column names but no rows"):
        otprop.label(frame.head(0), "kind")
    with pytest.raises(TypeError, match="data must be a path, a DataFrame, a list of dictionaries or a table"):
        otprop.label([1, 2], "kind")


def test_cells_of_several_types_are_read_as_text_with_a_note() -> None:
    frame = mixed_frame()
    frame["odd"] = pd.Series([1, "a", 2.5] * 30, dtype=object)
    found = otprop.label(frame, "kind", method="otp-paper")
    assert any("'odd' holds values of several or unusual types" in note for note in found.notes)


def test_a_class_prior_is_given_by_class() -> None:
    frame = mixed_frame()
    frame["kind"] = frame["kind"].map({"a": 1, "b": 2, "c": 3}).astype("Int64")
    found = otprop.label(frame, "kind", settings=FAST, class_prior={1: 2, 2: 1, 3: 1})
    assert found.job.parameters["class_prior"] == {"1": 0.5, "2": 0.25, "3": 0.25}
    assert found.table["kind_label"].tolist()[:3] == [1, 2, 3]


def test_columns_written_with_the_labels_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = mixed_frame().assign(reviewer=lambda frame: frame["kind"].map({"a": "anna", "b": "ben", "c": "carl"}))
    path = tmp_path / "lots.csv"
    frame.to_csv(path, index=False)
    assert main(["label", str(path), "--target", "kind", "--method", "otp-paper"]) == 0
    err = capsys.readouterr().err
    assert "note: 'reviewer' is filled only where the target is, as if written with the label, and is skipped" in err
    assert "name it in --features" in err
    assert "skipped: reviewer (filled only where the target is)" in err
    plain = otprop.label(mixed_frame(), "kind", method="otp-paper")
    found = otprop.label(frame, "kind", method="otp-paper")
    assert found.table["kind_label"].tolist() == plain.table["kind_label"].tolist()


def test_a_stream_of_a_frame_is_no_part_of_the_result() -> None:
    buffer = io.BytesIO()
    otprop.label(mixed_frame(30), "kind", method="otp-paper").job.table.write(buffer, {}, format="csv")
    assert buffer.getvalue().startswith(b"weight,count,colour")


def test_labels_no_better_than_one_class_for_all_are_said_to_be() -> None:
    rng = np.random.default_rng(0)
    kind = np.where(rng.random(400) < 0.2, "rare", "usual").astype(object)
    told_apart = pd.DataFrame({"size": np.where(kind == "rare", 9.0, 1.0) + rng.normal(size=400)})
    noise = pd.DataFrame({"size": rng.normal(size=400), "weight": rng.normal(size=400)})
    kind[60:] = None
    notes = [otprop.label(frame.assign(kind=kind), "kind").notes for frame in (told_apart, noise)]
    said = ["giving every row 'usual' would be expected to err" in " ".join(each) for each in notes]
    assert said == [False, True]


def test_rows_of_new_classes_are_wrong_with_one_class_for_all_too() -> None:
    job = otprop.label(mixed_frame(60), "kind").job
    error, n_classes = job.estimator.error_, len(job.target.classes)
    job.estimator.class_prior_ = np.array([0.8, *[0.2 / (n_classes - 1)] * (n_classes - 1)])
    for unseen, said in ((0.0, True), (0.3, False)):  # one class errs in 20 %, or in 44 %
        evidence = replace(error.evidence, unseen=unseen)
        job.estimator.error_ = replace(error, expected=0.4, concentration=20.0, evidence=evidence)
        assert any("would be expected to err" in note for note in _note_on_no_gain(job)) == said


def test_one_class_for_nearly_every_row_is_said() -> None:
    job = otprop.label(mixed_frame(60), "kind").job
    largest = int(np.argmax(job.estimator.class_prior_))
    assert not _note_on_no_gain(job)
    job.estimator.class_prior_ = np.array([0.8 if code == largest else 0.1 for code in range(3)])
    job.estimator.error_ = replace(job.estimator.error_, expected=0.1, concentration=20.0)
    job.estimator.transduction_ = np.full(60, largest)
    (note,) = _note_on_no_gain(job)
    assert note.startswith("100.0% of the rows without a label were labelled")


def numbered_frame(dtype: str) -> Any:
    """Two kinds by number, a third of the rows labelled, the target in this type."""
    numbers = np.arange(30)
    kinds = [None if number % 3 else int(number % 2) for number in numbers]
    target = pd.Series(kinds, dtype=object if dtype == "category" else dtype)
    weight = 10.0 * (numbers % 2) + np.random.default_rng(0).random(30)
    return pd.DataFrame({"weight": weight, "kind": target.astype(dtype)})


@pytest.mark.parametrize("dtype", ["float64", "Int64", "boolean", "category"])
@pytest.mark.parametrize("fill", [False, True])
def test_labels_have_the_type_of_the_target(dtype: str, fill: bool) -> None:
    frame = numbered_frame(dtype)
    result = otprop.label(frame, "kind", settings=FAST, fill=fill)
    labels = result.table["kind" if fill else "kind_label"]
    assert labels.dtype == frame["kind"].dtype
    assert labels.astype(int).tolist() == [number % 2 for number in range(30)]


def test_labels_that_may_be_missing_have_a_type_with_missing_values() -> None:
    frame = numbered_frame("Int64").fillna({"kind": 9}).astype({"kind": "int64"})
    labels = otprop.label(frame, "kind", settings=FAST, unlabeled=["9"], abstain_below=1.0).table["kind_label"]
    assert labels.dtype == "Int64"
    assert labels.isna().any()


def test_labels_of_a_file_have_the_type_that_its_target_has_in_the_table(tmp_path: Path) -> None:
    path = tmp_path / "lots.csv"
    numbered_frame("Int64").to_csv(path, index=False)
    result = otprop.label(path, "kind", settings=FAST)
    assert result.table["kind_label"].dtype == result.table["kind"].dtype != object
    result.write(tmp_path / "out.csv")
    assert {row["kind_label"] for row in read_rows(tmp_path / "out.csv")} == {"0", "1"}


def test_a_label_that_the_type_of_the_target_cannot_hold_is_kept() -> None:
    frame = numbered_frame("category")
    result = otprop.label(frame, "kind", settings=FAST, corrections={1: 7})
    assert result.table["kind_label"][1] == 7


def test_a_class_prior_names_classes_by_value() -> None:
    shares = otprop.label(numbered_frame("float64"), "kind", settings=FAST, class_prior={0: 0.3, 1: 0.7}).outcome.shares
    assert shares == {"0.0": 0.3, "1.0": 0.7}
    with pytest.raises(ParameterError, match="given a share before"):
        otprop.label(numbered_frame("float64"), "kind", class_prior={"0.0": 0.3, "0": 0.3, "1": 0.4})


def test_a_text_for_a_list_is_answered_by_the_list() -> None:
    with pytest.raises(ParameterError, match=r"must be a list; write \['weight'\]"):
        otprop.label(mixed_frame(), "kind", ignore="weight")


def test_folders_and_patterns_are_left_to_the_command(tmp_path: Path) -> None:
    for data in (tmp_path, tmp_path / "*.parquet"):
        with pytest.raises(ParameterError, match="the command `otprop label`"):
            otprop.label(data, "kind")


def test_a_table_without_columns_to_label_by_says_how_to_go_on(tmp_path: Path) -> None:
    kinds = ["a", "b", *[None] * 18]
    with pytest.raises(ValueError, match="the table has no column but the target"):
        otprop.label(pd.DataFrame({"kind": kinds}), "kind")
    frame = pd.DataFrame({"number": np.arange(20), "kind": kinds})
    with pytest.raises(ValueError, match=r"row numbers\)\. To use one anyway, name it in features"):
        otprop.label(frame, "kind")
    assert otprop.label(frame, "kind", settings=FAST, features=["number"]).outcome.codes.min() >= 0


def test_labels_of_a_complete_table_are_checked_as_by_the_command(tmp_path: Path) -> None:
    frame = mixed_frame()
    labelled = otprop.label(frame, "kind").table
    surest = int(np.argmax(np.where(frame["kind"].isna(), labelled["kind_confidence"], 0.0)))
    frame["kind"] = np.where(frame["kind"].isna(), labelled["kind_label"], frame["kind"])
    right = frame["kind"].iloc[surest]
    frame.loc[frame.index[surest], "kind"] = next(kind for kind in frame["kind"].unique() if kind != right)
    found = otprop.check(frame, "kind")
    assert found.columns.tolist() == ["label", "given", "suggested", "probability", "file_digest"]
    assert surest in found.index[:3]
    assert found["label"].isna().all()
    with pytest.raises(ParameterError, match="kindd"):
        otprop.check(frame, "kindd")


def test_old_names_of_arguments_are_taken_with_a_warning() -> None:
    frame = mixed_frame(30)
    with pytest.warns(FutureWarning, match="seed is now called random_state"):
        old = otprop.label(frame, "kind", settings=FAST, seed=3)
    assert old.call == "otprop.label(data, 'kind', settings={'evidence': None}, random_state=3)"
    assert old.estimator.random_state == 3
    with pytest.warns(FutureWarning, match="jobs is now called n_jobs"):
        otprop.suggest(frame, "kind", 2, jobs=1)
    with pytest.raises(TypeError, match=r"unexpected argument 'randm_state'; did you mean 'random_state'\?"):
        otprop.label(frame, "kind", randm_state=3)


def test_costs_of_an_unknown_class_are_shown_as_python_writes_them() -> None:
    with pytest.raises(ParameterError) as caught:
        otprop.label(mixed_frame(), "kind", objective={("a", "maybe"): 3})
    assert str(caught.value).startswith("objective={('a', 'maybe'): 3}: there is no class 'maybe'; there are 'a'")


def test_text_of_a_frame_is_read_as_the_cells_of_a_file(tmp_path: Path) -> None:
    frame = mixed_frame()
    frame.to_csv(tmp_path / "lots.csv", index=False)
    as_text = otprop.label(pd.read_csv(tmp_path / "lots.csv", dtype=str), "kind", settings=FAST)
    roles = {use.name: use.role for use in as_text.job.columns}
    assert (roles["seen"], roles["weight"], roles["ripe"]) == ("date", "number", "boolean")
    of_file = otprop.label(tmp_path / "lots.csv", "kind", settings=FAST)
    np.testing.assert_array_equal(as_text.outcome.distributions, of_file.outcome.distributions)
    kept = otprop.label(frame.assign(code=np.where(frame["ripe"], "007", "11")), "kind", settings=FAST)
    assert {use.name: use.role for use in kept.job.columns}["code"] == "category"


@pytest.fixture(scope="module")
def frame() -> Any:
    return mixed_frame()


def test_a_target_that_is_nearly_a_column_is_a_mistake(frame: Any) -> None:
    with pytest.raises(ParameterError, match=r"no column 'kinds'; did you mean 'kind'\? A new column must"):
        otprop.suggest(frame, "kinds")
    with pytest.raises(ParameterError, match="did you mean 'kind'"):
        otprop.label(frame, "Kind", corrections={3: "a", 4: "b"})
    assert "ripeness" in otprop.suggest(frame, "ripeness", 3)


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


@pytest.fixture(scope="module")
def labelled() -> otprop.LabelResult:
    return otprop.label(mixed_frame(30), "kind", settings=FAST)


@pytest.mark.parametrize("value", ["no", 1, None])
@pytest.mark.parametrize("name", ["merge_labels", "numeric_classes", "new_classes", "fill", "probabilities"])
def test_flags_are_true_or_false(name: str, value: Any) -> None:
    with pytest.raises(ParameterError, match=f"{name}={value!r}: must be True or False"):
        otprop.label(mixed_frame(30), "kind", **{name: value})
    result = otprop.label(mixed_frame(30), "kind", settings=FAST, **{name: np.False_})
    assert name not in result.call


def test_flags_of_a_result_are_true_or_false(labelled: otprop.LabelResult, tmp_path: Path) -> None:
    kept: Any = tmp_path / "keep"
    kept.write_text("mine")
    for method in (labelled.write, labelled.save, labelled.report):
        with pytest.raises(ParameterError, match="force='no': must be True or False"):
            method(kept, force="no")  # type: ignore[operator]
    with pytest.raises(ParameterError, match="excel_safe='no'"):
        labelled.write(tmp_path / "out.csv", excel_safe="no")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="new_classes='no'"):
        labelled.add({20: "c"}, new_classes="no")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="probabilities='no'"):
        otprop.predict(labelled, mixed_frame(3).drop(columns="kind"), probabilities="no")  # type: ignore[arg-type]
    assert kept.read_text() == "mine"
    labelled.write(kept, force=np.True_)  # type: ignore[arg-type]
    assert kept.read_bytes() != b"mine"


@pytest.mark.parametrize("name", ["write", "save", "report"])
@pytest.mark.parametrize("path", [None, 5, b"out", True, ["out"], ""])
def test_a_path_that_is_none_is_refused(labelled: otprop.LabelResult, name: str, path: Any) -> None:
    words = "path is an empty path; name a file" if path == "" else "path must be a path; got "
    with pytest.raises(ParameterError, match=words):
        getattr(labelled, name)(path)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"features": 5}, "features must be a list of columns; got 5 of type int"),
        ({"features": []}, "features is empty; name at least one column"),
        ({"features": [["weight"]]}, "features must be names of columns"),
        ({"features": ["weight", "weight"]}, "features='weight': is named twice"),
        ({"features": ["weight"], "ignore": ["weight"]}, "features='weight': this column is also in ignore; take it"),
        ({"votes": ["colour"], "ignore": ["colour"]}, "votes='colour': this column is also in ignore; take it"),
        ({"ignore": 5}, "ignore must be a list of columns; got 5 of type int"),
        ({"embedding": 5}, "embedding must be the prefix of columns as text, or None; got int"),
        ({"progress": "x"}, "progress must be None or a function .*; got 'x'"),
        ({"data": ""}, "data is an empty path; name a file"),
        ({"cost": 1}, "unexpected argument 'cost'; costs of errors are given as objective="),
        ({"bogus": 1}, r"unexpected argument 'bogus'\.$"),
    ],
)
def test_an_argument_that_cannot_be_used_is_named(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):  # which a ParameterError is, too
        otprop.label(**{"data": mixed_frame(30), "target": "kind", **arguments})


def test_columns_are_named_by_an_index_too() -> None:
    frame = mixed_frame(30)
    result = otprop.label(frame, "kind", features=frame.columns[:2], ignore={"note"}, settings=FAST)  # type: ignore
    assert result.model.columns == ["weight", "count"]


def test_arguments_of_a_result_are_named(labelled: otprop.LabelResult, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"row=\[0, 1\]: must be one entry of the index"):
        labelled.explain([0, 1])
    with pytest.raises(ParameterError, match="map is 'tsne'"):
        labelled.report(tmp_path / "page.html", map="tsne")
    with pytest.raises(TableError, match=r"page\.pdf would not be a web page by its name, .*; use \.html"):
        labelled.report(tmp_path / "page.pdf")
    assert not list(tmp_path.iterdir())
    for name in ("page", "page.HTM"):
        labelled.report(tmp_path / name)


@pytest.mark.parametrize("settings", [{"n_jobs": 1}, {"random_state": 5}])
def test_a_setting_with_an_argument_of_its_own_is_refused(settings: dict[str, Any]) -> None:
    (name,) = settings
    with pytest.raises(ParameterError, match=f"settings='{name}=.': give it with {name}"):
        otprop.label(mixed_frame(), "kind", settings=settings)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("n_neighbors", r"given as settings=\{'n_neighbors': \.\.\.\}"),
        ("set", "given as settings="),
        ("report", "the method of this name of the result"),
        ("output", r"the method write\(\) of the result"),
    ],
)
def test_an_argument_that_belongs_elsewhere_is_pointed_there(name: str, hint: str) -> None:
    with pytest.raises(TypeError, match=f"unexpected argument '{name}'; .*{hint}"):
        otprop.label(mixed_frame(), "kind", **{name: 3})


@pytest.mark.parametrize("target", [["kind"], ("kind",), {"kind": 1}, np.array(["kind"])])
def test_a_target_is_one_name(target: Any) -> None:
    with pytest.raises(ParameterError, match="target must be the name of one column; got a "):
        otprop.label(mixed_frame(), target)


def test_a_limit_that_no_row_reaches_is_noted() -> None:
    found = otprop.label(mixed_frame(), "kind", settings=FAST, abstain_below=1.0)
    (note,) = [note for note in found.notes if "no row reaches a confidence of 1: the highest is 0." in note]
    assert note.endswith("abstain_below")
    assert not (found.table["kind_source"] == "propagated").any()


def test_a_frame_under_a_name_that_says_nothing_is_written_as_csv(result: Any, tmp_path: Path) -> None:
    result.write(tmp_path / "labels")
    assert (tmp_path / "labels").read_text().splitlines()[0].split(",") == list(result.table.columns)
