"""A session whose file has changed: which row each recorded row is now."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from otprop.studio.session_file import SessionError
from otprop.studio.session_log import AS_IN_FILE, REMOVED, UNKNOWN
from tests.studio.sessions import Lots, opened, summary


def test_labels_move_with_their_rows_when_the_file_changes(tmp_path: Path) -> None:
    lots = Lots()
    session = opened(tmp_path, lots)
    session.label([2], 0, drawn=True)
    session.label([5], 1)
    session.label([9], UNKNOWN)
    session.close()
    changed = Lots([lots.cells[9], *lots.cells[:5], *lots.cells[6:9], "new"])
    session = opened(tmp_path, changed)
    assert {row: int(session.state[row]) for row in np.flatnonzero(session.state != AS_IN_FILE)} == {0: UNKNOWN, 3: 0}
    assert session.drawn.tolist() == [row == 3 for row in range(changed.n_rows)]
    assert "2 of 3 labels made here fit, 2 of them in another row; kept for rows that" in session.notes[0]
    assert not session.can_undo
    session.label([1], 1)
    session.close()
    session = opened(tmp_path, changed)
    assert session.notes == []
    assert session.state[[0, 1, 3]].tolist() == [UNKNOWN, 1, 0]
    session.close()
    session = opened(tmp_path, lots)  # and back
    assert session.state[[0, 2, 5, 9]].tolist() == [1, 0, 1, UNKNOWN]  # the label of the row that was missing, too
    session.close()


def test_what_was_said_of_rows_that_were_missing_for_a_while_comes_back_with_them(tmp_path: Path) -> None:
    lots = Lots()
    session = opened(tmp_path, lots)
    session.label([2], 0, drawn=True)
    session.label([12], 1, drawn=True)
    session.label([13], REMOVED)
    session.label([14], 0)
    for row in (3, 14):
        session.keep(row)
    for row in (4, 15):
        session.skip(row)
    before = summary(session)[:3]
    session.close()
    shorter = Lots(lots.cells[:10])
    session = opened(tmp_path, shorter)
    assert (list(session.skipped), list(session.kept), int((session.state != AS_IN_FILE).sum())) == ([4], [3], 1)
    session.label([5], 1)
    session.close()
    opened(tmp_path, Lots(lots.cells[:8])).close()  # missing for longer
    session = opened(tmp_path, lots)
    assert [row for row in range(20) if session.state[row] != before[0][row]] == [5]
    assert session.drawn.tolist() == before[1]
    assert (set(session.skipped), set(session.kept)) == ({4, 15}, {3, 14})
    assert "5 of 5 labels made here fit" in session.notes[0]
    session.close()
    session = opened(tmp_path, lots)
    assert (set(session.skipped), set(session.kept)) == ({4, 15}, {3, 14})
    session.close()


def test_a_label_comes_back_although_a_column_was_added_while_its_row_was_missing(tmp_path: Path) -> None:
    session = opened(tmp_path, Lots())
    session.label([1, 9], 0)
    session.close()
    wider = Lots(columns=["lot", "size"])
    opened(tmp_path, Lots(wider.cells[:5], wider.columns)).close()
    session = opened(tmp_path, wider)
    assert session.state[[1, 9]].tolist() == [0, 0]
    session.close()


def test_a_label_of_equal_rows_stays_where_it_was(tmp_path: Path) -> None:
    session = opened(tmp_path, Lots(["same", "same", "other"]))
    session.label([1], 0)
    session.close()
    session = opened(tmp_path, Lots(["same", "same", "changed"]))
    assert session.state.tolist() == [AS_IN_FILE, 0, AS_IN_FILE]
    session.close()


@dataclass
class Sampled(Lots):
    """Some rows of a file that stays the same."""

    @property
    def digest(self) -> str:
        return f"abc-0-{self.n_rows}"


def test_another_sample_of_the_same_file_is_no_changed_file(tmp_path: Path) -> None:
    session = opened(tmp_path, Sampled())
    session.label([2], 0)
    session.close()
    session = opened(tmp_path, Sampled([f"lot {number}" for number in range(5)]))
    assert session.notes == ["another sample of lots.csv is open than the last time: 1 of 1 labels made here fit"]
    session.close()
    with pytest.raises(SessionError, match=r"none of the 1 labels .* the sample of lots.csv that is open now"):
        opened(tmp_path, Sampled(["lot 7", "lot 8"]))


def test_a_lost_column_and_a_wholly_different_file_are_refused(tmp_path: Path) -> None:
    session = opened(tmp_path, Lots(columns=["lot", "size"]))
    session.label([1], 0)
    session.close()
    with pytest.raises(SessionError, match="has lost the column 'size'"):
        opened(tmp_path, Lots())
    with pytest.raises(SessionError, match="none of the 1 labels"):
        opened(tmp_path, Lots(["x", "y"], columns=["lot", "size"]))
    session = opened(tmp_path, Lots(columns=["lot", "size"]))
    assert session.state[1] == 0
    session.close()


def test_the_session_of_another_file_is_named_with_its_file(tmp_path: Path) -> None:
    session = opened(tmp_path, Lots(columns=["lot", "size"]))
    session.skip(3)
    session.undo()
    session.close()
    session = opened(tmp_path, Lots(name="others.csv", columns=["lot", "size"], cells=["x", "y"]))
    assert session.notes[0].endswith(
        "was made for lots.csv: no label was made there, and it is used for others.csv from now on"
    )
    session.label([1], 0)
    session.close()
    with pytest.raises(SessionError, match=r"was made for others.csv: lots.csv has no column 'size'"):
        opened(tmp_path, Lots())
    with pytest.raises(SessionError, match=r"was made for others.csv: none of the 1 labels"):
        opened(tmp_path, Lots(columns=["lot", "size"]))
