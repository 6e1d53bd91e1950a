"""Results survive kills, and are never taken for others."""

from __future__ import annotations

from pathlib import Path

import pytest

from otprop_paper.benchmark.store import Store, StoreError

A, B = {"method": "a", "split": 0}, {"method": "b", "split": 0}


def test_what_was_added_is_there_when_opened_again(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.add([(A, {"nmi": 0.5}), (B, {"nmi": float("nan")})])
    with Store(tmp_path) as store:
        assert len(store) == 2
        assert store.get(A) == {"nmi": 0.5}


def test_a_changed_part_of_the_key_is_another_result(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.add([(A, {"nmi": 0.5})])
        assert A in store
        assert A | {"version": "2"} not in store
        assert store.get(A | {"split": 1}) is None


@pytest.mark.parametrize("cut", [1, 10, 30])
def test_a_line_cut_off_by_a_kill_is_lost_alone(tmp_path: Path, cut: int) -> None:
    with Store(tmp_path) as store:
        store.add([(A, {"nmi": 0.5})])
        store.add([(B, {"nmi": 0.25})])
    path = tmp_path / "cells.jsonl"
    path.write_bytes(path.read_bytes()[:-cut].rstrip(b"\n") if cut > 1 else path.read_bytes()[:-2])
    with Store(tmp_path) as store:
        assert A in store
        assert B not in store
        store.add([(B, {"nmi": 0.75})])
    with Store(tmp_path) as store:
        assert store.get(B) == {"nmi": 0.75}


def test_two_runs_cannot_write_to_one_folder(tmp_path: Path) -> None:
    with Store(tmp_path), pytest.raises(StoreError, match="another benchmark"):
        Store(tmp_path)
    Store(tmp_path).close()


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be written"):
        Store(tmp_path / "file" / "folder")


def test_a_full_disk_is_said_and_what_was_saved_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with Store(tmp_path) as store:
        store.add([(A, {"nmi": 0.5})])
        monkeypatch.setattr("otprop_paper.benchmark.store.os.write", full)
        with pytest.raises(StoreError, match=r"No space left.*run the same command again"):
            store.add([(B, {"nmi": 0.5})])
        monkeypatch.undo()
    with Store(tmp_path) as store:
        assert len(store) == 1
