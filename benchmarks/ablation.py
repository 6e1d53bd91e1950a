"""What each part of `OTP()` is worth: the same tables and splits with a part switched off, or done otherwise.

A line a table, way of drawing labels, percentage and split, with the NMI on the unlabelled rows of every variant, goes
to benchmarks/results/ablation.csv as soon as it is done; run again, it goes on with what is missing. At the end the
means are printed, as docs/default.md has them.

    python benchmarks/ablation.py
    python benchmarks/ablation.py --summary     what the lines say together
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import normalized_mutual_info_score

from common import argument_parser, commit, run_missing
from otprop import OTP, datasets
from otprop.benchmark.protocol import LABEL_DRAWS, Cell, draw

FILE = "ablation.csv"
DATASETS = ("iris", "wine", "heart", "ionosphere", "dermatology")
PERCENTAGES = (5, 15)
SPLITS = 3
VARIANTS: dict[str, dict[str, Any]] = {
    "OTP()": {},
    "diffusion alone": {"evidence": None},
    "without the forest": {"evidence": ["linear"]},
    "without the linear classifier": {"evidence": ["forest"]},
    "one setting of the diffusion": {"n_neighbors": 10, "diffusion": 0.95},
    "one round": {"max_rounds": 1},
    "strength 0": {"marginal_strength": 0.0},
    "one round, strength 0": {"max_rounds": 1, "marginal_strength": 0.0},
    "strength 1": {"marginal_strength": 1.0},
    "equal shares": {"class_prior": "uniform"},
    "shares of the labels": {},  # filled in for each drawing
    "true shares": {},  # the same
}


def run(name: str, how: str, percent: int, split: int) -> dict[str, object]:
    """One line."""
    data = datasets.prepare(datasets.load(name))
    codes = draw(data.y, Cell(percent, split, how))
    hidden = codes == -1
    shares = {"shares of the labels": np.bincount(codes[~hidden]), "true shares": np.bincount(data.y)}
    line: dict[str, object] = {"dataset": name, "labels": how, "percent": percent, "split": split}
    for variant, parameters in VARIANTS.items():
        prior = {"class_prior": shares[variant]} if variant in shares else {}
        model = OTP(n_jobs=1, **parameters, **prior).fit(data.X, codes)
        line[variant] = f"{normalized_mutual_info_score(data.y[hidden], model.transduction_[hidden]):.4f}"
    return line | {"commit": commit()}


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
    summary(run_missing(FILE, run, [] if options.summary else cells, options.jobs))


if __name__ == "__main__":
    main()
