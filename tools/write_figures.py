"""Write the figures of the documents from the committed results of the benchmarks.

    python tools/write_figures.py           write them
    python tools/write_figures.py --check   only say which documents are out of date

A figure stands in README.md or docs/*.md between `<!-- figures: NAME -->` and `<!-- /figures -->`, within a line or, a
table, on lines of its own. NAME is a function of FIGURES below.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from otprop.benchmark.paper import published_score

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
MARKED = re.compile(r"(<!-- figures: ([\w-]+) -->)(.*?)(<!-- /figures -->)", re.DOTALL)
FIGURES: dict[str, Callable[[], str]] = {}
TABLE_METHODS = {
    "otprop": "otprop",
    "forest": "random forest",
    "boosting": "boosting",
    "logistic": "logistic",
    "self-training": "self-training",
}
TABLE_DRAWS = ("0", "1")  # draws that every table has
Row = dict[str, str]


def figure(write: Callable[[], str]) -> Callable[[], str]:
    """Add a function to FIGURES under its own name, with dashes."""
    FIGURES[write.__name__.replace("_", "-")] = write
    return write


def documents() -> list[Path]:
    """The documents that may hold figures."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def rewritten(text: str) -> str:
    """A document with the figures as the results have them now."""

    def write(match: re.Match[str]) -> str:
        begin, name, _, end = match.groups()
        if name not in FIGURES:
            raise SystemExit(f"there is no figure {name!r}; there are {', '.join(sorted(FIGURES))}")
        value = FIGURES[name]()
        return f"{begin}\n\n{value}\n\n{end}" if "\n" in value else f"{begin}{value}{end}"

    return MARKED.sub(write, text)


def read_results(name: str) -> list[Row]:
    """The rows of a result."""
    with (RESULTS / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def only(rows: Iterable[Row], **values: str) -> Row:
    """The one row with these values."""
    (row,) = [row for row in rows if all(row[name] == value for name, value in values.items())]
    return row


def mean(rows: Iterable[Row], column: str) -> float:
    """The mean of a column."""
    return float(np.mean([float(row[column]) for row in rows]))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head), *rows])


def thousands(number: float) -> str:
    """A whole number with blanks, at which no line is broken, between the thousands."""
    return f"{round(number):,}".replace(",", "\u00a0")


def code(name: str) -> str:
    """The name of a method, marked as code if it is a call."""
    return f"`{name}`" if "(" in name else name


# tables.csv: otprop label on mixed tables


def table_runs() -> dict[int, list[dict[str, Row]]]:
    """The runs of the first draws that all methods have, by number of labels; each run by method."""
    runs: dict[tuple[str, ...], dict[str, Row]] = {}
    for row in read_results("tables.csv"):
        if row["draw"] not in TABLE_DRAWS:
            continue
        runs.setdefault((row["labels"], row["table"], row["draw"], row["rows"]), {})[row["method"]] = row
    found: dict[int, list[dict[str, Row]]] = {}
    for (labels, *_), run in runs.items():
        if set(TABLE_METHODS) <= set(run):
            found.setdefault(int(labels), []).append(run)
    return dict(sorted(found.items()))


@figure
def mixed_tables() -> str:
    """Accuracy and announced error by number of labels."""
    rows = []
    for labels, runs in table_runs().items():
        scores = [mean((run[method] for run in runs), "accuracy") for method in TABLE_METHODS]
        best = max(scores)
        cells = [f"**{score:.3f}**" if score == best else f"{score:.3f}" for score in scores]
        ours = [run["otprop"] for run in runs]
        errors = [f"{mean(ours, column):.3f}" for column in ("announced_error", "real_error")]
        rows.append([thousands(labels), str(len(runs)), *cells, *errors])
    return table(["labels", "runs", *TABLE_METHODS.values(), "announced error", "real error"], rows)


@figure
def mixed_tables_runs() -> str:
    """Number of runs."""
    return str(sum(map(len, table_runs().values())))


@figure
def mixed_tables_gain() -> str:
    """Mean accuracy above the best of the others in each run."""
    gains = [
        float(run["otprop"]["accuracy"])
        - max(float(run[method]["accuracy"]) for method in TABLE_METHODS if method != "otprop")
        for runs in table_runs().values()
        for run in runs
    ]
    return f"{np.mean(gains):+.3f}"


@figure
def mixed_tables_range() -> str:
    """How often the announced range held."""
    return f"{100 * mean((run['otprop'] for runs in table_runs().values() for run in runs), 'range_holds'):.1f} %"


@figure
def mixed_tables_range_20() -> str:
    """The same with 20 labels."""
    return f"{100 * mean((run['otprop'] for run in table_runs()[20]), 'range_holds'):.0f} %"


# error_prior.csv: announced and real error on development tables


