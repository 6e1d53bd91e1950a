"""Progress of long work as a callback."""

from __future__ import annotations

from collections.abc import Callable

from otprop._errors import OtpropError

ProgressCallback = Callable[[float, float, str], None]  # work done, work in all (0: not known yet), the current step


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
