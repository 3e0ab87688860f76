"""The slots of a TaskExecutor as a state machine without input and output.

A slot is requested by the ResourceManager, ALLOCATED, and offered to the JobMaster. Accepted it is ACTIVE: subtasks run in
ACTIVE slots only. It is freed if it is rejected, returned, ALLOCATED for too long, or not in the JobMaster's list of slots.
Without the JobMaster ACTIVE slots are ALLOCATED again, and are offered to the next one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from streamproof_runtime import messages as m
from streamproof_runtime.jobmaster.jobmaster import NAME as JOBMASTER
from streamproof_runtime.slots.slot_events import RM, SlotEvents, Stamp
from streamproof_runtime.slots.slot_rules import SlotRules

ABSENT, ALLOCATED, ACTIVE, RELEASING = "ABSENT", "ALLOCATED", "ACTIVE", "RELEASING"
"""States of a slot; RELEASING: it is free when its tasks have stopped."""


class TableHost(Protocol):
    """What a slot table may do to the world."""

    slot_events: SlotEvents

    def send(self, target: str, message: m.Message) -> None:
        """Sends a message."""

    def call_later(self, delay: int, timer: str, number: int) -> None:
        """Calls `on_timer` after a delay in nanoseconds."""


class Evictor(Protocol):
    """The subtasks of a TaskExecutor."""

    def evict(self, tasks: Iterable[str]) -> None:
        """Stops subtasks whose slot is freed."""


@dataclass(slots=True)
class TableSlot:
    """A slot that is allocated. A time-out counts only with its present ticket."""

    state: str = ALLOCATED
    ticket: int = -1
    tasks: set[str] = field(default_factory=set)


class SlotTable:
    """The slots of one TaskExecutor."""

    def __init__(self, slots: int, host: TableHost, evictor: Evictor, timeout: int, rules: SlotRules) -> None:
        """`timeout`: nanoseconds that a slot may be ALLOCATED."""
        self.slots, self.host, self.rules = slots, host, rules
        self._evictor, self._timeout = evictor, timeout
        self.allocated: dict[str, TableSlot] = {}
        self._tickets: dict[int, str] = {}
        self._offers: dict[str, int] = {}
        """The number of the last offer of each slot."""
        self._changed = False
        """Whether a slot report would be new."""

    # --- registration

    def join(self) -> None:
        """Registers at the ResourceManager, with a report of all slots."""
        report = [*self.allocated]
        stamp = self._event("registered", {"slots": report, "total": self.slots})
        self._changed = False
        self.host.send(RM, (m.JOIN, self.host.slot_events.process, self.slots, report, stamp))

    def offer_all(self) -> None:
        """Offers what is not ACTIVE to the JobMaster, with which the TaskExecutor has registered."""
        for allocation, slot in self.allocated.items():
            if slot.state == ALLOCATED:
                self._offer(allocation)

    def on_jobmaster_lost(self) -> None:
        """The subtasks have stopped: ACTIVE slots wait for the next JobMaster."""
        active = [a for a, slot in self.allocated.items() if slot.state == ACTIVE]
        for allocation in active:
            self.allocated[allocation].state = ALLOCATED
            self._start_timer(allocation)
        self._event("jobmaster_lost", {"slots": active})

    # --- messages

    def on_message(self, message: m.Message) -> None:
        """A message of the ResourceManager, or about the slots from the JobMaster."""
        kind, *rest = message
        if kind == m.REQUEST:
            self._requested(*rest)
        elif kind == m.POLL:
            self._report()
        elif kind == m.ANSWER:
            self._answered(*rest)
        elif kind == m.FREE:
            self._returned(*rest)
        elif kind == m.HELD:
            self._listed(*rest)

    def _requested(self, allocation: str, stamp: Stamp) -> None:
        done = len(self.allocated) < self.slots
        if done:
            self.allocated[allocation] = TableSlot()
            self._changed = True
        sent = self._event("slot_requested", {"slot": allocation, "done": done}, stamp)
        self.host.send(RM, (m.GRANT, allocation, done, sent))
        if done:
            self._start_timer(allocation)
            self._offer(allocation)

    def _offer(self, allocation: str) -> None:
        stamp = self._event("slot_offered", {"slot": allocation})
        self._offers[allocation] = stamp[1]
        self.host.send(JOBMASTER, (m.OFFER, allocation, stamp))

    def _report(self) -> None:
        """The answer to a heartbeat: a report, if it is another one than the last."""
        if self._changed and self.rules.reports_slots:
            self._changed = False
            report = [*self.allocated]
            self.host.send(RM, (m.REPORT, report, self._event("slots_reported", {"slots": report})))
        else:
            self.host.send(RM, (m.REPORT,))

    def _answered(self, allocation: str, accepted: bool, offer: int, stamp: Stamp) -> None:
        """An accepted slot is ACTIVE, a rejected one is free; the JobMaster learns of one that is gone. Only the answer to
        the last offer counts."""
        if offer != self._offers.get(allocation) and self.rules.discards_stale:
            self._event("answer_discarded", {"slot": allocation, "accepted": accepted}, stamp)
            return
        slot = self.allocated.get(allocation)
        frees = not accepted and slot is not None and self.rules.frees_rejected
        if accepted and slot is not None:
            slot.state, slot.ticket = ACTIVE, -1
        if frees:
            self._remove(allocation)
        fails = accepted and slot is None and self.rules.fails_slots
        about = {"slot": allocation, "accepted": accepted, "failed": [allocation] if fails else []}
        sent = self._event("offer_answered", about, stamp)
        if fails:
            self.host.send(JOBMASTER, (m.SLOT_FAILED, allocation, sent))
        self._tell_available([allocation] if frees else (), sent)

    def _returned(self, allocation: str, stamp: Stamp) -> None:
        frees = self.rules.frees_returned and allocation in self.allocated
        stopped = [allocation] if frees and self._stop_and_remove(allocation) else []
        sent = self._event("slot_returned", {"slot": allocation, "stopped": stopped}, stamp)
        self._tell_available([allocation] if frees else (), sent)

    def _listed(self, held: list[str], stamp: Stamp) -> None:
        """The JobMaster's list: a slot that only it has has failed, an ACTIVE one that it does not have is free."""
        failed = [a for a in held if a not in self.allocated] if self.rules.fails_slots else []
        exempt = (ALLOCATED,) if self.rules.exempts_allocated else ()
        freed = [a for a, slot in self.allocated.items() if a not in held and slot.state not in exempt]
        stopped = [a for a in freed if self._stop_and_remove(a)]
        about = {"slots": held, "failed": failed, "freed": freed, "stopped": stopped}
        sent = self._event("list_received", about, stamp)
        for allocation in failed:
            self.host.send(JOBMASTER, (m.SLOT_FAILED, allocation, sent))
        self._tell_available(freed, sent)
        self.host.send(JOBMASTER, (m.LISTED,))

    # --- time-outs

    def _start_timer(self, allocation: str) -> None:
        ticket = len(self._tickets)
        self._tickets[ticket] = allocation
        self.allocated[allocation].ticket = ticket
        self.host.call_later(self._timeout, "slot", ticket)

    def on_timer(self, timer: str, ticket: int) -> None:
        """A slot was ALLOCATED for too long, if the ticket is still its own."""
        allocation = self._tickets[ticket]
        slot = self.allocated.get(allocation)
        if slot is not None and (slot.ticket == ticket or not self.rules.checks_ticket):
            stopped = [allocation] if self._stop_and_remove(allocation) else []
            about = {"slot": allocation, "stopped": stopped}
            self._tell_available([allocation], self._event("slot_timed_out", about))

    # --- subtasks

    def state(self, allocation: str) -> str:
        """The state of a slot."""
        slot = self.allocated.get(allocation)
        return ABSENT if slot is None else slot.state

    def deploy(self, slots: Mapping[str, str], stamp: Stamp) -> str:
        """Subtasks come into their slots. The first slot that is not ACTIVE, if any; then none does."""
        tasks: dict[str, list[str]] = {}
        for task, allocation in slots.items():
            tasks.setdefault(allocation, []).append(task)
        used = [*tasks]
        if not used:
            return ""
        for allocation in used:
            if self.state(allocation) != ACTIVE:
                return allocation
        for task, allocation in slots.items():
            self.allocated[allocation].tasks.add(task)
        self._event("tasks_deployed", {"slots": used, "subtasks": tasks}, stamp)
        return ""

    def ended(self, tasks: Iterable[str]) -> None:
        """Subtasks have ended: some slots may have none now."""
        gone, emptied = {*tasks}, []
        for allocation, slot in self.allocated.items():
            if slot.tasks & gone:
                slot.tasks -= gone
                if not slot.tasks and slot.state != RELEASING:
                    emptied.append(allocation)
        if emptied:
            self._event("tasks_ended", {"slots": emptied})

    def _stop_and_remove(self, allocation: str) -> bool:
        """Frees a slot. Whether its subtasks had to be stopped."""
        slot = self.allocated[allocation]
        stops = bool(slot.tasks)
        if stops:
            slot.state = RELEASING
            self._evictor.evict({*slot.tasks})
        self._remove(allocation)
        return stops

    def _remove(self, allocation: str) -> None:
        del self.allocated[allocation]
        self._changed = True

    def _event(self, event: str, args: Mapping[str, Any], received: Stamp | None = None) -> Stamp:
        """Records an event."""
        return self.host.slot_events(
            event, args, {"slots": {a: slot.state for a, slot in self.allocated.items()}}, received
        )

    def _tell_available(self, freed: Iterable[str], stamp: Stamp) -> None:
        for allocation in freed:
            self.host.send(RM, (m.AVAILABLE, allocation, stamp))
