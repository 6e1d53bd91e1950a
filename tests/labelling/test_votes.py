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
from otprop.labelling import votes
from otprop.labelling.votes import vote_cells
from otprop.table.errors import RequestError
from otprop.table.frame import table_of_frame
from otprop.table.target import ClassNames, read_target

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
    assert {use.name for use in result.job.columns if not use.skipped} == {"words"}
    llm, rule = result.outcome.voters
    assert llm.accuracy == pytest.approx((frame["llm"] == kind)[~left].mean())
    assert (rule.accuracy, rule.n_votes) == (1.0, 40)
    assert set(llm.by_class) == {"invoice", "offer"}
    offers = ~left & (kind == "offer")
    assert llm.by_class["offer"].accuracy == pytest.approx((frame["llm"] == kind)[offers].mean())


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
        (["kind"], "names the target"),
        (["llm", "llm"], "is named twice"),
        ("llm", r"must be a list; write \['llm'\]"),
        (5, "votes must be a list of columns, or a dict of voters and their labels; got int"),
        ([3], "votes must be names of columns; got int among them"),
        ([["llm"]], "votes must be names of columns; got list among them"),
        (pd.DataFrame({"llm": ["offer"] * 120}), "votes must be a list of columns, or a dict .*; got DataFrame"),
        ({1: ["offer"] * 120, "1": ["offer"] * 120}, "is named twice"),
        ({"odd": pd.DataFrame(index=range(120))}, "votes of 'odd' must have one column of probabilities"),
        ({"odd": set(range(120))}, "votes of 'odd' must be one label per row; got set"),
        ({"none": lambda frame: [None] * len(frame)}, "votes of 'none' are empty"),
        ({"odd": ["letter"] * 120}, "votes of 'odd' hold 'letter' in 120 rows, which is not a class of 'kind'"),
        ({"short": ["offer"]}, "votes of 'short' are 1, .* has 120 rows"),
        ({"one": lambda frame: "offer"}, "votes of 'one' must be one label per row; got str"),
        (
            {"sum": lambda frame: frame["total"]},
            "votes of 'sum': the function raised KeyError: 'total'",
        ),
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


def undecided(folder: Path) -> list[str]:
    """The command for mails on which the voter is not sure of every third."""
    frame = mails()[0]
    frame.loc[::3, "llm"] = "not sure"
    frame["sender"] = np.arange(len(frame)) % 11
    frame.to_csv(folder / "mails.csv", index=False)
    return ["label", str(folder / "mails.csv"), "--target", "kind", "--votes", "llm", "--dry-run"]


def test_votes_of_an_unknown_class_can_be_named_as_no_votes(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(undecided(tmp_path)) == 2
    assert "make these votes empty, or, if they mean no vote, add --unlabeled 'not sure'." in capsys.readouterr().err
    with pytest.raises(ParameterError, match=r"which are not classes of 'kind'.* if they mean no vote, add unlabeled"):
        otprop.label(mails()[0], "kind", votes={"odd": ["x", "y"] * 60})


def test_a_marker_of_the_votes_has_an_effect(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main([*undecided(tmp_path), "--unlabeled", "not sure", "--unlabeled", "zzz"]) == 0
    err = capsys.readouterr().err
    assert "without effect: --unlabeled zzz" in err
    assert "--unlabeled 'not sure'" not in err


def test_columns_of_votes_and_groups_are_said_to_be_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main([*undecided(tmp_path), "--unlabeled", "not sure", "--groups", "sender", "--ignore", "rule"]) == 0
    err = capsys.readouterr().err
    assert "llm (used as votes)" in err
    assert "sender (used as groups)" in err
    assert "rule (ignored on request)" in err


def test_command_names_the_flag_of_wrong_votes(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    mails()[0].to_csv(tmp_path / "mails.csv", index=False)
    assert main(["label", str(tmp_path / "mails.csv"), "--target", "kind", "--votes", "anna"]) == 2
    assert "--votes anna: there is no column 'anna'" in capsys.readouterr().err


def with_probabilities(frame, kind):
    """The frame with the columns of a voter that gives probabilities, silent on every ninth row."""
    sure = np.where(kind == "offer", 0.8, 0.2) + np.random.default_rng(1).normal(0, 0.2, len(kind))
    sure = np.where(np.arange(len(kind)) % 9 == 0, np.nan, sure.clip(0.02, 0.98))
    return frame.assign(llm_p_offer=sure, llm_p_Invoice=1.0 - sure)


def test_columns_of_a_common_beginning_are_one_voter_with_probabilities():
    frame, kind = mails()
    frame = with_probabilities(frame, kind)
    result = otprop.label(frame, "kind", votes=["llm_p_", "rule"], ignore=["llm"], **QUICK)
    assert {use.name for use in result.job.columns if not use.skipped} == {"words"}
    voter = next(voter for voter in result.outcome.voters if voter.name == "llm_p")
    assert voter.n_votes == frame["llm_p_offer"].notna().sum()
    table = frame[["llm_p_offer", "llm_p_Invoice"]].set_axis(["offer", "invoice"], axis=1)
    by_value = otprop.label(frame[["words", "kind"]], "kind", votes={"llm": table, "rule": frame["rule"]}, **QUICK)
    assert by_value.table["kind_label"].tolist() == result.table["kind_label"].tolist()
    alone = otprop.label(frame.assign(kind=None), "kind", votes=["llm_p_"], ignore=["llm", "rule"], **QUICK)
    assert (alone.table["kind_label"].str.lower() == kind).mean() > 0.8  # named as the columns are


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"llm_p_letter": 0.1}, "of 'llm_p' have a probability for 'letter', which is not a class of 'kind'"),
        ({"llm_p_INVOICE": 0.1}, "of 'llm_p' have two columns for one class"),
        ({"llm_p_offer": "likely"}, "of 'llm_p' for 'offer' have 'likely' in row 1, which is not a probability"),
        ({"llm_p_offer": 3.0}, "of 'llm_p' are not probabilities in 120 rows"),
        ({"llm_p_offer": None, "llm_p_Invoice": None}, "of 'llm_p' are empty"),
    ],
)
def test_label_refuses_probabilities_it_cannot_use(change, message):
    frame, kind = mails()
    with pytest.raises(ParameterError, match=message):
        otprop.label(with_probabilities(frame, kind).assign(**change), "kind", votes=["llm_p_"])


