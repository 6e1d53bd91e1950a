"""Columns that become many numbers: text, and embeddings."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from otprop._saving import saved_as
from otprop.table.columns import Block, Encoder
from otprop.table.errors import CellError
from otprop.table.numbers import NumberEncoder
from otprop.table.values import has_blanks, is_missing, pandas, shown, spread_out, texts_of

ROWS_AT_ONCE, VECTORS_AT_ONCE = 100_000, 10_000
FIT_TEXTS, FIT_CHARACTERS = 20_000, 2_000_000
LONGEST_TEXT = 5000  # characters of a cell that are read
MANY_TEXTS = 100_000  # from so many different texts on, whole words instead of pieces of words
TEXT_WIDTH, TEXT_WEIGHT = 30, 2.0  # the same text in two rows must not outdo all other columns


@saved_as("table.text")
class TextEncoder(Encoder):
    """Text by skrub's StringEncoder (tf-idf of pieces of words, reduced), fitted on a sample of the texts."""

    role = "text"

    def read(self, column: Any) -> Any:
        return texts_of(column)

    def fit_values(self, values: Any, missing: np.ndarray) -> None:
        texts = values[~missing].drop_duplicates()
        self.n_texts = len(texts)
        by_words = self.n_texts >= MANY_TEXTS and bool(has_blanks(texts).mean() > 0.5)
        texts = texts.iloc[:: max(1, -(-len(texts) // FIT_TEXTS))].str.slice(0, LONGEST_TEXT)
        texts = texts[texts.str.len().cumsum() <= max(FIT_CHARACTERS, len(texts.iloc[0]))]
        self.words = by_words and bool(texts.str.contains(r"\w\w", regex=True).any())
        self._fit_encoder(_string_encoder(self.words, len(texts)), texts.reset_index(drop=True))
        found = self._encode_texts(texts)
        self.parts = [str(number) for number in range(found.shape[1])]
        self.block = Block(found, TEXT_WEIGHT)

    def transform_values(self, values: Any, missing: np.ndarray) -> np.ndarray:
        found = np.zeros((len(values), len(self.parts)), dtype=np.float32)
        for start in range(0, len(values), ROWS_AT_ONCE):
            known = start + np.flatnonzero(~missing[start : start + ROWS_AT_ONCE])
            if len(known):
                codes, texts = pandas().factorize(values.iloc[known].str.slice(0, LONGEST_TEXT))
                found[known] = self.block(self._encode_texts(pandas().Series(texts)))[codes]
        return found

    def _fit_encoder(self, encoder: Any, texts: Any) -> None:
        """Fit skrub's encoder and keep its result as plain lists and arrays."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # few texts: as many columns as there are pieces
            encoder.fit(texts)
        self.terms: list[str] = encoder.vectorizer_.get_feature_names_out().tolist()
        self.idf = np.asarray(encoder.vectorizer_.idf_)
        svd = getattr(encoder, "tsvd_", None)
        self.directions = None if svd is None else np.ascontiguousarray(svd.components_.T)

    def _encode_texts(self, texts: Any) -> np.ndarray:
        from sklearn.feature_extraction.text import TfidfVectorizer

        reader = TfidfVectorizer(vocabulary=self.terms, **_pieces(self.words))
        reader.idf_ = self.idf
        found = reader.transform(texts.tolist()).astype(np.float32)
        if self.directions is None:
            return np.asarray(found[:, :TEXT_WIDTH].toarray(), dtype=np.float64)
        return np.asarray(found @ self.directions, dtype=np.float64)

    def describe(self) -> str:
        pieces = "words" if self.words else "pieces of words"
        return f"{self.n_texts} different texts, {pieces} in {len(self.parts)} dimensions"


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
            for start in range(0, len(values), VECTORS_AT_ONCE):
                known = start + np.flatnonzero(~missing[start : start + VECTORS_AT_ONCE])
                found[known] = self.block(values[known])
        return found

    def describe(self) -> str:
        return f"{len(self.parts)} numbers, scaled together"


def _string_encoder(words: bool, n_texts: int) -> Any:
    try:
        from skrub import StringEncoder
    except ImportError:
        raise ImportError("columns of text need skrub: pip install 'otprop[files]'") from None
    return StringEncoder(n_components=max(1, min(TEXT_WIDTH, n_texts - 1)), random_state=0, **_pieces(words))


def _pieces(words: bool) -> dict[str, Any]:
    """How a text is taken apart."""
    if words:
        return {"analyzer": "word", "ngram_range": (1, 1)}
    return {"analyzer": "char_wb", "ngram_range": (3, 4)}


def _bounded(values: np.ndarray) -> np.ndarray:
    """Numbers whose squares single precision can nearly hold, infinite ones too."""
    return np.clip(values, -1e30, 1e30)
