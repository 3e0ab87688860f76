"""Rotated logs: the files that are parts of one log, and their order of writing.

The part without a number is the current one. Numbers increase in Flink's own configuration and decrease in others;
dates increase. The content of the parts decides the direction first: an attempt never returns to an earlier state, nor
a job to an earlier checkpoint. Times come second, because clocks may be set back; then the direction of the run's other
logs, and the part with the start of the process.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from itertools import pairwise
from pathlib import Path
from typing import Final, Literal

from streamproof.base.records import dataclass
from streamproof.conformance.flink.log_records import time_of
from streamproof.conformance.flink.times import forward, second_of

Lines = Callable[[Path], Iterable[bytes]]
"""Reads the lines of a file."""
Direction = Literal["up", "down"]

INFIX: Final = re.compile(
    r"(?P<process>.+?)[-_.](?P<rotation>(?P<date>(?:19|20)\d\d-?\d\d-?\d\d)(?:[-_.T]\d+)*)", re.DOTALL
)
"""The name of a part with its date before `.log`."""
NUMBERED: Final = re.compile(r"(?P<process>.+?)[-_.](?P<rotation>\d{1,4})", re.DOTALL)
"""The name of a file with a number before `.log`, which may be a part number or a process number."""

_PROBED: Final = 5000
"""Number of lines at either end of a file that are searched for its first and last time."""
_OVERLAP: Final = 1.0
"""Maximum overlap of successive parts, in seconds, because threads log late."""
_SET_BACK: Final = 3 * 3600.0
"""Maximum number of seconds by which a clock is set back between two parts."""
_ATTEMPT: Final = re.compile(rb"\b((?:[0-9a-f]{32}_){2}\d+)_(\d+)\)? switched from ([A-Z]+) to ([A-Z]+)")
_JOB: Final = re.compile(rb"\(([0-9a-f]{32})\) switched from state ([A-Z]+) to ([A-Z]+)")
_CHECKPOINT: Final = re.compile(rb"Triggering checkpoint (\d+) .* for job ([0-9a-f]{32})")
_START: Final = re.compile(rb" Starting (?:\S+ \(Version: |\w+ClusterEntrypoint\b)")
_ENDPOINT: Final = b" Starting RPC endpoint for org.apache.flink.runtime.taskexecutor.TaskExecutor "
"""The start message of a TaskManager; a layout or level may omit the line before it."""
_RESOURCE: Final = re.compile(rb"Starting TaskManager with ResourceID: (\S+)")
_RANK: Final[Mapping[bytes, int]] = {
    b"CREATED": 0, b"SCHEDULED": 1, b"DEPLOYING": 2, b"INITIALIZING": 3, b"RUNNING": 4, b"CANCELING": 5,
    b"FINISHED": 6, b"CANCELED": 6, b"FAILED": 6,
}  # fmt: skip
_JOB_RANK: Final[Mapping[bytes, int]] = {
    b"INITIALIZING": 0, b"CREATED": 1, b"FINISHED": 6, b"CANCELED": 6, b"FAILED": 6,
}  # fmt: skip


@dataclass(slots=True)
class LogPart:
    """The order evidence in a part: first and last timestamp, and for each attempt, task and job the lowest and the
    highest state, number or checkpoint, none of which ever decreases."""

    file: Path
    rotation: str
    first: str | None = None
    last: str | None = None
    ranks: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    starts: bool = False
    resources: set[bytes] = field(default_factory=set)
    endpoint: bool = False
    masters: set[bool] = field(default_factory=set)
    """Whether the lines about attempts are a JobManager's."""

    @classmethod
    def of(cls, file: Path, rotation: str, read: Lines) -> LogPart:
        """Reads a file."""
        part = cls(file, rotation)
        latest: deque[bytes] = deque(maxlen=_PROBED)
        probed = 0
        for raw in read(file):
            if part.first is None and probed < _PROBED:
                part.first, probed = time_of(raw), probed + 1
            latest.append(raw)
            part._note_line(raw)
        part.last = next(filter(None, map(time_of, reversed(latest))), part.first)
        return part

    def _note_line(self, raw: bytes) -> None:
        if b" switched from " in raw:
            if found := _ATTEMPT.search(raw):
                task, number, old, new = found.groups()
                self.masters.add(b".Task " not in raw[: found.start()] and b" Task " not in raw[: found.start()])
                # A JobManager that takes over repeats what finished before.
                if old in _RANK and new in _RANK and (old, new) != (b"CREATED", b"FINISHED"):
                    self._rank(task + b"_" + number, _RANK[old], _RANK[new])
                if old == b"CREATED":
                    self._rank(task, int(number), int(number))
            elif found := _JOB.search(raw):
                job, old, new = found.groups()
                self._rank(job, _JOB_RANK.get(old, 2), _JOB_RANK.get(new, 2))
        elif b"Triggering checkpoint" in raw:
            if found := _CHECKPOINT.search(raw):
                self._rank(b"checkpoint " + found[2], int(found[1]), int(found[1]))
        elif b" Starting " in raw:
            self.starts = self.starts or _START.search(raw) is not None
            self.endpoint = self.endpoint or _ENDPOINT in raw
            if found := _RESOURCE.search(raw):
                self.resources.add(found[1])

    def _rank(self, key: bytes, low: int, high: int) -> None:
        least, most = self.ranks.get(key, (low, high))
        self.ranks[key] = min(least, low), max(most, high)


