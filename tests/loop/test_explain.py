"""Class probabilities by source."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.datasets import make_blobs

from otprop import OTP


@pytest.fixture(scope="module")
def blobs():
    X, y = make_blobs([60] * 3, centers=2 * np.eye(3), random_state=0)
    shown = np.full(len(y), -1)
    shown[::8] = y[::8]
    return X, shown


def test_the_sources_together_make_the_prediction(blobs):
    X, y = blobs
    model = OTP(marginal_strength=0).fit(X, y)
    new = X[:20] + 0.1
    found = model.explain(new)
    assert list(found) == [source.name for source in model.evidence_]
    for shares in found.values():
        np.testing.assert_allclose(shares.sum(axis=1), 1)
    total = sum(source.weight * np.log(found[source.name]) for source in model.evidence_)
    np.testing.assert_allclose(model.predict_proba(new), softmax(total, axis=1), atol=1e-6)


def test_a_source_that_reaches_no_row_leaves_the_classes_equal():
    graph = np.zeros((6, 6))
    graph[0, 1] = graph[1, 0] = graph[2, 3] = graph[3, 2] = 1.0
    model = OTP("graph").fit(graph, [0, -1, 1, -1, -1, -1])
    shares = model.explain(graph[[1, 4]])["diffusion"]
    assert shares[0].argmax() == 0
    np.testing.assert_array_equal(shares[1], [0.5, 0.5])
