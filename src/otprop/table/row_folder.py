"""A folder of pictures or texts as a table: one row per file, labels from a file or from sub-folders."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BytesIO, StringIO
from pathlib import Path, PurePosixPath
from typing import Any

from otprop._progress import ProgressCallback, no_progress
from otprop.files import Table, TableError, format_of_name, listed, read_table
from otprop.files._encoding import to_utf8
from otprop.files._errors import file_error
from otprop.table.errors import RequestError
from otprop.table.frame import is_frame, table_of_frame
from otprop.table.picture_vectors import picture_progress, picture_vectors
from otprop.table.pictures import UnreadableFileError, is_picture_name, read_plain_file
from otprop.table.text import LONGEST_TEXT

PATH, TEXT, TARGET = "path", "text", "label"
MAX_NAMED = 5
_LABEL_NAMES = ("label", "class", "target", "category")


@dataclass(frozen=True)
class RowFiles:
    """The files that are rows."""

    plural: str  # what messages call them
    formats: str  # which there are
    matches: Callable[[str], bool]  # whether a name is that of such a file


PICTURES = RowFiles("pictures", "PNG, JPEG, GIF, WebP, BMP or TIFF", is_picture_name)
TEXTS = RowFiles("texts", ".txt", lambda name: name.lower().endswith(".txt"))


def row_files(folder: Any, labels: Any = None) -> RowFiles | None:
    """What the rows of a folder are: most files in it and its sub-folders are such, and none in it is a table.

    Where `labels` are named, one anywhere below it is enough, a picture rather than a text. None for other folders.
    """
    if not isinstance(folder, (str, os.PathLike)) or not os.path.isdir(folder):  # False for a name that is too long
        return None
    place = Path(folder)
    try:
        here = [entry.name for entry in os.scandir(place) if _is_file(entry) and not entry.name.startswith((".", "_"))]
    except OSError:
        return None
    if labels is not None:
        return next((kind for kind in (PICTURES, TEXTS) if next(_walk(place, kind), None) is not None), None)
    if any(format_of_name(Path(name)) for name in here):
        return None
    near = _names_near(place)
    counts = {kind: sum(map(kind.matches, near)) for kind in (PICTURES, TEXTS)}
    return next((kind for kind, count in counts.items() if count and 2 * count >= len(near)), None)


def read_row_folder(
    folder: str | os.PathLike[str],
    labels: Any = None,
    target: str | None = None,
    progress: ProgressCallback = no_progress,
    encoding: str | None = None,
) -> Table:
    """The files of a folder as a table with the columns `path`, of texts `text`, and the target.

    `labels` are a file, a DataFrame or a mapping of names; None for the names of the sub-folders that the files are in.
    `target` is the column of `labels` with the labels, and its name in the table; None to find it. Files that cannot be
    read are not in the table; a note names them.
    """
    place, kind = Path(folder), row_files(folder, labels)
    assert kind is not None
    names, notes = _names_in(place, kind)
    if labels is None:
        known, target = {name: name.partition("/")[0] for name in names if "/" in name}, target or TARGET
    else:
        known, target, found = _read_labels(labels, target, names, place, kind)
        notes += found
    if target in ((PATH,) if kind is PICTURES else (PATH, TEXT)):
        raise RequestError("target", f"is a column of the {kind.plural}; choose another name.", target)
    texts: dict[str, str] = {}
    if kind is PICTURES:
        with picture_progress(progress):
            problems = picture_vectors(names, place)[1]
    else:
        texts, problems, found = _read_texts(names, place, encoding)
        notes += found
    if problems:
        shown = [f"{names[row]} {why}" for row, why in problems.items()]
        if len(problems) == len(names):
            raise file_error(place, f"has no {kind.plural[:-1]} that can be read: {_few(shown)}")
        notes.append(f"{len(problems)} of {len(names)} {kind.plural} cannot be read and are skipped: {_few(shown)}")
    names = [name for row, name in enumerate(names) if row not in problems]
    columns = {PATH: names, TEXT: list(texts.values()), target: [known.get(name, "") for name in names]}
    table = _as_table({name: cells for name, cells in columns.items() if cells}, str(folder))
    table.notes, table.folder, table.default_target = notes, place, target
    table.default_features = [TEXT] if texts else None
    return table


def _read_texts(
    names: list[str], folder: Path, encoding: str | None
) -> tuple[dict[str, str], dict[int, str], list[str]]:
    """The texts by name, why some have none by their place, and notes."""
    texts: dict[str, str] = {}
    problems: dict[int, str] = {}
    guessed: list[str] = []
    n_long = 0
    for place, name in enumerate(names):
        try:
            data, found, note = to_utf8(read_plain_file(folder / name), encoding, name)
        except UnreadableFileError as error:
            problems[place] = str(error)
            continue
        except TableError:
            problems[place] = "is not text"
            continue
        text = data.decode().strip()
        if not text:
            problems[place] = "is empty"
            continue
        guessed += [f"{name} ({found.name})"] if note is not None else []
        n_long += len(text) > LONGEST_TEXT
        texts[name] = text[:LONGEST_TEXT]
    notes = []
    if n_long:
        notes.append(f"{n_long} of {len(names)} texts are cut after {LONGEST_TEXT} characters")
    if guessed:
        notes.append(f"{len(guessed)} of {len(names)} texts are not UTF-8, their encoding is guessed: {_few(guessed)}")
    return texts, problems, notes


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:  # a link that leads to itself
        return False


def _walk(folder: Path, kind: RowFiles) -> Any:
    """Paths of such files below the folder, with / between their parts, without hidden files and links to folders."""
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        below = Path(parent).relative_to(folder)
        for name in sorted(files):
            if not name.startswith(".") and kind.matches(name):
                yield (below / name).as_posix()


def _names_near(folder: Path) -> list[str]:
    """The names of the files in a folder and in its sub-folders, no deeper, without hidden ones."""
    names = []
    for parent, folders, files in os.walk(folder):
        names += [name for name in files if not name.startswith(".")]
        folders[:] = [name for name in folders if not name.startswith(".")] if parent == str(folder) else []
    return names


def _names_in(folder: Path, kind: RowFiles) -> tuple[list[str], list[str]]:
    """The files below the folder, and notes on those whose names cannot be written."""
    names = sorted(_walk(folder, kind))
    plain = [name for name in names if name.isprintable() and name == name.strip()]  # no line break; UTF-8
    n_odd, names = len(names) - len(plain), plain
    if not names:
        raise file_error(folder, f"has no {kind.plural} ({kind.formats})")
    why = "their names begin or end with a blank, or hold characters that cannot be printed"
    return names, [f"{n_odd} {kind.plural} are skipped: {why}"] if n_odd else []


def _as_table(columns: Mapping[str, list[str]], origin: str) -> Table:
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    content = BytesIO(text.getvalue().encode())
    return read_table(content, format="csv", delimiter=",", quote='"', encoding="utf-8", decimal=".", origin=origin)


def _read_labels(
    labels: Any, target: str | None, names: list[str], folder: Path, kind: RowFiles
) -> tuple[dict[str, str], str, list[str]]:
    """The label of each file that has one, the name of the target, and notes."""
    if isinstance(labels, Mapping):
        pairs, target, origin = list(labels.items()), target or TARGET, "labels"
        lookup, others = _Lookup(names, folder, Path()), []
    else:
        if not is_frame(labels) and not isinstance(labels, (str, os.PathLike)):
            what = type(labels).__name__
            raise RequestError("labels", f"must be a file, a DataFrame or a dict of names and labels; got {what}.")
        table = table_of_frame(labels, "the DataFrame of labels") if is_frame(labels) else read_table(Path(labels))
        origin = table.origin
        lookup = _Lookup(names, folder, Path() if table.path is None else table.path.parent)
        path_column = _column_of_paths(table, lookup, f"{kind.plural} in {folder}, such as {names[0]!r}")
        target = _column_of_labels(table, path_column, target)
        pairs = list(zip(table.cells(path_column).tolist(), table.cells(target).tolist(), strict=True))
        others = [name for name in table.names if name not in (path_column, target)]
    notes = [f"{origin}: columns that are not used: {listed(others, MAX_NAMED)}"] if others else []
    known: dict[str, str] = {}
    missing: list[str] = []
    for name, label in pairs:
        if not _filled(name) or not _filled(label):
            continue
        choices = lookup(name)
        if len(choices) > 1:
            raise file_error(origin, f"names {name!r}, which can be {_few(choices)}", f"write the path below {folder}")
        if not choices:
            missing.append(str(name))
        elif known.setdefault(choices[0], str(label)) != str(label):
            problem = f"gives {choices[0]} two labels, {known[choices[0]]!r} and {str(label)!r}"
            raise file_error(origin, problem, "leave one")
    if missing and len(missing) == len(pairs):
        raise file_error(origin, f"names none of the {kind.plural} in {folder}, but {_few(missing)}")
    if missing:
        notes.append(f"{origin} has labels for {len(missing)} {kind.plural} that are not in {folder}: {_few(missing)}")
    return known, target, notes


def _filled(cell: Any) -> bool:
    return cell is not None and bool(str(cell).strip())


class _Lookup:
    """Finds the file that a label file means: by its path from the folder, the file or here, name or stem."""

    def __init__(self, names: list[str], folder: Path, beside: Path) -> None:
        self._paths = set(names)
        self._whole = folder.resolve()
        self._starts = [start.resolve() for start in (beside, Path())]
        self._short: dict[str, list[str]] = {}
        for name in names:
            for short in {PurePosixPath(name).name, PurePosixPath(name).stem}:
                self._short.setdefault(short, []).append(name)

    def __call__(self, name: Any) -> list[str]:
        """The files that this can be; empty for none."""
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


def _column_of_paths(table: Table, lookup: _Lookup, files: str) -> str:
    """The column that names most files of the folder."""
    hits = {name: sum(bool(lookup(cell)) for cell in table.cells(name) if _filled(cell)) for name in table.names}
    best = max(hits, key=lambda name: hits[name])
    if not hits[best]:
        raise file_error(table.origin, f"has no column with names of {files}; its columns: {listed(table.names)}")
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
        raise file_error(table.origin, f"has no column of labels in addition to {paths!r}")
    raise RequestError("target", f"must name the column of {table.origin} with the labels: {listed(others)}.")


def _few(names: list[str]) -> str:
    return listed(names, MAX_NAMED, quoted=False)
