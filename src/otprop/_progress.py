"""Progress of long work as a callback, and its bar in a notebook, without a further package."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from time import monotonic
from typing import Any

from otprop._errors import OtpropError

ProgressCallback = Callable[[float, float, str], None]  # work done, work in all (0: not known yet), the current step
# share of the time of a class-level fit when neighbours and sources are done, the rounds being the rest: about so from
# 4 000 to 20 000 rows; with hundreds of classes the rounds take a third
NEIGHBOURS_DONE, SOURCES_DONE = 0.3, 0.9
SECONDS_BETWEEN = 0.2
_BAR = (
    '<div style="display:flex;gap:0.6em;align-items:center;font-size:90%">'
    '<progress max="1" {value} style="width:16em"></progress><span>{step}</span></div>'
)


class FitCancelledError(OtpropError, RuntimeError):
    """A fit was cancelled from another thread; the estimator is not fitted.

    Examples
    --------
    >>> from otprop import OTP, FitCancelledError
    >>> model = OTP()
    >>> _ = model.set_progress(lambda done, total, step: model.cancel())  # as another thread would
    >>> try:
    ...     model.fit([[0.0], [0.2], [1.0], [1.2]], ["left", None, "right", None])
    ... except FitCancelledError:
    ...     print("cancelled")
    cancelled
    """


def no_progress(done: float, total: float, step: str) -> None:
    """A callback that shows nothing."""


def part_of(progress: ProgressCallback, first: float, last: float) -> ProgressCallback:
    """A callback for one step of a longer work of 1 in all, of which this step is from `first` to `last`."""

    def report(done: float, total: float, step: str) -> None:
        progress(first + (last - first) * (done / total if total else 0.0), 1.0, step)

    return report


@contextmanager
def shown_progress(progress: ProgressCallback | None) -> Iterator[ProgressCallback]:
    """The callback that was given; where none was, a bar in a notebook and nothing elsewhere."""
    if progress is not None and not callable(progress):
        from otprop._validation import ParameterError  # imports NumPy, which `--help` does not need

        why = f"must be None or a function of the work done, the work in all and the step; got {progress!r}."
        raise ParameterError("progress", why)
    show = None if progress is not None else _notebook_display()
    if show is None:
        yield progress or no_progress
        return
    update, last = show("starting"), [-SECONDS_BETWEEN]

    def report(done: float, total: float, step: str) -> None:
        if monotonic() - last[0] >= SECONDS_BETWEEN:
            last[0] = monotonic()
            update(bar_html(done, total, step))

    try:
        yield report
    finally:
        update("")


def bar_html(done: float, total: float, step: str) -> str:
    """A bar as HTML; if the total work is unknown, it only shows that work is under way."""
    value = f'value="{min(1.0, done / total):.3f}"' if total else ""
    return _BAR.format(value=value, step=escape(step))


def _notebook_display() -> Callable[[str], Callable[[str], None]] | None:
    """What shows HTML in the running cell and returns how to replace it; None outside of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if getattr(shell, "kernel", None) is None:  # a terminal has no kernel
        return None
    from IPython.display import HTML, display  # type: ignore[import-not-found]

    def show(step: str) -> Callable[[str], None]:
        handle: Any = display(HTML(bar_html(0, 0, step)), display_id=True)
        return lambda html: handle.update(HTML(html))

    return show