@dataclass(frozen=True, slots=True)
class PartOrder:
    """The order of some parts. `direction` is that of their numbers, None if undetermined; `known` is false if there is
    no evidence."""

    parts: tuple[LogPart, ...]
    direction: Direction | None = None
    known: bool = True


def are_one_log(parts: Sequence[LogPart]) -> bool:
    """Whether files whose names differ by a date before `.log` are parts of one log: no two TaskManagers write one."""
    return len({resource for part in parts for resource in part.resources}) < 2


def are_numbered_parts(parts: Sequence[LogPart]) -> bool | None:
    """Whether files whose names differ by a number before `.log` are parts of one log: an attempt's lines continue from
    one to another, and no two were written at the same time or begin with a start. None without evidence."""
    found = [part for part in parts if part.first is not None]
    if not are_one_log(found) or max(sum(p.starts for p in found), sum(p.endpoint for p in found)) > 1:
        return False
    if len(set[bool]().union(*(part.masters for part in found))) > 1:
        return False
    ordered = _by_time(found) or ()
    for one, other in pairwise(ordered):
        last, first = second_of(one.last or ""), second_of(other.first or "")
        if last and first and last[0] > first[0] + _OVERLAP:
            return False
    if any(part.starts for part in ordered[1:]):
        return False
    attempts = [{key for key in part.ranks if key.count(b"_") == 3} for part in found]
    shared = any(one & other for at, one in enumerate(attempts) for other in attempts[:at])
    return True if shared else None


def in_order(logs: Sequence[Sequence[LogPart]]) -> list[PartOrder]:
    """The parts of each log in the order of writing."""
    orders = [_by_itself(parts) for parts in logs]
    directions = {order.direction for order in orders if order.known and order.direction is not None}
    return [order if order.known else _by_others(order.parts, directions) for order in orders]


def _by_itself(parts: Sequence[LogPart]) -> PartOrder:
    """The order according to the parts' content."""
    up, down = _numbered(parts, 1), _numbered(parts, -1)
    numbered = [PartOrder(up, "up"), PartOrder(down, "down")] if up != down else [PartOrder(up)]
    by_time = _by_time(parts)
    orders = [*numbered, PartOrder(by_time)] if by_time and by_time not in (up, down) else numbered
    fewest = min(_contradictions(order.parts) for order in orders)
    left = [order for order in orders if _contradictions(order.parts) == fewest]
    known = sorted((order for order in left if order in numbered), key=lambda order: _back(order.parts))
    if not known:
        return left[0]
    back = _back(known[0].parts)
    if len(left) > len(known) and back > _SET_BACK:
        return PartOrder(by_time or up, None, False)
    if len(known) == 1 or _back(known[1].parts) > 10 * back:
        return known[0]
    return PartOrder(up, None, False)


def _by_others(parts: Sequence[LogPart], directions: set[Direction]) -> PartOrder:
    """The order of parts whose content does not determine it."""
    ways: dict[Direction, tuple[LogPart, ...]] = {"up": _numbered(parts, 1), "down": _numbered(parts, -1)}
    if len(directions) == 1:
        (direction,) = directions
        return PartOrder(ways[direction], direction)
    first = [direction for direction, way in ways.items() if way[0].starts]
    if len(first) == 1 and sum(part.starts for part in parts) == 1:
        return PartOrder(ways[first[0]], first[0])
    return PartOrder(tuple(parts), None, False)


def _numbered(parts: Sequence[LogPart], sign: int) -> tuple[LogPart, ...]:
    def place(part: LogPart) -> tuple[bool, list[int], list[int]]:
        numbers = [int(n) for n in re.findall(r"\d+", part.rotation)]
        dated = INFIX.fullmatch(f"_{part.rotation}")
        date = [int(n) for n in re.findall(r"\d+", dated["date"])] if dated else []
        return not part.rotation, date, [sign * n for n in numbers[len(date) :]]

    return tuple(sorted(parts, key=place))


def _by_time(parts: Sequence[LogPart]) -> tuple[LogPart, ...] | None:
    """The order of the first times, if all have a date."""
    times = [second_of(part.first or "") for part in parts]
    if not all(time and time[1] for time in times):
        return None
    seconds = {part.file: time[0] for part, time in zip(parts, times, strict=True) if time}
    return tuple(sorted(parts, key=lambda part: seconds[part.file]))


def _contradictions(parts: Iterable[LogPart]) -> int:
    """The number of regressions of an attempt, a task or a job from one part to a later one."""
    highest: dict[bytes, int] = {}
    found = 0
    for part in parts:
        for key, (low, high) in part.ranks.items():
            found += highest.get(key, low) > low
            highest[key] = max(high, highest.get(key, high))
    return found


def _back(parts: Iterable[LogPart]) -> float:
    """The total number of seconds by which the clock would run back between the parts; without dates, forward."""
    total = 0.0
    for one, other in pairwise(part for part in parts if part.first):
        last, first = second_of(one.last or ""), second_of(other.first or "")
        if last and first and last[1] == first[1]:
            total += max(0.0, last[0] - first[0]) if first[1] else abs(forward(last[0], first[0]))
    return total
