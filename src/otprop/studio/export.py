"""What a person takes away: the table as `otprop label` writes it, the page, the model, labels of a damaged session."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from otprop._label_result import LabelResult
from otprop.files import write_arrow
from otprop.labelling.corrections import DIGEST, LABEL, RANDOM, REASON, ROW
from otprop.labelling.outcome import RowLabels
from otprop.labelling.output_columns import OutputColumns, free_prefix
from otprop.studio.propagator import Labels, Propagator, class_ids, class_values
from otprop.studio.session_check import MAX_CLASS_IDS
from otprop.studio.session_file import SessionError
from otprop.studio.session_log import FILE
from otprop.studio.source import MAX_ROWS, Source
from otprop.table.target import Target

try:
    import fcntl
except ImportError:  # Windows, where no folder can be locked
    fcntl = None  # type: ignore[assignment]

PREFIX = "otprop-studio-"  # of the folder of exported files
SPREADSHEET = "spreadsheet"  # CSV in which no cell starts a formula, as with `otprop label --excel-safe`
FORMATS = {
    **{"csv": "labelled.csv", SPREADSHEET: "spreadsheet.csv", "parquet": "labelled.parquet"},
    **{"report": "report.html", "model": "model"},
}
MADE_HERE = "labels"  # the format that needs no propagation
_MOST_STEPS = 2_000  # of a million instructions of SQLite: a hostile table must not be read for ever
CHOSEN = "chosen"  # the reason of a row that was not drawn


def export(propagator: Propagator, labels: Labels, what: str, folder: Path) -> str:
    """Write a file into the folder; its name."""
    name = _name(propagator.source, FORMATS[what])
    path = folder / name
    if propagator.fitted is None:
        _write_labels(propagator, labels, what, path)
        return name
    result = _result(propagator)
    if what == "report":
        result.report(path, force=True)
    elif what == "model":
        result.save(path, force=True)
    else:
        result.write(path, force=True, excel_safe=what == SPREADSHEET)
    return name


def _result(propagator: Propagator) -> LabelResult:
    """The last run as `otprop.label` returns it."""
    assert propagator.fitted is not None
    job, outcome, _ = propagator.fitted
    call = f"otprop studio {Path(propagator.source.path).name} --target {job.request.target}"
    return LabelResult(replace(job, output=_columns(propagator), call=call), outcome)


def _columns(propagator: Propagator) -> OutputColumns:
    """The columns that are added, under names that the table does not have."""
    names, target = propagator.base.table.names, propagator.base.request.target
    taken = any(name.startswith(f"{target}_") for name in names)
    return OutputColumns(prefix=free_prefix(names, target) if taken else None)


def export_made_here(source: Source, target: Target, labels: Labels, digest: str, folder: Path) -> str:
    """Write the labels made here, as `otprop label --corrections` reads them; the name of the file.

    Needs no propagation, so that labels can be exported even if it fails.
    """
    if source.sample is not None:
        raise ValueError("the rows are a sample, whose numbers otprop label does not know: export the model instead.")
    rows = np.flatnonzero(labels.state >= 0)
    if not len(rows):
        raise ValueError("no row was labelled here yet.")
    codes = class_ids(target, labels)
    names = [labels.classes[number] for number in np.unique(codes[codes >= 0])]
    values = dict(zip(names, class_values(names, dict(zip(target.classes, target.values, strict=True))), strict=True))
    texts = [str(values[labels.classes[number]]) for number in labels.state[rows]]
    name = _name(source, "labels.csv")
    write_made_here(rows.tolist(), texts, labels.drawn[rows].tolist(), digest, folder / name)
    return name


def write_made_here(
    rows: Sequence[int], labels: Sequence[str], drawn: Sequence[bool], digest: str, path: Path, *, force: bool = True
) -> None:
    """Write labels as `otprop label --corrections` reads them."""
    import pyarrow as pa  # optional, and slow to import

    columns = {
        ROW: [row + 1 for row in rows],
        LABEL: list(labels),
        REASON: [RANDOM if one else CHOSEN for one in drawn],
        DIGEST: [digest] * len(rows),
    }
    write_arrow(pa.table(columns), path, force=force)


def _name(source: Source, ending: str) -> str:
    return f"{Path(source.path).name.split('.')[0]}.{ending}"


def _write_labels(propagator: Propagator, labels: Labels, what: str, path: Path) -> None:
    """The table where nothing could be propagated: the labels there are."""
    if what not in ("csv", SPREADSHEET, "parquet"):
        raise ValueError("labels of two classes are needed first: there is no propagation to write yet.")
    job, _ = propagator.job(labels)
    found = RowLabels(codes=job.target.codes, given=job.target.given, corrected=job.corrected)
    columns, _ = replace(job, output=_columns(propagator)).added(found)
    job.table.write(path, columns, force=True, excel_safe=what == SPREADSHEET)


class ExportFolder:
    """A folder that is deleted by `close`, or by the next studio where this process is killed.

    It is locked as long as the process lives, which is how others know that it is in use.
    """

    def __init__(self) -> None:
        remove_left_folders()
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
            self._lock = _locked(self.path)
            if fcntl is None or self._lock is not None:  # else another studio took it for one that was left
                return

    def close(self) -> None:
        """Delete the folder."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def remove_left_folders() -> None:
    """Delete the folders of this user whose studio is gone."""
    if fcntl is None:
        return
    with suppress(OSError):
        for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
            lock = _locked(path)
            if lock is not None:
                shutil.rmtree(path, ignore_errors=True)
                os.close(lock)


