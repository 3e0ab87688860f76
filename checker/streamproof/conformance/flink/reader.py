"""Reading the logs of a run: the records of each process as events, joined with their jobs."""

from __future__ import annotations

import os
import re
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Final, NoReturn

from streamproof.base.errors import InputError, Loc
from streamproof.base.options import setting
from streamproof.base.reading import read_regular
from streamproof.base.records import dataclass
from streamproof.conformance.event import Event
from streamproof.conformance.flink.archives import real
from streamproof.conformance.flink.delivery import (
    SAMPLED,
    LineOrder,
    Repetitions,
    describe,
    lacking,
    oldest_first,
    unordered,
)
from streamproof.conformance.flink.global_failures import read_causes
from streamproof.conformance.flink.identifiers import HEX
from streamproof.conformance.flink.joins import resolve
from streamproof.conformance.flink.log_records import Clock, Problem, Problems, Record, read_records
from streamproof.conformance.flink.logfiles import (
    LOOKED_FOR,
    UNORDERED,
    ProcessLog,
    RunFiles,
    find_logs,
    find_runs,
    is_empty,
    read_lines,
)
from streamproof.conformance.flink.message_forms import FORMS, LONGEST, resembles
from streamproof.conformance.flink.old_attempts import complete_old_attempts
from streamproof.conformance.flink.rest import find_rest
from streamproof.conformance.flink.run import ROLES, Draft, FlinkRun, Process, Role

_VERSION: Final = re.compile(r"\(Version: (\d+\.\d+(?:\.\d+)?(?:-[\w.]+)?),")
_START: Final = "Starting RPC endpoint for org.apache.flink.runtime.taskexecutor.TaskExecutor "
"""Message of a TaskManager before it can receive a task."""
_ENTRYPOINT: Final = "ClusterEntrypoint"
"""The logger of the first line of a JobManager's process."""
_DISPATCHERS: Final = frozenset({"StandaloneDispatcher", "MiniDispatcher", "Dispatcher"})
_SUBMITTED: Final = re.compile(
    rf"Submitting job (?:'.*' \(({HEX})\)(?: with associated application .*)?|({HEX}) \(.*\))\.", re.ASCII
)
"""Message of a Dispatcher that accepts a job, since 1.16 and before: it precedes all lines about the job."""
_JAR_VERSION: Final = re.compile(r"flink-(?:dist|runtime)[-_](?:\d\.\d+-)?(\d+\.\d+\.\d+)\.jar")
_NOTED_VERSION: Final = re.compile(r"^Flink:? (\d+\.\d+(?:\.\d+)?)", re.MULTILINE)
_RESOURCE: Final = re.compile(r"Starting TaskManager with ResourceID: (\S+)|MetricQueryService_(\S{1,500}+) \.")
_CUT_OUT: Final = re.compile(r"\s*(?:\.{3,}|\u2026+|\[(?:\.{3}|\u2026)\])\s*")
"""What authors of reports put in the place of lines."""
_UNCLOSED: Final = re.compile(r"[(\[{][^()\[\]{}]*$")
_FIRM: Final = (".", ")", "]", "}")
TORN: Final = "the file ends within a line although a later part of the log follows it: lines are missing between them"
_SPEAKING: Final[Mapping[str, tuple[str, ...]]] = {
    "exec.deploy": ("JobMaster",),
    "tm.submit": ("Task",),
    "tm.transition": ("Task",),
    "slot.tm.alloc": ("TaskExecutor",),
    "ckpt.failed": ("CheckpointCoordinator",),
}
"""Families of lines, and the loggers that write at INFO in a process that has such lines."""
_STATES: Final = frozenset({"exec.transition", "tm.transition", "job.transition"})
_TOGETHER: Final = (
    ("exec.transition", "new", "DEPLOYING", "exec.deploy"),
    ("tm.transition", "old", "CREATED", "tm.submit"),
    ("tm.transition", "new", "CANCELING", "tm.failext"),
    ("tm.final", "new", "FINISHED", "tm.transition"),
    ("ckpt.complete", None, None, "ckpt.trigger"),
)
"""Lines, most of them with a state, and the families of those that precede them."""
_OF_SLOTS: Final = frozenset({"slot.tm.alloc", "slot.tm.activate", "tm.submit"})
"""Families of lines of a TaskManager that do not name their job: a search for the identifier of a job omits them."""
_OF_PARTITIONS: Final = frozenset({"part.request", "part.releasing", "part.released"})
"""Families of lines at DEBUG about partitions that were registered in the same process."""
_REPORT: Final = "Received slot report from instance "
"""Message of two loggers about each slot report, at DEBUG."""
_SAFETY_NET: Final = "Creating FileSystem stream leak safety net for task "
"""Message of each task that is deployed, at DEBUG."""
_UNPAIRED: Final = 2
"""Minimum number of missing lines, without a meaning of their own, that shows that lines at DEBUG are missing."""
_FAILURES: Final = ("exec.transition", "tm.transition", "job.transition", "job.terminal")
_CAUSED: Final = ("ckpt.failed", "ckpt.declined", "tm.fatal")
"""Families whose lines have a cause, which names no partition."""


