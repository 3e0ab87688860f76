"""The failover machine: a JobMaster that schedules, fails over and restarts the tasks of one batch job.

Follows FLIP-1, phase 2 (restart pipelined regions, backtrack to missing result partitions, restart all consumers), and,
where the proposal is silent, Flink 1.9 to 2.3. What is modelled:

* **Tasks** go CREATED, SCHEDULED, RUNNING, FINISHED; a failed one is FAILED, a cancelled one CANCELING then CANCELED.
  Restarting puts a task back to CREATED with the next attempt number.
* **Partitions** of exchanges that can be read again are kept: NONE (no attempt makes it, or it is no longer tracked),
  PRODUCING (tracked since the attempt was deployed), STORED, GONE (lost, but the JobMaster does not know), RELEASED (given
  up because every consumer had finished).
* **Channels** remember which attempt of the producer a task has read, counted from 1; 0 is nothing yet.
* **Recoveries**: each decision to restart claims its tasks, waits for their cancellation, then resets those that no newer
  decision has claimed since.

Environment: tasks fail, stored partitions and whole task executors are lost, each within a budget.
"""

from __future__ import annotations

from typing import Any

from streamproof import NONE, WEAK, Array, Decl, Enum, Model, Range, Set, State, action, require, terminal
from streamproof_models.failover.graph import JobGraph, Topology
from streamproof_models.failover.regions import Merging, pipelined_regions
from streamproof_models.topologies import JOB_GRAPHS

STARTED = ("SCHEDULED", "DEPLOYING", "INITIALIZING", "RUNNING")
"""States in which an attempt occupies a slot and is not being cancelled."""


