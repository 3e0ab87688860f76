"""The span of each recorded call on a channel: its effects, its return, and the reading of its counters.

Recorded counters were read when the calls made inside had returned. They are read one by one while other threads run, so
each counter that another thread changes is compared individually.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import islice

from streamproof.conformance import Constraint, Move, Observation, Span
from streamproof_specs.credit_channel.flink.calls import Call, Effect, Reading, Way
from streamproof_specs.credit_channel.flink.consumer_calls import CONSUMER_CALLS
from streamproof_specs.credit_channel.flink.demands import ANY, counters, torn
from streamproof_specs.credit_channel.flink.producer_calls import PRODUCER_CALLS
from streamproof_specs.credit_channel.flink.records import Recorded

CALLS = {**PRODUCER_CALLS, **CONSUMER_CALLS}


def effects(r: Reading, call: Call) -> list[Effect]:
    """The effects of a call, in order. Empty for calls without an effect of their own."""
    return CALLS[call.record.name](r, call) if call.record.name in CALLS else []


def finished(call: Call) -> list[Constraint]:
    """The constraints at the return of a call: all resulting actions in its thread are done."""
    found = []
    if call.record.name in _STATING:
        found.append(
            Constraint(
                "no floating buffers were requested for the backlog received",
                lambda look: look("sender_backlog") is None,
            )
        )
    if call.record.name in _GAINING:
        found.append(
            Constraint(
                "what was gained was not counted as credit", lambda look: look("credit_gained")[call.thread] is None
            )
        )
    if call.record.name == "p.cancel":
        found.append(Constraint("the reader was not released", lambda look: not look("in_all_readers")))
    if call.record.name == "c.blocked":
        found.append(
            Constraint(
                "the floating buffers were not given back",
                lambda look: look("blocking_event") != "ARRIVING" or look("floating_released"),
            )
        )
    return found


_STATING = frozenset({"c.recv", "c.recv_empty", "c.backlog"})
_GAINING = frozenset({"c.backlog", "c.float_offered", "c.excl_recycle"})


class _Part(IntEnum):
    """The span of a call, in the order of those that end together."""

    EFFECT = 0
    RETURN = 1
    COUNTERS = 2


@dataclass(frozen=True, slots=True)
class _Acts:
    """The effects of one thread on the channel, in order, each with its end."""

    ends: list[int]
    effects: list[tuple[int, Recorded]]

    def beside(self, opens: int, closes: int) -> Iterator[Recorded]:
        """The possible effects between two moments."""
        for begun, record in islice(self.effects, bisect_right(self.ends, opens), None):
            if begun >= closes:
                return
            yield record


def spans(r: Reading, calls: Sequence[Call]) -> tuple[Span, ...]:
    """The calls of one process on one channel as spans, in the order in which they end."""
    acted = [(call, effect) for call in calls for effect in effects(r, call)]
    found: list[tuple[Call, Observation, int, int, _Part]] = [
        (call, _observed(call.record, e), e.opens, e.closes, _Part.EFFECT) for call, e in acted
    ]
    threads: dict[int, _Acts] = {}
    for call, e in sorted(acted, key=lambda pair: pair[1].closes):
        acts = threads.setdefault(call.thread, _Acts([], []))
        acts.ends.append(e.closes)
        acts.effects.append((e.opens, call.record))
    for call in calls:
        opens, closes = call.read, call.record.done
        due = tuple(finished(call))
        if due:
            found.append((call, Observation(call.record.event, constraints=due), opens, closes, _Part.RETURN))
        if not counters(call.record):
            continue
        beside = [
            other for thread, acts in threads.items() if thread != call.thread for other in acts.beside(opens, closes)
        ]
        if beside or call.emptying:
            slack: Counter[str] = Counter({"excl": ANY, "float": ANY} if call.emptying else {})
            for record in {id(other): other for other in beside}.values():
                slack.update(torn(record))
            together: list[tuple[Constraint, ...]] = [(c,) for c in counters(call.record, slack)]
        else:
            together = [tuple(counters(call.record))]
        gone = call.record.number("queue") == 0 and closes > r.last_use and call.record.name.startswith("p.")
        alternatives: tuple[Way, ...] = ((), (Move("release_subpartition"),)) if gone else ((),)
        for constraints in together:
            read = Observation(call.record.event, alternatives, constraints)
            found.append((call, read, opens, closes, _Part.COUNTERS))
    found.sort(key=lambda f: (f[3], f[4]))
    place: dict[int, int] = {}
    made: list[Span] = []
    for at, (call, observation, opens, closes, part) in enumerate(found):
        key = id(call.record.event)
        made.append(Span(observation, opens, closes, place.get(key), part is _Part.RETURN))
        if part is _Part.EFFECT:
            place[key] = at
    return tuple(made)


def _observed(record: Recorded, effect: Effect) -> Observation:
    return Observation(
        record.event, effect.alternatives, effect.afterwards, effect.before, requires_before=effect.requires_before
    )
