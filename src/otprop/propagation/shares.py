"""Class shares inferred from the labels and the rows, and how strictly the transport enforces them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import gammaln, log_softmax, softmax

from otprop._labels import UNLABELED, class_list, class_numbers
from otprop._validation import ParameterError
from otprop.geometry.parallel import single_threaded_blas

SMOOTHING = 0.5  # added to the number of labels of every class
STRATIFIED_FACTOR = 10.0  # a label of a stratified draw tells as much about the shares as this many random ones
CONFUSION_PRIOR = 2.0  # weight, in held-out labels, of the assumption that all classes are equally well separated
EQUAL_CONCENTRATION = 20.0  # of the class shares of the labels, if the same number per class was intended
TRUSTED_MOVED, MAX_MOVED = 0.2, 0.6  # share of rows that change class between labelled shares and inferred ones
MIN_VARIANCE = 1e-6  # of a mean probability
MAX_STRENGTH = 0.5  # of the transport, with many labels
HALF_STRENGTH_LABELS = 5.0  # labels per class at which the strength is half of MAX_STRENGTH


def auto_strength(counts: np.ndarray) -> float:
    """Strength of the transport for these numbers of labels per class."""
    return float(MAX_STRENGTH * counts.sum() / (counts.sum() + HALF_STRENGTH_LABELS * len(counts)))


def labeled_shares(counts: np.ndarray) -> np.ndarray:
    """The classes' shares of the labels, smoothed so that none is 0."""
    return np.asarray((counts + SMOOTHING) / (counts.sum() + SMOOTHING * len(counts)))


def counts_without_chosen(drawn: np.ndarray, chosen: np.ndarray, n_left: int) -> np.ndarray:
    """Label counts with the total of the random labels and the class shares expected among the rows left.

    Random labels estimate the shares of the rows left and the chosen rows together; the latter are known.
    """
    if not chosen.any() or not drawn.any():
        return drawn
    left = np.maximum((n_left + chosen.sum()) * drawn / drawn.sum() - chosen, 0.0)
    return np.asarray(drawn.sum() * left / left.sum()) if left.any() else drawn


def infer_shares(
    mean: np.ndarray,
    n_rows: int,
    held_out: np.ndarray,
    codes: np.ndarray,
    counts: np.ndarray,
    worth: float = 1.0,
) -> np.ndarray:
    """The classes' shares among the unlabelled rows, from their class probabilities and from the labels.

    The rows' mean probabilities q are ``sum_k p_k C_k`` for shares p, where C_k are the mean probabilities of rows of
    class k (Lipton, Wang and Smola 2018). C is estimated from the held-out labels. Its variance determines how much the
    rows tell about p: much if classes are well separated, little if they overlap. What the labels tell depends on how
    they were drawn, which is unknown: the same number per class (they tell nothing), at random, or stratified. Each of
    the three gives shares, weighted by how well they explain q; the first also by how equal the numbers are.

    Parameters
    ----------
    mean : ndarray of shape (n_classes,), the mean class probabilities of the unlabelled rows
    n_rows : int, number of unlabelled rows
    held_out : ndarray of shape (n_held_out, n_classes), the probabilities of labelled rows whose label was held out
    codes : ndarray of int of shape (n_held_out,), their classes
    counts : ndarray of shape (n_classes,), the number of labels of each class
    worth : float, how many independent labels each label is worth: below 1 for labels in groups

    Returns
    -------
    ndarray of shape (n_classes,), summing to one
    """
    n_classes, counts = len(mean), worth * counts
    if n_rows == 0 or len(codes) == 0 or n_classes == 1:
        return labeled_shares(counts)
    confusion, variance = _confusion(held_out, codes, mean, worth)
    variance += (np.diag(mean) - np.outer(mean, mean)) / n_rows
    precision = np.linalg.inv(variance + MIN_VARIANCE * np.eye(n_classes))
    draws = (np.ones(n_classes), counts + SMOOTHING, STRATIFIED_FACTOR * counts + SMOOTHING)
    found = [_most_probable(mean, confusion, precision, concentration) for concentration in draws]
    log_evidence = np.array([evidence for _, evidence in found])
    log_evidence[0] += _equal_numbers_penalty(counts)
    weights = softmax(log_evidence)
    return np.asarray(weights @ np.stack([shares for shares, _ in found]))


def bound_shares(inferred: np.ndarray, mean: np.ndarray, labeled: np.ndarray) -> np.ndarray:
    """Inferred shares, pulled towards the mean probabilities of the rows, more so far from the labelled shares.

    This is for rows that differ from the labelled ones in more than their shares. Inferred shares are then often right
    if they are near the labelled shares, and seldom if they reverse them.
    """
    distance = 0.5 * np.abs(inferred - labeled).sum()
    trust = np.clip((MAX_MOVED - distance) / (MAX_MOVED - TRUSTED_MOVED), 0.0, 1.0)
    return np.asarray(trust * inferred + (1.0 - trust) * mean)


def _equal_numbers_penalty(counts: np.ndarray) -> float:
    """Log-probability ratio of these label counts if the same number per class was intended, at most 0.

    Compares a Dirichlet-multinomial distribution concentrated around equal numbers with one that is not.
    """
    total = counts.sum()

    def log_probability(concentration: float) -> float:
        each = np.full(len(counts), concentration)
        return float(gammaln(each.sum()) - gammaln(total + each.sum()) + (gammaln(counts + each) - gammaln(each)).sum())

    return min(log_probability(EQUAL_CONCENTRATION) - log_probability(1.0), 0.0)


