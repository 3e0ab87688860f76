"""Jobs that the failover machine cannot follow, with the reason and the remedy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from math import inf
from pathlib import Path
from typing import Any

from streamproof import System
from streamproof.conformance import (
    BOOL,
    Binding,
    Event,
    InputError,
    Loc,
    Observation,
    Stream,
    Task,
    Unit,
    Variable,
)
from streamproof.conformance.flink import MORE, TORN, UNNAMED, FlinkRun, find_runs, read_lines, read_rest
from streamproof_specs.failover.flink.adaptive import REASON
from streamproof_specs.failover.flink.speculation import Subtask, announced
from streamproof_specs.flink.unjudged import UNJUDGED

_DAMAGED = (
    "the line looks like",
    "the line seems to be cut",
    "a line was cut",
    "the line has zero bytes",
    "the line has a time but no level and logger",
    "the message has more",
)
_BEFORE_SCHEDULING = frozenset(
    {"failover.strategy", "graph.edge", "graph.vertex", "job.graph", "job.terminal", "region.built", "sched.adaptive"}
)
"""Lines about a job that is not scheduled yet, or never."""
_WITHDRAWN = b" to CANCELED due to CancelTaskException:"
"""The DEBUG line of a TaskManager for a task whose peers are gone: it is harmless."""


@dataclass(frozen=True, slots=True)
class Outside:
    """Why a job is not followed; empty if it is."""

    texts: tuple[str, ...]
    headless: bool = False
    """Whether the beginning of the job is in no JobManager's log: the state at the first line is unknown."""
    gap: str | None = None
    """What is missing in the middle of a JobManager's log: any line may follow from one that is not there."""
    announced: Mapping[Subtask, int] = field(default_factory=dict)
    """Further attempts of slow tasks that the log announces, if tasks have several attempts at a time."""
    adaptive: bool = False
    """Whether the adaptive scheduler runs the job."""

    @property
    def complete(self) -> bool:
        """Whether the JobManagers' logs of the job are complete from its submission."""
        return not self.headless and self.gap is None


class FlinkLogs(Binding):
    """A binding of the logs of Flink's processes."""

    unjudged = UNJUDGED

    def runs(self, path: Path) -> list[Any]:
        """The runs under a path: a folder of logs, a folder of such folders, a file, a glob."""
        return list(find_runs(path))

    def recognises(self, path: Path) -> bool:
        """Whether a path is a folder with Flink logs; other files are not claimed."""
        if not path.is_dir():
            return False
        try:
            return bool(find_runs(path))
        except InputError:
            return False


def outside(run: FlinkRun, job: str, master: Sequence[Event]) -> Outside:
    """`master` are the JobManager's events of the job."""
    lines = [e for e in master if e.event in ("exec.transition", "job.transition")]
    if not lines:
        return Outside((_without_master(run, job),), True)
    speaking = {e.process: e for e in reversed(lines)}
    head, middle = _headless(run, job, speaking), gap(run, speaking)
    incomplete = tuple(why for why in (head, middle) if why is not None)[:1]
    headless = head is not None
    several = announced(run, lines[0].process) if _overlapping(master) else {}
    # The adaptive scheduler has no speculative execution.
    if not several and _is_adaptive(run, job, master):
        return Outside((*incomplete, REASON), headless, middle, adaptive=True)
    graphs = {e.args["graph"] for e in master if e.event == "job.graph"}
    others = {e.args["graph"] for e in lines if e.event == "exec.transition"} - graphs
    if len(speaking) > 1 or len(graphs) > 1 or (graphs and others):
        where = f" ({', '.join(sorted(speaking))})" if len(speaking) > 1 else ""
        why = f"more than one JobMaster ran the job{where}: the machine follows one"
        return Outside((*incomplete, why), headless, middle)
    return Outside(incomplete, headless, middle, several)


