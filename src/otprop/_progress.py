"""Progress of long work as a callback, and the rounds of a fit in the log."""

from __future__ import annotations

import logging
from collections.abc import Callable

from otprop.propagation.rounds import Round

logger = logging.getLogger("otprop")

ProgressCallback = Callable[[float, float, str], None]  # work done, work in all (0: not known yet), the current step


def no_progress(done: float, total: float, step: str) -> None:
    """A callback that shows nothing."""


def log_round(round_: Round, level: int) -> None:
    """Write one line on a round to the log."""
    logger.log(
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
