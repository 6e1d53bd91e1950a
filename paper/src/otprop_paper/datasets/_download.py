"""Data sets that are part of scikit-learn, or that it can download."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import datasets as sklearn_datasets

from otprop_paper.datasets import _store
from otprop_paper.datasets._catalogue import Entry
from otprop_paper.datasets._dataset import Dataset


def can_download(entry: Entry) -> bool:
    """Whether scikit-learn can download it."""
    return entry.openml_id is not None or entry.name == "covtype"


def from_sklearn(entry: Entry) -> Dataset:
    """A data set that is part of scikit-learn."""
    assert entry.sklearn_loader is not None
    bunch = getattr(sklearn_datasets, entry.sklearn_loader)()
    names = tuple(str(name) for name in bunch.target_names)
    features = tuple(str(name) for name in bunch.feature_names)
    return _store.checked(entry, bunch.data, bunch.target, names, features, f"scikit-learn's {entry.sklearn_loader}")


def download(entry: Entry) -> Dataset:
    """Download, check and cache a data set."""
    folder = _store.make_cache()  # before the long part
    try:
        X, y, source = _fetch_covtype() if entry.name == "covtype" else _fetch_openml(entry)
    except OSError as error:
        raise OSError(
            f"the download of {entry.name!r} failed ({error}). Check the connection and try again, or put "
            f"{entry.name}.npz (arrays X and y) into the folder named by OTPROP_DATA."
        ) from error
    dataset = _store.checked(entry, X, y, entry.class_names, entry.feature_names, source)
    _store.save(dataset, folder)
    return dataset


def _fetch_openml(entry: Entry) -> tuple[np.ndarray, np.ndarray, str]:
    # The slower parser: it needs no pandas, and that of pandas fails for classes written as integers.
    bunch = sklearn_datasets.fetch_openml(data_id=entry.openml_id, as_frame=False, parser="liac-arff")
    X, y = np.asarray(bunch.data), _numbered(bunch.target)
    if entry.name == "dermatology":
        X = X[:, [str(name).lower() != "age" for name in bunch.feature_names]]
    if entry.name == "mnist10k":
        X, y = X[-10_000:], y[-10_000:]  # the test images are the last
    return X.astype(np.float64), y, f"OpenML {entry.openml_id}"


def _fetch_covtype() -> tuple[np.ndarray, np.ndarray, str]:
    bunch = sklearn_datasets.fetch_covtype()
    return np.asarray(bunch.data, dtype=np.float64), _numbered(bunch.target), "scikit-learn's fetch_covtype"


def _numbered(target: Any) -> np.ndarray:
    """Class numbers in the order of the labels, numeric where the labels are integers."""
    labels = np.asarray(target).astype(str)
    distinct = np.unique(labels)
    numeric = all(label.isdigit() for label in distinct)
    order = sorted(distinct, key=int) if numeric else list(distinct)
    number = {label: code for code, label in enumerate(order)}
    return np.fromiter((number[label] for label in labels), np.intp, len(labels))
