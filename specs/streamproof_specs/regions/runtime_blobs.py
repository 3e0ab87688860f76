"""The binding of the runtime's event logs to offloaded task descriptors: the blobs of each JobMaster are one behaviour.

The contents of the machine are those of the blobs, its TaskExecutors the connections to them, each of which begins with an
empty cache. What a TaskExecutor does is merged as early as it can be, after the deployment that it belongs to: nothing that
the JobMaster does later can be a cause of it, and a JobMaster may give up an attempt before a TaskExecutor hears of that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from streamproof.conformance import (
    NUMBER,
    TEXT,
    TEXTS,
    TRUTH,
    Constraint,
    Event,
    EventForm,
    InputError,
    LogForm,
    Move,
    Observation,
    Plan,
    Rules,
    StateReader,
    Stream,
    Task,
    Unit,
    may_have_event,
    up_to,
)
from streamproof_models.regions.task_descriptors import TaskDescriptors
from streamproof_specs.runtime.logs import JobMasterLogs, jobs, parts
from streamproof_specs.runtime.vocabulary import (
    ATTEMPT,
    BY_CAUSE,
    BY_NUMBER,
    EXECUTORS,
    LACKING,
    OF_EXECUTOR,
    OF_JOB,
    OPERATORS,
    TASK_EXECUTOR,
    TITLE,
)

OFFLOADED, RELEASED = "descriptor_offloaded", "descriptor_released"
LOADED, MISSING, DROPPED = "descriptor_loaded", "descriptor_missing", "blobs_dropped"
MOST = 10_000
"""Largest number of blobs in a cache."""

Attempt = tuple[int, int]
"""A region and the number of its attempt."""
Connection = tuple[str, int]
"""A process of a TaskExecutor, and the number of its connection to the JobMaster."""


class RecordedDescriptors(TaskDescriptors):
    """The machine for the deployments of a log, each on its own TaskExecutors."""

    name = "task_descriptors"

    def __init__(self, placed: Sequence[Sequence[int]], **given: Any) -> None:
        """`placed`: the TaskExecutors of each deployment."""
        self._placed = placed
        super().__init__(deployments=len(placed), **given)

    def executors_of(self, d: Any) -> Any:
        """The recorded ones."""
        return self._placed[d]


class RuntimeDescriptors(JobMasterLogs):
    """Follows the blobs of every JobMaster of a log."""

    def recognises(self, path: Path) -> bool:
        """Whether it is a log of the runtime, and a descriptor of one of its runs is offloaded."""
        return self.reads(path) and any(may_have_event(log, OFFLOADED) for run in self.runs(path) for log in parts(run))

    def behaviours(self, name: str, events: list[Event]) -> Plan:
        """One case for each JobMaster with blobs. Raises `InputError` for a log that is not the runtime's own."""
        theirs = sorted((e for e in events if e.event in (LOADED, MISSING, DROPPED)), key=lambda e: (e.process, e.seq))
        masters = [_Master(started, own) for started, own in jobs(events, self.form.events)]
        masters = [master for master in masters if master.attempts]
        for _, of in groupby(theirs, key=lambda e: e.process):
            last = None
            for event in of:
                found = [m for m in masters if _attempt(event) in m.attempts] if event.event != DROPPED else [last]
                if not found or found[0] is None:
                    raise InputError(f"{event}: no JobMaster has offloaded such a descriptor", loc=event.loc)
                last = found[0]
                last.add(event)
        return Plan(
            name,
            tuple(master.case() for master in masters),
            tuple(events),
            unit="job",
            nothing="no descriptor was a blob",
        )


def _attempt(event: Event) -> Attempt:
    return event.args["region"], event.args["attempt"]


