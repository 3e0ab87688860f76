"""Log lines about one slot allocation as observations, with explanations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from streamproof.conformance import Constraint, Event, Instance, Move, Observation, StateReader

RM_LINES = frozenset(
    {"slot.rm.alloc", "slot.rm.pending", "slot.rm.complete", "slot.rm.freeing", "slot.rm.freed", "rm.close"}
)
JM_LINES = frozenset(
    {
        "slot.jm.offers",
        "slot.jm.match",
        "slot.jm.reserve",
        "slot.jm.release",
        "slot.jm.freereserved",
        "slot.jm.releasing",
        "exec.deploy",
        "jm.disconnect",
    }
)
TE_LINES = frozenset(
    {
        "slot.tm.request",
        "slot.tm.alloc",
        "slot.tm.activate",
        "slot.tm.free",
        "slot.tm.offer",
        "tm.closejm",
        "tm.submit",
        "tm.final",
    }
)

_MOVES = {
    "slot.rm.alloc": "start_allocation",
    "slot.rm.complete": "receive_ack",
    "slot.jm.offers": "receive_offer",
    "slot.jm.match": "accept",
    "slot.jm.reserve": "reserve",
    "slot.jm.freereserved": "free_reserved",
    "slot.jm.releasing": "release",
    "exec.deploy": "deploy",
    "jm.disconnect": "disconnect",
    "rm.close": "unregister",
    "slot.tm.request": "receive_request",
    "slot.tm.alloc": "allocate",
    "slot.tm.activate": "activate",
    "slot.tm.free": "free_slot",
    "tm.submit": "receive_task",
}
_ALLOCATION = {"a": 0}
"""The machine has one allocation."""
_OPTIONAL = {"slot.tm.offer": "offer", "tm.closejm": "close_connection"}
"""Lines about all slots of a job: those in the state concerned."""

HIDDEN_WITHOUT = {
    "allocate": "slot.tm.alloc",
    "receive_ack": "slot.rm.complete",
    "receive_offer": "slot.jm.offers",
    "accept": "slot.jm.match",
    "reserve": "slot.jm.reserve",
    "free_reserved": "slot.jm.freereserved",
}
"""Actions with a line at DEBUG only, or not in Flink 1.17: they are hidden if no log has such a line."""

_SHOWN = {
    "start_allocation": "Starting allocation of slot {}",
    "receive_ack": "Complete slot allocation with allocationId {}",
    "receive_request": "Receive slot request {}",
    "allocate": "Allocated slot for {}",
    "offer": "Offer reserved slots",
    "activate": "Activate slot {}",
    "receive_task": "Received task ..., deploy into slot with allocation id {}",
    "free_slot": "Free slot TaskSlot(... allocationId: {} ...)",
    "accept": "Matched slot offer {}",
    "reserve": "Reserve slot {}",
    "deploy": "Deploying ... with allocation id {}",
    "free_reserved": "Free reserved slot {}",
    "release": "Releasing slot [{}]",
}


def _move(action: str) -> Move:
    return Move(action, _ALLOCATION)


def _view(look: StateReader, name: str) -> str:
    """The state of the allocation for a component; an id that was used is FREED."""
    state = str(look(name, 0))
    used = {"rm": ("UNUSED", "started"), "te": ("ABSENT", "allocated")}.get(name)
    return "FREED" if used is not None and state == used[0] and look(used[1], 0) else state


@dataclass(frozen=True, slots=True)
class SlotExplainer:
    """The lines about one allocation as observations, with explanations."""

    alloc: str
    frees: bool = True
    """Whether the JobManager logs that a reserved slot is free."""

    def line(self, event: Event, *, is_last: bool = False) -> Observation:
        """The meaning of a line. `is_last`: with it the last task of the slot has ended."""
        name = event.event
        if name in _OPTIONAL:
            return Observation(event, ((Move(_OPTIONAL[name], _ALLOCATION, optional=True),),))
        match name:
            case "slot.rm.pending":
                return Observation(event, before=(self._holds("rm", "PENDING", "the ResourceManager"),))
            case "slot.rm.freeing" | "slot.rm.freed":
                return self._freed(event)
            case "slot.jm.release":
                held = self._holds("jm", "RESERVED", "the JobMaster")
                return Observation(event, ((),) if self.frees else ((_move("free_reserved"),),), before=(held,))
            case "slot.tm.free":
                state = event.args["state"]
                held = self._holds("te", state, "the TaskManager")
                return Observation(event, ((_move("free_slot"),),), before=(held,))
            case "tm.final":
                return Observation(event, ((_move("end_task"),) if is_last else (),))
            case _:
                return Observation(event, ((_move(_MOVES[name]),),))

    def _freed(self, event: Event) -> Observation:
        """The ResourceManager writes one to three lines: the first one changes the state."""
        ways: tuple[tuple[Move, ...], ...] = ((_move("free_allocation"),),)
        if event.event == "slot.rm.freed":
            ways = (*ways, (_move("fail_allocation"),))
        again = Constraint(
            lambda look: (
                f"the ResourceManager frees slot {self.alloc}, {_view(look, 'rm')} for it and {_view(look, 'te')} on its"
                " TaskManager"
            ),
            lambda look: _view(look, "rm") == "FREED",
        )
        before = (self._holds("rm", "ALLOCATED", "the ResourceManager"),) if event.args.get("report") else ()
        return Observation(event, (*ways, ()), (again,), before)

    def _holds(self, view: str, state: str, who: str) -> Constraint:
        return Constraint(
            lambda look: f"slot {self.alloc} is {_view(look, view)} for {who}, not {state}",
            lambda look: _view(look, view) == state,
        )

    # --- explanations

    def why_not(self, move: Move, look: StateReader) -> str | None:
        """Why an action is disabled."""
        rm, te, jm = (_view(look, view) for view in ("rm", "te", "jm"))
        where = f"slot {self.alloc} is {te} on its TaskManager"
        match move.action:
            case "start_allocation":
                return f"slot {self.alloc} is allocated a second time"
            case "receive_ack":
                return f"the ResourceManager has slot {self.alloc} as {rm}, and {where}"
            case "free_allocation" | "fail_allocation":
                return f"the ResourceManager has slot {self.alloc} as {rm}; {where}, and it is not lost"
            case "receive_request":
                return f"slot {self.alloc} was not requested by the ResourceManager, or a second time"
            case "allocate" if te == "ABSENT":
                return f"slot {self.alloc} was not requested"
            case "allocate":
                return f"slot {self.alloc} is allocated a second time; it is {te}"
            case "activate" if te == "ALLOCATED":
                return f"slot {self.alloc} is activated, but the JobMaster has not accepted it"
            case "activate" | "receive_task" | "free_slot":
                return where
            case "receive_offer":
                return f"slot {self.alloc} was not offered; {where}"
            case "accept" if jm == "ABSENT":
                return f"slot {self.alloc} was not offered"
            case "deploy" if jm == "ABSENT" and not look("received", 0) and not look("offered", 0):
                return (
                    f"a task is deployed into slot {self.alloc}, which the JobMaster does not hold: it was not offered"
                )
            case "deploy" if look("gone", 0):
                return f"a task is deployed into slot {self.alloc} of a TaskManager that is disconnected"
            case "deploy":
                return f"a task is deployed into slot {self.alloc}, which is {jm} for the JobMaster, not RESERVED"
            case _:
                return f"slot {self.alloc} is {jm} for the JobMaster"

    def expected(self, enabled: Sequence[Instance], look: StateReader, event: Event) -> Iterator[tuple[int, str]]:
        """Acceptable lines about the allocation."""
        for instance in enabled:
            if instance.action in _SHOWN:
                yield int(_MOVES.get(event.event) != instance.action), _SHOWN[instance.action].format(self.alloc)
