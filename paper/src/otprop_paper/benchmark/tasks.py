"""A run divided into tasks that share computations, and the execution of one task."""

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
from otprop_paper.benchmark.grids import Params
from otprop_paper.benchmark.methods import BenchmarkMethod, MethodSetting, find_method, without_thinning
from otprop_paper.benchmark.prepared import Labelings, PreparedData, dataset_cache
from otprop_paper.benchmark.protocol import PROTOCOL, Cell, draw, hidden_draws
from otprop_paper.benchmark.reliability import summarise
from otprop_paper.benchmark.scores import accuracy, ari, nmi
from otprop_paper.benchmark.store import Store

FEW_ROWS = 1000  # up to here all splits of a candidate are one task
TRUTH, HIDDEN = "truth", "hidden"

StoredResult = tuple[dict[str, Any], dict[str, Any]]  # key and value
CandidateCell = tuple[Params, Cell, str]  # with the kind of labels


@dataclass(frozen=True)
class Plan:
    """The methods, percentages, splits and tunings of a run.

    Attributes
    ----------
    methods : tuple of str
    percents : tuple of float
    n_splits : int
    labels : {"stratified", "random", "equal"}
    tunings : tuple of {"honest", "oracle"}
    full : bool, whether large data sets are run without thinning
    """

    methods: tuple[str, ...]
    percents: tuple[float, ...]
    n_splits: int = 10
    labels: str = "stratified"
    tunings: tuple[str, ...] = ("honest",)
    full: bool = False

    def method(self, name: str) -> BenchmarkMethod:
        """A method, without its thinnings where the plan is full."""
        method = find_method(name)
        return without_thinning(method) if self.full else method

    def setting(self, name: str, data: PreparedData) -> MethodSetting:
        """How a method is run on a data set."""
        setting = self.method(name).setting(data.name, len(data.y))
        if setting.percents is None or not set(self.percents) - set(setting.percents):
            return replace(setting, percents=None)
        kept = tuple(percent for percent in self.percents if percent in setting.percents)
        if not kept:  # the percentages were named explicitly
            return replace(setting, percents=None)
        note = f"{setting.thinned}; {', '.join(f'{percent:g}' for percent in kept)} % only"
        return replace(setting, percents=kept, thinned=note)

    def cells(self, setting: MethodSetting) -> list[Cell]:
        """The draws of labels of a setting."""
        n_splits = min(self.n_splits, setting.splits or self.n_splits)
        percents = setting.percents or self.percents
        return [Cell(percent, split, self.labels) for percent in percents for split in range(n_splits)]


