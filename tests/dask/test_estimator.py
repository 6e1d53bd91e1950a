"""`DaskOTP`: the same labels whatever the partitions, and those of `OTP` where all rows are landmarks."""

from __future__ import annotations

import itertools
import pickle
import re

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask.distributed import Client, LocalCluster
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from otprop import OTP
from otprop.dask import DaskOTP
from otprop.geometry import neighbors

FAST = {"evidence": ["linear"]}  # a forest in every fit takes too long
LAZY = ("transduction_", "confidence_", "certainty_", "label_distributions_")


def cut(X, lengths):
    return da.from_array(X, chunks=(tuple(lengths), X.shape[1]))


def results(model):
    return dask.compute(*(getattr(model, name) for name in LAZY))


def even(n_rows, n_parts):
    bounds = np.linspace(0, n_rows, n_parts + 1).astype(int)
    return np.diff(bounds).tolist()


def test_with_all_rows_as_landmarks_it_is_otp(client, table):
    X, codes, _ = table
    model, whole = DaskOTP(client=client).fit(cut(X, even(1200, 4)), codes), OTP().fit(X, codes)
    for name, found in zip(LAZY, results(model), strict=True):
        np.testing.assert_array_equal(found, getattr(whole, name))
    np.testing.assert_array_equal(model.class_prior_, whole.class_prior_)
    assert [one.name for one in model.evidence_] == [one.name for one in whole.evidence_]
    assert model.coverage()[0].expected_error == pytest.approx(whole.coverage()[0].expected_error, abs=1e-6)


@pytest.mark.parametrize("through_cells", [False, True])
def test_neither_partitions_nor_their_sizes_change_a_bit(client, table, monkeypatch, through_cells):
    if through_cells:
        monkeypatch.setattr(neighbors, "EXACT_WORK", 0)
    X, codes, truth = (part[:700] for part in table)
    cuts = [[700], even(700, 4), even(700, 28), [1, 256, 257, 1, 1, 184]]
    first = None
    for lengths in cuts:
        model = DaskOTP(OTP(**FAST), landmarks=250, client=client).fit(cut(X, lengths), codes)
        assert (model.to_local()._predictor.index._frozen_search is not None) == through_cells
        found = results(model)
        if first is None:
            first, prior = found, model.class_prior_
        for one, other in zip(first, found, strict=True):
            np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(model.class_prior_, prior)
    assert (first[0] == truth).mean() > 0.85
    np.testing.assert_array_equal(first[0][codes >= 0], codes[codes >= 0])


def test_frames_arrays_and_delayed_pairs_give_the_same(client, table):
    X, codes, _ = table
    lengths = even(1200, 3)
    starts = np.cumsum([0, *lengths])
    array = DaskOTP(OTP(**FAST), landmarks=300, client=client).fit(cut(X, lengths), da.from_array(codes, chunks=500))
    expected = results(array)
    pairs = [(dask.delayed(X[a:b]), dask.delayed(codes[a:b])) for a, b in itertools.pairwise(starts)]
    delayed = DaskOTP(OTP(**FAST), landmarks=300, client=client).fit(pairs)
    for one, other in zip(expected, results(delayed), strict=True):
        np.testing.assert_array_equal(one, other)
    frame = pd.DataFrame(X, columns=list("abcdef"), index=np.arange(1200) * 2)
    frame["kind"] = codes
    source = dd.from_pandas(frame, npartitions=5)
    model = DaskOTP(OTP(**FAST), landmarks=300, client=client).fit(source, "kind")
    found = results(model)
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one, other.to_numpy())
        assert other.index.equals(frame.index)
    assert model.transduction_.npartitions == source.npartitions
    assert model.feature_names_in_.tolist() == list("abcdef")
    new = model.predict(source)
    assert new.npartitions == source.npartitions
    np.testing.assert_array_equal(new.compute().to_numpy(), model.to_local().predict(frame[list("abcdef")]))


def test_new_rows_are_lazy_where_they_came_lazy_and_local_where_local(client, table):
    X, codes, _ = table
    model = DaskOTP(OTP(**FAST), landmarks=300, client=client).fit(cut(X, [1200]), codes)
    local = model.to_local()
    assert isinstance(local, OTP)
    for name in ("predict", "predict_proba", "predict_confidence"):
        lazy = getattr(model, name)(cut(X[:500] + 0.01, [1, 256, 243]))
        assert isinstance(lazy, da.Array)
        expected = getattr(local, name)(X[:500] + 0.01)
        assert lazy.shape == expected.shape
        assert lazy.dtype == expected.dtype
        np.testing.assert_array_equal(lazy.compute(), expected)
        np.testing.assert_array_equal(getattr(model, name)(X[:500] + 0.01), expected)


