"""Damaged files of every format: each is read or refused in one line. Run by hand: python tests/files/fuzz.py 60 0."""

from __future__ import annotations

import gzip
import io
import json
import random
import sys
import time
import traceback
import warnings
from collections import Counter

import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

from otprop.files import FORMATS, TableError, read_table

CSV = b'a,b,"c d"\n1,"x ""q""",2024-01-01\n2,,2024-02-01\n'


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
            assert "\n" not in str(error)  # noqa: PT017


def main(seconds: float, seed: int) -> int:
    """Print the counts and the failures; return the number of failures."""
    warnings.simplefilter("error")
    rng, files, end = random.Random(seed), whole_files(), time.monotonic() + seconds
    counts: Counter[str] = Counter()
    for data in files:
        use(data)
    while time.monotonic() < end:
        data = damaged(rng.choice(files), rng)
        try:
            use(data)
            counts["read"] += 1
        except TableError as error:
            counts["refused" if "\n" not in str(error) else "refused in several lines"] += 1
        except Exception as error:
            traceback.print_exception(error)
            counts["failed"] += 1
    sys.stdout.write(f"{dict(counts)}\n")
    return counts["failed"] + counts["refused in several lines"]


if __name__ == "__main__":
    sys.exit(min(main(float(sys.argv[1]), int(sys.argv[2])), 1))
