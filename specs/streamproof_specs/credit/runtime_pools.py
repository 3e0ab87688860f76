"""The binding of the runtime's event logs to pools of buffers at senders: each pool is one case.

A subtask has one pool for all that it sends. In `buffer_shares` its channels are the pools, all of which are created at
first, and its buffers the global ones. A buffer is requested when an item is written, and recycled when the item leaves.
The sizes that the log has must be those that the machine distributes, and the buffers of a channel those that it holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from streamproof.conformance import (
    TEXT,
    Constraint,
    Event,
    EventForm,
    InputError,
    LogForm,
    Move,
    Observation,
    Plan,
    Rules,
    Stream,
    Task,
    Unit,
    list_of,
    may_have_event,
    up_to,
)
from streamproof_models.credit.shares import BufferShares
from streamproof_specs.runtime.logs import JOBMASTER, RuntimeLogs, attempts, is_of_runtime, parts
from streamproof_specs.runtime.vocabulary import (
    BUFFERS,
    BY_NUMBER,
    CHANNEL,
    LACKING,
    NUMBERS_BY_CHANNEL,
    SUBTASK,
    TITLE,
)

MOST = 10_000
"""Largest number of buffers of a pool."""
FOLLOWED = 64
"""Largest number of channels of a pool that is followed: all buffers are dealt out anew when each of them is created, so that
the rules for twice as many take four times as long to make."""
LARGEST = 16
"""Largest number of buffers of a channel in such a pool."""
OPENED, SENT, CREDITS = "pool_opened", "buffers_sent", "credits_received"


@lru_cache(maxsize=64)
def machine(channels: int, buffers: int, largest: int) -> Rules:
    """The machine for a pool."""
    return Rules(BufferShares(pools=channels, buffers=buffers, required=1, most=largest))


class RuntimePools(RuntimeLogs):
    """Follows the pool of each subtask in an event log of the runtime."""

    def recognises(self, path: Path) -> bool:
        """Whether it is a log of the runtime, and a sender of one of its runs has a pool."""
        return is_of_runtime(path) and any(may_have_event(log, OPENED) for run in self.runs(path) for log in parts(run))

    def behaviours(self, name: str, events: list[Event]) -> Plan:
        """One case for each pool."""
        cases, read = [], []
        has_pools = any(event.event == OPENED for event in events)
        for trace, own in attempts(events).items():
            for task, found in _by_subtask(own).items() if has_pools else ():
                of = [replace(event, trace=f"{trace} {task}") for event in found]
                cases.append(_case(trace, task, of))
                read += of
        return Plan(name, tuple(cases), tuple(read), unit="pool", nothing="no sender of the run has a pool of buffers")


def _by_subtask(events: Iterable[Event]) -> dict[str, list[Event]]:
    found: dict[str, list[Event]] = {}
    for event in sorted(events, key=lambda e: e.seq):
        if event.event in (OPENED, SENT, CREDITS) and event.process != JOBMASTER:
            found.setdefault(event.process, []).append(event)
    return found


def _case(trace: str, task: str, events: Sequence[Event]) -> Unit:
    """The pool of a subtask. Raises `InputError` for events without what they need."""
    opened, *rest = events
    key = opened.trace
    name, _, attempt = trace.rpartition("#")
    title = f"pool of {task}, attempt {attempt} of {name}"
    if opened.event != OPENED:
        return Unit(key, title, (), False, (f"the log has not opened the pool of {task}",))
    names, buffers, largest = (opened.args[argument] for argument in ("channels", "buffers", "largest"))
    channels = {channel: at for at, channel in enumerate(names)}
    if len(channels) < len(names):
        raise InputError(f"{opened} needs the argument 'channels', different texts", loc=opened.loc)
    if len(channels) > FOLLOWED or largest > LARGEST:
        many = f"{len(channels)} channels, each with up to {largest} buffers"
        return Unit(key, title, (), False, (f"the pool has {many}; {FOLLOWED} with {LARGEST} can be followed",))
    moves = tuple(Move("create", {"p": at}) for at in channels.values())
    sizes = _by_channel(opened, "sizes", opened.state, channels)
    said = "the share of a channel is not recorded" if len(sizes) < len(channels) else None
    shares = tuple(_equal("share", "size", *each) for each in _named(sizes, channels))
    first = Observation(opened, (moves,), shares, impossible=said)
    observed = (first, *(_observed(event, channels) for event in rest))
    rules = machine(len(channels), buffers, largest)
    return Unit(key, title, (Task(key, rules.system, (Stream(observed),), grounding=rules.instances),))


def _observed(event: Event, channels: Mapping[str, int]) -> Observation:
    if event.event == OPENED:
        return Observation(event, impossible="the pool is open already")
    if event.event == SENT:
        written = _by_channel(event, "produced", event.args, channels)
        left = _by_channel(event, "sent", event.args, channels)
    else:
        written, left = {}, {channels[_channel(event, channels)]: event.args["sent"]}
    held = _by_channel(event, "backlog", event.state, channels)
    if held.keys() != (written or left).keys():
        return Observation(event, impossible="the buffers of its channels are not recorded")
    moves = [Move("request", {"p": p}) for p, count in written.items() for _ in range(count)]
    moves += [Move("recycle", {"p": p}) for p, count in left.items() for _ in range(count)]
    return Observation(event, (tuple(moves),), tuple(_equal("number", "held", *e) for e in _named(held, channels)))


def _named(numbers: Mapping[int, int], channels: Mapping[str, int]) -> Iterator[tuple[str, int, int]]:
    return ((channel, at, numbers[at]) for channel, at in channels.items() if at in numbers)


def _equal(what: str, name: str, channel: str, at: int, recorded: int) -> Constraint:
    """A recorded number of buffers is the machine's."""
    return Constraint(
        lambda look: f"the {what} of buffers of {channel} is {look(name, at)} in the model, and {recorded} in the log",
        lambda look: look(name, at) == recorded,
    )


