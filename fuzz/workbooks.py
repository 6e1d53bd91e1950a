"""Workbooks and JSON files made to grow: a table or a TableError in one sentence, in bounded memory and time."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import numpy as np
import openpyxl

from harness import Run, check, check_sentence, limited_memory, no_foreign_warning
from otprop.files import LabelStudioTable, TableError, read_table

MORE_MEMORY = 3 << 30  # bytes beside those that the process has when the examples begin
SHEET, STYLES, STRINGS = "xl/worksheets/sheet1.xml", "xl/styles.xml", "xl/sharedStrings.xml"
PLACES = (
    "A1",
    "B3",
    "A9",
    "XFD4",
    "XFE4",
    "ZZZ4",
    "AAAA1",
    "A1048576",
    "A1048577",
    "A99999999999",
    "",
    "1",
    "A0",
    "$A$4",
)
ROWS = ("1", "4", "1048576", "1048577", "99999999999", "-1", "0", "1.5", "1e9", "", "x", "4.0")
RANGES = ("A1:B2", "A1:XFD1048576", "B2:A1", "A1:A9999999", "A:A", "1:1", "A1:", ":", "A1:ZZZ9", "A5:XFD50")
KINDS = ("n", "s", "str", "b", "e", "d", "inlineStr", "x", "")
VALUES = ("1", "0.5", "-1e400", "99999999999", "text", "", "2024-01-01", "#N/A", "nan")
JSON_VALUES: tuple[Any, ...] = (1, -0.5, 10**30, None, True, "x", "", [], [1, 2], {}, {"a": 1}, 1e308, "\ud800", "1,5")
Rng = np.random.Generator


def pick(rng: Rng, options: Any) -> Any:
    return options[rng.integers(len(options))]


def how_many(rng: Rng) -> int:
    return int(pick(rng, (0, 1, 1, 2, 5, 30, 300, 3000, 40_000)))


def sound_parts() -> dict[str, str]:
    book = openpyxl.Workbook()
    for row in (["x", "kind", "when"], [1, "a", "2024-01-01"], [2.5, "b", None], [3, None, "2024-03-01"]):
        book.active.append(row)
    out = io.BytesIO()
    book.save(out)
    with zipfile.ZipFile(io.BytesIO(out.getvalue())) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def cell(rng: Rng) -> str:
    place = f' r="{pick(rng, PLACES)}"' if rng.random() < 0.7 else ""
    return f'<c{place} t="{pick(rng, KINDS)}" s="{rng.integers(3)}"><v>{pick(rng, VALUES)}</v></c>'


def rows(rng: Rng) -> str:
    number = f' r="{pick(rng, ROWS)}"' if rng.random() < 0.6 else ""
    return f"<row{number}>{''.join(cell(rng) for _ in range(rng.integers(4)))}</row>" * how_many(rng)


def workbook(rng: Rng) -> bytes:
    """A workbook with more in some of its parts, and sometimes with changed bytes."""
    parts: dict[str, Any] = sound_parts()
    for _ in range(rng.choice([1, 1, 2, 4])):
        way = rng.integers(7)
        if way < 2:
            parts[SHEET] = parts[SHEET].replace("</sheetData>", rows(rng) + "</sheetData>")
        elif way == 2:
            name = str(pick(rng, ("mergeCell", "hyperlink", "table", "comment")))
            more = f'<{name}s>{f"""<{name} ref="{pick(rng, RANGES)}"/>""" * how_many(rng)}</{name}s>'
            parts[SHEET] = parts[SHEET].replace("<pageMargins", more + "<pageMargins")
        elif way == 3:
            part = str(pick(rng, ("xf", "font", "fill", "border")))
            end = "</cellXfs>" if part == "xf" else f"</{part}s>"
            parts[STYLES] = parts[STYLES].replace(end, f"<{part}/>" * how_many(rng) + end)
        elif way == 4:
            more = "<si><t>a</t></si>" * how_many(rng) + "</sst>"
            parts[STRINGS] = parts.get(STRINGS, "<sst></sst>").replace("</sst>", more)
        elif way == 5:
            parts[SHEET] = "<a>" * how_many(rng) + parts[SHEET]
        else:
            parts[SHEET] = '<!DOCTYPE a [<!ENTITY b "bbbbbbbbbb">]>' + parts[SHEET]
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            data = bytearray(text.encode())
            if rng.random() < 0.05:
                data[rng.integers(len(data))] = int(rng.integers(256))
            archive.writestr(name, bytes(data))
    return out.getvalue()


def json_file(rng: Rng) -> bytes:
    """Objects with few or many keys, shared or not, as a list or as lines, sometimes with changed bytes."""
    n_rows, n_keys, shared = how_many(rng), how_many(rng), bool(rng.random() < 0.5)
    n_keys = min(n_keys, max(1, 60_000 // max(1, n_rows)))
    records = [
        {f"k{number if shared else f'{row}_{number}'}": pick(rng, JSON_VALUES) for number in range(n_keys)}
        for row in range(n_rows)
    ]
    if rng.random() < 0.1:
        records.append(json.loads("[" * 500 + "]" * 500))
    lines = [json.dumps(record) for record in records]
    data = bytearray(("\n".join(lines) if rng.random() < 0.5 else f"[{','.join(lines)}]").encode())
    if data and rng.random() < 0.1:
        data[rng.integers(len(data))] = int(rng.integers(256))
    return bytes(data)


def odd(rng: Rng, usual: Any) -> Any:
    """A usual value, or now and then another."""
    return (
        pick(rng, (*JSON_VALUES, "two\nlines", "kind", [[]], {"email": 3}, {"id": 7}))
        if rng.random() < 0.001
        else usual
    )


def annotation(rng: Rng) -> dict[str, Any]:
    field = pick(rng, ("kind", "kind", "kind", "mood", f"field {rng.integers(5000)}"))
    choice = {"from_name": odd(rng, field), "to_name": odd(rng, "text"), "type": odd(rng, "choices")}
    choice["value"] = odd(rng, {"choices": odd(rng, [odd(rng, pick(rng, ("a", "b", "c")))])})
    results = [odd(rng, choice) for _ in range(pick(rng, (0, 1, 1, 1, 2)))]
    person = pick(rng, (1, 2, {"id": 3, "email": "c@example.org"}, f"p{rng.integers(5000)}"))
    return {"completed_by": odd(rng, person), "result": odd(rng, results), "ground_truth": odd(rng, rng.random() < 0.1)}


def tasks_file(rng: Rng) -> bytes:
    """An export of Label Studio in which some values are something else."""
    tasks = []
    for number in range(min(how_many(rng), 3000)):
        data = {pick(rng, ("text", "n", "kind", "data.kind")): pick(rng, JSON_VALUES) for _ in range(rng.integers(3))}
        people = [odd(rng, annotation(rng)) for _ in range(rng.integers(4))]
        task = {"id": odd(rng, number), "data": odd(rng, data), "annotations": odd(rng, people)}
        tasks.append({key: value for key, value in task.items() if rng.random() < 0.999})
    return json.dumps(tasks).encode()


MAKERS = {"workbook": workbook, "JSON": json_file, "tasks": tasks_file}


def example(rng: Rng) -> str:
    """Read a file and write it again with a column more, or with predictions."""
    kind = str(rng.choice(list(MAKERS), p=[0.45, 0.3, 0.25]))
    data = MAKERS[kind](rng)
    with no_foreign_warning():
        try:
            table = read_table(io.BytesIO(data))
            if isinstance(table, LabelStudioTable):
                out = io.BytesIO()
                table.write_predictions(out, next(iter(table.annotators)), ["a"] * table.n_rows, [0.5] * table.n_rows)
                check(read_table(io.BytesIO(out.getvalue())).names == table.names, "predictions change the columns")
                return f"{kind} read"
            check(table.frame().shape == (table.n_rows, len(table.names)), "the frame has another shape")
            out = io.BytesIO()
            table.write(out, {"a new one": ["x"] * table.n_rows})
            check(read_table(io.BytesIO(out.getvalue())).n_rows == table.n_rows, "rows were lost")
        except TableError as error:
            check_sentence(str(error))
            return f"{kind} refused"
    return f"{kind} read"


def run(options: Run) -> None:
    with limited_memory(MORE_MEMORY):
        options.each(example)
