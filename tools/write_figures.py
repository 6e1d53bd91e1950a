"""Write the figures of the documents from the committed results of the benchmarks.

    python tools/write_figures.py           write them
    python tools/write_figures.py --check   only say which documents are out of date

A figure stands in README.md or docs/*.md between `<!-- figures: NAME -->` and `<!-- /figures -->`, within a line or, a
table, on lines of its own. NAME is a function of FIGURES below. A figure from results that the present code did not
make (benchmarks/provenance.py) says so: below a table, or within a line if no table of the page says it.
"""

from __future__ import annotations

import csv
import operator
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from itertools import chain
from pathlib import Path

import numpy as np

from otprop_paper.benchmark.paper import published_score

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

import provenance  # noqa: E402

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
MORE_METHODS = {
    **TABLE_METHODS,
    "tuned-forest": "tuned forest",
    "catboost": "CatBoost",
    "lightgbm": "LightGBM",
}
DEVELOPMENT_TABLES = {  # of benchmarks/active.py
    "iris", "penguins_raw", "titanic", "crx", "mushroom", "splice", "churn", "hr", "storms", "oj", "tweets",
}  # fmt: skip
PEER_FILES = ("tables.csv", "tables_peers.csv")  # the second has the methods that the first lacks, on the same draws
TABLE_DRAWS = ("0", "1", "2")  # draws that all methods have of every table; otprop has more
Row = dict[str, str]


def figure(write: Callable[[], str]) -> Callable[[], str]:
    """Add a function to FIGURES under its own name, with dashes."""
    FIGURES[write.__name__.replace("_", "-")] = write
    return write


