"""What commands tell a person, and a script."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from otprop.cli.console import Messages
from otprop.loop.labels_needed import LabelsNeeded
from tests.cli.commands import run

pytest.importorskip("pandas")


def test_what_a_person_is_told_a_script_is_told_too(lots: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("suggest", lots, "-n", "2", "--json", "--goal", "0.1", target="ripeness") == 0
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert found["notes"][-1] == f"{lots} has no column 'ripeness' yet"
    assert "labels_needed" not in found
    assert "note: without effect: --goal; there are no two classes yet" in printed.err
    assert run("suggest", lots, "-n", "2", "--json", "--goal", "0.1") == 0
    needed = json.loads(capsys.readouterr().out)["labels_needed"]
    assert needed["error"] == 0.1
    assert 0 <= needed["low"] <= needed["value"] <= needed["high"] <= 108
    assert run("check", lots, "--json", "--delimiter", ",") == 0
    assert "column 'lot' has leading zeros, so it is read as text" in json.loads(capsys.readouterr().out)["notes"]
    assert run("suggest", lots, target="knd") == 2
    assert "--target knd: there is no column 'knd'; did you mean 'kind'? A new column" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("needed", "words"),
    [
        (LabelsNeeded(30, 10, 90), "About 30 more labels to an expected error of 0.05 (likely 10 to 90)."),
        (LabelsNeeded(330, 0, 330), "cannot be estimated yet (likely 0 to 330): one fit cannot show how fast"),
        (LabelsNeeded(80, 4, 200), "cannot be estimated yet (likely 4 to 200)"),
        (LabelsNeeded(0, 0, 0), "An expected error of 0.05 is reached already."),
        (LabelsNeeded(0, 0, 8), "is reached already, as far as can be said (likely 0 to 8 more labels)."),
        (LabelsNeeded(0, 0, 58), "cannot be estimated yet (likely 0 to 58)"),
        (LabelsNeeded(330, 20, 330), "takes at least 20 more labels, and perhaps all 330 rows left"),
        (LabelsNeeded(330, 80, 330), "takes at least 80 more labels, and perhaps all 330 rows left"),
    ],
)
def test_a_range_from_none_to_all_rows_is_no_estimate(
    needed: LabelsNeeded, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Messages(quiet=False).labels_needed(0.05, needed, 330)
    assert words in " ".join(capsys.readouterr().err.split())
