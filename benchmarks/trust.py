"""Labels that were not drawn at random: how good the labels are, and whether the announced error holds. `make trust`.

    python benchmarks/trust.py                        run what trust.csv lacks, then print the summary
    python benchmarks/trust.py --apart                the same for the tables kept apart, in trust_apart.csv
    python benchmarks/trust.py --summary [--apart]    print the summary of what there is
    python benchmarks/trust.py --tables oj --scenarios sorted --draws 1

A table becomes the vectors that `otprop label` makes of it, at most 1 000 rows of its eight most frequent classes; some
of the rows are labelled, and `OTP()` labels the others. Rows and labels are drawn with a seed made of the table, the
scenario, the number of labels and the number of the draw. Scenarios, each with about 50 and about 200 labels:

    random           rows drawn at random
    groups           whole natural groups (GROUPS); the group column is a feature ("in"), is not one ("out"), or is none
                     and passed as `groups` ("named"). At most 2.5 times as many labels as asked for
    patients         made groups: 125 rows, each eight times with noise of a tenth of the standard deviations; whole
                     groups are labelled, and not passed or passed ("named")
    first, sorted    the first rows of the file, or of the file sorted by a column (SORT; odd draws: backwards)
    easy, hard       rows drawn from the 30 % of which a forest that knows all labels is most, or least, sure out of bag
    equal            the same number of rows of each class, not declared
    missing          5, 20 or 40 % of the rows belong to a class that has no label; at least three classes
    wrong            10 or 20 % of the random labels are wrong
    copies           100 rows ten times each, 50 random labels
    suggest          20 random labels, then four times ten that `suggest` names, passed as `chosen`
    later            random labels in the first 70 % of the file; `predict` labels the rest, and the announced error is
                     one minus the mean of `predict_confidence`

The paper's data have `random` and `missing` only. A user without otprop would train a random forest or logistic
regression on the same vectors and labels, and estimate the forest's error by five-fold cross-validation with the 90 %
interval of Clopper and Pearson (folds by group where groups are named and there are at least two), or from its
out-of-bag probabilities by ATC (Garg et al. 2022), DoC (Guillory et al. 2021), or one minus the mean confidence
(NannyML's CBPE of the accuracy). All errors are of the rows without a label. `warned`: `shift_.found` or
`shift_.explained`, a `novel_share_` above 0, or a range of 0 to 1: each is a note of `otprop label`. A draw with labels
of one class only, or in which most rows of the labelled classes are labelled, is left out and has no numbers.

The tables kept apart had no part in what is done about shift, groups and novelty. They are not new to otprop: the
constants of the expected error were learnt on them, too (error_prior.py), and `suggest` was made on two (active.py).
"""

from __future__ import annotations

import time
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import beta
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from common import RESULTS, argument_parser, load, read_csv, run_missing, tables_folder
from otprop import OTP
from otprop.files import read_table
from otprop.table.features import Features

DEVELOPMENT = (
    *("storms", "rats", "pets", "loans_home", "attrition", "oj", "penguins_raw"),  # with natural groups
    *("titanic", "churn", "crx", "mushroom", "shelve"),
)
PAPER = ("iris", "digits1797", "dermatology", "waveform")
APART = ("credit_status", "hr", "diamonds", "splice")
GROUPS = {
    **{"storms": ("name", "year"), "rats": ("plot_id",), "pets": ("zip_code",), "loans_home": ("state",)},
    **{"attrition": ("JobRole",), "oj": ("StoreID",), "penguins_raw": ("Island",), "titanic": ("class",)},
    **{"churn": ("payment_method",), "shelve": ("Education",), "mushroom": ("a21",), "credit_status": ("Job",)},
}
NOT_FEATURES = {"storms": ("name",), "oj": ("StoreID", "STORE", "Store7")}  # columns that repeat the group
SORT = {
    **{"churn": "tenure", "loans_home": "state", "attrition": "Age", "oj": "WeekofPurchase", "titanic": "age"},
    **{"storms": "year", "rats": "year", "pets": "license_issue_date", "penguins_raw": "Date Egg", "mushroom": "a4"},
    **{"crx": "a2", "shelve": "Price", "credit_status": "Seniority", "hr": "age", "diamonds": "price", "splice": "a30"},
}
MISSING = ("missing5", "missing20", "missing40")
SCENARIOS = (
    *("random", "groups_in", "groups_out", "groups_named", "patients", "patients_named", "first", "sorted", "easy"),
    *("hard", "equal", *MISSING, "wrong10", "wrong20", "copies", "suggest", "later"),
)
LABELS = (50, 200)
FIXED_LABELS = {"copies": 50, "suggest": 60}
DRAWS = 1
MOST_ROWS = 1000
MOST_CLASSES = 8
MOST_LABELLED = 0.7  # of the rows of the classes that have labels
N_REPEATS, N_COPIES = 8, 10  # rows of a made group; times that `copies` repeats a row
EASY_SHARE = 0.3
LATER_SHARE = 0.3
FAR = 0.1  # above the worse of forest and logistic regression: harm
KEY = ("table", "scenario", "labels", "draw")
MEASURES = (
    *("left_out", "rows", "given", "announced_error", "range_low", "range_high", "real_error", "range_holds", "warned"),
    *("shift_z", "novel_share", "true_novel_share", "auroc_novelty", "auroc_doubt", "forest", "logistic", "majority"),
    *("cv_error", "cv_low", "cv_high", "cv_holds", "atc", "doc", "mean_confidence", "seconds"),
)


