"""`otprop.predict`, `otprop.load` and `LabelResult.predict`: what the command `otprop predict` does, from Python."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import otprop
from otprop.cli import main
from tests.cli.conftest import read_rows
from tests.frames import FAST, mixed_frame

pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def result() -> Any:
    return otprop.label(mixed_frame(), "kind", settings=FAST)


@pytest.fixture(scope="module")
def new() -> Any:
    return mixed_frame(30).drop(columns="kind").assign(weight=lambda frame: frame["weight"] + 0.3)


def test_predict_gives_what_the_command_gives(result: Any, new: Any, tmp_path: Path) -> None:
    result.save(tmp_path / "kinds.model")
    new.to_csv(tmp_path / "new.csv", index=False)
    options = ["-o", str(tmp_path / "out.csv"), "--probabilities", "--quiet"]
    assert main(["predict", str(tmp_path / "kinds.model"), str(tmp_path / "new.csv"), *options]) == 0
    expected = read_rows(tmp_path / "out.csv")
    for found in (
        otprop.predict(tmp_path / "kinds.model", new, probabilities=True),
        otprop.predict(str(tmp_path / "kinds.model"), tmp_path / "new.csv", probabilities=True),
        otprop.predict(result, new, probabilities=True),
        otprop.load(tmp_path / "kinds.model").predict(new, probabilities=True),
        result.predict(pd.read_csv(tmp_path / "new.csv", dtype=str), probabilities=True),
    ):
        assert list(found.columns) == list(expected[0])
        assert found["kind_label"].tolist() == [row["kind_label"] for row in expected]
        for name in ("kind_certainty", "kind_confidence", "kind_p_a"):
            np.testing.assert_allclose(found[name], [float(row[name]) for row in expected], atol=1.1e-6)


def test_predict_keeps_the_index_and_the_kind_of_the_frame(result: Any, new: Any) -> None:
    polars = pytest.importorskip("polars")
    named = new.set_axis([f"lot {number}" for number in range(len(new))])
    found = result.predict(named)
    assert found.index.tolist() == named.index.tolist()
    assert "kind_label" not in named
    of_polars = result.predict(polars.from_pandas(new))
    assert isinstance(of_polars, polars.DataFrame)
    assert of_polars["kind_label"].to_list() == found["kind_label"].tolist()


def test_predict_takes_the_rows_of_a_web_service(result: Any, new: Any) -> None:
    rows = new.head(2).astype(object).where(new.head(2).notna(), None).to_dict("records")
    assert result.predict(rows)["kind_label"].tolist() == result.predict(new.head(2))["kind_label"].tolist()


def test_classes_of_a_model_are_the_labels(tmp_path: Path) -> None:
    frame = mixed_frame().replace({"kind": {"a": 10, "b": 20, "c": 30}}).astype({"kind": "Int64"})
    result = otprop.label(frame, "kind", settings=FAST)
    result.save(tmp_path / "kinds.model")
    for model in (result.model, otprop.load(tmp_path / "kinds.model")):
        assert model.classes == [10, 20, 30] == model.classes_.tolist()
        assert model.predict(frame.drop(columns="kind").head(3))["kind_label"].dtype.kind == "i"
        assert model.target == "kind"
        assert "kind" not in model.columns
    assert result.model.class_prior_.sum() == pytest.approx(1.0)


def test_predict_refuses_a_frame_that_lacks_columns_or_was_labelled_before(result: Any, new: Any) -> None:
    with pytest.raises(otprop.OtpropError, match="lacks 1 of the 6 columns needed: 'weight'"):
        result.predict(new.drop(columns="weight"))
    with pytest.raises(otprop.OtpropError, match=r"already has 'kind_label'.*prefix='kind_2_'"):
        result.predict(result.table)
    assert "again_label" in result.predict(result.table, prefix="again_")
    with pytest.raises(otprop.OtpropError, match=r"there is no model file no\.model"):
        otprop.predict("no.model", new)
    for path in (None, 7):
        with pytest.raises(otprop.OtpropError, match="path must name a model file; got"):
            otprop.load(path)
    with pytest.raises(otprop.OtpropError, match=r"data must be a path, .* a list of dictionaries .* got ndarray\."):
        result.predict(np.zeros((2, 3)))
    with pytest.raises(otprop.OtpropError, match="data is an empty list: give at least one row"):
        result.predict([])
    with pytest.raises(otprop.OtpropError, match="prefix must be text or None; got int"):
        result.predict(new, prefix=5)
    with pytest.raises(otprop.OtpropError, match=r"https://example.org/t\.csv is a URL"):
        result.predict("https://example.org/t.csv")
    with pytest.raises(otprop.OtpropError, match=r"row 1: 'heavy' is not a number; this column held numbers"):
        result.predict(new.assign(weight="heavy"))


def test_predict_with_its_arguments_swapped_says_so_in_a_line(new: Any, tmp_path: Path) -> None:
    for data in (new, new.to_dict("records")):
        with pytest.raises(otprop.OtpropError, match="pass the model first and then the rows") as caught:
            otprop.predict(data, tmp_path / "kinds.model")
        assert len(str(caught.value)) < 120
    with pytest.raises(otprop.OtpropError, match="path must name a model file; got DataFrame"):
        otprop.load(new)


def test_predict_warns_of_categories_that_the_model_has_not_seen(result: Any, new: Any) -> None:
    with pytest.warns(UserWarning, match="categories that the model has not seen, which it ignores: 'colour'"):
        result.predict(new.assign(colour="blue"))


def test_load_works_in_a_fresh_process(result: Any, new: Any, tmp_path: Path) -> None:
    result.save(tmp_path / "kinds.model")
    new.to_csv(tmp_path / "new.csv", index=False)
    code = "import otprop; print(*otprop.load('kinds.model').predict('new.csv')['kind_label'])"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == result.predict(new)["kind_label"].tolist()
