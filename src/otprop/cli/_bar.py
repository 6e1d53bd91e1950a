"""A progress bar on a terminal, nothing elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from otprop.cli._streams import printable

if TYPE_CHECKING:
    from otprop._progress import ProgressCallback


@contextmanager
def bar(quiet: bool = False) -> Iterator[ProgressCallback]:
    """Yield a progress callback; it shows nothing if `quiet`, or if standard error is not a terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda done, total, step: None
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
        TextColumn("{task.description:<32.32}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), speed_estimate_period=600) as progress:
        task = progress.add_task("starting", total=None)

        def show(done: float, total: float, step: str) -> None:
            progress.update(task, completed=done, total=total or None, description=printable(step) or "starting")

        yield show
