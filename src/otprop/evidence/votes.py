"""Votes as evidence: how probable a voter's vote is under each class, learnt from the labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, gammaln, log_softmax, logsumexp, softmax

from otprop._saving import saved_as
from otprop._votes import SILENT, Votes, dawid_skene
from otprop.evidence.base import SourceOutput, log_floored
from otprop.evidence.held_out import HeldOut

NAME = "votes"
PRIOR_RIGHT, PRIOR_ANY = 4.0, 0.5  # pseudo-counts of right votes, and of votes for each class
PRIOR_RANDOM = 50.0  # pseudo-counts of a voter that votes without looking
PRIOR_KINDS = np.log([0.8, 0.1, 0.1])  # a voter is mostly right; votes without looking; may do anything
PRIOR_AGREED = 20.0  # pseudo-counts of what the agreement of the voters tells
MAX_AGREED_ROWS, MAX_AGREED_ENTRIES = 5000, 20_000_000  # rows that the agreement is learnt from
PRIOR_SILENCE = 20.0  # pseudo-counts: silence rarely depends on the class
POWERS = np.array([0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0])  # of the probabilities that a voter gives
POWER_PENALTY = 2.0  # in log-likelihood, for a power that differs by one from 1
RARER = 3.0  # standard errors by which votes on unlabelled rows are said to be rarer than on held-out rows


@saved_as("evidence.votes")
class VotesSource:
    """All voters together; new rows have no votes, and it says nothing about them.

    A voter is described by P(vote | class), counted on the labelled rows. The prior is a mixture: most voters are
    right, some vote without looking, some are wrong in their own way. Silence is an outcome like a vote. Probabilities
    that a voter gives are raised to a power that the labelled rows tell: low if it is overconfident.

    With several voters there is a second description, by their agreement on all rows as if they were independent (Dawid
    and Skene); it counts as far as it predicts the labels. In the first one, voters that agree more often than
    independent ones would count less.

    Parameters
    ----------
    votes : Votes
    n_classes : int

    Attributes
    ----------
    probabilities : ndarray of shape (n_rows, n_classes), by the votes alone, once fitted
    spoken : ndarray of bool of shape (n_rows,), whether any voter voted
    """

    def __init__(self, votes: Votes, n_classes: int) -> None:
        self.name, self._n_classes, self._votes = NAME, n_classes, votes
        self.spoken = votes.spoken.any(axis=1)

    def fit(self, codes: np.ndarray, weights: np.ndarray, held_out: HeldOut) -> SourceOutput:
        """Learn the confusions from the labelled rows, and for held-out rows without the labels of their fold."""
        self._overall, self._agreement = _shares_of_outcomes(self._votes, self._n_classes), _agreement(self._votes)
        self._agreed = _agreed_confusions(self._votes, self._n_classes)
        self._soft = {voter: _evidence(given) for voter, given in self._votes.probabilities.items()}
        shown = np.flatnonzero((codes >= 0) & (weights > 0))
        found = np.zeros((len(held_out), self._n_classes))
        heard = _as_rare_as_elsewhere(self._votes.spoken, held_out.rows, codes < 0)
        for fold in np.unique(held_out.fold):
            here = np.flatnonzero(held_out.fold == fold)
            others = np.setdiff1d(shown, held_out.hidden_with(here))
            found[here] = self._log_proba(others, codes, weights, held_out.rows[here], heard[here])
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

    def _log_proba(
        self,
        shown: np.ndarray,
        codes: np.ndarray,
        weights: np.ndarray,
        rows: np.ndarray,
        heard: np.ndarray | None = None,
    ) -> np.ndarray:
        """Log-probabilities of the classes from the votes on some rows, all classes being equally probable before.

        What the voters are worth is learnt from the labels of the rows `shown`. `heard`, of shape (n_rows, n_voters),
        says which votes count; the others are silence.
        """
        counts = self._count(shown, codes, weights)
        shares = counts.sum(axis=(0, 2)) + 1.0
        shares /= shares.sum()
        silence = _silence(counts, self._overall)
        confusions, evidence = _confusions(counts[:, :, :-1], self._overall[:, :-1])
        independence = _independence(confusions, shares, self._agreement)
        by_labels = independence[:, None, None] * _log_outcomes(confusions, silence)
        outcomes, believed = by_labels, independence
        if self._agreed is not None:
            alpha = PRIOR_AGREED * self._agreed
            agreed = expit(_log_marginal(counts[:, :, :-1], alpha).sum() - evidence.sum())
            by_agreement = _log_outcomes(_posterior(counts[:, :, :-1], alpha), silence)
            outcomes = agreed * by_agreement + (1.0 - agreed) * by_labels
            believed = agreed + (1.0 - agreed) * independence
        total = np.zeros((len(rows), self._n_classes))
        for voter, logs in enumerate(outcomes):
            counted = np.ones(len(rows), dtype=bool) if heard is None else heard[:, voter]
            if voter in self._soft:
                soft = self._soft[voter]
                power = _power(soft[shown], codes[shown], weights[shown], shares)
                total += believed[voter] * power * soft[rows] * counted[:, None]
            else:
                total += logs.T[np.where(counted, self._votes.codes[rows, voter], SILENT)]
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


def _as_rare_as_elsewhere(spoken: np.ndarray, held_out: np.ndarray, unlabeled: np.ndarray) -> np.ndarray:
    """Which votes on held-out rows count, so that they are as rare as on unlabelled rows.

    The rows with a label are often those that people have looked at, so that they have more votes than the others. With
    all of these, held-out labels would be found more often than the classes of the other rows.
    """
    n_here, n_left = len(held_out), int(unlabeled.sum())
    if n_here == 0 or n_left == 0:
        return np.ones((n_here, spoken.shape[1]), dtype=bool)
    here, left, overall = spoken[held_out].mean(axis=0), spoken[unlabeled].mean(axis=0), spoken.mean(axis=0)
    error = np.sqrt(overall * (1.0 - overall) * (1.0 / n_here + 1.0 / n_left))
    share = np.where(here - left > RARER * error, left / np.maximum(here, 1e-9), 1.0)
    return np.asarray(np.random.default_rng(0).random((n_here, 1)) < share)


def _shares_of_outcomes(votes: Votes, n_classes: int) -> np.ndarray:
    """The share of the rows on which each voter has each outcome, silence last, of shape (n_voters, n_classes + 1)."""
    n_rows = len(votes.codes)
    counts = [np.bincount(np.where(of == SILENT, n_classes, of), minlength=n_classes + 1) for of in votes.codes.T]
    return np.asarray(counts) / max(n_rows, 1)


def _confusions(counts: np.ndarray, overall: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """P(vote | class) of each voter that votes, and the log-probability of its counts.

    Both are means over the kinds of voters. `counts` has the shape (n_voters, n_classes, n_classes), class before vote;
    `overall` are the shares of the votes for each class on all rows.
    """
    n_classes = counts.shape[1]
    usual = overall + 1e-3
    usual = PRIOR_RANDOM * usual / usual.sum(axis=1, keepdims=True)
    kinds = [
        np.broadcast_to(PRIOR_RIGHT * np.eye(n_classes) + PRIOR_ANY, counts.shape),
        np.broadcast_to(usual[:, None, :], counts.shape),
        np.full(counts.shape, PRIOR_ANY),
    ]
    logs = np.stack([_log_marginal(counts, alpha) for alpha in kinds], axis=1) + PRIOR_KINDS
    probabilities = softmax(logs, axis=1)
    found = sum(probabilities[:, kind, None, None] * _posterior(counts, alpha) for kind, alpha in enumerate(kinds))
    return np.asarray(found), np.asarray(logsumexp(logs, axis=1))


def _posterior(counts: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """Mean P(vote | class), given counts and pseudo-counts."""
    total = counts + alpha
    return np.asarray(total / total.sum(axis=2, keepdims=True))


def _log_marginal(counts: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """Log-probability of each voter's counts, a Dirichlet prior with these pseudo-counts given for each class."""
    one = gammaln(alpha.sum(axis=2)) - gammaln((alpha + counts).sum(axis=2))
    return np.asarray((one + (gammaln(alpha + counts) - gammaln(alpha)).sum(axis=2)).sum(axis=1))


