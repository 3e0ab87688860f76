"""The JobMasters of a job, one after the other: a later one must begin after all attempts of the earlier ones.

TaskExecutors know attempts by their numbers alone: they ignore a deployment with an old one, and could take a message of
an earlier attempt for one of a later attempt with the same number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from streamproof import System
from streamproof.conformance import BOOL, Event, Observation, Stream, Task, Unit, Variable
from streamproof_specs.runtime.logs import JOBMASTER

_NUMBER = re.compile(r"[0-9]{1,9}")
_NO_MACHINE = System("jobmasters", (Variable("jobmasters", BOOL, (False,)),), (), ())
"""A machine that accepts every event."""


def reused_attempts(events: Iterable[Event]) -> tuple[Unit, ...]:
    """A rejected case for each JobMaster whose first attempt is not larger than all attempts of those before it."""
    begun: dict[str, Event] = {}
    largest: dict[str, int] = {}
    for event in events:
        if event.process != JOBMASTER:
            continue
        attempt = event.args.get("attempt")
        if event.event == "job_started":
            begun[event.trace] = event
        elif event.event == "region_scheduled" and type(attempt) is int:
            largest[event.trace] = max(attempt, largest.get(event.trace, attempt))
    found = []
    for trace, started in begun.items():
        job, number = session(trace)
        first = started.args.get("first_attempt", 0)
        earlier = [(largest[t], t) for t in largest if session(t)[0] == job and session(t)[1] < number]
        most, of = max(earlier, default=(-1, ""))
        if job in begun and type(first) is int and first <= most:
            why = f"{trace} begins with attempt {first}, but {of} has had attempt {most}"
            task = Task(trace, _NO_MACHINE, (Stream((Observation(started, impossible=why),)),))
            found.append(Unit(trace, f"attempts of {trace}", (task,)))
    return tuple(found)


def session(trace: str) -> tuple[str, int]:
    """The job of a JobMaster's trace, and how many JobMasters were before it."""
    job, _, number = trace.rpartition("@")
    return (job, int(number)) if job and _NUMBER.fullmatch(number) else (trace, 0)
