"""The studio as a page uses it: a real server, a real worker process."""

from __future__ import annotations

import csv
import io
import os
import signal
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.studio.client import StudioClient
from tests.studio.conftest import running, write_lots

for module in ("starlette", "uvicorn", "pyarrow"):
    pytest.importorskip(module)

Found = tuple[Any, StudioClient]


@pytest.fixture(scope="module")
def studio(folder: Path) -> Iterator[Found]:
    with running(write_lots(folder / "lots.csv")) as found:
        found[1].wait_for_result()
        yield found


def test_the_arrays_have_a_value_for_every_row(studio: Found) -> None:
    _, client = studio
    state = client.get("/api/state")
    labels, sources = client.array("labels"), client.array("sources")
    assert [len(client.array(name)) for name in ("labels", "confidence", "sources", "rounds")] == [60] * 4
    assert (labels == np.arange(60) % 2).mean() > 0.9
    assert (sources == np.where(np.arange(60) < 8, 1, 3)).all()
    assert (client.array("confidence")[:8] == 255).all()
    assert (client.array("rounds")[:8] == 0).all()
    points = client.array("map", "<f4").reshape(-1, 2)
    assert points.shape == (60, 2)
    assert np.abs(points).max() == pytest.approx(1.0)
    assert [one["given"] + one["propagated"] for one in state["classes"]] == np.bincount(labels).tolist()
    assert state["error"]["low"] <= state["error"]["value"] <= state["error"]["high"]


def test_a_row_comes_with_its_proposal_the_evidence_and_the_labelled_rows_near_it(studio: Found) -> None:
    _, client = studio
    row = client.get("/api/row/21?wait=1")
    assert row["explained"]
    assert row["proposal"]["class"] == 1
    assert row["probabilities"][0] == row["proposal"]
    assert sum(one["probability"] for one in row["probabilities"]) == pytest.approx(1, abs=1e-3)
    assert {one["source"] for one in row["evidence"]} == {"diffusion"}
    assert {one["class"] for one in row["nearest"][:3]} == {1}
    assert all(one["id"] < 8 and one["source"] == 1 for one in row["nearest"])
    assert row["cells"][2].startswith("lot 21")


def test_a_label_is_saved_shown_at_once_and_propagated_in_the_background(studio: Found) -> None:
    _, client = studio
    before = client.get("/api/state")
    row = next(one["id"] for one in client.get("/api/queue?order=suggest")["rows"])
    answer = client.label(row, row % 2)
    assert answer["saved"]
    assert answer["revision"] == before["revision"] + 1
    assert client.array("sources")[row] == 2
    assert client.array("labels")[row] == row % 2
    state = client.wait_for_result()
    assert state["labels"] == before["labels"] + 1
    assert state["propagation"]["reused"][0] == "neighbours"
    assert len(state["curve"]) >= 2
    assert row not in [one["id"] for one in client.get("/api/queue?order=suggest&n=60")["rows"]]


def test_two_pages_stay_in_step(studio: Found) -> None:
    _, client = studio
    other = client.events()
    name, state = next(other)
    assert name == "state"
    revision = client.label(50, 0)["revision"]
    while name != "state" or state["revision"] < revision:
        name, state = next(other)
    other.close()
    assert state["can_undo"]


def test_undo_and_redo_are_one_step_each_and_a_repeated_request_changes_nothing(studio: Found) -> None:
    _, client = studio
    rows = [40, 41, 42]
    labelled = client.post("/api/label", {"rows": rows, "region": True, "class": 0, "kind": "label"})
    assert 0 <= labelled["expected_wrong"] <= 3
    assert (client.array("sources")[rows] == 2).all()
    name = {"X-Otprop-Request": "ab" * 16}
    first = client.post("/api/undo", {}, **name)
    assert first["rows"] == rows
    assert client.post("/api/undo", {}, **name) == first
    assert not (client.array("sources")[rows] == 2).any()
    assert client.post("/api/redo", {})["rows"] == rows
    assert (client.array("labels")[rows] == 0).all()
    client.post("/api/undo", {})


