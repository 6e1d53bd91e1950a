"""What the studio makes of a result, without a worker."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from otprop.studio.propagator import Result
from tests.studio.client import StudioClient

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
        rounds=np.ones(n_rows, dtype=np.uint8),
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
    client.post("/api/label", {"rows": [1], "class": 1, "kind": "accept", "order": "issues"})
    client.post("/api/label", {"rows": [2], "class": 1, "kind": "label", "order": "issues"})
    client.post("/api/label", {"rows": [3], "class": None, "kind": "remove", "order": "issues"})
    assert doubted(client) == [45]
    kept = client.post("/api/label", {"rows": [45], "class": 0, "kind": "accept", "order": "issues"})
    assert client.get("/api/log?n=1")["events"][0]["kind"] == "keep"
    assert doubted(client) == []
    assert client.post("/api/undo", {})["revision"] == kept["revision"] + 1
    assert doubted(client) == [45]
    assert client.get("/api/state")["issues"] == 1


def test_a_region_says_how_many_are_expected_to_be_wrong(quiet: tuple[Any, StudioClient]) -> None:
    studio, client = quiet
    studio.workspace.receive(("result", result_of(client, [])))
    rows = [50, 51, 52, 54]
    answer = client.post("/api/label", {"rows": rows, "region": True, "class": 0, "kind": "label"})
    assert answer["expected_wrong"] == pytest.approx(3 * 0.1 + 0.9, abs=0.05)
    client.post("/api/undo", {})


def test_the_goal_says_how_many_labels_are_about_needed(quiet: tuple[Any, StudioClient]) -> None:
    studio, client = quiet
    studio.workspace.receive(("result", result_of(client, [])))
    client.post("/api/goal", {"error": 0.05})
    assert client.get("/api/state")["goal"] == {"error": 0.05, "labels": None, "message": "20.0% expected now"}
    studio.workspace.receive(("needed", 0.05, (31.2, 12.0, float("inf"))))
    goal = client.get("/api/state")["goal"]
    assert goal["message"] == "about 31 more labels (12 to many)"
    assert goal["labels"] == {"value": 31.2, "low": 12.0, "high": None}
    client.post("/api/goal", {"error": 0.3})
    assert client.get("/api/state")["goal"]["message"] == "reached: 20.0% expected"


def test_a_result_is_shown_with_its_error_its_curve_and_its_notes(quiet: tuple[Any, StudioClient]) -> None:
    studio, client = quiet
    studio.workspace.receive(("result", result_of(client, [])))
    state = client.get("/api/state")
    assert state["error"] == {"value": 0.2, "low": 0.1, "high": 0.3}
    assert state["curve"][-1] == {"labels": 8, "error": 0.2, "low": 0.1, "high": 0.3}
    assert "a note" in state["notes"]
    assert client.array("changed", "<u4").tolist() == [4]


def test_a_worker_that_does_not_start_again_is_said(quiet: tuple[Any, StudioClient]) -> None:
    studio, client = quiet
    studio.workspace.receive(("gone", -9, False))
    propagation = client.get("/api/state")["propagation"]
    assert propagation["state"] == "failed"
    assert "labels are saved all the same" in propagation["message"]
