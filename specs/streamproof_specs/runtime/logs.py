"""The event logs of the runtime: a file of a simulated run, or a folder with the logs of all processes."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from streamproof.conformance import (
    Binding,
    Event,
    EventLog,
    InputError,
    LogForm,
    Plan,
    Unit,
    first_event_fields,
    read_events,
)

JOBMASTER = "jobmaster"
"""The process that records the graph of an attempt, and its end."""
FORMS = (".ndjson", ".parquet")
"""Suffixes of logs. A log that is there in both forms is read in the first: a conversion was interrupted."""
_PART_LOG = re.compile(r"(?:jobmaster|rm|(?:tm-\d+|jobmaster|rm)\.\d+)\.(?:ndjson|parquet)", re.ASCII)
"""The log of each process: its name, and how many processes of that name were before it, unless none was before a JobMaster
or ResourceManager."""
FLOW = frozenset(
    {
        *("gate_opened", "buffers_sent", "credits_received", "backlog_announced"),
        *("buffer_received", "backlog_received", "credits_announced", "channel_released"),
        *("pool_opened", "record_spans", "part_received"),
        *("loop_opened", "feedback_received", "spill_read"),
        *("barrier_received", "barrier_arrived", "snapshot_taken", "buffers_logged"),
    }
)
"""Events of the ends of channels, of the inputs of loops, and of checkpoints, which have no clock."""


def runs(path: Path) -> list[Any]:
    """The file, or the runs of a folder. Raises `InputError` if there is none."""
    if not path.is_dir() or _master_log(path) is None:
        return EventLog.runs(path)
    return [path, *(log for log in EventLog.runs(path) if not _PART_LOG.fullmatch(log.name))]


def first_event(path: Path) -> dict[str, Any]:
    """The first event of a file, or of the first readable event log of a folder, if it is one of the JobMaster; else nothing.

    Raises `InputError` if the path itself is a damaged run in Parquet: no other binding could read it.
    """
    try:
        found = runs(path)
    except (InputError, OSError):
        return {}
    for run in found:
        log = _master_log(run) if run.is_dir() else run
        try:
            # A pipe would be waited for.
            record = first_event_fields(log) if log is not None and log.is_file() else {}
        except InputError:
            if run == path:
                raise
            continue
        if record:
            return record if record.get("process") == JOBMASTER else {}
    return {}


def is_of_runtime(path: Path) -> bool:
    """Whether a file, or the first event log of a folder, begins with an event of the runtime's JobMaster. Raises as
    `first_event`."""
    return first_event(path).get("event") in ("job_started", "registered")


def events_of(run: Path) -> list[Event]:
    """The events of all processes of a run."""
    return _joined(run) if run.is_dir() else [*read_events(run)]


class JobMasterLogs(Binding):
    """A binding of the events of the runtime's JobMasters, and of what they speak with: those of a form."""

    def __init__(self, form: LogForm) -> None:
        self._form = form

    @property
    def form(self) -> LogForm:
        """The events that the binding reads."""
        return self._form

    def runs(self, path: Path) -> list[Any]:
        """The file, or the runs of a folder. Raises `InputError` if there is none."""
        return runs(path)

    def reads(self, path: Path) -> bool:
        """Whether a path has a log of the runtime, which begins with a job."""
        return first_event(path).get("event") == "job_started"

    def recognises(self, path: Path) -> bool:
        """Whether there is a log of the runtime that has what the binding follows: by default any."""
        return self.reads(path)

    def plan(self, run: Any, job_graph: Path | None) -> Plan:
        """The behaviours of a run. Raises `InputError` for a log that is not the runtime's own, and for a job graph."""
        if job_graph is not None:
            raise InputError(f"{job_graph}: the log has the job graph", remedy="leave out --job-graph")
        events = events_of(run)
        self.form.expect(events)
        return self.behaviours(run.resolve().name.partition(".")[0], events)

    def behaviours(self, name: str, events: list[Event]) -> Plan:
        """The plan of the events of a run of this name. Raises `InputError` for events that are not the runtime's own."""
        raise NotImplementedError


class RuntimeLogs(JobMasterLogs):
    """A binding of the events of subtasks, in logs that may lack the beginning of the job."""

    def reads(self, path: Path) -> bool:
        """Whether a file, or the first event log of a folder, begins with an event of the runtime's JobMaster."""
        return is_of_runtime(path)


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


def without(events: Sequence[Event], opened: str, tasks: Callable[[str], Iterable[str]]) -> list[str]:
    """The subtasks that must have opened their inputs in an attempt in which no event says that any has: `tasks` of its
    graph, of an attempt that has not finished those with events."""
    of_master = {e.event: e for e in events if e.process == JOBMASTER}
    graph = of_master["deployed"].args.get("graph") if "deployed" in of_master else None
    if not isinstance(graph, str) or any(e.event == opened for e in events):
        return []
    begun = {e.process for e in events}
    return [task for task in tasks(graph) if "finished" in of_master or task in begun]


def unopened(events: Sequence[Event], what: str, tasks: Iterable[str]) -> Iterator[Unit]:
    """An inconclusive case for each subtask of an attempt of whose inputs nothing is recorded."""
    for task in tasks:
        trace = events[0].trace
        name, _, attempt = trace.rpartition("#")
        title = f"{what} {task}, attempt {attempt} of {name}"
        yield Unit(f"{trace} {task}", title, (), False, (f"the log has no event of the inputs of {task}",))


def parts(run: Path) -> list[Path]:
    """The logs of the processes of a run: the file itself, or those of its folder."""
    return [run] if run.is_file() else _parts(run)


def _master_log(folder: Path) -> Path | None:
    """The log of the first JobMaster of a run on processes."""
    return next((log for form in FORMS if (log := folder / f"{JOBMASTER}{form}").is_file()), None)


def _parts(folder: Path) -> list[Path]:
    """The logs of the processes of a run on processes, each once, that of the first JobMaster first."""
    found = sorted((f for f in folder.iterdir() if _PART_LOG.fullmatch(f.name)), key=lambda f: FORMS.index(f.suffix))
    logs = {log.stem: log for log in reversed(found)}
    return sorted(logs.values(), key=lambda log: (log.stem != JOBMASTER, log.name))


def _joined(folder: Path) -> list[Event]:
    """The events of all processes of a run. The last line of a log is left out if it has no end: its process was killed
    while it wrote, before anything else could learn of the event. A Parquet file is whole, or damaged."""
    logs = (log for log in _parts(folder) if log.suffix == ".parquet" or log.stat().st_size)
    return [event for log in logs for event in read_events(log, without_torn_line=True)]
