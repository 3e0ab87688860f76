"""The ResourceManager as a state machine without input and output: TaskExecutors with their slots, and allocations of them.

The JobMaster declares how many slots its job requires. While there are fewer allocations, a free slot gets a new allocation
id and is requested of its TaskExecutor, which answers, and offers the slot to the JobMaster itself. A TaskExecutor that
registers, or answers a heartbeat after a change, sends a report of its slots: so a ResourceManager that replaces a lost one
learns of the allocations, and a lost message is repaired.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from streamproof_runtime import messages as m
from streamproof_runtime.jobmaster.jobmaster import NAME as JOBMASTER
from streamproof_runtime.slots.resources import Resources, fits
from streamproof_runtime.slots.slot_events import RM, SlotEvents, Stamp, process_name
from streamproof_runtime.slots.slot_rules import SlotRules

NAME = RM
PENDING, ALLOCATED = "PENDING", "ALLOCATED"
"""States of an allocation: requested; confirmed by the TaskExecutor."""


@dataclass(frozen=True, slots=True)
class ManagerTiming:
    """Times in nanoseconds."""

    heartbeat_interval: int
    heartbeat_timeout: int
    executors: int = 0
    """TaskExecutors that the first allocation waits for, so that slots are spread over all of them."""
    patience: int = 0
    """How long it waits for them."""
    idle: int = 0
    """After so long without an allocation a TaskExecutor that stores nothing is released; 0: none is."""
    names: tuple[str, ...] = ()
    """The TaskExecutors that can be started again when slots are required."""
    resources: Mapping[str, Resources] = field(default_factory=dict)
    """What the slots of TaskExecutors have."""
    asks: bool = True
    """Whether a TaskExecutor that stores partitions is kept."""


class ManagerHost(Protocol):
    """What a ResourceManager may do to the world."""

    slot_events: SlotEvents

    def send(self, target: str, message: m.Message) -> None:
        """Sends a message."""

    def close(self, target: str) -> None:
        """Closes a connection; both ends learn of it."""

    def call_later(self, delay: int, timer: str, number: int) -> None:
        """Calls `on_timer` after a delay in nanoseconds."""

    def provide(self, name: str) -> None:
        """Starts a TaskExecutor that was released; without effect on any other one."""


@dataclass(slots=True)
class Executor:
    """A registered TaskExecutor."""

    process: str
    slots: int
    silent: int = 0
    """Heartbeats without answer."""
    unfelt: int = 0
    """Heartbeats since its last sign of life of another kind."""
    idle: int = 0
    """Heartbeats without an allocation."""
    dismissed: bool = False


@dataclass(slots=True)
class Allocation:
    """A slot that is requested or allocated."""

    executor: str
    state: str = PENDING


class ResourceManager:
    """Allocates the slots of all TaskExecutors to one job."""

    def __init__(self, host: ManagerHost, timing: ManagerTiming, incarnation: int, rules: SlotRules) -> None:
        """`incarnation`: how many ResourceManagers were before; their allocation ids are other ones."""
        self.host, self.timing, self.rules = host, timing, rules
        self._incarnation, self._made = incarnation, 0
        self.executors: dict[str, Executor] = {}
        self.allocations: dict[str, Allocation] = {}
        self.required = 0
        """Slots that the job requires."""
        self._demands: list[tuple[Resources, int]] = []
        """What some of them must have."""
        self._waits = bool(timing.executors)
        self._cluster: dict[tuple[str, int], dict[int, str]] = {}
        """The TaskExecutor of each cluster partition that was reported, by dataset and attempt."""
        self._widths: dict[str, int] = {}
        """Number of partitions of each dataset."""
        self._unwanted: set[str] = set()
        """Datasets that were released, also if they are reported later."""

    def start(self) -> None:
        """Starts the heartbeats, and the wait for TaskExecutors."""
        if self._waits:
            self.host.call_later(self.timing.patience, "patience", 0)
        self.host.call_later(self.timing.heartbeat_interval, "heartbeat", 0)

    def on_message(self, peer: str, message: m.Message) -> None:
        """A message of the JobMaster, or of a TaskExecutor that has registered."""
        kind, *rest = message
        if peer == JOBMASTER:
            if kind == m.LOCATE:
                self._locate(*rest)
            else:
                self._declared(*rest)
        elif kind == m.JOIN:
            self._joined(peer, *rest)
        elif peer in self.executors:
            self.executors[peer].silent = 0
            if kind == m.GRANT:
                self._granted(*rest)
            elif kind == m.AVAILABLE:
                self._available(*rest)
            elif kind == m.CLUSTER:
                self._promoted(peer, rest[0])
            elif kind == m.VACANT:
                self._dismiss(peer, *rest)
            elif rest:
                self._reported(peer, "report_received", *rest)
            self.check()

    def on_pulse(self, peer: str, incarnation: int) -> None:
        """A sign of life of a TaskExecutor, whose answers a user function may keep waiting."""
        found = self.executors.get(peer)
        if found is not None and found.process == process_name(peer, incarnation):
            found.unfelt = 0

    def on_lost(self, peer: str) -> None:
        """The connection to a TaskExecutor is lost, and with it its slots; without a JobMaster nothing is required."""
        if peer == JOBMASTER:
            if self.required:
                self.required = 0
                self._event("requirements_cleared", {})
        elif peer in self.executors:
            for allocation in self._of(peer):
                del self.allocations[allocation]
            for found in self._cluster.values():
                for number in [number for number, at in found.items() if at == peer]:
                    del found[number]
            self._event("executor_lost", {"executor": self.executors.pop(peer).process})
            self.check()

    def on_timer(self, timer: str, number: int) -> None:
        """The end of the wait for TaskExecutors, or a heartbeat: one that has not answered for too long is lost."""
        if timer == "patience":
            self._waits = False
            self.check()
            return
        for peer in sorted(self.executors):
            executor = self.executors[peer]
            executor.silent += 1
            executor.unfelt += 1
            beats = min(executor.silent, executor.unfelt)
            if beats * self.timing.heartbeat_interval > self.timing.heartbeat_timeout:
                self.host.close(peer)
                self.on_lost(peer)
            elif executor.silent == 1:  # the last one was answered: at most one report is on the way
                self.host.send(peer, (m.POLL,))
            self._look_at_idle(peer, executor)
        if self.timing.idle:
            self.check()
        self.host.call_later(self.timing.heartbeat_interval, "heartbeat", 0)

    # --- cluster partitions

    def _promoted(self, peer: str, partitions: Iterable[tuple[str, int, int, int]]) -> None:
        """A TaskExecutor has got cluster partitions. Those of earlier attempts are of a JobMaster that was lost."""
        for dataset, attempt, number, width in partitions:
            self._cluster.setdefault((dataset, attempt), {})[number] = peer
            self._widths[dataset] = width
        newest = {name: max(attempt for of, attempt in self._cluster if of == name) for name, _ in self._cluster}
        for name, attempt in [*self._cluster]:
            if attempt < newest[name] or name in self._unwanted:
                self._discard(name, attempt)

    def _locate(self, dataset: str, attempt: int) -> None:
        """The JobMaster asks for a cluster partition; the answer is for one that is known as a whole."""
        found = self._cluster.get((dataset, attempt), {})
        if found and len(found) == self._widths[dataset]:
            self.host.send(JOBMASTER, (m.LOCATED, dataset, attempt, [found[number] for number in sorted(found)]))

    def release(self, dataset: str) -> None:
        """The user releases a cluster partition."""
        self._unwanted.add(dataset)
        for name, attempt in [*self._cluster]:
            if name == dataset:
                self._discard(name, attempt)

    def _discard(self, dataset: str, attempt: int) -> None:
        for peer in sorted({*self._cluster.pop((dataset, attempt)).values()}):
            self.host.send(peer, (m.DISCARD, dataset, attempt))

    def _look_at_idle(self, peer: str, executor: Executor) -> None:
        """After the idle time a TaskExecutor is asked whether it stores nothing, and released if so."""
        executor.idle = 0 if self._of(peer) else executor.idle + 1
        if self._is_idle(peer):
            if self.timing.asks:
                self.host.send(peer, (m.VACANT,))
            else:
                self._dismiss(peer, empty=True)

    def _is_idle(self, peer: str) -> bool:
        """Whether a TaskExecutor has had no allocation for the idle time."""
        found = self.executors.get(peer)
        needed = -(-self.timing.idle // self.timing.heartbeat_interval)
        return bool(self.timing.idle) and found is not None and not self._of(peer) and found.idle >= needed

    def _dismiss(self, peer: str, empty: bool) -> None:
        """Releases a TaskExecutor that has had no allocation since it was asked; its connection will be lost."""
        if empty and self._is_idle(peer) and not self.executors[peer].dismissed:
            self.executors[peer].dismissed = True
            self.host.send(peer, (m.DISMISS,))

    def check(self) -> None:
        """Requests slots while fewer are allocated than the job requires: of the TaskExecutor with the most free ones."""
        self._waits = self._waits and len(self.executors) < self.timing.executors
        while self.required > len(self.allocations) and not self._waits:
            present = {peer: executor for peer, executor in self.executors.items() if not executor.dismissed}
            free = {peer: executor.slots - len(self._of(peer)) for peer, executor in present.items()}
            peer = self._chosen({peer: number for peer, number in free.items() if number > 0})
            if not peer:
                for name in self.timing.names if self.timing.idle else ():
                    self.host.provide(name)
                return
            self.executors[peer].idle = 0
            allocation = f"{self._incarnation}-{self._made}"
            self._made += 1
            self.allocations[allocation] = Allocation(peer)
            about = {"slot": allocation, "executor": self.executors[peer].process}
            self.host.send(peer, (m.REQUEST, allocation, self._event("allocation_started", about)))

    def _chosen(self, free: Mapping[str, int]) -> str:
        """The TaskExecutor of the next slot, or nothing: one that has what a slot must have that is lacking; else of those
        with the fewest resources one with the most free slots."""
        profiles = self.timing.resources
        used = [profiles.get(allocation.executor, {}) for allocation in self.allocations.values()]
        for needed, number in sorted(self._demands, key=lambda demand: -len(demand[0])):
            for _ in range(number):
                own = min((profile for profile in used if fits(profile, needed)), key=len, default=None)
                if own is not None:
                    used.remove(own)
                elif usable := [peer for peer in free if fits(profiles.get(peer, {}), needed)]:
                    return max(sorted(usable), key=lambda peer: (-len(profiles[peer]), free[peer]))
        special = sum(number for _, number in self._demands) - (len(self.allocations) - len(used))
        if special >= self.required - len(self.allocations):
            return ""  # only such slots are lacking, and nobody has them
        return max(sorted(free), key=lambda peer: (-len(profiles.get(peer, ())), free[peer]), default="")

    def _event(self, event: str, args: Mapping[str, Any], received: Stamp | None = None) -> Stamp:
        """Records an event."""
        return self.host.slot_events(
            event,
            args,
            {"required": self.required, "slots": {a: x.state for a, x in self.allocations.items()}},
            received,
        )

    def _of(self, peer: str) -> list[str]:
        return [name for name, allocation in self.allocations.items() if allocation.executor == peer]

    def _declared(self, required: int, stamp: Stamp, demands: list[tuple[Resources, int]]) -> None:
        self.required, self._demands = required, demands
        self._event("requirements_received", {"required": required}, stamp)
        self.check()

    def _joined(self, peer: str, process: str, slots: int, report: list[str], stamp: Stamp) -> None:
        self.on_lost(peer)
        self.executors[peer] = Executor(process, slots)
        self._reported(peer, "executor_registered", report, stamp)
        self.check()

    def _granted(self, allocation: str, done: bool, stamp: Stamp) -> None:
        """The answer to a request. A slot report may have come first."""
        found = self.allocations.get(allocation)
        if found is not None and found.state == PENDING:
            if done:
                found.state = ALLOCATED
            else:
                del self.allocations[allocation]
        self._event("request_answered", {"slot": allocation, "done": done}, stamp)

    def _available(self, allocation: str, stamp: Stamp) -> None:
        self.allocations.pop(allocation, None)
        self._event("slot_available", {"slot": allocation}, stamp)

    def _reported(self, peer: str, event: str, report: Iterable[str], stamp: Stamp) -> None:
        """Completes what the report has, adopts what is new, and frees ALLOCATED slots that it does not have."""
        has = [*report]
        for allocation in has:
            self.allocations.setdefault(allocation, Allocation(peer)).state = ALLOCATED
        gone = [a for a in self._of(peer) if a not in has and self._is_freed(self.allocations[a])]
        for allocation in gone:
            del self.allocations[allocation]
        self._event(event, {"executor": self.executors[peer].process, "slots": has}, stamp)

    def _is_freed(self, allocation: Allocation) -> bool:
        return allocation.state == ALLOCATED or not self.rules.exempts_pending
