"""Rounds of a network whose files were changed: the same result, or a CheckpointError in one sentence."""

from __future__ import annotations

import contextlib
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from harness import Run, check, check_sentence, no_foreign_warning

JUNK: tuple[Any, ...] = (None, True, -1, 0, 2, 1.5, 2**63, 1e308, "", "1", [], {}, [[]], float("inf"), float("nan"))
NAME = "round-01.safetensors"
Rng = np.random.Generator


def pick(rng: Rng, options: Any) -> Any:
    return options[rng.integers(len(options))]


def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    truth = np.arange(40) % 2
    return (rng.normal(size=(40, 6)) + 3 * truth[:, None]).astype(np.float32), np.where(np.arange(40) < 10, truth, -1)


def trainer(folder: Path) -> Any:
    from otprop import OTP
    from otprop.deep import PseudoLabelTrainer

    return PseudoLabelTrainer(n_rounds=1, n_steps=3, transport=OTP(evidence=None), checkpoint=folder)


def changed_record(text: str, rng: Rng) -> str:
    """The record with some of its values changed, or another text."""
    if rng.random() < 0.2:
        return str(pick(rng, ("", "[]", "{}", "3", "null", "[" * 100_000, '"a"', "{" * 9)))
    record = json.loads(text)
    for _ in range(rng.choice([1, 1, 3])):
        name = pick(rng, [*record, "another"])
        if rng.random() < 0.2:
            record.pop(name, None)
        else:
            record[name] = pick(rng, JUNK)
    return json.dumps(record)


def changed_tensors(tensors: dict[str, Any], rng: Rng) -> None:
    import torch

    name = pick(rng, [*tensors, "codes"])
    value, way = tensors.get(name), rng.integers(6)
    if value is None or way == 0:
        tensors.pop(name, None)
    elif way == 1:
        kinds = (torch.bfloat16, torch.float16, torch.float64, torch.int64, torch.uint8, torch.bool)
        tensors[name] = value.to(pick(rng, kinds))
    elif way == 2:
        tensors[name] = value.reshape(-1)[: rng.integers(value.numel() + 1)].clone()
    elif way == 3 and value.numel():
        odd = (torch.inf, -torch.inf, torch.nan, 1e30) if value.is_floating_point() else (-2, 99, 2**31 - 1)
        value.reshape(-1)[rng.integers(value.numel())] = pick(rng, odd)
    elif way == 4:
        tensors[str(pick(rng, ("network.other", "other", "")))] = value.clone()
    else:
        tensors[name] = value[None].clone()


def rewritten(content: bytes, path: Path, rng: Rng) -> None:
    """Write the round with other bytes, tensors or texts; with a digest that fits, mostly."""
    from safetensors import safe_open
    from safetensors.torch import save_file

    from otprop.deep.checkpoint import _digest

    path.write_bytes(content)
    if rng.random() < 0.3:
        bad = bytearray(content)
        for _ in range(rng.choice([1, 2, 8])):
            bad[rng.integers(len(bad))] = int(rng.integers(256))
        path.write_bytes(bytes(bad[: rng.integers(len(bad))] if rng.random() < 0.2 else bad))
        return
    with safe_open(path, framework="pt") as file:
        header, tensors = dict(file.metadata()), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    if rng.random() < 0.5:
        header["record"] = changed_record(header["record"], rng)
    else:
        changed_tensors(tensors, rng)
    if rng.random() < 0.1:
        header["made_from"] = str(pick(rng, ("", "[]", "{}", "[" * 100_000, "3", '{"X": 1}')))
    if rng.random() < 0.1:
        header.pop(pick(rng, list(header)))
    header["digest"] = _digest(header.get("record", ""), tensors)
    save_file(tensors, path, metadata=header)


def run(options: Run) -> None:
    try:
        import safetensors  # noqa: F401
        import torch  # noqa: F401
    except ImportError:
        options.count("left out, as there is no PyTorch")
        return
    from otprop.deep import CheckpointError

    X, y = data()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        expected = trainer(folder).fit(X, y).transduction_
        files = {path: path.read_bytes() for path in folder.iterdir()}

        def example(rng: Rng) -> str:
            for path, content in files.items():
                path.write_bytes(content)
            rewritten(files[folder / NAME], folder / NAME, rng)
            try:
                with no_foreign_warning(), contextlib.redirect_stdout(None):
                    found = trainer(folder).fit(X, y)
            except CheckpointError as error:
                check_sentence(str(error))
                return "refused"
            check(np.isin(found.transduction_, [0, 1]).all(), "a label is no class")
            check(np.isfinite(found.predict_proba(X)).all(), "probabilities are no numbers")
            return "the same" if (found.transduction_ == expected).all() else "used with other values"

        options.each(example)
