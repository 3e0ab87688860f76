"""The binding of the runtime's event logs to the failover machine: the JobMaster's own events of a job are one behaviour.

The tasks of the machine are the operators of the job. What an event records, the attempt of a region, the attempts that it
reads, the regions that a failure restarts, those that start again, and the partitions that are released, must be what the
machine has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

from streamproof import System, action, require
from streamproof.conformance import (
    ANYTHING,
    INTEGER,
    NUMBER,
    TEXT,
    TEXTS,
    Constraint,
    Event,
    EventForm,
    InputError,
    LogForm,
    Move,
    Observation,
    Plan,
    StateReader,
    Stream,
    Task,
    Unit,
    compile_model,
    list_of,
    one_of,
)
from streamproof_models.failover.budgets import FailureBudgets
from streamproof_models.failover.graph import Edge, Exchange, JobGraph, JobGraphError, Pattern, Vertex
from streamproof_models.failover.machine import Failover
from streamproof_models.failover.variants import EagerDeployment
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

MOST = 200
"""Largest number of operators of a job."""
FAILURES = ("region_failed", "job_failed")
BUDGETS = ("max_failures_per_task", "max_failures")
"""Failures of an operator, and of all together, that a job survives."""


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


class BudgetedJob(RuntimeJob, FailureBudgets):
    """The machine for the job of a log that has a failure budget, for each task or for all together."""

    name = "failure_budgets"

    def __init__(self, graph: JobGraph, in_all: int, **given: Any) -> None:
        self._in_all = in_all
        super().__init__(graph, **given)

    def permits(self, s: Any, t: Any) -> Any:
        """Whether neither budget is spent."""
        return super().permits(s, t) and sum(s.charged[u] for u in self.tasks) < self._in_all

    def permitted(self, t: str) -> Callable[[StateReader], bool]:
        """The same of a followed state."""
        return lambda look: (
            look("charged", t) < self.per_task and sum(look("charged", u) for u in self.tasks) < self._in_all
        )

    @action(t="failing")
    def stop(self, s: Any, t: Any) -> None:
        """A task fails within its budget, and the restart strategy allows no further attempt: the job fails."""
        require(s.job == "RUNNING" and s.status[t] in self.active and s.decided == self.decisions)
        s.status[t] = "FAILED"
        s.job = "FAILED"


class EagerBudgetedJob(BudgetedJob, EagerDeployment):
    """The same, with regions that are scheduled with the producers of their inputs."""


class RuntimeFailover(JobMasterLogs):
    """Follows the JobMasters of every job of the runtime through the failover machine."""

    reads_job_graph = True

    def behaviours(self, name: str, events: list[Event]) -> Plan:
        """One case for each JobMaster of the job. Raises `InputError` for a log that is not the runtime's own."""
        cases = tuple(_case(started, own) for started, own in jobs(events, self.form.events))
        cases = (*cases, *reused_attempts(events), *wrong_pipelines(events))
        return Plan(name, cases, tuple(events), unit="job", nothing="no job has begun")


def _case(started: Event, followed: Sequence[Event]) -> Unit:
    failures = sum(e.event in FAILURES and "missing" not in e.args for e in followed)
    losses = sum(e.event == "partition_lost" for e in followed)
    decisions = sum(e.event == "region_failed" for e in followed)
    limits = tuple(_limit(started, name) for name in BUDGETS)
    model, system = _machine(job_graph(started), is_eager(started), failures, losses, decisions, limits)
    observations, decided = [], 0
    running: set[str] = set()
    for event in followed:
        decided += event.event == "region_failed"
        reading = _Reading(model, event, decided - 1, running, first_attempt(started), limits)
        observations.append(reading.observation())
        if event.event == "region_running":
            running.update(reading.tasks())
        elif event.event == "region_scheduled":
            running.difference_update(reading.tasks())
    title = f"failover of {started.trace}"
    return Unit(started.trace, title, (Task(started.trace, system, (Stream(observations),)),))


@lru_cache(maxsize=64)
def _machine(
    graph: JobGraph, eager: bool, failures: int, losses: int, decisions: int, limits: tuple[int | None, ...]
) -> tuple[RuntimeJob, System]:
    bounds = {"failures": failures, "losses": losses, "restarts": decisions}
    model: RuntimeJob
    if limits == (None, None):
        kind: type[RuntimeJob] = EagerRuntimeJob if eager else RuntimeJob
        model = kind(graph, **bounds)
    else:  # a limit above all failures of the log is none
        per_task, in_all = (failures + 1 if limit is None else min(limit, failures + 1) for limit in limits)
        budgeted: type[BudgetedJob] = EagerBudgetedJob if eager else BudgetedJob
        model = budgeted(graph, in_all, per_task=per_task, **bounds)
    return model, compile_model(model, without_properties=True)


