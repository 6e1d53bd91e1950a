"""A table of an SQLite database."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from io import BytesIO

import numpy as np
import pandas as pd
import pytest

import otprop
from otprop.cli import main
from otprop.files import TableError
from otprop.table import database as database_module
from otprop.table.opening import open_table

N = 40


@pytest.fixture
def database(tmp_path, monkeypatch):
    """Two kinds of lots by turns, eight of them labelled, and a view of the first ten."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    with closing(sqlite3.connect("lots.db")) as connection:
        connection.execute('CREATE TABLE "all lots" (id INTEGER PRIMARY KEY, weight REAL, day TEXT, kind TEXT)')
        rows = [
            (row, row % 2 * 8 + rng.normal(), f"2026-01-{row % 28 + 1:02d}", "ab"[row % 2] if row < 8 else None)
            for row in range(N)
        ]
        connection.executemany('INSERT INTO "all lots" VALUES (?, ?, ?, ?)', rows)
        connection.execute('CREATE VIEW few AS SELECT * FROM "all lots" WHERE id < 10')
        connection.execute("CREATE TABLE empty (a, b)")
        connection.commit()
    return tmp_path / "lots.db"


def test_a_table_of_a_database_is_labelled(database):
    before = database.read_bytes()
    result = otprop.label(f"{database}::all lots", "kind")
    assert result.table["kind_label"].tolist() == ["a", "b"] * (N // 2)
    assert result.table["day"].dtype.kind == "M"
    assert database.read_bytes() == before
    assert open_table(f"{database}::few").n_rows == 10


def test_the_command_writes_a_csv_beside_the_database_or_what_is_named(database):
    os.chmod(database, 0o600)
    assert main(["label", "lots.db::all lots", "--target", "kind", "--save", "kind.model", "--quiet"]) == 0
    out = database.parent / "lots.all_lots.labelled.csv"
    assert pd.read_csv(out)["kind_label"].tolist() == ["a", "b"] * (N // 2)
    assert out.stat().st_mode & 0o77 == 0  # as the database
    assert main(["predict", "kind.model", "lots.db::few", "-o", "few.parquet", "--quiet"]) == 0
    assert pd.read_parquet("few.parquet")["kind_label"].tolist() == ["a", "b"] * 5
    assert sorted(path.name for path in database.parent.iterdir()) == [
        *("few.parquet", "kind.model", "lots.all_lots.labelled.csv", "lots.db")
    ]


def test_rows_of_a_database_are_written_as_csv_where_no_name_says_otherwise(database, capsysbinary):
    command = ["label", "lots.db::all lots", "--target", "kind", "-o"]
    assert main([*command, "-", "--quiet"]) == 0
    assert pd.read_csv(BytesIO(capsysbinary.readouterr().out))["kind_label"].tolist() == ["a", "b"] * (N // 2)
    assert main([*command, "labelled"]) == 0
    assert b"labelled is written as csv: its name does not say what it is" in capsysbinary.readouterr().err
    assert len(pd.read_csv("labelled")) == N


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("lots.db::lots", "has no table 'lots'; there are 'all lots', 'few', 'empty'"),
        ("lots.db::", "has no table ''"),
        ("lots.db::empty", "has column names but no rows"),
        ("gone.db::lots", "there is no file gone.db"),
        ("text.db::lots", "text.db is not an SQLite database"),
        ("damaged.db::lots", "damaged.db::lots cannot be read"),
        ("lots.db", "it is an SQLite database; name a table of it: FILE::TABLE"),
    ],
)
def test_what_is_not_there_is_named(database, source, reason):
    (database.parent / "text.db").write_text("a,b\n")
    (database.parent / "damaged.db").write_bytes(database.read_bytes()[:16] + b"\1" * 5000)
    with pytest.raises(TableError, match=reason):
        open_table(source)


def test_a_database_is_never_written(database, capsys):
    assert main(["label", "lots.db::all lots", "--target", "kind", "-o", "lots.db", "--force"]) != 0
    assert "a database" in capsys.readouterr().err
    with pytest.raises(TableError, match="a database"):
        otprop.label("lots.db::all lots", "kind").write("other.db")


def test_a_database_with_a_write_ahead_log_is_read_and_nothing_is_left_beside_it(database):
    with closing(sqlite3.connect(database)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
    before = sorted(database.parent.iterdir())
    assert open_table(f"{database}::all lots").n_rows == N
    assert sorted(database.parent.iterdir()) == before
    with closing(sqlite3.connect(database)) as writer:  # what is in the log only is read, too
        writer.execute('INSERT INTO "all lots" VALUES (100, 1, NULL, NULL)')
        writer.commit()
        assert open_table(f"{database}::all lots").n_rows == N + 1


def test_a_file_with_two_colons_in_its_name_is_a_file(tmp_path):
    (tmp_path / "a::b.csv").write_text("x,y\n1,2\n")
    assert open_table(tmp_path / "a::b.csv").names == ["x", "y"]


NUMBERS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"
HOSTILE = {
    "rows without end": (f"CREATE VIEW odd AS {NUMBERS} SELECT x FROM n", "has values of more than 1 MB"),
    "work without end": (f"CREATE VIEW odd AS {NUMBERS} SELECT x FROM n WHERE x < 0", "takes too long to compute"),
    "a large value": ("CREATE VIEW odd AS SELECT zeroblob(900000000) AS x", "too big"),
    "large values": (
        "CREATE VIEW odd AS SELECT zeroblob(900000) AS x, id FROM 'all lots'",
        "has values of more than 1 MB, far more than its file",
    ),
    "a generated column": ("CREATE TABLE odd (a, b AS (zeroblob(900000000)))", "too big"),
}


@pytest.mark.parametrize(("sql", "reason"), HOSTILE.values(), ids=HOSTILE)
def test_a_small_database_does_not_grow_without_a_limit(database, monkeypatch, sql, reason):
    monkeypatch.setattr(database_module, "_MIN_BYTES", 1_000_000)
    monkeypatch.setattr(database_module, "_MAX_STEPS", 20)
    with closing(sqlite3.connect("lots.db")) as connection:
        connection.execute(sql)
        if "TABLE" in sql:
            connection.execute("INSERT INTO odd (a) VALUES (1)")
        connection.commit()
    with pytest.raises(TableError, match=reason):
        open_table("lots.db::odd")


def test_a_name_that_no_file_can_have_is_refused(database):
    with pytest.raises(TableError, match="there is no file a"):
        open_table("a" * 5000 + "::lots")
    with pytest.raises(TableError, match="a"):
        open_table("a" * 5000)
    for parameter in ("text_model", "image_model"):
        with pytest.raises(otprop.OtpropError, match="there is no such file"):
            otprop.label("lots.db::all lots", "kind", **{parameter: "a" * 5000})
