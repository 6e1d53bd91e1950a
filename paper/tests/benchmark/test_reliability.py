"""What is kept of a method's confidence says how far it can be believed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from otprop_paper.benchmark.output import Origin, csv_text, read_csv, write_files
from otprop_paper.benchmark.prepared import PreparedData
from otprop_paper.benchmark.reliability import N_BINS, SHARES, reliabilities, summarise
from otprop_paper.benchmark.run import BenchmarkResult, run
from otprop_paper.benchmark.store import Store
from otprop_paper.benchmark.tasks import Plan


@pytest.fixture(scope="module")
def result(small: PreparedData, tmp_path_factory: pytest.TempPathFactory) -> BenchmarkResult:
    with Store(tmp_path_factory.mktemp("store")) as store:
        return run(Plan(("otp", "1nn"), (10.0, 30.0), n_splits=2), [small], store)


@given(st.integers(1, 200), st.integers(0, 1000))
def test_the_bins_hold_every_row_once_and_differ_by_at_most_one_row(n_rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    kept = summarise(rng.random(n_rows), rng.random(n_rows) < 0.5)
    sizes = [size for *_, size in kept["bins"]]
    assert sum(sizes) == n_rows
    assert len(sizes) == min(n_rows, N_BINS)
    assert max(sizes) - min(sizes) <= 1
    means = [mean for mean, *_ in kept["bins"]]
    assert means == sorted(means)


@given(st.integers(1, 200), st.integers(0, 1000))
def test_labelling_all_rows_has_the_error_of_all_rows(n_rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    confidence, right = rng.random(n_rows), rng.random(n_rows) < 0.7
    kept = summarise(confidence, right)
    assert len(kept["risk"]) == len(SHARES)
    assert kept["risk"][-1] == pytest.approx([1 - right.mean(), 1 - confidence.mean()], abs=1e-6)


def test_the_calibration_error_is_the_gap_between_what_was_said_and_what_was() -> None:
    confidence = np.repeat([0.6, 0.9], 15 * 10)
    right = np.tile(np.arange(10) < 6, 30)
    assert summarise(confidence, right)["ece"] == pytest.approx(0.5 * 0.0 + 0.5 * 0.3)


def test_the_most_confident_rows_come_first() -> None:
    confidence = np.linspace(0.0, 1.0, 100)
    wrong = [error for error, _ in summarise(confidence, confidence > 0.5)["risk"]]
    assert wrong[:10] == [0.0] * 10
    assert wrong[-1] == pytest.approx(0.5)


def test_a_run_keeps_it_for_methods_with_a_confidence_alone(result: BenchmarkResult) -> None:
    for line in result.rows["honest"]:
        assert (line["reliability"] is not None) == (line["method"] == "otp")
        assert np.isnan(line["ece"]) == (line["method"] == "1nn")
        json.dumps(line["reliability"])
    kept = reliabilities(result.rows["honest"])
    assert list(kept) == [("blobs", "otp")]
    assert [(one.percent, one.n_splits, sum(one.n_rows)) for one in kept["blobs", "otp"]] == [
        (10.0, 2, 180),
        (30.0, 2, 140),
    ]


def test_the_accuracy_of_all_bins_together_is_that_of_the_table(result: BenchmarkResult) -> None:
    lines = [line for line in result.rows["honest"] if line["method"] == "otp"]
    for one in reliabilities(lines)["blobs", "otp"]:
        expected = np.mean([line["accuracy_unlabelled"] for line in lines if line["percent"] == one.percent])
        assert np.average(one.accuracy, weights=one.n_rows) == pytest.approx(expected, abs=1e-5)
        assert one.risk[-1] == pytest.approx(1 - expected, abs=1e-5)


def test_the_csv_has_the_calibration_error_and_nothing_where_there_is_none(
    result: BenchmarkResult, tmp_path: Path
) -> None:
    lines = result.rows["honest"]
    [path] = write_files(tmp_path, "run", {"csv": csv_text(lines, Origin("", "", "", ""))})
    for line, back in zip(lines, read_csv(path), strict=True):
        assert back["ece"] == pytest.approx(line["ece"], nan_ok=True)


def test_results_stored_before_it_was_kept_can_still_be_read(small: PreparedData, tmp_path: Path) -> None:
    plan = Plan(("otp",), (30.0,), n_splits=1)
    with Store(tmp_path) as store:
        [line] = run(plan, [small], store).rows["honest"]
    path = tmp_path / "cells.jsonl"
    entries = [json.loads(text) for text in path.read_text().split("\n") if text]
    for entry in entries:
        del entry["value"]["reliability"]
    path.write_text("\n".join(map(json.dumps, entries)) + "\n")
    with Store(tmp_path) as store:
        [old] = run(plan, [small], store).rows["honest"]
    assert old["nmi_all"] == line["nmi_all"]
    assert old["reliability"] is None
    assert np.isnan(old["ece"])
