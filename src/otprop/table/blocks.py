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

    def read(self, column: Any) -> np.ndarray:
        if hasattr(column, "columns"):
            found = np.empty(column.shape, dtype=np.float32)
            for place, name in enumerate(column.columns):
                try:
                    found[:, place] = _bounded(NumberEncoder().read(column[name]))
                except CellError as error:
                    raise CellError(f"{error} (column {name!r})") from None
            return found
        cells = column.to_numpy(dtype=object)
        known = [place for place, cell in enumerate(cells) if not is_missing(cell)]
        sizes = {np.size(cells[place]) for place in known}
        size = getattr(self, "size", max(sizes, default=0))
        if sizes - {size}:
            raise CellError(f"holds arrays of {min(sizes - {size})} numbers, where {size} are expected")
        self.size = size
        found = np.full((len(cells), size), np.nan, dtype=np.float32)
        for place in known:
            try:
                found[place] = _bounded(np.asarray(cells[place], dtype=np.float64).ravel())
            except (TypeError, ValueError):
                raise CellError(f"holds {shown(cells[place])}, where arrays of numbers are expected") from None
        return found

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


def _bounded(values: np.ndarray) -> np.ndarray:
    """Numbers whose squares single precision can nearly hold, infinite ones too."""
    return np.clip(values, -1e30, 1e30)
