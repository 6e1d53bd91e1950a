"""How long a plan will take, from a timed sample of each method on each data set."""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter

from otprop_paper.benchmark.methods import find_method
from otprop_paper.benchmark.prepared import PreparedData
from otprop_paper.benchmark.protocol import draw, hidden_draws
from otprop_paper.benchmark.store import Store
from otprop_paper.benchmark.tasks import TRUTH, CellTask, Plan, run_task, tuning_tasks


@dataclass(frozen=True)
class TimeEstimate:
    """The time that a method needs on a data set.

    Attributes
    ----------
    dataset, method : str
    labelings : int, candidates times sets of labels still to do
    seconds : float, on one core
    """

    dataset: str
    method: str
    labelings: int
    seconds: float


def time_estimates(plan: Plan, data: list[PreparedData], store: Store) -> list[TimeEstimate]:
    """Time a few labellings of each method on each data set and scale them up.

    Methods that share computations are timed with one set of labels and with three: the part that does not grow is
    counted once per candidate.
    """
    out = []
    for one in data:
        by_method: dict[str, list[CellTask]] = {}
        for task in tuning_tasks(plan, one, store):
            by_method.setdefault(task.method, []).append(task)
        out += [_time_estimate(method, tasks) for method, tasks in by_method.items()]
    return out


def _time_estimate(method: str, tasks: list[CellTask]) -> TimeEstimate:
    sample = tasks[0] if len(tasks) == 1 else tasks[len(tasks) // 2]
    sets = sum(_n_sets(task) * len(task.candidates) for task in tasks)
    candidates = sum(len(task.candidates) for task in tasks)
    one = replace(sample, candidates=sample.candidates[-1:], cells=sample.cells[:1], kinds=(TRUTH,))
    first = _time(one)  # with what is computed once for the data set
    once = _time(one)
    if find_method(method).shared_parameter is None:
        seconds = sets * once
    else:
        three = _time(replace(one, cells=sample.cells[: min(3, len(sample.cells))]))
        more = max(0.0, (three - once) / 2) if len(sample.cells) >= 3 else once
        seconds = candidates * max(once - more, 0.0) + sets * more
    return TimeEstimate(sample.data.name, method, sets, seconds + max(first - once, 0.0))


def _time(task: CellTask) -> float:
    start = perf_counter()
    run_task(task)
    return perf_counter() - start


def _n_sets(task: CellTask) -> int:
    """Number of label sets of a task."""
    total = 0
    for cell in task.cells:
        total += TRUTH in task.kinds
        if len(task.kinds) > 1 or TRUTH not in task.kinds:
            total += len(hidden_draws(draw(task.data.y, cell), cell.split, task.draws))
    return total


def estimate(plan: Plan, data: list[PreparedData], store: Store, n_jobs: int) -> str:
    """The estimates as text."""
    found = time_estimates(plan, data, store)
    lines = [f"{g.dataset:<16.16} {g.method:<14} {g.labelings:>7} labellings {g.seconds:>10.0f} s" for g in found]
    total = sum(one.seconds for one in found)
    lines.append(f"in all {total / 3600:.2f} hours of one core, {total / 3600 / n_jobs:.2f} hours with {n_jobs} jobs")
    return "\n".join(lines) + "\n"
