"""No figure of the README and the guide is typed by hand: each is written from a committed result."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, README, ROOT, guide_pages, name, without_code

SCRIPT = ROOT / "tools" / "write_figures.py"
MARKED = re.compile(r"<!-- figures: [\w-]+ -->.*?<!-- /figures -->", re.DOTALL)
UNITS = "%|per cent|s|seconds|minutes|hours|ms|GB|MB|GiB|MiB|gigabytes|megabytes|times|points|NMI|ARI"
FIGURE = re.compile(rf"(?<![\w.])(?:[-+]?\d+\.\d+(?: ?(?:{UNITS})\b)?|\d[\d ]*(?: ?%| (?:{UNITS})\b))")
SETTINGS = {  # numbers that were chosen and not measured
    "README.md": {"3.11": "the Python it needs", "0.1": "a version"},
    "docs/first-steps.md": {"3.11": "the Python it needs"},
    "docs/cells.md": {"3.12": "the Python it needs", "0.13": "a version"},
    "docs/label.md": {"200 times": "a limit", "256 MiB": "a limit", "92 %": "an example", "2 %": "an example"},
    "docs/loop.md": {
        **{"2 %": "a goal", "0.02": "a goal", "95 %": "a goal", "30 %": "a threshold", "4 %": "a prior"},
        "80 %": "the level of the range of labels_needed",
    },
    "docs/trust.md": {"0.9": "a level", "2 %": "a goal"},
    "docs/survey.md": {"0.9": "a level", "2 %": "a goal"},
    "docs/alternatives.md": {"0.1": "a version", "30 %": "labels made wrong"},
    "docs/stability.md": {"0.3": "a version", "0.4": "a version", "1.0": "a version"},
    "docs/studio.md": {"127.0": "an address", "20 MB": "a limit"},
    "docs/how-it-works.md": {
        "0.9": "the threshold of a round",
        "15 %": "the least share of a round",
        "30 %": "the same in large tables",
    },
    "docs/results.md": {"0.1": "a version", "35 %": "labels given", "1 %": "labels given"},
}
EVERYWHERE = {"90 %": "the level of the announced range"}


def figures(text: str) -> list[str]:
    """The figures in the prose of a page that no marker surrounds."""
    prose = without_code(MARKED.sub("", text))
    prose = re.sub(r"\]\([^)]*\)", "]", prose)  # addresses
    return [match[0].strip() for match in FIGURE.finditer(prose)]


PAGES = [README, *guide_pages(), DOCS / "results.md"]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_no_figure_is_typed_by_hand(page: Path) -> None:
    known = {**EVERYWHERE, **SETTINGS.get(name(page), {})}
    assert [figure for figure in figures(page.read_text(encoding="utf-8")) if figure not in known] == []


@pytest.mark.skipif(not (ROOT / "benchmarks" / "results").exists(), reason="the results are in the checkout only")
def test_the_figures_are_those_of_the_committed_results() -> None:
    done = subprocess.run([sys.executable, SCRIPT, "--check"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), f"run `make figures`: {done.stdout}{done.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_no_figure_within_a_line_begins_it(page: Path) -> None:
    """Markdown would take the rest of the paragraph for HTML."""
    assert not re.findall(r"^<!-- figures: [\w-]+ -->.+", page.read_text(encoding="utf-8"), re.MULTILINE)


def test_a_figure_typed_by_hand_is_found() -> None:
    text = "It has 0.712 and takes 29 s, 4.3 times as long, at 12 % of `0.5` in Eq. 12, with 20 labels in 3 000 rows."
    assert figures(text) == ["0.712", "29 s", "4.3 times", "12 %"]
    assert figures("<!-- figures: mixed-tables-range -->91.5 %<!-- /figures --> of runs") == []
    assert figures("```python\nalpha = 0.5\n```\n") == []
