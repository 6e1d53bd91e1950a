"""Pictures of a result, and how it shows itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import otprop
from otprop._validation import ParameterError
from tests.test_label import FAST, mixed_frame

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


def test_a_result_prints_in_one_line_with_its_error_and_classes(result: Any) -> None:
    text = repr(result)
    assert text.startswith("<LabelResult of 'kind': 12 labels given, 78 rows labelled; expected error ")
    assert "\n" not in text
    assert text.count(" a ") == 1


def test_a_notebook_shows_the_error_the_classes_and_a_map(result: Any) -> None:
    html = result._repr_html_()
    assert f"expected error {result.expected_error:.1%}" in html
    assert "<th>a</th>" in html
    assert html.count("<circle") == 90


def test_explain_gives_the_sources_and_the_result_of_a_row(result: Any) -> None:
    found = result.explain(40)
    assert found.columns.tolist() == ["weight", "a", "b", "c"]
    assert found.index[-1] == "together"
    assert len(found) > 1
    np.testing.assert_allclose(found[["a", "b", "c"]].sum(axis=1), 1.0)
    np.testing.assert_allclose(found.loc["together", ["a", "b", "c"]].astype(float), result.outcome.distributions[40])
    with pytest.raises(ParameterError, match="row='x': no such entry in the index"):
        result.explain("x")


def test_nearest_gives_labelled_rows_by_their_distance(result: Any) -> None:
    found = result.nearest(40)
    assert found["distance"].is_monotonic_increasing
    assert (result.table.loc[found.index, "kind_source"] == "given").all()
    assert found["label"].tolist() == result.table.loc[found.index, "kind"].tolist()
