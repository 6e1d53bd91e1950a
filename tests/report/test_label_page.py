"""The page of `otprop label` is whole, says what happened, and takes whatever is in the file for text."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import otprop
from otprop.cli import main
from otprop.files import read_table
from otprop.labelling.job import Request, prepare
from otprop.propagation.calibration import Coverage
from otprop.report.charts import class_markers, coverage_chart
from otprop.report.label_page import make_page, without_folders
from otprop.report.page import format_percent
from tests.report.checker import Checker
from tests.report.outcomes import explained, made_outcome, made_page

EVIL = "</script><script>alert(1)</script><!--&\"'"


class Reader(Checker):
    """One that knows that an input has no end."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        super().handle_starttag("br" if tag == "input" else tag, attrs)


def parsed(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    return reader


def data_of(html: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.S)
    assert found is not None
    return dict(json.loads(found[1]))


def text_of(html: str) -> str:
    """The words a reader sees."""
    words = parsed(html.split("<body>")[1].split('<script type="application/json"')[0]).words
    return re.sub(r"\s+", " ", words)  # of all kinds of blanks


@pytest.fixture(scope="module")
def html() -> str:
    return made_page(*made_outcome(600, ["Gala", "Cox", EVIL], abstain_below=0.8))


def test_every_element_is_closed_and_nothing_comes_from_elsewhere(html: str) -> None:
    checker = parsed(html)
    assert checker.open == []
    assert checker.addresses == ["data:,"]
    assert not re.search(r"url\((?!#ramp-)|@import", html)


def test_only_the_pages_own_script_and_style_may_run(html: str) -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; img-src data:; style-src 'sha256-")
    assert "unsafe" not in policy[1]
    assert " style=" not in html.split("<body>")[1].split("<script")[0]  # it would be refused


def test_values_from_the_file_cannot_end_the_script_or_start_a_tag(html: str) -> None:
    assert html.count("<script") == 2
    assert data_of(html)["classes"][2] == EVIL
    assert EVIL in text_of(html)


@given(st.text(max_size=300))
@settings(deadline=None, max_examples=25)
def test_any_text_in_any_place_leaves_the_page_whole(words: str) -> None:
    outcome, X = made_outcome(30, [words, words + "2"])
    html = made_page(
        outcome, X, {words: lambda row: words}, facts={"file": words, words: words}, notes=[words], command=words
    )
    html.encode()
    assert html.count("<script") == 2
    assert len(data_of(html)["cells"]) == 1


def test_lone_surrogates_and_control_characters_are_replaced() -> None:
    outcome, X = made_outcome(30, ["a\ud800", "b\x00"])
    html = made_page(outcome, X)
    html.encode()
    assert data_of(html)["classes"] == ["a\ufffd", "b\ufffd"]


def test_the_counts_by_class_are_those_of_the_outcome() -> None:
    outcome, X = made_outcome(600, ["Gala", "Cox"], abstain_below=0.9)
    table = made_page(outcome, X).split('<section id="classes">')[1].split("</table>")[0]
    lines = [re.findall(r'<td class="number">(.*?)</td>', line)[:2] for line in table.split("<tr>")[2:]]
    counted = [
        [str((outcome.given & (outcome.codes == code)).sum()), str((outcome.codes == code).sum())] for code in (0, 1)
    ]
    assert lines == [*counted, ["", str((outcome.codes < 0).sum())]]
    assert (outcome.codes < 0).any()


def test_rows_labelled_by_round_add_up_to_the_labelled_rows() -> None:
    outcome, X = made_outcome(600, ["Gala", "Cox"], n_rounds=5, abstain_below=0.9)
    rounds = data_of(made_page(outcome, X))["rounds"]
    assert len(rounds) == 6
    assert rounds[0] == outcome.given.sum()
    assert sum(rounds) == (outcome.codes >= 0).sum()


def test_the_error_to_expect_and_the_option_that_gets_it_are_there(html: str) -> None:
    outcome, _ = made_outcome(600, ["Gala", "Cox", EVIL], abstain_below=0.8)
    for one in outcome.coverage:
        shown = f"{np.floor(one.confidence * 1e4) / 1e4:.4f}"
        assert shown in html
        kept = (outcome.confidence[~outcome.given] >= float(shown)).sum()  # type: ignore[index]
        assert kept >= one.n_rows
    assert "expected error against the share of rows labelled" in html


def test_no_threshold_is_offered_whose_error_may_be_anything() -> None:
    outcome, _ = made_outcome(600, ["Gala", "Cox", "Elstar"])
    assert outcome.half_error_coverage is not None
    unknown = [replace(one, low=0.0, high=1.0) for one in outcome.coverage]
    assert replace(outcome, coverage=unknown).half_error_coverage is None


def test_a_range_that_is_larger_than_its_chart_is_said_to_be() -> None:
    coverage = [Coverage(share, 100, 0.9, 0.02, 0.01, high) for share, high in ((0.1, 0.5), (1.0, 0.05))]
    assert "the range continues above" in str(coverage_chart(coverage).elements)
    assert "the range continues above" not in str(coverage_chart(coverage[1:]).elements)


def test_without_confidence_there_is_no_expected_error() -> None:
    words = text_of(made_page(*made_outcome(100, ["a", "b"], confidence=False)))
    assert "expected error" not in words.lower()
    assert "has no confidence" in words
    assert "Sources of evidence" not in words


def test_the_rows_to_review_come_with_their_runner_up() -> None:
    outcome, X = made_outcome(400, ["Gala", "Cox", "Braeburn"])
    html = made_page(outcome, X)
    row = int(re.findall(r'data-row="(\d+)"', html)[0]) - 1
    second = outcome.classes[int(np.argsort(outcome.distributions[row])[-2])]
    line = html.split(f'data-row="{row + 1}"')[1].split("</tr>")[0]
    assert re.findall(r"<bdi>(.*?)</bdi>", line) == [outcome.classes[outcome.codes[row]], second]


def test_notes_command_parameters_columns_and_versions_are_there(html: str) -> None:
    words = text_of(html)
    for expected in (
        *("a label with a single row: Cox", "otprop label orchard.csv --target variety", "auto (used: 0.0123)"),
        *("identifier: a different value in every row", "0.1.0", "diffusion", "not known"),
    ):
        assert expected in words


def test_a_large_file_is_sampled_and_the_page_says_so_and_stays_small() -> None:
    outcome, X = made_outcome(100_000, ["a", "b", "c"])
    html = made_page(outcome, X, {f"column {k}": lambda row: f"{row} " + "né " * 60 for k in range(30)})
    assert len(html.encode()) < 10_000_000
    words = text_of(html)
    assert "The map shows 20 000 of 100 000 rows: all 2 000 with a given label" in words
    data = data_of(html)
    assert len(data["x"]) == 20_000
    assert sum(data["given"]) == 2000
    reviewed = set(map(int, re.findall(r'data-review="(\d+)"', html)))
    assert len(reviewed) == 20
    assert reviewed <= set(data["row"])
    assert sum(data["rounds"]) == 100_000


def test_odd_outcomes_can_be_shown() -> None:
    outcome, X = made_outcome(12, ["a", "b"], n_given=12)  # all given
    assert "All labels were given" in made_page(outcome, X)
    outcome, X = made_outcome(12, ["a", "b"], abstain_below=2.0)  # none added
    assert "none added" in made_page(outcome, X)
    outcome, X = made_outcome(12, ["a", "b"])
    assert "NaN" not in made_page(outcome, np.zeros_like(X)).split("<script>")[0]


@pytest.mark.parametrize("n_classes", [1, 6, 30, 36, 200])
def test_classes_have_different_markers_as_long_as_there_are_markers(n_classes: int) -> None:
    sizes = np.arange(n_classes)
    markers = class_markers(sizes)
    assert len(markers) == n_classes
    assert len(set(markers)) == min(n_classes, 37)
    if n_classes > 36:
        assert len(set(markers[-36:])) == 36  # the largest


def test_many_classes_open_on_demand() -> None:
    assert "60 more classes" in text_of(made_page(*made_outcome(500, [f"kind {k}" for k in range(100)])))


@pytest.mark.parametrize("n_classes", [2, 6, 12, 36])
def test_no_two_classes_share_both_colour_and_shape_and_neighbours_share_neither(n_classes: int) -> None:
    markers = class_markers(np.arange(n_classes))
    assert len(set(markers)) == n_classes
    for (color, shape), (next_color, next_shape) in pairwise(markers):
        assert color != next_color
        assert shape != next_shape


def test_wherever_the_expected_error_stands_its_range_stands_beside_it(html: str) -> None:
    outcome, _ = made_outcome(600, ["Gala", "Cox", EVIL], abstain_below=0.8)
    words = text_of(html)
    low, high = outcome.error_range  # type: ignore[misc]
    figure = re.search(r"expected error(\S+ %) (\S+ %) to (\S+ %)", words)
    assert figure is not None
    assert figure.groups() == tuple(
        format_percent(share).replace("\xa0", " ") for share in (outcome.expected_error, low, high)
    )
    assert re.search(r"expected error of \S+ % \(likely \S+ % to \S+ %\)\. With", words)
    assert re.search(r"--abstain-below \S+, \S+ % of .* expected error of \S+ % \(likely \S+ % to \S+ %\)\.", words)
    assert len(re.findall(r"labelled: expected error [^(]+ % \([^)]+ % to [^)]+ %\)", words)) == len(outcome.coverage)


def test_an_outcome_without_explanations_has_no_section_on_them(html: str) -> None:
    words = text_of(html)
    assert "Nearest labelled rows" not in words
    assert "Confusion" not in words
    assert words.count("Class probabilities of row") == 20


def test_the_confusion_of_many_classes_is_a_list_of_pairs() -> None:
    few, many = (
        text_of(made_page(explained(made[0]), made[1]))
        for made in (made_outcome(300, ["a", "b", "c"]), made_outcome(300, [f"kind {k:02d}" for k in range(30)]))
    )
    assert "givenabc a71 b71 c7" in re.sub(r"(?<=\d) (?=\d)", "", few)
    assert "kind 00kind 011" in many
    assert "held-out labels kind 00" in many


def test_corrections_carry_the_names_of_the_classes_unchanged_and_the_digest_of_the_file() -> None:
    names = ["a\x01" + "x" * 300, "b"]
    outcome, X = made_outcome(60, names)
    data = data_of(made_page(outcome, X, file_digest="a1b2"))
    assert data["labels"] == names
    assert data["classes"] != names
    assert data["file_digest"] == "a1b2"


def test_the_page_of_a_job_shows_names_of_files_and_no_folder(tmp_path: Path) -> None:
    lines = [
        f"{row},{row % 7},{'even' if row % 2 == 0 else 'odd'}" if row < 8 else f"{row},{row % 7}," for row in range(40)
    ]
    path = tmp_path / "numbers.csv"
    path.write_text("\n".join(["number,rest,kind", *lines]) + "\n", encoding="utf-8")
    job = prepare(read_table(path), Request("kind", method="otp-paper"))
    outcome = job.run()
    html = make_page(job, outcome, command=f"otprop label {path} --target kind --report={tmp_path}/p.html -o x/y.csv")
    assert str(tmp_path) not in html
    words = text_of(html)
    assert "otprop label numbers.csv --target kind --report=p.html -o x/y.csv" in words
    assert "kind labelled: numbers.csv" in words
    assert data_of(html)["file_digest"] == sha256(path.read_bytes()).hexdigest()


def test_folders_of_any_system_are_omitted_from_the_command() -> None:
    command = shlex.join(["otprop", "label", r"C:\Users\me\lots.csv", "--unlabeled", "n/a", "--set", "a=/etc/b c"])
    assert shlex.split(without_folders(command))[2:] == ["lots.csv", "--unlabeled", "n/a", "--set", "a=b c"]


def test_the_estimated_shares_stand_beside_the_counts_which_are_no_estimate_of_them() -> None:
    outcome, X = made_outcome(300, ["Gala", "Cox"])
    words = text_of(made_page(replace(outcome, shares={"Gala": 0.37, "Cox": 0.63}), X))
    assert "estimated share" in words
    assert "37 %" in words
    assert "63 %" in words
    assert "does not estimate the shares" in words
    assert "estimated share" not in text_of(made_page(outcome, X))


def test_the_page_names_options_as_the_command_or_python_that_made_it(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, 200)
    frame = pd.DataFrame({"size": kind + rng.normal(0, 0.5, 200), "kind": np.where(kind == 1, "new", "old")})
    frame.loc[60:, "kind"] = None
    path = tmp_path / "lots.csv"
    frame.to_csv(path, index=False)
    page = ["--report", str(tmp_path / "a.html")]
    assert main(["label", str(path), "--target", "kind", "--unlabeled", "zzz", *page]) == 0
    otprop.label(path, "kind", unlabeled="zzz").report(tmp_path / "b.html")
    words = text_of((tmp_path / "a.html").read_text(encoding="utf-8"))
    assert "--unlabeled zzz" in words
    assert "--abstain-below" in words
    assert "unlabeled='zzz'" not in words
    words = text_of((tmp_path / "b.html").read_text(encoding="utf-8"))
    assert "without effect: unlabeled='zzz'" in words
    assert "abstain_below" in words
    assert "--" not in words


def test_an_unknown_error_has_no_figure_on_the_page() -> None:
    frame = pd.DataFrame({"size": np.arange(40) % 20, "kind": [None] * 40})
    frame.loc[[3, 15], "kind"] = ["small", "large"]
    result = otprop.label(frame, "kind")
    assert "expected errorunknown" in text_of(make_page(result.job, result.outcome, command="otprop.label(frame)"))
