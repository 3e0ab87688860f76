"""The binding of the runtime's event logs to slot allocation: all processes of a job are one behaviour of `slot_pool`.

A receipt names the event that sent the message, so that the events have an order in which what arrives has been sent; each
process that replaces another comes after it. What a process knows of its slots after an event must be what the machine has.
A message that nobody receives is lost in the machine: that is a contradiction if a later one of the same connection arrives,
unless the protocol repairs its loss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from streamproof.conformance import (
    ANYTHING,
    INTEGER,
    TEXT,
    TEXTS,
    TRUTH,
    Constraint,
    Event,
    EventForm,
    EventPart,
    InputError,
    LogForm,
    LogWriter,
    Move,
    Observation,
    Plan,
    StateReader,
    Stream,
    Task,
    Unit,
    by_name,
    list_of,
)
from streamproof_specs.runtime.logs import JobMasterLogs
from streamproof_specs.runtime.vocabulary import LACKING, OF_MANAGER, POOL, SLOT, SLOTS, TABLE, TASK_EXECUTOR, TITLE
from streamproof_specs.slots.runtime.delivered import MANAGER, MASTER, Deliveries, base, role
from streamproof_specs.slots.runtime.recorded_machine import MOST, machine
from streamproof_specs.slots.runtime.sharing import Sharing

ENDING = "/slots"
"""The traces of slots end so."""


class RuntimeSlots(JobMasterLogs):
    """Follows the slots of every job of the runtime."""

    def behaviours(self, name: str, events: list[Event]) -> Plan:
        """One case for each job. Raises `InputError` for a log that is not the runtime's own."""
        traces: dict[str, list[Event]] = {}
        for event in events:
            if event.trace.endswith(ENDING):
                if not isinstance((event.state or {}).get("slots", {}), dict):
                    raise InputError(f"{event} needs the state 'slots', an object", loc=event.loc)
                traces.setdefault(event.trace, []).append(event)
        cases = tuple(_case(trace, own) for trace, own in traces.items())
        return Plan(name, cases, tuple(events), unit="job", nothing="the log has no events of slots")


def _case(trace: str, events: Sequence[Event]) -> Unit:
    reading = SlotReading(Deliveries(events))
    observations = reading.observations()
    rules = machine(*reading.sizes())
    task = Task(trace, rules.system, (Stream(observations),), grounding=rules.instances)
    return Unit(trace, f"slots of {trace.removesuffix(ENDING)}", (task,))


