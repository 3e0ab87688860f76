"""Whether the vector clocks of an attempt, and the contents of buffers, are those of its messages.

An event knows all that the event before it knew. What it knows of another process is an event that is in the log, with all
that this one knew: an event is written before anything that it sends can leave. And whoever takes a buffer knows the event
that sent it; channels keep their order. It takes the records that were sent: an event has their number and a checksum.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from streamproof.conformance import Event

_Key = tuple[str, int]
_Sent = tuple[str, int, Any]
"""A process, the number of an event, and what is in the buffer that leaves with it."""


def contradictions(processes: Mapping[str, Sequence[Event]], sending: Sequence[str]) -> dict[_Key, str]:
    """What is wrong with the clock or buffer of an event, by process and number, for the first such event of each process.

    `processes`: the events of each in their order, which their clocks count from 1 on; `sending`: the events whose argument
    `channel`, or `channels`, says where buffers leave.
    """
    senders: dict[str, list[_Sent]] = {}
    for process, own in processes.items():
        for number, event in enumerate(own, 1):
            for channel, content in _buffers(event) if event.event in sending else ():
                senders.setdefault(channel, []).append((process, number, content))
    return {(process, at.seq): why for process, own in processes.items() for at, why in _first(own, processes, senders)}


def _first(
    own: Sequence[Event], processes: Mapping[str, Sequence[Event]], senders: Mapping[str, Sequence[_Sent]]
) -> list[tuple[Event, str]]:
    before: Mapping[str, int] = {}
    taken = Counter[str]()
    for event in own:
        clock = event.clock or {}
        wrong = _wrong(event.process, clock, before, processes)
        why = f"its vector clock is wrong: {wrong}" if wrong else _incomplete(event)
        if event.event == "record_received" and not why:
            channel = str(event.args.get("channel"))
            taken[channel] += 1
            made = senders.get(channel, ())
            if len(made) >= taken[channel]:
                sender, number, sent = made[taken[channel] - 1]
                buffer = f"buffer {taken[channel]} of {channel} was sent with event {number} of {sender}"
                if clock.get(sender, 0) < number:
                    why = f"its vector clock is wrong: {buffer}"
                elif event.args.get("content") != sent:
                    why = f"{buffer} and other records: {sent}"
        if why:
            return [(event, why)]
        before = clock
    return []


def _incomplete(event: Event) -> str:
    """The contents are those of all buffers that leave, if the log has any."""
    channels, contents = event.args.get("channels"), event.args.get("contents")
    is_whole = contents is None or (isinstance(contents, list) and isinstance(channels, list))
    if is_whole and (contents is None or len(contents) == len(channels or ())):
        return ""
    return "the log does not say of each buffer what is in it"


def _wrong(
    process: str, clock: Mapping[str, int], before: Mapping[str, int], processes: Mapping[str, Sequence[Event]]
) -> str:
    for name, count in before.items():
        if clock.get(name, 0) < count:
            return f"the event before knew {count} of {name}"
    for name, count in clock.items():
        if name == process or count == before.get(name, 0):
            continue
        own = processes.get(name, ())
        if count > len(own):
            return f"{name} has {len(own)} events, not {count}"
        for other, known in (own[count - 1].clock or {}).items():
            if clock.get(other, 0) < known:
                return f"event {count} of {name} knew {known} of {other}"
    return ""


def _buffers(event: Event) -> Iterable[tuple[str, Any]]:
    """The channels of the buffers that leave with an event, and what is in them; None where the log does not say so."""
    channels = event.args.get("channels", [event.args.get("channel")])
    contents = event.args.get("contents", [event.args.get("content")])
    if isinstance(channels, list):
        yield from zip_longest(map(str, channels), contents if isinstance(contents, list) else ())
