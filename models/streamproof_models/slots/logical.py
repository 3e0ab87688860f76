"""The logical slots of Flink 2.3's shared slots: an execution vertex asks for one, gets it and returns it, once.

A request of `slot_pool` is one: it is required, gets a reserved slot, and ends. A slot that is lost ends the request that
had it; another one replaces it.
"""

from __future__ import annotations

from streamproof import Enum, Model, State, action, require


class LogicalSlot(Model):
    """A logical slot of one execution vertex (`SharedSlot`)."""

    name = "logical_slot"
    check_deadlock = False
    """It ends."""

    waits_for_request = True
    """It is allocated only if it was requested."""
    ends = True
    """What is removed is not requested again."""

    def state(self):
        """It was not requested."""
        return State(slot=Enum("NONE", "REQUESTED", "ALLOCATED", "REMOVED"))

    @action
    def request(self, s):
        """An execution asks for it."""
        require(s.slot == "NONE" or (s.slot == "REMOVED" and not self.ends))
        s.slot = "REQUESTED"

    @action
    def allocate(self, s):
        """The physical slot is there."""
        require(s.slot == "REQUESTED" or (s.slot == "NONE" and not self.waits_for_request))
        s.slot = "ALLOCATED"

    @action
    def remove(self, s):
        """It is returned, or its request is cancelled."""
        require(s.slot in ("REQUESTED", "ALLOCATED"))
        s.slot = "REMOVED"


class Unrequested(LogicalSlot, variant="unrequested"):
    """It is allocated without a request."""

    waits_for_request = False


class RequestedAgain(LogicalSlot, variant="requested-again"):
    """It is requested again after its end."""

    ends = False
