"""The event logs of the runtime: a file of a simulated run, or a folder with the logs of all processes."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Iterator
from pathlib import Path
from typing import Any

from streamproof.conformance import Binding, Event, EventLog, InputError, Plan, read_events
from streamproof_specs.baton import SPEC

JOBMASTER = "jobmaster"
"""The process that records the graph of an attempt, and its end."""
MASTER_LOG = f"{JOBMASTER}.ndjson"
_PART_LOG = re.compile(r"(?:rm|(?:tm-\d+|jobmaster|rm)\.\d+)\.ndjson", re.ASCII)
"""The log of each process of a TaskExecutor, and of each JobMaster and ResourceManager but the first: its name, and how many
processes of that name were before it."""
LOG = EventLog(SPEC)
FLOW = frozenset(
    {
        *("gate_opened", "buffers_sent", "credits_received", "backlog_announced"),
        *("buffer_received", "backlog_received", "credits_announced", "channel_released"),
        *("loop_opened", "feedback_received", "spill_read"),
        *("barrier_received", "snapshot_taken"),
    }
)
"""Events of the ends of channels, of the inputs of loops, and of checkpoints, which have no clock."""


def runs(path: Path) -> list[Any]:
    """The file, or the runs of a folder. Raises `InputError` if there is none."""
    if not path.is_dir() or not (path / MASTER_LOG).is_file():
        return LOG.runs(path)
    own = {*_parts(path)}
    return [path, *(log for log in LOG.runs(path) if log not in own)]


def first_event(path: Path) -> dict[str, Any]:
    """The first event of a file, or of the first event log of a folder, if it is one of the JobMaster; else nothing."""
    try:
        first = runs(path)[0]
        first = first / MASTER_LOG if first.is_dir() else first
        if not first.is_file():  # a pipe would be waited for
            return {}
        with first.open("rb") as stream:
            record = json.loads(stream.readline(1 << 20))
    except (InputError, OSError, ValueError, IndexError, RecursionError):
        return {}
    return record if isinstance(record, dict) and record.get("process") == JOBMASTER else {}


def is_of_runtime(path: Path) -> bool:
    """Whether a file, or the first event log of a folder, begins with an event of the runtime's JobMaster."""
    return first_event(path).get("event") in ("job_started", "registered")


def events_of(run: Path) -> list[Event]:
    """The events of all processes of a run."""
    return _joined(run) if run.is_dir() else [*read_events(run)]


class RuntimeLogs(Binding):
    """A binding of the runtime's event logs. Other event logs are read as `EventLog` does."""

    log: EventLog
    """Of the model of the binding."""

    def runs(self, path: Path) -> list[Any]:
        """The file, or the runs of a folder. Raises `InputError` if there is none."""
        return runs(path)

    def recognises(self, path: Path) -> bool:
        """Whether a file, or the first event log of a folder, begins with an event of the runtime's JobMaster."""
        return is_of_runtime(path)

    def plan(self, run: Any, job_graph: Path | None) -> Plan:
        """The behaviours of a run. Raises `InputError` for a log that is not the runtime's own, and for a job graph."""
        if not is_of_runtime(run):
            return self.log.plan(run, job_graph)
        if job_graph is not None:
            raise InputError(f"{job_graph}: the log has the job graph", remedy="leave out --job-graph")
        return self.behaviours(run.resolve().name.partition(".")[0], events_of(run))

    def behaviours(self, name: str, events: list[Event]) -> Plan:
        """The plan of the runtime's own events, of a run of this name."""
        raise NotImplementedError


def jobs(events: Iterable[Event], followed: Container[str]) -> Iterator[tuple[Event, list[Event]]]:
    """The beginning of each job, or of each JobMaster of one, with its events of these kinds, unless it has none.

    Raises `InputError` for events without, or before, the beginning of their job, and for a second beginning.
    """
    own: dict[str, list[Event]] = {}
    for event in events:
        if event.process == JOBMASTER and "#" not in event.trace:
            own.setdefault(event.trace, []).append(event)
    for trace, found in own.items():
        started, *rest = sorted(found, key=lambda e: e.seq)
        judged = [e for e in rest if e.event in followed]
        if started.event != "job_started" and started.event in followed:
            judged.insert(0, started)
        if judged and started.event != "job_started":
            raise InputError(f"{judged[0]} is not after the beginning of job {trace}", loc=judged[0].loc)
        again = next((e for e in rest if e.event == "job_started"), None)
        if again is not None:
            raise InputError(f"job {trace} begins a second time: {again}", loc=again.loc)
        first = own.get(trace.rpartition("@")[0], found)[0].args
        if any(started.args.get(name) != first.get(name) for name in ("operators", "exchanges") if judged):
            raise InputError(f"{started} has another job graph than the first JobMaster of the job", loc=started.loc)
        if judged:
            yield started, judged


def attempts(events: Iterable[Event]) -> dict[str, list[Event]]:
    """The events of each attempt of a region, by trace."""
    found: dict[str, list[Event]] = {}
    for event in events:
        if "#" in event.trace:
            found.setdefault(event.trace, []).append(event)
    return found


def parts(run: Path) -> list[Path]:
    """The logs of the processes of a run: the file itself, or those of its folder."""
    return [run] if run.is_file() else _parts(run)


def _parts(folder: Path) -> list[Path]:
    """The logs of the processes of a run on processes."""
    return [folder / MASTER_LOG, *sorted(f for f in folder.iterdir() if _PART_LOG.fullmatch(f.name))]


def _joined(folder: Path) -> list[Event]:
    """The events of all processes of a run. The last line of a log is left out if it has no end: its process was killed
    while it wrote, before anything else could learn of the event."""
    return [event for log in _parts(folder) if log.stat().st_size for event in read_events(log, without_torn_line=True)]
