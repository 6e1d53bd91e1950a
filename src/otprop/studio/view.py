"""What a page may ask for: the session, the cells and the worker's last result, and what they add up to."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import RLock
from typing import Any

import numpy as np

from otprop import __version__
from otprop._votes import Voter
from otprop.labelling.job import Job
from otprop.studio.cells import SHORT, Cells
from otprop.studio.client import WorkerNews
from otprop.studio.propagator import NO_CLASS, Result
from otprop.studio.rows import GIVEN, HERE, PILE, PROPAGATED, Queues, Shown, best_classes, compose
from otprop.studio.session import Session
from otprop.studio.session_file import NotSavedError
from otprop.studio.session_log import AS_IN_FILE
from otprop.studio.source import RowVotes, Source
from otprop.table.pictures import has_pillow

CLASS_KEYS = "123456789abcdefghijlmopqrtvwyz"  # the page keeps the other letters for itself
NOVEL = "none of these?"  # the reason of a row that looks like no labelled class


class View:
    """What there is to see; safe to be called from several threads."""

    def __init__(
        self,
        source: Source,
        job: Job,
        cells: Cells,
        session: Session,
        votes: RowVotes | None,
        note_text: Callable[[str], str],
    ) -> None:
        self.source, self.cells, self.session = source, cells, session
        self.lock = RLock()
        ids = np.array([*(session.classes.index(name) for name in job.target.classes), -1], dtype=np.int64)
        self._given = ids[job.target.codes]
        self._target = job.target
        self._votes = votes
        voted = [] if votes is None else [session.classes.index(name) for name in votes.classes]
        self._in_file = {*ids[:-1].tolist(), *voted}  # named by the file, which a vote is in, too
        self._start = secrets.token_hex(8)
        self._notes, self._note_text = list(job.notes), note_text
        used = {name for name, kind in zip(cells.columns, cells.kinds, strict=True) if kind == "image"}
        self._only_shown = cells.pictures.are_files and not (has_pillow() and used & set(job.features.wanted))
        if self._only_shown:
            self._notes.append("pictures are shown but not used as features; labels follow from the other columns")
        self._news = WorkerNews()
        self._shown: tuple[tuple[int, int], Shown] | None = None
        self.queues = Queues(job.table.n_rows, source.request.seed)

    @property
    def result(self) -> Result | None:
        """What the last propagation found."""
        return self._news.result

    @property
    def novelty(self) -> np.ndarray | None:
        """How unlike all labelled classes each row is, one byte per row; None where that is not known."""
        return None if self.result is None else self.result.novelty

    def shown(self) -> tuple[int, Shown]:
        """What is shown of every row, with the revision."""
        with self.lock, self.session.lock:
            key = (self.session.revision, self._news.n_results)
            if self._shown is None or self._shown[0] != key:
                self._shown = key, compose(self.session.state, self._given, self.result)
            return key[0], self._shown[1]

    def state(self) -> dict[str, Any]:
        """What the page shows around the map."""
        with self.lock, self.session.lock:
            session, result, (_, shown) = self.session, self.result, self.shown()
            counts = shown.counts(len(session.classes))
            n_labels = int(counts[[GIVEN, HERE]].sum())
            return {
                "version": __version__,
                "file": self.cells.name,
                "target": self.source.request.target,
                "n_rows": self.cells.n_rows,
                "columns": self._columns(),
                "text_columns": self.cells.text_columns,
                "pictures": bool(self.cells.pictures),
                "start": self._start,
                "novel": self._novel(),
                "voters": [] if result is None else [_voter(one) for one in result.voters],
                "images_are_files": self._only_shown,
                "classes": self._classes(counts),
                "revision": session.revision,
                "labels": n_labels,
                "unknown": int((shown.sources == PILE).sum()),
                "can_undo": session.can_undo,
                "can_redo": session.can_redo,
                "saved_at": session.saved_at if session.revision else None,
                "notes": self._all_notes(),
                "propagation": dict(self._news.status),
                "error": None if result is None else _range(result.error),
                "curve": [
                    {"labels": labels, "error": error, "low": low, "high": high}
                    for labels, error, low, high in session.curve()
                    if labels <= n_labels  # an undo goes back on the curve
                ],
                "changed": 0 if result is None else len(result.changed),
                "classes_found": 0 if result is None else result.classes_found,
                "goal": self._goal(),
                "n_rounds": 0 if result is None else result.n_rounds,
                "issues": len(self.issues()),
                "suggested": self._news.n_suggested,
                "suggested_for": self._news.suggested_for,
                "session_id": session.session_id,
            }

    def _columns(self) -> list[dict[str, str]]:
        voters = set() if self._votes is None else set(self._votes.voters)
        pairs = zip(self.cells.columns, self.cells.kinds, strict=True)
        return [{"name": name, "kind": "vote" if name in voters else kind} for name, kind in pairs]

    def _classes(self, counts: np.ndarray) -> list[dict[str, Any]]:
        """All classes by id; one that was made here and has lost its last row is hidden until it has one again."""
        hidden = self._hidden(counts)
        keys = self._keys(hidden)
        return [
            {
                "id": number,
                "name": name,
                "key": keys.get(number),
                "given": int(counts[GIVEN, number]),
                "here": int(counts[HERE, number]),
                "propagated": int(counts[PROPAGATED, number]),
                "hidden": number in hidden,
                "in_file": number in self._in_file,
            }
            for number, name in enumerate(self.session.classes)
        ]

    def _novel(self) -> dict[str, Any]:
        """How many rows look like no labelled class, and the estimated share of such rows."""
        rows = self.queues.novel(self.shown()[1], self.novelty)
        return {"rows": len(rows), "share": None if self.result is None else _range(self.result.novel_share)}

    def _all_notes(self) -> list[str]:
        found = [*self.session.notes, *self._notes, *(self.result.notes if self.result else [])]
        return list(dict.fromkeys(map(self._note_text, found)))

    def _hidden(self, counts: np.ndarray) -> set[int]:
        rows = counts[[GIVEN, HERE, PROPAGATED]].sum(axis=0)
        return {number for number in self.session.used - self._in_file if not rows[number]}

    def _keys(self, hidden: set[int]) -> dict[int, str]:
        """The key of each class that is shown: it stays; a new class takes the first that is free."""
        known = {number: key for number, key in self.session.keys.items() if number not in hidden}
        free = iter([key for key in CLASS_KEYS if key not in known.values()])
        new = (number for number in range(len(self.session.classes)) if number not in hidden and number not in known)
        keys = {**known, **dict(zip(new, free, strict=False))}
        if keys != self.session.keys:
            with suppress(NotSavedError):  # a disk that is full is said where a label is lost by it
                self.session.set_keys(keys)
        return keys

    def _goal(self) -> dict[str, Any] | None:
        goal = self.session.goal
        if goal is None:
            return None
        needed = self._news.needed[1] if self._news.needed is not None and self._news.needed[0] == goal else None
        error = None if self.result is None else self.result.error
        if error is None:
            message = "known after the first propagation"
        elif error[0] <= goal:
            message = f"reached: {error[0]:.1%} expected"
        elif needed is None:
            message = f"{error[0]:.1%} expected now"
        elif not needed.is_known:
            message = f"{error[0]:.1%} expected now; how many more labels cannot be estimated yet: see the curve"
        else:
            message = f"about {needed.value} more labels ({needed.low} to {needed.high})"
        known = needed is not None and needed.is_known
        return {"error": goal, "labels": _range(needed), "known": known, "message": message}

    def issues(self) -> list[tuple[int, int, float]]:
        """Labels that look wrong: row, suggested class, probability; not those that were kept, or changed here."""
        with self.lock:
            found = [] if self.result is None else self.result.issues
            return [one for one in found if not self._is_judged(one[0])]

    def _is_judged(self, row: int) -> bool:
        """Whether the label of a row was reviewed here, or was removed."""
        state, given = self.session.state[row], self._given[row] >= 0
        return row in self.session.kept or (state >= 0 and given) or (state < 0 and not (given and state == AS_IN_FILE))

    def row(self, row: int) -> dict[str, Any]:
        """All that is known of a row; `explained`: its explanation is that of the last result, if there is one."""
        with self.lock:
            _, shown = self.shown()
            label = int(shown.classes[row])
            best = best_classes(self.result, row)
            explained = self._news.explanation(row)
            issue = next((one for one in self.issues() if one[0] == row), None)
            no_image = self.cells.pictures.problem(row)  # a request for it would be an error in the console
            return {
                "id": row,
                "cells": self.cells.of_row(row),
                "label": None if label == NO_CLASS else label,
                "source": int(shown.sources[row]),
                "confidence": round(int(shown.confidence[row]) / 255, 3),
                "proposal": best[0] if best and shown.sources[row] != PILE else None,
                "probabilities": best,
                "evidence": [] if explained is None else explained["evidence"],
                "nearest": [] if explained is None else self._nearest(explained["nearest"], shown),
                "votes": self._votes_of(row),
                "novelty": None if self.novelty is None else round(int(self.novelty[row]) / 255, 3),
                "issue": None if issue is None else {"suggested": issue[1], "probability": round(issue[2], 4)},
                "image": self.cells.pictures.has(row) and not no_image,
                "no_image": no_image,
                "explained": row in self._news.explained or self.result is None,
            }

    def _votes_of(self, row: int) -> list[dict[str, Any]]:
        """Each voter and the id of the class that it votes for; None where it is silent."""
        classes = self.session.classes
        said = [] if self._votes is None else self._votes.of_row(row)
        return [{"voter": voter, "class": None if name is None else classes.index(name)} for voter, name in said]

    def _nearest(self, nearest: Sequence[dict[str, Any]], shown: Shown) -> list[dict[str, Any]]:
        """The labelled rows nearest to one, as they are labelled now."""
        return [
            {
                "id": one["id"],
                "class": int(shown.classes[one["id"]]),
                "source": int(shown.sources[one["id"]]),
                "cells": self.cells.of_row(one["id"], SHORT),
                "image": self.cells.pictures.has(one["id"]) and not self.cells.pictures.problem(one["id"]),
            }
            for one in nearest
            if shown.rounds[one["id"]] == 0
        ]

    def queue(self, order: str, n: int, number: int | None) -> tuple[list[tuple[int, str]], int]:
        """The next rows with the reason of each, and how many there are in all."""
        with self.lock:
            _, shown = self.shown()
            queues, skipped = self.queues, list(self.session.skipped)
            if order == "suggest":
                n_drawn, n_by_key = int(self.session.drawn.sum()), self.session.n_by_key
                return queues.suggested(shown, n, n_drawn, n_by_key, skipped), queues.n_free(shown)
            if order in ("unsure", "class"):
                rows = _skipped_last(queues.unsure(shown, n + len(skipped), number), skipped)[:n]
                return [(row, _sureness(shown, row)) for row in rows], queues.n_free(shown, number)
            if order == "novel":
                rows = queues.novel(shown, self.novelty)
                return [(row, NOVEL) for row in _skipped_last(rows, skipped)[:n]], len(rows)
            if order == "issues":
                issues, names = self.issues(), self.session.classes
                reasons = [(row, f"{names[found]} instead: {share:.0%}") for row, found, share in issues]
                return reasons[:n], len(reasons)
            rows = queues.pile(shown)
            return [(row, "unknown") for row in rows[:n]], len(rows)


def _skipped_last(rows: Sequence[int], skipped: Sequence[int]) -> list[int]:
    """The rows with the skipped ones last."""
    late = set(skipped)
    return [row for row in rows if row not in late] + [row for row in rows if row in late]


def _sureness(shown: Shown, row: int) -> str:
    return f"{int(shown.confidence[row]) / 255:.0%} sure" if shown.sources[row] == PROPAGATED else "no label yet"


def _voter(one: Voter) -> dict[str, Any]:
    accuracy = None if math.isnan(one.accuracy) else one.accuracy
    judged = {"low": one.low, "high": one.high, "judged": one.n_judged, "votes": one.n_votes}
    return {"name": one.name, "accuracy": accuracy, **judged}


def _range(found: tuple[float, float, float] | None) -> dict[str, float | None] | None:
    if found is None:
        return None
    value, low, high = (one if math.isfinite(one) else None for one in found)
    return {"value": value, "low": low, "high": high}
