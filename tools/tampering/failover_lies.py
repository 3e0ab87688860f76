"""Edits of recorded runs of Flink, one at a time: decisions, failures, attempts, the job, TaskManagers.

Every kind of edit is applied at every place of the run where it makes sense. An edit that removes a line must be detected at
the next line that depends on it, which is determined here from the text of the logs and the job graph, not with the model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from streamproof.conformance.flink import graph_of
from streamproof.conformance.flink.graph import producers_of
from tampering import edits as common
from tampering.edits import Edit, Outcome, Record

MODEL = "failover"
RUNS = (
    *("more/rand2", "more/stream", "more/global", "more/pipe", "logs/a-pipelined-1", "logs/a-taskfail-1"),
    *("logs/a-taskfail-2", "logs/b-delfile-1", "logs/b-lostpart-1", "logs/b-lostpart-2", "logs/b117-lostpart-1"),
    *("logs/c-disjoint-1", "logs/d-credit-3", "logs/k-insufficient-buffers-1", "logs/m-job-failed-1"),
)
"""Recorded runs in `tests/data/flink` for the table."""
DECISIONS = ("failover.restart", "failover.global.restart")

Task = tuple[str, int]
"""Vertex and subtask."""


@dataclass(slots=True)
class JobRun(common.Run):
    """A recorded run. Only its first job is edited."""

    master: str = field(init=False)
    job: str = field(init=False)
    readers: dict[Task, set[Task]] = field(init=False)
    """Tasks -> tasks that read them over an exchange that is not pipelined."""
    peers: dict[Task, set[Task]] = field(init=False)
    """Tasks -> tasks that they are connected to."""

    def __post_init__(self) -> None:
        common.Run.__post_init__(self)
        self.job = next(iter(self.logged.jobs))
        self.master = next(
            f for f, rs in self.files.items() if any(r.event and r.event.event == "exec.transition" for r in rs)
        )
        self._connect()

    def _connect(self) -> None:
        graph = graph_of(self.logged, self.job)
        size = {v.id: v.parallelism or 1 for v in graph.vertices}
        self.readers, self.peers = {}, {}
        for edge in graph.edges:
            for reader in range(size[edge.target]):
                for producer in producers_of(
                    edge.pattern or "ALL_TO_ALL", size[edge.source], size[edge.target], reader
                ):
                    ends = (edge.source, producer), (edge.target, reader)
                    self.peers.setdefault(ends[0], set()).add(ends[1])
                    self.peers.setdefault(ends[1], set()).add(ends[0])
                    if "PIPELINED" not in (edge.exchange or ""):
                        self.readers.setdefault(ends[0], set()).add(ends[1])

    def of(self, *names: str, new: str | None = None, file: str | None = None) -> list[Record]:
        """The job's records of these events in a file, the JobManager's by default."""
        return [
            r
            for r in self.files[file or self.master]
            if r.event
            and r.event.event in names
            and r.event.trace == self.job
            and new in (None, r.event.args.get("new"))
        ]


def task_of(record: Record) -> Task:
    """The task of a record."""
    return record.logged_event.args["vertex"], record.logged_event.args["subtask"]


def attempt_of(record: Record) -> str:
    """The attempt of a record."""
    text: str = record.logged_event.args["attempt"]
    return text


def without(records: list[Record], *removed: Record) -> list[Record]:
    """The records without some."""
    return [r for r in records if r not in removed]


def replaced(records: list[Record], old: Record, new: Record) -> list[Record]:
    """The records with one replaced."""
    return [new if r is old else r for r in records]


def moved(records: list[Record], what: list[Record], before: Record) -> list[Record]:
    """The records with some of them moved before another."""
    rest = without(records, *what)
    at = rest.index(before)
    return [*rest[:at], *what, *rest[at:]]


def after(records: list[Record], place: Record, new: Record) -> list[Record]:
    """The records with one inserted."""
    at = records.index(place) + 1
    return [*records[:at], new, *records[at:]]


def following(
    run: JobRun, records: Iterable[Record], place: Record, test: Callable[[Record], bool]
) -> tuple[Record, ...]:
    """The first of the job's records after `place` (which may be removed) that passes a test."""
    original = run.files[run.master]
    behind = set(map(id, original[original.index(place) + 1 :]))
    for r in records:
        if id(r) in behind and r.event is not None and r.event.trace == run.job and test(r):
            return (r,)
    return ()


# --- the edits


