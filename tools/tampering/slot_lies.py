"""Edits of the lines about slots in recorded runs of Flink, one at a time.

An edit that removes a line must be detected at the next line that depends on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tampering import edits as common
from tampering.edits import Edit, Outcome, Record, Run

MODEL = "slot_pool"
RUNS = (
    *("logs/b-lostpart-1", "logs/e-slots-1", "logs/g-jmloss-1", "logs/b117-lostpart-1", "logs/c-disjoint-1"),
    *("live/tm12-kill", "live/ckpt-expo", "live/debug-stream-kill"),
)
"""Recorded runs in `tests/data/flink` for the table."""
UNKNOWN = "beefbeefbeefbeefbeefbeefbeefbeef"
ENDED = ("FINISHED", "CANCELED", "FAILED")


def duplicates(run: Run) -> Iterator[Edit]:
    """A slot is allocated, reserved, freed or released a second time."""
    kinds = {
        "slot.tm.alloc": "allocated twice",
        "slot.rm.alloc": "allocated twice",
        "slot.jm.reserve": "reserved twice",
        "slot.tm.free": "freed twice",
        "slot.jm.releasing": "released twice",
    }
    for file, at, record in run.all(*kinds):
        if not record.arg("alloc") or record.arg("state") == "RELEASING":
            continue
        if record.name == "slot.jm.reserve" and not run.version.startswith("2."):
            continue
        again = record.at_time_of(record)
        if record.name == "slot.jm.reserve":
            again = again.edited((record.arg("req"), UNKNOWN))
        yield Edit(kinds[record.name], record.text[:200], run.replaced((file, at, [record, again])), (again,))


def identifiers(run: Run) -> Iterator[Edit]:
    """One process names another allocation."""
    for file, at, record in run.all("exec.deploy", "tm.submit", "slot.tm.activate", "slot.tm.alloc", "slot.jm.match"):
        alloc = record.arg("alloc")
        others = [UNKNOWN]
        if record.name == "tm.submit":
            others += [
                r.arg("alloc") for f, _, r in run.all("slot.tm.activate") if f == file and r.arg("alloc") != alloc
            ][:1]
        for other in others:
            kind = {
                "exec.deploy": "deployment names another slot",
                "tm.submit": "task received for another slot",
                "slot.tm.activate": "activated without allocation",
                "slot.tm.alloc": "allocated without request",
                "slot.jm.match": "accepted without offer",
            }[record.name]
            new = record.edited((alloc, other))
            yield Edit(kind, record.text[:200], run.replaced((file, at, [new])), (new,))


def sharing(run: Run) -> Iterator[Edit]:
    """A task is deployed into the slot of another subtask of its vertex, by the JobManager alone or by both sides."""
    live: dict[str, Record] = {}
    for file, at, record in run.all("exec.deploy", "exec.transition"):
        attempt = record.arg("attempt")
        if record.name == "exec.transition":
            if record.arg("new") in ENDED:
                live.pop(attempt, None)
            continue
        mine = record.arg("alloc")
        for other in live.values():
            its = other.arg("alloc")
            if (other.arg("vertex"), other.arg("tm")) == (record.arg("vertex"), record.arg("tm")) and its != mine:
                new = record.edited((mine, its))
                yield Edit("slot given to two of a vertex", record.text[:200], run.replaced((file, at, [new])), (new,))
                received = run.first("tm.submit", attempt=attempt)
                if received is not None:
                    place, there, line = received
                    active = next(n for n in range(there, 0, -1) if run.files[place][n].name == "slot.tm.activate")
                    files = run.replaced(
                        (file, at, [new]),
                        (place, there, [line.edited((mine, its))]),
                        (place, active, [run.files[place][active].edited((mine, its))]),
                    )
                    yield Edit("slot given to two of a vertex, by both sides", record.text[:200], files, (new,))
                break
        live[attempt] = record


def lost(run: Run) -> Iterator[Edit]:
    """A slot of a lost TaskManager is allocated, or has a deployment."""
    allocated = next((r for _, _, r in run.all("slot.rm.alloc") if r.arg("alloc")), None)
    for file, at, record in run.all("rm.close"):
        if allocated is not None:
            new = allocated.edited((allocated.arg("alloc"), UNKNOWN)).at_time_of(record)
            new = new.edited((f" from {allocated.arg('tm')} ", f" from {record.arg('tm')} "))
            yield Edit(
                "allocated on a dead executor", record.text[:200], run.replaced((file, at, [record, new])), (new,)
            )
    for file, at, record in run.all("jm.disconnect"):
        if record.arg("why").startswith("Stopping JobMaster"):
            continue
        places = [r for f, n, r in run.all("exec.deploy") if f == file and n < at and r.arg("tm") == record.arg("tm")]
        later = [
            (n, r) for f, n, r in run.all("exec.deploy") if f == file and n > at and r.arg("tm") != record.arg("tm")
        ]
        for n, deployment in later[:2] if places else ():
            new = deployment.edited((deployment.arg("alloc"), places[0].arg("alloc")))
            new = new.edited((f" to {deployment.arg('tm')} @", f" to {record.arg('tm')} @"))
            yield Edit("deployed on a dead executor", deployment.text[:200], run.replaced((file, n, [new])), (new,))


def unoffered(run: Run) -> Iterator[Edit]:
    """A slot that was not offered, or not accepted, is used."""
    for file, at, record in run.all("exec.deploy"):
        alloc = record.arg("alloc")
        before = [n for n, r in enumerate(run.files[file][:at]) if alloc in r.text and r.name == "slot.jm.offers"]
        if before and run.first("exec.deploy", alloc=alloc) == (file, at, record):
            files, new = run.moved(file, at, before[0])
            yield Edit("deployed before the slot was offered", record.text[:200], files, (new,))
    for file, at, record in run.all("slot.jm.match"):
        following = [
            r
            for r in run.files[file][at:]
            if r.arg("alloc") == record.arg("alloc") and r.name.startswith(("slot.jm.r", "exec"))
        ]
        if following and len(list(run.all("slot.jm.match"))) > 1:
            yield Edit(
                "deployed into a slot that was not accepted",
                record.text[:200],
                run.replaced((file, at, [])),
                (following[0],),
            )
    for file, at, record in run.all("slot.tm.offer"):
        slots = {r.arg("alloc") for r in run.files[file][:at] if r.name == "slot.tm.alloc"}
        if sum(r.name == "slot.tm.offer" for r in run.files[file]) != 1 or not slots:
            continue
        active = next((r for r in run.files[file] if r.name == "slot.tm.activate" and r.arg("alloc") in slots), None)
        if active is not None:
            yield Edit("activated without offer", record.text[:200], run.replaced((file, at, [])), (active,))


def running(run: Run) -> Iterator[Edit]:
    """A slot is freed while a task is in it."""
    for file, at, record in run.all("slot.tm.free"):
        alloc = record.arg("alloc")
        attempts = [r.arg("attempt") for r in run.files[file][:at] if r.name == "tm.submit" and r.arg("alloc") == alloc]
        ended = [
            n for n, r in enumerate(run.files[file][:at]) if r.name == "tm.final" and r.arg("attempt") in attempts[-1:]
        ]
        if ended and record.arg("state") == "ACTIVE":
            files, new = run.moved(file, at, ended[0])
            yield Edit("freed under a running task", record.text[:200], files, (new,))
    for file, at, record in run.all("slot.jm.freereserved"):
        alloc, before = record.arg("alloc"), run.files[file][:at]
        attempts = [r.arg("attempt") for r in before if r.name == "exec.deploy" and r.arg("alloc") == alloc]
        ended = [n for n, r in enumerate(before) if r.arg("attempt") in attempts[-1:] and r.arg("new") in ENDED]
        if ended:
            files, new = run.moved(file, at, ended[0])
            yield Edit("reserved slot freed under a running task", record.text[:200], files, (new,))


def unasked(run: Run) -> Iterator[Edit]:
    """A line is missing, and a later one depends on it."""
    following = {"slot.tm.request": "slot.tm.alloc", "slot.tm.alloc": "slot.tm.activate", "exec.deploy": "tm.submit"}
    for file, at, record in run.all("slot.tm.request", "slot.tm.alloc", "exec.deploy"):
        keys = ("attempt",) if record.name == "exec.deploy" else ("alloc",)
        then = run.first(following[record.name], **{k: record.arg(k) for k in keys})
        if then is None or len(list(run.all(record.name))) < 2:
            continue
        kind = {
            "slot.tm.request": "allocated without request",
            "slot.tm.alloc": "activated without allocation",
            "exec.deploy": "task received without deployment",
        }[record.name]
        yield Edit(kind, record.text[:200], run.replaced((file, at, [])), (then[2],))


def logical(run: Run) -> Iterator[Edit]:
    """A logical slot is allocated without a request, or twice, or removed twice."""
    if len(list(run.all("slot.logical.request"))) < 2:
        return
    for file, at, record in run.all("slot.logical.request"):
        allocated = run.first("slot.logical.alloc", lreq=record.arg("lreq"))
        if allocated is not None:
            files = run.replaced((file, at, []))
            yield Edit("logical slot allocated without request", record.text[:200], files, (allocated[2],))
    for file, at, record in run.all("slot.logical.alloc", "slot.logical.remove"):
        kind = "allocated" if record.name == "slot.logical.alloc" else "removed"
        again = record.again()
        yield Edit(f"logical slot {kind} twice", record.text[:200], run.replaced((file, at, [record, again])), (again,))


KINDS = (duplicates, identifiers, sharing, lost, unoffered, running, unasked, logical)


def edits(folder: Path) -> Iterator[Edit]:
    """All edits of a run."""
    run = Run(folder)
    for kind in KINDS:
        yield from kind(run)


def outcome(folder: Path, edit: Edit) -> Outcome:
    """The verdict on an edit."""
    return common.outcome(folder, edit, MODEL)
