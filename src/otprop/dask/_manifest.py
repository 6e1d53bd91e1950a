"""What a run over a folder keeps in its output folder: the manifest, the model, and for each file done its counts."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any, Self

import numpy as np

from otprop.dask._inputs import STATE_FOLDER, InputFile
from otprop.files import TableError, remove_strays, write_atomic
from otprop.labelling.outcome import RowLabels
from otprop.propagation.calibration import Coverage, coverage_of_groups
from otprop.propagation.error import ErrorEstimate

FORMAT = 1
N_BINS = 1000
EDGES = np.arange(N_BINS + 1) / N_BINS
MAX_COUNT = 2**53
UNIT = 2**30  # sums of fractions are sums of whole numbers of 1 / UNIT: their order does not matter


@dataclass(frozen=True)
class Tally:
    """Counts of the rows of some partitions; they add up."""

    given: list[int]  # rows of each class whose label was given
    labeled: list[int]  # or found
    abstained: int  # rows without a label
    bins: dict[int, int]  # unlabelled rows by their confidence in thousandths
    doubts: dict[int, int]  # the sum of one minus their confidence, in units of 1 / UNIT

    @classmethod
    def of(cls, labels: RowLabels, n_classes: int) -> Self:
        """Count rows: by class, by whether the label was given, and by confidence."""
        codes, n_rows = labels.codes, len(labels.codes)
        given = np.zeros(n_rows, dtype=bool) if labels.given is None else labels.given
        confidence = np.ones(n_rows) if labels.confidence is None else labels.confidence
        found = ~given & (codes >= 0)
        open_rows = confidence[~given]
        bins = np.clip(np.searchsorted(EDGES, open_rows, side="right") - 1, 0, N_BINS - 1)
        counts = np.bincount(bins, minlength=N_BINS)
        doubts = np.zeros(N_BINS, dtype=np.int64)
        np.add.at(doubts, bins, np.rint((1.0 - open_rows) * UNIT).astype(np.int64))
        used = np.flatnonzero(counts).tolist()
        return cls(
            np.bincount(codes[given], minlength=n_classes).tolist(),
            np.bincount(codes[found], minlength=n_classes).tolist(),
            int(np.count_nonzero(codes < 0)),
            {place: int(counts[place]) for place in used},
            {place: int(doubts[place]) for place in used},
        )

    @classmethod
    def total(cls, tallies: Iterable[Tally], n_classes: int) -> Self:
        """The sum of some tallies."""
        given, labeled, abstained = [0] * n_classes, [0] * n_classes, 0
        bins: dict[int, int] = {}
        doubts: dict[int, int] = {}
        for one in tallies:
            given = [a + b for a, b in zip(given, one.given, strict=True)]
            labeled = [a + b for a, b in zip(labeled, one.labeled, strict=True)]
            abstained += one.abstained
            for whole, part in ((bins, one.bins), (doubts, one.doubts)):
                for place, count in part.items():
                    whole[place] = whole.get(place, 0) + count
        return cls(given, labeled, abstained, dict(sorted(bins.items())), dict(sorted(doubts.items())))

    @property
    def n_rows(self) -> int:
        """All rows."""
        return sum(self.given) + sum(self.bins.values())

    def expected_error(self, least: float = 0.0) -> float | None:
        """Expected error of the unlabelled rows with at least this confidence; None where there are none."""
        first = int(np.searchsorted(EDGES, least, side="left"))
        n_rows = sum(count for place, count in self.bins.items() if place >= first)
        doubt = sum(sum_ for place, sum_ in self.doubts.items() if place >= first)
        return doubt / UNIT / n_rows if n_rows else None

    def coverage(self, error: ErrorEstimate | None) -> list[Coverage]:
        """As `otprop.propagation.calibration.coverage_table`, with rows of one thousandth kept together."""
        places = sorted(self.bins, reverse=True)
        counts = np.cumsum([self.bins[place] for place in places])
        doubts = np.cumsum([self.doubts[place] for place in places]) / UNIT
        return coverage_of_groups(EDGES[places], counts, doubts, error)

    def to_json(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {
            "given": self.given,
            "labeled": self.labeled,
            "abstained": self.abstained,
            "bins": [[place, count, self.doubts[place]] for place, count in self.bins.items()],
        }

    @classmethod
    def from_json(cls, found: dict[str, Any], n_classes: int) -> Self:
        """From what `to_json` returned for this many classes; KeyError, TypeError or ValueError for anything else."""
        given, labeled, abstained, bins = (found[name] for name in ("given", "labeled", "abstained", "bins"))
        places = [place for place, _, _ in bins]
        counts = [*given, *labeled, abstained, *(number for place, count, _ in bins for number in (place, count))]
        sound = all(map(is_count, counts)) and len(given) == len(labeled) == n_classes
        sound = sound and all(isinstance(doubt, int) and 0 <= doubt <= count * UNIT for _, count, doubt in bins)
        sound = sound and len(set(places)) == len(places) and max(places, default=0) < N_BINS
        if not sound or sum(labeled) + abstained != sum(count for _, count, _ in bins):
            raise ValueError("the counts do not add up")
        doubts = {place: doubt for place, _, doubt in bins}
        return cls(list(given), list(labeled), abstained, {place: count for place, count, _ in bins}, doubts)


def is_count(value: Any) -> bool:
    """Whether a value from a file is a whole number from 0 to MAX_COUNT."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_COUNT


