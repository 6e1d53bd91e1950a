"""
The published method, solved
============================

The algorithm of the paper on Iris with the epsilon of its authors, in three versions: solved to tolerance in every
round, as in their released loop with POT, and as a vote with the kernel alone. In their loop the solver underflows, and
what remains is the vote; see :doc:`/published-method`. The loop and the vote are in ``otprop_paper``, the folder
``paper`` of the source.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris
from sklearn.metrics import normalized_mutual_info_score
from sklearn.model_selection import train_test_split

from otprop import OTP, PaperOTP
from otprop_paper.baselines import KernelVote
from otprop_paper.benchmark.released_code import released_loop, squared_costs

EPSILON = 0.016
X, truth = load_iris(return_X_y=True)
methods = {
    "PaperOTP, every plan solved": lambda y: PaperOTP(EPSILON, alpha=0.9).fit(X, y).transduction_,
    "the released loop on POT": lambda y: released_loop(squared_costs(X), y, EPSILON),
    "kernel vote, no transport": lambda y: KernelVote(EPSILON).fit(X, y).transduction_,
    "OTP()": lambda y: OTP().fit(X, y).transduction_,
}
shares, splits = (0.05, 0.15, 0.25, 0.35), range(4)
figure, axis = plt.subplots(figsize=(6.8, 4), layout="constrained")
for name, label_rows in methods.items():
    scores = []
    for share in shares:
        for split in splits:
            given, hidden = train_test_split(np.arange(150), train_size=share, stratify=truth, random_state=split)
            y = np.full(150, -1)
            y[given] = truth[given]
            found = label_rows(y)
            scores.append(normalized_mutual_info_score(truth[hidden], found[hidden]))
    means = np.reshape(scores, (len(shares), -1)).mean(axis=1)
    axis.plot([f"{share:.0%}" for share in shares], means, marker="o", label=name)
axis.set(xlabel="rows labelled", ylabel="NMI on the unlabelled rows, mean of four splits")
figure.legend(loc="outside upper center", ncols=2)
plt.show()
