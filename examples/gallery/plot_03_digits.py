"""
Digits with ten labels
======================

1 797 images of handwritten digits, with one labelled image per digit. With a single label per class, no label can be
held out, so the confidence is not calibrated, and the log says so. It still ranks the rows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from otprop import OTP

X, truth = load_digits(return_X_y=True)
random = np.random.default_rng(1)
given = [random.choice(np.flatnonzero(truth == digit)) for digit in range(10)]
y = np.full(len(X), -1)
y[given] = truth[given]

model = OTP().fit(X, y)
right = model.transduction_ == truth
order = np.argsort(-model.confidence_)
order = order[~np.isin(order, given)]
print(f"{right[order].mean():.1%} of the {len(order)} labels found are right")
for part in np.array_split(order, 4):
    print(f"{right[part].mean():.1%} right at confidence {model.confidence_[part].min():.2f} and more")

# %%
# Above, the ten given images. Below, the images with the least certain labels, with the propagated label and, in
# brackets, the true one.

figure, axes = plt.subplots(4, 10, figsize=(10, 4.6), layout="constrained")
for axis, row in zip(axes.ravel(), [*given, *order[-30:]], strict=True):
    axis.imshow(X[row].reshape(8, 8), cmap="gray_r")
    axis.set_axis_off()
    if row in given:
        axis.set_title(truth[row], fontsize=11, fontweight="bold")
    else:
        colour = "tab:green" if right[row] else "tab:red"
        axis.set_title(f"{model.transduction_[row]} ({truth[row]})", fontsize=9, color=colour)
plt.show()
