"""Failover of a streaming job whose results are cached since the latest checkpoint (FLIP-1, phase 1, version 2).

FLIP-1: a *caching* intermediate result "caches all elements since the latest checkpoint", and a consumer that restarts from
that checkpoint reads it again without its producer; a *memory-only caching* one discards what has been sent when its memory
is full. Phase 2 leaves as its last task that backtracking stops at results that are there for the checkpoint to resume from.

* **Tasks** form a tree below one source, which can read its own input again from any position. Every task turns each record
  into one, so that a position is the same number everywhere. Each task is a region of its own: every exchange is cached.
* **Checkpoints**: the source starts one at its position; a task takes its snapshot at that position, before the next record,
  when its producer has; with the last snapshot the checkpoint is complete. One is pending at a time.
* **Failures**: a task fails of itself, or because the next record of its input is missing (`miss`). In the same step the
  restart set is computed, its tasks go back to the latest complete checkpoint, and a pending checkpoint is aborted. How
  tasks stop, and decisions that overlap, are the subject of `failover`.

`version` and `used` are history: which attempt produced a record last, and which one's record a consumer has read.
"""

from __future__ import annotations

from streamproof import WEAK, Array, Enum, Model, Option, Range, State, action, require, terminal

TREES = {"chain": {"A": None, "B": "A", "C": "B"}, "tee": {"A": None, "B": "A", "C": "B", "D": "B"}}
"""Task -> its producer, by the name of the tree; the first task is the source."""


