"""Real votes without features: the 45 patients of Dawid and Skene (1979), `python benchmarks/votes_patients.py`.

Five anaesthetists judged from a form how fit each of 45 patients was for a general anaesthetic, in four classes; the
first of them did so three times. A. P. Dawid and A. M. Skene, "Maximum likelihood estimation of observer error-rates
using the EM algorithm", Applied Statistics 28 (1979), 20-28, Table 1.

The true classes are not known. What the first anaesthetist said most often stands for them; the other four are the
voters. Nothing but votes is known of the patients, so that `votes=` has no columns to use: this checks the model of the
votes, without labels, and with 20 labels drawn at random (mean of ten draws, accuracy on the other 25 patients).
"""

from __future__ import annotations

import numpy as np

from common import argument_parser, write_csv
from otprop._votes import Votes, dawid_skene
from otprop.evidence.held_out import make_folds
from otprop.evidence.votes import VotesSource
from votes import draw_labels, majority
from votes_peers import peer_labels

# for each patient the three judgements of the first observer, then those of the others
JUDGEMENTS = """
1111111 3334334 1122122 2223121 2223222 2223322 1222111 3333433 2222223 2322223 4444444 2223343 1111111 2223212 1211111
1112111 1111111 1111111 2222221 2221322 2222222 2222221 2223222 2212222 1111111 1111111 2322222 1111111 1111111 1121121
1111111 3333233 1111111 2222222 2223232 4334343 2212232 2323233 3333432 1111111 1111111 1212111 2322222 1211111 2222222
"""
N_CLASSES, N_LABELS, N_DRAWS = 4, 20, 10


def patients() -> np.ndarray:
    """Class numbers from 0, of shape (45, 7): three times the first observer, then the four others."""
    return np.array([[int(cell) - 1 for cell in row] for row in JUDGEMENTS.split()])


def by_labels(votes: np.ndarray, shown: np.ndarray) -> np.ndarray:
    """Class numbers by otprop's model of the votes, which learns from the labels in `shown`."""
    source = VotesSource(Votes(votes, [str(voter) for voter in range(votes.shape[1])]), N_CLASSES)
    rows = source.fit(shown, np.ones(len(shown)), make_folds(shown, N_CLASSES, 0)).rows
    shares = np.bincount(shown[shown >= 0], minlength=N_CLASSES) + 1.0
    return np.asarray((rows + np.log(shares / shares.sum())).argmax(axis=1))


def main() -> None:
    argument_parser(__doc__).parse_args()
    judged = patients()
    truth, votes = majority(judged[:, :3], N_CLASSES, np.random.default_rng(0)), judged[:, 3:]
    found = {
        "majority": majority(votes, N_CLASSES, np.random.default_rng(0)),
        "dawid_skene": dawid_skene(votes, N_CLASSES).argmax(axis=1),
    }
    found |= peer_labels(votes, N_CLASSES, np.zeros((len(votes), 1)))
    found.pop("crowdlab", None)  # it is nothing without features
    draws = [draw_labels(truth, N_LABELS, seed) for seed in range(N_DRAWS)]
    learnt = [by_labels(votes, shown) for shown in draws]
    rows = []
    for name in (*found, "otprop"):
        labels = learnt if name == "otprop" else [found[name]] * N_DRAWS
        left = np.mean([(one == truth)[shown < 0].mean() for one, shown in zip(labels, draws, strict=True)])
        every = "" if name == "otprop" else f"{(found[name] == truth).mean():.3f}"
        rows.append({"method": name, "all_patients": every, "without_label": f"{left:.3f}"})
    write_csv("votes_patients.csv", rows)
    for row in rows:
        print(row)


if __name__ == "__main__":
    main()
