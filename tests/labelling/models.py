"""Jobs that have run, their model files, and what is inside."""

from __future__ import annotations

import io
import json
import zipfile
from types import SimpleNamespace

import numpy as np
import pytest

from otprop import OTP
from otprop.labelling.model import SavedModel, load_model, save_model
from otprop.table.features import Features
from otprop.table.target import read_target
from tests.table.frames import mixed

pd = pytest.importorskip("pandas")


def make(estimator=None, frame=None):
    """A job that has run: half of the labels are given."""
    frame = mixed() if frame is None else frame
    rng = np.random.default_rng(0)
    labels = np.where(frame["age"].fillna(40) > 40, "old", "young").astype(object)
    labels[rng.random(len(frame)) < 0.5] = None
    features = Features(list(frame.columns), "y" if "y" in frame else None)
    target = read_target(labels, "y")
    estimator = OTP(n_jobs=1) if estimator is None else estimator
    table = SimpleNamespace(readings=lambda names: {})
    fitted = estimator.fit(features.fit_transform(frame), target.codes)
    return SimpleNamespace(features=features, target=target, estimator=fitted, table=table)


def saved(job):
    buffer = io.BytesIO()
    save_model(buffer, SavedModel.of_job(job))
    return buffer.getvalue()


def loaded(content):
    return load_model(io.BytesIO(content))


def members(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(parts, compression=zipfile.ZIP_STORED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return buffer.getvalue()


def edited(content, change):
    """The same file with its JSON text changed."""
    parts = members(content)
    text = json.loads(parts["model.json"])
    change(text)
    return zipped({**parts, "model.json": json.dumps(text)})


def every_object(node):
    if isinstance(node, dict):
        if "object" in node:
            yield node
        for part in node.values():
            yield from every_object(part)
    elif isinstance(node, list):
        for part in node:
            yield from every_object(part)


def objects(text):
    """The objects of a model by the ids of their classes, the last one of each."""
    return {node["object"]: node for node in every_object(text)}


def few_columns(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"age": rng.normal(40, 10, n_rows), "x": rng.normal(size=n_rows)})


class Bomb:
    """Runs something when it is unpickled or made."""

    fired = False

    def __new__(cls):
        Bomb.fired = True
        return super().__new__(cls)

    def __reduce__(self):
        return Bomb, ()
