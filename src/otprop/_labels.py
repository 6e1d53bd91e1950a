"""Labels of any type to class numbers and back, unlabelled rows, and rows with weights to train on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import DataConversionWarning

from otprop._errors import warn
from otprop._validation import InputError, ParameterError, is_missing

UNLABELED = -1  # the class number of an unlabelled row, inside the library


@dataclass(frozen=True)
class Labels:
    """A column of labels as class numbers."""

    codes: np.ndarray  # -1 where a row is unlabelled
    classes: np.ndarray  # the label of each class number, sorted
    marker: Any  # the value that means "unlabelled" (-1 if there is none)

    @property
    def labeled(self) -> np.ndarray:
        return np.flatnonzero(self.codes != UNLABELED)

    @property
    def unlabeled(self) -> np.ndarray:
        return np.flatnonzero(self.codes == UNLABELED)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of an array that holds both labels and the marker."""
        return np.dtype(np.result_type(self.classes) if _fits(self.marker, self.classes) else object)

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """Labels for class numbers; the marker for -1."""
        codes = np.asarray(codes)
        missing = codes == UNLABELED
        if not missing.any():
            return self.classes[codes]
        out = np.empty(codes.shape, dtype=self.dtype)
        out[~missing] = self.classes[codes[~missing]]
        out[missing] = self.marker
        return out


def encode_labels(y: Any, unlabeled: Any = "auto") -> Labels:
    """Read a label column.

    With ``unlabeled="auto"`` the markers are -1, None, NaN, ``pandas.NA`` and ``NaT``; `y` may use one of them.
    Any other value of `unlabeled` is the only marker.
    """
    values = _as_column(y)
    if isinstance(unlabeled, str) and unlabeled == "auto":
        return _encode(values, *_find_marker(values))
    return _encode(values, *_match_marker(values, unlabeled))


def encode_given_labels(y: Any) -> Labels:
    """Read a column in which every row should have a label: -1 is a class, only missing values are unlabelled."""
    values = _as_column(y)
    return _encode(values, *_find_marker(values, missing_only=True))


def _encode(values: np.ndarray, missing: np.ndarray, marker: Any) -> Labels:
    """Number the classes of a column with known unlabelled rows."""
    known = values[~missing]
    if len(known) == 0:
        raise InputError(
            f"y has no labelled row: all {len(values)} entries are the marker for unlabelled"
            f"{f' ({marker!r})' if len(values) else ''}. Give at least one row a label."
        )
    known = _tidy(known)
    _refuse_lookalike(known, marker, bool(missing.any()))
    _refuse_continuous(known)
    try:
        classes, numbers = np.unique(known, return_inverse=True)
    except TypeError as error:
        kind = type(known[0]).__name__
        raise InputError(
            f"y holds labels of type {kind}, which cannot be put in order. Convert them to text."
        ) from error
    _warn_if_class_is_a_marker(classes, bool(missing.any()))
    codes = np.full(len(values), UNLABELED, dtype=np.intp)
    codes[~missing] = numbers
    return Labels(codes, classes, marker)


def class_numbers(labels: Iterable[Any], classes: np.ndarray) -> np.ndarray:
    """The class number of each label, -1 if it is not one of the classes; dates may be in any unit or type."""
    known = {_key(label, classes.dtype): code for code, label in enumerate(class_list(classes))}
    return np.array([known.get(_key(label, classes.dtype), UNLABELED) for label in labels], dtype=np.intp)


def class_list(classes: np.ndarray) -> list[Any]:
    """The classes as a list of Python types; dates stay NumPy dates, since ``tolist`` would make numbers of them."""
    return list(classes) if classes.dtype.kind in "mM" else list(classes.tolist())


def _key(label: Any, dtype: np.dtype[Any]) -> Any:
    """A dictionary key that is the same for equal labels: the hash of a NumPy date depends on its unit."""
    if dtype.kind not in "mM":
        return label
    try:
        return int(np.asarray(label).astype(dtype).astype(np.int64))
    except (TypeError, ValueError, OverflowError):
        return label


