"""A binding for another system, written with what the public doors export and nothing else."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from streamproof import Model, Range, State, System, action, require
from streamproof.conformance import (
    Binding,
    Constraint,
    Event,
    InputError,
    Move,
    Observation,
    Plan,
    Recovery,
    RunVerdict,
    StateReader,
    Stream,
    Task,
    Tracked,
    Unit,
    judge,
    read_events,
    write_ndjson,
)


class Tank(Model):
    """Fills by one and is emptied at once."""

    def state(self) -> State:
        """The level."""
        return State(level=Range(0, 3))

    @action
    def fill(self, s: Any) -> None:
        """One more."""
        require(s.level < 3)
        s.level += 1

    @action
    def drain(self, s: Any) -> None:
        """All of it."""
        require(s.level > 0)
        s.level = 0


class Drained:
    """Every draining that was followed is a recovery."""

    def recoveries(self, tracked: Tracked) -> tuple[Recovery, ...]:
        """With the level that was left, as it was read."""
        return tuple(Recovery(tracked.events[at].ts, "tank", None, left) for at, (left,) in tracked.readings.items())


class Tanks(Binding):
    """Logs of tanks: ``fill`` with the level that was reached, and ``drain``."""

    def runs(self, path: Path) -> list[Any]:
        """The logs in a folder."""
        found = sorted(path.glob("*.ndjson"))
        if not found:
            raise InputError(f"{path}: no log of a tank was found", remedy="name a folder of logs")
        return list(found)

    def recognises(self, path: Path) -> bool:
        """Whether there are logs."""
        return any(path.glob("*.ndjson"))

    def plan(self, run: Any, job_graph: Path | None) -> Plan:
        """One case for a log."""
        system: System = Tank.system()
        events = tuple(read_events(run))
        stream = Stream(tuple(self._observed(event) for event in events))
        case = Unit("tank", "the tank", (Task("tank", system, (stream,)),), recoveries=Drained())
        return Plan(run.stem, (case,), events, unit="tank")

    @staticmethod
    def _observed(event: Event) -> Observation:
        def level(look: StateReader) -> int:
            found: int = look("level")
            return found

        if event.event == "drain":
            return Observation(event, ((Move("drain"),),), reads=level)
        reached = event.args["level"]
        same = Constraint(
            lambda look: f"the level is {level(look)}, not {reached}", lambda look: level(look) == reached
        )
        return Observation(event, ((Move("fill"),),), (same,))


def followed(folder: Path, *levels: int) -> RunVerdict:
    """The verdict on a log of fillings up to these levels; 0 stands for draining."""
    events = [
        Event("tank", "p", at, "fill" if level else "drain", {"level": level} if level else {}, ts=f"t{at}")
        for at, level in enumerate(levels)
    ]
    write_ndjson(events, folder / "log.ndjson")
    binding = Tanks()
    assert binding.recognises(folder)
    (run,) = binding.runs(folder)
    (verdict,) = judge(binding.plan(run, None), "tank")
    return verdict


def test_a_log_of_another_system_is_accepted(tmp_path: Path) -> None:
    """The verdict is data, its record the documented JSON; recoveries come from what was read after events."""
    verdict = followed(tmp_path, 1, 2, 0, 1, 0)
    assert (verdict.answer, verdict.unit, verdict.matched, verdict.read) == ("accepted", "tank", 5, 5)
    assert [(r.decided, r.announced) for r in verdict.recoveries] == [("t2", 0), ("t4", 0)]
    record = verdict.record()
    assert (record["verdict"], record["actions"]) == ("accepted", {"fill": 3, "drain": 2})
    assert record["events"] == {"read": 5, "matched": 5, "ignored": 0, "unknown": 0}


def test_a_log_of_another_system_is_rejected_at_its_line(tmp_path: Path) -> None:
    """With the binding's own words; what was read before counts."""
    verdict = followed(tmp_path, 1, 0, 2)
    assert verdict.rejection is not None
    assert (verdict.answer, verdict.rejection.index, verdict.reason) == ("rejected", 2, "the level is 1, not 2")
    assert verdict.rejection.event is not None
    assert verdict.rejection.event.line == 3
    assert len(verdict.recoveries) == 1


def test_the_example_outside_flink_needs_the_public_doors_alone() -> None:
    """Its model imports the language, its binding and its adapter their interfaces, its service nothing."""
    imported = {}
    for file in sorted((Path(__file__).parents[2] / "examples" / "lease").glob("*.py")):
        nodes = ast.walk(ast.parse(file.read_text()))
        found = {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
        imported[file.name] = {module for module in found if module.partition(".")[0].startswith("streamproof")}
    assert imported == {
        "adapter.py": {"streamproof.driving"},
        "binding.py": {"streamproof.conformance"},
        "lease.py": {"streamproof"},
        "service.py": set(),
        "spans.py": set(),
    }


def test_a_folder_without_logs_is_refused(tmp_path: Path) -> None:
    """What a binding cannot read raises the public error."""
    with pytest.raises(InputError, match="no log of a tank"):
        Tanks().runs(tmp_path)
