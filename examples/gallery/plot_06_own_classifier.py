"""
Your own classifier as evidence
===============================

Any scikit-learn classifier with ``predict_proba`` can be one of the sources. It is trained on the labelled rows, and
weighted by how well it predicts held-out labels. A classifier that sees a single column gets less weight than one that
sees all columns.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from otprop import OTP

X, truth = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)
given = np.random.default_rng(3).choice(len(X), 30, replace=False)
y = np.full(len(X), -1)
y[given] = truth[given]


def only_ash(X):
    """The third column."""
    return X[:, [2]]


sources = [
    "forest",
    "linear",
    ("process", GaussianProcessClassifier()),
    ("ash only", make_pipeline(FunctionTransformer(only_ash), GaussianNB())),
]
model = OTP(evidence=sources).fit(X, y)
print(f"{np.mean(model.transduction_[y < 0] == truth[y < 0]):.1%} of the labels are right")

# %%
# The parameters of a named classifier are nested parameters: ``model.set_params(process__max_iter_predict=50)``.

names = [source.name for source in model.evidence_]
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3), layout="constrained", sharey=True)
left.barh(names, [source.weight for source in model.evidence_])
left.set_xlabel("weight")
right.barh(names, [source.accuracy for source in model.evidence_], color="tab:gray")
right.set(xlabel="share of held-out labels right", xlim=(0, 1))
left.invert_yaxis()
plt.show()
