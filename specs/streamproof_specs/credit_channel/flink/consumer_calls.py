"""Recorded calls at the consumer's end of a channel, as actions of its machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from streamproof.conformance import Constraint, Move, StateReader
from streamproof_models.credit_channel import PRIORITY, TIMEOUTABLE
from streamproof_specs.credit_channel.flink.calls import Call, Effect, Reading, Way
from streamproof_specs.credit_channel.flink.demands import (
    QUEUES,
    blocking_event,
    field_equals,
    first_message,
    message_pending,
    named,
    next_kind,
    queued,
)
from streamproof_specs.credit_channel.flink.producer_calls import REFUSED, initial_credit

_ARRIVES = message_pending("no message is on its way to the consumer", lambda look: bool(look("responses")))


def _request_exclusive(r: Reading, call: Call) -> list[Effect]:
    same = field_equals(call.record, "n", "the number of exclusive buffers", lambda look: r.exclusive)
    return call.effect((Move("request_exclusive_buffers"),), before=(same,))


def _request(r: Reading, call: Call) -> list[Effect]:
    return call.effect((Move("request_subpartition"),), before=(initial_credit(r, call),))


def _retrigger(r: Reading, call: Call) -> list[Effect]:
    again = Move("retrigger_request")
    return call.effect((again,), (REFUSED, again), (Move("time_out"), again), (Move("request_answered"),))


def _request_buffer(r: Reading, call: Call) -> list[Effect]:
    if call.record.event.args.get("got") is not False:
        return call.effect((Move("request_buffer"),), requires_before=_ARRIVES)
    # The message for which a buffer was requested before may have been dropped, which leaves no record.
    none = Move("request_buffer_after_release")
    return call.effect((none,), (Move("discard"), none), requires_before=_ARRIVES)


def _receive(r: Reading, call: Call) -> list[Effect]:
    record = call.record
    stop, backlog = call.called("c.blocked"), call.called("c.backlog")
    opens = call.begun if stop is None else stop.done
    closes = record.done if backlog is None else backlog.begun

    def number(look: StateReader) -> int:
        return int(first_message(look)["sequence_number"] + look("partial_buffers_received"))

    message: tuple[Constraint, ...] = (
        Constraint(
            "a message about the backlog comes before it",
            lambda look: first_message(look)["message"] == "BufferResponse",
        ),
        field_equals(record, "seq", "the sequence number received", number),
        field_equals(record, "backlog", "the backlog received", _backlog_due),
    )
    move = Move("on_empty_buffer")
    if record.name == "c.recv":
        move = Move("on_buffer", {"size": record.number("bytes")})
        same = field_equals(record, "type", "the kind received", lambda look: first_message(look)["data_type"])
        message = (*message, same, _size_due(call))
    return [Effect(opens, closes, ((move,), (Move("discard"),)), message, requires_before=_ARRIVES)]


def _size_due(call: Call) -> Constraint:
    given = call.record.number("bytes") or 0

    def left(look: StateReader) -> int:
        return int(first_message(look)["size"]) - int(look("bytes_received"))

    def fits(look: StateReader) -> bool:
        return left(look) == given if _last_partial(look) else given < left(look)

    return Constraint(lambda look: f"{given} bytes are received, but {left(look)} were sent", fits)


def _last_partial(look: StateReader) -> bool:
    return bool(look("partial_buffers_received") + 1 == first_message(look)["partial_buffers"])


def _backlog_due(look: StateReader) -> int:
    return int(first_message(look)["backlog"]) if _last_partial(look) else -1


def _backlog(r: Reading, call: Call) -> list[Effect]:
    record = call.record
    inside = call.outer is not None and call.outer.name in ("c.recv", "c.recv_empty")
    if inside:
        noted = field_equals(record, "backlog", "the backlog noted", lambda look: look("sender_backlog"))
        return call.effect((Move("on_sender_backlog"),), before=(noted,))
    message = (
        Constraint(
            "no backlog was announced: a buffer comes first",
            lambda look: first_message(look)["message"] == "BacklogAnnouncement",
        ),
        field_equals(record, "backlog", "the backlog announced", lambda look: first_message(look)["backlog"]),
    )
    return call.effect((Move("receive_backlog_announcement"),), before=message, requires_before=_ARRIVES)


def _request_floating(r: Reading, call: Call) -> list[Effect]:
    def wanted(look: StateReader) -> int | None:
        return None if look("sender_backlog") is None else look("sender_backlog") + r.exclusive

    move = Move("request_floating_buffers", {"got": call.record.number("got")})
    return call.effect((move,), before=(field_equals(call.record, "want", "what is wanted", wanted),))


def _gain(r: Reading, call: Call) -> list[Effect]:
    same = field_equals(call.record, "n", "the credit gained", lambda look: look("credit_gained")[call.thread])
    return call.effect((Move("notify_buffer_available", {"t": call.thread}),), before=(same,))


def _offer(r: Reading, call: Call) -> list[Effect]:
    if call.record.event.args.get("taken") is not True:
        return call.effect(*((Move("decline_floating_buffer", {"noted": noted}),) for noted in (True, False)))
    gain = call.called("c.credit_gain")
    got = 1 if gain is None else gain.number("n")
    return call.effect((Move("accept_floating_buffer", {"got": got, "t": call.thread}),))


def _announce(r: Reading, call: Call) -> list[Effect]:
    same = field_equals(call.record, "n", "the credit announced", lambda look: look("unannounced_credit"))
    return call.effect((Move("announce_credit"),), before=(same,))


def _poll(r: Reading, call: Call) -> list[Effect]:
    record = call.record
    if record.event.args.get("got") is False:
        nothing = Constraint("something was received and waits to be taken", lambda look: queued(look) == 0)
        return call.effect(before=(nothing,))

    urgent = record.text("type") == PRIORITY

    def taken(look: StateReader) -> Mapping[str, Any]:
        for queue in QUEUES[:1] if urgent else QUEUES:
            if look(queue):
                return named(look, queue, look(queue)[0])
        return blocking_event(look) or {}

    def kind(look: StateReader) -> Any:
        # A barrier that became urgent has another kind from then on.
        found = taken(look).get("data_type")
        return PRIORITY if urgent and found == TIMEOUTABLE else found

    before = [
        field_equals(record, "seq", "the sequence number taken", lambda look: taken(look).get("sequence_number")),
        field_equals(record, "type", "the kind taken", kind),
    ]
    if not urgent:
        before.append(field_equals(record, "bytes", "the size taken", lambda look: taken(look).get("size")))

    def due(look: StateReader) -> str:
        late = (blocking_event(look) or {}).get("data_type") == TIMEOUTABLE
        return PRIORITY if late and record.text("next") == PRIORITY else next_kind(look)

    after = field_equals(record, "next", "what is next", due)
    needed = message_pending("nothing was received that could be taken", lambda look: queued(look) > 0)
    ways: tuple[Way, ...] = ((Move("poll_priority"),), (Move("poll_timed_out"),)) if urgent else ((Move("poll"),),)
    return call.effect(*ways, before=tuple(before), afterwards=(after,), requires_before=needed)


def _release(r: Reading, call: Call) -> list[Effect]:
    if call.called("c.release_buffers") is None:
        again = Constraint("the channel is released, and its buffers are not", lambda look: look("channel_released"))
        return call.effect(before=(again,))
    return [*call.effect((Move("release_channel"),)), *call.effect((Move("clear_received_buffers"),))]


def _release_buffers(r: Reading, call: Call) -> list[Effect]:
    # Buffers are released one by one, and their consequences elsewhere happen in between.
    return [Effect(call.begun, call.record.done, ((Move("release_all_buffers"),),))]


CONSUMER_CALLS: dict[str, Callable[[Reading, Call], list[Effect]]] = {
    "c.excl_request": _request_exclusive,
    "c.request": _request,
    "c.retrigger": _retrigger,
    "c.buffer_taken": _request_buffer,
    "c.recv": _receive,
    "c.recv_empty": _receive,
    "c.backlog": _backlog,
    "c.float_request": _request_floating,
    "c.credit_gain": _gain,
    "c.float_offered": _offer,
    "c.excl_recycle": lambda r, call: call.effect((Move("recycle", {"t": call.thread}),)),
    "c.credit_announce": _announce,
    "c.poll": _poll,
    "c.blocked": lambda r, call: call.effect((Move("on_blocking_upstream"),), requires_before=_ARRIVES),
    "c.float_release": lambda r, call: call.effect((Move("release_floating_buffers"),)),
    "c.resume": lambda r, call: call.effect((Move("resume_consumption", {"t": call.thread}),)),
    "c.release": _release,
    "c.release_buffers": _release_buffers,
}
"""The effects of a call, in order, by its name."""
