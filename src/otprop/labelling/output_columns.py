"""The columns that labelling adds to a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from otprop.files import Table
from otprop.labelling.model import SavedModel
from otprop.labelling.outcome import Outcome
from otprop.labelling.previous_run import free_prefix
from otprop.propagation.rounds import certainty
from otprop.table.errors import ColumnError, Hint, RequestError
from otprop.table.target import Target


@dataclass(frozen=True)
class OutputColumns:
    """Which columns are added.

    Attributes
    ----------
    prefix : str or None, of their names; None for the target and an underscore
    fill : bool, the labels go into the target column itself
    probabilities : bool, a column for every class
    """

    prefix: str | None = None
    fill: bool = False
    probabilities: bool = False

    def names(self, target: str, parts: Sequence[str], classes: Sequence[str]) -> list[str]:
        """The names of the columns, in order."""
        prefix = f"{target}_" if self.prefix is None else self.prefix
        if not isinstance(prefix, str):
            raise RequestError("prefix", f"must be text or None; got {type(prefix).__name__}.")
        parts = [*parts, *(f"p_{name}" for name in classes)] if self.probabilities else parts
        return [prefix + part for part in parts]


def output_column_names(target: Target, output: OutputColumns, *, confidence: bool) -> list[str]:
    """The names of the columns of an outcome, whose method has a `confidence` or not."""
    parts = [] if output.fill else ["label"]
    parts += ["certainty", *(["confidence", "novelty"] if confidence else []), "round", "source"]
    return output.names(target.name, parts, target.classes)


def output_columns(target: Target, outcome: Outcome, output: OutputColumns) -> dict[str, Any]:
    """The columns of an outcome, by name."""
    found = outcome.codes >= 0
    source = np.where(outcome.given, "given", np.where(found, "propagated", "abstained")).astype(object)
    if outcome.corrected is not None:
        source[outcome.corrected] = "corrected"
    columns: list[Any] = [] if output.fill else [label_column(target, outcome)]
    columns.append(np.round(outcome.certainty, 6))
    if outcome.confidence is not None:
        novelty = np.zeros(len(outcome.codes)) if outcome.novelty is None else outcome.novelty
        columns += [np.round(outcome.confidence, 6), np.round(novelty, 6)]
    columns += [np.where(found, outcome.round, -1), source]
    if output.probabilities:
        columns += [np.round(column, 6) for column in outcome.distributions.T]
    names = output_column_names(target, output, confidence=outcome.confidence is not None)
    return dict(zip(names, columns, strict=True))


def label_column(target: Target, outcome: Outcome) -> np.ndarray:
    """Each row's label as the file has it, of dtype object; None where there is none."""
    values = np.empty(len(target.classes) + 1, dtype=object)
    values[:-1] = list(target.values)
    return np.asarray(values[outcome.codes])  # -1 is the last one, None


def fill_column(target: Target, outcome: Outcome) -> np.ndarray:
    """The labels to write into the target column itself; None where the cell stays as it is."""
    labels = label_column(target, outcome)
    kept = outcome.given if outcome.corrected is None else outcome.given & ~outcome.corrected
    labels[kept] = None
    return labels


def predicted_column_names(model: SavedModel, output: OutputColumns) -> list[str]:
    """The names of the columns that a saved model adds, in order."""
    parts = ["label", "certainty", *(["confidence"] if model.has_confidence else [])]
    return output.names(model.target, parts, model.classes)


def predicted_columns(
    model: SavedModel,
    codes: np.ndarray,
    distributions: np.ndarray,
    confidence: np.ndarray | None,
    output: OutputColumns,
) -> dict[str, Any]:
    """The columns that a saved model adds to new rows, from what `predict_table` returns."""
    values = np.empty(len(model.values), dtype=object)
    values[:] = list(model.values)
    columns = [values[codes], np.round(certainty(distributions), 6)]
    columns += [] if confidence is None else [np.round(confidence, 6)]
    columns += [np.round(column, 6) for column in distributions.T] if output.probabilities else []
    return dict(zip(predicted_column_names(model, output), columns, strict=True))


def refuse_taken(table: Table, names: Sequence[str], target: str) -> None:
    """Refuse columns that the table has already."""
    known = set(table.names)
    taken = [name for name in names if name in known]
    if taken:
        statement = (
            f"{table.origin} already has {', '.join(map(repr, taken))}: give the added columns another start of "
        )
        hint = Hint("their names, as in ", "prefix", free_prefix(table.names, target))
        raise ColumnError(taken[0], statement.rstrip(), hint)
