"""
The rounds of the paper's Figure 1
==================================

Algorithm 1 of the paper, round by round: triangles are labelled rows, circles get the colour of their class when a
round labels them. :class:`otprop.PaperOTP` is the algorithm as printed, with every plan solved to its tolerance.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from otprop import PaperOTP
from otprop.plotting import plot_rounds

X, truth = make_blobs(240, centers=[[0, 0], [4, 1], [2, 4]], cluster_std=1.0, random_state=2)
y = np.full(len(X), -1)
given = np.concatenate([np.flatnonzero(truth == k)[:3] for k in range(3)])
y[given] = truth[given]

model = PaperOTP(epsilon=0.5, alpha=0.9).fit(X, y)
for record in model.rounds_[:4]:
    print(
        f"round {record.number}: {len(record.rows)} of {record.n_unlabeled} rows labelled, "
        f"plan exact to {record.source_error:.0e}"
    )
print(f"{len(model.rounds_)} rounds, {np.mean(model.transduction_ == truth):.0%} of the labels are right")

plt.figure(plot_rounds(model, X))
plt.show()
