"""A recorded run of Flink as an event log: all processes' logs read, joined and put in order."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import merge
from pathlib import Path
from typing import Final

from streamproof.conformance.events import Event
from streamproof.conformance.flink.causes import read_causes
from streamproof.conformance.flink.families import FORMS, looks_like
from streamproof.conformance.flink.joins import Draft, resolve
from streamproof.conformance.flink.logfiles import LOOKED_FOR, ProcessLog, RunFiles, by_process, find_runs, read_lines
from streamproof.conformance.flink.records import Problem, Record, read_records
from streamproof.conformance.flink.rest import find_rest
from streamproof.system.errors import InputError, Loc

_VERSION: Final = re.compile(r"\(Version: (\d+\.\d+(?:\.\d+)?(?:-[\w.]+)?),")
_JAR_VERSION: Final = re.compile(r"flink-(?:dist|runtime)[-_](?:\d\.\d+-)?(\d+\.\d+\.\d+)\.jar")
_NOTED_VERSION: Final = re.compile(r"^Flink:? (\d+\.\d+(?:\.\d+)?)", re.MULTILINE)
_RESOURCE: Final = re.compile(r"Starting TaskManager with ResourceID: (\S+)|MetricQueryService_(\S+) \.")
_FIRM: Final = (".", ")", "]", "}")
_FAILURES: Final = ("exec.transition", "tm.transition", "job.transition")


@dataclass(frozen=True, slots=True)
class Process:
    """A process of the run. `role` is jobmanager, taskmanager or unknown; `tm` is a TaskManager's resource id."""

    name: str
    role: str
    tm: str | None
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FlinkRun:
    """What the logs of one run say.

    `events` stand process by process, in the order of each process; their `trace` is the job, or empty for what
    concerns no job or one that cannot be told. `counts` has the events of each family, `unknown` the records of each
    logger that belong to none (never an error: Flink says much that is not coordination). `problems` is what could
    not be read. `jobs` maps job to name, `graphs` execution graph to job, `rest` job to the REST answer found beside
    the logs.
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

    def merged(self) -> tuple[Event, ...]:
        """All events by time. Within a process its own order stands; at equal times processes come by name."""
        return tuple(event for _, event in merge(*map(_timed, self._streams()), key=lambda pair: pair[0]))

    def of_job(self, job: str) -> tuple[Event, ...]:
        """The events of one job, process by process."""
        return tuple(event for event in self.events if event.trace == job)

    def _streams(self) -> list[list[Event]]:
        streams: dict[str, list[Event]] = {}
        for event in self.events:
            streams.setdefault(event.process, []).append(event)
        return list(streams.values())


def read_run(source: str | os.PathLike[str] | RunFiles) -> FlinkRun:
    """Read the logs of one run: a folder, a log, a pattern, or an answer of `find_runs`.

    Raises `InputError` if `source` holds several runs, none, or no log of Flink's.
    """
    if not isinstance(source, RunFiles):
        runs = find_runs(source)
        if len(runs) > 1:
            raise InputError(
                f"there are {len(runs)} runs, the first two {runs[0].name} and {runs[1].name}",
                loc=Loc(os.fspath(source), 0),
                remedy="Name one of them, or read each that `find_runs` gives.",
            )
        source = runs[0]
    return _Reader(source).read()


@dataclass(slots=True)
class _Reader:
    source: RunFiles
    problems: list[Problem] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    drafts: list[Draft] = field(default_factory=list)
    version: str | None = None

    def read(self) -> FlinkRun:
        logs = by_process(self.source, self.problems.append)
        resources = {log.process: self._read_process(log) for log in logs}
        if not any(recognised for recognised, _ in resources.values()):
            raise InputError(
                "no log of Flink's was found" + (f"; {self.problems[0]}" if self.problems else ""),
                loc=Loc(str(self.source.folder if len(self.source.files) > 1 else self.source.files[0]), 0),
                remedy=f"Looked in {LOOKED_FOR} for lines such as '2026-11-21 03:17:55,749 INFO  org.apache.flink... - ...'.",
            )
        jobs, joins = resolve(self.drafts)
        events = tuple(
            Event(job, draft.process, draft.seq, draft.family, draft.args, draft.ts, file=draft.file, line=draft.line)
            for draft, job in zip(self.drafts, jobs, strict=True)
        )
        return FlinkRun(
            name=self.source.name,
            events=events,
            counts=dict(self.counts),
            unknown=dict(self.unknown),
            problems=tuple(self.problems),
            processes=_processes(logs, self.drafts, {name: tm for name, (_, tm) in resources.items()}),
            jobs=dict(joins.names),
            graphs=dict(joins.graphs),
            rest=find_rest(self.source.folder, joins.names),
            version=self.version or self._noted_version(),
        )

    def _read_process(self, log: ProcessLog) -> tuple[bool, str | None]:
        """Read one process's log; whether it is Flink's, and the TaskManager's resource id if it says so."""
        flink: set[str] = set()
        heads: set[str] = set()
        resource: str | None = None
        seq = 0
        files = [(str(file), read_lines(file, self.problems.append)) for file in log.files]
        for record in read_records(files, self.problems.append):
            heads.add(record.file)
            forms = FORMS.get(record.logger)
            if forms is None:
                if record.flink:
                    flink.add(record.file)
                self._ignore(record)
                if resource is None and ("ResourceID: " in record.message or "QueryService_" in record.message):
                    found = _RESOURCE.search(record.message)
                    resource = (found[1] or found[2]) if found else None
                continue
            flink.add(record.file)
            for form in forms:
                args = form.read(record.message)
                if args is not None:
                    if self._cut(record):
                        break
                    self._explain(form.family, args, record)
                    draft = Draft(
                        log.process,
                        seq,
                        form.family,
                        args,
                        record.ts,
                        record.job,
                        record.thread,
                        record.file,
                        record.line,
                    )
                    self.drafts.append(draft)
                    self.counts[form.family] += 1
                    seq += 1
                    break
            else:
                self._ignore(record)
        for file in log.files:
            name = str(file)
            if name not in flink:
                why = "no record of Flink's in it" if name in heads else self._why_no_records(file)
                self.problems.append(Problem(name, 0, why))
        return bool(flink), resource

    def _cut(self, record: Record) -> bool:
        """Whether the head of the record ends where the file does and may go on."""
        if record.whole:
            return False
        cut = not record.detail and not record.message.endswith(_FIRM)
        if cut or record.detail:
            line = record.line + len(record.detail)
            self.problems.append(Problem(record.file, line, "the last line has no end; it may be cut"))
        return cut

    def _ignore(self, record: Record) -> None:
        self.unknown[record.logger] += 1
        if not self._cut(record):
            family = looks_like(record.logger, record.message)
            if family:
                self.problems.append(
                    Problem(record.file, record.line, f"the line looks like {family} but cannot be read in full")
                )
        if self.version is None and "(Version: " in record.message:
            found = _VERSION.search(record.message)
            self.version = found[1] if found else None

    def _explain(self, family: str, args: dict[str, object], record: Record) -> None:
        """Add what the stack trace under a failure says."""
        if not record.detail and family != "failover.archive":
            return
        if family == "failover.archive" or (family in _FAILURES and args["new"] in ("FAILED", "FAILING", "RESTARTING")):
            head = args.get("cause")
            args.update(read_causes(head if isinstance(head, str) else None, record.detail))
        if self.version is None:
            found = next(filter(None, map(_JAR_VERSION.search, record.detail)), None)
            self.version = found[1] if found else None

    def _why_no_records(self, file: Path) -> str:
        if file.stat().st_size == 0:
            return "the file is empty"
        return "not a log of Flink's: no line has a time, a level and a logger"

    def _noted_version(self) -> str | None:
        try:
            found = _NOTED_VERSION.search((self.source.folder / "scenario.txt").read_text(errors="replace"))
        except OSError:
            return None
        return found[1] if found else None