def read_run(source: str | os.PathLike[str] | RunFiles) -> FlinkRun:
    """Reads the logs of one run: a folder, a log, a pattern, or a result of `find_runs`.

    Raises `InputError` if `source` contains several runs, none, or no Flink log.
    """
    if not isinstance(source, RunFiles):
        runs = find_runs(source)
        if len(runs) > 1:
            raise InputError(
                f"{os.fspath(source)}: there are {len(runs)} runs, the first two {runs[0].name} and {runs[1].name}",
                remedy="name one of them, or read each that `find_runs` gives",
            )
        source = runs[0]
    last = _LAST.get()
    if last is None:
        return _LogReader(source).read()
    if source not in last:
        last.clear()
        last[source] = _LogReader(source).read()
    return last[source]


_LAST: ContextVar[dict[RunFiles, FlinkRun] | None] = ContextVar("the last run that was read", default=None)


def read_once() -> AbstractContextManager[None]:
    """Within it, a run is not read again if it was the last one read: for several bindings of the same files."""
    return setting(_LAST, {})


@dataclass(slots=True)
class _LogReader:
    source: RunFiles
    problems: Problems = field(default_factory=Problems)
    counts: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    drafts: list[Draft] = field(default_factory=list)
    version: str | None = None
    recognised: bool = False
    unsure: dict[str, str] = field(default_factory=dict)
    excused: dict[str, str] = field(default_factory=dict)
    unread: dict[str, tuple[int, Loc]] = field(default_factory=dict)
    others: dict[str, Counter[str]] = field(default_factory=dict)
    """The records of each file by their loggers."""
    # Of the process being read:
    seq: int = 0
    role: Role = "unknown"
    tm: str | None = None
    newest: str = ""
    at_info: set[str] = field(default_factory=set)
    managers: set[str] = field(default_factory=set)
    paired: Counter[str] = field(default_factory=Counter)
    debugged: bool = False
    """Whether the level of tasks is DEBUG."""
    starts: dict[int, None] = field(default_factory=dict)
    submitted: dict[str, int] = field(default_factory=dict)
    repetitions: Repetitions = field(default_factory=Repetitions)

    def read(self) -> FlinkRun:
        logs = find_logs(self.source, self.problems.append)
        processes = [self._read_process(log) for log in logs]
        if not self.recognised:
            self._refuse()
        turned = unordered(self.drafts)
        if turned:
            why = (
                f"lines of the same time are in an order in which no thread writes them, for {turned} attempts or jobs"
            )
            self.unsure |= {process.name: f"the order of the lines is not known: {why}" for process in processes}
        unsure, excused = complete_old_attempts(self.drafts)
        self.unsure |= unsure
        self.excused = excused | self.excused
        submitted = {(process.name, job): seq for process in processes for job, seq in process.submitted.items()}
        jobs, joins, open_ = resolve(self.drafts, submitted)
        self.unsure |= open_
        rest = find_rest(self.source.folder, joins.names, self.problems.append)
        placed = _placed(processes, self.drafts)
        made: list[Any] = self.drafts  # each becomes its event: both would take twice the memory
        for at, job in enumerate(jobs):
            of: Draft = made[at]
            made[at] = Event(job, of.process, of.seq, of.family, of.args, of.ts, file=of.file, line=of.line)
        events = tuple(made)
        return FlinkRun(
            name=self.source.name,
            events=events,
            counts=dict(self.counts),
            unknown=dict(self.unknown),
            problems=tuple(self.problems),
            processes=placed,
            jobs=dict(joins.names),
            graphs=dict(joins.graphs),
            rest=rest,
            version=self.version or self._noted_version(),
            unsure=self.unsure,
            excused=self.excused,
            unread=self.unread,
        )

    def _refuse(self) -> NoReturn:
        like = "lines such as '2026-11-21 03:17:55,749 INFO  org.apache.flink... - ...'"
        other = (
            "; validate --pattern '%d %p %c - %m' states another layout, validate --model FILE a model of event logs"
        )
        if len(self.source.files) == 1:
            only = str(self.source.files[0])
            why = next(problem.text for problem in self.problems if problem.file == only)
            raise InputError(f"{only}: {why}", remedy=f"a log of Flink's has {like}{other}")
        raise InputError(
            f"{self.source.folder}: none of the {len(self.source.files)} logs is Flink's",
            remedy=f"looked in {LOOKED_FOR} for {like}{other}",
        )

    def _read_process(self, log: ProcessLog) -> Process:
        logged, whole = set[str](), set[str]()
        self.seq = 0
        self.role = "unknown"
        self.tm = None
        self.at_info, self.managers, self.paired, self.debugged = set(), set(), Counter(), False
        self.starts = {}
        self.submitted = {}
        self.newest = str(log.files[-1])
        files = [(str(file), read_lines(file, self.problems.append)) for file in log.files]
        clock, orders, latest = Clock(self.problems.append), dict[str, LineOrder](), OrderedDict[int, None]()
        self.repetitions = Repetitions()
        for record in oldest_first(read_records(files, self.problems.append)):
            if record.file not in orders:
                whole.add(record.file)
                orders[record.file] = LineOrder(latest)
                self.others.setdefault(record.file, Counter())
            self.others[record.file][record.head.logger] += 1
            clock.look(record)
            orders[record.file].look(record)
            if record.head.level not in ("WARN", "ERROR"):
                self.at_info.add(record.head.logger)
                self.debugged |= record.head.level == "DEBUG" and record.head.logger == "Task"
            cut = None
            if record.detail:
                cut = next((at for at, text in enumerate(record.detail, 1) if _CUT_OUT.fullmatch(text)), None)
            if cut is not None:
                where = f"line {record.line + cut} of {Path(record.file).name}"
                self.excused.setdefault(log.process, f"{where} stands for lines that were cut out")
            if record.head.flink or record.head.logger in FORMS:
                logged.add(record.file)
                self.role = _role(self.role, record.head.logger)
            self._read_record(log.process, record)
        for file in log.files:
            # A rotated file may contain only records of libraries.
            if str(file) not in (whole if logged else logged):
                self._reject(file)
        self.recognised |= bool(logged)
        self._doubt_delivery(log.process, [file for file, order in orders.items() if order.lost])
        self.repetitions = Repetitions()  # the old one knows every line
        excuse = log.excuse or self._mixed(log.process) or self._silenced(log.process) or _joined(orders)
        if excuse is not None:
            self.excused.setdefault(log.process, excuse)
        if not log.ordered:
            self.unsure[log.process] = f"the order of the log of {log.process} is not known: {UNORDERED}"
        names = tuple(str(file) for file in log.files)
        return Process(log.process, self.role, self.tm, names, tuple(self.starts), self.submitted)

    def _mixed(self, process: str) -> str | None:
        """Why lines that belong together may be apart: those of several TaskManagers are in one log."""
        return (
            f"the log of {process} has the lines of {len(self.managers)} TaskManagers"
            if len(self.managers) > 1
            else None
        )

    def _silenced(self, process: str) -> str | None:
        """Why lines that Flink writes at INFO may be missing: all lines of their logger are, or all of their kind."""
        drafts = self.drafts[len(self.drafts) - self.seq :]
        written = {draft.family for draft in drafts}
        for family, loggers in _SPEAKING.items():
            for logger in loggers:
                if family in written and logger not in self.at_info:
                    return f"the log of {process} has no line at INFO of {logger}: its level may be higher"
        lone = Counter(
            missing
            for draft in drafts
            for family, state, value, missing in _TOGETHER
            if draft.family == family and (state is None or draft.args[state] == value) and missing not in written
        )
        if (written and written <= _STATES) or max(lone.values(), default=0) >= _UNPAIRED:
            return f"the log of {process} has lines without those that go with them: its lines may be those of a search"
        if "slot.tm.free" in written and written.isdisjoint(_OF_SLOTS):
            return f"the log of {process} has no line about slots in use: its lines may be those of a search"
        if "part.registered" not in written and not written.isdisjoint(_OF_PARTITIONS):
            return f"the log of {process} has no line about the registration of a partition: lines are missing"
        missing, unpaired = lacking(drafts) if 0 in self.starts else 0, self._unpaired(drafts)
        if missing >= SAMPLED or unpaired >= _UNPAIRED:
            return (
                f"{missing + unpaired} lines of the log of {process} are missing, without which others are not logged"
            )
        return None

    def _unpaired(self, drafts: Sequence[Draft]) -> int:
        """The number of lines at DEBUG that are missing, because Flink writes each with another one."""
        nets, reports = self.paired.pop(_SAFETY_NET, 0), self.paired.values()
        begun = sum(d.family == "tm.transition" and d.args["old"] == "CREATED" for d in drafts)
        released = Counter("ext" in d.args for d in drafts if d.family == "slot.shared.release")
        return sum(
            (
                max(0, begun - nets) if self.debugged else 0,
                max(reports) - min(reports) if len(reports) == 2 else 0,
                abs(released[True] - released[False]) if len(released) == 2 else 0,
            )
        )

    def _doubt_delivery(self, process: str, mixed: Sequence[str]) -> None:
        """Reports repeated lines; records why the log of a process may be incomplete. `mixed`: the files whose lines
        are not in the order of writing."""
        first = self.repetitions.first
        if first is not None and self.repetitions.count:
            self.problems.append(Problem(first[0], first[1], describe(first, self.repetitions.count)))
            if self.repetitions.unclear:
                where = f"line {first[1]} of {Path(first[0]).name}"
                self.unsure[process] = (
                    f"{where} repeats line {first[2]} byte for byte: it was delivered twice, or Flink did this twice"
                )
        if mixed:
            where = Path(mixed[0]).name
            self.unsure[process] = (
                f"the order of {where} is not known: the times of its lines fall as often as they rise"
            )

    def _reject(self, file: Path) -> None:
        """Reports a file without Flink records as a whole, instead of the problems of its lines."""
        name = str(file)
        damaged = any(problem.file == name and problem.line for problem in self.problems)
        self.problems[:] = [problem for problem in self.problems if problem.file != name]
        if is_empty(file):
            why = "the file is empty"
        elif damaged:
            why = "the file is damaged or no text, and no record of Flink's is in it"
        else:
            loggers = self.others.get(name, Counter())
            why = "no record of Flink's is in it"
            if loggers:
                why += f": {loggers.total():,} records of other programs, the first logger is {next(iter(loggers))}"
            else:
                why += f": none of its {sum(1 for _ in read_lines(file, lambda p: None)):,} lines begins like a record"
        self.problems.append(Problem(name, 0, why))

    def _read_record(self, process: str, record: Record) -> None:
        head = record.head
        for form in FORMS.get(head.logger, ()):
            args = form.read(head.message)
            if args is not None:
                break
        else:
            self._note(record)
            return
        if self._cut(record) or self.repetitions.repeats(form.family, args, record):
            return
        self._explain(form.family, args, record)
        if form.family in ("hb.timeout", "hb.unreachable", "hb.recv", "hb.trigger"):
            args["component"] = head.logger
        self.drafts.append(
            Draft(process, self.seq, form.family, args, head.ts, head.job, head.thread, record.file, record.line)
        )
        self.counts[form.family] += 1
        self.seq += 1

    def _note(self, record: Record) -> None:
        """Counts a record that is not an event, and extracts information about the process from it."""
        message = record.head.message
        self.unknown[record.head.logger] += 1
        if not self._cut(record) and record.head.logger in FORMS:
            family = resembles(record.head.logger, message)
            if family:
                self._report(record, f"the line looks like {family} but cannot be read in full")
                count, first = self.unread.get(family, (0, Loc(record.file, record.line)))
                self.unread[family] = count + 1, first
            elif len(message) > LONGEST:
                self._report(record, f"the message has more than {LONGEST:,} characters; it is not read")
            elif not record.detail and _UNCLOSED.search(message):
                self._report(record, "the line seems to be cut: it ends within a bracket")
        at_entry = record.head.logger == _ENTRYPOINT and message.lstrip().startswith("Starting ")
        if at_entry or message.startswith(_START):
            self.starts[self.seq] = None
            self.managers |= set() if at_entry else {record.head.ts}  # a line that is delivered twice is one
        if record.head.logger in _DISPATCHERS:
            accepted = _SUBMITTED.fullmatch(message)
            if accepted:
                self.submitted.setdefault(accepted[1] or accepted[2], self.seq)
        if message.startswith(_REPORT):
            self.paired[record.head.logger] += 1
        elif message.startswith(_SAFETY_NET):
            self.paired[_SAFETY_NET] += 1
        if self.version is None and "(Version: " in message:
            found = _VERSION.search(message)
            self.version = found[1] if found else None
        if self.tm is None and ("ResourceID: " in message or "QueryService_" in message):
            found = _RESOURCE.search(message)
            self.tm = (found[1] or found[2]) if found else None

    def _cut(self, record: Record) -> bool:
        """Whether the head of the record may continue beyond the end of the file. An open end is reported, a definite
        one is not."""
        if record.open_end is None:
            return False
        firm = not record.detail and record.head.message.endswith(_FIRM)
        if record.file != self.newest:
            self.problems.append(Problem(record.file, record.open_end, TORN))
        elif not firm:
            self.problems.append(Problem(record.file, record.open_end, "the last line has no end; it may be cut"))
        return not record.detail and not firm

    def _report(self, record: Record, text: str) -> None:
        self.problems.append(Problem(record.file, record.line, text))

    def _explain(self, family: str, args: dict[str, object], record: Record) -> None:
        """Adds the arguments from the stack trace of a failure."""
        if not record.detail and family != "failover.archive":
            return
        if family.startswith("failover.") or (
            family in _FAILURES and args["new"] in ("FAILED", "FAILING", "RESTARTING", "SUSPENDED")
        ):
            head = args.get("cause")
            args.update(read_causes(head if isinstance(head, str) else None, record.detail))
        elif family in _CAUSED:
            args.update((k, v) for k, v in read_causes(None, record.detail).items() if k in ("cause", "causes"))
        if self.version is None:
            found = next(filter(None, map(_JAR_VERSION.search, record.detail)), None)
            self.version = found[1] if found else None

    def _noted_version(self) -> str | None:
        try:
            noted = read_regular(real(self.source.folder / "scenario.txt"), 1 << 20).decode(errors="replace")
        except InputError:
            return None
        found = _NOTED_VERSION.search(noted)
        return found[1] if found else None


def _joined(orders: Mapping[str, LineOrder]) -> str | None:
    """Why the lines of a file may be in another order than that of writing: the clock runs back within it."""
    return next(
        (
            f"the clock runs back before line {order.joined} of {Path(file).name}: it may be several files in another order"
            for file, order in orders.items()
            if order.joined
        ),
        None,
    )


def _role(known: Role, logger: str) -> Role:
    """The role of a process, given its known role and one of its loggers."""
    if known != "both" and logger in ROLES:
        return ROLES[logger] if known in ("unknown", ROLES[logger]) else "both"
    return known


def _placed(processes: Sequence[Process], drafts: Sequence[Draft]) -> dict[str, Process]:
    """Processes by name; a TaskManager without a logged resource id gets it from a deployment it received."""
    placed = {draft.args["attempt"]: draft.args["tm"] for draft in drafts if draft.family == "exec.deploy"}
    took = {
        draft.process: placed[draft.args["attempt"]]
        for draft in drafts
        if draft.family == "tm.submit" and draft.args["attempt"] in placed
    }
    return {
        process.name: replace(process, tm=process.tm or took.get(process.name))
        if process.role == "taskmanager"
        else process
        for process in processes
    }
