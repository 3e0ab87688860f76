"""Edits of the JobManager's lines about scheduling in recorded runs of Flink.

What depends on what is determined from the job graph and the order of the lines, not with the model.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import networkx

from streamproof.conformance.flink import graph_of
from streamproof.conformance.flink.graph import producers_of
from tampering import edits as common
from tampering.edits import Edit, Outcome, Record
from tampering.failover_lies import JobRun, Task, after, attempt_of, moved, replaced, task_of, without

MODEL = "regions"
RUNS = (
    *("logs/a-pipelined-1", "logs/a-taskfail-1", "logs/b-lostpart-1", "logs/b117-lostpart-1", "logs/f-clean-batch-2"),
    *("more/rand2", "more/pipe", "live/tm12-kill"),
)
"""Recorded runs in `tests/data/flink` for the table."""


class RegionRun(JobRun):
    """A recorded run with the tasks that are scheduled together."""

    def __post_init__(self) -> None:
        super().__post_init__()
        graph = graph_of(self.logged, self.job)
        size = {v.id: v.parallelism or 1 for v in graph.vertices}
        tied: networkx.Graph[Task] = networkx.Graph()
        tied.add_nodes_from((v, n) for v in size for n in range(size[v]))
        for edge in graph.edges:
            if "PIPELINED" in (edge.exchange or ""):
                for n in range(size[edge.target]):
                    makers = producers_of(edge.pattern or "ALL_TO_ALL", size[edge.source], size[edge.target], n)
                    tied.add_edges_from(((edge.target, n), (edge.source, p)) for p in makers)
        self.region = {t: frozenset(part) for part in networkx.connected_components(tied) for t in part}


def scheduled(run: RegionRun) -> list[Record]:
    """The lines "to SCHEDULED"."""
    return run.of("exec.transition", new="SCHEDULED")


def inputs(run: RegionRun) -> Iterator[Edit]:
    """A region is scheduled, or deployed, before its inputs are finished."""
    file, records = run.master, run.files[run.master]
    place = {id(r): at for at, r in enumerate(records)}
    finished = run.of("exec.transition", new="FINISHED")
    for r in scheduled(run):
        region = run.region[task_of(r)]
        makers = [
            f
            for f in finished
            if task_of(f) not in region
            and any(task in run.readers.get(task_of(f), ()) for task in region)
            and place[id(f)] < place[id(r)]
        ]
        if not makers:
            continue
        wave = [
            x
            for x in run.of("exec.transition", "exec.deploy")
            if task_of(x) in region
            and x.logged_event.args["number"] == r.logged_event.args["number"]
            and (x.name == "exec.deploy" or x.arg("new") in ("SCHEDULED", "DEPLOYING"))
        ]
        if wave[0] is r and all(place[id(x)] > place[id(makers[-1])] for x in wave):
            what = str(r.logged_event)
            yield Edit("region scheduled before its inputs", what, {file: moved(records, wave, makers[-1])}, (r,))
    for f in finished:
        waiting = [
            r for r in scheduled(run) if task_of(r) in run.readers.get(task_of(f), ()) and place[id(r)] > place[id(f)]
        ]
        other = next((x for x in waiting if task_of(x) not in run.region[task_of(f)]), None)
        later = next((x for x in records[place[id(f)] + 1 :] if x in waiting or _uses(x, f)), None)
        if other is not None and later is not None:
            yield Edit("input never finished", str(f.logged_event), {file: without(records, f)}, (later,))


def _uses(x: Record, f: Record) -> bool:
    """Whether a line is about the attempt of another one, or about its task's next one, or the end of the job."""
    if x.event is None:
        return False
    if x.name == "exec.transition":
        return task_of(x) == task_of(f)
    return x.name == "job.transition" and x.arg("new") == "FINISHED"


def together(run: RegionRun) -> Iterator[Edit]:
    """A task is scheduled, or deployed, without its region; or twice; or in the wrong order."""
    file, records = run.master, run.files[run.master]
    place = {id(r): at for at, r in enumerate(records)}
    lines = scheduled(run)
    for r in lines:
        copy = r.again()
        yield Edit("task scheduled twice", str(r.logged_event), {file: after(records, r, copy)}, (copy,))
        behind = [x for x in run.of("exec.transition", "exec.deploy") if place[id(x)] > place[id(r)]]
        # Without the order of the vertices, the other tasks of the region may come first.
        others = [x for x in behind if run.region[task_of(x)] != run.region[task_of(r)]]
        if behind:
            at = (behind[0], *others[:1], *_own(run, r))
            yield Edit("task deployed without being scheduled", str(r.logged_event), {file: without(records, r)}, at)
    ordered = any(r.name == "graph.vertex" for r in records)
    for r, s in pairwise(lines):
        if run.region[task_of(r)] == run.region[task_of(s)] and r.arg("number") == s.arg("number"):
            swapped = moved(records, [s], r)
            what = str(r.logged_event)
            yield Edit("tasks of a region in the wrong order", what, {file: swapped}, (s,), may_be_legal=not ordered)
    for d in run.of("exec.transition", new="DEPLOYING"):
        peers = [
            x
            for x in run.of("exec.transition", new="DEPLOYING")
            if run.region[task_of(x)] == run.region[task_of(d)] and x.arg("number") == d.arg("number")
        ]
        if len(peers) > 1 and peers[-1] is d:
            deployment = [x for x in run.of("exec.deploy") if attempt_of(x) == attempt_of(d)]
            report = next(
                (
                    x
                    for x in run.of("exec.transition")
                    if place[id(x)] > place[id(d)]
                    and x.arg("new") in ("INITIALIZING", "RUNNING", "FINISHED")
                    and attempt_of(x) != attempt_of(d)
                ),
                None,
            )
            behind = [x for x in records[place[id(report)] :] if x is not report][:1] if report is not None else []
            if report is not None and behind and place[id(report)] < place[id(_next_of(run, d))]:
                late = moved(records, [d, *deployment], behind[0])
                elsewhere = [x for x in run.of("exec.transition") if place[id(x)] > place[id(d)] and x not in peers]
                at = (report, *elsewhere[:1])
                yield Edit("task deployed after its region", str(d.logged_event), {file: late}, at)


