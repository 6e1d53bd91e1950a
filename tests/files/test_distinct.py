"""The distinct texts of a column."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from otprop.files._distinct import MISSING, DistinctValues

TEXTS = st.sampled_from(["a", "b ", " c", "7", "", *MISSING]) | st.text("xyz ", max_size=3)


@settings(deadline=None)  # the first call imports much
@given(st.lists(TEXTS, min_size=1))
def test_distinct_values_give_back_every_row_and_know_what_is_missing(cells):
    distinct = DistinctValues.from_column(pa.array(cells))
    stripped = [cell.strip() for cell in cells]
    assert [distinct.value(code) for code in distinct.codes] == stripped
    assert distinct.missing[distinct.codes].tolist() == [cell in MISSING for cell in stripped]
    assert distinct.counts.sum() == len(cells)
    text = distinct.as_text().values
    assert [None if missing else cell for cell, missing in zip(text, text.isna(), strict=True)] == [
        None if cell in MISSING else cell for cell in stripped
    ]


def test_first_row_counts_from_one():
    distinct = DistinctValues.from_column(pa.array(["b", "a", "b", "c", "a"]))
    assert [distinct.first_row(index) for index in range(3)] == [1, 2, 4]
    assert distinct.first(np.array([False, True, True])) == "a"


def test_sample_is_of_values_in_order_and_bounded():
    distinct = DistinctValues.from_column(pa.array([str(number) for number in range(1000)] + ["NA"]))
    sample = distinct.sample()
    assert len(sample.values) == 200
    assert sample.value(0) == "0"
    assert sample.missing.tolist() == [*[False] * 199, True]