def test_labels_of_text_markers_and_abstentions(client, table):
    X, codes, _ = table
    names = np.array(["ash", "elm", "oak"], dtype=object)
    y = np.where(codes < 0, None, names[codes])
    model = DaskOTP(OTP(abstain_below=0.9, **FAST), landmarks=400, client=client).fit(cut(X, even(1200, 3)), y)
    labels, confidence = dask.compute(model.transduction_, model.confidence_)
    assert set(labels) == {"ash", "elm", "oak", None}
    unsure = np.array([label is None for label in labels])
    np.testing.assert_array_equal(unsure, (confidence < 0.9) & (codes < 0))
    assert model.classes_.tolist() == ["ash", "elm", "oak"]


@pytest.mark.parametrize(
    "labels_of",
    [
        lambda codes: codes,
        lambda codes: np.where(codes < 0, np.nan, codes),
        lambda codes: np.array(["2020", "2021", "2022", "NaT"], dtype="M8[ns]")[codes],
        lambda codes: np.array(["2020-01", "2021-05", "2022-09", "NaT"], dtype="M8[D]")[codes],
        lambda codes: np.array(["ash", "elm", "oak", None], dtype=object)[codes],
    ],
    ids=["numbers", "fractions", "nanoseconds", "days", "text"],
)
def test_rows_left_unlabelled_have_the_marker_of_y_as_in_otp(client, table, labels_of):
    X, codes = table[0][:400], table[1][:400]
    y = labels_of(codes)
    whole = OTP(abstain_below=0.9, **FAST).fit(X, y).transduction_
    lazy = DaskOTP(OTP(abstain_below=0.9, **FAST), client=client).fit(cut(X, even(400, 3)), y).transduction_
    found = lazy.compute()
    np.testing.assert_array_equal(found, whole)
    assert found.dtype == lazy.dtype == whole.dtype
    assert pd.isna(whole).any() or (whole == -1).any(), "some rows are left unlabelled"


def test_labels_of_dates_in_a_frame(client, table):
    X, codes, _ = table
    dates = np.array(["2020", "2021", "2022", "NaT"], dtype="M8[ns]")
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(kind=dates[codes])
    model = DaskOTP(OTP(**FAST), client=client).fit(dd.from_pandas(frame, npartitions=3), "kind")
    expected = OTP(**FAST).fit(X, dates[codes])
    labels, shares = dask.compute(model.transduction_, model.label_distributions_)
    np.testing.assert_array_equal(labels, expected.transduction_)
    assert shares.columns.tolist() == [pd.Timestamp("2020"), pd.Timestamp("2021"), pd.Timestamp("2022")]


def test_more_labelled_rows_than_landmarks_keep_their_labels(client, table):
    X, _, truth = table
    y = truth.copy()
    y[::10] = -1
    model = DaskOTP(OTP(**FAST), landmarks=200, client=client).fit(cut(X, even(1200, 3)), y)
    assert len(model.landmark_rows_) <= 120 + 200
    labels, confidence = dask.compute(model.transduction_, model.confidence_)
    np.testing.assert_array_equal(labels[y >= 0], y[y >= 0])
    assert (confidence[y >= 0] == 1).all()


def test_it_is_an_estimator_of_scikit_learn(client):
    model = DaskOTP(landmarks=10, client=client)
    assert set(model.get_params()) == {"estimator", "landmarks", "client"}
    again = clone(model)
    assert again.landmarks == 10
    assert again.client is client
    model = DaskOTP(OTP(alpha=0.7)).set_params(estimator__alpha=0.8)
    assert clone(model).estimator.alpha == 0.8
    assert clone(model).estimator is not model.estimator


def test_parameters_of_the_estimator_are_taken_as_in_0_2_with_a_warning():
    with pytest.warns(FutureWarning, match=re.escape("DaskOTP(OTP(alpha=..., n_neighbors=...))")):
        model = DaskOTP(alpha=0.7, n_neighbors=5, landmarks=10)
    assert (model.estimator.alpha, model.estimator.n_neighbors, model.landmarks) == (0.7, 5, 10)
    with pytest.raises(TypeError, match="unexpected argument 'landmark'; did you mean 'landmarks'"):
        DaskOTP(landmark=10)
    with pytest.raises(TypeError, match=re.escape("DaskOTP(OTP(alpha=...))")):
        DaskOTP(OTP(), alpha=0.7)


