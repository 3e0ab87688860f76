"""Recorded calls on a channel as actions of its machine, with the span in which each took effect.

A call takes effect after the calls that it made before and before those that it made after its effect; its recorded
counters were read when all of these had returned. Counters are read one by one while other threads run, so each counter
that another thread changes is compared individually.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import islice, product
from typing import Any

from streamproof.conformance import Constraint, Move, Observation, Span, StateReader
from streamproof_models.credit_channel import BARRIER, DATA, KINDS, URGENT
from streamproof_specs.flink.credit_demands import (
    ANY,
    counters,
    field_equals,
    first_message,
    message_pending,
    named,
    next_kind,
    queued,
    torn,
)
from streamproof_specs.flink.credit_records import Recorded

Way = tuple[Move, ...]

SKIPPED = 4
"""Maximum number of empty buffers that leave a queue unsent at a time, plus one."""


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of a call between two moments: `alternatives` with constraints `before` and `afterwards`."""

    opens: int
    closes: int
    alternatives: tuple[Way, ...] = ((),)
    before: tuple[Constraint, ...] = ()
    afterwards: tuple[Constraint, ...] = ()
    requires_before: Constraint | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A recorded call on a channel with the calls it made, its caller, and the end of the preceding call."""

    record: Recorded
    inner: Sequence[Recorded]
    outer: Recorded | None
    before: int
    thread: int
    emptying: bool = False
    """Whether it was made while the buffers of its own channel were released one by one."""

    @property
    def begun(self) -> int:
        """The moment of its beginning."""
        return self.record.begun

    @property
    def acted(self) -> int:
        """The latest moment of its own effect, if it takes effect before its calls."""
        return self.inner[0].begun if self.inner else self.record.done

    @property
    def read(self) -> int:
        """The moment after which its counters were read."""
        return self.inner[-1].done if self.inner else self.record.begun


@dataclass(frozen=True, slots=True)
class Reading:
    """The interpretation of the calls of one channel. `given_up`: the consumer's record contains the release of the
    channel."""

    exclusive: int
    pipelined: bool
    given_up: bool
    last_use: int = -1
    """The moment of the last record with an active producer queue; after that it may be gone."""

    def effects(self, call: Call) -> list[Effect]:
        """The effect of a call on the machine, in order. Empty for calls without an effect of their own."""
        reader: Callable[[Reading, Call], list[Effect]] | None = _READERS.get(call.record.name)
        return [] if reader is None else reader(self, call)

    def known(self, name: str) -> bool:
        """Whether the record is of a known call."""
        return name in _READERS or name in SILENT


SILENT = frozenset({"c.error", "c.partition_not_found"})
"""Calls that do not change a channel's flow control."""


_CREATED = Move("create", optional=True)
"""The reader may have been created after the request, when its partition was registered."""

_REFUSED = Move("refuse")
"""The partition did not exist, and the requesting call ended with an exception, which leaves no record."""

_ARRIVES = message_pending("no message is on its way to the consumer", lambda look: bool(look("down")))


# --- the producer


def _enqueue(r: Reading, call: Call) -> list[Effect]:
    record = call.record
    if record.number("ret") == -1:
        return [Effect(call.begun, call.acted, ((), (Move("abandon"),)))]
    return [Effect(call.begun, call.acted, ((Move("enqueue", {"kind": record.text("type")}),),))]


def _accept(r: Reading, call: Call) -> list[Effect]:
    needed = message_pending("no request for the subpartition is on its way", lambda look: look("requests") > 0)
    # A pipelined partition that exists shows its queue; otherwise the reader is created when the partition is.
    there_is = (_CREATED,) if "queue" in call.record.event.args else ()
    return [
        Effect(
            call.begun,
            call.acted,
            ((Move("accept"), *there_is),),
            (_initial(r, call.record),),
            requires_before=needed,
        )
    ]


def _initial(r: Reading, record: Recorded) -> Constraint:
    return field_equals(record, "initial", "the initial credit", lambda look: r.exclusive)


def _add_credit(r: Reading, call: Call) -> list[Effect]:
    needed = message_pending("no announcement of credit is on its way", lambda look: bool(look("up")))
    same = field_equals(call.record, "n", "the credit added", lambda look: look("up")[0])
    return [Effect(call.begun, call.acted, ((_CREATED, Move("add_credit")),), (same,), requires_before=needed)]


