"""Columns of paths of pictures: recognised by their values, made into vectors by descriptors or a user's model."""

from __future__ import annotations

import os
import warnings
from hashlib import file_digest
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from otprop._errors import install_command
from otprop._saving import saved_as
from otprop.files import Table, listed
from otprop.table.columns import Block, BlockEncoder, Encoder, spread_out, texts_of
from otprop.table.errors import CellError, RequestError
from otprop.table.model_vectors import DIGEST, MAX_NUMBERS, checked_vectors, refuse_other_model, unit_rows
from otprop.table.picture_vectors import BLOCKS, BUILT_IN, WEIGHTS, Describer, picture_vectors
from otprop.table.pictures import NEEDS_PILLOW, decode_picture, has_pillow, is_picture_name

MAX_SIDE = 1024  # of a picture that a model is given: many are in memory at once
USUAL_SIDE = 224  # of the pictures where the model does not say
# of ImageNet, by which nearly all published networks were trained
MEAN, SPREAD = np.array([0.485, 0.456, 0.406], dtype=np.float32), np.array([0.229, 0.224, 0.225], dtype=np.float32)
_FLOATS = {"tensor(float)": np.float32, "tensor(float16)": np.float16}
_ENDINGS = (".onnx", ".pt", ".pth", ".ts", ".torchscript")
FOLDER = "otprop.folder"  # attribute of a frame: where relative paths start
FIT_ROWS, WIDTH = 5000, 50
MIN_SHARE = 0.9  # of the cells that must look like paths of pictures
LOOKED_FOR = 50  # files that are looked for to recognise a column
MAX_NAMED = 5


class ImageModel(Describer):
    """Makes vectors of unit length of decoded pictures."""

    small = MAX_SIDE
    title: str  # in a list of columns

    def one(self, data: bytes) -> Any:
        image = decode_picture(data, self.small)
        image.thumbnail((MAX_SIDE, MAX_SIDE))
        return image

    def many(self, made: list[Any]) -> np.ndarray:
        found = np.asarray(self.encode(made))
        if found.dtype.kind not in "fiub":
            raise CellError("got values from its image model that are not real numbers")
        if found.ndim > 2 and found.shape[0] == len(made):
            found = found.reshape(*found.shape[:2], -1).mean(axis=2)  # a map of features: the mean over its places
        return unit_rows(checked_vectors(found, len(made), "pictures", "image model"))

    def encode(self, images: list[Any]) -> Any:
        """The vectors of RGB images of Pillow."""
        raise NotImplementedError


class FunctionModel(ImageModel):
    """A function from a list of RGB images of Pillow to a 2-D array; nothing is kept between runs."""

    name = None

    def __init__(self, function: Any) -> None:
        self.encode = function  # type: ignore[method-assign]
        self.title = str(getattr(function, "__name__", type(function).__name__))


