"""The lowest versions that the package allows have none of the holes that its bounds were raised for."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
MENDED = {
    "h11": (0, 16),
    "jinja2": (3, 1, 6),
    "pillow": (12, 3),
    "pyarrow": (23, 0, 1),
    "setuptools": (78, 1, 1),
    "starlette": (1, 3, 1),
    "torch": (2, 10),
    "tornado": (6, 5, 9),
}


@pytest.mark.skipif(not PYPROJECT.exists(), reason="needs the sources")
@pytest.mark.parametrize("package", MENDED)
def test_no_bound_allows_a_version_with_a_known_hole(package):
    found = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))
    required = [*found["build-system"]["requires"], *found["project"]["dependencies"]]
    for extra in found["project"]["optional-dependencies"].values():
        required.extend(extra)
    bounds = [text.partition(">=")[2] for text in required if re.match(rf"{package}\b", text)]
    assert bounds
    for bound in bounds:
        assert tuple(map(int, bound.split("."))) >= MENDED[package]
