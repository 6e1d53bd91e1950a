"""
Your own graph
==============

Rows can have links instead of features: who writes to whom, which page cites which. ``cost="graph"`` takes the sparse
matrix of affinities as X, and labels spread along the links.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import coo_array, csr_array

from otprop import OTP

# Four groups of people on a ring: links within a group are frequent, links to the next group are rare.
random = np.random.default_rng(4)
truth = np.repeat(np.arange(4), 60)
angle = 2 * np.pi * (truth / 4 + random.normal(0, 0.05, len(truth)))
radius = 1 + random.normal(0, 0.18, len(truth))
places = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
same = truth[:, None] == truth
next_to = np.isin(np.abs(truth[:, None] - truth), [1, 3])
links = np.triu(random.random(same.shape) < np.where(same, 0.08, np.where(next_to, 0.006, 0.001)), 1)
first, second = links.nonzero()
ones = np.ones(2 * len(first))
graph = csr_array(coo_array((ones, (np.r_[first, second], np.r_[second, first])), shape=same.shape))

y = np.full(len(truth), -1)
given = np.concatenate([np.flatnonzero(truth == group)[:3] for group in range(4)])
y[given] = truth[given]
model = OTP(cost="graph").fit(graph, y)
print(f"{len(first)} links, {len(given)} labels, {np.mean(model.transduction_[y < 0] == truth[y < 0]):.0%} right")

figure, axis = plt.subplots(figsize=(5.6, 5.6), layout="constrained")
axis.plot(*np.stack([places[first], places[second]]).transpose(2, 0, 1), color="0.85", lw=0.6, zorder=0)
colours = plt.get_cmap("tab10")(model.transduction_)
colours[:, 3] = np.maximum(0.25, model.confidence_)
axis.scatter(*places.T, c=colours, s=25)
axis.scatter(*places[given].T, c=colours[given], s=110, marker="^", edgecolors="black")
axis.set_axis_off()
axis.set_title("triangles: given labels; the paler, the less sure")
plt.show()
