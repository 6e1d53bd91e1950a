"""The page of a run: tables, charts and where they come from, in one HTML file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import isnan
from typing import Any

from otprop.report.page import render_page
from otprop_paper.benchmark.methods import METHODS
from otprop_paper.benchmark.output import Origin
from otprop_paper.benchmark.ranks import mean_ranks
from otprop_paper.benchmark.reliability import Reliability, reliabilities
from otprop_paper.benchmark.tables import NOT_RUN, ResultRow, ScoreTable, make_table, mean_seconds
from otprop_paper.report.charts import (
    method_key,
    percent_key,
    rank_chart,
    reliability_chart,
    risk_chart,
    score_chart,
    time_chart,
)


def make_benchmark_page(lines: Sequence[ResultRow], origin: Origin, heading: str, about: str) -> str:
    """The page of a run as HTML; `lines` are of one kind of tuning and of drawing labels."""
    tables = [make_table(lines, score) for score in ("nmi", "ari")]
    other = [make_table(lines, "accuracy"), *(make_table(lines, score, "all") for score in ("nmi", "ari", "accuracy"))]
    datasets = dict.fromkeys(dataset for dataset, _ in tables[0].cells)
    return render_page(
        "benchmark_page.html",
        "benchmark_page.css",
        package=__package__,
        title=heading,
        about=about,
        origin=origin.items(),
        tables=[(table, _blocks(table)) for table in tables],
        other_tables=[(table, _blocks(table)) for table in other],
        keys=[(method_key(method), METHODS[method].title) for method in tables[0].methods],
        score_charts=[[score_chart(table, dataset) for table in tables] for dataset in datasets],
        rank_charts=[_ranks(table) for table in tables],
        time_chart=time_chart(mean_seconds(lines), tables[0]),
        confidence=_confidence(lines),
        chosen=_chosen_values(lines),
        methods=METHODS,
        not_run=NOT_RUN,
    )


def _blocks(table: ScoreTable) -> list[dict[str, Any]]:
    """The rows of a table, one block for each data set and percentage."""
    blocks = []
    for dataset, percent in table.cells:
        entries = [table.entries.get((dataset, percent, method)) for method in table.methods]
        printed = any(entry is not None and entry.paper is not None for entry in entries)
        blocks.append({"dataset": dataset, "percent": percent, "entries": entries, "printed": printed})
    return blocks


def _ranks(table: ScoreTable) -> dict[str, Any]:
    ranks = mean_ranks(table)
    return {
        "chart": rank_chart(ranks, table.title),
        "title": table.title,
        "n_cells": ranks.n_cells,
        "n_incomplete": len(table.cells) - ranks.n_cells,
        "p_value": None if isnan(ranks.p_value) else ranks.p_value,
        "tested": not isnan(ranks.critical),
    }


def _confidence(lines: Sequence[ResultRow]) -> dict[str, Any] | None:
    """Reliability of the methods that have a confidence; None where no method has one."""
    pooled = reliabilities(lines)
    if not pooled:
        return None
    percents = sorted({one.percent for group in pooled.values() for one in group})
    methods = []
    for method in dict.fromkeys(method for _, method in pooled):
        groups = {dataset: group for (dataset, name), group in pooled.items() if name == method}
        methods.append(_reliability(method, groups, percents))
    legend = [(percent_key(percent, percents), f"{percent:g} % labelled") for percent in percents]
    return {"percents": percents, "legend": legend, "methods": methods}


def _reliability(method: str, groups: dict[str, list[Reliability]], percents: list[float]) -> dict[str, Any]:
    n_splits = sorted({one.n_splits for group in groups.values() for one in group})
    found = {dataset: {one.percent: one for one in group} for dataset, group in groups.items()}
    return {
        "title": METHODS[method].title,
        "n_splits": f"{n_splits[0]}" if len(n_splits) == 1 else f"{n_splits[0]} to {n_splits[-1]}",
        "charts": [
            [chart(group, dataset, percents) for chart in (reliability_chart, risk_chart)]
            for dataset, group in groups.items()
        ],
        "errors": [(dataset, [by.get(percent) for percent in percents]) for dataset, by in found.items()],
    }


def _chosen_values(lines: Sequence[ResultRow]) -> list[tuple[str, str, float, str]]:
    """Data set, method, percentage and the parameters used, where there was something to choose."""
    groups: dict[tuple[str, str, float], Counter[str]] = {}
    for line in lines:
        if line["n_candidates"] > 1:
            values = ", ".join(f"{name} {value:g}" for name, value in line["params"].items())
            key = line["dataset"], METHODS[line["method"]].title, line["percent"]
            groups.setdefault(key, Counter())[f"{values} ({line['chosen_by']})"] += 1
    return [
        (*key, "; ".join(f"{n_splits} x {values}" for values, n_splits in counter.most_common()))
        for key, counter in groups.items()
    ]
