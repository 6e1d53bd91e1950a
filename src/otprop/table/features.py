"""The vectors of a table: which columns are used, as what, and the matrix they become."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, time
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from otprop._saving import saved_as
from otprop.files import listed
from otprop.labelling.methods import suggest
from otprop.table.blocks import EmbeddingEncoder, TextEncoder
from otprop.table.columns import (
    BooleanEncoder,
    CategoryEncoder,
    DateEncoder,
    Encoder,
    NumberEncoder,
    TimeEncoder,
)
from otprop.table.values import has_blanks, is_missing, texts_of

MOST_CATEGORIES = 40  # with more different values a column is read as text
LEAST_ROWS_IN_ORDER = 10  # from so many rows on, row numbers may have gaps
GAPS = 0.2  # of the numbers between the first and the last row number
MOST_NAMED = 20
LEFT_OUT = "left out"
IDENTIFIER = "identifier"
_ID = re.compile(r"(?i:(^|[\W_])(id|index|row|row ?number|nr|no)\.?$|^unnamed: \d+$)|[a-z]I[Dd]$")


@saved_as("table.column_use")
@dataclass(frozen=True)
class ColumnUse:
    """What was done to a column.

    Attributes
    ----------
    name : str, of the column; of an embedding in several columns, its prefix and a star
    role : "number", "category", "boolean", "date", "text", "embedding" or "left out"
    why : str
    width : int, how many features it became
    """

    name: str
    role: str
    why: str
    width: int

    @property
    def left_out(self) -> bool:
        """Whether nothing was made of it."""
        return self.role == LEFT_OUT

    @property
    def is_identifier(self) -> bool:
        """Whether it was left out for telling the rows apart and nothing else."""
        return self.left_out and self.why.startswith(IDENTIFIER)


@saved_as("table.used_column")
@dataclass
class _Used:
    """A column, or the columns of an embedding, with what makes it numbers."""

    names: list[str]
    title: str
    encoder: Encoder
    whole: bool  # the encoder takes a frame of all the columns


@saved_as("table.features")
class Features:
    """Makes the columns of a table into vectors whose distances mean something.

    Numbers are scaled robustly, categories and truth values become indicators, dates a line and cycles, text the main
    directions of its words (skrub's StringEncoder), embeddings stay as they are but for a common scale; each column
    weighs about as much as any other (`otprop.table.columns` says how). Missing values are put in the middle and
    flagged. Constant columns and identifiers are left out, unless `only` names them.

    Parameters
    ----------
    names : sequence of str, the columns of the table
    target : str or None, the column with the labels, which is never used
    only : sequence of str or None, the columns to use, none but these; None for all
    ignore : sequence of str, columns not to use
    embedding : str or None, the prefix of columns that are one vector; they are used even where `only` is given

    Attributes
    ----------
    wanted : list of str, the columns that are looked at; after fitting, those that are used
    columns : list of ColumnUse, what was done to each column, in the order of the table, after fitting
    feature_names : list of str, after fitting
    """

    def __init__(
        self,
        names: Sequence[str],
        target: str | None = None,
        *,
        only: Sequence[str] | None = None,
        ignore: Sequence[str] = (),
        embedding: str | None = None,
    ) -> None:
        names = [str(name) for name in names]
        for option, asked in (("--features", only or ()), ("--ignore", ignore)):
            for name in asked:
                if name not in names:
                    raise ValueError(f"{option} {name}: {suggest('column', name, names)}")
        if only is not None and target in only:
            raise ValueError(f"--features {target}: this is the target; the labels cannot be what they are told by.")
        self.names, self.target, self.only, self.ignore = names, target, only, list(ignore)
        self.prefix = embedding or None
        self._vector = [
            name for name in names if self.prefix and name.startswith(self.prefix) and name not in (target, *ignore)
        ]
        if self.prefix and not self._vector:
            raise ValueError(f"--embedding {embedding}: no column starts so; there are {listed(names, MOST_NAMED)}.")
        self._asked = [name for name in names if not self._not_asked(name)]
        if not self._asked:
            raise ValueError(
                f"no column is left to label by: {listed(self._reasons(names), MOST_NAMED, quoted=False)}."
            )

    @property
    def wanted(self) -> list[str]:
        if hasattr(self, "feature_names"):
            return [name for used in self._used for name in used.names]
        return list(self._asked)

    def fit(self, frame: Any) -> Features:
        """Learn what each column becomes.

        Parameters
        ----------
        frame : pandas.DataFrame, with the columns `wanted`

        Returns
        -------
        self
        """
        self.__dict__.pop("feature_names", None)
        self._check_columns(frame)
        if len(frame) == 0:
            raise ValueError("the table has no rows.")
        self._used: list[_Used] = []
        uses: dict[str, ColumnUse] = {}
        vector = [name for name in self._vector if not _holds_arrays(frame[name])]
        if vector:
            uses[vector[0]] = self._fit_one(_Used(vector, f"{self.prefix}*", EmbeddingEncoder(), True), frame)
        for name in self.names:
            if name in vector or name == self.target:
                continue
            reason = self._not_asked(name)
            if reason:
                uses[name] = ColumnUse(name, LEFT_OUT, reason, 0)
                continue
            found = _choose(frame[name], asked=self.only is not None and name in self.only)
            if isinstance(found, str):
                uses[name] = ColumnUse(name, LEFT_OUT, found, 0)
            else:
                uses[name] = self._fit_one(_Used([name], name, found, False), frame)
        self.columns = [uses[name] for name in self.names if name in uses]
        self._used.sort(key=lambda used: self.names.index(used.names[0]))
        if not self._used:
            reasons = [f"{use.name!r} ({use.why})" for use in self.columns]
            raise ValueError(f"no column is left to label by: {listed(reasons, MOST_NAMED, quoted=False)}.")
        self.feature_names = [name for used in self._used for name in used.encoder.feature_names(used.title)]
        return self

    def transform(self, frame: Any) -> np.ndarray:
        """The rows as vectors.

        Parameters
        ----------
        frame : pandas.DataFrame, with the columns `wanted`, in any order, and any others

        Returns
        -------
        ndarray of float32, shape (n_rows, n_features), finite
        """
        self._check_columns(frame)
        found = np.empty((len(frame), len(self.feature_names)), dtype=np.float32)
        start = 0
        for used in self._used:
            stop = start + used.encoder.width
            found[:, start:stop] = self._call(used.encoder.transform, used, frame)
            start = stop
        return found

    def fit_transform(self, frame: Any) -> np.ndarray:
        """`fit`, then `transform`: a row gets the same vector, now or later.

        Parameters
        ----------
        frame : pandas.DataFrame

        Returns
        -------
        ndarray of float32, shape (n_rows, n_features), finite
        """
        return self.fit(frame).transform(frame)

    def _fit_one(self, used: _Used, frame: Any) -> ColumnUse:
        encoder = used.encoder
        self._call(encoder.fit, used, frame)
        if encoder.width == 0:
            return ColumnUse(used.title, LEFT_OUT, "constant", 0)
        self._used.append(used)
        return ColumnUse(used.title, encoder.role, _why(encoder, used, frame), encoder.width)

    @staticmethod
    def _call(what: Any, used: _Used, frame: Any) -> Any:
        try:
            return what(frame[used.names] if used.whole else frame[used.names[0]])
        except ValueError as error:
            raise ValueError(f"column {used.title!r} {error}.") from None

    def _not_asked(self, name: str) -> str:
        """Why a column is not looked at; empty where it is."""
        if name == self.target:
            return "the target"
        if name in self.ignore:
            return "asked by --ignore"
        if self.only is not None and name not in self.only and name not in self._vector:
            return "not among --features"
        return ""

    def _reasons(self, names: Sequence[str]) -> list[str]:
        return [f"{name!r} ({self._not_asked(name)})" for name in names] or ["the table has none"]

    def check_names(self, names: Sequence[str]) -> None:
        """Refuse a table that lacks columns, naming all of them.

        Parameters
        ----------
        names : sequence of str, the columns of the table
        """
        lacking = [name for name in self.wanted if name not in names]
        if lacking:
            raise ValueError(
                f"the table lacks {len(lacking)} of the {len(self.wanted)} columns needed: "
                f"{listed(lacking, MOST_NAMED)}; it has {listed(names, MOST_NAMED)}."
            )

    def _check_columns(self, frame: Any) -> None:
        known = [str(name) for name in frame.columns]
        twice = sorted({name for name in known if known.count(name) > 1})
        if twice:
            raise ValueError(f"the table has several columns with the name {listed(twice, MOST_NAMED)}; rename them.")
        self.check_names(known)


def _choose(column: Any, asked: bool) -> Encoder | str:
    """What a column is, or why it is left out; one that was asked for is left out only if there is nothing in it."""
    if bool(column.isna().all()):
        return "no value in any row"
    encoder = _by_type(column)
    if encoder is None:
        return "nested values; only arrays of numbers can be used"
    if isinstance(encoder, NumberEncoder):
        return f"{IDENTIFIER}: row numbers" if not asked and _numbers_the_rows(column) else encoder
    if not isinstance(encoder, TextEncoder):
        return encoder
    return _by_values(texts_of(column), asked)


def _by_values(text: Any, asked: bool) -> Encoder | str:
    """Text, categories or an identifier."""
    text = text.dropna()
    n_different, n_known = int(text.nunique()), len(text)
    if n_known == 0:
        return "no value in any row"
    if n_different <= min(MOST_CATEGORIES, n_known / 2):
        return CategoryEncoder()
    if bool(has_blanks(text).mean() > 0.5):
        return TextEncoder()
    if not asked and n_different == n_known and n_known > 2:
        return f"{IDENTIFIER}: a different value in every row"
    return CategoryEncoder() if n_different <= MOST_CATEGORIES else TextEncoder()


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
    if not types.is_object_dtype(kind) and not _holds_arrays(column):
        return TextEncoder()
    if _holds_arrays(column):
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


def _holds_arrays(column: Any) -> bool:
    if column.dtype.kind != "O":
        return False
    first = column.iloc[int(np.argmax(column.notna().to_numpy()))] if len(column) else None
    return isinstance(first, (list, tuple, np.ndarray))


def _numbers_the_rows(column: Any) -> bool:
    """Whether whole numbers count the rows: nearly all numbers between the first and the last, each once, in any order.

    Numbers with wider gaps that only rise or fall do so if the column is called an id: a file may be a part of another.
    """
    from pandas.api import types

    known = column.dropna()
    if not types.is_integer_dtype(column.dtype) or len(known) < 3 or not known.is_unique:
        return False
    between = int(known.max()) - int(known.min()) + 1
    if len(known) < LEAST_ROWS_IN_ORDER:
        return between == len(known)
    in_order = bool(known.is_monotonic_increasing or known.is_monotonic_decreasing)
    return len(known) >= (1 - GAPS) * between or (in_order and bool(_ID.search(str(column.name))))


def _why(encoder: Encoder, used: _Used, frame: Any) -> str:
    if not encoder.flagged:
        return encoder.why()
    missing = encoder.missing(encoder.read(frame[used.names] if used.whole else frame[used.names[0]])).mean()
    return f"{encoder.why()}; {_percent(float(missing))} missing, flagged"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.01 else "less than 1 %"
