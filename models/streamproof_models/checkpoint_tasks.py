"""Tasks that take snapshots, and the state of a checkpointed job: `checkpoints` without its CheckpointCoordinator."""

from __future__ import annotations

from streamproof import WEAK, Array, Bool, Enum, Model, Range, State, action, choose, require


class CheckpointTasks(Model):
    """The state of one job, with checkpoint ids from 1, and the steps of its tasks and of messages to them."""

    name = "checkpoint_tasks"

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

    limits = {
        "tasks": (1, None), "ids": (1, None), "concurrent": (1, None), "retained": (1, None), "failures": (0, None),
        "faults": (0, None),
    }  # fmt: skip

    def setup(self):
        """Pairs of a checkpoint id and a task."""
        self.every = range(1, self.ids + 1)
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
