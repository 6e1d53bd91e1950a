"""Damaged files, odd files and corrections, which the commands use or refuse in one line."""

from __future__ import annotations

import contextlib
import csv
import datetime as dt
import decimal
import gzip
import io
import json
import random
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

from harness import Run, check, check_sentence, no_foreign_warning
from otprop.cli import main as otprop
from otprop.files import FORMATS, TableError, read_table

CSV = b'a,b,"c d"\n1,"x ""q""",2024-01-01\n2,,2024-02-01\n'
ODD_TEXTS = ("", " ", "a", "A", "ü", "x,y", 'q"q', "two\nlines", "=1+1", "\u202eabc", "\x1b[31m", "nan", "1,5", "-")
ODD_NAMES = ("", " ", "x", "id", "a b", 'q"', "two\nlines", "=1", "\u202e", "😀", "1", "kind_label", "n" * 300, "ä")
METHODS = ("otp", "otp-paper")
ENDINGS = ("csv", "tsv", "json", "jsonl", "parquet", "feather", "xlsx", "npz", "csv.gz")
Rng = np.random.Generator


# Damaged files


def whole_files() -> list[bytes]:
    """A file of each format."""
    table = pa.table(
        {
            "a": [1, 2, 3, None],
            "s": ["x", "yy", None, "zzz"],
            "d": pa.array(["p", "q", "p", None]).dictionary_encode(),
            "l": [[1.0], [2.0, 3.0], None, []],
            "t": pa.array([0, 1, 2, None], pa.timestamp("us")),
            "b": [True, False, None, True],
        }
    )
    book = openpyxl.Workbook()
    for row in (["a", "b"], [1, "x"], [2, 0.5]):
        book.active.append(row)
    streams = [io.BytesIO() for _ in range(8)]
    pq.write_table(table, streams[0])
    pq.write_table(table, streams[1], compression="none", use_dictionary=False)
    for stream, compression in zip(streams[2:5], ("uncompressed", "lz4", "zstd"), strict=True):
        pyarrow.feather.write_feather(table, stream, compression=compression)
    np.savez(streams[5], X=np.eye(4), y=np.array(["a", "", "b", "c"]))
    np.savez_compressed(streams[6], X=np.eye(4), y=np.array([b"a", b"", b"b", b"c"]))
    book.save(streams[7])
    rows = [{"a": 1, "b": "x"}, {"a": 2.5, "c": [1, 2]}]
    texts = [CSV, gzip.compress(CSV), json.dumps(rows).encode(), "\n".join(map(json.dumps, rows)).encode()]
    return [stream.getvalue() for stream in streams] + texts


def damaged(data: bytes, rng: random.Random) -> bytes:
    """The file with some bytes changed, removed or inserted."""
    found = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 4, 16])):
        at = rng.randrange(len(found) or 1)
        new = rng.choice([rng.randbytes(1), b"\0", b"\xff", b"\xff\xff\xff\x7f", b"\0\0\0\x80", rng.randbytes(4)])
        found[at : at + rng.choice([len(new), len(new), 0, 8])] = new
    return bytes(found)


def use(data: bytes) -> None:
    """Read everything, and write it in every format."""
    table = read_table(io.BytesIO(data))
    table.frame()
    for name in table.names:
        table.cells(name)
    table.write(io.BytesIO(), {"a new label": ["z"] * table.n_rows})
    for format in FORMATS:
        try:
            table.write(io.BytesIO(), {}, format=format)
        except TableError as error:
            check_sentence(str(error))


