"""Small data for the benchmark's tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from otprop.benchmark.prepared import PreparedData
from otprop.benchmark.tasks import Plan
from otprop.datasets import Dataset, load


def blobs(n_per_class: tuple[int, ...], seed: int = 0, name: str = "blobs") -> Dataset:
    """Gaussian clouds on a line, a little mixed."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(n_per_class)), n_per_class)
    X = rng.normal(size=(len(y), 2)) + 2.5 * np.column_stack([y, y % 2])
    return Dataset(name, X, y, tuple(map(str, range(len(n_per_class)))), None, "drawn")


@pytest.fixture(scope="session")
def small() -> PreparedData:
    return PreparedData.from_dataset(blobs((40, 30, 30)))


@pytest.fixture(scope="session")
def iris() -> PreparedData:
    return PreparedData.from_dataset(load("iris"))


@pytest.fixture
def plan() -> Plan:
    return Plan(("otp", "ls", "plcc", "1nn"), (10.0, 30.0), n_splits=2, tunings=("honest", "oracle"))


@pytest.fixture(scope="session")
def npz_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    dataset = blobs((40, 30, 30))
    path = tmp_path_factory.mktemp("data") / "blobs.npz"
    np.savez(path, X=dataset.X, y=dataset.y)
    return path
