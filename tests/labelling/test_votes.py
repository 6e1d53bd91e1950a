"""Votes in the columns of a table."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import otprop
from otprop._validation import ParameterError
from otprop.cli import main

QUICK = {"settings": {"evidence": ["linear"]}}


def mails(n_rows=120, n_labels=30, error=0.2):
    """A table of two kinds, with the votes of a model and of a rule that speaks for a third of the rows."""
    rng = np.random.default_rng(0)
    kind = rng.choice(["invoice", "offer"], size=n_rows)
    other = np.where(kind == "offer", "invoice", "offer")
    frame = pd.DataFrame({"words": rng.normal(size=n_rows) + (kind == "offer")})
    frame["llm"] = np.where(rng.random(n_rows) < error, other, kind)
    frame["rule"] = np.where(np.arange(n_rows) % 3 == 0, kind, None)
    frame["kind"] = np.where(np.arange(n_rows) < n_labels, kind, None)
    return frame, kind


def test_columns_of_votes_are_evidence_and_not_features():
    frame, kind = mails()
    result = otprop.label(frame, "kind", votes=["llm", "rule"], **QUICK)
    left = frame["kind"].isna().to_numpy()
    assert (result.table["kind_label"] == kind)[left].mean() > 0.8
    assert "votes" in [name for name, _, _ in result.outcome.sources]
    assert {use.name for use in result.job.columns if not use.left_out} == {"words"}
    llm, rule = result.outcome.voters
    assert llm.accuracy == pytest.approx((frame["llm"] == kind)[~left].mean())
    assert (rule.accuracy, rule.n_votes) == (1.0, 40)


def test_votes_may_be_functions_of_the_frame_or_values():
    frame, _ = mails()
    by_column = otprop.label(frame, "kind", votes=["llm"], ignore=["rule"], **QUICK)
    rules = {"llm": lambda frame: frame["llm"].str.upper() + " "}  # case and blanks do not matter
    by_rule = otprop.label(frame, "kind", votes=rules, ignore=["rule"], **QUICK)
    by_value = otprop.label(frame, "kind", votes={"llm": frame["llm"].tolist()}, ignore=["rule"], **QUICK)
    expected = by_column.table["kind_label"].tolist()
    assert by_rule.table["kind_label"].tolist() == by_value.table["kind_label"].tolist() == expected


def test_votes_without_labels_label_the_table_and_say_that_nothing_checks_it():
    frame, kind = mails(error=0.1)
    result = otprop.label(frame.assign(kind=None), "kind", votes=["llm", "rule"], **QUICK)
    assert (result.table["kind_label"] == kind).mean() > 0.8
    assert result.outcome.error_range == (0.0, 1.0)
    assert any("the error cannot be checked" in note for note in result.job.notes)


@pytest.mark.parametrize(
    ("votes", "message"),
    [
        (["lml"], "there is no column 'lml'; did you mean 'llm'"),
        (["kind"], "is the target itself"),
        (["llm", "llm"], "is named twice"),
        ("llm", r"must be a list; write \['llm'\]"),
        (5, "votes must be a list of columns, or a dict of voters and their labels; got int"),
        ({"none": lambda frame: [None] * len(frame)}, "votes of 'none' are empty"),
        ({"odd": ["letter"] * 120}, "votes of 'odd' hold 'letter' in 120 rows, which no label of 'kind' is"),
        ({"short": ["offer"]}, "votes of 'short' are 1, .* has 120 rows"),
        ({"one": lambda frame: "offer"}, "votes of 'one' must be one label per row; got str"),
    ],
)
def test_label_refuses_votes_it_cannot_use(votes, message):
    frame, _ = mails()
    with pytest.raises(ParameterError, match=message) as caught:
        otprop.label(frame, "kind", votes=votes)
    assert caught.value.parameter == "votes"


def test_label_refuses_votes_for_a_method_without_evidence():
    frame, _ = mails()
    with pytest.raises(ParameterError, match="need the method otp; otp-paper does not take them"):
        otprop.label(frame, "kind", votes=["llm"], method="otp-paper")


def test_one_labelled_class_is_refused_with_votes_too():
    frame, _ = mails()
    frame.loc[frame["kind"] == "offer", "kind"] = None
    with pytest.raises(ValueError, match="has one class only"):
        otprop.label(frame, "kind", votes=["llm"])


def test_command_prints_a_line_per_voter(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    frame, _ = mails()
    frame.to_csv(tmp_path / "mails.csv", index=False)
    words = ["label", str(tmp_path / "mails.csv"), "--target", "kind", "--votes", "llm", "rule", "--json"]
    assert main([*words, "--set", "evidence=['linear']"]) == 0
    printed = capsys.readouterr()
    assert "llm agrees with your labels in " in printed.err
    assert "rule agrees with your labels in 100% (" in printed.err
    voters = json.loads(printed.out)["voters"]
    assert [voter["name"] for voter in voters] == ["llm", "rule"]
    assert set(voters[0]["classes"]) == {"invoice", "offer"}


def test_command_names_the_flag_of_wrong_votes(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    mails()[0].to_csv(tmp_path / "mails.csv", index=False)
    assert main(["label", str(tmp_path / "mails.csv"), "--target", "kind", "--votes", "anna"]) == 2
    assert "--votes anna: there is no column 'anna'" in capsys.readouterr().err