def documents() -> list[Path]:
    """The documents that may hold figures."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


_read: set[str] = set()  # results that the figure being written has used


def value_and_results(name: str) -> tuple[str, set[str]]:
    """A figure, and the results that it uses and that are not of the present code."""
    if name not in FIGURES:
        raise SystemExit(f"there is no figure {name!r}; there are {', '.join(sorted(FIGURES))}")
    _read.clear()
    value = FIGURES[name]()
    return value, {file for file in _read if provenance.changes(file, RESULTS, data=False)}


def measured(files: Iterable[str]) -> str:
    """When and with what results were made: "on 2026-11-16 with version 0.1.0"."""
    days: dict[str, set[str]] = {}
    for one in (provenance.origin(RESULTS / file) for file in files):
        days.setdefault(one.version, set()).add(one.day)
    return " and ".join(f"on {' and '.join(sorted(days[name]))} with version {name}" for name in sorted(days))


def rewritten(text: str) -> str:
    """A document with the figures as the results have them now."""
    found = {name: value_and_results(name) for name in dict.fromkeys(match[2] for match in MARKED.finditer(text))}
    noted = {provenance.benchmark_of(file) for value, old in found.values() if "\n" in value for file in old}

    def write(match: re.Match[str]) -> str:
        begin, name, _, end = match.groups()
        value, old = found[name]
        if "\n" in value:
            note = f"*Measured {measured(old)}; the code has changed since.*\n\n" if old else ""
            return f"{begin}\n\n{value}\n\n{note}{end}"
        unsaid = {file for file in old if provenance.benchmark_of(file) not in noted}
        if unsaid:
            stop = "." * value.endswith(".")
            value = f"{value.removesuffix('.')} (measured {measured(unsaid)}){stop}"
            noted.update(map(provenance.benchmark_of, unsaid))
        return f"{begin}{value}{end}"

    return MARKED.sub(write, text)


def read_results(name: str) -> list[Row]:
    """The rows of a result."""
    _read.add(name)
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


def counted(number: int, what: str) -> str:
    """A number of things: "1 split", "2 splits"."""
    return f"{number} {what}{'s' * (number != 1)}"


def thousands(number: float) -> str:
    """A whole number with blanks, at which no line is broken, between the thousands."""
    return f"{round(number):,}".replace(",", "\u00a0")


def code(name: str) -> str:
    """The name of a method, marked as code if it is a call."""
    return f"`{name}`" if "(" in name else name


# tables.csv: otprop label on mixed tables


def table_runs(*files: str, methods: Iterable[str] = TABLE_METHODS) -> dict[int, list[dict[str, Row]]]:
    """The runs of the first draws that all of some methods have, by number of labels; each run by method.

    Of tables.csv, or of these files.
    """
    runs: dict[tuple[str, ...], dict[str, Row]] = {}
    for row in chain.from_iterable(map(read_results, files or ["tables.csv"])):
        if row["draw"] not in TABLE_DRAWS:
            continue
        runs.setdefault((row["labels"], row["table"], row["draw"], row["rows"]), {})[row["method"]] = row
    found: dict[int, list[dict[str, Row]]] = {}
    for (labels, *_), run in runs.items():
        if set(methods) <= set(run):
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
    return table(["labels", "runs", *TABLE_METHODS.values(), "announced error of otprop", "its real error"], rows)


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
def mixed_tables_detail() -> str:
    """The same with balanced accuracy and the best of the others."""
    return detail_table(table_runs())


@figure
def mixed_tables_winners() -> str:
    """In how many runs each method is the best, and how far below the best of all it is in the mean."""
    lines = []
    for labels, runs in table_runs().items():
        scores = np.array([[float(run[name]["accuracy"]) for name in TABLE_METHODS] for run in runs])
        won = np.bincount(scores.argmax(axis=1), minlength=len(TABLE_METHODS))
        below = (scores.max(axis=1, keepdims=True) - scores).mean(axis=0)
        cells = [f"{number}, {distance:.3f}" for number, distance in zip(won, below, strict=True)]
        lines.append([thousands(labels), str(len(runs)), *cells])
    return table(["labels", "runs", *TABLE_METHODS.values()], lines)


@figure
def mixed_tables_lost() -> str:
    """Tables on which otprop is below the best of the others with 20 labels in most draws, and what is best there."""
    others = [name for name in TABLE_METHODS if name != "otprop"]
    found: dict[str, list[tuple[float, str]]] = {}
    for run in table_runs()[20]:
        best = max(others, key=lambda name: float(run[name]["accuracy"]))
        gain = float(run["otprop"]["accuracy"]) - float(run[best]["accuracy"])
        found.setdefault(run["otprop"]["table"], []).append((gain, TABLE_METHODS[best] if gain < 0 else "otprop"))
    lines = [
        [name, f"{np.mean([gain for gain, _ in draws]):+.3f}", ", ".join(best for _, best in draws)]
        for name, draws in sorted(found.items(), key=lambda item: np.mean([gain for gain, _ in item[1]]))
        if sum(gain < 0 for gain, _ in draws) * 2 > len(draws)
    ]
    return table(["table", "gain over the best of the others", "best of each draw"], lines)


@figure
def more_peers() -> str:
    """Scores of more classifiers, the means over the runs that all of them have."""
    runs = table_runs(*PEER_FILES, methods=MORE_METHODS)
    every = list(chain.from_iterable(runs.values()))
    lines = []
    for method, words in MORE_METHODS.items():
        by_size = [mean((run[method] for run in of_size), "accuracy") for of_size in runs.values()]
        others = [mean((run[method] for run in every), score) for score in ("macro_f1", "log_loss")]
        lines.append([words, *(f"{value:.3f}" for value in (*by_size, *others))])
    heads = [f"accuracy, {labels} labels" for labels in runs]
    return table([f"mean of {len(every)} runs", *heads, "macro-F1", "log-loss"], lines)


@figure
def catboost_wins() -> str:
    """How otprop and CatBoost compare in single runs."""
    parts = []
    for labels, runs in table_runs(*PEER_FILES, methods=("otprop", "catboost")).items():
        gains = np.array([float(run["otprop"]["accuracy"]) - float(run["catboost"]["accuracy"]) for run in runs])
        error = gains.std(ddof=1) / np.sqrt(len(gains))
        ahead = f"CatBoost ahead in {(gains < 0).sum()} of {len(gains)} runs"
        parts.append(f"{gains.mean():+.3f} with {labels} labels (standard error {error:.3f}, {ahead})")
    return f"the accuracy of otprop minus that of CatBoost is {', '.join(parts)}"


@figure
def tabpfn_peer() -> str:
    """TabPFN beside otprop and CatBoost, on the tables that it takes."""
    methods = ("otprop", "catboost", "tabpfn")
    lines = []
    for labels, runs in table_runs(*PEER_FILES, methods=methods).items():
        scores = [mean((run[name] for run in runs), "accuracy") for name in methods]
        lines.append([str(labels), str(len(runs)), *(f"{score:.3f}" for score in scores)])
    return table(["labels", "runs", "otprop", "CatBoost", "TabPFN 1"], lines)


@figure
def last_tables() -> str:
    """The same for tables that nothing was chosen on."""
    runs = table_runs("last_tables.csv")
    names = MORE_METHODS | {"label-spreading": "label spreading"}
    every = list(chain.from_iterable(runs.values()))
    return detail_table(runs, {name: words for name, words in names.items() if all(name in run for run in every)})


@figure
def last_tables_error() -> str:
    """What was announced for them."""
    rows = [row for row in read_results("last_tables.csv") if row["method"] == "otprop"]
    announced, real = (mean(rows, name) for name in ("announced_error", "real_error"))
    held = sum(float(row["range_holds"]) for row in rows)
    return f"{announced:.3f}, really {real:.3f}; the range held in {held:.0f} of {len(rows)} runs"


@figure
def ablation_tables() -> str:
    """What each part is worth on mixed tables."""
    rows = read_results("ablation_tables.csv")
    variants = [name for name in rows[0] if name not in ("table", "labels", "draw", "commit")]
    sizes = sorted({row["labels"] for row in rows}, key=int)
    lines = [
        [variant_name(name), *(f"{mean((row for row in rows if row['labels'] == size), name):.4f}" for size in sizes)]
        for name in variants
    ]
    return table(["accuracy", *(f"{size} labels" for size in sizes)], lines)


@figure
def ablation() -> str:
    """What each part is worth on five data sets of the paper's kind."""
    rows = read_results("ablation.csv")
    variants = [name for name in rows[0] if name not in ("dataset", "labels", "percent", "split", "commit")]
    draws = ("stratified", "random", "equal")
    lines = [
        [variant_name(name), *(f"{mean((row for row in rows if row['labels'] == draw), name):.3f}" for draw in draws)]
        for name in variants
    ]
    return table(["NMI", *(f"{draw} labels" for draw in draws)], lines)


def variant_name(name: str) -> str:
    """A variant of `OTP()` in words."""
    words = {
        "without forest": "without the extra trees",
        "random_forest": "the random forest",
        "gaussian": "the Gaussians",
    }
    return reduce(lambda text, one: text.replace(*one), words.items(), code(name))


def detail_table(by_labels: dict[int, list[dict[str, Row]]], methods: dict[str, str] = TABLE_METHODS) -> str:
    """Accuracy, balanced accuracy and the best of the other methods."""
    rows = []
    for labels, runs in by_labels.items():
        line = [thousands(labels), str(len(runs))]
        for score in ("accuracy", "balanced_accuracy"):
            scores = {name: mean((run[name] for run in runs), score) for name in methods}
            ours = scores.pop("otprop")
            best = max(scores, key=lambda name: scores[name])
            line += [f"{ours:.3f}", f"{methods[best]} {scores[best]:.3f}"]
        gain = np.mean(
            [
                float(run["otprop"]["accuracy"])
                - max(float(run[name]["accuracy"]) for name in methods if name != "otprop")
                for run in runs
            ]
        )
        rows.append([*line, f"{gain:+.3f}"])
    head = ["labels", "runs", "accuracy", "best of the others", "balanced accuracy", "best of the others"]
    return table([*head, "gain over the best of each run"], rows)