def _locked(path: Path) -> int | None:
    """The descriptor of a folder of this user that is locked now; None where it is in use, or no such folder."""
    if fcntl is None:
        return None
    try:
        number = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        found = os.fstat(number)
        if found.st_uid == os.getuid() and stat.S_ISDIR(found.st_mode):
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(found, os.lstat(path)):
                return number
    except OSError:
        pass
    os.close(number)
    return None


def rescue_labels(path: Path, out: Path) -> int:
    """Write the labels of the session file at `path` that can be read, as the studio exports them; how many.

    `out` must not exist yet. The session file is left alone.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "session"
        try:
            shutil.copyfile(path, copy)  # SQLite changes a file while it opens it
            for ending in ("-journal", "-wal"):
                with suppress(FileNotFoundError):
                    shutil.copyfile(f"{path}{ending}", f"{copy}{ending}")
        except OSError as error:
            raise SessionError(f"cannot read the session file {path} ({error.strerror})") from error
        with closing(sqlite3.connect(copy)) as connection:
            labels, digest = _read_labels(connection)
    if not labels:
        raise SessionError(f"no label can be read from {path}", "")
    rows = sorted(labels)
    write_made_here(rows, [labels[row][0] for row in rows], [labels[row][1] for row in rows], digest, out, force=False)
    return len(rows)


def _read_labels(connection: sqlite3.Connection) -> tuple[dict[int, tuple[str, bool]], str]:
    """The label of each row and whether it was drawn at random, and the digest of the file that they are of."""
    steps = iter(range(_MOST_STEPS))
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    connection.set_progress_handler(lambda: next(steps, None) is None, 1_000_000)
    with suppress(sqlite3.Error, UnicodeDecodeError):
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")
    classes = _rows(connection, "SELECT id, name FROM classes")
    names = {number: name for number, name in classes if isinstance(name, str) and name}
    events = _rows(connection, "SELECT revision, kind FROM events")
    files = [revision for revision, kind in events if isinstance(revision, int) and kind == FILE]
    last = max(files, default=0)  # what came before is of another file
    changes: dict[tuple[int, int], tuple[Any, Any]] = {}
    for order in ("ASC", "DESC"):  # from both sides of a page that is damaged
        query = f"SELECT revision, row, new, new_drawn FROM changes ORDER BY revision {order}, row {order}"
        for revision, row, new, drawn in _rows(connection, query):
            if isinstance(revision, int) and revision >= last and isinstance(row, int) and 0 <= row < MAX_ROWS:
                changes[revision, row] = new, drawn
    states = {row: changes[revision, row] for revision, row in sorted(changes)}
    labels = {
        row: (names[new], drawn == 1)
        for row, (new, drawn) in states.items()
        if isinstance(new, int) and 0 <= new < MAX_CLASS_IDS and new in names
    }
    digest = dict(_rows(connection, "SELECT key, value FROM meta WHERE typeof(key) = 'text'")).get("digest")
    return labels, digest if isinstance(digest, str) else ""


def _rows(connection: sqlite3.Connection, query: str) -> Iterator[tuple[Any, ...]]:
    """The rows of a query until one cannot be read."""
    with suppress(sqlite3.Error, UnicodeDecodeError, OverflowError, MemoryError):
        yield from connection.execute(query)
