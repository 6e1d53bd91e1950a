"""Options that a session keeps: the columns of groups and of votes, used again where a start names none."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from otprop.studio.source import Source


def with_kept_options(source: Source, session: Path, names: Sequence[str]) -> tuple[Source, list[str]]:
    """The source with the options that the session has and the request has not, and notes on them.

    Columns that the table no longer has are skipped.
    """
    kept, notes = _read(session), []
    more: dict[str, Any] = {}
    for option in ("groups", "votes"):
        columns = kept.get(option, [])
        if getattr(source.request, option) or not columns:
            continue
        here = [name for name in columns if name in names and name != source.request.target]
        if gone := [name for name in columns if name not in here]:
            notes.append(f"{option}: the session has {', '.join(gone)}, which is not a column any more")
        if here:
            more[option] = here[0] if option == "groups" else here
            notes.append(f"{option}: {', '.join(here)}, as the last time with this session")
    return replace(source, request=replace(source.request, **more)), notes


def _read(session: Path) -> dict[str, list[str]]:
    """The columns by option; none where the file is not a session, which is said when it is opened."""
    if not session.is_file():
        return {}
    try:
        with closing(sqlite3.connect(f"{session.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
            found = dict(connection.execute("SELECT key, value FROM meta WHERE key IN ('groups', 'votes')").fetchall())
        votes = json.loads(found.get("votes", "[]"))
    except (sqlite3.Error, ValueError, RecursionError):
        return {}
    groups = found.get("groups")
    if not isinstance(votes, list) or not all(isinstance(name, str) for name in votes):
        return {}
    return {"groups": [groups] if isinstance(groups, str) else [], "votes": votes}
