"""A job that has run and its model file; visits of several sites."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tests.labelling.models import make, saved


@pytest.fixture(scope="module")
def job():
    return make()


@pytest.fixture(scope="module")
def content(job):
    return saved(job)


@pytest.fixture(scope="module")
def visits():
    """Visits of ten sites, each with a level of its own."""
    rng = np.random.default_rng(0)
    site = np.repeat([f"site {number}" for number in range(10)], 40)
    kind = rng.integers(0, 2, 400)
    frame = pd.DataFrame(
        {
            "site": site,
            "pressure": rng.normal(size=400) + 2 * kind + np.repeat(rng.normal(size=10), 40),
            "age": rng.normal(50, 9, size=400),
            "kind": np.where(kind == 1, "ill", "well"),
        }
    )
    return frame
