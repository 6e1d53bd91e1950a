"""Make the mixed table of the demo: 3 000 lots of apples, the variety of 40 of them known.

Nothing in it was measured; it has what real tables have: numbers on different scales, categories, a date, a boolean,
a line of free text, an identifier, a constant, gaps, and varieties that overlap. Run with
`python examples/make_orchard.py [folder]`: writes `orchard.csv` and `orchard_truth.csv`.
"""

import csv
import sys
from datetime import date, timedelta
from pathlib import Path

import numpy as np

N_ROWS, N_LABELS, GAPS = 3000, 40, 0.06
VARIETIES = ("Boskoop", "Elstar", "Jonagold")
SHARES = (0.2, 0.45, 0.35)
# weight in g, sugar in °Bx, acid in g/l, firmness in kg/cm²: early and late lots of each variety
MEANS = {
    "Boskoop": ((205, 12.1, 10.4, 7.4), (225, 13.2, 9.3, 6.6)),
    "Elstar": ((155, 13.0, 8.3, 6.6), (168, 14.1, 7.1, 5.9)),
    "Jonagold": ((212, 13.6, 6.9, 6.3), (236, 14.7, 5.9, 5.5)),
}
SPREAD = (17, 0.65, 0.75, 0.5)
COLOURS = {"Boskoop": (0.7, 0.25, 0.05), "Elstar": (0.1, 0.55, 0.35), "Jonagold": (0.1, 0.4, 0.5)}
HARVEST = {"Boskoop": 275, "Elstar": 250, "Jonagold": 268}  # day of the year
WORDS = {
    "Boskoop": ("russeted skin", "sharp, good for baking", "rough to the touch", "keeps until spring"),
    "Elstar": ("crisp and juicy", "small fruit", "aromatic", "sweet with some acid"),
    "Jonagold": ("large fruit", "honey sweet", "soft when ripe", "sold within weeks"),
}
COMMON = ("no remark", "some scab", "bruised in transport", "good lot", "picked in rain")
FARMS = ("Aalst", "Borgloon", "Diest", "Sint-Truiden", "Tongeren", "Zoutleeuw")


def make(seed: int = 0) -> tuple[list[str], list[list[str]], list[str]]:
    """Column names, rows without the variety, and the varieties."""
    random = np.random.default_rng(seed)
    farms_of = {variety: random.dirichlet(np.full(len(FARMS), 1.5)) for variety in VARIETIES}
    rows, truth = [], []
    for number in range(N_ROWS):
        variety = VARIETIES[random.choice(3, p=SHARES)]
        late = int(random.random() < 0.5)
        numbers = random.normal(MEANS[variety][late], SPREAD)
        colour = ("green", "striped", "red")[random.choice(3, p=COLOURS[variety])]
        day = HARVEST[variety] + 9 * late + random.normal(0, 6)
        said = COMMON if random.random() < 0.5 else WORDS[variety]
        remarks = sorted({said[random.integers(len(said))] for _ in range(2)})
        cells = [
            f"{numbers[0]:.0f}",
            f"{numbers[1]:.1f}",
            f"{numbers[2]:.2f}",
            f"{numbers[3]:.1f}",
            colour,
            FARMS[random.choice(len(FARMS), p=farms_of[variety])],
            (date(2024, 1, 1) + timedelta(days=int(day))).isoformat(),
            ("no", "yes")[int(random.random() < 0.3)],
            "; ".join(remarks),
        ]
        cells = ["" if random.random() < GAPS else cell for cell in cells]
        rows.append([f"L{number + 1:05d}", "BE", *cells])
        truth.append(variety)
    names = ["lot", "country", "weight", "sugar", "acid", "firmness", "colour", "farm", "picked", "organic", "remarks"]
    return names, rows, truth


def main(folder: Path) -> None:
    """Write both files."""
    names, rows, truth = make()
    known = set(np.random.default_rng(0).choice(len(rows), N_LABELS, replace=False).tolist())
    with (folder / "orchard.csv").open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow([*names, "variety"])
        for number, row in enumerate(rows):
            out.writerow([*row, truth[number] if number in known else ""])
    with (folder / "orchard_truth.csv").open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["lot", "variety"])
        out.writerows(zip((row[0] for row in rows), truth, strict=True))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
