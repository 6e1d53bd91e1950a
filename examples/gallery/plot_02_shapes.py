"""
Moons and circles, compared with label spreading
================================================

For classes with a clear shape, a few labels and the neighbours of the rows are enough. For comparison, scikit-learn's
``LabelSpreading`` runs with the kernel that suits these shapes and otherwise with its defaults.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_circles, make_moons
from sklearn.semi_supervised import LabelSpreading

from otprop import OTP

tables = {
    "moons": make_moons(400, noise=0.1, random_state=0),
    "circles": make_circles(400, noise=0.07, factor=0.5, random_state=0),
}
figure, axes = plt.subplots(2, 3, figsize=(9, 6), layout="constrained", sharex="row", sharey="row")
for line, (name, (X, truth)) in zip(axes, tables.items(), strict=True):
    y = np.full(len(X), -1)
    given = np.concatenate([np.flatnonzero(truth == k)[:4] for k in (0, 1)])
    y[given] = truth[given]
    found = {
        f"{name}: 8 labels": y,
        "OTP()": OTP().fit(X, y).transduction_,
        "LabelSpreading(kernel='knn')": LabelSpreading(kernel="knn").fit(X, y).transduction_,
    }
    for axis, (title, labels) in zip(line, found.items(), strict=True):
        colours = np.where(labels < 0, "0.85", np.where(labels == 0, "tab:blue", "tab:orange"))
        axis.scatter(*X.T, c=colours, s=8)
        axis.scatter(*X[given].T, c=colours[given], marker="^", s=70, edgecolors="black")
        right = f", {np.mean(labels == truth):.1%} right" if labels is not y else ""
        axis.set_title(title + right, fontsize=10)
        axis.set(xticks=[], yticks=[])
plt.show()
