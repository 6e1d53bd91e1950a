"""Functions and classes as an edited file would define them."""

from __future__ import annotations

import pytest

from tests.deep.bars import NO_TORCH

torch = pytest.importorskip("torch", reason=NO_TORCH)
pytest.importorskip("safetensors", reason=NO_TORCH)

from otprop.deep import conv_net  # noqa: E402


def made_by(source, name):
    """The function or class that the source defines, as a file that is edited and imported again would give it."""
    namespace = {"torch": torch, "nn": torch.nn, "conv_net": conv_net, "__name__": "mine"}
    exec(source, namespace)
    return namespace[name]


AUGMENT = """
def augment(batch):
    def shifted(rows):
        return rows + 0.5
    return shifted(batch)

class Shift:
    axes = (0, 1)

    def __init__(self, by=1):
        self.by = by

    def __call__(self, batch):
        return batch + self.by

def held(by):
    return lambda batch: batch + by

shift, method, closed = Shift(), Shift().__call__, held(1)
"""
