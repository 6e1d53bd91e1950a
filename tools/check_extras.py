"""Check that each extra alone is enough for what it is for, in a new environment outside the checkout.

    python tools/check_extras.py                 # all, some minutes; PyTorch is large
    python tools/check_extras.py images anndata  # these

Each environment gets the checkout with one extra and nothing else. A map by UMAP is part of a page, so that `umap`
comes with `files`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOGETHER = {"umap": "files,umap"}
TABLE = """
import otprop, numpy as np, pandas as pd
from otprop.cli import main
rows = pd.DataFrame({"weight": np.arange(40) % 2 * 8 + np.linspace(0, 1, 40), "kind": [*"abab", *[None] * 36]})
def check(path, *words):
    assert main(["label", path, "--target", "kind", "-o", "out.csv", "--force", "--quiet", *words]) == 0
    assert pd.read_csv("out.csv")["kind_label"].tolist() == ["a", "b"] * 20
"""
FIT = """
from otprop import OTP
import numpy as np
X, y = (np.arange(40) % 2 * 8 + np.linspace(0, 1, 40))[:, None], np.array([0, 1, 0, 1, *[-1] * 36])
model = OTP().fit(X, y)
"""
DOORS = {
    "cli": """
from otprop.cli import main
assert main(["doctor"]) == 0
""",
    "files": f"""{TABLE}
import sqlite3
for name in ("t.csv", "t.parquet", "t.feather"):
    getattr(rows, {{"csv": "to_csv", "parquet": "to_parquet", "feather": "to_feather"}}[name[2:]])(name)
    check(name, "--report", name + ".html")
with sqlite3.connect("t.db") as connection:
    rows.to_sql("rows", connection, index=False)
check("t.db::rows")
""",
    "images": f"""{TABLE}
from PIL import Image
import os
os.mkdir("photos")
for row in range(40):
    Image.new("RGB", (32, 32), ((250, 0, row), (0, 250, row))[row % 2]).save(f"photos/{{row:02d}}.png")
rows.assign(path=[f"{{row:02d}}.png" for row in range(40)])[["path", "kind"]].to_csv("labels.csv", index=False)
check("photos", "--labels", "labels.csv", "--report", "page.html")
""",
    "excel": f"""{TABLE}
rows.to_excel("t.xlsx", index=False)
check("t.xlsx")
""",
    "anndata": f"""{TABLE}
import h5py
with h5py.File("t.h5ad", "w") as file:
    obs = file.create_group("obs")
    obs.attrs["_index"], obs.attrs["column-order"] = "name", np.array(["kind"], dtype=h5py.string_dtype())
    obs["name"] = [f"cell {{row}}" for row in range(40)]
    codes = pd.Categorical(rows["kind"])
    kind = obs.create_group("kind")
    kind["codes"], kind["categories"] = codes.codes, list(codes.categories)
    file["obsm/X_pca"] = rows[["weight"]].to_numpy()
check("t.h5ad")
""",
    "plot": f"""{FIT}
from otprop.plotting import plot_rounds
plot_rounds(model, X).savefig("rounds.png")
""",
    "umap": f"""{TABLE}
rows.to_csv("t.csv")
check("t.csv", "--report", "page.html", "--map", "umap")
""",
    "deep": f"""{FIT}
from otprop.deep import NetworkClassifier
assert NetworkClassifier(n_steps=20).fit(X, y).predict(X).shape == (40,)
""",
    "dask": f"""{TABLE}
import os
os.mkdir("parts")
if __name__ == "__main__":
    rows[:20].to_parquet("parts/a.parquet")
    rows[20:].to_parquet("parts/b.parquet")
    assert main(["label", "parts", "--target", "kind", "-o", "labelled", "--jobs", "1", "--quiet"]) == 0
    assert pd.read_parquet("labelled")["kind_label"].tolist() == ["a", "b"] * 20
""",
    "studio": f"""{TABLE}
import subprocess, sys, urllib.request
rows.to_csv("t.csv")
command = [sys.executable, "-m", "otprop", "studio", "t.csv", "--target", "kind", "--no-browser"]
with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
    try:
        address = process.stdout.readline().strip()
        assert "<html" in urllib.request.urlopen(address).read().decode()
    finally:
        process.terminate()
""",
}


def main() -> None:
    """Check the extras named on the command line, or all."""
    for extra in sys.argv[1:] or DOORS:
        start = time.perf_counter()
        check_extra(extra)
        print(f"{extra}: {time.perf_counter() - start:.0f} s", flush=True)


def check_extra(extra: str) -> None:
    """Install the checkout with an extra, and go through its door."""
    if extra not in DOORS:
        raise SystemExit(f"check_extras: there is no door for {extra!r}; there are {', '.join(DOORS)}")
    with tempfile.TemporaryDirectory() as place:
        _run(place, sys.executable, "-m", "venv", "venv")
        python = str(Path(place) / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python")
        _run(place, python, "-m", "pip", "install", "--quiet", f"{ROOT}[{TOGETHER.get(extra, extra)}]")
        script = Path(place) / "door.py"
        script.write_text(DOORS[extra], encoding="utf-8")
        _run(place, python, str(script))


def _run(place: str, *command: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if subprocess.run(command, cwd=place, env={**environment, "XDG_CACHE_HOME": place}).returncode:
        raise SystemExit(f"check_extras: {' '.join(command)} failed")


if __name__ == "__main__":
    main()
