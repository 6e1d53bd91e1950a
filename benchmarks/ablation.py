"""What each part of `OTP()` is worth: the same tables and splits with a part switched off, or done otherwise.

On five data sets, a line a table, way of drawing labels, percentage and split, with the NMI on the unlabelled rows of
every variant, goes to benchmarks/results/ablation.csv; on eight mixed tables of 1 000 rows, a line a table, number of
random labels and draw, with the accuracy, to ablation_tables.csv. Each is written as soon as it is done; run again, it
goes on with what is missing.

    python benchmarks/ablation.py
    python benchmarks/ablation.py --summary     what the lines say together
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import normalized_mutual_info_score

import active
from common import argument_parser, commit, run_missing
from otprop import OTP
from otprop_paper import datasets
from otprop_paper.benchmark.protocol import LABEL_DRAWS, Cell, draw

FILE, FILE_MIXED = "ablation.csv", "ablation_tables.csv"
DATASETS = ("iris", "wine", "heart", "ionosphere", "dermatology")
PERCENTAGES = (5, 15)
SPLITS = 3
CLASSIFIERS = {
    "forest": ("forest", "random_forest"),
    "linear": ("linear",),
    "boosting": ("boosting",),
    "gaussian": ("gaussian",),
}
MIXED = ("titanic", "crx", "splice", "hr", "storms", "oj", "churn", "mushroom")
N_LABELS, DRAWS = (50, 200), 2
VARIANTS: dict[str, dict[str, Any]] = {
    "OTP()": {},
    "diffusion alone": {"evidence": None},
    **{f"without {name}": {"without": names} for name, names in CLASSIFIERS.items()},
    "one setting of the diffusion": {"n_neighbors": 10, "diffusion": 0.95},
    "one round": {"max_rounds": 1},
    "strength 0": {"marginal_strength": 0.0},
    "one round, strength 0": {"max_rounds": 1, "marginal_strength": 0.0},
    "strength 1": {"marginal_strength": 1.0},
    "equal shares": {"class_prior": "uniform"},
    "shares of the labels": {},  # filled in for each drawing
    "true shares": {},  # the same
}


def fitted(X: Any, codes: np.ndarray, without: tuple[str, ...] = (), **parameters: Any) -> OTP:
    """A variant of `OTP()`, or what `OTP()` uses without the classifiers of these names."""
    model = OTP(n_jobs=1, **parameters).fit(X, codes)
    if not without:
        return model
    kept = [source.name for source in model.evidence_[1:] if source.name not in without]  # the first is the diffusion
    return OTP(n_jobs=1, evidence=kept, **parameters).fit(X, codes)


def run(name: str, how: str, percent: int, split: int) -> dict[str, object]:
    """One line."""
    data = datasets.prepare(datasets.load(name))
    codes = draw(data.y, Cell(percent, split, how))
    hidden = codes == -1
    shares = {"shares of the labels": np.bincount(codes[~hidden]), "true shares": np.bincount(data.y)}
    line: dict[str, object] = {"dataset": name, "labels": how, "percent": percent, "split": split}
    for variant, parameters in VARIANTS.items():
        prior = {"class_prior": shares[variant]} if variant in shares else {}
        model = fitted(data.X, codes, **parameters, **prior)
        line[variant] = f"{normalized_mutual_info_score(data.y[hidden], model.transduction_[hidden]):.4f}"
    return line | {"commit": commit()}


def run_mixed(name: str, n_labels: int, number: int) -> dict[str, object]:
    """One line of a mixed table."""
    X, y = active.read(name, number)
    shown = np.full(len(y), -1)
    rows = np.random.default_rng([number, n_labels]).permutation(len(y))[:n_labels]
    shown[rows] = y[rows]
    line: dict[str, object] = {"table": name, "labels": n_labels, "draw": number}
    for variant, parameters in VARIANTS.items():
        prior = {"class_prior": np.bincount(y[np.isin(y, y[rows])])} if variant == "true shares" else {}
        if prior or parameters or variant == "OTP()":
            prior = {name: value[np.unique(y[rows])] for name, value in prior.items()}
            model = fitted(X, shown, **parameters, **prior)
            line[variant] = f"{(model.transduction_ == y)[shown < 0].mean():.4f}"
    return line | {"commit": commit()}


def summary_mixed(lines: list[dict[str, str]]) -> None:
    """Means over the mixed tables."""
    for variant in VARIANTS:
        here = [
            [float(line[variant]) for line in lines if line["labels"] == str(n)]
            for n in N_LABELS
            if variant in lines[0]
        ]
        if here:
            print(f"{variant:30s} " + " ".join(f"{np.mean(values):.4f}" for values in here))


def summary(lines: list[dict[str, str]]) -> None:
    """Means over the tables, and how often a variant is above `OTP()`."""
    head = " ".join(f"{how:>11s}" for how in LABEL_DRAWS)
    print(f"{'NMI on the unlabelled rows':30s} {head}   tables (of {len(DATASETS)}) above")
    for variant in VARIANTS:
        means = {how: by_table(lines, how, variant) for how in LABEL_DRAWS}
        above = [sum(means[how] > by_table(lines, how, "OTP()") + 1e-4) for how in LABEL_DRAWS]
        shown = " ".join(f"{np.mean(means[how]):11.4f}" for how in LABEL_DRAWS)
        print(f"{variant:30s} {shown}   {' '.join(map(str, above))}")


def by_table(lines: list[dict[str, str]], how: str, variant: str) -> np.ndarray:
    here = [line for line in lines if line["labels"] == how]
    return np.array(
        [np.mean([float(line[variant]) for line in here if line["dataset"] == name] or [np.nan]) for name in DATASETS]
    )


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--summary", action="store_true", help="print what is there; run nothing")
    options = parser.parse_args()
    cells = [
        (name, how, percent, split)
        for name in DATASETS
        for how in LABEL_DRAWS
        for percent in PERCENTAGES
        for split in range(SPLITS)
    ]
    mixed = [(name, n_labels, number) for name in MIXED for n_labels in N_LABELS for number in range(DRAWS)]
    key = ("table", "labels", "draw")
    summary_mixed(run_missing(FILE_MIXED, run_mixed, [] if options.summary else mixed, options.jobs, key=key))
    summary(run_missing(FILE, run, [] if options.summary else cells, options.jobs))


if __name__ == "__main__":
    main()
