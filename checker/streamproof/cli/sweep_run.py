"""Getting every point of a sweep decided: what was known before is used again, and what is new is kept."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from streamproof import interrupts
from streamproof.cli.outputs import Folder
from streamproof.cli.progress import Status
from streamproof.system.errors import ModelError
from streamproof.system.records import dataclass
from streamproof.version import VERSION

if TYPE_CHECKING:
    from streamproof.pipeline.sweeps.deciding import Record
    from streamproof.pipeline.sweeps.kept import Keeper
    from streamproof.pipeline.sweeps.points import Job, Plan, Point

MEMORY_SHARE = 0.8
POINTS = "points.ndjson"


@dataclass(frozen=True, slots=True)
class Explored:
    """Records by key; which points were asked about; how many were known before; whether the user ended it."""

    records: Mapping[str, Record]
    points: tuple[Point, ...]
    reused: int
    interrupted: bool


@dataclass(frozen=True, slots=True)
class Run:
    """Getting every point decided, what was known before being used again."""

    plan: Plan
    properties: tuple[str, ...]
    limits: Mapping[str, Any]
    folder: Folder
    again: bool
    status: Status
    jobs: int
    master: str | None
    full: bool

    def explored(self, stream: Any) -> Explored:
        """Decide what is not known yet, one stage after the other; Ctrl-C ends it with what is."""
        from streamproof.pipeline.sweeps.kept import Found, Keeper, kept_text, read_kept
        from streamproof.pipeline.sweeps.sources import source_of

        about = {"model": self.plan.target.name, "version": VERSION}
        path = self.folder.path / POINTS
        kept = Found({}) if self.again else read_kept(path, about)
        if kept.because is not None:
            which = "not all of" if kept.records else "none of"
            stream.write(f"{path}: {which} the points kept there are used: {kept.because}\n")
        source = source_of(self.plan.target)
        known = {point.key: self._usable(kept.records.get(point.key)) for point in self.plan.points()}
        tally = _Tally(known, source, len(known), self.status)
        memory = _memory(self._processes)
        interrupted = False
        asked: list[Point] = []
        dropped: set[tuple[Any, ...]] = set()
        self.folder.write(POINTS, kept_text(about, kept.records.values()), "points")
        with Keeper(path) as keeper:
            for stage in self.plan.stages():
                points = [point for point in stage if self._setting(point) not in dropped]
                tally.expected -= len(stage) - len(points)
                asked += points
                jobs = [self._job(point, known[point.key], memory) for point in points if not tally.same(point.key)]
                try:
                    for record in self._decided(jobs) if jobs and not interrupted else ():
                        tally.take(record, keeper)
                except KeyboardInterrupt:
                    interrupted = True
                    interrupts.answering()
                if not (self.full or interrupted):
                    dropped |= self._refuted(points, tally.records)
        if tally.changed:
            stream.write(f"{tally.changed} points are decided again: the model has changed since\n")
        return Explored(tally.records, tuple(asked), tally.reused, interrupted)

    def _refuted(self, points: Sequence[Point], records: Mapping[str, Record]) -> set[tuple[Any, ...]]:
        """The variants, with their other values, that need not be asked about at larger sizes."""
        return {
            self._setting(point)
            for point in points
            if self.plan.sizes
            and point.variant is not None
            and any(found["verdict"] == "violated" for found in records[point.key]["properties"].values())
        }

    def _setting(self, point: Point) -> tuple[Any, ...]:
        """The variant, and the values of all axes but the generated one."""
        return (point.variant, *(value for value in point.values if value not in self.plan.sizes))

    def _usable(self, record: Record | None) -> Record | None:
        """A record of an earlier run that answers the question of this one."""
        if record is None or record["outcome"] != "decided" or set(self.properties) - set(record["asked"]):
            return None
        if self.plan.sizes and set(record["asked"]) != set(self.properties):
            return None  # another system was built for it
        open_ = any(found["verdict"] == "inconclusive" for found in record["properties"].values())
        return None if open_ and record["limits"] != self.limits else record

    def _job(self, point: Point, known: Record | None, memory: int | None) -> Job:
        place, colon, name = self.plan.target.text.partition(":")
        model = f"{os.path.abspath(place)}{colon}{name}" if place.endswith(".py") else self.plan.target.text
        return {
            "key": point.key,
            "model": model,
            "variant": point.checked_as,
            "parameters": dict(point.parameters),
            "properties": list(self.properties),
            "limits": dict(self.limits),
            "memory": memory,
            "known": None if known is None else known["fingerprint"],
            "narrow": bool(self.plan.sizes),
        }

    def _decided(self, jobs: Sequence[Job]) -> Iterator[Record]:
        if self.master is not None:
            from streamproof.pipeline.sweeps.spark import decide_on_spark

            return decide_on_spark(jobs, self.master, self.status)
        from streamproof.pipeline.sweeps.local import decide_locally

        return decide_locally(jobs, self._processes)

    @property
    def _processes(self) -> int:
        """How many points are decided at a time: never more than there are points, or processors."""
        from streamproof.explicit.limits import processors

        wanted = self.jobs if self.master is None else processors()
        return max(1, min(wanted, processors(), len(self.plan.points())))


class _Tally:
    """Records as they come, and what is told about them."""

    def __init__(
        self, known: Mapping[str, Record | None], source: str | None, expected: int, status: Callable[[str], None]
    ) -> None:
        self.records: dict[str, Record] = {}
        self.reused = self.changed = 0
        self.expected = expected
        self._known = known
        self._source = source
        self._status = status

    def same(self, key: str) -> bool:
        """Whether nothing has changed since a point was decided, not even a source file; then its record is taken."""
        before = self._known[key]
        if before is None or self._source is None or before.get("source") != self._source:
            return False
        self.records[key] = before
        self.reused += 1
        return True

    def take(self, record: Record, keeper: Keeper) -> None:
        """What came of a job. Raises `ModelError` where the model is no model."""
        if record["outcome"] == "malformed":
            raise ModelError(record["because"], remedy=f"at the point {record['key']}")
        before = self._known[record["key"]]
        if record["outcome"] == "unchanged" and before is not None:
            record = before
            self.reused += 1
        else:
            self.changed += before is not None
            record = {**record, "source": self._source}
            try:
                keeper.keep(record)
            finally:  # Ctrl-C while the disk is waited for: it is kept, so it is told
                self.records[record["key"]] = record
        self.records[record["key"]] = record
        self._status(f"{len(self.records)} of {self.expected} points, last {record['key']}")


def _memory(processes: int) -> int | None:
    """Bytes for one of so many processes."""
    from streamproof.explicit.limits import memory_of_machine

    machine = memory_of_machine()
    return None if machine is None else int(machine * MEMORY_SHARE / processes)
