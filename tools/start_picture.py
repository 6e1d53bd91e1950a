"""Write docs/_static/start.png, the picture of the README and of the site's first page.

python tools/start_picture.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from otprop import OTP

OUT = Path(__file__).resolve().parent.parent / "docs" / "_static" / "start.png"


def main() -> None:
    """Draw the labels that were given, and those that were found."""
    X, truth = make_moons(400, noise=0.12, random_state=0)
    given = np.concatenate([np.flatnonzero(truth == k)[:4] for k in (0, 1)])
    y = np.full(len(X), -1)
    y[given] = truth[given]
    model = OTP().fit(X, y)
    palette = np.array([[0.17, 0.40, 0.69], [0.90, 0.45, 0.10]])
    figure, axes = plt.subplots(1, 2, figsize=(7.5, 2.9), layout="constrained")
    axes[0].scatter(*X.T, s=14, color="0.8", lw=0)
    axes[0].set_title(f"{len(given)} labels, {len(X) - len(given)} rows without", fontsize=13)
    sure = np.clip(2 * model.confidence_ - 1, 0.15, 1)
    axes[1].scatter(*X.T, s=14, color=np.column_stack([palette[model.transduction_], sure]), lw=0)
    axes[1].set_title("a label for every row (paler: less sure)", fontsize=13)
    for axis in axes:
        axis.scatter(*X[given].T, s=80, color=palette[truth[given]], marker="^", edgecolors="black")
        axis.set_axis_off()
    figure.savefig(OUT, dpi=130, metadata={"Software": None})


if __name__ == "__main__":
    main()