@dataclass(frozen=True)
class CellTask:
    """The cells that one worker computes together.

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
    data: PreparedData = field(repr=False)


def cell_key(data: PreparedData, method: str, params: Params, cell: Cell, kind: str, draws: int) -> dict[str, Any]:
    """The key of a result in the store: everything it depends on."""
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


def can_tune(data: PreparedData, cell: Cell) -> bool:
    """Whether every class of a cell has enough labels for some to be hidden."""
    return bool(hidden_draws(draw(data.y, cell), cell.split, 1))


def tuning_tasks(plan: Plan, data: PreparedData, store: Store) -> list[CellTask]:
    """The tasks of a data set whose results the choice of parameters needs and the store lacks."""
    return [
        task for name, setting, cells in _to_compute(plan, data) for task in _group(data, name, setting, cells, store)
    ]


def _to_compute(plan: Plan, data: PreparedData) -> Iterator[tuple[str, MethodSetting, list[CandidateCell]]]:
    """For every method of a plan its setting and the candidates and cells it is run with."""
    tunable = {cell for cell in plan.cells(MethodSetting(find_method("otp").grid)) if can_tune(data, cell)}
    for name in plan.methods:
        setting = plan.setting(name, data)
        cells, candidates = plan.cells(setting), setting.grid.candidates()
        one = len(candidates) == 1
        with_truth = one or "oracle" in plan.tunings or find_method(name).shared_parameter is not None
        with_hidden = not one and "honest" in plan.tunings
        yield (
            name,
            setting,
            [
                (params, cell, kind)
                for params in candidates
                for cell in cells
                for kind in (TRUTH, HIDDEN)
                if (with_truth if kind == TRUTH else with_hidden and cell in tunable)
            ],
        )


def time_spent(plan: Plan, data: PreparedData, store: Store) -> tuple[int, float]:
    """How many tables the tuning tasks of a data set labelled and the seconds they took, over all runs."""
    labelings, seconds = 0, 0.0
    for name, setting, cells in _to_compute(plan, data):
        for params, cell, kind in cells:
            value = store.get(cell_key(data, name, params, cell, kind, setting.draws))
            if value is not None:
                labelings += value.get("draws", 1)
                seconds += value["seconds"]
    return labelings, seconds


def scoring_tasks(
    plan: Plan, data: PreparedData, store: Store, chosen: Iterable[tuple[str, Params, Cell]]
) -> list[CellTask]:
    """The tasks for chosen candidates whose result the store lacks."""
    by_method: dict[str, list[CandidateCell]] = {}
    for name, params, cell in chosen:
        by_method.setdefault(name, []).append((params, cell, TRUTH))
    return [
        task for name, cells in by_method.items() for task in _group(data, name, plan.setting(name, data), cells, store)
    ]


def _group(
    data: PreparedData, name: str, setting: MethodSetting, wanted: list[CandidateCell], store: Store
) -> Iterator[CellTask]:
    """Group the candidates and cells that the store lacks by what they share."""
    shared_parameter = find_method(name).shared_parameter
    few = len(data.y) <= FEW_ROWS
    groups: dict[tuple[Any, ...], list[CandidateCell]] = {}
    for params, cell, kind in wanted:
        if cell_key(data, name, params, cell, kind, setting.draws) in store:
            continue
        if shared_parameter is not None:
            group: tuple[Any, ...] = (params[shared_parameter],)
        elif few:
            group = (*params.values(), cell.percent)
        else:
            group = (*params.values(), cell.percent, cell.split)
        groups.setdefault(group, []).append((params, cell, kind))
    for members in groups.values():
        candidates = {str(params): params for params, _, _ in members}
        cells = dict.fromkeys(cell for _, cell, _ in members)
        kinds = dict.fromkeys(kind for _, _, kind in members)
        yield CellTask(name, tuple(candidates.values()), tuple(cells), tuple(kinds), setting.draws, data)


def run_task(task: CellTask) -> list[StoredResult]:
    """Label, score, and return the results with their keys."""
    with threadpool_limits(1):  # the same sums in the same order, however many workers there are
        return list(_results(task))


def _results(task: CellTask) -> Iterator[StoredResult]:
    sets: list[tuple[Cell, np.ndarray | None, np.ndarray]] = []
    for cell in task.cells:
        codes = draw(task.data.y, cell)
        if TRUTH in task.kinds:
            sets.append((cell, None, codes))
        if HIDDEN in task.kinds:
            for hidden in hidden_draws(codes, cell.split, task.draws):
                kept = codes.copy()
                kept[hidden] = UNLABELED
                sets.append((cell, hidden, kept))
    run = find_method(task.method).run
    labels, seeds = [kept for _, _, kept in sets], [cell.split for cell, _, _ in sets]
    for labelings in run(dataset_cache(task.data), list(task.candidates), labels, seeds):
        yield from _scored(task, sets, labelings)


def _scored(
    task: CellTask, sets: list[tuple[Cell, np.ndarray | None, np.ndarray]], labelings: Labelings
) -> Iterator[StoredResult]:
    params, seconds = labelings.params, labelings.seconds / len(sets)
    on_hidden: dict[Cell, list[float]] = {}
    for number, (cell, hidden, kept) in enumerate(sets):
        found = labelings.found[number]
        if hidden is None:
            value: dict[str, Any] = scores(task.data.y, found, kept) | {"seconds": seconds}
            if labelings.confidence is not None:
                rows = kept == UNLABELED
                right = found[rows] == task.data.y[rows]
                value["reliability"] = summarise(labelings.confidence[number][rows], right)
            yield cell_key(task.data, task.method, params, cell, TRUTH, task.draws), value
        else:
            on_hidden.setdefault(cell, []).append(float(np.mean(found[hidden] == task.data.y[hidden])))
    for cell, values in on_hidden.items():
        value = {"accuracy": float(np.mean(values)), "draws": len(values), "seconds": seconds * len(values)}
        yield cell_key(task.data, task.method, params, cell, HIDDEN, task.draws), value


def scores(y: np.ndarray, found: np.ndarray, codes: np.ndarray) -> dict[str, float]:
    """NMI, ARI and accuracy on the unlabelled rows and on all rows; a row left without a label (-1) is wrong."""
    out = {}
    for where, rows in (("unlabelled", codes == UNLABELED), ("all", np.ones(len(y), dtype=bool))):
        for name, score in (("nmi", nmi), ("ari", ari), ("accuracy", accuracy)):
            out[f"{name}_{where}"] = float(score(y[rows], found[rows]))
    return out
