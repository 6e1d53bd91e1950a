"""Small data for the benchmark's tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from paper.tests.made import blobs

from otprop_paper.benchmark.prepared import PreparedData
from otprop_paper.benchmark.tasks import Plan
from otprop_paper.datasets import load


@pytest.fixture(scope="session")
def small() -> PreparedData:
    return PreparedData.from_dataset(blobs((40, 30, 30)))


@pytest.fixture(scope="session")
def iris() -> PreparedData:
    return PreparedData.from_dataset(load("iris"))


@pytest.fixture(scope="session")
def plan() -> Plan:
    return Plan(("otp", "ls", "plcc", "1nn"), (10.0, 30.0), n_splits=2, tunings=("honest", "oracle"))


@pytest.fixture(scope="session")
def npz_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    dataset = blobs((40, 30, 30))
    path = tmp_path_factory.mktemp("data") / "blobs.npz"
    np.savez(path, X=dataset.X, y=dataset.y)
    return path
