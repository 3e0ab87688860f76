"""The beginning and end of each log of a run on the JobManager's time scale, although each process has its own clock."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import inf, isinf

from streamproof.conformance import Event
from streamproof.conformance.flink import DAY, ClockReading, Moment

REPORTED = ("INITIALIZING", "RUNNING", "FINISHED")
"""States that the JobManager changes to only after a TaskManager's report."""


@dataclass(slots=True)
class Clocks:
    """First and last moment of each log, and bounds on the offset of its clock from the JobManager's.

    A moment is an interval of the length of the last digit of its time. Messages bound the offset: a task is received
    after it was deployed, and the JobManager records RUNNING after the TaskManager has logged it. If messages in one
    direction are missing, the clocks are assumed to agree if possible, up to whole days for times without dates; if the
    bounds contradict each other, the clock has jumped, and either offset is possible. The offset of a TaskManager without
    bounds is unknown: the JobManager's log mentions none of its tasks.
    """

    _moments: dict[tuple[str, int], Moment] = field(default_factory=dict)
    """By process and position."""
    _files: dict[str, dict[str | None, tuple[Moment, Moment]]] = field(default_factory=dict)
    """The first and the last, by process and file."""
    _least: dict[str, float] = field(default_factory=dict)
    _most: dict[str, float] = field(default_factory=dict)
    _dated: bool = True

    @classmethod
    def of(cls, events: Iterable[Event]) -> Clocks:
        """The clocks of a run."""
        clocks = cls()
        readings: dict[str, ClockReading] = {}
        master: dict[tuple[str, str], Moment] = {}
        tasks: list[tuple[str, str, str, Moment]] = []
        deciding = set[str]()
        for event in events:
            reading = readings.setdefault(event.process, ClockReading())
            moment = reading.read(event.ts)
            if moment is None:
                continue
            args = event.args
            clocks._moments[event.process, event.seq] = moment
            files = clocks._files.setdefault(event.process, {})
            first, last = files.get(event.file, (moment, moment))
            files[event.file] = min(first, moment), max(last, moment)
            match event.event:
                case "exec.deploy":
                    master.setdefault((args["attempt"], "DEPLOYING"), moment)
                    deciding.add(event.process)
                case "exec.transition" if args["new"] in REPORTED and args["old"] != "CREATED":
                    master.setdefault((args["attempt"], args["new"]), moment)
                case "tm.submit":
                    tasks.append((event.process, args["attempt"], "DEPLOYING", moment))
                case "tm.transition" if args["new"] in REPORTED:
                    tasks.append((event.process, args["attempt"], args["new"], moment))
        clocks._dated = all(reading.dated for reading in readings.values())
        clocks._bound(master, tasks)
        for process in readings.keys() - deciding - clocks._most.keys() - clocks._least.keys():
            clocks._least[process], clocks._most[process] = -inf, inf
        return clocks

    def _bound(self, master: dict[tuple[str, str], Moment], tasks: Sequence[tuple[str, str, str, Moment]]) -> None:
        for process, attempt, state, there in tasks:
            here = master.get((attempt, state))
            if here is None:
                continue
            if state == "DEPLOYING":
                self._most[process] = min(there.latest - here.earliest, self._most.get(process, inf))
            else:
                self._least[process] = max(there.earliest - here.latest, self._least.get(process, -inf))

    def covers(self, process: str, events: Iterable[Event]) -> bool:
        """Whether one file of a log begins before some events and ends after them, so that no part between them is
        missing."""
        ahead, at_most = self._at_least(process), self._at_most(process)
        spans = [self._span(event) for event in events]
        first, last = min((s for s, _ in spans), default=-inf), max((s for _, s in spans), default=-inf)
        return any(
            begin.latest - ahead <= first and last <= end.earliest - at_most
            for begin, end in self._files.get(process, {}).values()
        )

    def end(self, process: str) -> float:
        """The earliest moment at which a log may end."""
        ends = (end.earliest for _, end in self._files.get(process, {}).values())
        return max(ends, default=-inf) - self._at_most(process)

    def latest(self, events: Iterable[Event]) -> float:
        """The latest moment at which the last of some events may have been logged."""
        return max((self._span(event)[1] for event in events), default=-inf)

    def _span(self, event: Event) -> tuple[float, float]:
        """When an event may have been logged."""
        moment = self._moments.get((event.process, event.seq))
        if moment is None:
            return -inf, -inf
        return moment.earliest - self._at_most(event.process), moment.latest - self._at_least(event.process)

    def _at_least(self, process: str) -> float:
        most = self._most.get(process, 0.0)
        least = self._least.get(process, min(self._agreed(most), most))
        return min(least, self._most.get(process, least))

    def _at_most(self, process: str) -> float:
        least = self._least.get(process, 0.0)
        most = self._most.get(process, max(self._agreed(least), least))
        return max(most, self._least.get(process, most))

    def _agreed(self, bound: float) -> float:
        """The offset closest to a bound for synchronised clocks: zero, or whole days for times without dates."""
        return 0.0 if self._dated or isinf(bound) else round(bound / DAY) * DAY
