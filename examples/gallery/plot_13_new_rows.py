"""
New rows
========

A fitted model labels new rows: ``predict`` returns the label, ``predict_confidence`` its confidence. The map shows both
over the whole plane; paler means less certain.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from otprop import OTP

X, truth = make_moons(500, noise=0.15, random_state=1)
given = np.random.default_rng(1).choice(len(X), 30, replace=False)
y = np.full(len(X), -1)
y[given] = truth[given]
model = OTP().fit(X, y)

X_new, truth_new = make_moons(2000, noise=0.15, random_state=2)
confidence = model.predict_confidence(X_new)
right = model.predict(X_new) == truth_new
print(f"{right.mean():.1%} of {len(X_new)} new rows are labelled right, {confidence.mean():.1%} expected")
for low, high in ((0.99, 1.01), (0.9, 0.99), (0.0, 0.9)):
    part = (confidence >= low) & (confidence < high)
    print(f"confidence {low:.2f} to {min(high, 1):.2f}: {part.sum():4d} rows, {right[part].mean():.1%} right")

grid = np.stack(np.meshgrid(np.linspace(-1.6, 2.6, 120), np.linspace(-1.1, 1.6, 90)), axis=-1)
probabilities, sure = model.predict_with_confidence(grid.reshape(-1, 2))
colours = plt.get_cmap("tab10")(probabilities.argmax(axis=1))
colours[:, 3] = (2 * sure - 1).clip(0.02, 0.8)

figure, axis = plt.subplots(figsize=(7, 4.4), layout="constrained")
axis.imshow(colours.reshape(*grid.shape[:2], 4), origin="lower", extent=(-1.6, 2.6, -1.1, 1.6), aspect="auto")
axis.scatter(*X.T, s=6, c="0.35")
axis.scatter(*X[given].T, marker="^", s=70, c=plt.get_cmap("tab10")(truth[given]), edgecolors="black")
axis.set(xticks=[], yticks=[], title="triangles: the given labels")
plt.show()
