"""Checks of parameters."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from otprop._validation import ParameterError, check_count, check_number, did_you_mean, is_missing


@pytest.mark.parametrize("value", [0.0, 1.0, np.float32(0.5), "auto", None])
def test_check_number_accepts_closed_bounds_and_words(value):
    check_number("share", value, least=0, most=1, words=["auto", None])


@pytest.mark.parametrize("value", [0.0, 1.0, np.nan, np.inf, True, "0.5", "auto"])
def test_check_number_refuses_open_bounds_what_is_not_finite_and_what_is_not_a_number(value):
    with pytest.raises(ParameterError, match="share must be a finite number > 0 and < 1; got") as caught:
        check_number("share", value, above=0, below=1)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.parameter, str(again)) == ("share", str(caught.value))


def test_check_count_refuses_fractions_and_booleans():
    check_count("n", np.int8(3))
    for value in (0, 2.0, True, "3"):
        with pytest.raises(ParameterError, match="n must be an integer >= 1; got"):
            check_count("n", value)


def test_is_missing_knows_every_null():
    pd = pytest.importorskip("pandas")
    assert all(is_missing(value) for value in (None, np.nan, np.datetime64("NaT"), pd.NA, pd.NaT))
    assert not any(is_missing(value) for value in (0, "", "nan", False, [], np.array([np.nan])))


def test_did_you_mean_names_what_is_near_whatever_its_case():
    assert did_you_mean("euclidian", ["cosine", "euclidean"]) == "; did you mean 'euclidean'?"
    assert did_you_mean("AGE", ["age", "kind"]) == "; did you mean 'age'?"
    assert did_you_mean("nothing", ["age", "kind"]) == did_you_mean(3, ["age"]) == ""
