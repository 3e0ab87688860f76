"""The binding of the runtime's event logs to the failover machine: the JobMaster's own events of a job are one behaviour.

The tasks of the machine are the operators of the job. What an event records, the attempt of a region, the attempts that it
reads, the regions that a failure restarts, those that start again, and the partitions that are released, must be what the
machine has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

from streamproof import System
from streamproof.conformance import (
    Constraint,
    Event,
    InputError,
    Move,
    Observation,
    Plan,
    StateReader,
    Stream,
    Task,
    Unit,
    compile_model,
)
from streamproof_models.failover.graph import Edge, Exchange, JobGraph, JobGraphError, Pattern, Vertex
from streamproof_models.failover.machine import Failover
from streamproof_models.failover.variants import EagerDeployment
from streamproof_specs.runtime.logs import JobMasterLogs, jobs
from streamproof_specs.runtime.sessions import reused_attempts

MOST = 200
"""Largest number of operators of a job."""
FAILURES = ("region_failed", "job_failed")


def kept(graph: JobGraph) -> frozenset[str]:
    """The datasets of caching exchanges."""
    return frozenset(edge.dataset for edge in graph.edges if edge.exchange is Exchange.HYBRID_FULL)


class RuntimeJob(Failover):
    """The machine for the job of a log, whose regions are scheduled when their inputs are there."""

    name = "failover"

    def __init__(self, graph: JobGraph, **given: Any) -> None:
        self._graph = graph
        super().__init__(**given)

    def job_graph(self) -> JobGraph:
        """The recorded one."""
        return self._graph

    def releasable(self, p: Any) -> Any:
        """Partitions of caching exchanges are kept until the job is over, as in the variant `kept-results`."""
        return () if p in kept(self._graph) else super().releasable(p)


class EagerRuntimeJob(RuntimeJob, EagerDeployment):
    """The machine for the job of a log, whose regions are scheduled with the producers of their inputs."""


class RuntimeFailover(JobMasterLogs):
    """Follows the JobMasters of every job of the runtime through the failover machine."""

    reads_job_graph = True

    def behaviours(self, name: str, events: list[Event]) -> Plan:
        """One case for each JobMaster of the job. Raises `InputError` for a log that is not the runtime's own."""
        cases = tuple(_case(started, own) for started, own in jobs(events, _MEANING))
        cases = (*cases, *reused_attempts(events))
        return Plan(name, cases, tuple(events), unit="job", nothing="no job has begun")


def _case(started: Event, followed: Sequence[Event]) -> Unit:
    failures = sum(e.event in FAILURES and "missing" not in e.args for e in followed)
    losses = sum(e.event == "partition_lost" for e in followed)
    decisions = sum(e.event == "region_failed" for e in followed)
    model, system = _machine(job_graph(started), is_eager(started), failures, losses, decisions)
    observations, decided = [], 0
    running: set[str] = set()
    for event in followed:
        decided += event.event == "region_failed"
        reading = _Reading(model, event, decided - 1, running, first_attempt(started))
        observations.append(reading.observation())
        if event.event == "region_running":
            running.update(reading.tasks())
        elif event.event == "region_scheduled":
            running.difference_update(reading.tasks())
    title = f"failover of {started.trace}"
    return Unit(started.trace, title, (Task(started.trace, system, (Stream(observations),)),))


@lru_cache(maxsize=64)
def _machine(graph: JobGraph, eager: bool, failures: int, losses: int, decisions: int) -> tuple[RuntimeJob, System]:
    kind: type[RuntimeJob] = EagerRuntimeJob if eager else RuntimeJob
    model = kind(graph, failures=failures, losses=losses, restarts=decisions)
    return model, compile_model(model, without_properties=True)


def is_eager(started: Event) -> bool:
    """Whether regions are scheduled with their producers. Raises `InputError` for another way than lazy or eager."""
    value = started.args.get("scheduling", "LAZY")
    if value not in ("LAZY", "EAGER"):
        raise InputError(f"{started}: regions are scheduled LAZY or EAGER, not {value!r}", loc=started.loc)
    return bool(value == "EAGER")


def first_attempt(started: Event) -> int:
    """The first attempt of each region: 0, unless the JobMaster replaces another one."""
    value = started.args.get("first_attempt", 0)
    if type(value) is not int:
        raise InputError(f"{started} needs the argument 'first_attempt', a number", loc=started.loc)
    return value


def job_graph(started: Event) -> JobGraph:
    """The recorded job graph. Raises `InputError` for one that is none, and for a very large one."""
    try:
        operators = [Vertex(str(name)) for name in started.args["operators"]]
        edges = [
            Edge(source, target, Pattern.POINTWISE, Exchange(kind), f"{source}>{target}")
            for source, target, kind in started.args["exchanges"]
        ]
        if len(operators) > MOST:
            raise InputError(f"the job has {len(operators)} operators; up to {MOST} can be followed", loc=started.loc)
        return JobGraph(tuple(operators), tuple(edges))
    except (KeyError, TypeError, ValueError, JobGraphError) as error:
        raise InputError(f"{started} has no job graph that can be followed: {error}", loc=started.loc) from None


