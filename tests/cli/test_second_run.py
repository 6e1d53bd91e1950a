"""Labelling what was labelled before: the columns of the first run are answers, not features."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from otprop.cli import main
from tests.cli.conftest import read_rows

pytest.importorskip("pyarrow")

FAST = ["--set", "evidence=None"]  # the geometry alone
ADDED = ["label", "certainty", "confidence", "novelty", "round", "source", "p_a", "p_b", "p_c"]


def _label(path: Path, out: Path, *more: str) -> int:
    return main(["label", str(path), "--target", "kind", *FAST, "-o", str(out), *more])


def _columns(path: Path, capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    """What would be done to each column."""
    capsys.readouterr()
    out = path.with_name("never.csv")
    assert _label(path, out, "--dry-run", "--json", "--quiet", "--prefix", "new_", *more) == 0
    return {use["name"]: use for use in json.loads(capsys.readouterr().out)["columns"]}


@pytest.mark.parametrize("prefix", ["kind_", "guess ", ""])
def test_the_columns_of_an_earlier_run_are_skipped_and_named(
    lots: Path, prefix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    once, twice, plain = (lots.with_name(name) for name in ("once.csv", "twice.csv", "plain.csv"))
    assert _label(lots, once, "--probabilities", "--prefix", prefix) == 0
    assert _label(once, twice, "--prefix", "new_") == 0
    assert f"skipped: {prefix}label, {prefix}certainty" in capsys.readouterr().err
    assert _label(lots, plain, "--prefix", "new_") == 0
    assert [row["new_certainty"] for row in read_rows(twice)] == [row["new_certainty"] for row in read_rows(plain)]
    uses = _columns(once, capsys)
    made = [name for name, use in uses.items() if use["why"] == "made by an earlier run of otprop label"]
    assert made == [prefix + part for part in ADDED]


def test_what_is_left_of_an_earlier_run_is_skipped_as_well(lots: Path, capsys: pytest.CaptureFixture[str]) -> None:
    once = lots.with_name("once.csv")
    assert _label(lots, once) == 0
    rows = read_rows(once)
    once.write_text(
        "weight,kind,kind_label\n" + "".join(f"{r['weight']},{r['kind']},{r['kind_label']}\n" for r in rows)
    )
    assert _columns(once, capsys)["kind_label"]["role"] == "skipped"


def test_columns_that_only_have_such_names_are_used(lots: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = lots.read_text().splitlines()
    more = ["kind_source,kind_round,other_source,kind_p_value"]
    more += [f"{('web', 'shop')[n % 2]},{n % 3},{('given', 'bought')[n % 2]},0.{n % 7}" for n in range(120)]
    lots.write_text("".join(f"{line},{cells}\n" for line, cells in zip(lines, more, strict=True)))
    uses = _columns(lots, capsys)
    assert all(uses[name]["role"] != "skipped" for name in more[0].split(","))


def test_they_are_used_where_the_user_names_them(lots: Path, capsys: pytest.CaptureFixture[str]) -> None:
    once = lots.with_name("once.csv")
    assert _label(lots, once) == 0
    uses = _columns(once, capsys, "--features", "weight", "kind_round")
    assert uses["kind_round"]["role"] == "number"
    assert uses["kind_label"]["role"] == "skipped"


def test_a_second_run_is_told_which_prefix_is_free(lots: Path, capsys: pytest.CaptureFixture[str]) -> None:
    once, twice, thrice = (lots.with_name(name) for name in ("once.csv", "twice.csv", "thrice.csv"))
    assert _label(lots, once) == 0
    assert _label(once, twice) == 2
    assert "--prefix kind_2_" in capsys.readouterr().err
    assert _label(once, twice, "--prefix", "kind_2_") == 0
    assert _label(twice, thrice, "--prefix", "kind_2_") == 2
    assert "--prefix kind_3_" in capsys.readouterr().err


def test_predict_refuses_columns_that_are_there_before_the_work(lots: Path, capsys: pytest.CaptureFixture[str]) -> None:
    once, model = lots.with_name("once.csv"), lots.with_name("kinds.model")
    assert _label(lots, once, "--save", str(model)) == 0
    assert main(["predict", str(model), str(once)]) == 2
    assert "--prefix kind_2_" in capsys.readouterr().err
    assert main(["predict", str(model), str(once), "--prefix", "kind_2_"]) == 0
