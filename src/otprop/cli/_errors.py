"""What can go wrong in a command, and what a user is told of it."""

from __future__ import annotations

DONE, FAILED, USED_WRONGLY, INTERRUPTED = 0, 1, 2, 130


class UsageError(ValueError):
    """The command cannot be run as given; nothing was run."""
