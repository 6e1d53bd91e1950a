"""Cell types of pbmc68k_reduced (700 cells, 10 types, in the wheel of scanpy) with 5 % of the labels.

`otprop.label` on the 50 principal components beside the nearest labelled cell, a vote of the five nearest and a random
forest, with the same labelled cells: 5 % of each type, at least two. A line per method and draw goes to
benchmarks/results/cells.csv: accuracy, balanced accuracy, accuracy on types of fewer than 40 cells, and for otprop the
announced error, its range, and the error of the cells with a confidence of 0.8 or more, with their share.
Needs scanpy, which is not a dependency. `scanpy.tl.ingest` is not among them: it fails on this old file.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import balanced_accuracy_score
from sklearn.neighbors import KNeighborsClassifier

import otprop
from common import argument_parser, write_csv

TARGET, RARE, CONFIDENT = "cell_type", 40, 0.8


def labelled_cells(types: np.ndarray, seed: int) -> np.ndarray:
    rng, chosen = np.random.default_rng(seed), np.zeros(len(types), dtype=bool)
    for name in np.unique(types):
        rows = np.flatnonzero(types == name)
        chosen[rng.choice(rows, max(2, round(0.05 * len(rows))), replace=False)] = True
    return chosen


def by_otprop(adata: Any, types: np.ndarray, given: np.ndarray) -> tuple[np.ndarray, dict[str, float]]:
    adata = adata.copy()
    adata.obs[TARGET] = pd.Categorical(np.where(given, types, None))
    outcome = otprop.label(adata, TARGET, use_rep="X_pca").outcome
    found = np.array(outcome.classes)[outcome.codes]
    sure = ~given & (outcome.confidence >= CONFIDENT)
    low, high = outcome.error_range
    return found, {
        "announced_error": outcome.expected_error,
        "range_low": low,
        "range_high": high,
        "confident_share": sure.sum() / (~given).sum(),
        "confident_error": float(np.mean(found[sure] != types[sure])) if sure.any() else float("nan"),
    }


def by_classifier(model: Any) -> Callable[..., tuple[np.ndarray, dict[str, float]]]:
    def run(adata: Any, types: np.ndarray, given: np.ndarray) -> tuple[np.ndarray, dict[str, float]]:
        X = adata.obsm["X_pca"]
        return model.fit(X[given], types[given]).predict(X), {}

    return run


METHODS = {
    "otprop": by_otprop,
    "nearest 5": by_classifier(KNeighborsClassifier(5, weights="distance")),
    "nearest 1": by_classifier(KNeighborsClassifier(1)),
    "random forest": by_classifier(RandomForestClassifier(500, random_state=0)),
}


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--draws", type=int, default=10)
    draws = parser.parse_args().draws
    warnings.simplefilter("ignore")
    import scanpy

    adata = scanpy.datasets.pbmc68k_reduced()
    types = adata.obs["bulk_labels"].astype(str).to_numpy()
    names, counts = np.unique(types, return_counts=True)
    rare = np.isin(types, names[counts < RARE])
    rows = []
    for draw in range(draws):
        given = labelled_cells(types, draw)
        for method, run in METHODS.items():
            found, more = run(adata, types, given)
            new = ~given
            rows.append(
                {
                    "draw": draw,
                    "labels": int(given.sum()),
                    "method": method,
                    "accuracy": float(np.mean(found[new] == types[new])),
                    "balanced_accuracy": float(balanced_accuracy_score(types[new], found[new])),
                    "rare_accuracy": float(np.mean(found[new & rare] == types[new & rare])),
                    **more,
                }
            )
            print(rows[-1], flush=True)
    every = list(dict.fromkeys(key for row in rows for key in row))
    write_csv("cells.csv", [{key: row.get(key, "") for key in every} for row in rows])


if __name__ == "__main__":
    main()
