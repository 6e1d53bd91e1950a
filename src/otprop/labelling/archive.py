"""Fitted objects in a file without pickle: a zip archive of one JSON text and NumPy arrays, also an NPZ file.

The JSON text describes the objects; every array is a separate member. A file can name only classes registered with
`otprop._saving.saved_as`, and its values become their attributes: no code in a file is run. Numbers that compiled code
follows without a check (nodes of trees, indices of sparse matrices) are checked here.
"""

from __future__ import annotations

import base64
import io
import json
import math
import re
from collections.abc import Iterator
from inspect import Parameter, signature
from typing import Any, BinaryIO
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import numpy as np
import scipy.sparse as sp
from numpy.lib import format as npy
from scipy.spatial import cKDTree
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier
from sklearn.tree._tree import Tree

from otprop import _otp  # with _paper_otp, registers the estimators and all that their models are made of  # noqa: F401
from otprop._errors import OtpropError
from otprop._paper_otp import PaperOTP
from otprop._saving import SavedClass, class_of_id, saved_as, saved_class

TEXT = "model.json"
SCALAR_TYPES = {"float32": np.float32, "float64": np.float64}
SCALAR_KIND = re.compile(r"[<>|=][biufcmMSU]\d+(\[\w+\])?")
BYTES_AT_ONCE = 2**24
WORTH_HALVING = 2**16  # entries from which on float64 that float32 can hold is written so


for _id, _kind in {
    "sklearn.extra_trees": ExtraTreesClassifier,
    "sklearn.logistic_regression": LogisticRegression,
    "sklearn.pipeline": Pipeline,
    "sklearn.standard_scaler": StandardScaler,
    "sklearn.extra_tree": ExtraTreeClassifier,
    "sklearn.random_forest": RandomForestClassifier,
    "sklearn.decision_tree": DecisionTreeClassifier,
}.items():
    saved_as(_id, drops=("oob_decision_function_", "oob_score_"))(_kind)


class ArchiveError(OtpropError, ValueError):
    """A file cannot be read, or an object not be written; the message says why."""


def write_archive(out: BinaryIO, header: dict[str, Any], root: Any) -> None:
    """Write an object and all that it refers to; `header` is what JSON can hold."""
    with ZipFile(out, "w", ZIP_STORED) as archive:
        writer = _Writer(archive)
        text = json.dumps({**header, "root": writer.node(root)}, ensure_ascii=True, allow_nan=False)
        archive.writestr(ZipInfo(TEXT), text)


def read_header(archive: ZipFile) -> dict[str, Any]:
    """The JSON text of an archive."""
    _check_sizes(archive)
    header = json.loads(archive.read(_stored(archive, TEXT)).decode())
    if not isinstance(header, dict):
        raise ArchiveError("its header is not a JSON object")
    return header


def read_root(archive: ZipFile, header: dict[str, Any]) -> Any:
    """The object that was written."""
    return _Reader(archive).value(header["root"])


