"""Random tables and parameters of both estimators: sound results, or a ValueError or TypeError that names the cause."""

from __future__ import annotations

import inspect
import logging
import re
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from harness import Run, check, no_foreign_warning
from otprop import OTP, PaperOTP
from otprop.geometry.pairwise import METRICS

PARAMETERS = set(inspect.signature(OTP).parameters)
NAMED = re.compile(rf"\b(X|y|sample_weight|chosen|groups|votes|n|random_share|{'|'.join(PARAMETERS)})\b")
SCIKIT_LEARN = re.compile(r"^(Found array with|Expected 2D array|Sparse data was passed)")
Rng = np.random.Generator


def pick(rng: Rng, *values: Any) -> Any:
    return values[rng.integers(len(values))]


def distance(a: np.ndarray, b: np.ndarray) -> float:
    """A metric as a user may write one."""
    return float(np.abs(a - b).sum())


def make_rows(rng: Rng) -> np.ndarray:
    """Rows of some size, scale and degeneracy."""
    n = int(rng.integers(2, 12)) if rng.random() < 0.2 else int(np.exp(rng.uniform(2, 5.5)))
    n = int(rng.integers(1000, 3000)) if rng.random() < 0.02 else n
    d = int(np.exp(rng.uniform(0, 3.5))) if rng.random() < 0.95 else int(rng.integers(50, 150))
    kind = pick(rng, "normal", "blobs", "integers", "cauchy", "binary", "constant")
    rows = {
        "normal": lambda: rng.normal(size=(n, d)),
        "blobs": lambda: rng.normal(size=(n, d)) + 10 * rng.integers(4, size=n)[:, None],
        "integers": lambda: rng.integers(-5, 6, size=(n, d)).astype(float),
        "cauchy": lambda: rng.standard_cauchy(size=(n, d)),
        "binary": lambda: rng.integers(2, size=(n, d)).astype(float),
        "constant": lambda: np.full((n, d), rng.normal()),
    }[kind]()
    if rng.random() < 0.3:
        rows[:, rng.random(d) < 0.5] = rng.normal()
    if rng.random() < 0.3:
        rows = rows[rng.integers(max(1, n // 3), size=n)]
    if rng.random() < 0.2:
        rows = rows * (rng.random((n, d)) < 0.2)
    if rng.random() < 0.2:
        rows = rows + 10.0 ** rng.uniform(0, 16)
    if rng.random() < 0.3:
        with np.errstate(over="ignore"):
            rows = rows * 10.0 ** rng.uniform(-300, 300, size=pick(rng, (), (d,), (n, 1)))
    if rng.random() < 0.1:
        rows[rng.integers(n), rng.integers(d)] = pick(rng, 1e300, -1e300, 1e308, 1e-320, -0.0, 1e160)
    return np.nan_to_num(rows, nan=0.0, posinf=1e308, neginf=-1e308)


def dressed(rows: np.ndarray, rng: Rng) -> Any:
    """The rows as one of the types that users have."""
    way = rng.random()
    if way < 0.6:
        return np.asfortranarray(rows) if way < 0.1 else rows
    if way < 0.7:
        names = [f"c{i}" for i in range(rows.shape[1])]
        return pd.DataFrame(rows, columns=names)
    if way < 0.75:
        return rows.tolist()
    if way < 0.8:
        return np.clip(rows, -3e38, 3e38).astype(np.float32)
    found = pick(rng, sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_array)(rows)
    if rng.random() < 0.5 and found.format == "csr":
        found.indices, found.indptr = found.indices.astype(np.int64), found.indptr.astype(np.int64)
    return found


def make_labels(n: int, rng: Rng) -> tuple[Any, np.ndarray, dict[str, Any]]:
    """y, where it is labelled, and the parameter `unlabeled` where the marker needs it."""
    n_classes = int(rng.integers(1, max(2, min(n, 60)))) if rng.random() < 0.2 else int(rng.integers(1, min(n, 5) + 1))
    codes = rng.integers(n_classes, size=n)
    n_labels = max(1, int(n * rng.uniform(0, 0.6))) if rng.random() < 0.9 else n
    given = np.zeros(n, dtype=bool)
    given[rng.permutation(n)[:n_labels]] = True
    if rng.random() < 0.2:  # one label a class
        given[:] = False
        given[np.unique(codes, return_index=True)[1]] = True
    kind = pick(rng, "int", "int", "text", "float", "bool", "date", "bytes", "own", "nullable", "category")
    if kind == "int":
        return np.where(given, codes * pick(rng, 1, 1, 7, 2**40), -1), given, {}
    if kind == "float":
        return np.where(given, codes.astype(float), np.nan), given, {}
    if kind == "own":
        return np.where(given, codes - 3, 99), given, {"unlabeled": 99}
    if kind == "nullable":
        return pd.Series(np.where(given, codes, -1), dtype="Int64").mask(~given), given, {}
    if kind == "date":
        dates = np.datetime64("2020-01-01") + codes
        return np.where(given, dates, np.datetime64("NaT")), given, {}
    words = [pick(rng, "a", "", "ü", "\n", "x" * 50, "1", "\u2212") + str(code) for code in range(n_classes)]
    values = {
        "text": lambda code: words[code],
        "category": lambda code: words[code],
        "bool": lambda code: bool(code % 2),
        "bytes": lambda code: words[code].encode(),
    }[kind]
    y = [values(code) if labelled else None for code, labelled in zip(codes, given, strict=True)]
    return (pd.Series(y, dtype="category") if kind == "category" else y), given, {}


def make_classifiers(rng: Rng) -> Any:
    known: list[Any] = [
        "forest",
        "linear",
        "random_forest",
        "boosting",
        GaussianNB(),
        DecisionTreeClassifier(random_state=0),
    ]
    known += [("near", KNeighborsClassifier(2)), ("logistic", LogisticRegression())]
    return [known[i] for i in rng.permutation(len(known))[: rng.integers(0, 3)]]


def make_parameters(rng: Rng) -> tuple[Any, dict[str, Any]]:
    """A class and parameters of it that may be used together; some do not fit and are refused."""
    found: dict[str, Any] = {"cost": "diffusion"}

    def sometimes(share: float, name: str, make: Any) -> None:
        if rng.random() < share:
            found[name] = make()

    if rng.random() < 0.5:
        found["cost"] = pick(rng, "graph", "precomputed", "sqeuclidean", "sqeuclidean", distance, *METRICS)
    featureless = isinstance(found["cost"], str) and found["cost"] in ("graph", "precomputed")
    kind = PaperOTP if found["cost"] not in ("diffusion", "graph") and rng.random() < 0.5 else OTP
    if found["cost"] == "diffusion":
        sometimes(0.3, "metric", lambda: pick(rng, "cosine", "inner", "manhattan", "chebyshev", distance, *METRICS))
        sometimes(0.2, "n_neighbors", lambda: int(rng.integers(1, 40)))
        sometimes(0.2, "diffusion", lambda: rng.uniform(0.01, 0.999))
    if kind is OTP:
        sometimes(0.5, "evidence", lambda: None if featureless or rng.random() < 0.5 else make_classifiers(rng))
        sometimes(0.3, "marginal_strength", lambda: pick(rng, 0, 1, 0.5, rng.random()))
        sometimes(0.2, "abstain_below", lambda: pick(rng, 0, 1, 0.5, 0.9))
        sometimes(0.1, "class_prior", lambda: "uniform")
        sometimes(0.1, "warm_start", lambda: True)
        sometimes(0.2, "random_state", lambda: int(rng.integers(1000)))
    sometimes(0.2, "epsilon", lambda: 10 ** rng.uniform(-12, 6))
    sometimes(0.2, "alpha", lambda: pick(rng, 0, 1, 0.5, 0.9))
    sometimes(0.2, "max_rounds", lambda: pick(rng, 1, 2, 5, None))
    sometimes(0.1, "min_round_share", lambda: rng.random())
    sometimes(0.1, "tol", lambda: 10 ** rng.uniform(-12, 0))
    sometimes(0.1, "max_iter", lambda: int(rng.integers(1, 100)))
    if rng.random() < 0.05:
        name = pick(rng, *sorted(set(inspect.signature(kind).parameters) - {"callback", "unlabeled"}))
        found[name] = pick(rng, "nonsense", -1, np.nan, np.inf, None, [], {}, 0, 1.5, "", object(), np.array([1, 2]))
    return kind, found


def make_groups(n: int, rng: Rng) -> Any:
    """The group of each row: numbers, text, or one that is missing."""
    groups = rng.integers(pick(rng, 2, 5, n), size=n)
    if rng.random() < 0.3:
        return [None if rng.random() < 0.02 else f"g{group}" for group in groups]
    return groups * 10.0 ** rng.uniform(-300, 300) if rng.random() < 0.2 else groups


def make_votes(y: Any, given: np.ndarray, rng: Rng) -> Any:
    """Votes of voters that are right, wrong or silent, as an array, a list or a frame; some do not fit."""
    labels = list(y)
    known = [labels[row] for row in np.flatnonzero(given)]
    columns = []
    for _ in range(rng.integers(1, 5)):
        silent, wrong = rng.random(2)
        column = [None if rng.random() < silent else known[rng.integers(len(known))] for _ in labels]
        for row in np.flatnonzero(given):
            column[row] = labels[row] if column[row] is not None and rng.random() > wrong else column[row]
        columns.append(column)
    if rng.random() < 0.05:
        columns[0][0] = pick(rng, "nobody", 1e300, object(), [], np.nan, b"x")
    rows = [list(row) for row in zip(*columns, strict=True)]
    if rng.random() < 0.3:
        return pd.DataFrame(rows, columns=[pick(rng, "v", f"v{place}") for place in range(len(columns))], dtype=object)
    return rows if rng.random() < 0.5 else columns[0]


def make_objective(y: Any, given: np.ndarray, rng: Rng) -> Any:
    """Another objective: balanced, or costs of any size by pairs of classes."""
    labels = list(y)
    known = [labels[row] for row in np.flatnonzero(given)]
    if rng.random() < 0.4:
        return "balanced"
    pairs = [(pick(rng, *known), pick(rng, *known)) for _ in range(rng.integers(1, 4))]
    costs = {pair: pick(rng, 0, 1, 10, 1e-300, 1e300, 1e308) for pair in pairs if pair[0] != pair[1]}
    return costs or {pick(rng, ("a", "a"), ("a",), "ab", (None, np.nan), 3): pick(rng, 1, -1, np.nan, "x", None)}


def pairwise(rows: np.ndarray, cost: Any, rng: Rng) -> Any:
    """A matrix between rows of any scale, for the costs "graph" and "precomputed"."""
    n = len(rows)
    matrix = rng.random((n, n)) * 10.0 ** (rng.uniform(-300, 300) if rng.random() < 0.4 else 0)
    if cost == "graph":
        matrix = matrix * (rng.random((n, n)) < pick(rng, 0.02, 0.1, 0.5))
    matrix = matrix if rng.random() < 0.2 else np.maximum(matrix, matrix.T)
    if rng.random() < 0.5:
        np.fill_diagonal(matrix, 0)
    return sp.csr_array(matrix) if cost == "graph" and rng.random() < 0.7 else matrix


def make_fit(rng: Rng) -> tuple[Any, dict[str, Any], Any, Any, np.ndarray, dict[str, Any], Any]:
    """A class, its parameters, X, y, where y is labelled, the other arguments of fit, and new rows."""
    (kind, parameters), rows = make_parameters(rng), make_rows(rng)
    n = len(rows)
    y, given, marker = make_labels(n, rng)
    more: dict[str, Any] = {}
    if rng.random() < 0.2:
        more["sample_weight"] = 10.0 ** rng.uniform(-300, 300, n) if rng.random() < 0.3 else rng.random(n) + 1e-9
    if rng.random() < 0.15 and kind is OTP:
        more["chosen"] = rng.random(n) < 0.5
    if rng.random() < 0.2 and kind is OTP:
        more["groups"] = make_groups(n, rng)
    if rng.random() < 0.2 and kind is OTP:
        more["votes"] = make_votes(y, given, rng)
    if rng.random() < 0.2 and kind is OTP:
        parameters["objective"] = make_objective(y, given, rng)
    if isinstance(parameters["cost"], str) and parameters["cost"] in ("graph", "precomputed"):
        X = pairwise(rows, parameters["cost"], rng)
        new = X[: rng.integers(1, n + 1)]
    else:
        if callable(parameters["cost"]) or callable(parameters.get("metric")):
            rows, given = rows[:60], given[:60]
            y, more = y[:60], {name: value[:60] for name, value in more.items()}
        X = dressed(rows, rng)
        far = 10.0 ** rng.uniform(-10, 10) if rng.random() < 0.2 else 1.0
        chosen = rows[rng.integers(len(rows), size=rng.integers(1, 20))]
        with np.errstate(over="ignore"):
            moved = np.nan_to_num(chosen * far + rng.normal(size=chosen.shape) * pick(rng, 0, 0, 0.1))
        new = pd.DataFrame(moved, columns=X.columns) if isinstance(X, pd.DataFrame) else moved
        new = sp.csr_array(moved) if sp.issparse(X) else new
    if rng.random() < 0.02 and isinstance(X, np.ndarray):
        X = X.copy()
        X[0, 0] = pick(rng, np.nan, np.inf, -np.inf)
    if rng.random() < 0.02:
        y = y[:-1]
    return kind, {**parameters, **marker}, X, y, given, more, new


def check_probabilities(found: np.ndarray, n_classes: int) -> None:
    check(found.shape[1] == n_classes, f"{found.shape} probabilities of {n_classes} classes")
    check(np.isfinite(found).all(), "probabilities are not finite")
    check((found >= 0).all(), "probabilities are negative")
    check(np.abs(found.sum(axis=1) - 1).max(initial=0) < 1e-6, "probabilities do not sum to one")


def same_label(left: Any, right: Any) -> bool:
    return bool(left == right) or str(left) == str(right)


def check_fitted(model: OTP | PaperOTP, y: Any, given: np.ndarray, new: Any, rng: Rng) -> list[np.ndarray]:
    """Check all results of a fit; return those that must not depend on n_jobs."""
    n_classes = len(model.classes_)
    check_probabilities(model.label_distributions_, n_classes)
    check(((model.certainty_ >= 0) & (model.certainty_ <= 1)).all(), "certainty_ is outside of [0, 1]")
    check(0 < model.epsilon_ < np.inf, f"epsilon_ is {model.epsilon_}")
    labels = y.tolist() if isinstance(y, np.ndarray) and y.dtype.kind != "M" else list(y)
    kept = all(same_label(model.transduction_[i], labels[i]) for i in np.flatnonzero(given))
    check(kept, "a given label was not kept")
    classes = set(model.classes_.tolist())
    left = np.zeros(len(given), bool)
    if isinstance(model, OTP) and model.abstain_below is not None:
        left = model.confidence_ < model.abstain_below
    check(set(model.transduction_[~left].tolist()) <= classes, "a label is no class")
    proba = model.predict_proba(new)
    check_probabilities(proba, n_classes)
    check(set(model.predict(new).tolist()) <= classes, "a predicted label is no class")
    found = [model.label_distributions_, model.certainty_, model.round_, proba]
    if isinstance(model, OTP):
        confidence = model.predict_confidence(new)
        for values in (confidence, model.confidence_, model.class_prior_, model.held_out_proba_):
            check(np.isfinite(values).all(), "confidence_, class_prior_ or held_out_proba_ is not finite")
        low, high = model.error_range_
        check(0 <= low <= model.expected_error_ <= high <= 1, f"expected error {low} {model.expected_error_} {high}")
        for row in model.coverage():
            check(0 <= row.low <= row.expected_error <= row.high <= 1, f"coverage {row}")
        featureless = isinstance(model.cost, str) and model.cost in ("graph", "precomputed")
        if (model.round_ != 0).any() and not featureless:
            n = int(rng.integers(1, 30))
            rows = [each.row for each in model.suggest(n, random_share=pick(rng, 0, 0.2, 1))]
            unlabelled = np.flatnonzero(~given)
            check(len(rows) == min(n, len(unlabelled)), f"{len(rows)} suggestions, not {n}")
            check(len(set(rows)) == len(rows) and set(rows) <= set(unlabelled), "a suggestion is labelled or twice")
        for issue in model.label_issues_:
            known = any(same_label(issue.suggested, label) for label in model.classes_)
            check(given[issue.row] and known and 0 <= issue.probability <= 1, f"label issue {issue}")
        check_guarantees(model, new, rng)
        for alone in model.explain(new).values():
            check_probabilities(alone, n_classes)
        found += [confidence, model.confidence_, np.array(model.error_range_)]
    return found


def check_guarantees(model: OTP, new: Any, rng: Rng) -> None:
    """Check what is announced by class, by set and by row."""
    coverage = float(pick(rng, 1e-12, 0.5, 0.9, 1 - 1e-12))
    for rows in (None, new):
        sets = model.label_sets(coverage, rows)
        check(sets.members.any(axis=1).all(), "a row without a class in its set")
    for errors in model.class_errors():
        for value, (low, high) in ((errors.precision, errors.precision_range), (errors.recall, errors.recall_range)):
            check(np.isnan(value) or 0 <= low <= value <= high <= 1, f"class errors {errors}")
    try:
        check(0 <= model.confidence_for_risk(coverage) <= 1, "a confidence outside of [0, 1]")
    except ValueError as error:
        check(re.search("cannot be promised|every row has a given label", str(error)), str(error))
    novelty = model.predict_novelty(new)
    check(((novelty >= 0) & (novelty <= 1)).all(), "novelty is outside of [0, 1]")
    check(np.isfinite(model.expected_cost_) and model.expected_cost_ >= 0, f"expected cost {model.expected_cost_}")
    for voter in getattr(model, "voters_", []):
        judged = not voter.n_judged or voter.low <= voter.accuracy <= voter.high
        check(voter.low >= 0 and voter.high <= 1 and judged, f"{voter}")


def example(rng: Rng) -> str:
    """Fit one table and check all that comes of it."""
    kind, parameters, X, y, given, more, new = make_fit(rng)
    evidence = parameters.get("evidence")
    classifiers = isinstance(evidence, list) and any(not isinstance(source, str) for source in evidence)
    try:
        with no_foreign_warning(from_classifiers=classifiers):
            model = kind(**(parameters if kind is PaperOTP else {"n_jobs": 1, **parameters})).fit(X, y, **more)
            found = check_fitted(model, y, given, new, rng)
            if kind is OTP and "n_jobs" not in parameters and rng.random() < 0.5:
                other = OTP(**parameters, n_jobs=2).fit(X, y, **more)
                for first, second in zip(found, check_fitted(other, y, given, new, rng), strict=True):
                    check(np.array_equal(first, second), "n_jobs changes the result")
                return "fitted, n_jobs 1 and 2 alike"
    except (ValueError, TypeError) as error:
        text = str(error)
        check(NAMED.search(text) or SCIKIT_LEARN.search(text), f"{type(error).__name__}: {text}")
        return "refused"
    return "fitted"


def run(options: Run) -> None:
    logging.getLogger("otprop").setLevel(logging.ERROR)
    options.each(example)