def _restart(r: Reading, call: Call) -> list[Effect]:
    needed = message_pending(
        "the consumer has not resumed, or credit that it announced before has not arrived",
        lambda look: look("resuming") and look("ahead") == 0,
    )
    return [Effect(call.begun, call.acted, ((_CREATED, Move("restart")),), requires_before=needed)]


def _send(r: Reading, call: Call) -> list[Effect]:
    record = call.record
    if record.event.args.get("got") is False:
        return []
    kind, size, backlog = record.text("type"), record.number("bytes"), record.number("backlog")
    pieces = record.number("partials")
    said: dict[str, Any] = {"size": size, "backlog": backlog}
    due = field_equals(record, "seq", "the sequence number sent", lambda look: look("sent"))
    alternatives: list[Way]
    if not r.pipelined:
        alternatives = [
            (_CREATED, Move("send_stored", {"kind": kind, "pieces": 1 if pieces is None else pieces, **said}))
        ]
    else:
        said["more"] = record.text("next") != "NONE"
        if kind in DATA:
            options = product(range(SKIPPED), (False, True))
            alternatives = [(_CREATED, Move("send_data", {**said, "skipped": n, "kept": kept})) for n, kept in options]
        else:
            alternatives = [(_CREATED, Move("send_event", {**said, "skipped": n})) for n in range(SKIPPED)]

    def sent(look: StateReader) -> Mapping[str, Any]:
        return named(look, "down", look("down")[-1])

    after = (field_equals(record, "type", "the kind sent", lambda look: sent(look)["kind"]), _next(r, record))
    return [Effect(call.begun, call.acted, tuple(alternatives), (due,), after)]


def _next(r: Reading, record: Recorded) -> Constraint:
    """The producer's recorded next sendable message: none without credit for it, none while it is blocked."""
    given = record.text("next")

    def possible(look: StateReader) -> tuple[str, ...]:
        if not r.pipelined:
            return tuple(k for k in ("NONE", *KINDS) if k not in DATA or look("credits") > 0)
        waiting = (*look("urgent"), *look("queue"))
        if look("blocked") or not waiting:
            return ("NONE",)
        if waiting[0] not in DATA:
            return (waiting[0],)
        if look("credits") == 0:
            return ("NONE",)
        return (waiting[0],) if len(waiting) > 1 else ("NONE", waiting[0])

    def text(look: StateReader) -> str:
        shown = possible(look)
        return f"{given} is said to be next, but it must be {' or '.join(shown if len(shown) < 5 else ['no data'])}"

    return Constraint(text, lambda look: given in possible(look))


def _tell_backlog(r: Reading, call: Call) -> list[Effect]:
    # The backlog was read before the call, after the preceding one in the same thread.
    announcement = Move("tell_backlog", {"backlog": call.record.number("backlog")})
    return [Effect(call.before, call.acted, ((_CREATED, announcement),))]


def _close(r: Reading, call: Call) -> list[Effect]:
    return [Effect(call.begun, call.acted, ((_CREATED, Move("close")), (Move("abandon"), _CREATED, Move("close"))))]


def _cancel(r: Reading, call: Call) -> list[Effect]:
    released = message_pending("the consumer has not released", lambda look: look("released"))
    alternatives: tuple[Way, ...] = ((Move("cancel"),), (_REFUSED, Move("cancel")))
    return [Effect(call.begun, call.acted, alternatives, requires_before=released if r.given_up else None)]


# --- the consumer


def _set_aside(r: Reading, call: Call) -> list[Effect]:
    same = field_equals(call.record, "n", "the number of exclusive buffers", lambda look: r.exclusive)
    return [Effect(call.begun, call.acted, ((Move("set_aside"),),), (same,))]


def _request(r: Reading, call: Call) -> list[Effect]:
    return [Effect(call.begun, call.acted, ((Move("request"),),), (_initial(r, call.record),))]


def _retrigger(r: Reading, call: Call) -> list[Effect]:
    return [Effect(call.begun, call.acted, ((Move("request_again"),), (_REFUSED, Move("request_again"))))]


def _take(r: Reading, call: Call) -> list[Effect]:
    if call.record.event.args.get("got") is False:
        return [Effect(call.begun, call.acted, ((Move("take_none"),),), requires_before=_ARRIVES)]
    return [Effect(call.begun, call.acted, ((Move("take"),),), requires_before=_ARRIVES)]


def _inner(call: Call, *names: str) -> Recorded | None:
    return next((i for i in call.inner if i.name in names), None)


