"""The failover machine for proofs about every job graph, with any number of failures and losses.

The job graph is part of the first state, which is any: which task is in which region, which task produces a partition, which
tasks read it, and whether it can be read again. Nothing else is assumed of it than that an exchange that cannot be read
again stays within a region. The rules are those of `failover`, with three differences:

* **The restart set** is any that meets the three conditions of the restart rule (`is_restart_set`); that of `failover` is
  the least one. The environment draws it up, task by task (`consider`), before the failure that restarts it.
* **Partitions** are released some time after their last reader has finished, not in the same step.
* **Failures and losses** have no budget: only the number of decisions to restart is bounded.

Each step of `failover` is a step of this machine, but for `consider` and `release`.
"""

from __future__ import annotations

from streamproof import ANY, Array, Bool, Enum, Model, Option, Range, State, action, initially, require

ACTIVE = ("SCHEDULED", "RUNNING")


class FailoverAnyGraph(Model):
    """Backtracking failover of one job of any job graph."""

    name = "failover_any_graph"

    tasks: int = 2
    """Number of tasks."""
    partitions: int = 1
    """Number of result partitions, of both kinds of exchange."""
    decisions: int = 1
    """Number of decisions to restart before the job is given up."""
    instance_bounds = ("tasks", "partitions", "decisions")
    limits = {"tasks": (1, None), "partitions": (1, None), "decisions": (0, None)}
    sizes = {"small": {}, "medium": {"partitions": 2}}
    check_deadlock = False  # regions that wait for each other are never scheduled

    def state(self):
        """All tasks CREATED, nothing produced, on a job graph of any form."""
        t, p, number = range(self.tasks), range(self.partitions), Range(0, self.decisions)
        places, chosen = range(self.decisions + 1), Array(t, Bool())
        return State(
            # the job graph
            region=Array(t, Range(0, self.tasks - 1, init=ANY)),
            producer=Array(p, Range(0, self.tasks - 1, init=ANY)),
            reads=Array(p, Array(t, Bool(init=ANY))),
            rereadable=Array(p, Bool(init=ANY)),
            # the job
            job=Enum("RUNNING", "FINISHED", "FAILED"),
            status=Array(t, Enum("CREATED", *ACTIVE, "FINISHED", "FAILED", "CANCELING", "CANCELED")),
            attempt=Array(t, number),
            partition=Array(p, Enum("NONE", "PRODUCING", "STORED", "GONE", "RELEASED")),
            read=Array(p, Array(t, Option(number))),
            decided=number,
            restarting=Array(places, chosen),
            awaiting=Array(places, chosen),
            version=Array(t, number),
            chosen=chosen,  # the restart set that is being drawn up
        )

    @initially
    def is_job_graph(self, s):
        """An exchange that cannot be read again stays within a region."""
        return all(
            s.rereadable[p] or not s.reads[p][z] or s.region[s.producer[p]] == s.region[z]
            for p in range(self.partitions)
            for z in range(self.tasks)
        )

    # --- scheduling

    @action(r="tasks")
    def schedule(self, s, r):
        """The scheduler schedules a region, as a whole, when its inputs from other regions have been produced."""
        require(s.job == "RUNNING" and self.is_created(s, r) and self.has_inputs(s, r))
        s.partition = ["PRODUCING" if s.region[s.producer[p]] == r else s.partition[p] for p in range(self.partitions)]
        s.status = ["SCHEDULED" if s.region[t] == r else s.status[t] for t in range(self.tasks)]

    def is_created(self, s, r):
        """Whether the tasks of region `r` are to be scheduled."""
        return all(s.region[t] != r or s.status[t] == "CREATED" for t in range(self.tasks))

    def has_inputs(self, s, r):
        """Whether the producers of what region `r` reads of other regions have finished for good."""
        return all(
            s.region[t] != r or not s.reads[p][t] or s.region[s.producer[p]] == r or self.has_finished(s, s.producer[p])
            for p in range(self.partitions)
            for t in range(self.tasks)
        )

    def has_finished(self, s, t):
        """Whether task `t` has finished and no pending decision restarts it."""
        return s.status[t] == "FINISHED" and not self.will_restart(s, t)

    def will_restart(self, s, t):
        """Whether a pending decision restarts task `t`: if one does, its number is the version of the task."""
        return s.restarting[s.version[t]][t]

    @action(t="tasks")
    def run(self, s, t):
        """The task runs."""
        require(s.job == "RUNNING" and s.status[t] == "SCHEDULED")
        self.read_inputs(s, t)
        s.status[t] = "RUNNING"

    def read_inputs(self, s, t):
        """Task `t` begins to read, of the producers' present attempts, the inputs that are there."""
        s.read = [
            [
                s.attempt[s.producer[p]]
                if z == t and s.reads[p][z] and s.read[p][z] is None and self.is_there(s, p)
                else s.read[p][z]
                for z in range(self.tasks)
            ]
            for p in range(self.partitions)
        ]

    def is_there(self, s, p):
        """Whether a task that starts finds partition `p`."""
        return not s.rereadable[p] or s.partition[p] == "STORED"

    @action(t="tasks")
    def finish(self, s, t):
        """The task has read its inputs to the end; its partitions are stored."""
        require(s.job == "RUNNING" and s.status[t] == "RUNNING")
        require(all(not s.reads[p][t] or self.is_delivered(s, p, t) for p in range(self.partitions)))
        self.read_inputs(s, t)
        s.status[t] = "FINISHED"
        s.partition = ["STORED" if s.producer[p] == t else s.partition[p] for p in range(self.partitions)]

    def is_delivered(self, s, p, t):
        """Whether task `t` can have read partition `p` to its end."""
        if s.rereadable[p]:
            return s.read[p][t] is not None or s.partition[p] == "STORED"
        return s.status[s.producer[p]] == "FINISHED"

    @action(p="partitions")
    def release(self, s, p):
        """Nobody needs a stored partition: the regions that read it have finished for good."""
        require(s.job == "RUNNING" and s.rereadable[p] and s.partition[p] in ("STORED", "GONE"))
        require(
            all(
                not s.reads[p][z] or s.region[u] != s.region[z] or self.has_finished(s, u)
                for z in range(self.tasks)
                for u in range(self.tasks)
            )
        )
        s.partition[p] = "RELEASED"

    @action
    def complete(self, s):
        """The last task has finished and no decision is pending: the job has finished."""
        require(s.job == "RUNNING" and all(s.status[t] == "FINISHED" for t in range(self.tasks)))
        require(
            all(not s.restarting[k][t] for k in range(self.decisions + 1) for t in range(self.tasks))
            and all(not self.will_restart(s, t) for t in range(self.tasks))
        )  # the second follows from the first: proofs look up what restarts a task by its version
        s.job = "FINISHED"

    # --- failures

    @action(t="tasks")
    def consider(self, s, t):
        """The restart set of the next decision may have task `t`, or not."""
        s.chosen[t] = not s.chosen[t]

    @action(t="tasks")
    def fail(self, s, t):
        """A task fails of itself."""
        require(s.job == "RUNNING" and s.status[t] in ACTIVE and s.decided < self.decisions)
        self.fail_over(s, t)

    @action(p="partitions")
    def lose(self, s, p):
        """A stored partition is lost; nobody notices yet."""
        require(s.job == "RUNNING" and s.rereadable[p] and s.partition[p] == "STORED")
        s.partition[p] = "GONE"

    @action(t="tasks", p="partitions")
    def miss(self, s, t, p):
        """A task finds its input partition missing and fails, naming it."""
        require(s.job == "RUNNING" and self.notices(s, t, p) and s.decided < self.decisions)
        self.fail_over(s, t, (p,))

    def notices(self, s, t, p):
        """Whether task `t` can find partition `p` missing; inside a region it waits for a producer at work."""
        waits = s.region[t] == s.region[s.producer[p]] and s.status[s.producer[p]] in ACTIVE
        missing = s.reads[p][t] and s.rereadable[p] and s.partition[p] != "STORED"
        return s.status[t] == "RUNNING" and missing and not waits

    @action(t="tasks")
    def give_up(self, s, t):
        """A task fails and the restart strategy allows no further attempt: the job fails."""
        require(s.job == "RUNNING" and s.status[t] in ACTIVE and s.decided == self.decisions)
        s.status[t] = "FAILED"
        s.job = "FAILED"

    def end(self, s, t, status):
        """The present attempt of `t` ends: its output is void, and no decision awaits it any longer."""
        s.status[t] = status
        s.partition = ["NONE" if s.producer[p] == t else s.partition[p] for p in range(self.partitions)]
        s.awaiting = [[s.awaiting[k][u] and u != t for u in range(self.tasks)] for k in range(self.decisions + 1)]

    # --- failover

    def fail_over(self, s, t, missing=()):
        """The attempt of `t` has failed; in the same step a decision restarts the set that was drawn up."""
        self.end(s, t, "FAILED")
        require(self.is_restart_set(s, t, missing))
        self.begin_restart(s)

    def is_restart_set(self, s, failed, missing):
        """The restart rule, as three conditions: the set has, with each task, its region, the failed task among them; the
        producers of lost inputs; and all consumers, because the output may differ the next time."""
        return (
            s.chosen[failed] and self.has_whole_regions(s) and self.has_producers(s, missing) and self.has_consumers(s)
        )

    def has_whole_regions(self, s):
        """The set has all tasks of a region, or none."""
        t = range(self.tasks)
        return all(s.region[a] != s.region[z] or s.chosen[a] == s.chosen[z] for a in t for z in t)

    def has_producers(self, s, missing):
        """The set has the producers of the lost inputs of its tasks."""
        return all(
            not s.reads[p][z] or not s.chosen[z] or not self.is_lost(s, p, missing) or s.chosen[s.producer[p]]
            for p in range(self.partitions)
            for z in range(self.tasks)
        )

    def has_consumers(self, s):
        """The set has the consumers of its tasks."""
        return all(
            not s.reads[p][z] or not s.chosen[s.producer[p]] or s.chosen[z]
            for p in range(self.partitions)
            for z in range(self.tasks)
        )

    def is_lost(self, s, p, missing):
        """Whether the JobMaster considers partition `p` lost: not tracked, or named by the failure at hand."""
        return s.rereadable[p] and (any(p == q for q in missing) or s.partition[p] in ("NONE", "RELEASED"))

    def begin_restart(self, s):
        """A new decision takes over the chosen tasks, except those never scheduled, and cancels the active ones."""
        k, t = s.decided, range(self.tasks)
        s.restarting[k] = [self.is_taken_over(s, u) for u in t]
        s.version = [k if self.is_taken_over(s, u) else s.version[u] for u in t]
        s.awaiting[k] = [s.chosen[u] and s.status[u] in (*ACTIVE, "CANCELING") for u in t]
        s.status = ["CANCELING" if s.chosen[u] and s.status[u] in ACTIVE else s.status[u] for u in t]
        s.decided += 1

    def is_taken_over(self, s, t):
        """Whether the new decision restarts task `t`."""
        return s.chosen[t] and s.status[t] != "CREATED"

    @action(t="tasks")
    def cancel(self, s, t):
        """A task being cancelled has stopped."""
        require(s.job == "RUNNING" and s.status[t] == "CANCELING")
        self.end(s, t, "CANCELED")

    @action(k=lambda m: range(m.decisions + 1))
    def restart(self, s, k):
        """All tasks of decision `k` have stopped: those that no newer decision has taken over start again."""
        require(s.job == "RUNNING" and k < s.decided and all(not s.awaiting[k][t] for t in range(self.tasks)))
        s.read = [
            [None if self.restarts_task(s, k, z) else s.read[p][z] for z in range(self.tasks)]
            for p in range(self.partitions)
        ]
        s.partition = [
            "NONE" if self.restarts_task(s, k, s.producer[p]) else s.partition[p] for p in range(self.partitions)
        ]
        s.attempt = [
            self.next_attempt(s, t) if self.restarts_task(s, k, t) else s.attempt[t] for t in range(self.tasks)
        ]
        s.status = ["CREATED" if self.restarts_task(s, k, t) else s.status[t] for t in range(self.tasks)]
        s.restarting[k] = [False for t in range(self.tasks)]

    def restarts_task(self, s, k, t):
        """Whether decision `k` is pending and the newest that restarts `t`."""
        return s.restarting[k][t] and s.version[t] == k

    def next_attempt(self, s, t):
        """The number of the attempt after the present one."""
        return s.attempt[t] + 1


