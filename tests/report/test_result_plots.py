"""Pictures of a result."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import otprop
from otprop._validation import ParameterError
from tests.frames import FAST, mixed_frame

pytest.importorskip("pandas")
pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def result() -> Any:
    return otprop.label(mixed_frame(), "kind", settings=FAST)


def test_the_map_draws_every_row_once(result: Any) -> None:
    ax = result.plot()
    assert sum(len(points.get_offsets()) for points in ax.collections) == 90
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b", "c"]


def test_the_coverage_is_that_of_the_result(result: Any) -> None:
    line = result.plot("coverage").get_lines()[0]
    expected = result.coverage().sort_values("share")
    np.testing.assert_allclose(line.get_ydata(), expected["expected_error"])


def test_the_calibration_counts_the_held_out_labels(result: Any) -> None:
    ax = result.plot("calibration")
    assert ax.get_title() == f"{len(result.estimator.held_out_rows_)} held-out labels"


def test_a_plot_goes_on_given_axes_or_is_refused_by_name(result: Any) -> None:
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    assert result.plot("coverage", ax=ax) is ax
    with pytest.raises(ParameterError, match="kind must be one of 'map', 'coverage', 'calibration'; got 'pie'"):
        result.plot("pie")
    with pytest.raises(ParameterError, match="method 'otp-paper' does not estimate its error; plot kind='map'"):
        otprop.label(mixed_frame(), "kind", method="otp-paper").plot("coverage")
