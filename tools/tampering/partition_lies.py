"""Edits of the lines about result partitions, outputs of attempts and connections in recorded runs of Flink."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tampering import edits as common
from tampering.edits import Edit, Outcome, Record, Run

MODEL = "partition_lifecycle"
RUNS = (
    *(
        "logs/a-pipelined-1",
        "logs/a-taskfail-1",
        "logs/a-taskfail-2",
        "logs/b-lostpart-1",
        "logs/b117-lostpart-1",
        "logs/f-clean-batch-1",
    ),
    *("logs/g-jmloss-1", "logs/m-job-failed-1", "more/pipe", "live/debug-stream-kill"),
)
"""Recorded runs in `tests/data/flink` for the table."""
ENDED = ("FINISHED", "CANCELED", "FAILED")


def own(run: Run, file: str, record: Record, *names: str) -> list[tuple[int, Record]]:
    """The records of a file about the partition of another one, with positions."""
    about = record.arg("dataset"), record.arg("producer")
    return [
        (at, r)
        for at, r in enumerate(run.files[file])
        if r.name in names and (r.arg("dataset"), r.arg("producer")) == about
    ]


def doubles(run: Run) -> Iterator[Edit]:
    """Something that happens once happens twice."""
    kinds = {
        "part.registered": "registered twice",
        "part.released": "released twice",
        "part.releasing": "release begun twice",
        "part.consumed": "consumed twice",
        "part.init": "set up twice",
        "gate.released": "input gate released twice",
    }
    for file, at, r in run.all(*kinds):
        if r.arg("type").startswith("HYBRID"):
            continue
        copy = r.again()
        yield Edit(kinds[r.name], r.text[:200], run.replaced((file, at, [r, copy])), (copy,))
    for file, at, r in run.all("part.tmrelease"):
        blocking = any(
            x.arg("type") == "BLOCKING" and x.arg("partition") in r.text
            for x in run.files[file]
            if x.name == "part.registered"
        )
        if "job" not in r.logged_event.args and blocking:
            copy = r.again()
            yield Edit("told to release twice", r.text[:200], run.replaced((file, at, [r, copy])), (copy,))


def reading(run: Run) -> Iterator[Edit]:
    """A partition is read that is not there: before it is stored, after its release, without registration."""
    for file, at, r in run.all("part.released"):
        requests = own(run, file, r, "part.request")
        if requests and requests[-1][0] < at and requests[-1][1].arg("type") == "BLOCKING":
            new = requests[-1][1].at_time_of(r)
            files = run.replaced((file, requests[-1][0], []), (file, at, [r, new]))
            yield Edit("read after its release", r.text[:200], files, (new,))
    for file, at, r in run.all("part.registered"):
        used = own(run, file, r, "part.request", "part.releasing", "part.released", "part.view")[:1]
        used += [
            (n, x)
            for n, x in enumerate(run.files[file])
            if x.name in ("part.file", "part.subfinished", "part.subreleased")
            and r.arg("producer") in (x.arg("by"), x.arg("attempt"))
        ][:1]
        if used:
            at_one = tuple(x for _, x in used)
            yield Edit("never registered", r.text[:200], run.replaced((file, at, [])), at_one)
        ended = [
            n
            for n, x in enumerate(run.files[file])
            if x.name == "tm.transition" and x.arg("attempt") == r.arg("producer") and x.arg("new") == "FINISHED"
        ]
        first = own(run, file, r, "part.request")
        if r.arg("type") == "BLOCKING" and ended and first and first[0][0] > ended[0]:
            asked = [n for n, _ in own(run, file, r, "part.reqlocal", "net.partreq") if n < first[0][0]]
            new = first[0][1].at_time_of(run.files[file][ended[0] - 1])
            finish = run.files[file][ended[0]]
            files = run.replaced((file, first[0][0], []), (file, ended[0], [new, finish]))
            if asked:
                yield Edit("read before it is stored", r.text[:200], files, (new,))
    for file, at, r in run.all("part.request"):
        views = [x for x in own(run, file, r, "part.view") if x[0] > at]
        if views and r.arg("type").startswith("PIPELINED"):
            yield Edit("view without a request", r.text[:200], run.replaced((file, at, [])), (views[0][1],))


def releases(run: Run) -> Iterator[Edit]:
    """A partition is released although nobody said so, while it is read, or never."""
    for file, at, r in run.all("part.tmrelease"):
        names = r.logged_event.args["partitions"]
        stored = [x for x in run.files[file] if x.name == "part.registered" and x.arg("partition") in names]
        stored = [x for x in stored if x.arg("type") == "BLOCKING" and _finished(run, file, x, at)]
        if not stored:
            continue
        gone = [own(run, file, x, "part.released") for x in stored]
        if "job" not in r.logged_event.args:
            at_once = tuple(x for found in gone for _, x in found)
            if at_once:
                yield Edit("released without being told", r.text[:200], run.replaced((file, at, [])), at_once)
            yield from _while_read(run, file, at, r, stored)
            yield from _kept(run, file, at, r, stored[0])


def _finished(run: Run, file: str, registered: Record, at: int) -> bool:
    return any(
        x.name == "tm.transition" and x.arg("attempt") == registered.arg("producer") and x.arg("new") == "FINISHED"
        for x in run.files[file][:at]
    )


def _while_read(run: Run, file: str, at: int, r: Record, stored: list[Record]) -> Iterator[Edit]:
    """The TaskManager is told to release a partition before one of its tasks that read it has finished."""
    records = run.files[file]
    for x in stored:
        readers = {y.arg("by"): n for n, y in own(run, file, x, "part.reqlocal") if n < at and y.arg("by")}
        for reader, asked in readers.items():
            final = next(
                (n for n, y in enumerate(records) if y.name == "tm.final" and y.arg("attempt") == reader), None
            )
            if final is not None and asked < final < at and records[final].arg("new") == "FINISHED":
                files, new = run.moved(file, at, final)
                yield Edit("released while it is read", r.text[:200], files, (new,))
                return


def _kept(run: Run, file: str, at: int, r: Record, x: Record) -> Iterator[Edit]:
    """A partition is in no list, and not released; the last list of the job shows it."""
    last = [n for n, y in enumerate(run.files[file]) if y.name == "part.tmrelease" and "job" in y.logged_event.args]
    if not last or last[-1] < at:
        return
    name = x.arg("partition")
    new = r.edited((f", {name}", ""), (f"{name}, ", ""), (name, ""))
    gone = [n for n, _ in own(run, file, x, "part.releasing", "part.released")]
    final = next((run.files[file][n] for n in last if n > at), None)
    if final is not None:
        files = run.replaced((file, at, [new]), *((file, n, []) for n in gone))
        yield Edit("never released", r.text[:200], files, (final,))


def masters(run: Run) -> Iterator[Edit]:
    """Results of an attempt at work are discarded; a connection is closed for want of heartbeats that nobody missed."""
    for file, at, r in run.all("exec.discard"):
        ended = [
            n
            for n, x in enumerate(run.files[file][:at])
            if x.name == "exec.transition" and x.arg("attempt") == r.arg("attempt") and x.arg("new") in ENDED
        ]
        if ended and ended[0] > 0:
            files, new = run.moved(file, at, ended[0])
            yield Edit("results of an attempt at work discarded", r.text[:200], files, (new,))
    for file, at, r in run.all("rm.close"):
        why = r.arg("why")
        lost = [
            n
            for n, x in enumerate(run.files[file][:at])
            if x.name in ("hb.timeout", "hb.unreachable")
            and x.arg("id") == r.arg("tm")
            and "Resource" in x.arg("component")
        ]
        if lost and ("timed out" in why or "no longer reachable" in why):
            files = run.replaced(*((file, n, []) for n in lost))
            yield Edit("heartbeat time-out that never comes", r.text[:200], files, (r,))
        copy = r.again()
        yield Edit("connection closed twice", r.text[:200], run.replaced((file, at, [r, copy])), (copy,))


KINDS = (doubles, reading, releases, masters)


def edits(folder: Path) -> Iterator[Edit]:
    """All edits of a run."""
    run = Run(folder)
    for kind in KINDS:
        yield from kind(run)


def outcome(folder: Path, edit: Edit) -> Outcome:
    """The verdict on an edit."""
    return common.outcome(folder, edit, MODEL)
