"""`otprop predict`: new rows, labelled by a saved model."""

from __future__ import annotations

from pathlib import Path

import pytest

from otprop.cli import main
from tests.cli.conftest import read_rows

pytest.importorskip("pyarrow")


FAST = ["--set", "evidence=None"]  # the geometry alone


def _label(path: Path, *more: str) -> int:
    return main(["label", str(path), "--target", "kind", *FAST, *more])


def test_a_saved_model_labels_new_rows_as_the_fit_did(lots: Path, tmp_path: Path) -> None:
    model, out = tmp_path / "kinds.model", tmp_path / "again.csv"
    assert _label(lots, "--save", str(model)) == 0
    assert main(["predict", str(model), str(lots), "-o", str(out), "--probabilities"]) == 0
    first = [row["kind_label"] for row in read_rows(lots.with_name("lots.labelled.csv"))]
    again = read_rows(out)
    assert [row["kind_label"] for row in again] == first
    assert list(again[0])[4:6] == ["kind_label", "kind_certainty"]
    shuffled = tmp_path / "shuffled.csv"
    shuffled.write_text("colour,weight\nred,141.5\n,99.0\nviolet,180\n")
    assert main(["predict", str(model), str(shuffled)]) == 0
    assert [row["kind_label"] for row in read_rows(tmp_path / "shuffled.labelled.csv")] == ["b", "a", "c"]


def test_predict_reads_dates_and_numbers_as_the_first_file_was_read(tmp_path: Path) -> None:
    first, later, model = tmp_path / "first.csv", tmp_path / "later.csv", tmp_path / "kinds.model"
    days = [(day, month) for month in (2, 11) for day in range(1, 29)]
    lines = [f"{day:02d}/{month:02d}/2024;{month}.500;0,5{day % 7};" for day, month in days]
    labels = ["winter" if number < 28 else "autumn" for number in range(len(lines))]
    shown = [label if number % 4 == 0 else "" for number, label in enumerate(labels)]
    text = "\n".join(line + label for line, label in zip(lines, shown, strict=True))
    first.write_text(f"seen;price;part;kind\n{text}\n")
    later.write_text("seen;price;part\n11/02/2024;2.500;0,51\n02/11/2024;11.500;0,52\n")
    assert main(["label", str(first), "--target", "kind", *FAST, "--save", str(model), "--quiet"]) == 0
    assert main(["predict", str(model), str(later), "--quiet"]) == 0
    text = (tmp_path / "later.labelled.csv").read_text()
    assert [line.split(";")[3] for line in text.splitlines()[1:]] == ["winter", "autumn"]


def test_predict_refuses_a_file_that_lacks_columns(
    lots: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, bare = tmp_path / "kinds.model", tmp_path / "bare.csv"
    assert _label(lots, "--save", str(model), "--quiet") == 0
    bare.write_text("weight,hue\n1,red\n")
    assert main(["predict", str(model), str(bare)]) != 0
    assert "colour" in capsys.readouterr().err
    assert not (tmp_path / "bare.labelled.csv").exists()


def test_predict_never_writes_its_model(lots: Path, tmp_path: Path) -> None:
    model = tmp_path / "kinds.model"
    assert _label(lots, "--save", str(model), "--quiet") == 0
    before = model.read_bytes()
    assert main(["predict", str(model), str(lots), "-o", str(model), "--force"]) == 2
    assert model.read_bytes() == before