def decisions(run: JobRun) -> Iterator[Edit]:
    """Decisions to restart: removed, doubled, with another number of tasks, for another attempt."""
    file, records = run.master, run.files[run.master]
    attempts = list(dict.fromkeys(attempt_of(r) for r in run.of("exec.transition")))
    for r in run.of(*DECISIONS):
        count, named = r.logged_event.args["count"], r.logged_event.args.get("attempt")
        left = without(records, r)
        yield Edit("decision removed", str(r.logged_event), {file: left}, following(run, left, r, _moves_on))
        copy = r.again()
        yield Edit("decision doubled", str(r.logged_event), {file: after(records, r, copy)}, (copy,))
        for other in (count + 1, count - 1):
            new = r.edited((f"{count} tasks will", f"{other} tasks will"))
            kind = "decision for one task more" if other > count else "decision for one task fewer"
            yield Edit(kind, str(r.logged_event), {file: replaced(records, r, new)}, (new,))
        if named is not None:
            earlier = [a for a in attempts if a != named]
            number = int(named.rpartition("_")[2])
            for text in (earlier[0], earlier[-1], f"{named.rpartition('_')[0]}_{number + 1}"):
                new = r.edited((named, text))
                yield Edit(
                    "decision for another attempt",
                    f"{r.logged_event} -> {text}",
                    {file: replaced(records, r, new)},
                    (new,),
                )


def _moves_on(x: Record) -> bool:
    """Whether a line shows that the JobManager continued after a failure; slots are reassigned before it decides."""
    if x.logged_event.event == "exec.transition":
        return bool(x.logged_event.args["new"] != "DEPLOYING")
    return x.logged_event.event == "job.transition"


def global_failures(run: JobRun) -> Iterator[Edit]:
    """The report of a failure of the whole job is missing: the decision has no reason."""
    records = run.files[run.master]
    for before, r in pairwise([r for r in records if r.event]):
        if r.name == "failover.global.restart" and before.name == "failover.global":
            left = {run.master: without(records, before)}
            yield Edit("global failure removed", str(before.logged_event), left, (r,))


def failures(run: JobRun) -> Iterator[Edit]:
    """Failures followed by a decision: removed, or with another partition as their cause."""
    file, records = run.master, run.files[run.master]
    partitions = {
        e.args["partition"]: (e.args["dataset"], e.args["producer"])
        for e in run.logged.of_job(run.job)
        if "partition" in e.args
    }
    for r in run.of("exec.transition", new="FAILED"):
        left = without(records, r)
        answer = following(run, left, r, lambda x: x.logged_event.event in (*DECISIONS, "job.transition"))
        if answer and answer[0].logged_event.event in DECISIONS:
            yield Edit("failure removed", str(r.logged_event), {file: left}, answer)
        named = r.logged_event.args.get("partition")
        if named is None:
            continue
        dataset, producer = partitions[named]
        place = producer.rpartition("_")[0]
        others = [p for p, (d, m) in partitions.items() if d == dataset and m.rpartition("_")[0] != place]
        strangers = [
            p for p, (d, m) in partitions.items() if d != dataset and m.split("_")[1] != producer.split("_")[1]
        ]
        for kind, choice in (("another subtask's partition", others), ("another vertex's partition", strangers)):
            for other in choice[:2]:
                new = r.edited((named, other))
                yield Edit(
                    f"cause names {kind}",
                    f"{r.logged_event.line}: {other}",
                    {file: replaced(records, r, new)},
                    (new,),
                )


def scheduling(run: JobRun) -> Iterator[Edit]:
    """Consumers deployed before their producers finish, and producers that never finish."""
    file, records = run.master, run.files[run.master]
    finished = run.of("exec.transition", new="FINISHED")
    place = {id(r): at for at, r in enumerate(records)}
    for r in run.of("exec.transition", new="SCHEDULED"):
        makers = [f for f in finished if task_of(r) in run.readers.get(task_of(f), ()) and place[id(f)] < place[id(r)]]
        if not makers:
            continue
        last = makers[-1]
        since = [
            x
            for x in run.of("exec.transition")
            if task_of(x) == task_of(r) and place[id(last)] < place[id(x)] < place[id(r)]
        ]
        if since:
            continue
        group = [
            x
            for x in run.of("exec.transition", "exec.deploy")
            if attempt_of(x) == attempt_of(r)
            and (x.logged_event.event == "exec.deploy" or x.logged_event.args["new"] in ("SCHEDULED", "DEPLOYING"))
        ]
        yield Edit(
            "consumer deployed before its producer finished",
            str(r.logged_event),
            {file: moved(records, group, last)},
            (r,),
        )
    for f in finished:
        left = without(records, f)

        def depends(x: Record, f: Record = f) -> bool:
            args = x.logged_event.args
            same = (
                args.get("subtask") == f.logged_event.args["subtask"]
                and args.get("number") == f.logged_event.args["number"]
            )
            if x.logged_event.event == "exec.ignored":
                return bool(same and args["task"] == f.logged_event.args["task"])
            if x.logged_event.event == "exec.transition":
                mine = same and args["vertex"] == f.logged_event.args["vertex"]
                return bool(mine) or (args["new"] == "SCHEDULED" and task_of(x) in run.readers.get(task_of(f), ()))
            return bool(x.logged_event.event == "job.transition" and args["new"] == "FINISHED")

        yield Edit("FINISHED line removed", str(f.logged_event), {file: left}, following(run, left, f, depends))