class SlotReading:
    """The meaning of the events of one job."""

    def __init__(self, deliveries: Deliveries) -> None:
        self.sent = deliveries
        started = [e for e in deliveries.ordered if e.event == "allocation_started"]
        names = {str(e.args.get("slot")): str(e.args.get("executor")) for e in started}
        self.number = {slot: at for at, slot in enumerate(names)}
        self.places = {p: at for at, p in enumerate(dict.fromkeys((*deliveries.executors, *names.values())))}
        self.place = names
        self.begun: set[str] = set()
        """Processes with an event, and allocations that have been started."""
        self.required = 0
        self.failing: set[str] = set()
        """Slots with a failure on its way that the JobMaster will receive."""
        self.wrong: str | None = None
        self.sharing = Sharing(self.expect)

    def sizes(self) -> tuple[int, int, int, int]:
        """The sizes of the machine: allocations, executors, slots of each, slots required; all but the slots rounded up to
        powers of two."""
        required = [e.args.get("required") for e in self.sent.ordered]
        most = max((n for n in required if type(n) is int and 0 <= n <= MOST), default=0)
        return (
            *(_rounded(len(self.number)), _rounded(len(self.places))),
            *(self.sent.slots, _rounded(most + 1)),
        )

    def observations(self) -> list[Observation]:
        """All of them, in an order in which what arrives has been sent."""
        return [self._observation(event) for event in self.sent.ordered]

    def _observation(self, event: Event) -> Observation:
        self.wrong = self.sent.wrong.get((event.process, event.seq))
        moves: list[Move] = []
        if self.wrong is None:
            moves = [*self._begins(event.process)]
            try:
                moves += [*_FORM.read(event, self, event)] if event.event in _FORM.events else []
                self.expect(event.event in _FORM.events, "this is no event of slots")
            except (KeyError, TypeError, ValueError) as error:
                self.wrong = str(error) if isinstance(error, ValueError) else "its arguments are of no event of slots"
        if self.wrong is not None:
            return Observation(event, impossible=self.wrong)
        return Observation(event, (tuple(moves),), tuple(self._views(event)), tuple(self._failures(event)))

    def _begins(self, process: str) -> Iterable[Move]:
        """A process that replaces another one knows nothing."""
        if process in self.begun:
            return
        self.begun.add(process)
        if role(process) == MANAGER and process != MANAGER:
            yield Move("replace_manager")
        elif role(process) == MASTER and process != MASTER:
            self.required = 0
            yield Move("replace_jobmaster")

    # --- what is recorded

    def expect(self, condition: bool, text: str) -> None:
        """The log contradicts itself unless the condition holds."""
        if not condition:
            self.wrong = self.wrong or text

    def at(self, event: Event, slot: Any) -> int:
        """The number of an allocation that has been started, at the TaskExecutor of the event if it is one's own."""
        if not isinstance(slot, str) or slot not in self.begun:
            raise ValueError(f"slot {slot!r} has not been requested")
        if role(event.process) not in (MASTER, MANAGER):
            self.expect(self.place[slot] == event.process, f"slot {slot} is one of {self.place[slot]}")
        return self.number[slot]

    def slots(self, event: Event, name: str = "slots") -> list[str]:
        """An argument that is a list of allocations, each once."""
        found = event.args[name]
        if not isinstance(found, list) or len({*found}) != len(found):
            raise ValueError(f"{name} is no list of different slots")
        return [slot for slot in found if self.at(event, slot) >= 0]

    def _views(self, event: Event) -> Iterable[Constraint]:
        """What the process knows after the event is what the machine has."""
        state = event.state or {}
        recorded = state.get("slots")
        of = role(event.process)
        view, nothing = {MASTER: ("jm", "ABSENT"), MANAGER: ("rm", "UNUSED")}.get(of, ("te", "ABSENT"))
        mine = [s for s in self.number if of in (MASTER, MANAGER) or self.place[s] == event.process]

        def read(look: StateReader) -> dict[str, Any]:
            return {s: x for s in mine if (x := look(view, self.number[s])) != nothing}

        yield Constraint(
            lambda look: f"{event.process} has the slots {read(look)} in the model, {recorded} in the log",
            lambda look: read(look) == recorded,
        )
        if of in (MASTER, MANAGER):
            name, number = "required" if of == MASTER else "declared", state.get("required")
            yield Constraint(
                lambda look: f"{event.process} knows of {look(name)} required slots in the model, {number} in the log",
                lambda look: type(number) is int and look(name) == number,
            )

    def _failures(self, event: Event) -> Iterable[Constraint]:
        """The TaskExecutor fails the slots that the JobMaster believes in and that it does not have."""
        if event.event == "list_received":
            claimed = [s for s in event.args["slots"] if s in self.number]
        elif event.event == "offer_answered":
            claimed = [event.args["slot"]] if event.args["accepted"] else []
        else:
            return
        recorded = event.args["failed"]

        def gone(look: StateReader) -> list[str]:
            return [s for s in claimed if look("te", self.number[s]) == "ABSENT"]

        yield Constraint(
            lambda look: f"the slots {gone(look)} have failed in the model, {recorded} in the log",
            lambda look: gone(look) == recorded,
        )

    def _lost(self, event: Event, kind: str, slot: str, move: str) -> Iterable[Move]:
        """A message that nobody receives."""
        if not self.sent.arrives(event, kind, slot):
            yield Move(move, {"a": self.number[slot]}, optional=True)

    # --- the JobMaster

    def declared(self, event: Event) -> Iterable[Move]:
        """The number of required slots changes, one by one."""
        number = event.args["required"]
        if type(number) is not int or not 0 <= number <= MOST:
            raise ValueError("a number of slots is expected")
        self.sharing.declared(event)
        step = "require_slot" if number > self.required else "cancel_request"
        for _ in range(abs(number - self.required)):
            yield Move(step)
        self.required = number

    def offer_received(self, event: Event) -> Iterable[Move]:
        """A slot is accepted or rejected: the view shows which. The answer may be lost."""
        slot = event.args["slot"]
        a = self.at(event, slot)
        yield Move("receive_offer", {"a": a})
        accepted = event.args["accepted"]
        self.expect((slot in (event.state or {}).get("slots", ())) is accepted, "the answer is not what the pool has")
        yield from self._lost(event, "answer", slot, "lose_answer")

    def reserved(self, event: Event) -> Iterable[Move]:
        """A region uses these slots, which were free."""
        fresh = self.slots(event)
        self.sharing.reserved(event, fresh)
        return [Move("reserve", {"a": self.at(event, s)}) for s in fresh]

    def unreserved(self, event: Event) -> Iterable[Move]:
        """No region uses these slots; the job requires as many as before."""
        for slot in self.slots(event):
            yield Move("finish", {"a": self.at(event, slot)})
            yield Move("require_slot")

    def released(self, event: Event) -> Iterable[Move]:
        """A free slot that is not required."""
        slot = event.args["slot"]
        yield Move("release_idle", {"a": self.at(event, slot)})
        yield from self._lost(event, "return", slot, "lose_return")

    def dropped(self, event: Event) -> Iterable[Move]:
        """The connection to a TaskExecutor is lost."""
        for slot in self.number:
            if base(self.place[slot]) == event.args["executor"]:
                yield Move("drop", {"a": self.number[slot]})

    def listed(self, event: Event) -> Iterable[Move]:
        """The slots of a TaskExecutor that the JobMaster holds."""
        peer = event.args["executor"]
        held = (event.state or {}).get("slots", {})
        own = [s for s in self.number if base(self.place[s]) == peer and s in held]
        self.expect(sorted(self.slots(event)) == sorted(own), "the list is not what the pool has")
        return ()

    def failure_received(self, event: Event) -> Iterable[Move]:
        """The slot is gone; the JobMaster may have learned that before."""
        self.failing.discard(str(event.args["slot"]))
        yield Move("receive_failure", {"a": self.at(event, event.args["slot"])}, optional=True)

    # --- the ResourceManager

    def requirement(self, event: Event) -> Iterable[Move]:
        """A requirement arrives."""
        yield Move("receive_requirement", {"n": event.args["required"]})

    def cleared(self, event: Event) -> Iterable[Move]:
        """The connection to the JobMaster is lost."""
        yield Move("receive_requirement", {"n": 0})

    def started(self, event: Event) -> Iterable[Move]:
        """A new allocation."""
        slot = event.args["slot"]
        if not isinstance(slot, str):
            raise ValueError("a text is expected")
        self.expect(slot not in self.begun, f"slot {slot} has been requested before")
        self.expect(self.place.get(slot) == event.args["executor"], f"slot {slot} is one of {self.place.get(slot)}")
        self.begun.add(slot)
        a = self.number[slot]
        yield Move("choose_executor", {"a": a, "e": self.places[self.place[slot]]})
        yield Move("start_allocation", {"a": a})
        yield from self._lost(event, "request", slot, "lose_request")

    def request_answered(self, event: Event) -> Iterable[Move]:
        """The answer to a request."""
        yield Move("receive_ack", {"a": self.at(event, event.args["slot"])})

    def available(self, event: Event) -> Iterable[Move]:
        """A slot is free."""
        yield Move("receive_available", {"a": self.at(event, event.args["slot"])}, optional=True)

    def report_received(self, event: Event) -> Iterable[Move]:
        """A slot report: of every allocation of the TaskExecutor that matters here."""
        has = self.slots(event)
        for slot in self.sent.reported(event, self.place):
            yield Move("receive_report", {"a": self.number[slot], "has": slot in has})

    def forgotten(self, event: Event) -> Iterable[Move]:
        """The connection to a TaskExecutor is lost."""
        for slot in self.number:
            if self.place[slot] == event.args["executor"]:
                yield Move("forget", {"a": self.number[slot]})

    # --- the TaskExecutors

    def report_sent(self, event: Event) -> Iterable[Move]:
        """All slots of the table; all TaskExecutors have as many slots."""
        self.expect(
            event.args.get("total", self.sent.slots) == self.sent.slots, "another number of slots than elsewhere"
        )
        self.expect(sorted(self.slots(event)) == sorted((event.state or {}).get("slots", ())), "another table")
        return ()

    def requested(self, event: Event) -> Iterable[Move]:
        """A request: the view shows whether there was a free slot."""
        slot = event.args["slot"]
        yield Move("receive_request", {"a": self.at(event, slot)})
        done = event.args["done"]
        self.expect((slot in (event.state or {}).get("slots", ())) is done, "the answer is not what the table has")
        yield from self._lost(event, "ack", slot, "lose_ack")

    def offered(self, event: Event) -> Iterable[Move]:
        """A slot is offered."""
        slot = event.args["slot"]
        yield Move("offer", {"a": self.at(event, slot)})
        yield from self._lost(event, "offer", slot, "lose_offer")

    def answered(self, event: Event) -> Iterable[Move]:
        """The answer to the last offer."""
        slot = event.args["slot"]
        self.expect(not self.sent.is_stale(event), "it is the answer to an earlier offer")
        yield Move("receive_answer", {"a": self.at(event, slot)})
        yield from self._freed(event, slot)

    def discarded(self, event: Event) -> Iterable[Move]:
        """The answer to an earlier offer."""
        self.expect(self.sent.is_stale(event), "it is the answer to the last offer")
        return ()

    def _freed(self, event: Event, slot: str) -> Iterable[Move]:
        """If a slot is freed here, its tasks stop. Messages to the others may be lost."""
        if slot in event.args.get("stopped", ()):
            yield Move("stop_task", {"a": self.number[slot]})
        if slot in self.sent.slots_before(event) and slot not in (event.state or {}).get("slots", ()):
            yield from self._lost(event, "available", slot, "lose_notification")
        if slot in event.args.get("failed", ()):
            # The machine has one message for all that say the same: it is lost only if no earlier one arrives.
            if slot not in self.failing:
                yield from self._lost(event, "failure", slot, "lose_failure")
            if self.sent.arrives(event, "failure", slot):
                self.failing.add(slot)

    def _named(self, event: Event) -> None:
        """What an event names as freed is what leaves the table; tasks of other slots do not stop."""
        gone = self.sent.slots_before(event).keys() - (event.state or {}).get("slots", {}).keys()
        self.expect({*self.slots(event, "stopped")} <= gone, "tasks stop in a slot that is not freed")
        if "freed" in event.args:
            self.expect({*self.slots(event, "freed")} == gone, "the slots that are freed are not those of the table")

    def returned(self, event: Event) -> Iterable[Move]:
        """The JobMaster has returned the slot."""
        slot = event.args["slot"]
        self._named(event)
        yield Move("receive_free", {"a": self.at(event, slot)})
        yield from self._freed(event, slot)

    def list_received(self, event: Event) -> Iterable[Move]:
        """The JobMaster's list."""
        held = self.slots(event)
        self._named(event)
        for slot in self.sent.listed(event, self.place):
            yield Move("receive_list", {"a": self.number[slot], "held": slot in held})
            yield from self._freed(event, slot)

    def timed_out(self, event: Event) -> Iterable[Move]:
        """The slot was ALLOCATED for too long."""
        slot = event.args["slot"]
        a = self.at(event, slot)
        self._named(event)
        yield Move("expire", {"a": a})
        yield Move("receive_timeout", {"a": a})
        yield from self._freed(event, slot)

    def jobmaster_lost(self, event: Event) -> Iterable[Move]:
        """ACTIVE slots are ALLOCATED again."""
        return [Move("lose_jobmaster", {"a": self.at(event, s)}) for s in self.slots(event)]

    def deployed(self, event: Event) -> Iterable[Move]:
        """Subtasks come into these slots."""
        used = self.slots(event)
        self.sharing.deployed(event, self.sent.source(event), self.place)
        return [Move("deploy", {"a": self.at(event, s)}) for s in used]

    def ended(self, event: Event) -> Iterable[Move]:
        """These slots have no subtask any more."""
        return [Move("end_task", {"a": self.at(event, s)}) for s in self.slots(event)]


