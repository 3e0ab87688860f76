"""The attempts of a job's JobMasters, one after the other.

A later JobMaster must begin after all attempts of the earlier ones, an attempt must have been scheduled, and that of a
finished region must have finished. TaskExecutors know attempts by their numbers alone: they ignore a deployment with an
old one, and could take a message of an earlier attempt for one of a later attempt with the same number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from streamproof import System
from streamproof.conformance import BOOL, Event, Observation, Stream, Task, Unit, Variable
from streamproof_models.scopes.graph import ScopeError
from streamproof_models.scopes.text import parse
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
        elif type(first) is int and first < number:
            why = f"{trace} begins with attempt {first}, but {number} JobMasters were before it"
        else:
            continue
        found.append(rejected(trace, [Observation(started, impossible=why)]))
    return tuple(found)


def unscheduled_attempts(events: Iterable[Event]) -> tuple[Unit, ...]:
    """A rejected case for each job with an attempt that was not scheduled, or with a finished region whose attempt is not.

    A JobMaster records the end of an attempt before that of its region. Jobs without a recorded `job_started` are left out.
    """
    masters = sorted((event for event in events if event.process == JOBMASTER), key=lambda e: (e.trace, e.seq))
    jobs = {session(event.trace)[0] for event in masters if event.event == "job_started"}
    found = []
    for job in sorted(jobs):
        regions = re.compile(re.escape(job) + r"(?:/[0-9]{1,9})?#([0-9]{1,9})")
        attempts = [(event, int(match[1])) for event in masters if (match := regions.fullmatch(event.trace))]
        own = [event for event in masters if session(event.trace)[0] == job]
        wrong = [*_contradictions(own, attempts)]
        if wrong:
            found.append(rejected(job, wrong))
    return tuple(found)


def _contradictions(own: Iterable[Event], attempts: Iterable[tuple[Event, int]]) -> Iterator[Observation]:
    """The events of a job, or of its attempts, that contradict each other."""
    scheduled: dict[str, dict[str, int]] = {}
    """For each JobMaster the newest attempt of each operator."""
    known: set[tuple[str, int]] = set()
    ended: list[tuple[Event, list[tuple[str, int]]]] = []
    for event in own:
        newest = scheduled.setdefault(event.trace, {})
        tasks = _texts(event)
        if event.event == "region_scheduled" and type(attempt := event.args.get("attempt")) is int:
            newest.update(dict.fromkeys(tasks, attempt))
            known.update((task, attempt) for task in tasks)
        if event.event == "region_finished":
            ended.append((event, [(task, newest[task]) for task in tasks if task in newest]))
    graphs: dict[str, frozenset[str]] = {}
    finished: set[tuple[str, int]] = set()
    for event, attempt in attempts:
        if event.event == "deployed":
            graphs[event.trace] = _operators(str(event.args.get("graph")))
            if not any((operator, attempt) in known for operator in graphs[event.trace]):
                yield Observation(event, impossible="no attempt of this number has been scheduled")
        if event.event == "finished":
            finished.update((operator, attempt) for operator in graphs.get(event.trace, ()))
    for event, of in ended:
        missing = [number for operator, number in of if (operator, number) not in finished]
        if missing:
            yield Observation(event, impossible=f"attempt {missing[0]} of the region has not finished")


def _texts(event: Event) -> list[str]:
    tasks = event.args.get("tasks")
    return [task for task in tasks if isinstance(task, str)] if isinstance(tasks, list) else []


@lru_cache(maxsize=64)
def _operators(graph: str) -> frozenset[str]:
    """The operators of a recorded graph; none if it is no graph, which the case of the attempt says."""
    try:
        return frozenset(operator.name for operator in parse(graph).operators)
    except ScopeError:
        return frozenset()


def rejected(trace: str, wrong: Iterable[Observation]) -> Unit:
    """The case of events that no run has."""
    return Unit(trace, f"attempts of {trace}", (Task(trace, _NO_MACHINE, (Stream(tuple(wrong)),)),))


def session(trace: str) -> tuple[str, int]:
    """The job of a JobMaster's trace, and how many JobMasters were before it."""
    job, _, number = trace.rpartition("@")
    return (job, int(number)) if job and _NUMBER.fullmatch(number) else (trace, 0)
