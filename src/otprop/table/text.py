"""Text as numbers: the main directions of its words and pieces of words."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from otprop._saving import saved_as
from otprop.table.columns import Block, Encoder, has_blanks, pandas, texts_of
from otprop.table.model_vectors import unit_rows

ROWS_AT_ONCE = 100_000
FIT_TEXTS, FIT_CHARACTERS = 20_000, 2_000_000
LONGEST_TEXT = 5000  # characters of a cell that are read
MANY_TEXTS = 100_000  # from this many different texts on, words alone, without n-grams
TEXT_WIDTH, TEXT_WEIGHT = 30, 2.0  # the same text in two rows must not outdo all other columns
MORE_WORDS = 0.5  # the weight of words, relative to character n-grams
WORDS: dict[str, Any] = {"analyzer": "word", "ngram_range": (1, 1)}
PIECES: dict[str, Any] = {"analyzer": "char_wb", "ngram_range": (3, 4)}


class TextColumn(Encoder):
    """A column of text: each different text is encoded once."""

    role = "text"
    block: Block

    def read(self, column: Any) -> Any:
        return texts_of(column)

    def transform_values(self, values: Any, missing: np.ndarray) -> np.ndarray:
        found = np.zeros((len(values), len(self.parts)), dtype=np.float32)
        for start in range(0, len(values), ROWS_AT_ONCE):
            known = start + np.flatnonzero(~missing[start : start + ROWS_AT_ONCE])
            if len(known):
                codes, texts = pandas().factorize(values.iloc[known].str.slice(0, LONGEST_TEXT))
                found[known] = self.block(self.encode_texts(texts.tolist()))[codes]
        return found

    def encode_texts(self, texts: list[str]) -> np.ndarray:
        """Texts as vectors of shape (n_texts, len(parts))."""
        raise NotImplementedError


@saved_as("table.text")
class TextEncoder(TextColumn):
    """Text by tf-idf of words and of pieces of words, reduced together, fitted on a sample of the texts.

    Attributes
    ----------
    words : bool, `terms` are words and not pieces of words
    terms, idf : the terms and their inverse document frequencies
    more_words, more_idf : the words used in addition to character n-grams, and their idf
    directions : ndarray of shape (n_terms, n_parts) or None, where there are few terms
    unit : bool, every vector has unit length; not so in models of version 0.1.0
    """

    def fit_values(self, values: Any, missing: np.ndarray) -> None:
        texts = values[~missing].drop_duplicates()
        self.n_texts = len(texts)
        by_words = self.n_texts >= MANY_TEXTS and bool(has_blanks(texts).mean() > 0.5)
        texts = texts.iloc[:: max(1, -(-len(texts) // FIT_TEXTS))].str.slice(0, LONGEST_TEXT)
        texts = texts[texts.str.len().cumsum() <= max(FIT_CHARACTERS, len(texts.iloc[0]))]
        has_words = bool(texts.str.contains(r"\w\w", regex=True).any())
        self.words, self.unit = by_words and has_words, True
        self.more_words: list[str] = []
        self.more_idf: np.ndarray | None = None
        sample = texts.tolist()
        self.terms, self.idf, counts = _terms(sample, WORDS if self.words else PIECES)
        found = _weighted(counts, self.idf)
        if has_words and not self.words:
            self.more_words, self.more_idf, counts = _terms(sample, WORDS)
            found = sp.hstack([found, MORE_WORDS * _weighted(counts, self.more_idf)], format="csr")
        self._fit_directions(found)
        self.block = Block(self._reduced(found), TEXT_WEIGHT)

    def encode_texts(self, texts: list[str]) -> np.ndarray:
        found = _weighted(_counts(texts, self.terms, WORDS if self.words else PIECES), self.idf)
        if self.more_words:
            words = MORE_WORDS * _weighted(_counts(texts, self.more_words, WORDS), self.more_idf)
            found = sp.hstack([found, words], format="csr")
        return self._reduced(found)

    def _fit_directions(self, found: Any) -> None:
        from sklearn.utils.extmath import randomized_svd

        n_texts, n_terms = found.shape
        self.directions: np.ndarray | None = None
        width = n_terms
        if n_terms > TEXT_WIDTH:
            width = max(1, min(TEXT_WIDTH, n_texts - 1))
            self.directions = np.ascontiguousarray(randomized_svd(found, width, random_state=0)[2].T)
        self.parts = [str(number) for number in range(width)]

    def _reduced(self, found: Any) -> np.ndarray:
        if self.directions is None:
            return np.asarray(found[:, : len(self.parts)].toarray(), dtype=np.float64)
        reduced = np.asarray(found @ self.directions, dtype=np.float64)
        return unit_rows(reduced) if self.unit else reduced

    def describe(self) -> str:
        pieces = "words" if self.words else "words and pieces of words" if self.more_words else "pieces of words"
        return f"{self.n_texts} different texts, {pieces} in {len(self.parts)} dimensions"


def _terms(texts: list[str], pieces: dict[str, Any]) -> tuple[list[str], np.ndarray, Any]:
    """The terms that occur in several texts (all, where none does), their inverse document frequencies, and counts."""
    from sklearn.feature_extraction.text import CountVectorizer

    reader = CountVectorizer(**pieces)
    counts = reader.fit_transform(texts)
    n_with = np.bincount(counts.indices, minlength=counts.shape[1])
    kept = np.flatnonzero(n_with >= (2 if (n_with >= 2).any() else 1))
    idf = np.log((1 + len(texts)) / (1 + n_with[kept])) + 1.0
    return reader.get_feature_names_out()[kept].tolist(), idf, counts[:, kept]


def _counts(texts: list[str], terms: list[str], pieces: dict[str, Any]) -> Any:
    from sklearn.feature_extraction.text import CountVectorizer

    return CountVectorizer(vocabulary=terms, **pieces).transform(texts)


def _weighted(counts: Any, idf: Any) -> Any:
    """Tf-idf of unit length."""
    from sklearn.preprocessing import normalize

    found = counts.astype(np.float64)
    found.data *= idf[found.indices]
    return normalize(found, copy=False).astype(np.float32)
