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
    the bounds exclude each other, the clock has jumped, and was ahead by either.
    """

    _spans: dict[str, tuple[float, float]] = field(default_factory=dict)
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
            first, last = clocks._spans.get(event.process, (second, second))
            clocks._spans[event.process] = min(first, second), max(last, second)
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
        return clocks

    def begin(self, process: str) -> float:
        """The latest moment at which a log may begin; never for one without times."""
        return self._spans.get(process, (inf, inf))[0] - self._at_least(process)

    def end(self, process: str) -> float:
        """The earliest moment at which a log may end."""
        return self._spans.get(process, (-inf, -inf))[1] - self._at_most(process)

    def latest(self, events: Iterable[Event]) -> float:
        """The latest moment at which the last of some events may have been logged."""
        times = ((_second(e), self._at_least(e.process)) for e in events)
        return max((second - ahead for second, ahead in times if second is not None), default=-inf)

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