@dataclass
class Case:
    """Rows with few labels.

    Attributes
    ----------
    X, y : vectors and true codes of the rows
    shown : ndarray of int, the labels given, -1 where none
    groups : ndarray or None, as passed to the fit
    missing : int or None, the class without a label
    later : ndarray of bool or None, rows that are not in the fit
    chosen : ndarray of bool or None, as passed to the fit
    """

    X: np.ndarray
    y: np.ndarray
    shown: np.ndarray
    groups: np.ndarray | None = None
    missing: int | None = None
    later: np.ndarray | None = None
    chosen: np.ndarray | None = None

    @property
    def judged(self) -> np.ndarray:
        """The rows whose labels are judged."""
        return self.shown < 0 if self.later is None else self.later


@cache
def read(name: str) -> tuple[pd.DataFrame, str]:
    """The rows of the most frequent classes, and the name of the target."""
    index = pd.read_csv(tables_folder() / "tables.csv", index_col="name")
    target, table = str(index.loc[name, "target"]), read_table(tables_folder() / f"{name}.csv.gz")
    frame = table.frame(table.names)
    kept = frame[target].value_counts().index[:MOST_CLASSES]
    return frame[frame[target].isin(kept)].reset_index(drop=True), target


def codes_of(values: Any) -> np.ndarray:
    """A number for each distinct value."""
    return np.unique(np.asarray(values).astype(str), return_inverse=True)[1]


def vectors(frame: pd.DataFrame, target: str, without: Iterable[str] = ()) -> tuple[np.ndarray, np.ndarray]:
    """The vectors that `otprop label` makes of these rows, and their codes."""
    columns = [name for name in frame.columns if name != target and name not in set(without)]
    X = Features(columns, None).fit_transform(frame[columns])
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64), codes_of(frame[target])


def some_rows(name: str, rng: np.random.Generator, n_rows: int = MOST_ROWS) -> tuple[np.ndarray, np.ndarray]:
    """Vectors and codes of rows drawn at random, in the order of the file."""
    if name in PAPER:
        X, y = load(name)
        rows = np.sort(rng.permutation(len(y))[:n_rows])
        return np.asarray(X[rows], dtype=np.float64), codes_of(y[rows])
    frame, target = read(name)
    rows = np.sort(rng.permutation(len(frame))[:n_rows])
    return vectors(frame.iloc[rows].reset_index(drop=True), target)


def show(y: np.ndarray, labelled: np.ndarray) -> np.ndarray:
    """The codes of these rows, -1 for the others."""
    shown = np.full(len(y), -1)
    shown[labelled] = y[labelled]
    return shown


def random(name: str, n_labels: int, draw: int, rng: np.random.Generator) -> Case:
    X, y = some_rows(name, rng)
    return Case(X, y, show(y, rng.permutation(len(y))[:n_labels]))


