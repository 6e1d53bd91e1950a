"""A round of the trainer: labels transported over features, and a network trained on them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np


@dataclass(frozen=True)
class NetworkRound:
    """The record of a round.

    Attributes
    ----------
    number : int, from 1
    codes : ndarray of int of shape (n_rows,)
        The class of each row, as a position in ``classes_``, that the network of this round was trained on; -1 where
        the transport left it open.
    n_changed : int, unlabelled rows whose class differs from the previous round; 0 in the first
    certainty : float, mean certainty (Eq. 12) of the unlabelled rows
    confidence : float, their mean confidence; NaN if the transport has none
    expected_error : float
        The expected error of the first transport. The features of later rounds come from a network that was trained
        on the labels, so no label is truly held out there.
    n_steps : int, steps of training made
    best_step : int, the step whose weights were kept
    loss : float, mean loss of the last steps
    hidden_loss, hidden_accuracy : float, of the network on the held-out labels; NaN without held-out labels
    seconds : float

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from otprop import OTP
    >>> from otprop.deep import PseudoLabelTrainer
    >>> X, truth = load_iris(return_X_y=True)
    >>> y = np.full(150, -1)
    >>> y[::15] = truth[::15]
    >>> transport = OTP(evidence=None)  # the geometry alone, which is quick
    >>> model = PseudoLabelTrainer(n_rounds=2, n_steps=20, transport=transport).fit(X, y)
    >>> first, second = model.rounds_
    >>> first.n_changed, second.number, second.n_steps, second.codes.shape
    (0, 2, 20, (150,))
    """

    number: int
    codes: np.ndarray
    n_changed: int
    certainty: float
    confidence: float
    expected_error: float
    n_steps: int
    best_step: int
    loss: float
    hidden_loss: float
    hidden_accuracy: float
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """All values except the codes, for JSON: NaN becomes None."""
        values = {name: value for name, value in asdict(self).items() if name != "codes"}
        return {name: None if value != value else value for name, value in values.items()}

    @classmethod
    def from_json(cls, codes: np.ndarray, values: dict[str, Any]) -> NetworkRound:
        """The round in the file; raises ValueError if it does not hold one."""
        wanted = {part.name: part.type for part in fields(cls) if part.name != "codes"}
        if values.keys() != wanted.keys():
            raise ValueError("its record has other parts than a round has")
        known: dict[str, Any] = {}
        for name, value in values.items():
            whole = wanted[name] == "int"
            if type(value) is not int and (whole or not (value is None or type(value) is float)):
                raise ValueError(f"its record has no number as {name}")
            if value is not None and not abs(value) < 1e300:
                raise ValueError(f"its record has an infinite {name}")
            known[name] = float("nan") if value is None else value
        return cls(codes=codes, **known)


@dataclass(frozen=True)
class Transported:
    """Labels transported over features, with the mean scores of the unlabelled rows.

    Attributes
    ----------
    model : OTP, fitted
    codes : ndarray of int of shape (n_rows,), -1 where a row was left unlabelled
    """

    model: Any
    codes: np.ndarray

    @classmethod
    def of(cls, model: Any) -> Transported:
        """Read a model that was fitted on class numbers."""
        return cls(model, np.asarray(model.transduction_, dtype=np.intp))

    def scores(self, unlabeled: np.ndarray) -> dict[str, float]:
        """Mean certainty and confidence of the unlabelled rows, and the expected error."""
        confidence = getattr(self.model, "confidence_", None)
        return {
            "certainty": _mean(self.model.certainty_[unlabeled]),
            "confidence": float("nan") if confidence is None else _mean(confidence[unlabeled]),
            "expected_error": float(getattr(self.model, "expected_error_", float("nan"))),
        }


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else float("nan")
