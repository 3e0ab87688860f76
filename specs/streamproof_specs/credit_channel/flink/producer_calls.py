"""Recorded calls at the producer's end of a channel, as actions of its machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

from streamproof.conformance import Constraint, Move, StateReader
from streamproof_models.credit_channel import DATA, DATA_TYPES
from streamproof_specs.credit_channel.flink.calls import Call, Effect, Reading, Way
from streamproof_specs.credit_channel.flink.demands import field_equals, message_pending, named

SKIPPED = 4
"""Maximum number of empty buffers that leave a queue unsent at a time, plus one."""

CREATED = Move("notify_reader_created", optional=True)
"""The reader may have been created after the request, when its partition was registered."""

REFUSED = Move("refuse")
"""The partition did not exist, and the requesting call ended with an exception, which leaves no record."""


def initial_credit(r: Reading, call: Call) -> Constraint:
    """The recorded initial credit is that of the channel."""
    return field_equals(call.record, "initial", "the initial credit", lambda look: r.exclusive)


def _add(r: Reading, call: Call) -> list[Effect]:
    if call.record.number("ret") == -1:
        return call.effect((), (Move("release_subpartition"),))
    return call.effect((Move("add", {"data_type": call.record.text("type")}),))


def _request_view(r: Reading, call: Call) -> list[Effect]:
    needed = message_pending(
        "no request for the subpartition is on its way", lambda look: look("partition_requests") > 0
    )
    # A pipelined partition that exists shows its queue; otherwise the reader is created when the partition is.
    there_is = (CREATED,) if "queue" in call.record.event.args else ()
    way = (Move("request_subpartition_view"), *there_is)
    return call.effect(way, before=(initial_credit(r, call),), requires_before=needed)


def _add_credit(r: Reading, call: Call) -> list[Effect]:
    needed = message_pending("no announcement of credit is on its way", lambda look: bool(look("add_credits")))
    same = field_equals(call.record, "n", "the credit added", lambda look: look("add_credits")[0])
    return call.effect((CREATED, Move("add_credit")), before=(same,), requires_before=needed)


def _resume(r: Reading, call: Call) -> list[Effect]:
    needed = message_pending(
        "the consumer has not resumed, or credit that it announced before has not arrived",
        lambda look: look("resume_consumption_sent") and look("add_credits_before_resume") == 0,
    )
    return call.effect((CREATED, Move("resume_subpartition")), requires_before=needed)


def _send(r: Reading, call: Call) -> list[Effect]:
    record = call.record
    if record.event.args.get("got") is False:
        return []
    data_type, partials = record.text("type"), record.number("partials")
    args: dict[str, Any] = {"size": record.number("bytes"), "backlog": record.number("backlog")}
    moves: list[Move]
    if not r.pipelined:
        args |= {"data_type": data_type, "partial_buffers": 1 if partials is None else partials}
        moves = [Move("send_stored", args)]
    else:
        args["more"] = record.text("next") != "NONE"
        if data_type in DATA:
            options = product(range(SKIPPED), (False, True))
            moves = [Move("send_data", {**args, "skipped": n, "unfinished": unfinished}) for n, unfinished in options]
        else:
            moves = [Move("send_event", {**args, "skipped": n}) for n in range(SKIPPED)]

    def sent(look: StateReader) -> Mapping[str, Any]:
        return named(look, "responses", look("responses")[-1])

    due = field_equals(record, "seq", "the sequence number sent", lambda look: look("sequence_number"))
    same = field_equals(record, "type", "the kind sent", lambda look: sent(look)["data_type"])
    ways: list[Way] = [(CREATED, move) for move in moves]
    return call.effect(*ways, before=(due,), afterwards=(same, _next(r, call)))


def _next(r: Reading, call: Call) -> Constraint:
    """The producer's recorded next sendable message: none without credit for it, none while it is blocked."""
    given = call.record.text("next")

    def possible(look: StateReader) -> tuple[str, ...]:
        if not r.pipelined:
            return tuple(t for t in ("NONE", *DATA_TYPES) if t not in DATA or look("num_credits_available") > 0)
        waiting = (*look("priority_buffers"), *look("buffers"))
        if look("is_blocked") or not waiting:
            return ("NONE",)
        if waiting[0] not in DATA:
            return (waiting[0],)
        if look("num_credits_available") == 0:
            return ("NONE",)
        return (waiting[0],) if len(waiting) > 1 else ("NONE", waiting[0])

    def text(look: StateReader) -> str:
        shown = possible(look)
        return f"{given} is said to be next, but it must be {' or '.join(shown if len(shown) < 5 else ['no data'])}"

    return Constraint(text, lambda look: given in possible(look))


def _announce_backlog(r: Reading, call: Call) -> list[Effect]:
    # The backlog was read before the call, after the preceding one in the same thread.
    announcement = Move("announce_backlog", {"backlog": call.record.number("backlog")})
    return [Effect(call.before, call.acted, ((CREATED, announcement),))]


def _release(r: Reading, call: Call) -> list[Effect]:
    release = (CREATED, Move("release_reader"))
    return call.effect(release, (Move("release_subpartition"), *release))


def _cancel(r: Reading, call: Call) -> list[Effect]:
    released = message_pending("the consumer has not released", lambda look: look("channel_released"))
    ways = ((Move("cancel"),), (REFUSED, Move("cancel")))
    return call.effect(*ways, requires_before=released if r.release_recorded else None)


PRODUCER_CALLS: dict[str, Callable[[Reading, Call], list[Effect]]] = {
    "p.enqueue": _add,
    "p.request": _request_view,
    "p.credit_add": _add_credit,
    "p.resume": _resume,
    "p.send": _send,
    "p.backlog_announce": _announce_backlog,
    "p.release": _release,
    "p.cancel": _cancel,
}
"""The effects of a call, in order, by its name."""
