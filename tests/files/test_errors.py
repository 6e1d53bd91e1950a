"""Errors in a user's file, as data."""

from __future__ import annotations

import pickle

import pytest

from otprop.files import TableError
from tests.files.tables import table_of


def test_an_error_is_data_and_the_caller_spells_the_arguments():
    with pytest.raises(TableError) as caught:
        table_of(b"a,b\n1,\xe9\n", encoding="utf-8")
    error = pickle.loads(pickle.dumps(caught.value))
    assert (error.file, error.column, error.argument) == ("standard input", None, "encoding")
    assert str(error).endswith("has the byte 0xE9; pass its encoding, encoding='cp1252' for instance.")
    as_option = error.message(lambda name, value: f"--{name} {value}")
    assert as_option.endswith("; pass its encoding, --encoding cp1252 for instance.")
    with pytest.raises(TableError) as caught:
        table_of(b"a,b\n1,2\n").cells("{c}")
    assert caught.value.column == "{c}"
    assert "has no column '{c}'" in str(caught.value)