def _rounded(number: int) -> int:
    return 1 << max(0, number - 1).bit_length()


_KNOWN = {"slots": by_name(TEXT, "an object")("the state of each slot that the process knows, by allocation")}
_REQUIRED = {"required": INTEGER("the slots that are required"), **_KNOWN}
_REPLACES = {POOL: ("replace_jobmaster",), OF_MANAGER: ("replace_manager",), TABLE: ()}
"""What the first event of a process that replaces another one is besides."""
_FREES = ("stop_task", "lose_notification", "lose_failure")


def _form(
    read: Callable[[SlotReading, Event], Iterable[Move]], writer: LogWriter, *actions: str, **args: EventPart
) -> EventForm:
    """An event of slots, with what its writer knows of slots after it."""
    return EventForm(read, writer, (*actions, *_REPLACES[writer]), args, state=_KNOWN if writer is TABLE else _REQUIRED)


def _receipt(
    read: Callable[[SlotReading, Event], Iterable[Move]], writer: LogWriter, *actions: str, **args: EventPart
) -> EventForm:
    """The same, with which a message is received."""
    message = {
        "from": TEXT("the process that sent the message"),
        "sent": INTEGER("the number of the event with which it was sent"),
    }
    return _form(read, writer, *actions, **args, **message)


_SUBTASKS = by_name(TEXTS, "an object")("the subtasks in each slot")
_STOPPED = TEXTS("slots of which the tasks stop with it")
_FREED = TEXTS("slots that are freed with it")
_FAILED = TEXTS("slots of which the JobMaster is told that they have failed")
_FORM = LogForm(
    TITLE,
    {
        "slots_declared": _form(
            SlotReading.declared,
            POOL,
            *("require_slot", "cancel_request"),
            required=INTEGER("the slots that the job requires"),
            groups=by_name(by_name(INTEGER, ""), "an object")(
                "the parallelism of each operator, by slot sharing group"
            ),
            co_located=list_of(ANYTHING, "a list")("pairs of operators of which subtasks with one number share a slot"),
            job=TEXT("the job, of a session").or_none("the cluster runs one job"),
        ),
        "offer_received": _receipt(
            SlotReading.offer_received, POOL, "receive_offer", "lose_answer", slot=SLOT, accepted=TRUTH("the answer")
        ),
        "slots_reserved": _form(SlotReading.reserved, POOL, "reserve", slots=SLOTS, subtasks=_SUBTASKS),
        "slots_unreserved": _form(SlotReading.unreserved, POOL, "finish", "require_slot", slots=SLOTS),
        "slot_released": _form(SlotReading.released, POOL, "release_idle", "lose_return", slot=SLOT),
        "slots_lost": _form(SlotReading.dropped, POOL, "drop", executor=TASK_EXECUTOR),
        "slots_listed": _form(SlotReading.listed, POOL, executor=TASK_EXECUTOR, slots=SLOTS),
        "slot_failed": _receipt(SlotReading.failure_received, POOL, "receive_failure", slot=SLOT),
        "requirements_received": _receipt(
            SlotReading.requirement, OF_MANAGER, "receive_requirement", required=INTEGER("the slots that are required")
        ),
        "requirements_cleared": _form(SlotReading.cleared, OF_MANAGER, "receive_requirement"),
        "allocation_started": _form(
            SlotReading.started,
            OF_MANAGER,
            *("choose_executor", "start_allocation", "lose_request"),
            slot=SLOT,
            executor=TASK_EXECUTOR,
        ),
        "request_answered": _receipt(
            SlotReading.request_answered,
            OF_MANAGER,
            "receive_ack",
            slot=SLOT,
            done=TRUTH("whether there was a free slot"),
        ),
        "slot_available": _receipt(SlotReading.available, OF_MANAGER, "receive_available", slot=SLOT),
        "executor_registered": _receipt(
            SlotReading.report_received, OF_MANAGER, "receive_report", executor=TASK_EXECUTOR, slots=SLOTS
        ),
        "report_received": _receipt(
            SlotReading.report_received, OF_MANAGER, "receive_report", executor=TASK_EXECUTOR, slots=SLOTS
        ),
        "executor_lost": _form(SlotReading.forgotten, OF_MANAGER, "forget", executor=TASK_EXECUTOR),
        "registered": _form(
            SlotReading.report_sent, TABLE, slots=SLOTS, total=INTEGER("the number of slots of the TaskExecutor")
        ),
        "slots_reported": _form(SlotReading.report_sent, TABLE, slots=SLOTS),
        "slot_requested": _receipt(
            SlotReading.requested,
            TABLE,
            *("receive_request", "lose_ack"),
            slot=SLOT,
            done=TRUTH("whether there was a free slot"),
        ),
        "slot_offered": _form(SlotReading.offered, TABLE, "offer", "lose_offer", slot=SLOT),
        "offer_answered": _receipt(
            SlotReading.answered,
            TABLE,
            *("receive_answer", *_FREES),
            slot=SLOT,
            accepted=TRUTH("the answer"),
            failed=_FAILED,
        ),
        "answer_discarded": _receipt(
            SlotReading.discarded, TABLE, slot=SLOT.or_none("any"), accepted=TRUTH("the answer").or_none("any")
        ),
        "slot_returned": _receipt(
            SlotReading.returned,
            TABLE,
            *("receive_free", *_FREES),
            slot=SLOT,
            stopped=_STOPPED,
            freed=_FREED.or_none("those that leave the table"),
            failed=_FAILED.or_none("none"),
        ),
        "list_received": _receipt(
            SlotReading.list_received,
            TABLE,
            *("receive_list", *_FREES),
            slots=SLOTS,
            failed=_FAILED,
            freed=_FREED,
            stopped=_STOPPED,
        ),
        "slot_timed_out": _form(
            SlotReading.timed_out,
            TABLE,
            *("expire", "receive_timeout", *_FREES),
            slot=SLOT,
            stopped=_STOPPED,
            freed=_FREED.or_none("those that leave the table"),
            failed=_FAILED.or_none("none"),
        ),
        "jobmaster_lost": _form(SlotReading.jobmaster_lost, TABLE, "lose_jobmaster", slots=SLOTS),
        "tasks_deployed": _receipt(SlotReading.deployed, TABLE, "deploy", slots=SLOTS, subtasks=_SUBTASKS),
        "tasks_ended": _form(SlotReading.ended, TABLE, "end_task", slots=SLOTS),
    },
    (
        "The events of one process have the numbers 0, 1, 2, ... in `seq`, in the order in which they took effect.",
        "A receipt names the event that sent the message, in `from` and `sent`: that one is before it.",
    ),
    LACKING,
)


BINDING = RuntimeSlots(_FORM)
