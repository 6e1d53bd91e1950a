"""What a user finds: names, docstrings, examples that run."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re

import pytest

import otprop
from tests.estimators import balanced, geometry

MODULES = sorted(
    module.name for module in pkgutil.walk_packages(otprop.__path__, "otprop.") if not module.name.endswith("__main__")
)
PUBLIC_PACKAGES = (
    *("otprop", "otprop.transport", "otprop.baselines", "otprop.datasets", "otprop.files", "otprop.model_selection"),
    "otprop.deep",
)


def public_objects():
    for package in PUBLIC_PACKAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            if inspect.isclass(thing := getattr(module, name)) or inspect.isfunction(thing):
                yield pytest.param(thing, id=f"{package}.{name}")


@pytest.mark.parametrize("thing", list(public_objects()))
def test_every_parameter_of_a_public_name_is_documented(thing):
    text = inspect.getdoc(thing) or ""
    assert len(text.splitlines()[0]) > 10
    if isinstance(thing, type) and issubclass(thing, Exception):
        return  # what it takes is a message
    for name in inspect.signature(thing).parameters:
        if name not in ("self", "args", "kwargs"):
            entry = rf"(?m)^ *[\w*, ]*\b{name}\b[\w*, ]* : |^ *\**{name}$"
            assert re.search(entry, text), f"{thing.__name__} does not document {name}"


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_docstrings_run(name):
    module = importlib.import_module(name)
    if name.startswith("otprop.deep."):
        pytest.importorskip("torch", reason="needs PyTorch: pip install 'otprop[deep]'")
    assert doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0


def test_the_version_is_that_of_the_package():
    from importlib.metadata import version

    assert otprop.__version__ == version("otprop")


@pytest.mark.parametrize("way", [geometry, balanced])
def test_every_attribute_of_a_fitted_model_is_documented(way):
    model = way().fit([[0.0], [1.0], [0.2], [0.8]], [0, 1, -1, -1])
    for name in vars(model):
        if name.endswith("_") and not name.startswith("_"):
            assert f"\n{name}" in inspect.cleandoc(otprop.OTP.__doc__), name


@pytest.mark.parametrize("way", [geometry, balanced])
def test_the_rounds_can_be_drawn(tmp_path, way):
    from sklearn.datasets import load_iris

    from otprop.report.rounds import plot_rounds

    X, y = load_iris(return_X_y=True)
    y[::2] = -1
    model = way().fit(X, y)
    figure = plot_rounds(model, X)
    panels = [axis for axis in figure.axes if axis.get_visible()]
    assert panels[0].get_title() == "given labels"
    assert panels[-1].get_title() == f"round {len(model.rounds_)}: 75 of 75 labelled"
    figure.savefig(tmp_path / "rounds.png")
    assert (tmp_path / "rounds.png").stat().st_size > 10_000
    with pytest.raises(ValueError, match="X has 10 rows, but the model was fitted on 150"):
        plot_rounds(model, X[:10])