class _Writer:
    def __init__(self, archive: ZipFile) -> None:
        self._archive = archive
        self._known: dict[int, tuple[Any, dict[str, Any]]] = {}  # holds on to each object, so that no id comes twice
        self._n_arrays = 0

    def node(self, value: Any) -> Any:
        """The JSON description of a value."""
        if value is None or isinstance(value, (bool, str)) or type(value) is int:
            return value
        if isinstance(value, np.generic):
            return {"scalar": [value.dtype.str, self.node(value.item())]}
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": repr(value)}
        if type(value) is list:
            return [self.node(each) for each in value]
        if type(value) is tuple:
            return {"tuple": [self.node(each) for each in value]}
        if type(value) is bytes:
            return {"bytes": base64.b64encode(value).decode()}
        if id(value) in self._known:
            return self._known[id(value)][1]
        if type(value) is dict:
            return self._dict(value)
        if isinstance(value, np.ndarray):
            return self._remember(value, self._array(value))
        return self._object(value)

    def _remember(self, value: Any, node: dict[str, Any]) -> dict[str, Any]:
        self._known[id(value)] = value, node
        return node

    def _dict(self, value: dict[Any, Any]) -> dict[str, Any]:
        if value and all(type(key) is bytes for key in value):
            lists = [each if isinstance(each, list) else [each] for each in value.values()]
            if all(type(number) is int for each in lists for number in each):
                alone = all(type(each) is int for each in value.values())
                keys, key_ends = np.frombuffer(b"".join(value), dtype=np.uint8), np.cumsum([len(key) for key in value])
                numbers = np.array([number for each in lists for number in each], dtype=np.int64)
                ends = np.cumsum([len(each) for each in lists])
                return {"lookup": [self.node(part) for part in (keys, key_ends, numbers, ends)], "alone": alone}
        return {"dict": [[self.node(key), self.node(each)] for key, each in value.items()]}

    def _array(self, value: np.ndarray) -> dict[str, Any]:
        if value.dtype.hasobject:
            return {"objects": [self.node(each) for each in value.ravel().tolist()], "shape": list(value.shape)}
        node: dict[str, Any] = {"array": self._n_arrays}
        value = np.asarray(value)
        if value.dtype == np.float64 and value.size >= WORTH_HALVING:
            with np.errstate(over="ignore"):
                half = value.astype(np.float32)
            if np.array_equal(half, value):
                node, value = {**node, "wide": True}, half
        self._n_arrays += 1
        with self._archive.open(ZipInfo(f"{node['array']}.npy"), "w", force_zip64=True) as member:
            npy.write_array(member, _without_padding(value), allow_pickle=False)
        return node

    def _object(self, value: Any) -> dict[str, Any]:
        if sp.issparse(value):
            rows = sp.csr_array(value)
            parts = [self.node(part) for part in (rows.data, rows.indices, rows.indptr)]
            return self._remember(value, {"sparse": parts, "shape": list(rows.shape)})
        if type(value) is Tree:
            _, made_from, state = value.__reduce__()
            return self._remember(value, {"tree": [self.node(made_from), self.node(state)]})
        if type(value) is cKDTree:
            return self._remember(value, {"neighbours": self.node(np.asarray(value.data))})
        if isinstance(value, np.random.RandomState):
            return {"random": None}  # a fitted model draws no random numbers
        if isinstance(value, type) and value.__name__ in SCALAR_TYPES:
            return {"type": value.__name__}
        saved = saved_class(type(value))
        if saved is None:
            kind = type(value)
            raise ArchiveError(f"it holds a {kind.__module__}.{kind.__qualname__}, which a model file cannot hold")
        number = len(self._known)
        self._remember(value, {"same": number})
        return {"object": saved.id, "number": number, "state": self._state(value, saved)}

    def _state(self, value: Any, saved: SavedClass) -> dict[str, Any]:
        # not the __getstate__ of scikit-learn: it adds its version, which the header has for all
        state = vars(value) if type(value).__module__.startswith("sklearn.") else value.__getstate__() or {}
        kept = {key: each for key, each in state.items() if key not in saved.drops}
        return {key: self.node(each) for key, each in {**kept, **saved.replaces}.items()}


