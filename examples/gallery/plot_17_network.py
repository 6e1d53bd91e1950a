"""
A network on propagated labels
==============================

Labels are propagated over the pixels, a small network is trained on them, and labels are propagated again over its
features. :class:`otprop.deep.PseudoLabelTrainer` repeats this for some rounds. It needs PyTorch.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from otprop.deep import PseudoLabelTrainer, RandomAffine

digits = load_digits()
images, truth = digits.images, digits.target
given, hidden = train_test_split(np.arange(len(truth)), train_size=50, stratify=truth, random_state=0)
y = np.full(len(truth), -1)
y[given] = truth[given]

augment = RandomAffine(degrees=10, scale=0.1, shear=0.1, shift=0.06)  # less than for larger images
model = PseudoLabelTrainer(n_rounds=2, augment=augment, n_steps=150).fit(images, y)
right = [np.mean(record.codes[hidden] == truth[hidden]) for record in model.rounds_]
right.append(np.mean(model.transduction_[hidden] == truth[hidden]))
network = np.mean(model.predict(images)[hidden] == truth[hidden])
print(f"labels over the pixels {right[0]:.1%} right, over the last features {right[-1]:.1%}, the network {network:.1%}")

# %%
# Some of the images whose label changed between rounds; green if it is right at the end.

first, last = model.rounds_[0].codes, model.transduction_
changed = np.random.default_rng(0).permutation(np.flatnonzero(first != last))
print(f"{len(changed)} labels changed: {np.sum(last[changed] == truth[changed])} are right now, ", end="")
print(f"{np.sum(first[changed] == truth[changed])} were right before")

figure, axes = plt.subplots(3, 8, figsize=(9, 4), layout="constrained")
for axis in axes.flat:
    axis.set_axis_off()
for axis, row in zip(axes.flat, changed, strict=False):
    axis.imshow(images[row], cmap="gray_r")
    colour = "tab:green" if last[row] == truth[row] else "tab:red"
    axis.set_title(f"{first[row]} to {last[row]}", fontsize=10, color=colour)
plt.show()
