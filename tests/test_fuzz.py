"""The fuzzers of `make fuzz` run, count, and see a failure."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

FUZZ = Path(__file__).parents[1] / "fuzz"

pytest.importorskip("openpyxl")
pytest.importorskip("pandas")


EXAMPLES = {"estimators": 3, "files": 4, "manifests": 8, "corrections": 10, "workbooks": 3, "sessions": 3}
EACH = """
import json, sys
sys.path.insert(0, sys.argv[1])
import run
found = {}
for name, n in json.loads(sys.argv[2]).items():
    print("---", name, file=sys.stderr)
    found[name] = run.main(["--only", name, "--examples", str(n), "--seed", "3"])
print(json.dumps(found))
"""  # one process for all of them: each takes seconds to begin


@pytest.fixture(scope="module")
def done() -> subprocess.CompletedProcess[str]:
    """A run of each fuzzer; the last line of what it prints is their statuses."""
    command = [sys.executable, "-c", EACH, str(FUZZ), json.dumps(EXAMPLES)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


@pytest.mark.skipif(sys.platform != "linux", reason="needs alarms")
@pytest.mark.parametrize("name", EXAMPLES)  # the others take longer to begin
def test_a_fuzzer_finds_nothing_in_some_examples(done: subprocess.CompletedProcess[str], name: str) -> None:
    assert done.returncode == 0, done.stderr
    *lines, statuses = done.stdout.splitlines()
    counts = {words[1]: int(words[-1]) for words in map(str.split, lines) if words[0] == name}
    assert json.loads(statuses)[name] == 0, done.stderr
    assert (counts["examples"], counts["failed"]) == (EXAMPLES[name], 0)


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
