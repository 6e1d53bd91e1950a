"""The propagation of the worker, without a process."""

from __future__ import annotations

from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest

import otprop
import otprop.files
from otprop import FitCancelledError
from otprop.labelling.job import Request
from otprop.studio.export import export, export_made_here
from otprop.studio.propagator import Labels, Propagator
from otprop.studio.session_log import AS_IN_FILE, REMOVED, UNKNOWN
from otprop.studio.source import Source
from tests.studio.conftest import write_lots

pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")


def no_progress(done: float, total: float, step: str) -> None: ...


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_lots(tmp_path_factory.mktemp("propagator") / "lots.csv")


def make(path: Path, progress: Any = no_progress) -> Propagator:
    propagator = Propagator(Source(str(path), Request("kind", settings={"evidence": None})), progress)
    propagator.make_vectors()
    return propagator


def labels_of(propagator: Propagator, states: dict[int, int], revision: int = 0, drawn: tuple[int, ...] = ()) -> Labels:
    n_rows = propagator.base.table.n_rows
    state, picked = np.full(n_rows, AS_IN_FILE), np.zeros(n_rows, dtype=bool)
    for row, one in states.items():
        state[row] = one
    picked[list(drawn)] = True
    return Labels(revision, [*propagator.base.target.classes, "new"], state, picked)


def test_a_run_finds_what_otprop_label_finds_with_the_same_corrections(path: Path) -> None:
    propagator = make(path)
    propagator.find_neighbors()
    pear = propagator.base.target.classes[1]
    result = propagator.run(labels_of(propagator, {20: 1, 30: 0}))
    expected = otprop.label(path, "kind", settings={"evidence": None}, corrections={20: pear, 30: "apple"})
    assert (result.labels == expected.outcome.codes).all()
    assert (result.confidence == np.round(255 * expected.outcome.confidence)).all()
    assert result.error is not None
    assert result.error[0] == pytest.approx(expected.outcome.expected_error)
    assert result.reused == ["neighbours", "graphs", "scales"][: len(result.reused)]
    assert result.reused


def test_the_probability_of_a_propagated_label_is_its_confidence(path: Path) -> None:
    propagator = make(path)
    result = propagator.run(labels_of(propagator, {20: 1, 30: 0, 31: UNKNOWN}))
    assert propagator.fitted is not None
    outcome = propagator.fitted[1]
    new = ~outcome.given & (outcome.codes >= 0)
    raw = outcome.distributions.max(axis=1)
    assert (np.abs(raw - result.confidence / 255)[new] > 0.005).any()  # they would differ
    assert (result.best[new, 0] == result.labels[new]).all()
    assert result.probability[new, 0] == pytest.approx(result.confidence[new] / 255)
    assert result.probability.sum(axis=1) == pytest.approx(1)
    assert result.probability[outcome.given, 0] == pytest.approx(raw[outcome.given])


def test_the_exports_are_those_of_otprop_label_in_whatever_order_the_classes_were_made(tmp_path: Path) -> None:
    bare = write_lots(tmp_path / "bare.csv", target=False)
    propagator = make(bare)
    state, drawn = np.full(60, AS_IN_FILE), np.zeros(60, dtype=bool)
    state[:24] = np.where(np.arange(24) % 2, 1, 2)
    state[24:27] = 0
    drawn[[1, 2, 3, 4, 10, 11, 25]] = True
    labels = Labels(0, ["zucchini", "pear", "apple"], state, drawn)
    result = propagator.run(labels)
    written = tmp_path / export(propagator, labels, "csv", tmp_path)
    made = tmp_path / export_made_here(propagator.source, propagator.base.target, labels, propagator.digest, tmp_path)
    expected = otprop.label(bare, "kind", settings={"evidence": None}, corrections=made)
    assert propagator.job(labels)[0].target.classes == expected.job.target.classes == ["apple", "pear", "zucchini"]
    assert expected.job.chosen.sum() == 27 - 7
    expected.write(tmp_path / "expected.csv")
    assert written.read_bytes() == (tmp_path / "expected.csv").read_bytes()
    assert (result.labels[:27] == state[:27]).all()


def test_labels_made_here_are_chosen_unless_drawn_and_corrected_ones_count_as_before(path: Path) -> None:
    propagator = make(path)
    job, _ = propagator.job(labels_of(propagator, {2: 1, 20: 1, 30: 0, 31: 1}, drawn=(30,)))
    assert np.flatnonzero(job.chosen).tolist() == [20, 31]
    assert np.flatnonzero(job.corrected).tolist() == [2, 20, 30, 31]


def test_a_label_that_confirms_the_file_is_no_correction(path: Path) -> None:
    propagator = make(path)
    job, _ = propagator.job(labels_of(propagator, {2: 0}))
    assert not job.corrected.any()
    assert job.target.codes[2] == 0


def test_removed_labels_are_not_seen_and_the_pile_gets_no_class(path: Path) -> None:
    propagator = make(path)
    result = propagator.run(labels_of(propagator, {0: REMOVED, 1: UNKNOWN, 40: UNKNOWN}))
    assert result.n_labels == 6
    assert result.labels[0] == 0
    assert (result.labels[[1, 40]] == 65535).all()


