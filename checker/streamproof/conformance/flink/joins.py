"""Assignment of events to jobs and task threads, and of restores to attempts.

Few of Flink's messages name their job. It is found by joins over other identifiers: the execution graph of an attempt,
the allocation of a slot, the slot request, the task. A join may need a later line or one of another process, so it is
made when the whole run has been read. Remaining events are assigned to the only job of a run with one job; the
cluster's own events (registration, heartbeats) belong to none.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import Any, Final

from streamproof.base.records import dataclass
from streamproof.conformance.flink.global_failures import place_global_failures
from streamproof.conformance.flink.identifiers import HEX
from streamproof.conformance.flink.run import Draft

NO_CHECKPOINT: Final = "ckpt.none"
RESTORES: Final = ("ckpt.restore", NO_CHECKPOINT)
UNNAMED: Final = "a job that no line names"
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


_CLUSTER: Final = ("rm.", "hb.", "tm.closerm", "net.connfail")
_THREAD: Final = re.compile(r"(?:Legacy Source Thread - )?(?P<task>.*) \((?P<place>\d+)/\d+\)#(?P<number>\d+)")
_JOB_TEXT: Final = re.compile(HEX)


@dataclass(slots=True)
class Joins:
    """The mapping from identifiers to jobs in a run.

    Jobs have names; execution graphs, slot allocations and slot requests belong to one job each. A vertex may belong to
    several jobs: its identifier is derived from the program, so two runs of one program have the same vertices.
    """

    graphs: dict[str, str] = field(default_factory=dict)
    allocations: dict[str, str] = field(default_factory=dict)
    requests: dict[str, str] = field(default_factory=dict)
    vertices: dict[str, set[str]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, drafts: Iterable[Draft]) -> Joins:
        """The mapping derived from the events of a run."""
        joins = cls()
        drafts = list(drafts)
        reserved: dict[str, str] = {}
        deployed: list[tuple[str, str]] = []
        for draft in drafts:
            args = draft.args
            job = args.get("job")
            if job:
                joins.names.setdefault(job, "")
                if draft.family in ("job.transition", "failover.strategy"):
                    joins.names[job] = args["name"]
                if "graph" in args:
                    joins.graphs[args["graph"]] = job
                if "alloc" in args:
                    joins.allocations[args["alloc"]] = job
            if "alloc" in args and "graph" in args:
                deployed.append((args["alloc"], args["graph"]))
            if draft.family == "slot.jm.reserve":
                reserved[args["req"]] = args["alloc"]
        # An allocation serves one job, so each side of a deployment determines the other.
        for allocation, graph in deployed:
            if graph in joins.graphs:
                joins.allocations.setdefault(allocation, joins.graphs[graph])
            elif allocation in joins.allocations:
                joins.graphs[graph] = joins.allocations[allocation]
        for draft in drafts:
            # A context may hold any identifier, such as a trace.
            if draft.job in joins.names:
                for key, known in (("graph", joins.graphs), ("alloc", joins.allocations)):
                    if key in draft.args:
                        known.setdefault(draft.args[key], draft.job)
        for draft in drafts:
            if draft.args.get("graph") in joins.graphs and "vertex" in draft.args:
                joins.vertices.setdefault(draft.args["vertex"], set()).add(joins.graphs[draft.args["graph"]])
        joins.requests = {
            request: joins.allocations[allocation]
            for request, allocation in reserved.items()
            if allocation in joins.allocations
        }
        return joins

    @property
    def only_job(self) -> str:
        """The only job of the run, or empty."""
        return next(iter(self.names)) if len(self.names) == 1 else ""

    def direct(self, draft: Draft) -> str:
        """The job from an event's own identifiers, else from its context, else empty."""
        context = draft.job if draft.job in self.names else None
        return self._identified(draft) or context or ""

    def _identified(self, draft: Draft) -> str:
        args: Mapping[str, Any] = draft.args
        if args.get("job"):
            return str(args["job"])
        for key, known in (("graph", self.graphs), ("alloc", self.allocations), ("req", self.requests)):
            if args.get(key) in known:
                return known[args[key]]
        if "producer" in args:
            return self.graphs.get(args["producer"][:32], "")
        for key in ("partitions", "offers"):
            if args.get(key):
                first = args[key][0]
                return self.graphs.get(first.partition("@")[2][:32], "") or self.allocations.get(first, "")
        if "broker" in args and args["broker"][:32] in self.names:
            return str(args["broker"][:32])
        if "why" in args:
            return next((job for job in _JOB_TEXT.findall(args["why"]) if job in self.names), "")
        return ""


