"""Votes as evidence: how probable a voter's vote is under each class, learnt from the labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import log_softmax, softmax

from otprop._saving import saved_as
from otprop._votes import SILENT, Votes
from otprop.evidence.held_out import HeldOut
from otprop.evidence.output import SourceOutput, log_floored

NAME = "votes"
START_WEIGHT = 1.0  # the confusions are probabilities already
DOUBTFUL_START_WEIGHT = 0.5  # of votes that the columns do not predict: they may be cast at random
PRIOR_RIGHT, PRIOR_ANY = 4.0, 0.5  # pseudo-counts of right votes, and of votes for each class
PRIOR_SILENCE = 20.0  # pseudo-counts: silence rarely depends on the class
POWERS = np.array([0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0])  # of the probabilities that a voter gives
POWER_PENALTY = 2.0  # in log-likelihood, for a power that differs by one from 1


@saved_as("evidence.votes")
class VotesSource:
    """All voters together; new rows have no votes, and it says nothing about them.

    A voter is described by P(vote | class), counted on the labelled rows, a few right votes being added. Silence is an
    outcome like a vote. Probabilities that a voter gives are raised to a power that the labelled rows tell: low if it
    is overconfident. Voters that agree more often than independent ones would count less.

    Parameters
    ----------
    votes : Votes
    n_classes : int

    Attributes
    ----------
    start_weight : float
    probabilities : ndarray of shape (n_rows, n_classes), by the votes alone, once fitted
    spoken : ndarray of bool of shape (n_rows,), whether any voter voted
    """

    def __init__(self, votes: Votes, n_classes: int) -> None:
        self.name, self._n_classes, self._votes = NAME, n_classes, votes
        self.start_weight, self.spoken = START_WEIGHT, votes.spoken.any(axis=1)

    def fit(self, codes: np.ndarray, weights: np.ndarray, held_out: HeldOut) -> SourceOutput:
        """Learn the confusions from the labelled rows, and for held-out rows without the labels of their fold."""
        self._overall, self._agreement = _shares_of_outcomes(self._votes, self._n_classes), _agreement(self._votes)
        self._soft = {voter: _evidence(given) for voter, given in self._votes.probabilities.items()}
        shown = np.flatnonzero((codes >= 0) & (weights > 0))
        found = np.zeros((len(held_out), self._n_classes))
        for fold in np.unique(held_out.fold):
            here = np.flatnonzero(held_out.fold == fold)
            others = np.setdiff1d(shown, held_out.hidden_with(here))
            found[here] = self._log_proba(others, codes, weights, held_out.rows[here])
        rows = self._log_proba(shown, codes, weights, np.arange(len(codes)))
        self.probabilities = np.exp(rows)
        return SourceOutput(rows.astype(np.float32), found)

    def predict_log_proba(self, rows: Any) -> np.ndarray:
        """Zeros: the votes on new rows are not known."""
        return np.zeros((rows.shape[0], self._n_classes))

    def _count(self, rows: np.ndarray, codes: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """How often each voter had each outcome in each class, silence last."""
        n_voters = len(self._votes.names)
        counts = np.zeros((n_voters, self._n_classes, self._n_classes + 1))
        for voter in range(n_voters):  # SILENT is -1: the last outcome
            np.add.at(counts[voter], (codes[rows], self._votes.codes[rows, voter]), weights[rows])
        return counts

    def _log_proba(self, shown: np.ndarray, codes: np.ndarray, weights: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Log-probabilities of the classes from the votes on some rows, all classes being equally probable before.

        What the voters are worth is learnt from the labels of the rows `shown`.
        """
        counts = self._count(shown, codes, weights)
        logs = np.stack([_log_confusion(each, overall) for each, overall in zip(counts, self._overall, strict=True)])
        shares = counts.sum(axis=(0, 2)) + 1.0
        shares /= shares.sum()
        total = np.zeros((len(rows), self._n_classes))
        for voter, weight in enumerate(_independence(np.exp(logs), shares, self._agreement)):
            if voter in self._soft:
                evidence = self._soft[voter]
                total += weight * _power(evidence[shown], codes[shown], weights[shown], shares) * evidence[rows]
            else:
                total += weight * logs[voter].T[self._votes.codes[rows, voter]]
        return np.asarray(log_softmax(total, axis=1))

    def __getstate__(self) -> dict[str, Any]:
        return {"name": self.name, "_n_classes": self._n_classes}


