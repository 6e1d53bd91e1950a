"""`OTP()` with nothing tuned: beside the paper, beside its own limit without transport, and calibrated or not.

Every cell (data set, way to draw labels, percentage, split) is run with `OTP()` and with its limit, one round at
strength 0, on the same splits as `otprop-paper`. A line a cell goes to benchmarks/results/default.csv as soon as it
is done; run again, it goes on with the cells that are missing. `--summary` only reads the file. The column "gain" of
the summary is the NMI above that of the limit. Large data sets have fewer splits with the limit.

    python benchmarks/default.py                        the seven data sets, labels drawn in three ways
    python benchmarks/default.py --datasets iris heart  some of them
    python benchmarks/default.py --summary              what the lines say together
"""

from __future__ import annotations

import time
from collections.abc import Iterable

import numpy as np
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from common import PAPER_DATASETS, PERCENTAGES, argument_parser, commit, mean, run_missing
from otprop import OTP
from otprop_paper import datasets
from otprop_paper.benchmark.paper import published_score
from otprop_paper.benchmark.protocol import LABEL_DRAWS, Cell, draw
from otprop_paper.benchmark.reliability import summarise

FILE = "default.csv"
LARGE = {"waveform": 3, "digits": 3, "mnist10k": 2}  # splits with random and equal labels, and with the limit
METRICS = {"nmi": normalized_mutual_info_score, "ari": adjusted_rand_score}


def cells(names: Iterable[str], hows: Iterable[str], splits: int) -> list[tuple[str, str, int, int]]:
    """All cells: data set, way of drawing, percentage, split."""
    return [
        (name, how, percent, split)
        for name in names
        for how in hows
        for percent in PERCENTAGES
        for split in range(splits if how == "stratified" else min(splits, LARGE.get(name, splits)))
    ]


def run(name: str, how: str, percent: int, split: int) -> dict[str, object]:
    """One cell."""
    data = datasets.prepare(datasets.load(name))
    codes = draw(data.y, Cell(percent, split, how))
    start = time.perf_counter()
    model = OTP(n_jobs=1).fit(data.X, codes)
    seconds = time.perf_counter() - start
    limit = None
    if split < LARGE.get(name, split + 1):
        limit = OTP(n_jobs=1, max_rounds=1, marginal_strength=0.0).fit(data.X, codes)
    hidden = codes == -1
    line: dict[str, object] = {"dataset": name, "labels": how, "percent": percent, "split": split}
    for metric, score in METRICS.items():
        line[metric] = f"{score(data.y[hidden], model.transduction_[hidden]):.4f}"
        line[f"{metric}_all"] = f"{score(data.y, model.transduction_):.4f}"
        line[f"{metric}_limit"] = f"{score(data.y[hidden], limit.transduction_[hidden]):.4f}" if limit else ""
    right = model.transduction_[hidden] == data.y[hidden]
    confidence = model.confidence_[hidden]
    line["accuracy"] = f"{right.mean():.4f}"
    line["confidence"] = f"{confidence.mean():.4f}"
    line["calibration_error"] = f"{summarise(confidence, right)['ece']:.4f}"
    for number, share in enumerate(quintiles(confidence, right), start=1):
        line[f"quintile_{number}"] = f"{share:.4f}"
    line["weights"] = " ".join(f"{source.name}={source.weight:.2f}" for source in model.evidence_)
    line["seconds"] = f"{seconds:.2f}"
    line["commit"] = commit()
    return line


def quintiles(confidence: np.ndarray, right: np.ndarray) -> list[float]:
    """Accuracy in each fifth of the rows, the least confident first."""
    return [float(right[part].mean()) for part in np.array_split(np.argsort(confidence, kind="stable"), 5)]


def summary(lines: list[dict[str, str]]) -> None:
    """Print what the issue asks for: beside the paper, beside the limit, and the calibration."""
    for how in LABEL_DRAWS:
        here = [line for line in lines if line["labels"] == how]
        if not here:
            continue
        names = [name for name in PAPER_DATASETS if any(line["dataset"] == name for line in here)]
        print(f"\nlabels {how}: {len(here)} cells with splits")
        if how == "stratified":
            beside_paper(here, names)
        print(f"{'data set':12s} {'NMI':>7s} {'gain':>8s} {'ECE':>7s}  accuracy by fifths of confidence")
        gains = []
        for name in names:
            of = [line for line in here if line["dataset"] == name]
            nmi, error = mean(of, "nmi"), mean(of, "calibration_error")
            both = [line for line in of if line["nmi_limit"]]
            gain = mean(both, "nmi") - mean(both, "nmi_limit")
            fifths = " ".join(f"{mean(of, f'quintile_{number}'):.3f}" for number in range(1, 6))
            print(f"{name:12s} {nmi:7.4f} {gain:+8.4f} {error:7.4f}  {fifths}")
            gains.append((nmi, gain, error))
        nmi, gain, error = np.mean(gains, axis=0)
        print(f"{'mean':12s} {nmi:7.4f} {gain:+8.4f} {error:7.4f}")


def beside_paper(lines: list[dict[str, str]], names: list[str]) -> None:
    """Mean scores, and in how many cells they reach the paper's."""
    for metric in METRICS:
        for where, key in (("unlabelled rows", metric), ("all rows", f"{metric}_all")):
            ours, theirs = [], []
            for name in names:
                for percent in PERCENTAGES:
                    of = [line for line in lines if line["dataset"] == name and int(line["percent"]) == percent]
                    if of:
                        ours.append(mean(of, key))
                        theirs.append(published_score(metric, name, percent, "OTP") or np.nan)
            above = sum(our >= their for our, their in zip(ours, theirs, strict=True))
            print(
                f"{metric.upper()} on {where}: {np.mean(ours):.4f}, the paper's OTP {np.mean(theirs):.4f}; "
                f"at or above it in {above} of {len(ours)} cells"
            )


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--datasets", nargs="+", default=list(PAPER_DATASETS), choices=PAPER_DATASETS)
    parser.add_argument("--labels", nargs="+", default=list(LABEL_DRAWS), choices=LABEL_DRAWS)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--summary", action="store_true", help="print what is there; run nothing")
    options = parser.parse_args()
    wanted = [] if options.summary else cells(options.datasets, options.labels, options.splits)
    summary(run_missing(FILE, run, wanted, options.jobs))


if __name__ == "__main__":
    main()
