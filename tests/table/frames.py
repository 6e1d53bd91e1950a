"""Frames with columns of each kind, and what they become."""

from __future__ import annotations

import numpy as np
import pytest

from otprop.table.features import Features

pd = pytest.importorskip("pandas")


N = 120


def mixed(n: int = N, seed: int = 0):
    """A table with a column of each kind, missing values among them."""
    rng = np.random.default_rng(seed)
    words = ["the", "cat", "dog", "sat", "ran", "fast", "red", "house"]
    frame = pd.DataFrame(
        {
            "row": np.arange(n),
            "code": [f"x{number:05d}" for number in rng.permutation(n)],
            "age": rng.normal(40, 10, n),
            "income": np.exp(rng.normal(8, 2, n)),
            "same": 1,
            "empty": [None] * n,
            "member": pd.array(rng.random(n) < 0.4, dtype="boolean"),
            "colour": rng.choice(["red", "green", "blue"], n),
            "city": [f"town {number}" if number % 2 else f"{number}ville" for number in rng.integers(0, 60, n)],
            "when": pd.Timestamp("2020-03-01") + pd.to_timedelta(rng.integers(0, 48_000, n), "h"),
            "note": [" ".join(rng.choice(words, 6)) for _ in range(n)],
            "vector": [list(rng.normal(size=5)) for _ in range(n)],
            "e_0": rng.normal(size=n),
            "e_1": 10 * rng.normal(size=n),
            "y": rng.choice(["a", "b"], n),
        }
    )
    for place, name in enumerate(["age", "member", "colour", "when", "note", "vector"]):
        frame.loc[place : place + 3, name] = None
    return frame


def fitted(frame, **options):
    return Features(list(frame.columns), "y" if "y" in frame else None, **options).fit(frame)


def roles(features):
    return {column.name: column.role for column in features.columns}


def reasons(features):
    return {column.name: column.why for column in features.columns}


def one(values, **options):
    """The vectors of a table with a single column beside a number."""
    frame = pd.DataFrame({"it": values, "x": np.linspace(0, 1, len(values)) ** 2})
    features = fitted(frame, **options)
    places = [place for place, name in enumerate(features.feature_names) if name.startswith("it")]
    return features, features.transform(frame)[:, places]
