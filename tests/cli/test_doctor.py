"""What `otprop doctor` tells, and the help of every command."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from otprop import __version__
from otprop.cli import main

SCREEN = 86  # lines


def test_it_tells_versions_threads_and_parts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert f"otprop {__version__}" in out
    assert np.__version__ in out
    for words in ("jinja2", "cores", "thread pools"):
        assert words in out


def test_every_package_of_an_extra_is_a_part() -> None:
    from otprop.cli.doctor import _OPTIONAL

    path = Path(__file__).parents[2] / "pyproject.toml"
    extras = tomllib.loads(path.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    wanted = {re.split(r"[\[>=]", one)[0] for name in extras.keys() - {"docs", "test"} for one in extras[name]}
    assert wanted - {"otprop"} == set(_OPTIONAL)


def test_a_part_that_is_missing_comes_with_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from otprop.cli import doctor

    found = doctor._version
    monkeypatch.setattr(doctor, "_version", lambda name: None if name == "umap-learn" else found(name))
    assert main(["doctor"]) == 0
    assert "not installed: pip install '.[umap]' in a checkout of otprop" in capsys.readouterr().out


def test_scripts_get_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["otprop"] == __version__
    assert facts["needed"]["numpy"] == np.__version__
    assert facts["threads"]["cores"] >= 1


LIGHT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("sklearn", "scipy", "pandas"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from otprop.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["label", "--help"], ["predict", "-h"]])
def test_what_only_tells_needs_no_library_that_may_be_broken(arguments: list[str]) -> None:
    done = subprocess.run([sys.executable, "-c", LIGHT, *arguments], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "otprop" in done.stdout


def test_a_library_that_cannot_be_imported_is_named_with_what_it_says() -> None:
    done = subprocess.run([sys.executable, "-c", LIGHT, "doctor"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert "CANNOT BE IMPORTED (ModuleNotFoundError: No module named 'sklearn')" in done.stdout
    assert "cores" in done.stdout


@pytest.mark.parametrize("command", [[], ["label"], ["predict"], ["doctor"]])
def test_help_starts_with_an_example_and_fits_a_screen(
    command: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "110")
    assert main([*command, "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("usage: otprop")
    assert lines[2] == "example:"
    assert len(lines) <= SCREEN
    assert max(map(len, lines)) <= 115
