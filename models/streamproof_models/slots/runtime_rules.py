"""The variant `runtime` of `slot_pool`: processes are replaced, and messages are lost with their connections.

Finer than the model are the ends of a connection, which notice its loss each at a time of its own; the requirement, which
travels; and a task, whose beginning and end are events of the TaskExecutor, while the JobMaster reserves and frees the slot.
Beyond it are processes that begin without any knowledge: a JobMaster, and a ResourceManager, which adopts the allocations of
slot reports. A report or a list may say anything: when it was sent is not part of the machine.
"""

from __future__ import annotations

from streamproof import Array, Range, State, action, require
from streamproof_models.slots.pool import SlotPool
from streamproof_models.slots.rules import SlotRules


class ReplacedOwners(SlotPool, variant="runtime", without="offer_again"):
    """The slots of a job in the runtime."""

    repeats: int = 2
    """Maximum number of offers of a slot on their way."""
    limits = {"repeats": (1, None)}

    def state(self):
        """With room for repeated offers."""
        offers = Array(range(self.allocations), Range(0, self.repeats))
        return State(**{**dict(super().state().items()), "offers": offers})

    # --- the ResourceManager

    @action(n=lambda m: range(m.demand + 1))
    def receive_requirement(self, s, n):
        """The requirement arrives, perhaps later than another one was declared; 0 without a JobMaster."""
        s.declared = n

    def start_allocation(self, s, a):
        """By the count of a ResourceManager that may be a new one."""
        known = sum(int(x != "UNUSED") for x in s.rm)
        SlotRules.start_allocation(self, s, a)
        require(s.declared > known)

    @action(a="allocations", has=[True, False])
    def receive_report(self, s, a, has):
        """A slot report that has the allocation, or not; a ResourceManager that does not know it adopts it."""
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

    def offer(self, s, a):
        """Also after a lost connection, while an earlier offer may be on its way: only the answer to this one counts."""
        require(self.is_offered(s, a) and s.offers[a] < self.repeats)
        s.offers[a] += 1
        s.answer[a] = "NONE"

    @action(a="allocations", held=[True, False])
    def receive_list(self, s, a, held):
        """A list of the JobMaster that has the allocation, or not."""
        s.held[a] = "HELD" if held else "NOT_HELD"
        self.receive_held(s, a)

    def deploy(self, s, a):
        """The TaskExecutor's part: a task comes into the slot."""
        self.receive_task(s, a)

    @action(a="allocations")
    def end_task(self, s, a):
        """The last task of the slot has ended."""
        super().end_task(s, a)
        require(s.te[a] != "ABSENT")

    @action(a="allocations")
    def lose_jobmaster(self, s, a):
        """The TaskExecutor's part of `disconnect`: its tasks have ended, the slot is ALLOCATED again."""
        require(s.te[a] == "ACTIVE" and not s.task[a])
        self.close_connection(s, a)

    # --- the JobMaster

    def finish(self, s, a):
        """The JobMaster's part: no task uses the slot."""
        self.free_reserved(s, a)
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
