"""Fitted objects in a file without pickle: a zip archive of one JSON text and NumPy arrays, also an NPZ file.

The JSON text says which objects there are and what is in them; every array is a member of its own. A file can name only
the classes listed here, and what it says becomes their attributes: nothing in a file is code, and none is run to load
it. Numbers that compiled code follows without looking (nodes of trees, indices of sparse matrices) are checked first.
"""

from __future__ import annotations

import base64
import importlib
import json
import math
import sys
from types import MethodType
from typing import Any, BinaryIO
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import numpy as np
import scipy.sparse as sp
from numpy.lib import format as npy
from scipy.spatial import cKDTree

TEXT = "model.json"
OUR_MODULES = (
    *(
        "otprop._otp",
        "otprop.propagation.row_level",
        "otprop.propagation.class_level",
        "otprop.propagation.class_rounds",
        "otprop.propagation.calibration",
    ),
    *(
        "otprop.propagation.row_rounds",
        "otprop.propagation.row_predictor",
        "otprop.propagation.rounds",
        "otprop.evidence",
        "otprop.geometry",
        "otprop.transport",
    ),
    *("otprop.baselines", "otprop.table.blocks", "otprop.table.columns", "otprop.table.features"),
)
OTHER_CLASSES = (
    "sklearn.ensemble._forest.ExtraTreesClassifier",
    "sklearn.linear_model._logistic.LogisticRegression",
    "sklearn.pipeline.Pipeline",
    "sklearn.preprocessing._data.StandardScaler",
    "sklearn.semi_supervised._self_training.SelfTrainingClassifier",
    "sklearn.tree._classes.ExtraTreeClassifier",
)
METHODS: set[tuple[str, str]] = set()
SCALAR_TYPES = {"float32": np.float32, "float64": np.float64}
NOT_KEPT = {  # what only fitting needs
    "otprop._otp.OTP": {"callback": None, "verbose": 0},
    "otprop.evidence.classifier.ForestSource": {"_X"},
    "otprop.evidence.classifier.LinearSource": {"_X"},
    "otprop.evidence.classifier.ClassifierSource": {"_X"},
    "otprop.evidence.combined.Evidence": {"_static", "unseen"},
    "otprop.evidence.nearness.NearnessSource": {"_given", "_joined"},
    "otprop.geometry.diffusion.DiffusionGraph": {"_S", "_order", "_roots", "degrees", "components", "symmetric"},
}
BYTES_AT_ONCE = 2**24
WORTH_HALVING = 2**16  # entries from which on float64 that float32 can hold is written so


class ArchiveError(ValueError):
    """A file cannot be read, or an object not be written; the message says why."""


def write_archive(out: BinaryIO, header: dict[str, Any], root: Any) -> None:
    """Write an object and what is in it.

    Parameters
    ----------
    out : binary file
    header : dict, as JSON
    root : object
    """
    with ZipFile(out, "w", ZIP_STORED) as archive:
        writer = _Writer(archive)
        text = json.dumps({**header, "root": writer.node(root)}, ensure_ascii=True, allow_nan=False)
        archive.writestr(ZipInfo(TEXT), text)


def read_header(archive: ZipFile) -> dict[str, Any]:
    """The JSON text of an archive."""
    header = json.loads(_stored(archive, TEXT).decode())
    if not isinstance(header, dict):
        raise ArchiveError("its text is no JSON object")
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
        """What the JSON text says of a value."""
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
            npy.write_array(member, value, allow_pickle=False)
        return node

    def _object(self, value: Any) -> dict[str, Any]:
        name = _name_of(type(value))
        if sp.issparse(value):
            rows = sp.csr_array(value)
            parts = [self.node(part) for part in (rows.data, rows.indices, rows.indptr)]
            return self._remember(value, {"sparse": parts, "shape": list(rows.shape)})
        if name == "sklearn.tree._tree.Tree":
            _, made_from, state = value.__reduce__()
            return self._remember(value, {"tree": [self.node(made_from), self.node(state)]})
        if type(value) is cKDTree:
            return self._remember(value, {"neighbours": self.node(np.asarray(value.data))})
        if isinstance(value, np.random.RandomState):
            return {"random": None}  # a fitted model draws no more
        if isinstance(value, MethodType) and (owner := _name_of(type(value.__self__)), value.__name__) in METHODS:
            return {"method": [self.node(value.__self__), owner, value.__name__]}
        if isinstance(value, type) and value.__name__ in SCALAR_TYPES:
            return {"type": value.__name__}
        if not _allowed(name):
            raise ArchiveError(f"it holds a {name}, which a model file cannot hold")
        number = len(self._known)
        self._remember(value, {"same": number})
        return {"object": name, "number": number, "state": self._state(value, name)}

    def _state(self, value: Any, name: str) -> dict[str, Any]:
        # scikit-learn's own __getstate__ adds a version that its __setstate__ warns of; the header has the versions
        state = value.__getstate__() if name.startswith("otprop.") and not hasattr(value, "get_params") else vars(value)
        left = NOT_KEPT.get(name, set())
        kept = {key: each for key, each in state.items() if key not in left}
        return {key: self.node(each) for key, each in {**kept, **(left if isinstance(left, dict) else {})}.items()}


