"""The command `otprop`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from otprop.cli._streams import Terminated, replace_closed_streams, signals_raise

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    arguments : sequence of str, optional
        Default: those of the process.

    Returns
    -------
    int
        0 done, 1 failed, 2 used wrongly (nothing was run), 130 interrupted, 141 the reader of the output left early,
        143 terminated.
    """
    try:
        with signals_raise():
            replace_closed_streams()
            from otprop.cli._command import run_command  # takes a second, in which a user may change their mind

            return run_command(arguments)
    except KeyboardInterrupt as error:
        terminated = isinstance(error, Terminated)
        sys.stderr.write(f"otprop: {'terminated' if terminated else 'interrupted'}.\n")
        return 143 if terminated else 130