def _confusion(
    held_out: np.ndarray, codes: np.ndarray, shares: np.ndarray, worth: float
) -> tuple[np.ndarray, np.ndarray]:
    """Mean probabilities of the rows of each class (one row per class), and the covariance of their weighted sum.

    A class with few held-out labels is shrunk towards the average: equally well separated, with average confusions.
    """
    n_classes = held_out.shape[1]
    counts = worth * np.bincount(codes, minlength=n_classes)
    own = held_out[np.arange(len(codes)), codes].mean()
    typical = np.tile(held_out.mean(axis=0), (n_classes, 1))
    np.fill_diagonal(typical, 0.0)
    typical *= (1.0 - own) / np.maximum(typical.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    np.fill_diagonal(typical, own)
    total = np.zeros((n_classes, n_classes))
    np.add.at(total, codes, held_out)
    means = (worth * total + CONFUSION_PRIOR * typical) / (counts + CONFUSION_PRIOR)[:, None]
    most = 1.0 - (means[codes] ** 2).sum() / len(codes)  # the variance if every probability were 0 or 1
    part = (((held_out - means[codes]) ** 2).sum() + 1.0) / (len(codes) * most + 1.0)
    each = min(part, 1.0) * shares**2 / np.maximum(counts, worth)
    return means, np.diag(each @ means) - (means.T * each) @ means


def _most_probable(
    mean: np.ndarray, confusion: np.ndarray, precision: np.ndarray, concentration: np.ndarray
) -> tuple[np.ndarray, float]:
    """Most probable shares under a Dirichlet prior, and the log-evidence of `mean` up to a constant.

    The shares' logarithms are optimised: Laplace's approximation of the evidence is accurate for them.
    """

    def loss(logits: np.ndarray) -> tuple[float, np.ndarray]:
        shares = softmax(logits)
        missed = shares @ confusion - mean
        pushed = precision @ missed
        slope = confusion @ pushed
        value = 0.5 * (missed @ pushed) - concentration @ log_softmax(logits)
        return float(value), shares * (slope - shares @ slope) - concentration + concentration.sum() * shares

    with single_threaded_blas():  # for a few numbers, waking threads takes most of the time
        found = minimize(loss, np.log(concentration / concentration.sum()), jac=True, method="L-BFGS-B")
    shares = softmax(found.x)
    spread = np.diag(shares) - np.outer(shares, shares)
    curvature = spread @ (confusion @ precision @ confusion.T) @ spread + concentration.sum() * spread
    curvature += 1.0 / len(mean)  # adding a constant to all logarithms changes nothing: that direction counts as 1
    log_volume = float(np.linalg.slogdet(curvature)[1])
    log_evidence = gammaln(concentration.sum()) - gammaln(concentration).sum() - found.fun - 0.5 * log_volume
    return shares, float(log_evidence)


def check_prior(class_prior: Any, classes: np.ndarray) -> np.ndarray | None:
    """The parameter `class_prior` as shares in the order of `classes`; None if they have to be inferred."""
    if class_prior is None:
        return None
    accepted = "None, 'uniform', an array with a share for each class, or a dict from class to share"
    if isinstance(class_prior, str):
        if class_prior != "uniform":
            raise ParameterError("class_prior", f"must be {accepted}; got {class_prior!r}.")
        return np.full(len(classes), 1.0 / len(classes))
    if hasattr(class_prior, "to_dict"):  # a pandas series: its index names the classes
        class_prior = class_prior.to_dict()
    if isinstance(class_prior, dict):
        class_prior = _in_order(class_prior, classes)
    try:
        shares = np.asarray(class_prior, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError("class_prior", f"must be {accepted}; got {class_prior!r}.") from error
    if shares.shape != (len(classes),):
        raise ParameterError(
            "class_prior",
            f"has shape {shares.shape}, expected ({len(classes)},): a share for each class of y, in the order "
            f"{class_list(classes)}.",
        )
    if not (np.isfinite(shares).all() and (shares >= 0).all() and shares.max() > 0):
        raise ParameterError(
            "class_prior",
            f"must hold shares that are finite and not negative, at least one of them above 0; got {shares.tolist()}.",
        )
    shares = shares / shares.max()
    return np.asarray(shares / shares.sum())


def _in_order(class_prior: dict[Any, Any], classes: np.ndarray) -> list[Any]:
    """The shares of a dict in the order of `classes`; keys may be the classes as text."""
    names, known = list(class_prior), class_list(classes)
    places = class_numbers(names, classes)
    by_text = class_numbers(map(str, names), np.array(list(map(str, known)), dtype=object))
    places = np.where(places == UNLABELED, by_text, places)
    unknown = [name for name, place in zip(names, places, strict=True) if place == UNLABELED]
    if len(set(places.tolist())) < len(places) and not unknown:
        raise ParameterError("class_prior", f"names a class twice: {names}; the classes of y are {known}.")
    missing = [name for place, name in enumerate(known) if place not in places]
    if unknown or missing:
        problem = f"names {unknown[0]!r}, which no row is labelled with" if unknown else f"lacks {missing[0]!r}"
        raise ParameterError("class_prior", f"{problem}; the classes of y are {known}.")
    return [class_prior[names[number]] for number in np.argsort(places).tolist()]
