"""The columns that labelling adds: the same for a file, a folder and later rows, labels as in the user's table."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import otprop
from otprop.files import read_table
from otprop.labelling.outcome import RowLabels
from otprop.labelling.output_columns import OutputColumns, as_column, parts_of_file, refuse_taken
from otprop.table.errors import ColumnError

pd = pytest.importorskip("pandas")

FAST = {"evidence": None}
CODES, GIVEN = np.array([1, 0, -1, 1]), np.array([True, False, False, True])
SHARES = np.array([[0.0, 1.0], [0.9, 0.1], [0.55, 0.45], [0.0, 1.0]])
SURE = np.array([1.0, 0.12345678, 0.5, 1.0])


def labels(**more):
    return RowLabels(codes=CODES, distributions=SHARES, certainty=SURE, **more)


def test_columns_are_those_that_are_known_of_the_rows():
    later = OutputColumns().of(labels(), "kind", ["elm", "oak"], ["Elm", "Oak"])
    assert list(later) == ["kind_label", "kind_certainty"]
    assert later["kind_label"].tolist() == ["Oak", "Elm", None, "Oak"]
    assert later["kind_certainty"].tolist() == [1.0, 0.123457, 0.5, 1.0]
    of_folder = OutputColumns("k_").of(labels(given=GIVEN, confidence=SURE), "kind", ["elm", "oak"], ["elm", "oak"])
    assert list(of_folder) == ["k_label", "k_certainty", "k_confidence", "k_source"]
    assert of_folder["k_source"].tolist() == ["given", "propagated", "abstained", "given"]
    whole = labels(given=GIVEN, confidence=SURE, novelty=SURE, round=np.array([0, 1, 2, 0]))
    of_file = OutputColumns(probabilities=True).of(whole, "kind", ["elm", "oak"], ["elm", "oak"])
    assert list(of_file) == OutputColumns(probabilities=True).names(
        "kind", ["elm", "oak"], parts_of_file(confidence=True)
    )
    assert of_file["kind_round"].tolist() == [0, 1, -1, 0]  # a row without a label has no round
    assert of_file["kind_p_oak"].tolist() == [1.0, 0.1, 0.45, 1.0]
    assert parts_of_file(confidence=False) == ["certainty", "round", "source"]


@pytest.mark.parametrize("has_target", [True, False])
def test_given_cells_stay_as_they_are_and_corrected_ones_are_filled_in(has_target):
    text = b"x,kind\n1,oak\n2,\n3,\n4,elm\n" if has_target else b"x\n1\n2\n3\n4\n"
    table = read_table(io.BytesIO(text), format="csv")
    found = labels(given=GIVEN, corrected=np.array([False, False, False, True]))
    columns, fill = OutputColumns(fill=True).written(found, table, "kind", ["elm", "oak"], ["elm", "oak"])
    assert columns["kind_source"].tolist() == ["given", "propagated", "abstained", "corrected"]
    if has_target:
        assert fill[0] == "kind"
        assert fill[1].tolist() == [None, "elm", None, "oak"]
        assert list(columns) == ["kind_certainty", "kind_source"]
    else:
        assert fill is None
        assert columns["kind"].tolist() == ["oak", "elm", None, "oak"]


def test_columns_that_the_table_has_are_refused_with_a_free_prefix():
    table = read_table(io.BytesIO(b"x,kind_label,kind_2_label\n1,a,b\n"), format="csv")
    with pytest.raises(ColumnError, match=r"already has 'kind_label'.*kind_3_"):
        refuse_taken(table, OutputColumns().names("kind", [], ["certainty"]), "kind")
    refuse_taken(table, OutputColumns("k_").names("kind", [], ["certainty"]), "kind")


def write_file(path: Path, labels: tuple[str, str], n_rows: int = 40) -> np.ndarray:
    """Two groups of rows, a quarter labelled with these words; returns the label of every row."""
    group = np.arange(n_rows) % 2
    truth = np.array(labels)[group]
    weights = np.random.default_rng(0).normal(8 * group, 1)
    lines = [f"{weight:.3f},{label if row % 4 < 2 and row < 20 else ''}" for row, (weight, label)
             in enumerate(zip(weights, truth, strict=True))]  # fmt: skip
    path.write_text("\n".join(["weight,kind", *lines]) + "\n", encoding="utf-8")
    return truth


@pytest.mark.parametrize(
    "labels", [("No", "Yes"), ("false", "true"), ("007", "042"), ("1.50", "2.0"), ("2020-01-01", "2021-01-01")]
)
def test_labels_of_a_file_are_its_text(tmp_path: Path, labels: tuple[str, str]) -> None:
    truth = write_file(tmp_path / "lots.csv", labels)
    result = otprop.label(tmp_path / "lots.csv", "kind", settings=FAST)
    assert result.table["kind_label"].tolist() == truth.tolist()
    assert set(result.table["kind"].dropna()) == set(labels)
    assert result.classes == sorted(labels) == result.model.classes
    filled = otprop.label(tmp_path / "lots.csv", "kind", settings=FAST, fill=True)
    assert filled.table["kind"].tolist() == truth.tolist()


def test_whole_numbers_of_a_file_stay_whole(tmp_path: Path) -> None:
    truth = write_file(tmp_path / "lots.csv", ("0", "1"))
    result = otprop.label(tmp_path / "lots.csv", "kind", settings=FAST)
    assert result.table["kind_label"].dtype == "Int64"
    assert result.table["kind_label"].tolist() == truth.astype(int).tolist()
    assert result.table["kind"].dropna().tolist() == [0, 1] * 5
    assert result.classes == [0, 1]


@pytest.mark.parametrize(("labels", "value"), [(("No", "Yes"), True), (("0", "1"), 1), (("0", "1"), 1.0)])
def test_add_matches_values_to_the_classes(tmp_path: Path, labels: tuple[str, str], value: Any) -> None:
    write_file(tmp_path / "lots.csv", labels)
    result = otprop.label(tmp_path / "lots.csv", "kind", settings=FAST)
    again = result.add({30: value, 31: result.table["kind_label"][31]})
    assert again.classes == result.classes
    assert again.table["kind_label"][30] == again.classes[1]


def test_labels_of_a_frame_keep_its_words_and_type() -> None:
    polars = pytest.importorskip("polars")
    frame = pd.DataFrame({"weight": [1.0, 1.2, 1.1, 9.0, 9.1, 9.3], "kind": ["No", None, None, "Yes", None, None]})
    for data in (frame, frame.astype({"kind": "category"}), frame.astype({"kind": "string"})):
        labels = otprop.label(data, "kind", settings=FAST).table["kind_label"]
        assert labels.tolist() == ["No"] * 3 + ["Yes"] * 3
        assert labels.dtype == data["kind"].dtype
    for kind in (polars.String, polars.Categorical, polars.Enum(["Yes", "No"])):
        data = polars.from_pandas(frame).cast({"kind": kind})
        labels = otprop.label(data, "kind", settings=FAST).table["kind_label"]
        assert labels.to_list() == ["No"] * 3 + ["Yes"] * 3
        assert labels.dtype == data["kind"].dtype


def test_as_column_reads_numbers_only_where_they_are_written_the_same_way_again() -> None:
    assert as_column(["1", None, "20"]).dtype == "Int64"
    assert as_column(["1", "20"]).dtype == "int64"
    assert as_column(["1.5", "2.0"]).dtype == "float64"
    for texts in (["01", "2"], ["1", "2.50"], ["+1", "2"], ["1e3", "2"], ["nan", "1.0"], [str(2**70), "1"]):
        assert as_column(texts).tolist() == texts
