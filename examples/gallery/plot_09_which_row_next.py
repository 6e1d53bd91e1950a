"""
Which row next
==============

``suggest`` returns the rows that are most useful to label: uncertain and typical rows of different regions. A fifth is
drawn at random, to keep the expected error unbiased. The other curve uses random rows only.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from otprop import OTP

X, truth = load_digits(return_X_y=True)
X, truth = X[:600], truth[:600]


def label_in_turns(suggested: bool, seed: int) -> list[float]:
    """The share of right labels after 20, 40, ... labels."""
    random = np.random.default_rng(seed)
    y, chosen, right = np.full(len(X), -1), np.zeros(len(X), dtype=bool), []
    rows = random.choice(len(X), 20, replace=False)
    model = OTP(evidence=None, warm_start=True)
    for _ in range(4):
        y[rows] = truth[rows]
        model.fit(X, y, chosen=chosen)
        right.append(float(np.mean(model.transduction_ == truth)))
        if suggested:
            suggestions = model.suggest(20)
            rows = [suggestion.row for suggestion in suggestions]
            chosen[[one.row for one in suggestions if one.reason != "random"]] = True
        else:
            rows = random.choice(np.flatnonzero(y < 0), 20, replace=False)
    return right


labels = np.arange(20, 81, 20)
figure, axis = plt.subplots(figsize=(6.5, 4), layout="constrained")
for suggested, name in ((True, "suggested"), (False, "drawn at random")):
    runs = np.array([label_in_turns(suggested, seed) for seed in range(2)])
    axis.plot(labels, runs.mean(axis=0), marker="o", label=name)
axis.set(xlabel="labels", ylabel="share of right labels, mean of two runs", xticks=labels)
axis.legend()
plt.show()