def row_weights(sample_weight: Any, labels: Labels) -> np.ndarray:
    """A weight for every row: as given for labelled rows, 1 for the others."""
    weights = np.ones(len(labels.codes))
    if sample_weight is None:
        return weights
    try:
        given = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        kind = type(sample_weight).__name__
        raise InputError(f"sample_weight must be numbers, one per row; got a {kind}: {str(error)[:200]}.") from error
    if given.ndim == 0:
        given = np.full(len(weights), float(given))
    if given.shape != weights.shape:
        raise InputError(f"sample_weight has shape {given.shape}, expected ({len(weights)},): one weight a row.")
    given = given[labels.labeled]
    if not given.any():
        raise InputError("sample_weight is zero for every labelled row: at least one needs a weight above zero.")
    if not np.isfinite(given).all() or (given < 0).any():
        raise InputError(
            "sample_weight must be finite and not negative; "
            f"got values from {given.min()} to {given.max()} on the labelled rows."
        )
    weights[labels.labeled] = given
    return weights


def check_groups(groups: Any, labels: Labels) -> np.ndarray | None:
    """The number of each row's group, -1 where unlabelled; None without groups, or with one row in each."""
    if groups is None:
        return None
    values = np.asarray(groups, dtype=object)
    if values.shape != labels.codes.shape:
        raise ParameterError("groups", f"has shape {values.shape}, expected {labels.codes.shape}: one group per row.")
    given = values[labels.labeled]
    missing = [number for number, value in enumerate(given) if is_missing(value)]
    if missing:
        raise ParameterError(
            "groups",
            f"has no value in {len(missing)} labelled rows, the first of them row {int(labels.labeled[missing[0]])}. "
            "Fill them; a row that belongs to no group is its own group.",
        )
    names, number = np.unique([str(value) for value in given], return_inverse=True)
    if len(names) == len(given):
        return None
    found = np.full(len(values), -1)
    found[labels.labeled] = number
    return found


def chosen_rows(chosen: Any, labels: Labels) -> np.ndarray | None:
    """Which labels were picked and not drawn at random; None if all were drawn at random."""
    if chosen is None:
        return None
    picked = np.asarray(chosen)
    if picked.shape != labels.codes.shape:
        raise ParameterError("chosen", f"has shape {picked.shape}, expected {labels.codes.shape}: one boolean per row.")
    if picked.dtype != bool:
        if picked.dtype.kind not in "biufO" or not np.isin(picked, (0, 1)).all():
            raise ParameterError("chosen", "must be a boolean array, one value per row: whether its label was picked.")
        picked = picked.astype(bool)
    return picked if picked[labels.labeled].any() else None


def find_unlabeled(y: Any, unlabeled: Any = "auto") -> tuple[np.ndarray, np.ndarray]:
    """A part of a label column as an array, and a mask of its unlabelled rows, which may be none or all.

    `encode_labels` checks the whole column.
    """
    values = _as_column(y)
    if isinstance(unlabeled, str) and unlabeled == "auto":
        return values, _find_marker(values)[0]
    return values, _match_marker(values, unlabeled, warns=False)[0]


def _as_column(y: Any) -> np.ndarray:
    """`y` as a one-dimensional array, whichever library it came from."""
    if y is None:
        raise InputError("y is None: this estimator requires y to be passed, but the target y is None.")
    if isinstance(y, (str, bytes, dict, set)) or not (hasattr(y, "__iter__") or hasattr(y, "__array__")):
        raise InputError(f"y must be a column of labels, one per row; got {type(y).__name__}.")
    if sp.issparse(y):
        raise InputError(
            f"y must be a column of labels, one per row; got a sparse {type(y).__name__}: use y.toarray()."
        )
    if isinstance(y, np.ma.MaskedArray):
        masked, y = np.ma.getmaskarray(y), y.data.astype(object)
        y[masked] = None  # what is masked is missing
    if getattr(y, "shape", ())[1:] == (1,) and hasattr(y, "columns"):  # a data frame: its column keeps its type
        _warn_of_column()
        y = y[y.columns[0]]
    if hasattr(y, "to_list") and not isinstance(getattr(y, "dtype", None), np.dtype):
        y = y.to_list()  # nullable columns of pandas and polars: as an array, integers would become floats
    elif hasattr(y, "to_numpy"):
        y = y.to_numpy()
    if not isinstance(y, np.ndarray):
        y = _from_sequence(y)
    if y.ndim == 2 and y.shape[1] == 1:
        _warn_of_column()
        y = y[:, 0]
    if y.ndim != 1:
        raise InputError(f"y should be a 1d array, got an array of shape {y.shape} instead.")
    if y.dtype.kind == "f" and np.isinf(y).any():
        raise InputError("Input y contains infinity. Labels must be finite; mark unlabelled rows by NaN or -1.")
    if y.dtype == object:
        _refuse_nested(y)
    return y