class _Reader:
    def __init__(self, archive: ZipFile) -> None:
        self._archive = archive
        self._objects: dict[int, Any] = {}
        self._arrays: dict[int, np.ndarray] = {}

    def value(self, node: Any) -> Any:
        if node is None or isinstance(node, (bool, str, int, float)):
            return node
        if isinstance(node, list):
            return [self.value(each) for each in node]
        kind = next(iter(node), "")
        read = getattr(self, f"_read_{kind}", None) if kind in KINDS else None
        if read is None:
            raise ArchiveError(f"it holds something unknown, {kind!r}")
        return read(node)

    def _read_scalar(self, node: Any) -> Any:
        kind = np.dtype(node["scalar"][0])
        if kind.hasobject:
            raise ArchiveError("it holds a scalar of no known type")
        return kind.type(self.value(node["scalar"][1]))

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
        from sklearn.tree._tree import Tree

        (n_features, n_classes, n_outputs), state = (self.value(part) for part in node["tree"])
        nodes = state["nodes"]
        inner = np.flatnonzero(nodes["left_child"] != -1)
        children = np.stack([nodes["left_child"][inner], nodes["right_child"][inner]])
        features = nodes["feature"][inner]
        sound = len(nodes) == state["node_count"] > 0 and len(n_classes) == n_outputs
        if not sound or (children <= inner).any() or (children >= len(nodes)).any():
            raise ArchiveError("it holds a tree whose nodes are in disorder")
        if (features < 0).any() or (features >= n_features).any():
            raise ArchiveError("it holds a tree that asks for features there are not")
        tree = Tree(n_features, n_classes, n_outputs)
        tree.__setstate__(state)
        return tree

    def _read_neighbours(self, node: Any) -> cKDTree:
        return cKDTree(self.value(node["neighbours"]))

    def _read_random(self, node: Any) -> None:
        return None

    def _read_method(self, node: Any) -> Any:
        owner, (_, name, method) = self.value(node["method"][0]), node["method"]
        if (name, method) not in METHODS or _name_of(type(owner)) != name:
            raise ArchiveError(f"it holds the method {method!r}, which a model file cannot hold")
        return getattr(owner, method)

    def _read_type(self, node: Any) -> Any:
        return SCALAR_TYPES[node["type"]]

    def _read_same(self, node: Any) -> Any:
        return self._objects[node["same"]]

    def _read_object(self, node: Any) -> Any:
        found = _class(str(node["object"]))
        made = found.__new__(found)
        self._objects[node["number"]] = made
        vars(made).update({str(key): self.value(each) for key, each in node["state"].items()})
        _check_sound(made, node["object"])
        return made


KINDS = {name.removeprefix("_read_") for name in vars(_Reader) if name.startswith("_read_")}


def _name_of(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _allowed(name: str) -> bool:
    module = name.rpartition(".")[0]
    ours = any(module == known or module.startswith(f"{known}.") for known in OUR_MODULES)
    return ours or name in OTHER_CLASSES


def _class(name: str) -> Any:
    """The class with this name, if a model may hold it; no other module is imported."""
    module, _, kind = name.rpartition(".")
    if not _allowed(name):
        raise ArchiveError(f"it holds a {name}, which no model of otprop has; nothing of it was run")
    try:
        found = getattr(sys.modules.get(module) or importlib.import_module(module), kind)
    except (ImportError, AttributeError):
        raise ArchiveError(f"it holds a {name}, which this version does not know") from None
    if not isinstance(found, type) or _name_of(found) != name or issubclass(found, BaseException):
        raise ArchiveError(f"it holds a {name}, which is no class of a model")
    return found


def _check_sound(made: Any, name: str) -> None:
    """Refuse what compiled code would follow out of bounds.

    Trees are not asked how many features they expect, and products with sparse matrices do not look at indices.
    """
    if "estimators_" in vars(made) or "tree_" in vars(made):
        trees = vars(made).get("estimators_", [made])
        seen = {part for tree in trees for part in (tree.n_features_in_, tree.tree_.n_features)}
        if seen != {made.n_features_in_}:
            raise ArchiveError("it holds a forest whose trees expect other features")
    if name == "otprop.evidence.diffusion.Setting":
        graph = made.graph
        sizes = {graph.n_rows, len(made.values), graph.n_rows if graph.scales is None else len(graph.scales)}
        if len(sizes) > 1:
            raise ArchiveError("it holds a graph whose parts have different sizes")
    if name in ("otprop.geometry.row_matching.DuplicateRows", "otprop.geometry.approximate_search.Cells"):
        for part in vars(made).values():
            if isinstance(part, np.ndarray) and part.dtype.kind == "i" and part.min(initial=0) < 0:
                raise ArchiveError("it holds row numbers below 0")


def _stored(archive: ZipFile, name: str) -> bytes:
    if archive.getinfo(name).compress_type != ZIP_STORED:
        raise ArchiveError(f"its part {name} is compressed, as no model is")
    return archive.read(name)


def _read_npy(archive: ZipFile, name: str) -> np.ndarray:
    """A member as an array, whose size must be that of the member."""
    info = archive.getinfo(name)
    if info.compress_type != ZIP_STORED:
        raise ArchiveError(f"its part {name} is compressed, as no model is")
    with archive.open(info) as member:
        version = npy.read_magic(member)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, kind = read(member)
        left = info.file_size - member.tell()
        if kind.hasobject or math.prod(shape) * kind.itemsize != left:
            raise ArchiveError(f"its part {name} is no plain array of the size it says")
        found = np.empty(math.prod(shape), dtype=kind)
        for start in range(0, left, BYTES_AT_ONCE):
            part = member.read(BYTES_AT_ONCE)
            found.view(np.uint8)[start : start + len(part)] = np.frombuffer(part, dtype=np.uint8)
    return found.reshape(shape, order="F" if fortran else "C")
