"""The binding of the runtime's event logs to records that span buffers: each channel on which one was sent is one case.

Each such record is one behaviour of `record_spans`, whose units are the parts: they are written and sent with the event of
the sender, and received in their order. Channels keep their order, so the first record that arrives is the first that was
sent. Nothing else may be taken from a channel between two parts. That the record is the one that was sent, `baton` compares.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from streamproof import System
from streamproof.conformance import (
    Constraint,
    Event,
    EventForm,
    InputError,
    LogForm,
    Move,
    Observation,
    Plan,
    Stream,
    Task,
    Unit,
    compile_model,
    may_have_event,
    up_to,
)
from streamproof_models.credit.spans import RecordSpans
from streamproof_specs.runtime.logs import JOBMASTER, RuntimeLogs, attempts, is_of_runtime, parts
from streamproof_specs.runtime.sessions import rejected
from streamproof_specs.runtime.vocabulary import (
    BY_CHANNEL,
    BY_NUMBER,
    CHANNEL,
    LACKING,
    OF_ATTEMPT,
    SUBTASK,
    TITLE,
)

MOST = 100_000
"""Largest number of parts of a record."""
FOLLOWED = 4_096
"""Largest number of parts of a record that is followed: twice as many as those of the largest record in buffers of default
size. Each part is copied with those that are under way, so that twice as many take four times as long to follow."""
SPANS, PART = "record_spans", "part_received"
_TAKEN = ("record_received", "baton_received", "barrier_received", "channel_released")
"""Other events with which a subtask takes something from a channel."""


class RecordedSpans(RecordSpans):
    """The machine for a record in buffers of one unit, a part: it has no term for each two parts."""

    name = "record_spans"

    def setup(self) -> None:
        """A unit is where its buffer begins."""
        super().setup()
        self.single_units = True


@lru_cache(maxsize=64)
def machine(parts: int) -> System:
    """The machine for a record."""
    model = RecordedSpans(lengths=str(parts), buffer=1, channels=1, wire=parts, failures=0)
    return compile_model(model, without_properties=True)


class RuntimeSpans(RuntimeLogs):
    """Follows every record that spans buffers in an event log of the runtime."""

    def recognises(self, path: Path) -> bool:
        """Whether it is a log of the runtime, and a record of one of its runs spans buffers."""
        return is_of_runtime(path) and any(
            may_have_event(log, name) for run in self.runs(path) for log in parts(run) for name in (SPANS, PART)
        )

    def behaviours(self, name: str, events: list[Event]) -> Plan:
        """One case for each channel."""
        cases: list[Unit] = []
        read: list[Event] = []
        for trace, own in attempts(events).items():
            finished = next((e for e in own if e.process == JOBMASTER and e.event == "finished"), None)
            for channel, found in _by_channel(own).items():
                key = f"{trace} {channel}"
                of = [replace(event, trace=key) for event in found]
                observed, strays = _records(of, finished and replace(finished, trace=key))
                title = f"records of {channel}, attempt {trace.rpartition('#')[2]} of {trace.rpartition('#')[0]}"
                few = [(n, each) for n, each in observed if n <= FOLLOWED]
                tasks = tuple(Task(key, machine(n), (Stream(each),)) for n, each in few)
                left = len(observed) - len(few)
                long = (f"{left} of {len(observed)} records have more than {FOLLOWED} parts",) if left else ()
                cases += [Unit(key, title, tasks, bool(tasks), long)] if observed else []
                cases += [rejected(key, strays)] if strays else []
                read += of
        nothing = "no record of the run spans buffers"
        return Plan(name, tuple(cases), tuple(read), unit="channel", nothing=nothing)


def _by_channel(events: Iterable[Event]) -> dict[str, list[Event]]:
    """The events of each channel with a record that spans buffers, the sender's before the receiver's."""
    found: dict[str, list[Event]] = {}
    for event in sorted(events, key=lambda e: (e.event != SPANS, e.seq)):
        channel = event.args.get("channel")
        if event.event in (SPANS, PART, *_TAKEN) and event.process != JOBMASTER and isinstance(channel, str):
            found.setdefault(channel, []).append(event)
    return {c: own for c, own in found.items() if any(e.event in (SPANS, PART) or "parts" in e.args for e in own)}


def _records(
    events: Sequence[Event], finished: Event | None
) -> tuple[list[tuple[int, list[Observation]]], list[Observation]]:
    """The parts of each record with its observations, and what belongs to no record. Raises `InputError` for events of more
    than one process at an end of the channel."""
    for of_sender in (True, False):
        if len({e.process for e in events if (e.event == SPANS) is of_sender}) > 1:
            raise InputError(f"{events[-1]}: this end of the channel is that of another subtask", loc=events[-1].loc)
    sent = [event for event in events if event.event == SPANS]
    found = [(event.args["parts"], [_written(event)]) for event in sent]
    strays: list[Observation] = []
    at = gathered = 0
    for event in events[len(sent) :]:
        if event.event != PART and "parts" not in event.args:
            if gathered:
                strays.append(
                    Observation(
                        event,
                        impossible=f"it is between two parts of record {at + 1} of the channel that spans buffers",
                    )
                )
            continue
        if at == len(found):
            strays.append(Observation(event, impossible="the sender has not cut another record into parts"))
            break
        found[at][1].append(_received(event))
        gathered = 0 if event.event != PART else gathered + 1
        at += event.event != PART
    if finished is not None:
        for _, observed in found:
            observed.append(Observation(finished, before=(_delivered,)))
    return found, strays


_delivered = Constraint(
    "the job has finished, but the record has not been received", lambda look: look("delivered", 0) == 1
)


def _written(event: Event) -> Observation:
    parts = event.args["parts"]
    moves = (Move("write", {"c": 0}), Move("send", {"c": 0})) * parts
    return Observation(event, (moves,))


def _received(event: Event) -> Observation:
    """A part, which is or is not the last one."""
    if event.event == PART:
        name, recorded, of = "gathered", event.args["gathered"], "parts"
        after = [_equal(f"{recorded} {of} are there in the log", name, recorded), _equal("", "delivered", 0)]
    else:
        parts = event.args["parts"]
        after = [_equal(f"the record has its {parts} parts in the log", "next_unit", parts), _equal("", "delivered", 1)]
    return Observation(event, ((Move("receive", {"c": 0}),),), tuple(after))


def _equal(text: str, name: str, recorded: int) -> Constraint:
    """A number is the machine's."""
    said = f"{text}, " if text else f"{name} is {recorded} in the log, "
    return Constraint(lambda look: f"{said}and {look(name, 0)} in the model", lambda look: look(name, 0) == recorded)


