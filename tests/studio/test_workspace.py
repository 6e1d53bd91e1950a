"""What the studio makes of a result, without a worker."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from otprop.loop.labels_needed import LabelsNeeded
from otprop.studio.client import WorkerGoneError
from otprop.studio.propagator import Result
from otprop.studio.worker import NotReadyError
from otprop.table.errors import Hint
from tests.studio.client import StudioClient
from tests.studio.conftest import running, write_lots

for module in ("starlette", "uvicorn", "pyarrow"):
    pytest.importorskip(module)


def result_of(client: StudioClient, issues: list[tuple[int, int, float]]) -> Result:
    """A result for the present labels that doubts some of them."""
    n_rows = 60
    labels = (np.arange(n_rows) % 2).astype(np.uint16)
    return Result(
        revision=client.get("/api/state")["revision"],
        labels=labels,
        confidence=np.full(n_rows, 200, dtype=np.uint8),
        rounds=(np.arange(n_rows) >= 8).astype(np.uint8),  # the file gives eight labels
        best=np.stack([labels, 1 - labels], axis=1),
        probability=np.tile(np.array([0.9, 0.1], dtype=np.float32), (n_rows, 1)),
        changed=np.array([4], dtype=np.uint32),
        error=(0.2, 0.1, 0.3),
        issues=issues,
        n_labels=8,
        n_rounds=1,
        classes_found=2,
        seconds=0.5,
        reused=["neighbours"],
        notes=["a note"],
    )


def doubted(client: StudioClient) -> list[int]:
    return [one["id"] for one in client.get("/api/queue?order=issues")["rows"]]


def test_a_label_is_doubted_until_it_is_kept_changed_or_removed(quiet: tuple[Any, StudioClient]) -> None:
    studio, client = quiet
    client.label(45, 0)  # a slip of the key, which the others contradict
    studio.workspace.receive(("result", result_of(client, [(1, 0, 0.9), (2, 1, 0.8), (3, 0, 0.7), (45, 1, 0.6)])))
    assert doubted(client) == [1, 2, 3, 45]
    assert client.get("/api/row/2")["issue"] == {"suggested": 1, "probability": 0.8}
    client.post("/api/label", {"rows": [1], "class": 1, "kind": "accept"})
    client.post("/api/label", {"rows": [2], "class": 1, "kind": "label"})
    client.post("/api/label", {"rows": [3], "class": None, "kind": "remove"})
    assert doubted(client) == [45]
    kept = client.post("/api/label", {"rows": [45], "class": 0, "kind": "accept"})
    assert client.get("/api/log?n=1")["events"][0]["kind"] == "keep"
    assert doubted(client) == []
    assert client.post("/api/undo", {})["revision"] == kept["revision"] + 1
    assert doubted(client) == [45]
    assert client.get("/api/state")["issues"] == 1


def test_only_a_label_that_is_there_is_kept(quiet: tuple[Any, StudioClient]) -> None:
    studio, client = quiet
    client.label(46, 0)
    studio.workspace.receive(("result", result_of(client, [(46, 1, 0.6)])))
    keep = {"rows": [46], "class": 0, "kind": "keep"}
    client.post("/api/undo", {})
    assert "nothing to keep" in client.post("/api/label", keep, 400)["error"]
    client.post("/api/redo", {})
    client.post("/api/label", keep)
    assert client.get("/api/row/46")["issue"] is None
    client.post("/api/undo", {})
    client.post("/api/undo", {})


def test_a_label_is_drawn_where_the_person_saw_that_the_row_was_random(quiet: tuple[Any, StudioClient]) -> None:
    studio, client = quiet
    queues, drawn = studio.workspace.queues, studio.session.drawn
    first = [one["id"] for one in client.get("/api/queue?order=suggest&n=60")["rows"] if one["reason"] == "random"]
    never = next(row for row in range(34, 60) if row not in first)
    queues.set_suggestions([(30, "random"), (31, "uncertain"), (32, "random")])
    queues.set_suggestions([(30, "uncertain"), (31, "random"), (32, "random")])  # the page shows the earlier ones still
    for row, reason in ((30, "random"), (31, "uncertain"), (32, "picked on the map"), (never, "random")):
        client.label(row, 0, reason=reason)
    assert drawn[[30, 31, 32, never]].tolist() == [True, False, False, False]
    for _ in range(4):
        client.post("/api/undo", {})


def test_a_region_says_how_many_are_expected_to_be_wrong(quiet: tuple[Any, StudioClient]) -> None:
    studio, client = quiet
    studio.workspace.receive(("result", result_of(client, [])))
    rows = [50, 51, 52, 54]
    answer = client.post("/api/label", {"rows": rows, "class": 0, "kind": "label"})
    assert answer["expected_wrong"] == pytest.approx(3 * 0.1 + 0.9, abs=0.05)
    client.post("/api/undo", {})


def test_a_label_contradicts_others_only_where_its_class_is_known_by_some_labels(
    quiet: tuple[Any, StudioClient],
) -> None:
    studio, client = quiet
    studio.workspace.receive(("result", result_of(client, [])))
    near = {"evidence": [], "nearest": [{"id": 4, "class": 0, "distance": 0.3}]}
    studio.workspace.receive(("explanations", {50: near}))
    assert client.label(50, 1)["contradicts"] == [{"id": 4, "class": 0, "source": 1}]
    client.post("/api/undo", {})
    quince = client.post("/api/classes", {"name": "quince"})["id"]
    answer = client.label(50, quince)
    assert (answer["contradicts"], answer["expected_wrong"]) == ([], None)
    client.post("/api/undo", {})


def test_a_class_that_leaves_the_list_gives_its_key_free_and_the_others_keep_theirs(tmp_path: Path) -> None:
    def keys(client: StudioClient) -> dict[str, str | None]:
        return {one["name"]: one["key"] for one in client.get("/api/state")["classes"][2:]}

    path = write_lots(tmp_path / "lots.csv")
    with running(path, worker=False) as (_, client):
        first = client.post("/api/classes", {"name": "first"})
        client.label(20, first["id"])
        second = client.post("/api/classes", {"name": "second"})
        client.label(21, second["id"])
        assert (first["key"], second["key"]) == ("3", "4")
        client.label(20, second["id"])
        assert keys(client) == {"first": None, "second": "4"}
        third = client.post("/api/classes", {"name": "third"})
        client.label(22, third["id"])
        assert third["key"] == "3"
        client.label(23, first["id"])
        assert keys(client) == {"first": "5", "second": "4", "third": "3"}
    with running(path, worker=False) as (_, client):
        assert keys(client) == {"first": "5", "second": "4", "third": "3"}


def test_the_goal_says_how_many_labels_are_about_needed(quiet: tuple[Any, StudioClient]) -> None:
    studio, client = quiet
    studio.workspace.receive(("result", result_of(client, [])))
    client.post("/api/goal", {"error": 0.05})
    assert client.get("/api/state")["goal"] == {
        **{"error": 0.05, "labels": None, "known": False, "message": "20.0% expected now"},
    }
    studio.workspace.receive(("needed", 0.05, LabelsNeeded(31, 12, 90)))
    goal = client.get("/api/state")["goal"]
    assert goal["message"] == "about 31 more labels (12 to 90)"
    assert (goal["labels"], goal["known"]) == ({"value": 31, "low": 12, "high": 90}, True)
    studio.workspace.receive(("needed", 0.05, LabelsNeeded(40, 0, 52)))  # all there are: a range that says nothing
    goal = client.get("/api/state")["goal"]
    assert not goal["known"]
    assert goal["message"].endswith("how many more labels cannot be estimated yet: see the curve")
    client.post("/api/goal", {"error": 0.3})
    assert client.get("/api/state")["goal"]["message"] == "reached: 20.0% expected"


def test_a_row_whose_picture_is_missing_says_so(tmp_path: Path) -> None:
    Path(tmp_path / "there.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    path = tmp_path / "pictures.csv"
    path.write_text("picture,kind\nthere.png,apple\npic36.png,\n,pear\n")
    with running(path, worker=False) as (_, client):
        found = [client.get(f"/api/row/{row}") for row in range(3)]
        assert [(one["image"], one["no_image"]) for one in found] == [
            *((True, ""), (False, "pic36.png is not there."), (False, "")),
        ]


def test_notes_name_parameters_as_the_user_gives_them(tmp_path: Path) -> None:
    def as_flag(note: str) -> str:
        return f"{note.before}--{note.parameter} {note.value}" if isinstance(note, Hint) else note

    with running(write_lots(tmp_path / "lots.csv"), worker=False, note_text=as_flag) as (studio, client):
        hint = Hint("if it marks unlabelled rows, add ", "unlabeled", "x")
        studio.workspace.receive(("result", replace(result_of(client, []), notes=[hint, "a note"])))
        assert client.get("/api/state")["notes"][-2:] == ["if it marks unlabelled rows, add --unlabeled x", "a note"]


def test_nothing_is_said_to_be_saved_before_there_is_something_to_save(tmp_path: Path) -> None:
    with running(write_lots(tmp_path / "lots.csv"), worker=False) as (_, client):
        assert client.get("/api/state")["saved_at"] is None
        client.label(20, 0)
        assert client.get("/api/state")["saved_at"]


def test_a_result_is_shown_with_its_error_its_curve_and_its_notes(quiet: tuple[Any, StudioClient]) -> None:
    studio, client = quiet
    studio.workspace.receive(("result", result_of(client, [])))
    state = client.get("/api/state")
    assert state["error"] == {"value": 0.2, "low": 0.1, "high": 0.3}
    assert state["curve"][-1] == {"labels": 8, "error": 0.2, "low": 0.1, "high": 0.3}
    assert "a note" in state["notes"]
    assert client.array("changed", "<u4").tolist() == [4]


def test_an_undo_goes_back_on_the_curve(quiet: tuple[Any, StudioClient]) -> None:
    studio, client = quiet
    labels = client.get("/api/state")["labels"]
    client.label(55, 0)
    studio.workspace.receive(("result", replace(result_of(client, []), n_labels=labels + 1)))
    assert client.get("/api/state")["curve"][-1]["labels"] == labels + 1
    client.post("/api/undo", {})
    assert client.get("/api/state")["curve"][-1]["labels"] <= labels
    client.post("/api/redo", {})
    assert client.get("/api/state")["curve"][-1]["labels"] == labels + 1
    client.post("/api/undo", {})


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (NotReadyError("the table is still being read: pip install umap-learn"), True),
        (WorkerGoneError("stopped"), True),
        (ValueError("too few rows for a map by UMAP"), False),
    ],
)
def test_a_map_is_asked_for_again_only_where_that_may_help(
    quiet: tuple[Any, StudioClient], monkeypatch: pytest.MonkeyPatch, error: Exception, again: bool
) -> None:
    studio, client = quiet
    asked: list[Future[Any]] = []

    def ask(question: str, argument: Any = None) -> Future[Any]:
        asked.append(Future())
        asked[-1].set_exception(error)
        return asked[-1]

    monkeypatch.setattr(studio.workspace.worker, "ask", ask)
    found = [client.get("/api/map?kind=umap", 202) for _ in range(2)]
    if again:
        assert found == [{"state": "computing"}] * 2
        assert len(asked) == 2
    else:
        assert {"state": "failed", "error": str(error)} in found


def test_a_worker_that_does_not_start_again_is_said(quiet: tuple[Any, StudioClient]) -> None:
    studio, client = quiet
    for kind in ("pca", "umap", "umap"):
        assert client.get(f"/api/map?kind={kind}", 202) == {"state": "computing"}
    studio.workspace.receive(("gone", -9, False))
    for kind in ("pca", "umap", "umap"):
        assert client.get(f"/api/map?kind={kind}", 202)["state"] == "failed"
    propagation = client.get("/api/state")["propagation"]
    assert propagation["state"] == "failed"
    assert "labels are still saved" in propagation["message"]


def test_rows_like_no_labelled_class_are_a_queue_and_a_colouring(tmp_path: Path) -> None:
    with running(write_lots(tmp_path / "lots.csv"), worker=False) as (studio, client):
        assert client.get("/api/novelty") == b""
        assert client.get("/api/state")["novel"] == {"rows": 0, "share": None}
        novelty = np.full(60, 100, dtype=np.uint8)
        novelty[[3, 20, 30, 40]] = 255, 250, 254, 244  # row 3 has a given label
        found = replace(result_of(client, []), novelty=novelty, novel_share=(0.1, 0.05, 0.2))
        studio.workspace.receive(("result", found))
        assert client.get("/api/novelty") == novelty.tobytes()
        assert client.get("/api/state")["novel"] == {"rows": 3, "share": {"value": 0.1, "low": 0.05, "high": 0.2}}
        client.post("/api/skip", {"row": 30})
        rows = client.get("/api/queue?order=novel")["rows"]
        assert [(one["id"], one["reason"]) for one in rows] == [(row, "none of these?") for row in (20, 40, 30)]
        assert client.get("/api/row/20")["novelty"] == 0.98
        client.label(20, 0)
        assert [one["id"] for one in client.get("/api/queue?order=novel")["rows"]] == [40, 30]


def test_the_labels_needed_are_estimated_from_the_curve_that_is_shown(tmp_path: Path) -> None:
    path = write_lots(tmp_path / "lots.csv")
    with running(path, worker=False) as (studio, client):
        studio.workspace.receive(("result", result_of(client, [])))
    with running(path, worker=False) as (studio, client):  # of an earlier start, too
        assert [one["labels"] for one in client.get("/api/state")["curve"]] == [8]
        asked: list[Any] = []
        send = studio.workspace.worker.send
        studio.workspace.worker.send = lambda *message: asked.append(message) or send(*message)
        client.post("/api/goal", {"error": 0.05})
        client.label(20, 0)
        questions = [message[3] for message in asked if message[0] == "ask"]
        assert questions == [(0.05, [(8, 0.2)])]
        assert [message[1].curve for message in asked if message[0] == "changes"] == [[(8, 0.2)]]
