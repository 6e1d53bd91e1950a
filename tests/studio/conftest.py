"""A small table, and a studio that serves it from a thread."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest

from tests.studio.client import StudioClient

MARKUP = "<img src=x onerror=alert(1)>"


def write_lots(path: Path, n_rows: int = 60, n_labels: int = 8, target: bool = True) -> Path:
    """Lots of two kinds, with markup in a name, a column and the cells."""
    random = np.random.default_rng(0)
    with path.open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["weight", "size", f"remark {MARKUP}", *(["kind"] if target else [])])
        for number in range(n_rows):
            kind = number % 2
            cells = [f"{random.normal(100 + 40 * kind, 4):.2f}", f"{random.normal(5 + 3 * kind, 1):.2f}"]
            label = (("apple", f"pear {MARKUP}")[kind] if number < n_labels else "",) if target else ()
            out.writerow([*cells, f"lot {number} {MARKUP if number == 3 else ''}", *label])
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("studio")


@contextmanager
def running(
    path: Path,
    target: str = "kind",
    *,
    worker: bool = True,
    opened: Callable[[], Any] = lambda: None,
    port: int = 0,
    asked: dict[str, Any] | None = None,
    **options: Any,
) -> Iterator[tuple[Any, StudioClient]]:
    """A studio that serves a file, and a client of it; `asked` is more of the request, `options` are of `Studio`."""
    from otprop.labelling.job import Request
    from otprop.studio.run import Studio
    from otprop.studio.source import Source

    request = Request(target, **{"settings": {"evidence": None}, **(asked or {})})  # the geometry alone is fast
    studio = Studio(Source(str(path), request), path.with_name(path.name + ".otprop"), port, **options)
    if not worker:
        studio.workspace.worker.start = lambda: None
    opened()  # the file has been read by the server, and not by the worker yet
    started = Event()
    thread = Thread(target=studio.serve, args=(started.set,))
    thread.start()
    try:
        assert started.wait(60)
        yield studio, StudioClient(studio.url)
    finally:
        studio.stop()
        thread.join(60)
        assert not thread.is_alive()


@pytest.fixture(scope="module")
def quiet(folder: Path) -> Iterator[tuple[Any, StudioClient]]:
    """A studio without a worker: requests are answered, nothing is propagated."""
    for module in ("starlette", "uvicorn", "pyarrow"):
        pytest.importorskip(module)
    with running(write_lots(folder / "quiet.csv"), worker=False) as found:
        yield found