@saved_as("table.local_image_model", drops=("_run", "_cache", "path"))  # a model file never names a file to open
class LocalImageModel(ImageModel):
    """An ONNX or TorchScript file that takes a batch of pictures; a saved model keeps name and digest, not the path."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        place = Path(path).expanduser().absolute()
        if not os.path.isfile(place):  # also for a name that is too long
            why = "there is no such file; a name is never downloaded: download the model, and name its file."
            raise RequestError("image_model", why, str(path))
        if place.suffix.lower() not in _ENDINGS:
            why = f"expected an ONNX file (.onnx) or a TorchScript file ({', '.join(_ENDINGS[1:])})."
            raise RequestError("image_model", why, str(path))
        self.path, self.digest, self.title = str(place), _digest(place), place.name

    @property
    def name(self) -> str:  # type: ignore[override]
        """Of the cache."""
        return self.digest

    def encode(self, images: list[Any]) -> Any:
        if "_run" not in vars(self):
            if not Path(self.path).exists():
                raise CellError(f"needs the image model {self.path}, which is not there")
            if _digest(Path(self.path)) != self.digest:
                raise CellError(f"needs the image model {self.path}, which has changed since this model was saved")
            self._run = _open_onnx(self.path) if self.path.lower().endswith(".onnx") else _open_torch(self.path)
        try:
            return self._run(images)
        except CellError:
            raise
        except Exception as error:  # neither library has a common class of errors
            why = (str(error).strip().splitlines() or [type(error).__name__])[-1][:150]
            raise CellError(f"cannot be read by the image model {self.path} ({why})") from None


def open_image_model(model: Any) -> ImageModel:
    """An image model from a path or a function; raises RequestError for anything else."""
    if isinstance(model, ImageModel):
        return model
    if isinstance(model, (str, os.PathLike)):
        return LocalImageModel(model)
    if callable(model):
        return FunctionModel(model)
    raise RequestError("image_model", "expected the path of a local model, or a function of a list of images.", model)


def batch_of(images: list[Any], height: int, width: int) -> np.ndarray:
    """Pictures as networks take them: shape (n, 3, height, width), centred and scaled as those of ImageNet were."""
    from PIL import Image

    pixels = [np.asarray(one.resize((width, height), Image.Resampling.BILINEAR), dtype=np.float32) for one in images]
    return np.ascontiguousarray(((np.stack(pixels) / 255.0 - MEAN) / SPREAD).transpose(0, 3, 1, 2), dtype=np.float32)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _open_onnx(path: str) -> Any:
    try:
        import onnxruntime
    except ImportError:
        raise ImportError("an .onnx image model needs onnxruntime: pip install it") from None
    try:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4  # it prints errors that it raises, too
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has no common class of errors
        raise CellError(f"cannot open the image model {path} ({str(error).splitlines()[0][:150]})") from None
    inputs = session.get_inputs()
    sizes = [size if isinstance(size, int) else None for size in inputs[0].shape] if len(inputs) == 1 else []
    n_images, n_colours, *sides = sizes if len(sizes) == 4 else (0, 0, 0, 0)
    height, width = (USUAL_SIDE if side is None else side for side in sides)
    kind = _FLOATS.get(inputs[0].type) if inputs else None
    fits = n_images != 0 and n_colours in (3, None) and min(height, width) > 0 and max(height, width) <= MAX_SIDE
    if not fits or kind is None:
        wanted = f"one input of floats of shape (n, 3, height, width), with sides of up to {MAX_SIDE}"
        there = ", ".join(f"{one.shape} of {one.type}" for one in inputs) or "no input"
        raise CellError(f"needs an image model of {wanted}; {path} has {there}")

    def run(images: list[Any]) -> np.ndarray:
        batch = batch_of(images, height, width).astype(kind)
        most = n_images or len(batch)  # some files take one picture at a time, or a fixed number
        batch = np.concatenate([batch, np.zeros((-len(batch) % most, *batch.shape[1:]), dtype=kind)])
        parts = [batch[i : i + most] for i in range(0, len(batch), most)]
        found = np.concatenate([session.run(None, {inputs[0].name: part})[0] for part in parts])
        return found[: len(images)]

    return run


def _open_torch(path: str) -> Any:
    try:
        import torch
    except ImportError:
        raise ImportError(f"a TorchScript image model needs PyTorch: {install_command('deep')}") from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of torch.jit itself: the file has loaded
            network = torch.jit.load(path, map_location="cpu").eval()
    except (RuntimeError, ValueError) as error:
        why = str(error).strip().splitlines()[0][:150]
        problem = f"cannot open the image model {path}: it is not a TorchScript file of torch.jit ({why})"
        raise CellError(problem) from None

    def run(images: list[Any]) -> np.ndarray:
        with torch.inference_mode():
            found = network(torch.from_numpy(batch_of(images, USUAL_SIDE, USUAL_SIDE)))
        if not isinstance(found, torch.Tensor):
            raise CellError(f"got a {type(found).__name__} from its image model {path}; expected a tensor")
        return np.asarray(found.float().numpy())

    return run


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


class _ImageColumn(BlockEncoder):
    """A column of paths; pictures that cannot be read are missing, and `notes` says which."""

    role = "image"
    notes: list[str]
    n_numbers: int

    def describer(self) -> Describer:
        """What makes vectors of pictures; a method, as attributes may come from a model file."""
        return BUILT_IN

    def read(self, column: Any) -> np.ndarray:
        texts = texts_of(column)
        names = [str(text).strip() if known else None for text, known in zip(texts, texts.notna(), strict=True)]
        vectors, problems = picture_vectors(names, _folder_of(column), self.describer())
        self.notes = []
        if problems:
            shown = listed([f"{names[place]} {why}" for place, why in problems.items()], MAX_NAMED, quoted=False)
            count = f"{len(problems)} of {len(names)} pictures"
            self.notes.append(f"{count} cannot be read and count as missing: {shown}")
        width = vectors.shape[1]
        n_numbers = self.n_numbers if hasattr(self, "n_numbers") else width
        if width not in (0, n_numbers):
            raise CellError(f"has vectors of {width} numbers by its image model, not {n_numbers}")
        if not width:
            return np.full((len(names), n_numbers), np.nan, dtype=np.float16)
        self.n_pictures = len(names) - len(problems) - names.count(None)
        return vectors

    def missing(self, values: np.ndarray) -> np.ndarray:
        return np.isnan(values).any(axis=1) if values.shape[1] else np.ones(len(values), dtype=bool)

    def fit_values(self, values: np.ndarray, missing: np.ndarray) -> None:
        known = spread_out(values[~missing], FIT_ROWS).astype(np.float64)
        if not len(known):
            raise CellError(f"has no picture that can be read; {self.notes[0]}" if self.notes else "has no picture")
        self.n_numbers = values.shape[1]
        self.fit_vectors(known)
        self.block = Block(self.vectors(known))
        width = self.vectors(known[:1]).shape[1] if self.block.varies else 0
        self.parts = [str(number) for number in range(width)]

    def fit_vectors(self, vectors: np.ndarray) -> None:
        """Learn from the vectors of some pictures how to reduce them."""


@saved_as("table.image", drops=("notes",))
class ImageEncoder(_ImageColumn):
    """Pictures by gradients, thumbnails, colours and textures, reduced together.

    `directions`, of shape (n_numbers, n_parts), have the scales of the blocks in them.
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

    def vectors(self, values: np.ndarray) -> np.ndarray:
        return np.asarray((values.astype(np.float64) - self.centre) @ self.directions)

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
        model: Any = self.model
        known = type(model) is LocalImageModel and {"digest", "title"} >= set(vars(model))
        if not known or not DIGEST.fullmatch(model.digest):
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
