"""Explanations of credit-based flow control: why a call was impossible, and which calls were possible."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from streamproof.conformance import Event, Instance, Move, StateReader
from streamproof_models.credit_channel import BLOCKING, DATA
from streamproof_specs.credit_channel.flink.calls import Reading
from streamproof_specs.credit_channel.flink.demands import first_message, next_kind


@dataclass(frozen=True, slots=True)
class CreditExplainer:
    """Explains the machine of one channel in Flink's terms."""

    reading: Reading

    def why_not(self, move: Move, look: StateReader) -> str | None:
        """Why a call is impossible in a state; None to show the false condition itself."""
        match move.action:
            case "send_data" | "send_event" | "send_stored" | "announce_backlog":
                return self._not_sent(move, look)
            case "cancel":
                return self._not_cancelled(look)
            case "release_reader" if look("reader_created"):
                return "the reader is in no map of readers: it was never created, or is released already"
            case "add":
                return "the producer has finished or given up the partition" if self._ended(look) else None
            case "request_subpartition_view":
                return "no request for the subpartition is on its way"
            case "resume_subpartition":
                return "the producer is not stopped" if not look("is_blocked") else None
            case "request_exclusive_buffers":
                return "the channel has its exclusive buffers already"
            case "request_subpartition" | "retrigger_request":
                return "the channel cannot request the subpartition (again)"
            case "request_buffer" | "request_buffer_after_release":
                return self._not_taken(look)
            case "on_blocking_upstream" | "release_floating_buffers":
                return self._not_stopped(move, look)
            case "on_buffer" | "on_empty_buffer" | "discard":
                return self._not_received(look)
            case "request_floating_buffers":
                return self._not_wanted(move, look)
            case "accept_floating_buffer":
                if not look("is_waiting_for_floating_buffers"):
                    return "the channel does not wait for a floating buffer"
                return self._has(look)
            case "decline_floating_buffer":
                if not look("is_waiting_for_floating_buffers"):
                    return "the channel does not wait for a floating buffer"
                return f"{self._has(look)}, so it needs the buffer that it declines"
            case "recycle":
                return "no exclusive buffer has been consumed that could return"
            case "resume_consumption":
                if look("channel_released"):
                    return "the channel is released"
                return "the task has taken no blocking event that it could resume from"
            case "release_channel" | "release_all_buffers":
                return "the channel is released already" if look("channel_released") else "the channel is not released"
            case _:
                return None

    def expected(self, enabled: Sequence[Instance], look: StateReader, event: Event) -> Iterable[tuple[int, str]]:
        """The possible next calls at either end, those of the event's own end first."""
        mine = event.event[:2]
        for text in (*self._of_producer(look), *self._of_consumer(look)):
            yield int(not text.startswith(mine)), text

    # --- impossible calls

    def _ended(self, look: StateReader) -> bool:
        return bool(look("is_finished") or look("subpartition_released"))

    def _not_sent(self, move: Move, look: StateReader) -> str | None:
        if not look("reader_created"):
            return "nothing is sent before the consumer's request has arrived"
        if look("reader_released") and not self.reading.pipelined:
            return "the producer's end is released"
        if look("reader_released") and not look("cancel_requests"):
            return "the producer's end is released with its connection"
        if look("is_registered_as_available") and not look("in_available_readers"):
            return "the reader is registered as available and in no queue: a request to cancel took it out, for good"
        waiting = (*look("priority_buffers"), *look("buffers"))
        if look("is_blocked") and not look("priority_buffers"):
            return "the producer is stopped by a blocking event, and the consumer has not resumed it"
        if move.action == "announce_backlog":
            if self.reading.exclusive > 0:
                return "a channel with exclusive buffers announces no backlog"
            if look("num_credits_available") > 0:
                return f"there {_are(look('num_credits_available'), 'credit')}, so no backlog is announced"
            return self._states(move, look)
        if self.reading.pipelined:
            if not waiting:
                return "nothing is queued that could be sent"
            data = move.action == "send_data"
            if data != (waiting[0] in DATA) and waiting[0] not in DATA:
                return f"{waiting[0]} is first in the queue and must be sent first"
            if not data and all(k in DATA for k in waiting):
                return f"no event is queued: {len(waiting)} data {'buffer' if len(waiting) == 1 else 'buffers'} wait"
        if move.action == "send_data" or move.args.get("data_type") in DATA:
            if look("num_credits_available") == 0:
                return "a buffer is sent without credit"
            if move.args.get("size") == 0 and self.reading.pipelined and self.reading.exclusive > 0:
                return "an empty buffer is sent, which happens only without exclusive buffers"
        return self._states(move, look)

    def _not_cancelled(self, look: StateReader) -> str | None:
        if not look("reader_created"):
            return "a request to cancel arrives before the request for the subpartition"
        came, sent = look("cancel_requests"), look("sequence_number") - look("expected_sequence_number")
        late = f"{sent} {'message was' if sent == 1 else 'messages were'} sent late"
        return f"a request to cancel arrives that nothing called for: {came} came, and {late}"

    def _states(self, move: Move, look: StateReader) -> str:
        stock = look("buffers_in_backlog")
        return f"a backlog of {move.args.get('backlog')} is stated, with {stock} data buffers queued before"

    def _not_taken(self, look: StateReader) -> str | None:
        if look("channel_released"):
            return "the channel is released"
        first = first_message(look) if look("responses") else None
        if first is not None and (first["message"] != "BufferResponse" or first["data_type"] not in DATA):
            return "the message is not data and needs no buffer"
        if look("buffer_requested"):
            return "a second buffer is taken for the same message"
        if look("exclusive_buffers") + look("floating_buffers") == 0:
            return "no buffer is free for the data that arrive"
        return None

    def _not_stopped(self, move: Move, look: StateReader) -> str | None:
        if move.action == "release_floating_buffers":
            return "borrowed buffers are given back only for a blocking event, without exclusive buffers"
        if look("responses") and first_message(look)["data_type"] not in BLOCKING:
            return f"{first_message(look)['data_type']} arrives, which blocks nothing"
        return None

    def _not_received(self, look: StateReader) -> str | None:
        if not look("responses"):
            return None
        kind = first_message(look)["data_type"]
        if look("sender_backlog") is not None:
            return "the backlog of the message before was not dealt with: no floating buffers were requested for it"
        if kind in DATA and not look("buffer_requested"):
            return "data are received for which no buffer was taken"
        if kind in BLOCKING and look("blocking_event") != "ARRIVING":
            return f"{kind} is received, but the channel was not marked as blocked"
        if kind in BLOCKING and not look("floating_released"):
            return f"{kind} is received, and the channel has not given back its borrowed buffers"
        return None

    def _not_wanted(self, move: Move, look: StateReader) -> str | None:
        if look("sender_backlog") is None:
            return "floating buffers are requested, and no backlog was received that calls for them"
        if not look("backlog_noted"):
            return "floating buffers are requested before the backlog received was noted"
        if look("channel_released"):
            return "a channel that is released gets no buffers"
        if look("is_waiting_for_floating_buffers") and move.args.get("got"):
            return "the channel already waits for a floating buffer and requests none"
        got, wanted = move.args.get("got"), look("sender_backlog") + self.reading.exclusive
        return f"{got} floating buffers are got where {self._has(look)} and wants {wanted}"

    def _has(self, look: StateReader) -> str:
        available = look("exclusive_buffers") + look("floating_buffers")
        return f"the channel has {available} of {look('num_required_buffers')} buffers"

    # --- possible calls

    def _of_producer(self, look: StateReader) -> Iterable[str]:
        if look("add_credits"):
            yield f"p.credit_add(n={look('add_credits')[0]})"
        if look("resume_consumption_sent") and look("add_credits_before_resume") == 0 and look("is_blocked"):
            yield "p.resume()"
        waiting = (*look("priority_buffers"), *look("buffers"))
        goes = (
            look("reader_created")
            and not look("reader_released")
            and (look("priority_buffers") or not look("is_blocked"))
        )
        if goes and waiting and (waiting[0] not in DATA or look("num_credits_available") > 0):
            yield f"p.send(seq={look('sequence_number')}, type={waiting[0]})"

    def _of_consumer(self, look: StateReader) -> Iterable[str]:
        kind = next_kind(look)
        if kind != "NONE":
            yield f"c.poll(type={kind})"
        if look("unannounced_credit"):
            yield f"c.credit_announce(n={look('unannounced_credit')})"
        if look("blocking_event") == "POLLED":
            yield "c.resume()"
        if look("responses") and look("sender_backlog") is None:
            yield self._arriving(first_message(look), look)

    def _arriving(self, message: Any, look: StateReader) -> str:
        if message["message"] == "BacklogAnnouncement":
            return f"c.backlog(backlog={message['backlog']})"
        if message["data_type"] in DATA and not look("buffer_requested"):
            return "c.buffer_taken(got=true)"
        return (
            f"c.recv(seq={message['sequence_number'] + look('partial_buffers_received')}, type={message['data_type']})"
        )


def _are(number: int, what: str) -> str:
    return f"is 1 {what}" if number == 1 else f"are {number} {what}s"
