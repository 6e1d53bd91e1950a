"""What a command did, for scripts: what `--json` prints, as dicts that JSON can hold."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from otprop.cli._flags import hint_text

if TYPE_CHECKING:
    from otprop._votes import Voter
    from otprop.cli._output_paths import OutputPaths
    from otprop.labelling.job import Job
    from otprop.labelling.outcome import Outcome
    from otprop.propagation.calibration import Coverage
    from otprop.propagation.class_errors import ClassErrors


def planned(job: Job, paths: OutputPaths) -> dict[str, Any]:
    """What would be done; the features of the job are fitted."""
    target = job.target
    counts = np.bincount(target.codes[target.given], minlength=len(target.classes))
    return {
        **_setting(job, paths),
        "dry_run": True,
        "rows": job.table.n_rows,
        "given": int(target.given.sum()),
        "to_label": int((~target.given).sum()),
        "classes": {name: {"given": int(count)} for name, count in zip(target.classes, counts, strict=True)},
        "columns": _columns(job),
        "notes": [hint_text(note) for note in job.notes],
    }


def _setting(job: Job, paths: OutputPaths) -> dict[str, Any]:
    from otprop import __version__

    return {
        "version": __version__,
        "input": job.table.origin,
        "output": str(paths.table),
        "report": None if paths.report is None else os.fspath(paths.report),
        "model": None if paths.model is None else os.fspath(paths.model),
        "target": job.request.target,
        "method": job.request.method,
        "parameters": job.parameters,
    }


def _columns(job: Job) -> list[dict[str, Any]]:
    return [{"name": use.name, "role": use.role, "why": use.why, "features": use.width} for use in job.columns]


def summary(job: Job, outcome: Outcome, paths: OutputPaths) -> dict[str, Any]:
    """What was done to a file."""
    new = ~outcome.given & (outcome.codes >= 0)
    errors = {one.label: one for one in outcome.class_errors}
    counts = {
        name: {
            "given": int((outcome.given & (outcome.codes == code)).sum()),
            "labelled": int((new & (outcome.codes == code)).sum()),
            **(_class_errors(errors[name]) if name in errors else {}),
        }
        for code, name in enumerate(outcome.classes)
    }
    return {
        **_setting(job, paths),
        "rows": job.table.n_rows,
        "given": int(outcome.given.sum()),
        "corrected": 0 if outcome.corrected is None else int(outcome.corrected.sum()),
        "labelled": int(new.sum()),
        "abstained": int((outcome.codes < 0).sum()),
        "rounds": outcome.n_rounds,
        "seconds": round(outcome.seconds, 3),
        "expected_error": outcome.expected_error,
        "expected_error_range": outcome.error_range,
        "expected_cost": outcome.expected_cost,
        "held_out_labels": outcome.n_held_out,
        "classes": counts,
        "columns": _columns(job),
        "coverage": coverage_list(outcome.coverage),
        "label_issues": issue_list(outcome),
        "sources": [
            {"name": name, "weight": weight, "accuracy": None if np.isnan(accuracy) else accuracy}
            for name, weight, accuracy in outcome.sources
        ],
        "voters": [voter_summary(voter) for voter in outcome.voters],
        "notes": [hint_text(note) for note in job.notes],
    }


def voter_summary(voter: Voter) -> dict[str, Any]:
    """How often a voter is right."""
    found: dict[str, Any] = {
        "name": voter.name,
        "accuracy": None if np.isnan(voter.accuracy) else voter.accuracy,
        "low": voter.low,
        "high": voter.high,
        "judged": voter.n_judged,
        "votes": voter.n_votes,
    }
    if voter.by_class:
        found["classes"] = {name: voter_summary(one) for name, one in voter.by_class.items()}
    return found


def _class_errors(one: ClassErrors) -> dict[str, Any]:
    """Precision and recall of a class: None where there is none."""
    found = {name: getattr(one, name) for name in ("precision", "recall")}
    return {
        "expected": one.n_expected,
        **{name: None if np.isnan(value) else value for name, value in found.items()},
        "precision_range": one.precision_range,
        "recall_range": one.recall_range,
    }


def coverage_list(coverage: Iterable[Coverage]) -> list[dict[str, Any]]:
    """The expected error at each share of the rows."""
    return [
        {
            "share": line.share,
            "rows": line.n_rows,
            "abstain_below": line.confidence,
            "expected_error": line.expected_error,
            "low": line.low,
            "high": line.high,
        }
        for line in coverage
    ]


def issue_list(outcome: Outcome) -> list[dict[str, Any]]:
    """The contradicted labels, rows counted from 1."""
    return [
        {
            "row": issue.row + 1,
            "given": str(issue.given),
            "suggested": str(issue.suggested),
            "probability": round(issue.probability, 6),
        }
        for issue in outcome.label_issues
    ]
