"""Checks of every value in a session file, once at opening: a file may come from anywhere."""

from __future__ import annotations

import json
import math
import sqlite3
from collections import deque
from typing import Any

from otprop.studio.source import MAX_ROWS

MAX_CLASS_IDS = 65_535  # of them, one is kept for rows without a class
_NEEDED = ("target", "made", "id", "file", "digest", "n_rows", "columns")
_OPTIONAL = ("goal", "keys", "groups", "votes", "secret")  # secret: of version 0.2
_STATE = "typeof({0}) = 'integer' AND {0} >= -3 AND {0} < (SELECT count(*) FROM classes)"
_FLAG = "typeof({0}) = 'integer' AND {0} IN (0, 1)"
_ROW = f"typeof(row) = 'integer' AND row >= 0 AND row < {MAX_ROWS}"
_REVISION = "typeof({0}) = 'integer' AND {0} BETWEEN 1 AND (SELECT count(*) FROM events)"
_TEXT = "typeof({0}) = 'text'"
_SHARE = "(typeof({0}) = 'real' AND abs({0}) <= 2)"
_KINDS = "kind IN ('label', 'accept', 'remove', 'unknown', 'skip', 'keep', 'rename', 'undo', 'redo', 'file')"
# what must hold in every row of a table
_RULES = {
    "meta": [_TEXT.format("key"), _TEXT.format("value")],
    "classes": [
        "id BETWEEN 0 AND (SELECT count(*) FROM classes) - 1",
        f"id < {MAX_CLASS_IDS}",
        _TEXT.format("name"),
        "length(name) > 0",
        _TEXT.format("time"),
    ],
    "events": [
        "revision BETWEEN 1 AND (SELECT count(*) FROM events)",
        _KINDS,
        _TEXT.format("time"),
        "length(time) <= 40",
        "undone IS NULL OR (typeof(undone) = 'integer' AND undone BETWEEN 1 AND revision - 1)",
        "request IS NULL OR (typeof(request) = 'text' AND length(request) = 32)",
    ],
    "changes": [
        _REVISION.format("revision"),
        _ROW,
        *(_STATE.format(name) for name in ("old", "new")),
        *(_FLAG.format(name) for name in ("old_drawn", "new_drawn")),
        _TEXT.format("fingerprint"),
    ],
    "curve": [
        "revision >= 0",
        f"typeof(labels) = 'integer' AND labels BETWEEN 0 AND {MAX_ROWS}",
        *(_SHARE.format(name) for name in ("error", "low", "high")),
    ],
    "renames": [
        _REVISION.format("revision"),
        "typeof(class) = 'integer' AND class BETWEEN 0 AND (SELECT count(*) FROM classes) - 1",
        *(_TEXT.format(name) for name in ('"old"', '"new"')),
    ],
    "carried": [
        _REVISION.format("revision"),
        _FLAG.format("is_here"),
        _ROW,
        _STATE.format("state"),
        _FLAG.format("drawn"),
        "mark IN ('', 'skip', 'keep')",
        *(_TEXT.format(name) for name in ("fingerprint", '"columns"')),
    ],
}
_TEXTS = {
    "meta": "key, value",
    "classes": "name, time",
    "events": "time, request",
    "changes": "fingerprint",
    "renames": '"old", "new"',
    "carried": 'fingerprint, "columns"',
}


def check_values(connection: sqlite3.Connection) -> None:
    """Raise a ValueError where the file holds a value that the studio does not write."""
    for table, rules in _RULES.items():
        whole = " AND ".join(f"({rule})" for rule in rules)
        (n_wrong,) = connection.execute(f"SELECT count(*) FROM {table} WHERE NOT ifnull({whole}, 0)").fetchone()
        if n_wrong:
            raise ValueError(f"impossible values in {table}: {n_wrong}")
    for table, texts in _TEXTS.items():
        deque(connection.execute(f"SELECT {texts} FROM {table}"), maxlen=0)  # fails where text is not UTF-8
    _check_meta(dict(connection.execute("SELECT key, value FROM meta").fetchall()))
    for (columns,) in connection.execute("SELECT DISTINCT columns FROM carried").fetchall():
        _check_columns(columns)


def _check_meta(meta: dict[str, str]) -> None:
    missing, foreign = set(_NEEDED) - set(meta), set(meta) - {*_NEEDED, *_OPTIONAL}
    if missing or foreign:
        raise ValueError(f"missing or unknown entries: {', '.join(sorted(missing | foreign))[:100]}")
    n_rows = meta["n_rows"]
    if not (n_rows.isdecimal() and n_rows.isascii() and len(n_rows) < 10 and int(n_rows) <= MAX_ROWS):
        raise ValueError(f"impossible number of rows: {n_rows[:20]}")
    if "goal" in meta and not _is_share(meta["goal"]):
        raise ValueError(f"impossible goal: {meta['goal'][:20]}")
    _check_columns(meta["columns"])
    _check_columns(meta.get("votes", "[]"))
    keys = _json(meta.get("keys", "{}"), "keys")
    if not isinstance(keys, dict) or not all(_is_key(number, key) for number, key in keys.items()):
        raise ValueError("impossible keys of classes")


def _is_share(text: str) -> bool:
    try:
        value = float(text)
    except ValueError:
        return False
    return math.isfinite(value) and 0 < value < 1


def _is_key(number: str, key: Any) -> bool:
    is_id = number.isdecimal() and number.isascii() and len(number) < 6
    return is_id and isinstance(key, str) and len(key) == 1


def _check_columns(text: str) -> None:
    columns = _json(text, "columns")
    if not isinstance(columns, list) or not all(isinstance(name, str) for name in columns):
        raise ValueError("impossible names of columns")


def _json(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{what} cannot be read") from error
