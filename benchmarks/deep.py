"""Networks on few labels: `otprop.deep` beside a network on the labels alone, on label spreading's, and GraphLearning.

    python benchmarks/deep.py                             all, hours; run again, it goes on with what is missing
    python benchmarks/deep.py --data mnist70k --labels 70 --splits 1 --methods ours
    python benchmarks/deep.py --summary                   print the means, run nothing

MNIST has 70 000 images. All are in the fit, and the unlabelled ones are scored; with ``--new``, 10 000 of them are kept
from the fit, and labelled afterwards by the network. Splits are those of few_labels.py. The table is covtype, 10 000
stratified rows of it. CPU seconds are those of all threads together; the peers share one search for neighbours, which
the first of them pays for. Each run prints a line of JSON for each of its rounds and is added to
benchmarks/results/deep.csv; where it was killed, it is resumed after its last finished round. GraphLearning runs on its
graph of 10 neighbours and is not a dependency: ``pip install --no-deps graphlearning``; without it, its lines are left
out. It is not run on the table, where PoissonMBO fails if a class has no label.
"""

from __future__ import annotations

import importlib.util
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading

from common import argument_parser, commit, read_csv, stratified, write_csv
from otprop import OTP
from otprop.deep import NetworkClassifier, NetworkRound, PseudoLabelTrainer, RandomAffine
from otprop.files.atomic import write_atomic
from otprop.geometry.neighbors import NeighborIndex, Neighbors
from otprop_paper import datasets

FILE = "deep.csv"
N_NEW = {"mnist70k": 10_000, "digits1797": 400, "covtype": 2_000}
LABELS = {"mnist70k": (70, 700, 10, 100), "digits1797": (10, 50), "covtype": (70, 700)}
SHAPES: dict[str, tuple[int, int] | None] = {"mnist70k": (28, 28), "digits1797": (8, 8), "covtype": None}
TABLE_ROWS = 10_000
ROUNDS = 3


@dataclass(frozen=True)
class Task:
    """Rows to fit, their true classes, labels with -1 where unlabelled, and rows that come later."""

    name: str
    X: np.ndarray
    y: np.ndarray
    codes: np.ndarray
    X_new: np.ndarray
    y_new: np.ndarray
    key: str

    @property
    def network_options(self) -> dict[str, Any]:
        shape = SHAPES[self.name]
        return {"image_shape": shape, "augment": None if shape is None else RandomAffine()}

    def accuracy(self, found: np.ndarray) -> float:
        """Of the unlabelled rows."""
        return float((found == self.y)[self.codes < 0].mean())


Line = dict[str, Any]
Method = Callable[[Task], list[Line]]


@cache
def rows(name: str) -> tuple[np.ndarray, np.ndarray]:
    if name == "covtype":
        data = datasets.load(name)
        kept, _ = train_test_split(np.arange(len(data.y)), train_size=TABLE_ROWS, stratify=data.y, random_state=0)
        return StandardScaler().fit_transform(data.X[kept]), np.unique(data.y[kept], return_inverse=True)[1]
    data = datasets.prepare(datasets.load(name))
    return data.X, data.y


def make_task(name: str, n_labels: int, split: int, new: bool) -> Task:
    X, y = rows(name)
    key = f"{name}-{n_labels}-{split}{'-new' * new}"
    if not new:
        return Task(name, X, y, stratified(y, n_labels, split), X[:0], y[:0], key)
    fit, later = train_test_split(np.arange(len(y)), test_size=N_NEW[name], stratify=y, random_state=split)
    return Task(name, X[fit], y[fit], stratified(y[fit], n_labels, split), X[later], y[later], key)


def line(task: Task, found: np.ndarray, cpu: float, *, rounds: int = 0, network: Any = None) -> Line:
    """Scores of labels for all rows and, where there is a network, of its own."""
    own = new = ""
    if network is not None:
        own = f"{task.accuracy(network.predict(task.X)):.4f}"
        new = f"{(network.predict(task.X_new) == task.y_new).mean():.4f}" if len(task.y_new) else ""
    return {
        "rounds": rounds,
        "accuracy": f"{task.accuracy(found):.4f}",
        "network_accuracy": own,
        "new_accuracy": new,
        "cpu_seconds": round(cpu),
    }


def otp(task: Task) -> list[Line]:
    start = time.process_time()
    model = OTP().fit(task.X, task.codes)
    cpu = time.process_time() - start
    found = line(task, model.transduction_, cpu)
    if len(task.y_new):
        found["new_accuracy"] = f"{(model.predict(task.X_new) == task.y_new).mean():.4f}"
    return [found]


def network_on_labels(task: Task) -> list[Line]:
    start, given = time.process_time(), np.flatnonzero(task.codes >= 0)
    model = NetworkClassifier(**task.network_options).fit(task.X[given], task.codes[given])
    return [line(task, model.predict(task.X), time.process_time() - start, network=model)]


@cache
def search(name: str) -> Neighbors:
    """The neighbours of all rows, once for all splits."""
    return NeighborIndex(rows(name)[0]).graph(10)


