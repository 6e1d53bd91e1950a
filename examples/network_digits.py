"""Train a network on 50 of 1 797 digits: labels are transported, learnt, and transported again over what was learnt.

Run with `python examples/network_digits.py [folder]`; it needs PyTorch (`pip install '.[deep,plot]'`). The picture goes
to the folder, `demo` by default: accuracy and certainty by round, and digits that changed class.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from otprop.deep import NetworkRound, PseudoLabelTrainer, RandomAffine

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "demo")

digits = load_digits()
images, truth = digits.images, digits.target
given, hidden = train_test_split(np.arange(len(truth)), train_size=50, stratify=truth, random_state=0)
y = np.full(len(truth), -1)
y[given] = truth[given]
print(f"{len(truth)} images of 8 x 8 pixels, the digit of {len(given)} given, of {len(hidden)} hidden.\n")

transported, networks = [], []


def show(record: NetworkRound) -> None:
    transported.append((record.codes == truth)[hidden].mean())
    networks.append((model.predict(images) == truth)[hidden].mean())
    print(
        f"round {record.number}: {record.n_changed:4d} rows changed class; right are {transported[-1]:.1%} of the "
        f"transported labels (certainty {record.certainty:.3f}) and {networks[-1]:.1%} of the network's"
    )


model = PseudoLabelTrainer(n_rounds=3, augment=RandomAffine(), callback=show)
model.fit(images, y)

transported.append((model.transduction_ == truth)[hidden].mean())
certainty = [record.certainty for record in model.rounds_] + [model.certainty_[hidden].mean()]
print(f"over the features of the last network: {transported[-1]:.1%} right")

first, last = model.rounds_[0].codes, model.transduction_
changed = np.flatnonzero(first != last)
mended, spoilt = ((now[changed] == truth[changed]).sum() for now in (last, first))
print(
    f"\n{len(changed)} rows changed class from the pixels to the last features: {mended} now right, {spoilt} now wrong"
)

figure = plt.figure(figsize=(11, 4.2), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=(1, 1.15))
axis = left.subplots()
steps = np.arange(len(transported))
axis.plot(steps, transported, "o-", label="transported labels right")
axis.plot(steps[1:], networks, "s--", label="network's labels right")
axis.plot(steps, certainty, "^:", color="grey", label="mean certainty of the transport")
axis.set_xticks(steps, ["pixels", *(f"features\nof round {number}" for number in steps[1:])])
axis.set_ylabel("share of the unlabelled rows")
axis.grid(alpha=0.3)
axis.legend()

shown = np.random.default_rng(0).permutation(changed)[:18]
for panel in (panels := right.subplots(3, 6)).flat:
    panel.axis("off")
for panel, row in zip(panels.flat, shown, strict=False):
    panel.imshow(images[row], cmap="gray_r")
    panel.set_title(
        f"{first[row]} \u2192 {last[row]}", fontsize=10, color="green" if last[row] == truth[row] else "red"
    )
right.suptitle(f"{len(shown)} of the {len(changed)} rows that changed class (green: now right)", fontsize=10)

folder.mkdir(parents=True, exist_ok=True)
picture = folder / "network_digits.png"
figure.savefig(picture, dpi=80)
print(f"\nThe rounds as a picture: {picture}")
