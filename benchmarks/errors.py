"""Precision and recall by class, rare classes, sets of classes and a promised risk, beside the truth.

    python benchmarks/errors.py              run what is not in benchmarks/results/errors.csv, then print the means
    python benchmarks/errors.py --draws 1    fewer draws
    python benchmarks/errors.py --summary    print the means, run nothing

Development tables (the folder `tables` of OTPROP_DATA) cut to 1 000 rows, labels drawn at random. The rare class of
churn is cut to 5 % of the rows. A line of errors.csv is a run: how many of the ranges of precision and recall hold, the
macro-F1 of OTP by its objective and of a forest and a logistic regression with balanced class weights, on the same
features; how often a set holds the true class, in all and in the worst class that has a threshold of its own; and the
error among the rows above the confidence for a risk of 5 %.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, recall_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from common import argument_parser, read_csv, write_csv
from error_prior import vectors
from otprop import OTP

RARE = {"attrition": None, "churn": 0.05, "credit_status": None}  # share to which the rarest class is cut
OTHERS = ("crx", "diamonds", "foods", "hr", "loans_home", "oj", "pets", "rats", "shelve", "splice", "storms", "titanic")
SIZES, ROWS, DRAWS = (50, 200), 1000, 3
COVERAGE, RISK = 0.9, 0.05
MIN_ROWS = 10  # of a class, for its coverage to be looked at
OUTPUT = "errors.csv"


def sample(name: str, n_labels: int, draw: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, classes, and the classes with -1 for all but the first `n_labels` rows."""
    X, y = vectors(name)
    rng = np.random.default_rng([draw, n_labels, *name.encode()])
    share = RARE.get(name)
    if share is not None:
        rare = np.bincount(y).argmin()
        n_kept = int((y != rare).sum() * share / (1 - share))
        kept = np.setdiff1d(np.arange(len(y)), rng.permutation(np.flatnonzero(y == rare))[n_kept:])
        X, y = X[kept], y[kept]
    rows = rng.permutation(len(y))[:ROWS]
    X, y = X[rows], y[rows]
    return X, y, np.where(np.arange(len(y)) < n_labels, y, -1)


def run(name: str, n_labels: int, draw: int) -> dict[str, Any] | None:
    """One run; None where the labels are of one class, or more than half of the rows."""
    X, y, shown = sample(name, n_labels, draw)
    left = shown == -1
    if n_labels > len(y) / 2 or len(np.unique(shown[~left])) < 2:
        return None
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain, balanced = (OTP(objective=each, n_jobs=1).fit(X, shown) for each in ("accuracy", "balanced"))
        dense = X.toarray() if hasattr(X, "toarray") else X
        found = {"accuracy": plain.transduction_[left], "balanced": balanced.transduction_[left]}
        for other, model in _others().items():
            found[other] = model.fit(dense[~left], y[~left]).predict(dense[left])
    line: dict[str, Any] = {"table": name, "labels": n_labels, "draw": draw, "rare": name in RARE}
    line |= _ranges(plain, y, left) | _ranges(balanced, y, left, "balanced_")
    classes = np.unique(y[left])
    for method, labels in found.items():
        options = {"labels": classes, "average": "macro", "zero_division": 0}
        line[f"f1_{method}"] = f"{f1_score(y[left], labels, **options):.4f}"
        line[f"recall_{method}"] = f"{recall_score(y[left], labels, **options):.4f}"
    return line | _guarantees(plain, y, left) | {"seconds": f"{time.process_time() - start:.1f}"}


def _others() -> dict[str, Any]:
    linear = LogisticRegression(class_weight="balanced", max_iter=500)
    return {
        "forest": RandomForestClassifier(300, class_weight="balanced", random_state=0),
        "logistic": make_pipeline(StandardScaler(), linear),
    }


