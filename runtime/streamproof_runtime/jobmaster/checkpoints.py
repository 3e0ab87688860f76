"""The CheckpointCoordinator of a job at its JobMaster, as a state machine without input and output.

At intervals it triggers a checkpoint, if none is pending. With the last acknowledgement the checkpoint is complete, and the
latest one, in a store that outlives the JobMaster; a restart begins from it, and so does the next JobMaster. A pending
checkpoint is aborted when it takes too long, when it cannot be stored, and when the attempt ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamproof_runtime import messages as m
from streamproof_runtime.errors import JobError
from streamproof_runtime.jobmaster.master_host import Host, Timing
from streamproof_runtime.jobmaster.region_runs import RUNNING, Run
from streamproof_runtime.jobmaster.regions import Region
from streamproof_runtime.subtasks.barriers import Snapshot
from streamproof_runtime.subtasks.unaligned import redistributed

TRIGGER, EXPIRE = "checkpoint", "checkpoint expired"
"""Timers, with the attempt and with the checkpoint."""


def expect_streaming(regions: Sequence[Region], *, unaligned: bool = False) -> None:
    """Raises `JobError` for a job without checkpoints: one that stores what is between its operators, or has parts with
    nothing between them, which are regions too; or, if barriers overtake buffers, one with a loop."""
    for region in regions:
        for name in region.reads:
            source, target = name.split(">")
            raise JobError(
                f"the stream from {source} to {target} is stored: a job with checkpoints is one pipelined region; "
                "make it pipelined, or leave out the checkpoints"
            )
        for name in region.takes.values():
            raise JobError(f"{name} is read of a cluster partition: its job has no checkpoints; leave them out")
        for head in sorted(region.graph.heads) if unaligned else ():
            raise JobError(
                f"{head} is the head of loop {region.graph.scope(head)}: barriers overtake no feedback; "
                "leave out --unaligned"
            )
    if len(regions) > 1:
        one, other = (region.operators[0] for region in regions[:2])
        remedy = "leave out regions_of_subtasks" if regions[0].pipelines else "make two jobs of it"
        raise JobError(
            f"there is nothing between {one} and {other}: a job with checkpoints is one pipelined region; "
            f"{remedy}, or leave out the checkpoints"
        )


class CheckpointCoordinator:
    """The checkpoints of one job."""

    def __init__(self, run: Run, host: Host, timing: Timing) -> None:
        self._run, self._host, self._timing = run, host, timing
        self.pending = 0
        """The checkpoint under way, 0 if there is none."""
        self._acknowledged: dict[str, Snapshot] = {}
        self.latest, self.stored = self.found()
        """The checkpoint completed last, perhaps by an earlier JobMaster, and its snapshots; 0 if there is none."""
        self._last = self.latest

    def found(self) -> tuple[int, Mapping[str, Snapshot]]:
        """What an earlier JobMaster has left."""
        return self._host.checkpoint_store.latest()

    def settings(self) -> Mapping[str, object]:
        """For the log: the time between two checkpoints in nanoseconds, if there are any."""
        interval = self._timing.checkpoint_interval
        unaligned = {"unaligned": True} if self._timing.unaligned else {}
        return {"checkpoint_interval": interval, **unaligned} if interval else {}

    def begin(self) -> None:
        """The tasks run."""
        if self._timing.checkpoint_interval:
            self._host.call_later(self._timing.checkpoint_interval, TRIGGER, self._run.attempt)

    def on_timer(self, timer: str, number: int) -> Sequence[m.Message]:
        """An interval or the time-out of a checkpoint is over; returns the messages to all TaskExecutors."""
        if timer == EXPIRE:
            if number == self.pending:
                self.abort("it has taken too long")
            return ()
        if number != self._run.attempt or self._run.status != RUNNING:
            return ()
        self.begin()
        if self.pending:
            return ()
        self._last += 1
        self.pending, self._acknowledged = self._last, {}
        self._host.event("checkpoint_triggered", {"checkpoint": self.pending})
        self._host.call_later(self._timing.checkpoint_timeout, EXPIRE, self.pending)
        return ((m.TRIGGER, self._run.region.number, self._run.attempt, self.pending),)

    def acknowledge(self, task: str, checkpoint: int, snapshot: Snapshot) -> None:
        """A task has taken its snapshot."""
        if checkpoint != self.pending:
            return
        self._acknowledged[task] = snapshot
        self._host.event("checkpoint_acknowledged", {"checkpoint": checkpoint, "task": task})
        if self.is_acknowledged():
            self.store()

    def store(self) -> None:
        """Stores the pending checkpoint: then it is complete."""
        try:
            self._host.checkpoint_store.save(self.pending, self._acknowledged)
        except OSError as error:
            self.abort(f"it cannot be stored: {error}")
        else:
            self.complete()

    def complete(self) -> None:
        """The pending checkpoint is the latest one."""
        self.latest, self.stored, self.pending = self.pending, self._acknowledged, 0
        self._host.event("checkpoint_completed", {"checkpoint": self.latest})

    def is_acknowledged(self) -> bool:
        """Whether all tasks have acknowledged the pending checkpoint."""
        return len(self._acknowledged) == len(self._run.region.graph.tasks)

    def abort(self, reason: str) -> None:
        """The pending checkpoint, if any, will not complete."""
        if self.pending:
            self._host.event("checkpoint_aborted", {"checkpoint": self.pending, "reason": reason})
            self.pending = 0

    def restored(self) -> Mapping[str, Snapshot]:
        """The snapshots from which the tasks of a new attempt go on."""
        if self._timing.checkpoint_interval:
            self._host.event("checkpoint_restored", {"checkpoint": self.latest})
        return redistributed(self.stored, self._run.region.graph)