class NoDownstreamRestartAnyGraph(FailoverAnyGraph, variant="no-downstream-restart"):
    """Lost inputs are recomputed, but their other consumers go on with what they have read."""

    tasks: int = 3

    def has_consumers(self, s):
        """Consumers need not restart."""
        return True


class IndividualAnyGraph(FailoverAnyGraph, variant="individual"):
    """Only the failed task restarts, without the other tasks of its region."""

    @action(t="tasks")
    def schedule(self, s, t):
        """The scheduler schedules every task by itself."""
        require(s.job == "RUNNING" and s.status[t] == "CREATED" and self.has_inputs(s, s.region[t]))
        s.partition = ["PRODUCING" if s.producer[p] == t else s.partition[p] for p in range(self.partitions)]
        s.status[t] = "SCHEDULED"

    def has_whole_regions(self, s):
        """Tasks restart one by one."""
        return True

    def has_consumers(self, s):
        """Consumers need not restart."""
        return True


class NoFenceAnyGraph(FailoverAnyGraph, variant="no-fence"):
    """Tasks may be scheduled onto output that a decision already taken is about to discard."""

    tasks: int = 3

    def has_finished(self, s, t):
        """Whether task `t` has finished, even if a decision restarts it."""
        return s.status[t] == "FINISHED"


class NoVersioningAnyGraph(FailoverAnyGraph, variant="no-versioning"):
    """Every decision resets all its tasks, also those that a newer one has taken over and restarted."""

    decisions: int = 2

    def restarts_task(self, s, k, t):
        """Whether decision `k` is pending and restarts `t`."""
        return s.restarting[k][t]


class AttemptReuseAnyGraph(FailoverAnyGraph, variant="attempt-reuse"):
    """A restarted task keeps its attempt number, so old and new output are indistinguishable."""

    def next_attempt(self, s, t):
        """The same number."""
        return s.attempt[t]


class NoTopologicalOrderAnyGraph(FailoverAnyGraph, variant="no-topological-order"):
    """Restarted tasks are scheduled at once instead of when their inputs have been produced again."""

    def has_inputs(self, s, r):
        """Nobody waits for inputs."""
        return True


class UnnoticedLossAnyGraph(FailoverAnyGraph, variant="unnoticed-loss"):
    """A task does not notice that an input is missing and finishes with what there is of it."""

    def is_delivered(self, s, p, t):
        """What is there is enough."""
        return True
