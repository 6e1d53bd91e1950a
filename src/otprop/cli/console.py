"""What the commands print: messages for a person, and summaries for scripts (`--json`) as dicts that JSON can hold."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from otprop._errors import install_command
from otprop.cli._command import flag, hint_text
from otprop.cli._streams import printable
from otprop.labelling.next_rows import best_classes, label_name
from otprop.labelling.outcome import counted, error_text
from otprop.loop.label_issues import LOOKS_WRONG
from otprop.propagation.calibration import Coverage
from otprop.report.page import format_threshold

try:  # rich, which only the commands need; `import otprop` works without it
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text
except ImportError:
    raise ImportError(f"this command needs rich: {install_command('files')}") from None

if TYPE_CHECKING:
    from otprop._votes import Voter
    from otprop.cli._options import OutputPaths
    from otprop.dask._folder import FolderResult
    from otprop.labelling.job import Job
    from otprop.labelling.model import SavedModel
    from otprop.labelling.outcome import Outcome
    from otprop.loop.labels_needed import LabelsNeeded
    from otprop.loop.suggestions import Suggestion
    from otprop.propagation.error import ErrorEstimate

MAX_CLASSES = 12  # lines of the table; the rest are summed up
MAX_SKIPPED = 6
MAX_ISSUES = 20
MAX_WEAK_CLASSES = 2  # named of a voter


class Messages:
    """Messages for a person, on standard error."""

    def __init__(self, quiet: bool) -> None:
        width = None if sys.stderr.isatty() else 110
        self._console = Console(stderr=True, quiet=quiet, highlight=False, width=width, soft_wrap=True)

    def notes(self, notes: Sequence[str]) -> None:
        """What the user should know."""
        for note in notes:
            self._line(f"note: {hint_text(note)}")

    def plan(self, job: Job, paths: OutputPaths) -> None:
        """What would be done."""
        target = job.target
        n_given = int(target.given.sum())
        self._line(
            f"{job.table.origin}: {counted(job.table.n_rows, 'row')}, {n_given} labelled with "
            f"{counted(len(target.classes), 'class', 'classes')}, "
            f"{job.table.n_rows - n_given} to label by {job.request.method}."
        )
        self._columns(job)
        for what, path in (("the table", paths.table), ("the page", paths.report), ("the model", paths.model)):
            if path is not None:
                self._line(f"would write {what} to {'standard output' if path == '-' else path}.")

    def outcome(self, job: Job, outcome: Outcome, paths: OutputPaths, check_command: Sequence[str]) -> None:
        """What was done; `check_command` lists the labels that look wrong."""
        given, found = outcome.given, outcome.codes >= 0
        n_new, n_left = int((found & ~given).sum()), int((~found).sum())
        self._columns(job)
        n_corrected = 0 if outcome.corrected is None else int(outcome.corrected.sum())
        text = f"{counted(int(given.sum()), 'label')} given"
        text += f" ({n_corrected} by corrections)" if n_corrected else ""
        text += f", {counted(n_new, 'row')} labelled"
        text += f" in {outcome.n_rounds} rounds" if outcome.n_rounds > 1 else ""
        text += f", {n_left} left unlabelled" if n_left else ""
        self._line(f"{text}, {outcome.seconds:.1f} s.")
        self._console.print(_classes(outcome))
        for voter in outcome.voters:
            self._line(_voter_line(voter, outcome.classes))
        if outcome.expected_error is not None:
            self._line(_expectation(outcome, outcome.expected_error))
        if outcome.expected_cost is not None and outcome.objective != "accuracy":
            self._line(_cost(outcome, outcome.expected_cost))
        if outcome.half_error_coverage is not None and not n_left and not outcome.shifted:
            self._line(_offer(outcome.half_error_coverage))
        if outcome.wrong_looking:
            n_wrong = len(outcome.wrong_looking)
            self._line(f"{counted(n_wrong, 'given label')} may be wrong: {shlex.join(check_command)}")
        for what, path in (("the model", paths.model), ("the page", paths.report), ("the table", paths.table)):
            if path is not None and path != "-":
                self._line(f"written: {path} ({what})")

    def predicted(self, model: SavedModel, codes: np.ndarray, paths: OutputPaths) -> None:
        """Print the predictions of a saved model."""
        counts = np.bincount(codes, minlength=len(model.classes))
        self._line(f"{counted(len(codes), 'row')}: {_counts(counts, model.classes)}")
        if paths.table != "-":
            self._line(f"written: {paths.table} (the table)")

    def folder(self, result: FolderResult, output: str, others: Sequence[str]) -> None:
        """What was done to the files of a folder; `others` are more files that were written."""
        tally, landmarks = result.tally, result.summary.get("landmarks")
        text = f"{counted(result.n_files, 'file')}"
        text += f" ({result.n_before} done before)" if result.n_before else ""
        text += f", {counted(tally.n_rows, 'row')}: {counted(sum(tally.given), 'label')} given, "
        text += f"{sum(tally.labeled)} labelled" + (f", {tally.abstained} left unlabelled" if tally.abstained else "")
        text += f", by {landmarks} landmarks" if landmarks else ""
        self._line(f"{text}, {result.seconds:.1f} s.")
        self._line(_counts(np.array(tally.given) + np.array(tally.labeled), result.classes))
        if result.expected_error is not None:
            text = error_text(result.expected_error, result.error_range)
            self._line(_expected_error(text, result.summary["n_held_out"], result.error))
        written = [f"{output} (the tables)", f"{result.state.folder} (the state of the run)", *others]
        self._line(f"written: {', '.join(written)}")

    def suggestions(
        self, job: Job, suggestions: Sequence[Suggestion], output: str | None, next_command: Sequence[str]
    ) -> None:
        """The rows to label next, why, and the command that takes them once they are filled in."""
        fitted = bool(suggestions) and bool(best_classes(job, suggestions[0].row))
        table = _table("reason", *(["most probable classes"] if fitted else []))
        for one in suggestions:
            classes = ", ".join(f"{name} {share:.2f}" for name, share in best_classes(job, one.row))
            table.add_row(str(one.row + 1), one.reason, *([Text(printable(classes))] if fitted else []))
        self._line(f"{counted(len(suggestions), 'row')} to label, counted from 1 without the header:")
        self._console.print(table)
        if output is not None and output != "-":
            self._line(f"written: {output}")
            self._line(f"Fill in the column {label_name(job)!r}, then: {shlex.join(next_command)}")

    def labels_needed(self, goal: float, needed: LabelsNeeded, n_left: int) -> None:
        """How many more labels to an expected error; `n_left` rows have none."""
        range_ = f"likely {needed.low} to {needed.high}"
        if needed.value == n_left and needed.low > 0:  # no estimate, but all that there are
            self._line(
                f"An expected error of {goal:g} takes at least {counted(needed.low, 'more label')}, and "
                f"perhaps all {counted(n_left, 'row')} left: a closer estimate is not possible yet."
            )
            return
        if not needed.is_known:
            self._line(
                f"How many more labels an expected error of {goal:g} takes cannot be estimated yet ({range_}): one fit "
                "cannot show how fast the error falls. Label some rows, a part of them drawn at random, and ask again."
            )
            return
        if needed.value == 0:
            unsure = f", as far as can be said ({range_} more labels)" if needed.high else ""
            self._line(f"An expected error of {goal:g} is reached already{unsure}.")
            return
        self._line(f"About {counted(needed.value, 'more label')} to an expected error of {goal:g} ({range_}).")

    def issues(self, outcome: Outcome, output: str | None) -> None:
        """The given labels that look wrong."""
        issues, n_given = outcome.label_issues, int(outcome.given.sum())
        n_wrong = len(outcome.wrong_looking)
        text = f"{counted(n_given, 'label')} given, {outcome.n_judged} of them judged by the others"
        if not issues:
            self._line(f"{text}; none is contradicted.")
        else:
            those = f"{len(issues)} {'is' if len(issues) == 1 else 'are'} contradicted"
            looks = f"{n_wrong or 'none'} of these with a probability of {LOOKS_WRONG:.0%} or more of being wrong"
            self._line(f"{text}; {those}, {looks}. The most doubtful first:")
            table = _table("given", "suggested", numbers=["wrong with probability"])
            for issue in issues[:MAX_ISSUES]:
                names = [Text(printable(str(name))) for name in (issue.given, issue.suggested)]
                table.add_row(str(issue.row + 1), *names, f"{issue.probability:.3f}")
            self._console.print(table)
            if len(issues) > MAX_ISSUES:
                self._line(f"and {len(issues) - MAX_ISSUES} more")
        for voter in outcome.voters:
            self._line(_voter_line(voter, outcome.classes))
        if output is not None and output != "-":
            self._line(f"written: {output}")

    def _columns(self, job: Job) -> None:
        used = [use for use in job.columns if not use.skipped]
        roles: dict[str, int] = {}
        for use in used:
            roles[use.role] = roles.get(use.role, 0) + 1
        kinds = ", ".join(f"{count} {role}" for role, count in roles.items())
        width = sum(use.width for use in used)
        self._line(f"{counted(len(used), 'column')} used ({kinds}), {counted(width, 'feature')}.")
        reasons: dict[str, list[str]] = {}
        for use in job.columns:
            if use.skipped:
                reasons.setdefault(use.why, []).append(use.name)
        for why, names in reasons.items():
            more = f" and {len(names) - MAX_SKIPPED} more" if len(names) > MAX_SKIPPED else ""
            self._line(f"skipped: {', '.join(names[:MAX_SKIPPED])}{more} ({why})")

    def _line(self, text: str) -> None:
        self._console.print(Text(printable(text)))


def _table(*texts: str, numbers: Sequence[str] = (), by_row: bool = True) -> RichTable:
    """An empty table with columns of texts, then of numbers, behind one of row numbers if `by_row`."""
    table = RichTable(box=None, padding=(0, 2, 0, 0), show_edge=False)
    if by_row:
        table.add_column("row", justify="right")
    for text in texts:
        table.add_column(Text(printable(text)), overflow="fold")
    for number in numbers:
        table.add_column(number, justify="right")
    return table


def _counts(counts: np.ndarray, classes: Sequence[str]) -> str:
    """How many rows each class has, the largest first, as the end of a sentence."""
    order = np.argsort(-counts, kind="stable")[:MAX_CLASSES]
    more = f" and {len(counts) - MAX_CLASSES} more classes" if len(counts) > MAX_CLASSES else ""
    return ", ".join(f"{counts[code]} {classes[code]}" for code in order) + f"{more}."


def _classes(outcome: Outcome) -> RichTable:
    heads = ["given", "labelled", "total", "share"] + (["confidence"] if outcome.confidence is not None else [])
    heads += ["precision", "recall"] if outcome.class_errors else []
    table = _table(outcome.target, numbers=heads, by_row=False)
    new = ~outcome.given & (outcome.codes >= 0)
    order = np.argsort(-np.bincount(outcome.codes[outcome.codes >= 0], minlength=len(outcome.classes)), kind="stable")
    errors = {one.label: one for one in outcome.class_errors}
    shown = [outcome.classes[code] for code in order[:MAX_CLASSES]]
    groups = [(Text(printable(outcome.classes[code])), outcome.codes == code) for code in order[:MAX_CLASSES]]
    if len(order) > MAX_CLASSES:
        rest = np.isin(outcome.codes, order[MAX_CLASSES:])
        groups.append((Text(f"{len(order) - MAX_CLASSES} more classes"), rest))
    if (outcome.codes < 0).any():
        groups.append((Text("left unlabelled"), outcome.codes < 0))
    for place, (name, rows) in enumerate(groups):
        cells = [str(int(count)) for count in ((rows & outcome.given).sum(), (rows & new).sum(), rows.sum())]
        cells.append(f"{rows.mean():.1%}")
        if outcome.confidence is not None:
            unsure = rows & ~outcome.given
            cells.append(f"{outcome.confidence[unsure].mean():.3f}" if unsure.any() else "")
        one = errors.get(shown[place]) if place < len(shown) else None
        if one is not None:
            cells += [_rate(one.precision, one.precision_range), _rate(one.recall, one.recall_range)]
        table.add_row(name, *cells)
    return table


def _voter_line(voter: Voter, classes: Sequence[str]) -> str:
    if voter.n_judged == 0:
        return f"{voter.name}: {counted(voter.n_votes, 'vote')}, none on a labelled row: it cannot be judged."
    text = f"{voter.name} agrees with your labels in {voter.accuracy:.0%} ({voter.low:.0%} to {voter.high:.0%})"
    text += f" of {counted(voter.n_judged, 'labelled row')}, and has {counted(voter.n_votes, 'vote')}"
    if voter.high < 1.0 / len(classes):
        text += "; that is worse than guessing: are its classes swapped? If not, drop it"
    weak = [(one, name) for name, one in voter.by_class.items() if one.high < voter.accuracy]
    for one, name in sorted(weak, key=lambda pair: pair[0].accuracy)[:MAX_WEAK_CLASSES]:
        text += f"; of {printable(name)} it finds {one.accuracy:.0%} ({one.low:.0%} to {one.high:.0%})"
    return f"{text}."


def _rate(expected: float, interval: tuple[float, float]) -> str:
    """A share in per cent with its 90 % interval; empty where there is none."""
    low, high = interval
    return "" if np.isnan(expected) else f"{expected:.0%} ({100 * low:.0f}-{100 * high:.0f})"


def _expectation(outcome: Outcome, expected: float) -> str:
    if not outcome.given.any():
        return (
            f"Expected error of the new labels: {expected:.1%} (likely 0% to 100%), by the votes alone: it cannot be "
            "checked without labels of rows drawn at random (otprop suggest --random-share 1)."
        )
    if outcome.n_held_out == 0:
        why = "no label was drawn at random" if outcome.n_judged else "no class has two labels"
        return f"Expected error of the new labels: unknown, as {why} to hold one out."
    text = error_text(expected, outcome.error_range)
    why = ""
    if outcome.seems_sorted:
        why = f"a rough estimate: the rows seem to be sorted by {outcome.target!r}"
    elif outcome.shifted:
        why = "a rough estimate: the labelled rows seem to differ from the others"
    return _expected_error(text, outcome.n_held_out, outcome.error, why)


def _expected_error(text: str, n_held_out: int, error: ErrorEstimate | None, why: str = "") -> str:
    """The line on an expected error; `why` says what makes it a rough estimate."""
    counts_unseen = error is None or error.evidence is None or error.evidence.unseen > 0
    condition = "" if counts_unseen else ", if every class has a label"
    why = why or f"estimated from {counted(n_held_out, 'held-out label')}"
    return f"Expected error of the new labels{condition}: {text}, {why}."


def _cost(outcome: Outcome, expected: float) -> str:
    if outcome.objective == "balanced":
        return f"Expected macro-F1 (mean F1 of the classes): {1.0 - expected:.3f}; errors of rare classes count more."
    return f"Expected mean cost of the new labels: {expected:.3g}, where an error without a given cost counts 1."


def _offer(offer: Coverage) -> str:
    return (
        f"{flag('abstain_below', format_threshold(offer.confidence))} would label {offer.share:.0%} of the rows "
        f"at an expected error of {error_text(offer.expected_error, (offer.low, offer.high))}."
    )


def voter_summary(voter: Voter) -> dict[str, Any]:
    """How often a voter is right."""
    found: dict[str, Any] = {
        "name": voter.name,
        "accuracy": or_none(voter.accuracy),
        "low": voter.low,
        "high": voter.high,
        "judged": voter.n_judged,
        "votes": voter.n_votes,
    }
    if voter.by_class:
        found["classes"] = {name: voter_summary(one) for name, one in voter.by_class.items()}
    return found


def or_none(value: float) -> float | None:
    """A number as JSON has it: None for NaN."""
    return None if np.isnan(value) else value


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
