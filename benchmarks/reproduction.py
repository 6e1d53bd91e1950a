"""The paper's tables beside ours, and what they say: docs/reproduction.md from the results of `make benchmark`.

    python benchmarks/reproduction.py                       from benchmarks/results/paper
    python benchmarks/reproduction.py --results DIR --out FILE

Reads stratified-honest.csv and stratified-oracle.csv. Every statement follows from the figures read; a cell that was
not run says so.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from common import argument_parser
from otprop_paper.benchmark.methods import METHODS
from paper_peers import peers_beside_otp
from paper_questions import do_scores_grow, is_the_order_as_claimed, where_it_agrees, which_scoring_fits
from paper_results import (
    CELLS,
    PERCENTS,
    SCORES,
    TUNINGS,
    Results,
    listed,
    markdown,
    mean,
    number,
    paper,
    read,
    title,
)

QUESTIONS = (do_scores_grow, is_the_order_as_claimed, which_scoring_fits, where_it_agrees, peers_beside_otp)


def page(results: Results, folder: str) -> str:
    """The whole text."""
    answers = [question(results) for question in QUESTIONS]
    short = "\n".join(f"- {upper(answer)}" for answer, _ in answers if answer)
    parts = [head(results, folder), f"## In short\n\n{short}", tables(results), *(section for _, section in answers)]
    return "\n\n".join(parts) + "\n"


def upper(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def head(results: Results, folder: str) -> str:
    """What this is, where it comes from, and what is missing."""
    total = len(CELLS) * len(METHODS)
    parts = [
        "# The paper's experiment, run again",
        f"Written by `make reproduction` from the results in `{folder}`; no figure is typed by hand. "
        "[protocol.md](protocol.md) says what was run and how parameters were chosen.",
        "\n".join(
            f"- {tuning}: {'; '.join(f'`{line}`' for line in results.origins.get(tuning, [])) or 'not run'}"
            for tuning in TUNINGS
        ),
    ]
    for tuning in TUNINGS:
        missing = [(*at, m) for at in CELLS for m in METHODS if np.isnan(results.get(tuning, "nmi", *at, m))]
        if not missing:
            parts.append(f"All {total} cells of the {tuning} tables were run.")
        elif len(missing) < total:
            said = f"{len(missing)} of the {total} cells of the {tuning} tables were not run"
            parts.append(f"**{said}:** {gathered(missing)}.")
    return "\n\n".join(parts)


def gathered(cells: list[tuple[str, float, str]]) -> str:
    """Missing cells in few words: methods that lack the same ones together."""
    by_method: dict[str, dict[str, list[float]]] = {}
    for dataset, percent, method in cells:
        by_method.setdefault(method, {}).setdefault(dataset, []).append(percent)
    by_where: dict[str, list[str]] = {}
    for method, found in by_method.items():
        where = [
            d if len(p) == len(PERCENTS) else f"{d} ({', '.join(f'{x:g} %' for x in p)})" for d, p in found.items()
        ]
        by_where.setdefault(listed(where), []).append(title(method))
    return "; ".join(f"{listed(methods)} on {where}" for where, methods in by_where.items())


def tables(results: Results) -> str:
    """NMI and ARI of every method in every cell."""
    parts = [
        "## The two tables",
        "Means over the splits, ten unless marked, scored on the unlabelled rows. Three lines per cell: parameters "
        "chosen by hidden labels (honest), by the true classes (oracle), and what the paper prints, under every method "
        "that answers to that column. The same on all rows, and accuracy, are in the Markdown files beside the CSV "
        "files.",
    ]
    for score in SCORES:
        columns = ["data set", "labelled", "", *map(title, METHODS)]
        parts += [f"### {score.upper()}", markdown(columns, table_rows(results, score))]
    if results.notes:
        parts.append("\n".join(f"- † {note}." for note in results.notes))
    return "\n\n".join(parts)


def table_rows(results: Results, score: str) -> list[list[str]]:
    rows = []
    for dataset, percent in CELLS:
        for tuning in TUNINGS:
            first = [dataset, f"{percent:g} %"] if tuning == TUNINGS[0] else ["", ""]
            rows.append([*first, tuning, *(cell(results, tuning, score, dataset, percent, m) for m in METHODS)])
        rows.append(["", "", "paper", *(number(paper(score, dataset, percent, m), absent="") for m in METHODS)])
    for tuning in TUNINGS:
        columns = {m: [results.get(tuning, score, *at, m) for at in CELLS] for m in METHODS}
        rows.append(["mean", "", tuning, *(average(columns[m]) for m in METHODS)])
    means = [mean(paper(score, *at, m) for at in CELLS) for m in METHODS]
    return [*rows, ["mean", "", "paper", *(number(value, absent="") for value in means)]]


def cell(results: Results, tuning: str, score: str, dataset: str, percent: float, method: str) -> str:
    mark = "†" if (tuning, dataset, percent, method) in results.thinned else ""
    return number(results.get(tuning, score, dataset, percent, method)) + mark


def average(values: list[float]) -> str:
    """The mean over all cells, with their number where some are missing."""
    there = sum(not np.isnan(value) for value in values)
    return number(mean(values)) + ("" if there in (0, len(values)) else f" ({there} cells)")


def main() -> None:
    here = Path(__file__).resolve().parent
    parser = argument_parser(__doc__)
    parser.add_argument("--results", type=Path, default=here / "results" / "paper")
    parser.add_argument("--out", type=Path, default=here.parent / "docs" / "reproduction.md")
    options = parser.parse_args()
    results = read(options.results)
    if not results.means:
        parser.error(
            f"{options.results} has no stratified-honest.csv or stratified-oracle.csv: run make benchmark first."
        )
    inside = options.results.resolve()
    folder = str(inside.relative_to(here.parent)) if inside.is_relative_to(here.parent) else inside.name
    options.out.write_text(page(results, folder), encoding="utf-8")
    print(f"written: {options.out}")


if __name__ == "__main__":
    main()
