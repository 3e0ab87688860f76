"""The views of slots in Flink 2.3, without the messages, which logs do not show.

`slot_pool` has every message, the requirements of the job and the resources of the TaskExecutor. This model has the same
rules for the views of ResourceManager, TaskExecutor and JobMaster, and of a message only whether it was ever sent: it may
arrive late, again or never. So it has more behaviours. In return the components fail, which `slot_pool` does not have: the
connection to a TaskExecutor is closed by one side first, requests fail, a JobMaster is replaced.

An allocation id is used once. This is the machine that follows Flink's logs.
"""

from __future__ import annotations

from streamproof import WEAK, Array, Bool, Enum, Model, Range, State, action, require
from streamproof_models.slots.rules import SlotRules


class SlotViews(SlotRules, Model):
    """Allocations: each has a state at the ResourceManager, at the TaskExecutor, and at the JobMaster."""

    name = "slot_views"
    check_deadlock = False
    """No component has to act, except the ResourceManager: a slot that is free at its TaskExecutor is free."""
    sizes = {"small": {}, "medium": {"allocations": 2}}
    instance_bounds = ("allocations",)
    allocations: int = 1
    """Number of allocation ids."""
    repeats: int = 2
    """Number of offers on their way from which on it is not known how many they are."""
    limits = {"allocations": (1, None), "repeats": (1, None)}

    # --- rules that variants change

    used_once = True
    """An allocation id is not requested again."""
    waits_for_executor = True
    """The ResourceManager frees the slot of a TaskExecutor that is connected only when that one has freed it."""
    waits_for_answer = True
    """A slot is ACTIVE only if the JobMaster has accepted it."""
    accepts_offers_only = True
    """The JobMaster receives offers that were sent, and no others."""
    waits_for_offer = True
    """A JobMaster that has given a slot up gets it back only with another offer."""
    notices_loss = True
    """The JobMaster uses no slot of a TaskExecutor that it has disconnected."""

    def state(self):
        """Nothing is known of any allocation id."""
        a = range(self.allocations)
        return State(
            rm=Array(a, Enum("UNUSED", "PENDING", "ALLOCATED")),
            te=Array(a, Enum("ABSENT", "ALLOCATED", "ACTIVE", "RELEASING")),
            jm=Array(a, Enum("ABSENT", "FREE", "RESERVED")),
            task=Array(a, Bool()),  # the slot has tasks
            request=Array(a, Bool()),  # requestSlot, ResourceManager to TaskExecutor
            started=Array(a, Bool()),  # it was sent
            allocated=Array(a, Bool()),  # the TaskExecutor has, or had, the slot
            offered=Array(a, Bool()),  # offerSlots, TaskExecutor to JobMaster
            offers=Array(a, Range(0, self.repeats)),  # those that have not arrived
            received=Array(a, Bool()),  # the JobMaster has received the offer
            accepted=Array(a, Bool()),  # its answer
            gone=Array(a, Bool()),  # the JobMaster has disconnected the TaskExecutor
            lost=Array(a, Bool()),  # the ResourceManager has closed the connection to the TaskExecutor
        )

    # --- the ResourceManager

    def is_unused(self, s, a):
        """Whether the allocation id is a new one."""
        return super().is_unused(s, a) and not s.request[a] and not (self.used_once and s.started[a])

    @action(a="allocations")
    def start_allocation(self, s, a):
        """The ResourceManager requests the slot."""
        super().start_allocation(s, a)
        s.started[a] = True
        s.lost[a] = False

    @action(a="allocations")
    def receive_ack(self, s, a):
        """The TaskExecutor has answered, or its slot report has the slot."""
        require(s.rm[a] == "PENDING" and s.allocated[a])
        s.rm[a] = "ALLOCATED"

    @action(a="allocations", fairness=WEAK)
    def free_allocation(self, s, a):
        """The slot is free at the TaskExecutor, or the TaskExecutor is lost."""
        require(s.rm[a] != "UNUSED")
        if self.waits_for_executor:
            require((s.allocated[a] and s.te[a] == "ABSENT") or s.lost[a])
        s.rm[a] = "UNUSED"

    @action(a="allocations")
    def fail_allocation(self, s, a):
        """The request has failed."""
        require(s.rm[a] == "PENDING")
        s.rm[a] = "UNUSED"

    @action(a="allocations")
    def unregister(self, s, a):
        """The connection to the TaskExecutor is closed."""
        s.lost[a] = True

    # --- the TaskExecutor

    @action(a="allocations")
    def receive_request(self, s, a):
        """The request arrives, once."""
        super().receive_request(s, a)

    @action(a="allocations")
    def allocate(self, s, a):
        """The requested slot is allocated."""
        require(s.started[a] and not s.request[a] and not s.allocated[a])
        s.te[a] = "ALLOCATED"
        s.allocated[a] = True

    @action(a="allocations")
    def offer(self, s, a):
        """An allocated slot is offered."""
        require(self.is_offered(s, a))
        s.offered[a] = True
        s.offers[a] = min(s.offers[a] + 1, self.repeats)

    @action(a="allocations")
    def activate(self, s, a):
        """The JobMaster has accepted the slot; an ACTIVE slot is activated again for each task."""
        require(self.may_be_active(s, a) and (s.accepted[a] or not self.waits_for_answer))
        s.te[a] = "ACTIVE"

    @action(a="allocations")
    def receive_task(self, s, a):
        """A task is put into the slot."""
        super().receive_task(s, a)

    @action(a="allocations")
    def end_task(self, s, a):
        """The last task leaves the slot."""
        super().end_task(s, a)

    @action(a="allocations")
    def free_slot(self, s, a):
        """The slot is freed, for whatever reason; with tasks, again when the last one has left."""
        require(s.te[a] != "ABSENT")
        super().free_slot(s, a)

    @action(a="allocations")
    def close_connection(self, s, a):
        """The connection to the JobMaster is closed; its tasks end later."""
        require(s.te[a] == "ACTIVE")
        super().close_connection(s, a)

    # --- the JobMaster

    @action(a="allocations")
    def receive_offer(self, s, a):
        """An offer arrives, perhaps not for the first time."""
        require(s.offered[a] or not self.accepts_offers_only)
        s.received[a] = True
        if 0 < s.offers[a] < self.repeats:
            s.offers[a] -= 1

    @action(a="allocations")
    def accept(self, s, a):
        """A slot that is not held is accepted."""
        require((s.jm[a] == "ABSENT" or s.gone[a]) and s.received[a])
        s.jm[a] = "FREE"
        s.gone[a] = False
        s.accepted[a] = True

    @action(a="allocations")
    def reserve(self, s, a):
        """A request gets the slot."""
        super().reserve(s, a)
        require(not (self.notices_loss and s.gone[a]))

    @action(a="allocations")
    def deploy(self, s, a):
        """A task is deployed into the slot."""
        super().deploy(s, a)
        require(not (self.notices_loss and s.gone[a]))

    @action(a="allocations")
    def free_reserved(self, s, a):
        """The last task of the slot has ended; the slot can be reserved again."""
        super().free_reserved(s, a)

    @action(a="allocations")
    def release(self, s, a):
        """The slot is returned, or dropped with its TaskExecutor; only an offer that arrives later can bring it back."""
        require(s.jm[a] != "ABSENT")
        s.jm[a] = "ABSENT"
        if self.waits_for_offer:
            s.received[a] = False
            s.offered[a] = s.offers[a] > 0

    @action(a="allocations")
    def disconnect(self, s, a):
        """The TaskExecutor is lost; its slots are dropped before or afterwards."""
        s.gone[a] = True
        if self.waits_for_offer:
            s.received[a] = False
            s.offered[a] = False
            s.offers[a] = 0

    @action(a="allocations")
    def forget(self, s, a):
        """The JobMaster is gone."""
        s.jm[a] = "ABSENT"
        s.received[a] = False
