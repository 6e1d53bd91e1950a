"""How far it is and how long it will take: a bar on a terminal, nothing elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from otprop._progress import ProgressCallback


@contextmanager
def bar(quiet: bool = False) -> Iterator[ProgressCallback]:
    """A function to call with the work done, the work in all (0: not known yet) and what is going on.

    Parameters
    ----------
    quiet : bool, show nothing

    Yields
    ------
    callable
    """
    if quiet or not sys.stderr.isatty():
        yield lambda done, total, what: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description:<32.32}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), speed_estimate_period=600) as progress:
        task = progress.add_task("starting", total=None)

        def show(done: float, total: float, what: str) -> None:
            progress.update(task, completed=done, total=total or None, description=what or "starting")

        yield show