class Failover(Model):
    """Backtracking failover of one job (FLIP-1, phase 2)."""

    name = "failover"

    topology: str = "diamond"
    """Job graph: a name of `streamproof_models.topologies.JOB_GRAPHS`."""
    parallelism: int = 1
    """Tasks per vertex of the named job graph."""
    failures: int = 1
    """How many tasks may fail of themselves."""
    losses: int = 1
    """How many stored partitions may be lost."""
    executors: int = 0
    """Task executors, tasks placed on them round robin; 0 leaves them out of the model."""
    executor_losses: int = 0
    """How many executors may be lost, with their tasks and partitions."""
    restarts: int = -1
    """Decisions to restart before the job is given up; -1: as many as there can be causes."""
    deterministic: bool = False
    """Whether a task that runs again produces the same output."""
    skip_created: bool = True
    """Leave tasks that were never scheduled out of the restart set, as Flink does; the search still passes through them."""
    release: bool = True
    """Release a partition when all the regions that read it have finished, as Flink's JobMaster does."""
    fenced: bool = True
    """Schedule nothing onto the output of a task that is about to be restarted."""
    keeping: bool = True
    """Release no partition that a task about to be restarted will read again."""
    eager: bool = False
    """Schedule whatever has become consumable in the same step, as Flink's scheduler does; else at any later time."""
    merging: str = "topology"
    """Where regions in a cycle are merged: `topology` (sound), `logical-region` (Flink 2.3), `none`."""
    overtaking: bool = False
    """Reports of different tasks may overtake each other: a pipelined consumer's end is known before its producer's."""
    detailed: bool = False
    """Distinguish DEPLOYING and INITIALIZING as Flink's logs do."""
    lenient: bool = False
    """For following a recorded run: budgets are not counted, and the job may be given up at any decision."""

    limits = {
        "parallelism": (1, None),
        "failures": (0, None),
        "losses": (0, None),
        "executors": (0, None),
        "executor_losses": (0, None),
        "restarts": (-1, None),
    }
    sizes = {
        "small": {},
        "medium": {"failures": 3, "losses": 3},
        "large": {"parallelism": 2, "failures": 2, "losses": 2},
    }

    # --- structure, computed once from the job graph

    def job_graph(self) -> JobGraph:
        """The job graph; a recorded run brings its own."""
        if self.topology not in JOB_GRAPHS:
            raise ValueError(f"no topology {self.topology!r}; the catalogue has {', '.join(JOB_GRAPHS)}")
        build = JOB_GRAPHS[self.topology]
        return build(*([self.parallelism] * build.__code__.co_argcount)) if self.parallelism > 1 else build()

    def task_names(self, topology: Topology) -> tuple[str, ...]:
        """The vertex's name, with the subtask's number where there are several."""
        single = {v.name for v in topology.graph.vertices if v.parallelism == 1}
        return tuple(v if v in single else f"{v}{i}" for v, i in topology.tasks)

    def setup(self):
        """Tasks, partitions, channels and regions, each with what it touches."""
        topology = Topology(self.job_graph())
        regions = pipelined_regions(topology, Merging(self.merging))
        self.tasks = self.task_names(topology)
        self.region_of = dict(zip(self.tasks, regions.of_task, strict=True))
        self.regions = tuple(tuple(self.tasks[t] for t in members) for members in regions.members)
        self.units = self.scheduling_units()
        self.region_name = tuple(_region_name(tasks) for tasks in self.regions)
        self.unit_named = {_region_name(tasks): tasks for tasks in self.units}
        self.failing = self.may_fail()
        self._wire(topology)
        self.components = _components(self.tasks, self.channel_ends.values())
        self.place = {t: at % self.executors for at, t in enumerate(self.tasks)} if self.executors else {}
        self.nodes = range(self.executors)
        causes = self.failures + self.losses + self.executor_losses * -(-len(self.tasks) // max(self.executors, 1))
        self.decisions = self.restarts if self.restarts >= 0 else causes
        self.stages = STARTED if self.detailed else ("SCHEDULED", "RUNNING")
        self.staged = self.tasks if self.detailed else ()
        self.starting = self.stages[-2]
        self.untrackable = self.partitions if self.lenient else ()

    def may_fail(self) -> tuple[str, ...]:
        """The tasks that can fail: all, but in a recorded run those that did."""
        return self.tasks

    def scheduling_units(self) -> tuple[tuple[str, ...], ...]:
        """What is scheduled at once."""
        return self.regions

    def _wire(self, topology: Topology) -> None:
        producer_of: dict[str, str] = {}
        ends: dict[str, tuple[str, str]] = {}
        partition_of: dict[str, str] = {}
        pipelined: list[str] = []
        for connection in topology.connections:
            edge = connection.edge
            if not edge.exchange.glues and not edge.exchange.rereadable:
                raise ValueError(f"exchange {edge.exchange.value} of {edge} is not part of the machine")
            for producers, consumers in connection.groups():
                for p in producers:
                    part = f"{edge.dataset}#{p - connection.producers.start}"
                    part = part if len(connection.producers) > 1 else edge.dataset
                    if not edge.exchange.glues:
                        producer_of[part] = self.tasks[p]
                    for c in consumers:
                        channel = f"{self.tasks[c]}<{part}"
                        ends[channel] = (self.tasks[p], self.tasks[c])
                        if edge.exchange.glues:
                            pipelined.append(channel)
                        else:
                            partition_of[channel] = part
        self.partitions = tuple(producer_of)
        self.producer_of = producer_of
        self.channels = tuple(ends)
        self.channel_ends = ends
        self.pipelined = tuple(pipelined)
        self.stored_channels = tuple(partition_of)
        self.partition_of = partition_of
        self.inputs = {t: tuple(c for c in ends if ends[c][1] == t) for t in self.tasks}
        self.stored_inputs = {t: tuple(c for c in self.inputs[t] if c in partition_of) for t in self.tasks}
        self.outputs = {t: tuple(p for p, maker in producer_of.items() if maker == t) for t in self.tasks}
        readers = {p: tuple(ends[c][1] for c in partition_of if partition_of[c] == p) for p in producer_of}
        self.near = {
            p: tuple(t for t in self.tasks if self.region_of[t] in {self.region_of[r] for r in readers[p]})
            for p in readers
        }
        self.read_by_region = tuple(
            tuple(p for p in producer_of if any(self.region_of[t] == r for t in readers[p]))
            for r in range(len(self.regions))
        )
        region, count = self.region_of, range(len(self.regions))
        crossing = [(c, region[a], region[z]) for c, (a, z) in ends.items() if region[a] != region[z]]
        self.feeding = tuple(tuple(sorted({a for _, a, z in crossing if z == r})) for r in count)
        self.fed = tuple(tuple(sorted({(z, partition_of[c]) for c, a, z in crossing if a == r})) for r in count)
        self.missable = tuple(c for t in self.failing for c in self.stored_inputs[t])

    # --- state

    def variables(self) -> dict[str, Decl]:
        """The state variables; variants add to them."""
        statuses = Enum("CREATED", *self.stages, "FINISHED", "FAILED", "CANCELING", "CANCELED")
        recovery = range(max(self.decisions, 1))
        declared = {
            "status": Array(self.tasks, statuses),
            "attempt": Array(self.tasks, Range(0, self.decisions)),
            "job": Enum("RUNNING", "FINISHED", "FAILED"),
            "decided": Range(0, self.decisions),
            "claim": Array(self.tasks, Range(0, self.decisions)),
            "restarting": Array(recovery, Set(Enum(*self.tasks))),
            "awaiting": Array(recovery, Set(Enum(*self.tasks))),
        }
        if self.partitions:
            declared["partition"] = Array(self.partitions, Enum("NONE", "PRODUCING", "STORED", "GONE", "RELEASED"))
        if self.channels:
            declared["read"] = Array(self.channels, Range(0, self.decisions + 1))
        if not self.lenient:
            declared["failures_left"] = Range(0, self.failures, init=self.failures)
            declared["losses_left"] = Range(0, self.losses, init=self.losses)
        if self.nodes:
            declared["executor"] = Array(self.nodes, Enum("ALIVE", "LOST"))
            declared["executor_losses_left"] = Range(0, self.executor_losses, init=self.executor_losses)
        return declared

    def state(self):
        """All tasks CREATED, nothing produced."""
        return State(**self.variables())

    # --- scheduling, in topological order of the regions

    def free(self, s):
        """Whether the JobMaster is not in the middle of a decision."""
        return s.job == "RUNNING"

    def consumable(self, s, unit):
        """Whether every stored input from outside the unit's region has been produced, as known to the JobMaster."""
        return all(
            s.status[self.channel_ends[c][0]] == "FINISHED"
            and not (self.fenced and self.doomed(s, self.channel_ends[c][0]))
            for t in self.unit_named[unit]
            for c in self.stored_inputs[t]
            if self.region_of[self.channel_ends[c][0]] != self.region_of[t]
        )

    def doomed(self, s, t):
        """Whether a restart decision for `t` is pending."""
        return any(t in s.restarting[k] and self.current(s, t, k) for k in range(self.decisions))

    @action(r=lambda m: tuple(m.unit_named), fairness=WEAK)
    def schedule(self, s, r):
        """The scheduler takes up a region, as a whole, whose inputs can all be consumed."""
        require(self.free(s))
        require(all(s.status[t] == "CREATED" for t in self.unit_named[r]))
        require(self.consumable(s, r))
        if self.nodes:
            require(all(s.executor[self.place[t]] == "ALIVE" for t in self.unit_named[r]))
        self.take_up(s, self.unit_named[r])

    def take_up(self, s, unit):
        """All tasks of a unit wait for slots."""
        for t in unit:
            s.status[t] = "SCHEDULED"
            if not self.detailed:
                self.track(s, t)

    def schedule_ready(self, s):
        """Takes up every unit that has become consumable."""
        for name, unit in self.unit_named.items():
            if all(s.status[t] == "CREATED" for t in unit) and self.consumable(s, name):
                self.take_up(s, unit)

    def track(self, s, t):
        """The JobMaster starts to track what `t` will produce."""
        for p in self.outputs[t]:
            s.partition[p] = "PRODUCING"

    def discard(self, s, t):
        """The output of `t` is void and no longer tracked."""
        for p in self.outputs[t]:
            s.partition[p] = "NONE"

    @action(t="staged", fairness=WEAK)
    def deploy(self, s, t):
        """The task's slot is assigned and the task sent to its executor."""
        require(s.status[t] == "SCHEDULED")
        s.status[t] = "DEPLOYING"
        self.track(s, t)

    @action(t="staged", fairness=WEAK)
    def initialize(self, s, t):
        """The executor has accepted the task."""
        require(s.status[t] == "DEPLOYING")
        s.status[t] = "INITIALIZING"

    @action(t="tasks", fairness=WEAK)
    def run(self, s, t):
        """The task runs, and attaches to each input that is there."""
        require(self.free(s))
        require(s.status[t] == self.starting)
        s.status[t] = "RUNNING"
        for c in self.inputs[t]:
            self.attach(s, c)

    def attach(self, s, c):
        """Channel `c` starts to deliver what its producer's present attempt has made or is making."""
        producer = self.channel_ends[c][0]
        if c not in self.partition_of or s.partition[self.partition_of[c]] == "STORED":
            s.read[c] = s.attempt[producer] + 1

    @action(t="tasks", fairness=WEAK)
    def finish(self, s, t):
        """The task has read all its inputs to the end; its partitions are stored, and inputs nobody needs are released."""
        require(self.free(s))
        require(s.status[t] == "RUNNING")
        require(all(self.delivered(s, c) for c in self.inputs[t]))
        for c in self.stored_inputs[t]:
            if s.read[c] == 0:
                self.attach(s, c)
        s.status[t] = "FINISHED"
        for p in self.outputs[t]:
            s.partition[p] = "STORED"
        if self.release:
            self.release_inputs(s, t)
        if self.eager:
            self.schedule_ready(s)

    def delivered(self, s, c):
        """Whether everything on channel `c` can have been read."""
        producer = self.channel_ends[c][0]
        if c not in self.partition_of:
            return s.status[producer] == "FINISHED" or (self.overtaking and self.started(s, producer))
        return s.read[c] > 0 or s.partition[self.partition_of[c]] == "STORED"

    def release_inputs(self, s, t):
        """Releases the partitions read by the region of `t` whose reading regions have all finished."""
        for p in self.read_by_region[self.region_of[t]]:
            done = all(s.status[u] == "FINISHED" and not (self.keeping and self.doomed(s, u)) for u in self.near[p])
            if done and s.partition[p] in ("STORED", "GONE"):
                s.partition[p] = "RELEASED"

    @action(fairness=WEAK)
    def complete(self, s):
        """The last task has finished and nothing is to be restarted: the job has finished."""
        require(self.free(s))
        require(all(len(s.restarting[k]) == 0 for k in range(self.decisions)))
        require(all(s.status[t] == "FINISHED" for t in self.tasks))
        s.job = "FINISHED"

    # --- failures

    def started(self, s, t):
        """Whether the current attempt of `t` is active."""
        return s.status[t] in self.stages

    @action(t="failing")
    def fail(self, s, t):
        """A task fails of itself."""
        require(self.free(s))
        require(self.started(s, t))
        require(s.decided < self.decisions)
        if not self.lenient:
            require(s.failures_left > 0)
            s.failures_left -= 1
        self.end(s, t)
        self.decide(s, t, None)

    def notices(self, s, t, p):
        """Whether task `t` can find its input partition `p` missing; inside a region it waits for a producer at work."""
        asking = ("INITIALIZING", "RUNNING") if self.detailed else ("RUNNING",)
        if s.partition[p] == "STORED" or s.status[t] not in asking:
            return False
        return self.region_of[t] != self.region_of[self.producer_of[p]] or not self.started(s, self.producer_of[p])

    @action(c="missable", fairness=WEAK)
    def miss(self, s, c):
        """A task finds the partition of its channel `c` missing and fails, naming it."""
        t, p = self.channel_ends[c][1], self.partition_of[c]
        require(self.free(s))
        require(self.notices(s, t, p))
        require(s.decided < self.decisions)
        self.end(s, t)
        self.decide(s, t, p)

    @action(t="failing")
    def give_up(self, s, t):
        """A task fails and the restart strategy allows no further attempt: the job fails."""
        require(self.free(s))
        require(self.started(s, t))
        if not self.lenient:
            require(s.decided == self.decisions)
            require(s.failures_left > 0 or any(self.notices(s, t, self.partition_of[c]) for c in self.stored_inputs[t]))
        s.status[t] = "FAILED"
        s.job = "FAILED"

    @action(p="partitions")
    def lose(self, s, p):
        """A stored partition is lost; nobody notices yet."""
        require(self.free(s))
        require(s.partition[p] == "STORED")
        if not self.lenient:
            require(s.losses_left > 0)
            s.losses_left -= 1
        s.partition[p] = "GONE"

    @action(p="untrackable")
    def untrack(self, s, p):
        """The JobMaster learns that a partition is lost with its executor (following a recorded run)."""
        require(s.partition[p] in ("PRODUCING", "STORED", "GONE"))
        s.partition[p] = "NONE"

    # --- executors: the JobMaster restarts their tasks first and forgets their partitions afterwards

    @action(e="nodes")
    def lose_executor(self, s, e):
        """An executor is lost with everything stored on it; the JobMaster has not noticed."""
        require(self.free(s))
        require(s.executor_losses_left > 0 and s.executor[e] == "ALIVE")
        s.executor_losses_left -= 1
        s.executor[e] = "LOST"
        for p in self.partitions:
            if self.place[self.producer_of[p]] == e and s.partition[p] == "STORED":
                s.partition[p] = "GONE"

    @action(t=lambda m: m.tasks if m.nodes else (), fairness=WEAK)
    def fail_with_executor(self, s, t):
        """The JobMaster notices that the executor of a task is gone and fails the task."""
        require(self.free(s))
        require(s.executor[self.place[t]] == "LOST")
        require(self.started(s, t))
        require(s.decided < self.decisions)
        self.end(s, t)
        self.decide(s, t, None)

    @action(e="nodes", fairness=WEAK)
    def forget_executor(self, s, e):
        """With its tasks failed, the JobMaster stops tracking the executor's partitions; another takes its place."""
        require(self.free(s))
        require(s.executor[e] == "LOST")
        require(all(not self.started(s, t) for t in self.tasks if self.place[t] == e))
        s.executor[e] = "ALIVE"
        for p in self.partitions:
            if self.place[self.producer_of[p]] == e and s.partition[p] == "GONE":
                s.partition[p] = "NONE"
        for t in self.tasks:
            if self.place[t] == e and s.status[t] == "CANCELING":
                self.stop(s, t)

    # --- recovery

    def unavailable(self, s, p, named):
        """Whether the JobMaster considers partition `p` lost: not tracked, or named by the exception it handles."""
        return p == named or s.partition[p] in ("NONE", "RELEASED")

    def involved(self, s, t, named):
        """For each region, whether it restarts because `t` failed: the least set closed under the two rules below."""
        regions = range(len(self.regions))
        marked = [r == self.region_of[t] for r in regions]
        for _ in self.regions[1:]:  # a chain of causes meets no region twice
            for r in regions:
                marked[r] = marked[r] or self.drawn_in(s, r, marked, named)
        return marked

    def drawn_in(self, s, r, marked, named):
        """Whether the marked regions add region `r`: it produced an input that they miss, or it reads their output."""
        return self.misses_output(s, r, marked, named) or any(marked[q] for q in self.feeding[r])

    def misses_output(self, s, r, marked, named):
        """Whether a marked region needs a lost partition produced by region `r`."""
        return any(marked[q] and self.unavailable(s, p, named) for q, p in self.fed[r])

    def restart_set(self, s, t, named):
        """Task -> whether it restarts because `t` failed: the failover strategy."""
        marked = self.involved(s, t, named)
        return {u: marked[self.region_of[u]] for u in self.tasks}

    def end(self, s, t):
        """The present attempt of `t` has failed."""
        s.status[t] = "FAILED"
        self.discard(s, t)

    def decide(self, s, t, named):
        """The JobMaster decides what to restart and starts to cancel it."""
        chosen = self.restart_set(s, t, named)
        self.begin(s, {u: chosen[u] and (s.status[u] != "CREATED" or not self.skip_created) for u in self.tasks})

    def begin(self, s, chosen):
        """Opens a recovery for the chosen tasks: it claims them and cancels those in flight."""
        s.restarting[s.decided].clear()
        for u in self.tasks:
            if chosen[u]:
                s.restarting[s.decided].add(u)
                s.claim[u] = s.decided
                if self.started(s, u):
                    s.status[u] = "CANCELING"
                if s.status[u] == "CANCELING":
                    s.awaiting[s.decided].add(u)
        s.decided += 1

    def stop(self, s, t):
        """The attempt of `t` has ended; no recovery waits for it any longer."""
        s.status[t] = "CANCELED"
        self.discard(s, t)
        for k in range(self.decisions):
            s.awaiting[k].discard(t)

    @action(t="tasks", fairness=WEAK)
    def cancel(self, s, t):
        """A task being cancelled has stopped."""
        require(self.free(s))
        require(s.status[t] == "CANCELING")
        self.stop(s, t)

    @action(k="decisions", fairness=WEAK)
    def restart(self, s, k):
        """All tasks of recovery `k` have stopped: those that no newer decision claims start over."""
        require(self.free(s))
        require(k < s.decided and len(s.restarting[k]) > 0 and len(s.awaiting[k]) == 0)
        for t in self.tasks:
            if t in s.restarting[k] and self.current(s, t, k):
                self.reset(s, t)
        s.restarting[k].clear()
        if self.eager:
            self.schedule_ready(s)

    def current(self, s, t, k):
        """Whether recovery `k` is the newest that claimed `t`."""
        return s.claim[t] == k

    def reset(self, s, t):
        """A new attempt of `t`: what the old one produced and read is void."""
        s.status[t] = "CREATED"
        if s.attempt[t] < self.decisions:
            s.attempt[t] += 1
        self.discard(s, t)
        for c in self.inputs[t]:
            s.read[c] = 0

    @terminal
    def over(self, s):
        """The job has finished or was given up."""
        return s.job != "RUNNING"


def _region_name(tasks: tuple[str, ...]) -> str:
    """The name of a region from its tasks: all of one or two, else the first and the number of others."""
    return "+".join(tasks) if len(tasks) < 3 else f"{tasks[0]}+{len(tasks) - 1} more"


def _components(tasks: tuple[str, ...], ends: Any) -> dict[str, int]:
    """Task -> number of its weakly connected component."""
    number = {t: at for at, t in enumerate(tasks)}
    changed = True
    while changed:
        changed = False
        for a, c in ends:
            low = min(number[a], number[c])
            changed = changed or number[a] != low or number[c] != low
            number[a] = number[c] = low
    return number


__all__ = ["NONE", "STARTED", "Failover"]
