"""Models whose file was changed: a sound answer or a ModelError in one sentence, in bounded memory.

The examples run in a process of their own with a limit of memory, so that a crash of it is seen and counted.
"""

from __future__ import annotations

import io
import json
import resource
import subprocess
import sys
import tempfile
import traceback
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from harness import CheckError, Run, check, check_sentence, no_endless_loop, no_foreign_warning
from otprop._label import label
from otprop.files import TableError, read_table
from otprop.labelling.model import ModelError, load_model, predict_table
from otprop.table.errors import ColumnError

TABLE = Path(__file__).with_suffix(".csv")
MORE_MEMORY = 1 << 30  # bytes beside those that the process has when the examples begin
JUNK = (None, True, -1, 0, 1, 2**31, 2**63, 10**30, 1e308, -0.5, "", "a", "nan", [], {}, [[]], {"array": 0})
MODELS: dict[str, dict[str, Any]] = {
    "otp": {},
    "boosting": {"settings": {"evidence": ["boosting", "random_forest"]}},
    "paper": {"method": "otp-paper"},
    "inner": {"metric": "inner"},
    "votes": {"votes": {"first": lambda rows: rows.iloc[:, -1]}},
    "balanced": {"objective": "balanced"},
    "groups": {"groups": [str(row // 3) for row in range(60)]},
}
Rng = np.random.Generator


def make_models(folder: Path) -> None:
    """Save a model of each kind."""
    target = TABLE.read_text().splitlines()[0].split(",")[-1]
    for name, how in MODELS.items():
        label(TABLE, target, **how).save(folder / f"{name}.model")


def places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a JSON text as the container and its key."""
    entries = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in entries:
        yield node, key
        yield from places(value)


def changed_text(parts: dict[str, bytes], rng: Rng) -> None:
    text = json.loads(parts["model.json"])
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        found = list(places(text))
        container, key = found[rng.integers(len(found))]
        other, other_key = found[rng.integers(len(found))]
        way = rng.integers(6)
        if way == 0 and isinstance(container, dict):
            del container[key]
        elif way == 1:
            container[key] = json.loads(json.dumps(other[other_key]))
        elif way == 2 and isinstance(container, list):
            container.insert(key, json.loads(json.dumps(container[key])))
        elif way == 3 and isinstance(container, list):
            del container[key]
        elif isinstance(container[key], int) and way > 3:
            container[key] = int(container[key]) + int(rng.choice([-1, 1, -(2**31), 2**40]))
        else:
            container[key] = JUNK[rng.integers(len(JUNK))]
    parts["model.json"] = json.dumps(text).encode()


def changed_array(parts: dict[str, bytes], rng: Rng) -> None:
    names = [name for name in parts if name.endswith(".npy")]
    name = names[rng.integers(len(names))]
    array = np.load(io.BytesIO(parts[name]))
    flat = array.reshape(-1).copy()
    way = rng.integers(8)
    if way == 0 and array.dtype.kind in "fc" and flat.size:
        with np.errstate(all="ignore"):
            flat[rng.integers(flat.size)] = rng.choice([np.nan, np.inf, -np.inf, 1e308, -1.0, 1e-320])
        array = flat.reshape(array.shape)
    elif way == 1 and array.dtype.kind in "iu" and flat.size:
        flat[rng.integers(flat.size)] = rng.choice([0, 1, np.iinfo(flat.dtype).max, np.iinfo(flat.dtype).min])
        array = flat.reshape(array.shape)
    elif way == 2 and array.dtype.names is None:
        kinds = [np.int8, np.float32, np.float64, np.complex128, bool, "U3", "S1", np.int64, "M8[s]", np.uint64]
        with np.errstate(all="ignore"):
            array = array.astype(kinds[rng.integers(len(kinds))], casting="unsafe")
    elif way == 3:
        array = flat[: rng.integers(flat.size + 1)]
    elif way == 4:
        array = array[None] if rng.random() < 0.5 else array.T
    elif way == 5:
        array = np.concatenate([flat, flat])
    elif way == 6:
        array = rng.permutation(flat).reshape(array.shape)
    else:
        other = names[rng.integers(len(names))]
        parts[name], parts[other] = parts[other], parts[name]
        return
    out = io.BytesIO()
    np.save(out, array, allow_pickle=False)
    parts[name] = out.getvalue()


def changed(data: bytes, rng: Rng) -> bytes:
    """The file with some bytes, its text, or arrays of it changed."""
    if rng.random() < 0.25:
        found = bytearray(data)
        for _ in range(rng.choice([1, 2, 8])):
            at = int(rng.integers(len(found)))
            found[at : at + int(rng.choice([1, 1, 4, 0]))] = rng.bytes(int(rng.choice([1, 1, 4, 0])))
        return bytes(found[: rng.integers(len(found))] if rng.random() < 0.1 else found)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    for _ in range(rng.choice([1, 1, 2])):
        (changed_text if rng.random() < 0.5 else changed_array)(parts, rng)
    if rng.random() < 0.05:
        del parts[list(parts)[rng.integers(len(parts))]]
    out = io.BytesIO()
    compression = zipfile.ZIP_DEFLATED if rng.random() < 0.02 else zipfile.ZIP_STORED
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return out.getvalue()


def example(data: bytes, table: Any) -> str:
    """Load the file and label rows by it."""
    try:
        model = load_model(io.BytesIO(data))
    except ModelError as error:
        check_sentence(str(error))
        return "refused when loaded"
    try:
        found = predict_table(model, model.frame(table))
    except (ModelError, ColumnError, TableError) as error:
        check_sentence(str(error))
        return "refused when used"
    except ValueError as error:
        check(str(error).startswith("the table lacks"), str(error))
        return "refused when used"
    codes, distributions, confidence = found.codes, found.distributions, found.confidence
    check(((codes >= 0) & (codes < len(model.classes))).all(), "a label is no class")
    check(np.isfinite(distributions).all(), "probabilities are no numbers")
    check(np.abs(distributions.sum(axis=1) - 1).max() < 1e-6, "probabilities do not sum to one")
    check(confidence is None or ((confidence >= 0) & (confidence <= 1)).all(), "confidence is outside of [0, 1]")
    return "labelled"


def child(folder: str, seed: int, first: int) -> None:
    """Run examples until the process is ended; a line of standard output for each."""
    files = [path.read_bytes() for path in sorted(Path(folder).iterdir())]
    table = read_table(TABLE)
    for data in files:
        check(example(data, table) == "labelled", "a sound model is refused")
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MORE_MEMORY, used + MORE_MEMORY))
    number = first
    while True:
        rng = np.random.default_rng([seed, number])
        try:
            with no_endless_loop(60), no_foreign_warning():
                outcome = example(changed(files[rng.integers(len(files))], rng), table)
        except (Exception, CheckError) as error:
            outcome = "failed: " + "".join(traceback.format_exception(error))
        print(json.dumps(outcome), flush=True)
        number += 1


def run(options: Run) -> None:
    with tempfile.TemporaryDirectory() as folder:
        make_models(Path(folder))
        numbers, process = options.numbers(), None
        for number in numbers:
            if process is None:
                command = [sys.executable, __file__, folder, str(options.seed), str(number)]
                process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            options.count("examples")
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                options.fail(number, f"the process ended with status {process.wait()}")
                process = None
                continue
            outcome = json.loads(line)
            if outcome.startswith("failed"):
                options.fail(number, outcome)
            else:
                options.count(outcome)
        if process is not None:
            process.kill()
            process.communicate()


if __name__ == "__main__":
    child(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
