"""Cell types of pbmc68k_reduced (700 cells, 10 types, in the wheel of scanpy) with 5 % of the labels.

`otprop.label` on the 50 principal components, with a neighbour graph of its own and with that of scanpy
(`graph="connectivities"`), beside the nearest labelled cell, a vote of the five nearest, a random forest, and
`scanpy.tl.ingest`, whose principal components are those of the labelled cells, as its manual wants. The labelled cells
are the same: 5 % of each type, at least two. A line per method and draw goes to benchmarks/results/cells.csv: accuracy,
balanced accuracy, accuracy on types of fewer than 40 cells, and for otprop the announced error, its range, and the
error of the cells with a confidence of 0.8 or more, with their share. cells_types.csv has the share of the unlabelled
cells of each type that got its label, over all draws. Needs Python 3.12,
scanpy and, for `ingest`, pynndescent 0.5.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
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


def by_otprop(
    adata: Any, types: np.ndarray, given: np.ndarray, graph: str | None = None
) -> tuple[np.ndarray, dict[str, float]]:
    adata = adata.copy()
    adata.obs[TARGET] = pd.Categorical(np.where(given, types, None))
    outcome = otprop.label(adata, TARGET, use_rep="X_pca", graph=graph).outcome
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


def by_ingest(adata: Any, types: np.ndarray, given: np.ndarray) -> tuple[np.ndarray, dict[str, float]]:
    import scanpy

    def part(rows: np.ndarray) -> Any:  # without what was computed before, which `ingest` cannot read in this old file
        obs = pd.DataFrame({TARGET: pd.Categorical(types[rows])}, index=adata.obs_names[rows])
        return scanpy.AnnData(X=np.asarray(adata.X[rows]), obs=obs)

    known, new = part(given), part(~given)
    scanpy.pp.pca(known, n_comps=int(given.sum()) - 1)
    scanpy.pp.neighbors(known, n_neighbors=5)
    scanpy.tl.ingest(new, known, obs=TARGET, embedding_method="pca")
    found = types.copy()
    found[~given] = new.obs[TARGET].astype(str)
    return found, {}


METHODS = {
    "otprop": by_otprop,
    "otprop, scanpy's graph": partial(by_otprop, graph="connectivities"),
    "nearest 5": by_classifier(KNeighborsClassifier(5, weights="distance")),
    "nearest 1": by_classifier(KNeighborsClassifier(1)),
    "random forest": by_classifier(RandomForestClassifier(500, random_state=0)),
    "scanpy.tl.ingest": by_ingest,
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
    rows: list[dict[str, Any]] = []
    right: dict[tuple[str, str], list[float]] = {}
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
            for name in names:
                these = new & (types == name)
                right.setdefault((method, name), []).append(float(np.mean(found[these] == name)))
            print(rows[-1], flush=True)
    every = list(dict.fromkeys(key for row in rows for key in row))
    write_csv("cells.csv", [{key: row.get(key, "") for key in every} for row in rows])
    sizes = dict(zip(names, counts, strict=True))
    write_csv(
        "cells_types.csv",
        [
            {"type": name, "cells": sizes[name], "method": method, "recall": round(float(np.mean(shares)), 4)}
            for (method, name), shares in right.items()
        ],
    )


if __name__ == "__main__":
    main()
