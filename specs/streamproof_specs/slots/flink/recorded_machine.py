"""One slot allocation as Flink's logs show it: the views of `slot_pool` for one allocation id.

`slot_pool` has one job, one TaskExecutor and every message; a log shows the changes of the views and no message, and a slot
has the tasks of a slot sharing group. So this machine keeps the views `rm`, `te` and `jm`, and of each message only whether
it was ever sent; which tasks are in a slot is counted along the lines of its TaskManager. Every behaviour of `slot_pool` is
accepted, line by line (`tests/conformance/test_flink_slots_machine.py`).
"""

from __future__ import annotations

from functools import lru_cache

from streamproof import Bool, Enum, Model, State, System, action, require
from streamproof.conformance import compile_model

OF_RM = frozenset({"start_allocation", "receive_ack", "free_allocation", "unregister"})
OF_JM = frozenset({"receive_offer", "accept", "reserve", "deploy", "free_reserved", "release", "disconnect", "forget"})
OF_TE = frozenset(
    {"receive_request", "allocate", "offer", "activate", "receive_task", "free_slot", "hold_slot", "close_connection"}
)


class RecordedSlot(Model):
    """An allocation id: at the ResourceManager, at the TaskExecutor, at the JobMaster."""

    name = "recorded_slot"
    check_deadlock = False

    def state(self):
        """Nothing is known of the allocation id."""
        return State(
            rm=Enum("UNUSED", "PENDING", "ALLOCATED", "FREED"),
            te=Enum("ABSENT", "ALLOCATED", "ACTIVE", "RELEASING", "FREED"),
            jm=Enum("ABSENT", "FREE", "RESERVED"),
            request=Enum("NONE", "SENT", "RECEIVED"),  # requestSlot, ResourceManager to TaskExecutor
            offered=Bool(),  # offerSlots, TaskExecutor to JobMaster
            received=Bool(),  # the JobMaster has received the offer
            accepted=Bool(),  # its answer
            gone=Bool(),  # the JobMaster has disconnected the TaskExecutor
            lost=Bool(),  # the ResourceManager has closed the connection to the TaskExecutor
        )

    # --- the ResourceManager

    @action
    def start_allocation(self, s):
        """The ResourceManager requests the slot."""
        require(s.rm == "UNUSED" and s.request == "NONE")
        s.rm = "PENDING"
        s.request = "SENT"
        s.lost = False

    @action
    def receive_ack(self, s):
        """The TaskExecutor has answered, or its slot report has the slot."""
        require(s.rm == "PENDING" and s.te != "ABSENT")
        s.rm = "ALLOCATED"

    @action
    def free_allocation(self, s):
        """The slot is free at the TaskExecutor, or the TaskExecutor is lost."""
        require(s.rm in ("PENDING", "ALLOCATED") and (s.te == "FREED" or s.lost))
        s.rm = "FREED"

    @action
    def fail_allocation(self, s):
        """The request has failed."""
        require(s.rm == "PENDING")
        s.rm = "FREED"

    @action
    def unregister(self, s):
        """The connection to the TaskExecutor is closed."""
        s.lost = True

    # --- the TaskExecutor

    @action
    def receive_request(self, s):
        """The request arrives, once."""
        require(s.request == "SENT")
        s.request = "RECEIVED"

    @action
    def allocate(self, s):
        """The slot is allocated."""
        require(s.request == "RECEIVED" and s.te == "ABSENT")
        s.te = "ALLOCATED"

    @action
    def offer(self, s):
        """An allocated slot is offered."""
        require(s.te == "ALLOCATED")
        s.offered = True

    @action
    def activate(self, s):
        """The JobMaster has accepted the slot; an ACTIVE slot is activated again for each task."""
        require(s.te == "ACTIVE" or (s.te == "ALLOCATED" and s.accepted))
        s.te = "ACTIVE"

    @action
    def receive_task(self, s):
        """A task is put into the slot."""
        require(s.te == "ACTIVE")

    @action
    def free_slot(self, s):
        """The slot is empty, and free."""
        require(s.te in ("ALLOCATED", "ACTIVE", "RELEASING"))
        s.te = "FREED"

    @action
    def hold_slot(self, s):
        """The slot has tasks: it is freed again when the last one has left."""
        require(s.te in ("ALLOCATED", "ACTIVE", "RELEASING"))
        s.te = "RELEASING"

    @action
    def close_connection(self, s):
        """The connection to the JobMaster is closed; the slot waits for another one."""
        require(s.te == "ACTIVE")
        s.te = "ALLOCATED"

    # --- the JobMaster

    @action
    def receive_offer(self, s):
        """An offer arrives."""
        require(s.offered)
        s.received = True

    @action
    def accept(self, s):
        """A slot that is not held is accepted."""
        require((s.jm == "ABSENT" or s.gone) and s.received)
        s.jm = "FREE"
        s.gone = False
        s.accepted = True

    @action
    def reserve(self, s):
        """A request gets the slot."""
        require(s.jm == "FREE" and not s.gone)
        s.jm = "RESERVED"

    @action
    def deploy(self, s):
        """A task is deployed into the slot."""
        require(s.jm == "RESERVED" and not s.gone)

    @action
    def free_reserved(self, s):
        """The last task of the slot has ended; the slot can be reserved again."""
        require(s.jm == "RESERVED")
        s.jm = "FREE"

    @action
    def release(self, s):
        """The slot is returned, or dropped with its TaskExecutor; only another offer can bring it back."""
        require(s.jm != "ABSENT")
        s.jm = "ABSENT"
        s.received = False
        s.offered = False

    @action
    def disconnect(self, s):
        """The TaskExecutor is lost; its slots are dropped before or afterwards."""
        s.gone = True
        s.received = False
        s.offered = False

    @action
    def forget(self, s):
        """The JobMaster is gone."""
        s.jm = "ABSENT"
        s.received = False


@lru_cache(maxsize=1)
def slot_system() -> System:
    """The machine of one allocation."""
    return compile_model(RecordedSlot())
