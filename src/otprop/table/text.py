"""Text as numbers: the main directions of its words and pieces of words, or the vectors of a model of the user's."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from glob import escape as glob_escape
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from otprop._saving import saved_as
from otprop.table.columns import Block, Encoder, has_blanks, pandas, spread_out, texts_of
from otprop.table.errors import CellError, RequestError
from otprop.table.model_vectors import DIGEST, VectorCache, cache_file, checked_vectors, refuse_other_model, unit_rows

ROWS_AT_ONCE = 100_000
FIT_TEXTS, FIT_CHARACTERS = 20_000, 2_000_000
MODEL_TEXTS = 5000  # that a text model is fitted on
TEXTS_AT_ONCE, MAX_TOKENS = 64, 512  # of an ONNX model
CACHE = "OTPROP_TEXT_CACHE"  # environment variable: the folder of the cache; empty for none
LONGEST_TEXT = 5000  # characters of a cell that are read
MANY_TEXTS = 100_000  # from this many different texts on, words alone, without n-grams
TEXT_WIDTH, TEXT_WEIGHT = 30, 2.0  # the same text in two rows must not outdo all other columns
MORE_WORDS = 0.5  # the weight of words, relative to character n-grams
WORDS: dict[str, Any] = {"analyzer": "word", "ngram_range": (1, 1)}
PIECES: dict[str, Any] = {"analyzer": "char_wb", "ngram_range": (3, 4)}
Encode = Callable[[list[str]], Any]


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


@saved_as("table.local_text_model", drops=("path", "_encode", "_known"))
class LocalTextModel:
    """A folder of sentence-transformers, or an ONNX file with its tokenizer.json.

    A saved model keeps the name and the digest and never the path: a file must not choose what is opened.

    Attributes
    ----------
    path : str, not there after loading from a file
    name : str, the last part of the path
    digest : str, sha256 of its files
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        place = Path(path).expanduser().absolute()
        _refuse_unusable(place, path)
        self.path, self.name, self.digest = str(place), place.name, _digest(place)

    def __call__(self, texts: list[str]) -> np.ndarray:
        """Vectors of unit length; those of texts that were encoded before come from the cache."""
        if "_known" not in vars(self):
            place = Path(self.path)
            if not place.exists():
                raise CellError(f"needs the text model {self.path}, which is not there")
            if _digest(place) != self.digest:
                raise CellError(f"needs the text model {self.path}, which has changed since it was named")
            self._known = VectorCache(cache_file(CACHE, "text", self.digest))
        keys = [sha256(text.encode(errors="surrogatepass")).digest() for text in texts]
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._known}
        if new:
            if "_encode" not in vars(self):
                self._encode = _load(Path(self.path))
            vectors = unit_rows(_checked(self._encode(list(new.values())), len(new)))
            for key, vector in zip(new, vectors, strict=True):
                self._known[key] = vector
            self._known.save()
        return np.stack([self._known[key] for key in keys])


