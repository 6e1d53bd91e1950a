"""Sessions of a small table, without a file of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from otprop.studio.session import Session


@dataclass
class Lots:
    """The rows of a file, each with one cell in every column."""

    cells: list[str] = field(default_factory=lambda: [f"lot {number}" for number in range(20)])
    columns: list[str] = field(default_factory=lambda: ["lot"])
    name: str = "lots.csv"

    @property
    def digest(self) -> str:
        return "|".join(self.cells)

    @property
    def n_rows(self) -> int:
        return len(self.cells)

    def fingerprints(self, rows: Sequence[int] | None = None, columns: Sequence[str] | None = None) -> list[str]:
        found = range(self.n_rows) if rows is None else rows
        return [f"{self.cells[row]} in {len(columns or self.columns)} columns" for row in found]


def opened(path: Path, rows: Lots | None = None, target: str = "kind", classes: Sequence[str] = ("a", "b")) -> Session:
    return Session(path / "s.otprop" if path.is_dir() else path, rows or Lots(), target, classes)


def summary(session: Session) -> tuple[object, ...]:
    undo = session.can_undo, session.can_redo
    marks = list(session.skipped), list(session.kept), session.n_by_key
    return session.state.tolist(), session.drawn.tolist(), marks, session.revision, undo
