"""`OTP()` beside its peers in the results of the paper's experiment, a section of docs/reproduction.md."""

from __future__ import annotations

import numpy as np

from otprop_paper.benchmark.methods import METHODS
from otprop_paper.benchmark.tables import TIE
from paper_questions import OTPS, Answer
from paper_results import CELLS, SCORES, TUNINGS, Results, listed, markdown, mean, title

PEERS = tuple(name for name in METHODS if name not in OTPS)


def peers_beside_otp(results: Results) -> Answer:
    """Every peer beside `OTP()`, tuned honestly and by the truth."""
    parts = [
        "## The peers beside `OTP()`",
        "`OTP()` has nothing to tune, so its figures are the same in both tables. Means over the cells that both have, "
        "and in how many of them (NMI and ARI) `OTP()` is ahead, level or behind.",
    ]
    short = []
    for tuning in TUNINGS:
        how = "by hidden labels" if tuning == "honest" else "by the truth"
        rows = [peer_row(results, tuning, method) for method in (*PEERS, "otp-paper", "released")]
        head = ["method", "NMI", "`OTP()`", "ARI", "`OTP()`", "ahead", "level", "behind"]
        said = best_peer(results, tuning)
        parts += [f"### Peers tuned {how}", markdown(head, rows), said]
        short.append(f"Peers tuned {how}: {said}")
    return " ".join(short), "\n\n".join(parts)


def peer_row(results: Results, tuning: str, method: str) -> list[str]:
    pairs = {score: common(results, tuning, score, method) for score in SCORES}
    ours, theirs = (np.concatenate([pairs[score][side] for score in SCORES]) for side in (0, 1))
    if not len(ours):
        return [title(method), *("not run" for _ in range(7))]
    counts = [np.sum(ours > theirs + TIE), np.sum(np.abs(ours - theirs) <= TIE), np.sum(ours < theirs - TIE)]
    scores = [f"{mean(pairs[score][side]):.4f}" for score in SCORES for side in (1, 0)]
    return [title(method), *scores, *(str(int(count)) for count in counts)]


def common(results: Results, tuning: str, score: str, method: str) -> tuple[np.ndarray, np.ndarray]:
    """`OTP()` and another method in the cells that both have."""
    both = np.array([[results.get(tuning, score, *at, name) for name in ("otp", method)] for at in CELLS])
    both = both[~np.isnan(both).any(axis=1)]
    return both[:, 0], both[:, 1]


def best_peer(results: Results, tuning: str) -> str:
    """Which peers are ahead of `OTP()` in the mean, and how often it reaches the best of them."""
    said, reached, cells = [], 0, 0
    for score in SCORES:
        pairs = {method: common(results, tuning, score, method) for method in PEERS}
        ahead = [m for m, (ours, theirs) in pairs.items() if len(ours) and mean(theirs) > mean(ours)]
        names = [f"{title(m)} ({mean(pairs[m][1]):.4f} to {mean(pairs[m][0]):.4f})" for m in ahead]
        who = f"{listed(names)} {'has' if len(names) == 1 else 'have'}" if names else "no peer has"
        said.append(f"{who} a higher mean {score.upper()} than `OTP()`")
        for at in CELLS:
            ours = results.get(tuning, score, *at, "otp")
            theirs = [results.get(tuning, score, *at, method) for method in PEERS]
            if not np.isnan(ours) and not np.isnan(theirs).all():
                cells += 1
                reached += bool(ours >= np.nanmax(theirs) - TIE)
    if not cells:
        return "no cell has both `OTP()` and a peer."
    half = "at least half" if 2 * reached >= cells else "less than half"
    said.append(f"it is at or above the best of all peers in {reached} of {cells} cells, {half}")
    return f"{'; '.join(said)}."