def _without_master(run: FlinkRun, job: str) -> str:
    """What is there of a job of which no JobManager's log has a line."""
    events = run.of_job(job)
    attempts = {e.args["attempt"] for e in events if "attempt" in e.args}
    whose = ", which no line names" if run.jobs[job] == UNNAMED else ""
    others = {e.args["attempt"] for e in run.of_job("") if "attempt" in e.args}
    more = f"; {len(others)} attempts are of jobs that no line names" if others else ""
    return (
        f"no JobManager's log speaks of this job{whose}: restart decisions are logged there; {len(events)} events and"
        f" {len(attempts)} attempts of it were read{more}"
    )


def unscheduled(run: FlinkRun, job: str) -> Unit | None:
    """The case of a job of which nothing was scheduled by the end of the log, perhaps because it was refused."""
    events = run.of_job(job)
    if not any(job in run.processes[e.process].submitted for e in events):
        return None
    if not {e.event for e in events} <= _BEFORE_SCHEDULING:
        return None
    note = "the log ends before anything of the job is scheduled"
    for event in events:
        causes = event.args.get("causes", ())
        if event.event == "job.terminal" and causes and causes[0].endswith(".JobInitializationException"):
            because = f" because of {causes[-1].rpartition('.')[2]}" if len(causes) > 1 else ""
            note = f"the job was refused{because}: {event.args['cause'].rpartition('.client.')[2]}"
        elif event.event == "job.terminal":
            return None
    title = run.jobs[job]
    return Unit(
        job,
        title,
        (stated(job, tuple(map(Observation, events))),),
        False,
        damage=damage(run),
        notes=(f"nothing to judge: {note}",),
    )


def _headless(run: FlinkRun, job: str, first: Mapping[str, Event]) -> str | None:
    """Why the beginning of the job is in no log; `first` are the first lines about it of each JobManager.

    A JobManager builds execution graphs and JobMasters at any time. Only the start of its process and the submission of the
    job precede all lines about the job.
    """
    submitted = {name for name, event in first.items() if run.processes[name].submitted.get(job, inf) <= event.seq}
    for name, event in first.items():
        if name not in submitted and not run.processes[name].started:
            where = f"line {event.line} of {Path(event.file or '').name}"
            return f"the JobManager's log begins in the middle of the job ({where})"
    if submitted:
        return None
    return "no log has the submission of the job: a JobManager whose log is missing may have run it before"


def gap(run: FlinkRun, processes: Iterable[str]) -> str | None:
    """What is missing in the middle of the log of a process, a JobManager in the text."""
    for name in processes:
        files = run.processes[name].files
        missing = _missing_part(files)
        if missing:
            return f"a part of the JobManager's rotated log is missing ({missing})"
        torn = next((p for p in run.problems if p.file in files and p.text == TORN), None)
        if torn:
            return f"a part of the JobManager's rotated log is cut (line {torn.line} of {Path(torn.file).name})"
    return None


def _missing_part(files: Sequence[str]) -> str | None:
    """The first rotated file missing in the numbering, if any. `files` are in the order of writing.

    Numbers that rise from file to file may begin with any, since the oldest files are deleted. If they fall, or there is
    one, the file without a number follows number 1.
    """
    numbered = (
        r"(.*\.log\.)(\d{1,4})()" if any(".log." in Path(f).name for f in files) else r"(.*[-_.])(\d{1,4})(\.log)"
    )
    found = [m for f in files if (m := re.fullmatch(numbered, Path(f).name))]
    numbers = [int(m[2]) for m in found]
    if not numbers or len(files) < 2:
        return None
    rises = numbers[0] < numbers[-1] or len(numbers) == len(files)
    gaps = set(range(min(numbers) if rises else min(1, *numbers), max(numbers))) - set(numbers)
    return f"{found[0][1]}{min(gaps)}{found[0][3]}" if gaps else None


def _is_adaptive(run: FlinkRun, job: str, master: Sequence[Event]) -> bool:
    """Whether the job, not another one of the session, runs under the adaptive scheduler (not the adaptive batch one).

    A log without its beginning does not name the job: then no line written by other schedulers, and nothing in the REST
    answer, may contradict it.
    """
    if "AdaptiveScheduler" not in run.unknown and "sched.adaptive" not in run.counts:
        return False
    if job in run.rest:
        with suppress(InputError):
            scheduler = read_rest(run.rest[job], job).scheduler
            if scheduler is not None:
                return scheduler == "Adaptive"
    said = {e.event for e in master}
    return "sched.adaptive" in said or said.isdisjoint(("failover.strategy", "sched.strategy", "failover.restart"))