def test_class_ids_are_those_of_the_session(path: Path) -> None:
    propagator = make(path)
    labels = labels_of(propagator, dict.fromkeys(range(1, 8, 2), REMOVED) | {21: 2, 23: 2, 25: 2})
    result = propagator.run(labels)
    assert set(result.labels.tolist()) == {0, 2}
    assert (result.labels[1::2] == 2).mean() > 0.8


def test_what_changed_is_counted_against_the_result_before(path: Path) -> None:
    propagator = make(path)
    first = propagator.run(labels_of(propagator, {}))
    assert len(first.changed) == 0
    second = propagator.run(labels_of(propagator, {20: 1}, 1))
    assert 20 in second.changed
    assert second.changed.tolist() == np.flatnonzero(first.labels != second.labels).tolist()


def test_a_run_is_cancelled_before_its_next_step_and_the_next_one_uses_its_neighbours(path: Path) -> None:
    reached, go_on = Event(), Event()

    def progress(done: float, total: float, step: str) -> None:
        if step.startswith("source"):
            reached.set()
            assert go_on.wait(60)

    propagator = make(path, progress)
    raised: list[BaseException] = []

    def run() -> None:
        try:
            propagator.run(labels_of(propagator, {}))
        except FitCancelledError as error:
            raised.append(error)

    thread = Thread(target=run)
    thread.start()
    assert reached.wait(60)
    propagator.cancel()
    go_on.set()
    thread.join(60)
    assert len(raised) == 1
    assert propagator.fitted is None
    assert propagator.run(labels_of(propagator, {20: 1}, 1)).reused


def test_a_cancel_before_the_estimator_began_is_not_lost(path: Path) -> None:
    propagator = make(path, lambda *step: propagator.cancel() if step[2] == "fitting" else None)
    with pytest.raises(FitCancelledError):
        propagator.run(labels_of(propagator, {}))


def test_suggestions_leave_out_labelled_rows_and_the_pile(path: Path) -> None:
    propagator = make(path)
    labels = labels_of(propagator, {9: 1, 40: UNKNOWN})
    for _ in range(2):  # without a run, and with one
        found = propagator.suggest(labels)
        rows = [row for row, _ in found]
        assert not set(rows) & {*range(8), 9, 40}
        assert {reason for _, reason in found} & {"random"}
        propagator.run(labels)


def test_with_one_class_nothing_is_propagated(path: Path) -> None:
    propagator = make(path)
    assert propagator.can_run(labels_of(propagator, {}))
    assert not propagator.can_run(labels_of(propagator, dict.fromkeys(range(1, 8, 2), REMOVED)))


@pytest.mark.parametrize("name", ["lots.npz", "lots.parquet", "lots.jsonl"])
def test_a_table_of_any_format_with_numbers_as_classes_is_exported_with_a_class_made_here(
    tmp_path: Path, name: str
) -> None:
    rng = np.random.default_rng(0)
    kind = np.arange(40) % 2
    frame = pd.DataFrame({"a": rng.normal(5 * kind, 1), "b": rng.normal(size=40), "kind": pd.array(kind, "Int64")})
    frame.loc[8:, "kind"] = pd.NA
    path = tmp_path / name
    if name.endswith(".npz"):
        np.savez(path, X=frame[["a", "b"]].to_numpy(), kind=np.where(np.arange(40) < 8, kind, -1))
    elif name.endswith(".parquet"):
        frame.to_parquet(path)
    else:
        frame.to_json(path, orient="records", lines=True)
    request = Request("kind", settings={"evidence": None}, unlabeled=["-1"] if name.endswith(".npz") else [])
    propagator = Propagator(Source(str(path), request), no_progress)
    propagator.make_vectors()
    for classes in (["0", "1", "7"], ["0", "1", "seven"]):
        state = np.full(40, AS_IN_FILE)
        state[[20, 22]] = 2
        labels = Labels(1, classes, state, np.zeros(40, dtype=bool))
        propagator.run(labels)
        for what in ("csv", "parquet"):
            written = otprop.files.read_table(tmp_path / export(propagator, labels, what, tmp_path))
            assert [str(cell) for cell in written.cells("kind_label")[[0, 1, 20]]] == classes[:2] + classes[2:]
            assert written.cells("kind_source")[[0, 20, 39]].tolist() == ["given", "corrected", "propagated"]


@pytest.mark.parametrize("propagated", [True, False])
def test_no_cell_of_a_csv_for_spreadsheets_starts_a_formula(tmp_path: Path, propagated: bool) -> None:
    path = write_lots(tmp_path / "lots.csv", n_labels=8)
    path.write_text(path.read_text().replace("lot 9 ", "=cmd|' /C calc'!A0").replace("lot 10 ", "-5"))
    propagator = make(path)
    labels = labels_of(propagator, {20: 1})
    if propagated:
        propagator.run(labels)
    texts = {
        what: (tmp_path / export(propagator, labels, what, tmp_path)).read_text() for what in ("csv", "spreadsheet")
    }
    assert ",=cmd|" in texts["csv"]
    assert ",=cmd|" not in texts["spreadsheet"]
    assert "'=cmd|" in texts["spreadsheet"]
    assert texts["spreadsheet"].replace("'=cmd|", "=cmd|") == texts["csv"]
