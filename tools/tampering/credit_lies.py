"""Edits of recorded traces of credit-based flow control, one record at a time.

An edit hits if the first rejected record is the edited one; for a removed record, if it is the next record of the same
channel, at either end, that depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from streamproof.conformance import Event, Plan, judge
from streamproof_models.credit_channel import BLOCKING, DATA
from streamproof_specs.credit_channel.flink.following import channel_case, merged
from streamproof_specs.credit_channel.flink.nesting import by_channel
from streamproof_specs.credit_channel.flink.records import Recorded, Recording, read_recording, trace_runs
from tampering.edits import Outcome

MODEL = "credit_channel"
RUNS = ("credit/k-2x2-e2-f3-batch",)
"""Recorded runs in `tests/data/flink` for the table."""

NUMBERS: dict[str, tuple[str, ...]] = {
    "c.excl_request": ("n",),
    "c.request": ("initial",),
    "c.recv": ("seq", "backlog", "bytes"),
    "c.recv_empty": ("seq", "backlog"),
    "c.backlog": ("backlog",),
    "c.float_request": ("want", "got"),
    "c.credit_gain": ("n",),
    "c.credit_announce": ("n",),
    "c.poll": ("seq", "bytes"),
    "p.request": ("initial",),
    "p.credit_add": ("n",),
    "p.send": ("seq", "backlog", "bytes", "partials"),
    "p.backlog_announce": ("backlog",),
}
"""Numeric arguments and results of each call."""

COUNTERS = ("unannounced", "excl", "float", "required", "queued", "next_seq", "credits", "backlog_now", "queue")
"""Numeric fields of the state in records."""

FLAGS = ("waiting", "blocked", "got", "taken")
"""Boolean fields of the state in records."""

Change = Callable[[dict[str, list[Recorded]]], None]


@dataclass(frozen=True, slots=True)
class RecordEdit:
    """One edit of one record: its kind, the record, and the change of the records of the run."""

    kind: str
    record: Recorded
    change: Change
    removes: bool = False

    @property
    def what(self) -> str:
        """The edited record."""
        return f"{Path(self.record.event.file or '').name}:{self.record.event.line}"


@dataclass(slots=True)
class Tampering:
    """A recorded run and its edits."""

    recording: Recording

    @classmethod
    def of(cls, path: Path) -> Tampering:
        """The one run under a path."""
        (run,) = trace_runs(path)
        return cls(read_recording(run))

    def edits(self) -> Iterator[RecordEdit]:
        """All edits, record by record."""
        for process, records in self.recording.processes.items():
            for at, record in enumerate(records):
                if record.channel:
                    yield from self._of_record(process, records, at)

    def _of_record(self, process: str, records: Sequence[Recorded], at: int) -> Iterator[RecordEdit]:
        record = records[at]
        name, args = record.name, record.event.args
        yield RecordEdit(
            f"{name} removed", record, lambda ps: ps.__setitem__(process, _without(ps[process], record)), True
        )
        for field in NUMBERS.get(name, ()):
            number = record.number(field)
            if number is not None:
                yield self._changed(process, record, f"{name}: {field} + 1", **{field: number + 1})
        for field in COUNTERS:
            number = record.number(field)
            if number is not None:
                yield self._changed(process, record, f"{field} + 1", **{field: number + 1})
        for field in FLAGS:
            if isinstance(args.get(field), bool):
                yield self._changed(process, record, f"{field} negated", **{field: not args[field]})
        if name == "p.credit_add":
            yield self._changed(process, record, "credit doubled", n=2 * int(args["n"]))
        if name in ("p.credit_add", "p.send", "c.recv", "c.credit_announce"):
            yield self._repeated(process, record)
        if name == "p.send" and args.get("type") in BLOCKING:
            yield from self._swapped(process, records, at)

    def _changed(self, process: str, record: Recorded, kind: str, **values: Any) -> RecordEdit:
        other = replace(record, event=replace(record.event, args={**record.event.args, **values}))
        return RecordEdit(
            kind, record, lambda ps: ps.__setitem__(process, [other if r is record else r for r in ps[process]])
        )

    def _repeated(self, process: str, record: Recorded) -> RecordEdit:
        """The record repeated right after itself, with its own positions."""

        def change(processes: dict[str, list[Recorded]]) -> None:
            spread = [_moved(r) for r in processes[process]]
            at = next(i for i, r in enumerate(processes[process]) if r is record)
            again = spread[at]
            event = replace(again.event, seq=again.done + 2)
            spread.insert(at + 1, replace(again, event=event, begun=again.done + 1, done=again.done + 2))
            processes[process] = spread

        return RecordEdit(f"{record.name} repeated", record, change, True)

    def _swapped(self, process: str, records: Sequence[Recorded], at: int) -> Iterator[RecordEdit]:
        """A barrier and adjacent data are swapped in the sent and in the received records."""
        barrier = records[at]
        mine = [r for r in records if r.channel == barrier.channel and r.name == "p.send"]
        place = next(i for i, r in enumerate(mine) if r is barrier)
        for other in mine[place - 1 : place] + mine[place + 1 : place + 2]:
            if other.event.args.get("type") in DATA:
                before = other.done < barrier.done
                kind = f"barrier swapped with the data {'before' if before else 'behind'} it, on both ends"
                yield RecordEdit(kind, min(barrier, other, key=lambda r: r.done), _swap(barrier, other), True)

    def outcome(self, edit: RecordEdit) -> Outcome:
        """The verdict of `validate` on the channel of the edited record."""
        processes = {p: list(rs) for p, rs in self.recording.processes.items()}
        edit.change(processes)
        recording = Recording(processes)
        channel = edit.record.channel
        records = dict(by_channel(recording)).get(channel, {})
        case = channel_case(channel, records, recording)
        events = tuple(merged([r for rs in records.values() for r in rs]))
        (verdict,) = judge(Plan("tampered", (case,), events), "credit_channel")
        event = verdict.rejection.event if verdict.rejection else None
        said = verdict.reason or ""
        if event is None or event.line is None:
            place = ("end of the record", 0) if verdict.rejection else None
            return Outcome(edit.kind, edit.what, verdict.answer, place, False, said)
        own = event.loc == edit.record.event.loc
        hit = own or (edit.removes and _soon(edit.record, event, records))
        place = (Path(event.file or "").name, event.line)
        return Outcome(edit.kind, edit.what, verdict.answer, place, hit, said)


def _soon(record: Recorded, rejected: Event, records: dict[str, list[Recorded]]) -> bool:
    """Whether the rejected record is the first that depends on the removed one.

    That is the next record in the same thread of the channel, the record that contains it or follows it, and the first that
    answers it at the other end."""
    mine = [r for r in records.get(record.event.process, []) if r.done > record.done]
    near = {r.event.line for r in mine[:8]} | {
        r.event.line for r in records.get(record.event.process, []) if record.begun <= r.done <= record.done
    }
    if rejected.file == record.event.file:
        return rejected.line in near
    return rejected.event in ANSWERS.get(record.name, ())


ANSWERS: dict[str, tuple[str, ...]] = {
    "p.send": ("c.buffer_taken", "c.blocked", "c.recv", "c.recv_empty"),
    "p.backlog_announce": ("c.backlog",),
    "c.credit_announce": ("p.credit_add",),
    "c.resume": ("p.resume",),
    "c.request": ("p.request",),
    "c.release": ("p.cancel",),
}
"""The records at the other end that answer one."""


def _without(records: list[Recorded], record: Recorded) -> list[Recorded]:
    return [r for r in records if r is not record]


def _moved(record: Recorded) -> Recorded:
    """The record with larger distances of positions, so that others fit in between."""
    return replace(
        record, event=replace(record.event, seq=record.done * 4), begun=record.begun * 4, done=record.done * 4
    )


def _swap(barrier: Recorded, other: Recorded) -> Change:
    """Swaps kinds, sizes and backlogs of two messages in all records of sending, receiving and taking."""
    seqs = {barrier.number("seq"): other, other.number("seq"): barrier}

    def change(processes: dict[str, list[Recorded]]) -> None:
        for process, records in processes.items():
            processes[process] = [
                replace(r, event=replace(r.event, args={**r.event.args, **_content(r, seqs[r.number("seq")])}))
                if r.channel == barrier.channel and r.number("seq") in seqs
                else r
                for r in records
            ]

    return change


def _content(record: Recorded, other: Recorded) -> dict[str, Any]:
    return {f: other.event.args[f] for f in ("type", "bytes", "backlog") if f in record.event.args}


@lru_cache(maxsize=1)
def _tampering(folder: Path) -> Tampering:
    return Tampering.of(folder)


def edits(folder: Path) -> Iterator[RecordEdit]:
    """All edits of a run."""
    return _tampering(folder).edits()


def outcome(folder: Path, edit: RecordEdit) -> Outcome:
    """The verdict on an edit."""
    return _tampering(folder).outcome(edit)
