"""Speculative execution: the concurrent attempts of a task as one attempt of the failover machine.

Attempts of a task are one *group* from its scheduling to its end: the first one, and those created because the task is slow,
each announced by a line. The machine follows the group. It has got as far as its foremost attempt, is FINISHED with the
first one that is, and CANCELED with the last one. An attempt that fails while another may still finish changes nothing,
unless it misses a partition (`DefaultSpeculativeExecutionHandler.handleTaskFailure`). The number of a group is that of
its restart.

What the machine then no longer sees is judged here: the states of each attempt, and the order of attempts in a group.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from streamproof.conformance import Event, Observation
from streamproof.conformance.flink import Attempt, FlinkRun, read_lines
from streamproof_specs.failover.flink.every_scheduler import AT_WORK
from streamproof_specs.failover.flink.jobmanager_log import LEGAL

Subtask = tuple[str, int]
"""Vertex and subtask."""
_SLOW = re.compile(rb"\(([0-9a-f]{32})_(\d+)\) is detected as a slow vertex, create and deploy (\d+) new")
_ORDER = ("CREATED", "SCHEDULED", "DEPLOYING", "INITIALIZING", "RUNNING")
_OVER = ("FINISHED", "CANCELED", "FAILED")


def announced(run: FlinkRun, process: str) -> Counter[Subtask]:
    """How many further attempts a JobManager's log announces of each slow subtask; nothing else explains attempts that
    overlap."""
    found: Counter[Subtask] = Counter()
    for file in run.processes[process].files:
        with closing(read_lines(Path(file), lambda problem: None)) as lines:
            for line in lines:
                if b"slow vertex" in line and (said := _SLOW.search(line)):
                    found[said[1].decode(), int(said[2])] += int(said[3])
    return found


@dataclass(slots=True)
class _Group:
    """The attempts of one subtask from one restart to the next."""

    number: int
    state: str = "CREATED"
    """As the machine has it."""
    attempts: dict[int, str] = field(default_factory=dict)
    place: dict[int, str] = field(default_factory=dict)
    deployed: int | None = None
    """The attempt whose deployment the machine has seen."""
    winner: int | None = None
    """The attempt that has finished."""

    def others(self, number: int, states: Sequence[str] | frozenset[str]) -> list[int]:
        """The other attempts in some states."""
        return [n for n, state in self.attempts.items() if n != number and state in states]


@dataclass(slots=True)
class Groups:
    """The lines of a JobManager as those of groups: `events`, and what they contradict: `breaches`."""

    announced: Mapping[Subtask, int]
    events: list[Event] = field(default_factory=list)
    breaches: list[tuple[Event, str]] = field(default_factory=list)
    left: str | None = None
    """What the machine cannot follow: a group whose output the JobMaster no longer tracks, although the group goes on."""
    _original: dict[tuple[str, int], Event] = field(default_factory=dict)
    _groups: dict[Subtask, list[_Group]] = field(default_factory=dict)
    _decided: frozenset[str] = frozenset()

    @classmethod
    def of(cls, master: Sequence[Event], announced: Mapping[Subtask, int]) -> Groups:
        """The lines of one job, which one JobMaster ran."""
        decided = frozenset(str(e.args["attempt"]) for e in master if e.event == "failover.restart")
        made = cls(announced, _decided=decided)
        for event in master:
            made._original[event.process, event.seq] = event
            made.events += made._read(event)
        return made

    def restored(self, observations: Sequence[Observation]) -> tuple[Observation, ...]:
        """The observations, about the lines as they were written."""
        return tuple(replace(o, event=self._original[o.event.process, o.event.seq]) for o in observations)

    def _read(self, event: Event) -> Iterator[Event]:
        match event.event:
            case "exec.transition":
                yield from self._transition(event)
            case "exec.deploy":
                group = self._group(event)
                if group is None:
                    yield event
                    return
                group.place[event.args["number"]] = event.args["tm"]
                if group.deployed == event.args["number"]:
                    yield _with(event, number=group.number)
            case "failover.restart":
                group = self._group(event)
                yield event if group is None else _with(event, number=group.number)
            case _:
                yield event

    def _group(self, event: Event) -> _Group | None:
        """The group of an attempt; None for one that has not begun."""
        groups = self._groups.get((event.args["vertex"], event.args["subtask"]), ())
        return next((g for g in groups if event.args["number"] in g.attempts), None)

    def _breach(self, event: Event, why: str) -> None:
        self.breaches.append((event, why))

    def _begin(self, event: Event, name: str) -> _Group:
        """The group of an attempt that begins: the present one if it has an attempt at work, else the next."""
        subtask, number = (event.args["vertex"], event.args["subtask"]), event.args["number"]
        groups = self._groups.setdefault(subtask, [])
        highest = max((n for g in groups for n in g.attempts), default=-1)
        if number != highest + 1:
            self._breach(event, f"attempt {number} of {name} begins after attempt {highest}")
        working = groups[-1].others(number, AT_WORK) if groups and groups[-1].state in AT_WORK else []
        if not working:
            groups.append(_Group(len(groups)))
            return groups[-1]
        if self.announced.get(subtask, 0) < sum(len(g.attempts) - 1 for g in groups) + 1:
            why = f"attempt {number} of {name} begins, but attempt {working[0]} is {groups[-1].attempts[working[0]]}"
            self._breach(event, f"{why}, and no line says that the task is slow")
        return groups[-1]

    def _transition(self, event: Event) -> Iterator[Event]:
        args = event.args
        number, old, new = args["number"], args["old"], args["new"]
        name = f"{args['task']} ({args['subtask'] + 1}/{args['parallelism']})"
        group = self._group(event) or self._begin(event, name)
        own = group.attempts.get(number, "CREATED")
        if own != old:
            self._breach(event, f"attempt {number} of {name} was {own}, not {old}")
        elif new not in LEGAL.get(old, frozenset()):
            self._breach(event, f"an execution never switches from {old} to {new}")
        group.attempts[number] = new
        if group.state == "FINISHED" and new in (*AT_WORK, "FINISHED", "FAILED"):
            self._breach(event, f"attempt {number} of {name} is {new} after attempt {group.winner} has finished")
        state = self._state(group, event, name)
        if state is None:
            return
        extra: dict[str, Any] = {}
        if state == "DEPLOYING":
            group.deployed = number
        if state == "FINISHED":
            group.winner = number
            extra = {"place": group.place[number]} if number in group.place else {}
        if state == "FAILED" and "producer" in args:
            extra["producer"] = self._producer(args["producer"])
        before, group.state = group.state, state
        yield _with(event, number=group.number, old=before, new=state, **extra)

    def _state(self, group: _Group, event: Event, name: str) -> str | None:
        """What a line makes of its group; None: nothing new."""
        number, new = event.args["number"], str(event.args["new"])
        working = group.others(number, AT_WORK)
        if group.state in _OVER:
            return None
        match new:
            case "FINISHED":
                return new
            case "CANCELING":
                return new if group.state in AT_WORK else None
            case "CANCELED":
                return new if not working and not group.others(number, ("CANCELING",)) else None
            case "FAILED" if working and event.args["attempt"] not in self._decided:
                if all(group.attempts[n] == "SCHEDULED" for n in working):
                    where = f"line {event.line} of {event.process}"
                    self.left = f"attempt {number} of {name} fails while its other attempts wait for slots ({where})"
                return None
            case "FAILED":
                causes = event.args.get("causes") or ()
                if working and causes and not any("Partition" in cause for cause in causes):
                    self._breach(
                        event, f"{name} is restarted for attempt {number}, but attempt {working[0]} may still finish"
                    )
                return new
            case _:
                return new if _ORDER.index(new) > _ORDER.index(group.state) else None

    def _producer(self, text: str) -> str:
        """The attempt that wrote a partition, with the number of its group."""
        writer = Attempt.parse(text)
        groups = self._groups.get((writer.vertex, writer.subtask), ())
        own = next((g.number for g in groups if writer.number in g.attempts), writer.number)
        return str(replace(writer, number=own))


def _with(event: Event, **args: Any) -> Event:
    return replace(event, args={**event.args, **args})
