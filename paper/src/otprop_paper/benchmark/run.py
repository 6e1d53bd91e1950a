"""Running a plan: results that the store lacks are computed and saved one by one, then gathered into rows."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any

from joblib import Parallel, delayed

from otprop._progress import ProgressCallback, no_progress
from otprop_paper import datasets
from otprop_paper.benchmark.methods import find_method
from otprop_paper.benchmark.prepared import PreparedData
from otprop_paper.benchmark.protocol import LABEL_DRAWS, ProtocolError, check_drawable, n_draws, n_labels
from otprop_paper.benchmark.store import Store
from otprop_paper.benchmark.tasks import (
    HIDDEN,
    TRUTH,
    CellTask,
    Plan,
    run_task,
    scoring_tasks,
    time_spent,
    tuning_tasks,
)
from otprop_paper.benchmark.tuning import choices, result_rows


def check_plan(plan: Plan) -> None:
    """Refuse a plan with unknown methods, percentages, splits or draws, before any data set is loaded."""
    for name in plan.methods:
        find_method(name)
    for percent in plan.percents:
        if not 0 < percent < 100:
            raise ProtocolError(f"percent must be between 0 and 100, got {percent:g}.")
    if plan.n_splits < 1:
        raise ProtocolError(f"splits must be at least 1, got {plan.n_splits}.")
    if plan.labels not in LABEL_DRAWS:
        raise ProtocolError(f"labels must be one of {', '.join(LABEL_DRAWS)}; got {plan.labels!r}.")


def load_datasets(
    names: Iterable[str], plan: Plan, download: bool = False, target: str | None = None
) -> list[PreparedData]:
    """Load, prepare and check every data set before anything runs."""
    out: dict[str, PreparedData] = {}
    for name in names:
        dataset = datasets.load(name, download=download, target=target if datasets.is_path(name) else None)
        key = os.path.normpath(dataset.name) if datasets.is_path(name) else dataset.name
        if key not in out:
            check_drawable(
                dataset.name, dataset.y, plan.percents, plan.n_splits, plan.labels, dataset.class_names or None
            )
            out[key] = PreparedData.from_dataset(dataset)
    return list(out.values())


def weight(task: CellTask) -> float:
    """Rough relative cost of a task, for the order and the progress bar."""
    n_rows = len(task.data.y)
    sets = 0
    for cell in task.cells:
        sets += 1 if TRUTH in task.kinds else 0
        sets += min(n_draws(n_labels(n_rows, cell.percent)), task.draws) if HIDDEN in task.kinds else 0
    per_set = 0.02 + (n_rows / 1000) ** 2 * _WEIGHTS.get(task.method, 0.02)
    if task.method == "released" and n_rows > 1000 and "raw_epsilon" in task.candidates[0]:
        per_set *= 0.02  # it underflows at once, and few rounds are needed
    if task.method == "otp-paper" and n_rows > 1000:
        per_set *= 1 + 5 * max(params.get("epsilon", 0.0) for params in task.candidates)
    return per_set * sets * len(task.candidates)


_WEIGHTS = {"otp-paper": 1.0, "otp": 1.0, "released": 14.0, "self-logistic": 1.0, "self-trees": 0.4, "lp": 0.03}


def compute(tasks: Sequence[CellTask], store: Store, n_jobs: int, progress: ProgressCallback) -> None:
    """Run tasks, the heaviest first, and save each one's results as soon as it is done."""
    ordered = sorted(tasks, key=lambda task: (-len(task.data.y), -weight(task)))
    total, done = sum(map(weight, ordered)), 0.0
    progress(0.0, total, "")
    for task, results in _run_tasks(ordered, n_jobs):
        store.add(results)
        done += weight(task)
        progress(done, total, f"{task.data.name}, {find_method(task.method).title}")


def _run_tasks(tasks: Sequence[CellTask], n_jobs: int) -> Iterator[tuple[CellTask, list[Any]]]:
    if n_jobs == 1:
        for task in tasks:
            yield task, run_task(task)
        return
    numbered = Parallel(n_jobs=n_jobs, return_as="generator_unordered", pre_dispatch=n_jobs, batch_size=1)(
        delayed(_run_numbered)(number, task, os.getpid()) for number, task in enumerate(tasks)
    )
    try:
        for number, results in numbered:
            yield tasks[number], results
    except BaseException:
        with warnings.catch_warnings():  # joblib warns that unfinished tasks are lost
            warnings.simplefilter("ignore", UserWarning)
            numbered.close()
        raise


def _run_numbered(number: int, task: CellTask, runner: int) -> tuple[int, list[Any]]:
    if multiprocessing.current_process().name.startswith("LokyProcess"):
        _exit_with(runner)
    return number, run_task(task)


@cache
def _exit_with(runner: int) -> None:
    """End this worker process when the process that started it is gone."""

    def watch() -> None:
        while os.getppid() == runner:  # changes when the parent process ends
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@dataclass(frozen=True)
class BenchmarkResult:
    """The results of a run.

    Attributes
    ----------
    plan : Plan
    data : list of PreparedData
    rows : dict of str to list of dict, for each tuning one row per data set, method and split
    labelings : int, tables labelled, with all candidates and hidden labels
    seconds : float, for all of them on one core
    """

    plan: Plan
    data: list[PreparedData]
    rows: dict[str, list[dict[str, Any]]]
    labelings: int
    seconds: float


def run(
    plan: Plan, data: list[PreparedData], store: Store, *, n_jobs: int = 1, progress: ProgressCallback = no_progress
) -> BenchmarkResult:
    """Compute what the store lacks, choose parameters, and gather the rows."""
    compute(list(chain.from_iterable(tuning_tasks(plan, one, store) for one in data)), store, n_jobs, progress)
    if "honest" in plan.tunings:
        tasks = []
        for one in data:
            chosen = [(name, choice.params, cell) for name, cell, choice, _ in choices(plan, one, store, "honest")]
            tasks += scoring_tasks(plan, one, store, chosen)
        if tasks:
            compute(tasks, store, n_jobs, progress)
    rows = {tuning: [row for one in data for row in result_rows(plan, one, store, tuning)] for tuning in plan.tunings}
    labelings, seconds = zip(*(time_spent(plan, one, store) for one in data), strict=True)
    return BenchmarkResult(plan, data, rows, sum(labelings), sum(seconds))