def attempts(run: JobRun) -> Iterator[Edit]:
    """Attempt numbers used twice or left out; finished tasks that run again; restarts of tasks that were not to restart."""
    file, records = run.master, run.files[run.master]
    scheduled = run.of("exec.transition", new="SCHEDULED")
    latest = {task_of(r): r for r in scheduled}
    for r in scheduled:
        number, stem = r.logged_event.args["number"], attempt_of(r).rpartition("_")[0]
        for kind, new in (("attempt number used again", number - 1), ("attempt number left out", number + 1)):
            if number == 0 or latest[task_of(r)] is not r:
                continue
            pattern = re.compile(rf"{re.escape(stem)}_{number}(?!\d)")
            files = {
                name: [Record(pattern.sub(f"{stem}_{new}", x.text), x.event) if stem in x.text else x for x in rs]
                for name, rs in run.files.items()
            }
            at = files[file][records.index(r)]
            yield Edit(kind, str(r.logged_event), files, (at,))
    for f in run.of("exec.transition", new="FINISHED"):
        for kind, old in (
            ("FINISHED task runs again", "FINISHED to RUNNING"),
            ("RUNNING line after FINISHED", "INITIALIZING to RUNNING"),
        ):
            again = f.edited(("RUNNING to FINISHED", old), ("INITIALIZING to FINISHED", old))
            # Within the same millisecond, such a line would equal another line of the log: a duplicate delivery.
            if all(again.text != record.text for record in records):
                yield Edit(kind, str(f.logged_event), {file: after(records, f, again)}, (again,))
        early = f.edited(("RUNNING to FINISHED", "RUNNING to CANCELING"))
        yield Edit(
            "CANCELING of a task that nobody cancels",
            str(f.logged_event),
            {file: [y for x in records for y in ((early, x) if x is f else (x,))]},
            (early,),
        )
    for back in run.of("job.transition", new="RUNNING"):
        if back.logged_event.args["old"] != "RESTARTING":
            continue
        known = set(map(id, records[: records.index(back)]))
        before = {task_of(r): r for r in scheduled if id(r) in known}
        for task, r in before.items():
            number = r.logged_event.args["number"]
            if any(task_of(x) == task and id(x) not in known for x in scheduled):
                continue
            stem = attempt_of(r).rpartition("_")[0]
            extra = r.edited((f"{stem}_{number}", f"{stem}_{number + 1}"))
            yield Edit(
                "task restarted that was not to restart",
                f"{r.logged_event} at {back.logged_event.line}",
                {file: after(records, back, extra)},
                (extra,),
            )
    for task, r in latest.items():
        if r.logged_event.args["number"] == 0:
            continue
        gone = attempt_of(r)
        files = {
            name: [
                x
                for x in rs
                if gone not in x.text.partition("\n")[0] or (x.event and x.logged_event.event in DECISIONS)
            ]
            for name, rs in run.files.items()
        }

        def misses(x: Record, task: Task = task) -> bool:
            args = x.logged_event.args
            if x.logged_event.event == "exec.transition":
                # Flink schedules as much as possible first, and regions as a whole.
                reads = args["new"] == "SCHEDULED" and task_of(x) in run.readers.get(task, ())
                return reads or args["new"] not in ("SCHEDULED", "DEPLOYING")
            return x.logged_event.event in DECISIONS or (
                x.logged_event.event == "job.transition" and args["new"] != "RUNNING"
            )

        yield Edit(
            "task of the set never restarted", str(r.logged_event), files, following(run, files[file], r, misses)
        )


