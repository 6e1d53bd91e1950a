"""Label Iris from nine given labels: the rounds as they happen, a score, and a picture of them.

Run with `python examples/label_iris.py [folder]`; the picture goes to the folder, `demo` by default.
"""

import sys
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from otprop import OTP, Round
from otprop.report.rounds import plot_rounds

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "demo")
console = Console()

iris = load_iris()
species = iris.target_names[iris.target]
given, hidden = train_test_split(np.arange(len(species)), train_size=0.06, stratify=species, random_state=0)
y = np.full(len(species), None, dtype=object)
y[given] = species[given]
console.print(f"Iris: {len(species)} flowers, the species of {len(given)} given, of {len(hidden)} hidden.\n")


def show(round_: Round) -> None:
    how = "the most certain, from" if round_.lowered else "probable enough, certain from"
    console.print(
        f"round {round_.number:2d}: labelled {len(round_.rows):3d} of {round_.n_unlabeled:3d} ({how} "
        f"{round_.threshold:.3f}); plan exact to {round_.source_error:.0e}"
    )


X = StandardScaler().fit_transform(iris.data)
model = OTP(callback=show).fit(X, y)

console.print("\nWho had a say, by what they said of labels hidden from them:")
for source in model.evidence_:
    console.print(f"  {source.name}: weight {source.weight:.2f}, {source.accuracy:.0%} of the hidden labels right")

right = model.transduction_ == species
table = Table(title="Against the hidden truth")
for column in ("confidence", "rows", "expected right", "right"):
    table.add_column(column, justify="right")
for low, high in ((0.95, 1.01), (0.8, 0.95), (0.0, 0.8)):
    rows = hidden[(model.confidence_[hidden] >= low) & (model.confidence_[hidden] < high)]
    if len(rows):
        expected = f"{model.confidence_[rows].mean():.1%}"
        table.add_row(f"{low:.2f} to {min(high, 1):.2f}", str(len(rows)), expected, f"{right[rows].mean():.1%}")
table.add_row("all", str(len(hidden)), f"{model.confidence_[hidden].mean():.1%}", f"{right[hidden].mean():.1%}")
console.print()
console.print(table)

doubtful = hidden[np.argsort(model.confidence_[hidden])[:3]]
console.print("\nThree rows to look at first:")
for row in doubtful:
    first, second = np.argsort(model.label_distributions_[row])[::-1][:2]
    console.print(
        f"  row {row}: {model.classes_[first]} ({model.label_distributions_[row, first]:.2f}) or "
        f"{model.classes_[second]} ({model.label_distributions_[row, second]:.2f}); hidden truth {species[row]}"
    )

folder.mkdir(parents=True, exist_ok=True)
picture = folder / "iris_rounds.png"
plot_rounds(model, X).savefig(picture, dpi=110)
console.print(f"\nThe rounds as a picture (first two principal components): {picture}")