class CachedResults(Model):
    """A tree of tasks with cached results, and its checkpoints."""

    name = "cached_results"
    sizes = {
        "small": {},
        "medium": {"records": 3, "failures": 2, "losses": 2},
        "large": {"topology": "tee", "records": 3, "failures": 2, "losses": 2},
    }

    topology: str = "chain"
    """A name in `TREES`."""
    records: int = 2
    """Number of records of the source."""
    failures: int = 1
    """Number of tasks that may fail of themselves."""
    losses: int = 1
    """Number of cached results that may be lost."""
    deterministic: bool = False
    """Whether a task that runs again produces the same records."""

    limits = {"records": (1, None), "failures": (0, None), "losses": (0, None)}

    def setup(self):
        """The tasks, and their places in the tree. Raises `ValueError` for another name of a tree."""
        if self.topology not in TREES:
            raise ValueError(f"topology {self.topology!r}: one of {', '.join(TREES)}")
        self.producer = {t: p for t, p in TREES[self.topology].items() if p is not None}
        """Task -> its producer; the source has none."""
        self.tasks = tuple(TREES[self.topology])
        self.source = self.tasks[0]
        self.consumers = {t: tuple(c for c, p in self.producer.items() if p == t) for t in self.tasks}
        self.producers = tuple(t for t in self.tasks if self.consumers[t])
        """The tasks whose results are cached."""
        self.decisions = self.failures + self.losses

    def state(self):
        """No record has been read, and nothing has failed."""
        position, attempts = Range(0, self.records), Range(0, self.decisions)
        produced_by = Array(range(1, self.records + 1), Option(attempts))
        return State(
            job=Enum("RUNNING", "FINISHED", "FAILED"),
            position=Array(self.tasks, position),  # records that the task has turned
            attempt=Array(self.tasks, attempts),
            # the cache of a producer has the records after this position
            cached_after=Array(self.producers, position),
            known_after=Array(self.producers, position),  # what the JobMaster takes it for
            checkpoint=position,  # the latest complete one
            pending=Option(position),
            snapshot=Array(self.tasks, Option(attempts)),  # the attempt that took it, for the pending checkpoint
            failures_left=Range(0, self.failures, init=self.failures),
            losses_left=Range(0, self.losses, init=self.losses),
            decided=attempts,
            # for properties
            version=Array(self.tasks, produced_by),
            used=Array(list(self.producer), produced_by),
            cause=Option(Enum(*self.tasks)),  # the task whose failure led to the last restart
        )

    # --- records

    @action(t="tasks", fairness=WEAK)
    def turn(self, s, t):
        """A task reads its next record and produces one; a barrier before the record comes first."""
        require(s.job == "RUNNING" and s.position[t] < self.records)
        require(s.pending is None or s.pending != s.position[t] or s.snapshot[t] is not None)
        k = s.position[t] + 1
        if t in self.producer:
            p = self.producer[t]
            require(s.cached_after[p] < k and k <= s.position[p])
            s.used[t][k] = s.version[p][k]
        if t in self.producers:
            self.make_room(s, t)
        s.position[t] = k
        s.version[t][k] = s.attempt[t]

    def make_room(self, s, t):
        """The cache of `t` takes another record: it spills to disk."""

    @action(fairness=WEAK)
    def finish(self, s):
        """Every record has been turned by every task, and no checkpoint is pending."""
        require(s.job == "RUNNING" and s.pending is None)
        require(all(s.position[t] == self.records for t in self.tasks))
        s.job = "FINISHED"

    # --- checkpoints

    @action
    def trigger(self, s):
        """The source starts a checkpoint at its position."""
        require(s.job == "RUNNING" and s.pending is None and s.position[self.source] > s.checkpoint)
        s.pending = s.position[self.source]
        s.snapshot[self.source] = s.attempt[self.source]

    @action(t="tasks", fairness=WEAK)
    def take_snapshot(self, s, t):
        """The barrier has come from the producer, after the records before it: the task takes its snapshot."""
        require(s.job == "RUNNING" and s.snapshot[t] is None and s.pending == s.position[t])
        require(t not in self.producer or s.snapshot[self.producer[t]] is not None)
        s.snapshot[t] = s.attempt[t]

    @action(fairness=WEAK)
    def complete(self, s):
        """The last snapshot completes the checkpoint: the caches drop what is before it."""
        require(s.job == "RUNNING" and s.pending is not None and all(s.snapshot[t] is not None for t in self.tasks))
        s.checkpoint = s.pending
        self.end_checkpoint(s)
        for p in self.producers:
            self.drop(s, p, s.checkpoint)

    def end_checkpoint(self, s):
        """No checkpoint is pending."""
        s.pending = None
        for t in self.tasks:
            s.snapshot[t] = None

    def drop(self, s, p, position):
        """The cache of `p` has no records up to `position`."""
        s.cached_after[p] = max(s.cached_after[p], position)
        s.known_after[p] = max(s.known_after[p], position)

    # --- failures

    @action(t="tasks")
    def fail(self, s, t):
        """A task fails of itself."""
        require(s.job == "RUNNING" and s.failures_left > 0 and s.decided < self.decisions)
        s.failures_left -= 1
        self.fail_over(s, t)

    @action(p="producers")
    def lose(self, s, p):
        """A cache is lost with all its records; nobody notices yet."""
        require(s.job == "RUNNING" and s.losses_left > 0 and s.cached_after[p] < s.position[p])
        s.losses_left -= 1
        s.cached_after[p] = s.position[p]

    @action(t=lambda m: list(m.producer), fairness=WEAK)
    def miss(self, s, t):
        """A task finds its next record missing, and fails with the name of the result."""
        require(s.job == "RUNNING" and self.misses(s, t) and s.decided < self.decisions)
        s.known_after[self.producer[t]] = s.cached_after[self.producer[t]]
        self.fail_over(s, t)

    def misses(self, s, t):
        """Whether the next record of `t` was produced and is not cached."""
        return s.position[t] < s.cached_after[self.producer[t]]

    @action(t="tasks", fairness=WEAK)
    def give_up(self, s, t):
        """A task misses a record, and the restart strategy allows no further restart."""
        require(s.job == "RUNNING" and t in self.producer and s.decided == self.decisions)
        require(t in self.producer and self.misses(s, t))
        s.job = "FAILED"

    def fail_over(self, s, t):
        """The restart set begins again from the latest complete checkpoint."""
        s.cause = t
        s.decided += 1
        chosen = self.tasks_to_restart(s, t)
        for u in self.tasks:
            if chosen[u]:
                self.reset(s, u, s.checkpoint)
        self.after_restart(s, chosen)

    def tasks_to_restart(self, s, failed):
        """The failed task; the producer of a restarting task, if its cache lacks a record after the checkpoint; all consumers
        of a restarting task, because its records may differ the next time."""
        chosen = {t: t == failed for t in self.tasks}
        for t in reversed(self.tasks):
            if t in self.producer:
                p = self.producer[t]
                chosen[p] = chosen[p] or (chosen[t] and self.is_incomplete(s, p))
        for t in self.tasks:
            if t in self.producer:
                chosen[t] = chosen[t] or chosen[self.producer[t]]
        return chosen

    def is_incomplete(self, s, p):
        """Whether the JobMaster knows that the cache of `p` lacks a record after the latest checkpoint."""
        return s.known_after[p] > s.checkpoint

    def reset(self, s, t, position):
        """A new attempt of `t` begins at `position`, with an empty cache."""
        for k in range(1, self.records + 1):
            if k > position:
                s.version[t][k] = None
                if t in self.producer:
                    s.used[t][k] = None
        s.position[t] = position
        s.attempt[t] = self.next_attempt(s, t)
        if t in self.producers:
            s.cached_after[t] = position
            s.known_after[t] = position

    def next_attempt(self, s, t):
        """The number of the next attempt of `t`."""
        return s.attempt[t] + 1

    def after_restart(self, s, chosen):
        """A pending checkpoint is aborted."""
        self.end_checkpoint(s)

    @terminal
    def over(self, s):
        """The job has finished or was given up."""
        return s.job in ("FINISHED", "FAILED")
