"""What the worker has said: the last result, the status of the propagation, the map, explanations."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import numpy as np

from otprop.studio.client import WITHOUT
from otprop.studio.propagator import Result

TWO_CLASSES = "label rows of two classes, and the others follow"

Needed = tuple[float, float, float] | None


class WorkerNews:
    """Takes the messages of the worker, each by a method of its name.

    Attributes
    ----------
    result : Result or None
    n_results : int, how often `result` was another one
    status : dict, the propagation as the page shows it
    explained : dict of row to its explanation, for the last result
    explained_before : dict of row to its explanation, for an earlier result
    suggestions : list of (row, reason)
    n_suggested, suggested_for : int, how often suggestions or explanations came; the revision of the former
    needed : (goal, labels needed) or None
    maps : dict of kind to coordinates, to the future of them, or to the sentence that says why there are none
    digest : str or None, of the file that the worker has read
    """

    def __init__(self) -> None:
        self.result: Result | None = None
        self.n_results = 0
        self.status: dict[str, Any] = {
            **{"state": "waiting", "revision": 0, "step": "starting", "done": 0, "total": 0},
            **{"message": "", "seconds": None, "reused": []},
        }
        self.explained: dict[int, dict[str, Any]] = {}
        self.explained_before: dict[int, dict[str, Any]] = {}
        self.suggestions: list[tuple[int, str]] = []
        self.n_suggested, self.suggested_for = 0, -1
        self.needed: tuple[float, Needed] | None = None
        self.maps: dict[str, bytes | Future[Any] | str] = {}
        self.digest: str | None = None

    def take(self, message: tuple[Any, ...]) -> None:
        """Take a message."""
        getattr(self, f"_on_{message[0]}")(*message[1:])

    def explanation(self, row: int) -> dict[str, Any] | None:
        """The newest explanation of a row; None where it has not been explained."""
        return self.explained.get(row, self.explained_before.get(row))

    def _on_started(self) -> None:
        self.status |= {"state": "waiting", "step": "starting"}

    def _on_digest(self, digest: str) -> None:
        self.digest = digest

    def _on_map(self, kind: str, points: np.ndarray) -> None:
        self.maps[kind] = points.tobytes()

    def _on_progress(self, done: float, total: float, step: str) -> None:
        self.status |= {"step": step, "done": done, "total": total}

    def _on_running(self, revision: int) -> None:
        self.status |= {"state": "running", "revision": revision, "message": ""}

    def _on_waiting(self, revision: int) -> None:
        self.status |= {"state": "waiting", "revision": revision, "step": "", "message": TWO_CLASSES}
        if self.result is not None:
            self.result, self.explained = None, {}
            self.n_results += 1

    def _on_unchanged(self, revision: int) -> None:
        self.status["revision"] = revision

    def _on_result(self, result: Result) -> None:
        self.explained_before.update(self.explained)
        self.result, self.n_results, self.explained = result, self.n_results + 1, {}
        self.status |= {
            **{"state": "done", "revision": result.revision, "step": "", "message": ""},
            **{"seconds": round(result.seconds, 3), "reused": result.reused},
        }

    def _on_suggestions(self, revision: int, found: list[tuple[int, str]]) -> None:
        self.suggestions, self.suggested_for = found, revision
        self.n_suggested += 1

    def _on_explanations(self, found: dict[int, dict[str, Any]]) -> None:
        self.explained.update(found)
        self.n_suggested += 1

    def _on_needed(self, error: float, needed: Needed) -> None:
        self.needed = error, needed

    def _on_failed(self, revision: int, sentence: str) -> None:
        self.status |= {"state": "failed", "revision": revision, "step": "", "message": sentence}

    def _on_gone(self, status: int | None, again: bool) -> None:
        ending = "it is started again" if again else f"it is not started again; {WITHOUT}"
        message = f"the propagation was stopped (exit status {status}): {ending}"
        self.status |= {"state": "waiting" if again else "failed", "step": "", "message": message}
