"""Columns become vectors: what each kind becomes, what is left out, and what new rows may look like."""

from __future__ import annotations

import datetime
import re
import tracemalloc
import warnings
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otprop.table.columns import Block
from otprop.table.features import Features
from otprop.table.numbers import NumberEncoder

pd = pytest.importorskip("pandas")

N = 120


def mixed(n: int = N, seed: int = 0):
    """A table with a column of each kind, missing values among them."""
    rng = np.random.default_rng(seed)
    words = ["the", "cat", "dog", "sat", "ran", "fast", "red", "house"]
    frame = pd.DataFrame(
        {
            "row": np.arange(n),
            "code": [f"x{number:05d}" for number in rng.permutation(n)],
            "age": rng.normal(40, 10, n),
            "income": np.exp(rng.normal(8, 2, n)),
            "same": 1,
            "empty": [None] * n,
            "member": pd.array(rng.random(n) < 0.4, dtype="boolean"),
            "colour": rng.choice(["red", "green", "blue"], n),
            "city": [f"town {number}" if number % 2 else f"{number}ville" for number in rng.integers(0, 60, n)],
            "when": pd.Timestamp("2020-03-01") + pd.to_timedelta(rng.integers(0, 48_000, n), "h"),
            "note": [" ".join(rng.choice(words, 6)) for _ in range(n)],
            "vector": [list(rng.normal(size=5)) for _ in range(n)],
            "e_0": rng.normal(size=n),
            "e_1": 10 * rng.normal(size=n),
            "y": rng.choice(["a", "b"], n),
        }
    )
    for place, name in enumerate(["age", "member", "colour", "when", "note", "vector"]):
        frame.loc[place : place + 3, name] = None
    return frame


def fitted(frame, **options):
    return Features(list(frame.columns), "y" if "y" in frame else None, **options).fit(frame)


def roles(features):
    return {column.name: column.role for column in features.columns}


def reasons(features):
    return {column.name: column.why for column in features.columns}


def one(values, **options):
    """The vectors of a table with a single column beside a number."""
    frame = pd.DataFrame({"it": values, "x": np.linspace(0, 1, len(values)) ** 2})
    features = fitted(frame, **options)
    places = [place for place, name in enumerate(features.feature_names) if name.startswith("it")]
    return features, features.transform(frame)[:, places]


def test_each_column_gets_the_role_of_its_values():
    found = roles(fitted(mixed(), embedding="e_"))
    assert found == {
        "row": "left out",
        "code": "left out",
        "age": "number",
        "income": "number",
        "same": "left out",
        "empty": "left out",
        "member": "boolean",
        "colour": "category",
        "city": "text",
        "when": "date",
        "note": "text",
        "vector": "embedding",
        "e_*": "embedding",
    }


def test_what_is_left_out_says_why():
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


def test_an_outlier_does_not_squeeze_the_others():
    rng = np.random.default_rng(0)
    values = rng.normal(size=200)
    _, without = one(values)
    values[3] = 1e12
    _, X = one(values)
    others = np.arange(200) != 3
    assert X[others].std() > 0.9 * without[others].std()
    assert X[3] == X.max()


def test_missing_numbers_are_in_the_middle_and_flagged():
    features, X = one([1.0, 2.0, np.nan, 3.0, 4.0, 5.0])
    assert features.feature_names[:2] == ["it", "it: missing"]
    assert X[2, 0] == X[3, 0]  # the median
    np.testing.assert_array_equal(X[:, 1], [0, 0, 1, 0, 0, 0])


def test_one_value_or_missing_is_a_flag_alone():
    for values in ([3.0, np.nan, 3.0], ["a", None, "a"], [True, None, True], pd.to_datetime(["2020-01-01", None] * 2)):
        features, X = one(values)
        assert X.shape[1] == 1
        assert X[1] == 1
        assert X[0] == 0
        assert "flag alone" in reasons(features)["it"]


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
def test_identifiers_are_left_out_unless_they_are_asked_for(values):
    frame = pd.DataFrame({"it": values, "x": np.linspace(0, 1, len(values)) ** 2})
    assert reasons(fitted(frame))["it"].startswith("identifier")
    assert roles(fitted(frame, only=["it", "x"]))["it"] != "left out"


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
    assert roles(features)["it"] != "left out"


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
        *("boolean", "number", "date", "category", "left out", "category", "number")
    ]
    assert np.isfinite(features.transform(frame)).all()


