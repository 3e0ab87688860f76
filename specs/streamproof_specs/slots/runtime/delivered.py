"""The messages of the slot protocol in a log: who sent what a receipt names, in which order, and what was never received.

A connection keeps the order of its messages and loses none but the last: a message that is skipped is a contradiction, unless
its sender has lost the connection meanwhile. The returns of slots are repaired if they are lost, and may be skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from streamproof.conformance import Event, InputError

MASTER, MANAGER = "pool", "rm"
"""The first process of the JobMaster's slot pool, and of the ResourceManager; ``pool@1`` replaces the first, and so on."""
Key: TypeAlias = tuple[str, int]
"""An event: its process and number."""

_SENT_BY: Mapping[str, tuple[str, ...]] = {
    "requirements_received": ("slots_declared",),
    "executor_registered": ("registered",),
    "report_received": ("slots_reported",),
    "slot_requested": ("allocation_started",),
    "request_answered": ("slot_requested",),
    "slot_available": ("offer_answered", "slot_returned", "list_received", "slot_timed_out"),
    "offer_received": ("slot_offered",),
    "offer_answered": ("offer_received",),
    "answer_discarded": ("offer_received",),
    "slot_returned": ("slot_released",),
    "list_received": ("slots_listed",),
    "slot_failed": ("offer_answered", "list_received"),
    "tasks_deployed": ("slots_reserved",),
}
"""Receipts, with the events that send such a message."""
_SAME: Mapping[str, tuple[str, ...]] = {
    "requirements_received": ("required",),
    "executor_registered": ("slots",),
    "report_received": ("slots",),
    "request_answered": ("slot", "done"),
    "offer_answered": ("slot", "accepted"),
    "answer_discarded": ("slot", "accepted"),
    "list_received": ("slots",),
}
"""Arguments that a receipt has in common with what sent it; the slot, of others."""
_KINDS = {
    "answer": "offer_answered",
    "return": "slot_returned",
    "request": "slot_requested",
    "ack": "request_answered",
    "available": "slot_available",
    "offer": "offer_received",
    "failure": "slot_failed",
}
"""Messages about one slot, with their receipts."""


def base(process: str) -> str:
    """The name of a process, and of those that replace it."""
    return process.partition("@")[0]


def role(process: str) -> str:
    """`MASTER`, `MANAGER`, or the empty text for a TaskExecutor."""
    return base(process) if base(process) in (MASTER, MANAGER) else ""


