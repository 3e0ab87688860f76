"""Tampers with the lines about slots in recorded runs of Flink, one edit at a time, and reports the edits that validation
detects, and where.

    python tools/tamper_flink_slots.py RUN...            a table: edits made, rejected at the edited line, elsewhere, accepted
    python tools/tamper_flink_slots.py RUN... --list     also every edit that was not rejected at its line

RUN is a folder of logs. An edit that removes a line must be detected at the next line that depends on it.
"""

from __future__ import annotations

import argparse
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from streamproof.conformance import Event, validate_paths
from streamproof.conformance.flink import read_run
from streamproof.conformance.flink.log_lines import read_head

UNKNOWN = "beefbeefbeefbeefbeefbeefbeefbeef"
TIME = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[,.]\d{3}")
ENDED = ("FINISHED", "CANCELED", "FAILED")


@dataclass(eq=False, slots=True)
class Record:
    """A record of a log, with its event."""

    text: str
    event: Event | None = None

    @property
    def name(self) -> str:
        """The family of the event, or empty."""
        return self.event.event if self.event else ""

    def arg(self, name: str) -> str:
        """An argument of the event."""
        return str(self.event.args.get(name, "")) if self.event else ""

    def edited(self, old: str, new: str) -> Record:
        """A copy with a text replaced."""
        return Record(self.text.replace(old, new), self.event)

    def at_time_of(self, other: Record) -> Record:
        """A copy with the time of another record, a millisecond later."""
        found = TIME.search(other.text)
        if found is None:
            return self
        at = datetime.fromisoformat(found[0].replace(",", ".")) + timedelta(milliseconds=1)
        text = at.isoformat(sep=found[0][10], timespec="milliseconds").replace(".", found[0][19])
        return Record(TIME.sub(text, self.text, count=1), self.event)


Files = dict[str, list[Record]]