@figure
def announced_error() -> str:
    """Announced and real error by number of labels."""
    found = [row for row in read_results("error_prior.csv") if row["tables"] == "all" and row["labels"].isdigit()]
    rows = [
        [
            thousands(int(row["labels"])),
            row["runs"],
            f"{float(row['announced']):.3f}",
            f"{float(row['real error']):.3f}",
            f"{float(row['distance']):.3f}",
            f"{100 * float(row['range holds']):.0f} %",
        ]
        for row in found
    ]
    return table(["labels", "runs", "announced error", "real error", "mean distance", "range holds"], rows)


# default.csv and paper/: the paper's experiment


def default_cells(score: str) -> dict[tuple[str, str], float]:
    """Mean score of OTP() with stratified labels, by data set and percentage."""
    found: dict[tuple[str, str], list[float]] = {}
    for row in read_results("default.csv"):
        if row["labels"] == "stratified":
            found.setdefault((row["dataset"], row["percent"]), []).append(float(row[score]))
    return {cell: float(np.mean(values)) for cell, values in found.items()}


def printed(score: str, cells: Iterable[tuple[str, str]]) -> list[float]:
    """What the paper prints for its OTP in these cells."""
    scores = [published_score(score, dataset, float(percent), "OTP") for dataset, percent in cells]
    assert None not in scores, "a cell that the paper does not have"
    return [float(one) for one in scores if one is not None]


@figure
def paper_experiment() -> str:
    """OTP() beside the paper's OTP."""
    rows = []
    for title, ending in (("`OTP()`, unlabelled rows", ""), ("`OTP()`, all rows", "_all")):
        means, above, total = [], 0, 0
        for score in ("nmi", "ari"):
            cells = default_cells(score + ending)
            means.append(f"{np.mean(list(cells.values())):.3f}")
            above += sum(ours >= theirs for ours, theirs in zip(cells.values(), printed(score, cells), strict=True))
            total += len(cells)
        rows.append([title, *means, f"{above} of {total}"])
    paper = [f"{np.mean(printed(score, default_cells(score))):.3f}" for score in ("nmi", "ari")]
    return table(["", "NMI", "ARI", "cells at or above the paper's OTP"], [*rows, ["the paper's OTP", *paper, ""]])


@figure
def paper_nmi_01() -> str:
    """Mean NMI of version 0.1 on the splits of default.csv."""
    splits = {row["split"] for row in read_results("default.csv") if row["labels"] == "stratified"}
    cells: dict[tuple[str, str], list[float]] = {}
    for row in read_results("paper/stratified-honest.csv"):
        if row["method"] == "otp" and row["split"] in splits:
            cells.setdefault((row["dataset"], row["percent"]), []).append(float(row["nmi_unlabelled"]))
    return f"{np.mean([np.mean(values) for values in cells.values()]):.3f}"


def best_peer() -> tuple[str, float]:
    """The peer with the best mean NMI over the 28 cells, tuned by hidden labels."""
    found: dict[str, dict[tuple[str, str], list[float]]] = {}
    for row in read_results("paper/stratified-honest.csv"):
        cells = found.setdefault(row["method"], {})
        cells.setdefault((row["dataset"], row["percent"]), []).append(float(row["nmi_unlabelled"]))
    whole = max(map(len, found.values()))
    means = {
        method: float(np.mean([np.mean(values) for values in cells.values()]))
        for method, cells in found.items()
        if len(cells) == whole and method not in ("otp", "otp-paper", "released")
    }
    return max(means.items(), key=lambda item: item[1])


@figure
def best_peer_nmi() -> str:
    """Its mean NMI."""
    return f"{best_peer()[1]:.3f}"


@figure
def best_peer_name() -> str:
    """Its name."""
    return {"trees": "extra trees"}.get(best_peer()[0], best_peer()[0])


# deep.csv, dask_accuracy.csv


@figure
def networks() -> str:
    """Networks on propagated labels beside their peers."""
    found: dict[tuple[str, str], dict[str, list[float]]] = {}
    for row in read_results("deep.csv"):
        if row["new_rows"] == "0":
            name = f"{row['method']}, {row['rounds']} rounds" if row["method"] == "ours" else row["method"]
            cell = found.setdefault((row["data"], row["labels"]), {})
            cell.setdefault(name, []).append(float(row["accuracy"]))
    methods = list(dict.fromkeys(name for cell in found.values() for name in cell))
    rows = [
        [method, *(f"{np.mean(cell[method]):.3f}" if method in cell else "" for cell in found.values())]
        for method in sorted(methods)
    ]
    return table(["accuracy", *(f"{data}, {labels} labels" for data, labels in found)], rows)