class _Reader:
    def __init__(self, archive: ZipFile) -> None:
        self._archive = archive
        self._objects: dict[int, Any] = {}
        self._arrays: dict[int, np.ndarray] = {}
        self._built: dict[str, Any] = {}  # what was made from arrays, by its text
        self._used: set[int] = set()  # the arrays it was made from: no file makes the same memory many times

    def value(self, node: Any) -> Any:
        if node is None or isinstance(node, (bool, str, int, float)):
            return node
        if isinstance(node, list):
            return [self.value(each) for each in node]
        kind = next(iter(node), "")
        if kind not in KINDS:
            raise ArchiveError(f"it holds something unknown, {kind!r}")
        read = getattr(self, f"_read_{kind}")
        return self._once(node, read) if kind in ("tree", "neighbours", "lookup") else read(node)

    def _once(self, node: Any, read: Any) -> Any:
        """Build an object from arrays once, however often the file refers to it; its arrays belong to it alone."""
        key = json.dumps(node, sort_keys=True)
        if key not in self._built:
            numbers = list(_array_numbers(node))
            if self._used.intersection(numbers):
                raise ArchiveError("it makes several objects of the same array")
            self._used.update(numbers)
            self._built[key] = read(node)
        return self._built[key]

    def _read_scalar(self, node: Any) -> Any:
        kind = str(node["scalar"][0])
        if not SCALAR_KIND.fullmatch(kind):
            raise ArchiveError("it holds a scalar of no known type")
        return np.dtype(kind).type(self.value(node["scalar"][1]))

    def _read_float(self, node: Any) -> float:
        return float(node["float"])

    def _read_tuple(self, node: Any) -> tuple[Any, ...]:
        return tuple(self.value(each) for each in node["tuple"])

    def _read_bytes(self, node: Any) -> bytes:
        return base64.b64decode(node["bytes"])

    def _read_dict(self, node: Any) -> dict[Any, Any]:
        return {self.value(key): self.value(each) for key, each in node["dict"]}

    def _read_lookup(self, node: Any) -> dict[bytes, Any]:
        keys, key_ends, numbers, ends = (self.value(part) for part in node["lookup"])
        for stops, n in ((key_ends, len(keys)), (ends, len(numbers))):
            if stops.dtype.kind != "i" or len(stops) == 0 or stops[-1] != n or (np.diff(stops, prepend=0) < 0).any():
                raise ArchiveError("it holds a lookup whose parts overlap")
        text, found, values = keys.tobytes(), {}, numbers.tolist()
        for start, stop, first, last in zip(
            [0, *key_ends[:-1].tolist()], key_ends.tolist(), [0, *ends[:-1].tolist()], ends.tolist(), strict=True
        ):
            found[text[start:stop]] = values[first] if node["alone"] else values[first:last]
        return found

    def _read_objects(self, node: Any) -> np.ndarray:
        found = np.empty(len(node["objects"]), dtype=object)
        found[:] = [self.value(each) for each in node["objects"]]
        return found.reshape(node["shape"])

    def _read_array(self, node: Any) -> np.ndarray:
        number = int(node["array"])
        if number not in self._arrays:
            found = _read_npy(self._archive, f"{number}.npy")
            self._arrays[number] = found.astype(np.float64) if node.get("wide") else found
        return self._arrays[number]

    def _read_sparse(self, node: Any) -> Any:
        data, indices, indptr = (self.value(part) for part in node["sparse"])
        found = sp.csr_array((data, indices, indptr), shape=tuple(node["shape"]))
        found.check_format(full_check=True)
        return found

    def _read_tree(self, node: Any) -> Any:
        (n_features, n_classes, n_outputs), state = (self.value(part) for part in node["tree"])
        nodes = state["nodes"]
        inner = np.flatnonzero(nodes["left_child"] != -1)
        children = np.stack([nodes["left_child"][inner], nodes["right_child"][inner]])
        features = nodes["feature"][inner]
        sound = len(nodes) == state["node_count"] > 0 and len(n_classes) == n_outputs
        if not sound or (children <= inner).any() or (children >= len(nodes)).any():
            raise ArchiveError("it holds a tree that is corrupt")
        if (features < 0).any() or (features >= n_features).any():
            raise ArchiveError("it holds a tree that uses features that do not exist")
        tree = Tree(n_features, n_classes, n_outputs)
        tree.__setstate__(state)
        return tree

    def _read_neighbours(self, node: Any) -> cKDTree:
        return cKDTree(self.value(node["neighbours"]))

    def _read_random(self, node: Any) -> None:
        return None

    def _read_type(self, node: Any) -> Any:
        return SCALAR_TYPES[node["type"]]

    def _read_same(self, node: Any) -> Any:
        return self._objects[node["same"]]

    def _read_object(self, node: Any) -> Any:
        name, attributes = str(node["object"]), node["state"]
        if name == "otp" and "marginals" in attributes:
            name, attributes = _one_algorithm(attributes)
        saved = class_of_id(name)
        if saved is None:
            raise ArchiveError(f"it holds a {name}, which no model of otprop has; nothing of it was run")
        made: Any = object.__new__(saved.kind)
        self._objects[node["number"]] = made
        state = {key: self.value(each) for key, each in attributes.items()}
        state = {key: each for key, each in state.items() if key not in saved.drops}  # no file sets what none holds
        for key, each in state.items():
            if callable(getattr(saved.kind, key, None)):
                raise ArchiveError(f"it has a value in the place of a method, {key!r}")
            _refuse_not_finite(key, each, saved)
        vars(made).update({**_missing_parameters(saved.kind), **state})
        _check_sound(made, saved.id)
        return made


KINDS = {name.removeprefix("_read_") for name in vars(_Reader) if name.startswith("_read_")}


