"""Given labels that are wrong: who finds them, and what they cost. `make wrong-labels`.

    python benchmarks/wrong_labels.py               run what wrong_labels.csv lacks, then print the summary
    python benchmarks/wrong_labels.py --summary     print the summary of what there is

Labels are drawn at random from at most 1 000 rows of a table. A share of them becomes wrong: any other class
("random"), or the class that rows of theirs are nearest to ("confusable"). Found by: `wrong_label_probabilities` of
`OTP()` (the order of `label_issues_`), cleanlab's label quality with the same probabilities, and cleanlab's usual
pipeline, with probabilities from a forest and from logistic regression in five-fold cross-validation. Average
precision, and precision at the number of wrong labels. How many labels look wrong, how many of these are, and the mean
probability of being wrong that is announced. Then the accuracy of the unlabelled rows without and with
``label_noise="auto"``.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from active import read
from common import RESULTS, argument_parser, mean, run_missing
from otprop import OTP
from otprop.loop.label_issues import LOOKS_WRONG, wrong_label_probabilities

TABLES = (
    *("iris", "heart", "ionosphere", "dermatology", "waveform", "digits"),
    *("penguins_raw", "titanic", "mushroom", "splice", "oj", "storms"),
)
LABELS = (50, 100, 300)
RATES = (0.0, 0.05, 0.1, 0.2, 0.3)
KINDS = ("random", "confusable")
FINDERS = ("ours", "cleanlab, ours", "cleanlab, forest", "cleanlab, logistic")
KEY = ("table", "labels", "rate", "kind", "seed")


def nearest_other_class(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """For each class, the other one that most neighbours of its rows have."""
    rows = StandardScaler().fit_transform(X)
    neighbors = NearestNeighbors(n_neighbors=11).fit(rows).kneighbors(rows, return_distance=False)[:, 1:]
    counts = np.zeros((y.max() + 1, y.max() + 1))
    np.add.at(counts, (np.repeat(y, 10), y[neighbors].ravel()), 1)
    np.fill_diagonal(counts, -1)
    return counts.argmax(axis=1)


def cross_validated(X: np.ndarray, codes: np.ndarray, forest: bool) -> np.ndarray:
    """Class probabilities of each row by models that did not see its label."""
    model: Any = RandomForestClassifier(200, random_state=0)
    if not forest:
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    return np.asarray(cross_val_predict(model, X, codes, cv=folds, method="predict_proba"))


def doubts(X: np.ndarray, shown: np.ndarray, model: OTP) -> dict[str, np.ndarray]:
    """How doubtful each given label is, by everyone."""
    from cleanlab.rank import get_label_quality_scores

    rows = np.flatnonzero(shown >= 0)
    codes = np.searchsorted(model.classes_, shown[rows])
    place = {row: number for number, row in enumerate(rows)}
    judged = np.array([place[row] for row in model.held_out_rows_])
    found = {name: np.zeros(len(rows)) for name in FINDERS}
    found["ours"][judged] = wrong_label_probabilities(model.held_out_proba_, codes[judged])
    found["cleanlab, ours"][judged] = 1.0 - get_label_quality_scores(codes[judged], model.held_out_proba_)
    for name, forest in (("cleanlab, forest", True), ("cleanlab, logistic", False)):
        found[name] = 1.0 - get_label_quality_scores(codes, cross_validated(X[rows], codes, forest))
    return found


def run(table: str, n_labels: int, rate: float, kind: str, seed: int) -> dict[str, Any]:
    """One draw of labels, some of them wrong."""
    X, y = read(table, seed)
    rng = np.random.default_rng([seed, n_labels])
    rows = rng.permutation(len(y))[:n_labels]
    shown = np.full(len(y), -1)
    shown[rows] = y[rows]
    wrong = rows[: round(rate * n_labels)]  # the rows are in random order
    others = (y[wrong] + rng.integers(1, y.max() + 1, len(wrong))) % (y.max() + 1)
    shown[wrong] = others if kind == "random" else nearest_other_class(X, y)[y[wrong]]
    left, line = shown < 0, dict(zip(KEY, (table, n_labels, rate, kind, seed), strict=True))
    geometry = OTP(n_jobs=1).prepare(X)
    model = OTP(n_jobs=1).fit(X, shown, geometry=geometry)
    careful = OTP(n_jobs=1, label_noise="auto").fit(X, shown, geometry=geometry)
    given = np.flatnonzero(~left)
    is_wrong = np.isin(given, wrong)
    looks = [issue for issue in model.label_issues_ if issue.probability >= LOOKS_WRONG]
    line["look wrong"] = len(looks)
    line["look wrong and are"] = int(np.isin([issue.row for issue in looks], wrong).sum())
    codes = np.searchsorted(model.classes_, shown[model.held_out_rows_])
    line["announced"] = f"{wrong_label_probabilities(model.held_out_proba_, codes).mean():.4f}"
    for name, doubt in doubts(X, shown, model).items() if len(wrong) else ():
        first = np.argsort(-doubt, kind="stable")[: len(wrong)]
        line[f"ap {name}"] = f"{average_precision_score(is_wrong, doubt):.4f}"
        line[f"precision {name}"] = f"{is_wrong[first].mean():.4f}"
    for name, fitted in (("accuracy", model), ("accuracy with label_noise", careful)):
        line[name] = f"{(fitted.transduction_ == y)[left].mean():.4f}"
    line["doubted"] = int((careful.label_weights_ < 1).sum())
    line["doubted and wrong"] = int((careful.label_weights_[wrong] < 1).sum())
    return line


def cells(seeds: int) -> list[tuple[Any, ...]]:
    """All draws, in random order, so that those of an interrupted run are of all kinds."""
    found = [
        (table, n_labels, rate, kind, seed)
        for seed in range(seeds)
        for table in TABLES
        for n_labels in LABELS
        for rate in RATES
        for kind in KINDS
        if not (table == "iris" and n_labels > 100)
        and not (n_labels == 300 and table in ("heart", "ionosphere", "dermatology", "penguins_raw"))
        and (rate or kind == KINDS[0])
    ]
    return [found[place] for place in np.random.default_rng(0).permutation(len(found))]


def summary(rows: list[dict[str, str]]) -> None:
    """Print the means."""
    with_wrong = [row for row in rows if float(row["rate"])]
    for column, values in (("labels", LABELS), ("rate", RATES[1:]), ("kind", KINDS), ("", ("all",))):
        for value in values:
            here = [row for row in with_wrong if not column or row[column] == str(value)]
            if here:
                by = (f"{mean(here, f'ap {one}'):8.3f} {mean(here, f'precision {one}'):5.3f}" for one in FINDERS)
                print(f"{column:6s} {value!s:>10s} {len(here):4d}" + " ".join(by))
    print("       (average precision and precision of: " + "; ".join(FINDERS) + ")")
    for rate in RATES:
        here = [row for row in rows if float(row["rate"]) == rate]
        if here:
            plain, careful = mean(here, "accuracy"), mean(here, "accuracy with label_noise")
            print(
                f"{rate:4.0%} wrong, {len(here)} runs: accuracy {plain:.4f}, with label_noise {careful:.4f} "
                f"({careful - plain:+.4f})"
            )


def attempt(*cell: Any) -> dict[str, Any]:
    """One run without the warnings of other packages."""
    names = ["look wrong", "look wrong and are", "announced"]
    names += [f"{what} {one}" for one in FINDERS for what in ("ap", "precision")]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return {**dict.fromkeys([*KEY, *names], ""), **run(*cell)}


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=1e6, help="begin no run after so many minutes")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of wrong_labels.csv")
    parser.add_argument("--summary", action="store_true")
    options = parser.parse_args()
    wanted = [] if options.summary else cells(options.seeds)
    summary(
        run_missing(
            "wrong_labels.csv", attempt, wanted, options.jobs, key=KEY, folder=options.out, minutes=options.minutes
        )
    )


if __name__ == "__main__":
    main()
