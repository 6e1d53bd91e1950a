"""Clusters and folders that the tests share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("distributed", reason="needs the extra dask")

from dask.distributed import Client, LocalCluster


@pytest.fixture(scope="session")
def client() -> Iterator[Client]:
    """A cluster in the threads of this process: fast, and what a test changes in a module holds there, too."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as found,
    ):
        yield found


@pytest.fixture(scope="session")
def table() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows in clusters, their labels of which most are hidden, and the truth."""
    rng = np.random.default_rng(0)
    n_rows, centers = 1200, rng.normal(size=(12, 6)) * 2
    which = rng.integers(12, size=n_rows)
    X = centers[which] + rng.normal(size=(n_rows, 6))
    X[5] = X[3]  # equal rows
    truth = which % 3
    return X, np.where(rng.random(n_rows) < 0.06, truth, -1), truth


def write_folder(
    out: Path,
    table: Any,
    lengths: list[int],
    ending: str = "parquet",
    change: Callable[[int, Any], Any] | None = None,
) -> Path:
    """Write the table as files: `lengths` of their rows, and `change` of the frame of a number."""
    import pandas as pd

    X, codes, truth = table
    names = np.array(["ash", "elm", "oak"], dtype=object)
    frame = pd.DataFrame(X, columns=[f"x{place}" for place in range(6)])
    frame["size"] = np.array(["S", "M", "L"], dtype=object)[np.arange(len(X)) % 3]
    frame["kind"] = pd.Series(np.where(codes < 0, None, names[codes]), dtype=object)
    frame["truth"] = names[truth]
    out.mkdir()
    start = 0
    for number, length in enumerate(lengths):
        part = frame.iloc[start : start + length].reset_index(drop=True)
        start += length
        part = part if change is None else change(number, part)
        path = out / f"part-{number:02d}.{ending}"
        part.to_parquet(path) if ending == "parquet" else part.to_csv(path, index=False)
    return out


@pytest.fixture
def folder(tmp_path: Path, table: Any) -> Callable[..., Path]:
    """A function that writes the table as files under a name: the options of `write_folder`."""

    def write(lengths: list[int], *, name: str = "in", **options: Any) -> Path:
        return write_folder(tmp_path / name, table, lengths, **options)

    return write