def _one_algorithm(state: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Id and state of an `OTP` of version 0.2 or earlier, which held both algorithms, told apart by `marginals`."""
    found = {name: value for name, value in state.items() if name != "marginals"}
    if state["marginals"] != "balanced":
        return "otp", found
    found["alpha"] = PaperOTP().alpha if found["alpha"] == "auto" else found["alpha"]
    found["max_rounds"] = None if found["max_rounds"] == "auto" else found["max_rounds"]
    parameters = PaperOTP().get_params()
    return "paper_otp", {
        name: value for name, value in found.items() if name in parameters or name.startswith("_") or name.endswith("_")
    }


def _missing_parameters(kind: type) -> dict[str, Any]:
    """Defaults of the parameters of a scikit-learn class: another version of it may have fewer or more of them."""
    if not kind.__module__.startswith("sklearn."):
        return {}
    parameters = signature(kind).parameters.values()
    return {one.name: one.default for one in parameters if one.default is not Parameter.empty}


def _array_numbers(node: Any) -> Iterator[int]:
    """The numbers of the arrays that a node refers to."""
    if isinstance(node, dict):
        if "array" in node:
            yield int(node["array"])
        for part in node.values():
            yield from _array_numbers(part)
    elif isinstance(node, list):
        for part in node:
            yield from _array_numbers(part)


def _refuse_not_finite(name: str, value: Any, saved: SavedClass) -> None:
    """Refuse NaN and infinity where the class does not expect them: they would become labels without a warning."""
    if name in saved.nan:
        return
    for array in _float_arrays(value):
        sound = ~np.isnan(array) if name in saved.infinite else np.isfinite(array)
        if not sound.all():
            raise ArchiveError(f"it holds {array[~sound].flat[0]} in {name!r} of {saved.id!r}")


def _without_padding(array: np.ndarray) -> np.ndarray:
    """The array with zeros between its fields, where scikit-learn's trees have whatever was in memory."""
    if array.dtype.names is None:
        return array
    clean = np.zeros(array.shape, array.dtype)
    for name in array.dtype.names:
        clean[name] = array[name]
    return clean


def _float_arrays(value: Any) -> Iterator[np.ndarray]:
    """The real numbers of an attribute: arrays, fields of arrays, numbers, and lists of them."""
    if isinstance(value, (float, np.floating)):
        yield np.array([value])
    elif isinstance(value, np.ndarray) and value.dtype.names:
        for name in value.dtype.names:
            yield from _float_arrays(value[name])
    elif isinstance(value, np.ndarray):
        if value.dtype.kind in "fc":
            yield value
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _float_arrays(each)
    elif isinstance(value, dict):
        yield from _float_arrays(list(value.values()))
    elif sp.issparse(value):
        yield from _float_arrays(value.data)
    elif type(value) is Tree:
        yield from _float_arrays([value.value, value.threshold])


def _check_sound(made: Any, name: str) -> None:
    """Refuse what compiled code would follow out of bounds: features of trees, indices of sparse matrices."""
    if "estimators_" in vars(made) or "tree_" in vars(made):
        trees = vars(made).get("estimators_", [made])
        seen = {part for tree in trees for part in (tree.n_features_in_, tree.tree_.n_features)}
        if seen != {made.n_features_in_}:
            raise ArchiveError("it holds a forest whose trees expect other features")
    if name == "evidence.diffusion_setting":
        graph = made.graph
        sizes = {graph.n_rows, len(made.values), graph.n_rows if graph.scales is None else len(graph.scales)}
        if len(sizes) > 1:
            raise ArchiveError("it holds a graph whose parts have different sizes")
    if name in ("geometry.duplicate_rows", "geometry.cells"):
        for part in vars(made).values():
            if isinstance(part, np.ndarray) and part.dtype.kind == "i" and part.min(initial=0) < 0:
                raise ArchiveError("it holds row numbers below 0")


def _check_sizes(archive: ZipFile) -> None:
    """Refuse members that share bytes of the file: a small file would become a thousand times as large."""
    assert archive.fp is not None
    sizes = [info.file_size for info in archive.infolist() if info.compress_type == ZIP_STORED]
    if sum(sizes) > archive.fp.seek(0, io.SEEK_END):
        raise ArchiveError("its parts overlap")


def _stored(archive: ZipFile, name: str) -> ZipInfo:
    """A member of the archive; refuses a compressed one."""
    info = archive.getinfo(name)
    if info.compress_type != ZIP_STORED:
        raise ArchiveError(f"its part {name} is compressed, as no model is")
    return info


def _read_npy(archive: ZipFile, name: str) -> np.ndarray:
    """A member as an array, whose size must be that of the member."""
    info = _stored(archive, name)
    with archive.open(info) as member:
        version = npy.read_magic(member)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, kind = read(member)
        left = info.file_size - member.tell()
        if kind.hasobject or kind.kind == "c" or kind.itemsize == 0 or math.prod(shape) * kind.itemsize != left:
            raise ArchiveError(f"its part {name} is not a plain array of the declared size")
        found = np.empty(math.prod(shape), dtype=kind)
        for start in range(0, left, BYTES_AT_ONCE):
            part = member.read(BYTES_AT_ONCE)
            found.view(np.uint8)[start : start + len(part)] = np.frombuffer(part, dtype=np.uint8)
    return found.reshape(shape, order="F" if fortran else "C")
