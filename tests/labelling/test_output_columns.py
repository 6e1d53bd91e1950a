"""The columns that labelling adds: the same for a file, a file of a folder, and rows that come later."""

from __future__ import annotations

import io

import numpy as np
import pytest

from otprop.files import read_table
from otprop.labelling.outcome import RowLabels
from otprop.labelling.output_columns import OutputColumns, parts_of_file, refuse_taken
from otprop.table.errors import ColumnError

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
