"""The binding of the runtime's event logs to the life cycle of partitions: each dataset at each JobMaster is one behaviour.

The JobMaster's events are merged with those of the TaskExecutors so that what arrives has been sent: a registration, a
deployment, a release, a report; an event without such a cause is rejected. No end of a connection makes an action of the
other end impossible, so that every such order is a behaviour of the machine, or none is. What an event records as deleted
must be what the machine has.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

from streamproof.conformance import Event, InputError, Plan, Task, Unit
from streamproof_specs.failover.runtime import job_graph
from streamproof_specs.partitions.runtime.arguments import listed, number, texts, tracked
from streamproof_specs.partitions.runtime.cluster import LOCATED, MANAGER_LOST, RELEASED, ClusterReading
from streamproof_specs.partitions.runtime.forms import EXECUTOR, FORM, MASTER
from streamproof_specs.partitions.runtime.reading import (
    LET_GO,
    LISTS,
    MASTER_LOST,
    REGISTERING,
    DatasetReading,
    Key,
    Step,
)
from streamproof_specs.runtime.logs import JobMasterLogs, first_event, jobs
from streamproof_specs.runtime.sessions import session

_PROCESS = re.compile(r"(.+)\.(\d+)", re.ASCII)
"""A process of a TaskExecutor: its name, and how many processes of that name were before it."""

OF_CLUSTER = (MANAGER_LOST, RELEASED, "partitions_lost")
"""Events of TaskExecutors that need no connection to a JobMaster."""
Connection: TypeAlias = tuple[str, int, int]
"""A TaskExecutor, its process, and a number."""


class RuntimePartitions(JobMasterLogs):
    """Follows the partitions of every job of the runtime."""

    def recognises(self, path: Path) -> bool:
        """Whether a path has a log of the runtime, of a job with blocking exchanges."""
        first = first_event(path)
        return (
            first.get("event") == "job_started" and re.search('"(BLOCKING|HYBRID_FULL)"', json.dumps(first)) is not None
        )

    def behaviours(self, name: str, events: list[Event]) -> Plan:
        """One case for each JobMaster of the job. Raises `InputError` for a log that is not the runtime's own."""
        masters = [(started, [e for e in own if e is not started]) for started, own in jobs(events, MASTER)]
        known = {name for started, _ in masters for name in (*_datasets(started), *_promoted(started))}
        for event in events:
            if masters and "#" not in event.trace:
                _expect_datasets(event, known)
        connections = _connections(events, masters)
        cases = []
        deploying = [started.trace for started, own in masters if any(e.event == "partitions_tracked" for e in own)]
        for connected in connections:
            if connected.owner is None and not deploying:
                event = next(filter(_concerns, connected.events), connected.events[0])
                raise InputError(f"{event}: no JobMaster has deployed a dataset", loc=event.loc)
        begun = sorted((started for started, _ in masters), key=lambda event: session(event.trace))
        nexts = {a.trace: b for a, b in pairwise(begun) if session(a.trace)[0] == session(b.trace)[0]}
        for started, of_it in masters:
            own = of_it
            if started.trace in nexts:  # the next JobMaster begins when this one has crashed
                own = [*own, nexts[started.trace]]
            theirs = [c for c in connections if (c.owner or deploying[0]) == started.trace]
            tasks = _tasks(started, own, theirs)
            if _promoted(started):
                following = sorted(masters, key=lambda master: _first_attempt(master[0]))
                later = [e for begun, of in following if _is_after(begun, started) for e in (begun, *of)]
                others = [e for _, of in masters if of is not of_it for e in of]
                tasks += _cluster_tasks(started, own, (later, others), connections)
            if tasks:
                cases.append(Unit(started.trace, f"partitions of {started.trace}", tasks))
        return Plan(name, tuple(cases), tuple(events), unit="job", nothing="no partition has been deployed")