def our_table_runs(labels: str | None = None) -> list[Row]:
    """All runs of otprop."""
    rows = [row for row in read_results("tables.csv") if row["method"] == "otprop"]
    return [row for row in rows if labels in (None, row["labels"])]


@figure
def mixed_tables_announced() -> str:
    """Announced error and range, and the calibration of the confidence, all runs of otprop."""
    rows = []
    for labels in ("20", "50", "200", "1000", None):
        here = our_table_runs(labels)
        numbers = [f"{mean(here, name):.3f}" for name in ("announced_error", "real_error")]
        rows.append(
            ["all" if labels is None else thousands(int(labels)), str(len(here)), *numbers,
             f"{100 * mean(here, 'range_holds'):.0f} %", f"{mean(here, 'ece'):.3f}"]
        )  # fmt: skip
    head = ["labels", "runs", "announced error", "real error", "range holds", "calibration error of a run"]
    return table(head, rows)


@figure
def mixed_tables_all_runs() -> str:
    """Number of runs of otprop."""
    return str(len(our_table_runs()))


@figure
def mixed_tables_range() -> str:
    """How often the announced range held."""
    return f"{100 * mean(our_table_runs(), 'range_holds'):.1f} %"


@figure
def mixed_tables_range_20() -> str:
    """The same with 20 labels."""
    return f"{100 * mean(our_table_runs('20'), 'range_holds'):.0f} %"


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


# errors.csv: errors by class, rare classes, guarantees


def errors_groups() -> list[tuple[str, str, list[Row]]]:
    """The runs by number of labels, for development tables and those apart."""
    rows = read_results("errors.csv")
    groups = [
        (labels, title, [row for row in rows if (row["labels"], row["apart"]) == (labels, apart)])
        for labels in ("50", "200")
        for title, apart in (("development", "False"), ("apart", "True"))
    ]
    return [group for group in groups if group[2]]


@figure
def errors_rare() -> str:
    """Macro-F1 on tables with a rare class and on the others."""
    methods = {"accuracy": "OTP()", "balanced": '`objective="balanced"`', "forest": "forest", "boosting": "boosting",
               "logistic": "logistic regression"}  # fmt: skip
    lines = []
    for labels, title, rows in errors_groups():
        for kind, rare in (("rare class", "True"), ("others", "False")):
            here = [row for row in rows if row["rare"] == rare]
            if here:
                scores = [f"{mean(here, f'f1_{name}'):.3f}" for name in methods]
                lines.append([labels, f"{title}, {kind}", str(len(here)), *scores])
    return table(["labels", "tables", "runs", *methods.values()], lines)


@figure
def errors_classes() -> str:
    """Ranges of precision and recall, and sets."""
    lines = []
    for labels, title, rows in errors_groups():
        cells = [labels, title, str(len(rows))]
        for name in ("precision", "recall"):
            held, said = (sum(float(row[f"{name}_{what}"]) for row in rows) for what in ("hold", "ranges"))
            cells += [f"{held / said:.2f}", f"{np.mean([float(row[f'{name}_off']) > 0.2 for row in rows]):.0%}"]
        for method in ("", "mapie_", "crepes_"):
            covered, worst, size = (
                np.nanmean([float(row[f"{method}{name}"]) for row in rows])
                for name in ("covered", "covered_worst", "set_size")
            )
            cells.append(f"{covered:.2f}, {worst:.2f}, {size:.2f}")
        lines.append(cells)
    heads = ["labels", "tables", "runs", "precision holds", "off", "recall holds", "off"]
    return table([*heads, "sets for 0.9: all, worst class, size", "MAPIE", "crepes"], lines)


# trust.csv and trust_apart.csv: labels that were not drawn at random

SCENARIOS = {
    "random": "drawn at random",
    "suggest": "20 at random, then those of `suggest`",
    "groups_named": "whole natural groups, passed as `groups`",
    "groups_out": "whole natural groups, not passed",
    "groups_in": "groups labelled whole, their column a feature",
    "patients_named": "rows measured eight times, passed as `groups`",
    "patients": "rows measured eight times, not passed",
    "first": "the first rows of the file",
    "sorted": "the first rows of a sorted file",
    "easy": "easy rows",
    "hard": "hard rows",
    "equal": "as many of each class",
    "missing5": "no label of a class with 5 % of the rows",
    "missing20": "no label of a class with 20 %",
    "missing40": "no label of a class with 40 %",
    "wrong10": "10 % of the labels wrong",
    "wrong20": "20 % of the labels wrong",
    "copies": "each row ten times, labels at random",
    "later": "at random; `predict` on later rows of the file",
}


def trust_runs(name: str = "trust.csv", *scenarios: str) -> list[Row]:
    """The runs of some scenarios, or of all; draws that were left out have none."""
    rows = [row for row in read_results(name) if row["real_error"]]
    return [row for row in rows if not scenarios or row["scenario"] in scenarios]


def trust_table(name: str) -> str:
    """Announced and real error by scenario, ours and that of a forest."""
    rows = []
    for scenario, words in SCENARIOS.items():
        if here := trust_runs(name, scenario):
            either = [max(float(row["range_holds"]), float(row["warned"])) for row in here]
            held = [mean(here, "range_holds"), float(np.mean(either)), mean(here, "cv_holds")]
            errors = [mean(here, column) for column in ("announced_error", "real_error", "forest", "logistic")]
            announced, real, *others = (f"{error:.3f}" for error in errors)
            shares = (f"{100 * share:.0f} %" for share in held)
            rows.append([words, str(len(here)), announced, real, *shares, *others])
    head = ["how the labels came about", "runs", "announced error", "real error", "range holds", "holds or warned"]
    return table([*head, "forest: interval holds", "forest: real error", "logistic: real error"], rows)


@figure
def trust() -> str:
    """Labels that were not drawn at random, development tables."""
    return trust_table("trust.csv")


@figure
def trust_apart() -> str:
    """The same on tables that had no part in shift, groups and novelty."""
    return trust_table("trust_apart.csv")