def test_a_label_against_all_that_is_near_is_said_to_contradict(studio: Found) -> None:
    _, client = studio
    client.wait_for_result()
    row = client.get("/api/row/31?wait=1")
    answer = client.label(31, 1 - row["proposal"]["class"])
    assert {one["class"] for one in answer["contradicts"]} == {row["proposal"]["class"]}
    assert answer["contradicts"][0]["id"] == row["nearest"][0]["id"]
    client.post("/api/undo", {})


def test_rows_of_no_class_go_on_a_pile_and_come_back(studio: Found) -> None:
    _, client = studio
    client.post("/api/label", {"rows": [33], "class": None, "kind": "unknown"})
    assert client.array("sources")[33] == 4
    assert client.array("labels")[33] == 255
    assert client.get("/api/queue?order=unknown")["rows"] == [{"id": 33, "reason": "unknown", "image": False}]
    state = client.wait_for_result()
    assert state["unknown"] == 1
    assert client.array("labels")[33] == 255
    client.post("/api/label", {"rows": [33], "class": None, "kind": "remove"})
    assert client.get("/api/queue?order=unknown")["total"] == 0


def test_a_given_label_can_be_removed_and_is_then_propagated(studio: Found) -> None:
    _, client = studio
    client.post("/api/label", {"rows": [4], "class": None, "kind": "remove"})
    client.wait_for_result()
    assert client.array("sources")[4] == 3
    assert client.array("labels")[4] == 0
    client.post("/api/undo", {})
    assert client.array("sources")[4] == 1


def test_skipped_rows_come_last_and_cost_no_propagation(studio: Found) -> None:
    _, client = studio
    n_results = len(client.wait_for_result()["curve"])
    first = client.get("/api/queue?order=unsure&n=1")["rows"][0]["id"]
    client.post("/api/skip", {"row": first})
    rows = [one["id"] for one in client.get("/api/queue?order=unsure&n=200")["rows"]]
    assert rows[-1] == first
    client.post("/api/undo", {})
    assert client.get("/api/queue?order=unsure&n=1")["rows"][0]["id"] == first
    assert len(client.wait_for_result()["curve"]) == n_results


@pytest.mark.skipif(find_spec("umap") is not None, reason="umap-learn is installed")
def test_a_map_by_umap_says_what_to_install(studio: Found) -> None:
    _, client = studio
    answers = (client.get("/api/map?kind=umap", 202) for _ in client.events())
    failed = next(answer for answer in answers if answer["state"] == "failed")
    assert "pip install '.[umap]' in a checkout of otprop" in failed["error"]


def test_a_new_class_a_search_and_a_goal(studio: Found) -> None:
    _, client = studio
    assert client.post("/api/classes", {"name": " quince "}) == {"id": 2, "key": "3"}
    assert client.post("/api/classes", {"name": "quince"})["id"] == 2
    assert client.get("/api/search?q=LOT%205")["total"] == 11
    client.post("/api/goal", {"error": 0.02})
    goal = client.get("/api/state")["goal"]
    assert goal["error"] == 0.02
    assert goal["message"]
    client.post("/api/goal", {"error": None})
    assert client.get("/api/state")["goal"] is None


def test_the_exports_are_what_otprop_label_writes_and_the_file_stays_as_it_was(studio: Found, folder: Path) -> None:
    _, client = studio
    before = (folder / "lots.csv").read_bytes()
    client.post("/api/label", {"rows": [58], "class": 0, "kind": "label"})
    made = client.post("/api/export", {"format": "csv"})
    _, headers, data = client.send("GET", made["url"], {"Cookie": client.cookie})
    rows = list(csv.DictReader(io.StringIO(data.decode())))
    assert made["bytes"] == len(data)
    assert "attachment" in headers["content-disposition"]
    assert [row["kind_source"] for row in rows[:2]] == ["given", "given"]
    assert (rows[58]["kind_label"], rows[58]["kind_source"]) == ("apple", "corrected")
    assert {row["kind_source"] for row in rows} == {"given", "corrected", "propagated"}
    assert (folder / "lots.csv").read_bytes() == before
    page = client.post("/api/export", {"format": "report"})
    assert client.get(page["url"]).startswith(b"<!")
    model = client.post("/api/export", {"format": "model"})
    assert client.get(model["url"]).startswith(b"PK")
    assert sorted(path.name for path in folder.iterdir() if path.name.startswith("lots")) == sorted(
        {"lots.csv", "lots.csv.otprop"} | {path.name for path in folder.glob("lots.csv.otprop-*")}
    )
    client.post("/api/undo", {})


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_a_worker_that_was_killed_is_started_again_and_sees_every_label(studio: Found) -> None:
    space, client = studio[0].workspace, studio[1]
    old = space.worker.pid
    os.kill(old, signal.SIGKILL)
    revision = client.label(45, 1)["revision"]
    state = client.wait_for_result(revision)
    assert space.worker.pid != old
    assert state["propagation"]["revision"] == revision
    assert client.array("sources")[45] == 2


