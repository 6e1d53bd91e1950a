"""Columns of paths of pictures: recognised by their values, and made into vectors."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from otprop._saving import saved_as
from otprop.files import Table, listed
from otprop.table.columns import Block, Encoder
from otprop.table.errors import CellError
from otprop.table.image_model import DIGEST, MAX_NUMBERS, ImageModel, LocalImageModel
from otprop.table.picture_descriptors import BLOCKS, WEIGHTS
from otprop.table.picture_vectors import BUILT_IN, Describer, picture_vectors
from otprop.table.pictures import NEEDS_PILLOW, has_pillow, is_picture_name
from otprop.table.text_model import refuse_other_model
from otprop.table.values import spread_out, texts_of

FOLDER = "otprop.folder"  # attribute of a frame: where relative paths start
FIT_ROWS, WIDTH = 5000, 50
MIN_SHARE = 0.9  # of the cells that must look like paths of pictures
LOOKED_FOR = 50  # files that are looked for to recognise a column
MAX_NAMED = 5


def with_folder(frame: Any, table: Table) -> Any:
    """The frame, which now knows where relative paths in it start: at the file of the table, else here."""
    folder = table.folder or (Path() if table.path is None else table.path.parent)
    frame.attrs[FOLDER] = str(folder.absolute())
    return frame


def recognise_pictures(column: Any, texts: Any) -> Encoder | str | None:
    """The encoder of a column of paths of pictures, or why it cannot be used; None where it is something else.

    `texts` are the cells of `column` as text, those that are not missing.
    """
    if texts.map(is_picture_name).mean() < MIN_SHARE:
        return None
    folder = _folder_of(column)
    names = [str(name) for name in spread_out(texts, LOOKED_FOR)]
    if not any(_exists(folder / name) for name in names):
        if texts.nunique() < len(texts):  # names of icons, say, which may tell the rows apart as categories
            return None
        return f"paths of pictures that are not there: {listed(names, 2)} in {folder}"
    return ImageEncoder() if has_pillow() else f"paths of pictures; {NEEDS_PILLOW}"


class _ImageColumn(Encoder):
    """A column of paths; pictures that cannot be read are missing, and `notes` says which."""

    role = "image"
    notes: list[str]
    n_numbers: int

    def describer(self) -> Describer:
        """What makes vectors of pictures."""
        return BUILT_IN

    def read(self, column: Any) -> np.ndarray:
        texts = texts_of(column)
        names = [str(text).strip() if known else None for text, known in zip(texts, texts.notna(), strict=True)]
        found = picture_vectors(names, _folder_of(column), self.describer())
        self.notes = [_note(names, found.problems)] if found.problems else []
        n_numbers = self.n_numbers if hasattr(self, "n_numbers") else found.vectors.shape[1]
        if found.vectors.shape[1] not in (0, n_numbers):
            raise CellError(f"has vectors of {found.vectors.shape[1]} numbers by its image model, not {n_numbers}")
        if not found.vectors.shape[1]:
            return np.full((len(names), n_numbers), np.nan, dtype=np.float16)
        self.n_pictures = len(names) - len(found.problems) - names.count(None)
        return found.vectors

    def missing(self, values: np.ndarray) -> np.ndarray:
        return np.isnan(values).any(axis=1) if values.shape[1] else np.ones(len(values), dtype=bool)

    def fit_values(self, values: np.ndarray, missing: np.ndarray) -> None:
        known = spread_out(values[~missing], FIT_ROWS).astype(np.float64)
        if not len(known):
            raise CellError(f"has no picture that can be read; {self.notes[0]}" if self.notes else "has no picture")
        self.n_numbers = values.shape[1]
        self.fit_vectors(known)
        self.block = Block(self.reduced(known))
        width = self.reduced(known[:1]).shape[1] if self.block.varies else 0
        self.parts = [str(number) for number in range(width)]

    def transform_values(self, values: np.ndarray, missing: np.ndarray) -> np.ndarray:
        found = np.zeros((len(values), len(self.parts)), dtype=np.float32)
        known = np.flatnonzero(~missing)
        for start in range(0, len(known) if self.parts else 0, FIT_ROWS):
            part = known[start : start + FIT_ROWS]
            found[part] = self.block(self.reduced(values[part].astype(np.float64)))
        return found

    def fit_vectors(self, vectors: np.ndarray) -> None:
        """Learn from the vectors of some pictures how to reduce them."""

    def reduced(self, vectors: np.ndarray) -> np.ndarray:
        """The vectors with fewer numbers, where there are many."""
        return vectors


@saved_as("table.image", drops=("notes",))
class ImageEncoder(_ImageColumn):
    """Pictures by gradients, thumbnails, colours and textures, reduced together.

    Attributes
    ----------
    centre : ndarray of shape (n_numbers,)
    directions : ndarray of shape (n_numbers, n_parts), with the scales of the blocks in them
    """

    def fit_vectors(self, vectors: np.ndarray) -> None:
        from sklearn.utils.extmath import randomized_svd

        self.centre = vectors.mean(axis=0)
        rest = vectors - self.centre
        scales = np.zeros(vectors.shape[1])
        for (start, stop), weight in zip(pairwise(BLOCKS), WEIGHTS, strict=True):
            spread = np.sqrt((rest[:, start:stop] ** 2).sum(axis=1).mean())
            scales[start:stop] = weight / np.sqrt(spread) if spread > 1e-6 else 0.0  # grey pictures have no colours
        width = min(WIDTH, len(vectors), vectors.shape[1])
        self.directions = scales[:, None] * randomized_svd(rest * scales, width, random_state=0)[2].T

    def reduced(self, vectors: np.ndarray) -> np.ndarray:
        return np.asarray((vectors - self.centre) @ self.directions)

    def check_saved(self) -> None:
        if type(self.n_numbers) is not int or self.n_numbers != BLOCKS[-1]:
            raise ValueError("a column of pictures has vectors of another length.")

    def describe(self) -> str:
        return f"{self.n_pictures} pictures, gradients, thumbnails and colours in {len(self.parts)} dimensions"


@saved_as("table.image_model", drops=("notes",))
class ImageModelEncoder(_ImageColumn):
    """Pictures by an image model; one that is an object of Python's cannot be saved."""

    def __init__(self, model: ImageModel) -> None:
        self.model = model

    def describer(self) -> Describer:
        return self.model

    def describe(self) -> str:
        return f"{self.n_pictures} pictures, by {self.model.title} in {len(self.parts)} dimensions"

    def check_saved(self) -> None:
        """Raise an error unless what came from a file is the name and digest of a local model, and nothing else."""
        if type(self.n_numbers) is not int or not 0 < self.n_numbers <= MAX_NUMBERS:
            raise ValueError("a column of pictures has vectors that are too long.")
        model = self.model
        if (
            type(model) is not LocalImageModel
            or not {"digest", "title"} >= set(vars(model))
            or not DIGEST.fullmatch(model.digest)
        ):
            raise ValueError("a column of pictures has no image model.")

    def use(self, model: LocalImageModel | None) -> None:
        """Encode by this model from now on; raises RequestError unless it is the one of the fit."""
        assert isinstance(self.model, LocalImageModel)
        refuse_other_model("image_model", getattr(self.model, "title", None), self.model.digest, model)
        assert model is not None
        self.model = model


def _folder_of(column: Any) -> Path:
    return Path(column.attrs.get(FOLDER, "."))


def _exists(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _note(names: list[Any], problems: dict[int, str]) -> str:
    shown = listed([f"{names[place]} {why}" for place, why in problems.items()], MAX_NAMED, quoted=False)
    return f"{len(problems)} of {len(names)} pictures cannot be read and count as missing: {shown}"
