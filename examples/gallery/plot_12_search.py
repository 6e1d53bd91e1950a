"""
A pipeline with a search by hidden labels
=========================================

Cross-validation removes rows, which changes the problem. Here all rows stay, and some labels are hidden.
:class:`otprop.model_selection.HiddenLabelSearch` chooses the steps and parameters of a pipeline that way.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from otprop import OTP
from otprop.model_selection import HiddenLabelSearch

X, truth = load_digits(return_X_y=True)
X, truth = X[:500], truth[:500]
given = np.random.default_rng(0).choice(len(X), 80, replace=False)
y = np.full(len(X), -1)
y[given] = truth[given]

pipeline = Pipeline([("scale", StandardScaler()), ("reduce", PCA(random_state=0)), ("label", OTP(evidence=None))])
grid = {"reduce__n_components": [2, 5, 10, 30], "scale": [StandardScaler(), "passthrough"]}
search = HiddenLabelSearch(pipeline, grid).fit(X, y)
print(search.best_params_)
print(f"{np.mean(search.transduction_[y < 0] == truth[y < 0]):.1%} of the labels are right")

# %%
# The scores on the hidden labels, next to the true scores, which are unknown in practice.

table = search.cv_results_
scaled = np.array([value != "passthrough" for value in table["param_scale"]])
figure, axis = plt.subplots(figsize=(6.5, 4), layout="constrained")
for chosen, name, colour in ((scaled, "scaled", "tab:blue"), (~scaled, "as it is", "tab:orange")):
    sizes = np.array(table["param_reduce__n_components"])[chosen].astype(int)
    axis.plot(sizes, table["mean_test_score"][chosen], marker="o", color=colour, label=f"{name}: hidden labels")
    real = []
    for params in np.array(table["params"])[chosen]:
        labels = pipeline.set_params(**params).fit(X, y)[-1].transduction_
        real.append(np.mean(labels[y < 0] == truth[y < 0]))
    axis.plot(sizes, real, ls="--", color=colour, label=f"{name}: truth")
axis.set(xlabel="directions kept", ylabel="share of right labels", xscale="log")
axis.set_xticks(sizes, sizes)
axis.minorticks_off()
axis.legend()
plt.show()