def jobs(run: JobRun) -> Iterator[Edit]:
    """Lines of the job itself: removed, or its end before the end of its tasks."""
    file, records = run.master, run.files[run.master]
    for j in run.of("job.transition"):
        left = without(records, j)
        next_one = following(
            run, left, j, lambda x: x.logged_event.event in ("exec.transition", "exec.deploy", "job.transition")
        )
        if next_one:
            yield Edit("line of the job removed", str(j.logged_event), {file: left}, next_one)
        if j.logged_event.args["new"] == "FINISHED":
            last = run.of("exec.transition", new="FINISHED")[-1]
            yield Edit("job FINISHED while a task runs", str(j.logged_event), {file: moved(records, [j], last)}, (j,))
    for d in run.of("exec.deploy"):
        copy = d.again()
        yield Edit("Deploying line doubled", str(d.logged_event), {file: after(records, d, copy)}, (copy,))


def swaps(run: JobRun) -> Iterator[Edit]:
    """Two adjacent lines exchanged; for lines about different tasks, this is often legal."""
    file, records = run.master, run.files[run.master]
    followed = run.of("exec.transition", "exec.deploy", "job.transition", *DECISIONS)
    for first, second in pairwise(followed):
        same = first.logged_event.args.get("attempt") == second.logged_event.args.get("attempt")
        swapped = moved(records, [second], first)
        names = {first.logged_event.event, second.logged_event.event}
        # The job continues while its last tasks are cancelled or others finish; a restart waits for these lines.
        legal = (
            not same
            and names.isdisjoint(DECISIONS)
            and {"SCHEDULED", "CANCELING"}.isdisjoint(
                r.logged_event.args.get("new") for r in (first, second) if "job.transition" in names and r.event
            )
        )
        kind = "neighbours of one attempt exchanged" if same else "neighbours exchanged"
        yield Edit(
            kind, f"{first.logged_event} <> {second.logged_event}", {file: swapped}, (second, first), may_be_legal=legal
        )


def executors(run: JobRun) -> Iterator[Edit]:
    """The TaskManagers' logs."""
    for file, records in run.files.items():
        if file == run.master:
            continue
        final = {attempt_of(r): r for r in run.of("tm.final", file=file)}
        for f in run.of("tm.transition", new="FINISHED", file=file):
            again = f.edited(("RUNNING to FINISHED", "INITIALIZING to RUNNING"))
            yield Edit(
                "TaskManager: RUNNING line after FINISHED",
                str(f.logged_event),
                {file: after(records, f, again)},
                (again,),
            )
            if attempt_of(f) in final:
                yield Edit(
                    "TaskManager: FINISHED line removed",
                    str(f.logged_event),
                    {file: without(records, f)},
                    (final[attempt_of(f)],),
                )
        for s in run.of("tm.submit", file=file):
            copy = s.again()
            yield Edit(
                "TaskManager: task received twice", str(s.logged_event), {file: after(records, s, copy)}, (copy,)
            )
            left = without(records, s)
            at = next((r for r in run.of("tm.transition", file=file) if attempt_of(r) == attempt_of(s)), None)
            if at is not None:
                # Without its only such line, the log is one of a TaskManager that does not write them.
                only = len(run.of("tm.submit", file=file)) == 1
                yield Edit(
                    "TaskManager: received line removed", str(s.logged_event), {file: left}, (at,), may_be_legal=only
                )
        for p in run.of("part.reqlocal", "part.reqremote", "net.partreq.client", file=file):
            producer = p.logged_event.args["producer"]
            if "by" in p.logged_event.args:
                other = f"{producer.rpartition('_')[0]}_{int(producer.rpartition('_')[2]) + 1}"
                new = p.edited((producer, other))
                yield Edit(
                    "TaskManager: asks for another attempt's partition",
                    str(p.logged_event),
                    {file: replaced(records, p, new)},
                    (new,),
                )
        for p in run.of("part.registered", file=file):
            same = (p.logged_event.args["dataset"], p.logged_event.args["producer"])
            used = [
                r
                for r in run.of("part.request", "part.released", file=file)
                if (r.logged_event.args["dataset"], r.logged_event.args["producer"]) == same
            ]
            if used:
                left = without(records, p)
                yield Edit("TaskManager: Registered line removed", str(p.logged_event), {file: left}, (used[0],))


KINDS = (decisions, global_failures, failures, scheduling, attempts, jobs, swaps, executors)


def edits(folder: Path) -> Iterator[Edit]:
    """All edits of a run."""
    run = JobRun(folder)
    for kind in KINDS:
        yield from kind(run)


def outcome(folder: Path, edit: Edit) -> Outcome:
    """The verdict on an edit."""
    return common.outcome(folder, edit)