@dataclass(frozen=True)
class Manifest:
    """How the outputs of a folder were made."""

    version: str  # of otprop
    options: dict[str, Any]  # what the result depends on
    inputs: dict[str, list[Any]]  # by name [name, bytes, time of change]
    starts: dict[str, int]  # by name the number of the first row; a file that could not be sampled has none
    model_digest: str  # SHA-256 of the file
    landmarks_digest: str = ""
    codes: dict[str, int] = field(default_factory=dict)  # label as text to class number
    summary: dict[str, Any] = field(default_factory=dict)  # what the fit found, for messages

    def write(self, state: State) -> None:
        """Write it in one step."""
        text = json.dumps({"kind": "otprop folder", "format": FORMAT, **asdict(self)}, indent=1)
        write_atomic(state.manifest, text, force=True, mode_like=state.mode)

    @classmethod
    def read(cls, state: State, fitted: bool = True) -> Self | None:
        """That of an earlier run; None where there is none. One of a fit has a summary."""
        state.refuse_links()
        try:
            found = _read_json(state.manifest)
            if found.pop("kind", None) != "otprop folder" or found.pop("format", None) != FORMAT:
                raise ValueError("another format")
            if not found.keys() <= cls.__annotations__.keys():
                raise ValueError("unknown entries")
            manifest = cls(**found)
            manifest._check(fitted)
            return manifest
        except FileNotFoundError:
            return None
        except TypeError:
            reason = "entries are missing"
        except (OSError, ValueError) as error:
            reason = str(error).splitlines()[0][:200]
        raise TableError(f"{state.manifest} cannot be read ({reason})", "remove it to start over", file=state.manifest)

    def _check(self, fitted: bool) -> None:
        """Raise a ValueError that names the first entry that no run has written."""
        for name in ("version", "model_digest", "landmarks_digest"):
            _require(isinstance(getattr(self, name), str), name)
        for name in ("options", "inputs", "starts", "codes", "summary"):
            _require(isinstance(getattr(self, name), dict), name)
        _require(self.version.isprintable(), "version")
        for name, stamp in self.inputs.items():
            _require(isinstance(stamp, list) and len(stamp) == 3 and stamp[0] == name, "inputs")
        _require(all(map(is_count, self.starts.values())) and self.starts.keys() <= self.inputs.keys(), "starts")
        if fitted:
            self._check_summary()

    def _check_summary(self) -> None:
        summary = self.summary
        for name in ("classes", "notes"):
            texts = summary.get(name)
            _require(isinstance(texts, list) and all(isinstance(text, str) for text in texts), name)
        for name in ("landmarks", "n_unlabeled", "n_held_out"):
            _require(is_count(summary.get(name)), name)
        _require(_is_number(summary.get("expected"), 1.0), "expected")
        known = summary.get("concentration", "")
        _require(known is None or _is_number(known, float(MAX_COUNT)), "concentration")
        _require(all(is_count(code) and code < len(summary["classes"]) for code in self.codes.values()), "codes")


