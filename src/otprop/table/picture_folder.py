"""A folder of pictures as a table: one row per picture, labels from a file or from sub-folders."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping
from io import BytesIO, StringIO
from pathlib import Path, PurePosixPath
from typing import Any

from otprop._progress import ProgressCallback, no_progress
from otprop.files import Table, TableError, format_of_name, listed, read_table
from otprop.table.errors import RequestError
from otprop.table.frame import is_frame, table_of_frame
from otprop.table.picture_vectors import picture_progress, picture_vectors
from otprop.table.pictures import is_picture_name

PATH, TARGET = "path", "label"
MAX_NAMED = 5
_LABEL_NAMES = ("label", "class", "target", "category")


def holds_pictures(folder: str | os.PathLike[str], labels: Any = None) -> bool:
    """Whether this is a folder of pictures: most files in it and its sub-folders are, and none in it is a table.

    Where `labels` are named, one picture anywhere below it is enough.
    """
    place = Path(folder)
    if not place.is_dir():
        return False
    try:
        here = [entry.name for entry in os.scandir(place) if _is_file(entry) and not entry.name.startswith((".", "_"))]
    except OSError:
        return False
    if labels is None and any(format_of_name(Path(name)) for name in here):
        return False
    if labels is not None:
        return next(_walk(place), None) is not None
    found = [is_picture_name(name) for name in _names_near(place)]
    return any(found) and 2 * sum(found) >= len(found)


def read_picture_folder(
    folder: str | os.PathLike[str],
    labels: Any = None,
    target: str | None = None,
    progress: ProgressCallback = no_progress,
) -> Table:
    """The pictures of a folder as a table with the columns `path` and the target.

    Parameters
    ----------
    folder : path
    labels : path, DataFrame, mapping of names to labels, or None
        None for the names of the sub-folders that the pictures are in; those directly in the folder have no label.
    target : str or None
        The column of `labels` with the labels, and the name of the column in the table; None to find it.
    progress : callable, called while the pictures are read

    Returns
    -------
    Table
        Its `folder` is where the paths start, its `default_target` the column with the labels. Pictures that cannot be
        read are not in it; a note names them.
    """
    place = Path(folder)
    names, notes = _names_in(place)
    if labels is None:
        known, target = _sub_folders(names), target or TARGET
    else:
        known, target, found = _read_labels(labels, target, names, place)
        notes += found
    if target == PATH:
        raise RequestError("target", "is the column of the pictures; choose another name.", target)
    with picture_progress(progress):
        problems = picture_vectors(names, place).problems
    if problems:
        shown = [f"{names[row]} {why}" for row, why in problems.items()]
        if len(problems) == len(names):
            raise TableError(f"{place} has no picture that can be read: {_few(shown)}", file=place)
        notes.append(f"{len(problems)} of {len(names)} pictures cannot be read and are skipped: {_few(shown)}")
    names = [name for row, name in enumerate(names) if row not in problems]
    table = _as_table(names, known, target, str(folder))
    table.notes, table.folder, table.default_target = notes, place, target
    return table


def picture_target(folder: str | os.PathLike[str], labels: Any = None) -> str:
    """The column that `read_picture_folder` would take for the target."""
    place = Path(folder)
    return TARGET if labels is None else _read_labels(labels, None, _names_in(place)[0], place)[1]


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:  # a link that leads to itself
        return False


def _walk(folder: Path) -> Any:
    """Paths of pictures below the folder, with / between their parts, without hidden files and links to folders."""
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        below = Path(parent).relative_to(folder)
        for name in sorted(files):
            if not name.startswith(".") and is_picture_name(name):
                yield (below / name).as_posix()


def _names_near(folder: Path) -> list[str]:
    """The names of the files in a folder and in its sub-folders, no deeper, without hidden ones."""
    names = []
    for parent, folders, files in os.walk(folder):
        names += [name for name in files if not name.startswith(".")]
        folders[:] = [name for name in folders if not name.startswith(".")] if parent == str(folder) else []
    return names


def _names_in(folder: Path) -> tuple[list[str], list[str]]:
    """The pictures below the folder, and notes on those whose names cannot be written."""
    names = sorted(_walk(folder))
    plain = [name for name in names if name.isprintable() and name == name.strip()]  # no line break; UTF-8
    n_odd, names = len(names) - len(plain), plain
    if not names:
        raise TableError(f"{folder} has no pictures (PNG, JPEG, GIF, WebP, BMP or TIFF)", file=folder)
    why = "their names begin or end with a blank, or hold characters that cannot be printed"
    return names, [f"{n_odd} pictures are skipped: {why}"] if n_odd else []


def _sub_folders(names: list[str]) -> dict[str, str]:
    parts = {name: PurePosixPath(name).parts for name in names}
    return {name: found[0] for name, found in parts.items() if len(found) > 1}


def _as_table(names: list[str], known: Mapping[str, Any], target: str, origin: str) -> Table:
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([PATH, target])
    writer.writerows([name, known.get(name, "")] for name in names)
    content = BytesIO(text.getvalue().encode())
    return read_table(content, format="csv", delimiter=",", quote='"', encoding="utf-8", decimal=".", origin=origin)


def _read_labels(
    labels: Any, target: str | None, names: list[str], folder: Path
) -> tuple[dict[str, str], str, list[str]]:
    """The label of each picture that has one, the name of the target, and notes."""
    if isinstance(labels, Mapping):
        pairs, target, origin = list(labels.items()), target or TARGET, "labels"
        beside, others = Path(), []
    else:
        if not is_frame(labels) and not isinstance(labels, (str, os.PathLike)):
            what = type(labels).__name__
            raise RequestError("labels", f"must be a file, a DataFrame or a dict of names and labels; got {what}.")
        table = table_of_frame(labels, "the DataFrame of labels") if is_frame(labels) else read_table(Path(labels))
        origin, beside = table.origin, Path() if table.path is None else table.path.parent
        path_column = _column_of_paths(table, names, folder, beside)
        target = _column_of_labels(table, path_column, target)
        pairs = list(zip(table.cells(path_column).tolist(), table.cells(target).tolist(), strict=True))
        others = [name for name in table.names if name not in (path_column, target)]
    found = _matched(pairs, _Lookup(names, folder, beside), origin, folder)
    notes = [f"{origin}: columns that are not used: {listed(others, MAX_NAMED)}"] if others else []
    missing = [str(name) for name, label in pairs if _filled(name) and _filled(label) and found[str(name)] is None]
    if missing and len(missing) == len(pairs):
        raise TableError(f"{origin} names no picture in {folder}, but {_few(missing)}", file=origin)
    if missing:
        notes.append(f"{origin} has labels for {len(missing)} pictures that are not in {folder}: {_few(missing)}")
    known: dict[str, str] = {}
    for name, label in pairs:
        path = found.get(str(name))
        if path is None or not _filled(label):
            continue
        if known.setdefault(path, str(label)) != str(label):
            problem = f"{origin} gives {path} two labels, {known[path]!r} and {str(label)!r}"
            raise TableError(problem, "leave one", file=origin)
    return known, target, notes


def _filled(cell: Any) -> bool:
    return cell is not None and bool(str(cell).strip())


class _Lookup:
    """Finds the picture that a label file means: by its path from the folder, the file or here, name or stem."""

    def __init__(self, names: list[str], folder: Path, beside: Path) -> None:
        self._paths = set(names)
        self._whole = folder.resolve()
        self._starts = [start.resolve() for start in (beside, Path())]
        self._short: dict[str, list[str]] = {}
        for name in names:
            for short in {PurePosixPath(name).name, PurePosixPath(name).stem}:
                self._short.setdefault(short, []).append(name)

    def __call__(self, name: Any) -> list[str]:
        """The pictures that this can be; empty for none."""
        text = str(name).strip().replace("\\", "/")
        if (path := PurePosixPath(text).as_posix()) in self._paths:
            return [path]
        for start in self._starts:
            try:
                below = Path(os.path.normpath(start / text)).relative_to(self._whole).as_posix()
            except ValueError:
                continue
            if below in self._paths:
                return [below]
        return self._short.get(text, [])


def _matched(pairs: Any, lookup: _Lookup, origin: str, folder: Path) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for name, label in pairs:
        if not _filled(name) or not _filled(label):
            continue
        choices = lookup(name)
        if len(choices) > 1:
            raise TableError(
                f"{origin} names {name!r}, which can be {_few(choices)}", f"write the path below {folder}", file=origin
            )
        found[str(name)] = choices[0] if choices else None
    return found


def _column_of_paths(table: Table, names: list[str], folder: Path, beside: Path) -> str:
    """The column that names most pictures of the folder."""
    lookup = _Lookup(names, folder, beside)
    hits = {name: sum(bool(lookup(cell)) for cell in table.cells(name) if _filled(cell)) for name in table.names}
    best = max(hits, key=lambda name: hits[name])
    if not hits[best]:
        raise TableError(
            f"{table.origin} has no column with names of pictures in {folder}, such as {names[0]!r}; its columns: "
            f"{listed(table.names)}",
            file=table.origin,
        )
    return best


def _column_of_labels(table: Table, paths: str, target: str | None) -> str:
    others = [name for name in table.names if name != paths]
    if target is not None:
        if target in others:
            return target
        raise RequestError("target", f"there is no such column in {table.origin}; there are {listed(others)}.", target)
    usual = [name for name in others if name.lower() in _LABEL_NAMES]
    if len(others) == 1 or len(usual) == 1:
        return others[0] if len(others) == 1 else usual[0]
    if not others:
        raise TableError(f"{table.origin} has no column of labels in addition to {paths!r}", file=table.origin)
    raise RequestError("target", f"must name the column of {table.origin} with the labels: {listed(others)}.")


def _few(names: list[str]) -> str:
    return listed(names, MAX_NAMED, quoted=False)