_PARTS = up_to(MOST, 2)("the number of its parts")
_TAKES = EventForm(
    None, SUBTASK, args={"channel": CHANNEL}, meaning="Something else is taken from the channel, not between two parts."
)
_FORM = LogForm(
    TITLE,
    {
        SPANS: EventForm(
            None,
            SUBTASK,
            ("write", "send"),
            {"channel": CHANNEL, "parts": _PARTS},
            meaning="A record that is larger than a buffer is cut into parts, one for each buffer.",
        ),
        PART: EventForm(
            None,
            SUBTASK,
            ("receive",),
            {"channel": CHANNEL, "gathered": up_to(MOST, 1)("the number of parts that are there")},
            meaning="A part that is not the last one is taken.",
        ),
        "record_received": EventForm(
            None,
            SUBTASK,
            ("receive",),
            {"channel": CHANNEL, "parts": _PARTS.or_none("it is a buffer of whole records")},
            meaning="The last part is taken, and the record is whole.",
        ),
        **dict.fromkeys(_TAKEN[1:], _TAKES),
        "finished": EventForm(None, OF_ATTEMPT, meaning="All subtasks have terminated: every record is whole."),
    },
    (BY_NUMBER, BY_CHANNEL),
    LACKING,
)

BINDING = RuntimeSpans(_FORM)
