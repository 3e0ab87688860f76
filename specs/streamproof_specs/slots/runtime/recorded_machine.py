"""`slot_pool` for the slots of a recorded job: the variant `runtime`, with several TaskExecutors.

Every allocation id of the log is an allocation of the machine, used once.
"""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar

from streamproof import Array, Range, State, action, require
from streamproof.conformance import Rules
from streamproof_models.slots.rules import SlotRules
from streamproof_models.slots.runtime_rules import ReplacedOwners

MOST = 10_000
"""Largest number of slots, and of allocations."""


class RecordedSlotPool(ReplacedOwners):
    """The allocations of a recorded job."""

    name = "slot_pool"
    executors: int = 1
    """Number of processes of TaskExecutors."""
    limits: ClassVar = {**ReplacedOwners.limits, "executors": (1, None)}

    def state(self):
        """Also the TaskExecutor of each allocation; each TaskExecutor has its own free slots."""
        executor = range(self.executors)
        own = {
            "place": Array(range(self.allocations), Range(0, self.executors - 1)),
            "free_slots": Array(executor, Range(0, self.slots, init=self.slots)),
        }
        return State(**{**dict(super().state().items()), **own})

    @action(a="allocations", e=lambda m: range(m.executors))
    def choose_executor(self, s, a, e):
        """The slot of a new allocation is one of this TaskExecutor, which has a free one by the ResourceManager's count."""
        taken = sum(int(s.rm[x] != "UNUSED" and s.place[x] == e) for x in range(self.allocations))
        require(taken < self.slots)
        s.place[a] = e

    def receive_request(self, s, a):
        """With the free slots of its TaskExecutor."""
        SlotRules.receive_request(self, s, a)
        if s.slot_report[a] == "HAS_NOT":
            s.slot_report[a] = "BEFORE"
        if s.free_slots[s.place[a]] > 0:
            s.free_slots[s.place[a]] -= 1
            s.te[a] = "ALLOCATED"
            s.ack[a] = "DONE"
        else:
            s.ack[a] = "REFUSED"

    def remove_slot(self, s, a):
        """Of its TaskExecutor."""
        SlotRules.remove_slot(self, s, a)
        s.free_slots[s.place[a]] += 1
        s.available[a] = True
        self.cancel_timer(s, a)


@lru_cache(maxsize=64)
def machine(allocations: int, executors: int, slots: int, demand: int) -> Rules:
    """The machine for bounds on allocations, processes of TaskExecutors, slots of each, and required slots."""
    sizes = {"allocations": allocations, "executors": executors, "slots": slots, "demand": demand}
    return Rules(RecordedSlotPool(**sizes, failures=16 * allocations, repeats=1 << 30))