@dataclass(frozen=True)
class State:
    """Where the state of a run is kept."""

    out: Path

    @property
    def folder(self) -> Path:
        return self.out / STATE_FOLDER

    @property
    def manifest(self) -> Path:
        return self.folder / "manifest.json"

    @property
    def model(self) -> Path:
        return self.folder / "model"

    @property
    def landmarks(self) -> Path:
        return self.folder / "landmarks.npy"

    @property
    def mode(self) -> Path:
        """An empty file with the permissions that all inputs have: what is made from them gets no more."""
        return self.folder / "mode"

    def set_mode(self, modes: Iterable[int]) -> None:
        """Make `mode` for inputs with these permissions; their owner can always read and write."""
        common = 0o066
        for mode in modes:
            common &= mode
        self.mode.unlink(missing_ok=True)
        os.close(os.open(self.mode, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        os.chmod(self.mode, 0o600 | common)

    def record(self, name: str) -> Path:
        """The record of a file that is begun or done."""
        return self.folder / "done" / f"{name}.json"

    def is_done(self, file: InputFile, n_classes: int) -> dict[str, Any] | None:
        """The record of a file whose output is there as it was written; None otherwise."""
        try:
            record = _read_json(self.record(file.name))
            whole = record["stamp"] == file.stamp and record["rows"] == file.n_rows
            tally = Tally.from_json(record["tally"], n_classes)
            whole = whole and tally.n_rows == file.n_rows
            return record if whole and os.stat(self.out / file.name).st_size == record["bytes"] else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def claim(self, file: InputFile) -> None:
        """Record that the output of a file is being written by this run, so that it may be replaced."""
        record = {"name": file.name, "stamp": file.stamp}
        write_atomic(self.record(file.name), json.dumps(record), force=True, mode_like=self.mode)

    def finish(self, file: InputFile, tally: Tally) -> dict[str, Any]:
        """Record that a file is done."""
        n_bytes = os.stat(self.out / file.name).st_size
        record = {"name": file.name, "stamp": file.stamp, "rows": file.n_rows, "bytes": n_bytes}
        record["tally"] = tally.to_json()
        write_atomic(self.record(file.name), json.dumps(record), force=True, mode_like=self.mode)
        return record

    def is_blocked(self, name: str) -> bool:
        """Whether a link in the output folder leads this output elsewhere, or a pipe or a folder has its name."""
        path = os.path.join(os.path.realpath(self.out), *Path(name).parts)
        return os.path.realpath(path) != path or (os.path.exists(path) and not os.path.isfile(path))

    def may_replace(self, name: str) -> bool:
        """Whether the output with this name, if there is one, is as a run wrote it, or was left by a killed one."""
        out = self.out / name
        if self.is_blocked(name):
            return False
        if not os.path.lexists(out):
            return True
        try:
            return _read_json(self.record(name)).get("bytes", None) in (None, os.stat(out).st_size)
        except (OSError, ValueError):
            return False

    def refuse_links(self) -> None:
        """Refuse links, pipes and devices below the folder: nothing outside of it is read, written or removed."""
        todo = [self.folder]
        while todo:
            path = todo.pop()
            try:
                mode = os.lstat(path).st_mode
                if stat.S_ISDIR(mode):
                    todo += [Path(entry.path) for entry in os.scandir(path)]
            except FileNotFoundError:
                continue
            except OSError as error:
                raise TableError(f"cannot read {path}: {error.strerror}", file=path) from error
            if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
                what = "a link" if stat.S_ISLNK(mode) else "not a regular file"
                raise TableError(f"{path} is {what}; a run makes files and folders only", "remove it", file=path)

    def begin(self, names: list[str]) -> None:
        """Make the folders that the outputs go to."""
        for folder in {self.folder, *((self.out / name).parent for name in names)}:
            folder.mkdir(parents=True, exist_ok=True)
        for folder in {self.record(name).parent for name in names}:
            folder.mkdir(parents=True, exist_ok=True)

    def forget(self) -> None:
        """Remove the manifest and the records of an earlier run, so that everything is done again."""
        self.refuse_links()
        self.manifest.unlink(missing_ok=True)
        for record in (self.folder / "done").rglob("*.json"):
            record.unlink(missing_ok=True)

    def remove_strays(self, names: list[str]) -> None:
        """Remove temporary files of these outputs that killed processes left."""
        for name in names:
            for path in (self.out / name, self.record(name)):
                if path.parent.is_dir():
                    remove_strays(path)


def _read_json(path: Path) -> dict[str, Any]:
    """The object in a file; raises OSError or ValueError."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError("not a JSON object")
    return found


def _require(holds: bool, name: str) -> None:
    if not holds:
        raise ValueError(f"its entry {name!r} is damaged")


def _is_number(value: Any, most: float) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value) and 0 <= value <= most


def digest_of(path: str | Path) -> str:
    """The SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
