"""What a person takes away: the table as `otprop label` writes it, the page, the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from otprop._label_result import LabelResult
from otprop.files import write_arrow
from otprop.labelling.corrections import DIGEST, LABEL, RANDOM, REASON, ROW
from otprop.labelling.outcome import RowLabels
from otprop.labelling.output_columns import OutputColumns, free_prefix
from otprop.studio.propagator import Labels, Propagator, class_ids, class_values
from otprop.studio.source import Source
from otprop.table.target import Target

SPREADSHEET = "spreadsheet"  # CSV in which no cell starts a formula, as with `otprop label --excel-safe`
FORMATS = {
    **{"csv": "labelled.csv", SPREADSHEET: "spreadsheet.csv", "parquet": "labelled.parquet"},
    **{"report": "report.html", "model": "model"},
}
MADE_HERE = "labels"  # the format that needs no propagation
CHOSEN = "chosen"  # the reason of a row that was not drawn


def export(propagator: Propagator, labels: Labels, what: str, folder: Path) -> str:
    """Write a file into the folder; its name."""
    name = _name(propagator.source, FORMATS[what])
    path = folder / name
    if propagator.fitted is None:
        _write_labels(propagator, labels, what, path)
        return name
    result = _result(propagator)
    if what == "report":
        result.report(path, force=True)
    elif what == "model":
        result.save(path, force=True)
    else:
        result.write(path, force=True, excel_safe=what == SPREADSHEET)
    return name


def _result(propagator: Propagator) -> LabelResult:
    """The last run as `otprop.label` returns it."""
    assert propagator.fitted is not None
    job, outcome, _, _ = propagator.fitted
    call = f"otprop studio {Path(propagator.source.path).name} --target {job.request.target}"
    return LabelResult(replace(job, output=_columns(propagator), call=call), outcome)


def _columns(propagator: Propagator) -> OutputColumns:
    """The columns that are added, under names that the table does not have."""
    names, target = propagator.base.table.names, propagator.base.request.target
    taken = any(name.startswith(f"{target}_") for name in names)
    return OutputColumns(prefix=free_prefix(names, target) if taken else None)


def export_made_here(source: Source, target: Target, labels: Labels, digest: str, folder: Path) -> str:
    """Write the labels made here, as `otprop label --corrections` reads them; the name of the file.

    Needs no propagation, so that labels can be exported even if it fails.
    """
    if source.sample is not None:
        raise ValueError("the rows are a sample, whose numbers otprop label does not know: export the model instead.")
    rows = np.flatnonzero(labels.state >= 0)
    if not len(rows):
        raise ValueError("no row was labelled here yet.")
    codes = class_ids(target, labels)
    names = [labels.classes[number] for number in np.unique(codes[codes >= 0])]
    values = dict(zip(names, class_values(names, dict(zip(target.classes, target.values, strict=True))), strict=True))
    texts = [str(values[labels.classes[number]]) for number in labels.state[rows]]
    name = _name(source, "labels.csv")
    write_made_here(rows.tolist(), texts, labels.drawn[rows].tolist(), digest, folder / name)
    return name


def write_made_here(
    rows: Sequence[int], labels: Sequence[str], drawn: Sequence[bool], digest: str, path: Path, *, force: bool = True
) -> None:
    """Write labels as `otprop label --corrections` reads them."""
    import pyarrow as pa  # optional, and slow to import

    columns = {
        ROW: [row + 1 for row in rows],
        LABEL: list(labels),
        REASON: [RANDOM if one else CHOSEN for one in drawn],
        DIGEST: [digest] * len(rows),
    }
    write_arrow(pa.table(columns), path, force=force)


def _name(source: Source, ending: str) -> str:
    return f"{Path(source.path).name.split('.')[0]}.{ending}"


def _write_labels(propagator: Propagator, labels: Labels, what: str, path: Path) -> None:
    """The table where nothing could be propagated: the labels there are."""
    if what not in ("csv", SPREADSHEET, "parquet"):
        raise ValueError("labels of two classes are needed first: there is no propagation to write yet.")
    job, _ = propagator.job(labels)
    found = RowLabels(codes=job.target.codes, given=job.target.given, corrected=job.corrected)
    columns, _ = replace(job, output=_columns(propagator)).added(found)
    job.table.write(path, columns, force=True, excel_safe=what == SPREADSHEET)
