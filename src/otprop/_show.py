"""What long work calls to say how far it is."""

from __future__ import annotations

from collections.abc import Callable

Show = Callable[[float, float, str], None]  # work done, work in all (0: not known yet), what is going on