def _evidence(probabilities: np.ndarray) -> np.ndarray:
    """What probabilities say beyond their mean, as logarithms; 0 where the voter is silent."""
    floored = log_floored(np.nan_to_num(probabilities))
    spoken = ~np.isnan(probabilities).any(axis=1)
    usual = np.log(np.exp(floored[spoken]).mean(axis=0))
    return np.where(spoken[:, None], floored - usual, 0.0)


def _power(evidence: np.ndarray, codes: np.ndarray, weights: np.ndarray, shares: np.ndarray) -> float:
    """The mean power of a voter's probabilities, given labelled rows."""
    logs = log_softmax(np.log(shares) + POWERS[:, None, None] * evidence, axis=2)
    likelihood = logs[:, np.arange(len(codes)), codes] @ weights
    return float(softmax(likelihood - POWER_PENALTY * (POWERS - 1.0) ** 2) @ POWERS)


def _shares_of_outcomes(votes: Votes, n_classes: int) -> np.ndarray:
    """The share of the rows on which each voter has each outcome, silence last, of shape (n_voters, n_classes + 1)."""
    n_rows = len(votes.codes)
    counts = [np.bincount(np.where(of == SILENT, n_classes, of), minlength=n_classes + 1) for of in votes.codes.T]
    return np.asarray(counts) / max(n_rows, 1)


def _log_confusion(counts: np.ndarray, overall: np.ndarray) -> np.ndarray:
    """Log P(outcome | class) of one voter, of shape (n_classes, n_classes + 1).

    `counts` has the same shape, `overall` the shares of its outcomes on all rows.
    """
    n_classes = len(counts)
    votes, silent = counts[:, :n_classes], counts[:, n_classes]
    prior = PRIOR_RIGHT * np.eye(n_classes) + PRIOR_ANY
    confusion = (votes + prior) / (votes + prior).sum(axis=1, keepdims=True)
    silence = (silent + PRIOR_SILENCE * overall[n_classes]) / (counts.sum(axis=1) + PRIOR_SILENCE)
    silence = np.clip(silence, 1e-6, 1.0 - 1e-6)
    return np.log(np.column_stack([(1.0 - silence)[:, None] * confusion, silence]))


def _agreement(votes: Votes) -> np.ndarray:
    """For each two voters the share of the rows on which both vote that they agree on; NaN without such a row."""
    spoken = votes.spoken.astype(np.float64)
    both = spoken.T @ spoken
    same = np.zeros_like(both)
    for code in range(votes.codes.max(initial=-1) + 1):
        for_it = (votes.codes == code).astype(np.float64)
        same += for_it.T @ for_it
    found = np.where(both > 0, same / np.maximum(both, 1.0), np.nan)
    np.fill_diagonal(found, np.nan)
    return np.asarray(found)


def _independence(probabilities: np.ndarray, shares: np.ndarray, agreement: np.ndarray) -> np.ndarray:
    """How much each voter counts: 1, or less where it agrees with others more than their confusions explain.

    A copy of a voter counts one half, and so does the voter.
    """
    n_classes = len(shares)
    votes = probabilities[:, :, :n_classes]
    votes = votes / votes.sum(axis=2, keepdims=True)
    expected = np.einsum("c,acv,bcv->ab", shares, votes, votes)
    excess = np.clip((agreement - expected) / np.maximum(1.0 - expected, 1e-9), 0.0, 1.0)
    return np.asarray(1.0 / (1.0 + np.nan_to_num(excess).sum(axis=1)))
