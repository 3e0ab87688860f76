"""A recorded run of Flink as records, its edits, and the verdicts on them."""

from __future__ import annotations

import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from streamproof.conformance import Event, RunVerdict, validate_paths
from streamproof.conformance.flink import FlinkRun, read_run
from streamproof.conformance.flink.log_records import read_head

TIME = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[,.]\d{3}")


@dataclass(eq=False, slots=True)
class Record:
    """A record of a log: its lines, and the event read from it."""

    text: str
    event: Event | None = None

    @property
    def logged_event(self) -> Event:
        """The event of the record. Raises `ValueError` if it has none."""
        if self.event is None:
            raise ValueError(f"no event is in {self.text!r}")
        return self.event

    @property
    def name(self) -> str:
        """The family of the event, or empty."""
        return self.event.event if self.event else ""

    def arg(self, name: str) -> str:
        """An argument of the event."""
        return str(self.event.args.get(name, "")) if self.event else ""

    def edited(self, *changes: tuple[str, str]) -> Record:
        """A copy with texts replaced."""
        text = self.text
        for old, new in changes:
            text = text.replace(old, new)
        return Record(text, self.event)

    def again(self) -> Record:
        """A copy that was logged a millisecond later: a line that is there twice with its time was delivered twice."""
        return self.at_time_of(self)

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
    """One edit of some files. `at` are the records of which one must be rejected; `may_be_legal`: or none."""

    kind: str
    what: str
    files: Files
    at: tuple[Record, ...]
    may_be_legal: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """The verdict on an edit: `place` is (file, line) of the rejection, None without one; `hit`: it is the edited line."""

    kind: str
    what: str
    verdict: str
    place: tuple[str, int] | None
    hit: bool
    message: str
    expected: frozenset[tuple[str, int]] = frozenset()
    may_be_legal: bool = False

    @property
    def is_missed(self) -> bool:
        """Whether the edit was not rejected although it is a lie, or elsewhere."""
        return not self.hit and not (self.may_be_legal and self.place is None)


@dataclass(slots=True)
class Run:
    """A recorded run."""

    folder: Path
    logged: FlinkRun = field(init=False)
    files: Files = field(init=False)

    def __post_init__(self) -> None:
        self.logged = read_run(self.folder)
        self.files = {}
        events = {(Path(e.file or "").name, e.line): e for e in self.logged.events}
        for path in sorted(self.folder.glob("*.log")):
            records = self.files.setdefault(path.name, [])
            for number, text in enumerate(path.read_text().splitlines(keepends=True), 1):
                event = events.get((path.name, number))
                if event is not None or not records or read_head(text.rstrip("\n")) is not None:
                    records.append(Record(text, event))
                else:
                    records[-1].text += text

    @property
    def version(self) -> str:
        """The version of Flink, or empty."""
        return self.logged.version or ""

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


def outcome(folder: Path, edit: Edit, model: str | None = None) -> Outcome:
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
        verdicts = validate_paths([target], model=model)
        for path in target.glob("*.log"):
            if path.name not in edit.files:
                places |= {(path.name, line) for line in _lines_in(path, edit)}
    found = [(v, _place(v)) for v in verdicts if v.answer == "rejected"]
    # An edit may contradict the lines of several jobs.
    found.sort(key=lambda rejected: rejected[1] not in places)
    verdict, place = found[0] if found else (verdicts[0], None)
    said = verdict.reason or ""
    return Outcome(
        edit.kind, edit.what, verdict.answer, place, place in places, said, frozenset(places), edit.may_be_legal
    )


def _place(verdict: RunVerdict) -> tuple[str, int] | None:
    """File and line of a rejection."""
    loc = verdict.rejection.event.loc if verdict.rejection and verdict.rejection.event else None
    return None if loc is None else (Path(loc.file).name, loc.line)


def _lines_in(path: Path, edit: Edit) -> Iterator[int]:
    """The lines of the records in a file that was not edited."""
    for record in edit.at:
        if record.event and record.event.line and Path(record.event.file or "").name == path.name:
            yield record.event.line


def table(outcomes: Iterable[Outcome], *, places: bool = False) -> str:
    """Number of edits and detections by kind, as Markdown; `places`: with the place of the first that was rejected."""
    made, hit, near, missed = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    first: dict[str, str] = {}
    for o in outcomes:
        made[o.kind] += 1
        (hit if o.hit else missed if o.place is None else near)[o.kind] += 1
        if o.place is not None:
            first.setdefault(o.kind, f"{o.place[0]}:{o.place[1]}")
    heads = [
        "lie",
        "copies",
        "caught at the line",
        "caught elsewhere",
        "not caught",
        *(["first caught at"] if places else []),
    ]
    rows = [
        [k, str(made[k]), str(hit[k]), str(near[k]), str(missed[k]), *([first.get(k, "")] if places else [])]
        for k in made
    ]
    lines = [f"| {' | '.join(row)} |" for row in (heads, *rows)]
    return "\n".join([lines[0], "|---|--:|--:|--:|--:|" + ("---|" if places else ""), *lines[1:]])