def damage(run: FlinkRun) -> tuple[Loc, ...]:
    """Lines that were truncated, overwritten or of unknown format, if they may have been about executions."""
    doubtful = [p for p in run.problems if p.line and p.text.startswith(_DAMAGED)]
    withdrawn = {
        file: _saying(file, max(p.line for p in doubtful if p.file == file), _WITHDRAWN)
        for file in {p.file for p in doubtful}
    }
    # A summary of other problems counts, whatever its own line contains.
    return tuple(Loc(p.file, p.line) for p in doubtful if p.text.endswith(MORE) or p.line not in withdrawn[p.file])


def doubted(case: Unit, run: FlinkRun, *families: str) -> Unit:
    """A case that is inconclusive if its lines are uncertain, either always or only if it would be rejected.

    `families` are those of its subject, by the beginnings of their names.
    """
    unread, most = _unread(run, families)
    if most:
        case = replace(case, unjudged=(unread, *case.unjudged))
    elif unread:
        case = replace(case, notes=(*case.notes, unread))
    why = run.doubt(case.trace, run.unsure)
    if why is not None:
        return replace(case, unjudged=(why, *case.unjudged), partial=why)
    return replace(case, partial=case.partial or run.doubt(case.trace, run.excused) or _searched(case, run, families))


def _searched(case: Unit, run: FlinkRun, families: tuple[str, ...]) -> str | None:
    """Why lines about tasks may be missing: none is there, as in a search for the identifier of the job."""
    found = {event.event for event in run.of_job(case.trace)}
    if "ckpt." in families or "job.transition" not in found or "exec.transition" in found:
        return None
    return "no line is about a task of the job: the lines may be those of a search"


def _unread(run: FlinkRun, families: tuple[str, ...]) -> tuple[str, bool]:
    """How many of the lines of some families (beginnings of their names) have another format than the known one, and
    whether these are the most, so that nothing is concluded."""
    found = [lines for name, lines in run.unread.items() if name.startswith(families)]
    lines = sum(count for count, _ in found)
    read = sum(count for name, count in run.counts.items() if name.startswith(families))
    if not found:
        return "", False
    first = found[0][1]
    why = (
        f"{lines} of {lines + read} lines of the kind that is followed are not in the format of Flink 1.16 to 2.3, first"
        f" line {first.line} of {Path(first.file).name}"
    )
    return why, lines > read


def _saying(file: str, last: int, text: bytes) -> set[int]:
    """The lines of a file, up to the last one of interest, that contain a text."""
    with closing(read_lines(Path(file), lambda problem: None)) as lines:
        return {number for number, line in enumerate(islice(lines, last), 1) if text in line}


def _overlapping(master: Sequence[Event]) -> bool:
    """Whether an attempt is scheduled while an earlier one of the same task is active."""
    alive: dict[tuple[str, int], set[int]] = {}
    for event in master:
        if event.event == "exec.transition":
            args = event.args
            numbers = alive.setdefault((args["vertex"], args["subtask"]), set())
            if args["new"] in ("FINISHED", "CANCELED", "FAILED"):
                numbers.discard(args["number"])
            else:
                if args["new"] == "SCHEDULED" and numbers:
                    return True
                numbers.add(args["number"])
    return False


_NO_MACHINE = System("lines", (Variable("lines", BOOL, (False,)),), (), ())
"""A machine that accepts every line."""


def contradicted(job: str, event: Event, why: str) -> Task:
    """A line that is impossible, with the reason, as a behaviour that is rejected."""
    return stated(job, (Observation(event, impossible=why),))


def stated(job: str, observations: Sequence[Observation]) -> Task:
    """Lines without a machine: those that are impossible are rejected."""
    return Task(job, _NO_MACHINE, (Stream(observations),))
