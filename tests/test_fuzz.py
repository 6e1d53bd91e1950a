"""The fuzzers of `make fuzz` run, count, and see a failure."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

FUZZ = Path(__file__).parents[1] / "fuzz"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs alarms")

pytest.importorskip("openpyxl")
pytest.importorskip("pandas")


EXAMPLES = {"estimators": 3, "files": 4, "manifests": 8, "corrections": 10, "workbooks": 3, "sessions": 3}
EACH = """
import json, sys
sys.path.insert(0, sys.argv[1])
import run

def main(name, n):
    return run.main(["--only", name, "--examples", str(n), "--seed", "3"])

found = {name: main(name, n) for name, n in json.loads(sys.argv[2]).items()}
from otprop import OTP
right = OTP.predict_with_confidence
OTP.predict_with_confidence = lambda self, X: (2 * right(self, X)[0], right(self, X)[1])
print("--- broken", file=sys.stderr, flush=True)
print("--- broken", flush=True)
found["broken"] = main("estimators", 6)
print(json.dumps(found))
"""  # one process for all: it takes seconds to begin


@pytest.fixture(scope="module")
def done() -> subprocess.CompletedProcess[str]:
    """A run of each fuzzer, and one on a broken estimator; the last line that it prints is their statuses."""
    command = [sys.executable, "-c", EACH, str(FUZZ), json.dumps(EXAMPLES)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


@pytest.mark.parametrize("name", EXAMPLES)  # the others take longer to begin
def test_a_fuzzer_finds_nothing_in_some_examples(done: subprocess.CompletedProcess[str], name: str) -> None:
    assert done.returncode == 0, done.stderr
    lines = done.stdout.partition("--- broken")[0].splitlines()
    counts = {words[1]: int(words[-1]) for words in map(str.split, lines) if words[0] == name}
    assert json.loads(done.stdout.splitlines()[-1])[name] == 0, done.stderr
    assert (counts["examples"], counts["failed"]) == (EXAMPLES[name], 0)


def test_a_fuzzer_sees_wrong_probabilities_and_says_how_to_repeat_it(done: subprocess.CompletedProcess[str]) -> None:
    calm, _, broken = done.stderr.partition("--- broken\n")
    assert json.loads(done.stdout.splitlines()[-1])["broken"] == 1, done.stderr
    assert "probabilities do not sum to one" in broken
    assert "again: python fuzz/run.py --only estimators --seed 3 --first " in broken
    assert "failed" not in calm
