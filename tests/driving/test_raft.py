"""PySyncObj, an implementation of Raft by others, driven through the model of its election."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamproof.driving.connection import of_class
from streamproof.driving.drive import Drive, DriveOptions, drive
from streamproof.driving.driver import Driver
from streamproof.driving.script import Asked, CallScript
from streamproof.driving.testing import subject_of
from streamproof.selection import selected
from streamproof.user_code import import_file

pytest.importorskip("pysyncobj")
RAFT = Path(__file__).resolve().parents[2] / "examples" / "raft"
adapter: Any = import_file(RAFT / "adapter.py")


def driven(model: str, servers: int, walks: int) -> Drive:
    """Random walks on servers of PySyncObj."""
    subject = subject_of(selected(model, parameters={"servers": servers}))
    return drive(subject, of_class(adapter.PySyncObjRaft), options=DriveOptions(walks=walks, seed=1))


@pytest.mark.parametrize("walks", [2, pytest.param(200, marks=pytest.mark.long)])
def test_three_servers_have_no_difference(walks: int) -> None:
    """Elections, restarts from journals and reordered messages are those of the model with logs."""
    found = driven(str(RAFT / "election.py"), 3, walks)
    assert (found.answer, found.doubts) == ("no difference", ())
    assert found.coverage.calls > 20 * walks
    assert found.coverage.values > 15 * found.coverage.calls


def test_a_log_withholds_a_vote() -> None:
    """The model without logs does not have the vote that a former leader withholds."""
    subject = subject_of(selected("reference.raft_election"))
    calls = [("time_out", 2), ("receive_request", 1), ("receive_vote", 2), ("receive_request", 3), ("time_out", 3)]
    script = tuple(Asked(action, {"i": f"server{i}"}) for action, i in (*calls, ("receive_request", 2)))
    with Driver(subject, of_class(adapter.PySyncObjRaft)) as driver:
        ran = driver.run(CallScript("withheld", script))
    assert (ran.ended, ran.wrong.event) == ("difference", "observe")
    at = subject.system.index["voted_for"]
    assert {state[at] for state in ran.expected} == {("server2", "server3", "server3")}


@pytest.mark.long
def test_a_repeated_vote_counts_twice() -> None:
    """Of five servers, a candidate with its own vote and another one that arrives twice is the leader.

    PySyncObj counts votes, not voters. Its TCP connections do not repeat messages.
    """
    subject = subject_of(selected(str(RAFT / "election.py"), parameters={"servers": 5}))
    calls = [("time_out", 4), ("receive_request", 1), ("receive_vote", 4), ("receive_vote", 4)]
    script = CallScript("twice", tuple(Asked(action, {"i": f"server{i}"}) for action, i in calls))
    with Driver(subject, of_class(adapter.PySyncObjRaft)) as driver:
        ran = driver.run(script)
    assert ran.ended == "difference"
    assert ran.wrong.state["role"]["server4"] == "leader"
    assert {state[subject.system.index["role"]][3] for state in ran.expected} == {"candidate"}
