"""Sessions of the studio: changed files are refused in one sentence or work; files that are moved lose no label.

Three kinds of examples. In the first, values, the schema or bytes of a session file are changed: it is opened and used,
or refused, and the labels that can be read are rescued. In the second, the file is moved, copied, deleted, replaced or
overwritten between and during labels: each label that was said to be saved is in the file, or refused. In the third,
the process that labels is killed: each label that was said to be saved is there.
"""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

import numpy as np

from harness import Run, check, check_sentence, no_foreign_warning
from otprop.files import TableError
from otprop.studio.export import rescue_labels
from otprop.studio.session import Session
from otprop.studio.session_file import NotSavedError, SessionError
from otprop.studio.session_log import AS_IN_FILE, UNKNOWN

N_ROWS = 30
CLASSES = ("a", "b", "c")
TABLES = ("meta", "classes", "events", "changes", "curve", "renames", "carried")
JUNK = (
    *("NULL", "-1", "0", "1", "2", "3000000000", "9223372036854775807", "-9223372036854775808", "9e999", "-0.5", "0.1"),
    *("''", "'a'", "'nan'", "'1e999'", "x''", "x'ff00'", "CAST(x'ff' AS TEXT)", "'[]'", "'{}'", "'[1]'"),
    *(
        "'label'",
        "'undo'",
        "'redo'",
        "'file'",
        "'rename'",
        "'skip'",
        f"'{'[' * 5000}'",
        f"'{'9' * 5000}'",
        "zeroblob(99)",
    ),
)
SCHEMA = (
    "CREATE TRIGGER t BEFORE INSERT ON {0} BEGIN SELECT RAISE(IGNORE); END",
    "CREATE TRIGGER t AFTER INSERT ON {0} BEGIN DELETE FROM curve; END",
    "CREATE TABLE more (a)",
    "CREATE VIEW more AS SELECT * FROM {0}",
    "CREATE INDEX more ON {0} (1)",
    "DROP TABLE {0}",
    "ALTER TABLE {0} RENAME TO other",
    "ALTER TABLE {0} ADD COLUMN more TEXT",
    "ALTER TABLE {0} RENAME TO other; CREATE VIEW {0} AS SELECT * FROM other",
    "ALTER TABLE {0} RENAME TO other; CREATE VIEW {0} AS WITH RECURSIVE n(revision) AS "
    "(SELECT 1 UNION ALL SELECT revision + 1 FROM n) SELECT revision, revision AS row, 0 AS new, 0 AS new_drawn FROM n",
    "PRAGMA user_version = 0",
    "PRAGMA application_id = 1",
    "PRAGMA journal_mode = WAL",
)
Rng = np.random.Generator


@dataclass
class Lots:
    """The rows of a file with one column."""

    n_rows: int = N_ROWS
    name: str = "lots.csv"
    digest: str = "abc"

    @property
    def columns(self) -> list[str]:
        return ["lot"]

    def fingerprints(self, rows: Sequence[int] | None = None, columns: Sequence[str] | None = None) -> list[str]:
        return [f"lot {row}" for row in (range(self.n_rows) if rows is None else rows)]


def make(path: Path, rng: Rng) -> Session:
    """A session with some events of every kind."""
    session = Session(path, Lots(), "kind", CLASSES)
    number = session.add_class("paer")
    session.label([0], 1, request="a" * 32)
    actions: list[Callable[[], object]] = [
        lambda: session.label(rng.choice(N_ROWS, rng.integers(1, 9), replace=False), int(rng.integers(3))),
        lambda: session.label([int(rng.integers(N_ROWS))], UNKNOWN, "unknown"),
        lambda: session.skip(int(rng.integers(N_ROWS))),
        lambda: session.keep(int(rng.integers(N_ROWS))),
        session.undo,
        session.redo,
        lambda: session.rename(number, f"pear {session.revision}"),
        lambda: session.set_goal(0.1),
        lambda: session.set_keys({0: "1", 1: "2"}),
        lambda: session.add_curve_point(session.revision, session.revision, 0.2, 0.1, 0.3),
    ]
    for place in rng.integers(len(actions), size=12):
        actions[place]()
    if rng.random() < 0.3:  # the file has changed meanwhile; a session of which no row is left would be refused
        session.label([0], 1)
        session.close()
        return Session(path, Lots(N_ROWS - 5, digest="abd"), "kind", CLASSES)
    return session


