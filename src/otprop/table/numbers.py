"""Columns of numbers, one by one or all of a table in one block, and columns that are vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from otprop._saving import saved_as
from otprop._validation import is_missing
from otprop.table.columns import (
    FLAG_ALONE,
    Block,
    BlockEncoder,
    Encoder,
    example,
    pandas,
    shown,
    spread_out,
)
from otprop.table.errors import CellError

LIMIT = 3.0  # of squashed numbers, in quartile ranges: outliers keep their side, not their distance
MIN_SPREAD = 0.2  # of squashed numbers; what varies less, such as a rare event, is not scaled up further
FAR = 1e300


@saved_as("table.number")
class NumberEncoder(Encoder):
    """Numbers minus their median, in quartile ranges, softly limited, with a variance of about one."""

    role = "number"

    def read(self, column: Any) -> np.ndarray:
        pd = pandas()
        if pd.api.types.is_timedelta64_dtype(column.dtype):
            column = column.dt.total_seconds()
        numbers = pd.to_numeric(column, errors="coerce")
        wrong = np.asarray(numbers.isna()) & ~np.asarray(column.isna())
        if wrong.any():
            raise CellError(f"holds {example(column, wrong)}, where numbers are expected")
        return np.asarray(numbers.to_numpy(dtype=np.float64, na_value=np.nan))

    def fit_values(self, values: np.ndarray, missing: np.ndarray) -> None:
        known = spread_out(values[np.isfinite(values)])
        self._set(*(part.tolist() for part in _statistics(known[None, :] if len(known) else np.zeros((1, 1)))))

    def _set(self, varies: list[bool], *statistics: list[float], place: int = 0) -> None:
        self.parts = [""] if varies[place] else []
        self.centre, self.spread, self.mean, self.scale = (part[place] for part in statistics)

    def transform_values(self, values: np.ndarray, missing: np.ndarray) -> np.ndarray:
        if not self.parts:
            return np.empty((len(values), 0))
        values = np.where(missing, self.centre, values)
        return ((_squash(values, self.centre, self.spread) - self.mean) / self.scale)[:, None]

    def describe(self) -> str:
        return "scaled by median and quartiles" if self.parts else FLAG_ALONE


def fit_numbers(values: np.ndarray) -> tuple[list[NumberEncoder], np.ndarray]:
    """Fit an encoder for each row of `values`, a column of a table; also the share of missing values of each."""
    missing = np.isnan(values)
    encoders = [NumberEncoder() for _ in values]
    finite = np.isfinite(values).all(axis=1)
    whole = np.flatnonzero(finite)
    if len(whole):
        statistics = [part.tolist() for part in _statistics(np.ascontiguousarray(spread_out(values[whole].T).T))]
        for place, number in enumerate(whole):
            encoders[number]._set(*statistics, place=place)
    for number in np.flatnonzero(~finite):
        encoders[number].flagged = bool(missing[number].any())
        encoders[number].fit_values(values[number], missing[number])
    return encoders, missing.mean(axis=1)


def transform_numbers(encoders: Sequence[NumberEncoder], values: np.ndarray) -> np.ndarray:
    """The features of columns that vary, of shape (n_columns, n_rows); `values` has the same shape."""
    centre, spread, mean, scale = (
        np.array([getattr(encoder, name) for encoder in encoders])[:, None]
        for name in ("centre", "spread", "mean", "scale")
    )
    values = np.where(np.isnan(values), centre, values)
    return np.asarray((_squash(values, centre, spread) - mean) / scale)


def _statistics(known: np.ndarray) -> tuple[np.ndarray, ...]:
    """Of each row: whether it varies, and then centre, spread, mean and scale; all values are finite."""
    varies = known.min(axis=1) < known.max(axis=1)
    unit = np.where(np.abs(known).max(axis=1) > FAR, 4.0, 1.0)  # differences of such numbers can be infinite
    low, centre, high = unit * np.quantile(known / unit[:, None], [0.25, 0.5, 0.75], axis=1)
    with np.errstate(over="ignore"):
        spread = np.subtract(high, low)
        for row in np.flatnonzero(varies & ~((spread > 0) & (spread < np.inf))):
            # where most rows have the same value: the usual distance of the others from it
            apart = np.abs(known[row] - centre[row])
            spread[row] = np.minimum(np.median(apart[apart > 0]), np.finfo(float).max)
    centre, spread = np.where(varies, centre, 0.0), np.where(varies, spread, 1.0)
    squashed = _squash(known, centre[:, None], spread[:, None])
    mean = np.where(varies, squashed.mean(axis=1), 0.0)
    scale = np.where(varies, np.maximum(squashed.std(axis=1), MIN_SPREAD), 1.0)
    return varies, centre, spread, mean, scale


def _squash(values: np.ndarray, centre: Any, spread: Any) -> np.ndarray:
    with np.errstate(over="ignore", under="ignore"):
        z = np.clip((values - centre) / spread, -1e100, 1e100)
    return np.asarray(z / np.hypot(1.0, z / LIMIT))


@saved_as("table.embedding")
class EmbeddingEncoder(BlockEncoder):
    """Several columns of numbers, or one of arrays, that keep their proportions."""

    role = "embedding"
    unit = 1.0  # of models that were saved before there was one, too

    def read(self, column: Any) -> np.ndarray:
        values, sizes = self._read(column)
        if not hasattr(self, "block"):  # it is fitted now
            self.unit = _unit(sizes)
            if self.unit != 1.0:
                values, _ = self._read(column)
        return values

    def _read(self, column: Any) -> tuple[np.ndarray, list[float]]:
        """The numbers in units of `unit`, and the largest finite one of each column or row before that."""
        if hasattr(column, "columns"):
            return self._read_columns(column)
        cells = column.to_numpy(dtype=object)
        known = [place for place, cell in enumerate(cells) if not is_missing(cell)]
        sizes = {np.size(cells[place]) for place in known}
        size = getattr(self, "size", max(sizes, default=0))
        if sizes - {size}:
            raise CellError(f"holds arrays of {min(sizes - {size})} numbers, where {size} are expected")
        self.size = size
        found, largest = np.full((len(cells), size), np.nan, dtype=np.float32), []
        for place in known:
            try:
                with np.errstate(over="ignore"):  # of numbers beyond double precision
                    numbers = np.asarray(cells[place], dtype=np.float64).ravel()
            except (TypeError, ValueError):
                raise CellError(f"holds {shown(cells[place])}, where arrays of numbers are expected") from None
            found[place], most = self._bounded(numbers)
            largest.append(most)
        return found, largest

    def _read_columns(self, frame: Any) -> tuple[np.ndarray, list[float]]:
        found, largest = np.empty(frame.shape, dtype=np.float32), []
        for place, name in enumerate(frame.columns):
            try:
                numbers = NumberEncoder().read(frame[name])
            except CellError as error:
                raise CellError(f"{error} (column {name!r})") from None
            found[:, place], most = self._bounded(numbers)
            largest.append(most)
        return found, largest

    def _bounded(self, values: np.ndarray) -> tuple[np.ndarray, float]:
        """Numbers in units of `unit` whose squares single precision can nearly hold, and the largest finite one."""
        with np.errstate(over="ignore"):
            found = np.clip(values / self.unit, -1e30, 1e30)
        return found, float(np.max(np.abs(values), where=np.isfinite(values), initial=0.0))

    def missing(self, values: np.ndarray) -> np.ndarray:
        return np.isnan(values).any(axis=1)

    def fit_values(self, values: np.ndarray, missing: np.ndarray) -> None:
        self.block = Block(spread_out(values[~missing]))
        self.parts = [str(number) for number in range(values.shape[1])] if self.block.varies else []

    def describe(self) -> str:
        return f"{len(self.parts)} numbers, scaled together"


def _unit(sizes: list[float]) -> float:
    """The unit of numbers of these sizes: 1, unless single precision could hardly hold most of them."""
    found = sorted(size for size in sizes if size) or [1.0]
    usual = found[len(found) // 2]  # not the mean of two, which may be infinite
    return 1.0 if 1e-15 < usual < 1e15 else usual
