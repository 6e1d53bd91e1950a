"""Labelling the files of a folder: landmarks of all files, one fit, then file by file; a killed run is resumed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import otprop
from otprop._progress import ProgressCallback, no_progress
from otprop.dask._cluster import ClusterError, reason_of, run_each, run_here
from otprop.dask._inputs import InputFile, changes, check_schemas, find_files, first_rows, inspect_file
from otprop.dask._landmarks import LandmarkRule, merge_as_tree, merge_samples
from otprop.dask._manifest import Manifest, State, Tally, digest_of
from otprop.dask._tasks import FitTask, LabelTask, ModelFiles, TargetCells, fit_folder, label_file, sample_file
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
    """What to do with a folder."""

    pattern: str  # a folder or a pattern of files
    out: str  # the folder for the results
    output: OutputColumns = field(default_factory=OutputColumns)
    excel_safe: bool = False
    force: bool = False  # outputs that are there may be replaced, and an earlier run is not resumed
    reading: dict[str, Any] = field(default_factory=dict)  # parameters of `read_table` for all files
    sentence: Callable[[BaseException], str] = str  # words an error


@dataclass(frozen=True)
class FolderResult:
    """What was done to a folder."""

    state: State  # where the model is
    classes: list[str]
    tally: Tally  # of all files that are done
    n_files: int  # files that are done
    n_before: int  # how many of them an earlier run had done
    failures: dict[str, str]  # files that could not be labelled, and why
    notes: list[str]
    error: ErrorEstimate | None  # of all unlabelled rows
    summary: dict[str, Any]  # what the fit found; empty for a model of another table
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
    run = _Run(folder, client, progress)
    run.inspect()
    with _tidied(run.state), _alone(run.state):
        options = _options(request, folder, landmarks)
        manifest = run.earlier(options)
        columns, target = run.columns(request)
        if request.votes and run.n_rows > landmarks:  # the other rows are predicted, and votes on them would not count
            raise RequestError(
                "votes",
                f"count for landmarks only, and the files have {run.n_rows} rows for {landmarks} landmarks. Use at "
                "least as many landmarks as rows, or label each file by itself.",
            )
        if manifest is None:
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
            manifest = run.start_over(columns, LandmarkRule(landmarks, request.seed), task, options)
        else:
            run.begin()
            if report is not None and not os.path.exists(report):
                run.notes.append("no page was written: it is made with the model, which exists; start over to have one")
            late = [file.name for file in run.files if file.name not in manifest.starts]
            if late:
                run.notes.append(f"the model was made without the labels of {listed(late)}: start over to use them")
        files = run.model_files(
            str(run.state.model),
            manifest.model_digest,
            (request.text_model, request.image_model),
            landmarks=str(run.state.landmarks),
            landmarks_digest=manifest.landmarks_digest,
        )
        label = run.task(files, target=target, codes=manifest.codes)
        return run.label_files(label, manifest)


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
    run = _Run(folder, client, progress)
    progress(0, 0, f"loading {model}")
    saved, digest = load_model(model, text_model=text_model, image_model=image_model), digest_of(model)
    run.inspect()
    with _tidied(run.state), _alone(run.state):
        options = {"model": digest, **vars(folder.output)}
        manifest = run.earlier(options, fitted=False)
        for file in run.files:
            lacking = [name for name in saved.features.wanted if name not in file.kinds]
            if lacking:
                raise TableError(f"{file.name} lacks {listed(lacking)}, which the model needs", file=file.path)
        run.begin()
        if manifest is None:
            starts = {file.name: 0 for file in run.files}
            Manifest(otprop.__version__, options, run.stamps, starts, digest).write(run.state)
        run.notes += saved.notes
        files = run.model_files(os.path.abspath(model), digest, (text_model, image_model))
        return run.label_files(run.task(files), None, saved.classes)


def plan_folder(folder: FolderRequest, request: Request, progress: ProgressCallback = no_progress) -> tuple[int, int]:
    """Check the files of a folder without doing anything: how many they are, and how many rows they have."""
    run = _Run(folder, None, progress)
    run.inspect()
    if Manifest.read(run.state) is None:
        run.refuse_outputs()
    run.columns(request)
    return len(run.files), run.n_rows


def _options(request: Request, folder: FolderRequest, landmarks: int) -> dict[str, Any]:
    """What the result depends on, as JSON can hold it."""
    kept = {name: value for name, value in vars(request).items() if name not in ("jobs", "corrections")}
    kept |= {**vars(folder.output), **folder.reading, "excel_safe": folder.excel_safe, "landmarks": landmarks}
    return {name: _plain(value) for name, value in kept.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


class _Run:
    """A run over a folder: its files, and what went wrong with them."""

    def __init__(self, folder: FolderRequest, client: Any, progress: ProgressCallback) -> None:
        self.folder, self.client, self.progress = folder, client, progress
        self.state = State(Path(os.path.abspath(folder.out)))
        self.started = perf_counter()
        self.files: list[InputFile] = []
        self.unreadable: dict[str, list[Any]] = {}  # stamps that tell them from later ones
        self.failures: dict[str, str] = {}
        self.notes: list[str] = []

    @property
    def n_rows(self) -> int:
        return sum(file.n_rows for file in self.files)

    @property
    def stamps(self) -> dict[str, list[Any]]:
        """What tells that the files are still the same."""
        return {file.name: file.stamp for file in self.files} | self.unreadable

    def inspect(self) -> None:
        """Look at all files."""
        folder = self.folder
        paths, notes = find_files(folder.pattern, folder.reading.get("format"))
        self.notes += notes
        inputs = {os.path.realpath(path) for path, _ in paths}
        for path, name in paths:
            if os.path.realpath(self.state.out / name) in inputs:
                what = f"{folder.out} is the folder of the input {path}, and inputs are never overwritten"
                raise TableError(what, "name another for the output")
        calls = [(path, name, folder.reading) for path, name in paths]
        names = [name for _, name in paths]
        found: dict[int, InputFile] = {}
        for number, file in self._each(inspect_file, calls, names):
            if file is not None:
                found[number] = file.result()
            self.progress(len(found), len(paths), f"looking at {len(paths)} files")
        inspected = [found[number] for number in sorted(found)]
        self.files = [file for file in inspected if file.n_rows]
        empty = [file.name for file in inspected if not file.n_rows]
        if empty:
            self.notes.append(f"skipped, no rows: {listed(empty)}")
        if not self.files:
            name, reason = next(iter(self.failures.items()), (folder.pattern, "no file has rows"))
            raise TableError(f"no file of {folder.pattern} can be labelled: {name}: {reason}", file=folder.pattern)
        self.unreadable = {name: [name, 0, 0] for number, name in enumerate(names) if number not in found}

    def _each(
        self, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]], names: Sequence[str]
    ) -> Iterator[tuple[int, Any]]:
        """Call a function for each file, on the workers if there are some.

        Yields the number and the future of each call as it is done; None where it failed: the reason is in `failures`.
        """
        done = run_here(function, calls) if self.client is None else run_each(self.client, function, calls)
        for number, future in done:
            error = future.exception()
            if error is not None:
                self.failures[names[number]] = reason_of(error, self.folder.sentence)
            yield number, None if error is not None else future

    def columns(self, request: Request) -> tuple[list[str], TargetCells]:
        """The columns to read, and how the target is read."""
        columns, target = check_schemas(self.files, request), request.target
        without = [file.name for file in self.files if target not in file.kinds]
        if without:
            self.notes.append(f"without a column {target!r}, so that all their rows are unlabelled: {listed(without)}")
        whole = {file.whole[target] for file in self.files if target in file.whole}
        return columns, TargetCells(target, tuple(request.unlabeled), len(whole) > 1)

    def earlier(self, options: dict[str, Any], fitted: bool = True) -> Manifest | None:
        """The manifest of an earlier run to continue; None to start over."""
        manifest = None if self.folder.force else Manifest.read(self.state, fitted)
        if manifest is None:
            self.refuse_outputs()
            self.state.forget()
        else:
            self._refuse_changes(manifest, options)
            self._refuse_others()
        return manifest

    def begin(self) -> None:
        """Make the folders of the outputs; with `force` those that are there may be replaced, now and after a kill."""
        self.state.begin([file.name for file in self.files])
        self.state.set_mode(file.mode for file in self.files)
        for file in self.files:
            if self.folder.force and os.path.lexists(self.state.out / file.name):
                self.state.claim(file)
        self._refuse_others()

    def _refuse_others(self) -> None:
        """Refuse outputs that are there and that no run wrote, or that somebody has changed since."""
        out = self.folder.out
        others = [file.name for file in self.files if not self.state.may_replace(file.name)]
        if others:
            what = f"{out} has {listed(others)}, changed since or not written by this run"
            raise TableError(what, "move them away, or choose another output", file=out)

    def refuse_outputs(self) -> None:
        """Refuse outputs that are there, unless they may be replaced."""
        out = self.folder.out
        blocked = [file.name for file in self.files if self.state.is_blocked(file.name)]
        if blocked:
            what = f"{out} has links or something else in the place of {listed(blocked)}"
            raise TableError(what, "remove them", file=out)
        there = [file.name for file in self.files if os.path.lexists(self.state.out / file.name)]
        if there and not self.folder.force:
            advice = "pass {} to replace them, or choose another output"
            raise TableError(f"{out} has {listed(there)} already", advice, file=out, arguments=[("force", True)])

    def _refuse_changes(self, manifest: Manifest, options: dict[str, Any]) -> None:
        """Refuse to resume a run with other options, or with other files."""
        out = self.state.out
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
        earlier = [file for file in self.files if file.name in sampled or file.name not in manifest.inputs]
        gone = {name: stamp for name, stamp in sampled.items() if name not in self.unreadable}
        lost = next((f"{name} cannot be read" for name in self.unreadable if name in sampled), "")
        change = changes(earlier, gone) or lost
        if change:
            raise TableError(
                f"{out} holds the results of a run over other files: {change}",
                f"choose another output, pass {{}} to start over, or label new files by {self.state.model} (otprop "
                "predict)",
                file=out,
                arguments=[("force", True)],
            )

    def start_over(
        self, columns: Sequence[str], choice: LandmarkRule, task: FitTask, options: dict[str, Any]
    ) -> Manifest:
        """Choose the landmarks, fit on them, and write the manifest."""
        sample, starts = self.sample(columns, task.target, choice.with_limit_for(self.n_rows))
        self.state.set_mode(file.mode for file in self.files)
        manifest = Manifest(otprop.__version__, options, self.stamps, starts, **self.fit(sample, task))
        self.begin()  # once there is a model: a refusal leaves nothing behind
        manifest.write(self.state)
        return manifest

    def sample(self, columns: Sequence[str], target: TargetCells, choice: LandmarkRule) -> tuple[Any, dict[str, int]]:
        """The landmarks as a future, and the number of the first row of each file that was sampled."""
        names = [file.name for file in self.files]
        starts = dict(zip(names, first_rows(self.files), strict=True))
        like = self.files[0].readings
        while True:
            calls = [(file, starts[file.name], columns, target, choice, like) for file in self.files]
            futures: dict[int, Any] = {}
            for number, future in self._each(sample_file, calls, names):
                if future is not None:
                    futures[number] = future
                self.progress(len(futures), len(calls), f"landmarks of {len(calls)} files")
            if not futures:
                name, reason = next(iter(self.failures.items()))
                raise TableError(f"no file can be read: {name}: {reason}", file=name)
            sampled = {names[number]: starts[names[number]] for number in futures}
            merge = partial(self.client.submit, merge_samples, choice=choice, pure=False)
            merged = merge_as_tree([futures.pop(number) for number in sorted(futures)], merge)
            if self.client.submit(choice.has_enough_rows, merged, pure=False).result():
                return merged, sampled
            choice = choice.with_wider_limit()

    def fit(self, sample: Any, task: FitTask) -> dict[str, Any]:
        """What the manifest holds of the fit on the landmarks."""
        from distributed import KilledWorker

        self.progress(0, 0, "fitting on the landmarks")
        try:
            return dict(self.client.submit(fit_folder, sample, task, pure=False).result())
        except KilledWorker:
            raise ClusterError(
                "the workers that fitted the landmarks were killed, one after the other, as they are where memory runs "
                "out: give them more memory, or use fewer landmarks."
            ) from None

    def model_files(self, model: str, digest: str, models: Sequence[Any], **more: str) -> ModelFiles:
        """The files of the model; `models` are its text and image model, as paths for workers in any folder."""
        text, image = (None if one is None else os.path.abspath(os.path.expanduser(one)) for one in models)
        of_all = {"model": model, "model_digest": digest, **more}
        return ModelFiles(**of_all, n_rows=self.n_rows, text_model=text, image_model=image)

    def task(self, files: ModelFiles, **given: Any) -> LabelTask:
        """How the files are labelled."""
        folder = self.folder
        return LabelTask(
            out=str(self.state.out), files=files, output=folder.output, excel_safe=folder.excel_safe, **given
        )

    def label_files(self, task: LabelTask, manifest: Manifest | None, classes: Sequence[str] = ()) -> FolderResult:
        """Label the files that are not done, and count all that are; `classes` are those of a model from elsewhere."""
        starts, summary = ({}, {}) if manifest is None else (manifest.starts, manifest.summary)
        classes = list(summary.get("classes", classes))
        records = [self.state.is_done(file, len(classes)) for file in self.files]
        todo = [file for file, record in zip(self.files, records, strict=True) if record is None]
        done = [record for record in records if record is not None]
        n_before, n_rows, names = len(done), self.n_rows, [file.name for file in todo]
        self.state.remove_strays(names)
        n_done = sum(record["rows"] for record in done)
        self.progress(n_done, n_rows, f"labelled {len(done)} of {len(self.files)} files")
        for number, future in self._each(label_file, [(file, starts.get(file.name), task) for file in todo], names):
            if future is not None:
                done.append(future.result())
                n_done += done[-1]["rows"]
                self.failures.pop(names[number], None)
            self.progress(n_done, n_rows, f"labelled {len(done)} of {len(self.files)} files")
        self.state.remove_strays(list(self.failures))
        tally = Tally.total([Tally.from_json(record["tally"], len(classes)) for record in done], len(classes))
        notes = list(dict.fromkeys([*self.notes, *summary.get("notes", ())]))
        error = None
        if summary:
            known = summary["concentration"] if summary["concentration"] is not None else float("inf")
            error = ErrorEstimate(summary["expected"], known, summary["n_unlabeled"])
        seconds = perf_counter() - self.started
        counts = len(done), n_before
        return FolderResult(self.state, classes, tally, *counts, self.failures, notes, error, summary, seconds)


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
