"""Write docs/_static/start.png and start-dark.png, the picture of the README and of the site's first page.

python tools/start_picture.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from otprop import OTP

OUT = Path(__file__).resolve().parent.parent / "docs" / "_static"
# colours of the background, of text and outlines, of unlabelled rows, and of the two classes
LIGHT = ("white", "black", "0.8", [[0.17, 0.40, 0.69], [0.90, 0.45, 0.10]])
DARK = ("#14181e", "#ced6dd", "0.4", [[0.42, 0.66, 0.95], [0.98, 0.62, 0.30]])  # the background of the site


def main() -> None:
    """Fit, and draw the picture in both colour schemes."""
    X, truth = make_moons(400, noise=0.12, random_state=0)
    given = np.concatenate([np.flatnonzero(truth == k)[:4] for k in (0, 1)])
    y = np.full(len(X), -1)
    y[given] = truth[given]
    model = OTP().fit(X, y)
    draw(model, X, truth, given, LIGHT, OUT / "start.png")
    draw(model, X, truth, given, DARK, OUT / "start-dark.png")


def draw(model: OTP, X: np.ndarray, truth: np.ndarray, given: np.ndarray, colours: Any, path: Path) -> None:
    """Draw the labels that were given, and those that were found."""
    background, ink, unlabelled, classes = colours
    palette = np.array(classes)
    figure, axes = plt.subplots(1, 2, figsize=(7.5, 2.9), layout="constrained", facecolor=background)
    axes[0].scatter(*X.T, s=14, color=unlabelled, lw=0)
    axes[0].set_title(f"{len(given)} labels, {len(X) - len(given)} rows without", fontsize=13, color=ink)
    sure = np.clip(2 * model.confidence_ - 1, 0.15, 1)
    axes[1].scatter(*X.T, s=14, color=np.column_stack([palette[model.transduction_], sure]), lw=0)
    axes[1].set_title("a label for every row (fainter: less certain)", fontsize=13, color=ink)
    for axis in axes:
        axis.scatter(*X[given].T, s=80, color=palette[truth[given]], marker="^", edgecolors=ink)
        axis.set_axis_off()
    figure.savefig(path, dpi=130, metadata={"Software": None})


if __name__ == "__main__":
    main()