def by_groups(use: str) -> Callable[..., Case]:
    """Whole natural groups are labelled."""

    def make(name: str, n_labels: int, draw: int, rng: np.random.Generator) -> Case:
        frame, target = read(name)
        groups = codes_of([str(values) for values in zip(*(frame[column] for column in GROUPS[name]), strict=True)])
        names = rng.permutation(groups.max() + 1)
        most = len(frame) if name == "storms" else max(MOST_ROWS // int(np.clip(len(names), 6, 30)), 1)
        picked = [rng.permutation(np.flatnonzero(groups == one))[:most] for one in names]
        enough = int(np.searchsorted(np.cumsum([len(rows) for rows in picked]), MOST_ROWS)) + 1
        rows = np.sort(np.concatenate(picked[:enough]))
        without = () if use == "in" else NOT_FEATURES.get(name, GROUPS[name])
        X, y = vectors(frame.iloc[rows].reset_index(drop=True), target, without)
        groups, labelled = groups[rows], np.zeros(len(rows), dtype=bool)
        for one in rng.permutation(np.unique(groups)):
            if labelled.sum() < n_labels:
                labelled |= groups == one
        if labelled.sum() > min(0.6 * len(y), 2.5 * n_labels):
            labelled = np.isin(np.arange(len(y)), rng.permutation(np.flatnonzero(labelled))[:n_labels])
        return Case(X, y, show(y, labelled), groups if use == "named" else None)

    return make


def patients(named: bool) -> Callable[..., Case]:
    """Rows measured several times: whole made groups are labelled."""

    def make(name: str, n_labels: int, draw: int, rng: np.random.Generator) -> Case:
        X, y = some_rows(name, rng, MOST_ROWS // N_REPEATS)
        noise = 0.1 * X.std(axis=0) * rng.standard_normal((N_REPEATS * len(X), X.shape[1]))
        groups = np.repeat(np.arange(len(y)), N_REPEATS)
        labelled = np.isin(groups, rng.permutation(len(y))[: n_labels // N_REPEATS])
        y = y[groups]
        return Case(X[groups] + noise, y, show(y, labelled), groups if named else None)

    return make


def copies(name: str, n_labels: int, draw: int, rng: np.random.Generator) -> Case:
    X, y = some_rows(name, rng, MOST_ROWS // N_COPIES)
    X, y = np.repeat(X, N_COPIES, axis=0), np.repeat(y, N_COPIES)
    return Case(X, y, show(y, rng.permutation(len(y))[:n_labels]))


def first(name: str, n_labels: int, draw: int, rng: np.random.Generator) -> Case:
    X, y = some_rows(name, rng)
    return Case(X, y, show(y, np.arange(n_labels)))


def sorted_rows(name: str, n_labels: int, draw: int, rng: np.random.Generator) -> Case:
    frame, target = read(name)
    frame = frame.iloc[np.sort(rng.permutation(len(frame))[:MOST_ROWS])]
    X, y = vectors(frame.sort_values(SORT[name], kind="stable", ascending=draw % 2 == 0).reset_index(drop=True), target)
    return Case(X, y, show(y, np.arange(n_labels)))


def by_difficulty(easy: bool) -> Callable[..., Case]:
    """The rows labelled are among the easiest, or the hardest, for a forest that knows all labels."""

    def make(name: str, n_labels: int, draw: int, rng: np.random.Generator) -> Case:
        X, y = some_rows(name, rng)
        forest = RandomForestClassifier(200, oob_score=True, random_state=0).fit(X, y)
        sure = forest.oob_decision_function_[np.arange(len(y)), y]
        order = np.argsort(-sure if easy else sure, kind="stable")
        among = order[: max(int(EASY_SHARE * len(y)), n_labels)]
        return Case(X, y, show(y, rng.permutation(among)[:n_labels]))

    return make


def equal(name: str, n_labels: int, draw: int, rng: np.random.Generator) -> Case:
    X, y = some_rows(name, rng)
    of_class = [rng.permutation(np.flatnonzero(y == code)) for code in range(y.max() + 1)]
    return Case(
        X, y, show(y, np.concatenate([rows[: min(n_labels // len(of_class), len(rows) // 2)] for rows in of_class]))
    )


def class_missing(share: float) -> Callable[..., Case]:
    """A class without a label has this share of the rows."""

    def make(name: str, n_labels: int, draw: int, rng: np.random.Generator) -> Case:
        X, y = some_rows(name, rng)
        counts = np.bincount(y)
        code = int(rng.choice(np.flatnonzero(counts >= min(max(8, 0.3 * share * len(y)), counts.max()))))
        mine, others = rng.permutation(np.flatnonzero(y == code)), rng.permutation(np.flatnonzero(y != code))
        n_mine = min(int(share / (1 - share) * len(others)), len(mine))
        n_others = min(int(n_mine * (1 - share) / share) + 1, len(others))
        rows = np.sort(np.concatenate([mine[:n_mine], others[:n_others]]))
        X, y = X[rows], y[rows]
        return Case(X, y, show(y, rng.permutation(np.flatnonzero(y != code))[:n_labels]), missing=code)

    return make


def wrong(rate: float) -> Callable[..., Case]:
    """A share of the random labels is wrong."""

    def make(name: str, n_labels: int, draw: int, rng: np.random.Generator) -> Case:
        case = random(name, n_labels, draw, rng)
        rows = rng.permutation(np.flatnonzero(case.shown >= 0))[: round(rate * n_labels)]
        n_classes = int(case.y.max()) + 1
        case.shown[rows] = (case.y[rows] + rng.integers(1, n_classes, len(rows))) % n_classes
        return case

    return make


def suggest(name: str, n_labels: int, draw: int, rng: np.random.Generator) -> Case:
    """20 random labels; the others are those that `suggest` named, ten at a time."""
    case = random(name, 20, draw, rng)
    case.chosen = np.zeros(len(case.y), dtype=bool)
    while np.count_nonzero(case.shown >= 0) < n_labels and has_two_classes(case):
        for one in fitted(case).suggest(10):
            case.shown[one.row], case.chosen[one.row] = case.y[one.row], one.chosen
    return case


def later(name: str, n_labels: int, draw: int, rng: np.random.Generator) -> Case:
    X, y = some_rows(name, rng)
    n_now = round((1 - LATER_SHARE) * len(y))
    return Case(X, y, show(y, rng.permutation(n_now)[:n_labels]), later=np.arange(len(y)) >= n_now)


MAKE: dict[str, Callable[..., Case]] = {
    "random": random,
    **{f"groups_{use}": by_groups(use) for use in ("in", "out", "named")},
    "patients": patients(named=False),
    "patients_named": patients(named=True),
    "first": first,
    "sorted": sorted_rows,
    "easy": by_difficulty(easy=True),
    "hard": by_difficulty(easy=False),
    "equal": equal,
    **{name: class_missing(int(name.removeprefix("missing")) / 100) for name in MISSING},
    "wrong10": wrong(0.1),
    "wrong20": wrong(0.2),
    "copies": copies,
    "suggest": suggest,
    "later": later,
}


def has_two_classes(case: Case) -> bool:
    return len(np.unique(case.shown[case.shown >= 0])) > 1


def fitted(case: Case) -> OTP:
    """`OTP()` on the rows that are there at the time of the fit."""
    now = slice(None) if case.later is None else ~case.later
    about = {"groups": case.groups, "chosen": case.chosen}
    about = {name: None if values is None else values[now] for name, values in about.items()}
    return OTP(random_state=0, n_jobs=1).fit(case.X[now], case.shown[now], **about)


def judge_ours(case: Case) -> dict[str, Any]:
    """Announced and real error of `OTP()`, and how well it finds the rows of a class without a label."""
    start = time.process_time()
    model, judged = fitted(case), case.judged
    seconds = time.process_time() - start
    if case.later is None:
        labels, novelty, confidence = model.transduction_[judged], model.novelty_[judged], model.confidence_[judged]
        error = model.error_
    else:
        probabilities, confidence = model.predict_with_confidence(case.X[judged])
        labels, novelty = model.classes_[probabilities.argmax(axis=1)], model.predict_novelty(case.X[judged])
        error = model.error_.of_part(float(1 - confidence.mean()), len(labels))
    real, (low, high) = float(np.mean(labels != case.y[judged])), error.interval
    is_novel = case.y[judged] == (-1 if case.missing is None else case.missing)
    found = {
        **{"announced_error": error.expected, "range_low": low, "range_high": high, "real_error": real},
        "range_holds": float(low - 1e-9 <= real <= high + 1e-9),
        "warned": float(
            (model.shift_ is not None and (model.shift_.found or model.shift_.explained))
            or model.novel_share_ > 0
            or (low <= 0 and high >= 1)
        ),
        "shift_z": 0.0 if model.shift_ is None else model.shift_.z,
        **{"novel_share": model.novel_share_, "true_novel_share": is_novel.mean(), "seconds": seconds},
    }
    if 0 < is_novel.mean() < 1:
        found["auroc_novelty"] = roc_auc_score(is_novel, novelty)
        found["auroc_doubt"] = roc_auc_score(is_novel, 1 - confidence)
    return found


def interval(n_wrong: int, n: int) -> tuple[float, float]:
    """The 90 % interval of an error rate by Clopper and Pearson."""
    low = beta.ppf(0.05, n_wrong, n - n_wrong + 1) if n_wrong else 0.0
    high = beta.ppf(0.95, n_wrong + 1, n - n_wrong) if n_wrong < n else 1.0
    return float(low), float(high)


def cross_validated(X: np.ndarray, codes: np.ndarray, groups: np.ndarray | None) -> int:
    """The number of labels that a forest gets wrong in cross-validation."""
    n_groups = 0 if groups is None else len(np.unique(groups))
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    if n_groups > 1:
        folds = StratifiedGroupKFold(min(5, n_groups), shuffle=True, random_state=0)
    found = cross_val_predict(RandomForestClassifier(random_state=0), X, codes, cv=folds, groups=groups)
    return int((found != codes).sum())


def judge_others(case: Case) -> dict[str, Any]:
    """Errors of the usual classifiers, and what a user would announce of the forest's."""
    given, judged = case.shown >= 0, case.judged
    X, codes, truth = case.X[given], case.shown[given], case.y[judged]
    forest = RandomForestClassifier(oob_score=True, random_state=0).fit(X, codes)
    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)).fit(X, codes)
    real = float(np.mean(forest.predict(case.X[judged]) != truth))
    n_wrong = cross_validated(X, codes, None if case.groups is None else case.groups[given])
    low, high = interval(n_wrong, len(codes))
    held_out = np.nan_to_num(forest.oob_decision_function_)
    before, now = held_out.max(axis=1), forest.predict_proba(case.X[judged]).max(axis=1)
    held_out_error = float(np.mean(forest.classes_[held_out.argmax(axis=1)] != codes))
    threshold = np.quantile(before, held_out_error)
    return {
        **{"forest": real, "logistic": float(np.mean(linear.predict(case.X[judged]) != truth))},
        "majority": float(np.mean(np.bincount(codes).argmax() != truth)),
        **{"cv_error": n_wrong / len(codes), "cv_low": low, "cv_high": high},
        "cv_holds": float(low - 1e-9 <= real <= high + 1e-9),
        "atc": float(np.mean(now < threshold)),
        "doc": float(np.clip(held_out_error + before.mean() - now.mean(), 0, 1)),
        "mean_confidence": float(1 - now.mean()),
    }


def run(table: str, scenario: str, n_labels: int, draw: int) -> dict[str, Any]:
    """One draw; a run that fails is a result, too."""
    cell = dict(zip(KEY, (table, scenario, n_labels, draw), strict=True))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            found = measure(table, scenario, n_labels, draw)
        except Exception as error:
            found = {"left_out": " ".join(f"failed: {error!r}".split())}
    return dict.fromkeys([*KEY, *MEASURES], "") | cell | found


def measure(table: str, scenario: str, n_labels: int, draw: int) -> dict[str, Any]:
    """The columns of a draw, or why it is left out."""
    drawn = scenario.split("_")[0]  # the ways to use the same groups share a draw
    rng = np.random.default_rng([zlib.crc32(f"{table} {drawn}".encode()), n_labels, draw])
    case = MAKE[scenario](table, n_labels, draw, rng)
    n_given = int((case.shown >= 0).sum())
    sizes = {"rows": len(case.y), "given": n_given}
    if not has_two_classes(case):
        return sizes | {"left_out": "labels of one class"}
    if n_given > MOST_LABELLED * np.count_nonzero(case.y != case.missing):
        return sizes | {"left_out": "most rows are labelled"}
    found = judge_ours(case) | judge_others(case)
    return sizes | {name: f"{value:.6g}" for name, value in found.items()}


def applies(table: str, scenario: str, n_labels: int) -> bool:
    """Whether a table can have the scenario."""
    if table in PAPER:
        n_rows, n_classes = len(load(table)[1]), 3
    else:
        frame, target = read(table)
        n_rows, n_classes = len(frame), frame[target].nunique()
    return (
        (table not in PAPER or scenario == "random" or scenario in MISSING)
        and (table in GROUPS or not scenario.startswith("groups"))
        and (table in SORT or scenario != "sorted")
        and (n_classes > 2 or scenario not in MISSING)
        and n_labels <= MOST_LABELLED * min(n_rows, MOST_ROWS)
    )


def cells(tables: Iterable[str], scenarios: Iterable[str], draws: int) -> list[tuple[Any, ...]]:
    """All runs, the first draw of all tables first, in random order within a draw."""
    tables, scenarios = list(tables), list(scenarios)
    one_draw = [
        (table, scenario, n_labels)
        for table in tables
        for scenario in scenarios
        for n_labels in ([FIXED_LABELS[scenario]] if scenario in FIXED_LABELS else LABELS)
        if applies(table, scenario, n_labels)
    ]
    order = np.random.default_rng(0).permutation(len(one_draw))
    return [(*one_draw[place], draw) for draw in range(draws) for place in order]


def column(rows: Iterable[dict[str, str]], name: str) -> np.ndarray:
    """The numbers of a column, where there are any."""
    return np.array([float(row[name]) for row in rows if row[name] != ""])


def summarise(rows: list[dict[str, str]]) -> dict[str, float]:
    """Means of the runs of a scenario."""
    ours, forest, linear = (column(rows, name) for name in ("real_error", "forest", "logistic"))
    announced, held, warned = (column(rows, name) for name in ("announced_error", "range_holds", "warned"))
    found = {
        **{"runs": len(rows), "announced": announced.mean(), "real": ours.mean(), "bias": (announced - ours).mean()},
        **{
            "distance": np.abs(announced - ours).mean(),
            "width": np.mean(column(rows, "range_high") - column(rows, "range_low")),
        },
        **{"holds": held.mean(), "warned": warned.mean(), "or_warned": np.maximum(held, warned).mean()},
        **{"cv": column(rows, "cv_error").mean(), "cv_holds": column(rows, "cv_holds").mean()},
        **{
            f"{name}_off": np.abs(column(rows, name) - forest).mean()
            for name in ("cv_error", "atc", "doc", "mean_confidence")
        },
        **{"forest": forest.mean(), "logistic": linear.mean(), "best": np.minimum(forest, linear).mean()},
        **{"majority": column(rows, "majority").mean(), "harmed": int((ours > np.maximum(forest, linear) + FAR).sum())},
    }
    shares = {"share": column(rows, "novel_share").mean(), "true_share": column(rows, "true_novel_share").mean()}
    aurocs = {name: column(rows, f"auroc_{name}") for name in ("novelty", "doubt")}
    return found | {name: values.mean() if len(values) else np.nan for name, values in aurocs.items()} | shares


def summary(rows: list[dict[str, str]]) -> None:
    """Print the means of each scenario, of the paper's data apart, and those of all runs."""
    done = [row for row in rows if row["real_error"] != ""]
    parts = {
        name + (", paper" if paper else ""): [
            row for row in done if row["scenario"] == name and (row["table"] in PAPER) == paper
        ]
        for paper in (False, True)
        for name in SCENARIOS
    }
    parts["all"] = done
    lines = {name: summarise(part) for name, part in parts.items() if part}
    with pd.option_context("display.width", 300, "display.max_columns", None):
        print(pd.DataFrame(lines).T.astype({"runs": int, "harmed": int}).round(3).to_string())
    for reason, number in Counter(row["left_out"] for row in rows if row["left_out"]).items():
        print(f"left out: {number} ({reason})")


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--apart", action="store_true", help="the tables kept apart, in trust_apart.csv")
    parser.add_argument("--tables", nargs="+", choices=(*DEVELOPMENT, *PAPER, *APART))
    parser.add_argument("--scenarios", nargs="+", default=list(SCENARIOS), choices=SCENARIOS)
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--jobs", type=int, default=2, help="processes; default: 2")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no run after so many minutes")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the CSV; default: benchmarks/results")
    parser.add_argument("--summary", action="store_true", help="print the means of the stored runs, run nothing")
    options = parser.parse_args()
    allowed = APART if options.apart else (*DEVELOPMENT, *PAPER)
    if not set(options.tables or ()) <= set(allowed):
        parser.error("the tables kept apart are run with --apart, and the others without it.")
    file = "trust_apart.csv" if options.apart else "trust.csv"
    if options.summary:
        rows = read_csv(file, options.out)
    else:
        chosen = cells(options.tables or allowed, options.scenarios, options.draws)
        rows = run_missing(file, run, chosen, options.jobs, key=KEY, folder=options.out, minutes=options.minutes)
    if not rows:
        parser.exit(1, f"{file} has no runs.\n")
    summary(rows)


if __name__ == "__main__":
    import trust  # processes of joblib find the functions of a module, and not those of a script

    trust.main()
