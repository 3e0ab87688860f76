"""The binding of the runtime's event logs to credit-based flow control: each input gate of an attempt is one behaviour.

The receiver's events are those of its subtask, the senders' those of the subtasks before it. They are merged so that what
arrives has been sent: the first buffer that arrives is the first that was sent, and so are credits. An end of a channel
never makes an action of the other end impossible, so that every such order is a behaviour of the machine, or none is. What
an event records, credits and backlog of a sender, free and floating buffers of a channel and the pool of the gate, must be
what the machine has.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

from streamproof import System
from streamproof.conformance import (
    BY_VALUE,
    NUMBER,
    TEXT,
    Constraint,
    Event,
    EventForm,
    InputError,
    LogForm,
    Move,
    Observation,
    Plan,
    StateReader,
    Stream,
    Task,
    Unit,
    compile_model,
    list_of,
)
from streamproof_models.credit.receiver import AtTheReceiver
from streamproof_models.scopes.graph import ScopeError
from streamproof_models.scopes.subtasks import Subtasks
from streamproof_models.scopes.text import parse
from streamproof_specs.runtime.logs import JOBMASTER, RuntimeLogs, attempts, unopened, without
from streamproof_specs.runtime.vocabulary import (
    BUFFERS,
    BY_CHANNEL,
    BY_NUMBER,
    CHANNEL,
    LACKING,
    NUMBERS_BY_CHANNEL,
    SUBTASK,
    TITLE,
)

MOST = 10_000
"""Largest number of channels of a gate, and of buffers."""
_ROOM = 256
"""Smallest bound of the machine on the buffers of a channel: most gates of a size have one machine."""
OPENED = "gate_opened"
_ARRIVES = {
    "buffer_received": "buffers_sent",
    "credits_received": "credits_announced",
    "backlog_received": "backlog_announced",
}
"""Events of what arrives, with those that send it."""
_SENDERS = ("buffers_sent", "credits_received", "backlog_announced")
CONSUMED = ("record_received", "part_received", "baton_received", "barrier_received")
"""Events of the subtask itself with which it takes a buffer; END is taken with `channel_released`."""


class RecordedCredit(AtTheReceiver):
    """The machine for a recorded gate. A released channel has delivered END: nothing may arrive on it."""

    name = "credit"
    limits: ClassVar = {**AtTheReceiver.limits, "exclusive": (0, MOST)}


@lru_cache(maxsize=256)
def machine(channels: int, exclusive: int, floating: int, depth: int) -> System:
    """The machine for a gate, with room for a number of buffers."""
    model = RecordedCredit(channels=channels, exclusive=exclusive, floating=floating, depth=depth)
    return compile_model(model, without_properties=True)


class RuntimeCredit(RuntimeLogs):
    """Follows every gate of every attempt in an event log of the runtime."""

    def behaviours(self, name: str, events: list[Event]) -> Plan:
        """One case for each gate."""
        traces = attempts(events)
        silent = {t: without(own, OPENED, _receivers) for t, own in traces.items()}
        gates = [gate for own in traces.values() for gate in _gates(own)]
        cases = tuple(gate.unit() for gate in gates)
        cases = (*cases, *(u for t, own in traces.items() for u in unopened(own, "gate of", silent[t])))
        read = tuple(event for gate in gates for event in gate.events)
        return Plan(name, cases, read, unit="gate", nothing="no attempt has a channel with flow control")


def _receivers(graph: str) -> list[str]:
    """The subtasks with an input that is no feedback; none in a text that is no graph of the Loops API."""
    try:
        return [task for task, inputs in Subtasks(parse(graph)).inputs.items() if inputs]
    except ScopeError:
        return []


def _gates(events: Sequence[Event]) -> Iterable[GateReading]:
    """The gates of an attempt, in the order of the log."""
    by_process: dict[str, list[Event]] = {}
    for event in sorted(events, key=lambda e: e.seq):
        if event.process != JOBMASTER:
            by_process.setdefault(event.process, []).append(event)
    opened: dict[str, GateReading] = {}
    owner: dict[str, GateReading] = {}
    for task, own in by_process.items():
        for event in (e for e in own if e.event == OPENED):
            if task in opened:
                raise InputError(f"{event}: the gate is open already", loc=event.loc)
            gate = opened[task] = GateReading(event)
            for channel in gate.channels:
                if owner.setdefault(channel, gate) is not gate:
                    raise InputError(f"{event}: another gate has the channel {channel!r}", loc=event.loc)
    for own in by_process.values():
        for event in own:
            for gate in _concerned(event, opened, owner):
                gate.add(event)
    return opened.values()


def _concerned(
    event: Event, opened: Mapping[str, GateReading], owner: Mapping[str, GateReading]
) -> Iterable[GateReading]:
    """The gates that an event concerns. Raises `InputError` for a channel of no gate."""
    if event.event == OPENED:
        return (opened[event.process],)
    if event.event in CONSUMED:
        found = owner.get(str(event.args.get("channel")))
        return (found,) if found is not None else ()  # feedback has no flow control
    if event.event not in _MEANING:
        return ()
    produced, sent = event.args.get("produced"), event.args.get("sent")
    channels = [event.args.get("channel")]
    if isinstance(produced, dict) and isinstance(sent, dict):
        channels = [*produced, *sent]
    gates = [owner[c] for c in channels if isinstance(c, str) and c in owner]
    if len(gates) < len(channels):
        raise InputError(f"{event}: no gate has been opened with this channel", loc=event.loc)
    return {id(gate): gate for gate in gates}.values()


class GateReading:
    """One gate: its channels and buffers, and the meaning of the events that concern it."""

    def __init__(self, opened: Event) -> None:
        """Raises `InputError` for an event that describes no gate."""
        channels = opened.args.get("channels")
        if not isinstance(channels, list) or not channels or not all(isinstance(c, str) for c in channels):
            raise InputError(f"{opened} needs the argument 'channels', a list of texts", loc=opened.loc)
        if len({*channels}) != len(channels) or len(channels) > MOST:
            raise InputError(f"{opened}: up to {MOST:,} different channels can be followed", loc=opened.loc)
        self.channels: dict[str, int] = {channel: at for at, channel in enumerate(channels)}
        self.exclusive, self.floating = number(opened, "exclusive"), number(opened, "floating")
        self.trace, self._receiver = f"{opened.trace} {opened.process}", opened.process
        name, _, attempt = opened.trace.rpartition("#")
        self._title = f"gate of {opened.process}, attempt {attempt} of {name}"
        self.events: list[Event] = []
        """Its events, in an order in which they can be followed once `unit` has been called."""
        self._senders: dict[int, str] = {}
        self._produced: dict[str, int] = dict.fromkeys(channels, 0)
        self._streams: dict[str, list[Observation]] = {}

    def add(self, event: Event) -> None:
        """An event of one of its ends."""
        event = replace(event, trace=self.trace)
        if event.event == OPENED:
            observation = Observation(event)
        elif event.event in CONSUMED:
            observation = self._observed(event, [Move("consume", self._at(event))])
        else:
            self._expect_its_end(event)
            moves = [*_FORM.read(event, self, event)]
            observation = self._observed(event, moves, self._announced(event))
        self._streams.setdefault(event.process, []).append(observation)

    def _expect_its_end(self, event: Event) -> None:
        """Raises `InputError` for an event of another subtask than that of the channel's end."""
        if event.event in _SENDERS:
            channels = self.counts(event, "produced") if event.event == "buffers_sent" else [self._at(event)["c"]]
            owners = {self._senders.setdefault(c, event.process) for c in channels}
        else:
            owners = {self._receiver}
        if not owners <= {event.process}:
            raise InputError(f"{event}: this end of the channel is that of {min(owners)!r}", loc=event.loc)

    def unit(self) -> Unit:
        """The behaviour to follow."""
        depth = max(_ROOM, 1 << max(self._produced.values()).bit_length())
        system = machine(len(self.channels), self.exclusive, self.floating, depth)
        merged = self._merged()
        self.events = [observation.event for observation in merged]
        return Unit(self.trace, self._title, (Task(self.trace, system, (Stream(merged),)),))

    def _merged(self) -> list[Observation]:
        """All observations in an order in which what arrives has been sent; what cannot be so comes last."""
        waiting = [deque(own) for own in self._streams.values()]
        under_way = Counter[tuple[str, str]]()
        merged: list[Observation] = []
        while waiting:
            ready = [own for own in waiting if self._may_come(own[0].event, under_way)]
            for own in ready or [min(waiting, key=lambda own: own[0].event.line or 0)]:
                while own and (not ready or self._may_come(own[0].event, under_way)):
                    self._count(own[0].event, under_way)
                    merged.append(own.popleft())
            waiting = [own for own in waiting if own]
        return merged

    def _may_come(self, event: Event, under_way: Counter[tuple[str, str]]) -> bool:
        of = _ARRIVES.get(event.event)
        return of is None or under_way[of, event.args["channel"]] > 0

    def _count(self, event: Event, under_way: Counter[tuple[str, str]]) -> None:
        """What the event sends, and what arrives with it."""
        channel = event.args.get("channel", "")
        if event.event in _ARRIVES:
            under_way[_ARRIVES[event.event], channel] -= 1
        if event.event in ("credits_announced", "backlog_announced"):
            under_way[event.event, channel] += 1
        elif event.event == "credits_received":
            under_way["buffers_sent", channel] += number(event, "sent")
        elif event.event == "buffers_sent":
            for c, count in event.args["sent"].items():
                under_way["buffers_sent", c] += count

    def _observed(self, event: Event, moves: Sequence[Move], before: tuple[Constraint, ...] = ()) -> Observation:
        after = tuple(self._states(event))
        return Observation(event, (tuple(moves),), after, before, _unsaid(event), like=BY_VALUE)

    # --- arguments

    def _at(self, event: Event) -> dict[str, int]:
        return {"c": self.channels[event.args["channel"]]}

    def counts(self, event: Event, name: str) -> dict[int, int]:
        """Numbers by channel of this gate."""
        found = event.args.get(name)
        if not isinstance(found, dict):
            raise InputError(f"{event} needs the argument {name!r}, numbers by channel", loc=event.loc)
        return {self.channels[c]: number(event, name, n) for c, n in found.items() if c in self.channels}

    # --- constraints

    def _states(self, event: Event) -> Iterable[Constraint]:
        """What the event records of the state after it."""
        for name, value in (event.state or {}).items():
            if event.event in CONSUMED:
                continue  # of the subtask, not of its channels
            if name in _BY_CHANNEL:
                if not isinstance(value, dict):
                    raise InputError(f"{event} needs numbers by channel for {name!r}", loc=event.loc)
                for channel, count in value.items():
                    if channel in self.channels:
                        yield _equal(event, name, _BY_CHANNEL[name], self.channels[channel], channel, count)
            elif name in _OF_CHANNEL:
                channel = event.args["channel"]
                yield _equal(event, name, _OF_CHANNEL[name], self.channels[channel], channel, value)
            elif name == "pool":
                yield _equal(event, name, "pool", None, "the gate", value)
            else:
                raise InputError(f"{name!r} is no part of the state of a channel", loc=event.loc)
        if event.event in ("buffer_received", "backlog_received"):
            channel = event.args["channel"]
            value = event.args.get("backlog")
            yield _equal(event, "backlog", "sender_backlog", self.channels[channel], channel, value)

    def _announced(self, event: Event) -> tuple[Constraint, ...]:
        """All new credits are announced together; an announced backlog is that of the sender."""
        channel: str = event.args.get("channel", "")
        if event.event == "credits_announced":
            lent, value = number(event, "requested"), number(event, "credits")
            return (_equal(event, "new credits", "unannounced_credit", self.channels[channel], channel, value, lent),)
        if event.event == "backlog_announced":
            return (
                _equal(
                    event, "backlog", "buffers_in_backlog", self.channels[channel], channel, number(event, "backlog")
                ),
            )
        return ()

    # --- events

    def sent(self, event: Event) -> Iterable[Move]:
        """Buffers that a subtask has made, and those of them, or of earlier ones, that leave."""
        produced, sent = self.counts(event, "produced"), self.counts(event, "sent")
        names = [*self.channels]
        for c, count in produced.items():
            self._produced[names[c]] += count
            yield from [Move("produce", {"c": c})] * count
        for c, count in sent.items():
            yield from [Move("send", {"c": c})] * count

    def granted(self, event: Event) -> Iterable[Move]:
        """Credits arrive, and waiting buffers leave."""
        yield from [Move("add_credit", self._at(event))] * number(event, "credits")
        yield from [Move("send", self._at(event))] * number(event, "sent")

    def announced(self, event: Event) -> Iterable[Move]:
        """Floating buffers are lent, and all new credits announced."""
        yield from [Move("request_floating_buffer", self._at(event))] * number(event, "requested")
        yield Move("announce_credit", self._at(event))

    def released(self, event: Event) -> Iterable[Move]:
        """END is taken."""
        yield Move("consume", self._at(event))
        yield Move("release", self._at(event))

    def one(self, event: Event) -> Iterable[Move]:
        """One action."""
        yield Move(_ONE[event.event], self._at(event))


