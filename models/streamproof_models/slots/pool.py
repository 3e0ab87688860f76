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

from streamproof import WEAK, Array, Bool, Enum, Model, Range, State, action, require
from streamproof_models.slots.rules import SlotRules


class SlotPool(SlotRules, Model):
    """The allocations of one job: each has a state at the ResourceManager, at the TaskExecutor, and at the JobMaster."""

    name = "slot_pool"

    check_deadlock = False
    """The heartbeats never end."""
    sizes = {
        "small": {},
        "medium": {"allocations": 2, "failures": 1},
        "large": {"allocations": 2, "slots": 2, "demand": 2, "failures": 1},
    }

    allocations: int = 1
    """Number of allocation ids in use at a time."""
    slots: int = 1
    """Number of slots of the TaskExecutor."""
    demand: int = 1
    """Maximum number of slots that the job requires."""
    failures: int = 2
    """Maximum number of time-outs, lost messages and lost connections."""
    instance_bounds = ("allocations", "failures")
    limits = {"allocations": (1, None), "slots": (1, None), "demand": (0, None), "failures": (0, None)}

    # --- rules that variants change

    exempts_allocated = True
    """The JobMaster's list frees ACTIVE slots only; an ALLOCATED one may have been offered after the list was sent."""
    exempts_pending = True
    """The slot report frees no PENDING allocation: its request may be on the way."""
    checks_ticket = True
    """A time-out frees a slot only if the slot was not activated since."""
    discards_stale = True
    """The answer to an offer is ignored after a newer offer of the slot."""
    knows_slots = True
    """An offer of a slot that the JobMaster has is accepted, whatever it requires."""
    in_order = True
    """An answer does not overtake what the JobMaster sent earlier: its list of slots, or the return of the slot."""
    reconciles = True
    """The JobMaster's heartbeats have its list of slots."""
    fails_slots = True
    """The TaskExecutor tells the JobMaster that it does not have a slot."""
    reports_slots = True
    """The TaskExecutor's heartbeats have its slot report."""
    releases_idle = True
    """The JobMaster releases slots that it does not require."""

    def state(self):
        """Nothing is required, and no slot is allocated."""
        a = range(self.allocations)
        return State(
            required=Range(0, self.demand),  # DefaultDeclarativeSlotPool.totalResourceRequirements
            declared=Range(0, self.demand),  # the same as the ResourceManager knows it
            failures_left=Range(0, self.failures, init=self.failures),
            free_slots=Range(0, self.slots, init=self.slots),  # TaskSlotTableImpl.budgetManager
            # the views
            rm=Array(a, Enum("UNUSED", "PENDING", "ALLOCATED")),  # FineGrainedTaskManagerTracker.slots
            te=Array(a, Enum("ABSENT", "ALLOCATED", "ACTIVE", "RELEASING")),  # TaskSlotTableImpl.allocatedSlots
            jm=Array(a, Enum("ABSENT", "FREE", "RESERVED")),  # AllocatedSlotPool.registeredSlots, freeSlots
            task=Array(a, Bool()),  # TaskSlot.tasks
            # messages
            request=Array(a, Bool()),  # requestSlot, ResourceManager to TaskExecutor
            ack=Array(a, Enum("NONE", "DONE", "REFUSED")),  # its answer
            available=Array(a, Bool()),  # notifySlotAvailable, TaskExecutor to ResourceManager
            slot_report=Array(a, Enum("NONE", "HAS", "HAS_NOT", "BEFORE")),  # BEFORE: sent before the request arrived
            offers=Array(a, Range(0, 2)),  # offerSlots, TaskExecutor to JobMaster; the last one counts
            answer=Array(a, Enum("NONE", "ACCEPTED", "REJECTED")),  # its answer
            held=Array(a, Enum("NONE", "HELD", "NOT_HELD", "BEFORE")),  # AllocatedSlotReport; BEFORE: likewise
            free=Array(a, Enum("NONE", "SENT", "BEFORE")),  # freeSlot; BEFORE: sent before the answer
            fail=Array(a, Bool()),  # failSlot, TaskExecutor to JobMaster
            timer=Array(a, Enum("NONE", "VALID", "STALE")),  # timeoutSlot, with a ticket that is valid or not
        )

    def count(self, states, state):
        """Number of allocations in a state."""
        return sum(int(x == state) for x in states)

    def happens(self, s):
        """One of the failures."""
        require(s.failures_left > 0)
        s.failures_left -= 1

    def remove_slot(self, s, a):
        """Its resources are free, and the ResourceManager is notified."""
        super().remove_slot(s, a)
        s.free_slots += 1
        s.available[a] = True
        self.cancel_timer(s, a)

    def cancel_timer(self, s, a):
        """The ticket of a time-out that is on the way is no longer valid."""
        if s.timer[a] == "VALID":
            s.timer[a] = "STALE"

    # --- the TaskExecutor

    @action(a="allocations", fairness=WEAK)
    def receive_request(self, s, a):
        """`allocateSlot`: a slot is allocated if there is one."""
        super().receive_request(s, a)
        if s.slot_report[a] == "HAS_NOT":
            s.slot_report[a] = "BEFORE"
        if s.free_slots > 0:
            s.free_slots -= 1
            s.te[a] = "ALLOCATED"
            s.ack[a] = "DONE"
        else:
            s.ack[a] = "REFUSED"

    @action(a="allocations", fairness=WEAK)
    def offer(self, s, a):
        """`offerSlotsToJobManager`: an allocated slot is offered."""
        require(self.is_offered(s, a) and s.offers[a] == 0 and s.answer[a] == "NONE")
        s.offers[a] += 1

    @action(a="allocations")
    def offer_again(self, s, a):
        """An offer without an answer in time is repeated. The answer to the first one is ignored."""
        require(self.is_offered(s, a) and s.offers[a] + int(s.answer[a] != "NONE") == 1)
        self.happens(s)
        s.offers[a] += 1
        if self.discards_stale:
            s.answer[a] = "NONE"

    @action(a="allocations", fairness=WEAK)
    def receive_answer(self, s, a):
        """An accepted slot is ACTIVE, a rejected one is freed; if the slot is gone the JobMaster is told."""
        require(s.answer[a] != "NONE")
        require(not self.in_order or (s.held[a] != "BEFORE" and s.free[a] != "BEFORE"))
        if s.answer[a] == "REJECTED":
            self.free_slot(s, a)
        elif self.may_be_active(s, a):
            s.te[a] = "ACTIVE"
            self.cancel_timer(s, a)
        elif self.fails_slots:
            s.fail[a] = True
        s.answer[a] = "NONE"

    @action(a="allocations", fairness=WEAK)
    def receive_free(self, s, a):
        """`freeSlot`: the JobMaster returns the slot."""
        require(s.free[a] != "NONE")
        s.free[a] = "NONE"
        self.free_slot(s, a)

    @action(a="allocations", fairness=WEAK)
    def receive_held(self, s, a):
        """The JobMaster's list: a slot that only it has is failed, an ACTIVE one that it does not have is freed."""
        require(s.held[a] != "NONE")
        if s.held[a] == "HELD":
            if s.te[a] in ("ABSENT", "RELEASING") and self.fails_slots:
                s.fail[a] = True
        elif s.te[a] == "ACTIVE" or (s.te[a] == "ALLOCATED" and not self.exempts_allocated):
            self.free_slot(s, a)
        s.held[a] = "NONE"

    @action(a="allocations", fairness=WEAK)
    def send_slot_report(self, s, a):
        """A heartbeat to the ResourceManager: whether the table has the slot."""
        require(self.reports_slots and s.slot_report[a] == "NONE" and s.rm[a] != "UNUSED")
        s.slot_report[a] = "HAS_NOT" if s.te[a] == "ABSENT" else "HAS"

    @action(a="allocations", fairness=WEAK)
    def stop_task(self, s, a):
        """The task of a RELEASING slot stops; the slot is free."""
        require(s.te[a] == "RELEASING")
        s.task[a] = False
        self.remove_slot(s, a)

    # --- failures

    @action(a="allocations")
    def expire(self, s, a):
        """A slot is ALLOCATED for too long: the timer sends a time-out with its ticket."""
        require(s.te[a] == "ALLOCATED" and s.timer[a] == "NONE")
        self.happens(s)
        s.timer[a] = "VALID"

    @action(a="allocations", fairness=WEAK)
    def receive_timeout(self, s, a):
        """`timeoutSlot`: the slot is freed if the ticket is valid."""
        require(s.timer[a] != "NONE")
        if s.timer[a] == "VALID" or not self.checks_ticket:
            self.free_slot(s, a)
        s.timer[a] = "NONE"

    @action(a="allocations")
    def disconnect(self, s, a):
        """The connection to the JobMaster is lost: it drops the slot, the task fails, the slot is ALLOCATED again."""
        require(s.jm[a] != "ABSENT" and s.te[a] != "RELEASING")
        self.happens(s)
        s.jm[a] = "ABSENT"
        s.task[a] = False
        self.close_connection(s, a)
        s.offers[a] = 0
        s.answer[a] = "NONE"
        s.held[a] = "NONE"
        s.free[a] = "NONE"
        s.fail[a] = False

    @action(a="allocations")
    def lose_free(self, s, a):
        """`freeSlot` fails; the JobMaster does not repeat it."""
        require(s.free[a] != "NONE")
        self.happens(s)
        s.free[a] = "NONE"

    @action(a="allocations")
    def lose_available(self, s, a):
        """`notifySlotAvailable` is lost."""
        require(s.available[a])
        self.happens(s)
        s.available[a] = False

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
        accepted = (self.knows_slots and s.jm[a] != "ABSENT") or s.required > sum(int(x != "ABSENT") for x in s.jm)
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
        waits = s.required > self.count(s.jm, "RESERVED")
        super().reserve(s, a)
        require(waits)

    @action(a="allocations", fairness=WEAK)
    def deploy(self, s, a):
        """A task is deployed into the slot."""
        is_empty = not s.task[a]
        super().deploy(s, a)
        self.receive_task(s, a)
        require(is_empty)

    @action(a="allocations")
    def finish(self, s, a):
        """The task ends; its slot is free, and no longer required."""
        self.end_task(s, a)
        self.free_reserved(s, a)
        require(s.te[a] == "ACTIVE")
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
        to_rm = s.ack[a] == "NONE" and not s.available[a] and s.slot_report[a] == "NONE"
        to_jm = s.offers[a] == 0 and not s.fail[a]
        to_te = s.answer[a] == "NONE" and s.held[a] == "NONE" and s.free[a] == "NONE" and s.timer[a] == "NONE"
        return super().is_unused(s, a) and to_rm and to_jm and to_te and not s.request[a]

    @action(a="allocations", fairness=WEAK)
    def start_allocation(self, s, a):
        """`allocateSlot`: the requirements exceed the allocations, and by the ResourceManager's count there is a slot."""
        taken = sum(int(x != "UNUSED") for x in s.rm)
        super().start_allocation(s, a)
        require(s.declared > taken and taken < self.slots)

    @action(a="allocations", fairness=WEAK)
    def receive_ack(self, s, a):
        """The answer of the TaskExecutor; not before a slot report that was sent earlier."""
        require(s.ack[a] != "NONE" and s.slot_report[a] != "BEFORE")
        if s.rm[a] == "PENDING":
            s.rm[a] = "ALLOCATED" if s.ack[a] == "DONE" else "UNUSED"
        s.ack[a] = "NONE"

    @action(a="allocations", fairness=WEAK)
    def receive_available(self, s, a):
        """`notifySlotAvailable`: the slot is free. Not before a slot report that was sent earlier, when it was not."""
        require(s.available[a] and s.slot_report[a] != "HAS")
        s.available[a] = False
        s.rm[a] = "UNUSED"

    @action(a="allocations", fairness=WEAK)
    def receive_slot_report(self, s, a):
        """The slot report completes a PENDING allocation that it has, and frees an ALLOCATED one that it does not have. One
        that is not known is adopted (never here)."""
        require(s.slot_report[a] != "NONE")
        if s.slot_report[a] == "HAS":
            s.rm[a] = "ALLOCATED"
        elif s.rm[a] == "ALLOCATED" or not self.exempts_pending:
            s.rm[a] = "UNUSED"
        s.slot_report[a] = "NONE"
