"""A plan is run once, tuned in two ways that do not mix, and scored on two sets of rows."""

from __future__ import annotations

import shutil
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from paper.tests.made import blobs

from otprop.model_selection import hidden_label_score
from otprop_paper.baselines import PLCC
from otprop_paper.benchmark import tasks
from otprop_paper.benchmark.grids import Grid
from otprop_paper.benchmark.methods import METHODS, Thinning, find_method
from otprop_paper.benchmark.output import Origin, markdown_text
from otprop_paper.benchmark.prepared import PreparedData
from otprop_paper.benchmark.protocol import Cell, draw, hidden_draws
from otprop_paper.benchmark.run import BenchmarkResult, check_plan, run
from otprop_paper.benchmark.store import Store
from otprop_paper.benchmark.tasks import Plan, cell_key, scores, tuning_tasks
from otprop_paper.benchmark.tuning import best_candidate, tune_by_hidden_labels

ALL_TREES = True  # worker processes have them


@pytest.fixture(scope="module")
def finished(plan: Plan, small: PreparedData, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, BenchmarkResult]:
    """One run of the plan, for all tests, and the folder of its store."""
    folder = tmp_path_factory.mktemp("finished")
    with Store(folder) as store:
        return folder, run(plan, [small], store)


@pytest.fixture
def result(finished: tuple[Path, BenchmarkResult], tmp_path: Path) -> BenchmarkResult:
    """The result of a run whose store is in `tmp_path`."""
    shutil.copytree(finished[0], tmp_path, dirs_exist_ok=True)
    return deepcopy(finished[1])


def test_there_is_a_line_for_every_method_percentage_split_and_way_of_tuning(result: BenchmarkResult) -> None:
    for tuning in ("honest", "oracle"):
        lines = result.rows[tuning]
        assert len(lines) == 4 * 2 * 2
        assert {line["tuning"] for line in lines} == {tuning}
        assert all(0 <= line["nmi_unlabelled"] <= 1 for line in lines)


def test_what_a_run_took_counts_every_labelling_whenever_it_was_done(
    plan: Plan, small: PreparedData, tmp_path: Path, result: BenchmarkResult
) -> None:
    with Store(tmp_path) as store:
        sets = sum(value.get("draws", 1) for value in store._results.values())
        again = run(plan, [small], store)
    assert (result.labelings, result.seconds) == (again.labelings, again.seconds)
    assert result.labelings == sets
    assert result.seconds > 0


def test_the_oracle_is_at_least_as_good_on_the_mean_as_any_honest_choice(result: BenchmarkResult) -> None:
    def mean(tuning: str, method: str, percent: float) -> float:
        chosen = [x for x in result.rows[tuning] if x["method"] == method and x["percent"] == percent]
        return float(np.mean([x["nmi_unlabelled"] for x in chosen]))

    for method in ("ls", "plcc"):
        for percent in (10.0, 30.0):
            assert mean("oracle", method, percent) >= mean("honest", method, percent) - 1e-12


def test_the_oracle_makes_one_choice_a_percentage_the_honest_way_one_a_split(result: BenchmarkResult) -> None:
    for line in result.rows["oracle"]:
        others = [x for x in result.rows["oracle"] if (x["method"], x["percent"]) == (line["method"], line["percent"])]
        assert all(other["params"] == line["params"] for other in others)
    assert {x["chosen_by"] for x in result.rows["oracle"]} == {"truth", "nothing to choose"}
    assert {x["chosen_by"] for x in result.rows["honest"]} == {"hidden labels", "nothing to choose"}