def long_table(frame):
    """The votes of the columns llm and rule, with a line for each row and annotator."""
    lines = [(row + 1, who, frame[who][row]) for row in range(len(frame)) for who in ("llm", "rule")]
    return pd.DataFrame(lines, columns=["row", "annotator", "label"])


def test_a_long_file_gives_the_same_labels_as_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    frame, _ = mails()
    expected = otprop.label(frame, "kind", votes=["llm", "rule"], **QUICK)
    features = frame[["words", "kind"]]
    by_frame = otprop.label(features, "kind", votes_file=long_table(frame), **QUICK)
    assert by_frame.table["kind_label"].tolist() == expected.table["kind_label"].tolist()
    assert [voter.accuracy for voter in by_frame.outcome.voters] == [one.accuracy for one in expected.outcome.voters]
    features = features.assign(mail=[f"m{row}" for row in range(len(frame))])
    named = long_table(frame).assign(mail=lambda long: [f"m{row - 1}" for row in long["row"]]).drop(columns="row")
    named.sample(frac=1.0, random_state=0).to_csv(tmp_path / "votes.csv", index=False)
    features.to_csv(tmp_path / "mails.csv", index=False)
    words = ["label", str(tmp_path / "mails.csv"), "--target", "kind", "--votes-file", str(tmp_path / "votes.csv")]
    assert main([*words, "--ignore", "mail", "--set", "evidence=['linear']"]) == 0
    assert "rule agrees with your labels in 100% (" in capsys.readouterr().err
    written = pd.read_csv(tmp_path / "mails.labelled.csv")
    assert written["kind_label"].tolist() == expected.table["kind_label"].tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda long: long.rename(columns={"annotator": "who"}), "has no column of the annotator: it is called one of"),
        (lambda long: long.rename(columns={"label": "answer"}), "has no column of the label"),
        (lambda long: long.drop(columns="row"), "does not say which row .* it shares no column with it"),
        (lambda long: long.assign(row=0), "votes_file names the row 0 .* has 120 rows, counted from 1"),
        (lambda long: long.assign(row=1), "has two labels of 'llm' for row 1"),
        (lambda long: long.assign(label="letter"), "hold 'letter' in 120 rows, which is not a class of 'kind'"),
        (lambda long: long.assign(label=None), "votes of 'llm' are empty"),
        (lambda long: long.assign(annotator=None), "has no annotator in its row 1"),
        (lambda long: long.drop(columns="row").assign(words=0.0), "votes on .* which 'words' of .* does not have"),
        (lambda long: "", "votes_file is empty; name a file"),
        (lambda long: 7, "must be a file or a DataFrame; got int"),
    ],
)
def test_label_refuses_a_long_file_it_cannot_use(change, message):
    frame, _ = mails()
    with pytest.raises(ParameterError, match=message):
        otprop.label(frame, "kind", votes_file=change(long_table(frame)))


