"""The fuzzers of `make fuzz` run, count, and see a failure."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FUZZ = Path(__file__).parents[1] / "fuzz"

pytest.importorskip("openpyxl")
pytest.importorskip("pandas")


def run(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(FUZZ / "run.py"), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


@pytest.mark.skipif(sys.platform != "linux", reason="needs alarms")
@pytest.mark.parametrize(
    ("name", "n"),
    [("estimators", 3), ("files", 4), ("manifests", 8), ("corrections", 10), ("workbooks", 3), ("sessions", 3)],
)  # the others take longer to begin
def test_a_fuzzer_finds_nothing_in_some_examples(name: str, n: int) -> None:
    done = run("--only", name, "--examples", str(n), "--seed", "3")
    counts = {line.split()[1]: int(line.split()[-1]) for line in done.stdout.splitlines()}
    assert done.returncode == 0, done.stderr
    assert (counts["examples"], counts["failed"]) == (n, 0)


BROKEN = """
import sys
sys.path.insert(0, sys.argv[1])
import run, harness, estimators
from otprop import OTP
found = OTP.predict_with_confidence
OTP.predict_with_confidence = lambda self, X: (2 * found(self, X)[0], found(self, X)[1])
sys.exit(run.main(["--only", "estimators", "--examples", "6", "--seed", "3"]))
"""


def test_a_fuzzer_sees_wrong_probabilities_and_says_how_to_repeat_it() -> None:
    done = subprocess.run([sys.executable, "-c", BROKEN, str(FUZZ)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "probabilities do not sum to one" in done.stderr
    assert "again: python fuzz/run.py --only estimators --seed 3 --first " in done.stderr
