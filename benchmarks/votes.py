"""Votes of several voters beside a few labels: `make votes`.

    python benchmarks/votes.py               run what votes.csv lacks, then print the summary
    python benchmarks/votes.py --summary     print the summary of what there is
    python benchmarks/votes.py --again       measure `votes=` again in the rows that there are, and nothing else

Of each table 400 rows are used; labels are drawn at random, one of each class at least. The voters are simulated. To
save time, a table has every other kind of voters, the next table the others, each with one number of voters: each
kind is measured on three of the six tables, once with 1, once with 3 and once with 10 voters, and with all numbers of
labels. `--full` has all kinds and numbers on all tables (six times as long).
Accuracy on the rows without a label, of: the labels alone, the majority of the votes, Dawid and Skene's model of the
votes, the votes as columns beside the others, and `OTP.fit(votes=...)`. `majority` and `dawid_skene` get the most
frequent class for a row without votes. Whether the announced range of the error holds is in `holds`. The voters:

- random: errs at random in 10, 25 or 40 % of the rows
- systematic: a forest trained on other rows, of whose labels 10 % are wrong
- class: errs in 10 % of the rows of half of the classes, and in 50 % of the others
- silent: on 50 or 90 % of the rows; else random, 25 %
- copies: one voter, random, 25 %, once or three times
- noise: votes without looking
- adversary: wrong in 80 % of the rows

Beside these, with three voters or more, MACE and GLAD of crowd-kit, Snorkel's label model and CROWDLAB of cleanlab,
where they are installed; see votes_peers.py. The tables kept apart (`--apart`, votes_apart.csv) had no part in choosing
how votes are counted. heart was one of them until it was looked at, and has too few rows for 200 labels; it is
not used any more.
"""

from __future__ import annotations

import warnings
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier

import active
from common import RESULTS, argument_parser, mean, run_missing, write_csv
from otprop import OTP
from otprop._votes import dawid_skene
from votes_peers import PEERS, peer_labels

TABLES = ("crx", "oj", "shelve", "titanic")
APART = ("dermatology", "ionosphere")
LABELS = (20, 0, 50, 200)
KINDS = ("random 10", "random 25", "random 40", "systematic", "class", "silent 50", "silent 90", "copies", "noise")
KINDS += ("adversary",)
VOTERS = (1, 3, 10)
METHODS = ("alone", "majority", "dawid_skene", *PEERS, "columns", "otprop")
N_ROWS = 400
KEY = ("table", "labels", "seed", "kind", "voters")


def draw_votes(kind: str, n_voters: int, X: np.ndarray, y: np.ndarray, others: Any, seed: int) -> np.ndarray:
    """Votes of simulated voters, -1 where one is silent."""
    rng = np.random.default_rng([seed, KINDS.index(kind), n_voters])
    voters = [_voter(kind, X, y, others, rng) for _ in range(1 if kind == "copies" else n_voters)]
    return np.column_stack(voters * (n_voters if kind == "copies" else 1))


