"""Text as the vectors of a model of the user's: a local sentence-transformers or ONNX model, or a Python object."""

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

from otprop._saving import saved_as
from otprop.table.columns import Block, spread_out
from otprop.table.errors import CellError, RequestError
from otprop.table.model_vectors import DIGEST, VectorCache, cache_file, checked_vectors, refuse_other_model, unit_rows
from otprop.table.text import LONGEST_TEXT, TEXT_WEIGHT, TextColumn

FIT_TEXTS = 5000
TEXTS_AT_ONCE = 64
MAX_TOKENS = 512
CACHE = "OTPROP_TEXT_CACHE"  # environment variable: the folder of the cache; empty for none

Encode = Callable[[list[str]], Any]


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
            self._check_unchanged()
            self._known = VectorCache(cache_file(CACHE, "text", self.digest))
        keys = [sha256(text.encode(errors="surrogatepass")).digest() for text in texts]
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._known}
        if new:
            if "_encode" not in vars(self):
                self._encode = _load(Path(self.path))
            for key, vector in zip(new, unit_rows(_checked(self._encode(list(new.values())), len(new))), strict=True):
                self._known[key] = vector
            self._known.save()
        return np.stack([self._known[key] for key in keys])

    def _check_unchanged(self) -> None:
        place = Path(self.path)
        if not place.exists():
            raise CellError(f"needs the text model {self.path}, which is not there")
        if _digest(place) != self.digest:
            raise CellError(f"needs the text model {self.path}, which has changed since it was named")


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
        found = self.encode_texts(spread_out(texts, FIT_TEXTS).tolist())
        self.parts = [str(number) for number in range(found.shape[1])]
        self.block = Block(found, TEXT_WEIGHT)

    def encode_texts(self, texts: list[str]) -> np.ndarray:
        encode: Encode = self.model.transform if hasattr(self.model, "transform") else self.model
        found = _checked(encode(texts), len(texts))
        if hasattr(self, "parts") and found.shape[1] != len(self.parts):
            raise CellError(
                f"has vectors of {found.shape[1]} numbers by its text model, where it had {len(self.parts)}"
            )
        return found

    def describe(self) -> str:
        name = self.model.name if isinstance(self.model, LocalTextModel) else _name_of(self.model)
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
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name)
            else:
                os.environ[name] = value


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


def _name_of(model: Any) -> str:
    return str(getattr(model, "__name__", type(model).__name__))
