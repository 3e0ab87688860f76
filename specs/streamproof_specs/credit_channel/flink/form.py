"""The form of the agent's records: a line for each call, with its place in its process, arguments, and counters after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from streamproof.conformance import INTEGER, NUMBER, TEXT, TRUTH, EventForm, EventPart, LogForm, LogWriter
from streamproof_specs.credit_channel.flink.consumer_calls import CONSUMER_CALLS
from streamproof_specs.credit_channel.flink.demands import COUNTER_WORDS, COUNTERS
from streamproof_specs.credit_channel.flink.producer_calls import PRODUCER_CALLS

_TASK_MANAGER = LogWriter(
    "a TaskManager, in the trace of the channel's id; the trace is empty while no consumer is known"
)
_PLACE = {
    "q0": NUMBER("the call's beginning in the order of its process; `seq` is its return"),
    "ns": NUMBER("its return on the clock of the process, in nanoseconds"),
    "ns0": NUMBER("its beginning on that clock").or_none(),
    "ch": TEXT("the channel").or_none("no channel"),
    "th": TEXT("the thread").or_none("one thread"),
}
_KIND = TEXT("the kind of the buffer, as Flink's DataType")
_OF_BUFFER = {
    "seq": INTEGER("its sequence number"),
    "type": TEXT("its kind, as Flink's DataType"),
    "bytes": NUMBER("its size"),
}
_NEXT = TEXT("the kind of what is behind it, or NONE")
_BACKLOG = INTEGER("the backlog of the sender")
_REQUESTED = {
    "initial": NUMBER("the initial credit"),
    "partition": TEXT("the id of the partition").or_none("it is not named"),
    "subpartitions": EventPart(
        {"type": ["string", "integer"]}, "subpartitions", "the first and the last one, as [0, 1]; or one"
    ).or_none("it is not named"),
}
_TAKEN = {name: part.or_none("got is false") for name, part in {**_OF_BUFFER, "next": _NEXT}.items()}
_GOT = TRUTH("false: there was none").or_none("true")
"""Arguments of several calls."""
_CALLS: Mapping[str, tuple[str, tuple[str, ...], Mapping[str, EventPart]]] = {
    "c.excl_request": (
        "BufferManager.requestExclusiveBuffers",
        ("request_exclusive_buffers",),
        {"n": NUMBER("exclusive buffers")},
    ),
    "c.request": ("RemoteInputChannel.requestSubpartitions", ("request_subpartition",), _REQUESTED),
    "c.retrigger": (
        "RemoteInputChannel.retriggerSubpartitionRequest",
        ("retrigger_request", "refuse", "time_out", "request_answered"),
        {},
    ),
    "c.buffer_taken": (
        "BufferManager.requestBuffer, for what arrives",
        ("request_buffer", "request_buffer_after_release", "discard"),
        {"got": _GOT},
    ),
    "c.recv": ("RemoteInputChannel.onBuffer", ("on_buffer", "discard"), {**_OF_BUFFER, "backlog": _BACKLOG}),
    "c.recv_empty": (
        "RemoteInputChannel.onEmptyBuffer",
        ("on_empty_buffer", "discard"),
        {"seq": _OF_BUFFER["seq"], "backlog": _BACKLOG},
    ),
    "c.backlog": (
        "RemoteInputChannel.onSenderBacklog",
        ("on_sender_backlog", "receive_backlog_announcement"),
        {"backlog": _BACKLOG},
    ),
    "c.float_request": (
        "BufferManager.requestFloatingBuffers",
        ("request_floating_buffers",),
        {"want": NUMBER("buffers that are required"), "got": NUMBER("buffers that the pool gave")},
    ),
    "c.credit_gain": (
        "RemoteInputChannel.notifyBufferAvailable",
        ("notify_buffer_available",),
        {"n": NUMBER("credit gained")},
    ),
    "c.float_offered": (
        "BufferManager.notifyBufferAvailable: the pool offers a buffer",
        ("accept_floating_buffer", "decline_floating_buffer"),
        {"taken": TRUTH("whether the channel takes it")},
    ),
    "c.excl_recycle": ("BufferManager.recycle", ("recycle",), {}),
    "c.credit_announce": (
        "RemoteInputChannel.getAndResetUnannouncedCredit",
        ("announce_credit",),
        {"n": NUMBER("the credit that is announced")},
    ),
    "c.poll": (
        "RemoteInputChannel.getNextBuffer",
        ("poll", "poll_priority", "poll_timed_out"),
        {"got": _GOT, **_TAKEN},
    ),
    "c.blocked": ("RemoteInputChannel.onBlockingUpstream", ("on_blocking_upstream",), {}),
    "c.float_release": ("BufferManager.releaseFloatingBuffers", ("release_floating_buffers",), {}),
    "c.resume": ("RemoteInputChannel.resumeConsumption", ("resume_consumption",), {}),
    "c.release": ("RemoteInputChannel.releaseAllResources", ("release_channel", "clear_received_buffers"), {}),
    "c.release_buffers": ("BufferManager.releaseAllBuffers", ("release_all_buffers",), {}),
    "p.enqueue": (
        "PipelinedSubpartition.add",
        ("add",),
        {
            "type": _OF_BUFFER["type"],
            "ret": INTEGER("-1: it was not taken, since the subpartition is released"),
            "subpartition": TEXT("partition and subpartition, as 0,1").or_none("the channel is named"),
            "partition": TEXT("the id of the partition").or_none("the channel is named"),
        },
    ),
    "p.request": (
        "CreditBasedSequenceNumberingViewReader.requestSubpartitionViewOrRegisterListener",
        ("request_subpartition_view",),
        _REQUESTED,
    ),
    "p.credit_add": (
        "CreditBasedSequenceNumberingViewReader.addCredit",
        ("add_credit",),
        {"n": NUMBER("the credit that is added")},
    ),
    "p.resume": ("CreditBasedSequenceNumberingViewReader.resumeConsumption", ("resume_subpartition",), {}),
    "p.send": (
        "CreditBasedSequenceNumberingViewReader.getNextBuffer",
        ("send_data", "send_event", "send_stored"),
        {
            "got": _GOT,
            **_TAKEN,
            "backlog": _BACKLOG.or_none("got is false"),
            "partials": NUMBER("buffers in this message").or_none("1"),
        },
    ),
    "p.backlog_announce": (
        "PartitionRequestQueue.announceBacklog",
        ("announce_backlog",),
        {"backlog": NUMBER("the backlog that is announced")},
    ),
    "p.release": ("CreditBasedSequenceNumberingViewReader.releaseAllResources", ("release_reader",), {}),
    "p.cancel": ("PartitionRequestQueue.cancel", ("refuse", "cancel"), {}),
}
"""For each call its method in Flink 2.3, the actions, and its arguments and result."""
_FLAGS = ("waiting", "released", "blocked")
_UNNOTICED = ("notify_reader_created", "release_subpartition")
"""What may have happened at the producer before any of its calls, and leaves no record."""


def _form(name: str, read: Callable[..., Any]) -> EventForm:
    end = name[:2]
    method, actions, args = _CALLS[name]
    counters = {
        counter: (TRUTH if counter in _FLAGS else INTEGER)(f"after the call: {COUNTER_WORDS[counter]}").or_none(
            "false" if counter in _FLAGS[1:] else "it is not compared"
        )
        for counter in COUNTERS[end]
    }
    actions = (*actions, *(_UNNOTICED if end == "p." else ()))
    return EventForm(read, _TASK_MANAGER, actions, {**_PLACE, **args, **counters}, meaning=f"{method} has returned.")


FORM = LogForm(
    "the records of the agent in Flink's TaskManagers",
    {name: _form(name, read) for name, read in {**CONSUMER_CALLS, **PRODUCER_CALLS}.items()},
    (
        "The records of one process have the order of `seq`, the moment at which the call returned; it began at `q0`. It took"
        " effect between the two, so that calls which overlap may have any order.",
        "Processes have no common clock: what arrives was sent before.",
        "Records with the fields `ev`, `proc` and `q` in place of `event`, `process` and `seq`, without `args` around the"
        " others, are read as these; so are those of the messages alone that a general tracing agent writes.",
    ),
)