@figure
def trust_harm() -> str:
    """How often the labels are far worse than those of both others, and the mean errors."""
    parts = []
    for name, where in (("trust.csv", "development tables"), ("trust_apart.csv", "tables kept apart")):
        rows = trust_runs(name)
        ours, forest, linear = (np.array([float(row[c]) for row in rows]) for c in ("real_error", "forest", "logistic"))
        harmed = int((ours > np.maximum(forest, linear) + 0.1).sum())
        best = np.minimum(forest, linear).mean()
        parts.append(
            f"{harmed} of {thousands(len(rows))} runs on the {where} (mean error {ours.mean():.3f}; a forest "
            f"{forest.mean():.3f}, logistic regression {linear.mean():.3f}, the better of both in each run {best:.3f})"
        )
    return " and ".join(parts)


@figure
def trust_novelty() -> str:
    """How well rows of a class without a label are found."""
    rows = trust_runs("trust.csv", "missing5", "missing20", "missing40")
    none = trust_runs("trust.csv", "random")
    found, doubt = mean(rows, "auroc_novelty"), mean(rows, "auroc_doubt")
    share, true_share = mean(rows, "novel_share"), mean(rows, "true_novel_share")
    return (
        f"AUROC {found:.2f} in the mean of {len(rows)} runs, where `1 - confidence_` has {doubt:.2f}; the mean "
        f"`novel_share_` is {share:.3f} where {true_share:.3f} of the rows belong to the class, and "
        f"{mean(none, 'novel_share'):.3f} with random labels"
    )


@figure
def novel_found() -> str:
    """In how many runs a large class without a label is noticed."""
    parts = []
    for name in ("trust.csv", "trust_apart.csv"):
        rows = trust_runs(name, "missing20", "missing40")
        parts.append(f"{sum(float(row['novel_share']) > 0 for row in rows)} of {len(rows)} runs")
    return f"{parts[0]} on the development tables and {parts[1]} on the tables kept apart"


@figure
def novel_at_random() -> str:
    """In how many runs with random labels of all classes new ones are announced."""
    rows = trust_runs("trust.csv", "random")
    return f"{sum(float(row['novel_share']) > 0 for row in rows)} of {len(rows)} runs"


# neighbors.csv: the search for neighbours beside libraries


@figure
def neighbor_libraries() -> str:
    """Seconds of the processor and recall of the neighbour search, for the larger data."""
    found: dict[tuple[str, str, str], dict[str, str]] = {}
    for row in read_results("neighbors.csv"):
        if int(row["rows"]) >= 20_000:
            cell = f"{float(row['processor_seconds']):.1f} s, {float(row['recall']):.3f}"
            found.setdefault((row["data"], row["rows"], row["features"]), {})[row["method"]] = cell
    libraries = {"faiss": "FAISS, HNSW", "hnswlib": "hnswlib", "pynndescent": "pynndescent"}
    lines = [
        [
            data,
            thousands(int(rows)),
            features,
            by.get("as chosen") or by["cells"],
            *(by.get(name, "") for name in libraries),
        ]
        for (data, rows, features), by in found.items()
    ]
    return table(["data", "rows", "features", "otprop", *libraries.values()], lines)


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


@figure
def paper_regret() -> str:
    """`OTP()` minus the best peer of each cell, on the same splits, peers tuned by hidden labels and by the truth."""
    ours = [row for row in read_results("default.csv") if row["labels"] == "stratified"]
    cell_of = operator.itemgetter("dataset", "percent")
    splits = {(*cell_of(row), row["split"]) for row in ours}
    rows = []
    for file, tuned in (("honest", "labels held out"), ("oracle", "the truth")):
        peers: dict[str, dict[tuple[str, ...], dict[str, list[float]]]] = {"nmi": {}, "accuracy": {}}
        for row in read_results(f"paper/stratified-{file}.csv"):
            if row["method"] != "otp" and (*cell_of(row), row["split"]) in splits:
                for score, cells in peers.items():
                    values = cells.setdefault(cell_of(row), {}).setdefault(row["method"], [])
                    values.append(float(row[f"{score}_unlabelled"]))
        gains = {
            score: [
                mean((row for row in ours if cell_of(row) == cell), score) - max(map(np.mean, methods.values()))
                for cell, methods in cells.items()
            ]
            for score, cells in peers.items()
        }
        best = sum(gain >= 0 for gain in gains["nmi"])
        rows.append([tuned, *(f"{np.mean(gains[score]):+.4f}" for score in peers), f"{best} of {len(gains['nmi'])}"])
    return table(["peers tuned by", "NMI", "accuracy", "best of all by NMI"], rows)


# deep.csv, dask_accuracy.csv


@figure
def networks() -> str:
    """Networks on propagated labels beside their peers, on the splits that all have."""
    found: dict[tuple[str, str], dict[str, list[float]]] = {}
    rows = read_results("deep.csv")
    case = operator.itemgetter("data", "labels", "split", "new_rows")
    run = {case(row) for row in rows if row["method"] == "ours"}
    for row in rows:
        if row["new_rows"] == "0" and case(row) in run:
            name = f"ours, {counted(int(row['rounds']), 'round')}" if row["method"] == "ours" else row["method"]
            cell = found.setdefault((row["data"], row["labels"]), {})
            cell.setdefault(name, []).append(float(row["accuracy"]))
    order = ("mnist70k", "digits1797", "covtype")
    found = dict(sorted(found.items(), key=lambda item: (order.index(item[0][0]), int(item[0][1]))))
    methods = list(dict.fromkeys(name for cell in found.values() for name in cell))
    lines = [
        [method, *(f"{np.mean(cell[method]):.3f}" if method in cell else "" for cell in found.values())]
        for method in sorted(methods)
    ]
    splits = {key: max(map(len, cell.values())) for key, cell in found.items()}
    heads = [f"{data}, {labels} labels, {counted(splits[data, labels], 'split')}" for data, labels in found]
    return table(["accuracy", *heads], lines)


