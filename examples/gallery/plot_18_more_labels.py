"""
What more labels buy
====================

The expected error and its range are known before anything is checked. More random labels reduce both. If the error
stays too high, abstain on the doubtful rows (see *Confidence and abstention*) or let ``suggest`` choose the
rows (see *Which row next*).
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from otprop import OTP

X, truth = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
order = np.random.default_rng(2).permutation(len(X))
sizes = [10, 20, 40, 80, 160]
announced, low, high, real = [], [], [], []
for n in sizes:
    y = np.full(len(X), -1)
    y[order[:n]] = truth[order[:n]]
    model = OTP().fit(X, y)
    announced.append(model.expected_error_)
    low.append(model.error_range_[0])
    high.append(model.error_range_[1])
    real.append(np.mean(model.transduction_[y < 0] != truth[y < 0]))
    print(f"{n:3d} labels: announced {announced[-1]:.1%}, real {real[-1]:.1%}")

figure, axis = plt.subplots(figsize=(6.5, 4), layout="constrained")
axis.fill_between(sizes, low, high, alpha=0.2, lw=0)
axis.plot(sizes, announced, marker="o", label="announced, with its 90 % range")
axis.plot(sizes, real, "k--", marker="s", label="real")
axis.set(xlabel="labels drawn at random", ylabel="share of wrong labels", xscale="log", ylim=(0, None))
axis.set_xticks(sizes, sizes)
axis.minorticks_off()
axis.legend()
plt.show()