def test_a_fitted_model_can_be_pickled_and_predicts_without_its_cluster(client, table):
    X, codes, _ = table
    model = DaskOTP(OTP(**FAST), landmarks=300, client=client).fit(cut(X, [1200]), codes)
    again = pickle.loads(pickle.dumps(model))
    assert again.client is None
    assert not hasattr(again, "transduction_")
    np.testing.assert_array_equal(again.predict_proba(X[:50] + 0.01), model.predict_proba(X[:50] + 0.01))
    again.client = client
    np.testing.assert_array_equal(again.predict(cut(X, [700, 500])).compute(), model.predict(X))


@pytest.mark.parametrize("n_workers", [1, 3])
def test_the_number_of_workers_changes_no_bit(client, table, n_workers):
    X, codes, _ = table
    two = DaskOTP(OTP(**FAST), landmarks=300, client=client).fit(cut(X, even(1200, 5)), codes)
    expected = results(two)
    with (
        LocalCluster(
            n_workers=n_workers, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster, set_as_default=False) as other,
    ):
        model = DaskOTP(OTP(**FAST), landmarks=300, client=other).fit(cut(X, even(1200, 5)), codes)
        found = other.gather(other.compute([getattr(model, name) for name in LAZY]))
    for one, same in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one, same)


def frame_of(columns):
    return dd.from_pandas(pd.DataFrame(columns), npartitions=1)


def pair(X, y):
    return dask.delayed(X), dask.delayed(y)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda X, y: (cut(X, [1200]).rechunk((600, 3)), y), "is cut into 2 chunks of columns"),
        (lambda X, y: (cut(X, [1200]), y[:10]), "y has shape (10,), expected (1200,)"),
        (lambda X, y: (X, y), "X must be a Dask frame with the name of its target as y"),
        (lambda X, y: (cut(X, [600, 600]), np.full(1200, -1)), "y has no labelled row: all 1200 entries"),
        (lambda X, y: (frame_of({"a": [1.0], "kind": [1]}), "kin"), "'kind'"),
        (lambda X, y: (frame_of({"a": [1.0], "kind": [1]}), y), "the name of"),
        (lambda X, y: (frame_of({"a": [1.0], "kind": [1]}), frame_of({"kind": [1]})["kind"]), "give its name, 'kind'"),
        (lambda X, y: ([(dask.delayed(X), dask.delayed(y[:3]))], None), "1200 rows and 3 labels in the pair 0"),
        (lambda X, y: ([pair(X, y), pair(X[:, :2], y)], None), "rows of shape (1200, 2) in the pair 1"),
        (lambda X, y: ([pair(X, y), (X, y)], None), "got a list whose entry 1 is not a pair of delayed objects"),
        (lambda X, y: ([], None), "got an empty list"),
    ],
)
def test_what_cannot_be_fitted_is_refused_in_words(client, table, make, words):
    X, codes, _ = table
    with pytest.raises(ValueError, match=re.escape(words)):
        DaskOTP(OTP(**FAST), client=client).fit(*make(X, codes))


def test_columns_may_be_numbers_and_the_target_may_stay_among_new_rows(client, table):
    X, codes, _ = table
    frame = pd.DataFrame(X).assign(**{"kind": codes})
    frame.columns = range(7)
    model = DaskOTP(OTP(**FAST), landmarks=300, client=client).fit(dd.from_pandas(frame, npartitions=2), 6)
    expected = DaskOTP(OTP(**FAST), landmarks=300, client=client).fit(cut(X, [600, 600]), codes).transduction_.compute()
    np.testing.assert_array_equal(model.transduction_.compute(), expected)
    named = frame.rename(columns=str)
    model = DaskOTP(OTP(**FAST), landmarks=300, client=client).fit(dd.from_pandas(named, npartitions=2), "6")
    lazy = model.predict(dd.from_pandas(named.head(20), npartitions=1)).compute()
    np.testing.assert_array_equal(model.predict(named.head(20)), lazy)


