"""How many rows of each class are there? What the labels say, what the rows say, and how far to trust either."""

from __future__ import annotations

from typing import Any

import numpy as np

SMOOTHING = 0.5  # added to the number of labels of every class
LABELS_A_CLASS = 5.0  # up to this many labels a class, the labelled shares count as much as all rows together
MAX_STEPS = 500
TOL = 1e-8


def labeled_shares(counts: np.ndarray) -> np.ndarray:
    """The classes' shares of the labels, none of them quite 0."""
    return np.asarray((counts + SMOOTHING) / (counts.sum() + SMOOTHING * len(counts)))


def infer_shares(probabilities: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The classes' shares among the unlabelled rows, from their probabilities and from the labels.

    Labels may have been drawn from the rows as they come, or so many a class: nobody says. The rows' own
    probabilities know better, if they are any good, and they are the better the more labels there were. The shares
    maximise the likelihood of the rows (Saerens, Latinne and Decaestecker 2002) together with that of the labels,
    which counts as much as all rows where there are few of them a class, and less the more there are.

    Parameters
    ----------
    probabilities : ndarray of shape (n_rows, n_classes), of the unlabelled rows
    counts : ndarray of shape (n_classes,), the number of labels of each class

    Returns
    -------
    ndarray of shape (n_classes,), summing to one
    """
    given = labeled_shares(counts)
    n_rows = len(probabilities)
    if n_rows == 0:
        return given
    trust = n_rows * min(1.0, LABELS_A_CLASS * len(counts) / max(counts.sum(), 1.0))
    shares = given
    for _ in range(MAX_STEPS):
        ratio = shares / given
        norm = probabilities @ ratio
        found = ratio * (probabilities.T @ (1.0 / np.maximum(norm, np.finfo(float).tiny)))
        new = (found + trust * given) / (found.sum() + trust)
        done = np.abs(new - shares).sum() < TOL
        shares = new
        if done:
            break
    return shares


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
        raise ValueError(f"class_prior has shape {shares.shape}; y has {len(classes)} classes: {classes.tolist()}.")
    if not (np.isfinite(shares).all() and (shares >= 0).all() and shares.max() > 0):
        raise ValueError(f"class_prior must hold shares that are finite and not negative; got {shares.tolist()}.")
    shares = shares / shares.max()
    return np.asarray(shares / shares.sum())
