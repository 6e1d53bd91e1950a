"""What workers do with the files of a folder. A task that is run twice leaves the same files."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from otprop._label_result import LabelResult
from otprop.dask._cluster import threads_for_fit
from otprop.dask._inputs import InputFile
from otprop.dask._landmarks import LandmarkModel, LandmarkRule, Sample, make_sample, slim
from otprop.dask._manifest import State, Tally, digest_of
from otprop.files import Reading, Table, TableError, write_atomic
from otprop.labelling.job import Request, prepare
from otprop.labelling.model import SavedModel, load_model, predict_table, save_model
from otprop.labelling.output_columns import OutputColumns, refuse_taken
from otprop.table.errors import ColumnError
from otprop.table.frame import table_of_arrow, table_of_frame
from otprop.table.target import read_target

PARTS = ("certainty", "confidence", "source")  # columns of a file of a folder, in addition to the label
_LOADING = Lock()


@dataclass(frozen=True)
class TargetCells:
    """How the cells of the target become labels."""

    name: str
    unlabeled: Sequence[str] = ()  # texts that mark an unlabelled cell
    whole: bool = False  # numbers are whole in some files: 1.0 is 1

    def keys(self, cells: np.ndarray) -> list[Hashable]:
        """The label of each cell as text, None where it is unlabelled."""
        if len(cells) == 0:
            return []
        found = read_target(
            self.tidy(cells), self.name, self.unlabeled, numeric_classes=True, allow_few=True, allow_complete=True
        )
        return [None if code < 0 else found.classes[code] for code in found.codes.tolist()]

    def tidy(self, cells: np.ndarray) -> np.ndarray:
        """Cells of one type, where some files have whole numbers and others not."""
        if not self.whole:
            return cells
        tidied = [int(cell) if isinstance(cell, float) and cell.is_integer() else cell for cell in cells]
        found = np.empty(len(tidied), dtype=object)
        found[:] = tidied
        return found


def sample_file(
    file: InputFile,
    first_row: int,
    columns: Sequence[str],
    target: TargetCells,
    choice: LandmarkRule,
    like: Mapping[str, Reading],
) -> Sample:
    """The rows of a file that may be landmarks: a frame of their columns, and the cells of the target."""
    table = None if file.is_parquet else file.read()
    cells = _target_cells(file, table, target)
    keys = target.keys(cells)
    if len(keys) != file.n_rows:
        raise TableError(f"{file.path} has {len(keys)} rows now, it had {file.n_rows}", file=file.path)
    numbers = np.arange(len(keys))
    places = make_sample(first_row, keys, (numbers,), choice)
    frame = _some_rows(file, table, places.parts[0], columns, like)
    return Sample(places.numbers, places.keys, (frame, cells[places.parts[0]]), places.n_labeled, places.n_unlabeled)


def _target_cells(file: InputFile, table: Table | None, target: TargetCells) -> np.ndarray:
    """The cells of the target; all empty where the file has no such column."""
    if target.name not in file.kinds:
        return np.full(file.n_rows, None, dtype=object)
    table = table_of_arrow(_read_parquet(file, [target.name])) if table is None else table
    return table.cells(target.name)


def _some_rows(
    file: InputFile, table: Table | None, places: np.ndarray, columns: Sequence[str], like: Mapping[str, Reading]
) -> Any:
    """A frame of some rows, without holding all rows of a Parquet file as one."""
    if table is not None:
        return table.frame(list(columns), like=like).iloc[places].reset_index(drop=True)
    read = places if len(places) else np.arange(1)  # at least the types of the columns
    return table_of_arrow(_read_parquet(file, list(columns), read)).frame(list(columns)).iloc[: len(places)]


def _read_parquet(file: InputFile, columns: list[str], places: np.ndarray | None = None) -> Any:
    import pyarrow as pa

    with file.parquet() as content:
        if places is None:
            return content.read(columns=columns)
        parts, start = [], 0
        for number in range(content.num_row_groups):
            n_rows = content.metadata.row_group(number).num_rows
            here = places[(places >= start) & (places < start + n_rows)] - start
            if len(here):
                parts.append(content.read_row_group(number, columns=columns).take(pa.array(here)))
            start += n_rows
        return pa.concat_tables(parts)


@dataclass(frozen=True, kw_only=True)
class FitTask:
    """What the fit on the landmarks needs to know."""

    origin: str  # the folder or pattern, for messages
    request: Request
    target: TargetCells
    output: OutputColumns
    out: str  # the output folder
    n_rows: int  # of all files
    jobs: int | None = None  # threads; None for those of the worker
    readings: dict[str, Reading] = field(default_factory=dict)  # how the columns of text files are parsed
    report: str | None = None  # the page to write
    map: str = "pca"  # how it draws the rows
    call: str = ""  # the command, for the page


def fit_folder(sample: Sample, task: FitTask) -> dict[str, Any]:
    """Fit on the landmarks and write the model, the landmarks and the page; returns what the manifest holds."""
    frame, cells = sample.parts
    frame = frame.copy()
    frame[task.target.name] = task.target.tidy(cells)
    state = State(Path(task.out))
    table = table_of_frame(frame)
    table.origin, table.path = task.origin, state.mode  # the page gets no more permissions than the inputs have
    if not any(key is not None for key in sample.keys):
        name = task.target.name
        raise ColumnError(name, f"no file of {task.origin} has a label in its column {name!r}: label some rows.")
    request = replace(task.request, ignore=[name for name in task.request.ignore if name in table.names])
    job = prepare(table, request, call=task.call)
    refuse_taken(table, task.output.names(job.target.name, job.target.classes, PARTS), task.target.name)
    with threads_for_fit(task.jobs) as n_jobs:
        job.estimator.set_params(n_jobs=n_jobs)
        outcome = job.run()
    if task.report is not None:
        LabelResult(job, outcome).report(task.report, map=task.map, force=True)
    saved = replace(SavedModel.of_job(job), estimator=slim(job.estimator, task.n_rows))
    if task.readings:  # of text, whose cells the landmarks do not have any more
        wanted = [name for name in job.features.wanted if name in task.readings]
        saved = replace(saved, readings={name: task.readings[name] for name in wanted})
    for path in (state.model, state.landmarks):  # a file that is replaced keeps its permissions
        path.unlink(missing_ok=True)
    save_model(state.model, saved, made_from=state.mode)
    write_atomic(state.landmarks, lambda file: np.save(file, sample.numbers), mode_like=state.mode)
    codes = {str(key): int(code) for key, code in zip(sample.keys, job.target.codes, strict=True) if key is not None}
    error = saved.estimator.error_
    summary = {
        "classes": list(job.target.classes),
        "landmarks": len(sample.numbers),
        "n_labeled": sample.n_labeled,
        "n_unlabeled": sample.n_unlabeled,
        "n_held_out": outcome.n_held_out,
        "expected": error.expected,
        "concentration": error.concentration if np.isfinite(error.concentration) else None,
        "sources": [[name, weight] for name, weight, _ in outcome.sources],
        "columns": [[use.name, use.role, use.why, use.width] for use in job.columns],
        "notes": [str(note) for note in job.notes],
        "seconds": outcome.seconds,
    }
    return {
        "model_digest": digest_of(state.model),
        "landmarks_digest": digest_of(state.landmarks),
        "codes": codes,
        "summary": summary,
    }


@dataclass(frozen=True, kw_only=True)
class ModelFiles:
    """The files of the model that a folder is labelled with."""

    model: str
    model_digest: str  # SHA-256
    n_rows: int  # of all files to label
    landmarks: str = ""  # the file with the numbers of the landmarks; empty for a model of another table
    landmarks_digest: str = ""
    text_model: str | None = None  # the path of the text model of the model
    image_model: str | None = None

    def load(self) -> tuple[SavedModel, LandmarkModel | None]:
        """The model; tasks in several threads of a worker share one."""
        with _LOADING:
            return _load_once(self)


@dataclass(frozen=True, kw_only=True)
class LabelTask:
    """How the files of a folder are labelled."""

    out: str  # the output folder
    files: ModelFiles
    output: OutputColumns
    target: TargetCells | None = None  # of files whose given labels are kept; None for files without
    codes: dict[str, int] = field(default_factory=dict)  # label as text to class number
    excel_safe: bool = False


def label_file(file: InputFile, first_row: int | None, task: LabelTask) -> dict[str, Any]:
    """Label the rows of a file, write its output and its record; returns the record."""
    state = State(Path(task.out))
    saved, model = task.files.load()
    table = file.read()
    saved.check_columns(table.names)
    if model is None:
        labels = predict_table(saved, saved.frame(table))
    else:
        given = None if task.target is None else _given_codes(table, task.target, task.codes)
        labels = model.label(saved.features.transform(saved.frame(table)), given, first_row)
    added, fill = task.output.written(labels, table, saved.target, saved.classes, saved.values)
    refuse_taken(table, list(added), saved.target)
    if not state.may_replace(file.name):
        raise TableError(f"{state.out / file.name} was written by somebody else in the meantime", "move it away")
    state.claim(file)  # a second attempt may replace what the first one wrote
    table.write(state.out / file.name, added, fill, force=True, excel_safe=task.excel_safe)
    return state.finish(file, Tally.of(labels, len(saved.classes)))


@lru_cache(maxsize=1)
def _load_once(files: ModelFiles) -> tuple[SavedModel, LandmarkModel | None]:
    model, landmarks, again = files.model, files.landmarks, [("force", True)]
    for path, digest in ((model, files.model_digest), (landmarks, files.landmarks_digest)):
        if path and digest_of(path) != digest:
            what = f"{path} is not the one that this run began with"
            raise TableError(what, "start over with {}", file=path, arguments=again)
    saved = load_model(model, text_model=files.text_model, image_model=files.image_model)
    if not hasattr(saved.estimator, "freeze") or not saved.has_confidence:
        return saved, None
    if not landmarks:
        saved.estimator.freeze(files.n_rows, n_jobs=1)
        return saved, LandmarkModel(saved.estimator, np.empty(0, dtype=np.int64))
    numbers, expected = np.load(landmarks, allow_pickle=False), saved.estimator.certainty_.shape
    if numbers.shape != expected or numbers.dtype != np.int64 or (np.diff(numbers) < 1).any():
        raise TableError(f"{landmarks} does not belong to {model}", file=landmarks)
    return saved, LandmarkModel(saved.estimator, numbers)


def _given_codes(table: Table, target: TargetCells, codes: Mapping[str, int]) -> np.ndarray:
    """The class number of each given label, -1 where a row has none."""
    if target.name not in table.names:
        return np.full(table.n_rows, -1)
    keys = target.keys(table.cells(target.name))
    unknown = next((key for key in keys if key is not None and key not in codes), None)
    if unknown is not None:
        raise TableError(
            f"{table.origin} has the label {unknown!r}, which no file had when the model was made",
            "start over with {}",
            file=table.origin,
            column=target.name,
            arguments=[("force", True)],
        )
    return np.array([-1 if key is None else codes[str(key)] for key in keys], dtype=np.intp)
