"""The notebook runs from its first cell to its last, without Jupyter."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import ROOT

NOTEBOOK = ROOT / "examples" / "from_python.ipynb"

pytest.importorskip("pandas")
pytest.importorskip("matplotlib")


def test_the_notebook_goes_from_a_frame_to_predictions_in_a_fresh_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("orchard.csv", "orchard_truth.csv"):
        shutil.copy(ROOT / "examples" / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "notebook"}
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    result, new = names["result"], names["new"]
    assert (result.table["variety_source"] == "corrected").sum() == 10
    assert names["printed"].strip() == str(result.predict(new)["variety_label"].tolist())


def test_the_notebook_is_stored_without_outputs_in_format_4() -> None:
    content = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert (content["nbformat"], content["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in content["cells"]}) == len(content["cells"])
    assert not any(cell.get("outputs") for cell in content["cells"])