def damaged_example(rng: Rng, files: list[bytes]) -> str:
    chance = random.Random(int(rng.integers(2**63)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            use(damaged(chance.choice(files), chance))
        except TableError as error:
            check("\n" not in str(error), f"several lines: {error}")
            return "damaged file refused"
    return "damaged file read"


# Odd files


def make_cells(n: int, rng: Rng) -> list[Any]:
    """A column of one kind, with some missing cells and some that do not belong."""
    day = dt.date(2020, 1, 1)
    kinds: list[Any] = [
        lambda: rng.normal(size=n).tolist(),
        lambda: rng.integers(-5, 6, n).tolist(),
        lambda: (10.0 ** rng.uniform(-300, 300, n)).tolist(),
        lambda: list(range(n)),
        lambda: [ODD_TEXTS[i] for i in rng.integers(len(ODD_TEXTS), size=n)],
        lambda: ["abc"[i] * 3 for i in rng.integers(3, size=n)],
        lambda: [" ".join(ODD_TEXTS[i] for i in rng.integers(len(ODD_TEXTS), size=5)) for _ in range(n)],
        lambda: [day + dt.timedelta(days=int(i)) for i in rng.integers(-9999, 9999, n)],
        lambda: [dt.datetime(1700 + int(i), 1, 2, 3, 4, 5) for i in rng.integers(0, 600, n)],
        lambda: (rng.random(n) < 0.5).tolist(),
        lambda: [None] * n,
        lambda: [7] * n,
        lambda: [[float(x) for x in rng.normal(size=3)] for _ in range(n)],
        lambda: [decimal.Decimal(int(i)) / 100 for i in rng.integers(0, 9999, n)],
        lambda: [dt.time(int(i) % 24, int(i) % 60) for i in rng.integers(0, 1000, n)],
        lambda: [2**62 + int(i) for i in rng.integers(0, 3, n)],
    ]
    cells = list(kinds[rng.integers(len(kinds))]())
    if rng.random() < 0.3:
        cells = [None if rng.random() < 0.3 else cell for cell in cells]
    return cells


def make_table(rng: Rng) -> dict[str, list[Any]]:
    """Columns with odd names; the target is called `kind` and mostly empty."""
    n = int(rng.integers(10, 60)) if rng.random() < 0.9 else int(rng.integers(0, 10))
    columns: dict[str, list[Any]] = {}
    for _ in range(rng.integers(2, 7)):
        name = ODD_NAMES[rng.integers(len(ODD_NAMES))] if rng.random() < 0.3 else f"c{rng.integers(100)}"
        columns[name] = make_cells(n, rng)
    classes: list[Any] = [["a", "b", "c"], [1, 2, 3], [True, False], [1.5, 2.5], list(ODD_TEXTS)][rng.integers(5)]
    share = rng.choice([0.2, 0.4, 0.6, 0.9]) if rng.random() < 0.95 else rng.choice([0.0, 1.0])
    columns["kind"] = [classes[rng.integers(len(classes))] if rng.random() < share else None for _ in range(n)]
    return columns


def as_text(cell: Any) -> str:
    return "" if cell is None else json.dumps(cell) if isinstance(cell, list) else str(cell)


def write_odd(folder: Path, columns: dict[str, list[Any]], rng: Rng) -> Path:
    """Write the table in some format."""
    kind = ("csv", "csv", "tsv", "json", "jsonl", "parquet", "feather", "xlsx", "csv.gz", "npz")[rng.integers(10)]
    path = folder / f"in.{kind}"
    names, rows = list(columns), list(zip(*columns.values(), strict=True))
    if kind in ("csv", "tsv", "csv.gz"):
        out = io.StringIO()
        delimiter = "\t" if kind == "tsv" else ",;|"[rng.integers(3)]
        end = ("\n", "\r\n")[rng.integers(2)]
        quoting = (csv.QUOTE_MINIMAL, csv.QUOTE_ALL)[rng.integers(2)]
        csv.writer(out, delimiter=delimiter, lineterminator=end, quoting=quoting).writerows(
            [names, *([as_text(cell) for cell in row] for row in rows)]
        )
        encoding = ("utf-8", "utf-8", "utf-8-sig", "utf-16", "cp1252")[rng.integers(5)]
        data = out.getvalue().encode(encoding, errors="replace")
        path.write_bytes(gzip.compress(data) if kind.endswith("gz") else data)
    elif kind in ("json", "jsonl"):
        objects = [dict(zip(names, row, strict=True)) for row in rows]
        lines = [json.dumps(row, default=str, ensure_ascii=bool(rng.integers(2))) for row in objects]
        path.write_text("[" + ",".join(lines) + "]" if kind == "json" else "\n".join(lines), encoding="utf-8")
    elif kind in ("parquet", "feather"):
        arrays = [pa.array(cells, from_pandas=False) for cells in columns.values()]
        table = pa.table(arrays, names=names)
        pq.write_table(table, path) if kind == "parquet" else pyarrow.feather.write_feather(table, path)
    elif kind == "xlsx":
        book = openpyxl.Workbook()
        for row in [names, *rows]:
            book.active.append([_for_excel(cell) for cell in row])
        book.save(path)
    else:
        target = np.array([as_text(cell) for cell in columns["kind"]])
        np.savez(path, X=rng.normal(size=(len(target), 3)), kind=target)
    return path


def _for_excel(cell: Any) -> Any:
    if isinstance(cell, list):
        return json.dumps(cell)
    return openpyxl.cell.cell.ILLEGAL_CHARACTERS_RE.sub("", cell)[:30000] if isinstance(cell, str) else cell


def make_options(folder: Path, rng: Rng) -> list[str]:
    chosen: list[list[str]] = [
        ["--fill"], ["--probabilities"], ["--json"], ["--quiet"], ["--merge-labels"], ["--numeric-classes"],
        ["--excel-safe"], ["--dry-run"], ["--abstain-below", str(rng.choice([0, 0.5, 0.9, 1]))],
        ["--unlabeled", "-"], ["--prefix", "p_"], ["--class-prior", "uniform"],
        ["--method", METHODS[rng.integers(len(METHODS))]],
        ["--report", str(folder / "page.html")], ["--save", str(folder / "saved.model")],
        ["-o", str(folder / f"out.{ENDINGS[rng.integers(len(ENDINGS))]}")],
        ["--embedding", "c"], ["--metric", "cosine"], ["--set", "n_neighbors=3"],
    ]  # fmt: skip
    return [word for words in chosen if rng.random() < 0.15 for word in words]


def call(arguments: list[str]) -> tuple[int, str]:
    """The exit status of a command and what it wrote on standard error."""
    out, error = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error), no_foreign_warning():
        status = otprop(arguments)
    return status, error.getvalue()


def check_call(arguments: list[str], folder: Path, inputs: list[Path]) -> int:
    """Run a command; fail on a wrong status, an error that is no single line, or a changed input."""
    before = [path.read_bytes() for path in inputs]
    status, error = call(arguments)
    check([path.read_bytes() for path in inputs] == before, "an input was changed")
    check(status in (0, 1, 2), f"status {status}: {error}")
    check(not any(path.name.endswith(".part") for path in folder.iterdir()), "a temporary file is left")
    check(status or "--quiet" not in arguments or not error, f"not quiet: {error}")
    if status:
        check_sentence(error)
        check(error.startswith("otprop "), f"an error of another kind: {error!r}")
    return status


def odd_example(rng: Rng) -> str:
    """Label an odd file, and new rows by the model."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        columns = make_table(rng)
        path = write_odd(folder, columns, rng)
        options = make_options(folder, rng)
        status = check_call(["label", str(path), "--target", "kind", *options], folder, [path])
        outputs = [found for found in folder.iterdir() if found != path]
        if status or "--dry-run" in options:
            check(not outputs, f"written all the same: {outputs}")
            return "odd file refused" if status else "odd file planned"
        tables = [found for found in outputs if found.suffix not in (".html", ".model")]
        check(len(tables) == 1, f"{len(tables)} tables written")
        written, source = read_table(tables[0]), read_table(path)
        check(written.n_rows == source.n_rows, f"{written.n_rows} rows written, not {source.n_rows}")
        model = folder / "saved.model"
        if model.exists():
            arguments = ["predict", str(model), str(path), "-o", str(folder / "new.csv")]
            check(check_call(arguments, folder, [path, model]) == 0, "its own rows cannot be predicted")
            return "odd file labelled, and predicted by its model"
    return "odd file labelled"


# Corrections


def write_corrections(suggested: Path, folder: Path, rng: Rng) -> Path:
    """Suggested rows with some labels filled in, or rows and labels of any kind."""
    words: list[Any] = ["a", "b", "c", 1, 2.5, True, None, *ODD_TEXTS]
    if rng.random() < 0.6:
        found = read_table(suggested)
        path = folder / f"filled.{ENDINGS[rng.integers(len(ENDINGS))]}"
        labels = [str(words[rng.integers(4)]) if rng.random() < 0.7 else None for _ in range(found.n_rows)]
        try:
            found.write(path, {}, ("kind", labels))
        except TableError as error:
            check_sentence(str(error))
        else:
            return path
    path = folder / "made.json"
    numbers: list[Any] = [1, 2, 3, 7, 9, 0, -1, 1.5, "4", "x", None, 10**30, 61]
    likely = int(rng.choice([3, 5, len(numbers)]))
    rows = [{"row": numbers[rng.integers(likely)], "label": words[rng.integers(len(words))]} for _ in range(3)]
    path.write_text(json.dumps(rows), encoding="utf-8")
    return path


def loop_example(rng: Rng) -> str:
    """Rows to label next from an odd file, labels that look wrong, and the labels that come of corrections."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = write_odd(folder, make_table(rng), rng)
        ending = ENDINGS[rng.integers(len(ENDINGS))]
        rows, issues = folder / f"rows.{ending}", folder / f"issues.{ending}"
        asked = ["-n", str(rng.integers(1, 30)), "--random-share", str(rng.choice([0, 0.2, 1])), "-o", str(rows)]
        status = check_call(["suggest", str(path), "--target", "kind", *asked], folder, [path])
        check(rows.exists() != bool(status), f"status {status}, file {rows.exists()}")
        if status:
            return "corrections: no row suggested"
        file = write_corrections(rows, folder, rng)
        more = ["--target", "kind", "--corrections", str(file)]
        status = check_call(["check", str(path), *more, "-o", str(issues)], folder, [path, file, rows])
        check(issues.exists() != bool(status), f"status {status}, file {issues.exists()}")
        out = folder / "out.csv"
        fill = ["--fill"] if rng.random() < 0.3 else []
        status = check_call(["label", str(path), *more, *fill, "-o", str(out)], folder, [path, file, rows])
        check(out.exists() != bool(status), f"status {status}, file {out.exists()}")
        return "corrections refused" if status else "corrections used"


def run(options: Run) -> None:
    files = whole_files()
    for data in files:
        use(data)
    pd.DataFrame({"a": [1]})  # imports what is imported late

    def example(rng: Rng) -> str:
        kind = rng.random()
        return damaged_example(rng, files) if kind < 0.5 else odd_example(rng) if kind < 0.8 else loop_example(rng)

    options.each(example)
