"""Labels for rows that come later: a model from a result or a file, used from Python."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from otprop._validation import ParameterError, check_path
from otprop.files import Table
from otprop.labelling.model import SavedModel, load_model, predict_table
from otprop.labelling.outcome import RowLabels
from otprop.labelling.output_columns import OutputColumns, as_column, refuse_taken
from otprop.table.frame import is_frame, is_polars, with_columns
from otprop.table.opening import as_table


@dataclass(frozen=True)
class Prediction:
    """The predictions of a model for the rows of a table."""

    labels: RowLabels
    columns: dict[str, Any]  # to add, in order
    notes: list[str]  # what a user should know


class Model:
    """A fitted model, from `otprop.load` or `LabelResult.model`.

    Parameters
    ----------
    saved : SavedModel

    Attributes
    ----------
    estimator : the fitted estimator; its classes are class numbers, and its rows the features of the table
    target : str, the column that the labels were in
    classes : list, the labels, by class number
    columns : list of str, the columns that `predict` needs
    notes : list of str, notes on the model file

    Notes
    -----
    Other attributes and methods of the estimator (``expected_error_``, ``class_prior_``, ``labels_needed``) are also
    available on the model.

    Examples
    --------
    >>> import pandas as pd
    >>> import otprop
    >>> weights, kinds = [1.0, 1.2, 1.1, 9.0, 9.1, 9.3], ["light", None, None, "heavy", None, None]
    >>> model = otprop.label(pd.DataFrame({"weight": weights, "kind": kinds}), "kind").model
    >>> model.classes, model.columns
    (['heavy', 'light'], ['weight'])
    >>> model.predict(pd.DataFrame({"weight": [1.3, 8.8]}))["kind_label"].tolist()
    ['light', 'heavy']
    """

    def __init__(self, saved: SavedModel) -> None:
        self._saved = saved
        self._values = as_column(saved.values)

    @property
    def estimator(self) -> Any:
        return self._saved.estimator

    @property
    def target(self) -> str:
        return self._saved.target

    @property
    def classes(self) -> list[Any]:
        return list(self._values.tolist())

    @property
    def classes_(self) -> np.ndarray:
        """The labels as an array, as in scikit-learn."""
        return np.asarray(self._values)

    @property
    def columns(self) -> list[str]:
        return self._saved.features.wanted

    @property
    def notes(self) -> list[str]:
        return self._saved.notes

    def predict(self, data: Any, *, probabilities: bool = False, prefix: str | None = None) -> Any:
        """Label the rows of a table, as the command `otprop predict` does.

        Parameters
        ----------
        data : str, path, DataFrame, list of dicts or Table
            New rows with the columns that the model was trained on, in any order; other columns are ignored.
        probabilities : bool
            Add one column per class with its probability.
        prefix : str or None
            The prefix of the added columns; None for the target and an underscore.

        Returns
        -------
        DataFrame
            The rows with TARGET_label, TARGET_certainty and TARGET_confidence added: a polars frame for polars input,
            otherwise a pandas frame with the index of the input.
        """
        table = as_table(data)
        found = self.predict_table(table, OutputColumns(prefix, probabilities=probabilities))
        for note in found.notes:
            warnings.warn(note, UserWarning, stacklevel=2)
        frame = data if is_frame(data) else table.frame()
        name = next(iter(found.columns))
        labels = self._values.iloc[found.labels.codes]
        typed = np.array(labels.tolist(), dtype=object) if is_polars(frame) else labels.array
        return with_columns(frame, {**found.columns, name: typed})

    def predict_table(self, table: Table, output: OutputColumns) -> Prediction:
        """The predictions for a table of `otprop.files`, as columns to add to it."""
        self.check_table(table, output)
        frame = self._saved.frame(table)
        saved, labels = self._saved, predict_table(self._saved, frame)
        columns = output.of(labels, saved.target, saved.classes, saved.values)
        return Prediction(labels, columns, saved.features.notes_on_new(frame))

    def check_table(self, table: Table, output: OutputColumns) -> None:
        """Refuse a table that lacks columns, or has those that would be added."""
        self._saved.check_columns(table.usable)
        parts = ["certainty", *(["confidence"] if self._saved.has_confidence else [])]
        refuse_taken(table, output.names(self.target, self._saved.classes, parts), self.target)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.estimator, name)

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self.classes[:6])) + (", ..." if len(self.classes) > 6 else "")
        return f"<otprop.Model of {self.target!r}: {len(self.classes)} classes ({shown}), {len(self.columns)} columns>"


def load(
    path: str | PathLike[str] | BinaryIO,
    *,
    text_model: str | PathLike[str] | None = None,
    image_model: str | PathLike[str] | None = None,
) -> Model:
    """Load a model saved by `LabelResult.save` or ``otprop label --save``. No code in the file is run.

    Parameters
    ----------
    path : str, path or binary file
    text_model : str, path or None
        The local text model that the model was trained with, if any. A model file does not store its path.
    image_model : str, path or None
        The local image model that the model was trained with, likewise.

    Returns
    -------
    Model
        With ``predict(data)`` and ``classes``.

    Examples
    --------
    >>> import pandas as pd, tempfile
    >>> import otprop
    >>> weights, kinds = [1.0, 1.2, 1.1, 9.0, 9.1, 9.3], ["light", None, None, "heavy", None, None]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     otprop.label(pd.DataFrame({"weight": weights, "kind": kinds}), "kind").save(f"{folder}/kinds.model")
    ...     model = otprop.load(f"{folder}/kinds.model")
    >>> model.predict([{"weight": 1.3}])["kind_label"].tolist()
    ['light']
    """
    if not isinstance(path, (str, PathLike)) and not hasattr(path, "read"):
        raise ParameterError("path", f"must name a model file; got {type(path).__name__}.")
    file = Path(check_path("path", path)) if isinstance(path, (str, PathLike)) else path
    model = Model(load_model(file, text_model=text_model, image_model=image_model))
    for note in model.notes:
        warnings.warn(note, UserWarning, stacklevel=2)
    return model


def predict(model: Any, data: Any, *, probabilities: bool = False, prefix: str | None = None) -> Any:
    """Label new rows with a model, as the command `otprop predict` does.

    Parameters
    ----------
    model : Model, LabelResult, str, path or binary file
        A result of `otprop.load` or `otprop.label`, or a model file.
    data, probabilities, prefix : as in `Model.predict`

    Returns
    -------
    DataFrame
        The rows with TARGET_label, TARGET_certainty and TARGET_confidence added.

    Examples
    --------
    >>> import pandas as pd
    >>> import otprop
    >>> weights, kinds = [1.0, 1.2, 1.1, 9.0, 9.1, 9.3], ["light", None, None, "heavy", None, None]
    >>> result = otprop.label(pd.DataFrame({"weight": weights, "kind": kinds}), "kind")
    >>> otprop.predict(result, pd.DataFrame({"weight": [8.8]}))["kind_label"].tolist()
    ['heavy']
    """
    if is_frame(model) or isinstance(model, (Table, list)):
        what = type(model).__name__
        raise ParameterError("model", f"is a {what}: pass the model first and then the rows, as predict(model, data).")
    opened = model if hasattr(model, "predict") else load(model)
    return opened.predict(data, probabilities=probabilities, prefix=prefix)