def test_a_long_file_with_an_annotator_per_vote_is_refused_before_it_becomes_columns(monkeypatch):
    monkeypatch.setattr(votes, "MAX_CELLS", 10_000_000)
    n_rows = 4000
    table = table_of_frame(pd.DataFrame({"words": np.arange(n_rows), "kind": ["a"] * n_rows}), "the table")
    long = pd.DataFrame({"row": np.arange(1, 2 * n_rows + 1) % n_rows + 1, "label": "a"})
    long["user"] = [f"task {number}" for number in range(len(long))]
    with pytest.raises(RequestError, match=r"has 8,000 different values of 'user' in 8,000 votes, too many for 4,000"):
        vote_cells(None, table, "kind", votes_file=long)


def test_more_voters_than_can_be_used_are_refused_at_once(monkeypatch):
    frame, _ = mails()
    monkeypatch.setattr(votes, "read_votes", None)
    long = pd.DataFrame({"row": 1, "label": "offer", "user": [f"user {number}" for number in range(1001)]})
    with pytest.raises(RequestError, match=r"1,001 different values of 'user' .* at most 1,000 voters"):
        otprop.label(frame, "kind", votes_file=long)


def test_each_class_is_read_once_however_many_different_votes_there_are(monkeypatch):
    made = []
    monkeypatch.setattr(votes, "ClassNames", lambda classes: made.append(1) or ClassNames(classes))
    target = read_target(["a", "b", None] * 20, "kind")
    cells = votes.VoteCells(labels={"llm": [f"label {number}" for number in range(60)]})
    with pytest.raises(RequestError, match=r"hold 'label 0', .* in 60 rows, which are not classes of"):
        votes.read_votes(cells, target, ())
    assert len(made) == 1


def test_an_annotator_and_a_column_of_one_name_are_refused():
    frame, _ = mails()
    with pytest.raises(ParameterError, match="has an annotator 'llm', and so have the votes"):
        otprop.label(frame, "kind", votes=["llm"], votes_file=long_table(frame))


def test_suggest_asks_for_rows_whose_votes_disagree_or_contradict_the_columns():
    rng = np.random.default_rng(3)
    kind = rng.choice(["invoice", "offer"], size=160)
    other = np.where(kind == "offer", "invoice", "offer")
    frame = pd.DataFrame({"words": rng.normal(size=160) + 2 * (kind == "offer")})
    quarrel, lone = np.arange(100, 115), np.arange(130, 140)
    frame["anna"], frame["bert"] = kind, kind
    frame.loc[quarrel, "bert"] = other[quarrel]
    frame.loc[lone, ["anna", "bert"]] = np.column_stack([other[lone], other[lone]])  # against the columns
    frame["kind"] = np.where(np.arange(160) < 40, kind, None)
    found = otprop.suggest(frame, "kind", 10, votes=["anna", "bert"], random_share=0.0)
    asked = {int(row) for row in found.index}
    assert len(asked & {*quarrel.tolist(), *lone.tolist()}) >= 5  # by chance 2


def test_check_says_which_voter_is_wrong_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    frame, kind = mails(n_labels=100, error=0.0)
    frame["llm"] = np.where((kind == "offer") & (np.arange(120) % 4 > 0), "invoice", kind)  # finds a quarter of offers
    frame.to_csv(tmp_path / "mails.csv", index=False)
    words = ["check", str(tmp_path / "mails.csv"), "--target", "kind", "--votes", "llm", "rule", "--json"]
    assert main(words) == 0
    printed = capsys.readouterr()
    assert "; of offer it finds " in printed.err
    assert "of invoice it finds" not in printed.err
    assert json.loads(printed.out)["voters"][0]["classes"]["offer"]["accuracy"] < 0.4


def test_votes_of_one_class_without_any_label_are_refused_as_votes(visits, tmp_path, capsys):
    frame = visits.assign(kind=None, model="ill")
    why = (
        "are all of one class, 'ill', and 'kind' has no label. Label rows of at least two classes; `otprop suggest` "
        "proposes rows."
    )
    with pytest.raises(RequestError, match=f"^votes {why}$"):
        otprop.label(frame, "kind", votes=["model"])
    assert len(otprop.suggest(frame, "kind", 3, votes=["model"])) == 3
    frame.to_csv(tmp_path / "visits.csv", index=False)
    assert main(["label", str(tmp_path / "visits.csv"), "--target", "kind", "--votes", "model"]) == 2
    assert capsys.readouterr().err == f"otprop label: --votes {why}\n"
