"""The columns that labelling adds to a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from otprop.labelling.outcome import Outcome
from otprop.propagation.rounds import certainty
from otprop.table.target import Target


def output_column_names(target: Target, prefix: str, *, fill: bool, probabilities: bool, confidence: bool) -> list[str]:
    """Their names, in order.

    Parameters
    ----------
    target : Target
    prefix : str
    fill : bool, the labels go into the target column itself
    probabilities : bool, a column for every class
    confidence : bool, the method has one

    Returns
    -------
    list of str
    """
    parts = [] if fill else ["label"]
    parts += ["certainty", *(["confidence"] if confidence else []), "round", "source"]
    parts += [f"p_{name}" for name in target.classes] if probabilities else []
    return [prefix + part for part in parts]


def output_columns(
    target: Target, outcome: Outcome, prefix: str, *, fill: bool = False, probabilities: bool = False
) -> dict[str, Any]:
    """The columns, by name.

    Parameters
    ----------
    target : Target
    outcome : Outcome
    prefix : str
    fill, probabilities : bool, as in `output_column_names`

    Returns
    -------
    dict of str to array
    """
    found = outcome.codes >= 0
    source = np.where(outcome.given, "given", np.where(found, "propagated", "abstained")).astype(object)
    columns: list[Any] = [] if fill else [filled_column(target, outcome)]
    columns.append(np.round(outcome.certainty, 6))
    if outcome.confidence is not None:
        columns.append(np.round(outcome.confidence, 6))
    columns += [np.where(found, outcome.round, -1), source]
    if probabilities:
        columns += [np.round(column, 6) for column in outcome.distributions.T]
    has = outcome.confidence is not None
    names = output_column_names(target, prefix, fill=fill, probabilities=probabilities, confidence=has)
    return dict(zip(names, columns, strict=True))


def filled_column(target: Target, outcome: Outcome) -> np.ndarray:
    """Each row's label as the file writes it; None where there is none.

    Parameters
    ----------
    target : Target
    outcome : Outcome

    Returns
    -------
    ndarray of object
    """
    values = np.empty(len(target.classes) + 1, dtype=object)
    values[:-1] = list(target.values)
    return np.asarray(values[outcome.codes])  # -1 is the last one, None


def predicted_names(model: Any, prefix: str, *, probabilities: bool = False) -> list[str]:
    """The names of the columns that a saved model adds, in order.

    Parameters
    ----------
    model : SavedModel
    prefix : str
    probabilities : bool, a column for every class

    Returns
    -------
    list of str
    """
    parts = ["label", "certainty", *(["confidence"] if model.has_confidence else [])]
    parts += [f"p_{name}" for name in model.classes] if probabilities else []
    return [prefix + part for part in parts]


def predicted_columns(
    model: Any,
    codes: np.ndarray,
    distributions: np.ndarray,
    confidence: np.ndarray | None,
    prefix: str,
    *,
    probabilities: bool = False,
) -> dict[str, Any]:
    """The columns that a saved model adds to new rows.

    Parameters
    ----------
    model : SavedModel
    codes : ndarray of int of shape (n_rows,)
    distributions : ndarray of shape (n_rows, n_classes)
    confidence : ndarray of shape (n_rows,) or None
    prefix : str
    probabilities : bool, a column for every class

    Returns
    -------
    dict of str to array
    """
    values = np.empty(len(model.values), dtype=object)
    values[:] = list(model.values)
    columns = [values[codes], np.round(certainty(distributions), 6)]
    columns += [] if confidence is None else [np.round(confidence, 6)]
    columns += [np.round(column, 6) for column in distributions.T] if probabilities else []
    return dict(zip(predicted_names(model, prefix, probabilities=probabilities), columns, strict=True))