def _voter(kind: str, X: np.ndarray, y: np.ndarray, others: Any, rng: np.random.Generator) -> np.ndarray:
    n_classes, name, _, number = y.max() + 1, *kind.partition(" ")
    if name == "noise":
        return rng.integers(n_classes, size=len(y))
    if name == "systematic":
        rows, labels = others
        some = rng.permutation(len(labels))[: max(len(labels) // 2, 40)]
        taught = _err(labels[some], np.full(len(some), 0.1), n_classes, rng)
        return RandomForestClassifier(50, random_state=int(rng.integers(1000))).fit(rows[some], taught).predict(X)
    rate = np.full(len(y), int(number) / 100 if name == "random" else 0.8 if name == "adversary" else 0.25)
    if name == "class":
        rate = np.where(rng.permutation(n_classes)[y] < n_classes / 2, 0.1, 0.5)
    votes = _err(y, rate, n_classes, rng)
    if name == "silent":
        votes[rng.random(len(y)) < int(number) / 100] = -1
    return votes


def _err(y: np.ndarray, rate: np.ndarray, n_classes: int, rng: np.random.Generator) -> np.ndarray:
    """Other classes in a share of the rows."""
    wrong = (y + rng.integers(1, n_classes, size=len(y))) % n_classes
    return np.where(rng.random(len(y)) < rate, wrong, y)


def read(table: str, seed: int) -> tuple[np.ndarray, np.ndarray, Any]:
    """Rows, class numbers, and other rows of the same table; a fifth where the table is small."""
    active.MOST_ROWS = 1600
    X, y = active.read(table, seed)
    n_rows = min(N_ROWS, len(y) * 4 // 5)
    return X[:n_rows], y[:n_rows], (X[n_rows:], y[n_rows:])


def draw_labels(y: np.ndarray, n_labels: int, seed: int) -> np.ndarray:
    """`y` with -1 for all but so many rows drawn at random, one of each class at least."""
    rng = np.random.default_rng([seed, n_labels])
    first = [rng.choice(np.flatnonzero(y == code)) for code in np.unique(y)]
    rest = np.setdiff1d(rng.permutation(len(y)), first, assume_unique=True)
    rng.shuffle(rest)
    shown = np.full(len(y), -1)
    rows = [*first, *rest][: max(n_labels, len(first))] if n_labels else []
    shown[rows] = y[rows]
    return shown


def majority(votes: np.ndarray, n_classes: int, rng: np.random.Generator) -> np.ndarray:
    """The class with most votes, ties at random; the class most voted for where all are silent."""
    counts = np.stack([(votes == code).sum(axis=1) for code in range(n_classes)], axis=1)
    found = (counts + rng.random(counts.shape) / 2).argmax(axis=1)
    return np.where(counts.any(axis=1), found, counts.sum(axis=0).argmax())


def settings(table: str, *, full: bool) -> list[tuple[str, int]]:
    """The kinds of voters and their numbers on a table."""
    if full:
        return [(kind, n_voters) for kind in KINDS for n_voters in VOTERS]
    place = (*TABLES, *APART).index(table)
    return [(KINDS[kind], VOTERS[(kind // 2 + place) % len(VOTERS)]) for kind in range(place % 2, len(KINDS), 2)]


@lru_cache(maxsize=len(KINDS) * len(VOTERS))
def peers_of(table: str, seed: int, kind: str, n_voters: int) -> dict[str, np.ndarray]:
    """The labels by other packages, which do not depend on the number of labels."""
    X, y, others = read(table, seed)
    return peer_labels(draw_votes(kind, n_voters, X, y, others, seed), y.max() + 1, X)


def run(table: str, n_labels: int, seed: int, *, full: bool = False) -> list[dict[str, Any]]:
    """The voters of a table with one draw of the labels."""
    X, y, others = read(table, seed)
    shown = draw_labels(y, n_labels, seed)
    left, n_classes = shown < 0, y.max() + 1
    rows = []

    def accuracy(X: np.ndarray) -> float:
        return float((_fit(X, shown).transduction_ == y)[left].mean())

    alone = accuracy(X) if n_labels else float("nan")
    for kind, n_voters in settings(table, full=full):
        votes = draw_votes(kind, n_voters, X, y, others, seed)
        guess = majority(votes, n_classes, np.random.default_rng(seed))
        skene = dawid_skene(votes, n_classes).argmax(axis=1)
        found = dict.fromkeys(METHODS, float("nan"))
        found |= {"alone": alone, "majority": (guess == y)[left].mean(), "dawid_skene": (skene == y)[left].mean()}
        peers = peers_of(table, seed, kind, n_voters)
        found |= {name: (labels == y)[left].mean() for name, labels in peers.items()}
        binary = np.column_stack([votes[:, [one]] == np.arange(n_classes) for one in range(n_voters)])
        found["columns"] = accuracy(np.column_stack([X, binary])) if n_labels else float("nan")
        row = {"table": table, "labels": n_labels, "seed": seed, "kind": kind, "voters": n_voters}
        row |= {name: round(float(found[name]), 4) for name in METHODS}
        rows.append(row | by_otprop(X, y, shown, votes))
    return rows


def _fit(X: np.ndarray, shown: np.ndarray, votes: np.ndarray | None = None) -> OTP:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = None if votes is None else np.where(votes < 0, np.nan, votes)
        return OTP(n_jobs=1).fit(X, shown, votes=given)


def by_otprop(X: np.ndarray, y: np.ndarray, shown: np.ndarray, votes: np.ndarray) -> dict[str, Any]:
    """The accuracy of `votes=`, and whether the announced range of the error holds."""
    model, left = _fit(X, shown, votes), shown < 0
    accuracy, (low, high) = float((model.transduction_ == y)[left].mean()), model.error_range_
    return {"otprop": round(accuracy, 4), "holds": int(low - 0.005 <= 1 - accuracy <= high + 0.005)}


def again(row: dict[str, str]) -> dict[str, Any]:
    """A row with the figures of `votes=` measured again."""
    n_labels, seed, n_voters = (int(row[name]) for name in ("labels", "seed", "voters"))
    X, y, others = read(row["table"], seed)
    votes = draw_votes(row["kind"], n_voters, X, y, others, seed)
    return row | by_otprop(X, y, draw_labels(y, n_labels, seed), votes)


def summary(rows: list[dict[str, str]]) -> str:
    """Mean accuracies by number of labels, kind and number of voters."""
    lines = ["| labels | voters | kind | " + " | ".join(METHODS) + " | holds |", "|" + "---|" * (len(METHODS) + 4)]
    for labels in sorted(LABELS):
        for kind in (*KINDS, "all"):
            for voters in VOTERS:
                some = [row for row in rows if row["labels"] == str(labels) and row["voters"] == str(voters)]
                some = [row for row in some if kind in ("all", row["kind"])]
                if some:
                    figures = " | ".join(f"{mean(some, name):.3f}" for name in METHODS)
                    lines.append(f"| {labels} | {voters} | {kind} | {figures} | {mean(some, 'holds'):.2f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--summary", action="store_true")
    parser.add_argument("--again", action="store_true", help="measure `votes=` again in the rows that there are")
    parser.add_argument("--apart", action="store_true", help="the tables kept apart, in votes_apart.csv")
    parser.add_argument("--full", action="store_true", help="each kind of voters with each number of voters")
    parser.add_argument("--tables", nargs="+", choices=(*TABLES, *APART))
    parser.add_argument("--labels", nargs="+", type=int, default=LABELS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    tables = options.tables or (APART if options.apart else TABLES)
    cells = [(table, n, seed) for seed in options.seeds for table in tables for n in options.labels]
    cells = [] if options.summary or options.again else cells
    name = "votes_apart.csv" if options.apart else "votes.csv"
    rows = run_missing(name, partial(run, full=options.full), cells, options.jobs, key=KEY[:3], folder=options.out)
    if options.again:
        rows = [again(row) for row in rows]
        write_csv(name, rows, options.out)
    print(summary(rows))


if __name__ == "__main__":
    main()