@dataclass(frozen=True, slots=True)
class Edit:
    """One edit of some files; `at` are the records of which one must be rejected."""

    kind: str
    what: str
    files: Files
    at: tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The verdict on an edit: `place` is (file, line) of the rejection, None without one."""

    edit: Edit
    verdict: str
    place: tuple[str, int] | None
    expected: frozenset[tuple[str, int]]
    message: str

    @property
    def hit(self) -> bool:
        """Whether the edited line was rejected."""
        return self.place in self.expected


@dataclass(slots=True)
class Run:
    """A recorded run."""

    folder: Path
    files: Files = field(default_factory=dict)
    version: str = ""

    def __post_init__(self) -> None:
        logged = read_run(self.folder)
        self.version = logged.version or ""
        events = {(Path(e.file or "").name, e.line): e for e in logged.events}
        for path in sorted(self.folder.glob("*.log")):
            records = self.files.setdefault(path.name, [])
            for number, text in enumerate(path.read_text().splitlines(keepends=True), 1):
                event = events.get((path.name, number))
                if event is not None or not records or read_head(text.rstrip("\n")) is not None:
                    records.append(Record(text, event))
                else:
                    records[-1].text += text

    def all(self, *names: str) -> Iterator[tuple[str, int, Record]]:
        """The records of some families, with file and position."""
        for file, records in self.files.items():
            yield from ((file, at, r) for at, r in enumerate(records) if r.name in names)

    def first(self, name: str, **args: str) -> tuple[str, int, Record] | None:
        """The first record of a family with some arguments."""
        return next((f for f in self.all(name) if all(f[2].arg(k) == v for k, v in args.items())), None)

    def replaced(self, *changes: tuple[str, int, list[Record]]) -> Files:
        """Files in which the record at a position is replaced by others."""
        files: Files = {}
        for file, at, new in sorted(changes, key=lambda c: -c[1]):
            records = files.setdefault(file, list(self.files[file]))
            records[at : at + 1] = new
        return files

    def moved(self, file: str, at: int, to: int) -> tuple[Files, Record]:
        """A file in which a record is before an earlier one, with its time."""
        records = list(self.files[file])
        new = records.pop(at).at_time_of(self.files[file][to - 1])
        records.insert(to, new)
        return {file: records}, new


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
            again = again.edited(record.arg("req"), UNKNOWN)
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
            new = record.edited(alloc, other)
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
                new = record.edited(mine, its)
                yield Edit("slot given to two of a vertex", record.text[:200], run.replaced((file, at, [new])), (new,))
                received = run.first("tm.submit", attempt=attempt)
                if received is not None:
                    place, there, line = received
                    active = next(n for n in range(there, 0, -1) if run.files[place][n].name == "slot.tm.activate")
                    files = run.replaced(
                        (file, at, [new]),
                        (place, there, [line.edited(mine, its)]),
                        (place, active, [run.files[place][active].edited(mine, its)]),
                    )
                    yield Edit("slot given to two of a vertex, by both sides", record.text[:200], files, (new,))
                break
        live[attempt] = record


def lost(run: Run) -> Iterator[Edit]:
    """A slot of a lost TaskManager is allocated, or has a deployment."""
    allocated = next((r for _, _, r in run.all("slot.rm.alloc") if r.arg("alloc")), None)
    for file, at, record in run.all("rm.close"):
        if allocated is not None:
            new = allocated.edited(allocated.arg("alloc"), UNKNOWN).at_time_of(record)
            new = new.edited(f" from {allocated.arg('tm')} ", f" from {record.arg('tm')} ")
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
            new = deployment.edited(deployment.arg("alloc"), places[0].arg("alloc"))
            new = new.edited(f" to {deployment.arg('tm')} @", f" to {record.arg('tm')} @")
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


KINDS = (duplicates, identifiers, sharing, lost, unoffered, running, unasked)


def edits(folder: Path) -> Iterator[Edit]:
    """All edits of a run."""
    run = Run(folder)
    for kind in KINDS:
        yield from kind(run)


def outcome(folder: Path, edit: Edit) -> Outcome:
    """Validates the edited run, in a separate folder."""
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch, folder.name)
        target.mkdir()
        for path in folder.iterdir():
            if path.name not in edit.files:
                os.symlink(path.resolve(), target / path.name)
        places: set[tuple[str, int]] = set()
        for name, records in edit.files.items():
            number, texts = 1, []
            for record in records:
                if record in edit.at:
                    places.add((name, number))
                texts.append(record.text)
                number += record.text.count("\n")
            (target / name).write_text("".join(texts))
        verdicts = validate_paths([target], model="slot_pool")
        for path in target.glob("*.log"):
            if path.name not in edit.files:
                places |= _places(path, edit)
    verdict = next((v for v in verdicts if v.answer == "rejected"), verdicts[0])
    loc = verdict.rejection.event.loc if verdict.rejection and verdict.rejection.event else None
    place = None if loc is None else (Path(loc.file).name, loc.line)
    return Outcome(edit, verdict.answer, place, frozenset(places), verdict.reason or "")


def _places(path: Path, edit: Edit) -> set[tuple[str, int]]:
    """The places of the records in a file that was not edited."""
    return {
        (path.name, r.event.line)
        for r in edit.at
        if r.event and r.event.line and Path(r.event.file or "").name == path.name
    }


def table(outcomes: Iterable[Outcome]) -> str:
    """Number of edits and detections by kind, as Markdown."""
    made, hit, near, missed = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for o in outcomes:
        made[o.edit.kind] += 1
        (hit if o.hit else missed if o.place is None else near)[o.edit.kind] += 1
    rows = [f"| {k} | {made[k]} | {hit[k]} | {near[k]} | {missed[k]} |" for k in made]
    return "\n".join(
        ["| edit | made | rejected at the line | rejected elsewhere | not rejected |", "|---|--:|--:|--:|--:|", *rows]
    )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--list", action="store_true", help="print the edits that were not rejected at their line")
    parser.add_argument("--kind", default="", help="only kinds of edits with this text in their name")
    parser.add_argument("--every", type=int, default=1, help="only every n-th edit of a kind in a run")
    given = parser.parse_args()
    outcomes: list[Outcome] = []
    for folder in given.runs:
        seen: Counter[str] = Counter()
        for edit in edits(folder):
            seen[edit.kind] += 1
            if given.kind in edit.kind and (seen[edit.kind] - 1) % given.every == 0:
                found = outcome(folder, edit)
                outcomes.append(found)
                if given.list and not found.hit:
                    print(f"{folder.name}: {edit.kind}: {edit.what[:300].strip()}")
                    print(
                        f"    {found.verdict} at {found.place}, expected {sorted(found.expected)}: {found.message[:300]}"
                    )
    print(table(outcomes))


if __name__ == "__main__":
    main()
