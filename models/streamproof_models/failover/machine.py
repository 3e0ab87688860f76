"""The failover machine: the JobMaster of one batch job, which fails over by pipelined regions.

Follows FLIP-1, phase 2, and, where the proposal is silent, Flink 1.9 to 2.3. Tasks fail and stored partitions are lost,
each within a budget. What is modelled:

* **Tasks** go through CREATED, SCHEDULED, RUNNING, FINISHED. A failed one is FAILED; a cancelled one is CANCELING, then
  CANCELED. A restart puts a task back to CREATED with the next attempt number.
* **Result partitions** that can be read again are NONE (not tracked), PRODUCING (the producer is scheduled or runs),
  STORED, GONE (lost, but the JobMaster does not know) or RELEASED (every consumer has finished).
* **Input channels** have the attempt of the producer that the consumer has read; None: nothing yet.
* **Decisions** to restart are numbered. A decision has a restart set, awaits the cancellation of its tasks, then resets
  those whose version is its number: a newer decision takes tasks over from an older one (`ExecutionVertexVersioner`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import ClassVar, TypeAlias, TypeVar

from streamproof import WEAK, Array, Enum, Model, Option, Range, Set, State, action, require, terminal
from streamproof_models.failover.graph import JobGraph
from streamproof_models.failover.named_job_graphs import is_text, job_graph
from streamproof_models.failover.regions import Merging, connected_components, pipelined_regions
from streamproof_models.failover.topology import Connection, Topology

K = TypeVar("K")


class BatchJob(Model):
    """The structure of a job whose exchanges are pipelined or can be read again: tasks, pipelined regions, partitions and
    input channels, all by name. A model adds state for each of them, and rules."""

    topology: str = "diamond"
    """Job graph: a name of `streamproof_models.failover.named_job_graphs.JOB_GRAPHS`, or `JobGraph.text`."""
    parallelism: int = 1
    """Tasks per vertex of the job graph."""

    limits = {"parallelism": (1, None)}

    merging = Merging.TOPOLOGY
    """Where regions that depend on each other in a cycle are merged."""

    def job_graph(self) -> JobGraph:
        """The named job graph; a recorded run has its own."""
        return job_graph(self.topology, self.parallelism)

    def task_name(self, vertex: str, subtask: int, parallelism: int) -> str:
        """The name of a task: that of its vertex, with the number of the subtask if there are several; as Flink writes it, if
        the graph is given as text."""
        if is_text(self.topology):
            return f"{vertex} ({subtask + 1}/{parallelism})"
        return vertex if parallelism == 1 else f"{vertex}{subtask}"

    def setup(self) -> None:
        """Expands the job graph. Raises `ValueError` for an exchange of another type."""
        topology = Topology(self.job_graph())
        parallelism = {v.name: v.parallelism for v in topology.graph.vertices}
        self.tasks = tuple(self.task_name(v, i, parallelism[v]) for v, i in topology.tasks)
        regions = [tuple(self.tasks[t] for t in r) for r in self.members_of_regions(topology)]
        self.regions: dict[str, tuple[str, ...]] = {}
        """Region -> its tasks."""
        for tasks in regions:
            name = _region_name(tasks)
            self.regions[name if name not in self.regions else f"{name} #{len(self.regions)}"] = tasks
        self.region_of = {t: r for r, tasks in self.regions.items() for t in tasks}
        self.component_of = dict(zip(self.tasks, connected_components(topology), strict=True))
        """Task -> a number for its connected component of the job graph."""
        self.partitions: dict[str, str] = {}
        """Result partition that outlives its producer -> its producer."""
        self.channels: dict[str, tuple[str, str]] = {}
        """Input channel -> its producer and its consumer."""
        self.partition_of: dict[str, str] = {}
        """Input channel -> its partition, if that outlives its producer."""
        self.read_once: set[str] = set()
        """The partitions that cannot be read again."""
        for connection in topology.connections:
            self._connect(connection)

        region, consumed = self.region_of, [(p, self.channels[c][1]) for c, p in self.partition_of.items()]
        self.inputs = grouped(self.tasks, [(consumer, c) for c, (_, consumer) in self.channels.items()])
        """Task -> its input channels."""
        self.reads = grouped(self.tasks, [(consumer, p) for p, consumer in consumed])
        """Task -> the partitions that it reads."""
        self.outputs = grouped(self.tasks, [(producer, p) for p, producer in self.partitions.items()])
        """Task -> the partitions that it produces."""
        self.upstream = grouped(self.tasks, [(z, a) for a, z in self.channels.values() if region[a] != region[z]])
        """Task -> the producers of its inputs from other regions."""
        self.producing_region = {p: region[producer] for p, producer in self.partitions.items()}
        """Partition -> the region that produces it."""
        self.consuming_regions = grouped(self.partitions, [(p, region[consumer]) for p, consumer in consumed])
        """Partition -> the regions that read it."""

    def members_of_regions(self, topology: Topology) -> Sequence[Sequence[int]]:
        """The numbers of the tasks of each region."""
        return pipelined_regions(topology, self.merging).members

    def _connect(self, connection: Connection) -> None:
        """Adds the partitions and channels of an edge between tasks."""
        edge, first = connection.edge, connection.producers.start
        for producers, consumers in connection.groups():
            for p in producers:
                partition = f"{edge.dataset}#{p - first}" if len(connection.producers) > 1 else edge.dataset
                if not edge.exchange.glues:
                    self.partitions[partition] = self.tasks[p]
                    if not edge.exchange.rereadable:
                        self.read_once.add(partition)
                for c in consumers:
                    channel = f"{self.tasks[c]}<{partition}"
                    self.channels[channel] = (self.tasks[p], self.tasks[c])
                    if not edge.exchange.glues:
                        self.partition_of[channel] = partition


def _region_name(tasks: tuple[str, ...]) -> str:
    """All tasks of a region of one or two, else the first and the number of others."""
    return "+".join(tasks) if len(tasks) < 3 else f"{tasks[0]}+{len(tasks) - 1} more"


def grouped(keys: Iterable[K], pairs: Iterable[tuple[K, str]]) -> dict[K, tuple[str, ...]]:
    """Key -> the values paired with it, each once, in their order."""
    found: dict[K, dict[str, None]] = {key: {} for key in keys}
    for key, value in pairs:
        found[key][value] = None
    shared: dict[tuple[str, ...], tuple[str, ...]] = {}
    result = {}
    for key, values in found.items():
        some = tuple(values)
        if some not in shared:
            shared[some] = some
        result[key] = shared[some]
    return result


def grouped_by(
    regions: Mapping[str, tuple[str, ...]], partitions: Iterable[str]
) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Regions -> the partitions to which `regions` assigns them."""
    found: dict[tuple[str, ...], dict[str, None]] = {}
    for p in partitions:
        key = regions[p]
        if key not in found:
            found[key] = {}
        found[key][p] = None
    return {key: tuple(parts) for key, parts in found.items()}


