"""Checkpoints of a streaming job: the CheckpointCoordinator of Flink 2.3, the tasks, and a restart of the job.

A periodic trigger starts a checkpoint in stages, in the threads of the coordinator: the *plan* (the execution attempts that
take part) and the checkpoint id; the `PendingCheckpoint` with its time-out (`CheckpointCanceller`); the trigger messages.
Each task takes a snapshot and acknowledges or declines. The last acknowledgement completes the checkpoint: it is added to the
`CompletedCheckpointStore`, the oldest one is subsumed, earlier pending ones are aborted, and the tasks are notified; a
sink then publishes what it wrote before the snapshot. If a task fails, all pending checkpoints are aborted, all tasks are
cancelled, and new attempts start from the latest completed checkpoint (`CheckpointCoordinator`, `PendingCheckpoint`,
`DefaultCheckpointPlanCalculator`, `CheckpointCoordinatorDeActivator`).

Every critical section of `CheckpointCoordinator.lock` is one action. Messages may overtake each other.

Abstractions: all tasks are one pipelined region; every task takes part from the trigger on (barriers in channels are
the subject of `credit_barriers`); savepoints are left out; a time-out may happen at any time.
"""

from __future__ import annotations

from streamproof import WEAK, Array, Bool, Enum, Model, Range, State, action, choose, require, terminal
from streamproof_models.checkpoints.rules import CheckpointRules