@figure
def landmark_accuracy() -> str:
    """Accuracy against the number of landmarks."""
    rows = sorted(read_results("dask_accuracy.csv"), key=lambda row: (row["data"], int(row["landmarks"])))
    names = ("data", "rows", "labels", "landmarks", "accuracy", "core_seconds")
    titles = ["data", "rows", "labels", "landmarks", "accuracy", "core-seconds"]
    return table(titles, [[row[name] for name in names] for row in rows])


# few_labels.csv, speed_default.csv, scale.csv, many_classes.csv, label_file.csv


def few_labels(method: str, labels: int) -> float:
    """Mean accuracy on MNIST."""
    rows = [row for row in read_results("few_labels.csv") if row["labels"] == str(labels)]
    return mean((row for row in rows if row["method"] == method), "accuracy")


@figure
def mnist() -> str:
    """MNIST with few labels, all methods."""
    rows = read_results("few_labels.csv")
    methods, labels = sorted({row["method"] for row in rows}), sorted({int(row["labels"]) for row in rows})
    methods.sort(key=lambda method: -few_labels(method, labels[0]))
    lines = [[code(m), *(f"{few_labels(m, n):.3f}" for n in labels)] for m in methods]
    return table(["accuracy, mean of five splits", *(f"{thousands(n)} labels" for n in labels)], lines)


@figure
def mnist_speed() -> str:
    """Seconds on MNIST."""
    rows = [row for row in read_results("speed_default.csv") if row["data"] == "mnist70k"]
    head = ["1 % of the labels", "seconds", "accuracy"]
    return table(head, ([code(row["method"]), row["seconds"], row["accuracy"]] for row in rows))


@figure
def many_rows() -> str:
    """Time and memory by number of rows."""
    more = ["features", "labels", "seconds", "gigabytes", "accuracy"]
    return table(
        ["data", "rows", *more],
        (
            [row["data"], thousands(int(row["rows"])), *(row[column] for column in more)]
            for row in read_results("scale.csv")
        ),
    )


@figure
def many_classes() -> str:
    """Time and memory by number of classes."""
    head = ["rows", "classes", "CPU seconds", "megabytes", "accuracy"]
    columns = ("cpu_seconds", "megabytes", "accuracy")
    return table(
        head,
        (
            [thousands(int(row["rows"])), thousands(int(row["classes"])), *(row[column] for column in columns)]
            for row in read_results("many_classes.csv")
        ),
    )


@figure
def label_file() -> str:
    """`otprop label` on a large file."""
    head = ["rows", "columns", "format", "labels", "seconds", "gigabytes", "accuracy"]
    return table(
        head,
        (
            [thousands(int(row["rows"])), *(row[column] for column in head[1:])]
            for row in read_results("label_file.csv")
        ),
    )


# published_method.csv, speed.csv


@figure
def published_method() -> str:
    """The paper's figures beside what its equations give."""
    head = ["data", "labelled", "printed", "authors' loop on POT", "plan solved to 1e-6", "Gibbs kernel, no transport"]
    columns = ("nmi_printed", "nmi_authors_loop", "nmi_solved_plan", "nmi_kernel_vote")
    return table(
        head,
        (
            ["Iris" if row["dataset"] == "iris" else "Digits", f"{row['percent']} %"]
            + [f"{float(row[column]):.4f}" for column in columns]
            for row in read_results("published_method.csv")
        ),
    )


@figure
def solver_speed() -> str:
    """The solver beside POT."""
    rows = []
    for row in read_results("speed.csv"):
        name = {"digits": "Digits", "mnist10k": "MNIST 10k"}[row["dataset"]]
        cut = row["pot_reached_tol"] != "True"
        sign = "> " if cut else ""
        rounds, error = row["pot_rounds"], f"{float(row['pot_error']):.0e}".replace("e-0", "e-")
        pot = f"{sign}{row['pot_seconds']}" + (f", cut off in round {rounds} at error {error}" if cut else "")
        case = [name, f"{row['percent']} %", f"{float(row['epsilon_over_nn']):g}"]
        ratios = [sign + row["ratio_all"], sign + row["ratio_solver"], row["memory_ratio"]]
        rows.append([*case, row["otprop_seconds"], pot, *ratios])
    head = ["data", "labelled", "epsilon / nn", "otprop", "POT", "all", "solver", "peak memory / largest cost"]
    return table(head, rows)


def main() -> int:
    """Write the documents, or name those that would change."""
    check, changed = "--check" in sys.argv[1:], []
    for path in documents():
        text = path.read_text(encoding="utf-8")
        if (new := rewritten(text)) != text:
            changed.append(path.relative_to(ROOT).as_posix())
            if not check:
                path.write_text(new, encoding="utf-8")
    for name in changed:
        print(f"{name}: {'the figures are not those of the results' if check else 'written'}")
    return int(check and bool(changed))


if __name__ == "__main__":
    sys.exit(main())