def _unsaid(event: Event) -> str | None:
    """What of the state after an event is not recorded, or too much, if anything."""
    if event.event not in _MEANING or event.event == "backlog_announced":
        return None
    state = event.state or {}
    names = _BY_CHANNEL if event.event in ("buffers_sent", "credits_received") else (*_OF_CHANNEL, "pool")
    if missing := [name for name in names if name not in state]:
        return f"{missing[0]} is not recorded"
    channels = event.args["produced"] if event.event == "buffers_sent" else [event.args["channel"]]
    other = [name for name in _BY_CHANNEL if name in state and {*state[name]} != {*channels}]
    return f"{other[0]} is recorded of {', '.join(state[other[0]]) or 'no channel'}" if other else None


def number(event: Event, name: str, value: Any = None) -> int:
    """An argument that is a number of buffers. Raises `InputError` for anything else."""
    found = event.args.get(name) if value is None else value
    if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found <= MOST:
        raise InputError(f"{event} needs the argument {name!r}, a number from 0 to {MOST:,}", loc=event.loc)
    return found


@dataclass(frozen=True, slots=True)
class _Equals:
    """Whether a number of the machine, and `less`, are the recorded one; compared by value."""

    name: str
    key: int | None
    less: int
    recorded: int | None
    """None: what is recorded is no number."""

    def read(self, look: StateReader) -> int:
        """What the log has to record."""
        found: int = look(self.name, self.key)
        return found + self.less

    def __call__(self, look: StateReader) -> bool:
        """Whether it does."""
        return self.recorded is not None and self.read(look) == self.recorded


