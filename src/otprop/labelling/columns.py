"""Columns as numbers: a class for each kind of column, each learnt once and then applied to any rows.

Distances between rows decide who is a neighbour, so every column is to weigh about the same: a number has a variance
of about one, which is a mean squared distance of two; two different categories, or truth values, have a squared
distance of two. A block of several numbers that belong together (text, an embedding, a date) has a variance of the
square root of its effective dimensions, so that it puts the pairs of rows in order as strongly as one number does:
the squared distance of a block varies the less, the more dimensions it has.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

ROWS_LEARNT_FROM = 100_000  # quantiles and means come from so many rows, evenly spread
SQUASHED = 3.0  # where numbers end, in quartile ranges: outliers keep their side, not their distance
LEAST_SPREAD = 0.2  # of squashed numbers; what varies less, as do rare events, is not blown up further
FLAG = "missing"


class Encoder:
    """What all kinds of columns share: a flag where a value was missing in training, and names."""

    role: ClassVar[str]
    flagged = False
    parts: list[str]

    def fit(self, column: Any) -> None:
        """Learn from a pandas column."""
        values = self.read(column)
        missing = self.missing(values)
        self.flagged = bool(missing.any())
        self.learn(values, missing)

    def transform(self, column: Any) -> np.ndarray:
        """The column as float32 numbers, a line for each row; all finite."""
        values = self.read(column)
        missing = self.missing(values)
        found = np.empty((len(missing), self.width), dtype=np.float32)
        found[:, : len(self.parts)] = self.encode(values, missing)
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

    def why(self) -> str:
        """What was done, in a few words."""
        raise NotImplementedError

    def read(self, column: Any) -> Any:
        """The column as this kind needs it; raises ValueError with an example where that cannot be."""
        raise NotImplementedError

    def missing(self, values: Any) -> np.ndarray:
        """Which rows have no value."""
        return np.asarray(_pandas().isna(values))

    def learn(self, values: Any, missing: np.ndarray) -> None:
        """Learn from what `read` gave."""
        raise NotImplementedError

    def encode(self, values: Any, missing: np.ndarray) -> np.ndarray:
        """A line for each row and a column for each of `parts`; missing values are in the middle."""
        raise NotImplementedError


class NumberEncoder(Encoder):
    """Numbers less their median, in quartile ranges, softly cut off, with a variance of about one."""

    role = "number"

    def read(self, column: Any) -> np.ndarray:
        pandas = _pandas()
        if pandas.api.types.is_timedelta64_dtype(column.dtype):
            column = column.dt.total_seconds()
        numbers = pandas.to_numeric(column, errors="coerce")
        wrong = np.asarray(numbers.isna()) & ~np.asarray(column.isna())
        if wrong.any():
            raise ValueError(f"holds {_example(column, wrong)}, where numbers are expected")
        return np.asarray(numbers.to_numpy(dtype=np.float64, na_value=np.nan))

    def learn(self, values: np.ndarray, missing: np.ndarray) -> None:
        known = _spread_out(values[np.isfinite(values)])
        self.parts = [""] if len(known) and known.min() < known.max() else []
        self.centre, self.spread, self.mean, self.scale = 0.0, 1.0, 0.0, 1.0
        if not self.parts:
            return
        low, self.centre, high = (float(value) for value in np.quantile(known, [0.25, 0.5, 0.75]))
        with np.errstate(over="ignore"):
            apart = np.abs(known - self.centre)
            wide = high - low
        # where most rows have the same value, a usual one of the others says how wide
        self.spread = wide if 0 < wide < np.inf else float(np.minimum(np.median(apart[apart > 0]), np.finfo(float).max))
        squashed = self._squashed(known)
        self.mean, self.scale = float(squashed.mean()), max(float(squashed.std()), LEAST_SPREAD)

    def encode(self, values: np.ndarray, missing: np.ndarray) -> np.ndarray:
        if not self.parts:
            return np.empty((len(values), 0))
        return ((self._squashed(np.where(missing, self.centre, values)) - self.mean) / self.scale)[:, None]

    def _squashed(self, values: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", under="ignore"):
            z = np.clip((values - self.centre) / self.spread, -1e100, 1e100)
        return np.asarray(z / np.hypot(1.0, z / SQUASHED))

    def why(self) -> str:
        return "scaled by median and quartiles" if self.parts else "one value only, or missing: the flag alone"


class BooleanEncoder(Encoder):
    """Truth values in one column."""

    role = "boolean"
    WORDS: ClassVar[dict[str, float]] = {"true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0, "1.0": 1.0, "0.0": 0.0}

    def read(self, column: Any) -> np.ndarray:
        values = column.astype(object).where(column.notna(), None)
        truth = values.map(lambda value: np.nan if value is None else self.WORDS.get(str(value).strip().lower(), 2.0))
        found = truth.to_numpy(dtype=np.float64)
        if (found == 2.0).any():
            raise ValueError(f"holds {_example(column, found == 2.0)}, where true and false are expected")
        return np.asarray(found)

    def learn(self, values: np.ndarray, missing: np.ndarray) -> None:
        known = values[~missing]
        self.parts = [""] if len(known) and known.min() < known.max() else []

    def encode(self, values: np.ndarray, missing: np.ndarray) -> np.ndarray:
        if not self.parts:
            return np.empty((len(values), 0))
        return np.where(missing, 0.0, np.sqrt(2.0) * (values - 0.5))[:, None]

    def why(self) -> str:
        return "true or false" if self.parts else "one value only, or missing: the flag alone"


class CategoryEncoder(Encoder):
    """A column for each category, and one for the missing; a category not seen in training is none of them."""

    role = "category"

    def read(self, column: Any) -> Any:
        return as_text(column)

    def learn(self, values: Any, missing: np.ndarray) -> None:
        found = sorted(values[~missing].unique().tolist())
        self.parts = found if len(found) > 1 else []

    def encode(self, values: Any, missing: np.ndarray) -> np.ndarray:
        codes = _pandas().Index(self.parts, dtype="str").get_indexer(values)
        found = np.zeros((len(codes), len(self.parts)), dtype=np.float32)
        known = np.flatnonzero(codes >= 0)
        found[known, codes[known]] = 1.0
        return found

    def why(self) -> str:
        if not self.parts:
            return "one value only, or missing: the flag alone"
        return f"{len(self.parts)} categories, one column each"


class DateEncoder(Encoder):
    """Time as a line, and as places in the year, the week and the day where the rows differ in them."""

    role = "date"
    CYCLES: ClassVar[dict[str, float]] = {"year": 365.2425, "week": 7.0, "day": 1.0}  # in days

    def read(self, column: Any) -> np.ndarray:
        pandas = _pandas()
        if not pandas.api.types.is_datetime64_any_dtype(column.dtype):
            given = column
            column = pandas.to_datetime(given.astype(object), errors="coerce", utc=True, format="mixed")
            wrong = np.asarray(column.isna()) & ~np.asarray(given.isna())
            if wrong.any():
                raise ValueError(f"holds {_example(given, wrong)}, where dates are expected")
        if column.dt.tz is not None:
            column = column.dt.tz_convert("UTC").dt.tz_localize(None)
        return column.to_numpy(dtype="datetime64[us]")

    def learn(self, values: np.ndarray, missing: np.ndarray) -> None:
        known = _spread_out(values[~missing])
        self.start = int(known.min().astype(np.int64)) if len(known) else 0
        days = self._days(known)
        last = float(days.max(initial=0.0))
        self.line = float(days.std()) if len(days) else 0.0
        self.cycles = [
            name for name, period in self.CYCLES.items() if last >= 2 * period and np.ptp((days + 1e-9) % period) > 1e-6
        ]
        self.parts = ["time"] * (self.line > 0)
        self.parts += [f"{wave} of the {name}" for name in self.cycles for wave in ("sine", "cosine")]
        self.block = Block(self._waves(known)) if self.parts else None

    def encode(self, values: np.ndarray, missing: np.ndarray) -> np.ndarray:
        if self.block is None:
            return np.empty((len(values), 0))
        found = np.zeros((len(values), len(self.parts)))
        found[~missing] = self.block(self._waves(values[~missing]))
        return found

    def _days(self, values: np.ndarray) -> np.ndarray:
        return np.asarray((values.astype(np.int64) - float(self.start)) / 86_400e6)

    def _waves(self, values: np.ndarray) -> np.ndarray:
        days = self._days(values)
        found = [days / self.line] if self.line > 0 else []
        for name in self.cycles:
            # from the start of 1970, a Thursday: the same angle for the same hour of any day
            angles = 2 * np.pi * (values.astype(np.int64) / 86_400e6 / self.CYCLES[name] % 1.0)
            found += [np.sin(angles), np.cos(angles)]
        return np.clip(np.stack(found, axis=1), -1e6, 1e6)

    def why(self) -> str:
        if not self.parts:
            return "one date only, or missing: the flag alone"
        return "time on a line" + "".join(f", place in the {name}" for name in self.cycles)


class Block:
    """Columns that keep their proportions: centred, with a variance of the root of their effective dimensions."""

    LEARNT_FROM = 5000
    FARTHEST = 1e3

    def __init__(self, values: np.ndarray, most: float = np.inf) -> None:
        values = _spread_out(values, self.LEARNT_FROM).astype(np.float64)
        self.unit = float(np.abs(values).max(initial=0.0)) or 1.0
        self.centre = (values / self.unit).mean(axis=0) if len(values) else np.zeros(values.shape[1])
        rest = values / self.unit - self.centre
        with np.errstate(under="ignore"):
            covariance = rest.T @ rest / max(1, len(values))
            total, squares = float(np.trace(covariance)), float((covariance**2).sum())
        self.varies = total > 1e-18 and squares > 0
        weight = min(total / np.sqrt(squares), most) if self.varies else 1.0  # the root of the effective dimensions
        self.scale = float(np.sqrt(total / weight)) if self.varies else 1.0

    def __call__(self, values: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", under="ignore"):
            found = (values.astype(np.float64) / self.unit - self.centre) / self.scale
        return np.clip(found, -self.FARTHEST, self.FARTHEST)


def as_text(column: Any) -> Any:
    """The column as text, whole numbers without a point; blank cells are missing."""
    pandas = _pandas()
    if isinstance(column.dtype, pandas.CategoricalDtype):
        column = column.astype(object)
    if pandas.api.types.is_float_dtype(column.dtype):
        whole = column.dropna()
        if len(whole) and bool(((whole % 1 == 0) & (whole.abs() < 2**53)).all()):
            column = column.astype("Int64")
    text = column
    if not isinstance(column.dtype, pandas.StringDtype):
        text = column.astype(object).map(str, na_action="ignore").astype("str")
    return text.mask(text.str.strip() == "")


def _has_blanks(texts: Any) -> Any:
    return texts.str.strip().str.contains(r"\s", regex=True)


def _spread_out(values: np.ndarray, most: int = ROWS_LEARNT_FROM) -> np.ndarray:
    """At most `most` of the rows, evenly spread."""
    return values[:: max(1, -(-len(values) // most))]


def _is_missing(cell: Any) -> bool:
    return cell is None or (np.ndim(cell) == 0 and bool(_pandas().isna(cell)))


def _example(column: Any, wrong: np.ndarray) -> str:
    row = int(np.argmax(wrong))
    return f"{_shown(column.iloc[row])} in row {row + 1}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _pandas() -> Any:
    import pandas

    return pandas
