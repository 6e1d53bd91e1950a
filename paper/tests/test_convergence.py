"""The solver on the paper's data sets: the first rounds of each, at both ends of the range of epsilon."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import train_test_split
from sklearn.neighbors import NearestNeighbors

from otprop import PaperOTP
from otprop_paper import datasets

SETS = ("iris", "heart", "ionosphere", "dermatology", "waveform", "digits")


@pytest.mark.data
@pytest.mark.parametrize("factor", [0.01, 10.0])
@pytest.mark.parametrize("name", SETS)
def test_every_round_converges(name, factor):
    data = datasets.load(name)
    distances, _ = NearestNeighbors(n_neighbors=2).fit(data.X).kneighbors(data.X)
    epsilon = factor * float(np.median(distances[:, 1] ** 2))
    labelled, _ = train_test_split(np.arange(len(data.y)), train_size=0.05, stratify=data.y, random_state=0)
    y = np.full(len(data.y), -1)
    y[labelled] = data.y[labelled]
    model = PaperOTP(epsilon=epsilon).set_params(callback=lambda round_: round_.number >= 5).fit(data.X, y)
    assert all(round_.converged for round_ in model.rounds_)
    assert max(max(round_.source_error, round_.target_error) for round_ in model.rounds_) <= 1e-6
