"""The binding of the runtime's event logs to region scheduling: the JobMaster's own events of a job are one behaviour.

The tasks of the machine are the operators of the job, its epochs are attempts. What an event records, the operators of a
region, the attempts in its descriptors, the operators that a failure restarts, and the partitions that are released, must be
what the machine has. The machine restarts in one step what the runtime stops first: the log itself shows which operators
have not started again yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

from streamproof.conformance import (
    NUMBER,
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
)
from streamproof_models.failover.graph import JobGraph
from streamproof_models.regions.machine import RegionScheduling
from streamproof_specs.failover.runtime import JOB_STARTED, MISSING, first_attempt, is_eager, job_graph, kept
from streamproof_specs.runtime.logs import JobMasterLogs, jobs
from streamproof_specs.runtime.pipelines import wrong_pipelines
from streamproof_specs.runtime.sessions import reused_attempts
from streamproof_specs.runtime.vocabulary import (
    ATTEMPT,
    ATTEMPTS_READ,
    BY_NUMBER,
    DATASET,
    DATASETS,
    LACKING,
    OF_JOB,
    OPERATOR,
    OPERATORS,
    TITLE,
)

ACTIVE = ("SCHEDULED", "DEPLOYING", "RUNNING")


class ScheduledJob(RegionScheduling):
    """The machine for the job of a log, and for the sets of unavailable partitions that occur in it."""

    name = "regions"

    def __init__(self, graph: JobGraph, lost: Sequence[tuple[str, ...]], **given: Any) -> None:
        self._graph, self._lost = graph, lost
        super().__init__(**given)

    def job_graph(self) -> JobGraph:
        """The recorded one."""
        return self._graph

    def lost_together(self) -> Iterable[tuple[str, ...]]:
        """Those of the log."""
        return self._lost


class RuntimeRegions(JobMasterLogs):
    """Follows the scheduling of every job of the runtime."""

    reads_job_graph = True

    def behaviours(self, name: str, events: list[Event]) -> Plan:
        """One case for each JobMaster of the job. Raises `InputError` for a log that is not the runtime's own."""
        cases = tuple(_case(started, own) for started, own in jobs(events, self.form.events))
        cases = (*cases, *reused_attempts(events), *wrong_pipelines(events))
        return Plan(name, cases, tuple(events), unit="job", nothing="no job has begun")


def _case(started: Event, followed: Sequence[Event]) -> Unit:
    failures = sum(e.event == "region_failed" for e in followed)
    graph = job_graph(started)
    model, rules = _machine(graph, tuple(_lost(graph, followed)), is_eager(started), 1 << failures.bit_length())
    reading = SchedulingEvents(model, first_attempt(started))
    observations = [reading.observation(event) for event in followed]
    task = Task(started.trace, rules.system, (Stream(observations),), grounding=rules.instances)
    return Unit(started.trace, f"regions of {started.trace}", (task,))


def _lost(graph: JobGraph, events: Iterable[Event]) -> Iterable[tuple[str, ...]]:
    """For each failure the partitions that are unavailable: those released and not made again, and the one missed."""
    names = [edge.dataset for edge in graph.edges if edge.exchange.rereadable]
    gone: set[str] = set()
    found: dict[tuple[str, ...], None] = {}
    for event in events:
        if event.event == "region_finished":
            gone.update(texts(event, "released"))
        elif event.event == "region_failed":
            gone.add(str(event.args.get("missing")))
            found[tuple(name for name in names if name in gone)] = None
            again = {*texts(event, "restarts")}
            gone.difference_update(e.dataset for e in graph.edges if e.source in again)
    return found


@lru_cache(maxsize=64)
def _machine(
    graph: JobGraph, lost: tuple[tuple[str, ...], ...], eager: bool, failures: int
) -> tuple[ScheduledJob, Rules]:
    model = ScheduledJob(graph, lost, eager=eager, failures=failures, inline=len(graph.vertices))
    return model, Rules(model)


def texts(event: Event, name: str) -> list[str]:
    """An argument that is a list of texts."""
    value = event.args.get(name)
    if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
        raise InputError(f"{event} needs the argument {name!r}, a list of texts", loc=event.loc)
    return value


