"""Ends that the log of the runtime must have, because something later in the log depends on them.

A writer terminates after its partition is finished. The JobMaster gives up the slots of a region when the region has finished
or was canceled, or the job has failed, and requires none when the job is over.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from streamproof.conformance import Event, Observation, Unit
from streamproof_specs.runtime.logs import JOBMASTER
from streamproof_specs.runtime.sessions import rejected, session

_ATTEMPT = re.compile(r"(.+?)(?:/[0-9]{1,9})?#([0-9]{1,9})")
_SUBTASK = re.compile(r"(.+?)([0-9]*)")
_ENDS = ("region_finished", "region_canceled")
_POOL = "pool"


def missing_ends(events: Iterable[Event]) -> tuple[Unit, ...]:
    """A rejected case for each job whose log lacks the end of a partition or of a region."""
    jobs: dict[str, list[Event]] = {}
    for event in events:
        match = _ATTEMPT.fullmatch(event.trace)
        jobs.setdefault(session((match[1] if match else event.trace).removesuffix("/slots"))[0], []).append(event)
    wrong = {job: [*_unfinished(own), *_given_up(own)] for job, own in jobs.items()}
    return tuple(rejected(job, found) for job, found in wrong.items() if found)


def _unfinished(events: Iterable[Event]) -> Iterator[Observation]:
    """Writers that have terminated without a finished partition."""
    own = [*events]
    writers: dict[str, str] = {}
    for event in own:
        exchanges = event.args.get("exchanges") if event.event == "job_started" else None
        for exchange in exchanges if isinstance(exchanges, list) else ():
            source, target, kind = (*exchange, "")[:3] if isinstance(exchange, list) else ("", "", "PIPELINED")
            if kind != "PIPELINED":
                writers[f"{source}_to_{target}"] = f"{source}>{target}"
    finished = {str(event.args.get("partition")) for event in own if event.event == "partition_finished"}
    for event in own:
        match = _ATTEMPT.fullmatch(event.trace) if event.event == "terminated" else None
        name, number = _subtask(event.process, writers)
        if match and name in writers and f"{writers[name]}/{number}@{int(match[2])}" not in finished:
            yield Observation(event, impossible=f"partition {number} of {writers[name]} is not finished")


def _subtask(process: str, operators: Iterable[str]) -> tuple[str, int]:
    """The operator of a subtask, and its number."""
    if process in operators:
        return process, 0
    match = _SUBTASK.fullmatch(process)
    return (match[1], int(match[2] or 0)) if match else (process, 0)


def _given_up(events: Iterable[Event]) -> Iterator[Observation]:
    """Slots of a JobMaster that were given up more often than its regions have ended, or all of them before the job has."""
    ended = Counter[int]()
    over: dict[int, set[str]] = {}
    freed: dict[int, list[Event]] = {}
    last: dict[int, Event] = {}
    for event in events:
        if event.process == JOBMASTER and "#" not in event.trace:
            number = session(event.trace)[1]
            ended[number] += event.event in _ENDS
            over.setdefault(number, set()).add(event.event)
        elif event.event == "slots_unreserved" and session(event.process)[0] == _POOL:
            freed.setdefault(session(event.process)[1], []).append(event)
        elif event.event == "slots_declared" and event.args.get("required") == 0:
            last[session(event.process)[1]] = event
    for number, own in freed.items():
        if len(own) > ended[number] and "job_failed" not in over.get(number, ()):
            why = f"slots were given up {len(own)} times, and {ended[number]} regions have finished or were canceled"
            yield Observation(max(own, key=lambda event: event.seq), impossible=why)
    for number, event in last.items():
        if over.get(number, set()).isdisjoint(("job_finished", "job_failed")):
            yield Observation(event, impossible="no slot is required, and the job is not over")
