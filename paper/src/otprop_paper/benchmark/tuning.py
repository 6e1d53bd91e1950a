"""The choice of parameters, by hidden labels or by the truth, and the rows of the table of results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from otprop_paper.benchmark.grids import Grid, Params
from otprop_paper.benchmark.methods import MethodSetting
from otprop_paper.benchmark.prepared import PreparedData
from otprop_paper.benchmark.protocol import Cell, draw
from otprop_paper.benchmark.store import Store
from otprop_paper.benchmark.tasks import HIDDEN, TRUTH, Plan, can_tune, cell_key

ORACLE_SCORE = "nmi_unlabelled"
ROUNDING = 1e-12  # scores this near to the best are as good

NOTHING_TO_CHOOSE, BY_DEFAULT, BY_HIDING, BY_TRUTH = "nothing to choose", "default", "hidden labels", "truth"


@dataclass(frozen=True)
class Choice:
    """The candidate used for a cell.

    Attributes
    ----------
    params : dict
    chosen_by : {"nothing to choose", "default", "hidden labels", "truth"}
    hidden_score : float, mean accuracy on the hidden labels, NaN where none were hidden
    """

    params: Params
    chosen_by: str
    hidden_score: float = float("nan")


def best_candidate(grid: Grid, candidates: list[Params], values: list[float]) -> int:
    """The best candidate; of equally good ones that nearest to the default in the grid, then the first."""
    top = max(values)
    near = [i for i, value in enumerate(values) if value >= top - ROUNDING]
    return min(near, key=lambda i: (grid.steps_from_default(candidates[i]), i))


def tune_by_hidden_labels(data: PreparedData, method: str, setting: MethodSetting, cell: Cell, store: Store) -> Choice:
    """The candidate with the best accuracy on hidden labels of a cell; the true classes are not used."""
    candidates = setting.grid.candidates()
    if len(candidates) == 1:
        return Choice(candidates[0], NOTHING_TO_CHOOSE)
    if not can_tune(data, cell):
        return Choice(setting.grid.default, BY_DEFAULT)
    values = [
        _get(store, cell_key(data, method, params, cell, HIDDEN, setting.draws))["accuracy"] for params in candidates
    ]
    number = best_candidate(setting.grid, candidates, values)
    return Choice(candidates[number], BY_HIDING, values[number])


def tune_by_truth(data: PreparedData, method: str, setting: MethodSetting, cells: list[Cell], store: Store) -> Choice:
    """The candidate with the best mean NMI over the splits of one percentage, by the true classes."""
    candidates = setting.grid.candidates()
    if len(candidates) == 1:
        return Choice(candidates[0], NOTHING_TO_CHOOSE)
    keys = [[cell_key(data, method, params, cell, TRUTH, setting.draws) for cell in cells] for params in candidates]
    values = [float(np.mean([_get(store, key)[ORACLE_SCORE] for key in row])) for row in keys]
    return Choice(candidates[best_candidate(setting.grid, candidates, values)], BY_TRUTH)


def _get(store: Store, wanted: dict[str, Any]) -> dict[str, Any]:
    found = store.get(wanted)
    if found is None:
        raise LookupError(f"no result in {store.folder} for {wanted}: it has not been computed.")
    return found


def choices(
    plan: Plan, data: PreparedData, store: Store, tuning: str
) -> Iterator[tuple[str, Cell, Choice, MethodSetting]]:
    """The choice for every method and cell of a data set."""
    for name in plan.methods:
        setting = plan.setting(name, data)
        cells = plan.cells(setting)
        if tuning == "honest":
            for cell in cells:
                yield name, cell, tune_by_hidden_labels(data, name, setting, cell, store), setting
            continue
        for percent in dict.fromkeys(cell.percent for cell in cells):
            here = [cell for cell in cells if cell.percent == percent]
            choice = tune_by_truth(data, name, setting, here, store)
            for cell in here:
                yield name, cell, choice, setting


def result_rows(plan: Plan, data: PreparedData, store: Store, tuning: str) -> Iterator[dict[str, Any]]:
    """The rows of the table of results for a data set."""
    for name, cell, choice, setting in choices(plan, data, store, tuning):
        key = cell_key(data, name, choice.params, cell, TRUTH, setting.draws)
        value = _get(store, key)
        kept = value.get("reliability")  # None for methods without a confidence, and for results of earlier versions
        yield {
            "dataset": data.name,
            "method": name,
            "percent": cell.percent,
            "split": cell.split,
            "labels": cell.labels,
            "tuning": tuning,
            **{score: value[score] for score in value if score not in ("seconds", "reliability")},
            "reliability": kept,
            "ece": kept["ece"] if kept else float("nan"),
            "n_rows": len(data.y),
            "n_labelled": int(np.count_nonzero(draw(data.y, cell) >= 0)),
            "params": choice.params,
            "chosen_by": choice.chosen_by,
            "hidden_score": choice.hidden_score,
            "n_candidates": len(setting.grid.candidates()),
            "thinned": setting.thinned,
            "seconds": value["seconds"],
            "version": key["version"],
            "code": key["code"],
            "data": data.fingerprint,
        }
