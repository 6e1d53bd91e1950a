"""The methods in the table: how each is run for many sets of labels, its grid, and where it is thinned."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from otprop import OTP
from otprop._validation import did_you_mean
from otprop.baselines import CNMF, PLCC, NearestNeighbor, SelfTraining, Supervised
from otprop.baselines.supervised import make_classifier
from otprop.benchmark import grids, shared
from otprop.benchmark.authors import RELEASED_EPSILON, import_pot, released_loop
from otprop.benchmark.grids import Grid, Params
from otprop.benchmark.protocol import MOST_DRAWS
from otprop.benchmark.workspace import Labelled, Workspace


class Answers(NamedTuple):
    """What a method says with one candidate.

    Attributes
    ----------
    params : dict
    found : ndarray of int of shape (n_sets, n_rows), for each set of labels the class of every row
    seconds : float, for all sets
    confidence : ndarray of shape (n_sets, n_rows) or None, how probable each label is right, where the method says it
    """

    params: Params
    found: np.ndarray
    seconds: float
    confidence: np.ndarray | None = None


Runner = Callable[[Workspace, list[Params], list[np.ndarray], list[int]], Iterator[Answers]]

MANY_ROWS = 4000  # thinning where declared: Waveform, Digits and MNIST
MOST_ROWS = 8000  # MNIST alone


@dataclass(frozen=True)
class Method:
    """One line of the table.

    Attributes
    ----------
    name : str, as in the command
    title : str, as in the tables
    paper : str or None, the column of the paper's tables it answers to
    run : callable, labels every row for each candidate and each set of labels
    grid : Grid
    sources : tuple of str, the modules that decide its results
    together : str or None
        The parameter whose candidates are one job over all splits; None: splits share nothing, each is a job.
    thin : tuple of Thinning, from which number of rows on it runs with fewer splits or candidates
    needs : callable, raises where something it needs is not installed
    """

    name: str
    title: str
    paper: str | None
    run: Runner
    grid: Grid
    sources: tuple[str, ...]
    together: str | None = None
    thin: tuple[Thinning, ...] = ()
    needs: Callable[[], Any] = lambda: None

    def setting(self, name: str, n_rows: int) -> Setting:
        """The grid, splits and draws that the method has on a data set.

        Parameters
        ----------
        name : str, of the data set
        n_rows : int

        Returns
        -------
        Setting
        """
        grid = self.grid
        if self.name == "released" and name in RELEASED_EPSILON:
            grid = Grid({"raw_epsilon": (RELEASED_EPSILON[name],)}, {"raw_epsilon": RELEASED_EPSILON[name]})
        setting = Setting(grid)
        for thinning in self.thin:
            if n_rows >= thinning.rows and thinning.axes.keys() <= grid.axes.keys():
                setting = Setting(
                    grid.thinned(**thinning.axes), thinning.splits, thinning.draws, thinning.note, thinning.percents
                )
        return setting

    def code(self) -> str:
        """A fingerprint of the code that decides the results; comments and docstrings do not count.

        Returns
        -------
        str
        """
        return _code_of(("otprop._base", "otprop._labels", "otprop.benchmark.workspace", *self.sources))


@dataclass(frozen=True)
class Thinning:
    """Fewer splits, hidden draws, percentages or candidates from `rows` rows on."""

    rows: int
    note: str
    axes: dict[str, tuple[Any, ...]]
    splits: int | None = None
    draws: int = MOST_DRAWS
    percents: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Setting:
    """What a method does on one data set.

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


@cache
def _code_of(modules: tuple[str, ...]) -> str:
    digest = hashlib.sha256()
    for module in modules:
        spec = importlib.util.find_spec(module)
        if spec is None or spec.origin is None:
            raise ImportError(f"the module {module!r} was not found.")
        paths = [Path(spec.origin)]
        if spec.submodule_search_locations:  # of the package itself the private modules, not what is around them
            paths = sorted(Path(spec.origin).parent.glob("_[a-z]*.py" if module == "otprop" else "*.py"))
        for path in paths:
            digest.update(ast.dump(_bare(ast.parse(path.read_text(encoding="utf-8")))).encode())
    return digest.hexdigest()[:12]


