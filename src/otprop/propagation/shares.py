"""How many rows of each class are there? What the labels say, what the rows say, and how far to trust either."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import gammaln, log_softmax, softmax

SMOOTHING = 0.5  # added to the number of labels of every class
IN_PROPORTION = 10.0  # how many labels one drawn in proportion to its class is worth
TYPICAL = 2.0  # hidden labels' worth of trust in that all classes are told apart equally well
ROUNDING = 1e-6  # variance of a mean probability, at least
LABELS_A_CLASS = 5.0  # with as many, the transport's strength is half of what it is with many


def labeled_shares(counts: np.ndarray) -> np.ndarray:
    """The classes' shares of the labels, none of them quite 0."""
    return np.asarray((counts + SMOOTHING) / (counts.sum() + SMOOTHING * len(counts)))


def infer_shares(probabilities: np.ndarray, unseen: np.ndarray, codes: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The classes' shares among the unlabelled rows, from what is thought of them and from the labels.

    The rows' mean probabilities q are, whatever the shares p, ``sum_k p_k C_k``, where C_k are the mean probabilities
    of rows of class k (Lipton, Wang and Smola 2018). C is known from the hidden labels, and from how few they are and
    how much they differ, how well it is known: the rows say much where classes are told apart, little where they
    overlap. What the labels say depends on how they were drawn, which nobody tells: so many a class, and their
    numbers mean nothing; from the rows as they come; or from each class in proportion. Each of the three is believed
    as far as the shares that it makes probable explain q.

    Parameters
    ----------
    probabilities : ndarray of shape (n_rows, n_classes), of the unlabelled rows
    unseen : ndarray of shape (n_hidden, n_classes), the same of labelled rows whose label was hidden
    codes : ndarray of int of shape (n_hidden,), their classes
    counts : ndarray of shape (n_classes,), the number of labels of each class

    Returns
    -------
    ndarray of shape (n_classes,), summing to one
    """
    n_rows, n_classes = probabilities.shape
    if n_rows == 0 or len(codes) == 0 or n_classes == 1:
        return labeled_shares(counts)
    mean = probabilities.mean(axis=0)
    by_class, variance = _by_class(unseen, codes, mean)
    variance += (np.diag(mean) - np.outer(mean, mean)) / n_rows
    precision = np.linalg.inv(variance + ROUNDING * np.eye(n_classes))
    ways = (np.ones(n_classes), counts + SMOOTHING, IN_PROPORTION * counts + SMOOTHING)
    found = [_most_probable(mean, by_class, precision, trust) for trust in ways]
    belief = softmax([evidence for _, evidence in found])
    return np.asarray(belief @ np.stack([shares for shares, _ in found]))


def _by_class(unseen: np.ndarray, codes: np.ndarray, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean probabilities of the rows of each class (by line), and the covariance of their sum over all classes.

    A class with few hidden labels leans on the others: told apart as well as they are, mistaken for the usual ones.
    """
    n_classes = unseen.shape[1]
    counts = np.bincount(codes, minlength=n_classes).astype(np.float64)
    own = unseen[np.arange(len(codes)), codes].mean()
    typical = np.tile(unseen.mean(axis=0), (n_classes, 1))
    np.fill_diagonal(typical, 0.0)
    typical *= (1.0 - own) / np.maximum(typical.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    np.fill_diagonal(typical, own)
    total = np.zeros((n_classes, n_classes))
    np.add.at(total, codes, unseen)
    means = (total + TYPICAL * typical) / (counts + TYPICAL)[:, None]
    most = 1.0 - (means[codes] ** 2).sum() / len(codes)  # the variance if every probability were 0 or 1
    part = (((unseen - means[codes]) ** 2).sum() + 1.0) / (len(codes) * most + 1.0)
    each = min(part, 1.0) * shares**2 / np.maximum(counts, 1.0)
    return means, np.diag(each @ means) - (means.T * each) @ means


def _most_probable(
    mean: np.ndarray, by_class: np.ndarray, precision: np.ndarray, trust: np.ndarray
) -> tuple[np.ndarray, float]:
    """The most probable shares where they have a Dirichlet distribution before the rows are seen; how well that fits.

    Found among the shares' logarithms, in which Laplace's approximation of the fit is a good one.

    Returns
    -------
    tuple of the shares and the logarithm of the probability of `mean`, up to a constant
    """

    def loss(logits: np.ndarray) -> tuple[float, np.ndarray]:
        shares = softmax(logits)
        missed = shares @ by_class - mean
        pushed = precision @ missed
        slope = by_class @ pushed
        value = 0.5 * (missed @ pushed) - trust @ log_softmax(logits)
        return float(value), shares * (slope - shares @ slope) - trust + trust.sum() * shares

    found = minimize(loss, np.log(trust / trust.sum()), jac=True, method="L-BFGS-B")
    shares = softmax(found.x)
    spread = np.diag(shares) - np.outer(shares, shares)
    curvature = spread @ (by_class @ precision @ by_class.T) @ spread + trust.sum() * spread
    curvature += 1.0 / len(mean)  # a constant added to all logarithms makes no difference: that direction counts as 1
    log_volume = float(np.linalg.slogdet(curvature)[1])
    return shares, float(gammaln(trust.sum()) - gammaln(trust).sum() - found.fun - 0.5 * log_volume)


def check_prior(class_prior: Any, classes: np.ndarray) -> np.ndarray | None:
    """The parameter `class_prior` as shares in the order of `classes`; None where they are to be inferred."""
    if class_prior is None:
        return None
    accepted = "None, 'uniform', an array with a share for each class, or a dict from class to share"
    if isinstance(class_prior, str):
        if class_prior != "uniform":
            raise ValueError(f"class_prior must be {accepted}; got {class_prior!r}.")
        return np.full(len(classes), 1.0 / len(classes))
    if hasattr(class_prior, "to_dict"):  # a pandas series: its index names the classes
        class_prior = class_prior.to_dict()
    if isinstance(class_prior, dict):
        known = {name: place for place, name in enumerate(classes.tolist())}
        known |= {str(name): place for name, place in known.items() if str(name) not in known}
        places = {name: known.get(name, known.get(str(name))) for name in class_prior}
        strange = [name for name, place in places.items() if place is None]
        if len(set(places.values())) < len(places) and not strange:
            raise ValueError(
                f"class_prior names a class twice: {list(places)}; the classes of y are {classes.tolist()}."
            )
        missing = [name for place, name in enumerate(classes.tolist()) if place not in places.values()]
        if strange or missing:
            said = f"names {strange[0]!r}, which no row is labelled with" if strange else f"lacks {missing[0]!r}"
            raise ValueError(f"class_prior {said}; the classes of y are {classes.tolist()}.")
        by_place = {place: class_prior[name] for name, place in places.items()}
        class_prior = [by_place[place] for place in range(len(classes))]
    try:
        shares = np.asarray(class_prior, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"class_prior must be {accepted}; got {class_prior!r}.") from error
    if shares.shape != (len(classes),):
        raise ValueError(
            f"class_prior has shape {shares.shape}, expected ({len(classes)},): a share for each class of y, in the "
            f"order {classes.tolist()}."
        )
    if not (np.isfinite(shares).all() and (shares >= 0).all() and shares.max() > 0):
        raise ValueError(
            "class_prior must hold shares that are finite and not negative, at least one of them above 0; "
            f"got {shares.tolist()}."
        )
    shares = shares / shares.max()
    return np.asarray(shares / shares.sum())
