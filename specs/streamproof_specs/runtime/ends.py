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
from streamproof_specs.runtime.stops import unstopped

_ATTEMPT = re.compile(r"(.+?)(?:/[0-9]{1,9})?#([0-9]{1,9})")
_NUMBER = re.compile(r"[0-9]{1,9}")
_ENDS = ("region_finished", "region_canceled", "region_settled")
_POOL = "pool"


def missing_ends(events: Iterable[Event]) -> tuple[Unit, ...]:
    """A rejected case for each job whose log lacks the end of a partition or of a region."""
    jobs: dict[str, list[Event]] = {}
    for event in events:
        match = _ATTEMPT.fullmatch(event.trace)
        jobs.setdefault(session((match[1] if match else event.trace).removesuffix("/slots"))[0], []).append(event)
    slots = [job for job, own in jobs.items() if any(event.trace.endswith("/slots") for event in own)]
    together = dict(jobs)
    if len(slots) == 1 < len(jobs):  # a session: TaskExecutors and slots have the trace of its first job
        together = {slots[0]: [event for own in jobs.values() for event in own]}
    ended = {job: [*_unfinished(own), *_given_up(own)] for job, own in together.items()}
    wrong = {job: [*ended.get(job, ()), *unstopped(own)] for job, own in jobs.items()}
    return tuple(rejected(job, found) for job, found in wrong.items() if found)


def _unfinished(events: Iterable[Event]) -> Iterator[Observation]:
    """Writers that have terminated without a finished partition, or have not with one, after which their process went on."""
    own = [*events]
    writers: dict[str, str] = {}
    for event in own:
        exchanges = event.args.get("exchanges") if event.event == "job_started" else None
        for exchange in exchanges if isinstance(exchanges, list) else ():
            source, target, kind = (*exchange, "")[:3] if isinstance(exchange, list) else ("", "", "PIPELINED")
            if kind != "PIPELINED":
                writers[f"{source}_to_{target}"] = f"{source}>{target}"
    finished = {str(event.args.get("partition")): event for event in own if event.event == "partition_finished"}
    over: set[str] = set()
    for event in own:
        match = _ATTEMPT.fullmatch(event.trace) if event.event == "terminated" else None
        of = [f"{writers[name]}/{n}@{int(match[2])}" for name, n in _subtasks(event.process, writers)] if match else []
        over.update(of)
        if of and finished.keys().isdisjoint(of):
            dataset, _, copy = of[0].rpartition("/")
            yield Observation(event, impossible=f"partition {copy.partition('@')[0]} of {dataset} is not finished")
    last: dict[str, int] = {}
    for event in own:
        last[event.process] = max(event.seq, last.get(event.process, 0))
    for copy, event in finished.items():
        if copy not in over and copy.rpartition("/")[0] in writers.values() and event.seq < last[event.process]:
            yield Observation(event, impossible=f"the writer of {copy} has not terminated")


def _subtasks(process: str, operators: Iterable[str]) -> Iterator[tuple[str, int]]:
    """The operators of which a process may be a subtask, and its number: `x10` is one of `x`, or of `x1`."""
    for name in operators:
        number = process.removeprefix(name)
        if process.startswith(name) and (not number or _NUMBER.fullmatch(number)):
            yield name, int(number or 0)


def _given_up(events: Iterable[Event]) -> Iterator[Observation]:
    """Slots of a JobMaster that were given up more often than its regions have ended, or all of them before the job has."""
    ended = Counter[int]()
    over: dict[int, set[str]] = {}
    settled: dict[int, set[str]] = {}
    """Regions whose slots were given up before they have finished: they wait for their promotion."""
    freed: dict[int, list[Event]] = {}
    last: dict[int, Event] = {}
    for event in events:
        if event.process == JOBMASTER and "#" not in event.trace:
            number = session(event.trace)[1]
            tasks = str(event.args.get("tasks"))
            is_settled = event.event == "region_finished" and tasks in settled.get(number, ())
            ended[number] += event.event in _ENDS and not is_settled
            if event.event == "region_settled":
                settled.setdefault(number, set()).add(tasks)
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
