"""The command `otprop`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from otprop.cli._streams import mend_streams

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
        0 done, 1 failed, 2 used wrongly (nothing was run), 130 interrupted, 141 the reader of the output left early.
    """
    try:
        mend_streams()
        from otprop.cli._main import run_command  # takes a second, in which a user may change their mind

        return run_command(arguments)
    except KeyboardInterrupt:
        sys.stderr.write("otprop: interrupted.\n")
        return 130