def numbers(event: Event, name: str) -> dict[str, int]:
    """An argument that has numbers by text."""
    value = event.args.get(name)
    if not isinstance(value, dict) or not all(type(v) is int for v in value.values()):
        raise InputError(f"{event} needs the argument {name!r}, attempts by partition", loc=event.loc)
    return value


class SchedulingEvents:
    """The meaning of the events of a job, in their order."""

    def __init__(self, model: ScheduledJob, first: int) -> None:
        """`first`: the attempt that the machine calls 0."""
        self.model, self.first = model, first
        self.attempts = dict.fromkeys(model.tasks, first)
        self.restarting: dict[str, int] = {}
        """Operators that a failure restarts and that have not started again, with the newest decision."""
        self.decisions = 0
        self.gone: set[str] = set()
        self.over = ""
        self._start()

    def _start(self) -> None:
        self.before: list[Constraint] = []
        self.after: list[Constraint] = []
        self.wrong: str | None = None

    def observation(self, event: Event) -> Observation:
        """The moves and constraints of the next event, which may contradict earlier ones."""
        self._start()
        if self.over:
            self.wrong = f"the job is over since {self.over}"
        moves = tuple(_FORM.read(event, self, event))
        return Observation(event, (moves,), tuple(self.after), tuple(self.before), self.wrong)

    # --- what is recorded

    def tasks(self, event: Event) -> list[str]:
        """The operators of an event."""
        return [self.known(event, task, self.model.tasks, "operator") for task in texts(event, "tasks")]

    def known(self, event: Event, name: Any, names: Iterable[str], kind: str) -> str:
        """A name of the job."""
        if not isinstance(name, str) or name not in names:
            raise InputError(f"{event}: the job has no {kind} {name!r}", loc=event.loc)
        return name

    def region(self, event: Event) -> str:
        """The region whose operators are all those of the event."""
        tasks = self.tasks(event)
        name = self.model.region_of[tasks[0]] if tasks else next(iter(self.model.regions))
        self.expect("operators of the region", sorted(tasks), sorted(self.model.regions[name]))
        return name

    def expect(self, text: str, recorded: Any, expected: Any) -> None:
        """The log contradicts its job graph, or itself."""
        if recorded != expected:
            self.wrong = self.wrong or f"{text}: {expected} is expected, the log has {recorded}"

    def agrees(self, text: str, recorded: Any, read: Callable[[StateReader], Any], *, before: bool = False) -> None:
        """A recorded value is the machine's."""
        (self.before if before else self.after).append(
            Constraint(
                lambda look: f"{text}: {read(look)} in the model, {recorded} in the log",
                lambda look: read(look) == recorded,
            )
        )

    def _gates(self, tasks: Iterable[str]) -> list[tuple[str, str]]:
        """The inputs of operators from other regions."""
        return [(t, g) for t, g in self.model.gates if t in tasks and self.model.crosses(g)]

    # --- events

    def scheduled(self, event: Event) -> Iterable[Move]:
        """A region, as a whole, when its inputs are finished, under the number of its attempt."""
        region = self.region(event)
        for task in self.model.regions[region]:
            self.expect(f"attempt of {task}", event.args.get("attempt"), self.attempts[task])
            if task in self.restarting:
                self.wrong = self.wrong or f"{task} has not started again after decision {self.restarting[task]}"
        for group in self.model.groups:
            if self.model.crosses(group) and self.model.region_of[self.model.producers[group][0]] == region:
                self.agrees(f"attempt that makes {group}", event.args.get("attempt"), self._epoch(group))
        yield Move("schedule", {"r": region})

    def deployed(self, event: Event) -> Iterable[Move]:
        """All tasks of a region, with the descriptors of the datasets that are finished."""
        region = self.region(event)
        tasks = self.model.regions[region]
        for task in tasks:
            yield Move("deploy", {"t": task, "x": 0})
        if self.model.eager:
            yield from self._updates(event, tasks)
        self._described(event, self._gates(tasks))

    def updated(self, event: Event) -> Iterable[Move]:
        """Readers that were deployed before their dataset was finished."""
        tasks = self.tasks(event)
        yield from self._updates(event, tasks)
        recorded = numbers(event, "descriptors")
        gates = [(t, g) for t, g in self._gates(tasks) if g in recorded]
        self.expect("readers of these datasets", sorted(tasks), sorted({t for t, _ in gates}))
        self._described(event, gates)

    def _updates(self, event: Event, tasks: Iterable[str]) -> Iterable[Move]:
        recorded = numbers(event, "descriptors")
        for gate in self._gates(tasks):
            if gate[1] in recorded:
                yield Move("update_partitions", {"gate": gate})

    def _described(self, event: Event, gates: Sequence[tuple[str, str]]) -> None:
        self.agrees(
            "attempts in the descriptors",
            numbers(event, "descriptors"),
            lambda look: {gate[1]: sent for gate in gates if (sent := self._sent(look, gate)) is not None},
        )

    def running(self, event: Event) -> Iterable[Move]:
        """All tasks of a region; they read what their descriptors say."""
        tasks, reads = self.model.regions[self.region(event)], numbers(event, "reads")
        gates = self._gates(tasks)
        for name in reads:
            self.known(event, name, [g for _, g in gates], "input of the region")
        for gate in gates:
            if gate[1] in reads:
                self._reads(gate, reads[gate[1]])
        return (Move("run", {"t": task}) for task in tasks)

    def _reads(self, gate: tuple[str, str], attempt: int) -> None:
        self.agrees(f"attempt of {gate[1]} that {gate[0]} reads", attempt, lambda look: self._sent(look, gate))

    def _epoch(self, group: str) -> Callable[[StateReader], Any]:
        return lambda look: look("epoch", group) + self.first

    def _sent(self, look: StateReader, gate: tuple[str, str]) -> Any:
        """The attempt in the descriptor that was sent for an input; None if none was."""
        return look("descriptor", gate) + self.first if look("gate", gate) != "NONE" else None

    def finished(self, event: Event) -> Iterable[Move]:
        """All tasks of a region, in the order of the job; its inputs, which nobody else reads, are released."""
        tasks, released = self.model.regions[self.region(event)], texts(event, "released")
        inputs = {g for _, g in self._gates(tasks)} - kept(self.model.job_graph())
        self.expect("released partitions", sorted(released), sorted(inputs))
        self.gone.update(released)
        for task in tasks:
            yield Move("finish", {"t": task})
        for group in released:
            yield Move("release", {"g": group})

    def lost(self, event: Event) -> Iterable[Move]:
        """A stored partition; nobody misses it yet."""
        name = self.known(event, event.args.get("partition"), self.model.partitions, "partition")
        producer = self.model.partitions[name]
        if producer not in self.restarting:
            self.agrees(f"{producer} has stored {name}", "FINISHED", _reader("status", producer), before=True)
        self.expect(f"{name} was released", name in self.gone, False)
        return ()

    def failed(self, event: Event) -> Iterable[Move]:
        """A region fails, perhaps for want of a partition: what starts again."""
        task = self.known(event, event.args.get("task"), self.model.tasks, "operator")
        missing = event.args.get("missing")
        if missing is not None:
            self.gone.add(self.known(event, missing, self.model.partitions, "partition"))
        region, lost = self.model.region_of[task], [p for p in self.model.partitions if p in self.gone]
        again = self.model.tasks_to_restart(region, ", ".join(lost) or "none")
        recorded = [self.known(event, name, self.model.tasks, "operator") for name in texts(event, "restarts")]
        whole = (t for r in {self.model.region_of[t] for t in recorded} for t in self.model.regions[r])
        self.expect("operators of whole regions", sorted(recorded), sorted(whole))
        pending = {*self.restarting}
        # Which void outputs a later decision makes again is a matter of failover: those operators are CREATED here.
        self.agrees(
            "operators that start again",
            sorted({*recorded} - (pending - {*again})),
            lambda look: sorted(t for t in again if t in pending or look("status", t) != "CREATED"),
            before=True,
        )
        self.restarting.update(dict.fromkeys(recorded, self.decisions))
        self.decisions += 1
        self.gone.difference_update(p for p, producer in self.model.partitions.items() if producer in recorded)
        yield Move("fail", {"r": region, "lost": ", ".join(lost) or "none"})

    def canceled(self, event: Event) -> Iterable[Move]:
        """Tasks of a region that is to start again have stopped."""
        for task in self.tasks(event):
            self.expect(f"{task} starts again", task in self.restarting, True)
        return ()

    def restarted(self, event: Event) -> Iterable[Move]:
        """The operators of a decision that no newer one has taken over start again: they can be scheduled."""
        number, tasks = event.args.get("decision"), self.tasks(event)
        self.expect(
            f"operators of decision {number}",
            sorted(tasks),
            sorted(t for t, n in self.restarting.items() if n == number),
        )
        for task in tasks:
            self.restarting.pop(task, None)
            self.attempts[task] += 1
            self.agrees(f"{task} can be scheduled", "CREATED", _reader("status", task))
        return ()

    def complete(self, event: Event) -> Iterable[Move]:
        """All regions have finished for good."""
        self.over = str(event)
        self.expect("operators that have not started again", sorted(self.restarting), [])
        for task in self.model.tasks:
            self.agrees(task, "FINISHED", _reader("status", task), before=True)
        return ()

    def given_up(self, event: Event) -> Iterable[Move]:
        """A region fails, and the restart strategy allows no more."""
        self.over = str(event)
        task = self.known(event, event.args.get("task"), self.model.tasks, "operator")
        self.agrees(f"{task} is at work", True, lambda look: look("status", task) in ACTIVE, before=True)
        return ()


