"""Jobs that the failover machine cannot follow, with the reason and the remedy."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from streamproof.conformance import Binding, Event, InputError, Loc, Unit
from streamproof.conformance.flink import MORE, TORN, FlinkRun, find_runs, read_lines, read_rest
from streamproof_specs.flink.adaptive import REASON
from streamproof_specs.flink.speculation import Subtask, announced
from streamproof_specs.flink.unjudged import UNJUDGED

_DAMAGED = (
    "the line looks like",
    "the line seems to be cut",
    "a line was cut",
    "the line has zero bytes",
    "the line has a time but no level and logger",
    "the message has more",
)
_WITHDRAWN = b" to CANCELED due to CancelTaskException:"
"""The DEBUG line of a TaskManager for a task whose peers are gone: it is harmless."""


@dataclass(frozen=True, slots=True)
class Outside:
    """Why a job is not followed; empty if it is."""

    texts: tuple[str, ...]
    beginning: bool
    """Whether the JobManager's log of the job is incomplete at the start, or in the middle."""
    announced: Mapping[Subtask, int] = field(default_factory=dict)
    """Further attempts of slow tasks that the log announces, if tasks have several attempts at a time."""
    adaptive: bool = False
    """Whether the adaptive scheduler runs the job."""


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
        why = "no JobManager's log speaks of this job: restart decisions are logged there"
        return Outside((why,), True)
    incomplete = _incomplete(run, lines[0], master)
    several = announced(run, lines[0].process) if _overlapping(master) else {}
    # The adaptive scheduler has no speculative execution.
    if not several and _is_adaptive(run, job, master):
        return Outside((REASON,), incomplete is not None, adaptive=True)
    graphs = {e.args["graph"] for e in master if e.event == "job.graph"}
    others = {e.args["graph"] for e in lines if e.event == "exec.transition"} - graphs
    speaking = sorted({e.process for e in lines})
    if len(speaking) > 1 or len(graphs) > 1 or (graphs and others):
        where = f" ({', '.join(speaking)})" if len(speaking) > 1 else ""
        return Outside((f"more than one JobMaster ran the job{where}: the machine follows one",), False)
    if incomplete is not None:
        return Outside((incomplete,), True)
    return Outside((), False, several)


def _incomplete(run: FlinkRun, first: Event, master: Sequence[Event]) -> str | None:
    """What is missing of the JobManager's log, at the start of the job or later; `first` is the first line about it."""
    started = first.event == "job.transition" and first.args["old"] in ("INITIALIZING", "CREATED")
    began = any(e.event in ("job.graph", "failover.strategy", "sched.strategy") for e in master)
    if not (started or began):
        return (
            f"the JobManager's log begins in the middle of the job (line {first.line} of {Path(first.file or '').name})"
        )
    files = run.processes[first.process].files
    missing = _missing_part(files)
    if missing:
        return f"a part of the JobManager's rotated log is missing ({missing})"
    torn = next((p for p in run.problems if p.file in files and p.text == TORN), None)
    return (
        f"a part of the JobManager's rotated log is cut (line {torn.line} of {Path(torn.file).name})" if torn else None
    )


def _missing_part(files: Sequence[str]) -> str | None:
    """The first rotated file missing in the numbering, if any."""
    numbered = (
        r"(.*\.log\.)(\d{1,4})()" if any(".log." in Path(f).name for f in files) else r"(.*[-_.])(\d{1,4})(\.log)"
    )
    numbers = {int(m[2]): m for f in files if (m := re.fullmatch(numbered, Path(f).name))}
    gaps = set(range(min(numbers, default=0), max(numbers, default=0))) - numbers.keys()
    return f"{numbers[min(numbers)][1]}{min(gaps)}{numbers[min(numbers)][3]}" if gaps else None


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


def doubted(case: Unit, run: FlinkRun) -> Unit:
    """A case that is inconclusive if its lines are uncertain, either always or only if it would be rejected."""
    why = run.doubt(case.trace, run.unsure)
    if why is not None:
        return replace(case, unjudged=(why, *case.unjudged), partial=why)
    return replace(case, partial=case.partial or run.doubt(case.trace, run.excused))


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
