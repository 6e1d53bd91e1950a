"""What a column is: the encoder for its values, an identifier, or written together with the labels."""

from __future__ import annotations

import re
from datetime import date, time
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from otprop._validation import is_missing
from otprop.table.columns import (
    BooleanEncoder,
    CategoryEncoder,
    DateEncoder,
    Encoder,
    TimeEncoder,
    has_blanks,
    texts_of,
)
from otprop.table.images import recognise_pictures
from otprop.table.numbers import EmbeddingEncoder, NumberEncoder
from otprop.table.text import TextEncoder

MAX_CATEGORIES = 40  # of different values; a column with more is read as text
MIN_ROWS_IN_ORDER = 10  # from this many rows on, row numbers may have gaps
GAPS = 0.2  # of the numbers between the first and the last row number, where they are in no order
NEARLY_ONLY = 0.05  # filled so rarely in unlabelled rows, compared with labelled ones: filled with the label
FIRST_ROWS = 1000  # unlabelled rows in which a value that stands in all of them is looked for
UNLIKELY = 1e-4  # chance below which such a column is not an accident
IDENTIFIER = "identifier"
_NAMELESS = re.compile(r"(?i:unnamed: \d+)?")
_ID = re.compile(r"(?i:(^|[\W_])(id|index|row|row ?number|nr|no)\.?$|^unnamed: \d+$)|[a-z]I[Dd]$")


def choose_encoder(column: Any, asked: bool) -> Encoder | str:
    """The kind of a column, or why it is skipped; a column that was asked for is skipped only if it is empty."""
    if is_plain(column.dtype) and column.dtype.kind == "f" and not np.isnan(column.to_numpy()).all():
        return NumberEncoder()
    if bool(column.isna().all()):
        return "no value in any row"
    encoder = _by_type(column)
    if encoder is None:
        return "nested values; only arrays of numbers can be used"
    if isinstance(encoder, NumberEncoder):
        return f"{IDENTIFIER}: row numbers" if not asked and _numbers_the_rows(column) else encoder
    if not isinstance(encoder, TextEncoder):
        return encoder
    texts = texts_of(column).dropna()
    pictures = recognise_pictures(column, texts) if len(texts) else None
    return _by_values(texts, asked) if pictures is None else pictures


def _by_values(text: Any, asked: bool) -> Encoder | str:
    """Text, categories or an identifier."""
    n_different, n_known = int(text.nunique()), len(text)
    if n_known == 0:
        return "no value in any row"
    if n_different <= min(MAX_CATEGORIES, n_known / 2):
        return CategoryEncoder()
    if bool(has_blanks(text).mean() > 0.5):
        return TextEncoder()
    if not asked and n_different == n_known and n_known > 2:
        return f"{IDENTIFIER}: a different value in every row"
    return CategoryEncoder() if n_different <= MAX_CATEGORIES else TextEncoder()


def _by_type(column: Any) -> Encoder | None:
    """The encoder for values of this type; that of text for what only its values can tell."""
    from pandas.api import types

    kind = column.dtype
    if types.is_bool_dtype(kind) and not types.is_object_dtype(kind):
        return BooleanEncoder()
    if types.is_datetime64_any_dtype(kind):
        return DateEncoder()
    if types.is_complex_dtype(kind):
        return None
    if types.is_numeric_dtype(kind) or types.is_timedelta64_dtype(kind):
        return NumberEncoder()
    if not types.is_object_dtype(kind) and not holds_arrays(column):
        return TextEncoder()
    if holds_arrays(column):
        return EmbeddingEncoder()
    types_found = {type(value) for value in column.to_numpy(dtype=object) if not is_missing(value)}
    encoders: dict[type[Encoder], Any] = {
        BooleanEncoder: bool,
        NumberEncoder: (Real, Decimal),
        DateEncoder: date,
        TimeEncoder: time,
    }
    for encoder, accepted in encoders.items():
        if all(issubclass(found, accepted) for found in types_found):
            return encoder()
    return None if any(issubclass(found, (dict, set)) for found in types_found) else TextEncoder()


def holds_arrays(column: Any) -> bool:
    if column.dtype.kind != "O":
        return False
    first = column.iloc[int(np.argmax(column.notna().to_numpy()))] if len(column) else None
    return isinstance(first, (list, tuple, np.ndarray))


def _numbers_the_rows(column: Any) -> bool:
    """Whether whole numbers count the rows, each once: nearly all between the first and the last, or only rising.

    Numbers that only fall do so if the column is called an id, and numbers in any order if it has no name.
    """
    from pandas.api import types

    if not types.is_integer_dtype(column.dtype):
        return False
    known = column.dropna()
    if len(known) < 3 or not known.is_unique:
        return False
    between = int(known.max()) - int(known.min()) + 1
    if len(known) < MIN_ROWS_IN_ORDER:
        return between == len(known)
    if len(known) >= (1 - GAPS) * between or known.is_monotonic_increasing or _NAMELESS.fullmatch(str(column.name)):
        return True
    return bool(known.is_monotonic_decreasing and _ID.search(str(column.name)))


def is_plain(dtype: Any) -> bool:
    return isinstance(dtype, np.dtype) and dtype.kind in "fiu"


def is_filler(column: Any, given: np.ndarray) -> np.ndarray:
    """Which cells hold the one value that stands in nearly all unlabelled rows, such as "unknown"; none without one."""
    without = np.flatnonzero(~given)
    none = np.zeros(len(given), dtype=bool)
    if holds_arrays(column):
        return none
    try:
        found = column.iloc[without[:FIRST_ROWS]].value_counts()
        if not len(found) or found.iloc[0] < (1 - NEARLY_ONLY) * len(without[:FIRST_ROWS]):
            return none
        return np.asarray((column == found.index[0]).fillna(False).to_numpy(dtype=bool))
    except TypeError:  # nested values
        return none


def follows_labels(filled: np.ndarray, given: np.ndarray) -> bool:
    """Whether cells are filled only, or nearly only, in the given rows, more than chance explains."""
    from scipy.stats import hypergeom

    n_rows, n_given, n_filled, both = len(filled), int(given.sum()), int(filled.sum()), int((filled & given).sum())
    if n_filled == n_rows or both == 0 or filled[~given].mean() > NEARLY_ONLY * filled[given].mean():
        return False
    return bool(hypergeom.sf(both - 1, n_rows, n_given, n_filled) < UNLIKELY)
