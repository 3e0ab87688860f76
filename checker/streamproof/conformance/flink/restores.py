"""Restores from checkpoints: which attempts need one, and to which job a line without a job belongs.

"No checkpoint found during restore." names no job. The JobMaster writes it, or "Restoring job ...", when it has built an
execution graph, and when it restarts tasks after the last one of them has ended, before it schedules them in the same step
(`SchedulerBase.restoreState`). So an attempt that is scheduled needs one of these lines since then.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Final

from streamproof.base.records import dataclass
from streamproof.conformance.flink.drafts import Draft

NO_CHECKPOINT: Final = "ckpt.none"
RESTORES: Final = ("ckpt.restore", NO_CHECKPOINT)
_ENDED: Final = ("FINISHED", "CANCELED", "FAILED")

_DECISIONS: Final = ("failover.restart", "failover.global.restart")
_STEPS: Final = ("exec.transition", "exec.deploy", "job.transition", *_DECISIONS)
"""Lines of the JobMaster's main thread, which come between the steps."""

Line = tuple[int, str, Mapping[str, Any]]
"""A line about a job in the log of one process: its position, its family, its arguments."""


def missing_restores(lines: Sequence[Line], *, whole: bool) -> Iterator[tuple[int, int]]:
    """The attempts of a job with checkpoints that are scheduled without a restore: the positions between which it is missing.

    `lines` are those of one job in one process, in their order; `whole`: from the submission of the job. Tasks with several
    attempts at a time are not supported.
    """
    built: dict[str, int] = {}
    ended: dict[tuple[str, str, int], int] = {}
    restored = last = graph = running = -1
    bound = _Bound(whole, any(family == "ckpt.complete" for _, family, _ in lines))
    for at, family, args in lines:
        bound.read(family, args)
        if family in RESTORES:
            restored = at
        elif family == "job.graph":
            built[args["graph"]] = graph = at
        elif family == "ckpt.savepoint":
            # Only a job without a checkpoint starts from a savepoint, which is restored next.
            if graph >= 0 and restored < graph:
                yield graph, at
            built = dict.fromkeys(built, at)
        elif family == "job.transition" and (args["old"], args["new"]) == ("RESTARTING", "RUNNING"):
            running = at  # in the step that restores and schedules
        elif family == "exec.transition":
            task = (args["graph"], args["vertex"], args["subtask"])
            if args["new"] in _ENDED:
                ended[task] = at
            elif args["new"] == "SCHEDULED":
                since = max(running, ended.get(task, built.get(args["graph"], -1)))
                if restored < since or bound.is_exceeded:
                    yield (built[args["graph"]] if task not in ended and args["graph"] in built else last), at
                    restored = at  # the others of the same step lack the same line
                    bound.restart()
        if family in _STEPS:
            last = at


@dataclass(slots=True)
class _Bound:
    """The largest number of attempts that are scheduled between two restores: that of a decision which is carried out.

    Only of jobs whose checkpoints complete: all their tasks run at a time, so that those of a decision are scheduled at once.
    """

    known: bool
    """Whether all decisions that may be carried out are in the log."""
    completes: bool
    pending: list[int] = field(default_factory=list)
    most: int = 0
    scheduled: int = 0
    settled: bool = False
    """Whether the job is RUNNING again: the next restore is the last one of its decisions."""

    def read(self, family: str, args: Mapping[str, Any]) -> None:
        """Takes the next line."""
        if family in _DECISIONS:
            self.pending.append(args["count"])
        elif family == "job.transition":
            self.settled = (args["old"], args["new"]) == ("RESTARTING", "RUNNING")
        elif family in RESTORES:
            self.restart()
            if self.settled:
                self.pending, self.known, self.settled = [], True, False
        elif family == "exec.transition" and args["new"] == "SCHEDULED" and args["number"] > 0:
            self.scheduled += 1

    def restart(self) -> None:
        """Counts anew."""
        self.most = max(self.pending, default=0) if self.known else 0
        self.scheduled = 0

    @property
    def is_exceeded(self) -> bool:
        """Whether more attempts were scheduled than any decision restarts."""
        return self.completes and 0 < self.most < self.scheduled


def place_restores(drafts: Sequence[Draft], jobs: list[str], submitted: Container[tuple[str, str]]) -> None:
    """Assigns lines without a job to the only job that lacks one there. `submitted`: the processes and the jobs whose
    submission is in their logs."""
    unplaced: dict[str, list[int]] = {}
    own: dict[tuple[str, str], list[Line]] = {}
    checkpointed: set[str] = set()
    for at, draft in enumerate(drafts):
        if draft.family == NO_CHECKPOINT and not jobs[at]:
            unplaced.setdefault(draft.process, []).append(at)
        elif jobs[at]:
            own.setdefault((draft.process, jobs[at]), []).append((at, draft.family, draft.args))
            if draft.family.startswith("ckpt."):
                checkpointed.add(jobs[at])
    if not unplaced:
        return
    lacking = [
        (process, job, since, until)
        for (process, job), lines in own.items()
        if process in unplaced and job in checkpointed
        for since, until in missing_restores(lines, whole=(process, job) in submitted)
    ]
    for process, places in unplaced.items():
        for at in places:
            possible = {job for where, job, since, until in lacking if where == process and since < at < until}
            if len(possible) == 1:
                jobs[at] = possible.pop()