def _tasks(started: Event, own: Sequence[Event], connections: Sequence[_Connected]) -> tuple[Task, ...]:
    """The behaviours of the datasets of one JobMaster."""
    executors = {c.key[0] for c in connections}
    in_memory = texts(started, "memory_only") if "memory_only" in started.args else ()
    every = [
        DatasetReading(FORM, started.trace, name, own, executors, name in in_memory) for name in _datasets(started)
    ]
    readings = [reading for reading in every if reading.attempts]
    never = {reading.name for reading in every} - {reading.name for reading in readings}
    for event in (e for c in connections if c.owner == started.trace for e in c.events):
        if never.intersection(_named(event)):
            raise InputError(f"{event}: the JobMaster has deployed no such dataset", loc=event.loc)
    if not readings:
        return ()
    masters = [_of_master(event) for event in own]
    logs: dict[str, list[Step]] = {}
    before: dict[str, _Connected] = {}
    for connected in connections:
        name = connected.key[0]
        logs.setdefault(name, []).extend(connected.steps({started.trace}, before.get(name)))
        before[name] = connected
    for reading in readings:
        for at, step in enumerate(masters):
            reading.read(step, own[at + 1 :])
        for executor, steps in logs.items():
            for step in steps:
                reading.read_there(step, executor)
    order = _in_causal_order([masters, *logs.values()])
    for step in order:
        if step.wrong is not None and not any(step.event.key in reading.steps for reading in readings):
            readings[0].note(step)
    return tuple(reading.task(order) for reading in readings)


def _cluster_tasks(
    started: Event,
    own: Sequence[Event],
    others: tuple[Sequence[Event], Sequence[Event]],
    connections: Sequence[_Connected],
) -> tuple[Task, ...]:
    """The behaviours of what one JobMaster promotes; `others`: the events of those after it, and of all others."""
    later = others[0]
    every = {connected.owner for connected in connections if connected.owner}
    logs: dict[str, list[_Connected]] = {}
    for connected in connections:
        if connected.key[0] in logs or connected.owner == started.trace:
            logs.setdefault(connected.key[0], []).append(connected)
    readings = [ClusterReading(started.trace, name, own, others, logs) for name in _promoted(started)]
    readings = [reading for reading in readings if reading.attempts]
    masters = [_of_master(event) for event in own]
    afterwards = [_of_master(event) for event in later]
    there = {
        name: [step for before, now in pairwise([None, *of]) if now for step in now.steps(every, before)]
        for name, of in logs.items()
    }
    for reading in readings:
        for at, step in enumerate(masters):
            reading.read(step, own[at + 1 :])
        for step in afterwards:
            reading.read_later(step)
        for executor, steps in there.items():
            for step in steps:
                reading.read_there(step, executor)
    order = _in_causal_order([[*masters, *afterwards], *there.values()])
    return tuple(reading.task(order) for reading in readings)


def _in_causal_order(logs: Iterable[Sequence[Step]]) -> list[Step]:
    """All steps in an order in which what arrives has been sent; what cannot be so is wrong."""
    waiting = [deque(own) for own in logs if own]
    provided: set[Key] = set()
    order: list[Step] = []

    def take(own: deque[Step]) -> None:
        order.append(own.popleft())
        provided.update(order[-1].provides)

    while waiting:
        before = len(order)
        for own in waiting:
            while own and own[0].needs <= provided:
                take(own)
        waiting = [own for own in waiting if own]
        if len(order) == before:
            stuck = min(waiting, key=lambda own: own[0].event.line or 0)
            missing = min(map(str, stuck[0].needs - provided))
            stuck[0].wrong = f"nothing before it is its cause: {missing}"
            take(stuck)
            waiting = [own for own in waiting if own]
    return order


def _of_master(event: Event) -> Step:
    if event.event != "registered":
        return Step(event)
    return Step(event, {("registering", _key(event))}, {("registered", _key(event))})


@dataclass
class _Connected:
    """A connection of a TaskExecutor to a JobMaster: its events, from `registering` to the loss of the JobMaster."""

    key: Connection
    owner: str | None
    """The JobMaster's trace; None if it was never registered."""
    events: list[Event] = field(default_factory=list)

    def steps(self, traces: Container[str | None], before: _Connected | None) -> Iterable[Step]:
        """Its events, after those of the connection before it, and after the registration by one of these JobMasters."""
        for event in self.events:
            step = Step(event)
            since = before if event.event == REGISTERING else self
            if since is not None and since.owner in traces:
                step.needs.add(("registered", since.key))
            if event.event == REGISTERING:
                step.provides.add(("registering", self.key))
            elif self.owner is None and _concerns(event):
                step.wrong = "the TaskExecutor has no connection"
            yield step


