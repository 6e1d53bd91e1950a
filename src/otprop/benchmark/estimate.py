"""How long a plan will take, from a timed sample of each method on each data set."""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter

from otprop.benchmark.jobs import TRUTH, Job, Plan, first_jobs, run_job
from otprop.benchmark.methods import find_method
from otprop.benchmark.protocol import draw, hidden_draws
from otprop.benchmark.store import Store
from otprop.benchmark.workspace import Data


@dataclass(frozen=True)
class Guess:
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


def guesses(plan: Plan, data: list[Data], store: Store) -> list[Guess]:
    """Time a few labellings of each method on each data set and scale them up.

    Splits that share work are timed with one set of labels and with three: what does not grow is counted once a
    candidate. The sample is the first and the last candidate, at the smallest and the largest percentage.

    Parameters
    ----------
    plan : Plan
    data : list of Data
    store : Store, what it has is not counted

    Returns
    -------
    list of Guess
    """
    out = []
    for one in data:
        by_method: dict[str, list[Job]] = {}
        for job in first_jobs(plan, one, store):
            by_method.setdefault(job.method, []).append(job)
        out += [_guess(method, jobs) for method, jobs in by_method.items()]
    return out


def _guess(method: str, jobs: list[Job]) -> Guess:
    sample = jobs[0] if len(jobs) == 1 else jobs[len(jobs) // 2]
    sets = sum(_sets(job) * len(job.candidates) for job in jobs)
    candidates = sum(len(job.candidates) for job in jobs)
    one = replace(sample, candidates=sample.candidates[-1:], cells=sample.cells[:1], kinds=(TRUTH,))
    first = _time(one)  # with what is computed once for the data set
    once = _time(one)
    if find_method(method).together is None:
        seconds = sets * once
    else:
        three = _time(replace(one, cells=sample.cells[: min(3, len(sample.cells))]))
        more = max(0.0, (three - once) / 2) if len(sample.cells) >= 3 else once
        seconds = candidates * max(once - more, 0.0) + sets * more
    return Guess(sample.data.name, method, sets, seconds + max(first - once, 0.0))


def _time(job: Job) -> float:
    start = perf_counter()
    run_job(job)
    return perf_counter() - start


def _sets(job: Job) -> int:
    """How many sets of labels a job has."""
    total = 0
    for cell in job.cells:
        total += TRUTH in job.kinds
        if len(job.kinds) > 1 or TRUTH not in job.kinds:
            total += len(hidden_draws(draw(job.data.y, cell), cell.split, job.draws))
    return total


def estimate(plan: Plan, data: list[Data], store: Store, n_jobs: int) -> str:
    """The guesses in words.

    Parameters
    ----------
    plan : Plan
    data : list of Data
    store : Store
    n_jobs : int

    Returns
    -------
    str
    """
    found = guesses(plan, data, store)
    lines = [f"{g.dataset:<16.16} {g.method:<14} {g.labelings:>7} labellings {g.seconds:>10.0f} s" for g in found]
    total = sum(guess.seconds for guess in found)
    lines.append(f"in all {total / 3600:.2f} hours of one core, {total / 3600 / n_jobs:.2f} hours with {n_jobs} jobs")
    return "\n".join(lines) + "\n"