def _reader(name: str, key: Any) -> Callable[[StateReader], Any]:
    return lambda look: look(name, key)


_DESCRIPTORS = ATTEMPTS_READ("the attempts in the descriptors of its inputs")
_FORM = LogForm(
    TITLE,
    {
        "job_started": EventForm(None, OF_JOB, args=JOB_STARTED, meaning="The job begins at this JobMaster."),
        "region_scheduled": EventForm(
            SchedulingEvents.scheduled, OF_JOB, ("schedule",), {"tasks": OPERATORS, "attempt": ATTEMPT}
        ),
        "region_deployed": EventForm(
            SchedulingEvents.deployed,
            OF_JOB,
            ("deploy", "update_partitions"),
            {"tasks": OPERATORS, "descriptors": _DESCRIPTORS},
        ),
        "region_updated": EventForm(
            SchedulingEvents.updated, OF_JOB, ("update_partitions",), {"tasks": OPERATORS, "descriptors": _DESCRIPTORS}
        ),
        "region_running": EventForm(
            SchedulingEvents.running,
            OF_JOB,
            ("run",),
            {"tasks": OPERATORS, "reads": ATTEMPTS_READ("the attempts that it reads")},
        ),
        "region_finished": EventForm(
            SchedulingEvents.finished, OF_JOB, ("finish", "release"), {"tasks": OPERATORS, "released": DATASETS}
        ),
        "partition_lost": EventForm(SchedulingEvents.lost, OF_JOB, args={"partition": DATASET}),
        "region_failed": EventForm(
            SchedulingEvents.failed,
            OF_JOB,
            ("fail",),
            {"task": OPERATOR, "restarts": OPERATORS, "missing": MISSING},
        ),
        "region_canceled": EventForm(SchedulingEvents.canceled, OF_JOB, args={"tasks": OPERATORS}),
        "restarted": EventForm(
            SchedulingEvents.restarted,
            OF_JOB,
            args={"decision": NUMBER("the number of the failure, from 0, that restarts them"), "tasks": OPERATORS},
        ),
        "job_finished": EventForm(SchedulingEvents.complete, OF_JOB),
        "job_failed": EventForm(SchedulingEvents.given_up, OF_JOB, args={"task": OPERATOR}),
    },
    (BY_NUMBER,),
    LACKING,
)


BINDING = RuntimeRegions(_FORM)
