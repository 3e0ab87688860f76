"""A recorded run of Flink: its events, also as drafts before their jobs are known, its processes, the unreadable parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from datetime import UTC, datetime
from heapq import merge
from pathlib import Path
from typing import Any, Final, Literal

from streamproof.base.errors import Loc
from streamproof.base.records import dataclass
from streamproof.conformance.event import Event
from streamproof.conformance.flink.log_records import Problem


@dataclass(slots=True)
class Draft:
    """An event without its job. `job` is an identifier in its diagnostic context, `thread` the thread's name."""

    process: str
    seq: int
    family: str
    args: dict[str, Any]
    ts: str
    job: str | None
    thread: str | None
    file: str
    line: int


Role = Literal["jobmanager", "taskmanager", "both", "unknown"]
"""The role of a process. A mini cluster has both in one process."""
ROLES: Final[Mapping[str, Literal["jobmanager", "taskmanager"]]] = {
    **dict.fromkeys(("JobMaster", "ExecutionGraph", "StandaloneDispatcher", "DispatcherRestEndpoint"), "jobmanager"),
    **dict.fromkeys(("StandaloneResourceManager", "ActiveResourceManager"), "jobmanager"),
    **dict.fromkeys(("TaskExecutor", "TaskManagerRunner", "Task"), "taskmanager"),
}
"""Loggers that only processes of one role have."""


@dataclass(frozen=True, slots=True)
class Process:
    """A process of the run. `tm` is a TaskManager's resource id, None if no log has it; `starts`: for each line
    about the start of the process, the number of events before it; `submitted` the same for each job that its Dispatcher
    accepts."""

    name: str
    role: Role
    tm: str | None
    files: tuple[str, ...]
    starts: tuple[int, ...] = ()
    submitted: Mapping[str, int] = field(default_factory=dict)

    @property
    def started(self) -> bool:
        """Whether the log begins with the start of the process, before all events."""
        return 0 in self.starts


@dataclass(frozen=True, slots=True)
class FlinkRun:
    """The contents of the logs of one run.

    `events` are grouped by process, in the order of each process; their `trace` is the job, or empty for events without
    a job or with an unknown one. `counts` has the events of each family, `unknown` the records of each logger that
    belong to no family (never an error: most of Flink's messages do not concern coordination). `problems` are
    unreadable data. `jobs` maps job to name, `graphs` execution graph to job, `rest` job to the REST answer found
    beside the logs. `unsure` gives, for a process or job, why conclusions from its lines are uncertain; `excused` why
    lines may be missing or misplaced, so that a contradiction proves nothing.
    """

    name: str
    events: tuple[Event, ...]
    counts: Mapping[str, int]
    unknown: Mapping[str, int]
    problems: tuple[Problem, ...]
    processes: Mapping[str, Process]
    jobs: Mapping[str, str] = field(default_factory=dict)
    graphs: Mapping[str, str] = field(default_factory=dict)
    rest: Mapping[str, Path] = field(default_factory=dict)
    version: str | None = None
    unsure: Mapping[str, str] = field(default_factory=dict)
    excused: Mapping[str, str] = field(default_factory=dict)
    unread: Mapping[str, tuple[int, Loc]] = field(default_factory=dict)
    """The number of lines of each family whose format is not the known one, and the first of them."""
    _by_job: dict[str, tuple[Event, ...]] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def content(self) -> str:
        """What was read, for a run without jobs."""
        files = sum(len(process.files) for process in self.processes.values())
        records = len(self.events) + sum(self.unknown.values())
        version = f"Flink {self.version}" if self.version else "Flink, of a version that they do not show"
        said = f"{records:,} records of {version} are in {files:,} file{'s' * (files > 1)}"
        most = sorted(self.counts.items(), key=lambda pair: -pair[1])[:5]
        said += f", {len(self.events):,} about coordination"
        said += f" ({', '.join(f'{count:,} {name}' for name, count in most)})" if most else ""
        if any(process.role in ("jobmanager", "both") for process in self.processes.values()):
            return f"no job was submitted: {said}"
        return f"no line names a job: {said}; a JobManager's log at INFO names them"

    def doubt(self, job: str, of: Mapping[str, str]) -> str | None:
        """The first reason in `unsure` or `excused` that concerns a job: its own, or that of a process with lines of it."""
        names = [job, *dict.fromkeys(e.process for e in self.of_job(job))]
        return next((of[name] for name in names if name in of), None)

    def merged(self) -> tuple[Event, ...]:
        """All events by time. Within a process its own order is kept; ties are broken by process name."""
        streams: dict[str, list[Event]] = {}
        for event in self.events:
            streams.setdefault(event.process, []).append(event)
        return tuple(event for _, event in merge(*map(_timed, streams.values()), key=lambda pair: pair[0]))

    def of_job(self, job: str) -> tuple[Event, ...]:
        """The events of one job, process by process."""
        if not self._by_job:
            found: dict[str, list[Event]] = {}
            for event in self.events:
                found.setdefault(event.trace, []).append(event)
            self._by_job.update((name, tuple(events)) for name, events in found.items())
        return self._by_job.get(job, ())


def _timed(events: Sequence[Event]) -> Iterator[tuple[str, Event]]:
    """Events with nondecreasing times: within a process the order of the log takes precedence over its clock."""
    time = ""
    for event in events:
        time = max(time, _instant(event.ts or ""))
        yield time, event


def _instant(ts: str) -> str:
    """A sortable form of a time: in UTC if it has a zone, else unchanged."""
    if ts.endswith("Z") or ts[-6:-5] in ("+", "-"):
        with suppress(ValueError):
            return datetime.fromisoformat(ts).astimezone(UTC).isoformat(timespec="milliseconds")
    return ts
