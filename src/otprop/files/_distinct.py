"""The distinct texts of a column, which of them mean that a value is missing, and how a column is parsed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from otprop._optional import pa, pc

SPREADSHEET_ERRORS = ("#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!")
MISSING_MARKERS = (  # not "none", "NONE" or "na", which some files use as classes and categories
    *("NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NAN", "NULL", "Null", "null", "None", "NaT"),
    *SPREADSHEET_ERRORS,
)
MISSING = ("", *MISSING_MARKERS)
MISSING_NUMBERS = (*MISSING, "?", "-", "--", "\u2013", "\u2014", ".", "none", "NONE", "na")  # values in a text column

_SAMPLE_SIZE = 200


@dataclass(frozen=True)
class Reading:
    r"""How the cells of a column are parsed, so that those of a later file are parsed in the same way.

    Attributes
    ----------
    kind : "number", "boolean", "date", "time" or "text"
    form : str, the decimal sign of numbers, "ISO8601" or a `strptime` format of dates; else empty
    unit : str, "%" or a currency beside the numbers, "zone" for dates with a time zone; else empty

    Examples
    --------
    >>> import io
    >>> from otprop.files import read_table
    >>> table = read_table(io.BytesIO(b"price,kind\n3.2%,a\n4.5%,b\n"))
    >>> table.readings()["price"]
    Reading(kind='number', form='.', unit='%')
    """

    kind: str
    form: str = ""
    unit: str = ""

    def __post_init__(self) -> None:
        if self.kind == "truth":  # in models of version 0.1.0
            object.__setattr__(self, "kind", "boolean")


@dataclass
class ParsedColumn:
    """The values of a column, how they were parsed, and notes for the user that continue after its name."""

    values: Any  # what pandas.Series takes
    reading: Reading
    notes: list[str] = field(default_factory=list)


class DistinctValues:
    """The distinct texts of a column (`values`), and for each row the index of its text (`codes`).

    `missing` says which values are missing; those in `MISSING` unless it is given.
    """

    def __init__(self, values: Any, codes: np.ndarray, missing: np.ndarray | None = None) -> None:
        self.values, self.codes = values, codes
        self.counts = np.bincount(codes, minlength=len(values))
        self.missing = self.isin(MISSING) if missing is None else missing
        self.known = ~self.missing

    @classmethod
    def from_column(cls, text: Any) -> DistinctValues:
        """The texts without blanks around them, in the order of their first rows."""
        encoded = text.dictionary_encode()
        return cls(pc.utf8_trim_whitespace(encoded.dictionary), encoded.indices.to_numpy(zero_copy_only=False))

    def sample(self) -> DistinctValues:
        """A few evenly spaced values, to rule out a type quickly."""
        chosen = np.unique(np.linspace(0, len(self.values) - 1, _SAMPLE_SIZE).astype(np.int64))
        return DistinctValues(self.values.take(pa.array(chosen)), np.arange(len(chosen)), self.missing[chosen])

    def with_values(self, values: Any) -> DistinctValues:
        """Other texts in the same rows."""
        return DistinctValues(values, self.codes, self.missing)

    def with_missing(self, missing: np.ndarray) -> DistinctValues:
        """The same texts, of which others are missing."""
        return DistinctValues(self.values, self.codes, missing)

    def isin(self, texts: tuple[str, ...]) -> np.ndarray:
        """Which values are among the texts."""
        return _bools(pc.is_in(self.values, value_set=pa.array(texts, self.values.type)))

    def match(self, pattern: str, ignore_case: bool = False) -> np.ndarray:
        """Which values contain the regular expression."""
        return _bools(pc.match_substring_regex(self.values, pattern, ignore_case=ignore_case))

    def all_known(self, mask: np.ndarray) -> bool:
        """Whether the mask is true for every value that is not missing."""
        return bool((mask | self.missing).all())

    def nulls(self) -> Any:
        """The values as an Arrow array, null where they are missing."""
        return pc.if_else(pa.array(self.missing), pa.scalar(None, self.values.type), self.values)

    def to_objects(self) -> Any:
        """The values as a pandas Series of Python text, None where they are missing."""
        return self.nulls().to_pandas().astype(object)

    def as_text(self, *notes: str) -> ParsedColumn:
        """The column as text."""
        return ParsedColumn(self.nulls().take(pa.array(self.codes)).to_pandas(), Reading("text"), list(notes))

    def value(self, index: int) -> str:
        """One of the values."""
        return str(self.values[index].as_py())

    def first(self, mask: np.ndarray) -> str:
        """The first value for which the mask is true."""
        return self.value(int(np.argmax(mask)))

    def first_row(self, index: int) -> int:
        """The first row, from 1, that has this value."""
        return int(np.argmax(self.codes == index)) + 1


def _bools(array: Any) -> np.ndarray:
    return np.array(array.to_numpy(zero_copy_only=False), dtype=bool)
