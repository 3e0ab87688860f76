"""Variants of `checkpoints`: defects that Flink had, readings of its code, and rules left out."""

from __future__ import annotations

from streamproof import action, require
from streamproof_models.checkpoints.machine import Checkpoints


class NoTimeout(Checkpoints, variant="no-timeout"):
    """A pending checkpoint has no `CheckpointCanceller`."""

    def expire(self, s, c):
        """Never."""
        require(False)


class ExpiresCompleted(Checkpoints, variant="expires-completed"):
    """The canceller does not look whether the checkpoint is still pending."""

    def expire(self, s, c):
        """Also of a completed checkpoint."""
        require(s.checkpoint[c] in ("PENDING", "COMPLETED"))
        s.checkpoint[c] = "ABORTED"


class Unlimited(Checkpoints, variant="unlimited"):
    """The number of pending checkpoints is not looked at."""

    def pending(self, s):
        """Not counted."""
        return 0


class StuckTrigger(Checkpoints, variant="stuck-trigger"):
    """A trigger that fails leaves `isTriggering` set."""

    def fail_trigger(self, s):
        """The stage stays."""


class TriggersDisposed(Checkpoints, variant="triggers-disposed"):
    """A checkpoint that was aborted while it was prepared is triggered all the same (FLINK-26394)."""

    def may_trigger(self, s, c):
        """Always."""
        return True


class StalePlan(Checkpoints, variant="stale-plan"):
    """The check before a pending checkpoint is made asks only whether the job restarts, as in Flink 2.3."""

    def may_create(self, s):
        """`periodicScheduling`, which is not set from `stopCheckpointScheduler` to the end of the restart."""
        return s.job != "RESTARTING"


class ChecksThenCreates(Checkpoints, variant="checks-then-creates"):
    """The check and `pendingCheckpoints.put` are two critical sections, as in Flink 2.3."""

    def may_create(self, s):
        """The job may have failed since the check."""
        return s.planned == s.attempt


class CompletesAfterFailure(Checkpoints, variant="completes-after-failure"):
    """The pending checkpoints are not aborted when the job restarts (FLINK-13497)."""

    def abort_pending(self, s):
        """None."""


class UncheckedAttempt(Checkpoints, variant="unchecked-attempt"):
    """A restart sets the counter back to the last completed checkpoint, and answers of any attempt count."""

    def restore(self, s):
        """The ids after the latest checkpoint are used again."""
        super().restore(s)
        s.stage = "IDLE"
        s.last_id = s.restored
        for c in self.every:
            if c > s.restored:
                s.checkpoint[c] = "NONE"
                for t in range(self.tasks):
                    s.acknowledged[c, t] = False

    def is_known(self, s, c, t):
        """Not looked at."""
        return True


class WaitsForTrigger(Checkpoints, variant="waits-for-trigger"):
    """A restart waits for the trigger under way, whose plan waits for running tasks."""

    def make_plan(self, s):
        """Not before all tasks run."""
        require(s.job == "RUNNING" and all(s.running))
        super().make_plan(s)

    def restore(self, s):
        """Not during a trigger."""
        require(s.stage == "IDLE")
        super().restore(s)


class SubsumedKept(Checkpoints, variant="subsumed-kept"):
    """Earlier pending checkpoints stay when one completes."""

    def drop_subsumed(self, s, c):
        """None is aborted."""


class SubsumesFirst(Checkpoints, variant="subsumes-first"):
    """The oldest checkpoint leaves the store before the new one is written."""

    def complete(self, s, c):
        """Room is made first."""
        if sum(int(x) for x in s.store) == self.retained:
            s.store[min((x if s.store[x] else self.ids) for x in self.every)] = False
        super().complete(s, c)


class NotifiesFirst(Checkpoints, variant="notifies-first"):
    """The tasks are notified with the last acknowledgement, before the checkpoint is in the store."""

    def acknowledge_all(self, s, c):
        """The tasks are notified."""
        self.notify(s, c)

    @action(c="every")
    def finish(self, s, c):
        """The checkpoint is stored later."""
        require(s.checkpoint[c] == "PENDING" and self.is_acknowledged(s, c))
        self.complete(s, c)
