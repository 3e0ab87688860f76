"""The ends of unbounded sources: after the stop; of an attempt that finishes, at the position that the JobMaster noted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streamproof.conformance import Event, Observation
from streamproof_specs.runtime.logs import JOBMASTER


def unstopped(events: Sequence[Event]) -> Iterator[Observation]:
    """The contradictions in the events of one job, of all its JobMasters."""
    of_master = [event for event in events if event.process == JOBMASTER]
    started = sorted((e for e in of_master if e.event == "job_started"), key=_first_attempt)
    sources = {str(name) for event in started for name in _list(event.args.get("unbounded"))}
    if not sources:
        return
    is_stopped = any(event.event == "stop_requested" for event in of_master)
    finished = {event.trace for event in of_master if event.event == "finished"}
    noted = {(e.trace, str(e.args.get("task"))): e for e in of_master if e.event == "source_stopped"}
    for event in noted.values():
        if not is_stopped:
            yield Observation(event, impossible="nobody has stopped the sources")
    for event in events:
        if event.event != "terminated" or event.process not in sources:
            continue
        if not is_stopped:
            yield Observation(event, impossible=f"{event.process} has no end, and nobody has stopped it")
        elif event.trace in finished:
            attempt = int(event.trace.rpartition("#")[2])
            masters = [e.trace for e in started if _first_attempt(e) <= attempt]
            stop = noted.get((masters[-1], event.process)) if masters else None
            at, position = event.args.get("position"), stop and stop.args.get("position")
            if stop is None or at != position:
                why = (
                    f"{event.process} ends after {at} records, and it was stopped after {position if stop else 'none'}"
                )
                yield Observation(event, impossible=why)


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _first_attempt(started: Event) -> int:
    value = started.args.get("first_attempt", 0)
    return value if type(value) is int else 0
