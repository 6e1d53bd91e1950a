"""The vectors of a table: which columns are used, as what, and the matrix they become."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from otprop._saving import saved_as
from otprop.files import listed
from otprop.table.columns import CategoryEncoder, Encoder
from otprop.table.errors import MAX_NAMED, CellError, ColumnError, Hint, NoFeaturesError, RequestError, unknown_name
from otprop.table.images import ImageEncoder, ImageModelEncoder, LocalImageModel, open_image_model
from otprop.table.kinds import IDENTIFIER, choose_encoder, follows_labels, holds_arrays, is_filler, is_plain
from otprop.table.numbers import EmbeddingEncoder, NumberEncoder, fit_numbers, transform_numbers
from otprop.table.text import LocalTextModel, TextEncoder, TextModelEncoder, open_text_model

BLOCK_NUMBERS = 2**23  # how many cells of number columns are encoded at once
SKIPPED, SKIPPED_IN_0_2 = "skipped", "left out"
IGNORED = "ignored on request"
WITH_LABEL = "filled only where the target is"
DIFFERS_WITH_LABEL = "other values in the labelled rows than elsewhere"


@saved_as("table.column_use")
@dataclass(frozen=True)
class ColumnUse:
    """What was done to a column."""

    name: str  # of an embedding in several columns, its prefix and a star
    role: str  # "number", "category", "boolean", "date", "text", "image", "embedding" or "skipped"
    why: str
    width: int  # how many features it became

    @property
    def skipped(self) -> bool:
        """Whether nothing was made of it."""
        return self.role in (SKIPPED, SKIPPED_IN_0_2)

    @property
    def is_identifier(self) -> bool:
        """Whether it was skipped because it only identifies the rows."""
        return self.skipped and self.why.startswith(IDENTIFIER)


@saved_as("table.used_column")
@dataclass
class _Used:
    """A column, or the columns of an embedding, with what makes it numbers."""

    names: list[str]
    title: str
    encoder: Encoder
    whole: bool  # the encoder takes a frame of all the columns


@saved_as("table.features", drops=("_text_model", "_image_model"))
class Features:
    """Makes the columns of a table into vectors whose distances mean something.

    Numbers are scaled robustly, categories and booleans become indicators, dates a line and cycles, text the main
    directions of its words (tf-idf, reduced), embeddings are only put on a common scale; each column
    weighs about as much as any other (`otprop.table.columns` says how). Missing values are put in the middle and
    flagged. Constant columns and identifiers are skipped, unless `only` names them.

    Parameters
    ----------
    names : sequence of str, the columns of the table
    target : str or None, the column with the labels, which is never used
    only : sequence of str or None, the columns to use, none but these; None for all
    ignore : sequence of str, or mapping of str to why, columns not to use
    embedding : str or None, the prefix of columns that are one vector; they are used even where `only` is given
    text_model : path, transformer, function or None, what makes vectors of text
    image_model : path, function or None, what makes vectors of pictures

    Attributes
    ----------
    wanted : list of str, the columns that are looked at; after fitting, those that are used
    columns : list of ColumnUse, what was done to each column, in the order of the table, after fitting
    notes : list of str, what a user should know, after fitting
    feature_names : list of str, after fitting
    """

    def __init__(
        self,
        names: Sequence[str],
        target: str | None = None,
        *,
        only: Sequence[str] | None = None,
        ignore: Sequence[str] | Mapping[str, str] = (),
        embedding: str | None = None,
        text_model: Any = None,
        image_model: Any = None,
    ) -> None:
        names = [str(name) for name in names]
        known = set(names)
        for parameter, asked in (("features", only or ()), ("ignore", ignore)):
            for name in asked:
                if name not in known:
                    raise RequestError(parameter, unknown_name("column", name, names), name)
        if only is not None and target in only:
            raise RequestError("features", "this is the target; labels cannot be learnt from themselves.", target)
        self.names, self.target, self.only = names, target, only
        self.ignore = dict(ignore) if isinstance(ignore, Mapping) else dict.fromkeys(ignore, IGNORED)
        self.prefix = embedding or None
        self._text_model = None if text_model is None else open_text_model(text_model)
        self._image_model = None if image_model is None else open_image_model(image_model)
        self.notes: list[str] = []
        unused = {target, *ignore}
        self._vector = [name for name in names if self.prefix and name.startswith(self.prefix) and name not in unused]
        if self.prefix and not self._vector:
            raise RequestError(
                "embedding", f"no column has this prefix; the columns are {listed(names, MAX_NAMED)}.", embedding
            )
        reasons = self._reasons()
        self._asked = [name for name in names if name not in reasons]
        if not self._asked:
            alone = ["the table has no column but the target"] if set(names) <= {target} else []
            raise NoFeaturesError(alone or [f"{name!r} ({why})" for name, why in reasons.items()])

    @property
    def wanted(self) -> list[str]:
        if hasattr(self, "feature_names"):
            return [name for used in self._used for name in used.names]
        return list(self._asked)

    def fit(self, frame: Any, given: np.ndarray | None = None) -> Features:
        """Detect the kind of each column, and fit its encoder.

        `frame` has the columns `wanted`. `given` says which rows have a label; columns that are filled only there are
        skipped.
        """
        self.__dict__.pop("feature_names", None)
        self.check_frame(frame)
        if len(frame) == 0:
            raise ValueError("the table has no rows.")
        uses: dict[str, ColumnUse] = {name: _skipped(name, why) for name, why in self._reasons().items()}
        uses.pop(self.target or "", None)
        used: list[_Used] = []
        vector = [name for name in self._vector if not holds_arrays(frame[name])]
        if vector:
            used.append(_Used(vector, f"{self.prefix}*", EmbeddingEncoder(), True))
        with_label = self._written_with_label(frame, given, vector)
        done, asked_for = {self.target, *uses, *vector}, set(self.only or ())
        for name in self.names:
            if name in done:
                continue
            asked = name in asked_for
            found = with_label.get(name) or choose_encoder(frame[name], asked)
            if isinstance(found, TextEncoder) and self._text_model is not None:
                found = TextModelEncoder(self._text_model)
            if isinstance(found, ImageEncoder) and self._image_model is not None:
                found = ImageModelEncoder(self._image_model)
            if isinstance(found, str):
                uses[name] = _skipped(name, found)
            else:
                used.append(_Used([name], name, found, False))
        shares = self._fit_encoders(used, frame)
        for one, missing in zip(used, shares, strict=True):
            uses[one.names[0]] = _use_of(one, missing)
        place = {name: number for number, name in enumerate(self.names)}
        self._used = sorted((one for one in used if one.encoder.width), key=lambda one: place[one.names[0]])
        self.columns = [uses[name] for name in self.names if name in uses]
        self.notes = _notes_on(with_label) + _notes_on_infinite(used, frame) + _notes_on_pictures(used)
        for model, role, held in ((self._text_model, "text", "text"), (self._image_model, "image", "pictures")):
            if model is not None and not any(use.role == role for use in self.columns):
                self.notes.append(Hint("without effect: ", f"{role}_model", after=f", as no column holds {held}"))
        if not self._used:
            why = [f"{use.name!r} ({use.why})" for use in self.columns]
            known = any(use.is_identifier for use in self.columns)
            raise NoFeaturesError(why, Hint("To use one anyway, name it in ", "features", after=".") if known else None)
        self.feature_names = [name for one in self._used for name in one.encoder.feature_names(one.title)]
        return self

    def transform(self, frame: Any) -> np.ndarray:
        """The rows as vectors: finite float32 of shape (n_rows, n_features); the frame may have other columns, too."""
        self.check_frame(frame)
        found = np.empty((len(frame), len(self.feature_names)), dtype=np.float32)
        starts = np.cumsum([0, *(one.encoder.width for one in self._used)])
        plain = set()
        for block in _number_blocks(self._used, frame):
            plain.update(block)
            columns = [self._used[place] for place in block]
            values = _matrix(columns, frame)
            vary = np.array([bool(one.encoder.parts) for one in columns])
            encoders: Any = [one.encoder for one in columns if one.encoder.parts]
            found[:, starts[block][vary]] = transform_numbers(encoders, values[vary]).T
            flagged = np.array([one.encoder.flagged for one in columns])
            found[:, starts[1:][block][flagged] - 1] = np.isnan(values[flagged]).T
        for place, one in enumerate(self._used):
            if place not in plain:
                found[:, starts[place] : starts[place + 1]] = _call(one.encoder.transform, one, frame)
        return found

    def notes_on_new(self, frame: Any) -> list[str]:
        """What is to be known of new rows: columns with categories that the fit did not see."""
        unknown = [(one.title, one.encoder.n_unknown(frame[one.names[0]])) for one in self._used
                   if isinstance(one.encoder, CategoryEncoder)]  # fmt: skip
        found = [f"{name!r} ({count} of {len(frame)} rows)" for name, count in unknown if count]
        pictures = _notes_on_pictures(self._used)
        if not found:
            return pictures
        more = f" and {len(found) - MAX_NAMED} more columns" if len(found) > MAX_NAMED else ""
        unseen = f"categories that the model has not seen, which it ignores: {', '.join(found[:MAX_NAMED])}{more}"
        return [unseen, *pictures]

    def fit_transform(self, frame: Any) -> np.ndarray:
        """`fit`, then `transform`: a row gets the same vector, now or later."""
        return self.fit(frame).transform(frame)

    @staticmethod
    def _fit_encoders(used: list[_Used], frame: Any) -> list[float]:
        """Fit the encoders, plain numbers as blocks; the share of missing values of each."""
        shares = [np.nan] * len(used)
        for block in _number_blocks(used, frame):
            encoders, missing = fit_numbers(_matrix([used[place] for place in block], frame))
            for place, encoder, share in zip(block, encoders, missing.tolist(), strict=True):
                used[place].encoder, shares[place] = encoder, share
        for place, one in enumerate(used):
            if np.isnan(shares[place]):
                shares[place] = _call(one.encoder.fit, one, frame, ValueError)
        return shares

    def _written_with_label(self, frame: Any, given: np.ndarray | None, vector: Sequence[str]) -> dict[str, str]:
        """Columns that are filled only, or nearly only, in rows with a label, unless they were asked for, and why.

        A value that stands in nearly all other rows ("unknown", "no", 0) fills nothing.
        """
        if given is None or given.all() or not given.any():
            return {}
        excepted = {*vector, *(self.only or ())}
        candidates = [name for name in self._asked if name not in excepted]
        filled = ~frame[candidates].isna().to_numpy(dtype=bool)
        for place, name in enumerate(candidates):
            if frame[name].dtype.kind == "O":
                filled[:, place] &= np.array([not isinstance(cell, str) or bool(cell.strip()) for cell in frame[name]])
        found: dict[str, str] = {}
        for place, name in enumerate(candidates):
            filler = is_filler(frame[name], given)
            if follows_labels(filled[:, place] & ~filler, given):
                found[name] = DIFFERS_WITH_LABEL if (filled[:, place] & filler).any() else WITH_LABEL
        return found

    def _reasons(self) -> dict[str, str]:
        """Columns that are not looked at, and why."""
        reasons: dict[str, str] = {}
        wanted = {*(self.names if self.only is None else self.only), *self._vector}
        for name in self.names:
            if name == self.target:
                reasons[name] = "the target"
            elif name in self.ignore:
                reasons[name] = self.ignore[name]
            elif name not in wanted:
                reasons[name] = "not among the columns asked for"
        return reasons

    def check_fitted(self) -> None:
        """Raise an error unless the parts of a fitted object, which may come from a file, fit together."""
        widths = [one.encoder.width for one in self._used]
        texts = all(isinstance(name, str) for name in self.wanted)
        if not texts or min(widths, default=0) < 0 or sum(widths) != len(self.feature_names):
            raise ValueError("the columns and the features do not agree.")
        for one in self._used:
            one.encoder.check_saved()

    def use_models(self, text_model: Any, image_model: Any) -> list[str]:
        """Give features from a file their local models again, by their paths; returns what a user should know.

        Raises RequestError unless they are those of the fit.
        """
        wrong = "expected the path of the local model that this model was made with."
        notes: list[str] = []
        for parameter, asked, kind, open_model, local in (
            ("text_model", text_model, TextModelEncoder, open_text_model, LocalTextModel),
            ("image_model", image_model, ImageModelEncoder, open_image_model, LocalImageModel),
        ):
            encoders: list[Any] = [one.encoder for one in self._used if isinstance(one.encoder, kind)]
            if asked is not None and not encoders:
                notes.append(Hint("without effect: ", parameter, after=", as the model was made without one"))
                continue
            model = None if asked is None else open_model(asked)
            if model is not None and not isinstance(model, local):
                raise RequestError(parameter, wrong)
            for encoder in encoders:
                encoder.use(model)
        return notes

    def check_names(self, names: Sequence[str]) -> None:
        """Refuse a table that lacks columns, naming all of them."""
        there = set(names)
        lacking = [name for name in self.wanted if name not in there]
        if lacking:
            raise ColumnError(
                lacking[0],
                f"the table lacks {len(lacking)} of the {len(self.wanted)} columns needed: "
                f"{listed(lacking, MAX_NAMED)}; it has {listed(names, MAX_NAMED)}.",
            )

    def check_frame(self, frame: Any) -> None:
        """Refuse a frame that lacks columns or has several of one name."""
        counts = Counter(str(name) for name in frame.columns)
        twice = sorted(name for name, count in counts.items() if count > 1)
        if twice:
            statement = f"the table has several columns with the name {listed(twice, MAX_NAMED)}; rename them."
            raise ColumnError(twice[0], statement)
        self.check_names(list(counts))


def _skipped(name: str, why: str) -> ColumnUse:
    return ColumnUse(name, SKIPPED, why, 0)


def _use_of(used: _Used, missing: float) -> ColumnUse:
    encoder = used.encoder
    if encoder.width == 0:
        return _skipped(used.title, "constant")
    shown = f"{100 * missing:.0f} %" if missing >= 0.01 else "less than 1 %"
    why = encoder.describe() + (f"; {shown} missing, flagged" if encoder.flagged else "")
    return ColumnUse(used.title, encoder.role, why, encoder.width)


def _call(method: Any, used: _Used, frame: Any, errors: type[Exception] = CellError) -> Any:
    """Call a method of an encoder with its column; name the column in `errors`."""
    try:
        return method(frame[used.names] if used.whole else frame[used.names[0]])
    except errors as error:
        raise ColumnError(used.title, f"column {used.title!r} {error}.") from None


def _number_blocks(used: Sequence[_Used], frame: Any) -> list[list[int]]:
    """Places of columns of plain numbers, in blocks that fit into memory."""
    types = dict(zip(frame.columns, frame.dtypes, strict=True))
    plain = [
        place for place, one in enumerate(used) if type(one.encoder) is NumberEncoder and is_plain(types[one.names[0]])
    ]
    size = max(1, BLOCK_NUMBERS // max(1, len(frame)))
    return [plain[start : start + size] for start in range(0, len(plain), size)]


def _matrix(used: Sequence[_Used], frame: Any) -> np.ndarray:
    """Columns of plain numbers, of shape (n_columns, n_rows)."""
    return np.ascontiguousarray(frame[[one.names[0] for one in used]].to_numpy(dtype=np.float64).T)


def _notes_on(with_label: Mapping[str, str]) -> list[str]:
    notes: list[str] = []
    for why, one, several in ((WITH_LABEL, "is", "are"), (DIFFERS_WITH_LABEL, "has", "have")):
        columns = [name for name, reason in with_label.items() if reason == why]
        if columns:
            verb, skipped = (one, "is") if len(columns) == 1 else (several, "are")
            reason = f"{listed(columns, MAX_NAMED)} {verb} {why}, as if written with the label, and {skipped} skipped"
            notes.append(Hint(f"{reason}; to use one anyway, name it in ", "features"))
    return notes


def _notes_on_pictures(used: Sequence[_Used]) -> list[str]:
    """A note on pictures that were not read."""
    return [f"column {one.title!r}: {note}" for one in used for note in getattr(one.encoder, "notes", ())]


def _notes_on_infinite(used: Sequence[_Used], frame: Any) -> list[str]:
    """A note on columns with infinite numbers, which are squashed like outliers."""
    counts: dict[int, int] = {}
    for block in _number_blocks(used, frame):
        infinite = np.isinf(_matrix([used[place] for place in block], frame)).sum(axis=1)
        counts.update(zip(block, infinite.tolist(), strict=True))
    for place, one in enumerate(used):
        if place not in counts and type(one.encoder) is NumberEncoder:
            counts[place] = int(np.isinf(one.encoder.read(frame[one.names[0]])).sum())
    found = [
        f"{used[place].title!r} ({counts[place]} of {len(frame)} rows)" for place in sorted(counts) if counts[place]
    ]
    if not found:
        return []
    names = listed(found, MAX_NAMED, quoted=False)
    return [f"infinite numbers count as outliers beyond all others of their column: {names}"]
