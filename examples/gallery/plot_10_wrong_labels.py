"""
Finding wrong labels
====================

Each given label is compared with the prediction from all other labels. ``label_issues_`` lists the labels that are
contradicted, the most doubtful first. Here 20 of 400 labels of handwritten digits were swapped on purpose.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from otprop import OTP

X, truth = load_digits(return_X_y=True)
random = np.random.default_rng(5)
given = random.choice(len(X), 400, replace=False)
y = np.full(len(X), -1)
y[given] = truth[given]
swapped = given[:20]
y[swapped] = (y[swapped] + random.integers(1, 10, len(swapped))) % 10

model = OTP().fit(X, y)
issues = model.label_issues_
found = np.isin([issue.row for issue in issues], swapped)
for n in (10, 20, 30):
    print(f"of the {n} most doubtful labels, {found[:n].sum()} were swapped")

# %%
# The first twelve of the list, with the given label and, in brackets, the suggested one.

figure, axes = plt.subplots(2, 6, figsize=(9, 3.8), layout="constrained")
for axis, issue in zip(axes.ravel(), issues, strict=False):
    axis.imshow(X[issue.row].reshape(8, 8), cmap="gray_r")
    colour = "tab:red" if issue.row in swapped else "black"
    axis.set_title(f"{issue.given} ({issue.suggested}): {issue.probability:.0%}", fontsize=10, color=colour)
    axis.set_axis_off()
figure.suptitle("given (suggested): probability that the label is wrong; red: swapped on purpose", fontsize=10)
plt.show()