def test_what_cannot_be_predicted_is_refused_in_words(client, table):
    X, codes, _ = table
    with pytest.raises(NotFittedError):
        DaskOTP(client=client).predict(cut(X, [1200]))
    model = DaskOTP(OTP(**FAST), landmarks=300, client=client).fit(cut(X, [1200]), codes)
    with pytest.raises(ValueError, match="X has 2 features; the fit had 6"):
        model.predict(cut(X, [1200])[:, :2])


def test_a_closed_client_is_refused(client, table):
    X, codes, _ = table
    closed = Client(client.scheduler.address, set_as_default=False)
    closed.close()
    with pytest.raises(ValueError, match="client is closed: give a running one"):
        DaskOTP(client=closed).fit(cut(X, [1200]), codes)


def test_without_any_client_the_cluster_is_the_guarded_one_of_folders(client, table, monkeypatch):
    X, codes, _ = table
    started = []
    monkeypatch.setattr("otprop.dask._estimator.default_client", lambda: None)
    monkeypatch.setattr("otprop.dask._estimator.local_client", lambda **options: started.append(options) or client)
    DaskOTP(OTP(**FAST), landmarks=300).fit(cut(X, [700, 500]), codes)
    assert len(started) == 1
    assert 'under `if __name__ == "__main__":`' in started[0]["advice"]


def test_without_the_client_of_the_fit_new_rows_are_predicted_and_what_needs_it_is_refused(client, table, monkeypatch):
    X, codes, _ = table
    used = Client(client.scheduler.address, set_as_default=False)
    model = DaskOTP(OTP(**FAST), landmarks=300, client=used).fit(cut(X, [700, 500]), codes)
    used.close()
    monkeypatch.setattr("otprop.dask._estimator.local_client", lambda **options: pytest.fail("a cluster was started"))
    lazy = cut(X, [700, 500])
    for new in (lazy, lazy[lazy[:, 0] > -100]):  # of a known and of an unknown number of rows
        np.testing.assert_array_equal(model.predict(new).compute(), model.predict(X))
    copy = pickle.loads(pickle.dumps(model))
    for other in (model, copy):
        with pytest.raises(ValueError, match=r"client that fit used is closed: call coverage\(\) before"):
            other.coverage()


def test_a_fit_forgets_the_one_before_it_even_where_it_fails(client, table):
    X, codes, _ = table
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(kind=codes)
    model = DaskOTP(OTP(**FAST), landmarks=300, client=client).fit(dd.from_pandas(frame, npartitions=2), "kind")
    model.fit(cut(X[:, :3], [1200]), codes)
    assert not hasattr(model, "feature_names_in_")
    with pytest.raises(ValueError, match="X has 7 columns; the fit had 3 features"):
        model.predict(dd.from_pandas(frame, npartitions=2))
    with pytest.raises(ValueError, match="y has shape"):
        model.fit(cut(X, [1200]), codes[:5])
    with pytest.raises(NotFittedError):
        model.predict(X[:, :3])
    assert not hasattr(model, "transduction_")


@pytest.mark.parametrize("names", [list("abcdef"), [0, 1, 2, 3, 4, 5]])
def test_columns_of_a_lazy_frame_go_by_name_and_a_missing_one_is_named_at_once(client, table, names):
    X, codes, _ = table
    frame = pd.DataFrame(X, columns=names)
    frame[names[-1] * 2] = codes
    model = DaskOTP(OTP(**FAST), landmarks=300, client=client).fit(dd.from_pandas(frame, npartitions=2), names[-1] * 2)
    lazy = dd.from_pandas(frame, npartitions=2)
    np.testing.assert_array_equal(model.predict(lazy[names[::-1]]).compute(), model.predict(frame[names]))
    with pytest.raises(ValueError, match=re.escape(f"X lacks the column {names[2]!r}, which the fit had")):
        model.predict(lazy[[name for name in names if name != names[2]]])


def test_parameters_without_meaning_are_refused(client, table):
    X, codes, _ = table
    for params, words in (
        ({"landmarks": 0}, "landmarks"),
        ({"estimator": OTP(cost="graph")}, "cost='graph' needs a matrix between all rows"),
        ({"estimator": OTP(alpha=3)}, "alpha"),
        ({"estimator": "sqeuclidean"}, "estimator must be an OTP or None; got 'sqeuclidean'"),
    ):
        with pytest.raises(ValueError, match=words):
            DaskOTP(client=client, **params).fit(cut(X, [1200]), codes)
    with pytest.raises(TypeError, match=r"client must be a dask\.distributed\.Client"):
        DaskOTP(client="tcp://nowhere").fit(cut(X, [1200]), codes)
