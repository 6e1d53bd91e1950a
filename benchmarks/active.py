"""Accuracy against labels given, for several orders of labelling: `make active`.

    python benchmarks/active.py                    run what active.csv lacks, then print the summary
    python benchmarks/active.py --summary          print the summary of what there is
    python benchmarks/active.py --tables oj        of these tables only; also --orders, --seeds, --starts, --minutes

A third of the rows of a table can never be picked; accuracy is that on these rows, under `OTP()` and under a forest
that is trained on the labels alone. Start: one label a class, or none. Then batches of ten, and larger ones from 60
labels on, up to 300 labels or half of the rows that can be picked. Of tables with more rows, 1 000 are drawn for every
seed, except for MNIST.

Development tables had a part in making `suggest`; the others were looked at once, when it was done.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier

import error_prior
from active_orders import FROM_NONE, ORDERS, State
from common import RESULTS, argument_parser, load, mean, run_missing, write_csv
from otprop import OTP
from otprop.loop.labels_needed import estimate_labels_needed

DEVELOPMENT = ("iris", "penguins_raw", "titanic", "crx", "mushroom", "splice", "churn", "hr", "storms", "oj", "tweets")
APART = ("heart", "ionosphere", "dermatology", "waveform", "digits", "mnist10k", "attrition", "foods", "diamonds")
GROUPS = {"development": DEVELOPMENT, "apart": APART}
FROM_PACKAGE = ("iris", "heart", "ionosphere", "dermatology", "waveform", "digits", "mnist10k")
MOST_ROWS = 1000
TEST_SHARE = 1 / 3
SIZES = (10, 20, 30, 40, 50, 60, 80, 100, 150, 200, 300)
ENOUGH = 0.95  # of the final accuracy under random labels
GOALS = (0.9, 0.8, 0.65, 0.5, 0.35, 0.25)  # parts of the expected error that `labels_needed` is asked for
KEY = ("table", "start", "order", "seed")


def read(name: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and class numbers, without classes of fewer than five rows."""
    X, y = load(name) if name in FROM_PACKAGE else error_prior._mixed(name)
    X = X.toarray() if hasattr(X, "toarray") else np.asarray(X, dtype=np.float64)
    rows = np.random.default_rng(seed).permutation(len(y))[: None if name == "mnist10k" else MOST_ROWS]
    X, codes = X[rows], np.unique(y[rows].astype(str), return_inverse=True)[1]
    kept = np.bincount(codes)[codes] >= 5
    return X[kept], np.unique(codes[kept], return_inverse=True)[1]