def resolve(
    drafts: list[Draft], submitted: Mapping[tuple[str, str], int] = MappingProxyType({})
) -> tuple[list[str], Joins, dict[str, str]]:
    """The job of each event ("" if none or unknown), the mapping used, and by job why events may be missing.

    `submitted`: for processes and jobs, the number of events before the submission of the job. Events recorded by a task's
    thread without an attempt get it as the argument `by`.
    """
    joins = Joins.of(drafts)
    if not joins.names:
        # A job that no line names is identified by the execution graph of its attempts.
        joins.graphs = {draft.args["graph"]: draft.args["graph"] for draft in drafts if "graph" in draft.args}
        joins.names = dict.fromkeys(joins.graphs, UNNAMED)
    jobs: list[str] = []
    # Per process: the latest attempt of a task by its place and number, the latest of its place, the jobs being
    # created.
    attempts: dict[tuple[str, str, int, int], str] = {}
    latest: dict[tuple[str, str, int], str] = {}
    building: dict[str, list[str]] = {}
    for draft in drafts:
        args = draft.args
        attempt = args.get("attempt")
        if attempt and "task" in args:
            attempts[draft.process, args["task"], args["subtask"], args["number"]] = attempt
            latest[draft.process, args["task"], args["subtask"]] = attempt
        elif not attempt and draft.thread:
            found = _THREAD.fullmatch(draft.thread)
            if found:
                place = (draft.process, found["task"], int(found["place"]) - 1, int(found["number"]))
                if place in attempts:
                    args["by"] = attempts[place]
        job = joins.direct(draft)
        if draft.family == "job.graph":
            building.setdefault(draft.process, []).append(args["job"])
        elif draft.family == "job.transition" and args["old"] == "CREATED":
            building[draft.process] = [other for other in building.get(draft.process, ()) if other != job]
        elif not job and draft.seq < submitted.get((draft.process, joins.only_job), 0):
            pass  # of an earlier job, whose name is in no line
        elif not job and not draft.family.startswith(_CLUSTER):
            job = _by_neighbours(draft, joins, attempts, latest, building)
        jobs.append(job)
    place_restores(drafts, jobs, submitted)
    return jobs, joins, place_global_failures(drafts, jobs, submitted)


def _by_neighbours(
    draft: Draft,
    joins: Joins,
    attempts: Mapping[tuple[str, str, int, int], str],
    latest: Mapping[tuple[str, str, int], str],
    building: Mapping[str, list[str]],
) -> str:
    """The job of an event without identifiers: by its task, its thread, or the job being created."""
    if joins.only_job:
        return joins.only_job
    args = draft.args
    attempt = args.get("by")
    if not attempt and "task" in args and "subtask" in args:
        place = (draft.process, args["task"], args["subtask"])
        attempt = attempts.get((*place, args["number"])) if "number" in args else latest.get(place)
    if attempt:
        return joins.graphs.get(attempt[:32], "")
    of_vertex = joins.vertices.get(args.get("vertex", ""), set())
    if len(of_vertex) == 1:
        return next(iter(of_vertex))
    if draft.family in ("graph.vertex", "graph.edge", "region.built", "sched.strategy"):
        # Between a graph's creation and its job's start; if two are being created at once, it may be either's.
        jobs = building.get(draft.process, [])
        return jobs[0] if len(jobs) == 1 else ""
    return ""
