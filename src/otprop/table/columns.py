"""Columns as numbers: an encoder for each kind of column.

Neighbours are found by distances, so every column has about the same weight: a number has a variance of about one, a
mean squared distance of two; two different categories, or booleans, have a squared distance of two. A block of
numbers (text, an embedding, a date) has a variance of the square root of its effective dimensions: the more dimensions
a block has, the less its squared distance varies, and so it orders pairs of rows as strongly as one number does.
"""

from __future__ import annotations

from datetime import date, time
from typing import Any, ClassVar

import numpy as np

from otprop._saving import saved_as
from otprop.table.errors import CellError

FIT_ROWS = 100_000  # quantiles and means come from this many rows, evenly spread
FLAG = "missing"
FLAG_ALONE = "one value only, or missing: the flag alone"
NUMBERS_AT_ONCE = 2**23  # of a block


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


def example(column: Any, wrong: np.ndarray) -> str:
    """The first wrong cell, and its row."""
    row = int(np.argmax(wrong))
    return f"{shown(column.iloc[row])} in row {row + 1}"


def shown(value: Any) -> str:
    """A value for a message, cut short."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


class Encoder:
    """Base of all encoders: a flag where a value was missing in training, and the names of the features."""

    role: ClassVar[str]
    flagged = False
    parts: list[str]

    def fit(self, column: Any) -> float:
        """Fit on a pandas column; returns the share of missing values."""
        values = self.read(column)
        missing = self.missing(values)
        self.flagged = bool(missing.any())
        self.fit_values(values, missing)
        return float(missing.mean())

    def transform(self, column: Any) -> np.ndarray:
        """The column as finite float32 numbers, of shape (n_rows, width)."""
        values = self.read(column)
        missing = self.missing(values)
        found = np.empty((len(missing), self.width), dtype=np.float32)
        found[:, : len(self.parts)] = self.transform_values(values, missing)
        if self.flagged:
            found[:, -1] = missing
        return found

    @property
    def width(self) -> int:
        """How many features the column becomes."""
        return len(self.parts) + self.flagged

    def feature_names(self, name: str) -> list[str]:
        """A name for each feature."""
        parts = [*self.parts, FLAG] if self.flagged else self.parts
        return [f"{name}: {part}" if part else name for part in parts]

    def describe(self) -> str:
        """What was done, for a list of columns."""
        raise NotImplementedError

    def check_saved(self) -> None:
        """Raise ValueError unless what came from a file can be used; most encoders fail as soon as they are."""

    def read(self, column: Any) -> Any:
        """The column as this encoder needs it; raises ValueError with an example where a cell does not fit."""
        raise NotImplementedError

    def missing(self, values: Any) -> np.ndarray:
        """Which rows have no value."""
        return np.asarray(pandas().isna(values))

    def fit_values(self, values: Any, missing: np.ndarray) -> None:
        """Fit on what `read` returned."""
        raise NotImplementedError

    def transform_values(self, values: Any, missing: np.ndarray) -> np.ndarray:
        """Features of shape (n_rows, len(parts)); missing values are in the middle."""
        raise NotImplementedError


class BlockEncoder(Encoder):
    """Base of encoders whose features are scaled together, by a `Block`."""

    block: Block | None

    def vectors(self, values: np.ndarray) -> np.ndarray:
        """The numbers of rows that have a value, before they are scaled."""
        return values

    def transform_values(self, values: np.ndarray, missing: np.ndarray) -> np.ndarray:
        found = np.zeros((len(values), len(self.parts)), dtype=np.float32)
        if self.parts and self.block is not None:
            known = np.flatnonzero(~missing)
            at_once = max(1, NUMBERS_AT_ONCE // max(len(self.parts), np.size(values[:1])))
            for start in range(0, len(known), at_once):
                rows = known[start : start + at_once]
                found[rows] = self.block(self.vectors(values[rows]))
        return found


@saved_as("table.boolean")
class BooleanEncoder(Encoder):
    """Booleans in one column."""

    role = "boolean"
    WORDS: ClassVar[dict[str, float]] = {"true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0, "1.0": 1.0, "0.0": 0.0}

    def read(self, column: Any) -> np.ndarray:
        values = column.astype(object).where(column.notna(), None)
        truth = values.map(lambda value: np.nan if value is None else self.WORDS.get(str(value).strip().lower(), 2.0))
        found = truth.to_numpy(dtype=np.float64)
        if (found == 2.0).any():
            raise CellError(f"holds {example(column, found == 2.0)}, where true and false are expected")
        return np.asarray(found)

    def fit_values(self, values: np.ndarray, missing: np.ndarray) -> None:
        known = values[~missing]
        self.parts = [""] if len(known) and known.min() < known.max() else []

    def transform_values(self, values: np.ndarray, missing: np.ndarray) -> np.ndarray:
        if not self.parts:
            return np.empty((len(values), 0))
        return np.where(missing, 0.0, np.sqrt(2.0) * (values - 0.5))[:, None]

    def describe(self) -> str:
        return "true or false" if self.parts else FLAG_ALONE


@saved_as("table.category")
class CategoryEncoder(Encoder):
    """One column per category, and one for missing cells; a category not seen in training has zeros in all."""

    role = "category"

    def read(self, column: Any) -> Any:
        return texts_of(column)

    def fit_values(self, values: Any, missing: np.ndarray) -> None:
        found = sorted(values[~missing].unique().tolist())
        self.parts = found if len(found) > 1 else []

    def transform_values(self, values: Any, missing: np.ndarray) -> np.ndarray:
        codes = pandas().Index(self.parts, dtype="str").get_indexer(values)
        found = np.zeros((len(codes), len(self.parts)), dtype=np.float32)
        known = np.flatnonzero(codes >= 0)
        found[known, codes[known]] = 1.0
        return found

    def n_unknown(self, column: Any) -> int:
        """Cells whose category was not seen in training."""
        values = self.read(column)
        return int((values.notna() & ~values.isin(self.parts)).sum()) if self.parts else 0

    def describe(self) -> str:
        return f"{len(self.parts)} categories, one column each" if self.parts else FLAG_ALONE


@saved_as("table.date")
class DateEncoder(BlockEncoder):
    """Time as a line, and as places in the year, the week and the day where the rows differ in them."""

    role = "date"
    CYCLES: ClassVar[dict[str, float]] = {"year": 365.2425, "week": 7.0, "day": 1.0}  # in days

    def read(self, column: Any) -> np.ndarray:
        pd = pandas()
        if not pd.api.types.is_datetime64_any_dtype(column.dtype):
            given = column  # dates as objects, or ISO text; how other text is to be read, its table has to say
            cells = given.astype(object)
            cells = cells.where(cells.map(lambda cell: isinstance(cell, (date, str, np.datetime64))), None)
            column = pd.to_datetime(cells, errors="coerce", utc=True, format="ISO8601")
            wrong = np.asarray(column.isna()) & ~np.asarray(given.isna())
            if wrong.any():
                raise CellError(f"holds {example(given, wrong)}, where dates are expected")
        if column.dt.tz is not None:
            column = column.dt.tz_convert("UTC").dt.tz_localize(None)
        return column.to_numpy(dtype="datetime64[us]")

    def fit_values(self, values: np.ndarray, missing: np.ndarray) -> None:
        known = spread_out(values[~missing])
        self.start = int(known.min().astype(np.int64)) if len(known) else 0
        days = self._days(known)
        last = float(days.max(initial=0.0))
        self.line = float(days.std()) if len(days) else 0.0
        self.cycles = [
            name for name, period in self.CYCLES.items() if last >= 2 * period and np.ptp((days + 1e-9) % period) > 1e-6
        ]
        self.parts = ["time"] * (self.line > 0)
        self.parts += [f"{wave} of the {name}" for name in self.cycles for wave in ("sine", "cosine")]
        self.block = Block(self.vectors(known)) if self.parts else None

    def _days(self, values: np.ndarray) -> np.ndarray:
        return np.asarray((values.astype(np.int64) - float(self.start)) / 86_400e6)

    def vectors(self, values: np.ndarray) -> np.ndarray:
        days = self._days(values)
        found = [days / self.line] if self.line > 0 else []
        for name in self.cycles:
            # from the start of 1970, a Thursday: the same angle for the same hour of any day
            angles = 2 * np.pi * (values.astype(np.int64) / 86_400e6 / self.CYCLES[name] % 1.0)
            found += [np.sin(angles), np.cos(angles)]
        return np.clip(np.stack(found, axis=1), -1e6, 1e6)

    def describe(self) -> str:
        if not self.parts:
            return "one date only, or missing: the flag alone"
        return "time on a line" + "".join(f", place in the {name}" for name in self.cycles)


@saved_as("table.time")
class TimeEncoder(BlockEncoder):
    """Times of day as places on the clock: midnight is near to both of its sides."""

    role = "date"

    def read(self, column: Any) -> np.ndarray:
        found = np.full(len(column), np.nan)
        for row, value in enumerate(column.to_numpy(dtype=object)):
            if isinstance(value, time):
                found[row] = value.hour + value.minute / 60 + (value.second + value.microsecond / 1e6) / 3600
        wrong = np.isnan(found) & ~np.asarray(column.isna())
        if wrong.any():
            raise CellError(f"holds {example(column, wrong)}, where times of day are expected")
        return found

    def fit_values(self, values: np.ndarray, missing: np.ndarray) -> None:
        known = spread_out(values[~missing])
        varies = len(known) > 0 and known.min() < known.max()
        self.parts = [f"{wave} of the day" for wave in ("sine", "cosine")] if varies else []
        self.block = Block(self.vectors(known)) if varies else None

    def vectors(self, values: np.ndarray) -> np.ndarray:
        angles = 2 * np.pi * values / 24
        return np.stack([np.sin(angles), np.cos(angles)], axis=1)

    def describe(self) -> str:
        return "place in the day" if self.parts else "one time only, or missing: the flag alone"


@saved_as("table.block")
class Block:
    """Columns that keep their proportions: centred, with a variance of the root of their effective dimensions."""

    FIT_ROWS, FEWEST_FIT_ROWS, FIT_NUMBERS = 5000, 200, 2**26  # fewer rows where they are wide
    FARTHEST = 1e3

    def __init__(self, values: np.ndarray, most: float = np.inf) -> None:
        rows = min(self.FIT_ROWS, max(self.FEWEST_FIT_ROWS, self.FIT_NUMBERS // max(1, values.shape[1])))
        values = spread_out(values, rows).astype(np.float64)
        self.unit = float(np.abs(values).max(initial=0.0)) or 1.0
        values /= self.unit
        self.centre = values.mean(axis=0) if len(values) else np.zeros(values.shape[1])
        values -= self.centre
        with np.errstate(under="ignore"):
            # of both products the smaller one: they have the same trace and the same sum of squares
            product = (values @ values.T if len(values) < values.shape[1] else values.T @ values) / max(1, len(values))
            total, squares = float(np.trace(product)), float((product**2).sum())
        self.varies = total > 1e-18 and squares > 0
        weight = min(total / np.sqrt(squares), most) if self.varies else 1.0  # the root of the effective dimensions
        self.scale = float(np.sqrt(total / weight)) if self.varies else 1.0

    def __call__(self, values: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", under="ignore"):
            found = (values.astype(np.float64) / self.unit - self.centre) / self.scale
        return np.clip(found, -self.FARTHEST, self.FARTHEST)
