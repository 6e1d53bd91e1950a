"""MNIST, 70 000 images, with 70 labels and with 1 %: `OTP()` beside GraphLearning and scikit-learn's label spreading.

Five splits shared by all. GraphLearning runs Laplace and Poisson learning on its own graph and on ours. A line a method
and split goes to benchmarks/results/few_labels.csv as soon as it is done; run again, it goes on with what is missing.
GraphLearning is not a dependency: ``pip install --no-deps graphlearning annoy``; without it, its lines are left out.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from functools import cache

import numpy as np
from sklearn.neighbors import NearestNeighbors
from sklearn.semi_supervised import LabelSpreading

from common import argument_parser, commit, read_csv, stratified, write_csv
from otprop import OTP
from otprop.geometry.diffusion import self_tuned_weights
from otprop.geometry.neighbors import NeighborIndex
from otprop_paper import datasets

FILE = "few_labels.csv"
LABELS = (70, 700)
SPLITS = 5


@cache
def images() -> tuple[np.ndarray, np.ndarray]:
    data = datasets.prepare(datasets.load("mnist70k"))
    return data.X, data.y


@cache
def their_graph() -> object:
    import graphlearning

    X, _ = images()
    return graphlearning.weightmatrix.knn(X, 10)


@cache
def our_graph() -> object:
    X, _ = images()
    return self_tuned_weights(NeighborIndex(X).graph(15), 15).tocsr()


def otp(codes: np.ndarray) -> np.ndarray:
    return OTP().fit(images()[0], codes).transduction_


@cache
def spreading_graph() -> object:
    X, _ = images()
    return NearestNeighbors(n_neighbors=7, n_jobs=-1).fit(X).kneighbors_graph(X, 7, mode="connectivity")


def spreading(codes: np.ndarray) -> np.ndarray:
    """``LabelSpreading(kernel="knn")``, its graph searched once for all splits."""
    model = LabelSpreading(kernel=lambda X, y=None: spreading_graph())
    return np.asarray(model.fit(images()[0], codes).transduction_)


def learning(model: str, graph: Callable[[], object]) -> Callable[[np.ndarray], np.ndarray]:
    def run(codes: np.ndarray) -> np.ndarray:
        import graphlearning

        known = np.flatnonzero(codes >= 0)
        learner = getattr(graphlearning.ssl, model)(graph())
        return np.asarray(learner.fit_predict(known, codes[known]))

    return run


METHODS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "OTP()": otp,
    "GraphLearning Laplace, its graph": learning("laplace", their_graph),
    "GraphLearning Poisson, its graph": learning("poisson", their_graph),
    "GraphLearning Laplace, our graph": learning("laplace", our_graph),
    "GraphLearning Poisson, our graph": learning("poisson", our_graph),
    "LabelSpreading(kernel='knn')": spreading,
}


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    options = parser.parse_args()
    lines: list[dict[str, object]] = list(read_csv(FILE))
    done = {(line["method"], int(str(line["labels"])), int(str(line["split"]))) for line in lines}
    installed = importlib.util.find_spec("graphlearning") is not None
    _, y = images()
    for method in options.methods:
        if method.startswith("GraphLearning") and not installed:
            print(f"{method}: left out, graphlearning is not installed")
            continue
        for n_labels in LABELS:
            for split in range(SPLITS):
                if (method, n_labels, split) in done:
                    continue
                codes = stratified(y, n_labels, split)
                start = time.perf_counter()
                found = METHODS[method](codes)
                seconds = time.perf_counter() - start
                accuracy = float((found == y)[codes < 0].mean())
                line = {"method": method, "labels": n_labels, "split": split, "accuracy": f"{accuracy:.4f}"}
                lines.append(line | {"seconds": f"{seconds:.1f}", "commit": commit()})
                write_csv(FILE, lines)
                print(f"{method}, {n_labels} labels, split {split}: {accuracy:.4f} in {seconds:.1f} s", flush=True)
    for n_labels in LABELS:
        for method in METHODS:
            of = [
                float(str(x["accuracy"])) for x in lines if x["method"] == method and int(str(x["labels"])) == n_labels
            ]
            if of:
                print(f"{n_labels:4d} labels  {method:36s} {np.mean(of):.4f} (from {min(of):.4f} to {max(of):.4f})")


if __name__ == "__main__":
    main()