def _own(run: RegionRun, r: Record) -> tuple[Record, ...]:
    """The next lines about the attempt of a line."""
    return tuple(x for x in run.of("exec.transition") if attempt_of(x) == attempt_of(r) and x is not r)[:1]


def _next_of(run: RegionRun, d: Record) -> Record:
    """The line about the attempt after that of its deployment; the deployment itself if there is none."""
    return next(
        (x for x in run.of("exec.transition") if attempt_of(x) == attempt_of(d) and x.arg("old") == "DEPLOYING"), d
    )


def restarts(run: RegionRun) -> Iterator[Edit]:
    """A restart that was not announced, a count that is too small, other numbers of regions."""
    file, records = run.master, run.files[run.master]
    for b in run.of("region.built"):
        total = int(b.arg("total"))
        for other in (total - 1, total + 1):
            new = b.edited((f"total {total} ", f"total {other} "), (f"Built {total} new", f"Built {other} new"))
            yield Edit("wrong number of regions", str(b.logged_event), {file: replaced(records, b, new)}, (new,))
    lines = scheduled(run)
    decisions = run.of("failover.restart")
    if len(decisions) == 1:
        again = [r for r in lines if int(r.arg("number")) > 0]
        count = int(decisions[0].arg("count"))
        if len(again) == count > 1:
            new = decisions[0].edited((f"{count} tasks will", f"{count - 1} tasks will"))
            region = run.region[task_of(again[-1])]
            first = next(r for r in again if task_of(r) in region)
            files = {file: replaced(records, decisions[0], new)}
            yield Edit("more tasks scheduled than announced", str(decisions[0].logged_event), files, (first,))
    for f in run.of("exec.transition", new="FINISHED"):
        number = int(f.arg("number"))
        last = not any(task_of(r) == task_of(f) and int(r.arg("number")) > number for r in lines)
        if last and len(run.region[task_of(f)]) == 1:
            stem = attempt_of(f).rpartition("_")[0]
            extra = f.edited(
                (f"{stem}_{number}", f"{stem}_{number + 1}"), ("RUNNING to FINISHED", "CREATED to SCHEDULED")
            )
            if "CREATED to SCHEDULED" in extra.text and not decisions:
                files = {file: after(records, f, extra)}
                yield Edit("finished task scheduled again", str(f.logged_event), files, (extra,))
    for j in run.of("job.transition", new="FINISHED"):
        last_one = run.of("exec.transition", new="FINISHED")[-1]
        yield Edit("job finished before its tasks", str(j.logged_event), {file: moved(records, [j], last_one)}, (j,))


def late(run: RegionRun) -> Iterator[Edit]:
    """A region that could be scheduled is scheduled after the next report."""
    file, records = run.master, run.files[run.master]
    place = {id(r): at for at, r in enumerate(records)}
    failed = next((place[id(r)] for r in run.of("exec.transition", new="FAILED")), len(records))
    reports = [x for x in run.of("exec.transition") if x.arg("new") in ("INITIALIZING", "RUNNING", "FINISHED")]
    for r in scheduled(run):
        if len(run.region[task_of(r)]) > 1 or place[id(r)] > failed or r.arg("number") != "0":
            continue
        before = [x for x in reports if place[id(x)] < place[id(r)]]
        following = [x for x in reports if place[id(x)] > place[id(r)]]
        own = next(x for x in run.of("exec.transition") if attempt_of(x) == attempt_of(r) and x is not r)
        if before and following and place[id(following[0])] < min(place[id(own)], failed):
            behind = records[place[id(following[0])] + 1]
            files = {file: moved(records, [r], behind)}
            yield Edit("region scheduled late", str(r.logged_event), files, (following[0],))


def repeated(run: RegionRun) -> Iterator[Edit]:
    """A task turns twice to the same state; or its next attempt is scheduled before it has ended."""
    file, records = run.master, run.files[run.master]
    for new, kind in (
        ("DEPLOYING", "task deployed twice"),
        ("RUNNING", "task runs twice"),
        ("FINISHED", "task finished twice"),
        ("CANCELED", "task canceled twice"),
    ):
        for r in run.of("exec.transition", new=new):
            copy = r.again()
            yield Edit(kind, str(r.logged_event), {file: after(records, r, copy)}, (copy,))
    ends = {attempt_of(r): r for r in run.of("exec.transition") if r.arg("new") in ("CANCELED", "FAILED")}
    for r in scheduled(run):
        stem, _, number = attempt_of(r).rpartition("_")
        end = ends.get(f"{stem}_{int(number) - 1}")
        if end is not None and len(run.region[task_of(r)]) == 1:
            late = after(without(records, end), r, end.at_time_of(r))
            yield Edit("task scheduled again before its end", str(r.logged_event), {file: late}, (r,))


KINDS = (inputs, together, restarts, late, repeated)


def edits(folder: Path) -> Iterator[Edit]:
    """All edits of a run."""
    run = RegionRun(folder)
    for kind in KINDS:
        yield from kind(run)


def outcome(folder: Path, edit: Edit) -> Outcome:
    """The verdict on an edit."""
    return common.outcome(folder, edit, MODEL)
