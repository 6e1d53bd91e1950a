"""Other packages that turn votes into labels, where they are installed: crowd-kit, snorkel and cleanlab."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier

MIN_VOTERS = 3  # Snorkel's label model needs three


def mace(votes: np.ndarray, n_classes: int, X: np.ndarray) -> np.ndarray:
    """MACE of crowd-kit with its defaults."""
    from crowdkit.aggregation import MACE

    return _by_long_table(MACE(random_state=0, n_restarts=3), votes)


def glad(votes: np.ndarray, n_classes: int, X: np.ndarray) -> np.ndarray:
    """GLAD of crowd-kit with its defaults."""
    from crowdkit.aggregation import GLAD

    return _by_long_table(GLAD(silent=True), votes)


def snorkel(votes: np.ndarray, n_classes: int, X: np.ndarray) -> np.ndarray:
    """Snorkel's label model with 500 epochs; -1 where all are silent."""
    from snorkel.labeling.model import LabelModel

    model = LabelModel(cardinality=n_classes, verbose=False)
    model.fit(votes, n_epochs=500, seed=0, progress_bar=False)
    return np.asarray(model.predict(votes, tie_break_policy="random"))


def crowdlab(votes: np.ndarray, n_classes: int, X: np.ndarray) -> np.ndarray:
    """CROWDLAB of cleanlab with the out-of-bag probabilities of a forest that learns the majority."""
    from cleanlab.multiannotator import get_label_quality_multiannotator

    rows = np.flatnonzero((votes >= 0).any(axis=1))
    counts = np.stack([(votes[rows] == code).sum(axis=1) for code in range(n_classes)], axis=1)
    guess = (counts + np.random.default_rng(0).random(counts.shape) / 2).argmax(axis=1)
    forest = RandomForestClassifier(200, min_samples_leaf=3, oob_score=True, random_state=0, n_jobs=1)
    forest.fit(X[rows], guess)
    seen = np.full((len(rows), n_classes), 1e-6)
    seen[:, forest.classes_] += np.nan_to_num(forest.oob_decision_function_, nan=1.0 / n_classes)
    given = pd.DataFrame(np.where(votes[rows] < 0, np.nan, votes[rows]))
    found = np.zeros(len(votes), dtype=int)
    others = np.flatnonzero((votes < 0).all(axis=1))
    if len(others):
        found[others] = forest.predict(X[others])
    seen /= seen.sum(axis=1, keepdims=True)
    quality = get_label_quality_multiannotator(given, seen, verbose=False)["label_quality"]
    found[rows] = quality["consensus_label"].to_numpy(dtype=int)
    return found


PEERS: dict[str, tuple[str, Callable[[np.ndarray, int, np.ndarray], np.ndarray]]] = {
    "mace": ("crowdkit", mace),
    "glad": ("crowdkit", glad),
    "snorkel": ("snorkel", snorkel),
    "crowdlab": ("cleanlab", crowdlab),
}


def peer_labels(votes: np.ndarray, n_classes: int, X: np.ndarray) -> dict[str, np.ndarray]:
    """The labels by each package that is installed; of fewer than three voters none.

    Rows that a package does not label get the class most voted for.
    """
    found: dict[str, np.ndarray] = {}
    if votes.shape[1] < MIN_VOTERS:
        return found
    usual = int(np.bincount(votes[votes >= 0], minlength=n_classes).argmax())
    for name, (package, label) in PEERS.items():
        if find_spec(package) is not None:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                labels = label(votes, n_classes, X)
            found[name] = np.where(labels < 0, usual, labels)
    return found


def _by_long_table(model: object, votes: np.ndarray) -> np.ndarray:
    """Labels by a model of crowd-kit; -1 for rows without a vote."""
    rows, voters = np.nonzero(votes >= 0)
    long = pd.DataFrame({"task": rows, "worker": voters, "label": votes[rows, voters]})
    labels = model.fit_predict(long)  # type: ignore[attr-defined]
    found = np.full(len(votes), -1)
    found[labels.index.to_numpy(dtype=int)] = labels.to_numpy(dtype=int)
    return found