def _receive(r: Reading, call: Call) -> list[Effect]:
    record = call.record
    stop, backlog = _inner(call, "c.blocked"), _inner(call, "c.backlog")
    opens = call.begun if stop is None else stop.done
    closes = record.done if backlog is None else backlog.begun
    message: tuple[Constraint, ...] = (
        Constraint("a message about the backlog comes before it", lambda look: first_message(look)["what"] == "BUFFER"),
        field_equals(
            record, "seq", "the sequence number received", lambda look: first_message(look)["seq"] + look("piece")
        ),
        field_equals(record, "backlog", "the backlog received", _backlog_due),
    )
    alternatives: tuple[Way, ...]
    if record.name == "c.recv_empty":
        alternatives = ((Move("receive_empty"),), (Move("discard"),))
    else:
        same = field_equals(record, "type", "the kind received", lambda look: first_message(look)["kind"])
        message = (*message, same, _size_due(record))
        alternatives = ((Move("receive", {"size": record.number("bytes")}),), (Move("discard"),))
    return [Effect(opens, closes, alternatives, message, requires_before=_ARRIVES)]


def _size_due(record: Recorded) -> Constraint:
    given = record.number("bytes") or 0

    def left(look: StateReader) -> int:
        return int(first_message(look)["size"]) - int(look("filled"))

    def fits(look: StateReader) -> bool:
        return left(look) == given if _last_piece(look) else given < left(look)

    return Constraint(lambda look: f"{given} bytes are received, but {left(look)} were sent", fits)


def _last_piece(look: StateReader) -> bool:
    return bool(look("piece") + 1 == first_message(look)["pieces"])


def _backlog_due(look: StateReader) -> int:
    return int(first_message(look)["backlog"]) if _last_piece(look) else -1


def _hear(r: Reading, call: Call) -> list[Effect]:
    record = call.record
    inside = call.outer is not None and call.outer.name in ("c.recv", "c.recv_empty")
    if inside:
        noted = field_equals(record, "backlog", "the backlog noted", lambda look: look("stated"))
        return [Effect(call.begun, call.acted, ((Move("note_backlog"),),), (noted,))]
    message = (
        Constraint(
            "no backlog was announced: a buffer comes first", lambda look: first_message(look)["what"] == "BACKLOG"
        ),
        field_equals(record, "backlog", "the backlog announced", lambda look: first_message(look)["backlog"]),
    )
    return [Effect(call.begun, call.acted, ((Move("hear_backlog"),),), message, requires_before=_ARRIVES)]


def _want(r: Reading, call: Call) -> list[Effect]:
    record = call.record

    def wanted(look: StateReader) -> int | None:
        return None if look("stated") is None else look("stated") + r.exclusive

    move = Move("want", {"got": record.number("got")})
    return [Effect(call.begun, call.acted, ((move,),), (field_equals(record, "want", "what is wanted", wanted),))]


def _gain(r: Reading, call: Call) -> list[Effect]:
    same = field_equals(call.record, "n", "the credit gained", lambda look: look("owed")[call.thread])
    return [Effect(call.begun, call.acted, ((Move("gain", {"t": call.thread}),),), (same,))]


def _offer(r: Reading, call: Call) -> list[Effect]:
    if call.record.event.args.get("taken") is not True:
        declined = tuple((Move("decline_offer", {"noted": noted}),) for noted in (True, False))
        return [Effect(call.begun, call.acted, declined)]
    gain = _inner(call, "c.credit_gain")
    got = 1 if gain is None else gain.number("n")
    return [Effect(call.begun, call.acted, ((Move("accept_offer", {"got": got, "t": call.thread}),),))]


def _recycle(r: Reading, call: Call) -> list[Effect]:
    return [Effect(call.begun, call.acted, ((Move("recycle", {"t": call.thread}),),))]


def _announce(r: Reading, call: Call) -> list[Effect]:
    same = field_equals(call.record, "n", "the credit announced", lambda look: look("unannounced"))
    return [Effect(call.begun, call.acted, ((Move("announce"),),), (same,))]


