"""Showing the rounds as they happen: a bar on a terminal or in a notebook, the log elsewhere, never plain print."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from otprop._rounds import Round

if TYPE_CHECKING:
    from rich.console import Console

logger = logging.getLogger("otprop")


class Show(Protocol):
    def __call__(self, round_: Round) -> None: ...


def _console() -> Console | None:
    """A terminal or a notebook to draw on, if there is one."""
    from rich.console import Console

    console = Console(stderr=True)
    return console if console.is_terminal or console.is_jupyter else None


@contextmanager
def progress(n_rows: int, verbose: int | bool) -> Iterator[Show]:
    """A function to call after every round; `n_rows` are to be labelled in all."""
    console = _console() if verbose else None
    if console is not None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("labelling"),
            BarColumn(),
            TextColumn("{task.completed}/{task.total} rows, round {task.fields[round]}"),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=console) as bar:
            task = bar.add_task("", total=n_rows, round=0)
            yield lambda round_: bar.update(task, advance=len(round_.rows), round=round_.number)
    else:
        level = logging.INFO if verbose else logging.DEBUG
        yield lambda round_: logger.log(
            level,
            "round %d: %d of %d rows labelled, of certainty %.4f and more, %d iterations to error %.1e in %.3f s",
            round_.number,
            len(round_.rows),
            round_.n_unlabeled,
            round_.threshold,
            round_.iterations,
            round_.source_error,
            round_.seconds,
        )
