"""`slot_pool` for the slots of a recorded job: several TaskExecutors, processes that are replaced, and lost messages.

Every allocation id of the log is an allocation of the machine, used once. The rules are those of `slot_pool` wherever a
message is received. Finer than the model are: the two ends of a lost connection, which notice it each at a time of its own;
the requirement, which travels; a task, whose beginning and end are events of the TaskExecutor, while the JobMaster reserves
and frees the slot. Beyond the model are processes that begin without any knowledge: a JobMaster, and a ResourceManager, which
adopts the allocations of slot reports.
"""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar

from streamproof import Array, Range, State, action, require
from streamproof.conformance import Rules
from streamproof_models.slots.pool import SlotPool

MOST = 10_000
"""Largest number of slots, and of allocations."""


class RecordedSlotPool(SlotPool):
    """The allocations of a recorded job."""

    name = "slot_pool"
    executors: int = 1
    """Number of processes of TaskExecutors."""
    limits: ClassVar = {**SlotPool.limits, "executors": (1, None)}

    def state(self):
        """Also the TaskExecutor of each allocation; each TaskExecutor has its own free slots."""
        executor = range(self.executors)
        own = {
            "place": Array(range(self.allocations), Range(0, self.executors - 1)),
            "offers": Array(range(self.allocations), Range(0, MOST)),
            "free_slots": Array(executor, Range(0, self.slots, init=self.slots)),
        }
        return State(**{**dict(super().state().items()), **own})

    # --- the ResourceManager

    @action(n=lambda m: range(m.demand + 1))
    def receive_requirement(self, s, n):
        """The requirement arrives, perhaps later than another one was declared; 0 without a JobMaster."""
        s.declared = n

    @action(a="allocations", e=lambda m: range(m.executors))
    def choose_executor(self, s, a, e):
        """The slot of a new allocation is one of this TaskExecutor, which has a free one by the ResourceManager's count."""
        taken = sum(int(s.rm[x] != "UNUSED" and s.place[x] == e) for x in range(self.allocations))
        require(taken < self.slots)
        s.place[a] = e

    def start_allocation(self, s, a):
        """Allocation ids are new ones; the count of slots is that of `choose_executor`."""
        require(s.rm[a] == "UNUSED" and s.declared > sum(int(x != "UNUSED") for x in s.rm))
        s.rm[a] = "PENDING"
        s.request[a] = True

    @action(a="allocations", has=[True, False])
    def receive_report(self, s, a, has):
        """A slot report that has the allocation, or not; a ResourceManager that does not know it adopts it."""
        if has and s.rm[a] == "UNUSED":
            s.rm[a] = "ALLOCATED"
        else:
            s.slot_report[a] = "HAS" if has else "HAS_NOT"
            self.receive_slot_report(s, a)

    @action(a="allocations")
    def forget(self, s, a):
        """The connection to the TaskExecutor is lost."""
        s.rm[a] = "UNUSED"

    @action
    def replace_manager(self, s):
        """A new ResourceManager knows nothing."""
        s.declared = 0
        for a in range(self.allocations):
            s.rm[a] = "UNUSED"

    # --- the TaskExecutors

    def receive_request(self, s, a):
        """With the free slots of its TaskExecutor."""
        require(s.request[a])
        s.request[a] = False
        if s.free_slots[s.place[a]] > 0:
            s.free_slots[s.place[a]] -= 1
            s.te[a] = "ALLOCATED"
            s.ack[a] = "DONE"
        else:
            s.ack[a] = "REFUSED"

    def remove_slot(self, s, a):
        """Of its TaskExecutor."""
        s.te[a] = "ABSENT"
        s.free_slots[s.place[a]] += 1
        s.available[a] = True
        self.cancel_timer(s, a)

    def offer(self, s, a):
        """Also after a lost connection, while an earlier offer may be on its way: only the answer to this one counts."""
        require(s.te[a] == "ALLOCATED")
        s.offers[a] += 1
        s.answer[a] = "NONE"

    @action(a="allocations", held=[True, False])
    def receive_list(self, s, a, held):
        """A list of the JobMaster that has the allocation, or not."""
        s.held[a] = "HELD" if held else "NOT_HELD"
        self.receive_held(s, a)

    def deploy(self, s, a):
        """The TaskExecutor's part: a task comes into the slot."""
        require(s.te[a] == "ACTIVE")
        s.task[a] = True

    @action(a="allocations")
    def end_task(self, s, a):
        """The last task of the slot has ended."""
        require(s.task[a] and s.te[a] != "ABSENT")
        s.task[a] = False

    @action(a="allocations")
    def lose_jobmaster(self, s, a):
        """The TaskExecutor's part of `disconnect`: its tasks have ended, the slot is ALLOCATED again."""
        require(s.te[a] == "ACTIVE" and not s.task[a])
        s.te[a] = "ALLOCATED"

    # --- the JobMaster

    def finish(self, s, a):
        """The JobMaster's part: no task uses the slot."""
        require(s.jm[a] == "RESERVED")
        s.jm[a] = "FREE"
        s.required -= 1

    @action(a="allocations")
    def drop(self, s, a):
        """The JobMaster's part of `disconnect`."""
        s.jm[a] = "ABSENT"

    @action
    def replace_jobmaster(self, s):
        """A new JobMaster requires nothing, and has nothing."""
        s.required = 0
        for a in range(self.allocations):
            s.jm[a] = "ABSENT"

    # --- messages that never arrive: the connection was lost, a process was, or the log ends

    @action(a="allocations")
    def lose_request(self, s, a):
        """`requestSlot`."""
        s.request[a] = False

    @action(a="allocations")
    def lose_ack(self, s, a):
        """Its answer."""
        s.ack[a] = "NONE"

    @action(a="allocations")
    def lose_notification(self, s, a):
        """`notifySlotAvailable`, any number of times."""
        s.available[a] = False

    @action(a="allocations")
    def lose_offer(self, s, a):
        """`offerSlots`."""
        require(s.offers[a] > 0)
        s.offers[a] -= 1

    @action(a="allocations")
    def lose_answer(self, s, a):
        """Its answer."""
        s.answer[a] = "NONE"

    @action(a="allocations")
    def lose_return(self, s, a):
        """`freeSlot`, any number of times."""
        s.free[a] = "NONE"

    @action(a="allocations")
    def lose_failure(self, s, a):
        """`failSlot`."""
        s.fail[a] = False


@lru_cache(maxsize=64)
def machine(allocations: int, executors: int, slots: int, demand: int) -> Rules:
    """The machine for bounds on allocations, processes of TaskExecutors, slots of each, and required slots."""
    sizes = {"allocations": allocations, "executors": executors, "slots": slots, "demand": demand}
    return Rules(RecordedSlotPool(**sizes, failures=16 * allocations))
