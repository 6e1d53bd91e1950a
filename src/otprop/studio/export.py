"""What a person takes away: the table as `otprop label` writes it, the page, the model."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from otprop._label_result import LabelResult
from otprop.files import write_arrow
from otprop.labelling.corrections import DIGEST, LABEL, RANDOM, REASON, ROW
from otprop.labelling.output_columns import OutputColumns
from otprop.labelling.previous_run import free_prefix
from otprop.studio.propagator import Labels, Propagator

FORMATS = {
    **{"csv": "labelled.csv", "parquet": "labelled.parquet", "report": "report.html", "model": "model"},
    "labels": "labels.csv",
}
CHOSEN = "chosen"  # the reason of a row that was not drawn


def export(propagator: Propagator, labels: Labels, what: str, folder: Path) -> str:
    """Write a file into the folder; its name."""
    name = f"{Path(propagator.source.path).name.split('.')[0]}.{FORMATS[what]}"
    path = folder / name
    if what == "labels":
        _write_corrections(propagator, labels, path)
        return name
    if propagator.fitted is None:
        _write_labels(propagator, labels, what, path)
        return name
    result = _result(propagator)
    if what == "report":
        result.report(path, force=True)
    elif what == "model":
        result.save(path, force=True)
    else:
        result.write(path, force=True)
    return name


def _result(propagator: Propagator) -> LabelResult:
    """The last run as `otprop.label` returns it."""
    assert propagator.fitted is not None
    job, outcome, _, _ = propagator.fitted
    call = f"otprop studio {Path(propagator.source.path).name} --target {job.request.target}"
    return LabelResult(job, outcome, _columns(propagator), call)


def _columns(propagator: Propagator) -> OutputColumns:
    """The columns that are added, under names that the table does not have."""
    names, target = propagator.base.table.names, propagator.base.request.target
    taken = any(name.startswith(f"{target}_") for name in names)
    return OutputColumns(prefix=free_prefix(names, target) if taken else None)


def _write_corrections(propagator: Propagator, labels: Labels, path: Path) -> None:
    """The labels made here with how their rows were picked, as `otprop label --corrections` reads them."""
    import pyarrow as pa  # optional, and slow to import

    if propagator.source.sample is not None:
        raise ValueError("the rows are a sample, whose numbers otprop label does not know: export the model instead.")
    job, _ = propagator.job(labels)
    made = job.corrections.labels
    if not made:
        raise ValueError("no row was labelled here yet.")
    columns = {
        ROW: [row + 1 for row in made],
        LABEL: [str(label) for label in made.values()],
        REASON: [RANDOM if row in job.corrections.drawn else CHOSEN for row in made],
        DIGEST: [propagator.digest] * len(made),
    }
    write_arrow(pa.table(columns), path, force=True)


def _write_labels(propagator: Propagator, labels: Labels, what: str, path: Path) -> None:
    """The table where nothing could be propagated: the labels there are."""
    if what not in ("csv", "parquet"):
        raise ValueError("labels of two classes are needed first: there is no propagation to write yet.")
    job, _ = propagator.job(labels)
    names = np.array([*job.target.values, None], dtype=object)
    source = np.where(job.corrected, "corrected", np.where(job.target.given, "given", "abstained")).astype(object)
    prefix = _columns(propagator).prefix or f"{job.request.target}_"
    columns = {f"{prefix}label": names[job.target.codes], f"{prefix}source": source}
    job.table.write(path, columns, force=True)
