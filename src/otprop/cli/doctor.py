"""`otprop doctor`: what is installed, and the machine."""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
import os
import platform
import sys
from typing import Any

from otprop import __version__
from otprop._errors import install_command
from otprop.cli._command import add_command

_NEEDED = ("numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl")
_MODULES = {"scikit-learn": "sklearn"}  # where the name of the module is another
_OPTIONAL = {
    "rich": "cli",
    "pandas": "files",
    "pyarrow": "files",
    "jinja2": "files",
    "platformdirs": "files",
    "pillow": "images",
    "openpyxl": "excel",
    "h5py": "anndata",
    "matplotlib": "plot",
    "umap-learn": "umap",
    "torch": "deep",
    "safetensors": "deep",
    "dask": "dask",
    "distributed": "dask",
    "cryptography": "dask",
    "tornado": "dask",
    "starlette": "studio",
    "uvicorn": "studio",
    "h11": "studio",
}
_EXAMPLE = """\
example:
  otprop doctor
  otprop doctor --json

Print versions, threads and the optional packages that are installed.
"""


def add_parser(commands: Any) -> None:
    """Add this command to the others."""
    parser = add_command(commands, "doctor", run_command, usage="doctor [--json]", text=_EXAMPLE)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run_command(options: argparse.Namespace, arguments: list[str]) -> int:
    """Print it; returns 1 where something that is needed is missing or cannot be imported."""
    found = {name: _version(name) for name in (*_NEEDED, *_OPTIONAL)}
    broken = {name: why for name in _NEEDED if found[name] and (why := _why_broken(name))}
    facts: dict[str, Any] = {
        "otprop": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "needed": {name: found[name] for name in _NEEDED},
        "broken": broken,
        "optional": {name: found[name] for name in _OPTIONAL},
        "threads": _threads(),
        "memory": _memory(),
    }
    sys.stdout.write(json.dumps(facts, indent=2) + "\n" if options.json else _report(facts))
    return 0 if all(facts["needed"].values()) and not broken else 1


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _why_broken(name: str) -> str:
    """The error of an installed library when it is imported; empty where it can be."""
    try:
        importlib.import_module(_MODULES.get(name, name))
    except Exception as error:  # whatever a broken installation throws
        return " ".join(f"{type(error).__name__}: {error}".split())
    return ""


def _threads() -> dict[str, Any]:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    limits = {name: os.environ[name] for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS") if name in os.environ}
    pools = []
    if _version("threadpoolctl") and not _why_broken("threadpoolctl"):
        from threadpoolctl import threadpool_info

        pools = [f"{pool['internal_api']} {pool['num_threads']}" for pool in threadpool_info()]
    return {"cores": usable, "pools": pools, "limits": limits}


def _memory() -> str:
    try:
        return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.1f} GiB"
    except (AttributeError, ValueError, OSError):
        return "not known"


def _report(facts: dict[str, Any]) -> str:
    lines = [f"otprop {facts['otprop']}, Python {facts['python']}, {facts['system']}", "", "needed"]
    for name, version in facts["needed"].items():
        why = facts["broken"].get(name)
        lines.append(f"  {name:<14} {version or 'MISSING'}{f'  CANNOT BE IMPORTED ({why})' if why else ''}")
    lines += ["", "optional"]
    for name, version in facts["optional"].items():
        lines.append(f"  {name:<14} {version or f'not installed: {install_command(_OPTIONAL[name])}'}")
    threads = facts["threads"]
    limits = ", ".join(f"{name}={value}" for name, value in threads["limits"].items())
    lines += ["", f"cores {threads['cores']}; thread pools: {', '.join(threads['pools']) or 'none'}"]
    lines += [f"limits: {limits}"] if limits else []
    lines += [f"memory {facts['memory']}"]
    return "\n".join(lines) + "\n"
