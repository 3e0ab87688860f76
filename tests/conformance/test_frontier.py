"""The frontier of a rejection as a picture: the states before the event, how far it gets from each, and what stops it."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from streamproof import Array, Model, Range, State, action, require
from streamproof.base.errors import Exit
from streamproof.cli.verbs import run
from streamproof.conformance import (
    Constraint,
    EventLog,
    Move,
    Observation,
    Plan,
    Stream,
    Task,
    Unit,
    judge,
    read_events,
)
from streamproof.conformance.frontier import frontier_dot


class Lamps(Model):
    """Lamps that are switched on from the left to the right, the second one only after a hidden step."""

    check_deadlock = False

    def state(self) -> Any:
        """Lamps, and whether there is power."""
        return State(on=Array(["a", "<b>"], Range(0, 1)), power=Range(0, 1))

    @action
    def power_up(self, s: Any) -> None:
        """Hidden."""
        require(s.power == 0)
        s.power = 1

    @action(lamp=["a", "<b>"])
    def switch(self, s: Any, lamp: Any) -> None:
        """The first needs nothing, the second needs power and the first."""
        require(s.on[lamp] == 0)
        require(lamp == "a" or (s.power == 1 and s.on["a"] == 1))
        s.on[lamp] = 1


class Twice:
    """A binding: the event `both` is two actions of which the second one may be impossible."""

    default = False

    def runs(self, path: Path) -> list[Path]:
        """The file."""
        return [path]

    def recognises(self, path: Path) -> bool:
        """Never of itself."""
        return False

    def plan(self, log: Path, job_graph: Path | None) -> Plan:
        """One behaviour; power is hidden."""
        events = tuple(read_events(log))
        moves = tuple(Move("switch", {"lamp": name}) for name in ("a", "<b>"))
        dark = Constraint(lambda look: "a lamp burns", lambda look: sum(look("on")) == 0)
        seen = [Observation(e, (moves,)) if e.event == "both" else Observation(e, before=(dark,)) for e in events]
        task = Task("lamps", Lamps.system(), (Stream(tuple(seen)),), frozenset({"power_up"}))
        return Plan(log.name, (Unit("lamps", "", (task,)),), events)


def log(folder: Path, *events: str) -> Path:
    """An event log of these events."""
    file = folder / "log.ndjson"
    lines = [json.dumps({"trace": "lamps", "process": "p", "seq": n, "event": e}) for n, e in enumerate(events)]
    file.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return file


def test_the_picture_has_each_state_with_the_part_of_the_event_that_it_allows(tmp_path: Path) -> None:
    """After `both` and `both` again: two states, with and without power, and the first action is impossible in each."""
    found = judge(Twice().plan(log(tmp_path, "dark", "both", "both"), None), "lamps")
    frontier = found[0].rejection.frontier if found[0].rejection else None
    assert frontier is not None
    assert {m.state for m in frontier.matches} == set(range(len(frontier.states)))
    assert all(m.taken == () and m.then == "switch(lamp=a)" for m in frontier.matches)


def test_a_part_of_the_event_that_is_possible_is_drawn(tmp_path: Path) -> None:
    """Without power the first action is possible and the second is not: a chain of two nodes, the last one red."""

    class NoPower(Twice):
        def plan(self, log: Path, job_graph: Path | None) -> Plan:
            plan = super().plan(log, job_graph)
            (case,) = plan.cases
            (task,) = case.tasks
            alone = Task("lamps", task.system, task.streams, frozenset())
            return Plan(plan.name, (Unit("lamps", "", (alone,)),), plan.events)

    found = judge(NoPower().plan(log(tmp_path, "both"), None), "lamps")
    assert found[0].rejection is not None
    (match,) = found[0].rejection.frontier.matches  # type: ignore[union-attr]
    assert (match.state, match.taken, match.then) == (0, ("switch(lamp=a)",), "switch(lamp=<b>)")
    assert "power" in match.because
    text = frontier_dot(found)
    assert 'label="after switch(lamp=a)\\l"' in text
    assert text.count('fillcolor="#f8d0d0"') == 1
    if shutil.which("dot"):
        drawn = subprocess.run(["dot", "-Tsvg"], input=text, capture_output=True, text=True, check=True, timeout=60)
        assert "&lt;b&gt;" in drawn.stdout
        assert drawn.stderr == ""


def test_accepted_runs_have_no_cluster(tmp_path: Path) -> None:
    """The picture is then empty."""
    found = judge(EventLog(Lamps).plan(log(tmp_path, "power_up"), None), "lamps")
    assert found[0].answer == "accepted"
    assert "cluster" not in frontier_dot(found)


@pytest.mark.long
def test_validate_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """`--dot` writes the file, in a new folder too, and replaces only files of its own kind."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lamps.py").write_text(
        "from streamproof import Model, Range, State, action, require\n\n\nclass Once(Model):\n"
        '    """One step."""\n\n    check_deadlock = False\n\n    def state(self):\n        return State(n=Range(0, 1))\n\n'
        "    @action\n    def go(self, s):\n        require(s.n == 0)\n        s.n = 1\n",
        encoding="utf-8",
    )
    log(tmp_path, "go", "go")
    words = ("validate", "log.ndjson", "--model", "lamps.py")
    assert run([*words, "--dot", "found.dot"]) == Exit.REJECTED
    assert "cluster_0" in (tmp_path / "found.dot").read_text(encoding="utf-8")
    assert run([*words, "--dot", "found.dot"]) == Exit.REJECTED
    capsys.readouterr()
    assert run([*words, "--dot", "log.ndjson"]) != Exit.REJECTED
    assert "log.ndjson" in capsys.readouterr().err
    assert run([*words, "--dot", "new/found.dot"]) == Exit.REJECTED
    assert (tmp_path / "new" / "found.dot").exists()
