"""
Confidence and abstention
=========================

``confidence_`` is the probability that a label is right. It gives the expected error of any subset of the rows before
anybody checks them, and rows with a low confidence can stay unlabelled. Here the truth is known and drawn as well.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from otprop import OTP

X, truth = load_digits(return_X_y=True)
given = np.random.default_rng(0).choice(len(X), 60, replace=False)
y = np.full(len(X), -1)
y[given] = truth[given]

model = OTP().fit(X, y)
wrong = (model.transduction_ != truth)[y < 0]
low, high = model.error_range_
print(f"announced {model.expected_error_:.1%} (90 % range {low:.1%} to {high:.1%}), real {wrong.mean():.1%}")

# %%
# ``coverage()`` lists the expected error if only this share of the rows is labelled. The confidence of a line is the
# value of ``abstain_below`` that keeps the other rows unlabelled.

coverage = model.coverage()
in_order = wrong[np.argsort(-model.confidence_[y < 0], kind="stable")]
real = [in_order[: line.n_rows].mean() for line in coverage]

figure, axis = plt.subplots(figsize=(6.5, 4), layout="constrained")
share = [line.share for line in coverage]
axis.fill_between(share, [line.low for line in coverage], [line.high for line in coverage], alpha=0.2, lw=0)
axis.plot(share, [line.expected_error for line in coverage], label="announced, with its 90 % range")
axis.plot(share, real, "k--", label="real")
axis.set(xlabel="share of the rows that is labelled", ylabel="share of wrong labels", ylim=(0, None))
axis.legend()
plt.show()

careful = OTP(abstain_below=0.95).fit(X, y)
labelled = (careful.transduction_ != -1) & (y < 0)
wrong_share = np.mean(careful.transduction_[labelled] != truth[labelled])
print(f"at 0.95: {labelled.sum()} of {(y < 0).sum()} rows labelled, {wrong_share:.1%} wrong")
