"""Small things that all kinds of columns need: text of any values, missing cells, examples for messages."""

from __future__ import annotations

from typing import Any

import numpy as np

FIT_ROWS = 100_000  # quantiles and means come from this many rows, evenly spread


def pandas() -> Any:
    """The package, imported when it is needed: `import otprop` works without it."""
    import pandas

    return pandas


def texts_of(column: Any) -> Any:
    """The column as text, whole numbers without a point; blank cells are missing."""
    pd = pandas()
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(object)
    if pd.api.types.is_float_dtype(column.dtype):
        whole = column.dropna()
        if len(whole) and bool(((whole % 1 == 0) & (whole.abs() < 2**53)).all()):
            column = column.astype("Int64")
    text = column
    if not isinstance(column.dtype, pd.StringDtype):
        text = column.astype(object).map(str, na_action="ignore").astype("str")
    return text.mask(text.str.strip() == "")


def has_blanks(texts: Any) -> Any:
    """Which texts are more than one word."""
    return texts.str.strip().str.contains(r"\s", regex=True)


def spread_out(values: np.ndarray, most: int = FIT_ROWS) -> np.ndarray:
    """At most `most` of the rows, evenly spread."""
    return values[:: max(1, -(-len(values) // most))]


def is_missing(cell: Any) -> bool:
    """Whether a cell is a null of any kind."""
    return cell is None or (np.ndim(cell) == 0 and bool(pandas().isna(cell)))


def example(column: Any, wrong: np.ndarray) -> str:
    """The first wrong cell, and its row."""
    row = int(np.argmax(wrong))
    return f"{shown(column.iloc[row])} in row {row + 1}"


def shown(value: Any) -> str:
    """A value for a message, cut short."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
