"""Columns become vectors: what each kind becomes, what is left out, and what new rows may look like."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otprop.table.features import Features
from tests.table.frames import N, fitted, mixed, one, reasons

pd = pytest.importorskip("pandas")


def test_what_is_skipped_says_why():
    found = reasons(fitted(mixed(), ignore=["age"], embedding="e_"))
    assert found["row"] == "identifier: row numbers"
    assert found["code"] == "identifier: a different value in every row"
    assert found["same"] == "constant"
    assert found["empty"] == "no value in any row"
    assert found["age"] == "ignored on request"
    assert "3 % missing, flagged" in found["note"]


def test_the_matrix_is_finite_and_as_wide_as_the_report_says():
    frame = mixed()
    features = fitted(frame, embedding="e_")
    X = features.transform(frame)
    assert X.dtype == np.float32
    assert np.isfinite(X).all()
    assert X.shape == (N, sum(column.width for column in features.columns)) == (N, len(features.feature_names))


def test_a_row_has_the_same_vector_alone_and_in_any_company():
    frame = mixed()
    features = Features(list(frame.columns), "y", embedding="e_")
    X = features.fit_transform(frame)
    turned = frame.iloc[::-1, ::-1].assign(extra=3)
    np.testing.assert_array_equal(features.transform(turned)[::-1], X)
    np.testing.assert_array_equal(features.transform(frame.iloc[[7]]), X[[7]])


def test_the_target_is_never_a_feature():
    frame = mixed()
    assert "y" not in fitted(frame).wanted
    with pytest.raises(ValueError, match="features='y': this is the target"):
        Features(list(frame.columns), "y", only=["y"])


def test_a_number_and_a_category_weigh_about_the_same():
    rng = np.random.default_rng(0)
    for values in (rng.normal(size=500), rng.lognormal(0, 2, 500), rng.poisson(0.3, 500), rng.integers(0, 2, 500)):
        _, X = one(values)
        assert X.var() == pytest.approx(1.0, abs=0.35)
    _, X = one(rng.choice(["a", "b", "c"], 500))
    apart = ((X[:, None] - X[None, :]) ** 2).sum(axis=2)
    assert set(np.unique(apart).round(6)) == {0.0, 2.0}
    _, X = one(rng.random(500) < 0.5)
    assert np.ptp(X) ** 2 == pytest.approx(2.0)


def test_neither_text_nor_an_embedding_drowns_the_numbers():
    frame = mixed()
    features = fitted(frame, embedding="e_")
    X = features.transform(frame)
    start = 0
    for column in features.columns:
        block = X[:, start : start + column.width]
        start += column.width
        assert block.var(axis=0).sum() < 3.5, column.name


def test_missing_where_nothing_was_missing_is_taken():
    frame = mixed().drop(columns=["empty"]).dropna()
    features = fitted(frame, embedding="e_")
    empty = pd.DataFrame({name: [None] * 3 for name in features.wanted})
    assert np.isfinite(features.transform(empty)).all()


def test_text_where_numbers_were_names_the_column_and_the_value():
    frame = mixed()
    features = fitted(frame)
    with pytest.raises(ValueError, match=r"column 'age' holds 'old' in row 3, where numbers are expected\.$"):
        features.transform(frame.assign(age=["1", "2", "old"] * (N // 3)))
    with pytest.raises(ValueError, match=r"column 'when' holds 'noon' in row 1, where dates are expected"):
        features.transform(frame.assign(when="noon"))
    with pytest.raises(ValueError, match=r"column 'member' holds 'perhaps' in row 1, where true and false"):
        features.transform(frame.assign(member="perhaps"))
    with pytest.raises(ValueError, match=r"column 'vector' holds arrays of 2 numbers, where 5 are expected"):
        features.transform(frame.assign(vector=[[1.0, 2.0]] * N))


def test_all_lacking_columns_are_named():
    frame = mixed()
    features = fitted(frame)
    with pytest.raises(ValueError, match="lacks 2 of the 10 columns needed: 'age', 'note'"):
        features.transform(frame.drop(columns=["age", "note"]))


def test_names_that_are_no_columns_are_refused_with_the_nearest():
    names = list(mixed().columns)
    with pytest.raises(ValueError, match="features='agee': there is no column 'agee'; did you mean 'age'"):
        Features(names, only=["agee"])
    with pytest.raises(ValueError, match=r"ignore='Colour': .*'colour'"):
        Features(names, ignore=["Colour"])
    with pytest.raises(ValueError, match="embedding='emb_': no column has this prefix"):
        Features(names, embedding="emb_")


def test_a_table_without_a_usable_column_says_why_of_each():
    frame = pd.DataFrame({"id": range(5), "same": 1, "y": "a"})
    with pytest.raises(ValueError, match=r"'id' \(identifier: row numbers\), 'same' \(constant\)"):
        fitted(frame)
    with pytest.raises(ValueError, match=r"'id' \(ignored on request\), 'y' \(the target\)"):
        Features(["id", "y"], "y", ignore=["id"])


def test_two_columns_of_one_name_are_refused():
    frame = pd.DataFrame([[1.0, 2.0], [3.0, 4.0]], columns=["a", "a"])
    with pytest.raises(ValueError, match="several columns with the name 'a'"):
        Features(["a"]).fit(frame)


def test_a_fit_can_be_repeated():
    frame = mixed()
    features = fitted(frame)
    first = features.transform(frame)
    np.testing.assert_array_equal(features.fit(frame).transform(frame), first)


cells = st.one_of(
    st.none(),
    st.floats(),
    st.integers(-(2**70), 2**70),
    st.booleans(),
    st.text(max_size=8),
    st.datetimes(),
)
typed = st.sampled_from([st.floats(), st.integers(-(2**60), 2**60), st.booleans(), st.text(max_size=8), st.datetimes()])


@st.composite
def frames(draw):
    """Tables with columns of one type or of many, missing cells everywhere."""
    n = draw(st.integers(1, 12))
    columns = {}
    for name in draw(st.lists(st.text(min_size=1, max_size=3), min_size=1, max_size=4, unique=True)):
        kind = draw(st.one_of(st.just(cells), typed.map(lambda kind: st.one_of(st.none(), kind)), typed))
        values = draw(st.lists(kind, min_size=n, max_size=n))
        columns[name] = pd.Series(values, dtype=draw(st.sampled_from([None, object])))
    return pd.DataFrame(columns)


@settings(max_examples=75, deadline=None)
@given(frames(), frames())
def test_any_table_becomes_finite_numbers_or_a_plain_refusal(frame, other):
    features = Features(list(frame.columns))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        X = or_refusal(features.fit_transform, frame, "no column is left")
        if X is None:
            return
        assert np.isfinite(X).all()
        assert X.shape == (len(frame), len(features.feature_names))
        np.testing.assert_array_equal(features.transform(frame.iloc[::-1])[::-1], X)
        new = other.set_axis([*frame.columns, *(f"more {place}" for place in range(9))][: other.shape[1]], axis=1)
        found = or_refusal(features.transform, new, "lacks|where")
        assert found is None or np.isfinite(found).all()


def or_refusal(what, frame, message):
    """What came out, or None where it was refused with the message."""
    try:
        return what(frame)
    except ValueError as error:
        if not re.search(message, str(error)):
            raise
        return None


def test_categories_that_the_fit_did_not_see_are_named():
    frame = pd.DataFrame({"size": ["S", "M"] * 10, "x": np.arange(20) ** 2.0})
    features = fitted(frame)
    assert features.notes_on_new(frame) == []
    later = frame.assign(size=["S", None, "XL", "XL"] + ["M"] * 16)
    (note,) = features.notes_on_new(later)
    assert note == "categories that the model has not seen, which it ignores: 'size' (2 of 20 rows)"


def test_a_use_says_whether_it_is_skipped_and_whether_for_being_an_identifier():
    uses = {use.name: use for use in fitted(mixed()).columns}
    assert {name for name, use in uses.items() if use.skipped} == {"row", "code", "same", "empty"}
    assert {name for name, use in uses.items() if use.is_identifier} == {"row", "code"}