def run(table: str, start: str, order: str, seed: int) -> list[dict[str, Any]]:
    """One walk: a line for every number of labels."""
    X, y = read(table, seed)
    rng = np.random.default_rng([seed, 1])
    test = np.zeros(len(y), dtype=bool)
    test[rng.choice(len(y), round(TEST_SHARE * len(y)), replace=False)] = True
    state = State(X, np.full(len(y), -1), ~test, rng, seed, lambda row: int(y[row]))
    state.kept["n_classes"] = int(y.max()) + 1
    drawn = np.zeros(len(y), dtype=bool)
    if start == "one a class":
        for code in range(y.max() + 1):
            row = rng.choice(np.flatnonzero(state.pool & (y == code)))
            state.shown[row], drawn[row] = code, True
    model, lines = OTP(warm_start=True, n_jobs=1), []
    first = int((state.shown >= 0).sum())
    most = min(SIZES[-1], int(state.pool.sum()) // 2)
    for size in [*([first] if first else []), *(size for size in SIZES if first < size <= most)]:
        begin = time.process_time()
        n = size - int((state.shown >= 0).sum())
        for row, is_drawn in ORDERS[order](state, n) if n else []:
            state.shown[row], drawn[row] = y[row], is_drawn
        picking = time.process_time() - begin
        model.fit(X, state.shown, chosen=~drawn)
        state.model = model if len(model.classes_) > 1 else None
        lines.append(
            {"table": table, "start": start, "order": order, "seed": seed, "labels": size}
            | {"rows": len(y), "classes": int(y.max()) + 1, "drawn": int((drawn & (state.shown >= 0)).sum())}
            | judge(model, state, y, test)
            | {"seconds": round(picking, 3)}
        )
    return lines


def judge(model: OTP, state: State, y: np.ndarray, test: np.ndarray) -> dict[str, Any]:
    """Accuracy under both classifiers, and what was announced of the unlabelled rows."""
    right, left = model.transduction_ == y, state.shown < 0
    forest = ExtraTreesClassifier(200, random_state=0, n_jobs=1).fit(state.X[~left], state.shown[~left])
    low, high = model.error_range_
    found = {
        "otp": right[test].mean(),
        "forest": (forest.predict(state.X[test]) == y[test]).mean(),
        "whole_table": np.where(left, right, True).mean(),
        "real_error": 1.0 - right[left].mean(),
        "expected_error": model.expected_error_,
        "low": low,
        "high": high,
        "concentration": model.error_.concentration,
    }
    return {name: f"{value:.6g}" for name, value in found.items()}


def cells(tables: Iterable[str], starts: Iterable[str], orders: Iterable[str], seeds: int) -> list[tuple[Any, ...]]:
    """All walks, the first seed of all tables first."""
    return [
        (table, start, order, seed)
        for seed in range(seeds)
        for start in starts
        for table in tables
        for order in orders
        if (start != "none" or order in FROM_NONE)
        and (table != "mnist10k" or (seed < 1 and start != "none" and order != "ProbCover"))
    ]


def attempt(*cell: Any) -> list[dict[str, Any]]:
    """One walk without the warnings of other packages."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return run(*cell)


def curve(lines: list[dict[str, str]], column: str) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of labels, and the mean of a column over the seeds."""
    sizes = sorted({int(line["labels"]) for line in lines})
    by_size = [[float(line[column]) for line in lines if int(line["labels"]) == size] for size in sizes]
    return np.array(sizes), np.array([np.mean(values) for values in by_size])


def area(lines: list[dict[str, str]], column: str, scale: Callable[[Any], Any] = np.asarray) -> float:
    """Mean height of the curve over the number of labels, or over its logarithm: then the first labels count more."""
    sizes, values = curve(lines, column)
    sizes = scale(sizes)
    return float(np.trapezoid(values, sizes) / (sizes[-1] - sizes[0]))


def labels_until(lines: list[dict[str, str]], column: str, goal: float) -> float:
    """The number of labels at which the curve reaches the goal, between two sizes by a straight line."""
    sizes, values = curve(lines, column)
    reached = np.flatnonzero(values >= goal)
    if len(reached) == 0:
        return float(sizes[-1])
    place = reached[0]
    if place == 0:
        return float(sizes[0])
    part = (goal - values[place - 1]) / (values[place] - values[place - 1])
    return float(sizes[place - 1] + part * (sizes[place] - sizes[place - 1]))


def summary(rows: list[dict[str, str]], start: str, tables: Iterable[str], title: str) -> list[dict[str, Any]]:
    """Print and return area and labels needed of every order beside random drawing, over the seeds that both have."""
    by: dict[tuple[str, str], dict[int, list[dict[str, str]]]] = {}
    for row in rows:
        if row["start"] == start:
            by.setdefault((row["table"], row["order"]), {}).setdefault(int(row["seed"]), []).append(row)
    tables = [table for table in tables if (table, "random") in by and (table, "ours") in by]
    if not tables:
        return []
    print(f"\n{title}, start: {start}. {len(tables)} tables: {', '.join(tables)}")
    found = []
    for order in ORDERS:
        here = [table for table in tables if set(by.get((table, order), ())) & set(by[table, "random"])]
        for judge in ("otp", "forest") if here else ():
            each = [compared(by[table, order], by[table, "random"], judge) for table in here]
            areas, logs, ratios = (np.array(values) for values in zip(*each, strict=True))
            numbers = {"area": areas.mean(), "area_of_log": logs.mean(), "labels": ratios.mean(), "most": ratios.max()}
            found.append(
                {"tables": title, "start": start, "order": order, "judge": judge, "n_tables": len(here)}
                | {"walks": sum(len(set(by[table, order]) & set(by[table, "random"])) for table in here)}
                | {name: f"{value:.4f}" for name, value in numbers.items()}
                | {"fall": f"{largest_fall([by[table, order] for table in here], judge):.4f}"}
            )
            print(found[-1])
    return found


def largest_fall(tables: list[dict[int, list[dict[str, str]]]], judge: str) -> float:
    """The largest fall of the accuracy from one step to the next, in the mean over tables and seeds."""
    curves = [curve([line for walk in walks.values() for line in walk], judge) for walks in tables]
    sizes = sorted(set.intersection(*(set(sizes.tolist()) for sizes, _ in curves)))
    means = np.mean([values[np.isin(numbers, sizes)] for numbers, values in curves], axis=0)
    return float(max(0.0, -np.diff(means).min(initial=0.0)))


def compared(
    mine: dict[int, list[dict[str, str]]], drawn: dict[int, list[dict[str, str]]], judge: str
) -> tuple[float, float, float]:
    """Area above that of random drawing, over labels and their logarithm, and the ratio of the labels needed."""
    seeds = set(mine) & set(drawn)
    lines, other = ([line for seed in seeds for line in walks[seed]] for walks in (mine, drawn))
    goal = ENOUGH * curve(other, judge)[1][-1]
    plain, logs = (area(lines, judge, scale) - area(other, judge, scale) for scale in (np.asarray, np.log))
    return plain, logs, labels_until(lines, judge, goal) / labels_until(other, judge, goal)


def honesty(rows: list[dict[str, str]]) -> list[dict[str, Any]]:
    """How often the announced range, and that of `labels_needed`, hold along the walks of `ours`."""
    found = []
    for title, tables in GROUPS.items():
        here = [row for row in rows if row["order"] == "ours" and row["table"] in tables]
        said = [row for row in here if float(row["concentration"]) > 0]
        if not said:
            continue
        inside = [float(row["low"]) - 1e-9 <= float(row["real_error"]) <= float(row["high"]) + 1e-9 for row in said]
        found.append(
            {"tables": title, "steps": len(here), "announced_steps": len(said), "range_holds": f"{np.mean(inside):.4f}"}
            | {name: f"{mean(said, name):.4f}" for name in ("expected_error", "real_error")}
            | needed_honesty(rows, tables)
        )
        print(found[-1])
    return found


def needed_honesty(rows: list[dict[str, str]], tables: Iterable[str]) -> dict[str, Any]:
    """How often `labels_needed` knows a number for parts of the error, given the walk so far, and how often it holds.

    Most goals lie beyond the end of the walk. `needed_tested` are the numbers that the walk can contradict from either
    side: their range begins before it ends.
    """
    known, tested = [], []
    n_cases = 0
    for walk in _walks(rows, tables):
        earlier: list[tuple[int, float]] = []
        for place, line in enumerate(walk):
            n_labels, expected = int(line["labels"]), float(line["expected_error"])
            concentration, n_left = float(line["concentration"]), int(line["rows"]) - n_labels
            for goal in (part * expected for part in GOALS if concentration > 0 and expected > 0):
                n_cases += 1
                needed = estimate_labels_needed(goal, expected, concentration, n_labels, n_left, earlier)
                if needed.is_known:
                    least, most = _labels_taken(walk[place:], goal, n_left)
                    known.append(needed.low <= most and least <= needed.high)
                    if needed.low <= int(walk[-1]["labels"]) - n_labels:
                        tested.append(known[-1])
            if concentration > 0:
                earlier.append((n_labels, expected))
    shares = {"needed_holds": known, "needed_tested_holds": tested}
    return {"needed_cases": n_cases, "needed_known": len(known), "needed_tested": len(tested)} | {
        name: f"{np.mean(each) if each else np.nan:.4f}" for name, each in shares.items()
    }


def _walks(rows: list[dict[str, str]], tables: Iterable[str]) -> list[list[dict[str, str]]]:
    """The lines of each walk of `ours`, in order."""
    found: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in rows:
        if row["order"] == "ours" and row["table"] in tables:
            found.setdefault(tuple(row[name] for name in KEY), []).append(row)
    return [sorted(walk, key=lambda row: int(row["labels"])) for walk in found.values()]


def _labels_taken(walk: list[dict[str, str]], goal: float, n_left: int) -> tuple[int, int]:
    """Between how many and how many more labels the real error fell to the goal."""
    first, before = int(walk[0]["labels"]), 0
    for line in walk:
        now = int(line["labels"]) - first
        if float(line["real_error"]) <= goal:
            return before, now
        before = now
    return before, n_left


def slopes(rows: list[dict[str, str]]) -> None:
    """Print the slopes of the error over the labels in walks of `ours` on development tables, for `labels_needed`."""
    found = []
    for table in DEVELOPMENT:
        here = [row for walk in _walks(rows, [table]) for row in walk if int(row["labels"]) >= 20]
        if here:
            sizes, errors = curve(here, "real_error")
            if len(sizes) > 2:
                found.append(-np.polyfit(np.log(sizes), np.log(np.maximum(errors, 1e-3)), 1)[0])
    if len(found) > 2:
        shape = np.mean(found) ** 2 / np.var(found)
        print(
            f"slopes of {len(found)} development tables: {np.round(np.sort(found), 2)}; Gamma distribution with shape "
            f"{shape:.2f} and scale {np.mean(found) / shape:.2f}"
        )


def main() -> None:
    parser = argument_parser(__doc__)
    every = (*DEVELOPMENT, *APART)
    parser.add_argument("--tables", nargs="+", default=list(every), choices=every)
    parser.add_argument("--orders", nargs="+", default=list(ORDERS), choices=list(ORDERS))
    parser.add_argument("--starts", nargs="+", default=["one a class", "none"], choices=("one a class", "none"))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=1e6, help="begin no walk after so many minutes")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of active.csv")
    parser.add_argument("--summary", action="store_true")
    options = parser.parse_args()
    wanted = cells(options.tables, options.starts, options.orders, options.seeds)
    rows = run_missing(
        "active.csv", attempt, [] if options.summary else wanted, options.jobs,
        key=KEY, folder=options.out, minutes=options.minutes,
    )  # fmt: skip
    write_csv(
        "active_summary.csv",
        [
            line
            for start in ("one a class", "none")
            for title, tables in GROUPS.items()
            for line in summary(rows, start, tables, title)
        ],
        options.out,
    )
    write_csv("active_honesty.csv", honesty(rows), options.out)
    slopes(rows)


if __name__ == "__main__":
    main()
