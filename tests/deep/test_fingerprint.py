"""Inputs of a run as texts and digests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.deep.bars import NO_TORCH

torch = pytest.importorskip("torch", reason=NO_TORCH)


pytest.importorskip("safetensors", reason=NO_TORCH)

from otprop.deep.fingerprint import describe, differences, fingerprint  # noqa: E402
from tests.deep.sources import AUGMENT, made_by  # noqa: E402

NETWORK = """
class Net(nn.Module):
    def __init__(self, n_classes):
        super().__init__()
        self.body, self.head = nn.Linear(64, 5), nn.Linear(5, n_classes)

    def forward(self, rows):
        return self.head(torch.relu(self.body(rows.flatten(1))))

WIDTH = 8

def own_class(shape, n_classes):
    return Net(n_classes)

def reads_a_global(shape, n_classes):
    return conv_net(shape, n_classes, n_features=WIDTH)
"""


@pytest.mark.parametrize(
    ("parameter", "source", "name", "edit"),
    [
        ("network", NETWORK, "own_class", ("torch.relu", "torch.tanh")),
        ("network", NETWORK, "reads_a_global", ("WIDTH = 8", "WIDTH = 9")),
        ("augment", AUGMENT, "augment", ("0.5", "0.25")),
        ("augment", AUGMENT, "shift", ("batch + self", "batch - self")),
        ("augment", AUGMENT, "shift", ("by=1", "by=2")),
        ("augment", AUGMENT, "shift", ("(0, 1)", "(0, 2)")),
        ("augment", AUGMENT, "method", ("by=1", "by=2")),
        ("augment", AUGMENT, "closed", ("held(1)", "held(2)")),
    ],
)
def test_an_edited_function_is_another_one(parameter, source, name, edit):
    def parts(text):
        value = made_by(text, name)
        module = value((8, 8), 3) if parameter == "network" else None
        return fingerprint(np.zeros((2, 64)), np.array([0, 1]), {parameter: value}, module)

    moved = parts("\n\n" + source)
    assert parts(source) == moved, "the same code in another place is the same"
    found = differences(parts(source.replace(*edit)), moved)
    assert len(found) == 1
    assert re.match(f"{parameter} differs in its code", found[0])


def test_a_function_is_described_alike_in_another_process():
    code = (
        "from otprop.deep.fingerprint import describe; from tests.deep.bars import narrow, quick, rolled;"
        "found = describe([narrow(), rolled, quick(), {'a', 'b', 'c', 'd'}, lambda x: x in {'a', 'b', 'c', 'd'}])"
    )
    here = {}
    exec(code, here)
    command = [sys.executable, "-c", f"{code}; print(found)"]
    other_order = os.environ | {"PYTHONHASHSEED": "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"}
    root = Path(__file__).resolve().parents[2]
    there = subprocess.run(command, cwd=root, env=other_order, capture_output=True, check=True, text=True)
    assert there.stdout.strip() == here["found"]
    assert " at 0x" not in here["found"]


def test_arrays_and_tensors_that_a_function_holds_are_compared_by_value():
    def described(number):
        return {
            describe(np.array([number])),
            describe(torch.tensor([number])),
            describe(torch.tensor([number], dtype=torch.bfloat16)),
            describe(np.array([number], dtype="datetime64[s]")),
        }

    assert described(1) == described(1)
    assert not described(1) & described(2)
    assert len(described(1)) == 4


def test_what_holds_itself_is_described():
    def again(batch):
        return again(batch)

    loop = [again]
    loop.append(loop)
    assert describe(loop) == describe(loop)