def _silence(counts: np.ndarray, overall: np.ndarray) -> np.ndarray:
    """P(silent | class) of each voter; the last of the outcomes counted is silence."""
    found = (counts[:, :, -1] + PRIOR_SILENCE * overall[:, None, -1]) / (counts.sum(axis=2) + PRIOR_SILENCE)
    return np.clip(found, 1e-6, 1.0 - 1e-6)


def _log_outcomes(confusions: np.ndarray, silence: np.ndarray) -> np.ndarray:
    """Log P(outcome | class), silence last."""
    return np.log(np.concatenate([(1.0 - silence)[:, :, None] * confusions, silence[:, :, None]], axis=2))


def _agreed_confusions(votes: Votes, n_classes: int) -> np.ndarray | None:
    """P(vote | class) of each voter by the agreement of independent voters; None with a single voter."""
    n_voters = votes.codes.shape[1]
    if n_voters < 2:
        return None
    n_rows = min(MAX_AGREED_ROWS, max(MAX_AGREED_ENTRIES // (n_voters * n_classes), 1))
    codes = np.random.default_rng(0).permutation(votes.codes)[:n_rows]
    found = dawid_skene(codes, n_classes)
    counts = np.full((n_voters, n_classes, n_classes), PRIOR_ANY)
    for voter in range(n_voters):
        rows = np.flatnonzero(codes[:, voter] != SILENT)
        np.add.at(counts[voter].T, codes[rows, voter], found[rows])
    return _posterior(counts, np.zeros_like(counts))


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


def _independence(confusions: np.ndarray, shares: np.ndarray, agreement: np.ndarray) -> np.ndarray:
    """How much each voter counts: 1, or less where it agrees with others more than their confusions explain.

    A copy of a voter counts one half, and so does the voter.
    """
    expected = np.einsum("c,acv,bcv->ab", shares, confusions, confusions, optimize=True)
    excess = np.clip((agreement - expected) / np.maximum(1.0 - expected, 1e-9), 0.0, 1.0)
    return np.asarray(1.0 / (1.0 + np.nan_to_num(excess).sum(axis=1)))