def test_hours_of_the_day_are_near_across_midnight():
    frame = pd.DataFrame({"it": pd.date_range("2020-01-01", periods=24 * 60, freq="h")})
    features = fitted(frame)
    names = features.feature_names
    day = [names.index("it: sine of the day"), names.index("it: cosine of the day")]
    X = features.transform(frame)[:, day]
    late, early, noon = X[23], X[24], X[12]
    assert np.linalg.norm(late - early) < np.linalg.norm(late - noon) / 3


def test_dates_of_another_time_zone_are_the_same_moments():
    when = pd.Series(pd.date_range("2020-01-01", periods=50, freq="7h", tz="UTC"))
    features = fitted(pd.DataFrame({"it": when}))
    here = features.transform(pd.DataFrame({"it": when}))
    np.testing.assert_array_equal(features.transform(pd.DataFrame({"it": when.dt.tz_convert("Asia/Tokyo")})), here)
    text = pd.DataFrame({"it": when.dt.strftime("%Y-%m-%d %H:%M:%S")})
    np.testing.assert_allclose(features.transform(text), here, atol=1e-5)


def test_texts_alike_are_near():
    rng = np.random.default_rng(0)
    topics = [["apple", "pear", "plum", "cherry"], ["iron", "copper", "silver", "gold"]]
    texts = [" ".join(rng.choice(topics[number % 2], 5)) for number in range(80)]
    _, X = one(texts)
    apart = ((X[:, None].astype(float) - X[None, :]) ** 2).sum(axis=2)
    same = np.equal.outer(np.arange(80) % 2, np.arange(80) % 2)
    assert apart[~same].mean() > 2 * apart[same].mean()


def test_text_is_tf_idf_of_words_and_pieces_of_words_reduced_to_unit_vectors():
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import FeatureUnion

    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcdefghij"), 6)) for _ in range(20)]
    texts = [" ".join(rng.choice(words[: 5 + row % 15], 12)) for row in range(90)]
    pieces = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 4), min_df=2)
    theirs = FeatureUnion(
        [("pieces", pieces), ("words", TfidfVectorizer(min_df=2))], transformer_weights={"words": 0.5}
    )
    matrix = theirs.fit_transform(texts).toarray()
    expected = matrix @ np.linalg.svd(matrix, full_matrices=False)[2][:30].T
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    _, X = one(texts)
    assert X.shape == (90, 30)
    ours, expected = (part - part.mean(axis=0) for part in (X.astype(float), expected))
    ours, expected = ours / ours.std(), expected / expected.std()
    np.testing.assert_allclose(ours @ ours.T, expected @ expected.T, atol=0.05)


@pytest.mark.parametrize(("n_rows", "n_columns"), [(7, 40), (40, 7)])
def test_a_block_has_a_variance_of_the_root_of_its_effective_dimensions(n_rows, n_columns):
    values = np.random.default_rng(0).normal(size=(n_rows, n_columns)) * np.linspace(1, 3, n_columns)
    found = Block(values)(values)
    covariance = np.cov(values.T, bias=True)
    effective = np.trace(covariance) ** 2 / (covariance**2).sum()
    np.testing.assert_allclose(found.var(axis=0).sum(), np.sqrt(effective))


def test_a_wide_block_needs_memory_for_its_values_and_not_for_pairs_of_columns():
    values = np.random.default_rng(0).normal(size=(20, 20_000)).astype(np.float32)  # 3.2 GB for pairs of columns
    tracemalloc.start()
    try:
        Block(values)
        assert tracemalloc.get_traced_memory()[1] < 50 * values.nbytes
    finally:
        tracemalloc.stop()


def test_a_column_of_pictures_as_arrays_needs_memory_for_its_values():
    pixels = np.random.default_rng(0).integers(0, 256, (120, 128, 128, 3)).astype(np.uint8)
    frame = pd.DataFrame({"picture": list(pixels)})  # pairs of columns would take 19 GB
    tracemalloc.start()
    try:
        found = Features(["picture"], None).fit_transform(frame)
        assert tracemalloc.get_traced_memory()[1] < 300e6  # the values take 47 MB as float64
    finally:
        tracemalloc.stop()
    assert found.shape == (120, 128 * 128 * 3)


