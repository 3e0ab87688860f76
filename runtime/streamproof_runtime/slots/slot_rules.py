"""The rules of the slot protocol that a run may be without."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SlotRules:
    """The rules of ResourceManager, TaskExecutor and JobMaster that variants change."""

    exempts_allocated: bool = True
    """The JobMaster's list frees ACTIVE slots only: an ALLOCATED one may have been offered after the list was sent."""
    exempts_pending: bool = True
    """A slot report frees no PENDING allocation: its request may be on the way."""
    checks_ticket: bool = True
    """A time-out frees a slot only if it was not activated since."""
    discards_stale: bool = True
    """The answer to an offer is ignored after a newer offer of the slot."""
    reconciles: bool = True
    """The JobMaster sends its list of slots."""
    fails_slots: bool = True
    """A TaskExecutor reports to the JobMaster that it does not have a slot."""
    reports_slots: bool = True
    """A TaskExecutor's heartbeats have its slot report."""
    releases_idle: bool = True
    """The JobMaster returns slots that it does not require."""
    rejects_excess: bool = True
    """The JobMaster rejects the offer of a slot that it does not require."""
    frees_rejected: bool = True
    """A TaskExecutor frees a slot that the JobMaster has rejected."""
    matches_resources: bool = True
    """The JobMaster gives a slot sharing group slots with what it needs."""
    frees_returned: bool = True
    """A TaskExecutor frees a slot that the JobMaster has returned."""
