"""Variants of `slot_pool` that omit one rule."""

from __future__ import annotations

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
