"""Outline traces of a channel: the calls at its two ends as recorded by a general tracing agent, without buffer management.

A line is a call (``ph`` is ``call``) with the state before it, or its return (``ret``) with the state after it. The
consumer's gained credit is inferred from its unannounced credit; taking buffers and messages is not recorded, and
happens when required.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from streamproof.conformance import Constraint, Event, Move, Observation, Rules, Span, Task, Unit
from streamproof.conformance.flink import Problem, Problems, read_lines
from streamproof_models.credit_channel import BLOCKING, DATA
from streamproof_specs.credit_channel.flink.demands import field_equals, first_message, message_pending
from streamproof_specs.credit_channel.flink.recorded_machine import AMPLE, OutlinedChannel
from streamproof_specs.credit_channel.flink.records import CONSUMER, ONE_END, PRODUCER, Recorded, is_outline

_BUFFER = re.compile(r"Buffer\[(?P<kind>\w+),(?P<size>\d+)\]")
_SENT = re.compile(r"BufferAndAvailability\[(?P<backlog>\d+),\w+,(?P<seq>\d+),(?P<buffer>Buffer\[.*\])\]")


@lru_cache(maxsize=8)
def outline_rules(exclusive: int) -> Rules:
    """The machine of a channel with a number of exclusive buffers."""
    return Rules(OutlinedChannel(exclusive=exclusive, pipelined=False, threads=2))


@dataclass(slots=True)
class _End:
    """The account of one process on one channel, under construction. `known` is the required unannounced credit."""

    spans: list[Span] = field(default_factory=list)
    known: int = 0
    found: int | None = None

    def add(self, record: Recorded, alternatives: Sequence[tuple[Move, ...]], **more: Any) -> None:
        """Adds an observation."""
        observation = Observation(record.event, tuple(alternatives), **more)
        self.spans.append(Span(observation, 2 * record.done, 2 * record.done + 1))


def outlines(files: Sequence[Path]) -> tuple[list[Unit], list[Event], list[Problem]]:
    """The channels of these files, their events by time, and the unreadable lines."""
    problems = Problems()
    records: dict[str, list[Recorded]] = {}
    initial: dict[str, int] = {}
    numbers: dict[str, range] = {}
    for file in files:
        for record in _read(file, problems, numbers):
            records.setdefault(record.channel, []).append(record)
            if "initial" in record.event.args:
                initial.setdefault(record.channel, record.event.args["initial"])
    cases = [_case(channel, calls, initial.get(channel, 0), numbers) for channel, calls in records.items()]
    events = [r.event for r in sorted((r for rs in records.values() for r in rs), key=lambda r: (r.ns, r.done))]
    return cases, events, problems


def _read(file: Path, problems: list[Problem], numbers: dict[str, range]) -> Iterator[Recorded]:
    """The calls of a file. `numbers` gets those of all its lines, between which no other file of the process has any."""
    process = file.name.partition(".")[0]
    seen: set[bytes] = set()
    repeated = 0
    with closing(read_lines(file, problems.append)) as lines:
        for number, raw in enumerate(lines, 1):
            try:
                line = json.loads(raw)
                seq, at = int(line["seq"]), int(line["ts"])
                given, phase = line["args"], line["ph"]
            except (ValueError, TypeError, KeyError, RecursionError):
                problems.append(Problem(str(file), number, "the line is not a record of a call"))
                continue
            # Each record contains its number, so an equal one was delivered twice.
            if raw.strip() in seen:
                repeated += 1
                continue
            seen.add(raw.strip())
            before = numbers.get(process, range(seq, seq))
            numbers[process] = range(min(before.start, seq), max(before.stop, seq + 1))
            if is_outline(line):
                found = dict(re.findall(r"(\w+)=(\w+)", str(line.get("self"))))
                channel = found.get("id") or found.get("receiver", "")
                args: dict[str, Any] = {
                    k: int(v) for k, v in found.items() if k in ("unannounced", "initial", "credits")
                }
                args |= {"given": given, "at": phase}
                task = re.search(r"owner=(.*?)#", str(line.get("self")))
                if task:
                    args["task"] = task[1]
                event = Event(channel, process, seq, line["ev"], args, file=str(file), line=number)
                yield Recorded(event, channel, "", 2 * seq, seq, at)
    if repeated:
        text = f"{repeated:,} of its records are there more than once; they are read once"
        problems.append(Problem(str(file), 0, text))


def _accounts(records: Sequence[Recorded], numbers: Mapping[str, range]) -> list[list[Recorded]]:
    """The records of each process about a channel. An end lives in one process: files about the same end, each with its
    own numbers, are parts of one record, whatever their names."""
    sides: dict[str, set[bool]] = {}
    for record in records:
        sides.setdefault(record.event.process, set()).add(record.name.startswith(PRODUCER))
    accounts: list[list[str]] = []
    for file in sorted(sides, key=lambda f: numbers[f].start):
        joined = next(
            (
                a
                for a in accounts
                if numbers[a[-1]].stop <= numbers[file].start and any(sides[f] & sides[file] for f in a)
            ),
            None,
        )
        if joined is None:
            accounts.append([file])
        else:
            joined.append(file)
    return [sorted((r for r in records if r.event.process in files), key=lambda r: r.done) for files in accounts]


def _case(channel: str, records: Sequence[Recorded], exclusive: int, numbers: Mapping[str, range]) -> Unit:
    """The channel as one behaviour."""
    title = (
        f"to {next((str(r.event.args['task']) for r in records if 'task' in r.event.args), 'a consumer')}, in outline"
    )
    for other, missing in ((CONSUMER, "producer"), (PRODUCER, "consumer")):
        if all(r.name.startswith(other) for r in records):
            return Unit(channel, title, (), False, (ONE_END.format(missing),))
    accounts = _accounts(records, numbers)
    ends = [_End() for _ in accounts]
    for end, record in ((e, r) for e, account in zip(ends, accounts, strict=True) for r in account):
        if record.name.startswith(PRODUCER):
            _producer(end, record)
        else:
            _consumer(end, record, exclusive)
    rules = outline_rules(exclusive)
    early = {
        number: AMPLE
        for number, account in enumerate(accounts)
        if not any(r.name.endswith(".releaseAllResources") for r in account)
    }
    spans = tuple(tuple(end.spans) for end in ends)
    task = Task(channel, rules.system, spans=spans, ends=early, grounding=rules.instances)
    late = next((a[0].event.process for a in accounts if numbers[a[0].event.process].start > 0), None)
    partial = None if late is None else f"the record of {late} does not go back to its first call"
    return Unit(channel, title, (task,), partial=partial)


def _with(record: Recorded, **args: Any) -> Recorded:
    """The record with the fields parsed from its text."""
    event = record.event
    changed = Event(event.trace, event.process, event.seq, event.event, args, file=event.file, line=event.line)
    return Recorded(changed, record.channel, "", record.begun, record.done, record.ns)


def _producer(end: _End, record: Recorded) -> None:
    given, credits = record.event.args["given"], record.event.args.get("credits")
    had = Constraint(
        lambda look: f"the credit left is recorded as {credits}, but it must be {look('num_credits_available')}",
        lambda look: look("num_credits_available") == credits,
    )
    match record.name.removeprefix(PRODUCER), record.event.args["at"]:
        case "requestSubpartitionViewOrRegisterListener" | "requestSubpartitionView", "call":
            needed = message_pending(
                "no request for the subpartition is on its way", lambda look: look("partition_requests") > 0
            )
            end.add(
                record,
                ((Move("request_subpartition_view"), Move("notify_reader_created")),),
                constraints=(had,),
                requires_before=needed,
            )
        case "getNextBuffer", "call":
            end.add(record, ((),), before=(had,))
        case "getNextBuffer", "ret":
            sent = _SENT.search(str(given[0])) if given else None
            buffer = _BUFFER.search(sent["buffer"]) if sent else None
            if sent is None or buffer is None:
                end.add(record, ((),), before=(had,))
                return
            due = field_equals(
                _with(record, seq=int(sent["seq"])),
                "seq",
                "the sequence number sent",
                lambda look: look("sequence_number"),
            )
            args = {
                "data_type": buffer["kind"],
                "size": int(buffer["size"]),
                "backlog": int(sent["backlog"]),
                "partial_buffers": 1,
            }
            end.add(record, ((Move("send_stored", args),),), before=(due,), constraints=(had,))
        case "addCredit", "call":
            needed = message_pending("no announcement of credit is on its way", lambda look: bool(look("add_credits")))
            added = _with(record, n=int(given[0]))
            same = field_equals(added, "n", "the credit added", lambda look: look("add_credits")[0])
            end.add(record, ((Move("add_credit"),),), before=(had, same), requires_before=needed)
        case "resumeConsumption", "call":
            needed = message_pending(
                "the consumer has not resumed",
                lambda look: look("resume_consumption_sent") and look("add_credits_before_resume") == 0,
            )
            end.add(record, ((Move("resume_subpartition"),),), before=(had,), requires_before=needed)
        case "releaseAllResources", "call":
            end.add(record, ((Move("release_reader"),),), before=(had,))


def _consumer(end: _End, record: Recorded, exclusive: int) -> None:
    given, at = record.event.args["given"], record.event.args["at"]
    unannounced = record.event.args.get("unannounced", 0)
    name = record.name.removeprefix(CONSUMER)
    if name == "getAndResetUnannouncedCredit" and at == "ret":
        announced = _with(record, n=int(given[0]))
        gained = _gained(end, announced.event.args["n"])
        same = field_equals(announced, "n", "the credit announced", lambda look: look("unannounced_credit"))
        end.add(record, ((Move("announce_credit"),),), before=(same, *gained[1]))
        end.known = 0
        return
    moves, less = _gained(end, unannounced)
    match name:
        case "requestSubpartitions" | "requestSubpartition":
            end.add(record, ((Move("request_exclusive_buffers"), Move("request_subpartition")),))
        case "onBuffer":
            buffer = _BUFFER.search(str(given[0]))
            if buffer is not None:
                _received(end, record, buffer, moves, less, exclusive)
        case "onSenderBacklog":
            announced = _with(record, backlog=int(given[0]))
            same = field_equals(announced, "backlog", "the backlog noted", lambda look: look("sender_backlog"))
            end.add(record, ((*moves, Move("ignore_backlog")),), before=(same, *less))
        case "resumeConsumption":
            end.add(record, ((*moves, Move("poll_all"), Move("resume_consumption", {"t": 1})),), before=less)
        case "releaseAllResources":
            gone = (Move("release_channel"), Move("clear_received_buffers"), Move("release_all_buffers"))
            end.add(record, ((Move("clear_received_buffers"),), gone))
        case _:
            end.add(record, ((*moves,),), before=less)


def _gained(end: _End, unannounced: int) -> tuple[tuple[Move, ...], tuple[Constraint, ...]]:
    """The credit gained since the preceding record; an unsatisfiable constraint if credit has disappeared."""
    more, known = unannounced - end.known, end.known
    end.known = unannounced
    if more < 0:
        text = f"the credit not announced is recorded as {unannounced}, but it must be at least {known}"
        return (), (Constraint(text, lambda look: False),)
    return ((Move("gain_credit", {"n": more}),) if more else ()), ()


def _received(
    end: _End,
    record: Recorded,
    buffer: re.Match[str],
    moves: tuple[Move, ...],
    less: tuple[Constraint, ...],
    exclusive: int,
) -> None:
    given, kind, size = record.event.args["given"], buffer["kind"], int(buffer["size"])
    seen = _with(record, seq=int(given[1]), backlog=int(given[2]), type=kind)
    due = (
        field_equals(seen, "seq", "the sequence number received", lambda look: first_message(look)["sequence_number"]),
        field_equals(seen, "type", "the kind received", lambda look: first_message(look)["data_type"]),
        field_equals(seen, "backlog", "the backlog received", lambda look: first_message(look)["backlog"]),
    )
    first: tuple[Move, ...] = (Move("request_buffer"),) if kind in DATA else ()
    if kind in BLOCKING:
        first = (Move("on_blocking_upstream"), *((Move("release_floating_buffers"),) if exclusive == 0 else ()))
    needed = message_pending("no message is on its way to the consumer", lambda look: bool(look("responses")))
    alternatives = ((*moves, *first, Move("on_buffer", {"size": size})),)
    end.add(record, alternatives, before=(*due, *less), requires_before=needed)
