"""Choice of the given labels that are held out from the rounds, for early stopping."""

from __future__ import annotations

import numpy as np

AUTO_SHARE = 0.1
LABELS_PER_CLASS = 20  # with at least this many labels per class, "auto" holds out some


def choose_hidden(codes: np.ndarray, share: float | str, n_classes: int, seed: int) -> np.ndarray:
    """Rows whose label is held out: the same share of every class, which keeps at least one label.

    Parameters
    ----------
    codes : ndarray of int, -1 where unlabelled
    share : float in [0, 1) or "auto"
        "auto": a tenth if every class has at least 20 labels, else none.
    n_classes, seed : int

    Returns
    -------
    ndarray of int, sorted
    """
    counts = np.bincount(codes[codes >= 0], minlength=n_classes)
    if isinstance(share, str):
        share = AUTO_SHARE if counts.min() >= LABELS_PER_CLASS else 0.0
    rng = np.random.default_rng(seed)
    hidden = []
    for code, count in enumerate(counts):
        n_hidden = min(round(share * count), count - 1)
        hidden.append(rng.permutation(np.flatnonzero(codes == code))[:n_hidden])
    return np.sort(np.concatenate(hidden))
