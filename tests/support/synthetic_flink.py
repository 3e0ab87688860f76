"""Logs of a JobManager that never existed: any job graph, any failures, as Flink 2.3 would write them at INFO.

A simulation of the scheduler, the failover and the restarts of one batch job, without a clock. It takes the restart sets
from `tasks_to_restart`, which the machine that follows the log does not use. `write` makes a folder that `validate` reads:
the JobManager's log, and the REST answer with the job graph.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from streamproof_models.failover.graph import Edge, Exchange, JobGraph, Pattern, Task, Vertex
from streamproof_models.failover.regions import Merging, pipelined_regions
from streamproof_models.failover.restart import tasks_to_restart
from streamproof_models.failover.topology import Topology

JOB, GRAPH = "0123456789abcdef" * 2, "fedcba9876543210" * 2
ACTIVE = ("SCHEDULED", "DEPLOYING", "INITIALIZING", "RUNNING")
_PLANNED = {Pattern.POINTWISE: "FORWARD", Pattern.ALL_TO_ALL: "HASH"}
_EXECUTION, _MASTER = "executiongraph.ExecutionGraph      ", "jobmaster.JobMaster                "


def chain(*sizes: int, exchange: Exchange = Exchange.BLOCKING, pattern: Pattern = Pattern.ALL_TO_ALL) -> JobGraph:
    """Vertices A, B, ... in a row, of these parallelisms."""
    names = [chr(ord("A") + at) for at in range(len(sizes))]
    edges = (Edge(a, z, pattern, exchange, a) for a, z in itertools.pairwise(names))
    return JobGraph(tuple(map(Vertex, names, sizes)), tuple(edges))


@dataclass(slots=True)
class _Decision:
    """A restart decision that was not carried out yet: its tasks, and those that are being cancelled."""

    tasks: frozenset[Task]
    awaiting: set[Task]


@dataclass
class Cluster:
    """One job and its log so far."""

    graph: JobGraph
    lines: list[str] = field(default_factory=list)
    status: dict[Task, str] = field(default_factory=dict)
    number: dict[Task, int] = field(default_factory=dict)
    pending: list[_Decision] = field(default_factory=list)
    decisions: int = 0
    job: str = "CREATED"

    def __post_init__(self) -> None:
        self._topology = topology = Topology(self.graph)
        self._regions = pipelined_regions(topology, Merging.LOGICAL_REGION)
        self._members = [tuple(topology.tasks[t] for t in r) for r in self._regions.members]
        self._size = {v.name: v.parallelism for v in self.graph.vertices}
        self._id = {v.name: f"{at + 1:032x}" for at, v in enumerate(self.graph.vertices)}
        self._version: dict[Task, _Decision] = {}
        self._stored = dict.fromkeys(topology.tasks, "NONE")
        self._region_of = {t: at for at, tasks in enumerate(self._members) for t in tasks}
        self.status.update(dict.fromkeys(topology.tasks, "CREATED"))
        self.number.update(dict.fromkeys(topology.tasks, 0))
        self._producers = {t: frozenset[Task]() for t in topology.tasks}
        known: dict[tuple[str, range], frozenset[Task]] = {}
        for connection in topology.connections:
            for producers, consumers in connection.groups():
                key = (connection.edge.source, range(producers[0], producers[-1] + 1))
                group = known.setdefault(key, frozenset(topology.tasks[p] for p in producers))
                for c in consumers:
                    task = topology.tasks[c]
                    outside = frozenset(p for p in group if self._region_of[p] != self._region_of[task])
                    own = group if len(outside) == len(group) else outside
                    self._producers[task] = own if not self._producers[task] else self._producers[task] | own
        self._say(_MASTER, f"Using failover strategy x.RestartPipelinedRegionFailoverStrategy@1 for job ({JOB}).")
        scheduling = "[org.apache.flink.runtime.scheduler.strategy.PipelinedRegionSchedulingStrategy]"
        self._say(_MASTER, f"Starting scheduling with scheduling strategy {scheduling}")
        self.switch_job("RUNNING")
        self.schedule()

    # --- lines

    def _say(self, logger: str, text: str) -> None:
        at = len(self.lines)
        clock = f"{at // 3_600_000:02}:{at // 60_000 % 60:02}:{at // 1000 % 60:02},{at % 1000:03}"
        self.lines.append(f"2026-01-01 {clock} INFO  org.apache.flink.runtime.{logger} [] - {text}")

    def attempt(self, task: Task) -> str:
        """The id of the present attempt."""
        vertex, subtask = task
        return f"{GRAPH}_{self._id[vertex]}_{subtask}_{self.number[task]}"

    def switch_job(self, new: str) -> None:
        """The job changes its state."""
        self._say(_EXECUTION, f"Job job ({JOB}) switched from state {self.job} to {new}.")
        self.job = new

    def switch(self, task: Task, new: str) -> None:
        """A task changes its state."""
        vertex, subtask = task
        shown = f"{vertex} ({subtask + 1}/{self._size[vertex]})"
        where = " on tm-1 @ localhost (dataPort=1)" if new == "FAILED" else ""
        line = f"{shown} ({self.attempt(task)}) switched from {self.status[task]} to {new}{where}."
        self._say(_EXECUTION, line)
        if new == "FAILED":
            self.lines.append("java.lang.RuntimeException: it failed of itself")
        self.status[task] = new
        if new == "DEPLOYING":
            self._stored[task] = "PRODUCING"
            text = (
                f"Deploying {shown} (attempt #{self.number[task]}) with attempt id {self.attempt(task)} and vertex id"
            )
            text += f" {self._id[vertex]}_{subtask} to tm-1 @ localhost (dataPort=1) with allocation id {GRAPH}"
            self._say(_EXECUTION, text)
        elif new in ("FAILED", "CANCELED"):
            self._stored[task] = "NONE"
            for decision in self.pending:
                decision.awaiting.discard(task)

    # --- what happens

    def schedule(self) -> None:
        """Every region whose inputs are there."""
        missing = {t for t, s in self.status.items() if s != "FINISHED"}
        there: dict[int, bool] = {}

        def has_inputs(task: Task) -> bool:
            group = self._producers[task]
            if id(group) not in there:
                there[id(group)] = missing.isdisjoint(group)
            return there[id(group)]

        for tasks in self._members:
            if all(self.status[t] == "CREATED" for t in tasks) and all(map(has_inputs, tasks)):
                for t in tasks:
                    self.switch(t, "SCHEDULED")

    def advance(self, task: Task) -> None:
        """A task takes its next step."""
        match self.status[task]:
            case "CANCELING":
                self.switch(task, "CANCELED")
            case "SCHEDULED":
                # Slots are assigned to a region, whose tasks are then deployed in one step.
                for t in self._members[self._region_of[task]]:
                    if self.status[t] == "SCHEDULED":
                        self.switch(t, "DEPLOYING")
            case "RUNNING":
                self.switch(task, "FINISHED")
                self._stored[task] = "STORED"
                self._release(task)
                self.schedule()
            case now:
                self.switch(task, ACTIVE[ACTIVE.index(now) + 1])

    def _release(self, task: Task) -> None:
        """Inputs whose consumers have all finished."""
        for connection in self._topology.connections:
            if connection.edge.target == task[0] and connection.edge.exchange.rereadable:
                number = self._topology.number(task)
                group = connection.group_of_consumer(number)
                readers = {self._region_of[self._topology.tasks[c]] for c in connection.group_consumers(group)}
                if all(self.status[t] == "FINISHED" for r in readers for t in self._members[r]):
                    for p in connection.group_producers(group):
                        if self._stored[self._topology.tasks[p]] == "STORED":
                            self._stored[self._topology.tasks[p]] = "RELEASED"

    def fail(self, task: Task) -> None:
        """A task fails of itself, and the restart is decided."""
        self.switch(task, "FAILED")
        lost = [
            (edge.dataset, subtask)
            for edge in self.graph.edges
            if edge.exchange.rereadable
            for subtask in range(self._size[edge.source])
            if self._stored[edge.source, subtask] in ("NONE", "RELEASED")
        ]
        created = [t for t, s in self.status.items() if s == "CREATED"]
        chosen = tasks_to_restart(self._regions, task, lost, created)
        self._say(_MASTER, f"{len(chosen)} tasks will be restarted to recover the failed task {self.attempt(task)}.")
        self.decisions += 1
        if self.job == "RUNNING":
            self.switch_job("RESTARTING")
        decision = _Decision(chosen, set())
        for t in self.status:
            if t in chosen:
                self._version[t] = decision
                if self.status[t] in ACTIVE:
                    self.switch(t, "CANCELING")
                if self.status[t] == "CANCELING":
                    decision.awaiting.add(t)
        self.pending.append(decision)

    def ready(self) -> list[_Decision]:
        """Decisions whose tasks have all stopped."""
        return [d for d in self.pending if not d.awaiting]

    def restart(self, decision: _Decision) -> None:
        """A decision is carried out."""
        self.pending.remove(decision)
        own = [t for t in self.status if t in decision.tasks and self._version[t] is decision]
        if own and not any(self._version[t] is d for d in self.pending for t in d.tasks):
            self.switch_job("RUNNING")
        for t in own:
            self.status[t], self._stored[t] = "CREATED", "NONE"
            self.number[t] += 1
        if own:
            self.schedule()

    def movable(self) -> list[Task]:
        """Tasks with a next step; a task finishes after those from which it reads while they run."""
        return [
            t
            for t, s in self.status.items()
            if s in (*ACTIVE, "CANCELING")
            and (s != "RUNNING" or all(self.status[u] != "CREATED" for u in self._members[self._region_of[t]]))
        ]

    def complete(self) -> None:
        """The job goes on without failures to its end."""
        while self.pending or any(s != "FINISHED" for s in self.status.values()):
            for task in self.movable():
                if self.status[task] in (*ACTIVE, "CANCELING"):
                    self.advance(task)
            for decision in self.ready():
                self.restart(decision)
        self.switch_job("FINISHED")

    def until(self, vertex: str, status: str) -> None:
        """Everything goes on, except that tasks of a vertex stop in a state, in which all of them will be."""
        while any(s != status for t, s in self.status.items() if t[0] == vertex):
            for task in self.movable():
                if task[0] != vertex or self.status[task] != status:
                    self.advance(task)
            for decision in self.ready():
                self.restart(decision)

    def write(self, folder: Path) -> Path:
        """Writes the folder of the run."""
        folder.mkdir(parents=True, exist_ok=True)
        submitted = f"Submitting job 'job' ({JOB}) with associated application ({JOB})."
        head = "2026-01-01 00:00:00,000 INFO  org.apache.flink.runtime.dispatcher.StandaloneDispatcher [] - "
        (folder / "jobmanager.log").write_text("\n".join([head + submitted, *self.lines]) + "\n")
        nodes = [
            {
                "id": self._id[v.name],
                "parallelism": v.parallelism,
                "description": f"{v.name}<br/>",
                "inputs": [
                    {
                        "id": self._id[e.source],
                        "num": at,
                        "exchange": e.exchange.value.lower(),
                        "ship_strategy": _PLANNED[e.pattern],
                    }
                    for at, e in enumerate(e for e in self.graph.edges if e.target == v.name)
                ],
            }
            for v in self.graph.vertices
        ]
        plan = {"jid": JOB, "name": "job", "type": "BATCH", "nodes": nodes}
        (folder / f"rest-{JOB}.json").write_text(json.dumps({"plan": plan}))
        return folder


def random_run(random: Random) -> Cluster:
    """A small job with overlapping failures, in any interleaving."""
    pipelined = random.random() < 0.3
    if pipelined:
        sizes = [random.randint(2, 4)] * random.randint(1, 2)
        cluster = Cluster(chain(*sizes, exchange=Exchange.PIPELINED_BOUNDED, pattern=Pattern.POINTWISE))
    else:
        cluster = Cluster(chain(*(random.randint(1, 3) for _ in range(random.randint(1, 3)))))
    failures = random.randint(1, 6)
    for _ in range(2_000):
        if not cluster.pending and all(s == "FINISHED" for s in cluster.status.values()):
            cluster.switch_job("FINISHED")
            break
        failing = [t for t, s in cluster.status.items() if s in ACTIVE]
        ready, movable = cluster.ready(), cluster.movable()
        if failures and failing and random.random() < 0.15:
            failures -= 1
            cluster.fail(random.choice(failing))
        elif ready and random.random() < 0.15:
            cluster.restart(random.choice(ready))
        elif movable:
            cluster.advance(random.choice(movable))
        elif ready:
            cluster.restart(random.choice(ready))
    return cluster


def several_failures(cluster: Cluster, tasks: Sequence[Task]) -> None:
    """Tasks fail at once, as with their TaskManager."""
    for task in tasks:
        if cluster.status[task] in ACTIVE:
            cluster.fail(task)


def _lost_executor() -> Cluster:
    cluster = Cluster(chain(24, 24, 12))
    cluster.until("B", "RUNNING")
    several_failures(cluster, [("B", i) for i in range(8)])
    cluster.complete()
    return cluster


def repeated(cluster: Cluster, vertex: str, times: int) -> Cluster:
    """The first task of a vertex fails so often, each time when it runs."""
    for _ in range(times):
        cluster.until(vertex, "RUNNING")
        cluster.fail((vertex, 0))
    cluster.complete()
    return cluster


def _lost_regions() -> Cluster:
    cluster = Cluster(chain(12, 12, 12, exchange=Exchange.PIPELINED_BOUNDED, pattern=Pattern.POINTWISE))
    cluster.until("A", "RUNNING")
    several_failures(cluster, [("A", i) for i in range(12)])
    cluster.complete()
    return cluster


CASES: dict[str, Callable[[], Cluster]] = {
    "12 regions of 3 tasks fail at once": _lost_regions,
    "24 > 24 > 12, TaskManager with 8 slots lost": _lost_executor,
    "50 > 50 all-to-all blocking, 10 restarts": lambda: repeated(Cluster(chain(50, 50)), "B", 10),
    "500 > 500 all-to-all blocking, 5 restarts": lambda: repeated(Cluster(chain(500, 500)), "B", 5),
    "2,000 tasks pipelined, 3 restarts": lambda: repeated(
        Cluster(chain(1000, 1000, exchange=Exchange.PIPELINED_BOUNDED, pattern=Pattern.POINTWISE)), "B", 3
    ),
    "320 restarts of 20 tasks": lambda: repeated(Cluster(chain(10, 10, exchange=Exchange.PIPELINED_BOUNDED)), "B", 320),
}
"""The cases of the table in docs/performance.md."""