class _Master:
    """The blobs of one JobMaster."""

    def __init__(self, started: Event, own: Sequence[Event]) -> None:
        self.started, self.own = started, [event for event in own if event is not started]
        self.attempts: dict[Attempt, int] = {}
        """The deployments by region and attempt."""
        self.contents: dict[str, int] = {}
        self._theirs: dict[Connection, list[Event]] = {}
        self._placed: list[list[Connection]] = []
        self._connections: dict[Connection, int] = {}
        now: dict[str, Connection] = {}
        for event in self.own:
            args = event.args
            if event.event == "registered":
                now[args["executor"]] = f"{args['executor']}.{args['incarnation']}", args["connection"]
            elif event.event == OFFLOADED:
                self.contents.setdefault(args["content"], len(self.contents))
                if self.attempts.setdefault(_attempt(event), len(self._placed)) < len(self._placed):
                    raise InputError(f"{event}: this attempt was deployed before", loc=event.loc)
                unknown = [name for name in args["executors"] if name not in now]
                if unknown:
                    raise InputError(f"{event}: {unknown[0]} has not registered", loc=event.loc)
                self._placed.append([now[name] for name in args["executors"]])
        for connection in (c for of in self._placed for c in of):
            self._connections.setdefault(connection, len(self._connections))

    def add(self, event: Event) -> None:
        """What a TaskExecutor has done, in its order."""
        self._theirs.setdefault((event.process, event.args["connection"]), []).append(event)

    def case(self) -> Unit:
        """The behaviour."""
        rooms = {e.args["room"] for of in self._theirs.values() for e in of if e.event == LOADED}
        model = RecordedDescriptors(
            [[self._connections[c] for c in of] for of in self._placed],
            executors=max(1, len(self._connections)),
            contents=len(self.contents),
            cache=max(rooms, default=1),
            failures=len(self._placed),
        )
        rules = Rules(model)
        reading = _Reading(model, self.attempts, self.contents, self._connections)
        observed = [reading.observation(event) for event in self._merged()]
        task = Task(self.started.trace, rules.system, (Stream(observed),), grounding=rules.instances)
        return Unit(self.started.trace, f"descriptors of {self.started.trace}", (task,))

    def _merged(self) -> Iterator[Event]:
        """The events of the JobMaster, and those of each connection as early as possible."""
        waiting = {connection: [*of] for connection, of in self._theirs.items()}
        begun: set[Attempt] = set()
        for event in self.own:
            yield event
            if event.event == OFFLOADED:
                begun.add(_attempt(event))
                for of in waiting.values():
                    while of and (of[0].event == DROPPED or _attempt(of[0]) in begun):
                        yield of.pop(0)


class _Reading:
    """The meaning of the events of one JobMaster and its TaskExecutors, in a merged order."""

    def __init__(
        self,
        model: RecordedDescriptors,
        attempts: Mapping[Attempt, int],
        contents: Mapping[str, int],
        connections: Mapping[Connection, int],
    ) -> None:
        self.model, self.attempts, self.contents, self.connections = model, attempts, contents, connections
        self.keyed: dict[str, str] = {}
        """The content of each key."""
        self.keys: dict[int, str] = {}
        """The key of each deployment."""
        self.current: dict[tuple[str, ...], int] = {}
        """The deployment of the operators of a region."""
        self.ended: set[int] = set()
        self.closed: set[Connection] = set()
        self._start()

    def _start(self) -> None:
        self.before: list[Constraint] = []
        self.after: list[Constraint] = []
        self.wrong: str | None = None

    def observation(self, event: Event) -> Observation:
        """The moves and constraints of the next event."""
        self._start()
        moves = tuple(_FORM.read(event, self, event))
        return Observation(event, (moves,), tuple(self.after), tuple(self.before), self.wrong)

    # --- the JobMaster

    def offloaded(self, event: Event) -> Iterable[Move]:
        """An attempt is deployed with the key of a blob."""
        d, args = self.attempts[_attempt(event)], event.args
        self.keyed[args["key"]] = args["content"]
        self.keys[d] = args["key"]
        self.current[tuple(sorted(args["tasks"]))] = d
        return (Move("deploy", {"d": d, "c": self.contents[args["content"]]}),)

    def released(self, event: Event) -> Iterable[Move]:
        """An attempt has ended, and perhaps nobody uses its blob any more."""
        d = self.attempts.get(_attempt(event))
        if d is None or d in self.ended or d not in self.keys:
            self.wrong = "no deployment of this attempt uses a blob"
            return ()
        self.ended.add(d)
        key, deleted = self.keys[d], event.args["deleted"]
        if not {*deleted} <= {key}:
            self.wrong = f"the blob of the attempt is {key}, and {', '.join(deleted)} is deleted"
        c = self.contents[self.keyed[key]]
        self._agrees("the blob is deleted", bool(deleted), lambda look: look("server", c) is None)
        return (Move("finish" if event.args["finished"] else "cancel", {"d": d}),)

    def running(self, event: Event) -> Iterable[Move]:
        """Every TaskExecutor has the descriptor."""
        d = self.current.get(tuple(sorted(event.args["tasks"])))
        if d is not None and d not in self.ended:
            for x in self.model.executors_of(d):
                self._agrees(f"TaskExecutor {x} has its descriptor", True, _has_read(x, d), before=True)
        return ()

    def over(self, event: Event) -> Iterable[Move]:
        """The job has ended, and with it all attempts."""
        return (Move("end_job", {}),)

    # --- TaskExecutors

    def loaded(self, event: Event) -> Iterable[Move]:
        """A TaskExecutor reads a descriptor, from its cache or just fetched."""
        d, args = self.attempts[_attempt(event)], event.args
        connection = event.process, args["connection"]
        x = self.connections.get(connection)
        if x is None or connection in self.closed or x not in self.model.executors_of(d):
            self.wrong = "the attempt was not deployed on this connection"
            return ()
        if args["key"] != self.keys[d]:
            self.wrong = f"the key of its descriptor is {self.keys[d]}"
        self._agrees("room of the cache", args["room"], lambda look: self.model.cache)
        c = self.contents.get(args["content"], -1)
        if c < 0:
            self.wrong = "the JobMaster has offloaded no descriptor with this content"
            return ()
        self._agrees(
            "content of the descriptor", args["content"], lambda look: self._name(look("content", d)), before=True
        )
        self._agrees("it was in the cache", not args["fetched"], lambda look: look("place", x)[c] > 0, before=True)
        recorded = [self.keyed.get(key) for key in args["cached"]]
        self._agrees("the cache", recorded, lambda look: self._cached(look, x))
        return (Move("load", {"x": x, "d": d}),)

    def missing(self, event: Event) -> Iterable[Move]:
        """A TaskExecutor needs what the JobMaster has deleted."""
        self.wrong = "an attempt that has not ended needs this descriptor"
        return ()

    def dropped(self, event: Event) -> Iterable[Move]:
        """A connection has ended, and with it the cache."""
        connection = event.process, event.args["connection"]
        x = self.connections.get(connection)
        if x is None or connection in self.closed:
            self.wrong = "nothing was fetched on this connection"
            return ()
        self.closed.add(connection)
        recorded = [self.keyed.get(key) for key in event.args["keys"]]
        self._agrees("the cache", recorded, lambda look: self._cached(look, x), before=True)
        return ()

    # --- values

    def _name(self, c: Any) -> str:
        return next(name for name, at in self.contents.items() if at == c)

    def _cached(self, look: StateReader, x: int) -> list[str]:
        places = {c: look("place", x)[c] for c in self.model.keys}
        return [self._name(c) for c in sorted(places, key=lambda c: places[c]) if places[c]]

    def _agrees(self, text: str, recorded: Any, read: Any, *, before: bool = False) -> None:
        (self.before if before else self.after).append(
            Constraint(
                lambda look: f"{text}: {read(look)} in the model, {recorded} in the log",
                lambda look: read(look) == recorded,
            )
        )