def neighbors_and_self(task: Task, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Each row and its `k` nearest others, and their distances: the same search for all peers."""
    found = (NeighborIndex(task.X).graph(10) if len(task.y_new) else search(task.name)).first(k)
    indices = np.column_stack([np.arange(len(task.X)), found.indices])
    return indices, np.column_stack([np.zeros(len(task.X)), found.distances])


def network_on_spreading(task: Task) -> list[Line]:
    """The labels of scikit-learn's ``LabelSpreading(kernel="knn")``, its graph from our search."""
    start = time.process_time()
    nearest, _ = neighbors_and_self(task, 6)
    pairs = (np.repeat(np.arange(len(nearest)), 7), nearest.ravel())
    graph = sp.csr_matrix((np.ones(nearest.size), pairs), shape=(len(nearest), len(nearest)))
    spread = LabelSpreading(kernel=lambda X, y=None: graph).fit(task.X, task.codes)
    model = NetworkClassifier(**task.network_options).fit(task.X, spread.transduction_)
    return [line(task, model.predict(task.X), time.process_time() - start, network=model)]


def ours(task: Task) -> list[Line]:
    """One run: what the network of each round says, and what is transported over its features.

    Finished rounds are kept in benchmarks/cache, with the CPU seconds spent until then, and are not made again.
    """
    folder = Path(__file__).parent / "cache" / "deep" / task.key
    folder.mkdir(parents=True, exist_ok=True)
    clock = folder / "cpu_seconds.json"
    spent: dict[str, float] = json.loads(clock.read_text()) if clock.exists() else {}  # by round
    networks: list[Line] = []
    since = 0.0

    def after_round(record: NetworkRound) -> None:
        nonlocal since
        if str(record.number) not in spent:
            spent[str(record.number)] = time.process_time() - since
            write_atomic(clock, json.dumps(spent), force=True)
        networks.append(line(task, record.codes, 0.0, rounds=record.number, network=model))
        since = time.process_time()  # a user would not compute scores

    model = PseudoLabelTrainer(n_rounds=ROUNDS, callback=after_round, checkpoint=folder, **task.network_options)
    since = time.process_time()
    model.fit(task.X, task.codes)
    last = time.process_time() - since
    transported = [model.classes_[record.codes] for record in model.rounds_[1:]] + [model.transduction_]
    return [
        found
        | {
            "accuracy": f"{task.accuracy(labels):.4f}",  # of the transport over the features of this round
            "cpu_seconds": round(last + sum(spent[str(number)] for number in range(1, found["rounds"] + 1))),
        }
        for found, labels in zip(networks, transported, strict=True)
    ]


def graphlearning_method(model: str) -> Method:
    def run(task: Task) -> list[Line]:
        import graphlearning

        known, start = np.flatnonzero(task.codes >= 0), time.process_time()
        nearest = neighbors_and_self(task, 10)
        graph = graphlearning.weightmatrix.knn(None, 10, knn_data=nearest)
        options = {"class_priors": np.bincount(task.y) / len(task.y)} if model == "poisson_mbo" else {}
        learner = getattr(graphlearning.ssl, model)(graph, **options)
        found = np.asarray(learner.fit_predict(known, task.codes[known]))
        return [line(task, found, time.process_time() - start)]

    return run


METHODS: dict[str, Method] = {
    "ours": ours,
    "OTP()": otp,
    "network on the labels": network_on_labels,
    "network on label spreading's labels": network_on_spreading,
    "GraphLearning Poisson": graphlearning_method("poisson"),
    "GraphLearning PoissonMBO, true class shares": graphlearning_method("poisson_mbo"),
}


def run(name: str, n_labels: int, split: int, method: str, new: bool) -> list[Line]:
    """The lines of one run."""
    task = make_task(name, n_labels, split, new)
    start = time.perf_counter()
    found = METHODS[method](task)
    head = {"data": name, "labels": n_labels, "split": split, "new_rows": len(task.y_new), "method": method}
    tail = {"seconds": round(time.perf_counter() - start), "commit": commit()}
    return [head | each | tail for each in found]


def key_of(entry: Line) -> tuple[Any, ...]:
    return (entry["data"], int(entry["labels"]), int(entry["split"]), int(entry["new_rows"]) > 0, entry["method"])


def summary(lines: list[Line]) -> None:
    """Print the mean over the splits."""
    cells: dict[tuple[Any, ...], list[Line]] = {}
    for entry in lines:
        cell = (entry["data"], int(entry["labels"]), int(entry["new_rows"]), entry["method"], int(entry["rounds"]))
        cells.setdefault(cell, []).append(entry)
    for cell, entries in sorted(cells.items()):
        means = {
            column: np.mean([float(entry[column]) for entry in entries])
            for column in ("accuracy", "network_accuracy", "new_accuracy", "cpu_seconds")
            if entries[0][column] != ""
        }
        scores = ", ".join(f"{column} {value:.4g}" for column, value in means.items())
        print(
            f"{cell[0]}, {cell[1]} labels, {cell[2]} new rows, {cell[3]}, {cell[4]} rounds: {scores} ({len(entries)})"
        )


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--data", nargs="+", default=list(LABELS), choices=LABELS)
    parser.add_argument("--labels", nargs="+", type=int)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--new", action="store_true", help="keep rows from the fit, to be labelled afterwards")
    parser.add_argument("--summary", action="store_true")
    options = parser.parse_args()
    lines: list[Line] = list(read_csv(FILE))
    done = {key_of(entry) for entry in lines}
    installed = importlib.util.find_spec("graphlearning") is not None
    for split in range(0 if options.summary else options.splits):
        for name in options.data:
            for n_labels in options.labels or LABELS[name]:
                for method in options.methods:
                    theirs = method.startswith("GraphLearning")
                    if (name, n_labels, split, options.new, method) in done or (
                        theirs and (options.new or not installed or name == "covtype")
                    ):
                        continue
                    found = run(name, n_labels, split, method, options.new)
                    lines += found
                    write_csv(FILE, lines)
                    for entry in found:
                        print(json.dumps(entry), flush=True)
    summary(lines)


if __name__ == "__main__":
    main()
