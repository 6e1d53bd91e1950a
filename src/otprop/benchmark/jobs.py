"""What there is to do, cut into jobs that share work, and the doing of one job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from otprop import __version__
from otprop._labels import UNLABELED
from otprop.benchmark.grids import Params
from otprop.benchmark.methods import Answers, Method, Setting, find_method, without_thinning
from otprop.benchmark.protocol import PROTOCOL, Cell, draw, hidden_draws
from otprop.benchmark.reliability import summarise
from otprop.benchmark.scores import accuracy, ari, nmi
from otprop.benchmark.store import Store
from otprop.benchmark.workspace import Data, workspace

FEW_ROWS = 1000  # up to here all splits of a candidate are one job
TRUTH, HIDDEN = "truth", "hidden"

Result = tuple[dict[str, Any], dict[str, Any]]


@dataclass(frozen=True)
class Plan:
    """What a command asks for.

    Attributes
    ----------
    methods : tuple of str
    percents : tuple of float
    n_splits : int
    labels : {"stratified", "random", "equal"}
    tunings : tuple of {"honest", "oracle"}
    full : bool, thin nothing
    """

    methods: tuple[str, ...]
    percents: tuple[float, ...]
    n_splits: int = 10
    labels: str = "stratified"
    tunings: tuple[str, ...] = ("honest",)
    full: bool = False

    def method(self, name: str) -> Method:
        """A method, thinned or not as the plan has it."""
        method = find_method(name)
        return without_thinning(method) if self.full else method

    def setting(self, name: str, data: Data) -> Setting:
        """What a method does on a data set under this plan."""
        setting = self.method(name).setting(data.name, len(data.y))
        if setting.percents is None or not set(self.percents) - set(setting.percents):
            return replace(setting, percents=None)
        kept = tuple(percent for percent in self.percents if percent in setting.percents)
        if not kept:  # others were asked for, by name
            return replace(setting, percents=None)
        words = f"{setting.thinned}; {', '.join(f'{percent:g}' for percent in kept)} % only"
        return replace(setting, percents=kept, thinned=words)

    def cells(self, setting: Setting) -> list[Cell]:
        """The drawings of labels that a setting covers."""
        n_splits = min(self.n_splits, setting.splits or self.n_splits)
        percents = setting.percents or self.percents
        return [Cell(percent, split, self.labels) for percent in percents for split in range(n_splits)]


@dataclass(frozen=True)
class Job:
    """Work that is done in one go by one worker.

    Attributes
    ----------
    method : str
    candidates : tuple of dict
    cells : tuple of Cell
    kinds : tuple of {"truth", "hidden"}
        "truth": label with all given labels, score with the true classes. "hidden": label with part of them hidden,
        score on those.
    draws : int, at most this many draws of hidden labels
    """

    method: str
    candidates: tuple[Params, ...]
    cells: tuple[Cell, ...]
    kinds: tuple[str, ...]
    draws: int
    data: Data = field(repr=False)


def parts(data: Data, method: str, params: Params, cell: Cell, kind: str, draws: int) -> dict[str, Any]:
    """All that a result depends on: its key in the store.

    Parameters
    ----------
    data : Data
    method : str
    params : dict
    cell : Cell
    kind : {"truth", "hidden"}
    draws : int, for the hidden labels

    Returns
    -------
    dict
    """
    return {
        "dataset": data.name,
        "data": data.fingerprint,
        "method": method,
        "params": params,
        "percent": cell.percent,
        "split": cell.split,
        "labels": cell.labels,
        "kind": kind,
        "draws": draws if kind == HIDDEN else 0,
        "version": __version__,
        "code": find_method(method).code(),
        "solver": _version("POT") if method == "released" else "",
        "libraries": [_version(name) for name in ("numpy", "scipy", "scikit-learn")],
        "gap": data.gap,
        "protocol": PROTOCOL,
    }


@cache
def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def can_tune(data: Data, cell: Cell) -> bool:
    """Whether every class of a cell has labels to hide.

    Parameters
    ----------
    data : Data
    cell : Cell

    Returns
    -------
    bool
    """
    return bool(hidden_draws(draw(data.y, cell), cell.split, 1))


def first_jobs(plan: Plan, data: Data, store: Store) -> list[Job]:
    """The jobs that a plan needs on a data set before anything can be chosen; what the store has is left out.

    Parameters
    ----------
    plan : Plan
    data : Data
    store : Store

    Returns
    -------
    list of Job
    """
    return [job for name, setting, wanted in _wanted(plan, data) for job in _cut(data, name, setting, wanted, store)]


def _wanted(plan: Plan, data: Data) -> Iterator[tuple[str, Setting, list[tuple[Params, Cell, str]]]]:
    """For every method of a plan the candidates, cells and kinds of labels that it is run with."""
    tunable = {cell for cell in plan.cells(Setting(find_method("otp").grid)) if can_tune(data, cell)}
    for name in plan.methods:
        setting = plan.setting(name, data)
        cells, candidates = plan.cells(setting), setting.grid.candidates()
        wanted = [(params, cell, kind) for params in candidates for cell in cells for kind in (TRUTH, HIDDEN)]
        together = find_method(name).together is not None
        yield (
            name,
            setting,
            [
                (params, cell, kind)
                for params, cell, kind in wanted
                if _is_wanted(plan, len(candidates), together, cell in tunable, kind)
            ],
        )


def _is_wanted(plan: Plan, n_candidates: int, together: bool, tunable: bool, kind: str) -> bool:
    """Hidden labels for honest tuning, the truth for the oracle; the truth beside it where it costs little more."""
    if n_candidates == 1:
        return kind == TRUTH
    if kind == HIDDEN:
        return "honest" in plan.tunings and tunable
    return "oracle" in plan.tunings or together


def work_done(plan: Plan, data: Data, store: Store) -> tuple[int, float]:
    """What the first jobs of a plan took on a data set, in whichever runs they were done.

    Parameters
    ----------
    plan : Plan
    data : Data
    store : Store

    Returns
    -------
    labelings : int, tables labelled: for every candidate, cell and set of labels one
    seconds : float, on one core
    """
    labelings, seconds = 0, 0.0
    for name, setting, wanted in _wanted(plan, data):
        for params, cell, kind in wanted:
            value = store.get(parts(data, name, params, cell, kind, setting.draws))
            if value is not None:
                labelings += value.get("draws", 1)
                seconds += value["seconds"]
    return labelings, seconds


def final_jobs(plan: Plan, data: Data, store: Store, chosen: Iterable[tuple[str, Params, Cell]]) -> list[Job]:
    """The jobs for chosen candidates whose result is not there yet.

    Parameters
    ----------
    plan : Plan
    data : Data
    store : Store
    chosen : iterable of (method, params, cell)

    Returns
    -------
    list of Job
    """
    by_method: dict[str, list[tuple[Params, Cell, str]]] = {}
    for name, params, cell in chosen:
        by_method.setdefault(name, []).append((params, cell, TRUTH))
    return [
        job for name, wanted in by_method.items() for job in _cut(data, name, plan.setting(name, data), wanted, store)
    ]


def _cut(
    data: Data, name: str, setting: Setting, wanted: list[tuple[Params, Cell, str]], store: Store
) -> Iterator[Job]:
    """Group what is wanted and not there by what it shares."""
    together = find_method(name).together
    few = len(data.y) <= FEW_ROWS
    groups: dict[tuple[Any, ...], list[tuple[Params, Cell, str]]] = {}
    for params, cell, kind in wanted:
        if parts(data, name, params, cell, kind, setting.draws) in store:
            continue
        if together is not None:
            group: tuple[Any, ...] = (params[together],)
        elif few:
            group = (*params.values(), cell.percent)
        else:
            group = (*params.values(), cell.percent, cell.split)
        groups.setdefault(group, []).append((params, cell, kind))
    for members in groups.values():
        candidates = {str(params): params for params, _, _ in members}
        cells = dict.fromkeys(cell for _, cell, _ in members)
        kinds = dict.fromkeys(kind for _, _, kind in members)
        yield Job(name, tuple(candidates.values()), tuple(cells), tuple(kinds), setting.draws, data)


def run_job(job: Job) -> list[Result]:
    """Label, score, and return the results with their keys.

    Parameters
    ----------
    job : Job

    Returns
    -------
    list of pairs (parts, value)
    """
    with threadpool_limits(1):  # the same sums in the same order, however many workers there are
        return list(_results(job))


def _results(job: Job) -> Iterator[Result]:
    sets: list[tuple[Cell, np.ndarray | None, np.ndarray]] = []
    for cell in job.cells:
        codes = draw(job.data.y, cell)
        if TRUTH in job.kinds:
            sets.append((cell, None, codes))
        if HIDDEN in job.kinds:
            for hidden in hidden_draws(codes, cell.split, job.draws):
                kept = codes.copy()
                kept[hidden] = UNLABELED
                sets.append((cell, hidden, kept))
    run = find_method(job.method).run
    labels, seeds = [kept for _, _, kept in sets], [cell.split for cell, _, _ in sets]
    for answers in run(workspace(job.data), list(job.candidates), labels, seeds):
        yield from _scored(job, sets, answers)


def _scored(job: Job, sets: list[tuple[Cell, np.ndarray | None, np.ndarray]], answers: Answers) -> Iterator[Result]:
    params, seconds = answers.params, answers.seconds / len(sets)
    on_hidden: dict[Cell, list[float]] = {}
    for number, (cell, hidden, kept) in enumerate(sets):
        answer = answers.found[number]
        if hidden is None:
            value: dict[str, Any] = scores(job.data.y, answer, kept) | {"seconds": seconds}
            if answers.confidence is not None:
                rows = kept == UNLABELED
                right = answer[rows] == job.data.y[rows]
                value["reliability"] = summarise(answers.confidence[number][rows], right)
            yield parts(job.data, job.method, params, cell, TRUTH, job.draws), value
        else:
            on_hidden.setdefault(cell, []).append(float(np.mean(answer[hidden] == job.data.y[hidden])))
    for cell, values in on_hidden.items():
        value = {"accuracy": float(np.mean(values)), "draws": len(values), "seconds": seconds * len(values)}
        yield parts(job.data, job.method, params, cell, HIDDEN, job.draws), value


def scores(y: np.ndarray, found: np.ndarray, codes: np.ndarray) -> dict[str, float]:
    """NMI, ARI and accuracy on the unlabelled rows and on all rows; a row left without a label (-1) is wrong.

    Parameters
    ----------
    y : ndarray of int, the true classes
    found : ndarray of int
    codes : ndarray of int, the given labels, -1 where none

    Returns
    -------
    dict of str to float
    """
    out = {}
    for where, rows in (("unlabelled", codes == UNLABELED), ("all", np.ones(len(y), dtype=bool))):
        for name, score in (("nmi", nmi), ("ari", ari), ("accuracy", accuracy)):
            out[f"{name}_{where}"] = float(score(y[rows], found[rows]))
    return out
