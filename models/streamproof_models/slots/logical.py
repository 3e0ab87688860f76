"""A logical slot of one execution vertex (`SharedSlot` of Flink 2.3): it is requested, allocated and removed once."""

from __future__ import annotations

from streamproof import Enum, Model, State, action, require


class LogicalSlot(Model):
    """A logical slot, as the JobMaster's log shows it."""

    name = "logical_slot"
    check_deadlock = False
    """A removed slot does nothing more."""

    def state(self):
        """It was not requested."""
        return State(slot=Enum("NONE", "REQUESTED", "ALLOCATED", "REMOVED"))

    @action
    def request(self, s):
        """An execution asks for it."""
        require(s.slot == "NONE")
        s.slot = "REQUESTED"

    @action
    def allocate(self, s):
        """The physical slot is there."""
        require(s.slot == "REQUESTED")
        s.slot = "ALLOCATED"

    @action
    def remove(self, s):
        """It is returned, or its request is cancelled."""
        require(s.slot in ("REQUESTED", "ALLOCATED"))
        s.slot = "REMOVED"


class Reused(LogicalSlot, variant="reused"):
    """A slot that was removed is allocated again."""

    def allocate(self, s):
        """The physical slot is there, for whom it may be."""
        require(s.slot in ("REQUESTED", "REMOVED"))
        s.slot = "ALLOCATED"
