"""The different texts of a column, which of them stand for nothing, and how they were read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from otprop.files._error import need

SPREADSHEET_ERRORS = ("#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!")
MISSING_WORDS = (  # not "none", "NONE" or "na", which are classes and categories of some
    *("NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NAN", "NULL", "Null", "null", "None", "NaT"),
    *SPREADSHEET_ERRORS,
)
MISSING = ("", *MISSING_WORDS)
MISSING_NUMBERS = (*MISSING, "?", "-", "--", "\u2013", "\u2014", ".", "none", "NONE", "na")  # in text, words

_SOME = 200  # words looked at first


@dataclass(frozen=True)
class Reading:
    """How the cells of a column were read, so that those of a later file are read in the same way.

    Attributes
    ----------
    kind : "number", "truth", "date", "time" or "text"
    form : str, of numbers the decimal sign, of dates "ISO8601" or a format of `strptime`; empty where there is none
    unit : str, "%" or a sign of money beside the numbers, "zone" for dates with a time zone; empty for none
    """

    kind: str
    form: str = ""
    unit: str = ""


@dataclass
class Typed:
    """A column of a frame, how it was read, and what a user should know about it."""

    values: Any  # what pandas.Series takes
    reading: Reading
    notes: list[str] = field(default_factory=list)


class Words:
    """The different texts of a column, so that each is looked at once."""

    def __init__(self, words: Any, codes: np.ndarray) -> None:
        self.words = words
        self.codes = codes
        self.counts = np.bincount(codes, minlength=len(words))

    @classmethod
    def of(cls, text: Any) -> Words:
        """The words of a column, without blanks around them, in the order of their first rows."""
        encoded = text.dictionary_encode()
        words = need("pyarrow.compute").utf8_trim_whitespace(encoded.dictionary)
        return cls(words, encoded.indices.to_numpy(zero_copy_only=False))

    def some(self) -> Words:
        """Words from all over the column, to see quickly what it is not."""
        chosen = np.unique(np.linspace(0, len(self.words) - 1, _SOME).astype(np.int64))
        words = self.words.take(need("pyarrow").array(chosen))
        return Words(words, np.arange(len(words)))

    def replaced(self, words: Any) -> Words:
        """Other words in the same rows."""
        return Words(words, self.codes)

    def are_in(self, words: tuple[str, ...]) -> np.ndarray:
        """Which words are among these."""
        pc, pa = need("pyarrow.compute"), need("pyarrow")
        return _bools(pc.is_in(self.words, value_set=pa.array(words, self.words.type)))

    def match(self, pattern: str, ignore_case: bool = False) -> np.ndarray:
        """Which words have the pattern in them."""
        pc = need("pyarrow.compute")
        return _bools(pc.match_substring_regex(self.words, pattern, ignore_case=ignore_case))

    def without(self, missing: np.ndarray) -> Any:
        """The words as Arrow's text, null where they stand for something missing."""
        pa = need("pyarrow")
        return need("pyarrow.compute").if_else(pa.array(missing), pa.scalar(None, self.words.type), self.words)

    def text(self, missing: np.ndarray) -> Any:
        """All rows as pandas' text."""
        return self.without(missing).take(need("pyarrow").array(self.codes)).to_pandas()

    def word(self, number: int) -> str:
        """One of the words."""
        return str(self.words[number].as_py())

    def first(self, mask: np.ndarray) -> str:
        """The first word for which the mask is true."""
        return self.word(int(np.argmax(mask)))

    def row_of(self, word: int) -> int:
        """The first row, from 1, that has this word."""
        return int(np.argmax(self.codes == word)) + 1


def _bools(array: Any) -> np.ndarray:
    return np.array(array.to_numpy(zero_copy_only=False), dtype=bool)