@figure
def networks_other_splits() -> str:
    """MNIST after the last round on splits that had no part in the recipe, and the CPU seconds of a run."""
    rows = [
        row
        for row in read_results("deep.csv")
        if (row["data"], row["method"], row["rounds"], row["new_rows"]) == ("mnist70k", "ours", "3", "0")
    ]
    other = {
        labels: [row for row in rows if row["labels"] == labels and row["split"] != "0"] for labels in ("70", "700")
    }
    parts = [
        f"{mean(here, 'accuracy'):.4f} with {labels} labels ({counted(len(here), 'split')})"
        for labels, here in other.items()
    ]
    return f"{' and '.join(parts)}; a run takes {mean(rows, 'cpu_seconds'):.0f} CPU seconds"


@figure
def landmark_accuracy() -> str:
    """Accuracy and cost against the number of landmarks, means over the splits."""
    found: dict[tuple[str, int, int, int], list[Row]] = {}
    for row in read_results("dask_accuracy.csv"):
        key = (row["data"], int(row["rows"]), int(row["labels"]), int(row["landmarks"]))
        found.setdefault(key, []).append(row)
    return table(
        ["data", "rows", "labels", "landmarks", "splits", "accuracy", "core-seconds"],
        [
            [key[0], *map(thousands, key[1:]), str(len(rows)), f"{mean(rows, 'accuracy'):.3f}",
             f"{mean(rows, 'core_seconds'):.0f}"]
            for key, rows in sorted(found.items())
        ],
    )  # fmt: skip


@figure
def dask_rows() -> str:
    """Time and memory of a folder."""
    names = {
        "seconds": "seconds", "fit_seconds": "of them the fit", "label_seconds": "of them the labels",
        "worker_peak_gb": "GB a worker", "client_peak_gb": "GB in the client",
    }  # fmt: skip
    rows = sorted(read_results("dask_rows.csv"), key=lambda row: (-int(row["workers"]), float(row["millions"])))
    return table(
        ["million rows", "workers", *names.values()],
        [[f"{float(row['millions']):g}", row["workers"], *(row[name] for name in names)] for row in rows],
    )


@figure
def dask_exponent() -> str:
    """The power of the rows that the seconds of the labels grow with, two workers."""
    rows = [row for row in read_results("dask_rows.csv") if row["workers"] == "2"]
    million, seconds = (np.log([float(row[name]) for row in rows]) for name in ("millions", "label_seconds"))
    return f"{np.polyfit(million, seconds, 1)[0]:.2f}"


@figure
def dask_cost() -> str:
    """Core-seconds for a million rows of 64 features."""
    return read_results("dask_cost.csv")[0]["core_seconds_a_million"]


def core_seconds_a_million() -> tuple[float, float]:
    """For rows of 16 features in files, from the largest folder, and for rows of 64 features without reading them."""
    largest = max(read_results("dask_rows.csv"), key=lambda row: (float(row["millions"]), int(row["workers"])))
    labels = float(largest["label_seconds"]) * int(largest["workers"]) / float(largest["millions"])
    return labels, float(dask_cost())


@figure
def dask_on_paper() -> str:
    """Hours of 100 workers for the rows that nobody here can hold."""
    of_16, of_64 = core_seconds_a_million()
    lines = []
    for power in (9, 10):
        hours = [each * 10**power / 1e6 / 100 / 3600 for each in (of_16, of_64)]
        lines.append([f"10^{power}", *(f"{hour:.2g}" for hour in hours)])
    return table(["rows", "hours, 16 features", "hours, 64 features"], lines)


# active_summary.csv, active_honesty.csv, wrong_labels.csv, refit.csv


def orders_table(tables: str) -> str:
    """Orders of labelling beside random drawing."""
    rows = [row for row in read_results("active_summary.csv") if row["tables"] == tables and row["judge"] == "otp"]
    shown = [row for row in rows if row["order"] != "random"]
    return table(
        ["start", "order", "tables", "walks", "area", "area, log", "labels to 95 %", "worst table", "largest fall"],
        [
            [row["start"].replace(" a ", " per "), row["order"].replace("ours", "`suggest`"),
             row["n_tables"], row["walks"], f"{float(row['area']):+.3f}", f"{float(row['area_of_log']):+.3f}",
             f"{float(row['labels']):.2f}", f"{float(row['most']):.2f}", f"{float(row['fall']):.3f}"]
            for row in sorted(shown, key=lambda row: (row["start"] == "none", -float(row["area"])))
        ],
    )  # fmt: skip


@figure
def orders_apart() -> str:
    """On tables that had no part in making `suggest`."""
    return orders_table("apart")


@figure
def orders_development() -> str:
    """On the others."""
    return orders_table("development")


@figure
def orders_tables() -> str:
    """The names of the tables kept apart."""
    names = {row["table"] for row in read_results("active.csv")} - DEVELOPMENT_TABLES
    return ", ".join(sorted(names))


@figure
def loop_honesty() -> str:
    """Announced ranges along the walks."""
    return table(
        ["tables", "steps", "range holds", "announced error", "real error",
         "goals with a number", "not contradicted", "of those tested"],
        [
            [row["tables"], row["announced_steps"], f"{float(row['range_holds']):.0%}", row["expected_error"],
             row["real_error"], f"{row['needed_known']} of {row['needed_cases']}", f"{float(row['needed_holds']):.0%}",
             f"{float(row['needed_tested_holds']):.0%} of {row['needed_tested']}"]
            for row in read_results("active_honesty.csv")
        ],
    )  # fmt: skip


