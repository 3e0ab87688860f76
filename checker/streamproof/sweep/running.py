"""Execution of a sweep: decide every point, reuse stored records, and store new ones."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TextIO

from streamproof.base.errors import ModelError
from streamproof.base.files import Folder
from streamproof.base.options import memory_of_machine
from streamproof.explicit.level_search import processors
from streamproof.sweep.deciding import Job, Record
from streamproof.sweep.executing import decide_locally, decide_on_spark
from streamproof.sweep.kept import keeping, kept_text, read_kept, source_of
from streamproof.sweep.plan import SweepPlan, SweepPoint
from streamproof.version import VERSION

MEMORY_SHARE = 0.8
POINTS = "points.ndjson"


@dataclass
class SweepRun:
    """The run of a sweep plan; with `full`, refuted variants are also checked at larger sizes of generated values."""

    plan: SweepPlan
    limits: Mapping[str, Any]
    folder: Folder
    status: Callable[[str], None]
    processes: int
    """Number of points decided at a time."""
    master: str | None
    """The Spark master; None: local processes."""
    full: bool
    records: dict[str, Record] = field(default_factory=dict)
    """The records by key."""
    points: list[SweepPoint] = field(default_factory=list)
    """The points of this run."""
    reused: int = 0
    """Number of points with stored records."""
    interrupted: bool = False
    """Whether the user interrupted the run."""
    _known: dict[str, Record] = field(default_factory=dict)
    """Records of earlier runs with the same settings, valid if the system of the point is unchanged."""
    _changed: int = 0

    def explore(self, stream: TextIO, *, again: bool) -> None:
        """Decide the points without record, stage by stage; Ctrl-C ends the run with the records found so far."""
        about = {"model": self.plan.target.name, "version": VERSION}
        path = self.folder.path / POINTS
        kept, why = ({}, "") if again else read_kept(path, about)
        if why:
            stream.write(f"{path}: {'not all' if kept else 'none'} of the stored points are used: {why}\n")
        source = source_of(self.plan.target)
        stages = self.plan.stages()
        expected = sum(map(len, stages))
        self.processes = max(1, min(processors() if self.master else self.processes, processors(), expected))
        machine = memory_of_machine()
        memory = None if machine is None else int(machine * MEMORY_SHARE / self.processes)
        self._known = {key: record for key, record in kept.items() if self._usable(record)}
        dropped: set[tuple[Any, ...]] = set()
        self.folder.write(POINTS, kept_text(about, kept.values()), "points")
        with keeping(path) as keep:
            for stage in stages:
                points = [point for point in stage if self.plan.setting(point) not in dropped]
                expected -= len(stage) - len(points)
                self.points += points
                jobs = [self._job(point, memory) for point in points if not self._same(point.key, source)]
                if self.master is not None:
                    decided = decide_on_spark(jobs, self.master, self.status)
                else:
                    decided = decide_locally(jobs, self.processes)
                try:
                    for record in decided if jobs and not self.interrupted else ():
                        self._take(record, source, keep)
                        self.status(f"{len(self.records)} of {expected} points, last {record['key']}")
                except KeyboardInterrupt:
                    self.interrupted = True
                if self.plan.sampled is not None and not (self.full or self.interrupted):
                    dropped |= {self.plan.setting(point) for point in points if self._refuted(point)}
        if self._changed:
            stream.write(f"{self._changed} points are decided again: the model has changed since\n")

    def _refuted(self, point: SweepPoint) -> bool:
        """Whether the variant of the point is refuted at a smaller size."""
        verdicts = self.records[point.key]["properties"].values()
        return point.variant is not None and any(found["verdict"] == "violated" for found in verdicts)

    def _usable(self, record: Record) -> bool:
        """Whether a record of an earlier run is valid for the settings of this run."""
        if record["outcome"] != "decided" or self.plan.properties.keys() - record["asked"]:
            return False
        if self.plan.sampled is not None and self.plan.properties.keys() != set(record["asked"]):
            return False  # the system has changed
        open_ = any(found["verdict"] == "inconclusive" for found in record["properties"].values())
        return not open_ or bool(record["limits"] == self.limits)

    def _same(self, key: str, source: str | None) -> bool:
        """Whether no source file has changed since a point was decided; if so, uses its record."""
        before = self._known.get(key)
        if before is None or source is None or before.get("source") != source:
            return False
        self.records[key] = before
        self.reused += 1
        return True

    def _take(self, record: Record, source: str | None, keep: Callable[[Record], None]) -> None:
        """Store the record of a job. Raises `ModelError` if the model cannot be read."""
        key, before = record["key"], self._known.get(record["key"])
        if record["outcome"] == "malformed":
            raise ModelError(record["because"], remedy=f"at the point {key}")
        if record["outcome"] == "unchanged" and before is not None:
            self.records[key] = before
            self.reused += 1
            return
        self._changed += before is not None
        record = {**record, "source": source}
        try:
            keep(record)
        finally:  # also if Ctrl-C interrupts the wait for the disk
            self.records[key] = record

    def _job(self, point: SweepPoint, memory: int | None) -> Job:
        place, colon, name = self.plan.target.text.partition(":")
        known = self._known.get(point.key)
        return {
            "key": point.key,
            "model": f"{os.path.abspath(place)}{colon}{name}" if place.endswith(".py") else self.plan.target.text,
            "variant": point.checked_as,
            "parameters": dict(point.parameters),
            "properties": list(self.plan.properties),
            "limits": dict(self.limits),
            "memory": memory,
            "known": None if known is None else known["fingerprint"],
            "narrow": self.plan.sampled is not None,
        }
