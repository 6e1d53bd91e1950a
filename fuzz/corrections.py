"""Odd corrections: labels put into the right rows, or a refusal in one sentence."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from harness import Run, check, check_sentence, no_foreign_warning
from otprop._validation import ParameterError
from otprop.files import TableError, read_table
from otprop.labelling.corrections import Corrections, corrected_cells, read_corrections
from otprop.table.errors import ColumnError

LABELS: tuple[Any, ...] = ("a", "b", "new", "", " ", "1", "1.0", "01", "nan", "-", "\u202eb", "two\nlines", "n" * 500)
TYPED: tuple[Any, ...] = (1, 1.0, True, None, np.nan, np.int64(1), pd.NA, pd.NaT, b"a", (1,), [], {}, 10**30, np.inf)
ROW_CELLS: tuple[Any, ...] = (0, 1, 2, 6, 7, -1, 1.5, "1", "2.0", "x", "", None, True, np.inf, np.nan, 10**30, "1e400")
REASONS = ("random", "uncertain", "", None, "RANDOM", 1)
TARGETS: tuple[tuple[Any, ...], ...] = (
    ("a", "b", None, "a", None, None), (1, 2, None, 1, None, None), (1.5, 2.0, None, 1.5, None, None),
    ("1", "2.0", None, "01", None, None), (True, False, None, True, None, None), (None,) * 6,
)  # fmt: skip
Rng = np.random.Generator


def pick(rng: Rng, options: Any) -> Any:
    return options[rng.integers(len(options))]


def label(rng: Rng) -> Any:
    return pick(rng, LABELS) if rng.random() < 0.8 else pick(rng, TYPED)


def given(rng: Rng, folder: Path) -> Any:
    """Corrections as a mapping, a Series, a DataFrame, a file, or a list of these."""
    n, way = int(rng.choice([0, 1, 2, 5, 50])), rng.integers(6)
    odd = rng.random() < 0.3
    numbers = [pick(rng, ROW_CELLS) if odd else int(rng.integers(1, 7)) for _ in range(n)]
    labels = [label(rng) for _ in range(n)]
    if way == 0:
        return {row: text for row, text in zip(numbers, labels, strict=True) if row == row}
    if way == 1:
        return pd.Series(labels, index=numbers, dtype=object)
    columns: dict[str, Any] = {"row": numbers, str(pick(rng, ("label", "kind", "other"))): labels}
    if rng.random() < 0.5:
        columns["reason"] = [pick(rng, REASONS) for _ in range(n)]
    if rng.random() < 0.3:
        columns["file_digest"] = [str(pick(rng, ("", "0" * 64, "x")))] * n
    frame = pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in columns.items()})
    if way < 4:
        return frame
    path = folder / "corrections.csv"
    frame.to_csv(path, index=False)
    return [path, frame] if way == 5 else path


def example(rng: Rng) -> str:
    """Read corrections of a small table and put them into its target."""
    cells = np.array(pick(rng, TARGETS), dtype=object)
    with tempfile.TemporaryDirectory() as name, no_foreign_warning():
        folder = Path(name)
        (folder / "t.csv").write_text("x,kind\n" + "".join(f"{row},\n" for row in range(len(cells))))
        table = read_table(folder / "t.csv")
        try:
            found = read_corrections(given(rng, folder), table, "kind")
            new, corrected, notes = corrected_cells(cells, found, "kind")
        except (ParameterError, TableError, ColumnError) as error:
            check_sentence(str(error))
            return "refused"
    check_result(cells, found, new, corrected)
    for note in notes:
        check_sentence(str(note))
    return "used" if found.labels else "empty"


def check_result(cells: np.ndarray, found: Corrections, new: np.ndarray, corrected: np.ndarray) -> None:
    check(all(0 <= row < len(cells) for row in found.labels), "a row that the table lacks")
    others = [row for row in range(len(cells)) if row not in found.labels]
    check(all(new[row] is cells[row] and not corrected[row] for row in others), "another row was changed")
    check(all(new[row] is not None for row in found.labels), "a label was lost")
    check(found.drawn <= found.labels.keys(), "a drawn row without a label")


def run(options: Run) -> None:
    options.each(example)