@figure
def wrong_labels() -> str:
    """Average precision by number of labels."""
    finders = {
        "ours": "`label_issues_`", "cleanlab, ours": "cleanlab, our probabilities",
        "cleanlab, forest": "cleanlab, forest", "cleanlab, logistic": "cleanlab, logistic regression",
    }  # fmt: skip
    rows = [row for row in read_results("wrong_labels.csv") if float(row["rate"])]
    groups = [(name, [row for row in rows if name in (row["labels"], "all")]) for name in ("50", "100", "300", "all")]
    return table(
        ["labels", "draws", *finders.values()],
        [
            [name, str(len(here)), *(f"{mean(here, f'ap {finder}'):.3f}" for finder in finders)]
            for name, here in groups
            if here
        ],
    )


@figure
def label_noise() -> str:
    """What `label_noise` changes."""
    rows, lines = read_results("wrong_labels.csv"), []
    for rate in sorted({row["rate"] for row in rows}, key=float):
        here = [row for row in rows if row["rate"] == rate]
        gain = mean(here, "accuracy with label_noise") - mean(here, "accuracy")
        lines.append([f"{float(rate):.0%}", str(len(here)), f"{mean(here, 'accuracy'):.4f}", f"{gain:+.4f}"])
    return table(["labels wrong", "draws", "accuracy", 'with `label_noise="auto"`'], lines)


@figure
def looks_wrong() -> str:
    """How many labels look wrong, how many of them are, and the mean probability that is announced."""
    rows, lines = read_results("wrong_labels.csv"), []
    for rate in sorted({row["rate"] for row in rows}, key=float):
        here = [row for row in rows if row["rate"] == rate]
        labels, looks, right = (
            sum(int(row[name]) for row in here) for name in ("labels", "look wrong", "look wrong and are")
        )
        n_wrong = sum(round(float(row["rate"]) * int(row["labels"])) for row in here)
        found = f"{right / n_wrong:.0%}" if n_wrong else ""
        lines.append(
            [
                f"{float(rate):.0%}",
                f"{mean(here, 'announced'):.1%}",
                f"{looks / labels:.1%}",
                f"{right / max(looks, 1):.0%}",
                found,
            ]
        )
    return table(["labels wrong", "announced", "look wrong", "of these are", "of the wrong ones found"], lines)


@figure
def votes() -> str:
    """Accuracy with votes by number of labels and of voters."""
    names = {
        "alone": "labels alone", "majority": "majority of votes", "dawid_skene": "Dawid and Skene",
        "mace": "MACE", "glad": "GLAD", "snorkel": "Snorkel", "crowdlab": "CROWDLAB",
        "columns": "votes as columns", "otprop": "`votes=`",
    }  # fmt: skip
    lines = []
    for file, kind in (("votes.csv", "development"), ("votes_apart.csv", "apart")):
        rows = read_results(file)
        for labels in sorted({row["labels"] for row in rows}, key=int):
            for voters in sorted({row["voters"] for row in rows}, key=int):
                here = [row for row in rows if (row["labels"], row["voters"]) == (labels, voters)]
                figures = ["" if here[0][name] == "nan" else f"{mean(here, name):.3f}" for name in names]
                lines.append([kind, labels, voters, str(len(here)), *figures])
    return table(["tables", "labels", "voters", "draws", *names.values()], lines)


@figure
def votes_floors() -> str:
    """How often votes and labels together are worse than the better of both, and what votes at random cost."""
    lines = []
    for file, kind in (("votes.csv", "development"), ("votes_apart.csv", "apart")):
        rows = read_results(file)
        for labels in sorted({row["labels"] for row in rows}, key=int):
            here = [row for row in rows if row["labels"] == labels]
            others = ("alone", "majority", "dawid_skene") if labels != "0" else ("majority", "dawid_skene")
            better = [max(float(row[name]) for name in others) for row in here]
            short = [best - float(row["otprop"]) for best, row in zip(better, here, strict=True)]
            noise = [float(row["alone"]) - float(row["otprop"]) for row in here if row["kind"] == "noise"]
            missed = f"{sum(one > 0.005 for one in short)} of {len(short)}"
            cost = f"{sum(noise) / len(noise):.3f}" if labels != "0" else ""
            held = f"{mean(here, 'holds'):.0%}"
            lines.append([kind, labels, missed, f"{max(short):.3f}", cost, held])
    heads = ["more than 0.005 worse", "by at most", "cost of votes at random", "announced range holds"]
    return table(["tables", "labels", *heads], lines)


@figure
def votes_patients() -> str:
    """Share of the patients on which a model of the votes agrees with the first anaesthetist."""
    rows = read_results("votes_patients.csv")
    names = {"dawid_skene": "Dawid and Skene", "mace": "MACE", "glad": "GLAD", "snorkel": "Snorkel"}
    names |= {"majority": "majority of votes", "otprop": "`votes=`, 20 labels"}
    lines = [[names[row["method"]], row["all_patients"], row["without_label"]] for row in rows]
    return table(["", "all 45 patients", "the 25 without a label"], lines)


@figure
def refit() -> str:
    """Seconds of a fit again."""
    names = ("refit", "fresh", "refit_cpu", "fresh_cpu")
    return table(
        ["table", "again, s", "fresh, s", "again, CPU s", "fresh, CPU s"],
        [[row["table"], *(row[name] for name in names)] for row in read_results("refit.csv")],
    )


# studio_*.csv


@figure
def studio_speed() -> str:
    """How long a person waits."""
    tables = {"mixed": "mixed table", "embeddings": "vectors"}
    names = ("key_saved_ms_median", "key_next_row_ms_max", "new_labels_s_median")
    return table(
        ["rows", "table", "key until saved, ms", "key until the next row, longest of 40, ms", "new labels, s"],
        [
            [thousands(int(row["rows"])), tables[row["table"]], *(row[name] for name in names)]
            for row in read_results("studio_speed.csv")
        ],
    )


