"""When the logs of a run begin and end, on the JobManager's time scale although each process has a clock of its own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import inf

from streamproof.conformance.events import Event

REPORTED = ("INITIALIZING", "RUNNING", "FINISHED")
"""States that the JobManager takes over from a TaskManager's report and from nothing else."""


@dataclass(slots=True)
class Clocks:
    """First and last second of each log, and bounds of how far its clock is ahead of the JobManager's.

    Messages bound the offset: a task is received after it was deployed, and the JobManager holds it for RUNNING after the
    TaskManager has logged so. Where messages in one direction are missing, the clocks are taken to agree if they can; where
    the bounds exclude each other, the clock has jumped, and was ahead by either. Of a TaskManager that had tasks nothing is
    known where the JobManager's log speaks of none of them.
    """

    _files: dict[str, dict[str | None, tuple[float, float]]] = field(default_factory=dict)
    """By process and file."""
    _least: dict[str, float] = field(default_factory=dict)
    _most: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, events: Iterable[Event]) -> Clocks:
        """The clocks of a run."""
        clocks = cls()
        master: dict[tuple[str, str], float] = {}
        tasks: list[tuple[str, str, str, float]] = []
        for event in events:
            second = _second(event)
            if second is None:
                continue
            args = event.args
            files = clocks._files.setdefault(event.process, {})
            first, last = files.get(event.file, (second, second))
            files[event.file] = min(first, second), max(last, second)
            match event.event:
                case "exec.deploy":
                    master.setdefault((args["attempt"], "DEPLOYING"), second)
                case "exec.transition" if args["new"] in REPORTED and args["old"] != "CREATED":
                    master.setdefault((args["attempt"], args["new"]), second)
                case "tm.submit":
                    tasks.append((event.process, args["attempt"], "DEPLOYING", second))
                case "tm.transition" if args["new"] in REPORTED:
                    tasks.append((event.process, args["attempt"], args["new"], second))
        for process, attempt, state, second in tasks:
            ahead = second - master.get((attempt, state), inf)
            if ahead == -inf:
                continue
            if state == "DEPLOYING":
                clocks._most[process] = min(ahead, clocks._most.get(process, inf))
            else:
                clocks._least[process] = max(ahead, clocks._least.get(process, -inf))
        for process in {process for process, *_ in tasks} - clocks._most.keys() - clocks._least.keys():
            clocks._least[process], clocks._most[process] = -inf, inf
        return clocks

    def covers(self, process: str, first: float, last: float) -> bool:
        """Whether one file of a log begins before a moment and ends after another, so that no part is missing between."""
        ahead, at_most = self._at_least(process), self._at_most(process)
        return any(begin - ahead <= first and last <= end - at_most for begin, end in self._spans(process))

    def end(self, process: str) -> float:
        """The earliest moment at which a log may end."""
        return max((end for _, end in self._spans(process)), default=-inf) - self._at_most(process)

    def latest(self, events: Iterable[Event]) -> float:
        """The latest moment at which the last of some events may have been logged."""
        times = ((_second(e), self._at_least(e.process)) for e in events)
        return max((second - ahead for second, ahead in times if second is not None), default=-inf)

    def _spans(self, process: str) -> Iterable[tuple[float, float]]:
        return self._files.get(process, {}).values()

    def _at_least(self, process: str) -> float:
        least = self._least.get(process, min(0.0, self._most.get(process, 0.0)))
        return min(least, self._most.get(process, least))

    def _at_most(self, process: str) -> float:
        most = self._most.get(process, max(0.0, self._least.get(process, 0.0)))
        return max(most, self._least.get(process, most))


def _second(event: Event) -> float | None:
    try:
        at = datetime.fromisoformat(event.ts or "")
    except ValueError:
        return None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
