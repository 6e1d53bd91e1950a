"""Models that version 0.1.0 wrote still load, and label as they did then."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

import numpy as np
import pytest

from otprop.files import read_table
from otprop.labelling.model import load_model, predict_table
from otprop.labelling.output_columns import OutputColumns, predicted_columns

pytest.importorskip("pandas")

FOLDER = Path(__file__).parent / "models_0_1"
NAMES = sorted(path.name.removesuffix(".otprop.gz") for path in FOLDER.glob("*.otprop.gz"))


@pytest.mark.parametrize("name", NAMES)
def test_a_model_of_version_0_1_labels_as_it_did(name: str) -> None:
    model = load_model(io.BytesIO(gzip.decompress((FOLDER / f"{name}.otprop.gz").read_bytes())))
    table = read_table(FOLDER / "table.csv")
    found = predicted_columns(model, *predict_table(model, model.frame(table)), OutputColumns("got_"))
    with (FOLDER / f"{name}.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(found) == [column for column in rows[0] if column.startswith("got_")]
    assert found.pop("got_label").tolist() == [row["got_label"] for row in rows]
    for column, values in found.items():
        np.testing.assert_allclose(values, [float(row[column]) for row in rows], atol=1.1e-6, err_msg=column)


def test_all_eighteen_are_there() -> None:
    assert len(NAMES) == 18
