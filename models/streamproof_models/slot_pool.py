"""Slots in Flink 2.3: the ResourceManager, the slot table of a TaskExecutor, and the declarative slot pool of a JobMaster.

The JobMaster declares how many slots a job requires. The ResourceManager starts an allocation with a new allocation id and
asks the TaskExecutor for a slot. The TaskExecutor offers the slot to the JobMaster, which accepts it while it requires more;
an accepted slot is ACTIVE. Heartbeats correct the views: the JobMaster's list of slots frees what it does not hold, the
TaskExecutor's slot report frees what the ResourceManager still counts (`FineGrainedSlotManager`, `DefaultSlotStatusSyncer`,
`TaskExecutor`, `TaskSlotTableImpl`, `DefaultDeclarativeSlotPool`).

Each component has one thread. Messages from one to another arrive in order where a rule depends on it. A list of slots, an
offer and a loss of the connection concern one slot at a time: every behaviour with lists is one of these, entry by entry.

Abstractions: one job, one TaskExecutor, slots of one profile; an allocation id is used again when nothing refers to it; a
time-out may happen at any time; time-outs, lost messages and lost connections are at most `failures`.
"""

from __future__ import annotations

from streamproof import WEAK, action, require
from streamproof_models.slot_table import SlotTable


class SlotPool(SlotTable):
    """The allocations of one job: each has a state at the ResourceManager, at the TaskExecutor, and at the JobMaster."""

    name = "slot_pool"

    check_deadlock = False
    """The heartbeats never end."""
    sizes = {
        "small": {},
        "medium": {"allocations": 2, "failures": 1},
        "large": {"allocations": 2, "slots": 2, "demand": 2, "failures": 1},
    }

    # --- the JobMaster

    @action
    def require_slot(self, s):
        """The job requires one more slot."""
        require(s.required < self.demand)
        s.required += 1

    @action
    def cancel_request(self, s):
        """A request that has no slot is cancelled."""
        require(s.required > self.count(s.jm, "RESERVED"))
        s.required -= 1

    @action(fairness=WEAK)
    def declare(self, s):
        """`declareRequiredResources`: the ResourceManager gets the requirements."""
        require(s.declared != s.required)
        s.declared = s.required

    @action(a="allocations", fairness=WEAK)
    def receive_offer(self, s, a):
        """`offerSlots`: a slot is accepted if it is known, or required; only the answer to the last offer counts."""
        require(s.offers[a] > 0)
        s.offers[a] -= 1
        accepted = s.jm[a] != "ABSENT" or s.required > sum(int(x != "ABSENT") for x in s.jm)
        if accepted and s.jm[a] == "ABSENT":
            s.jm[a] = "FREE"
        if s.answer[a] == "NONE" and (s.offers[a] == 0 or not self.discards_stale):
            s.answer[a] = "ACCEPTED" if accepted else "REJECTED"
            if accepted and s.held[a] == "NOT_HELD":
                s.held[a] = "BEFORE"
            if accepted and s.free[a] == "SENT":
                s.free[a] = "BEFORE"

    @action(a="allocations", fairness=WEAK)
    def reserve(self, s, a):
        """A request gets a free slot."""
        require(s.jm[a] == "FREE" and s.required > self.count(s.jm, "RESERVED"))
        s.jm[a] = "RESERVED"

    @action(a="allocations", fairness=WEAK)
    def deploy(self, s, a):
        """A task is deployed into the slot."""
        require(s.jm[a] == "RESERVED" and s.te[a] == "ACTIVE" and not s.task[a])
        s.task[a] = True

    @action(a="allocations")
    def finish(self, s, a):
        """The task ends; its slot is free, and no longer required."""
        require(s.task[a] and s.jm[a] == "RESERVED" and s.te[a] == "ACTIVE")
        s.task[a] = False
        s.jm[a] = "FREE"
        s.required -= 1

    @action(a="allocations")
    def abandon(self, s, a):
        """The job no longer needs a slot whose task still runs: the slot is returned with its task."""
        require(s.jm[a] == "RESERVED" and s.free[a] == "NONE")
        s.jm[a] = "ABSENT"
        s.required -= 1
        s.free[a] = "SENT"

    @action(a="allocations", fairness=WEAK)
    def release_idle(self, s, a):
        """`releaseIdleSlots`: a free slot that is not required is returned to the TaskExecutor."""
        require(self.releases_idle and s.jm[a] == "FREE" and s.free[a] == "NONE")
        require(sum(int(x != "ABSENT") for x in s.jm) > s.required)
        s.jm[a] = "ABSENT"
        s.free[a] = "SENT"

    @action(a="allocations", fairness=WEAK)
    def receive_failure(self, s, a):
        """`failSlot`: the slot is gone; a request that had it waits again."""
        require(s.fail[a])
        s.fail[a] = False
        s.jm[a] = "ABSENT"

    @action(a="allocations", fairness=WEAK)
    def send_held(self, s, a):
        """A heartbeat: whether the JobMaster holds the slot."""
        require(self.reconciles and s.held[a] == "NONE" and (s.te[a] != "ABSENT" or s.jm[a] != "ABSENT"))
        s.held[a] = "NOT_HELD" if s.jm[a] == "ABSENT" else "HELD"

    # --- the ResourceManager

    def is_unused(self, s, a):
        """Whether nothing refers to an allocation id."""
        views = s.rm[a] == "UNUSED" and s.te[a] == "ABSENT" and s.jm[a] == "ABSENT"
        to_rm = s.ack[a] == "NONE" and not s.available[a] and s.slot_report[a] == "NONE"
        to_jm = s.offers[a] == 0 and not s.fail[a]
        to_te = s.answer[a] == "NONE" and s.held[a] == "NONE" and s.free[a] == "NONE" and s.timer[a] == "NONE"
        return views and to_rm and to_jm and to_te and not s.request[a]

    @action(a="allocations", fairness=WEAK)
    def start_allocation(self, s, a):
        """`allocateSlot`: the requirements exceed the allocations, and by the ResourceManager's count there is a slot."""
        taken = sum(int(x != "UNUSED") for x in s.rm)
        require(self.is_unused(s, a) and s.declared > taken and taken < self.slots)
        s.rm[a] = "PENDING"
        s.request[a] = True

    @action(a="allocations", fairness=WEAK)
    def receive_ack(self, s, a):
        """The answer of the TaskExecutor; not before a slot report that was sent earlier."""
        require(s.ack[a] != "NONE" and s.slot_report[a] != "BEFORE")
        if s.rm[a] == "PENDING":
            s.rm[a] = "ALLOCATED" if s.ack[a] == "DONE" else "UNUSED"
        s.ack[a] = "NONE"

    @action(a="allocations", fairness=WEAK)
    def receive_available(self, s, a):
        """`notifySlotAvailable`: the slot is free."""
        require(s.available[a])
        s.available[a] = False
        s.rm[a] = "UNUSED"

    @action(a="allocations", fairness=WEAK)
    def receive_slot_report(self, s, a):
        """The slot report completes a PENDING allocation that it has, and frees an ALLOCATED one that it does not have."""
        require(s.slot_report[a] != "NONE")
        if s.slot_report[a] == "HAS":
            if s.rm[a] == "PENDING":
                s.rm[a] = "ALLOCATED"
        elif s.rm[a] == "ALLOCATED" or not self.exempts_pending:
            s.rm[a] = "UNUSED"
        s.slot_report[a] = "NONE"