def _has_read(x: int, d: int) -> Any:
    return lambda look: look("read", x)[d] is not None


_REGION = NUMBER("the region")
_KEY = TEXT("the key of the blob")
_CONTENT = TEXT("a digest of the descriptor")
_CONNECTION = NUMBER("the connection to the JobMaster")
_OF_ATTEMPT = {"region": _REGION, "attempt": ATTEMPT, "connection": _CONNECTION, "key": _KEY}
_FORM = LogForm(
    TITLE,
    {
        "job_started": EventForm(None, OF_JOB),
        "registered": EventForm(
            None,
            OF_JOB,
            args={"executor": TASK_EXECUTOR, "incarnation": NUMBER("processes before"), "connection": _CONNECTION},
        ),
        OFFLOADED: EventForm(
            _Reading.offloaded,
            OF_JOB,
            ("deploy",),
            {
                "region": _REGION,
                "tasks": OPERATORS,
                "attempt": ATTEMPT,
                "key": _KEY,
                "content": _CONTENT,
                "executors": EXECUTORS,
            },
            meaning="An attempt is deployed with the key of its descriptor.",
        ),
        RELEASED: EventForm(
            _Reading.released,
            OF_JOB,
            ("finish", "cancel"),
            {
                "region": _REGION,
                "attempt": ATTEMPT,
                "finished": TRUTH("whether it has finished"),
                "deleted": TEXTS("the blob, if it is deleted"),
            },
            meaning="An attempt has ended.",
        ),
        "region_running": EventForm(_Reading.running, OF_JOB, args={"tasks": OPERATORS}),
        "job_finished": EventForm(_Reading.over, OF_JOB, ("end_job",)),
        "job_failed": EventForm(_Reading.over, OF_JOB, ("end_job",)),
        LOADED: EventForm(
            _Reading.loaded,
            OF_EXECUTOR,
            ("load",),
            {
                **_OF_ATTEMPT,
                "content": _CONTENT,
                "fetched": TRUTH("whether it was just fetched"),
                "cached": TEXTS("the blobs in the cache, the one used last first"),
                "room": up_to(MOST, 1)("the largest number of blobs in the cache"),
            },
            meaning="A TaskExecutor reads a descriptor.",
        ),
        MISSING: EventForm(_Reading.missing, OF_EXECUTOR, args=_OF_ATTEMPT, meaning="The JobMaster has no such blob."),
        DROPPED: EventForm(
            _Reading.dropped,
            OF_EXECUTOR,
            args={"connection": _CONNECTION, "keys": TEXTS("the blobs in the cache")},
            meaning="A TaskExecutor has lost its JobMaster.",
        ),
    },
    (BY_NUMBER, BY_CAUSE),
    LACKING,
)

BINDING = RuntimeDescriptors(_FORM)