def _channel(event: Event, channels: Mapping[str, int]) -> str:
    found: str = event.args["channel"]
    if found not in channels:
        raise InputError(f"{event}: the pool has no channel {found!r}", loc=event.loc)
    return found


def _by_channel(event: Event, name: str, of: Mapping[str, Any] | None, channels: Mapping[str, int]) -> dict[int, int]:
    """Numbers of buffers by the number of their channel. Raises `InputError` for anything else."""
    found = (of or {}).get(name)
    if not isinstance(found, dict) or not channels.keys() >= found.keys():
        raise InputError(f"{event} needs {name!r}, numbers by channel of the pool", loc=event.loc)
    return {channels[channel]: _number(event, name, value) for channel, value in found.items()}


def _number(event: Event, name: str, found: Any) -> int:
    if type(found) is not int or not 0 <= found <= MOST:
        raise InputError(f"{event} needs {name!r}, numbers from 0 to {MOST:,} by channel", loc=event.loc)
    return found


_BACKLOG = {"backlog": NUMBERS_BY_CHANNEL("buffers that wait in each of these channels")}
_FORM = LogForm(
    TITLE,
    {
        OPENED: EventForm(
            None,
            SUBTASK,
            ("create",),
            {
                "channels": list_of(TEXT, "a list of texts", least=1)("the channels of the pool"),
                "buffers": BUFFERS("the buffers of the pool"),
                "largest": up_to(MOST, 1)("buffers that a channel uses at most"),
            },
            {"sizes": NUMBERS_BY_CHANNEL("the share of each channel")},
            "A sender opens its pool.",
        ),
        SENT: EventForm(
            None,
            SUBTASK,
            ("request", "recycle"),
            {
                "produced": NUMBERS_BY_CHANNEL("items for which there is a buffer now"),
                "sent": NUMBERS_BY_CHANNEL("items that leave; the others wait for credit"),
            },
            _BACKLOG,
            "Items are written into buffers.",
        ),
        CREDITS: EventForm(
            None,
            SUBTASK,
            ("recycle",),
            {"channel": CHANNEL, "sent": BUFFERS("items that leave with it")},
            _BACKLOG,
            "Credits arrive.",
        ),
    },
    (BY_NUMBER,),
    LACKING,
)

BINDING = RuntimePools(_FORM)