def _connections(events: Iterable[Event], masters: Sequence[tuple[Event, list[Event]]]) -> list[_Connected]:
    """The connections of each TaskExecutor, in their order."""
    owners: dict[Connection, str] = {}
    for started, own in masters:
        present = set[str]()
        for event in own:
            if event.event == "registered":
                if _key(event) in owners:
                    raise InputError(f"{event}: the connection is registered a second time", loc=event.loc)
                owners[_key(event)] = started.trace
                present.add(_key(event)[0])
            elif event.event == "executor_lost":
                if event.args.get("executor") not in present:
                    raise InputError(f"{event}: no such TaskExecutor is registered", loc=event.loc)
                present.remove(event.args["executor"])
    logs: dict[tuple[str, int], list[Event]] = {}
    for event in events:
        match = _PROCESS.fullmatch(event.process)
        if match and "#" not in event.trace and event.event in EXECUTOR:
            logs.setdefault((match[1], int(match[2])), []).append(event)
    found: dict[Connection, _Connected] = {}
    for (name, incarnation), own in sorted(logs.items()):
        current: _Connected | None = None
        for event in sorted(own, key=lambda e: e.seq):
            if event.event == REGISTERING:
                key = name, incarnation, number(event, "connection")
                if key in found:
                    raise InputError(f"{event}: the connection has begun before", loc=event.loc)
                current = found[key] = _Connected(key, owners.get(key))
            if current is None:
                raise InputError(f"{event} is not after the beginning of a connection", loc=event.loc)
            if event.event == MASTER_LOST:
                is_another = number(event, "connection") != current.key[2]
                if is_another or any(e.event == MASTER_LOST for e in current.events):
                    raise InputError(f"{event}: the connection is {current.key[2]}, which is lost once", loc=event.loc)
            current.events.append(event)
    return [c for c in found.values() if c.owner or any(_concerns(e) or e.event in OF_CLUSTER for e in c.events)]


def _key(registered: Event) -> Connection:
    """The connection that a JobMaster registers."""
    name = registered.args.get("executor")
    if not isinstance(name, str):
        raise InputError(f"{registered} needs the argument 'executor', a text", loc=registered.loc)
    return name, number(registered, "incarnation"), number(registered, "connection")


def _concerns(event: Event) -> bool:
    """Whether an event is about partitions."""
    is_more = event.event not in (REGISTERING, MASTER_LOST, LET_GO) or event.args.get("deleted")
    return bool(is_more and event.event not in OF_CLUSTER)


def _promoted(started: Event) -> list[str]:
    """What a job promotes."""
    return texts(started, "promoted") if "promoted" in started.args else []


def _first_attempt(started: Event) -> int:
    return number(started, "first_attempt") if "first_attempt" in started.args else 0


def _is_after(one: Event, other: Event) -> bool:
    """Whether a JobMaster is after another one in a session."""
    return _first_attempt(one) > _first_attempt(other)


def _datasets(started: Event) -> list[str]:
    """The datasets that a job stores."""
    return [edge.dataset for edge in job_graph(started).edges if edge.exchange.rereadable]


def _expect_datasets(event: Event, names: Container[str]) -> None:
    """Raises `InputError` for an event about a dataset that the job does not store."""
    unknown = next((name for name in _named(event) if name not in names), None)
    if unknown is not None:
        raise InputError(f"{event}: the job stores no dataset {unknown!r}", loc=event.loc)


def _named(event: Event) -> list[str]:
    """The datasets that an event names."""
    named = list[str]()
    if event.event in EXECUTOR:
        for name in (*LISTS, "discarded", "promoted", "refused", "full", "partition"):
            named += [dataset for dataset, *_ in listed(event, name)]
        named += texts(event, "datasets") if "datasets" in event.args else ()
    if event.event in ("partitions_released", "release_received", LOCATED, RELEASED):
        named.append(str(event.args.get("dataset")))
    elif event.event == "partition_lost":
        named.append(str(event.args.get("partition")))
    elif event.event == "partitions_tracked":
        named += [name.rpartition("/")[0] for name in tracked(event)]
    return named


BINDING = RuntimePartitions(FORM)