@figure
def studio_page() -> str:
    """What a person sees: rows after a key, the map drawn and coloured anew."""
    keys = {row["rows"]: row for row in read_results("studio_page_keys.csv")}
    rows = []
    for row in read_results("studio_page_draw.csv"):
        key = keys.get(row["rows"])
        typed = f"{key['median_ms']}, {key['p95_ms']}, {key['max_ms']}" if key and row["renderer"] == "webgl" else ""
        rows.append([thousands(int(row["rows"])), row["renderer"], row["first_drawn_ms"],
                     f"{row['recoloured_median_ms']}, {row['recoloured_max_ms']}", typed])  # fmt: skip
    head = ["rows", "map by", "drawn after, ms", "recoloured, median and longest, ms"]
    return table([*head, "key until the next row, median, 95 % and longest of 60, ms"], rows)


@figure
def studio_million() -> str:
    """A million rows."""
    row = read_results("studio_million.csv")[0]
    opened, drawn, labels = (f"{float(row[name]):.0f}" for name in ("opened_s", "map_s", "first_labels_s"))
    memory = (float(row["server_mb"]) + float(row["worker_mb"])) / 1024
    return (
        f"{thousands(int(row['rows']))} rows of 8 numbers are open after {opened} s and on the map after {drawn} s, "
        f"with the first labels after {labels} s; server and worker then hold {memory:.1f} GB."
    )


@figure
def studio_kills() -> str:
    """What SIGKILL loses."""
    rows = read_results("studio_kill.csv")
    server, worker, saved, lost = (
        sum(int(row[name]) for row in rows)
        for name in ("kills_of_the_server", "kills_of_the_worker", "events_saved", "saved_labels_lost")
    )
    return (
        f"After {server} SIGKILLs of the server and {worker} of the worker at random moments, "
        f"{lost or 'none'} of {thousands(saved)} saved labels {'were' if lost else 'was'} lost."
    )


@figure
def studio_person() -> str:
    """Labels that a person needs."""
    names = ("labels_to_80", "labels_to_90", "labels_to_95")
    return table(
        ["table", "rows", "classes", "labels to 80 %", "to 90 %", "to 95 %", "labels given", "right"],
        [
            [row["table"], thousands(int(row["rows"])), row["classes"], *(row[name] or "not reached" for name in names),
             row["labels"], f"{float(row['right']):.1%}"]
            for row in read_results("studio_person.csv")
        ],
    )  # fmt: skip


@figure
def studio_attacks() -> str:
    """Requests that were refused."""
    row = read_results("studio_attack.csv")[0]
    return f"{row['attacks']} were sent and {row['served']} were served"


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
    rows = [row for row in read_results("speed_default.csv") if row["data"].startswith("mnist")]
    head = ["1 % of the labels", "images", "seconds", "times ours", "accuracy"]
    return table(
        head,
        (
            [code(row["method"]), row["data"].removeprefix("mnist").replace("k", " 000"), row["seconds"], row["times"],
             row["accuracy"]]
            for row in rows
        ),
    )  # fmt: skip


