"""The log of a session."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otprop.studio.session_log import AS_IN_FILE, REMOVED, UNKNOWN
from tests.studio.sessions import opened, summary

actions = st.lists(
    st.one_of(
        st.tuples(
            st.just("label"),
            st.lists(st.integers(0, 19), min_size=1, max_size=6),
            st.sampled_from([0, 1, REMOVED, UNKNOWN, AS_IN_FILE]),
            st.booleans(),
        ),
        st.tuples(st.sampled_from(["skip", "keep"]), st.integers(0, 19)),
        st.tuples(st.just("undo")),
        st.tuples(st.just("redo")),
    ),
    max_size=25,
)


@settings(max_examples=max(15, settings().max_examples // 4), deadline=None)  # each writes a file
@given(actions)
def test_the_log_adds_up_to_what_a_list_of_states_would_and_a_reopened_session_is_the_same(steps: list) -> None:
    done: list[tuple] = [tuple([AS_IN_FILE] * 20)]  # an independent model: every state there was
    undone: list[tuple] = []
    with TemporaryDirectory() as folder:
        session = opened(Path(folder))
        for step in steps:
            states = done[-1]
            if step[0] == "label":
                _, rows, new, drawn = step
                after = tuple(new if row in rows else state for row, state in enumerate(states))
                assert (session.label(rows, new, drawn=drawn) is None) == (after == states)
                if after != states:
                    done.append(after)
                    undone.clear()
            elif step[0] in ("skip", "keep"):
                (session.skip if step[0] == "skip" else session.keep)(step[1])
                done.append(states)
                undone.clear()
            elif step[0] == "undo":
                assert (session.undo() is None) == (len(done) == 1)
                if len(done) > 1:
                    undone.append(done.pop())
            else:
                assert (session.redo() is None) == (not undone)
                if undone:
                    done.append(undone.pop())
            assert tuple(session.state.tolist()) == done[-1]
            assert session.can_undo == (len(done) > 1)
            assert session.can_redo == bool(undone)
        before, name = summary(session), session.session_id
        session.close()
        again = opened(Path(folder))
        assert (summary(again), again.session_id) == (before, name)
        again.close()


def test_the_log_cannot_be_changed(tmp_path: Path) -> None:
    session = opened(tmp_path)
    session.label([0], 1)
    session.close()
    connection = sqlite3.connect(tmp_path / "s.otprop")
    for statement in ("DELETE FROM events", "UPDATE events SET kind = 'x'", "DELETE FROM changes"):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            connection.execute(statement)
    connection.close()


def test_classes_keep_their_ids(tmp_path: Path) -> None:
    session = opened(tmp_path)
    assert (session.add_class("z"), session.add_class("a"), session.add_class("z")) == (2, 0, 2)
    session.close()
    session = opened(tmp_path, classes=("a", "b", "c"))
    assert session.classes == ["a", "b", "z", "c"]
    session.close()


def test_a_request_that_comes_twice_is_found(tmp_path: Path) -> None:
    session = opened(tmp_path)
    event = session.label([3], 1, request="f" * 32)
    assert event is not None
    session.label([4], 1)
    session.close()
    session = opened(tmp_path)
    found = session.event_of_request("f" * 32)
    assert found is not None
    assert (found.revision, found.rows.tolist()) == (event.revision, [3])
    assert session.event_of_request("0" * 32) is None
    session.close()


def test_the_curve_and_the_goal_stay(tmp_path: Path) -> None:
    session = opened(tmp_path)
    session.set_goal(0.02)
    session.add_curve_point(1, 10, 0.3, 0.2, 0.4)
    session.add_curve_point(2, 11, 0.2, 0.1, 0.3)
    session.add_curve_point(3, 10, 0.25, 0.2, 0.4)
    session.close()
    session = opened(tmp_path)
    assert session.goal == 0.02
    assert [point[:2] for point in session.curve()] == [(10, 0.25), (11, 0.2)]
    session.close()
