"""Variants of `slot_pool` that omit one rule."""

from __future__ import annotations

from streamproof import lemma, require
from streamproof_models.slots.pool import SlotPool


class UncheckedTicket(SlotPool, variant="unchecked-ticket"):
    """A time-out frees the slot, whatever happened since it was sent."""

    checks_ticket = False


class AnswerOvertakes(SlotPool, variant="answer-overtakes"):
    """The answer to an offer may overtake what the JobMaster sent earlier."""

    in_order = False


class AllocatedFreed(SlotPool, variant="allocated-freed"):
    """The JobMaster's list also frees slots that are only ALLOCATED."""

    exempts_allocated = False


class PendingFreed(SlotPool, variant="pending-freed"):
    """The slot report also frees PENDING allocations."""

    exempts_pending = False


class StaleAnswer(SlotPool, variant="stale-answer"):
    """The answer to an offer counts also after a newer offer."""

    discards_stale = False


class NoReconciliation(SlotPool, variant="no-reconciliation"):
    """The heartbeats of the JobMaster have no list of slots."""

    reconciles = False


class Silent(SlotPool, variant="silent"):
    """The TaskExecutor does not tell the JobMaster that a slot is gone."""

    fails_slots = False


class NoSlotReport(SlotPool, variant="no-slot-report"):
    """The heartbeats of the TaskExecutor have no slot report."""

    reports_slots = False


class NeverIdle(SlotPool, variant="never-idle"):
    """Idle slots are never released (FLINK-31080)."""

    releases_idle = False


class FreedWithTask(SlotPool, variant="freed-with-task"):
    """A slot is free at once, also if its task still runs."""

    waits_for_tasks = False


class BudgetEarly(SlotPool, variant="budget-early"):
    """The resources of a RELEASING slot are free before its task has stopped."""

    def free_slot(self, s, a):
        """They are free with the first call."""
        was = s.te[a]
        super().free_slot(s, a)
        if s.te[a] == "RELEASING" and was != "RELEASING":
            s.free_slots += 1

    def stop_task(self, s, a):
        """They were free already."""
        s.free_slots -= int(s.te[a] == "RELEASING")
        super().stop_task(s, a)


class KnownRejected(SlotPool, variant="known-rejected"):
    """An offer of a slot that the JobMaster has is judged by the requirements alone."""

    knows_slots = False


class TaskBeforeReply(SlotPool, variant="task-before-reply"):
    """A task may arrive before the answer to the offer, and activates its slot: `TaskExecutor.submitTask`."""

    def receive_task(self, s, a):
        """It does not overtake what the JobMaster sent earlier: a list without the slot, or its return."""
        if s.te[a] == "ALLOCATED":
            require(not self.in_order or (s.held[a] in ("NONE", "HELD") and s.free[a] == "NONE"))
            s.te[a] = "ACTIVE"
            self.cancel_timer(s, a)
        super().receive_task(s, a)


class ReturnVoidsOffers(TaskBeforeReply, variant="return-voids-offers"):
    """The same, and the JobMaster ignores offers that were sent before it returned the slot."""

    def abandon(self, s, a):
        """No offer is left."""
        super().abandon(s, a)
        s.offers[a] = 0

    def release_idle(self, s, a):
        """Likewise."""
        super().release_idle(s, a)
        s.offers[a] = 0

    @lemma
    def offered_is_held(self, s):
        """The JobMaster has every ACTIVE slot of which an offer is on the way."""
        return all(s.te[a] != "ACTIVE" or s.offers[a] == 0 or s.jm[a] != "ABSENT" for a in range(self.allocations))


class ActiveOnce(TaskBeforeReply, variant="active-once"):
    """The same, and a slot that is ACTIVE cannot be activated again."""

    def may_be_active(self, s, a):
        """Only from ALLOCATED."""
        return s.te[a] == "ALLOCATED"


class TaskOvertakes(TaskBeforeReply, variant="task-overtakes"):
    """The same, and a task may overtake an earlier list, or the return of the slot; answers may not."""

    def receive_task(self, s, a):
        """In any order."""
        if s.te[a] == "ALLOCATED":
            s.te[a] = "ACTIVE"
            self.cancel_timer(s, a)
        super().receive_task(s, a)