def test_a_table_without_labels_and_target_is_labelled_from_nothing(folder: Path) -> None:
    with running(write_lots(folder / "bare.csv", target=False), "kind") as (_, client):
        state = client.wait_for(lambda state: "two classes" in state["propagation"]["message"])
        assert state["classes"] == []
        assert (client.array("labels") == 255).all()
        first, second = (client.post("/api/classes", {"name": name})["id"] for name in ("apple", "pear"))
        queue = client.get("/api/queue?order=suggest&n=40")
        assert queue["rows"][0]["reason"] == "random"
        rows = [one["id"] for one in queue["rows"]]
        client.label(rows[0], rows[0] % 2)
        written = client.post("/api/export", {"format": "csv"})
        assert client.get(written["url"]).decode().count(",corrected") == 1
        assert "two classes" in client.post("/api/export", {"format": "model"}, 400)["error"]
        for row in rows[1:10]:
            client.label(row, (first, second)[row % 2])
        client.wait_for_result()
        assert (client.array("labels") == np.arange(60) % 2).mean() > 0.9
        assert client.get("/api/state")["labels"] == 10
        revision = client.post("/api/rename", {"class": first, "name": "quince"})["revision"]
        assert "already" in client.post("/api/rename", {"class": second, "name": "quince"}, 400)["error"]
        state = client.wait_for_result(revision)
        assert [one["name"] for one in state["classes"]] == ["quince", "pear"]
        table = client.get(client.post("/api/export", {"format": "csv"})["url"]).decode()
        assert "quince" in table
        assert "apple" not in table
        made = client.get(client.post("/api/export", {"format": "labels"})["url"]).decode().splitlines()
        assert made[0] == "row,label,reason,file_digest"
        assert len(made) == 11


def test_a_file_that_changes_while_it_is_open_is_not_propagated_and_labels_are_saved(folder: Path) -> None:
    path = write_lots(folder / "changing.csv")
    with running(path, opened=lambda: path.write_text(path.read_text() + "1,2,new,\n")) as (_, client):
        failed = next(state for _, state in client.events() if state.get("propagation", {}).get("state") == "failed")
        assert "changing.csv was changed while it is open" in failed["propagation"]["message"]
        assert client.label(20, 0)["saved"]
        assert client.array("sources")[20] == 2
        assert "is not started again" in client.post("/api/export", {"format": "csv"}, 503)["error"]
        made = client.get(client.post("/api/export", {"format": "labels"})["url"]).decode().splitlines()
        assert made[1].startswith("21,apple,chosen,")


def test_the_labels_made_here_are_exported_where_nothing_can_be_propagated(folder: Path) -> None:
    path = folder / "constant.csv"
    path.write_text("a,kind\n" + "1,apple\n1,pear\n" * 2 + "1,\n" * 9)
    with running(path) as (_, client):
        next(state for _, state in client.events() if state.get("propagation", {}).get("state") == "failed")
        assert "no row was labelled" in client.post("/api/export", {"format": "labels"}, 400)["error"]
        client.label(7, 1)
        made = client.get(client.post("/api/export", {"format": "labels"})["url"]).decode().splitlines()
        assert made[0] == "row,label,reason,file_digest"
        assert made[1].startswith("8,pear,chosen,")
