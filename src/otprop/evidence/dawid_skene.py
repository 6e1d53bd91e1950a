"""Dawid and Skene's model: class probabilities and the quality of voters from their agreement, without labels."""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

from otprop._votes import SILENT

PRIOR_RIGHT, PRIOR_WRONG = 4.0, 1.0  # pseudo-counts of a voter's votes, where its accuracy is learnt without labels
PRIOR_ROWS = 4.0  # pseudo-counts of each row of its confusion, as if it were equally accurate in all classes
PRIOR_SHARE = 0.01  # by which the classes' shares are drawn towards equal ones


def dawid_skene(codes: np.ndarray, n_classes: int, max_iter: int = 100, tol: float = 1e-5) -> np.ndarray:
    """Class probabilities of the rows from votes alone, by Dawid and Skene's expectation-maximisation.

    Parameters
    ----------
    codes : ndarray of int of shape (n_rows, n_voters), -1 where a voter is silent
        A voter may also say how sure it is: a vote for class c is any of c, c + n_classes, c + 2 n_classes, ...
    n_classes, max_iter : int
    tol : float, the largest change of a probability at which it stops

    Returns
    -------
    ndarray of shape (n_rows, n_classes)
    """
    n_rows, n_voters = codes.shape
    n_outcomes = n_classes * (int(codes.max(initial=0)) // n_classes + 1)
    shown = np.zeros((n_voters, n_rows, n_outcomes))
    for voter in range(n_voters):
        rows = np.flatnonzero(codes[:, voter] != SILENT)
        shown[voter, rows, codes[rows, voter]] = 1.0
    found = shown.sum(axis=0) @ np.eye(n_classes)[np.arange(n_outcomes) % n_classes] + 1e-9
    found /= found.sum(axis=1, keepdims=True)
    for _ in range(max_iter):
        counts = np.einsum("rc,vrk->vck", found, shown)
        confusions = counts + PRIOR_ROWS * _one_accuracy(counts)
        confusions /= confusions.sum(axis=2, keepdims=True)
        shares = found.mean(axis=0) + PRIOR_SHARE / n_classes
        logs = np.log(shares / shares.sum()) + np.einsum("vrk,vck->rc", shown, np.log(confusions))
        before, found = found, softmax(logs, axis=1)
        if np.abs(found - before).max(initial=0.0) < tol:
            break
    return np.asarray(found)


def _one_accuracy(counts: np.ndarray) -> np.ndarray:
    """P(outcome | class) of voters that are equally accurate in all classes, from expected counts of that shape.

    The certainty that a voter states is treated as an outcome of its own, with its own accuracy.
    """
    n_voters, n_classes, n_outcomes = counts.shape
    levels = counts.reshape(n_voters, n_classes, -1, n_classes)  # class, how sure, vote
    right = np.einsum("vclc->vl", levels) + PRIOR_RIGHT
    votes = levels.sum(axis=(1, 3)) + PRIOR_RIGHT + PRIOR_WRONG
    accuracy, share = right / votes, votes / votes.sum(axis=1, keepdims=True)
    same, other = share * accuracy, share * (1.0 - accuracy) / max(n_classes - 1, 1)
    eye = np.eye(n_classes)[None, :, None, :]
    found = same[:, None, :, None] * eye + other[:, None, :, None] * (1.0 - eye)
    return np.asarray(found.reshape(n_voters, n_classes, n_outcomes))