class _Reading:
    """The meaning of one event."""

    def __init__(self, model: RuntimeJob, event: Event, decision: int, running: set[str], first: int) -> None:
        """`running`: the operators of regions that have begun to run; `first`: the attempt that the machine calls 0."""
        self.model, self.event, self.decision, self.at_work, self.first = model, event, decision, running, first
        self.before: list[Constraint] = []
        self.after: list[Constraint] = []

    def observation(self) -> Observation:
        """Its moves and constraints."""
        moves = tuple(_MEANING[self.event.event](self))
        return Observation(self.event, (moves,), tuple(self.after), tuple(self.before))

    # --- arguments

    def texts(self, name: str) -> list[str]:
        """An argument that is a list of texts."""
        value = self.event.args.get(name)
        if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
            raise InputError(f"{self.event} needs the argument {name!r}, a list of texts", loc=self.event.loc)
        return value

    def tasks(self) -> list[str]:
        """The operators of an event."""
        found = self.texts("tasks")
        return [self.known(task, self.model.tasks, "operator") for task in found]

    def known(self, name: Any, names: Iterable[str], kind: str) -> str:
        """A name of the job."""
        if name not in names or not isinstance(name, str):
            raise InputError(f"{self.event}: the job has no {kind} {name!r}", loc=self.event.loc)
        return name

    def agrees(self, text: str, recorded: Any, read: Callable[[StateReader], Any], *, before: bool = False) -> None:
        """A recorded value is the machine's."""
        (self.before if before else self.after).append(
            Constraint(
                lambda look: f"{text}: {read(look)} in the model, {recorded} in the log",
                lambda look: read(look) == recorded,
            )
        )

    def _attempt(self, name: str, key: str) -> Callable[[StateReader], Any]:
        def read(look: StateReader) -> Any:
            found = look(name, key)
            return None if found is None else found + self.first

        return read

    # --- events

    def scheduled(self) -> Iterable[Move]:
        """A region, as a whole, under its attempt number."""
        tasks = self.tasks()
        region = self.model.region_of[tasks[0]] if tasks else ""
        members = sorted(self.model.regions.get(region, ()))
        self.agrees("operators of the region", sorted(tasks), lambda _: members, before=True)
        yield Move("schedule", {"r": region})
        for task in tasks:
            self.agrees(f"attempt of {task}", self.event.args.get("attempt"), self._attempt("attempt", task))

    def running(self) -> Iterable[Move]:
        """All tasks of a region begin to read."""
        tasks, reads = self.tasks(), self.event.args.get("reads")
        if not isinstance(reads, dict):
            raise InputError(f"{self.event} needs the argument 'reads', attempts by partition", loc=self.event.loc)
        for task in tasks:
            yield Move("run", {"t": task})
            for partition in self.model.reads[task]:
                self.agrees(
                    f"attempt of {partition} that {task} reads",
                    reads.get(partition),
                    self._attempt("read", f"{task}<{partition}"),
                )

    def finished(self) -> Iterable[Move]:
        """All tasks of a region, in the order of the job; inputs that nobody needs are released."""
        tasks, released = self.tasks(), sorted(self.texts("released"))
        for task in self.model.tasks:
            if task in tasks:
                yield Move("finish", {"t": task})
        inputs = sorted({p for task in tasks for p in self.model.reads[task]})
        self.agrees(
            "released partitions",
            released,
            lambda look: [p for p in inputs if look("partition", p) == "RELEASED"],
        )

    def lost(self) -> Iterable[Move]:
        """A stored partition is lost."""
        yield Move("lose", {"p": self.known(self.event.args.get("partition"), self.model.partitions, "partition")})

    def failed(self) -> Iterable[Move]:
        """A task has failed, perhaps for want of a partition: the regions that are to start again."""
        task = self.known(self.event.args.get("task"), self.model.tasks, "operator")
        missing = self.event.args.get("missing")
        if missing is None:
            yield Move("fail", {"t": task})
        else:
            yield from self.reads_in_vain(task)
            yield Move("miss", {"t": task, "p": self.known(missing, self.model.partitions, "partition")})
        decision = self.decision
        self.agrees(
            "restarted by this failure",
            sorted(self.texts("restarts")),
            lambda look: sorted(t for t in self.model.tasks if self._is_in(look, t, decision)),
        )

    def reads_in_vain(self, task: str) -> Iterable[Move]:
        """A partition can be missed while the region is deployed: its reader is at work before the others."""
        if task not in self.at_work:
            yield Move("run", {"t": task})

    def _is_in(self, look: StateReader, task: str, decision: int) -> bool:
        chosen: bool = task in look("restarting", decision)
        return chosen

    def canceled(self) -> Iterable[Move]:
        """All tasks of a region but the failed one have stopped."""
        tasks = self.tasks()
        for task in tasks:
            yield Move("cancel", {"t": task})

    def restarted(self) -> Iterable[Move]:
        """The tasks of a decision that no newer one has taken over start again."""
        number, tasks = self.event.args.get("decision"), sorted(self.tasks())
        if not isinstance(number, int) or not 0 <= number <= self.decision:
            raise InputError(f"{self.event}: there is no decision {number!r}", loc=self.event.loc)
        self.agrees(
            "tasks that start again",
            tasks,
            lambda look: sorted(
                t for t in self.model.tasks if self._is_in(look, t, number) and look("version", t) == number
            ),
            before=True,
        )
        yield Move("restart", {"k": number})

    def over(self) -> Iterable[Move]:
        """The job has finished."""
        yield Move("complete", {})

    def given_up(self) -> Iterable[Move]:
        """The restart strategy allows no more."""
        task = self.known(self.event.args.get("task"), self.model.tasks, "operator")
        if "missing" in self.event.args:
            yield from self.reads_in_vain(task)
        yield Move("give_up", {"t": task})


_MEANING: dict[str, Callable[[_Reading], Iterable[Move]]] = {
    "region_scheduled": _Reading.scheduled,
    "region_running": _Reading.running,
    "region_finished": _Reading.finished,
    "partition_lost": _Reading.lost,
    "region_failed": _Reading.failed,
    "region_canceled": _Reading.canceled,
    "restarted": _Reading.restarted,
    "job_finished": _Reading.over,
    "job_failed": _Reading.given_up,
}


BINDING = RuntimeFailover()