def _limit(started: Event, name: str) -> int | None:
    """A failure budget; None: the job has none. Raises `InputError` for another value than a number of failures."""
    value = started.args.get(name)
    if value is not None and (type(value) is not int or value < 0):
        raise InputError(f"{started}: {name} is a number of failures, not {value!r}", loc=started.loc)
    return value


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

    def __init__(
        self,
        model: RuntimeJob,
        event: Event,
        decision: int,
        running: set[str],
        first: int,
        limits: tuple[int | None, ...],
    ) -> None:
        """`running`: the operators of regions that have begun to run; `first`: the attempt that the machine calls 0;
        `limits`: the budgets."""
        self.model, self.event, self.decision, self.at_work, self.first = model, event, decision, running, first
        self.limits = limits
        self.before: list[Constraint] = []
        self.after: list[Constraint] = []

    def observation(self) -> Observation:
        """Its moves and constraints."""
        moves = tuple(_FORM.read(self.event, self))
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
        missing, budget = self.event.args.get("missing"), self.event.args.get("budget")
        if missing is not None:
            yield from self.reads_in_vain(task)
        if budget is None and isinstance(self.model, BudgetedJob):
            if missing is None:
                permits = self.model.permitted(task)
                self.agrees(f"the budget permits a failure of {task}", True, permits, before=True)
            yield Move("stop", {"t": task})
        elif budget is None:
            yield Move("give_up", {"t": task})
        else:
            self._exceeded(task, budget)
            yield Move("give_up", {"t": task})

    def _exceeded(self, task: str, budget: Any) -> None:
        """The count that the log has is that of the machine, and above the limit."""
        if budget not in BUDGETS:
            raise InputError(f"{self.event}: there is no budget {budget!r}", loc=self.event.loc)
        of = [task] if budget == BUDGETS[0] else self.model.tasks
        count, limit = self.event.args.get("count"), self.limits[BUDGETS.index(budget)]
        if isinstance(self.model, BudgetedJob):
            self.agrees("failures", count, lambda look: sum(look("charged", t) for t in of) + 1, before=True)
        self.agrees(f"limit of {budget}", self.event.args.get("limit"), lambda _: limit, before=True)
        above = type(count) is int and limit is not None and count > limit
        self.agrees(f"more than {budget} permits", True, lambda _: above, before=True)


MISSING = DATASET.or_none("the task has failed by itself")
"""What a failed task has missed."""
_BUDGET = NUMBER("largest number of failures that the job survives").or_none("there is no such limit")
JOB_STARTED = {
    "operators": TEXTS("all operators of the job, producers first"),
    "exchanges": list_of(list_of(TEXT, "", least=3), "a list of exchanges")(
        "producer, consumer and kind of each exchange"
    ),
    "scheduling": one_of("LAZY", "EAGER")("when regions are scheduled").or_none("LAZY"),
    "first_attempt": INTEGER("the number of the first attempts").or_none("0"),
    "parts": ANYTHING(
        "operators that are parts of one of the job: its name, their first subtask, their size"
    ).or_none(),
    "vertices": ANYTHING("with parts: each operator of the job with its parallelism").or_none(),
    "streams": ANYTHING("with parts: producer, consumer, pattern of each exchange, and whether it is stored").or_none(),
}
"""What a JobMaster records of its job."""
_FORM = LogForm(
    TITLE,
    {
        "job_started": EventForm(
            None,
            OF_JOB,
            args={**JOB_STARTED, **dict.fromkeys(BUDGETS, _BUDGET)},
            meaning="The job begins, at its first JobMaster or at one that replaces another.",
        ),
        "region_scheduled": EventForm(
            _Reading.scheduled, OF_JOB, ("schedule",), {"tasks": OPERATORS, "attempt": ATTEMPT}
        ),
        "region_running": EventForm(
            _Reading.running,
            OF_JOB,
            ("run",),
            {"tasks": OPERATORS, "reads": ATTEMPTS_READ("the attempts that it reads")},
        ),
        "region_finished": EventForm(
            _Reading.finished, OF_JOB, ("finish",), {"tasks": OPERATORS, "released": DATASETS}
        ),
        "partition_lost": EventForm(_Reading.lost, OF_JOB, ("lose",), {"partition": DATASET}),
        "region_failed": EventForm(
            _Reading.failed,
            OF_JOB,
            ("fail", "run", "miss"),
            {"task": OPERATOR, "restarts": OPERATORS, "missing": MISSING},
        ),
        "region_canceled": EventForm(_Reading.canceled, OF_JOB, ("cancel",), {"tasks": OPERATORS}),
        "restarted": EventForm(
            _Reading.restarted,
            OF_JOB,
            ("restart",),
            {"decision": NUMBER("the number of the failure, from 0, that restarts them"), "tasks": OPERATORS},
        ),
        "job_finished": EventForm(_Reading.over, OF_JOB, ("complete",)),
        "job_failed": EventForm(
            _Reading.given_up,
            OF_JOB,
            ("run", "stop", "give_up"),
            {
                "task": OPERATOR,
                "missing": MISSING,
                "budget": TEXT("the budget that is exceeded").or_none("the restarts are used up"),
                "count": NUMBER("failures counted for it").or_none(),
                "limit": NUMBER("its limit").or_none(),
            },
        ),
    },
    (BY_NUMBER,),
    LACKING,
)


BINDING = RuntimeFailover(_FORM)
