"""What `otprop.dask` costs and is worth: accuracy against landmarks, core-seconds a million rows, many rows in files.

    python benchmarks/dask_scale.py accuracy         MNIST (70 000, 700 labels) and Covertype against the landmarks
    python benchmarks/dask_scale.py cost             core-seconds to label a million rows of 64 features
    python benchmarks/dask_scale.py tasks            core-seconds of each task on a file of 250 000 rows
    python benchmarks/dask_scale.py rows             1, 3 and 10 million rows of 16 features in 40 Parquet files
    python benchmarks/dask_scale.py rows --millions 1 --workers 1

Results go to dask_accuracy.csv, dask_cost.csv, dask_tasks.csv and dask_rows.csv, a line as soon as it is done; run
again, it goes on with what is missing. All but the last call what the workers call, without a cluster: the result does
not depend on it.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import make_blobs

from common import RESULTS, argument_parser, commit, peak_megabytes, read_csv, reset_peak_memory, stratified, write_csv
from otprop import OTP
from otprop.dask._estimator import fit_sample, sample_part
from otprop.dask._folder import FolderRequest, label_folder
from otprop.dask._inputs import inspect_file
from otprop.dask._landmarks import LandmarkRule
from otprop.dask._manifest import State
from otprop.dask._tasks import FitTask, LabelTask, ModelFiles, TargetCells, fit_folder, label_file, sample_file
from otprop.labelling.job import Request
from otprop.labelling.output_columns import OutputColumns
from otprop_paper import datasets
from scale import labelled

LANDMARKS = (5_000, 20_000, 50_000, 0)  # 0: all rows
SPLITS = 3
COST_LANDMARKS, COST_ROWS, COST_FEATURES = 100_000, 262_144, 64
MILLIONS, FILES, FEATURES, CLASSES, LABELS = (1.0, 3.0, 10.0), 40, 16, 5, 1000
WORKER_MEMORY = "4GB"


def codes_of(name: str, y: np.ndarray, split: int) -> np.ndarray:
    """MNIST with 700 stratified labels; Covertype with one in a thousand."""
    if name == "mnist70k":
        return stratified(y, 700, split)
    order = np.random.default_rng(split).permutation(len(y))
    codes = np.empty_like(y)
    codes[order] = labelled(y[order])
    return codes


def fit_and_label(X: np.ndarray, codes: np.ndarray, landmarks: int, seed: int) -> tuple[np.ndarray, np.ndarray, dict]:
    """The class of every row, the landmarks, and the seconds of both steps."""
    start, cpu = time.perf_counter(), time.process_time()
    sample = sample_part(X, codes, 0, "auto", LandmarkRule(landmarks, seed))
    (model, _), fitted = fit_sample(sample, OTP(n_jobs=2), len(X)), time.perf_counter()
    found = model.label(X, codes, 0)
    seconds = {
        "fit_seconds": f"{fitted - start:.1f}",
        "label_seconds": f"{time.perf_counter() - fitted:.1f}",
        "core_seconds": f"{time.process_time() - cpu:.1f}",
    }
    return found.codes, model.numbers, seconds


def accuracy(names: list[str], landmarks: list[int], splits: int) -> None:
    """A line for each data set, number of landmarks and split."""
    lines: list[dict[str, object]] = list(read_csv("dask_accuracy.csv"))
    done = {(line["data"], int(str(line["landmarks"])), int(str(line["split"]))) for line in lines}
    for name in names:
        data = datasets.prepare(datasets.load(name))
        for split in range(splits):
            codes = codes_of(name, data.y, split)
            for number in [wanted or len(data.y) for wanted in landmarks]:
                if (name, number, split) in done:
                    continue
                found, chosen, seconds = fit_and_label(data.X, codes, number, split)
                right, hidden = found == data.y, codes < 0
                among = np.zeros(len(codes), dtype=bool)
                among[chosen] = True
                others = hidden & ~among
                line: dict[str, object] = {
                    "data": name,
                    "rows": len(codes),
                    "labels": int((~hidden).sum()),
                    "landmarks": number,
                    "split": split,
                    "accuracy": f"{right[hidden].mean():.4f}",
                    "of_landmarks": f"{right[hidden & among].mean():.4f}",
                    "of_others": f"{right[others].mean():.4f}" if others.any() else "",
                    **seconds,
                    "commit": commit(),
                }
                lines.append(line)
                write_csv("dask_accuracy.csv", lines)
                print(line, flush=True)


def cost() -> None:
    """Core-seconds a million rows of 64 features, in one thread."""
    X, centre = make_blobs(
        COST_LANDMARKS + COST_ROWS, COST_FEATURES, centers=40, cluster_std=4.0, random_state=0
    )  # as in scale.py
    codes = np.full(COST_LANDMARKS, -1)
    codes[:1000] = centre[:1000] % 8
    start = time.process_time()
    model = OTP(n_jobs=1).fit(X[:COST_LANDMARKS], codes)
    fitted = time.process_time()
    model.freeze(1e9, n_jobs=1)
    frozen = time.process_time()
    reset_peak_memory()
    probabilities, _ = model.predict_with_confidence(X[COST_LANDMARKS:])
    seconds = time.process_time() - frozen
    line = {
        "landmarks": COST_LANDMARKS,
        "features": COST_FEATURES,
        "rows": COST_ROWS,
        "fit_core_seconds": f"{fitted - start:.1f}",
        "freeze_core_seconds": f"{frozen - fitted:.1f}",
        "core_seconds_a_million": f"{seconds * 1e6 / COST_ROWS:.1f}",
        "peak_megabytes": f"{peak_megabytes():.0f}",
        "accuracy": f"{(probabilities.argmax(axis=1) == centre[COST_LANDMARKS:] % 8).mean():.4f}",
        "commit": commit(),
    }
    write_csv("dask_cost.csv", [line])
    print(line)


def write_files(folder: Path, n_rows: int, n_files: int = FILES) -> None:
    """Rows in clusters, one file after the other; about LABELS of them have their label."""
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(20, FEATURES)) * 1.5
    names = np.array([f"class {number}" for number in range(CLASSES)], dtype=object)
    for number, part in enumerate(np.array_split(np.arange(n_rows), n_files)):
        which = rng.integers(20, size=len(part))
        X = (centers[which] + rng.normal(size=(len(part), FEATURES))).astype(np.float32)
        frame = pd.DataFrame(X, columns=[f"x{place}" for place in range(FEATURES)])
        truth = names[which % CLASSES]
        frame["kind"] = pd.Series(np.where(rng.random(len(part)) < LABELS / n_rows, truth, None), dtype="str")
        frame["truth"] = pd.Series(truth, dtype="str")
        frame.to_parquet(folder / f"part-{number:03d}.parquet", index=False)


def tasks(n_rows: int = 250_000) -> None:
    """Core-seconds of what workers do with a file of so many rows, in one thread, without a cluster."""
    folder = Path(tempfile.mkdtemp(prefix="dask_tasks"))
    try:
        write_files(folder, n_rows, 1)
        (file,) = [inspect_file(str(path), path.name, {}) for path in folder.glob("*.parquet")]
        columns = [name for name in file.kinds if name not in ("kind", "truth")]
        target, state = TargetCells("kind"), State(folder / "out")
        state.begin([file.name])
        clock = [time.process_time()]
        sample = sample_file(file, 0, columns, target, LandmarkRule(COST_LANDMARKS, 0), {})
        clock.append(time.process_time())
        request, output = Request("kind", ignore=["truth"]), OutputColumns()
        common = {"out": str(state.out), "output": output, "target": target}
        found = fit_folder(sample, FitTask(origin="files", request=request, n_rows=10**9, jobs=1, **common))
        clock.append(time.process_time())
        digests = {name: found[name] for name in ("model_digest", "landmarks_digest")}
        files = ModelFiles(model=str(state.model), landmarks=str(state.landmarks), n_rows=10**9, **digests)
        task = LabelTask(files=files, codes=found["codes"], **common)
        label_file(file, 10**8, task)  # loads the model, too; row numbers that no landmark has
        clock.append(time.process_time())
        reset_peak_memory()
        label_file(file, 10**8, task)
        clock.append(time.process_time())
        sampling, fit, first, labelling = np.diff(clock)
        line = {
            "rows": n_rows,
            "features": FEATURES,
            "landmarks": COST_LANDMARKS,
            "sample_a_million": f"{sampling * 1e6 / n_rows:.2f}",
            "fit_and_save": f"{fit:.1f}",
            "load_model": f"{first - labelling:.1f}",
            "label_a_million": f"{labelling * 1e6 / n_rows:.1f}",
            "model_megabytes": f"{state.model.stat().st_size / 2**20:.0f}",
            "peak_megabytes": f"{peak_megabytes():.0f}",
            "commit": commit(),
        }
        write_csv("dask_tasks.csv", [line])
        print(line)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def worker_memory() -> float:
    """The most memory that a worker held, in megabytes."""
    return peak_megabytes()


def rows(millions: list[float], workers: list[int], landmarks: int) -> None:
    """Time and peak memory of a folder, on a cluster of processes."""
    from dask.distributed import Client, LocalCluster

    lines: list[dict[str, object]] = list(read_csv("dask_rows.csv"))
    done = {(float(str(line["millions"])), int(str(line["workers"]))) for line in lines}
    for million in millions:
        for n_workers in workers:
            if (million, n_workers) in done:
                continue
            folder = Path(tempfile.mkdtemp(prefix="dask_rows"))
            try:
                (folder / "in").mkdir()
                write_files(folder / "in", int(million * 1e6))
                cluster = LocalCluster(
                    n_workers=n_workers, threads_per_worker=1, memory_limit=WORKER_MEMORY, dashboard_address=":0"
                )
                with cluster, Client(cluster) as client:
                    reset_peak_memory()
                    request = Request("kind", ignore=["truth"])
                    marks: dict[str, float] = {}

                    def note(done: float, total: float, step: str, marks: dict[str, float] = marks) -> None:
                        marks.setdefault(step.split()[0], time.perf_counter())

                    start = time.perf_counter()
                    result = label_folder(
                        FolderRequest(str(folder / "in"), str(folder / "out")),
                        request,
                        client,
                        landmarks=landmarks,
                        jobs=n_workers,
                        progress=note,
                    )
                    seconds = time.perf_counter() - start
                    memory = max(client.run(worker_memory).values())
                    cores = sum(client.run(time.process_time).values())
                right = [
                    (frame["kind_label"] == frame["truth"]).mean()
                    for frame in map(pd.read_parquet, sorted((folder / "out").glob("*.parquet"))[:4])
                ]
                line: dict[str, object] = {
                    "millions": million,
                    "workers": n_workers,
                    "landmarks": landmarks,
                    "features": FEATURES,
                    "files": FILES,
                    "labels": sum(result.tally.given),
                    "seconds": f"{seconds:.1f}",
                    "core_seconds": f"{cores:.1f}",
                    "landmark_seconds": f"{marks['fitting'] - start:.1f}",
                    "fit_seconds": f"{marks['labelled'] - marks['fitting']:.1f}",
                    "label_seconds": f"{start + seconds - marks['labelled']:.1f}",
                    "worker_peak_gb": f"{memory / 1024:.2f}",
                    "client_peak_gb": f"{peak_megabytes() / 1024:.2f}",
                    "accuracy": f"{np.mean(right):.4f}",
                    "commit": commit(),
                }
                lines.append(line)
                write_csv("dask_rows.csv", lines)
                print(json.dumps(line), flush=True)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    report([line for line in read_csv("dask_rows.csv") if int(line["workers"]) == max(workers)])


def report(lines: list[dict[str, str]]) -> None:
    """The exponent of the time against the rows."""
    if len(lines) < 2:
        return
    million = np.log([float(line["millions"]) for line in lines])
    for column in ("label_seconds", "seconds", "core_seconds"):
        slope = np.polyfit(million, np.log([float(line[column]) for line in lines]), 1)[0]
        print(f"{column} grow with the power {slope:.2f} of the rows")


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("part", choices=("accuracy", "cost", "tasks", "rows"))
    parser.add_argument("--data", nargs="+", default=["mnist70k", "covtype"])
    parser.add_argument("--landmarks", nargs="+", type=int, default=None)
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--millions", nargs="+", type=float, default=list(MILLIONS))
    parser.add_argument("--workers", nargs="+", type=int, default=[2])
    options = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    if options.part == "accuracy":
        accuracy(options.data, options.landmarks or list(LANDMARKS), options.splits)
    elif options.part == "cost":
        cost()
    elif options.part == "tasks":
        tasks()
    else:
        rows(options.millions, options.workers, (options.landmarks or [COST_LANDMARKS])[0])


if __name__ == "__main__":
    sys.exit(main())