def test_an_embedding_keeps_its_proportions():
    frame = mixed()
    features = fitted(frame, only=["age"], embedding="e_")
    X = features.transform(frame)[:, -2:].astype(float)
    raw = frame[["e_0", "e_1"]].to_numpy()
    np.testing.assert_allclose(X.std(axis=0) / raw.std(axis=0), X.std() / raw.std(), rtol=0.1)


def test_neither_text_nor_an_embedding_drowns_the_numbers():
    frame = mixed()
    features = fitted(frame, embedding="e_")
    X = features.transform(frame)
    start = 0
    for column in features.columns:
        block = X[:, start : start + column.width]
        start += column.width
        assert block.var(axis=0).sum() < 3.5, column.name


def test_a_category_never_seen_is_none_of_the_known():
    frame = pd.DataFrame({"it": ["a", "b"] * 10, "x": np.arange(20.0) ** 2})
    features = fitted(frame)
    new = features.transform(pd.DataFrame({"it": ["c", "a", None], "x": [1.0, 2.0, 3.0]}))
    np.testing.assert_array_equal(new[:, :2], [[0, 0], [1, 0], [0, 0]])


def test_missing_where_nothing_was_missing_is_taken():
    frame = mixed().drop(columns=["empty"]).dropna()
    features = fitted(frame, embedding="e_")
    empty = pd.DataFrame({name: [None] * 3 for name in features.wanted})
    assert np.isfinite(features.transform(empty)).all()


def test_a_category_that_became_a_number_is_still_the_same():
    frame = pd.DataFrame({"zip": ["10", "20", "007"] * 5, "x": np.arange(15.0) ** 2})
    features = fitted(frame)
    text = features.transform(pd.DataFrame({"zip": ["10", "20"], "x": [0.0, 0.0]}))
    for numbers in ([10, 20], [10.0, 20.0]):
        np.testing.assert_array_equal(features.transform(pd.DataFrame({"zip": numbers, "x": [0.0, 0.0]})), text)
    assert not features.transform(pd.DataFrame({"zip": [1e300, np.inf], "x": [0.0, 0.0]}))[:, :3].any()


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
    with pytest.raises(ValueError, match="embedding='emb_': no column starts so"):
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


@pytest.mark.parametrize("name", ["id", "lotId", "Unnamed: 0", "", "lot", "n"])
def test_numbers_that_only_rise_are_an_index_whatever_their_gaps_and_name(name):
    frame = pd.DataFrame({name: [2 * number**2 for number in range(20)], "x": np.linspace(0, 1, 20) ** 2})
    assert [use.is_identifier for use in fitted(frame).columns] == [True, False]
    nameless = name in ("", "Unnamed: 0")  # in any order
    assert fitted(frame.sample(frac=1, random_state=0)).columns[0].is_identifier == nameless
    assert roles(fitted(frame, only=[name, "x"]))[name] == "number"
    assert fitted(frame.iloc[::-1]).columns[0].is_identifier == (nameless or name in ("id", "lotId"))


def test_categories_that_the_fit_did_not_see_are_named():
    frame = pd.DataFrame({"size": ["S", "M"] * 10, "x": np.arange(20) ** 2.0})
    features = fitted(frame)
    assert features.notes_on_new(frame) == []
    later = frame.assign(size=["S", None, "XL", "XL"] + ["M"] * 16)
    (note,) = features.notes_on_new(later)
    assert note == "categories that the model has not seen, which it ignores: 'size' (2 of 20 rows)"


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


def test_columns_that_are_filled_only_where_the_target_is_are_left_out_and_named():
    frame, given = leaking()
    features = Features(list(frame.columns)).fit(frame, given)
    leaks = [name for name, why in reasons(features).items() if why == "filled only where the target is"]
    assert leaks == ["reviewer", "label_date", "species_note", "nearly", "outcome", "checked", "score"]
    assert len(features.notes) == 1
    assert re.match(r"'reviewer', 'label_date', .* are filled only where the target is", features.notes[0])
    assert features.notes[0].parameter == "features"
    assert Features(list(frame.columns)).fit(frame).notes == []


