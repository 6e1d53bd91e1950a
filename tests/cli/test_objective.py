"""`otprop label --objective`, `--cost`, and the classes that are hardly found."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from otprop.cli import main


@pytest.fixture(scope="module")
def customers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """400 customers, one in eight leaves; 50 of them are labelled."""
    rng = np.random.default_rng(3)
    leaves = rng.random(400) < 0.125
    values = rng.normal(size=(400, 2)) + 1.1 * leaves[:, None]
    lines = ["calls,months,leaves"]
    for number, (row, leaving) in enumerate(zip(values, leaves, strict=True)):
        lines.append(f"{row[0]:.3f},{row[1]:.3f},{('yes' if leaving else 'no') if number < 50 else ''}")
    path = tmp_path_factory.mktemp("customers") / "customers.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def label(path: Path, *more: str) -> int:
    return main(["label", str(path), "--target", "leaves", "--force", "--set", "evidence=None", *more])


def counts(path: Path, capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, int]:
    assert label(path, "--json", "--quiet", *more) == 0
    found = json.loads(capsys.readouterr().out)["classes"]
    return {name: one["labelled"] for name, one in found.items()}


def test_label_names_a_class_that_is_hardly_found(customers: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert label(customers) == 0
    err = capsys.readouterr().err
    assert "rows are expected to be 'yes'" in err
    assert "labelled with it: --objective balanced finds more of them" in err
    assert "precision" in err
    assert "recall" in err


def test_objective_and_cost_find_more_of_the_rare_class(customers: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = counts(customers, capsys)
    assert counts(customers, capsys, "--objective", "accuracy") == plain
    assert counts(customers, capsys, "--objective", "balanced")["yes"] > plain["yes"]
    assert counts(customers, capsys, "--cost", "yes:no=20")["yes"] > plain["yes"]
    assert counts(customers, capsys, "--cost", "no:yes=20")["yes"] <= plain["yes"]


def test_label_says_that_costs_and_abstaining_work_against_each_other(
    customers: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    costs = ["--cost", "yes:no=20"]
    assert counts(customers, capsys, *costs, "--abstain-below", "0.6")["yes"] < counts(customers, capsys, *costs)["yes"]
    note = "and --abstain-below work against each other"
    for words in (costs, ["--objective", "balanced"]):
        assert label(customers, *words, "--abstain-below", "0.6", "--json") == 0
        out, err = capsys.readouterr()
        asked = words[0] if words == costs else " ".join(words)
        assert f"note: {asked} {note}" in err
        assert any(one.startswith(f"{asked} {note}") for one in json.loads(out)["notes"])
    for words in (costs, ["--abstain-below", "0.6"], ["--objective", "accuracy", "--abstain-below", "0.6"]):
        assert label(customers, *words) == 0
        assert note not in capsys.readouterr().err


def test_label_says_what_the_objective_expects(customers: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert label(customers, "--objective", "balanced") == 0
    assert "Expected macro-F1 (mean F1 of the classes): " in capsys.readouterr().err
    assert label(customers, "--cost", "yes:no=5") == 0
    assert "Expected mean cost of the new labels: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--objective", "balance"], "give costs with --cost, as in --cost yes:no=10; did you mean 'balanced'?"),
        (["--objective", "yes:no=10"], "--objective yes:no=10: write accuracy or balanced, or give costs with --cost"),
        (["--objective", "balanced", "--cost", "yes:no=2"], "use one of them"),
        (["--cost", "yes=2"], "write TRUE:LABEL=COST"),
        (["--cost", "yes:no=-2"], "with a cost from 0 to 1e+100"),
        (["--cost", "yes:no=2", "yes:no=3"], "was given a cost before"),
        (["--cost", "yes:maybe=2"], "--cost yes:maybe=2: there is no class 'maybe'; there are 'no', 'yes'."),
        (["--cost", "yes:no=1e101"], "with a cost from 0 to 1e+100"),
        (["--cost", "yes:=2"], "write TRUE:LABEL=COST"),
        (["--cost", "no:no=2"], "--cost has a cost of 2.0 for the right label of 'no'"),
        (["--set", "objective=balanced"], "--objective"),
        (["--objective", "balanced", "--method", "otp-paper"], "has no meaning with --method otp-paper"),
    ],
)
def test_label_refuses_objectives_it_cannot_use(
    words: list[str], message: str, customers: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = [] if "otp-paper" in words else ["--set", "evidence=None"]
    assert main(["label", str(customers), "--target", "leaves", "--force", *more, *words]) == 2
    assert message in capsys.readouterr().err


def test_predict_follows_the_objective_of_the_model(
    customers: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, out = tmp_path / "leaves.otprop", tmp_path / "out.csv"
    assert label(customers, "--cost", "yes:no=20", "--save", str(model), "--quiet") == 0
    labelled = customers.with_name("customers.labelled.csv").read_text().splitlines()[1:]
    assert main(["predict", str(model), str(customers), "-o", str(out), "--quiet"]) == 0
    found = out.read_text().splitlines()[1:]
    assert (
        np.mean(
            [("yes" in a.split(",")[3:]) == ("yes" in b.split(",")[3:]) for a, b in zip(labelled, found, strict=True)]
        )
        > 0.97
    )
