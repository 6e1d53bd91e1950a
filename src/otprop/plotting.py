"""Pictures by matplotlib: Figure 1 of the paper, labelled rows as triangles in the colour of their class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse
from sklearn.decomposition import PCA
from sklearn.utils.validation import check_is_fitted

from otprop._errors import install_command
from otprop._validation import InputError, check_count

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from otprop._otp import OTP
    from otprop._paper_otp import PaperOTP

__all__ = ["plot_rounds"]

MAX_PANELS = 6


def plot_rounds(model: OTP | PaperOTP, X: Any, n_panels: int = MAX_PANELS) -> Figure:
    """Draw how labels spread over the rows, in two dimensions by PCA.

    Parameters
    ----------
    model : OTP or PaperOTP, fitted on `X`
    X : array-like of shape (n_rows, n_features)
    n_panels : int, how many rounds to draw, the first and the last included

    Returns
    -------
    matplotlib Figure (needs the extra ``plot``)

    Examples
    --------
    >>> from otprop import OTP
    >>> from otprop.plotting import plot_rounds
    >>> X, y = [[0.0, 1.0], [0.2, 1.1], [1.0, 0.0], [1.2, 0.1]], ["left", None, "right", None]
    >>> figure = plot_rounds(OTP().fit(X, y), X)
    >>> figure.axes[0].get_title()
    'given labels'
    """
    check_is_fitted(model)
    check_count("n_panels", n_panels, least=2)
    try:
        from matplotlib import colormaps
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(f"drawing the rounds needs matplotlib: {install_command('plot')}") from error
    X = X.toarray() if issparse(X) else np.asarray(X, dtype=np.float64)
    if len(X) != len(model.round_):
        raise InputError(f"X has {len(X)} rows, but the model was fitted on {len(model.round_)}: pass the same X.")
    points = PCA(n_components=2).fit_transform(X) if X.shape[1] > 1 else np.column_stack([X, np.zeros(len(X))])
    codes = model.label_distributions_.argmax(axis=1)
    colors = colormaps["tab10" if len(model.classes_) <= 10 else "turbo"](
        np.arange(len(model.classes_)) if len(model.classes_) <= 10 else np.linspace(0, 1, len(model.classes_))
    )
    rounds = _rounds_to_draw(model.round_, n_panels)
    n_columns = min(3, len(rounds))
    n_panel_rows = -(-len(rounds) // n_columns)
    figure = Figure(figsize=(4.2 * n_columns, 3.7 * n_panel_rows + 0.5), layout="constrained")
    axes = figure.subplots(n_panel_rows, n_columns, squeeze=False).ravel()
    for axis in axes[len(rounds) :]:
        axis.set_visible(False)
    for axis, number in zip(axes, rounds, strict=False):
        _draw(axis, points, codes, model.round_, number, colors)
    handles = [
        axes[0].scatter([], [], color=color, marker="o", label=str(name))
        for name, color in zip(model.classes_, colors, strict=True)
    ]
    handles.append(axes[0].scatter([], [], color="0.3", marker="^", label="given label"))
    handles.append(axes[0].scatter([], [], facecolor="none", edgecolor="0.6", marker="o", label="unlabelled yet"))
    figure.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), 6), frameon=False)
    return figure


def _rounds_to_draw(round_: np.ndarray, n_panels: int) -> list[int]:
    """The first round, the last, and those between at which the labelled rows grow by equal shares."""
    last = int(round_.max())
    if last + 1 <= n_panels:
        return list(range(last + 1))
    done = np.array([(round_[round_ > 0] <= number).mean() for number in range(last + 1)])
    chosen = {0, last, *(int(np.argmax(done >= share)) for share in np.linspace(0, 1, n_panels)[1:-1])}
    for number in range(1, last):  # where most rows are labelled in one round, fill up with the first rounds
        if len(chosen) < n_panels:
            chosen.add(number)
    return sorted(chosen)


def _draw(axis: Any, points: np.ndarray, codes: np.ndarray, round_: np.ndarray, number: int, colors: Any) -> None:
    given, done = round_ == 0, (round_ > 0) & (round_ <= number)
    rest = ~given & ~done
    axis.scatter(*points[rest].T, facecolor="none", edgecolor="0.7", s=18, linewidth=0.8)
    axis.scatter(*points[done].T, color=colors[codes[done]], s=18)
    axis.scatter(*points[given].T, color=colors[codes[given]], marker="^", s=60, edgecolor="black", linewidth=0.7)
    axis.set_title(f"round {number}: {done.sum()} of {(~given).sum()} labelled" if number else "given labels")
    axis.set_xticks([])
    axis.set_yticks([])
