"""`otprop doctor`: what is installed, what it runs on, where the data is."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import sys
from typing import Any

from otprop import __version__
from otprop.cli._command import add_command

_NEEDED = ("numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl", "rich")
_OPTIONAL = {
    "pandas": "otprop[files]",
    "pyarrow": "otprop[files]",
    "skrub": "otprop[files]",
    "matplotlib": "otprop[plot]",
    "POT": "otprop[pot]",
    "umap-learn": "otprop[umap]",
}
_EXAMPLE = """\
example:
  otprop doctor
  otprop doctor --json

Prints versions, threads, the optional parts that were found, and the data folder.
"""


def add_parser(commands: Any) -> None:
    """Add this command to the others."""
    brief = "print versions, threads, optional parts and the data folder"
    parser = add_command(commands, "doctor", run_command, brief=brief, usage="doctor [--json]", text=_EXAMPLE)
    parser.add_argument("--json", action="store_true", help="for scripts")


def run_command(options: argparse.Namespace, arguments: list[str]) -> int:
    """Print it.

    Parameters
    ----------
    options : argparse.Namespace
    arguments : list of str, as given

    Returns
    -------
    int
        1 where something that is needed is missing.
    """
    found = {name: _version(name) for name in (*_NEEDED, *_OPTIONAL)}
    facts: dict[str, Any] = {
        "otprop": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "needed": {name: found[name] for name in _NEEDED},
        "optional": {name: found[name] for name in _OPTIONAL},
        "threads": _threads(),
        "memory": _memory(),
        "data": _data(),
    }
    sys.stdout.write(json.dumps(facts, indent=2) + "\n" if options.json else _in_words(facts))
    return 0 if all(facts["needed"].values()) else 1


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _threads() -> dict[str, Any]:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    limits = {name: os.environ[name] for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS") if name in os.environ}
    pools = []
    if _version("threadpoolctl") and _version("numpy"):
        import numpy  # noqa: F401 - its thread pool is what is looked at
        from threadpoolctl import threadpool_info

        pools = [f"{pool['internal_api']} {pool['num_threads']}" for pool in threadpool_info()]
    return {"cores": usable, "pools": pools, "limits": limits}


def _memory() -> str:
    try:
        return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.1f} GiB"
    except (AttributeError, ValueError, OSError):
        return "not known"


def _data() -> list[dict[str, Any]]:
    from otprop.datasets._store import places

    return [
        {
            "what": place.what,
            "folder": None if place.folder is None else str(place.folder),
            "there": place.folder is not None and place.folder.is_dir(),
        }
        for place in places()
    ]


def _in_words(facts: dict[str, Any]) -> str:
    lines = [f"otprop {facts['otprop']}, Python {facts['python']}, {facts['system']}", "", "needed"]
    lines += [f"  {name:<14} {version or 'MISSING'}" for name, version in facts["needed"].items()]
    lines += ["", "optional"]
    for name, version in facts["optional"].items():
        lines.append(f"  {name:<14} {version or f'not installed: pip install {_OPTIONAL[name]!r}'}")
    threads = facts["threads"]
    limits = ", ".join(f"{name}={value}" for name, value in threads["limits"].items())
    lines += ["", f"cores {threads['cores']}; thread pools: {', '.join(threads['pools']) or 'none'}"]
    lines += [f"limits: {limits}"] if limits else []
    lines += [f"memory {facts['memory']}", ""]
    lines.append("benchmark data is looked for in")
    for place in facts["data"]:
        words = "not set" if place["folder"] is None else place["folder"] + ("" if place["there"] else " (not there)")
        lines.append(f"  {place['what']}: {words}")
    return "\n".join(lines) + "\n"
