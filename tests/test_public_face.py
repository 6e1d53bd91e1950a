"""What a user finds: names, docstrings, examples that run."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re

import pytest

import otprop
from tests.estimators import geometry

PUBLIC_PACKAGES = (
    *("otprop", "otprop.transport", "otprop.files", "otprop.model_selection", "otprop.deep", "otprop.plotting"),
)


def modules_of(package):
    """The names of all modules of a package."""
    found = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    return sorted(module.name for module in found if not module.name.endswith("__main__"))


def public_objects(packages):
    for package in packages:
        module = importlib.import_module(package)
        for name in module.__all__:
            if inspect.isclass(thing := getattr(module, name)) or inspect.isfunction(thing):
                yield pytest.param(thing, id=f"{package}.{name}")


def check_parameters_documented(thing):
    text = inspect.getdoc(thing) or ""
    assert len(text.splitlines()[0]) > 10
    if isinstance(thing, type) and issubclass(thing, Exception):
        return  # what it takes is a message
    for name in inspect.signature(thing).parameters:
        if name not in ("self", "args", "kwargs"):
            entry = rf"(?m)^ *[\w*, ]*\b{name}\b[\w*, ]* : |^ *\**{name}$"
            assert re.search(entry, text), f"{thing.__name__} does not document {name}"


def check_examples_run(name):
    assert doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0


@pytest.mark.parametrize("thing", list(public_objects(PUBLIC_PACKAGES)))
def test_every_parameter_of_a_public_name_is_documented(thing):
    check_parameters_documented(thing)


@pytest.mark.parametrize("name", modules_of(otprop))
def test_the_examples_in_docstrings_run(name):
    if name.startswith("otprop.deep."):
        pytest.importorskip("torch", reason="needs PyTorch: pip install '.[deep]' in a checkout of otprop")
    check_examples_run(name)


def test_the_version_is_that_of_the_package():
    from importlib.metadata import version

    assert otprop.__version__ == version("otprop")


@pytest.mark.parametrize("way", [geometry, otprop.PaperOTP])
def test_every_attribute_of_a_fitted_model_is_documented(way):
    model = way().fit([[0.0], [1.0], [0.2], [0.8]], [0, 1, -1, -1])
    for name in vars(model):
        if name.endswith("_") and not name.startswith("_"):
            assert f"\n{name}" in inspect.getdoc(type(model)), name
