"""
A Dask array
============

More rows than fit into memory, or rows that are spread over workers: :class:`otprop.dask.DaskOTP` fits an ``OTP`` on
landmarks, all labelled rows and a sample of the others, and labels the rest chunk by chunk. The result does not depend
on the chunks.
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from dask.distributed import Client
from sklearn.datasets import make_blobs

from otprop.dask import DaskOTP

centers = np.random.default_rng(0).uniform(-10, 10, (6, 2))
X, truth = make_blobs(60_000, centers=centers, cluster_std=1.6, random_state=0)
y = np.full(len(X), -1)
given = np.random.default_rng(1).choice(len(X), 60, replace=False)
y[given] = truth[given]

with Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None) as client:
    rows = da.from_array(X, chunks=(10_000, 2))
    model = DaskOTP(landmarks=4_000, client=client).fit(rows, y)
    print(model.transduction_)
    labels, confidence = model.transduction_.compute(), model.confidence_.compute()
low, high = model.error_range_
print(f"announced {model.expected_error_:.1%} (90 % range {low:.1%} to {high:.1%}), ", end="")
print(f"real {np.mean(labels[y < 0] != truth[y < 0]):.1%}")

# %%
# Every twentieth row in the colour of its label, the landmarks in black.

figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained", sharex=True, sharey=True)
axes[0].scatter(*X[model.landmark_rows_].T, s=2, c="black")
axes[0].set_title(f"{len(model.landmark_rows_)} landmarks of {len(X)} rows")
colours = plt.get_cmap("tab10")(labels)
colours[:, 3] = confidence
axes[1].scatter(*X[::20].T, s=4, c=colours[::20])
axes[1].scatter(*X[given].T, marker="^", s=40, c=colours[given], edgecolors="black")
axes[1].set_title("labels; paler: less sure; triangles: given")
for axis in axes:
    axis.set(xticks=[], yticks=[])
plt.show()