def _bare(tree: ast.Module) -> ast.Module:
    """Without docstrings."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                node.body = node.body[1:]
    return tree


def _each(make: Callable[[Workspace, Params, int], Any]) -> Runner:
    """A runner that fits an estimator for each candidate and set of labels."""

    def run(work: Workspace, candidates: list[Params], sets: list[np.ndarray], seeds: list[int]) -> Iterator[Answers]:
        for params in candidates:
            start = perf_counter()
            models = []
            for codes, seed in zip(sets, seeds, strict=True):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    model = make(work, params, seed).fit(work.data.X, codes)
                models.append((model.transduction_, getattr(model, "confidence_", None)))
            seconds = perf_counter() - start
            found, confidence = zip(*models, strict=True)
            yield Answers(params, np.stack(found), seconds, None if confidence[0] is None else np.stack(confidence))

    return run


def _shared(run: Callable[[Workspace, list[Params], list[np.ndarray]], Iterator[Labelled]]) -> Runner:
    return lambda work, candidates, sets, seeds: (Answers(*one) for one in run(work, candidates, sets))


def _released(work: Workspace, candidates: list[Params], sets: list[np.ndarray], seeds: list[int]) -> Iterator[Answers]:
    for params in candidates:
        start = perf_counter()
        epsilon = params["raw_epsilon"] if "raw_epsilon" in params else work.epsilon(params["epsilon"])
        found = np.stack([released_loop(work.costs, codes, epsilon) for codes in sets])
        yield Answers(params, found, perf_counter() - start)


def _logistic(params: Params, seed: int) -> Any:
    return make_classifier("logistic", seed).set_params(logisticregression__C=params["C"])


def _trees(params: Params, seed: int) -> Any:
    return make_classifier("extra_trees", seed).set_params(min_samples_leaf=params["leaf"])


_OTP = ("otprop", "otprop.geometry", "otprop.transport", "otprop.evidence")
_OTP_PAPER = (  # what Algorithm 1 goes through: work on the default leaves its results valid
    *("otprop._otp", "otprop.propagation.row_level", "otprop.propagation.row_rounds", "otprop.propagation.rounds"),
    *("otprop.geometry.cost", "otprop.geometry.euclidean", "otprop.geometry.pairwise", "otprop.geometry.parallel"),
    "otprop.geometry.scaling",
    *("otprop.transport.sinkhorn", "otprop.transport.stage", "otprop.transport.kernel", "otprop.transport.newton"),
    "otprop.transport.result",
)
_GRAPH = ("otprop.baselines.graph", "otprop.baselines._rows", "otprop.benchmark.shared")
_SUPERVISED = ("otprop.baselines.supervised",)
_SMALL_EPSILON = "epsilon 0.01 only"
_FEW_SIGMAS = Thinning(MOST_ROWS, "every third sigma", {"sigma": grids.SIGMAS[1::3]})

_METHODS = (
    Method("otp", "OTP", "OTP", _each(lambda work, params, seed: OTP(n_jobs=1)), grids.NOTHING, _OTP),
    Method(
        "otp-paper",
        "OTP.paper",
        "OTP",
        _each(lambda work, params, seed: OTP.paper(epsilon=work.epsilon(params["epsilon"]), alpha=0.9)),
        grids.EPSILON,
        _OTP_PAPER,
        thin=(Thinning(MANY_ROWS, f"{_SMALL_EPSILON}, three splits", {"epsilon": (0.01,)}, 3, 1),),
    ),
    Method(
        "released",
        "OTP released",
        "OTP",
        _released,
        grids.EPSILON,
        ("otprop.benchmark.authors",),
        thin=(
            Thinning(MANY_ROWS, f"{_SMALL_EPSILON}, one split", {"epsilon": (0.01,)}, 1, 1, (5.0, 35.0)),
            Thinning(MOST_ROWS, f"{_SMALL_EPSILON}, one split", {"epsilon": (0.01,)}, 1, 1, (5.0,)),
        ),
        needs=import_pot,
    ),
    Method(
        "lp",
        "LP",
        "LP",
        _shared(shared.label_propagation),
        grids.SIGMA,
        ("otprop.baselines.lp", *_GRAPH),
        "sigma",
        thin=(_FEW_SIGMAS,),
    ),
    Method(
        "ls",
        "LS",
        "LS",
        _shared(shared.label_spreading),
        grids.SPREADING,
        ("otprop.baselines.ls", *_GRAPH),
        "sigma",
        thin=(_FEW_SIGMAS,),
    ),
    Method(
        "ls-knn",
        "LS, neighbours",
        None,
        _shared(shared.neighbor_spreading),
        grids.NEIGHBORHOOD,
        ("otprop.baselines.ls", *_GRAPH),
        "n_neighbors",
        thin=(Thinning(MANY_ROWS, "5, 10, 20 neighbours only", {"n_neighbors": (5, 10, 20)}),),
    ),
    Method(
        "lnp",
        "LNP",
        "LNP",
        _shared(shared.linear_neighborhoods),
        grids.NEIGHBORHOOD,
        ("otprop.baselines.lnp", "otprop.baselines._qp", *_GRAPH),
        "n_neighbors",
    ),
    Method(
        "cnmf",
        "CNMF",
        "CNMF",
        _each(lambda work, params, seed: CNMF(random_state=seed)),
        grids.NOTHING,
        ("otprop.baselines.cnmf", "otprop.baselines._clusters"),
    ),
    Method(
        "plcc",
        "PLCC",
        "PLCC",
        _each(lambda work, params, seed: PLCC(params["strength"])),
        grids.LAMBDA,
        ("otprop.baselines.plcc", "otprop.baselines._clusters", "otprop.baselines._rows"),
    ),
    Method(
        "1nn",
        "1-NN",
        None,
        _each(lambda work, params, seed: NearestNeighbor()),
        grids.NOTHING,
        ("otprop.baselines.nearest", "otprop.baselines._rows"),
    ),
    Method(
        "vote",
        "kernel vote",
        None,
        _shared(shared.kernel_vote),
        grids.SIGMA,
        ("otprop.baselines.nearest", *_GRAPH),
        "sigma",
    ),
    Method(
        "logistic",
        "logistic",
        None,
        _each(lambda work, params, seed: Supervised(_logistic(params, seed))),
        grids.COST,
        _SUPERVISED,
    ),
    Method(
        "trees",
        "extra trees",
        None,
        _each(lambda work, params, seed: Supervised(_trees(params, seed))),
        grids.LEAF,
        _SUPERVISED,
    ),
    Method(
        "self-logistic",
        "self-trained logistic",
        None,
        _each(lambda work, params, seed: SelfTraining(_logistic(params, seed))),
        grids.COST,
        _SUPERVISED,
        thin=(Thinning(MANY_ROWS, "C = 1 only; three splits", {"C": (1.0,)}, 3, 1),),
    ),
    Method(
        "self-trees",
        "self-trained trees",
        None,
        _each(lambda work, params, seed: SelfTraining(_trees(params, seed))),
        grids.LEAF,
        _SUPERVISED,
        thin=(
            Thinning(0, "hidden labels drawn once", {}, None, 1),
            Thinning(MANY_ROWS, "leaf size 1 only; three splits", {"leaf": (1,)}, 3, 1),
        ),
    ),
)

METHODS: dict[str, Method] = {method.name: method for method in _METHODS}


def find_method(name: str) -> Method:
    """A method by its name in the command.

    Parameters
    ----------
    name : str

    Returns
    -------
    Method
    """
    if name.lower() not in METHODS:
        hint = did_you_mean(name.lower(), METHODS) or "."
        raise ValueError(f"{name!r} is not a known method{hint} Known: {', '.join(METHODS)}.")
    return METHODS[name.lower()]


def without_thinning(method: Method) -> Method:
    """The same method with its whole grid and all splits, whatever the data set.

    Parameters
    ----------
    method : Method

    Returns
    -------
    Method
    """
    return replace(method, thin=())