ConsumedGroup: TypeAlias = tuple[tuple[tuple[str, str], ...], tuple[str, ...], tuple[str, ...]]
"""Partitions that the same other regions read, each after the region that produces it; these regions; the regions that need
every partition of the group if they restart: the readers, and, since these restart with it, a producer of another one."""


class Failover(BatchJob):
    """Backtracking failover of one job (FLIP-1, phase 2)."""

    failures: int = 1
    """Number of tasks that may fail of themselves."""
    losses: int = 1
    """Number of stored partitions that may be lost."""
    restarts: int | None = None
    """Number of decisions to restart before the job is given up; none: one for each failure and each loss."""
    deterministic: bool = False
    """Whether a task that runs again produces the same output."""
    instance_bounds = ("failures", "losses")
    limits = {"failures": (0, None), "losses": (0, None), "restarts": (0, None)}
    sizes = {
        "small": {},
        "medium": {"failures": 3, "losses": 3},
        "large": {"parallelism": 2, "failures": 2, "losses": 2},
    }
    active: ClassVar[tuple[str, ...]] = ("SCHEDULED", "RUNNING")
    """States of an attempt that occupies a slot and is not being cancelled, in their order."""
    reading: ClassVar[tuple[str, ...]] = ("RUNNING",)
    """States in which a task can find an input missing."""
    budgeted: ClassVar[bool] = True
    """Whether `failures` and `losses` bound what happens; decisions to restart are always bounded."""
    lost_singly: ClassVar[bool] = True
    """Whether each partition that is lost is one of `losses`."""

    def setup(self):
        """The structure of the job, and the number of decisions."""
        super().setup()
        self.decisions = self.failures + self.losses if self.restarts is None else self.restarts
        self.noted = self.inputs
        """Task -> the input channels of which the machine notes what has been read."""
        self.failing = self.tasks
        """The tasks that may fail of themselves."""
        self.missable = self.reads
        """Task -> the partitions that it may miss."""
        read = {r: {p: None for t in tasks for p in self.reads[t]} for r, tasks in self.regions.items()}
        self.released_with = {r: grouped_by(self.consuming_regions, parts) for r, parts in read.items()}
        """Region -> the partitions that it reads, by all the regions that read them."""
        self.consumed_groups = self._consumed_groups()
        """The partitions between regions, in groups."""
        self.rounds = len(self.regions) - 1
        """How often the restart rule visits every group: a chain of causes meets no region twice."""

    @cached_property
    def places(self):
        """Number of decisions that can be pending at a time."""
        return self.decisions

    def _consumed_groups(self) -> tuple[ConsumedGroup, ...]:
        read = self.consuming_regions
        others = {p: tuple(sorted(r for r in read[p] if r != at)) for p, at in self.producing_region.items()}
        groups = grouped_by(others, [p for p, readers in others.items() if len(readers) > 0])
        found = []
        for consumers, parts in groups.items():
            produced = tuple((self.producing_region[p], p) for p in parts)
            needing = (*consumers, *(r for r, _ in produced)) if len(produced) > 1 else consumers
            found.append((produced, consumers, needing))
        return tuple(found)

    def state(self):
        """All tasks CREATED, nothing produced."""
        number, tasks, decisions = Range(0, self.decisions), Set(Enum(*self.tasks)), range(max(self.places, 1))
        partition = Enum("NONE", "PRODUCING", "STORED", "GONE", "RELEASED")
        return State(
            job=Enum("RUNNING", "FINISHED", "FAILED"),
            status=Array(self.tasks, Enum("CREATED", *self.active, "FINISHED", "FAILED", "CANCELING", "CANCELED")),
            attempt=Array(self.tasks, number),
            **({"partition": Array(list(self.partitions), partition)} if self.partitions else {}),
            **({"read": Array(list(self.channels), Option(number))} if any(self.noted.values()) else {}),
            decided=number,
            restarting=Array(decisions, tasks),
            awaiting=Array(decisions, tasks),
            version=Array(self.tasks, number),
            **(self.budgets() if self.budgeted else {}),
        )

    def budgets(self):
        """The failures and losses still to come."""
        return {
            "failures_left": Range(0, self.failures, init=self.failures),
            "losses_left": Range(0, self.losses, init=self.losses),
        }

    # --- scheduling, in topological order of the regions

    @action(r="regions", fairness=WEAK)
    def schedule(self, s, r):
        """The scheduler schedules a region, as a whole, when its inputs from other regions have been produced."""
        require(s.job == "RUNNING" and self.is_ready(s, self.regions[r]))
        self.take_up(s, self.regions[r])

    def is_ready(self, s, tasks):
        """Whether tasks are to be scheduled, and the producers of their inputs have finished for good."""
        created = all(s.status[t] == "CREATED" for t in tasks)
        return created and all(self.have_finished(s, self.upstream[t]) for t in tasks)

    def have_finished(self, s, tasks):
        """Whether tasks have finished for good."""
        return all(self.has_finished(s, t) for t in tasks)

    def has_finished(self, s, t):
        """Whether task `t` has finished and no pending decision restarts it."""
        return s.status[t] == "FINISHED" and not self.will_restart(s, t)

    def will_restart(self, s, t):
        """Whether a pending decision restarts task `t`."""
        return any(self.restarts_task(s, k, t) for k in range(self.places))

    def take_up(self, s, tasks):
        """Tasks wait for their slots; the JobMaster tracks their output from now on."""
        for t in tasks:
            s.status[t] = "SCHEDULED"
            self.mark_output(s, t, "PRODUCING")

    def mark_output(self, s, t, state):
        """The partitions that `t` produces change their state."""
        for p in self.outputs[t]:
            s.partition[p] = state

    @action(t="tasks", fairness=WEAK)
    def run(self, s, t):
        """The task runs."""
        require(s.job == "RUNNING" and s.status[t] == self.active[-2])
        s.status[t] = "RUNNING"
        self.read_inputs(s, t)

    def read_inputs(self, s, t):
        """Task `t` begins to read, of the producers' present attempts, the inputs that are there."""
        for c in self.noted[t]:
            if s.read[c] is None and (c not in self.partition_of or s.partition[self.partition_of[c]] == "STORED"):
                s.read[c] = s.attempt[self.channels[c][0]]

    @action(t="tasks", fairness=WEAK)
    def finish(self, s, t):
        """The task has read its inputs to the end; its partitions are stored, and inputs that nobody needs released."""
        require(s.job == "RUNNING" and s.status[t] == "RUNNING")
        require(all(self.is_delivered(s, c) for c in self.inputs[t]))
        self.read_inputs(s, t)
        s.status[t] = "FINISHED"
        self.store_output(s, t)
        for consumers, parts in self.released_with[self.region_of[t]].items():
            if self.is_consumed(s, consumers):
                self.release(s, parts)

    def release(self, s, parts):
        """Partitions that nobody needs are released."""
        for p in parts:
            if s.partition[p] in self.releasable(p):
                s.partition[p] = "RELEASED"

    def store_output(self, s, t):
        """The partitions that `t` produces are stored."""
        self.mark_output(s, t, "STORED")

    def releasable(self, p):
        """The states in which partition `p` is released when nobody needs it."""
        return ("STORED", "GONE")

    def is_delivered(self, s, c):
        """Whether everything on channel `c` can have been read."""
        if c in self.partition_of:
            return s.read[c] is not None or s.partition[self.partition_of[c]] == "STORED"
        return s.status[self.channels[c][0]] == "FINISHED"

    def is_consumed(self, s, consumers):
        """Whether the regions that read a partition have finished for good."""
        return all(self.have_finished(s, self.regions[r]) for r in consumers)

    @action(fairness=WEAK)
    def complete(self, s):
        """The last task has finished and no decision is pending: the job has finished."""
        require(s.job == "RUNNING" and self.is_settled(s))
        require(all(s.status[t] == "FINISHED" for t in self.tasks))
        s.job = "FINISHED"

    # --- failures

    @action(t="failing")
    def fail(self, s, t):
        """A task fails of itself."""
        require(s.job == "RUNNING" and s.status[t] in self.active)
        require(s.decided < self.decisions)
        self.spend_failure(s)
        self.fail_over(s, t)

    def spend_failure(self, s):
        """A failure of the budget is spent."""
        if self.budgeted:
            require(s.failures_left > 0)
            s.failures_left -= 1

    def spend_loss(self, s):
        """A loss of the budget is spent."""
        if self.budgeted:
            require(s.losses_left > 0)
            s.losses_left -= 1

    @action(p="partitions")
    def lose(self, s, p):
        """A stored partition is lost; nobody notices yet."""
        require(s.job == "RUNNING" and s.partition[p] == "STORED")
        self.spend_loss(s)
        s.partition[p] = "GONE"

    @action(t="missable", p=lambda m, t: m.missable[t], fairness=WEAK)
    def miss(self, s, t, p):
        """A task finds its input partition missing and fails, naming it."""
        require(s.job == "RUNNING" and self.notices(s, t, p))
        require(s.decided < self.decisions)
        self.fail_over(s, t, p)

    def notices(self, s, t, p):
        """Whether task `t` can find partition `p` missing; inside a region it waits for a producer at work."""
        producer = self.partitions[p]
        waits = self.region_of[t] == self.region_of[producer] and s.status[producer] in self.active
        return s.status[t] in self.reading and s.partition[p] != "STORED" and not waits

    @action(t="failing")
    def give_up(self, s, t):
        """A task fails and the restart strategy allows no further attempt: the job fails."""
        require(s.job == "RUNNING" and s.status[t] in self.active)
        require(s.decided == self.decisions)
        if self.budgeted:
            require(s.failures_left > 0 or any(self.notices(s, t, p) for p in self.reads[t]))
        s.status[t] = "FAILED"
        s.job = "FAILED"

    def end(self, s, t, status):
        """The present attempt of `t` ends: its output is void, and no decision awaits it any longer."""
        s.status[t] = status
        self.mark_output(s, t, "NONE")
        self.stop_awaiting(s, t)

    def stop_awaiting(self, s, t):
        """No decision awaits task `t`."""
        for k in range(self.places):
            s.awaiting[k].discard(t)

    # --- failover

    def fail_over(self, s, t, missing=None):
        """The attempt of `t` has failed; in the same step the JobMaster decides what to restart."""
        self.end(s, t, "FAILED")
        marked = self.regions_to_restart(s, t, missing)
        self.begin_restart(s, {u: marked[self.region_of[u]] for u in self.tasks})

    def regions_to_restart(self, s, failed, missing):
        """The restart rule. These regions restart: that of the failed task; the producers of lost inputs of restarting
        regions; all consumers of restarting regions, because the output may differ the next time."""
        marked = {r: r == self.region_of[failed] for r in self.regions}
        for _ in range(self.rounds):
            for produced, consumers, needing in self.consumed_groups:
                needed = any(marked[r] for r in needing)
                for producer, p in produced:
                    marked[producer] = marked[producer] or (needed and self.is_lost(s, p, missing))
                renewed = any(marked[producer] for producer, _ in produced)
                for consumer in consumers:
                    marked[consumer] = marked[consumer] or renewed
        return marked

    def is_lost(self, s, p, missing):
        """Whether partition `p` cannot be read again: not tracked by the JobMaster, named by the failure, or read once."""
        return p == missing or p in self.read_once or s.partition[p] in ("NONE", "RELEASED")

    def begin_restart(self, s, chosen):
        """A new decision takes over the chosen tasks, except those never scheduled, and cancels the active ones."""
        k = self.place(s)
        for t in self.tasks:
            if chosen[t] and s.status[t] != "CREATED":
                self.take_over(s, k, t)
                if s.status[t] in (*self.active, "CANCELING"):
                    s.status[t] = "CANCELING"
                    self.await_task(s, k, t)
        s.decided += 1

    def await_task(self, s, k, t):
        """Decision `k` awaits task `t`."""
        s.awaiting[k].add(t)

    def place(self, s):
        """Where the next decision is kept."""
        return s.decided

    def take_over(self, s, k, t):
        """The decision in place `k` restarts task `t`, and no older one does."""
        self.include(s, k, t)
        s.version[t] = k

    def is_settled(self, s):
        """Whether no decision is pending."""
        return all(self.is_carried_out(s, k) for k in range(self.places))

    def include(self, s, k, t):
        """Task `t` is one of decision `k`."""
        s.restarting[k].add(t)

    def includes(self, s, k, t):
        """Whether task `t` is one of decision `k`, which is pending."""
        return t in s.restarting[k]

    def is_carried_out(self, s, k):
        """Whether decision `k` has been carried out, or not been taken."""
        return len(s.restarting[k]) == 0

    def awaits(self, s, k, t):
        """Whether decision `k` awaits task `t`."""
        return t in s.awaiting[k]

    def is_awaiting(self, s, k):
        """Whether decision `k` awaits a task."""
        return len(s.awaiting[k]) > 0

    def carry_out(self, s, k):
        """Decision `k` is pending no longer."""
        s.restarting[k].clear()

    @action(t="tasks", fairness=WEAK)
    def cancel(self, s, t):
        """A task being cancelled has stopped."""
        require(s.job == "RUNNING" and s.status[t] == "CANCELING")
        self.end(s, t, "CANCELED")

    @action(k="places", fairness=WEAK)
    def restart(self, s, k):
        """All tasks of decision `k` have stopped: those that no newer decision has taken over start again."""
        require(s.job == "RUNNING" and k < s.decided and not self.is_carried_out(s, k) and not self.is_awaiting(s, k))
        for t in self.tasks:
            if self.restarts_task(s, k, t):
                self.reset(s, t)
        self.carry_out(s, k)

    def restarts_task(self, s, k, t):
        """Whether decision `k` is pending and the newest that restarts `t`."""
        return self.includes(s, k, t) and s.version[t] == k

    def reset(self, s, t):
        """A new attempt of `t`: what the old one produced and read is void."""
        s.status[t] = "CREATED"
        s.attempt[t] += 1
        self.mark_output(s, t, "NONE")
        for c in self.noted[t]:
            s.read[c] = None

    @terminal
    def over(self, s):
        """The job has finished or was given up."""
        return s.job in ("FINISHED", "FAILED")