def _ranges(model: OTP, y: np.ndarray, left: np.ndarray, prefix: str = "") -> dict[str, Any]:
    """How many ranges there are and hold, and how far the worst class is off."""
    said, held, off = {"precision": 0, "recall": 0}, {"precision": 0, "recall": 0}, [0.0]
    for one in model.class_errors():
        labelled, real = model.transduction_[left] == one.label, y[left] == one.label
        for name, whole in (("precision", labelled), ("recall", real)):
            expected, (low, high) = getattr(one, name), getattr(one, f"{name}_range")
            if whole.any() and not np.isnan(expected):
                rate = (labelled & real).sum() / whole.sum()
                said[name] += 1
                held[name] += bool(low - 1e-9 <= rate <= high + 1e-9)
                off.append(abs(rate - expected))
    counts = {f"{prefix}{name}_{what}": of[name] for name in said for what, of in (("ranges", said), ("hold", held))}
    return counts | {f"{prefix}worst_off": f"{max(off):.4f}"}


def _guarantees(model: OTP, y: np.ndarray, left: np.ndarray) -> dict[str, Any]:
    sets = model.label_sets(COVERAGE)
    codes = np.minimum(np.searchsorted(model.classes_, y), len(model.classes_) - 1)
    inside = (sets.members[np.arange(len(y)), codes] & (model.classes_[codes] == y))[left]
    own = [code for code in np.flatnonzero(sets.by_class) if (codes[left] == code).sum() >= MIN_ROWS]
    worst = min((inside[codes[left] == code].mean() for code in own), default=float("nan"))
    line = {"covered": f"{inside.mean():.4f}", "covered_worst": f"{worst:.4f}"}
    line["set_size"] = f"{sets.members[left].sum(axis=1).mean():.4f}"
    try:
        sure = left & (model.confidence_ >= model.confidence_for_risk(RISK))
    except ValueError:
        return line | {"risk_rows": 0, "risk_error": ""}
    return line | {"risk_rows": int(sure.sum()), "risk_error": f"{(model.transduction_ != y)[sure].mean():.4f}"}


def summarise(lines: list[dict[str, Any]]) -> None:
    """Print the means by number of labels."""
    for size in SIZES:
        here = [line for line in lines if int(line["labels"]) == size]
        if not here:
            continue
        print(f"{size} labels, {len(here)} runs")
        for prefix in ("", "balanced_"):
            shares = [
                sum(int(line[f"{prefix}{name}_hold"]) for line in here)
                / sum(int(line[f"{prefix}{name}_ranges"]) for line in here)
                for name in ("precision", "recall")
            ]
            off = np.mean([float(line[f"{prefix}worst_off"]) > 0.2 for line in here])
            print(
                f"  {prefix or 'accuracy_'}ranges hold: precision {shares[0]:.3f}, recall {shares[1]:.3f}; "
                f"worst class off by more than 20 points in {off:.0%} of the runs"
            )
        for title, some in (("rare class", "True"), ("other tables", "False")):
            of = [line for line in here if str(line["rare"]) == some]
            means = {
                measure: ", ".join(
                    f"{method} {np.mean([float(line[f'{measure}_{method}']) for line in of]):.3f}"
                    for method in ("accuracy", "balanced", "forest", "logistic")
                )
                for measure in ("f1", "recall")
            }
            print(f"  {title} ({len(of)} runs): macro-F1 {means['f1']}; mean recall {means['recall']}")
        covered, worst, width = (
            np.nanmean([float(line[name]) for line in here]) for name in ("covered", "covered_worst", "set_size")
        )
        print(f"  sets for {COVERAGE}: {covered:.3f}, worst class with its own threshold {worst:.3f}, size {width:.2f}")
        promised = [line for line in here if line["risk_error"] != ""]
        broken = sum(float(line["risk_error"]) > RISK for line in promised)
        print(f"  risk {RISK}: promised in {len(promised)} runs, broken in {broken}")


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--summary", action="store_true")
    options = parser.parse_args()
    lines: list[dict[str, Any]] = list(read_csv(OUTPUT))
    done = {(line["table"], int(line["labels"]), int(line["draw"])) for line in lines}
    for draw in range(0 if options.summary else options.draws):
        for size in SIZES:
            for name in (*RARE, *OTHERS):
                if (name, size, draw) not in done and (line := run(name, size, draw)) is not None:
                    lines.append(line)
                    write_csv(OUTPUT, lines)
                    print(line["table"], size, draw, line["seconds"], flush=True)
    summarise(lines)


if __name__ == "__main__":
    main()