def _poll(r: Reading, call: Call) -> list[Effect]:
    record = call.record
    if record.event.args.get("got") is False:
        nothing = Constraint("something was received and waits to be taken", lambda look: queued(look) == 0)
        return [Effect(call.begun, call.acted, before=(nothing,))]

    urgent = record.text("type") == URGENT

    def taken(look: StateReader) -> Mapping[str, Any]:
        for queue in ("first",) if urgent else ("first", "inbox"):
            if look(queue):
                return named(look, queue, look(queue)[0])
        return {} if look("barrier") is None else named(look, "barrier", look("barrier"))

    def kind(look: StateReader) -> Any:
        # A barrier that became urgent has another kind from then on.
        found = taken(look).get("kind")
        return URGENT if urgent and found == BARRIER else found

    before = [
        field_equals(record, "seq", "the sequence number taken", lambda look: taken(look).get("seq")),
        field_equals(record, "type", "the kind taken", kind),
    ]
    if not urgent:
        before.append(field_equals(record, "bytes", "the size taken", lambda look: taken(look).get("size")))

    def due(look: StateReader) -> str:
        late = look("barrier") is not None and named(look, "barrier", look("barrier"))["kind"] == BARRIER
        return URGENT if late and record.text("next") == URGENT else next_kind(look)

    after = field_equals(record, "next", "what is next", due)
    needed = message_pending("nothing was received that could be taken", lambda look: queued(look) > 0)
    alternatives: tuple[Way, ...] = ((Move("poll_first"),), (Move("poll_late"),)) if urgent else ((Move("poll"),),)
    return [Effect(call.begun, call.acted, alternatives, tuple(before), (after,), needed)]


def _stop(r: Reading, call: Call) -> list[Effect]:
    return [Effect(call.begun, call.acted, ((Move("stop_coming"),),), requires_before=_ARRIVES)]


def _resume(r: Reading, call: Call) -> list[Effect]:
    return [Effect(call.begun, call.acted, ((Move("resume", {"t": call.thread}),),))]


def _release(r: Reading, call: Call) -> list[Effect]:
    if _inner(call, "c.release_buffers") is None:
        again = Constraint("the channel is released, and its buffers are not", lambda look: look("released"))
        return [Effect(call.begun, call.acted, before=(again,))]
    return [
        Effect(call.begun, call.acted, ((Move("release"),),)),
        Effect(call.begun, call.acted, ((Move("forget"),),)),
    ]


def _empty(r: Reading, call: Call) -> list[Effect]:
    # Buffers are released one by one, and their consequences elsewhere happen in between.
    return [Effect(call.begun, call.record.done, ((Move("empty"),),))]


def _plain(action: str) -> Callable[[Reading, Call], list[Effect]]:
    """A call that is one action without arguments."""
    return lambda r, call: [Effect(call.begun, call.acted, ((Move(action),),))]


_READERS: dict[str, Callable[[Reading, Call], list[Effect]]] = {
    "p.enqueue": _enqueue,
    "p.request": _accept,
    "p.credit_add": _add_credit,
    "p.resume": _restart,
    "p.send": _send,
    "p.backlog_announce": _tell_backlog,
    "p.release": _close,
    "p.cancel": _cancel,
    "c.excl_request": _set_aside,
    "c.request": _request,
    "c.retrigger": _retrigger,
    "c.buffer_taken": _take,
    "c.recv": _receive,
    "c.recv_empty": _receive,
    "c.backlog": _hear,
    "c.float_request": _want,
    "c.credit_gain": _gain,
    "c.float_offered": _offer,
    "c.excl_recycle": _recycle,
    "c.credit_announce": _announce,
    "c.poll": _poll,
    "c.blocked": _stop,
    "c.float_release": _plain("drain"),
    "c.resume": _resume,
    "c.release": _release,
    "c.release_buffers": _empty,
}


def finished(call: Call) -> list[Constraint]:
    """The constraints at the return of a call: all resulting actions in its thread are done."""
    found = []
    if call.record.name in _STATING:
        found.append(
            Constraint(
                "no floating buffers were requested for the backlog received", lambda look: look("stated") is None
            )
        )
    if call.record.name in _GAINING:
        found.append(
            Constraint("what was gained was not counted as credit", lambda look: look("owed")[call.thread] is None)
        )
    if call.record.name == "p.cancel":
        found.append(Constraint("the reader was not released", lambda look: not look("listed")))
    if call.record.name == "c.blocked":
        found.append(
            Constraint(
                "the floating buffers were not given back", lambda look: look("stop") != "COMING" or look("drained")
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
    effects = [(call, effect) for call in calls for effect in r.effects(call)]
    found: list[tuple[Call, Observation, int, int, _Part]] = [
        (call, _observed(call.record, e), e.opens, e.closes, _Part.EFFECT) for call, e in effects
    ]
    threads: dict[int, _Acts] = {}
    for call, e in sorted(effects, key=lambda pair: pair[1].closes):
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
        alternatives: tuple[Way, ...] = ((), (Move("abandon"),)) if gone else ((),)
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
