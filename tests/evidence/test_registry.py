"""The registry of sources: one entry is all that the rest of the package asks for."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from otprop import OTP
from otprop._saving import saved_class
from otprop.evidence.base import NamedSource
from otprop.evidence.combined import start_weights
from otprop.evidence.linear import LinearSource
from otprop.evidence.registry import NAMED_SOURCES
from otprop.evidence.scaling import ScaledRows

X = np.random.default_rng(0).normal(size=(60, 2))
Y = np.where(np.arange(60) < 24, (X[:, 0] > 0).astype(int), -1)


@pytest.mark.parametrize("name", NAMED_SOURCES)
def test_a_registered_source_has_its_name_and_can_be_saved(name):
    source = NAMED_SOURCES[name].make(ScaledRows.of(X), 2, 0, 1)
    assert source.name == name
    assert saved_class(type(source)) is not None


@pytest.mark.parametrize("name", NAMED_SOURCES)
def test_sparse_rows_are_taken_or_refused_as_the_entry_says(name):
    model = OTP(evidence=[name])
    if NAMED_SOURCES[name].takes_sparse:
        assert [one.name for one in model.fit(sp.csr_array(X), Y).evidence_] == ["diffusion", name]
    else:
        with pytest.raises(ValueError, match=f"evidence names '{name}', which does not accept sparse rows"):
            model.fit(sp.csr_array(X), Y)


@pytest.mark.parametrize(
    ("n_labels", "n_classes", "rows", "names"),
    [
        (6, 2, np.empty((100, 4)), ["forest", "linear", "gaussian"]),
        (30, 2, np.empty((100, 4)), ["forest", "linear", "gaussian"]),
        (60, 2, np.empty((100, 4)), ["random_forest", "linear", "gaussian"]),
        (160, 2, np.empty((200, 4)), ["random_forest", "linear", "boosting", "gaussian"]),
        (60, 2, sp.csr_array((100, 4)), ["random_forest", "linear"]),
        (500, 101, np.empty((1000, 4)), ["linear"]),
        (60, 2, np.empty((30_001, 1)), ["random_forest", "linear"]),
    ],
)
def test_the_default_uses_what_pays(n_labels, n_classes, rows, names):
    assert [name for name, source in NAMED_SOURCES.items() if source.pays(n_labels, n_classes, rows)] == names


def test_an_entry_is_all_that_a_new_source_needs(monkeypatch):
    class Other(LinearSource):
        def __init__(self, *parameters):
            super().__init__(*parameters)
            self.name = "other"

    entry = NamedSource("other", lambda rows, k, seed, jobs: Other(rows, k, seed), 0.3, lambda n, k, X: True)
    monkeypatch.setitem(NAMED_SOURCES, "other", entry)
    assert [one.name for one in OTP(evidence=["other"]).fit(X, Y).evidence_] == ["diffusion", "other"]
    assert "other" in [one.name for one in OTP().fit(X, Y).evidence_]
    assert start_weights(["other"]) == [0.6, 0.3]


def test_start_weights_of_classifiers_are_bounded_together():
    assert start_weights([]) == [1.0]
    assert start_weights(["of mine"]) == [0.6, 0.4]
    first, *others = start_weights(list(NAMED_SOURCES))
    assert first == 0.6
    assert sum(others) == pytest.approx(1.1)
