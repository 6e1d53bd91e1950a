"""Loading and describing data sets by name."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from otprop._validation import ParameterError, check_choice
from otprop_paper.datasets import _download, _store
from otprop_paper.datasets._catalogue import CATALOGUE, Entry, Preprocessing, find_entry
from otprop_paper.datasets._dataset import Dataset
from otprop_paper.datasets._file import is_path, load_file
from otprop_paper.datasets._prepare import preprocessing_of
from otprop_paper.datasets._waveform import draw_waveform


def load(
    name: str | os.PathLike[str],
    *,
    target: str | None = None,
    download: bool = False,
    n_rows: int | None = None,
    random_state: Any = None,
) -> Dataset:
    """Load a data set by its name, or from a file of your own.

    A known name is looked for in the folder OTPROP_DATA, in ``shared/data`` beside a source checkout, in the
    cache (OTPROP_CACHE, else ``otprop`` in the user's cache folder) and in what scikit-learn carries. Shape
    and class counts are checked.

    Parameters
    ----------
    name : str or path
        One of `names()`, one of the paper's names ("MNIST" is mnist10k), or the path of a file that
        `otprop.files.read_table` reads. All formats but NPZ need the extra ``files``.
    target : str, optional
        For a file: the column (in an NPZ file the array) of classes. Default: the one called target, label,
        class or y, else the last column. The numeric columns are the features.
    download : bool, default=False
        Fetch a data set that is nowhere on this machine, through scikit-learn, and keep it in the cache.
    n_rows : int, optional
        For "waveform-generated": how many rows to draw, 5000 unless given.
    random_state : int, optional
        For "waveform-generated": the seed, 0 unless given.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> from otprop_paper.datasets import load
    >>> iris = load("iris")
    >>> iris.X.shape, iris.class_names
    ((150, 4), ('setosa', 'versicolor', 'virginica'))
    >>> load("waveform-generated", n_rows=300, random_state=1).X.shape
    (300, 21)
    """
    text = os.fspath(name)
    if not isinstance(text, str) or not text.strip():
        raise ParameterError("name", f"must be the name of a data set or a path; got {name!r}.")
    drawn = {"n_rows": n_rows, "random_state": random_state}
    if isinstance(name, os.PathLike) or is_path(text):
        _refuse_drawing(text, drawn)
        return load_file(Path(text).expanduser(), target)
    entry = find_entry(text)
    if target is not None:
        raise ParameterError("target", f"is for files of your own; {entry.name!r} has its classes already.")
    if entry.generated:
        seed = 0 if random_state is None else random_state
        X, y = draw_waveform(entry.shape[0] if n_rows is None else n_rows, seed)
        return Dataset(entry.name, X, y, entry.class_names, None, f"Breiman's formula, seed {seed}")
    _refuse_drawing(entry.name, drawn)
    return _look_for(entry, download)


def _refuse_drawing(name: str, drawn: dict[str, Any]) -> None:
    for argument, value in drawn.items():
        if value is not None:
            raise ParameterError(argument, f"is for 'waveform-generated' only, not for {name!r}; got {value!r}.")


def _look_for(entry: Entry, download: bool) -> Dataset:
    file_name = f"{entry.name}.npz"
    misses = []
    for place in _store.data_folders():
        if place.folder is not None and (place.folder / file_name).is_file():
            return _store.read_entry(entry, place.folder / file_name)
        misses.append(place.why_missing(file_name))
    if entry.sklearn_loader is not None:
        return _download.from_sklearn(entry)
    fetchable = _download.can_download(entry)
    if download and fetchable:
        return _download.download(entry)
    misses.append("scikit-learn: does not carry it")
    advice = f"Set OTPROP_DATA to a folder with {file_name} (arrays X and y)"
    if fetchable:
        advice += f", or fetch it with load({entry.name!r}, download=True)"
    else:
        advice += "; it cannot be downloaded from here"
    if entry.name == "waveform":
        advice += ". 'waveform-generated' draws rows of the same kind"
    places = "".join(f"\n  - {miss}" for miss in misses)
    raise FileNotFoundError(f"the data set {entry.name!r} was not found. Looked in:{places}\n{advice}.")


def names(which: Literal["all", "paper", "scikit-learn"] = "all") -> tuple[str, ...]:
    """The data sets known by name.

    Parameters
    ----------
    which : {"all", "paper", "scikit-learn"}, default="all"
        All, the seven of the paper in the order of its tables, or those that come with scikit-learn.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> from otprop_paper.datasets import names
    >>> names("paper")
    ('iris', 'heart', 'ionosphere', 'dermatology', 'waveform', 'digits', 'mnist10k')
    """
    check_choice("which", which, ("all", "paper", "scikit-learn"))
    return tuple(
        name
        for name, entry in CATALOGUE.items()
        if which == "all"
        or (which == "paper" and entry.paper_name)
        or (which == "scikit-learn" and entry.sklearn_loader)
    )


@dataclass(frozen=True)
class Description:
    """What is known about a data set without loading it.

    Attributes
    ----------
    name : str
    about : str
    paper_name : str or None
        Its name in the paper's tables.
    n_rows, n_features : int
    class_names : tuple of str
    class_counts : tuple of int
        Empty for a generated data set.
    preprocessing : {"none", "standardize", "minmax", "range"}
        What `prepare` does, the same for every method.
    reason : str
        The reason for it.

    Examples
    --------
    >>> from otprop_paper.datasets import describe
    >>> describe("digits").paper_name, describe("digits").n_rows
    ('Digits', 5620)
    """

    name: str
    about: str
    paper_name: str | None
    n_rows: int
    n_features: int
    class_names: tuple[str, ...]
    class_counts: tuple[int, ...]
    preprocessing: Preprocessing
    reason: str


def describe(name: str | Dataset) -> Description:
    """Shape, classes, the paper's name and the benchmark's preprocessing of a data set.

    Parameters
    ----------
    name : str or Dataset
        A known name, or a loaded data set, also one from a file of your own.

    Returns
    -------
    Description

    Examples
    --------
    >>> from otprop_paper.datasets import describe
    >>> heart = describe("heart")
    >>> heart.n_rows, heart.class_counts, heart.preprocessing
    (270, (150, 120), 'standardize')
    """
    if isinstance(name, Dataset):
        return _describe_loaded(name)
    entry = find_entry(name)
    return Description(
        entry.name,
        entry.about,
        entry.paper_name,
        *entry.shape,
        entry.class_names,
        entry.class_counts,
        entry.preprocessing,
        entry.reason,
    )


def _describe_loaded(dataset: Dataset) -> Description:
    entry = CATALOGUE.get(dataset.name)
    rows, features = dataset.X.shape
    preprocessing, reason = preprocessing_of(dataset)
    about = entry.about if entry else f"read from {dataset.source}"
    return Description(
        dataset.name,
        about,
        entry.paper_name if entry else None,
        rows,
        features,
        dataset.class_names,
        dataset.class_counts,
        preprocessing,
        reason,
    )
