"""The scripts in benchmarks/ draw labels fairly, resume, and notice a changed figure."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

SCRIPTS = Path(__file__).parents[3] / "benchmarks"
TWICE = """
import pathlib, shutil, sys
del sys.argv[0]
import tables
tables.main()
out = pathlib.Path(sys.argv[-1])
shutil.copy(out / "tables.csv", out / "first.csv")
print("--- again")
tables.main()
"""


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    pytest.importorskip("skrub")
    monkeypatch.syspath_prepend(SCRIPTS)
    return importlib.import_module("tables")


def test_a_draw_is_repeatable_nested_and_has_two_classes(tables: ModuleType) -> None:
    y = np.array(["common"] * 97 + ["rare"] * 3, dtype=object)
    for number in range(10):
        rows, few = tables.draw(y, "t", 5, number, 100)
        again, many = tables.draw(y, "t", 20, number, 100)
        assert few.sum() == 5
        assert set(y[rows[few]]) == {"common", "rare"}
        np.testing.assert_array_equal(rows, again)
        assert (many | ~few).all()
    other = tables.draw(y, "another", 20, 0, 50)
    assert len(other[0]) == 50
    assert other[1].sum() == 20


def test_runs_on_tables_are_stored_and_resumed(tables: ModuleType, tmp_path: Path) -> None:
    folder = tmp_path / "data" / "tables"
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    numbers, letters = rng.normal(size=80), rng.choice(["x", "y"], 80)
    rows = [f"{n:.3f},{c},{'high' if n > 0 else 'low'}" for n, c in zip(numbers, letters, strict=True)]
    tables.pd.DataFrame([row.split(",") for row in rows], columns=["n", "c", "k"]).to_csv(
        folder / "t.csv.gz", index=False
    )
    (folder / "tables.csv").write_text("name,target\nt,k\n")
    command = [sys.executable, "-c", TWICE, str(SCRIPTS / "tables.py"), "--labels", "20", "--draws", "1", "--jobs", "1"]
    command += ["--methods", "otprop", "logistic", "--out", str(tmp_path)]
    places = os.pathsep.join(filter(None, [str(SCRIPTS), os.environ.get("PYTHONPATH")]))
    environment = os.environ | {"OTPROP_DATA": str(tmp_path / "data"), "PYTHONPATH": places}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    first, again = done.stdout.split("--- again\n")
    assert "1 of 1: t, 20 labels, draw 0" in first
    assert "1 of 1" not in again
    written = (tmp_path / "first.csv").read_text()
    assert [row.split(",")[4] for row in written.splitlines() if row.startswith("t,")] == ["otprop", "logistic"]
    assert (tmp_path / "tables.csv").read_text() == written


@pytest.mark.parametrize(("committed", "present", "same"), [(0.5, 0.5, True), (0.5, 0.6, False), (np.nan, 0.5, False)])
def test_a_changed_figure_is_noticed(
    committed: float, present: float, same: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(SCRIPTS)
    compare = importlib.import_module("compare")
    assert compare.is_close(committed, present, 1e-6) == same
    assert compare.is_close(np.nan, np.nan, 1e-6)
