"""Votes and groups in the studio: shown, counted, and kept in the session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("pyarrow")

from otprop.files import read_table
from otprop.labelling.job import Request
from otprop.studio.propagator import Labels, Propagator
from otprop.studio.session_log import AS_IN_FILE
from otprop.studio.source import Source, prepare_source, read_row_votes, read_source, with_kept_options
from otprop.table.errors import RequestError
from otprop.table.target import read_target
from tests.studio.conftest import running

ASKED = {"votes": ["llm", "anna"], "groups": "crate"}


def write_voted(path: Path, n_rows: int = 40, n_labels: int = 8) -> Path:
    """Lots of two kinds; the model errs now and then, and names a third kind that no label has."""
    rng = np.random.default_rng(0)
    kind = np.arange(n_rows) % 2
    names = np.array(["apple", "pear"])[kind].astype(object)
    llm = names.copy()
    llm[::7] = np.array(["pear", "apple"])[kind[::7]]
    llm[-3:] = "Quince"
    anna = np.where(np.arange(n_rows) % 3 == 0, "", np.array([f" {name.upper()}" for name in names])).astype(object)
    table = pd.DataFrame(
        {
            "weight": rng.normal(100 + 40 * kind, 4).round(2),
            "size": rng.normal(5 + 3 * kind, 1).round(2),
            "crate": [f"c{row // 4}" if row != 20 else "" for row in range(n_rows)],
            "llm": llm,
            "anna": anna,
            "kind": np.where(np.arange(n_rows) < n_labels, names, ""),
        }
    )
    table.to_csv(path, index=False)
    return path


def labels_of(propagator: Propagator, classes: list[str], **said: int) -> Labels:
    n_rows = propagator.base.table.n_rows
    state = np.full(n_rows, AS_IN_FILE, dtype=np.int64)
    for row, number in said.items():
        state[int(row.removeprefix("row"))] = number
    return Labels(0, classes, state, np.zeros(n_rows, dtype=bool))


def propagator_of(path: Path, **asked: Any) -> Propagator:
    request = Request("kind", settings={"evidence": None}, **asked)
    made = Propagator(Source(str(path), request), lambda *step: None)
    made.make_vectors()
    return made


def test_votes_mean_classes_however_they_are_written_and_may_name_new_ones(tmp_path: Path) -> None:
    table = read_table(write_voted(tmp_path / "lots.csv"))
    target = read_target(table.cells("kind"), "kind")
    votes = read_row_votes(Request("kind", **ASKED), table, target)
    assert votes is not None
    assert votes.classes == ["apple", "pear", "Quince"]
    assert votes.of_row(0) == [("llm", "pear"), ("anna", None)]
    assert votes.of_row(1) == [("llm", "pear"), ("anna", "pear")]
    assert votes.of_row(39) == [("llm", "Quince"), ("anna", None)]
    frame = votes.frame(["pear", "apple"])
    assert frame is not None
    assert frame.iloc[1].tolist() == [0.0, 0.0]
    assert frame.iloc[39].isna().all()  # nobody has labelled a Quince
    assert votes.frame(["Medlar"]) is None


@pytest.mark.parametrize(
    ("votes", "sentence"),
    [(["kind"], "names the target"), (["bob"], "bob"), (["llm", "llm"], "is named twice")],
)
def test_votes_that_cannot_be_are_refused(tmp_path: Path, votes: list[str], sentence: str) -> None:
    source = Source(str(write_voted(tmp_path / "lots.csv")), Request("kind", votes=votes))
    with pytest.raises(RequestError, match=sentence):
        prepare_source(source, read_source(source))


def test_annotators_of_label_studio_are_voters_in_the_studio(tmp_path: Path) -> None:
    def annotation(who: Any, choice: str, **more: Any) -> dict[str, Any]:
        result = {"from_name": "kind", "to_name": "text", "type": "choices", "value": {"choices": [choice]}}
        return {"completed_by": who, "result": [result], **more}

    tasks = []
    for row in range(12):
        people = [annotation(1, "pear"), annotation({"email": "anna@example.org"}, "apple")]
        people += [annotation(3, ["apple", "pear"][row % 2], ground_truth=True)] if row < 4 else []
        tasks.append({"id": row, "data": {"weight": 10 * row}, "annotations": people})
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps(tasks))
    source = Source(str(path), Request("kind"))
    table = read_source(source)
    votes = read_row_votes(source.request, table, prepare_source(source, table).target)
    assert votes is not None
    assert votes.of_row(7) == [("annotator 1", "pear"), ("anna@example.org", "apple")]


def test_votes_are_evidence_and_no_features_and_voters_are_judged_by_all_their_votes(tmp_path: Path) -> None:
    propagator = propagator_of(write_voted(tmp_path / "lots.csv"), votes=ASKED["votes"])
    classes = ["apple", "pear", "Quince"]
    assert "llm" not in {use.name for use in propagator.base.features.columns if not use.skipped}
    job, _ = propagator.job(labels_of(propagator, classes, row37=1))
    assert list(job.votes.columns) == ["llm", "anna"]
    result = propagator.run(labels_of(propagator, classes, row37=1))
    judged = {one.name: (one.n_judged, round(one.accuracy * one.n_judged)) for one in result.voters}
    assert judged == {"llm": (8, 6), "anna": (5, 5)}  # drawn labels: the eight of the file
    assert any("votes for 'Quince'" in note for note in result.notes)


def test_with_votes_alone_rows_are_labelled_and_a_first_label_stays(tmp_path: Path) -> None:
    propagator = propagator_of(write_voted(tmp_path / "lots.csv", n_labels=0), votes=ASKED["votes"])
    classes = ["pear", "apple", "Quince"]
    truth = np.where(np.arange(40) % 2, 0, 1)
    for said in ({}, {"row4": 0}):  # row 4 is an apple; the person says that it is a pear
        labels = labels_of(propagator, classes, **said)
        assert propagator.can_run(labels)
        result = propagator.run(labels)
        assert np.mean(result.labels[:37] == truth[:37]) > 0.85
    assert (result.labels[4], result.rounds[4], result.n_labels) == (0, 0, 1)
    without = propagator_of(write_voted(tmp_path / "lots.csv", n_labels=0), ignore=["llm", "anna"])
    assert not without.can_run(labels_of(without, classes))


def test_groups_are_used_and_a_row_without_one_is_a_group_of_its_own(tmp_path: Path) -> None:
    propagator = propagator_of(write_voted(tmp_path / "lots.csv"), groups="crate", ignore=["llm", "anna"])
    job, _ = propagator.job(labels_of(propagator, ["apple", "pear"], row20=0))
    assert job.groups is not None
    assert job.groups[0] == job.groups[3] != job.groups[4]
    assert np.sum(job.groups == job.groups[20]) == 1
    assert "crate" not in {use.name for use in job.features.columns if not use.skipped}
    propagator.run(labels_of(propagator, ["apple", "pear"], row20=0))


def test_votes_and_groups_are_kept_in_the_session(tmp_path: Path) -> None:
    path = write_voted(tmp_path / "lots.csv")
    with running(path, worker=False, asked=ASKED) as (studio, client):
        row = client.get("/api/row/1")
        assert row["votes"] == [{"voter": "llm", "class": 1}, {"voter": "anna", "class": 1}]
        assert [one["name"] for one in client.get("/api/state")["classes"]] == ["apple", "pear", "Quince"]
        client.post("/api/rename", {"class": 2, "name": "Medlar"}, status=400)
        kinds = {one["name"]: one["kind"] for one in client.get("/api/state")["columns"]}
        assert (kinds["llm"], kinds["crate"]) == ("vote", "category")
    with running(path, worker=False) as (studio, client):
        request = studio.workspace.source.request
        assert (request.votes, request.groups) == (ASKED["votes"], ASKED["groups"])
        assert client.get("/api/row/1")["votes"][0] == {"voter": "llm", "class": 1}
        assert "groups: crate, as the last time with this session" in studio.notes
    with running(path, worker=False, asked={"votes": ["anna"]}) as (studio, client):
        assert [one["voter"] for one in client.get("/api/row/1")["votes"]] == ["anna"]
    table = pd.read_csv(path, dtype=str)
    table.drop(columns="anna").to_csv(path, index=False)
    source = Source(str(path), Request("kind"))
    kept, notes = with_kept_options(source, path.with_name("lots.csv.otprop"), ["weight", "crate"])
    assert (kept.request.votes, kept.request.groups) == ((), "crate")
    assert any("anna, which is not a column any more" in note for note in notes)


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0garbage", b"text"])
def test_a_file_that_is_not_a_session_has_no_options(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "lots.otprop"
    path.write_bytes(content)
    source = Source("lots.csv", Request("kind"))
    assert with_kept_options(source, path, ["a"]) == (source, [])