@saved_as("table.text_model")
class TextModelEncoder(TextColumn):
    """Text by a text model; `model` is a LocalTextModel, or an object of Python's, which no model file can hold."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit_values(self, values: Any, missing: np.ndarray) -> None:
        texts = values[~missing].drop_duplicates().str.slice(0, LONGEST_TEXT)
        self.n_texts = len(texts)
        if hasattr(self.model, "transform"):
            self.model = _fitted(self.model, texts.tolist())
        found = self.encode_texts(spread_out(texts, MODEL_TEXTS).tolist())
        self.parts = [str(number) for number in range(found.shape[1])]
        self.block = Block(found, TEXT_WEIGHT)

    def encode_texts(self, texts: list[str]) -> np.ndarray:
        encode: Encode = self.model.transform if hasattr(self.model, "transform") else self.model
        found = _checked(encode(texts), len(texts))
        if hasattr(self, "parts") and found.shape[1] != len(self.parts):
            had = len(self.parts)
            raise CellError(f"has vectors of {found.shape[1]} numbers by its text model, where it had {had}")
        return found

    def describe(self) -> str:
        own = getattr(self.model, "__name__", type(self.model).__name__)
        name = self.model.name if isinstance(self.model, LocalTextModel) else own
        return f"{self.n_texts} different texts, by {name} in {len(self.parts)} dimensions"

    def check_saved(self) -> None:
        """Raise an error unless what came from a file is the name and digest of a local model, and nothing else."""
        model = self.model
        if type(model) is not LocalTextModel or not DIGEST.fullmatch(model.digest):
            raise ValueError("a column of text has no text model.")

    def use(self, model: LocalTextModel | None) -> None:
        """Encode by this model from now on; raises RequestError unless it is the one of the fit."""
        refuse_other_model("text_model", getattr(self.model, "name", None), self.model.digest, model)
        self.model = model


def open_text_model(model: Any) -> Any:
    """A text model from a path, a transformer or a function; raises RequestError for anything else."""
    if isinstance(model, (str, os.PathLike)):
        return LocalTextModel(model)
    if callable(model) or hasattr(model, "transform"):
        return model
    accepted = "expected the path of a local model, a scikit-learn transformer, or a function of a list of texts."
    raise RequestError("text_model", accepted, model)


def _refuse_unusable(place: Path, asked: Any) -> None:
    reason = ""
    if not os.path.exists(place):  # also for a name that is too long
        reason = "there is no such file or folder; a name is never downloaded: download the model, and name its folder."
    elif place.is_file() and place.suffix != ".onnx":
        reason = "expected the folder of a sentence-transformers model, or an .onnx file."
    elif place.is_file() and not (place.parent / "tokenizer.json").is_file():
        reason = "there is no tokenizer.json next to it."
    elif place.is_dir() and not (place / "modules.json").is_file():
        reason = "this folder has no modules.json: it is not a sentence-transformers model; name an .onnx file instead."
    elif not place.is_dir() and not place.is_file():
        reason = "expected a file or a folder, not a device or a pipe."
    else:
        odd = next((path for path in _model_paths(place) if not path.is_file()), None)
        if odd is not None:
            reason = f"{str(odd)!r} in it is not a file, but a device, a pipe, or a link to a folder or to nothing."
    if reason:
        raise RequestError("text_model", reason, str(asked))


def _model_paths(place: Path) -> list[Path]:
    """What a model is made of, without folders and hidden files; a link to a folder would escape the digest."""
    if not place.is_dir():
        return [place, place.parent / "tokenizer.json", *sorted(place.parent.glob(f"{glob_escape(place.name)}?data"))]
    found = [path for path in sorted(place.rglob("*")) if path.is_symlink() or not path.is_dir()]
    return [path for path in found if not any(part.startswith(".") for part in path.relative_to(place).parts)]


def _digest(place: Path) -> str:
    """The sha256 of the files of a model, by their names and contents."""
    whole = sha256()
    for path in _model_paths(place):
        # without waiting: a pipe that took the place of a file is refused, and does not stop the work
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise CellError(f"needs the text model {place}, in which {path.name!r} is not a file")
            content = file_digest(file, "sha256").digest()
        whole.update(str(path.relative_to(place if place.is_dir() else place.parent)).encode() + b"\0" + content)
    return whole.hexdigest()


def _load(place: Path) -> Encode:
    with _offline():
        return _load_sentence_transformer(place) if place.is_dir() else _load_onnx(place)


@contextmanager
def _offline() -> Iterator[None]:
    """Nothing is downloaded while a model is loaded."""
    names = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    before = {name: os.environ[name] for name in names if name in os.environ}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name in names:
            del os.environ[name]
        os.environ.update(before)


def _load_sentence_transformer(place: Path) -> Encode:
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError:
        raise ImportError("a text model in a folder needs sentence-transformers: pip install it") from None
    model = SentenceTransformer(str(place), local_files_only=True)
    return lambda texts: model.encode(texts, show_progress_bar=False, convert_to_numpy=True)


def _load_onnx(place: Path) -> Encode:
    try:
        import onnxruntime
        from tokenizers import Tokenizer
    except ImportError:
        raise ImportError("an .onnx text model needs onnxruntime and tokenizers: pip install both") from None
    session = onnxruntime.InferenceSession(str(place), providers=["CPUExecutionProvider"])
    tokenizer = Tokenizer.from_file(str(place.parent / "tokenizer.json"))
    longest = (tokenizer.truncation or {}).get("max_length", MAX_TOKENS)
    tokenizer.enable_truncation(min(longest, MAX_TOKENS))
    tokenizer.enable_padding()
    outputs = [one.name for one in session.get_outputs()]
    wanted = "sentence_embedding" if "sentence_embedding" in outputs else outputs[0]
    inputs = [one.name for one in session.get_inputs()]

    def encode(texts: list[str]) -> np.ndarray:
        found = []
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))  # texts of one length: little padding
        for start in range(0, len(order), TEXTS_AT_ONCE):
            tokens = tokenizer.encode_batch([texts[place] for place in order[start : start + TEXTS_AT_ONCE]])
            found.append(pooled(session, inputs, wanted, tokens))
        return np.concatenate(found)[np.argsort(order)]

    return encode


def pooled(session: Any, inputs: list[str], output: str, tokens: list[Any]) -> np.ndarray:
    """The vectors of tokenized texts: the mean over their tokens, where the model has one a token."""
    mask = np.array([one.attention_mask for one in tokens], dtype=np.int64)
    known = {
        "input_ids": np.array([one.ids for one in tokens], dtype=np.int64),
        "attention_mask": mask,
        "token_type_ids": np.array([one.type_ids for one in tokens], dtype=np.int64),
    }
    unknown = [name for name in inputs if name not in known]
    if unknown:
        raise CellError(f"needs a text model of the inputs {', '.join(known)}; this one has {unknown[0]!r}")
    found = np.asarray(session.run([output], {name: known[name] for name in inputs})[0])
    if found.ndim < 3:
        return found
    return np.asarray((found * mask[:, :, None]).sum(axis=1) / np.maximum(mask.sum(axis=1), 1)[:, None])


def _fitted(transformer: Any, texts: list[str]) -> Any:
    """The transformer, or a clone fitted on the texts."""
    from sklearn.base import clone
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(transformer)
    except NotFittedError:
        return clone(transformer).fit(texts)
    except TypeError:  # no estimator of scikit-learn's
        return transformer
    return transformer


def _checked(found: Any, n_texts: int) -> np.ndarray:
    advice = " (TruncatedSVD in a pipeline makes long ones short)"
    return checked_vectors(found, n_texts, "texts", "text model", advice)
