"""Pictures of a fit."""

from __future__ import annotations

import pytest
from sklearn.datasets import load_iris

from otprop import PaperOTP
from otprop.plotting import plot_rounds
from tests.estimators import geometry


@pytest.mark.parametrize("way", [geometry, PaperOTP])
def test_plot_rounds_draws_a_panel_for_each_round(tmp_path, way):
    X, y = load_iris(return_X_y=True)
    y[::2] = -1
    model = way().fit(X, y)
    figure = plot_rounds(model, X)
    panels = [axis for axis in figure.axes if axis.get_visible()]
    assert panels[0].get_title() == "given labels"
    assert panels[-1].get_title() == f"round {len(model.rounds_)}: 75 of 75 labelled"
    figure.savefig(tmp_path / "rounds.png")
    assert (tmp_path / "rounds.png").stat().st_size > 10_000
    with pytest.raises(ValueError, match="X has 10 rows, but the model was fitted on 150"):
        plot_rounds(model, X[:10])
