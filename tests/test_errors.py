"""One base for the exceptions of the package."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import otprop
from otprop.cli import main
from tests.cli.conftest import lots  # noqa: F401

INTERNAL = {"UnclosedQuoteError", "_InfeasibleError", "Refusal"}  # caught in the package


def exceptions() -> list[type[BaseException]]:
    found = set()
    for module in pkgutil.walk_packages(otprop.__path__, "otprop."):
        if module.name.endswith("__main__"):
            continue
        try:
            members = inspect.getmembers(importlib.import_module(module.name), inspect.isclass)
        except ImportError:  # an extra that is not installed
            continue
        found |= {kind for _, kind in members if issubclass(kind, Exception) and kind.__module__.startswith("otprop.")}
    return sorted((kind for kind in found if kind.__name__ not in INTERNAL), key=lambda kind: kind.__name__)


@pytest.mark.parametrize("kind", exceptions(), ids=lambda kind: kind.__name__)
def test_every_exception_derives_from_the_base(kind: type[BaseException]) -> None:
    if not issubclass(kind, Warning):
        assert issubclass(kind, otprop.OtpropError)


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        (np.eye(4), [-1, -1, -1, -1], "y has no labelled row"),
        (np.eye(4), [0, 1, -1], "X has 4 rows and y 3"),
        (np.arange(4.0), [0, 1, -1, -1], r"got X of shape \(4,\)\. Reshape your data: X\.reshape"),
        (
            np.where(np.eye(4) > 0, np.inf, 0.0)[:, ::-1],
            [0, 1, -1, -1],
            "infinity.*, first in row 0, column 3. Replace",
        ),
        (csr_array(np.full((4, 4), np.inf)), [0, 1, -1, -1], "that is too large for a float. Replace"),
        (np.eye(4) * 1j, [0, 1, -1, -1], "Complex data not supported: give X as real numbers"),
        (np.full((4, 2), np.nan), [0, 1, -1, -1], "Input X contains NaN. Fill missing values"),
    ],
)
def test_rows_and_labels_that_are_refused_raise_the_base_in_one_line(X: Any, y: Any, words: str) -> None:
    with pytest.raises(otprop.OtpropError, match=words) as caught:
        otprop.OTP().fit(X, y)
    assert isinstance(caught.value, ValueError)
    assert "\n" not in str(caught.value)


def test_the_command_ends_with_2_for_what_the_package_refuses(tmp_path: Path) -> None:
    path = tmp_path / "lots.csv"
    path.write_text("weight,kind\n1,a\n2,\n", encoding="utf-8")
    (tmp_path / "no.model").write_bytes(b"nothing")
    for command in (
        ["label", str(tmp_path / "no.csv"), "--target", "kind"],
        ["label", str(path), "--target", "colour"],
        ["label", str(path), "--target", "kind"],  # one class
        ["suggest", str(path), "--target", "kind", "-n", "0"],
        ["check", str(path), "--target", "kind", "--encoding", "x"],
        ["predict", str(tmp_path / "no.model"), str(path)],
    ):
        assert main(command) == 2


def test_a_parameter_of_the_method_that_is_refused_ends_with_2(
    lots: Path,  # noqa: F811
    capsys: pytest.CaptureFixture[str],
) -> None:
    for setting, words in (("cost=foo", "--set cost='foo' is not a known metric"), ("n_jobs=1", "give it with --jobs")):
        assert main(["label", str(lots), "--target", "kind", "--set", setting, "-o", "-"]) == 2
        assert words in capsys.readouterr().err
