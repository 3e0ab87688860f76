"""The slot pool of a JobMaster as a state machine without input and output: what the job requires, and the slots it holds.

The requirement is declared to the ResourceManager. TaskExecutors offer slots, which are accepted while more are required. A
slot is reserved while a region uses it; a free slot that is not required is returned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

from streamproof_runtime import messages as m
from streamproof_runtime.jobs.co_location import SlotSharing
from streamproof_runtime.slots.placement import Place
from streamproof_runtime.slots.resources import Resources
from streamproof_runtime.slots.slot_events import RM, SlotEvents, Stamp
from streamproof_runtime.slots.slot_rules import SlotRules


class PoolHost(Protocol):
    """What a slot pool may do to the world."""

    slot_events: SlotEvents

    def send(self, target: str, message: m.Message) -> None:
        """Sends a message."""


@dataclass(slots=True)
class HeldSlot:
    """A slot that the JobMaster holds, the regions that use it, and the slot sharing group of their subtasks."""

    executor: str
    users: set[int] = field(default_factory=set)
    group: str = ""


class SlotPool:
    """The slots of one job."""

    def __init__(
        self,
        host: PoolHost,
        rules: SlotRules,
        sharing: SlotSharing,
        profiles: Mapping[str, Resources] = MappingProxyType({}),
        job: str = "",
    ) -> None:
        """For the log: `profiles`: what the slots of TaskExecutors have; `job`: the name of one of a session."""
        self._about: dict[str, Any] = {"job": job} if job else {}
        if profiles:
            self._about["profiles"] = {name: {**profile} for name, profile in profiles.items()}
        self.host, self.rules, self._sharing = host, rules, sharing
        self.required = 0
        self.demands: list[tuple[Resources, int]] = []
        """What some of the required slots must have."""
        self.held: dict[str, HeldSlot] = {}
        self._changed: set[str] = set()
        """TaskExecutors for which the list of slots would be a new one."""
        self._listing: set[str] = set()
        """TaskExecutors that have not answered a list yet."""

    def require(self, number: int, demands: Sequence[tuple[Resources, int]] = ()) -> None:
        """The job requires this many slots, some of them with resources, and those that are reserved. Those that it does not
        require are returned."""
        number = max(number, self.reserved)
        if (number, [*demands]) != (self.required, self.demands):
            self.required, self.demands = number, [*demands]
            self.declare()
        self._release_idle()

    def declare(self) -> None:
        """The ResourceManager learns of the requirement; again, if it is another one."""
        stamp = self._event("slots_declared", {"required": self.required, **self._sharing.record(), **self._about})
        wanted = [[dict(resources), number] for resources, number in self.demands]
        self.host.send(RM, (m.DECLARE, self.required, stamp, wanted))

    @property
    def reserved(self) -> int:
        """Number of slots that regions use."""
        return sum(bool(slot.users) for slot in self.held.values())

    def places(self) -> list[Place]:
        """The slots in turn over all TaskExecutors."""
        by_executor: dict[str, list[str]] = {}
        for allocation, slot in self.held.items():
            by_executor.setdefault(slot.executor, []).append(allocation)
        lists = [by_executor[peer] for peer in sorted(by_executor)]
        most = max(map(len, lists), default=0)
        slots = [own[level] for level in range(most) for own in lists if level < len(own)]
        return [(slot, self.held[slot].executor, self.held[slot].group) for slot in slots]

    # --- messages

    def on_offer(self, peer: str, allocation: str, stamp: Stamp) -> bool:
        """An offered slot is accepted if it is known, or required. Whether it is."""
        accepted = allocation in self.held or self.required > len(self.held) or not self.rules.rejects_excess
        if accepted:
            self.held.setdefault(allocation, HeldSlot(peer))
            self._changed.add(peer)
        sent = self._event("offer_received", {"slot": allocation, "accepted": accepted}, stamp)
        self.host.send(peer, (m.ANSWER, allocation, accepted, stamp[1], sent))
        return accepted

    def on_failed(self, peer: str, allocation: str, stamp: Stamp) -> set[int]:
        """A TaskExecutor does not have a slot. The regions that used it."""
        slot = self.held.pop(allocation, None)
        self._event("slot_failed", {"slot": allocation}, stamp)
        self._changed.add(peer)
        return slot.users if slot is not None else set()

    def on_listed(self, peer: str) -> None:
        """A TaskExecutor has received the list of slots."""
        self._listing.discard(peer)

    def list_to(self, peer: str) -> None:
        """With a heartbeat: the slots that are held of a TaskExecutor, if that has changed."""
        if self.rules.reconciles and peer in self._changed and peer not in self._listing:
            self._changed.discard(peer)
            self._listing.add(peer)
            own = self._of(peer)
            self.host.send(peer, (m.HELD, own, self._event("slots_listed", {"executor": peer, "slots": own})))

    def drop(self, peer: str) -> None:
        """The connection to a TaskExecutor is lost, and with it its slots."""
        gone = self._of(peer)
        for allocation in gone:
            del self.held[allocation]
        self._changed.discard(peer)
        self._listing.discard(peer)
        self._event("slots_lost", {"executor": peer})

    # --- regions

    def reserve(self, region: int, slots: Mapping[str, str], groups: Mapping[str, str]) -> Stamp:
        """The subtasks of a region use these slots; `groups` has the slot sharing group of each. The result is the stamp of
        its deployment."""
        tasks: dict[str, list[str]] = {}
        for task, allocation in slots.items():
            tasks.setdefault(allocation, []).append(task)
        fresh = [a for a in tasks if not self.held[a].users]
        for allocation, own in tasks.items():
            self.held[allocation].users.add(region)
            self.held[allocation].group = groups[own[0]]
        return self._event("slots_reserved", {"slots": fresh, "subtasks": tasks})

    def unreserve(self, region: int) -> None:
        """A region uses no slot any more."""
        freed = []
        for allocation, slot in self.held.items():
            if region in slot.users:
                slot.users.discard(region)
                if not slot.users:
                    slot.group = ""
                    freed.append(allocation)
        if freed:
            self._event("slots_unreserved", {"slots": freed})

    def _release_idle(self) -> None:
        free = [a for a, slot in self.held.items() if not slot.users]
        for allocation in free[::-1] if self.rules.releases_idle else ():
            if len(self.held) <= self.required:
                return
            peer = self.held.pop(allocation).executor
            self._changed.add(peer)
            stamp = self._event("slot_released", {"slot": allocation})
            self.host.send(peer, (m.FREE, allocation, stamp))

    def _event(self, event: str, args: Mapping[str, Any], received: Stamp | None = None) -> Stamp:
        """Records an event."""
        slots = {a: "RESERVED" if slot.users else "FREE" for a, slot in self.held.items()}
        return self.host.slot_events(event, args, {"required": self.required, "slots": slots}, received)

    def _of(self, peer: str) -> list[str]:
        return [a for a, slot in self.held.items() if slot.executor == peer]
