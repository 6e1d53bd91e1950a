"""The page is whole, needs nothing from elsewhere, and takes every name for text."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from paper.tests.made import line
from tests.report.checker import Checker

from otprop_paper.benchmark.output import Origin
from otprop_paper.benchmark.reliability import summarise
from otprop_paper.report.page import make_benchmark_page

KEPT = summarise(np.linspace(0.4, 1.0, 60), np.arange(60) % 3 > 0)
EVIL = '<script>alert("x")</script>&"\'.csv'


@pytest.fixture(scope="module")
def html() -> str:
    lines: list[dict[str, Any]] = [
        line(dataset, method, percent, split, base + percent / 1000, params={"sigma": 1.0}, n_candidates=15)
        | {"reliability": KEPT if method == "otp" else None}
        for dataset in ("iris", EVIL)
        for method, base in (("otp", 0.7), ("ls", 0.6), ("vote", 0.5))
        for percent in (5.0, 15.0)
        for split in range(2)
    ]
    return make_benchmark_page(
        lines, Origin(f"otprop-paper --datasets {EVIL}", "0.1.0", "abc", "today"), "A run", "About <it>"
    )


@pytest.fixture(scope="module")
def parsed(html: str) -> Checker:
    checker = Checker()
    checker.feed(html)
    return checker


def test_every_element_is_closed(parsed: Checker) -> None:
    assert parsed.open == []


def test_nothing_is_fetched_and_nothing_runs(html: str, parsed: Checker) -> None:
    assert "script" not in parsed.seen
    assert parsed.addresses == ["data:,"]
    assert "default-src 'none'" in html
    assert not re.search(r"url\(|@import", html)


def test_names_are_shown_as_text(parsed: Checker) -> None:
    assert EVIL in parsed.words
    assert "About <it>" in parsed.words


def test_all_figures_are_there(html: str) -> None:
    labels = re.findall(r'aria-label="([^"]*)"', html)
    assert sum("against the share of labels on" in label for label in labels) == 4
    assert sum(label.startswith("mean ranks by") for label in labels) == 2
    assert "mean NMI against time" in labels
    assert sum(label.startswith("share of right labels against confidence on") for label in labels) == 2
    assert sum(label.startswith("share of wrong labels against rows labelled on") for label in labels) == 2


def test_the_calibration_error_of_every_data_set_and_share_is_there(parsed: Checker) -> None:
    assert parsed.words.count(f"{KEPT['ece']:.4f}") == 4


def test_a_run_without_a_confidence_has_no_section_on_it() -> None:
    html = make_benchmark_page([line("iris", "1nn", 5.0, 0, 0.5)], Origin("", "", "", ""), "A run", "")
    assert "Confidence</h2>" not in html
    assert "aria-label" in html


def test_a_method_that_was_not_run_at_some_percentage_is_left_out_there() -> None:
    lines = [line("iris", "otp", p, 0, 0.5) for p in (5.0, 15.0)] + [line("iris", "ls", 5.0, 0, 0.4)]
    html = make_benchmark_page(lines, Origin("", "", "", ""), "A run", "")
    assert "LS, 5 %: 0.4000" in html
    assert "LS, 15 %" not in html


def test_both_tables_hold_the_papers_figure_and_the_difference(parsed: Checker) -> None:
    assert "0.7372" in parsed.words  # NMI of OTP on Iris, 5 %
    assert "0.7582" in parsed.words  # and its ARI
    assert "-0.0322" in parsed.words


def test_one_percentage_one_method_and_equal_scores_can_be_drawn() -> None:
    lines = [line("iris", "otp", 5.0, split, 0.5) for split in range(2)]
    assert "nan" not in make_benchmark_page(lines, Origin("", "", "", ""), "A run", "").lower().split("</style>")[1]