def _equal(event: Event, what: str, name: str, key: int | None, of: str, recorded: Any, less: int = 0) -> Constraint:
    """A recorded number is the machine's."""
    test = _Equals(name, key, less, recorded if type(recorded) is int else None)
    return Constraint(lambda look: f"{what} of {of} is {test.read(look)} in the model, and {recorded} in the log", test)


_BY_CHANNEL = {"credit": "num_credits_available", "backlog": "buffers_in_backlog"}
_OF_CHANNEL = {"free": "available_buffers", "floating": "floating_buffers"}
"""Variables of the machine by the names in the recorded states."""
_ONE = {"buffer_received": "receive", "backlog_announced": "announce_backlog", "backlog_received": "receive_backlog"}
_STATES = {
    "free": NUMBER("free buffers of the channel"),
    "floating": NUMBER("floating buffers of the channel"),
    "pool": NUMBER("free floating buffers of the gate"),
}
_SENDER_STATES = {
    "credit": NUMBERS_BY_CHANNEL("credit of each of these channels"),
    "backlog": NUMBERS_BY_CHANNEL("buffers that wait in each of these channels"),
}
_BACKLOG = NUMBER("buffers that wait at the sender")
_MEANING: Mapping[str, EventForm] = {
    "buffers_sent": EventForm(
        GateReading.sent,
        SUBTASK,
        ("produce", "send"),
        {
            "produced": NUMBERS_BY_CHANNEL("buffers that were made"),
            "sent": NUMBERS_BY_CHANNEL("buffers that leave; the others wait for credit"),
        },
        _SENDER_STATES,
    ),
    "credits_received": EventForm(
        GateReading.granted,
        SUBTASK,
        ("add_credit", "send"),
        {"channel": CHANNEL, "credits": BUFFERS("credits that arrive"), "sent": BUFFERS("buffers that leave with it")},
        _SENDER_STATES,
    ),
    "credits_announced": EventForm(
        GateReading.announced,
        SUBTASK,
        ("request_floating_buffer", "announce_credit"),
        {
            "channel": CHANNEL,
            "credits": BUFFERS("all new credits of the channel"),
            "requested": BUFFERS("floating buffers that the pool lends to it"),
        },
        _STATES,
    ),
    "channel_released": EventForm(GateReading.released, SUBTASK, ("consume", "release"), {"channel": CHANNEL}, _STATES),
    "buffer_received": EventForm(
        GateReading.one, SUBTASK, ("receive",), {"channel": CHANNEL, "backlog": _BACKLOG}, _STATES, "A buffer arrives."
    ),
    "backlog_announced": EventForm(
        GateReading.one,
        SUBTASK,
        ("announce_backlog",),
        {"channel": CHANNEL, "backlog": BUFFERS("buffers that wait here")},
        meaning="A sender without credit says how many buffers wait.",
    ),
    "backlog_received": EventForm(
        GateReading.one,
        SUBTASK,
        ("receive_backlog",),
        {"channel": CHANNEL, "backlog": _BACKLOG},
        _STATES,
        "The receiver learns how many buffers wait.",
    ),
}
"""The events of a channel's end."""
_CONSUMED = EventForm(
    None,
    SUBTASK,
    ("consume",),
    {"channel": CHANNEL},
    meaning="The subtask takes a buffer, if the channel has flow control.",
)
_FORM = LogForm(
    TITLE,
    {
        OPENED: EventForm(
            None,
            SUBTASK,
            args={
                "channels": list_of(TEXT, "a list of texts", least=1)("the channels of the gate"),
                "exclusive": BUFFERS("exclusive buffers of each"),
                "floating": BUFFERS("floating buffers of the gate"),
            },
            meaning="A subtask opens its gate.",
        ),
        **_MEANING,
        **dict.fromkeys(CONSUMED, _CONSUMED),
    },
    (BY_NUMBER, BY_CHANNEL),
    LACKING,
)

BINDING = RuntimeCredit(_FORM)