class Checkpoints(CheckpointRules, Model):
    """The tasks of one job, and the coordinator of its checkpoints; checkpoint ids begin with 1."""

    name = "checkpoints"
    sizes = {
        "small": {},
        "medium": {"ids": 3, "concurrent": 2, "faults": 2},
        "large": {"ids": 3, "concurrent": 2, "failures": 3, "faults": 2},
    }

    tasks: int = 2
    """Number of tasks."""
    ids: int = 2
    """Number of checkpoints that get an id."""
    concurrent: int = 1
    """Largest number of pending checkpoints (`maxConcurrentCheckpoints`)."""
    retained: int = 1
    """Number of completed checkpoints that the store keeps."""
    failures: int = 1
    """Number of failures of tasks."""
    faults: int = 1
    """Number of lost messages, declined checkpoints and failed writes to the store."""
    instance_bounds = ("ids", "failures", "faults")
    limits = {
        "tasks": (1, None), "ids": (1, None), "concurrent": (1, None), "retained": (1, None), "failures": (0, None),
        "faults": (0, None),
    }  # fmt: skip

    def setup(self):
        """Pairs of a checkpoint id and a task."""
        self.every = self.keys = range(1, self.ids + 1)
        self.pairs = [(c, t) for c in self.every for t in range(self.tasks)]

    def state(self):
        """The job runs; nothing was triggered."""
        checkpoint, attempt = Range(0, self.ids), Range(0, self.failures)
        return State(
            job=Enum("RUNNING", "FAILING", "RESTARTING"),
            attempt=attempt,  # number of restarts
            running=Array(self.tasks, Bool(init=True)),
            failures_left=Range(0, self.failures, init=self.failures),
            faults_left=Range(0, self.faults, init=self.faults),
            # the coordinator
            stage=Enum("IDLE", "PLANNING", "PLANNED", "CREATED"),  # isTriggering, and how far
            last_id=checkpoint,  # CheckpointIDCounter
            planned=attempt,  # attempts of the plan that is being made
            checkpoint=Array(self.every, Enum("NONE", "PENDING", "COMPLETED", "ABORTED")),
            plan=Array(self.every, attempt),
            acknowledged=Array(self.pairs, Bool()),
            store=Array(self.every, Bool()),  # CompletedCheckpointStore
            restored=checkpoint,  # from which the tasks started
            # messages, and what a task has published
            triggers=Array(self.pairs, Bool()),
            answer=Array(self.pairs, Enum("NONE", "ACKNOWLEDGE", "DECLINE")),
            answered=Array(self.pairs, attempt),  # the attempt that sent the answer
            notices=Array(self.pairs, Bool()),
            published=Array(self.tasks, checkpoint),
            # for properties: the last completed checkpoint, and the attempt that took the last snapshot
            latest=checkpoint,
            snapshot=Array(self.pairs, Range(-1, self.failures, init=-1)),
        )

    # --- the tasks

    @action(c="every", t="tasks", fairness=WEAK)
    def take_snapshot(self, s, c, t):
        """A task takes a snapshot and acknowledges, or declines."""
        require(s.triggers[c, t] and s.running[t])
        s.triggers[c, t] = False
        s.answered[c, t] = s.attempt
        if choose(acknowledge=True, decline=False):
            s.snapshot[c, t] = s.attempt
            s.answer[c, t] = "ACKNOWLEDGE"
        else:
            self.spend_fault(s)
            s.answer[c, t] = "DECLINE"

    def spend_fault(self, s):
        """One of the faults that may happen."""
        require(s.faults_left > 0)
        s.faults_left -= 1

    @action(c="every", t="tasks", fairness=WEAK)
    def publish(self, s, c, t):
        """`notifyCheckpointComplete`: a sink publishes what it wrote before the snapshot."""
        require(s.notices[c, t] and s.running[t])
        s.notices[c, t] = False
        s.published[t] = max(s.published[t], c)

    @action(t="tasks", fairness=WEAK)
    def run(self, s, t):
        """A new attempt of a task runs."""
        require(s.job == "RUNNING" and not s.running[t])
        s.running[t] = True

    @action(c="every", t="tasks")
    def lose(self, s, c, t):
        """A message to a task is lost."""
        require(s.triggers[c, t] or s.notices[c, t])
        self.spend_fault(s)
        s.triggers[c, t] = False
        s.notices[c, t] = False

    def pending(self, s):
        """The number of pending checkpoints."""
        return sum(int(x == "PENDING") for x in s.checkpoint)

    def newest(self, s):
        """`getLatestCheckpoint`: the newest checkpoint in the store, 0 if there is none."""
        return max((c if s.store[c] else 0) for c in self.every)

    # --- the coordinator triggers

    @action(fairness=WEAK)
    def start_triggering(self, s):
        """`startTriggeringCheckpoint`: the job runs, and not too many checkpoints are pending."""
        require(s.stage == "IDLE" and s.job == "RUNNING" and s.last_id < self.ids)
        require(self.pending(s) < self.concurrent)
        s.stage = "PLANNING"

    @action(fairness=WEAK)
    def make_plan(self, s):
        """`calculateEventPlan` and `getAndIncrement`: the attempts of all tasks, which must run, and an id."""
        require(s.stage == "PLANNING")
        if s.job == "RUNNING" and all(s.running):
            s.planned = s.attempt
            s.last_id += 1
            s.stage = "PLANNED"
        else:
            s.stage = "IDLE"

    @action(fairness=WEAK)
    def create(self, s):
        """`createPendingCheckpoint`: unless the job has failed since the plan."""
        require(s.stage == "PLANNED")
        if self.may_create(s):
            s.checkpoint[s.last_id] = "PENDING"
            s.plan[s.last_id] = s.planned
            s.stage = "CREATED"
        else:
            self.fail_trigger(s)

    def may_create(self, s):
        """The second `preCheckGlobalState`."""
        return s.job == "RUNNING" and s.planned == s.attempt

    def fail_trigger(self, s):
        """`onTriggerFailure`: the next request may start."""
        s.stage = "IDLE"

    @action(fairness=WEAK)
    def trigger_tasks(self, s):
        """`triggerCheckpointRequest`: a message to each task of the plan, unless the checkpoint is disposed."""
        require(s.stage == "CREATED")
        if self.may_trigger(s, s.last_id):
            for t in range(self.tasks):
                s.triggers[s.last_id, t] = s.planned == s.attempt
        s.stage = "IDLE"

    def may_trigger(self, s, c):
        """Not `isDisposed`."""
        return self.is_pending(s, c)

    # --- the coordinator receives

    @action(c="every", t="tasks", fairness=WEAK)
    def receive_answer(self, s, c, t):
        """`receiveAcknowledgeMessage`, `receiveDeclineMessage`: ignored if not pending, or of another attempt."""
        require(s.answer[c, t] != "NONE")
        answer = s.answer[c, t]
        s.answer[c, t] = "NONE"
        if self.is_pending(s, c) and self.is_known(s, c, t):
            if answer == "DECLINE":
                s.checkpoint[c] = "ABORTED"
            else:
                s.acknowledged[c, t] = True
                if self.is_acknowledged(s, c):
                    self.acknowledge_all(s, c)

    def is_known(self, s, c, t):
        """Whether the attempt is one of the plan."""
        return s.answered[c, t] == s.plan[c]

    def is_acknowledged(self, s, c):
        """`isFullyAcknowledged`."""
        return all(s.acknowledged[c, t] for t in range(self.tasks))

    def acknowledge_all(self, s, c):
        """The checkpoint completes in the critical section of the last acknowledgement."""
        self.complete(s, c)

    def complete(self, s, c):
        """`completePendingCheckpoint`: store, subsume, abort earlier ones, notify; or the store cannot be written."""
        if choose(stored=True, failed=False):
            s.checkpoint[c] = "COMPLETED"
            s.latest = c
            s.store[c] = True
            self.subsume(s)
            self.drop_subsumed(s, c)
            self.notify(s, c)
        else:
            self.spend_fault(s)
            s.checkpoint[c] = "ABORTED"

    def subsume(self, s):
        """The oldest checkpoint leaves a store that has more than it may keep."""
        if sum(int(x) for x in s.store) > self.retained:
            s.store[min((c if s.store[c] else self.ids) for c in self.every)] = False

    def notify(self, s, c):
        """`sendAcknowledgeMessages` to the current attempts."""
        for t in range(self.tasks):
            s.notices[c, t] = True

    @action(c="every", fairness=WEAK)
    def expire(self, s, c):
        """A time-out."""
        super().expire(s, c)

    # --- failures

    @action(t="tasks")
    def fail(self, s, t):
        """A task fails. Nothing is aborted before the restart begins."""
        require(s.job == "RUNNING" and s.running[t] and s.failures_left > 0)
        s.failures_left -= 1
        s.running[t] = False
        s.job = "FAILING"

    @action(fairness=WEAK)
    def stop_scheduler(self, s):
        """The job restarts: `stopCheckpointScheduler` aborts all pending checkpoints; the tasks are cancelled."""
        require(s.job == "FAILING")
        s.job = "RESTARTING"
        self.abort_pending(s)
        for t in range(self.tasks):
            s.running[t] = False
        for c, t in self.pairs:
            s.triggers[c, t] = False
            s.notices[c, t] = False

    @action(fairness=WEAK)
    def restore(self, s):
        """`restoreLatestCheckpointedStateToSubtasks`, then new attempts."""
        require(s.job == "RESTARTING")
        s.restored = self.newest(s)
        s.attempt += 1
        s.job = "RUNNING"

    @terminal
    def done(self, s):
        """All ids are used, and nothing is under way."""
        return s.last_id == self.ids and s.job == "RUNNING" and s.stage == "IDLE" and self.pending(s) == 0
