"""Labelling the files of a folder: landmarks of all files, one fit, then file by file; a killed run is resumed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import otprop
from otprop._progress import ProgressCallback, no_progress
from otprop.dask._cluster import ClusterError, reason_of, run_each
from otprop.dask._inputs import InputFile, changes, check_schemas, find_files, first_rows, inspect_file
from otprop.dask._landmarks import FAN_IN, LandmarkRule, merge_samples
from otprop.dask._manifest import Manifest, State, Tally, digest_of
from otprop.dask._tasks import FitTask, LabelTask, TargetCells, fit_folder, label_file, sample_file
from otprop.files import TableError, listed
from otprop.labelling.job import Request
from otprop.labelling.model import load_model
from otprop.labelling.output_columns import OutputColumns
from otprop.propagation.calibration import Coverage
from otprop.propagation.error import ErrorEstimate
from otprop.table.errors import RequestError

LANDMARKS = 200_000


@dataclass(frozen=True)
class FolderRequest:
    """What to do with a folder.

    Attributes
    ----------
    pattern : str, a folder or a pattern of files
    out : str, the folder for the results
    output : OutputColumns
    excel_safe : bool
    force : bool, outputs that are there may be replaced, and an earlier run is not resumed
    reading : dict of str to object, parameters of `read_table` for all files
    sentence : callable, words an error
    """

    pattern: str
    out: str
    output: OutputColumns = field(default_factory=OutputColumns)
    excel_safe: bool = False
    force: bool = False
    reading: dict[str, Any] = field(default_factory=dict)
    sentence: Callable[[BaseException], str] = str


@dataclass(frozen=True)
class FolderResult:
    """What was done to a folder.

    Attributes
    ----------
    state : State, where the model is
    classes : list of str
    tally : Tally, of all files that are done
    n_files, n_before : int, files that are done, and how many of them an earlier run had done
    failures : dict of str to str, files that could not be labelled, and why
    notes : list of str
    error : ErrorEstimate or None, of all unlabelled rows
    summary : dict, what the fit found; empty for a model of another table
    seconds : float
    """

    state: State
    classes: list[str]
    tally: Tally
    n_files: int
    n_before: int
    failures: dict[str, str]
    notes: list[str]
    error: ErrorEstimate | None
    summary: dict[str, Any]
    seconds: float

    @property
    def expected_error(self) -> float | None:
        """Expected error of the rows that were not given; None without them."""
        return self.tally.expected_error() if self.error is not None else None

    @property
    def error_range(self) -> tuple[float, float] | None:
        """90 % interval of that error."""
        expected = self.expected_error
        if expected is None or self.error is None:
            return None
        return self.error.of_part(expected, sum(self.tally.bins.values())).interval

    def coverage(self) -> list[Coverage]:
        """Expected error when only the most confident rows are labelled."""
        return self.tally.coverage(self.error)


@dataclass
class _Run:
    """The files of a run and what went wrong with them."""

    state: State
    client: Any
    progress: ProgressCallback
    sentence: Callable[[BaseException], str] = str
    files: list[InputFile] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def n_rows(self) -> int:
        return sum(file.n_rows for file in self.files)

    @property
    def stamps(self) -> dict[str, list[Any]]:
        """What tells that the files are still the same."""
        return {file.name: file.stamp for file in self.files}


def label_folder(
    folder: FolderRequest,
    request: Request,
    client: Any,
    *,
    landmarks: int = LANDMARKS,
    jobs: int | None = None,
    report: str | None = None,
    map: str = "pca",
    call: str = "",
    progress: ProgressCallback = no_progress,
) -> FolderResult:
    """Label the rows of all files of a folder whose target is empty.

    `jobs` are the threads of the fit; None for those of the worker. `report` names a page to write, of the landmarks.
    """
    start = perf_counter()
    run = _Run(State(Path(os.path.abspath(folder.out))), client, progress, folder.sentence)
    options = _options(request, folder, landmarks)
    unreadable = _inspect(run, folder)
    with _tidied(run.state), _alone(run.state):
        manifest = _earlier(run, folder, options, unreadable)
        columns, target = _columns(run, request)
        _refuse_votes_of_many_rows(run, request, landmarks)
        if manifest is None:
            choice = LandmarkRule(landmarks, request.seed).with_limit_for(run.n_rows)
            sample, starts = _sample(run, columns, target, choice)
            task = FitTask(
                origin=folder.pattern,
                request=request,
                target=target,
                output=folder.output,
                out=str(run.state.out),
                n_rows=run.n_rows,
                jobs=jobs,
                readings=run.files[0].readings,
                report=report,
                map=map,
                call=call,
            )
            run.state.set_mode(file.mode for file in run.files)
            manifest = Manifest(otprop.__version__, options, run.stamps | unreadable, starts, **_fit(run, sample, task))
            _begin(run, folder)  # once there is a model: a refusal leaves nothing behind
            manifest.write(run.state)
        else:
            _begin(run, folder)
            if report is not None and not os.path.exists(report):
                run.notes.append("no page was written: it is made with the model, which exists; start over to have one")
            late = [file.name for file in run.files if file.name not in manifest.starts]
            if late:
                run.notes.append(f"the model was made without the labels of {listed(late)}: start over to use them")
        label = LabelTask(
            out=str(run.state.out),
            model=str(run.state.model),
            model_digest=manifest.model_digest,
            output=folder.output,
            n_rows=run.n_rows,
            landmarks=str(run.state.landmarks),
            landmarks_digest=manifest.landmarks_digest,
            target=target,
            codes=manifest.codes,
            excel_safe=folder.excel_safe,
            text_model=_absolute(request.text_model),
            image_model=_absolute(request.image_model),
        )
        summary = manifest.summary
        counts = _label_files(run, label, manifest.starts, summary["classes"])
    known = summary["concentration"] if summary["concentration"] is not None else float("inf")
    error = ErrorEstimate(summary["expected"], known, summary["n_unlabeled"])
    return _result(run, summary["classes"], counts, summary["notes"], error, summary, perf_counter() - start)


def predict_folder(
    folder: FolderRequest,
    model: str,
    client: Any,
    *,
    text_model: str | None = None,
    image_model: str | None = None,
    progress: ProgressCallback = no_progress,
) -> FolderResult:
    """Label the rows of all files of a folder by a saved model; the others are the paths of models it was made with."""
    start = perf_counter()
    run = _Run(State(Path(os.path.abspath(folder.out))), client, progress, folder.sentence)
    progress(0, 0, f"loading {model}")
    saved, digest = load_model(model, text_model=text_model, image_model=image_model), digest_of(model)
    options = {"model": digest, **vars(folder.output)}
    unreadable = _inspect(run, folder)
    with _tidied(run.state), _alone(run.state):
        manifest = _earlier(run, folder, options, unreadable, fitted=False)
        for file in run.files:
            lacking = [name for name in saved.features.wanted if name not in file.kinds]
            if lacking:
                raise TableError(f"{file.name} lacks {listed(lacking)}, which the model needs", file=file.path)
        _begin(run, folder)
        if manifest is None:
            starts = dict.fromkeys(run.stamps, 0)
            Manifest(otprop.__version__, options, run.stamps | unreadable, starts, digest).write(run.state)
        task = LabelTask(
            out=str(run.state.out),
            model=os.path.abspath(model),
            model_digest=digest,
            output=folder.output,
            n_rows=run.n_rows,
            excel_safe=folder.excel_safe,
            text_model=_absolute(text_model),
            image_model=_absolute(image_model),
        )
        counts = _label_files(run, task, {}, saved.classes)
    return _result(run, saved.classes, counts, saved.notes, None, {}, perf_counter() - start)


def plan_folder(folder: FolderRequest, request: Request, progress: ProgressCallback = no_progress) -> tuple[int, int]:
    """Check the files of a folder without doing anything: how many they are, and how many rows they have."""
    run = _Run(State(Path(os.path.abspath(folder.out))), None, progress, folder.sentence)
    _inspect(run, folder)
    if Manifest.read(run.state) is None:
        _refuse_outputs(run, folder)
    _columns(run, request)
    return len(run.files), run.n_rows


def _options(request: Request, folder: FolderRequest, landmarks: int) -> dict[str, Any]:
    """What the result depends on, as JSON can hold it."""
    kept = {name: value for name, value in vars(request).items() if name not in ("jobs", "corrections")}
    kept |= {**vars(folder.output), **folder.reading, "excel_safe": folder.excel_safe, "landmarks": landmarks}
    return {name: _plain(value) for name, value in kept.items()}


def _absolute(model: Any) -> str | None:
    """The path of a text or image model for workers, which may run in another folder."""
    return None if model is None else os.path.abspath(os.path.expanduser(model))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def _inspect(run: _Run, folder: FolderRequest) -> dict[str, list[Any]]:
    """Look at all files; returns what tells those that cannot be read from later ones."""
    paths, notes = find_files(folder.pattern, folder.reading.get("format"))
    run.notes += notes
    inputs = {os.path.realpath(path) for path, _ in paths}
    for path, name in paths:
        if os.path.realpath(run.state.out / name) in inputs:
            raise TableError(
                f"{folder.out} is the folder of the input {path}, which is never written", "name another for the output"
            )
    found: dict[int, InputFile] = {}
    calls = [(path, name, folder.reading) for path, name in paths]
    if run.client is None:
        results: Iterator[tuple[int, Any]] = (
            (number, _LocalFuture(inspect_file, call)) for number, call in enumerate(calls)
        )
    else:
        results = run_each(run.client, inspect_file, calls)
    for number, future in results:
        error = future.exception()
        if error is None:
            found[number] = future.result()
        else:
            run.failures[paths[number][1]] = reason_of(error, run.sentence)
        run.progress(len(found), len(paths), f"looking at {len(paths)} files")
    run.files = [found[number] for number in sorted(found) if found[number].n_rows]
    empty = [found[number].name for number in sorted(found) if not found[number].n_rows]
    if empty:
        run.notes.append(f"skipped, no rows: {listed(empty)}")
    if not run.files:
        name, reason = next(iter(run.failures.items()), (folder.pattern, "no file has rows"))
        raise TableError(f"no file of {folder.pattern} can be labelled: {name}: {reason}", file=folder.pattern)
    return {paths[number][1]: [paths[number][1], 0, 0] for number in range(len(paths)) if number not in found}


class _LocalFuture:
    """The result of a call in this process, as a future has it."""

    def __init__(self, function: Any, arguments: tuple[Any, ...]) -> None:
        self._error: Exception | None = None
        try:
            self._found = function(*arguments)
        except (TableError, OSError) as error:
            self._error = error

    def exception(self) -> Exception | None:
        return self._error

    def result(self) -> Any:
        return self._found


def _columns(run: _Run, request: Request) -> tuple[list[str], TargetCells]:
    """The columns to read, and how the target is read."""
    columns = check_schemas(run.files, request)
    without = [file.name for file in run.files if request.target not in file.kinds]
    if without:
        run.notes.append(
            f"without a column {request.target!r}, so that all their rows are unlabelled: {listed(without)}"
        )
    whole = {file.whole[request.target] for file in run.files if request.target in file.whole}
    return columns, TargetCells(request.target, tuple(request.unlabeled), len(whole) > 1)


def _refuse_votes_of_many_rows(run: _Run, request: Request, landmarks: int) -> None:
    """Rows that are not landmarks are predicted, and votes on them would not count."""
    if request.votes and run.n_rows > landmarks:
        raise RequestError(
            "votes",
            f"count for landmarks only, and the files have {run.n_rows} rows for {landmarks} landmarks. Use at least "
            "as many landmarks as rows, or label each file by itself.",
        )


def _earlier(
    run: _Run, folder: FolderRequest, options: dict[str, Any], unreadable: dict[str, list[Any]], fitted: bool = True
) -> Manifest | None:
    """The manifest of an earlier run to continue; None to start over."""
    manifest = None if folder.force else Manifest.read(run.state, fitted)
    if manifest is None:
        _refuse_outputs(run, folder)
        run.state.forget()
    else:
        _refuse_changes(run, manifest, options, unreadable)
        _refuse_others(run, folder)
    return manifest


def _begin(run: _Run, folder: FolderRequest) -> None:
    """Make the folders of the outputs; with `force` those that are there may be replaced, now and after a kill."""
    run.state.begin([file.name for file in run.files])
    run.state.set_mode(file.mode for file in run.files)
    for file in run.files:
        if folder.force and os.path.lexists(run.state.out / file.name):
            run.state.claim(file)
    _refuse_others(run, folder)


def _refuse_others(run: _Run, folder: FolderRequest) -> None:
    """Refuse outputs that are there and that no run wrote, or that somebody has changed since."""
    others = [file.name for file in run.files if not run.state.may_replace(file.name)]
    if others:
        raise TableError(
            f"{folder.out} has {listed(others)}, changed since or not written by this run",
            "move them away, or choose another output",
            file=folder.out,
        )


def _result(
    run: _Run,
    classes: list[str],
    counts: tuple[Tally, int, int],
    notes: Sequence[str],
    error: ErrorEstimate | None,
    summary: dict[str, Any],
    seconds: float,
) -> FolderResult:
    tally, n_files, n_before = counts
    every_note = list(dict.fromkeys([*run.notes, *notes]))
    return FolderResult(run.state, classes, tally, n_files, n_before, run.failures, every_note, error, summary, seconds)


def _refuse_outputs(run: _Run, folder: FolderRequest) -> None:
    blocked = [file.name for file in run.files if run.state.is_blocked(file.name)]
    if blocked:
        what = f"{folder.out} has links or something else in the place of {listed(blocked)}"
        raise TableError(what, "remove them", file=folder.out)
    there = [file.name for file in run.files if os.path.lexists(run.state.out / file.name)]
    if there and not folder.force:
        raise TableError(
            f"{folder.out} has {listed(there)} already",
            "pass {} to replace them, or choose another output",
            file=folder.out,
            arguments=[("force", True)],
        )


def _refuse_changes(run: _Run, manifest: Manifest, options: dict[str, Any], found: dict[str, list[Any]]) -> None:
    """Refuse to resume a run with other options, or with other files."""
    out = run.state.out
    other = [name for name in {**options, **manifest.options} if options.get(name) != manifest.options.get(name)]
    if other or manifest.version != otprop.__version__:
        what = f"another {listed(other)}" if other else f"otprop {manifest.version}"
        raise TableError(
            f"{out} holds the results of a run with {what}",
            "choose another output, or pass {} to start over",
            file=out,
            arguments=[("force", True)],
        )
    sampled = {name: stamp for name, stamp in manifest.inputs.items() if name in manifest.starts}
    earlier = [file for file in run.files if file.name in sampled or file.name not in manifest.inputs]
    gone = {name: stamp for name, stamp in sampled.items() if name not in found}
    change = changes(earlier, gone) or next((f"{name} cannot be read" for name in found if name in sampled), "")
    if change:
        raise TableError(
            f"{out} holds the results of a run over other files: {change}",
            f"choose another output, pass {{}} to start over, or label new files by {run.state.model} (otprop predict)",
            file=out,
            arguments=[("force", True)],
        )


def _sample(run: _Run, columns: Sequence[str], target: TargetCells, choice: LandmarkRule) -> tuple[Any, dict[str, int]]:
    """The landmarks as a future, and the number of the first row of each file that was sampled."""
    starts = dict(zip([file.name for file in run.files], first_rows(run.files), strict=True))
    like = run.files[0].readings
    while True:
        calls = [(file, starts[file.name], columns, target, choice, like) for file in run.files]
        futures: dict[int, Any] = {}
        for number, future in run_each(run.client, sample_file, calls):
            error = future.exception()
            if error is None:
                futures[number] = future
            else:
                run.failures[run.files[number].name] = reason_of(error, run.sentence)
            run.progress(len(futures), len(calls), f"landmarks of {len(calls)} files")
        if not futures:
            name, reason = next(iter(run.failures.items()))
            raise TableError(f"no file can be read: {name}: {reason}", file=name)
        sampled = {run.files[number].name: starts[run.files[number].name] for number in futures}
        found = [futures[number] for number in sorted(futures)]
        del futures
        while len(found) > 1:
            groups = [found[start : start + FAN_IN] for start in range(0, len(found), FAN_IN)]
            found = [run.client.submit(merge_samples, group, choice, pure=False) for group in groups]
        if run.client.submit(choice.has_enough_rows, found[0], pure=False).result():
            return found[0], sampled
        choice = choice.with_wider_limit()


def _fit(run: _Run, sample: Any, task: FitTask) -> dict[str, Any]:
    from distributed import KilledWorker

    run.progress(0, 0, "fitting on the landmarks")
    try:
        return dict(run.client.submit(fit_folder, sample, task, pure=False).result())
    except KilledWorker:
        raise ClusterError(
            "the workers that fitted the landmarks were killed, one after the other, as they are where memory runs "
            "out: give them more memory, or use fewer landmarks."
        ) from None


def _label_files(run: _Run, task: LabelTask, starts: dict[str, int], classes: Sequence[str]) -> tuple[Tally, int, int]:
    """Label the files that are not done; the counts of all that are, how many, and how many were before."""
    records = [run.state.is_done(file, len(classes)) for file in run.files]
    todo = [file for file, record in zip(run.files, records, strict=True) if record is None]
    done = [record for record in records if record is not None]
    n_before, n_rows = len(done), run.n_rows
    run.state.remove_strays([file.name for file in todo])
    n_done = sum(record["rows"] for record in done)
    run.progress(n_done, n_rows, f"labelled {len(done)} of {len(run.files)} files")
    for number, future in run_each(run.client, label_file, [(file, starts.get(file.name), task) for file in todo]):
        error = future.exception()
        if error is None:
            done.append(future.result())
            n_done += done[-1]["rows"]
            run.failures.pop(todo[number].name, None)
        else:
            run.failures[todo[number].name] = reason_of(error, run.sentence)
        run.progress(n_done, n_rows, f"labelled {len(done)} of {len(run.files)} files")
    run.state.remove_strays(list(run.failures))
    tallies = [Tally.from_json(record["tally"], len(classes)) for record in done]
    return Tally.total(tallies, len(classes)), len(done), n_before


@contextmanager
def _alone(state: State) -> Iterator[None]:
    """Refuse a second run into the same folder at the same time, where the system has locks."""
    state.refuse_links()
    try:
        state.folder.mkdir(parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        handle = os.fdopen(os.open(state.folder / "lock", flags, 0o600), "ab")  # who can read it can hold it
    except OSError as error:
        raise TableError(f"cannot write to {state.out}: {error.strerror}", file=state.out) from error
    with handle:
        try:
            import fcntl
        except ImportError:
            yield
            return
        try:
            fcntl.flock(handle.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise TableError(f"another run is writing to {state.out}", "wait for it", file=state.out) from None
        except OSError:  # a file system without locks
            pass
        yield


@contextmanager
def _tidied(state: State) -> Iterator[None]:
    """Leave no folder behind where nothing was begun."""
    made = [folder for folder in (state.folder, *state.folder.parents) if not folder.exists()]
    try:
        yield
    except BaseException:
        if made and not state.manifest.exists():
            with suppress(OSError):  # there is something in it
                for path in (state.folder / "lock", state.mode):
                    path.unlink(missing_ok=True)
                for folder in made:
                    folder.rmdir()
        raise
