"""Charts as data."""

from __future__ import annotations

from otprop.report.charts import ticks


def test_ticks_cover_the_range_with_round_numbers() -> None:
    for low, high in ((0.0, 1.0), (0.313, 0.317), (-0.2, 0.9), (12.0, 9000.0)):
        marks = ticks(low, high)
        assert marks[0] <= low
        assert marks[-1] >= high
        assert 2 <= len(marks) <= 9
