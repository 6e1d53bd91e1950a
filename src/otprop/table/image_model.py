"""Pictures as the vectors of a model of the user's: a local ONNX or TorchScript file, or a function of Python's."""

from __future__ import annotations

import os
import re
import warnings
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from otprop._errors import install_command
from otprop._saving import saved_as
from otprop.table.errors import CellError, RequestError
from otprop.table.picture_vectors import Describer
from otprop.table.pictures import decode_picture

MAX_NUMBERS = 4096  # of a vector
MAX_SIDE = 1024  # of a picture that a model is given: many are in memory at once
USUAL_SIDE = 224  # of the pictures where the model does not say
# of ImageNet, by which nearly all published networks were trained
MEAN, SPREAD = np.array([0.485, 0.456, 0.406], dtype=np.float32), np.array([0.229, 0.224, 0.225], dtype=np.float32)
DIGEST = re.compile("[0-9a-f]{64}")
_FLOATS = {"tensor(float)": np.float32, "tensor(float16)": np.float16}
_ENDINGS = (".onnx", ".pt", ".pth", ".ts", ".torchscript")


class ImageModel(Describer):
    """Makes vectors of unit length of decoded pictures.

    Attributes
    ----------
    title : str, of the model in a list of columns
    """

    small = MAX_SIDE
    title: str

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
        if found.ndim != 2 or found.shape[0] != len(made) or not 0 < found.shape[1] <= MAX_NUMBERS:
            raise CellError(
                f"got an array of shape {found.shape} from its image model for {len(made)} pictures; expected a vector "
                f"of at most {MAX_NUMBERS} numbers for each"
            )
        vectors = found.astype(np.float64)
        if not np.isfinite(vectors).all():
            raise CellError("got vectors with infinity or NaN from its image model")
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.where(lengths > 1e-12, lengths, 1.0))

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
    """An ONNX or TorchScript file that takes a batch of pictures; a saved model keeps name and digest, not the path.

    Attributes
    ----------
    path : str
    digest : str, sha256 of the file
    """

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
    found = sha256()
    with path.open("rb") as file:
        while part := file.read(2**20):
            found.update(part)
    return found.hexdigest()


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
        raise CellError(
            f"cannot open the image model {path}: it is not a TorchScript file of torch.jit ({why})"
        ) from None

    def run(images: list[Any]) -> np.ndarray:
        with torch.inference_mode():
            found = network(torch.from_numpy(batch_of(images, USUAL_SIDE, USUAL_SIDE)))
        if not isinstance(found, torch.Tensor):
            raise CellError(f"got a {type(found).__name__} from its image model {path}; expected a tensor")
        return np.asarray(found.float().numpy())

    return run
