"""Errors of a request or a column, as data."""

from __future__ import annotations

import pickle

from otprop.files import TableError
from otprop.table.errors import ColumnError, Hint, NoFeaturesError, RequestError


def test_an_error_says_its_parameter_and_what_to_do() -> None:
    hint = Hint("use ", "unlabeled", "?", ".")
    errors = [
        RequestError("target", "must name a column."),
        ColumnError("kind", "it is full.", hint),
        NoFeaturesError(["a (constant)"], hint),
        TableError("lots.csv is odd", "pass {}", arguments=[("encoding", "cp1252")]),
    ]
    assert [error.parameter for error in errors] == ["target", "unlabeled", "unlabeled", "encoding"]
    assert [error.hint for error in errors] == [None, hint, hint, "pass encoding='cp1252'"]
    for error in errors:
        again = pickle.loads(pickle.dumps(error))
        assert (str(again), again.parameter, again.hint) == (str(error), error.parameter, error.hint)