def change_values(path: Path, rng: Rng) -> None:
    """Values, rows or the schema, as another program would change them."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for trigger in ("events_stay", "events_remain", "changes_stay", "changes_remain"):
            sql = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (trigger,)).fetchone()
            connection.execute(f"DROP TRIGGER IF EXISTS {trigger}")  # an earlier change may have dropped its table
            with suppress(sqlite3.Error, ValueError):  # what the file itself does not allow, or a table that is gone
                one_change(connection, rng)
            with suppress(sqlite3.Error):  # its table is gone
                connection.execute(*(sql or ("",)))


def one_change(connection: sqlite3.Connection, rng: Rng) -> None:
    table = str(rng.choice(TABLES))
    names = [str(row[1]) for row in connection.execute(f"PRAGMA table_info({table})")]
    name, junk, way = str(rng.choice(names)), JUNK[rng.integers(len(JUNK))], rng.integers(10)
    condition = f"{names[0]} = (SELECT {names[0]} FROM {table} ORDER BY random() LIMIT 1)"
    if way < 6:
        connection.execute(f'UPDATE {table} SET "{name}" = {junk} WHERE {condition}')
    elif way == 6:
        connection.execute(f"DELETE FROM {table} WHERE {condition}")
    elif way < 9:
        values = ", ".join(JUNK[place] for place in rng.integers(len(JUNK), size=len(names)))
        connection.execute(f"INSERT INTO {table} VALUES ({values})")
    else:
        connection.executescript(SCHEMA[rng.integers(len(SCHEMA))].format(table))


def change_bytes(path: Path, rng: Rng) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(rng.choice([1, 4, 40])):
        at = int(rng.integers(len(data)))
        part = rng.bytes(int(rng.choice([1, 4, 100])))
        data[at : at + len(part)] = part
    path.write_bytes(data[: rng.integers(len(data))] if rng.random() < 0.2 else data)


def changed_file(rng: Rng) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.otprop"
        make(path, rng).close()
        (change_values if rng.random() < 0.75 else change_bytes)(path, rng)
        try:
            session = Session(path, Lots(), "kind", CLASSES)
        except SessionError as error:
            check_sentence(str(error))
            try:
                rescue_labels(path, Path(folder) / "labels.csv")
            except TableError as problem:
                check_sentence(str(problem))
                return "refused, no label rescued"
            return "refused, labels rescued"
        try:
            use(session)
        finally:
            session.close()
        again = Session(path, Lots(), "kind", CLASSES)
        check(again.state[3] == 2, "a label that was saved is lost")
        again.close()
        return "opened"


def use(session: Session) -> None:
    """What the studio does with a session that it has opened."""
    check(len(session.state) == N_ROWS and session.state.max() < len(session.classes), "an impossible state")
    check(all(isinstance(name, str) for name in session.classes), "an impossible class")
    check(session.goal is None or 0 < session.goal < 1, "an impossible goal")
    check(np.isfinite(np.array(session.curve(), dtype=float)).all(), "an impossible curve")
    check(all(isinstance(event.time, str) for event in session.log()), "an impossible time")
    check(all(isinstance(key, str) for key in session.keys.values()), "an impossible key")
    with suppress(ValueError):  # the name of the class was taken meanwhile
        while session.undo() is not None:
            pass
    if session.label([3], 2) is None:
        check(session.state[3] == 2, "a label was not made")


def moved_file(rng: Rng) -> str:
    """Label on while the file is taken away."""
    with tempfile.TemporaryDirectory() as folder:
        path, taken = Path(folder) / "s.otprop", Path(folder) / "taken.otprop"
        session = Session(path, Lots(), "kind", CLASSES)
        before, way = label_some(session, rng), str(rng.choice(["move", "copy", "delete", "replace", "overwrite"]))
        check(not before[1], "a label was refused")
        older = path.read_bytes()
        label_some(session, rng)
        known = session.state.copy()
        thread = Thread(target=take, args=(way, path, taken, older))
        thread.start()
        if rng.random() < 0.5:
            thread.join()
        during = label_some(session, rng)
        thread.join()
        after = label_some(session, rng)
        check(way == "copy" or after[1], f"labels are said to be saved after the file was gone: {way}")
        check(way != "copy" or not after[1], "labels are refused, and the file is there")
        said = session.state.copy()
        session.close()
        if way == "copy":
            check(np.array_equal(states(path), said), "labels that were saved are lost")
            check_copy(taken, known)
        elif way == "move":
            found = states(taken)
            check(((found == said) | (said == AS_IN_FILE)).all(), "labels that were saved are not in the moved file")
        return f"{way}: {'all saved' if not during[1] + after[1] else 'refused in time'}"


def killed_writer(rng: Rng) -> str:
    """Label in another process, kill it at some moment, and look for all labels that it said were saved."""
    with tempfile.TemporaryDirectory() as folder:
        path, known = Path(folder) / "s.otprop", dict[int, int]()
        for _ in range(rng.integers(1, 4)):
            for row, code, done in killed_once(path, rng):
                known.pop(row, None)  # a label that was being saved may be there or not
                if done:
                    known[row] = code
            session = Session(path, Lots(), "kind", CLASSES)
            lost = [row for row, code in known.items() if session.state[row] != code]
            session.close()
            check(not lost, f"rows {lost} were said to be saved and are lost")
        return "killed, all saved" if known else "killed before a label"


def killed_once(path: Path, rng: Rng) -> list[list[int]]:
    """What a process had said when it was killed: row, class, and whether it is saved."""
    ends, seed = os.pipe(), rng.integers(2**31)
    child = os.fork()
    if child == 0:
        try:
            write_labels(path, ends[1], np.random.default_rng(seed))
        finally:
            os._exit(1)
    os.close(ends[1])
    with open(ends[0], "rb") as said:
        first = said.read(3) if rng.random() < 0.9 else b""  # some are killed while they open the file
        time.sleep(rng.uniform(0, 0.3))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return [list(word) for word in np.frombuffer(first + said.read(), dtype=np.uint8).reshape(-1, 3).tolist()]


def write_labels(path: Path, said: int, rng: Rng) -> None:
    """Label rows without an end; say so before and after each one."""
    session = Session(path, Lots(), "kind", CLASSES)
    while True:
        row, code = int(rng.integers(N_ROWS)), int(rng.integers(len(CLASSES)))
        os.write(said, bytes([row, code, 0]))
        session.label([row], code)
        os.write(said, bytes([row, code, 1]))


def label_some(session: Session, rng: Rng) -> tuple[int, int]:
    """Label some rows that have no label; how many were saved, how many refused."""
    saved = refused = 0
    for row in rng.permutation(np.flatnonzero(session.state == AS_IN_FILE))[:5]:
        try:
            saved += session.label([int(row)], int(rng.integers(3))) is not None
        except NotSavedError as error:
            check_sentence(str(error))
            refused += 1
    return saved, refused


def take(way: str, path: Path, taken: Path, older: bytes) -> None:
    if way == "move":
        path.rename(taken)
    elif way == "copy":
        shutil.copy(path, taken)
    elif way == "delete":
        path.unlink()
    elif way == "replace":
        taken.write_bytes(older)
        taken.replace(path)
    else:
        path.write_bytes(b"row,label\n" * 1000)


def states(path: Path) -> np.ndarray:
    session = Session(path, Lots(), "kind", CLASSES)
    session.close()
    return session.state


def check_copy(path: Path, known: np.ndarray) -> None:
    """A copy has every label that was saved before it was made; one that was made during a commit may be refused."""
    try:
        found = states(path)
    except SessionError as error:
        check_sentence(str(error))
        return
    check(((found == known) | (known == AS_IN_FILE)).all(), "labels that were saved are not in the copy")


def example(rng: Rng) -> str:
    with no_foreign_warning():
        way = rng.random()
        return changed_file(rng) if way < 0.5 else moved_file(rng) if way < 0.7 else killed_writer(rng)


def run(options: Run) -> None:
    options.each(example)
