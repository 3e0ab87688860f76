"""Whether the vector clocks of an attempt are those of its messages.

An event knows all that the event before it knew. What it knows of another process is an event that is in the log, with all
that this one knew: an event is written before anything that it sends can leave. And whoever takes a buffer knows the event
that sent it; channels keep their order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from streamproof.conformance import Event

_Key = tuple[str, int]


def contradictions(processes: Mapping[str, Sequence[Event]], sending: Sequence[str]) -> dict[_Key, str]:
    """What is wrong with the clock of an event, by process and number, for the first such event of each process.

    `processes`: the events of each in their order, which their clocks count from 1 on; `sending`: the events whose argument
    `channel`, or `channels`, says where buffers leave.
    """
    senders: dict[str, list[tuple[str, int]]] = {}
    for process, own in processes.items():
        for number, event in enumerate(own, 1):
            for channel in _channels(event) if event.event in sending else ():
                senders.setdefault(channel, []).append((process, number))
    return {(process, at.seq): why for process, own in processes.items() for at, why in _first(own, processes, senders)}


def _first(
    own: Sequence[Event], processes: Mapping[str, Sequence[Event]], senders: Mapping[str, Sequence[tuple[str, int]]]
) -> list[tuple[Event, str]]:
    before: Mapping[str, int] = {}
    taken = Counter[str]()
    for event in own:
        clock = event.clock or {}
        why = _wrong(event.process, clock, before, processes)
        if event.event == "record_received" and not why:
            channel = str(event.args.get("channel"))
            taken[channel] += 1
            made = senders.get(channel, ())
            if len(made) >= taken[channel]:
                sender, number = made[taken[channel] - 1]
                if clock.get(sender, 0) < number:
                    why = f"buffer {taken[channel]} of {channel} was sent with event {number} of {sender}"
        if why:
            return [(event, f"its vector clock is wrong: {why}")]
        before = clock
    return []


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


def _channels(event: Event) -> Sequence[str]:
    found = event.args.get("channels", [event.args.get("channel")])
    return [str(channel) for channel in found] if isinstance(found, list) else ()
