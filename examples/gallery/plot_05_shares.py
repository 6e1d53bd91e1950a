"""
Labels that misrepresent the class shares
=========================================

Nine rows of ten belong to one class, but somebody labelled the same number of each. A classifier that takes the labels
for a random sample assumes equal shares. ``OTP`` infers the shares from the rows and the labels together. If you know
them, pass ``class_prior``.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

from otprop import OTP

X, truth = make_classification(
    1500, n_features=10, n_informative=5, weights=[0.9], class_sep=1.5, flip_y=0, random_state=3
)
given = np.concatenate([np.flatnonzero(truth == k)[:20] for k in (0, 1)])
y = np.full(len(X), -1)
y[given] = truth[given]
hidden = y < 0

inferred = OTP().fit(X, y)
told = OTP(class_prior={0: 0.9, 1: 0.1}).fit(X, y)
forest = RandomForestClassifier(300, random_state=0).fit(X[given], truth[given]).predict(X)
labels = {
    "random forest": forest,
    "OTP(), shares inferred": inferred.transduction_,
    "OTP(class_prior=...)": told.transduction_,
}
print(f"true shares {np.bincount(truth) / len(X)}, inferred {inferred.class_prior_.round(3)}")

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
left.barh(list(labels), [np.mean(found[hidden] == 1) for found in labels.values()])
left.axvline(np.mean(truth[hidden] == 1), color="black", ls="--")
left.set_xlabel("share of the rarer class (dashed: true)")
right.barh(list(labels), [np.mean(found[hidden] != truth[hidden]) for found in labels.values()], color="tab:red")
right.set(yticks=[], xlabel="share of wrong labels")
plt.show()
