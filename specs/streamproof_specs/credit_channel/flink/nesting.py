"""The calls of a recording by channel, and the position of each call in its thread."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

from streamproof_specs.credit_channel.flink.records import REQUEST, Recorded, Recording, subpartition_indices


@dataclass(frozen=True, slots=True)
class Nesting:
    """The position of a call in its thread: its caller, its callees, the end of the preceding call."""

    outer: Recorded | None
    inner: list[Recorded]
    before: int


def nested(records: list[Recorded]) -> dict[int, Nesting]:
    """The position of each call of one process, by the moment of its return."""
    # Tasks of one name share a thread name. Producing and consuming calls never nest.
    threads: dict[tuple[str, bool], list[Recorded]] = {}
    for record in records:
        threads.setdefault((record.thread, record.name.startswith("p.")), []).append(record)
    places: dict[int, Nesting] = {}
    for calls in threads.values():
        around: list[Recorded] = []
        moments = sorted(m for call in calls for m in (call.begun, call.done))
        for call in sorted(calls, key=lambda r: (r.begun, -r.done)):
            while around and around[-1].done < call.done:
                around.pop()
            at = bisect_left(moments, call.begun)
            places.setdefault(call.done, Nesting(around[-1] if around else None, [], moments[at - 1] if at else -1))
            if around:
                places[around[-1].done].inner.append(call)
            around.append(call)
    return places


def by_channel(recording: Recording) -> Iterator[tuple[str, dict[str, list[Recorded]]]]:
    """The channels of a run with their records by process. Messages queued before a consumer's request belong to the
    first consumer that requests them."""
    requests: dict[tuple[str, str], list[tuple[range, str]]] = {}
    for process, records in recording.processes.items():
        for r in records:
            if r.name == REQUEST and (indices := subpartition_indices(r.event.args.get("subpartitions"))):
                requests.setdefault((process, r.text("partition")), []).append((indices, r.channel))

    @cache
    def who_asked(process: str, partition: str, text: str) -> str:
        indices = subpartition_indices(text.rpartition(",")[2]) or range(0)
        given = requests.get((process, partition), ())
        return next((channel for several, channel in given for index in indices if index in several), "")

    channels: dict[str, dict[str, list[Recorded]]] = {}
    for process, records in recording.processes.items():
        for r in records:
            channel = r.channel
            if not channel and r.name == "p.enqueue":
                channel = who_asked(process, r.text("partition"), r.text("subpartition"))
            if channel:
                mine = r if r.channel else replace(r, channel=channel, event=replace(r.event, trace=channel))
                channels.setdefault(channel, {}).setdefault(process, []).append(mine)
    yield from channels.items()
