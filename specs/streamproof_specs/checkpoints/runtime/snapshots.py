"""The snapshots of an attempt of the runtime, and whether those of a checkpoint fit together."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from streamproof.conformance import Event, InputError
from streamproof_specs.baton.runtime import EMITS, REPLAYED
from streamproof_specs.runtime.logs import JOBMASTER

SNAPSHOT, RETURNED, LOGGED = "snapshot_taken", "barrier_received", "buffers_logged"
Buffers = dict[str, list[str]]
"""What is in buffers, by channel."""


@dataclass(slots=True)
class Snapshot:
    """A snapshot of a subtask, with what it had sent and received by then, by channel."""

    event: Event
    sent: Mapping[str, Sequence[str]]
    """What was in the buffers that it has sent, or begun with on feedback channels."""
    received: Mapping[str, int]
    """Buffers that it has taken and processed."""
    held: int
    """Buffers that it has taken and not processed."""
    logged: Buffers | None = None
    """Buffers that are part of the snapshot; none of a subtask that logs."""

    @property
    def checkpoint(self) -> int:
        """Its number."""
        return number(self.event, "checkpoint")


def contradiction(taken: Mapping[str, Snapshot], *, unaligned: bool) -> str | None:
    """What of the snapshots of a checkpoint, by subtask, does not fit together, if anything: on each channel what had been
    sent must be what had been received, and behind it what is in the snapshots."""
    got = Counter[str]()
    for task, snapshot in taken.items():
        if snapshot.held and not unaligned:
            return f"{task} took its snapshot while it held {snapshot.held} buffers, which are in none"
        if snapshot.logged is None:
            return f"the buffers of {task} for checkpoint {snapshot.checkpoint} are not complete"
        got.update(snapshot.received)
    for channel in dict.fromkeys((*(c for snapshot in taken.values() for c in snapshot.sent), *got)):
        if not {*ends(channel)} <= taken.keys():
            continue
        source, target = ends(channel)[:2]
        both = [*dict.fromkeys((target, source))]
        own = [c for task in both for c in taken[task].sent.get(channel, ())]
        logged = [c for task in both for c in (taken[task].logged or {}).get(channel, ())]
        of = got[channel] + len(logged)
        if not own:
            return f"no buffer of {channel} was sent before a snapshot, and {of} received before one"
        if len(own) != of:
            text = f"{len(own)} buffers of {channel} were sent before a snapshot, and {of} received before one"
            return f"{text}{' or logged' if unaligned or '~' in channel else ''}"
        if own[got[channel] :] != logged:
            return f"other buffers of {channel} are in the snapshots than were sent"
    return None


def number(event: Event, name: str) -> int:
    """An argument that is a number. Raises `InputError` for anything else."""
    value = event.args.get(name)
    if type(value) is not int or value < 0:
        raise InputError(f"{event} needs the argument {name!r}, a number", loc=event.loc)
    return value


def buffers(event: Event, contents_unknown: bool = False) -> Buffers:
    """The buffers of an event with the arguments `channels` and `contents`, perhaps without these. Raises `InputError` for
    other arguments."""
    channels, contents = event.args.get("channels"), event.args.get("contents")
    if contents_unknown and contents is None and isinstance(channels, list):
        contents = [None] * len(channels)
    if not isinstance(channels, list) or not isinstance(contents, list) or len(channels) != len(contents):
        raise InputError(f"{event} needs the arguments 'channels' and 'contents', of each buffer", loc=event.loc)
    found: Buffers = {}
    for channel, content in zip(channels, contents, strict=True):
        found.setdefault(str(channel), []).append(str(content))
    return found


def ends(channel: str) -> list[str]:
    """The sender and the receiver of a channel: ``a>b``, or ``b~a`` of feedback, perhaps with more behind a second mark."""
    return re.split("[>~]+", channel)[:2]


def by_subtask(events: Iterable[Event]) -> dict[str, list[Event]]:
    """The events of each subtask of an attempt, in their order."""
    found: dict[str, list[Event]] = {}
    for event in sorted(events, key=lambda e: e.seq):
        if event.process != JOBMASTER:
            found.setdefault(event.process, []).append(event)
    return found


def feedback_of(events: Iterable[Event]) -> list[str]:
    """The feedback channels of a subtask; none of one that is no loop head."""
    opened = next((e for e in events if e.event == "loop_opened"), None)
    found = opened.args.get("feedback") if opened else None
    return [str(channel) for channel in found] if isinstance(found, list) else []


def snapshots(events: Iterable[Event], *, unaligned: bool) -> list[Snapshot]:
    """All snapshots of an attempt. Raises `InputError` for events without the arguments that they need."""
    return [s for own in by_subtask(events).values() for s in _of_subtask(own, unaligned=unaligned)]


def _of_subtask(own: Sequence[Event], *, unaligned: bool) -> list[Snapshot]:
    found: list[Snapshot] = []
    logs = unaligned or bool(feedback_of(own))
    sent: dict[str, list[str]] = {}
    taken: list[str] = []
    held = 0
    for event in own:
        if event.event == "record_received":
            taken.append(str(event.args.get("channel")))
        elif event.event == "record_produced":
            sent.setdefault(str(event.args.get("channel")), []).append(str(event.args.get("content")))
        elif event.event in (*EMITS, REPLAYED):
            for channel, contents in buffers(event, event.event != REPLAYED).items():
                sent.setdefault(channel, []).extend(contents)
        elif event.event == SNAPSHOT:
            number(event, "checkpoint")
            received = Counter(taken[: len(taken) - held] if unaligned else taken)
            before = {channel: [*contents] for channel, contents in sent.items()}
            found.append(Snapshot(event, before, received, held, None if logs else {}))
        elif event.event == LOGGED:
            if not found or found[-1].checkpoint != number(event, "checkpoint") or found[-1].logged is not None:
                raise InputError(f"{event}: the subtask has no such snapshot without buffers", loc=event.loc)
            found[-1].logged = buffers(event)
        value = (event.state or {}).get("held", held)
        held = value if type(value) is int else held
    return found
