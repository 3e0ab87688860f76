"""Faults of a simulated run: a script of what happens when, drawn from the tape.

Each run switches about half of the fault families fully off: a run with few kinds of faults, but many of them, reaches other
states than one with a little of everything. After `QUIET` no fault begins and none lasts, so that the job must finish.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Protocol

from streamproof_runtime.durations import MILLISECOND
from streamproof_runtime.simulator.tape import Draw

CRASH, DISCONNECT, PARTITION, PAUSE, SLOW, LOSE = FAMILIES = (
    *("crash", "disconnect", "partition", "pause", "slow", "lose"),
)
FULL = "full"
"""A fault of a disk: what is written to it fails for a while."""
DROP = "drop"
"""A fault of slot messages: the next one whose loss the protocol repairs is lost."""
SEVERE = "severe"
"""The level at which JobMaster and ResourceManager crash, too, and slot messages are lost."""
QUIET = 60 * MILLISECOND
"""Virtual time in nanoseconds after which the network and all processes are well."""
MOST = {"none": 0, "light": 1, "heavy": 3, SEVERE: 3}
"""Largest number of faults of one family, by level."""
_SLOWEST = 50
"""Largest factor of a slow connection."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: at a time, of a node or a pair of nodes, for a duration (all in nanoseconds), with a factor if slow."""

    kind: str
    at: int
    nodes: tuple[str, ...]
    duration: int = 0
    factor: int = 1

    def record(self) -> dict[str, Any]:
        """As JSON."""
        return {**asdict(self), "nodes": list(self.nodes)}

    @classmethod
    def of(cls, record: dict[str, Any]) -> Fault:
        """From JSON; raises `TypeError`, `KeyError` or `ValueError` for another form."""
        found = cls(**{**record, "nodes": tuple(record["nodes"])})
        if found.kind not in (*FAMILIES, FULL, DROP):
            raise ValueError(f"there is no fault {found.kind!r}")
        if not all(
            type(n) is int and n >= least for n, least in ((found.at, 0), (found.duration, 0), (found.factor, 1))
        ):
            raise ValueError(f"the times of {record!r} are no numbers")
        return found

    def __str__(self) -> str:
        lasts = f" for {self.duration / MILLISECOND:.1f} ms" if self.duration else ""
        factor = f" by {self.factor}" if self.kind == SLOW else ""
        return f"{self.at / MILLISECOND:.1f} ms: {self.kind} {' and '.join(self.nodes)}{factor}{lasts}"


class World(Protocol):
    """What faults happen to."""

    def crash(self, node: str, duration: int) -> None:
        """The process loses everything and starts again after `duration`."""

    def disconnect(self, one: str, other: str) -> None:
        """A connection is lost."""

    def partition(self, one: str, other: str, duration: int) -> None:
        """A connection holds all messages back."""

    def pause(self, node: str, duration: int) -> None:
        """The process does nothing, but keeps what it has."""

    def slow(self, one: str, other: str, factor: int, duration: int) -> None:
        """A connection is slower by a factor."""

    def lose(self, node: str) -> None:
        """The process loses what it has stored, and does not notice."""

    def fill(self, node: str, duration: int) -> None:
        """The disk of a process has no space."""

    def drop(self, source: str, target: str) -> None:
        """The next message that returns a slot is lost."""


def drawn(choose: Draw, level: str, executors: list[str], jobmaster: str, *, stores: bool = False) -> list[Fault]:
    """The faults of a run, in the order of time; `stores`: its TaskExecutors store partitions."""
    most = MOST[level]
    pairs = [(a, b) for a in (jobmaster, *executors) for b in executors if a < b or a == jobmaster]
    found = []
    for kind in FAMILIES if most else ():
        if (kind == LOSE and not stores) or choose(2) == 0:
            continue
        for _ in range(1 + choose(most)):
            # Early times are likelier: a small job is over soon.
            at = choose(QUIET // 2) >> choose(6)
            duration = min(choose(QUIET // 2) >> choose(5), QUIET - at)
            if kind in (CRASH, PAUSE, LOSE):
                nodes: tuple[str, ...] = (executors[choose(len(executors))],)
            else:
                nodes = pairs[choose(len(pairs))]
            factor = 2 + choose(_SLOWEST - 1) if kind == SLOW else 1
            found.append(Fault(kind, at, nodes, 0 if kind in (DISCONNECT, LOSE) else duration, factor))
    for _ in range(choose(most + 1) if level == SEVERE else 0):
        at = choose(QUIET // 2) >> choose(6)
        found.append(Fault(CRASH, at, (jobmaster,), min(choose(QUIET // 2) >> choose(5), QUIET - at)))
    return sorted(found, key=lambda fault: (fault.at, fault.kind, fault.nodes))


def of_disks(choose: Draw, level: str, executors: list[str]) -> list[Fault]:
    """Disks without space, in about half of the runs, for jobs that write to disks."""
    most = MOST[level]
    found = []
    for _ in range(1 + choose(most) if most and choose(2) else 0):
        at = choose(QUIET // 2) >> choose(6)
        duration = min(choose(QUIET // 2) >> choose(5), QUIET - at)
        found.append(Fault(FULL, at, (executors[choose(len(executors))],), duration))
    return found


def of_slots(choose: Draw, level: str, executors: list[str], jobmaster: str, manager: str) -> list[Fault]:
    """The faults of the slot protocol, at the level `SEVERE`: crashes of the ResourceManager, and lost messages."""
    most = MOST[level] if level == SEVERE else 0
    found = []
    for _ in range(choose(most + 1) if most else 0):
        at = choose(QUIET // 2) >> choose(6)
        found.append(Fault(CRASH, at, (manager,), min(choose(QUIET // 2) >> choose(5), QUIET - at)))
    for _ in range(choose(most + 1) if most else 0):
        executor = executors[choose(len(executors))]
        nodes = (executor, manager) if choose(2) else (jobmaster, executor)
        found.append(Fault(DROP, choose(QUIET // 2) >> choose(6), nodes))
    return found


def apply(fault: Fault, world: World) -> None:
    """Makes a fault happen."""
    one, other = fault.nodes[0], fault.nodes[-1]
    if fault.kind == CRASH:
        world.crash(one, fault.duration)
    elif fault.kind == DISCONNECT:
        world.disconnect(one, other)
    elif fault.kind == PARTITION:
        world.partition(one, other, fault.duration)
    elif fault.kind == PAUSE:
        world.pause(one, fault.duration)
    elif fault.kind == LOSE:
        world.lose(one)
    elif fault.kind == FULL:
        world.fill(one, fault.duration)
    elif fault.kind == DROP:
        world.drop(one, other)
    else:
        world.slow(one, other, fault.factor, fault.duration)
