"""Label Studio's JSON: read as a table with votes, and written back with predictions."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

import otprop
from otprop.cli import main
from otprop.files import LabelStudioTable, TableError, read_table

QUICK = {"settings": {"evidence": ["linear"]}}


def choice(label, field="kind"):
    labels = label if isinstance(label, list) else [label]
    return {"id": "x1", "from_name": field, "to_name": "text", "type": "choices", "value": {"choices": labels}}


def annotation(who, *results, **more):
    return {"id": 5, "completed_by": who, "result": list(results), "was_cancelled": False, **more}


def task(number, *annotations, **data):
    return {
        "id": number,
        "data": data or {"words": number},
        "annotations": list(annotations),
        "meta": {"é": [1.0, 1e-7]},
    }


def written(folder, tasks, **how):
    path = folder / "tasks.json"
    path.write_text(json.dumps(tasks, **how), encoding="utf-8")
    return path


def mails(n_rows=60, n_true=20):
    """Tasks of two kinds: three people annotate all, one is right; the ground truth of some is known."""
    rng = np.random.default_rng(0)
    kind = rng.choice(["invoice", "offer"], size=n_rows)
    noise = [rng.choice(["invoice", "offer"], size=n_rows) for _ in range(2)]
    tasks = []
    for i in range(n_rows):
        people = [annotation({"id": 9, "email": "anna@example.org"}, choice(kind[i]))]
        people += [annotation(who, choice(said[i])) for who, said in enumerate(noise, start=1)]
        people += [annotation(3, choice(kind[i]), ground_truth=True)] if i < n_true else []
        words = float(rng.normal() + (kind[i] == "offer"))
        tasks.append(task(100 + i, *people, words=words, kind=f"mail {i % 3}"))
    return tasks, kind


def test_annotators_are_voters_and_ground_truth_is_the_labels(tmp_path):
    tasks, kind = mails()
    result = otprop.label(written(tmp_path, tasks), **QUICK)
    assert (result.job.target.name, int(result.outcome.given.sum())) == ("kind", 20)
    accuracy = {voter.name: voter.accuracy for voter in result.outcome.voters}
    assert list(accuracy) == ["anna@example.org", "annotator 1", "annotator 2"]  # the ground truth is not a vote
    assert accuracy["anna@example.org"] == 1.0 > accuracy["annotator 1"]
    assert (result.table["kind_label"] == kind).mean() > 0.9
    assert {use.name for use in result.job.columns if not use.skipped} <= {"words", "data.kind"}
    alone = otprop.label(tmp_path / "tasks.json", votes=["annotator 1"], **QUICK)
    assert [voter.name for voter in alone.outcome.voters] == ["annotator 1"]
    assert {use.name for use in alone.job.columns if not use.skipped} <= {"words", "data.kind"}


@pytest.mark.parametrize("how", [{}, {"indent": 2}, {"separators": (",", ":")}, {"ensure_ascii": False}])
def test_only_predictions_are_added(tmp_path, how):
    tasks, _ = mails(n_rows=40)
    tasks[3]["predictions"] = [{"id": 4, "model_version": "old", "score": 0.25, "result": []}]
    tasks[4]["predictions"], tasks[5]["predictions"] = [], None
    path, out = written(tmp_path, tasks, **how), tmp_path / "out.json"
    result = otprop.label(path, "kind", **QUICK)
    result.to_label_studio(out, model_version="first")
    after = json.loads(out.read_text(encoding="utf-8"))
    for row, (old, new) in enumerate(zip(tasks, after, strict=True)):
        *kept, made = new.pop("predictions")
        assert kept == (old.pop("predictions", None) or [])
        assert made["model_version"] == "first"
        assert made["score"] == pytest.approx(result.outcome.confidence[row], abs=1e-6)
        assert [{"id": "x1", **one} for one in made["result"]] == [choice(result.table["kind_label"][row])]
        assert list(new.items()) == list(old.items())
    first = path.read_text(encoding="utf-8")
    assert out.read_text(encoding="utf-8").startswith(first[: first.index('"annotations"')])
    with pytest.raises(TableError, match="exists"):
        result.to_label_studio(out)
    with pytest.raises(TableError, match="is an input"):
        result.to_label_studio(path, force=True)
    again = read_table(out)  # what was written is read as before
    assert again.names == read_table(path).names


def test_rows_without_a_label_get_no_prediction(tmp_path):
    tasks, _ = mails(n_rows=40)
    result = otprop.label(written(tmp_path, tasks), abstain_below=0.9999, votes=["annotator 1"], **QUICK)
    result.to_label_studio(tmp_path / "out.json")
    after = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    got = np.array(["predictions" in one for one in after])
    assert not got.all()
    assert (got == (result.outcome.codes >= 0)).all()


def test_choices_of_people_who_share_no_task_are_labels(tmp_path):
    split = [task(i, annotation(i % 2, choice("ab"[i % 2]))) for i in range(4)] + [task(4)]
    table = read_table(written(tmp_path, split))
    assert isinstance(table, LabelStudioTable)
    assert table.cells("kind").tolist() == ["a", "b", "a", "b", None]
    assert table.annotators == {"kind": []}
    shared = [*split, task(5, annotation(0, choice("a")), annotation(1, choice("b")))]
    table = read_table(written(tmp_path, shared))
    assert table.annotators == {"kind": ["annotator 0", "annotator 1"]}
    assert table.cells("kind").tolist() == [None] * 6
    assert table.cells("annotator 1").tolist() == [None, "b", None, "b", None, "b"]


def test_cancelled_and_empty_annotations_are_silent(tmp_path):
    tasks = [
        task(1, annotation(1, choice("a")), annotation(2, choice("b"), was_cancelled=True)),
        task(2, annotation(1), annotation({"id": 2}, choice("b"))),
    ]
    assert read_table(written(tmp_path, tasks)).cells("kind").tolist() == ["a", "b"]


def test_one_of_several_fields_is_named_by_the_target(tmp_path):
    tasks, _ = mails(n_rows=40)
    for i, one in enumerate(tasks):
        one["annotations"][0]["result"] += [choice("yes", "spam"), choice(["x", "y"] if i == 7 else "x", "topics")]
    path = written(tmp_path, tasks)
    with pytest.raises(otprop.OtpropError, match=r"must name .*: one of 'kind', 'spam'"):
        otprop.label(path)
    with pytest.raises(otprop.OtpropError, match=r"'topics' has several choices .* task 107 \('x', 'y'\)"):
        otprop.label(path, "topics")
    result = otprop.label(path, "kind", **QUICK)
    assert result.outcome.voters[0].name == "anna@example.org: kind"
    assert {use.name for use in result.job.columns if not use.skipped} <= {"words", "data.kind"}


def test_commands_know_the_target_of_tasks_with_one_field(tmp_path, capsys):
    path = written(tmp_path, mails(n_rows=40)[0])
    assert main(["label", str(path), "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["target"] == "kind"
    (tmp_path / "plain.json").write_text('[{"words": 1, "kind": "offer"}]')
    assert main(["label", str(tmp_path / "plain.json")]) == 2
    assert "--target must name the column with the labels" in capsys.readouterr().err


def test_a_file_without_a_target_is_read_once_and_as_the_options_say(tmp_path, capsys, monkeypatch):
    from otprop.table import opening

    calls, read = [], opening.read_table
    monkeypatch.setattr(opening, "read_table", lambda *a, **k: (calls.append(k), read(*a, **k))[1])
    path = tmp_path / "tasks.json.gz"
    path.write_bytes(gzip.compress(json.dumps(mails(n_rows=40)[0]).encode()))
    assert main(["suggest", str(path), "--max-bytes", "1000"]) == 2
    assert "--max-bytes" in capsys.readouterr().err
    assert [call["max_bytes"] for call in calls] == [1000]


def test_tasks_from_standard_input_need_no_target_either(tmp_path):
    path = written(tmp_path, mails(n_rows=40)[0])
    command = [sys.executable, "-m", "otprop", "check", "-", "--format", "json", "--json"]
    with path.open("rb") as file:
        done = subprocess.run(command, stdin=file, capture_output=True, check=False)
    assert json.loads(done.stdout)["target"] == "kind", done.stderr


def test_the_command_writes_predictions_or_a_table(tmp_path, capsys):
    tasks, _ = mails(n_rows=40)
    path = written(tmp_path, tasks)
    for name in ("out.json", "out.csv"):
        command = ["label", str(path), "--target", "kind", "--out", str(tmp_path / name)]
        assert main([*command, "--set", "evidence=['linear']"]) == 0, capsys.readouterr().err
    after = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert all(len(one["predictions"]) == 1 for one in after)
    assert "kind_label" in read_table(tmp_path / "out.csv").names


GOOD = task(1, annotation(1, choice("a")))
BOX = {"from_name": "box", "to_name": "image", "type": "rectanglelabels", "value": {}}


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ([GOOD, {"id": 2, "annotations": []}], "task 2 has no object 'data'"),
        ([GOOD, {"data": {}, "annotations": {}}], "task number 2 has 'annotations' that are not a list"),
        ([GOOD, task(2, "anna")], "task 2 has an annotation without a list 'result'"),
        ([task(1), task(2)], "2 tasks of Label Studio, and none has an annotation; annotate some"),
        ([task(1, annotation(1, BOX))], "annotations of type 'rectanglelabels', and none of type 'choices'"),
        ([task(1, annotation(None, choice("a")))], "task 1 has an annotation whose 'completed_by' is null"),
        ([task(1, annotation({"name": "a"}, choice("a")))], """'completed_by' is {"name": "a"}; it must be"""),
        ([task(1, annotation(True, choice("a")))], "'completed_by' is true"),
        ([task(1, annotation(1, choice(["a", "b"])))], "'kind' has several choices in one annotation of task 1"),
        (
            [task(1, annotation(1, choice("a")), annotation(1, choice("b")))],
            "task 1 has two choices of 'kind' by annot",
        ),
        ([task(1, annotation(1, choice([3])))], "task 1 has choices without"),
        ([task("a\nb", annotation(1, choice([3])))], "task number 1 has choices without"),
        ([task("x" * 1000, annotation(1, choice([3])))], "task number 1 has choices without"),
        ([task([[]], annotation(1, choice([3])))], "task number 1 has choices without"),
        ([task(1, annotation(1, choice("a", "\ud800")))], r"has the key '\ud800', which is not valid Unicode"),
        (
            [task(1, annotation("\ud800", choice("a")), annotation("b", choice("a")))],
            r"has the key '\ud800', which is not valid Unicode",
        ),
        ([], "is empty: it has no rows"),
        ({"tasks": [GOOD]}, "must name the column with the labels"),
    ],
)
def test_bad_exports_are_refused_in_one_sentence(tmp_path, tasks, message):
    path = written(tmp_path, tasks)
    with pytest.raises(otprop.OtpropError) as caught:
        otprop.label(path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_field_per_task_is_refused_before_it_becomes_columns(tmp_path, monkeypatch):
    from otprop.files import _columnar

    monkeypatch.setattr(_columnar, "from_values", None)
    tasks = [task(number, annotation(1, choice("a", f"field {number}"))) for number in range(4000)]
    tracemalloc.start()
    try:
        with pytest.raises(TableError, match="4,000 rows and 4,001 columns, but only"):
            read_table(written(tmp_path, tasks))
        assert tracemalloc.get_traced_memory()[1] < 50e6  # 4 000 x 4 000 cells would take 640 MB
    finally:
        tracemalloc.stop()


def test_many_fields_of_one_task_are_read_in_one_pass(tmp_path):
    class Counted(str):
        """Counts how often fields are compared."""

        n = 0
        __hash__ = str.__hash__

        def __eq__(self, other):
            Counted.n += 1
            return str.__eq__(self, other)

    fields = [Counted(f"field {number}") for number in range(300)]
    path = written(tmp_path, [task(1)])
    table = object.__new__(LabelStudioTable)
    table.unread, table.origin = {}, str(path)
    table._rows([task(1, annotation(1, *(choice("a", field) for field in fields)))] * 2)
    assert Counted.n < 10 * len(fields)


def test_predictions_are_for_tasks_only(tmp_path):
    tasks, _ = mails(n_rows=40)
    with pytest.raises(TableError, match=r"columns cannot be added to the tasks"):
        read_table(written(tmp_path, tasks)).write(tmp_path / "out.json", {"a": list(range(40))})
    path = tmp_path / "plain.json"
    path.write_text(json.dumps([{"w": i % 2, "kind": "ab"[i % 2] if i < 10 else None} for i in range(20)]))
    with pytest.raises(otprop.OtpropError, match="is for tasks of Label Studio"):
        otprop.label(path, "kind", **QUICK).to_label_studio(tmp_path / "out.json")
