"""Progress of long work as a callback."""

from __future__ import annotations

from collections.abc import Callable

from otprop._errors import OtpropError

ProgressCallback = Callable[[float, float, str], None]  # work done, work in all (0: not known yet), the current step
# share of the time of a class-level fit when neighbours and sources are done, the rounds being the rest: about so from
# 4 000 to 20 000 rows; with hundreds of classes the rounds take a third
NEIGHBOURS_DONE, SOURCES_DONE = 0.3, 0.9


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
