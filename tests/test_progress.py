"""The progress bar of a notebook."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from otprop._progress import bar_html, no_progress, shown_progress


class Handle:
    """What `display(..., display_id=True)` returns."""

    def __init__(self, shown: list[str]) -> None:
        self.shown = shown

    def update(self, html: str) -> None:
        self.shown.append(html)


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A running kernel, as far as the bar looks at it; returns what is shown in the cell."""
    shown: list[str] = []
    ipython, display = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    display.HTML = str  # type: ignore[attr-defined]

    def show(html: str, display_id: bool) -> Handle:
        shown.append(html)
        return Handle(shown)

    display.display = show  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return shown


def test_a_notebook_shows_a_bar_that_goes_away(notebook: list[str]) -> None:
    pd = pytest.importorskip("pandas")
    import otprop

    frame = pd.DataFrame({"weight": [1.0, 1.2, 1.1, 9.0, 9.1, 9.3], "kind": ["a", None, None, "b", None, None]})
    otprop.label(frame, "kind")
    assert "<progress" in notebook[0]
    assert any("making features" in html for html in notebook)
    assert notebook[-1] == ""


def test_nothing_is_shown_outside_of_a_notebook(notebook: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[Any] = []
    with shown_progress(lambda *step: called.append(step)) as report:  # a callback of the user's own
        report(1, 2, "fitting")
    assert called == [(1, 2, "fitting")]
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: None)  # imported, but no shell runs
    with shown_progress(None) as report:
        assert report is no_progress
    assert notebook == []


def test_the_bar_escapes_its_step_and_stays_within_its_range() -> None:
    assert "&lt;b&gt;" in bar_html(1, 2, "<b>")
    assert 'value="0.500"' in bar_html(1, 2, "x")
    assert 'value="1.000"' in bar_html(3, 2, "x")
    assert "value=" not in bar_html(0, 0, "x")
