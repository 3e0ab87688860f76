"""Rules that Flink 1.20 to 2.3 does not have: ten of the models before they drove its classes, and three that it lacks."""

from __future__ import annotations

from streamproof import require
from streamproof_models.checkpoints.variants import StalePlan
from streamproof_models.credit_channel import CreditChannel, RareCalls
from streamproof_models.credit_channel.messages import PRIORITY
from streamproof_models.failover.flink import FlinkRules
from streamproof_models.partitions.types import Persistent
from streamproof_models.slots.pool import SlotPool


class StoredAgain(FlinkRules):
    """A partition that the JobMaster has forgotten is tracked again when its producer finishes."""

    name = "failover"

    def store_output(self, s, t):
        """All but what has been released."""
        for p in self.outputs[t]:
            if p not in self.early or s.partition[p] != "RELEASED":
                s.partition[p] = "STORED"


class WithdrawnUnsent(FlinkRules):
    """A task that waits for its slot may end as CANCELED without a cancel call."""

    name = "failover"
    unsent: bool = True
    """Has the adapter make the call."""

    def withdraw(self, s, t):
        """From any state of an attempt at work."""
        require(s.job == "RUNNING" and s.status[t] in self.active)
        self.spend_failure(s)
        self.end(s, t, "CANCELED")


class ReportOvertaken(SlotPool):
    """`notifySlotAvailable` may overtake a slot report that was sent earlier and has the slot."""

    name = "slot_pool"
    overtaking: bool = True
    """Has the adapter deliver the messages in this order."""

    def receive_available(self, s, a):
        """At any time."""
        require(s.available[a])
        s.available[a] = False
        s.rm[a] = "UNUSED"

    def receive_slot_report(self, s, a):
        """An allocation that the ResourceManager does not know is not adopted."""
        if s.slot_report[a] == "HAS" and s.rm[a] == "UNUSED":
            s.slot_report[a] = "NONE"
        else:
            super().receive_slot_report(s, a)


class TicketVoided(SlotPool):
    """A lost connection voids the time-out of a slot that is still ALLOCATED."""

    name = "slot_pool"

    def disconnect(self, s, a):
        """No ticket is valid afterwards."""
        super().disconnect(s, a)
        self.cancel_timer(s, a)


class FailureAborts(StalePlan):
    """A failure of a task aborts the pending checkpoints that it has not acknowledged."""

    name = "checkpoints"

    def fail(self, s, t):
        """`failUnacknowledgedPendingCheckpointsFor`."""
        super().fail(s, t)
        for c in self.every:
            if s.checkpoint[c] == "PENDING" and not s.acknowledged[c, t]:
                s.checkpoint[c] = "ABORTED"


class CreatesWhileRunning(StalePlan):
    """No pending checkpoint is made after a task has failed, before the restart begins."""

    name = "checkpoints"

    def may_create(self, s):
        """The job runs."""
        return s.job == "RUNNING"


class ComparesAttempts(StalePlan):
    """A pending checkpoint is made for the attempts of its plan only while they are the current ones."""

    name = "checkpoints"

    def may_create(self, s):
        """No restart has come between."""
        return super().may_create(s) and s.planned == s.attempt


class NotifiesAlways(SlotPool):
    """The ResourceManager is notified of every slot that becomes free, also if its task is taken out before it has ended."""

    name = "slot_pool"
    unterminated: bool = True
    """Has the adapter take the task out first, as `TaskExecutor.unregisterTaskAndNotifyFinalState` may."""


class ForgottenWhenReleased(Persistent):
    """The ResourceManager forgets a dataset that a user has deleted, also if its TaskExecutor has another one."""

    name = "partition_lifecycle"
    persistent: bool = True
    """Has the adapter make persistent partitions."""


class PriorityWhileBlocked(CreditChannel, RareCalls):
    """A priority event is sent although a barrier blocks the subpartition."""

    name = "credit_channel"

    def setup(self):
        """There are priority events."""
        super().setup()
        self.set_data_types(("DATA_BUFFER", "TIMEOUTABLE_ALIGNED_CHECKPOINT_BARRIER", PRIORITY))

    def poll_event(self, s, skipped):
        """Priority events are taken before `isBlocked` is asked."""
        if len(s.priority_buffers) > 0:
            require(skipped == 0)
            return s.priority_buffers.pop()
        return super().poll_event(s, skipped)


class SkipsWithoutCredit(CreditChannel):
    """An event is sent without credit also if an empty buffer is in front of it."""

    name = "credit_channel"

    def skip_empty(self, s, count):
        """Without credit."""
        for _ in range(count):
            require(len(s.buffers) > 0 and s.buffers.head in self.data)
            s.buffers.pop()
            s.buffers_in_backlog -= 1


class RegisteredAfterRelease(CreditChannel):
    """A partition that is released already is registered, and a reader gets its view."""

    name = "credit_channel"

    def notify_reader_created(self, s):
        """Whatever has become of the partition."""
        require(s.reader_created and not s.in_all_readers and not s.reader_released)
        s.in_all_readers = True


class CancelsBeforeDiscarded(CreditChannel):
    """A request to cancel for a late message arrives before the message is discarded."""

    name = "credit_channel"

    def may_cancel(self, s):
        """As many as messages are on their way."""
        require(s.cancel_requests <= len(s.responses))
