"""Time and memory of a folder of many small pictures, from the command to a page.

Drawn PNG files (`shapes` of pictures.py, 48 x 48 pixels) in sub-folders of 1 000; 50 of each class have a label. Each
size runs with an empty cache of vectors: first the table and its vectors alone (`read`), then
`otprop label --report` with the vectors known (`label`). A line per size goes to benchmarks/results/picture_scale.csv:
seconds and CPU seconds of both, and the largest memory of each.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import argument_parser, write_csv
from pictures import shapes

SIDE, LABELLED = 48, 50
READ = "import sys; from otprop.table.opening import open_table; print(open_table(sys.argv[1]).n_rows)"


def draw(folder: Path, n: int) -> Path:
    """Write the pictures and the file of labels; returns the latter."""
    made, names = shapes(n, SIDE)
    lines, counts = ["path,shape"], dict.fromkeys(names, 0)
    for number, (image, name) in enumerate(zip(made, names, strict=True)):
        path = folder / f"{number // 1000:03d}" / f"{number:06d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        image.save(path)
        if counts[name] < LABELLED:
            counts[name] += 1
            lines.append(f"{path.relative_to(folder)},{name}")
    labels = folder.with_suffix(".csv")
    labels.write_text("\n".join(lines) + "\n")
    return labels


def measured(command: list[str], cache: Path) -> dict[str, float]:
    """Run a command; wall and CPU seconds, and megabytes."""
    start = time.perf_counter()
    process = subprocess.Popen(command, env={**os.environ, "OTPROP_IMAGE_CACHE": str(cache)}, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{command} failed")
    cpu = usage.ru_utime + usage.ru_stime
    return {"seconds": time.perf_counter() - start, "cpu_seconds": cpu, "mb": usage.ru_maxrss / 1024}


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--pictures", type=int, nargs="+", default=[3000, 10_000, 20_000])
    rows = []
    for n in parser.parse_args().pictures:
        with tempfile.TemporaryDirectory() as place:
            folder, out = Path(place) / "pictures", Path(place) / "out.csv"
            labels, cache = draw(folder, n), Path(place) / "cache"
            read = measured([sys.executable, "-c", READ, str(folder)], cache)
            words = ["label", str(folder), "--labels", str(labels), "-o", str(out), "--report", f"{place}/page.html"]
            label = measured([sys.executable, "-m", "otprop", *words, "--quiet"], cache)
        rows.append({"pictures": n})
        for step, found in (("read", read), ("label", label)):
            rows[-1] |= {f"{step}_{name}": round(value, 1) for name, value in found.items()}
        print(rows[-1], flush=True)
    write_csv("picture_scale.csv", rows)


if __name__ == "__main__":
    main()
