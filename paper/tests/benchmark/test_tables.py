"""Tables, ranks and files from lines."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from paper.tests.made import line

from otprop_paper.benchmark.output import COLUMNS, Origin, csv_text, markdown_text, read_csv, write_files
from otprop_paper.benchmark.paper import published_score
from otprop_paper.benchmark.ranks import Ranks, critical_difference, mean_ranks
from otprop_paper.benchmark.tables import make_table

ORIGIN = Origin("otprop benchmark", "0.1.0", "", "2030-01-01")


@pytest.fixture
def lines() -> list[dict[str, Any]]:
    return [
        line(dataset, method, percent, split, base + 0.01 * split + percent / 1000)
        for dataset in ("iris", "own|<b>.csv")
        for method, base in (("otp", 0.7), ("ls", 0.6), ("1nn", 0.5))
        for percent in (5.0, 15.0)
        for split in range(2)
    ]


def test_all_336_figures_of_the_paper_are_there() -> None:
    from otprop_paper.benchmark.paper import _TABLES

    assert [len(table) for table in _TABLES.values()] == [168, 168]
    assert published_score("nmi", "mnist10k", 35, "OTP") == 0.8730
    assert published_score("ari", "heart", 5, "LS") == 0.1120
    assert published_score("nmi", "wine", 5, "LS") is None
    assert published_score("nmi", "iris", 5, None) is None


def test_the_papers_averages_follow_from_its_cells_but_for_two() -> None:
    from otprop_paper.benchmark.paper import _TABLES

    def average(metric: str, method: str) -> float:
        return float(np.mean([value for key, value in _TABLES[metric].items() if key[2] == method]))

    assert average("nmi", "OTP") == pytest.approx(0.6767, abs=1e-4)
    assert average("ari", "OTP") == pytest.approx(0.7151, abs=1e-4)
    assert average("ari", "LNP") == pytest.approx(0.6321, abs=1e-4)  # printed: 0.5467


def test_a_table_holds_means_beside_the_papers_figures_and_marks_the_best(lines: list[dict[str, Any]]) -> None:
    table = make_table(lines, "nmi")
    entry = table.entries["iris", 5.0, "otp"]
    assert entry.ours == pytest.approx(0.71)
    assert entry.paper == 0.7372
    assert entry.difference == pytest.approx(0.71 - 0.7372)
    assert entry.best
    assert not table.entries["iris", 5.0, "ls"].best
    assert table.entries["iris", 5.0, "1nn"].paper is None


def test_thinned_results_are_marked_and_explained(lines: list[dict[str, Any]]) -> None:
    for one in lines:
        one["thinned"] = "three splits" if one["method"] == "ls" and one["dataset"] == "iris" else ""
    text = markdown_text(lines, ORIGIN, "A run")
    assert "0.6100†" in text
    assert "† LS on iris: three splits." in text


def test_mean_ranks_share_ties_and_put_the_best_first(lines: list[dict[str, Any]]) -> None:
    ranks = mean_ranks(make_table(lines, "nmi"))
    assert ranks.methods == ("otp", "ls", "1nn")
    assert ranks.means == (1.0, 2.0, 3.0)
    for one in lines:
        one["nmi_unlabelled"] = 0.5
    assert mean_ranks(make_table(lines, "nmi")).means == (2.0, 2.0, 2.0)


def test_the_critical_difference_is_that_of_demsars_tables() -> None:
    # q of table 5 (a) in Demsar 2006 at 5 %: 2.343 for three, 2.569 for four, 3.164 for ten methods
    for n_methods, q in ((3, 2.343), (4, 2.569), (10, 3.164)):
        expected = q * np.sqrt(n_methods * (n_methods + 1) / (6 * 28))
        assert critical_difference(n_methods, 28) == pytest.approx(expected, rel=1e-3)


def test_bars_join_what_is_not_told_apart_and_none_lies_inside_another() -> None:
    ranks = Ranks(("a", "b", "c", "d"), (1.0, 1.5, 2.4, 4.0), 10, 0.01, 1.0)
    assert ranks.groups() == [(0, 1), (1, 2)]
    assert Ranks(("a", "b"), (1.0, 2.0), 10, 0.01, 0.5).groups() == []


def test_a_csv_can_be_read_back_and_says_where_it_comes_from(lines: list[dict[str, Any]], tmp_path: Path) -> None:
    [path] = write_files(tmp_path, "run", {"csv": csv_text(lines, ORIGIN)})
    text = path.read_text()
    assert text.startswith("# command: otprop benchmark\n# version: 0.1.0\n# date: 2030-01-01\n")
    assert "commit" not in text.split("dataset")[0]
    back = read_csv(path)
    unknown = ("hidden_score", "ece")  # NaN in these lines, empty in the file
    assert all(np.isnan(x[name]) for x in back for name in unknown)
    assert [{k: v for k, v in x.items() if k not in unknown} for x in back] == [
        {k: v for k, v in x.items() if k not in unknown} for x in lines
    ]
    header = next(row for row in csv.reader(text.splitlines()) if not row[0].startswith("#"))
    assert tuple(header) == COLUMNS


def test_a_line_break_in_the_command_cannot_start_a_line_of_its_own(lines: list[dict[str, Any]]) -> None:
    text = csv_text(lines, Origin("otprop\nbenchmark", "1", "", ""))
    assert text.startswith("# command: otprop benchmark\n# version")


def test_names_of_files_are_text_in_markdown(lines: list[dict[str, Any]]) -> None:
    text = markdown_text(lines, ORIGIN, "A run")
    assert "own\\|&lt;b>.csv" in text
    widths = {row.replace("\\|", "").count("|") for row in text.splitlines() if row.startswith("|")}
    assert widths == {6}
