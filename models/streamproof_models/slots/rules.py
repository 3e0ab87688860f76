"""What happens to the views of one slot in Flink 2.3: the rules that `slot_pool` and `slot_views` share.

Each is the part of one component. Where a message is received in the step in which it is sent, `slot_pool` joins two.
"""

from __future__ import annotations

from streamproof import require


class SlotRules:
    """Rules about an allocation `a`, for models with the views `rm`, `te` and `jm`, and with `task` and `request`."""

    waits_for_tasks = True
    """A slot with a task is RELEASING until the task has stopped."""

    def is_unused(self, s, a):
        """Whether no component knows of an allocation id."""
        return s.rm[a] == "UNUSED" and s.te[a] == "ABSENT" and s.jm[a] == "ABSENT"

    # --- the ResourceManager

    def start_allocation(self, s, a):
        """`allocateSlot`: the allocation id is unused."""
        require(self.is_unused(s, a))
        s.rm[a] = "PENDING"
        s.request[a] = True

    # --- the TaskExecutor

    def receive_request(self, s, a):
        """`requestSlot` arrives, once."""
        require(s.request[a])
        s.request[a] = False

    def is_offered(self, s, a):
        """Whether the slot is one of those that are offered: no JobMaster has accepted it."""
        return s.te[a] == "ALLOCATED"

    def may_be_active(self, s, a):
        """Whether an accepted slot can be used."""
        return s.te[a] in ("ALLOCATED", "ACTIVE")

    def receive_task(self, s, a):
        """A task comes into an ACTIVE slot."""
        require(s.te[a] == "ACTIVE")
        s.task[a] = True

    def end_task(self, s, a):
        """The last task of the slot has ended."""
        require(s.task[a])
        s.task[a] = False

    def free_slot(self, s, a):
        """`freeSlotInternal`: the slot is free, or RELEASING until its task has stopped."""
        if s.te[a] != "ABSENT":
            if s.task[a] and self.waits_for_tasks:
                s.te[a] = "RELEASING"
            else:
                self.remove_slot(s, a)

    def remove_slot(self, s, a):
        """The slot is free."""
        s.te[a] = "ABSENT"

    def close_connection(self, s, a):
        """The connection to the JobMaster is closed: an ACTIVE slot waits for another one."""
        if s.te[a] == "ACTIVE":
            s.te[a] = "ALLOCATED"

    # --- the JobMaster

    def reserve(self, s, a):
        """A request gets a free slot."""
        require(s.jm[a] == "FREE")
        s.jm[a] = "RESERVED"

    def deploy(self, s, a):
        """A task is deployed into a reserved slot."""
        require(s.jm[a] == "RESERVED")

    def free_reserved(self, s, a):
        """No task uses the slot: it can be reserved again."""
        require(s.jm[a] == "RESERVED")
        s.jm[a] = "FREE"
