"""How far a fit is: its rounds, and before them what the estimator says in the log."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from otprop._progress import ProgressCallback
from otprop.propagation.rounds import Round


class Progress(logging.Handler):
    """Shows what the estimator logs and each round; warnings are kept.

    Parameters
    ----------
    show : callable, told how far it is
    n_left : int, how many rows are to be labelled

    Attributes
    ----------
    warned : list of str, what was logged as a warning
    """

    def __init__(self, show: ProgressCallback, n_left: int) -> None:
        super().__init__(logging.DEBUG)
        self._show, self._n_left, self._done = show, n_left, 0
        self.warned: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Show a line of the log."""
        if record.levelno >= logging.WARNING:
            self.warned.append(record.getMessage())
        elif self._done == 0:
            self._show(0, self._n_left, record.getMessage())

    def count(self, round_: Round) -> bool:
        """Show a round; a callback of the estimator.

        Parameters
        ----------
        round_ : Round

        Returns
        -------
        bool, False: the rounds go on
        """
        self._done += len(round_.rows)
        self._show(self._done, self._n_left, f"round {round_.number}, {self._done} of {self._n_left} rows")
        return False


@contextmanager
def follow_log(show: ProgressCallback, n_left: int) -> Iterator[Progress]:
    """Follow the log of the package for a while.

    Parameters
    ----------
    show : callable
    n_left : int, how many rows are to be labelled

    Yields
    ------
    Progress
    """
    logger = logging.getLogger("otprop")
    level, progress = logger.level, Progress(show, n_left)
    logger.addHandler(progress)
    logger.setLevel(logging.DEBUG)
    try:
        yield progress
    finally:
        logger.removeHandler(progress)
        logger.setLevel(level)
