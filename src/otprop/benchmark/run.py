"""Running a plan: what is missing is computed, saved as it comes, and gathered into lines."""

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

from otprop import datasets
from otprop._progress import ProgressCallback
from otprop.benchmark.choose import choices, rows
from otprop.benchmark.jobs import HIDDEN, TRUTH, Job, Plan, final_jobs, first_jobs, run_job, work_done
from otprop.benchmark.methods import find_method
from otprop.benchmark.protocol import HOWS, ProtocolError, check_drawable, n_draws, n_labels
from otprop.benchmark.store import Store
from otprop.benchmark.workspace import Data


def check_plan(plan: Plan) -> None:
    """Refuse what no data set could make right: unknown methods, shares, splits or ways of drawing.

    Parameters
    ----------
    plan : Plan
    """
    for name in plan.methods:
        find_method(name).needs()
    for percent in plan.percents:
        if not 0 < percent < 100:
            raise ProtocolError(f"percent must be between 0 and 100, got {percent:g}.")
    if plan.n_splits < 1:
        raise ProtocolError(f"splits must be at least 1, got {plan.n_splits}.")
    if plan.labels not in HOWS:
        raise ProtocolError(f"labels={plan.labels!r} is not a way to draw. Accepted: {', '.join(HOWS)}.")


def load_all(names: Iterable[str], plan: Plan, download: bool = False, target: str | None = None) -> list[Data]:
    """Load, prepare and check every data set before anything runs.

    Parameters
    ----------
    names : iterable of str, known names or files
    plan : Plan
    download : bool
    target : str or None, the column of classes of the files among them

    Returns
    -------
    list of Data, each once, whatever names it was given
    """
    out: dict[str, Data] = {}
    for name in names:
        dataset = datasets.load(name, download=download, target=target if datasets.is_path(name) else None)
        called = os.path.normpath(dataset.name) if datasets.is_path(name) else dataset.name
        if called not in out:
            check_drawable(
                dataset.name, dataset.y, plan.percents, plan.n_splits, plan.labels, dataset.class_names or None
            )
            out[called] = Data.of(dataset)
    return list(out.values())


def weight(job: Job) -> float:
    """A rough guess of a job's share of the work, for the order and the bar.

    Parameters
    ----------
    job : Job

    Returns
    -------
    float
    """
    n_rows = len(job.data.y)
    sets = 0
    for cell in job.cells:
        sets += 1 if TRUTH in job.kinds else 0
        sets += min(n_draws(n_labels(n_rows, cell.percent)), job.draws) if HIDDEN in job.kinds else 0
    per_set = 0.02 + (n_rows / 1000) ** 2 * _WEIGHTS.get(job.method, 0.02)
    if job.method == "released" and n_rows > 1000 and "raw_epsilon" in job.candidates[0]:
        per_set *= 0.02  # it underflows at once, and few rounds are needed
    if job.method == "otp-paper" and n_rows > 1000:
        per_set *= 1 + 5 * max(params.get("epsilon", 0.0) for params in job.candidates)
    return per_set * sets * len(job.candidates)


_WEIGHTS = {"otp-paper": 1.0, "otp": 1.0, "released": 14.0, "self-logistic": 1.0, "self-trees": 0.4, "lp": 0.03}


def compute(jobs: Sequence[Job], store: Store, n_jobs: int, show: ProgressCallback) -> None:
    """Run jobs, the heaviest first, and save each one's results as soon as it is done.

    Parameters
    ----------
    jobs : sequence of Job
    store : Store
    n_jobs : int, workers; joblib's backend may be set from outside, for example to Dask's
    show : callable, told how far it is
    """
    ordered = sorted(jobs, key=lambda job: (-len(job.data.y), -weight(job)))
    total, done = sum(map(weight, ordered)), 0.0
    show(0.0, total, "")
    for job, results in _outcomes(ordered, n_jobs):
        store.add(results)
        done += weight(job)
        show(done, total, f"{job.data.name}, {find_method(job.method).title}")


def _outcomes(jobs: Sequence[Job], n_jobs: int) -> Iterator[tuple[Job, list[Any]]]:
    if n_jobs == 1:
        for job in jobs:
            yield job, run_job(job)
        return
    numbered = Parallel(n_jobs=n_jobs, return_as="generator_unordered", pre_dispatch=n_jobs, batch_size=1)(
        delayed(_numbered)(number, job, os.getpid()) for number, job in enumerate(jobs)
    )
    try:
        for number, results in numbered:
            yield jobs[number], results
    except BaseException:
        with warnings.catch_warnings():  # joblib warns that what was in flight is lost: that is known
            warnings.simplefilter("ignore", UserWarning)
            numbered.close()
        raise


def _numbered(number: int, job: Job, runner: int) -> tuple[int, list[Any]]:
    if multiprocessing.current_process().name.startswith("LokyProcess"):
        _end_with(runner)
    return number, run_job(job)


@cache
def _end_with(runner: int) -> None:
    """Let this worker end when the run that started it was killed: nobody is there to take its results."""

    def watch() -> None:
        while os.getppid() == runner:  # another one once the run is gone, be it before this began
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@dataclass(frozen=True)
class Outcome:
    """The lines of a run.

    Attributes
    ----------
    plan : Plan
    data : list of Data
    lines : dict of str to list of dict, for each way of tuning one line per data set, method and split
    labelings : int, tables labelled for it, candidates and hidden labels included
    seconds : float, what they took in all, on one core
    """

    plan: Plan
    data: list[Data]
    lines: dict[str, list[dict[str, Any]]]
    labelings: int
    seconds: float


def run(
    plan: Plan, data: list[Data], store: Store, *, n_jobs: int = 1, show: ProgressCallback = lambda *_: None
) -> Outcome:
    """Compute what the store lacks, choose parameters, and gather the lines.

    Parameters
    ----------
    plan : Plan
    data : list of Data
    store : Store
    n_jobs : int, default=1
    show : callable, optional

    Returns
    -------
    Outcome
    """
    compute(list(chain.from_iterable(first_jobs(plan, one, store) for one in data)), store, n_jobs, show)
    if "honest" in plan.tunings:
        jobs = []
        for one in data:
            chosen = [(name, choice.params, cell) for name, cell, choice, _ in choices(plan, one, store, "honest")]
            jobs += final_jobs(plan, one, store, chosen)
        if jobs:
            compute(jobs, store, n_jobs, show)
    lines = {tuning: [line for one in data for line in rows(plan, one, store, tuning)] for tuning in plan.tunings}
    work = [work_done(plan, one, store) for one in data]
    return Outcome(plan, data, lines, sum(labelings for labelings, _ in work), sum(seconds for _, seconds in work))