def _refuse_nested(entries: Iterable[Any]) -> None:
    """Refuse entries that are not single value: an array of objects, and a column of pandas, may hold lists."""
    for place, entry in enumerate(entries):
        if isinstance(entry, (list, dict, set, np.ndarray)):
            kind = type(entry).__name__
            raise InputError(f"y must be a column of labels, one per row; got a {kind} in place {place}.")


def _warn_of_column() -> None:
    warn(
        "A column-vector y was passed when a 1d array was expected. "
        "Please change the shape of y to (n_samples,), for example using ravel().",
        DataConversionWarning,
    )


def _from_sequence(y: Any) -> np.ndarray:
    """An array that keeps each entry's own type: NumPy would turn ``["a", None, 1]`` into strings."""
    if hasattr(y, "__array__"):
        return np.asarray(y)
    entries = list(y)
    if not all(isinstance(entry, list) for entry in entries):
        _refuse_nested(entries)
    try:
        kinds = {_kind(entry) for entry in entries}
        mixed = len(kinds) > 1 or "missing" in kinds
        array = np.empty(len(entries), dtype=object) if mixed else np.asarray(entries)
    except ValueError as error:
        raise InputError("y must be a column of labels, one per row; got lists of different lengths.") from error
    if array.dtype == object and array.ndim == 1:
        array[:] = entries
    return array


def _kind(entry: Any) -> str:
    if entry is None or type(entry).__name__ in {"NAType", "NaTType"}:
        return "missing"
    if isinstance(entry, (bool, np.bool_)):
        return "bool"
    if isinstance(entry, (int, float, np.integer, np.floating)):
        return "number"
    return type(entry).__name__


_MARKERS: dict[str, Callable[[Any], bool]] = {
    "-1": lambda v: isinstance(v, (int, float, np.integer, np.floating)) and not isinstance(v, bool) and v == -1,
    "None": lambda v: v is None,
    "NaN": lambda v: isinstance(v, (float, np.floating)) and v != v,
    "NA": lambda v: type(v).__name__ == "NAType",
    "NaT": lambda v: type(v).__name__ == "NaTType" or (isinstance(v, (np.datetime64, np.timedelta64)) and np.isnat(v)),
}


def _find_marker(values: np.ndarray, missing_only: bool = False) -> tuple[np.ndarray, Any]:
    """Where `values` is unlabelled, and the one marker it uses; with `missing_only`, -1 is not a marker."""
    if values.dtype.kind in "iu":
        return (values == -1) & (not missing_only), -1
    if values.dtype.kind == "f":
        found = {"-1": values == -1, "NaN": np.isnan(values)}
    elif values.dtype.kind in "mM":
        found = {"NaT": np.isnat(values)}
    elif values.dtype == object:
        found = {name: np.fromiter(map(test, values), bool, len(values)) for name, test in _MARKERS.items()}
    else:
        return np.zeros(len(values), dtype=bool), -1
    if missing_only:
        found.pop("-1", None)
    used = {name: mask for name, mask in found.items() if mask.any()}
    if len(used) > 1:
        counts = " and ".join(f"{name} ({mask.sum()} rows)" for name, mask in used.items())
        raise InputError(
            f"y uses two different markers for unlabelled rows: {counts}. Use one of them, or say which one "
            "means unlabelled with the parameter `unlabeled` if the other is a class."
        )
    for mask in used.values():
        return mask, values[np.argmax(mask)]
    return np.zeros(len(values), dtype=bool), -1


def _match_marker(values: np.ndarray, marker: Any, warns: bool = True) -> tuple[np.ndarray, Any]:
    """Where `values` equals the user's marker; any other missing value is an error."""
    if isinstance(marker, (list, tuple, dict, set, np.ndarray)):
        raise InputError(f"unlabeled must be one value or 'auto'; got {marker!r}.")
    same = next((test for test in _MARKERS.values() if test(marker)), lambda v: _same_value(v, marker))
    missing = np.fromiter(map(same, values), bool, len(values))
    if warns and not missing.any():
        warn(f"unlabeled={marker!r} does not occur in y: no row is unlabelled.")
    others = {n for n, test in _MARKERS.items() if n != "-1" for v in values[~missing] if test(v)}
    if others:
        raise InputError(
            f"y holds {', '.join(sorted(others))} in addition to the marker unlabeled={marker!r}: a missing value "
            'cannot be a class. Replace it, or leave unlabeled="auto".'
        )
    return missing, marker


