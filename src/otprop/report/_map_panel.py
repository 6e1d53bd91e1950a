"""The map's controls, legend and read-out; the script of the page brings them to life."""

from __future__ import annotations

from html import escape

import numpy as np

from otprop.labelling.outcome import Outcome
from otprop.report._looks import REST, clean, count, swatch
from otprop.report._map_data import scales
from otprop.report.label_figures import ramp

_HOW = {
    "pca": "placed by the two directions in which the features vary most (PCA)",
    "umap": "placed by UMAP, which keeps neighbours together; far distances mean little",
}


def map_panel(outcome: Outcome, drawn: np.ndarray, looks: list[tuple[str, str]], sizes: np.ndarray, how: str) -> str:
    """The map as markup.

    Parameters
    ----------
    outcome : Outcome
    drawn : ndarray of int, the rows drawn
    looks : list of (color, shape), of the classes
    sizes : ndarray of int, rows of each class
    how : {"pca", "umap"}

    Returns
    -------
    str
    """
    return (
        f'<p class="note">{escape(_words(outcome, drawn, how))}</p>'
        '<noscript><p class="note">The map needs JavaScript; all else on this page does not.</p></noscript>'
        f'<div id="live" hidden><div class="bar">{_colors(outcome)}{_zoom()}</div>'
        '<div class="panel"><div class="stage">'
        '<div class="frame"><canvas id="canvas" tabindex="0" role="img" aria-label="map of the rows; arrow keys walk '
        'through the rows, the least sure first" aria-describedby="state"></canvas></div>'
        f"{_rounds(outcome)}</div>"
        f'<div class="side"><div id="readout" aria-live="polite"></div>{_legend(outcome, looks, sizes)}</div>'
        "</div></div>"
    )


def _words(outcome: Outcome, drawn: np.ndarray, how: str) -> str:
    n_rows, n_given = len(outcome.codes), int(outcome.given.sum())
    n_shown = int(outcome.given[drawn].sum())
    words = f"Each mark is a row, {_HOW.get(how, how)}."
    if len(drawn) < n_rows:
        share = "all" if n_shown == n_given else f"{count(n_shown)} of the"
        words += (
            f" Drawn are {count(len(drawn))} of {count(n_rows)} rows: {share} {count(n_given)} with a given label, the "
            "rows to review, and of the others a random sample. Counts are of the whole file."
        )
    return words


def _colors(outcome: Outcome) -> str:
    ways = ["label", *scales(outcome)]
    buttons = "".join(
        f'<label><input type="radio" name="color" value="{way}"{" checked" if way == "label" else ""}>{way}</label>'
        for way in ways
    )
    return f'<fieldset class="switch"><legend>colour by</legend>{buttons}</fieldset>'


def _zoom() -> str:
    return (
        '<div class="zoom" role="group" aria-label="zoom"><button type="button" id="in" aria-label="nearer">+</button>'
        '<button type="button" id="out" aria-label="farther">\N{MINUS SIGN}</button>'
        '<button type="button" id="whole">whole map</button></div>'
    )


def _rounds(outcome: Outcome) -> str:
    last = outcome.n_rounds
    hidden = " hidden" if last < 1 else ""
    return (
        f'<div class="rounds"{hidden}><button type="button" id="play">Play the rounds</button>'
        f'<input type="range" id="slider" min="0" max="{max(last, 1)}" step="1" value="{max(last, 1)}" '
        'aria-label="round" aria-describedby="state"></div>'
        '<p id="state" role="status"></p>'
    )


def _legend(outcome: Outcome, looks: list[tuple[str, str]], sizes: np.ndarray) -> str:
    items = "".join(
        f'<li><button type="button" class="class" aria-pressed="true" data-class="{number}" '
        f'title="{escape(clean(name))}">{swatch(looks[number])}<bdi>{escape(clean(name))}</bdi>'
        f'<span class="n">{count(int(sizes[number]))}</span></button></li>'
        for number, name in enumerate(outcome.classes)
    )
    if outcome.abstained.any():
        n_none = count(int(outcome.abstained.sum()))
        items += (
            '<li><button type="button" class="class" aria-pressed="true" data-class="-1">'
            f'<i class="none"></i><span>left without a label</span><span class="n">{n_none}</span></button></li>'
        )
    more = '<p class="note">The brown circle stands for all classes beyond the 36 largest.</p>' if REST in looks else ""
    scale = "".join(
        f'<div class="scale" data-of="{name}" hidden>{ramp(low, name)}</div>' for name, low in scales(outcome).items()
    )
    return (
        '<div class="legend"><div class="bar"><h3>Classes</h3><span><button type="button" id="all">all</button> '
        f'<button type="button" id="none">none</button></span></div><ul>{items}</ul>{more}'
        '<p class="key"><i class="ring"></i> given label <i class="faint"></i> not labelled yet</p>'
        f"{scale}</div>"
    )