class Deliveries:
    """The events of the slots of one job, and their messages."""

    def __init__(self, events: Sequence[Event]) -> None:
        """Raises `InputError` for processes whose events are not numbered from 0 on."""
        self._own: dict[str, list[Event]] = {}
        for event in sorted(events, key=lambda e: e.seq):
            own = self._own.setdefault(event.process, [])
            if event.seq != len(own):
                raise InputError(f"{event} is not event {len(own)} of {event.process}", loc=event.loc)
            own.append(event)
        self.executors = [process for process in self._own if not role(process)]
        self.wrong: dict[Key, str] = {}
        """Events that contradict others, with the reason."""
        self._receipts: dict[tuple[Key, str], dict[str | None, Event]] = {}
        for event in (e for own in self._own.values() for e in own):
            self._match(event)
        self.ordered = [*self._order()]
        self._check_connections()
        totals = {e.args.get("total") for e in events if e.event == "registered"}
        self.slots = max((n for n in totals if type(n) is int and 0 < n <= 10_000), default=1)
        """Slots of each TaskExecutor."""

    # --- for the binding

    def arrives(self, event: Event, kind: str, slot: str) -> bool:
        """Whether a message about a slot, sent by an event, is received."""
        return slot in self._receipts.get((_key(event), _KINDS[kind]), {})

    def listed(self, receipt: Event, place: Mapping[str, str]) -> list[str]:
        """The slots that matter for a list of the JobMaster's slots: those in it, and those of the table."""
        return _of(receipt.process, (*receipt.args["slots"], *self.slots_before(receipt)), place)

    def reported(self, receipt: Event, place: Mapping[str, str]) -> list[str]:
        """The slots that matter for a slot report: those in it, and those that the ResourceManager knows."""
        return _of(str(receipt.args["from"]), (*receipt.args["slots"], *self.slots_before(receipt)), place)

    def is_stale(self, answer: Event) -> bool:
        """Whether the TaskExecutor has offered the slot again since the offer that is answered."""
        received = self.source(answer)
        offer = self.source(received) if received is not None else None
        between = self._own[answer.process][offer.seq + 1 : answer.seq] if offer is not None else []
        return any(e.event == "slot_offered" and e.args.get("slot") == answer.args.get("slot") for e in between)

    def _is_discarded(self, received: Event) -> bool:
        return received.args.get("slot") in self._receipts.get((_key(received), "answer_discarded"), {})

    def slots_before(self, event: Event) -> Mapping[str, Any]:
        """The slots of a process before an event."""
        found = (self._own[event.process][event.seq - 1].state or {}).get("slots") if event.seq else None
        return found if isinstance(found, dict) else {}

    # --- messages

    def _match(self, event: Event) -> None:
        """Finds the sender of what an event receives."""
        if event.event not in _SENT_BY:
            return
        source = self.source(event)
        slot = event.args.get("slot")
        if source is None or source.event not in _SENT_BY[event.event] or not _is_of(event, source):
            self.wrong[_key(event)] = (
                f"{event.args.get('from')} sent no such message with its event {event.args.get('sent')}"
            )
            return
        one = None if "slots" in event.args else slot
        if event.event == "tasks_deployed":  # one message to each TaskExecutor
            one = event.process
        receipts = self._receipts.setdefault((_key(source), event.event), {})
        if one in receipts:
            self.wrong[_key(event)] = f"the message was received before, with {receipts[one]}"
        receipts.setdefault(one, event)

    def source(self, event: Event) -> Event | None:
        """The event that a receipt names."""
        process, number = event.args.get("from"), event.args.get("sent")
        own = self._own.get(process, []) if isinstance(process, str) else []
        return own[number] if type(number) is int and 0 <= number < len(own) else None

    def _order(self) -> Iterator[Event]:
        """All events, each after what it receives, and after the processes that its own one replaces."""
        done = dict.fromkeys(self._own, 0)
        earlier = {p: [q for q in self._own if base(q) == base(p) and _turn(q) < _turn(p)] for p in self._own}
        while any(done[p] < len(own) for p, own in self._own.items()):
            before = sum(done.values())
            for process, own in self._own.items():
                if any(done[q] < len(self._own[q]) for q in earlier[process]):
                    continue
                while done[process] < len(own) and self._is_ready(own[done[process]], done):
                    yield own[done[process]]
                    done[process] += 1
            if sum(done.values()) == before:
                process = next(p for p in self._own if done[p] < len(self._own[p]))
                event = self._own[process][done[process]]
                self.wrong.setdefault(_key(event), "it receives a message that is sent later")
                yield event
                done[process] += 1

    def _is_ready(self, event: Event, done: Mapping[str, int]) -> bool:
        if event.event not in _SENT_BY or _key(event) in self.wrong:
            return True
        source = self.source(event)
        return source is None or done[source.process] > source.seq

    def _check_connections(self) -> None:
        """Messages of one process to another keep their order, and none is skipped."""
        last: dict[tuple[str, str], int] = {}
        for event in self.ordered:
            source = self.source(event) if event.event in _SENT_BY and _key(event) not in self.wrong else None
            if source is None:
                continue
            pair = source.process, event.process
            at = last.get(pair, -1)
            if source.seq < at:
                self.wrong[_key(event)] = f"a later message of {source.process} was received before"
            elif event.event != "tasks_deployed":
                for skipped in self._own[source.process][at + 1 : source.seq]:
                    if self._is_skipped(skipped, source, event.process):
                        self.wrong.setdefault(_key(event), f"{skipped} was not received before it")
            last[pair] = max(at, source.seq)

    def _is_skipped(self, sent: Event, later: Event, receiver: str) -> bool:
        """Whether a process sent something with an event that the receiver did not get, although the connection was kept."""
        missing = any(
            target == base(receiver) and slot not in self._receipts.get((_key(sent), receipt), {})
            for target, receipt, slot in self._sends(sent)
        )
        between = self._own[sent.process][sent.seq + 1 : later.seq + 1]
        return missing and not any(_resets(e, base(receiver)) for e in between)

    def _sends(self, event: Event) -> Iterator[tuple[str, str, Any]]:
        """What an event sends: to whom, its receipt, and the slot. Not what may be lost."""
        args = event.args
        slot = args.get("slot")
        match event.event:
            case "offer_received":
                answered = "answer_discarded" if self._is_discarded(event) else "offer_answered"
                yield base(str(args["from"])), answered, slot
            case "slots_listed":
                yield str(args.get("executor")), "list_received", None
            case "allocation_started":
                yield base(str(args.get("executor"))), "slot_requested", slot
            case "slot_requested":
                yield MANAGER, "request_answered", slot
            case "registered":
                yield MANAGER, "executor_registered", None
            case "slots_reported":
                yield MANAGER, "report_received", None
            case "slot_offered":
                yield MASTER, "offer_received", slot
            case "offer_answered" | "list_received":
                for failed in args["failed"] if isinstance(args.get("failed"), list) else ():
                    yield MASTER, "slot_failed", failed


def _key(event: Event) -> Key:
    return event.process, event.seq


def _turn(process: str) -> int:
    number = process.partition("@")[2]
    return int(number) if number.isdecimal() else 0


def _of(process: str, slots: Iterable[Any], place: Mapping[str, str]) -> list[str]:
    """Those of a TaskExecutor, each once."""
    return [slot for slot in dict.fromkeys(s for s in slots if isinstance(s, str)) if place.get(slot) == process]


def _is_of(receipt: Event, source: Event) -> bool:
    """Whether the contents of a message are what was sent, to this process."""
    args, sent = receipt.args, source.args
    if receipt.event == "slot_available":
        return args.get("slot") == sent.get("slot") or args.get("slot") in (sent.get("freed") or ())
    if receipt.event == "slot_failed":
        return args.get("slot") in (sent.get("failed") or ())
    if receipt.event == "tasks_deployed":
        return True
    if receipt.event in ("executor_registered", "report_received") and args.get("executor") != source.process:
        return False
    if receipt.event == "slot_requested" and sent.get("executor") != receipt.process:
        return False
    if receipt.event == "list_received" and sent.get("executor") != base(receipt.process):
        return False
    if receipt.event in ("offer_answered", "answer_discarded") and sent.get("from") != receipt.process:
        return False
    return all(args.get(name) == sent.get(name) for name in _SAME.get(receipt.event, ("slot",)))


def _resets(event: Event, peer: str) -> bool:
    """Whether a process has lost its connection to a peer, or has made a new one."""
    match event.event:
        case "slots_lost" | "executor_lost":
            return base(str(event.args.get("executor"))) == peer
        case "jobmaster_lost":
            return peer == MASTER
        case "registered":
            return peer == MANAGER
    return False
