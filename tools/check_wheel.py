"""Check a built wheel and sdist: what they hold, and that the wheel works in an empty environment.

    python tools/check_wheel.py dist

The wheel must hold every file of src/otprop; the sdist also tests, examples, docs and paper/. The wheel is then
installed into a new virtual environment outside the checkout: first alone, where the estimator must work, then with
the extra ``files``, where ``otprop label`` labels examples/orchard.csv and writes its page.
"""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = "files"
FIT = """
import otprop, sys
from sklearn.datasets import load_iris
X, truth = load_iris(return_X_y=True)
y = truth.copy()
y[[row for row in range(150) if row % 10]] = -1
right = (otprop.OTP().fit(X, y).transduction_ == truth).mean()
assert right > 0.9, f"only {right:.0%} of the labels are right"
print("otprop", otprop.__version__, "from", otprop.__file__)
"""


def main() -> None:
    """Check the one wheel and the one sdist in the folder named on the command line."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "dist").resolve()
    wheel, sdist = _only(folder, "*.whl"), _only(folder, "*.tar.gz")
    check_wheel_files(wheel)
    check_sdist_files(sdist)
    with tempfile.TemporaryDirectory() as place:
        check_installed(wheel, Path(place))
    print(f"{wheel.name} and {sdist.name} are complete, and the wheel works")


def check_wheel_files(wheel: Path) -> None:
    """Every file of src/otprop is in the wheel, and nothing but the package."""
    source = ROOT / "src"
    expected = {
        path.relative_to(source).as_posix()
        for path in (source / "otprop").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    found = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    _demand(not expected - found, f"the wheel lacks {sorted(expected - found)}; see package-data in pyproject.toml")
    _demand(not found - expected, f"the wheel holds {sorted(found - expected)}, which src/otprop does not")


def check_sdist_files(sdist: Path) -> None:
    """Tests, examples, documentation and the experiment are in the sdist."""
    with tarfile.open(sdist) as archive:
        found = {name.partition("/")[2] for name in archive.getnames()}
    listed = subprocess.run(
        ["git", "ls-files", "tests", "examples", "docs", "paper"], cwd=ROOT, capture_output=True, text=True
    )
    expected = set(listed.stdout.split()) | {"README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "pyproject.toml"}
    expected = {name for name in expected if (ROOT / name).exists()}
    _demand(not expected - found, f"the sdist lacks {sorted(expected - found)}; see MANIFEST.in")


def check_installed(wheel: Path, place: Path) -> None:
    """The wheel works in a new environment: the estimator without extras, the command with them."""
    _run(place, sys.executable, "-m", "venv", str(place / "venv"))
    scripts = place / "venv" / ("Scripts" if os.name == "nt" else "bin")
    python = str(scripts / "python")
    _run(place, python, "-m", "pip", "install", "--quiet", str(wheel))
    _run(place, python, "-I", "-c", FIT)
    _run(place, python, "-m", "pip", "install", "--quiet", f"{wheel}[{EXTRAS}]")
    given = ROOT / "examples" / "orchard.csv"
    output, page = place / "labelled.csv", place / "page.html"
    command = [str(scripts / "otprop"), "label", str(given), "--target", "variety"]
    _run(place, *command, "--output", str(output), "--report", str(page))
    with given.open(encoding="utf-8", newline="") as file:
        n_rows = sum(1 for _ in csv.DictReader(file))
    with output.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    _demand(len(rows) == n_rows, f"{len(rows)} rows were written of {n_rows}")
    _demand(all(row["variety_label"] for row in rows), "some rows have no label")
    text = page.read_text(encoding="utf-8")
    _demand("<style" in text and "<script" in text, "the page has no style or script: package data are missing")


def _only(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    _demand(len(found) == 1, f"{folder} holds {len(found)} files {pattern}, not one")
    return found[0]


def _run(place: Path, *command: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run(command, cwd=place, env=environment, check=True)


def _demand(true: bool, message: str) -> None:
    if not true:
        raise SystemExit(f"check_wheel: {message}")


if __name__ == "__main__":
    main()
