"""Notes on labels that were not drawn at random, and groups by name."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

import otprop
from otprop._otp import NOT_CONVERGED, OTP
from otprop.cli import main
from otprop.cli._command import hint_text
from otprop.labelling.fit_notes import _consecutive_rows, _expected_values, note_of_warning
from otprop.labelling.outcome import seems_sorted
from otprop.table.target import Target

FAST = {"evidence": ["forest"]}


def labelled(frame, rows):
    return frame.assign(kind=frame["kind"].where(rows))


def test_random_labels_give_no_note(visits):
    rows = np.isin(np.arange(400), np.random.default_rng(1).choice(400, 80, replace=False))
    result = otprop.label(labelled(visits, rows), "kind", settings=FAST)
    assert not any("differ" in note or "novelty" in note for note in result.notes)
    assert not result.outcome.shifted


def test_whole_sites_give_a_note_that_names_the_column(visits):
    frame = labelled(visits, visits["site"].isin(["site 2", "site 5"]))
    result = otprop.label(frame, "kind", settings=FAST)
    assert any("the labelled rows seem to differ from the others, mostly in 'site'" in note for note in result.notes)
    assert any("the labels cover 2 of 10 values of 'site'" in note for note in result.notes)
    assert any("add groups='site'" in note for note in result.notes)
    low, high = result.error_range
    assert high - low > 0.2
    assert "a rough estimate" in repr(result)


def test_two_groups_give_a_note(visits):
    frame = labelled(visits, visits["site"].isin(["site 2", "site 5"]))
    notes = otprop.label(frame, "kind", groups="site", settings=FAST).notes
    assert any("all labels are in two groups" in note for note in notes)


def test_first_rows_are_called_so(visits):
    frame = visits.drop(columns="site").sort_values("age", ignore_index=True)
    notes = otprop.label(labelled(frame, np.arange(400) < 60), "kind", settings=FAST).notes
    assert any("(they are the first rows)" in note for note in notes)


def test_new_classes_give_a_note_and_a_column():
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 3, 600)
    frame = pd.DataFrame(rng.normal(size=(600, 3)) + 6 * np.eye(3)[kind], columns=list("abc"))
    known = np.flatnonzero(kind < 2)
    rows = np.isin(np.arange(600), rng.choice(known, 60, replace=False))
    frame["kind"] = pd.Series(np.array(["x", "y", "z"])[kind]).where(rows)
    result = otprop.label(frame, "kind", settings=FAST)
    assert any("look like no labelled class" in note for note in result.notes)
    novelty = result.table["kind_novelty"]
    assert novelty[(kind == 2)].mean() > novelty[(kind < 2) & ~rows].mean() + 0.3
    assert (novelty[rows] == 0).all()


def test_other_class_shares_give_a_note_that_names_the_class():
    rng = np.random.default_rng(0)
    kind = (rng.random(1500) < 0.1).astype(int)
    frame = pd.DataFrame(rng.normal(size=(1500, 3)) + 5 * kind[:, None], columns=list("abc"))
    rare, common = (rng.permutation(np.flatnonzero(kind == code))[:100] for code in (1, 0))
    rows = np.isin(np.arange(1500), np.concatenate([rare, common]))
    frame["kind"] = pd.Series(np.array(["common", "rare"])[kind]).where(rows)
    result = otprop.label(frame, "kind", settings=FAST)
    assert any("as if the classes had other shares" in note and "class_prior" in note for note in result.notes)


def test_the_command_takes_groups_and_says_that_the_error_is_rough(visits, tmp_path, capsys):
    path = tmp_path / "visits.csv"
    labelled(visits, visits["site"].isin(["site 2", "site 5", "site 7"])).to_csv(path, index=False)
    assert main(["label", str(path), "--target", "kind", "-o", str(tmp_path / "out.csv")]) == 0
    printed = capsys.readouterr()
    text = " ".join((printed.out + printed.err).split())
    assert "a rough estimate: the labelled rows seem to differ from the others" in text
    assert "--groups site" in text
    done = tmp_path / "done.csv"
    assert main(["label", str(path), "--target", "kind", "--groups", "site", "-o", str(done), "--json", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out)["expected_error_range"][1] > 0
    assert "kind_novelty" in pd.read_csv(done).columns


def test_expected_values_are_those_of_random_draws():
    counts = np.array([50, 30, 15, 4, 1])
    values = np.repeat(np.arange(5), counts)
    rng = np.random.default_rng(0)
    drawn = np.mean([len(np.unique(rng.choice(values, 10, replace=False))) for _ in range(4000)])
    assert _expected_values(counts, 10) == pytest.approx(drawn, abs=0.03)


def test_consecutive_rows_are_found_but_for_a_few():
    assert _consecutive_rows(np.arange(40), 400) == "they are the first rows"
    assert _consecutive_rows(np.append(np.arange(100, 140), 390), 400) == "they are consecutive, from row 101 on"
    assert _consecutive_rows(np.arange(0, 400, 4), 400) is None
    assert _consecutive_rows(np.arange(399), 400) is None


def test_wrong_labels_are_noted_and_clear_ones_are_not():
    rng = np.random.default_rng(3)
    kind = rng.integers(0, 2, 500)
    given = np.where(np.arange(500) < 200, kind, -1)
    given[:50] = 1 - given[:50]  # a quarter of the labels
    numbers = {"size": rng.normal(size=500) + 6 * kind, "weight": rng.normal(size=500)}
    order = rng.permutation(500)
    for labels, expected in ((given, True), (np.where(given >= 0, kind, -1), False)):
        names = np.array(["ill", "well", None], dtype=object)[labels]
        frame = pd.DataFrame(numbers | {"kind": names}).iloc[order].reset_index(drop=True)
        result = otprop.label(frame, "kind", settings=FAST)
        assert any("of the given labels seem to be wrong" in note for note in result.notes) == expected


@pytest.mark.parametrize("first", [True, False])
def test_rows_sorted_by_the_target_may_be_of_classes_without_a_label(visits, first, tmp_path, capsys):
    frame = visits.sort_values("kind", kind="stable").reset_index(drop=True)
    n_ill = int((frame["kind"] == "ill").sum())
    start = n_ill - 40  # the labels are 40 "ill", then 5 "well"
    frame = frame[start:] if first else frame[: n_ill + 5]
    rows = np.arange(len(frame)) < 45 if first else np.arange(len(frame)) >= len(frame) - 45
    frame = labelled(frame.reset_index(drop=True), rows)
    result = otprop.label(frame, "kind", settings=FAST)
    assert any("the rows seem to be sorted by 'kind'" in note for note in result.notes)
    assert result.error_range[1] == 1.0 == result.coverage()["high"].max()
    assert "a rough estimate" in repr(result)
    frame.to_csv(tmp_path / "visits.csv", index=False)
    assert main(["label", str(tmp_path / "visits.csv"), "--target", "kind"]) == 0
    err = " ".join(capsys.readouterr().err.split())
    assert "Expected error of the new labels, if every class has a label: " in err
    assert "to 100.0%), a rough estimate: the rows seem to be sorted by 'kind'." in err
    assert "--abstain-below" not in err


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        ("aaaaabbbbbbb...", True),
        (".....bbbbbaaaaa", True),
        ("aaaaabb.bbbbbbbbbbbbbbb.....", True),  # a row was skipped
        ("aaaaabbbbabb...", False),
        ("ab.............", False),
        ("abc............", False),
        ("aaaaaaaaab.....", False),  # one of ten is the last by chance
        (".aaaaabbbbbbb..", False),
        ("aaaaabbbbbbb", False),
    ],
)
def test_labels_with_one_run_per_class_at_an_end_of_the_table_seem_sorted(labels, found):
    codes = np.array([".abc".index(one) - 1 for one in labels])
    target = Target(
        name="kind", codes=codes, classes=["a", "b", "c"], values=["a", "b", "c"], given=codes >= 0, notes=[]
    )
    assert seems_sorted(target) is found


def test_first_rows_in_random_order_do_not_seem_sorted(visits):
    result = otprop.label(labelled(visits, np.arange(400) < 60), "kind", settings=FAST)
    assert not any("sorted" in note for note in result.notes)
    assert not result.outcome.seems_sorted


def test_the_column_whose_values_are_labelled_in_all_their_rows_is_proposed_for_groups(visits):
    first = np.isin(visits["site"], ["site 2", "site 5"])
    rows = np.arange(400)
    price = np.where(first | (rows % 4 == 0), 1, 1 + rows % 40)  # one value is covered, in half of its rows
    frame = labelled(visits, first).assign(price=[f"price {one}" for one in price])
    notes = otprop.label(frame, "kind", settings=FAST).notes
    assert any("add groups='site'" in note for note in notes)


def test_a_diffusion_that_does_not_converge_names_the_setting_of_python_and_of_the_command():
    warning = ConvergenceWarning(f"{NOT_CONVERGED} Set a lower `diffusion`, such as 0.8.")
    note = note_of_warning(warning)
    assert note.startswith("the diffusion of the labels did not converge")
    assert note.endswith("A lower value may help: settings={'diffusion': 0.8}")
    assert hint_text(note).endswith("A lower value may help: --set diffusion=0.8")
    assert note_of_warning("something else.") == "something else."


@pytest.fixture
def rare():
    """Two classes that the columns hardly tell apart, one of them rare: nearly all rows get the other."""
    rng = np.random.default_rng(0)
    kind = (rng.random(600) < 0.15).astype(int)
    frame = pd.DataFrame(rng.normal(size=(600, 3)) + 0.4 * kind[:, None], columns=list("abc"))
    frame["kind"] = pd.Series(np.array(["common", "rare"])[kind]).where(np.arange(600) % 6 == 0)
    return frame


def test_naming_the_default_objective_changes_no_note(rare):
    usual, named = (otprop.label(rare, "kind", settings=FAST, **more).notes for more in ({}, {"objective": "accuracy"}))
    assert any("giving every row 'common' would" in note or "were labelled 'common'" in note for note in usual)
    assert any("objective='balanced' finds more of them" in note for note in usual)
    assert named == usual


def test_abstaining_by_a_setting_gives_the_notes_of_the_argument(rare):
    by_argument = otprop.label(rare, "kind", settings=FAST, abstain_below=0.9999).notes
    by_setting = otprop.label(rare, "kind", settings={**FAST, "abstain_below": 0.9999}).notes
    assert by_setting == by_argument
    assert any(note.startswith("no row reaches a confidence of 0.9999") for note in by_setting)


def test_groups_that_the_method_does_not_use_get_one_note(visits):
    frame = labelled(visits, visits["site"].isin(["site 2", "site 5"]))
    notes = otprop.label(frame, "kind", method="otp-paper", groups="site").notes
    assert [note for note in notes if "group" in note] == [
        "without effect: groups; otp-paper does not estimate its error"
    ]


def test_a_class_whose_errors_cost_nothing_may_be_missed(rare):
    free = otprop.label(rare, "kind", settings=FAST, objective={("rare", "common"): 0}).notes
    assert not any("'rare'" in note for note in free)
    cheap = otprop.label(rare, "kind", settings=FAST, objective={("rare", "common"): 0.5}).notes
    assert any("'rare'" in note and note.endswith("label more rows of this class") for note in cheap)


def test_a_confidence_that_is_not_calibrated_is_noted_and_not_logged(visits, caplog):
    rows = visits.index.isin([visits["kind"].eq(name).idxmax() for name in ("ill", "well")])
    notes = otprop.label(labelled(visits, rows), "kind", settings=FAST).notes
    found = [note for note in notes if "not calibrated" in note]
    assert found == [
        "the confidence is not calibrated, as no class has two labels to hold one out. Label some rows drawn at random"
    ]
    assert "not calibrated" not in caplog.text
    OTP(evidence=None).fit([[0.0], [1.0], [0.1]], [0, 1, -1])
    assert "not calibrated" in caplog.text  # the log of other fits is as before
    drawn = np.arange(400) % 5 == 0
    chosen = otprop.label(labelled(visits, drawn), "kind", settings=FAST, chosen=list(drawn)).notes
    assert any("not calibrated, as no label was drawn at random to hold one out" in note for note in chosen)
    some = otprop.label(labelled(visits, drawn), "kind", settings=FAST).notes
    assert not any("not calibrated" in note for note in some)


def test_votes_alone_name_the_command_that_draws_rows(visits, tmp_path, capsys):
    frame = visits.assign(model=visits["kind"], kind=None)
    notes = otprop.label(frame, "kind", votes=["model"], settings=FAST).notes
    advice = "Label 20 random rows to measure it; `otprop suggest` lists them with random_share=1"
    assert any(note.startswith("no row has a label: votes alone decide") and note.endswith(advice) for note in notes)
    path = tmp_path / "visits.csv"
    frame.to_csv(path, index=False)
    assert main(["suggest", str(path), "--target", "kind", "--votes", "model"]) == 0
    printed = " ".join(capsys.readouterr().err.split())
    assert "`otprop suggest` lists them with --random-share 1" in printed
    assert "suggest(20" not in printed


@pytest.mark.parametrize(
    ("rows_per_class", "settings", "expected"), [(8, {}, 1), (8, {"n_neighbors": 5}, 0), (20, {}, 0)]
)
def test_classes_of_few_rows_give_a_note_on_the_number_of_neighbours(rows_per_class, settings, expected):
    kind = np.arange(rows_per_class * 6) % 6
    X = np.random.default_rng(0).normal(size=(len(kind), 3)) + 5 * np.eye(6, 3)[kind] + kind[:, None]
    frame = pd.DataFrame(X, columns=list("abc")).assign(kind=np.where(np.arange(len(kind)) < 18, kind, None))
    notes = otprop.label(frame, "kind", settings=FAST | settings).notes
    found = [note for note in notes if "rows per class" in note]
    assert len(found) == expected
    if expected:
        assert found[0].endswith("fewer neighbours in the graph may be more accurate: settings={'n_neighbors': 5}")
