"""The methods of the benchmark: how each is run for many sets of labels, its grid, and where it is thinned."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from otprop._validation import did_you_mean
from otprop_paper import _methods
from otprop_paper.baselines.supervised import make_classifier
from otprop_paper.benchmark import grids, shared_graphs
from otprop_paper.benchmark.grids import Grid, Params
from otprop_paper.benchmark.prepared import DatasetCache, Labelings
from otprop_paper.benchmark.protocol import MOST_DRAWS
from otprop_paper.benchmark.released_code import RELEASED_EPSILON, released_loop

Runner = Callable[[DatasetCache, list[Params], list[np.ndarray], list[int]], Iterator[Labelings]]
EstimatorParams = Callable[[DatasetCache, Params, int], dict[str, Any]]

MANY_ROWS = 4000  # thinning where declared: Waveform, Digits and MNIST
MOST_ROWS = 8000  # MNIST alone


@dataclass(frozen=True)
class Thinning:
    """Fewer splits, hidden draws, percentages or candidates for data sets of at least `rows` rows."""

    rows: int
    note: str
    axes: dict[str, tuple[Any, ...]]
    splits: int | None = None
    draws: int = MOST_DRAWS
    percents: tuple[float, ...] | None = None


@dataclass(frozen=True)
class MethodSetting:
    """How a method is run on one data set.

    Attributes
    ----------
    grid : Grid
    splits : int or None, at most this many of the splits
    draws : int, at most this many draws of hidden labels
    thinned : str, what was left out; empty where nothing was
    percents : tuple of float or None, only these of the percentages
    """

    grid: Grid
    splits: int | None = None
    draws: int = MOST_DRAWS
    thinned: str = ""
    percents: tuple[float, ...] | None = None


@dataclass(frozen=True)
class BenchmarkMethod:
    """A method as the benchmark runs it.

    Attributes
    ----------
    name : str, as in the command
    title : str, as in the tables
    paper : str or None, its column in the paper's tables
    run : callable, labels every row for each candidate and each set of labels
    grid : Grid
    code_modules : tuple of str, modules and packages whose code determines its results
    shared_parameter : str or None
        The parameter whose candidates share computations over all splits, which are then one task; None where
        splits share nothing.
    thinnings : tuple of Thinning, the last that applies is used
    """

    name: str
    title: str
    paper: str | None
    run: Runner
    grid: Grid
    code_modules: tuple[str, ...]
    shared_parameter: str | None = None
    thinnings: tuple[Thinning, ...] = ()

    def setting(self, dataset: str, n_rows: int) -> MethodSetting:
        """The grid, splits and draws for a data set."""
        grid = self.grid
        if self.name == "released" and dataset in RELEASED_EPSILON:
            grid = Grid({"raw_epsilon": (RELEASED_EPSILON[dataset],)}, {"raw_epsilon": RELEASED_EPSILON[dataset]})
        setting = MethodSetting(grid)
        for thinning in self.thinnings:
            if n_rows >= thinning.rows and thinning.axes.keys() <= grid.axes.keys():
                setting = MethodSetting(
                    grid.thinned(**thinning.axes), thinning.splits, thinning.draws, thinning.note, thinning.percents
                )
        return setting

    def code(self) -> str:
        """Fingerprint of the code that determines the results; comments and docstrings do not count."""
        common = "otprop._base", "otprop._labels", "otprop_paper.benchmark.prepared"
        return code_fingerprint((*common, *self.code_modules))


@cache
def code_fingerprint(modules: tuple[str, ...]) -> str:
    digest = hashlib.sha256()
    for module in modules:
        spec = importlib.util.find_spec(module)
        if spec is None or spec.origin is None:
            raise ImportError(f"the module {module!r} was not found.")
        path = Path(spec.origin)
        for file in sorted(path.parent.glob("*.py")) if spec.submodule_search_locations else [path]:
            digest.update(ast.dump(_without_docstrings(ast.parse(file.read_text(encoding="utf-8")))).encode())
    return digest.hexdigest()[:12]


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                node.body = node.body[1:]
    return tree


def _fit_each(
    name: str,
    estimator_params: EstimatorParams,
    cache: DatasetCache,
    candidates: list[Params],
    sets: list[np.ndarray],
    seeds: list[int],
) -> Iterator[Labelings]:
    """Fit the registered estimator for each candidate and set of labels."""
    for params in candidates:
        start = perf_counter()
        fitted = []
        for codes, seed in zip(sets, seeds, strict=True):
            model = _methods.METHODS[name].make().set_params(**estimator_params(cache, params, seed))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(cache.data.X, codes)
            fitted.append((model.transduction_, getattr(model, "confidence_", None)))
        seconds = perf_counter() - start
        found, confidence = zip(*fitted, strict=True)
        yield Labelings(params, np.stack(found), seconds, None if confidence[0] is None else np.stack(confidence))


def _run_released(
    cache: DatasetCache, candidates: list[Params], sets: list[np.ndarray], seeds: list[int]
) -> Iterator[Labelings]:
    for params in candidates:
        start = perf_counter()
        epsilon = params["raw_epsilon"] if "raw_epsilon" in params else cache.epsilon(params["epsilon"])
        found = np.stack([released_loop(cache.costs, codes, epsilon) for codes in sets])
        yield Labelings(params, found, perf_counter() - start)


def _registered(
    name: str,
    run: Any,
    grid: Grid,
    code_modules: tuple[str, ...],
    *thinnings: Thinning,
    paper: bool = False,
    shared_parameter: str | None = None,
) -> BenchmarkMethod:
    """A method of `otprop_paper._methods`.

    `run` labels all sets together where a parameter is shared; else it gives the parameters of the estimator.
    """
    method = _methods.METHODS[name]
    runner: Any = partial(_fit_each, name, run) if shared_parameter is None else _without_seeds(run)
    column = method.title.removesuffix(".paper") if paper else None
    return BenchmarkMethod(name, method.title, column, runner, grid, code_modules, shared_parameter, thinnings)


def _without_seeds(run: Any) -> Runner:
    return lambda cache, candidates, sets, seeds: run(cache, candidates, sets)


def _logistic(cache: DatasetCache, params: Params, seed: int) -> dict[str, Any]:
    return {"classifier": make_classifier("logistic", seed).set_params(logisticregression__C=params["C"])}


def _trees(cache: DatasetCache, params: Params, seed: int) -> dict[str, Any]:
    return {"classifier": make_classifier("extra_trees", seed).set_params(min_samples_leaf=params["leaf"])}


def _paper_params(cache: DatasetCache, params: Params, seed: int) -> dict[str, Any]:
    return {"epsilon": cache.epsilon(params["epsilon"]), "alpha": 0.9}


_OTP = (
    "otprop._otp",
    "otprop._votes",
    "otprop._paper_otp",
    "otprop._transport_base",
    "otprop._parameters",
    "otprop.propagation",
    "otprop.evidence",
    "otprop.transport",
    "otprop.geometry",
)
_GRAPH = ("otprop_paper.baselines.graph", "otprop_paper.baselines._frame", "otprop_paper.benchmark.shared_graphs")
_SUPERVISED = ("otprop_paper.baselines.supervised",)
_CLUSTERS = ("otprop_paper.baselines._cluster_labels",)
_FEW_SIGMAS = Thinning(MOST_ROWS, "every third sigma", {"sigma": grids.SIGMAS[1::3]})
_ONE_EPSILON = {"epsilon": (0.01,)}

_ALL = (
    _registered("otp", lambda cache, params, seed: {"n_jobs": 1}, grids.NOTHING, _OTP, paper=True),
    _registered(
        "otp-paper",
        _paper_params,
        grids.EPSILON,
        _OTP,
        Thinning(MANY_ROWS, "epsilon 0.01 only, three splits", _ONE_EPSILON, 3, 1),
        paper=True,
    ),
    BenchmarkMethod(
        "released",
        "OTP released",
        "OTP",
        _run_released,
        grids.EPSILON,
        ("otprop_paper.benchmark.released_code",),
        thinnings=(
            Thinning(MANY_ROWS, "epsilon 0.01 only, one split", _ONE_EPSILON, 1, 1, (5.0, 35.0)),
            Thinning(MOST_ROWS, "epsilon 0.01 only, one split", _ONE_EPSILON, 1, 1, (5.0,)),
        ),
    ),
    _registered(
        "lp",
        shared_graphs.label_propagation,
        grids.SIGMA,
        ("otprop_paper.baselines.lp", *_GRAPH),
        _FEW_SIGMAS,
        paper=True,
        shared_parameter="sigma",
    ),
    _registered(
        "ls",
        shared_graphs.label_spreading,
        grids.SPREADING,
        ("otprop_paper.baselines.ls", *_GRAPH),
        _FEW_SIGMAS,
        paper=True,
        shared_parameter="sigma",
    ),
    BenchmarkMethod(
        "ls-knn",
        "LS, neighbours",
        None,
        _without_seeds(shared_graphs.neighbor_spreading),
        grids.NEIGHBORHOOD,
        ("otprop_paper.baselines.ls", *_GRAPH),
        "n_neighbors",
        (Thinning(MANY_ROWS, "5, 10, 20 neighbours only", {"n_neighbors": (5, 10, 20)}),),
    ),
    _registered(
        "lnp",
        shared_graphs.linear_neighborhoods,
        grids.NEIGHBORHOOD,
        ("otprop_paper.baselines.lnp", "otprop_paper.baselines._qp", *_GRAPH),
        paper=True,
        shared_parameter="n_neighbors",
    ),
    _registered(
        "cnmf",
        lambda cache, params, seed: {"random_state": seed},
        grids.NOTHING,
        ("otprop_paper.baselines.cnmf", *_CLUSTERS),
        paper=True,
    ),
    _registered(
        "plcc",
        lambda cache, params, seed: params,
        grids.LAMBDA,
        ("otprop_paper.baselines.plcc", "otprop_paper.baselines._frame", *_CLUSTERS),
        paper=True,
    ),
    _registered(
        "1nn",
        lambda cache, params, seed: {},
        grids.NOTHING,
        ("otprop_paper.baselines.nearest", "otprop_paper.baselines._frame"),
    ),
    _registered(
        "vote",
        shared_graphs.kernel_vote,
        grids.SIGMA,
        ("otprop_paper.baselines.nearest", *_GRAPH),
        shared_parameter="sigma",
    ),
    _registered("logistic", _logistic, grids.COST, _SUPERVISED),
    _registered("trees", _trees, grids.LEAF, _SUPERVISED),
    _registered(
        "self-logistic",
        _logistic,
        grids.COST,
        _SUPERVISED,
        Thinning(MANY_ROWS, "C = 1 only; three splits", {"C": (1.0,)}, 3, 1),
    ),
    _registered(
        "self-trees",
        _trees,
        grids.LEAF,
        _SUPERVISED,
        Thinning(0, "hidden labels drawn once", {}, None, 1),
        Thinning(MANY_ROWS, "leaf size 1 only; three splits", {"leaf": (1,)}, 3, 1),
    ),
)

METHODS: dict[str, BenchmarkMethod] = {method.name: method for method in _ALL}


def find_method(name: str) -> BenchmarkMethod:
    """The method with this name in the command."""
    if name.lower() not in METHODS:
        hint = did_you_mean(name.lower(), METHODS) or "."
        raise ValueError(f"{name!r} is not a known method{hint} Known: {', '.join(METHODS)}.")
    return METHODS[name.lower()]


def without_thinning(method: BenchmarkMethod) -> BenchmarkMethod:
    """The same method with its whole grid and all splits, whatever the data set."""
    return replace(method, thinnings=())
