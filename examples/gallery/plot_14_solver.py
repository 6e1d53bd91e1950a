"""
The solver and POT at small epsilon
===================================

Label propagation needs plans at an epsilon so small that plain Sinkhorn iterations underflow or crawl.
:func:`otprop.transport.sinkhorn` takes Newton steps on the semi-dual instead. Both get the same problem. The plot
shows the error of the marginals; POT's solvers stop after their usual 1 000 iterations.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import ot
from sklearn.datasets import load_iris

from otprop.transport import sinkhorn

X = load_iris().data
sources, targets = X[::5], np.delete(X, np.s_[::5], axis=0)
cost = ((sources[:, None] - targets) ** 2).sum(axis=2)
a, b = np.full(len(sources), 1 / len(sources)), np.full(len(targets), 1 / len(targets))
epsilons = np.median(cost) * np.logspace(0, -4, 9)
methods = {"POT sinkhorn": "sinkhorn", "POT sinkhorn_log": "sinkhorn_log"}


def marginal_error(plan: np.ndarray) -> float:
    """The larger L1 error of the two marginals; 2, the most there can be, where the plan is not finite."""
    if not np.isfinite(plan).all():
        return 2.0
    return max(np.abs(plan.sum(axis=1) - a).sum(), np.abs(plan.sum(axis=0) - b).sum())


errors = {name: [] for name in ("otprop", *methods)}
for epsilon in epsilons:
    result = sinkhorn(cost, a, b, epsilon)
    assert result.converged
    errors["otprop"].append(marginal_error(result.plan()))
    for name, method in methods.items():
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # POT warns where it fails
            errors[name].append(marginal_error(ot.sinkhorn(a, b, cost, epsilon, method=method, stopThr=1e-6)))

figure, axis = plt.subplots(figsize=(6.8, 4), layout="constrained")
for (name, values), style in zip(errors.items(), ("o-", "s--", "^--"), strict=True):
    axis.loglog(epsilons / np.median(cost), np.maximum(values, 1e-17), style, label=name)
axis.axhline(1e-6, color="0.6", lw=0.8)
axis.invert_xaxis()
axis.set(xlabel="epsilon / median cost", ylabel="error of the marginals (tolerance 1e-6)")
axis.legend()
plt.show()
