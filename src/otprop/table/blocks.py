"""Columns that are vectors: embeddings."""

from __future__ import annotations

from typing import Any

import numpy as np

from otprop._saving import saved_as
from otprop.table.columns import Block, Encoder
from otprop.table.errors import CellError
from otprop.table.numbers import NumberEncoder
from otprop.table.values import is_missing, shown, spread_out

NUMBERS_AT_ONCE = 2**23


@saved_as("table.embedding")
class EmbeddingEncoder(Encoder):
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
            found[place] = self._bounded(numbers)
            largest.append(_largest(numbers))
        return found, largest

    def _read_columns(self, frame: Any) -> tuple[np.ndarray, list[float]]:
        found, largest = np.empty(frame.shape, dtype=np.float32), []
        for place, name in enumerate(frame.columns):
            try:
                numbers = NumberEncoder().read(frame[name])
            except CellError as error:
                raise CellError(f"{error} (column {name!r})") from None
            found[:, place] = self._bounded(numbers)
            largest.append(_largest(numbers))
        return found, largest

    def _bounded(self, values: np.ndarray) -> np.ndarray:
        """Numbers in units of `unit` whose squares single precision can nearly hold, infinite ones too."""
        with np.errstate(over="ignore"):
            return np.clip(values / self.unit, -1e30, 1e30)

    def missing(self, values: np.ndarray) -> np.ndarray:
        return np.isnan(values).any(axis=1)

    def fit_values(self, values: np.ndarray, missing: np.ndarray) -> None:
        self.block = Block(spread_out(values[~missing]))
        self.parts = [str(number) for number in range(values.shape[1])] if self.block.varies else []

    def transform_values(self, values: np.ndarray, missing: np.ndarray) -> np.ndarray:
        found = np.zeros((len(values), len(self.parts)), dtype=np.float32)
        if self.parts:
            at_once = max(1, NUMBERS_AT_ONCE // len(self.parts))
            for start in range(0, len(values), at_once):
                known = start + np.flatnonzero(~missing[start : start + at_once])
                found[known] = self.block(values[known])
        return found

    def describe(self) -> str:
        return f"{len(self.parts)} numbers, scaled together"


def _largest(values: np.ndarray) -> float:
    return float(np.max(np.abs(values), where=np.isfinite(values), initial=0.0))


def _unit(sizes: list[float]) -> float:
    """The unit of numbers of these sizes: 1, unless single precision could hardly hold most of them."""
    found = sorted(size for size in sizes if size) or [1.0]
    usual = found[len(found) // 2]  # not the mean of two, which may be infinite
    return 1.0 if 1e-15 < usual < 1e15 else usual