def _same_value(value: Any, marker: Any) -> bool:
    """Equality that distinguishes True from 1 and does not raise for different types."""
    if isinstance(value, (bool, np.bool_)) != isinstance(marker, (bool, np.bool_)):
        return False
    return bool(value == marker)


def _tidy(known: np.ndarray) -> np.ndarray:
    """The labelled entries in the narrowest type that holds them all."""
    if known.dtype != object:
        return known
    kinds = {_kind(entry) for entry in known}
    if len(kinds) > 1:
        names = ", ".join(sorted({type(entry).__name__ for entry in known}))
        raise InputError(
            f"y mixes labels of different types ({names}): they cannot be put in order. "
            "Convert them to one type, for example with str()."
        )
    if kinds == {"str"}:
        return np.asarray(known, dtype=str)
    if kinds <= {"number", "bool"}:
        return np.asarray(list(known))
    return known


def _refuse_lookalike(known: np.ndarray, marker: Any, used: bool) -> None:
    if used and known.dtype.kind in "UO" and not isinstance(marker, str) and str(marker) in set(known):
        raise InputError(
            f"the marker {marker!r} is also a class: y holds the label {str(marker)!r} as text as well. "
            "Rename the class, or mark unlabelled rows by something else."
        )


def _refuse_continuous(known: np.ndarray) -> None:
    if known.dtype.kind == "f" and (known != np.floor(known)).any():
        example = known[known != np.floor(known)][0]
        raise InputError(
            f"Unknown label type: continuous. y holds numbers such as {example}, which are not classes. "
            "Bin them, or convert them to text if they are names."
        )
    if known.dtype.kind == "f" and np.isinf(known).any():
        raise InputError("Input y contains infinity. Labels must be finite; mark unlabelled rows by NaN or -1.")
    if known.dtype.kind == "c":
        raise InputError("Unknown label type: complex. Complex data not supported as labels.")


LIKELY_MARKERS = {"", "nan", "none", "null", "na", "n/a", "<na>", "-1", "?"}


def _warn_if_class_is_a_marker(classes: np.ndarray, some_unlabelled: bool) -> None:
    """Warn if a class is text that other tools write for a missing value and no row is unlabelled."""
    if some_unlabelled or classes.dtype.kind != "U":
        return
    likely = [name for name in classes.tolist() if name.strip().lower() in LIKELY_MARKERS]
    if likely:
        warn(
            f"y has the class {likely[0]!r} and no unlabelled row. If that text marks unlabelled rows, pass "
            f"unlabeled={likely[0]!r}."
        )


def _fits(marker: Any, classes: np.ndarray) -> bool:
    """Whether an array of the classes' type can hold the marker."""
    if isinstance(marker, (np.datetime64, np.timedelta64)):
        return classes.dtype.kind == marker.dtype.kind
    if isinstance(marker, (bool, np.bool_)):
        return classes.dtype.kind == "b"
    if isinstance(marker, (int, np.integer)):
        return classes.dtype.kind == "i" or classes.dtype.kind == "f"
    return isinstance(marker, (float, np.floating)) and classes.dtype.kind == "f"


def class_balanced_weights(codes: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """The score of each row divided by the number of rows of its class, scaled to a mean of one.

    Parameters
    ----------
    codes : ndarray of int of shape (n_rows,), no row unlabelled
    scores : ndarray of shape (n_rows,), 0 or more; a row with 0 gets the weight 0 and does not count

    Returns
    -------
    ndarray of shape (n_rows,)
        All 1 if every score is 0.

    Examples
    --------
    >>> import numpy as np
    >>> print(class_balanced_weights(np.array([0, 0, 0, 1]), np.array([1.0, 1.0, 1.0, 1.0])).round(2))
    [0.67 0.67 0.67 2.  ]
    """
    counts = np.bincount(codes, weights=scores > 0)
    weights = scores / np.maximum(counts, 1)[codes]
    total = weights.sum()
    return weights * (len(weights) / total) if total > 0 else np.ones(len(weights))


def take_rows(X: Any, rows: np.ndarray) -> Any:
    """Rows of an array, a sparse matrix or a data frame, in the same type; a list becomes an array."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X[rows] if hasattr(X, "shape") else np.asarray(X)[rows]
