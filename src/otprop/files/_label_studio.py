"""Label Studio's JSON: tasks with the annotations of people, written back with predictions."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from otprop.files._arrow import Column, as_json
from otprop.files._errors import TableError, file_error, listed
from otprop.files._formats import check_ending, refuse_url
from otprop.files._json import JsonTable
from otprop.files._table import InputFile
from otprop.files._writers import Writer, write_output

CHOICES = "choices"  # the type of result that is one class per task
MAX_ID = 60  # characters of the id of a task in a message
_BLANKS = " \t\r\n"


def is_label_studio(file: InputFile) -> bool:
    """Whether the first object of a JSON file is a task: it has an object `data` and a list `annotations`."""
    if b'"annotations"' not in file.data or b'"data"' not in file.data:
        return False
    try:
        text = file.data.decode("utf-8-sig").lstrip(_BLANKS)
        task, _ = json.JSONDecoder().raw_decode(text.removeprefix("[").lstrip(_BLANKS))
    except (ValueError, RecursionError):  # JsonTable says what is wrong
        return False
    is_task = isinstance(task, dict) and isinstance(task.get("data"), dict)
    return is_task and isinstance(task.get("annotations"), list)


class LabelStudioTable(JsonTable):
    """The tasks of an export of Label Studio: a row per task, its `data` and what was chosen as columns.

    Each field of choices is a column of labels, named as the field. Annotations marked as ground truth are labels. The
    others are votes, a column per annotator, unless no task has two annotators and none has a ground truth: then they
    are labels. `annotators` has the columns of votes of each field. A key of `data` that is called as one of these
    columns is called `data.KEY`.

    Parameters
    ----------
    file : InputFile
        The bytes of the file and their origin.
    encoding : str or None
        As in `read_table`.

    Examples
    --------
    >>> import io
    >>> from otprop.files import read_table
    >>> choice = '{"from_name": "kind", "to_name": "text", "type": "choices", "value": {"choices": ["offer"]}}'
    >>> annotations = '[{"completed_by": 1, "result": [%s]}]' % choice
    >>> table = read_table(io.BytesIO(b'[{"id": 7, "data": {"text": "hi"}, "annotations": %s}]' % annotations.encode()))
    >>> table.names, table.cells("kind").tolist()
    (['text', 'kind'], ['offer'])
    """

    def _rows(self, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The columns of each task, by name."""
        self._to_names: dict[str, str] = {}
        self._task_names = [_task_name(task, number) for number, task in enumerate(records, start=1)]
        self._others: dict[str, None] = {}  # types of results that are not read
        data = [self._data(row, task) for row, task in enumerate(records)]
        said: dict[str, list[tuple[int, str | None, str]]] = {}
        for row, task in enumerate(records):
            for field, who, label in self._said(row, task):
                said.setdefault(field, []).append((row, who, label))
        if not self._to_names:
            raise self._without_choices(records)
        if self._others:
            self._note(f"annotations of type {listed(self._others)} are not read, and kept as they are")
        found: list[dict[str, Any]] = [{} for _ in records]
        annotators = {}
        for field in self._to_names:
            if field not in self.unread:
                annotators[field] = self._add_field(field, said.get(field, []), found)
        if not annotators:
            raise file_error(self.origin, f": {next(iter(self.unread.values()))}")
        self.annotators = annotators
        self.default_target = next(iter(annotators)) if len(annotators) == 1 else None
        taken = {*annotators, *(name for names in annotators.values() for name in names)}
        names = _renamed(dict.fromkeys(key for cells in data for key in cells), taken)
        found[0] = {**dict.fromkeys(annotators), **found[0]}  # a column for each field, also where nobody chose
        return [
            {**{names[key]: value for key, value in cells.items()}, **more}
            for cells, more in zip(data, found, strict=True)
        ]

    def _data(self, row: int, task: Mapping[str, Any]) -> dict[str, Any]:
        data = task.get("data")
        if not isinstance(data, dict):
            raise self._bad(row, "has no object 'data'")
        if not isinstance(task.get("annotations", []), list):
            raise self._bad(row, "has 'annotations' that are not a list")
        return data

    def _said(self, row: int, task: Mapping[str, Any]) -> list[tuple[str, str | None, str]]:
        """For each choice in a task: the field, who chose it (None for the ground truth), and what."""
        found = []
        for annotation in task.get("annotations", []):
            if not isinstance(annotation, dict) or not isinstance(annotation.get("result", []), list):
                raise self._bad(row, "has an annotation without a list 'result'")
            if annotation.get("was_cancelled"):
                continue
            chosen: dict[str, list[str]] = {}
            for item in annotation.get("result", []):
                self._add_item(row, item, chosen)
            who = None if annotation.get("ground_truth") is True or not chosen else self._annotator(row, annotation)
            for field, labels in chosen.items():
                if len(labels) > 1:
                    self.unread.setdefault(
                        field,
                        f"{field!r} has several choices in one annotation of {self._task_names[row]} "
                        f"({listed(labels)}), and a row gets one class; keep one of them.",
                    )
                found += [(field, who, label) for label in labels[:1]]
        return found

    def _add_item(self, row: int, item: Any, chosen: dict[str, list[str]]) -> None:
        """Add the choices of one result to those of its field."""
        kind = item.get("type") if isinstance(item, dict) else None
        if kind != CHOICES:
            self._others[str(kind)] = None
            return
        value, field, to_name = item.get("value"), item.get("from_name"), item.get("to_name")
        labels = value.get(CHOICES) if isinstance(value, dict) else None
        is_list = isinstance(labels, list) and all(isinstance(label, str) for label in labels)
        if not (is_list and isinstance(field, str) and field and isinstance(to_name, str)):
            raise self._bad(row, "has choices without 'from_name', 'to_name' or a list of texts")
        self._to_names.setdefault(field, to_name)
        chosen.setdefault(field, []).extend(labels or [])

    def _annotator(self, row: int, annotation: Mapping[str, Any]) -> str:
        given = annotation.get("completed_by")
        who = (given.get("email") or given.get("id")) if isinstance(given, dict) else given
        if isinstance(who, str) and who.strip():
            return who
        if isinstance(who, int) and not isinstance(who, bool):
            return f"annotator {who}"
        problem = f"has an annotation whose 'completed_by' is {as_json(given)[:60]}"
        raise self._bad(row, problem, "it must be the number of a person, or an object with 'email' or 'id'")

    def _add_field(
        self, field: str, said: Sequence[tuple[int, str | None, str]], rows: list[dict[str, Any]]
    ) -> list[str]:
        """Put the labels and votes of a field into the rows, and return the columns of its votes."""
        people = {(row, who) for row, who, _ in said}
        alone = all(who is not None for _, who in people) and len({row for row, _ in people}) == len(people)
        columns: dict[str, None] = {}
        for row, who, label in said:
            column = field
            if who is not None and not alone:
                column = f"{who}: {field}" if len(self._to_names) > 1 else f"{who}_" if who in self._to_names else who
                columns[column] = None
            if rows[row].setdefault(column, label) != label:
                both = f"{rows[row][column]!r} and {label!r}"
                whose = "as ground truth" if who is None else f"by {who}"
                raise self._bad(row, f"has two choices of {field!r} {whose}, {both}", "keep one of them")
        return list(columns)

    def _without_choices(self, records: Sequence[Mapping[str, Any]]) -> TableError:
        if self._others:
            problem = f"has annotations of type {listed(self._others)}, and none of type {CHOICES!r}"
            return file_error(self.origin, problem, "classes of whole tasks are read only")
        problem = f"has {len(records)} tasks of Label Studio, and none has an annotation"
        return file_error(self.origin, problem, "annotate some of each class and export them again")

    def _bad(self, row: int, what: str, advice: str = "export the tasks again as JSON") -> TableError:
        return file_error(self.origin, f": {self._task_names[row]} {what}", advice)

    def _writer(self, added: dict[str, Any], fill: tuple[str, Column] | None, excel_safe: bool) -> Writer:
        advice = "name an output that ends in .csv, or write predictions with LabelResult.to_label_studio"
        raise TableError(f"columns cannot be added to the tasks of {self.origin}", advice, file=self.origin)

    def write_predictions(
        self,
        out: str | Path | BinaryIO,
        field: str,
        labels: Sequence[str | None],
        scores: Sequence[float] | None = None,
        *,
        model_version: str = "otprop",
        force: bool = False,
    ) -> None:
        """Write the tasks with a prediction added to each; all else stays byte for byte.

        Parameters
        ----------
        out : str, path or binary stream
        field : str, the field of choices that is predicted
        labels : sequence of str or None, the choice of each task; None for no prediction
        scores : sequence of float or None, of each prediction
        model_version : str, the name that Label Studio shows
        force : bool, an existing file may be replaced; the input never is
        """
        if field not in self._to_names:
            raise file_error(self.origin, f"has no field of choices {field!r}; it has {listed(self._to_names)}")
        if str(out) == "-":
            out = sys.stdout.buffer
        elif isinstance(out, (str, Path)):
            refuse_url(out)
            check_ending(out, self.path)
        texts, done = [], 0
        for row, (label, (start, stop)) in enumerate(zip(labels, self.spans, strict=True)):
            if label is not None:
                score = None if scores is None else float(scores[row])
                prediction = self._prediction(field, label, score, model_version)
                texts += [self.text[done:start], self._with_prediction(row, prediction)]
                done = stop
        texts.append(self.text[done:])

        def write(stream: BinaryIO) -> None:
            stream.write(self.encoding.bom)
            stream.write(self.encoding.encode("".join(texts).encode("utf-8")))

        write_output(out, write, force, [] if self.path is None else [self.path], mode_like=self.path)

    def _prediction(self, field: str, label: str, score: float | None, model_version: str) -> str:
        value = {"from_name": field, "to_name": self._to_names[field], "type": CHOICES, "value": {CHOICES: [label]}}
        scored = {} if score is None or score != score else {"score": score}
        return as_json({"model_version": model_version, **scored, "result": [value]})

    def _with_prediction(self, row: int, prediction: str) -> str:
        """The text of a task with one more prediction."""
        start, stop = self.spans[row]
        span = self._span_of_value(start, "predictions")
        if span is None:
            return "".join(self._with_keys(start, stop, row, {'"predictions"': f"[{prediction}]"}))
        there = self.text[span[0] : span[1]]
        inside = there[1:-1].rstrip(_BLANKS)
        if there != "null" and not there.startswith("["):
            raise self._bad(row, "has 'predictions' that are not a list")
        after = f"[{inside}, {prediction}]" if there != "null" and inside else f"[{prediction}]"
        return self.text[start : span[0]] + after + self.text[span[1] : stop]


def _task_name(task: Mapping[str, Any], number: int) -> str:
    """What messages call a task: by its id where that is one line, else by its number."""
    given = task.get("id")
    plain = isinstance(given, int) or (isinstance(given, str) and given.isprintable() and len(given) <= MAX_ID)
    return f"task {given}" if plain else f"task number {number}"


def _renamed(keys: Mapping[str, None], taken: set[str]) -> dict[str, str]:
    """A name for the column of each key of the data: the key, with `data.` before it where that is taken."""
    names = {}
    for key in keys:
        name = key
        while name in taken or (name != key and name in keys):
            name = f"data.{name}"
        names[key] = name
    return names