def test_such_columns_are_used_where_they_are_asked_for():
    frame, given = leaking()
    features = Features(list(frame.columns), only=["age", "reviewer"]).fit(frame, given)
    assert roles(features)["reviewer"] != "left out"


def test_many_columns_of_numbers_are_encoded_as_each_alone():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"n{place}": rng.normal(size=50) * 10.0 ** rng.integers(-200, 200) for place in range(40)})
    frame["whole"] = rng.integers(0, 5, 50)
    frame["rare"] = np.where(np.arange(50) == 3, 7.0, 0.0)
    frame["same"], frame["far"], frame["endless"] = 2.0, 1e308 * rng.choice([-1, 1], 50), rng.choice([0, 1, np.inf], 50)
    frame.iloc[3:6, ::5] = np.nan
    features = fitted(frame)
    whole = features.transform(frame)
    start = 0
    for use in features.columns:
        if use.left_out:
            continue
        alone = NumberEncoder()
        alone.fit(frame[use.name])
        np.testing.assert_array_equal(whole[:, start : start + use.width], alone.transform(frame[use.name]))
        start += use.width
    assert start == whole.shape[1]


def test_ten_thousand_columns_of_numbers_are_no_ten_thousand_calls(monkeypatch):
    calls = []
    monkeypatch.setattr(NumberEncoder, "read", lambda self, column: calls.append(column))
    monkeypatch.setattr(NumberEncoder, "fit_values", lambda self, values, missing: calls.append(values))
    values = np.random.default_rng(0).normal(size=(40, 10_000))
    frame = pd.DataFrame(values, columns=[f"n{number}" for number in range(10_000)])
    assert fitted(frame).transform(frame).shape == (40, 10_000)
    assert calls == []


def test_a_use_says_whether_it_is_left_out_and_whether_for_being_an_identifier():
    uses = {use.name: use for use in fitted(mixed()).columns}
    assert {name for name, use in uses.items() if use.left_out} == {"row", "code", "same", "empty"}
    assert {name for name, use in uses.items() if use.is_identifier} == {"row", "code"}


def test_times_of_day_are_near_across_midnight():
    frame = pd.DataFrame({"it": [datetime.time(hour, 30) for hour in range(24)] + [None]})
    features = fitted(frame)
    X = features.transform(frame)[:, :2]
    assert features.feature_names == ["it: sine of the day", "it: cosine of the day", "it: missing"]
    assert np.linalg.norm(X[23] - X[0]) == pytest.approx(np.linalg.norm(X[12] - X[11]), rel=1e-5)
    np.testing.assert_allclose(X[24], 0)
    with pytest.raises(ValueError, match="column 'it' holds 'noon' in row 1, where times of day are expected"):
        features.transform(pd.DataFrame({"it": ["noon"]}))


def test_text_whose_order_of_day_and_month_is_open_is_no_date():
    features = fitted(pd.DataFrame({"it": pd.date_range("2020-01-01", periods=50)}))
    with pytest.raises(ValueError, match="column 'it' holds '11/02/2024' in row 2, where dates are expected"):
        features.transform(pd.DataFrame({"it": ["2024-02-11", "11/02/2024"]}))


@pytest.mark.parametrize(
    "values",
    [
        [1e308, -1e308, 1.0, np.inf, -1e308] * 4,
        [1e308, 1.7e308, 1.2e308] * 4,
        [1e308, -1e308] * 5,
        [0.0] * 9 + [1.7e308, -1.7e308],
    ],
)
def test_the_largest_numbers_give_no_warning(values):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, X = one(values)
    assert np.isfinite(X).all()
    assert np.ptp(X) > 0.5


def test_infinite_numbers_are_outliers_and_a_note_names_their_column():
    frame = pd.DataFrame({"a": [*np.arange(50.0), np.inf, -np.inf], "b": np.arange(52.0) ** 1.5})
    features = Features(list(frame)).fit(frame)
    found = features.transform(frame)[:, features.feature_names.index("a")]
    assert found.argmax() == 50
    assert found.argmin() == 51
    assert features.notes == [
        "infinite numbers count as outliers beyond all others of their column: 'a' (2 of 52 rows)"
    ]