def test_the_honest_score_is_that_of_model_selection(small: PreparedData, tmp_path: Path) -> None:
    plan = Plan(("plcc",), (30.0,), 1)
    with Store(tmp_path) as store:
        [line] = run(plan, [small], store).rows["honest"]
    codes = draw(small.y, Cell(30.0, 0))

    class Same:
        def split(self, X: object, y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
            return [(np.setdiff1d(np.flatnonzero(y >= 0), hidden), hidden) for hidden in hidden_draws(codes, 0)]

    expected = hidden_label_score(PLCC(line["params"]["strength"]), small.X, codes, Same())
    assert line["hidden_score"] == pytest.approx(expected.mean())


def test_honest_tuning_alone_never_scores_more_than_it_uses(small: PreparedData, tmp_path: Path) -> None:
    plan = Plan(("plcc",), (30.0,), 2, tunings=("honest",))
    with Store(tmp_path) as store:
        lines = run(plan, [small], store).rows["honest"]
        setting = plan.setting("plcc", small)
        for params in setting.grid.candidates():
            for cell in plan.cells(setting):
                used = any(x["params"] == params and x["split"] == cell.split for x in lines)
                assert (cell_key(small, "plcc", params, cell, "truth", setting.draws) in store) == used


def test_the_default_is_used_and_said_where_a_class_has_one_label(tmp_path: Path) -> None:
    rare = PreparedData.from_dataset(blobs((60, 36, 4)))
    with Store(tmp_path) as store:
        lines = run(Plan(("plcc",), (25.0,), 2), [rare], store).rows["honest"]
    assert {line["chosen_by"] for line in lines} == {"default"}
    assert all(line["params"] == {"strength": 100.0} for line in lines)
    assert all(np.isnan(line["hidden_score"]) for line in lines)


def test_nothing_is_computed_twice(
    plan: Plan, small: PreparedData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, result: BenchmarkResult
) -> None:
    monkeypatch.setattr(tasks, "run_task", lambda task: pytest.fail("a finished task was run again"))
    with Store(tmp_path) as store:
        assert tuning_tasks(plan, small, store) == []
        assert str(run(plan, [small], store).rows) == str(result.rows)


def test_another_version_of_the_package_or_the_code_starts_afresh(
    plan: Plan, small: PreparedData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, result: BenchmarkResult
) -> None:
    with Store(tmp_path) as store:
        assert tuning_tasks(plan, small, store) == []
        monkeypatch.setattr(tasks, "__version__", "9.9")
        assert {task.method for task in tuning_tasks(plan, small, store)} == set(plan.methods)
        monkeypatch.undo()
        monkeypatch.setattr(
            "otprop_paper.benchmark.methods.code_fingerprint", lambda modules: "changed" * ("otprop._otp" in modules)
        )
        assert "otp" in {task.method for task in tuning_tasks(plan, small, store)}


def test_the_same_name_with_other_rows_is_another_data_set(
    plan: Plan, small: PreparedData, tmp_path: Path, result: BenchmarkResult
) -> None:
    with Store(tmp_path) as store:
        assert tuning_tasks(plan, small, store) == []
        assert tuning_tasks(plan, PreparedData.from_dataset(blobs((40, 30, 30), seed=1)), store)


def test_two_workers_find_what_one_finds(
    plan: Plan, small: PreparedData, tmp_path: Path, finished: tuple[Path, BenchmarkResult]
) -> None:
    def without_times(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{k: v for k, v in x.items() if k not in ("seconds", "hidden_score", "ece")} for x in lines]

    part = replace(plan, percents=(30.0,), n_splits=1, tunings=("honest",))
    with Store(tmp_path) as store:
        found = run(part, [small], store, n_jobs=2).rows["honest"]
    expected = [x for x in finished[1].rows["honest"] if (x["percent"], x["split"]) == (30.0, 0)]
    assert without_times(found) == without_times(expected)
    assert len(found) == 4


def test_scores_are_taken_on_the_unlabelled_rows_and_on_all() -> None:
    y, codes = np.array([0, 0, 1, 1]), np.array([0, -1, 1, -1])
    found = np.array([0, 1, 1, 1])
    value = scores(y, found, codes)
    assert value["accuracy_unlabelled"] == 0.5
    assert value["accuracy_all"] == 0.75
    assert scores(y, np.array([0, -1, 1, 1]), codes)["accuracy_unlabelled"] == 0.5  # no label is a wrong label


def test_of_equally_good_candidates_the_one_nearest_to_the_default_is_taken() -> None:
    grid = Grid({"k": (1, 2, 3, 4)}, {"k": 3})
    candidates = grid.candidates()
    assert candidates[best_candidate(grid, candidates, [0.9, 0.9, 0.5, 0.2])] == {"k": 2}
    assert candidates[best_candidate(grid, candidates, [0.9, 0.9, 0.9, 0.9])] == {"k": 3}
    assert candidates[best_candidate(grid, candidates, [0.9, 0.9, 0.9, 0.95])] == {"k": 4}


def test_the_honest_choice_cannot_be_made_before_labels_were_hidden(small: PreparedData, tmp_path: Path) -> None:
    plan = Plan(("plcc",), (30.0,), 1)
    with Store(tmp_path) as store, pytest.raises(LookupError, match="not been computed"):
        tune_by_hidden_labels(small, "plcc", plan.setting("plcc", small), Cell(30.0, 0), store)


def test_large_data_sets_thin_the_slowest_methods_and_say_so(small: PreparedData) -> None:
    large = replace(small, y=np.zeros(10_000, dtype=int))
    plan = Plan(tuple(METHODS), (5.0,), 10)
    assert plan.setting("otp-paper", large).thinned
    assert len(plan.cells(plan.setting("otp-paper", large))) == 3
    four = replace(plan, percents=(5.0, 15.0, 25.0, 35.0))
    assert four.cells(four.setting("released", large)) == [Cell(5.0, 0)]
    smaller = replace(small, y=np.zeros(5_000, dtype=int))
    assert four.cells(four.setting("released", smaller)) == [Cell(5.0, 0), Cell(35.0, 0)]
    assert not plan.setting("lnp", large).thinned
    assert not replace(plan, full=True).setting("otp-paper", large).thinned
    for name in METHODS:
        grid = plan.setting(name, large).grid
        assert grid.default in grid.candidates()


def test_the_released_epsilon_is_used_where_the_authors_gave_one(iris: PreparedData, small: PreparedData) -> None:
    assert find_method("released").setting("iris", 150).grid.candidates() == [{"raw_epsilon": 0.016}]
    assert len(find_method("released").setting("heart", 270).grid.candidates()) == 7
    assert not find_method("released").setting("digits", 5620).thinned  # one value: nothing to thin


def test_an_unknown_method_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"'lsp' is not a known method; did you mean 'ls'\? Known: otp, otp-paper"):
        check_plan(Plan(("lsp",), (5.0,)))


def test_percentages_can_be_thinned_and_that_is_said(
    small: PreparedData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    thinning = Thinning(0, "one split", {"strength": (100.0,)}, 1, 1, (10.0, 30.0))
    monkeypatch.setitem(METHODS, "plcc", replace(METHODS["plcc"], thinnings=(thinning,)))
    plan = Plan(("1nn", "plcc"), (10.0, 20.0, 30.0), 2, tunings=("honest", "oracle"))
    with Store(tmp_path) as store:
        result = run(plan, [small], store)
    for lines in result.rows.values():
        assert [line["percent"] for line in lines if line["method"] == "plcc"] == [10.0, 30.0]
        assert {line["thinned"] for line in lines if line["method"] == "plcc"} == {"one split; 10, 30 % only"}
        text = markdown_text(lines, Origin("", "", "", ""), "A run")
        assert "| not run |" in text
        assert "(2 cells) |" in text
    assert plan.setting("plcc", replace(small, y=small.y)).percents == (10.0, 30.0)
    assert replace(plan, percents=(10.0,)).setting("plcc", small).thinned == "one split"
    assert replace(plan, percents=(20.0,)).cells(replace(plan, percents=(20.0,)).setting("plcc", small)) == [
        Cell(20.0, 0)
    ]