@figure
def small_speed() -> str:
    """Seconds on made-up tables."""
    rows = [row for row in read_results("speed_default.csv") if row["data"].startswith("made up")]
    return table(
        ["rows of 20 numbers", "labels", "method", "seconds", "times ours", "accuracy"],
        (
            [thousands(n_rows), str(n_rows * int(row["percent"]) // 100), code(row["method"]), row["seconds"],
             row["times"], row["accuracy"]]
            for row in rows
            for n_rows in [int(row["data"].removeprefix("made up "))]
        ),
    )  # fmt: skip


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


@figure
def solvers() -> str:
    """Seconds of every solver for the plan of the first round, or its error where it was stopped."""
    cases: dict[tuple[str, ...], dict[str, str]] = {}
    for row in read_results("solvers.csv"):
        name = {"digits": "Digits", "mnist10k": "MNIST 10k"}[row["dataset"]]
        case = (name, f"{row['percent']} %", f"{float(row['epsilon_over_nn']):g}")
        error = f"error {float(row['error']):.0e}".replace("e-0", "e-")
        cases.setdefault(case, {})[row["solver"]] = (
            f"{float(row['seconds']):.2f}" if row["reached"] == "True" else error
        )
    names = list(next(iter(cases.values())))
    rows = ([*case, *(found[name] for name in names)] for case, found in cases.items())
    return table(["data", "labelled", "epsilon / nn", *names], rows)


# pictures.csv, picture_scale.csv, cells.csv and cells_types.csv


@figure
def pictures() -> str:
    """Accuracy on folders of pictures."""
    rows = read_results("pictures.csv")
    lines = []
    for name in dict.fromkeys(row["set"] for row in rows):
        here = [row for row in rows if row["set"] == name]
        scores = [f"{mean(here, column):.3f}" for column in ("otprop", "raw_pixels", "announced_error")]
        lines.append([name, here[0]["pictures"], here[0]["classes"], str(len(here)), *scores])
    return table(["set", "pictures", "classes", "draws", "otprop", "raw pixels", "announced error"], lines)


@figure
def cells() -> str:
    """Accuracy on cell types."""
    rows = read_results("cells.csv")
    lines = []
    for name in dict.fromkeys(row["method"] for row in rows):
        here = [row for row in rows if row["method"] == name]
        columns = ("accuracy", "balanced_accuracy", "rare_accuracy")
        lines.append([name, str(len(here)), *(f"{mean(here, column):.3f}" for column in columns)])
    return table(["method", "draws", "accuracy", "mean over types", "rare types"], lines)


@figure
def picture_scale() -> str:
    """Time and memory of many pictures."""
    columns = ("read_cpu_seconds", "label_cpu_seconds", "read_mb", "label_mb")
    rows = [
        [thousands(int(row["pictures"])), *(f"{float(row[name]):.0f}" for name in columns)]
        for row in read_results("picture_scale.csv")
    ]
    return table(["pictures", "vectors, CPU s", "labels and page, CPU s", "vectors, MB", "labels and page, MB"], rows)


@figure
def picture_scale_more() -> str:
    """What 100 000 pictures would take, in proportion to the two largest sizes measured."""
    below, above = read_results("picture_scale.csv")[-2:]

    def at_100_000(name: str) -> float:
        slope = (float(above[name]) - float(below[name])) / (int(above["pictures"]) - int(below["pictures"]))
        return float(above[name]) + slope * (100_000 - int(above["pictures"]))

    minutes = (at_100_000("read_cpu_seconds") + at_100_000("label_cpu_seconds")) / 60
    memory = max(at_100_000("read_mb"), at_100_000("label_mb")) / 1000
    return f"100 000 such pictures would take {minutes:.0f} CPU minutes and {memory:.1f} GB. This was not measured."


@figure
def cells_types() -> str:
    """Recall of each cell type by method, the most frequent type first."""
    rows = read_results("cells_types.csv")
    methods = list(dict.fromkeys(row["method"] for row in rows))
    sizes = {row["type"]: int(row["cells"]) for row in rows}
    lines = []
    for name in sorted(sizes, key=lambda name: -sizes[name]):
        found = {row["method"]: f"{float(row['recall']):.2f}" for row in rows if row["type"] == name}
        lines.append([name, str(sizes[name]), *(found[method] for method in methods)])
    return table(["type", "cells", *methods], lines)


@figure
def cells_confidence() -> str:
    """Announced error, and the error of the confident cells."""
    rows = [row for row in read_results("cells.csv") if row["method"] == "otprop"]
    announced, share, wrong = (mean(rows, name) for name in ("announced_error", "confident_share", "confident_error"))
    return (
        f"otprop announced an error of {announced:.3f}, the real one was {1 - mean(rows, 'accuracy'):.3f}; of the "
        f"{100 * share:.0f} % of the cells with a confidence of 0.8 or more, {100 * wrong:.1f} % were wrong."
    )


# the README and docs/alternatives.md


@figure
def mixed_tables_losses() -> str:
    """Where other methods are ahead on mixed tables, and by how much at worst."""
    ahead, gaps = dict.fromkeys(("forest", "best"), 0), {}
    others = [method for method in TABLE_METHODS if method != "otprop"]
    n_runs = 0
    for labels, runs in table_runs().items():
        for run in runs:
            scores = {method: float(run[method]["accuracy"]) for method in TABLE_METHODS}
            n_runs += 1
            ahead["forest"] += scores["forest"] > scores["otprop"]
            ahead["best"] += max(scores[method] for method in others) > scores["otprop"]
            gaps.setdefault((run["otprop"]["table"], labels), []).append(scores)
    worst = []
    for (name, labels), all_scores in gaps.items():
        means = {method: float(np.mean([scores[method] for scores in all_scores])) for method in TABLE_METHODS}
        best = max(others, key=means.__getitem__)
        worst.append((means[best] - means["otprop"], name, labels, means["otprop"], best, means[best]))
    cases = ", ".join(
        f"{name} with {labels} labels ({ours:.3f}, {TABLE_METHODS[best]} {other:.3f})"
        for _, name, labels, ours, best, other in sorted(worst, reverse=True)[:3]
    )
    return (
        f"a random forest is ahead in {ahead['forest']} of {n_runs} runs, and the best of the four others, which you "
        f"would have to know in advance, in {ahead['best']}; the largest losses are on {cases}"
    )


@figure
def mixed_tables_seconds() -> str:
    """Median time of a run by method, all numbers of labels together."""
    runs = [run for runs in table_runs().values() for run in runs]
    seconds = {method: np.median([float(run[method]["seconds"]) for run in runs]) for method in TABLE_METHODS}
    return ", ".join(f"{title} {seconds[method]:.1f} s" for method, title in TABLE_METHODS.items())


@figure
def held_out_tables() -> str:
    """Mean scores on the tables that were evaluated once."""
    titles = {
        "otp": "`OTP()`", "trees": "extra trees", "vote": "kernel vote", "ls-knn": "label spreading on neighbours",
        "logistic": "logistic regression", "1nn": "1-NN",
    }  # fmt: skip
    rows = read_results("held-out/stratified-honest.csv")
    lines = []
    for method, title in titles.items():
        here = [row for row in rows if row["method"] == method]
        lines.append([title, *(f"{mean(here, f'{score}_unlabelled'):.3f}" for score in ("nmi", "ari", "accuracy"))])
    return table(["", "NMI", "ARI", "accuracy"], lines)


@figure
def trust_intervals() -> str:
    """How often the announced range and the interval of a cross-validated forest hold."""
    parts = []
    for words, scenarios in (("labels drawn at random", ("random",)), ("all ways to label together", ())):
        here = trust_runs("trust.csv", *scenarios)
        ours, forest = (100 * mean(here, column) for column in ("range_holds", "cv_holds"))
        parts.append(f"with {words} {ours:.0f} % and {forest:.0f} % ({len(here)} runs)")
    return ", ".join(parts)


@figure
def wrong_labels_all() -> str:
    """Average precision of labels that look wrong, all numbers of labels together."""
    rows = [row for row in read_results("wrong_labels.csv") if float(row["rate"])]
    ours, forest, linear = (mean(rows, f"ap {name}") for name in ("ours", "cleanlab, forest", "cleanlab, logistic"))
    return (
        f"{ours:.3f} for `label_issues_`, {forest:.3f} for cleanlab with a forest and {linear:.3f} with logistic "
        f"regression ({len(rows)} draws)"
    )


@figure
def orders_activeml() -> str:
    """Area above random drawing of `suggest` and of three orders of scikit-activeml."""
    names = {"ours": "`suggest`", "BADGE": "BADGE", "TypiClust": "TypiClust", "ProbCover": "ProbCover"}
    rows = [row for row in read_results("active_summary.csv") if row["judge"] == "otp" and row["start"] != "none"]
    lines = []
    for order, title in names.items():
        cells = [only(rows, order=order, tables=tables) for tables in ("development", "apart")]
        lines.append([title, *(f"{float(row['area']):+.3f} ({row['n_tables']} tables)" for row in cells)])
    return table(["order", "development tables", "tables kept apart"], lines)


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