def _timed(events: Sequence[Event]) -> Iterator[tuple[str, Event]]:
    """Events with times that never fall: within a process the order of the log stands above its clock."""
    time = ""
    for event in events:
        time = max(time, event.ts or "")
        yield time, event


def _processes(
    logs: Sequence[ProcessLog], drafts: Sequence[Draft], said: Mapping[str, str | None]
) -> dict[str, Process]:
    roles: dict[str, str] = {}
    placed: dict[str, str] = {}
    for draft in drafts:
        if draft.family.startswith(("exec.", "job.", "rm.", "slot.rm.", "slot.jm.")):
            roles[draft.process] = "jobmanager"
        elif draft.family.startswith(("tm.", "part.", "gate.", "slot.tm.")):
            roles[draft.process] = "taskmanager"
        if draft.family == "exec.deploy":
            placed[draft.args["attempt"]] = draft.args["tm"]
    resources = dict(said)
    for draft in drafts:
        if draft.family == "tm.submit" and resources[draft.process] is None:
            resources[draft.process] = placed.get(draft.args["attempt"])
    return {
        log.process: Process(
            log.process,
            roles.get(log.process, "unknown"),
            resources[log.process] if roles.get(log.process) != "jobmanager" else None,
            tuple(str(file) for file in log.files),
        )
        for log in logs
    }
