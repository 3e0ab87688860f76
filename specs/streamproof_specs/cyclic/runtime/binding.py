"""The binding of the runtime's event logs to flow control in loops: each loop head of an attempt is one behaviour.

The head's own events are in the order of its log, which is the order in which it saw its inputs. Records of others for a
feedback channel precede their arrival. The machine is `loop_head`: the head and its feedback channels.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from streamproof import System
from streamproof.conformance import (
    NUMBER,
    TEXT,
    TEXTS,
    TRUTH,
    Constraint,
    Event,
    EventForm,
    InputError,
    LogForm,
    Move,
    Observation,
    Plan,
    StateReader,
    Stream,
    Task,
    Unit,
    compile_model,
    list_of,
    may_have_event,
    one_of,
    up_to,
)
from streamproof_models.baton.machine import Routes
from streamproof_models.cyclic.head import ANY, END, RECORD, LoopHead
from streamproof_models.cyclic.head_barriers import BARRIER
from streamproof_models.cyclic.machine import POLICIES
from streamproof_models.scopes.graph import ScopeError
from streamproof_models.scopes.text import parse
from streamproof_specs.baton.runtime import EMITS, REPLAYED, graph_of
from streamproof_specs.runtime.logs import (
    JOBMASTER,
    RuntimeLogs,
    attempts,
    events_of,
    is_of_runtime,
    parts,
    unopened,
    without,
)
from streamproof_specs.runtime.vocabulary import (
    BY_CHANNEL,
    BY_NUMBER,
    CHANNEL,
    CHANNELS,
    GRAPH,
    LACKING,
    OF_ATTEMPT,
    SUBTASK,
    TITLE,
)

MOST = 100_000
"""Largest number of items of a channel, and of its buffers."""
ROOM = 64
"""Smallest bound on the items of a channel: most heads of a kind have one machine."""
WRITES = (*EMITS, REPLAYED)
"""Events with which records are under way to feedback channels."""
OPENED, ARRIVED, READ_BACK = "loop_opened", "feedback_received", "spill_read"
DEPARTED = "snapshot_taken"
PART = "part"
"""A buffer with a part of a record, but the last one: the head takes it without holding anything, as a word that no channel
brings together with others."""
TAKEN = ("record_received", "part_received", "baton_received", "barrier_received", "channel_released")


@lru_cache(maxsize=256)
def machine(variant: str | None, **settings: Any) -> System:
    """The machine of a head."""
    return compile_model(LoopHead.build(variant, **settings), without_properties=True)


@lru_cache(maxsize=64)
def routes(graph: str) -> Routes:
    """The ways of batons in a graph."""
    return Routes(parse(graph))


class RuntimeCyclic(RuntimeLogs):
    """Follows every loop head of every attempt in an event log of the runtime."""

    def recognises(self, path: Path) -> bool:
        """Whether it is a log of the runtime, and one of its runs has a loop."""
        return is_of_runtime(path) and any(_has_loop(run) for run in self.runs(path))

    def behaviours(self, name: str, events: list[Event]) -> Plan:
        """One case for each head."""
        traces = attempts(events)
        silent = {t: without(own, OPENED, heads_of) for t, own in traces.items()}
        heads = [head for trace, own in traces.items() for head in _heads(own, silent[trace])]
        cases = tuple(head.unit() for head in heads)
        cases = (*cases, *(u for t, own in traces.items() for u in unopened(own, "loop head", silent[t])))
        read = tuple(event for head in heads for event in head.events)
        return Plan(name, cases, read, unit="loop head", nothing="no attempt has a loop")


def heads_of(graph: str) -> tuple[str, ...]:
    """The loop heads of a graph; none in one that is no graph of the Loops API."""
    try:
        return routes(graph).heads
    except ScopeError:
        return ()


def _has_loop(run: Path) -> bool:
    """Whether a run has an event of a loop head, or deploys a graph with a loop."""
    files = parts(run)
    if any(may_have_event(file, OPENED) for file in files):
        return True
    if not any(may_have_event(file, "deployed", "~") for file in files):
        return False
    with suppress(InputError):  # the other bindings report it
        graphs = {e.args.get("graph") for e in events_of(run) if e.event == "deployed"}
        return any(isinstance(graph, str) and "~" in graph and heads_of(graph) for graph in graphs)
    return False


def _heads(events: Sequence[Event], silent: Collection[str] = ()) -> Iterable[HeadReading]:
    """The heads of an attempt, in the order of the log, with their events and those of others that write to them. Nothing is
    said of the inputs of `silent` heads."""
    in_order = sorted(events, key=lambda e: e.seq)
    of_master = {e.event: e for e in in_order if e.process == JOBMASTER}
    heads: dict[str, HeadReading] = {}
    owner: dict[str, HeadReading] = {}
    for event in (e for e in in_order if e.event == OPENED and e.process != JOBMASTER):
        if event.process in heads:
            raise InputError(f"{event}: the loop is open already", loc=event.loc)
        head = heads[event.process] = HeadReading(event, of_master.get("deployed"), of_master.get("finished"))
        for channel in head.feedback:
            if owner.setdefault(channel, head) is not head:
                raise InputError(f"{event}: another head has the channel {channel!r}", loc=event.loc)
    for event in in_order:
        if event.process == JOBMASTER:
            continue
        if event.process in heads:
            heads[event.process].own.append(event)
        elif event.event in (ARRIVED, READ_BACK) or (event.process not in silent and _is_fed_back(event)):
            raise InputError(f"{event}: no loop has been opened by {event.process!r}", loc=event.loc)
        if event.event in WRITES:
            channels = _list(event, "channels")
            for head in {id(owner[c]): owner[c] for c in channels if c in owner}.values():
                head.add_writer(event, Counter(c for c in channels if c in head.feedback))
    return heads.values()


def _is_fed_back(event: Event) -> bool:
    return event.event in TAKEN and "number" in event.args


class HeadReading:
    """One head: its channels, its policy, and the meaning of the events that concern it."""

    def __init__(self, opened: Event, deployed: Event | None, finished: Event | None) -> None:
        """Raises `InputError` for an event that describes no head."""
        self._task, self._deployed, self._finished = opened.process, deployed, finished
        self._opened = opened
        forward, feedback = _list(opened, "forward"), _list(opened, "feedback")
        if not forward or not feedback or len({*forward, *feedback}) < len(forward) + len(feedback):
            raise InputError(f"{opened} needs different forward and feedback channels", loc=opened.loc)
        self.channels = {channel: at for at, channel in enumerate((*forward, *feedback))}
        self.feedback = {channel: self.channels[channel] for channel in feedback}
        self._forward = len(forward)
        self._buffers, self._held = _number(opened, "buffers", 1), _number(opened, "held", 0)
        self._policy, self._spilling = opened.args.get("policy"), opened.args.get("spilling")
        if self._policy not in (ANY, *POLICIES) or not isinstance(self._spilling, bool):
            raise InputError(f"{opened} needs a policy, and 'spilling', true or false", loc=opened.loc)
        self.trace = f"{opened.trace} {opened.process}"
        name, _, attempt = opened.trace.rpartition("#")
        self._title = f"loop head {opened.process}, attempt {attempt} of {name}"
        self.own: list[Event] = []
        self._taken = Counter[str]()
        """How many items of each feedback channel the head has taken, so far as its events are read."""
        self._writers: dict[str, deque[tuple[Event, Counter[str]]]] = {channel: deque() for channel in feedback}
        self.events: list[Event] = []
        """Its events and those of its writers, in the order in which they are followed, once `unit` has been called."""

    def add_writer(self, event: Event, counts: Counter[str]) -> None:
        """An operator, perhaps the head itself, has written records for feedback channels."""
        if event.process != self._task:
            for channel in counts:
                self._writers[channel].append((event, counts))

    def unit(self) -> Unit:
        """The case of this head."""
        if self._deployed is None or not isinstance(self._deployed.args.get("graph"), str):
            return Unit(self.trace, self._title, (), False, ("the JobMaster recorded no graph of this attempt",))
        observed = [*self._observations(self._batons(graph_of(self._deployed)))]
        self.events = [observation.event for observation in observed]
        of = machine(
            "barriers"
            if any(e.event in (DEPARTED, "barrier_received") or e.args.get("item") == BARRIER for e in self.own)
            else None,
            forward=self._forward,
            feedback=len(self.feedback),
            buffers=self._buffers,
            holds=self._held,
            most=self._most(),
            spilling=self._spilling,
            policy=self._policy,
            batons=self._batons(graph_of(self._deployed)),
        )
        return Unit(self.trace, self._title, (Task(self.trace, of, (Stream(observed),)),))

    def _most(self) -> int:
        counts = Counter(_channel(e) for e in self.own if e.event in (ARRIVED, "buffer_received"))
        for writers in self._writers.values():
            for _, written in writers:
                counts += written
        for event in self.own:
            if event.event in WRITES:
                counts.update(_list(event, "channels"))
        return max(ROOM, 1 << max(counts.values(), default=0).bit_length())

    def _batons(self, graph: str) -> str:
        """The channels that carry each baton to the head, by side, and parts of records, if there are any. Raises
        `InputError` for a head of another graph."""
        ways = routes(graph)
        found: dict[str, list[list[int]]] = {}
        if any(PART in (e.args.get("item"), _TAKEN.get(e.event)) for e in self.own):
            found[PART] = []
        for channel, at in self.channels.items():
            if channel not in ways.carried or ways.links[channel].target != self._task:
                where = f"{channel!r} is no channel into {self._task!r} in the graph"
                raise InputError(f"{self._opened}: {where}", loc=self._opened.loc)
            for baton in ways.carried[channel]:
                sides = found.setdefault(f"baton {baton}", [])
                joined = ways.joins.get((self._task, baton), (channel,))
                side = sorted(self.channels[c] for c in joined if c in self.channels)
                if at in side and side not in sides:
                    sides.append(side)
        return json.dumps(found, sort_keys=True)

    # --- events, in an order in which they can be followed

    def _observations(self, batons: str) -> Iterator[Observation]:
        kinds = {RECORD, END, BARRIER, *json.loads(batons)}
        sent, arrived = Counter[str](), Counter[str]()
        seen: set[int] = set()
        is_over = False
        for event in self.own:
            channel = _channel(event)
            if event.event in (ARRIVED, "buffer_received") and channel in self.feedback:
                arrived[channel] += event.args.get("item") == RECORD
                while sent[channel] < arrived[channel] and self._writers[channel]:
                    writer, counts = self._writers[channel].popleft()
                    if id(writer) not in seen:
                        seen.add(id(writer))
                        sent += counts
                        yield self._writing(writer, counts)
            if event.event not in _MEANING:
                continue
            moves = [*_FORM.read(event, self, event, kinds)]
            if event.event in WRITES:
                sent.update(c for c in _list(event, "channels") if c in self.feedback)
            if not is_over and (event.state or {}).get("phase") == "TERMINATED":
                is_over = True
                moves.append(Move("complete"))
            yield self._observed(event, moves)
        for writers in self._writers.values():
            for writer, counts in writers:
                if id(writer) not in seen:
                    seen.add(id(writer))
                    yield self._writing(writer, counts)
        if self._finished is not None:
            text = f"the job has finished, but a record is on its way to {self._task}, or held there"
            nothing_left = Constraint(text, lambda look: not self._has_records(look))
            yield Observation(replace(self._finished, trace=self.trace), before=(nothing_left,))

    def _writing(self, writer: Event, counts: Counter[str]) -> Observation:
        moves = [Move("send_on", {"c": self.feedback[c]}) for c, number in counts.items() for _ in range(number)]
        return Observation(replace(writer, trace=self.trace), (tuple(moves),))

    def _has_records(self, look: StateReader) -> bool:
        at = look.fields("back").index("memory"), look.fields("back").index("disk")
        edges = [look("back", c) for c in self.feedback.values()]
        items = [item for edge in edges for place in at for item in edge[place]]
        inputs = [kind for c in range(self._forward) for kind in look("input", c)]
        return bool(look("held")) or RECORD in inputs or any(RECORD in item for item in items) or any(look("written"))

    def _observed(self, event: Event, moves: Sequence[Move]) -> Observation:
        before, after = [], []
        channel = _channel(event)
        due = self._taken[channel]
        self._taken[channel] += event.event in TAKEN
        if channel in self.feedback and self._spilling:
            if event.event in TAKEN:
                before.append(self._is_due(event, due))
            else:
                after += [*self._places(event, channel, self._taken[channel])]
        return Observation(replace(event, trace=self.trace), (tuple(moves),), tuple(after), tuple(before))

    def _is_due(self, event: Event, due: int) -> Constraint:
        """The items of a channel are taken in the order of their arrival."""
        recorded = event.args.get("number")
        return Constraint(
            f"item {due} of {_channel(event)} is due, and the log takes {recorded}",
            lambda look: type(recorded) is int and recorded == due,
        )

    def _places(self, event: Event, channel: str, taken: int) -> Iterator[Constraint]:
        """What is in memory and on disk, and which items moved there."""
        at = self.feedback[channel]
        state = dict(event.state or {})
        if state.keys() != {"memory", "spilled"}:
            raise InputError(f"{event} needs the state of its channel, 'memory' and 'spilled'", loc=event.loc)

        def place(look: StateReader, name: str) -> int:
            return len(look("back", at)[look.fields("back").index(name)])

        def equal(name: str, recorded: Any) -> Constraint:
            part = "disk" if name == "spilled" else name
            return Constraint(
                lambda look: (
                    f"{place(look, part)} items of {channel} are in {part} in the model, {recorded} in the log"
                ),
                lambda look: type(recorded) is int and place(look, part) == recorded,
            )

        yield from (equal(name, recorded) for name, recorded in sorted(state.items()))

        def numbers(look: StateReader) -> list[int]:
            end = taken + place(look, "memory")
            if event.event == READ_BACK:
                return [*range(end - len(event.args["numbers"]), end)]
            return [end + place(look, "disk") - 1]

        recorded = event.args.get("numbers") if event.event == READ_BACK else [event.args.get("number")]
        yield Constraint(
            lambda look: f"{channel} has the items {numbers(look)} in the model, {recorded} in the log",
            lambda look: numbers(look) == recorded and all(type(n) is int for n in recorded),
        )

    # --- the meaning of each event

    def _at(self, event: Event) -> int:
        found = self.channels.get(_channel(event))
        if found is None:
            raise InputError(f"{event}: the loop has not been opened with this channel", loc=event.loc)
        return found

    def _kind(self, event: Event, kinds: set[str]) -> str:
        kind = event.args.get("item")
        if not isinstance(kind, str) or kind not in kinds:
            known = ", ".join(sorted(kinds))
            raise InputError(f"{event} needs the argument 'item', one of {known}", loc=event.loc)
        return kind

    def arrived(self, event: Event, kinds: set[str]) -> Iterator[Move]:
        """An item arrives on either side."""
        at, kind = self._at(event), self._kind(event, kinds)
        if at >= self._forward:
            yield Move("send_back", {"c": at, "kind": kind})
        elif kind == RECORD:
            yield Move("offer", {"c": at})
        else:
            yield Move("trigger", {"c": at, "kind": kind})

    def read_back(self, event: Event, kinds: set[str]) -> Iterator[Move]:
        """Items come back from disk."""
        numbers = event.args.get("numbers")
        if not isinstance(numbers, list) or not numbers or len(numbers) > MOST:
            raise InputError(f"{event} needs the argument 'numbers', a list of numbers", loc=event.loc)
        yield from [Move("read_back", {"c": self._at(event)})] * len(numbers)

    def taken(self, event: Event, kinds: set[str]) -> Iterator[Move]:
        """The head takes an item."""
        at = self._at(event)
        kind = _TAKEN.get(event.event, f"baton {event.args.get('baton')}")
        yield Move("read_forward" if at < self._forward else "read_feedback", {"c": at, "kind": kind})

    def processed(self, event: Event, kinds: set[str]) -> Iterator[Move]:
        """The head has processed a record; with a buffer timeout the event says how many are done."""
        channels, done = _list(event, "channels"), _number(event, "done", 0) if "done" in event.args else 1
        yield from [Move("send" if channels else "leave")] * done
        yield from (Move("send_on", {"c": self.feedback[c]}) for c in channels if c in self.feedback)

    def replayed(self, event: Event, kinds: set[str]) -> Iterator[Move]:
        """The log of a checkpoint is under way to the feedback channels."""
        yield from (Move("send_on", {"c": self.feedback[c]}) for c in _list(event, "channels") if c in self.feedback)

    def departed(self, event: Event, kinds: set[str]) -> Iterator[Move]:
        """The head has taken its snapshot."""
        yield Move("depart")

    def nothing(self, event: Event, kinds: set[str]) -> Iterator[Move]:
        """Its phase may change."""
        yield from ()


_TAKEN = {"record_received": RECORD, "part_received": PART, "barrier_received": BARRIER, "channel_released": END}
"""What is taken with an event; with others a baton."""


def _channel(event: Event) -> str:
    """The channel of an event; empty if it has none."""
    found = event.args.get("channel")
    return found if isinstance(found, str) else ""


def _list(event: Event, name: str) -> list[str]:
    found = event.args.get(name)
    if not isinstance(found, list) or not all(isinstance(c, str) for c in found):
        raise InputError(f"{event} needs the argument {name!r}, a list of texts", loc=event.loc)
    return found


def _number(event: Event, name: str, least: int) -> int:
    found = event.args.get(name)
    if not isinstance(found, int) or isinstance(found, bool) or not least <= found <= MOST:
        raise InputError(f"{event} needs the argument {name!r}, a number from {least} to {MOST:,}", loc=event.loc)
    return found


_NUMBER = up_to(MOST)("its number among those that arrived on the channel, from 0")
_OF_FEEDBACK = _NUMBER.or_none("the channel is no feedback")
_ITEM = TEXT("what it is: record, part, end, barrier, or baton and its name")
_PLACES = {"memory": NUMBER("items of the channel in memory"), "spilled": NUMBER("items of the channel on disk")}
_PHASE = {"phase": TEXT("the phase of the subtask").or_none("it goes on")}
_READ = ("read_forward", "read_feedback")
_EMITTED = EventForm(
    HeadReading.processed,
    SUBTASK,
    ("send", "leave", "send_on", "complete"),
    {"channels": CHANNELS, "done": up_to(MOST)("the number of records that are done with it").or_none("1")},
    _PHASE,
    "A record has been processed, or held buffers leave: what is on feedback channels is under way.",
)
_MEANING: Mapping[str, EventForm] = {
    OPENED: EventForm(
        HeadReading.nothing,
        SUBTASK,
        args={
            "forward": TEXTS("its channels from outside of the loop"),
            "feedback": TEXTS("its feedback channels"),
            "policy": one_of(ANY, *POLICIES)("which input it reads first"),
            "buffers": up_to(MOST, 1)("buffers of a feedback channel in memory"),
            "spilling": TRUTH("whether feedback goes to disk when these are full"),
            "held": up_to(MOST)("buffers that the head may hold"),
        },
        meaning="The head of a loop opens its inputs.",
    ),
    ARRIVED: EventForm(
        HeadReading.arrived,
        SUBTASK,
        ("send_back",),
        {"channel": CHANNEL, "item": _ITEM, "number": _NUMBER},
        _PLACES,
        "An item arrives on a feedback channel.",
    ),
    "buffer_received": EventForm(
        HeadReading.arrived,
        SUBTASK,
        ("offer", "trigger"),
        {"channel": CHANNEL, "item": _ITEM.or_none("the subtask is no head")},
        meaning="An item arrives on a channel from outside.",
    ),
    READ_BACK: EventForm(
        HeadReading.read_back,
        SUBTASK,
        ("read_back",),
        {"channel": CHANNEL, "numbers": list_of(NUMBER, "a list of numbers", least=1)("the numbers of these items")},
        _PLACES,
    ),
    "record_received": EventForm(
        HeadReading.taken, SUBTASK, (*_READ, "complete"), {"channel": CHANNEL, "number": _OF_FEEDBACK}, _PHASE
    ),
    "part_received": EventForm(
        HeadReading.taken,
        SUBTASK,
        _READ,
        {"channel": CHANNEL, "number": _OF_FEEDBACK},
        meaning="The head takes a buffer with a part of a record, and holds nothing of it.",
    ),
    "baton_received": EventForm(
        HeadReading.taken,
        SUBTASK,
        (*_READ, "complete"),
        {"channel": CHANNEL, "number": _OF_FEEDBACK, "baton": TEXT("the operator whose loop it ends")},
        _PHASE,
    ),
    "barrier_received": EventForm(HeadReading.taken, SUBTASK, _READ, {"channel": CHANNEL, "number": _OF_FEEDBACK}),
    "channel_released": EventForm(HeadReading.taken, SUBTASK, _READ, {"channel": CHANNEL}, meaning="END is taken."),
    REPLAYED: EventForm(HeadReading.replayed, SUBTASK, ("send_on",), {"channels": CHANNELS}, _PHASE),
    DEPARTED: EventForm(HeadReading.departed, SUBTASK, ("depart",)),
    **dict.fromkeys(EMITS, _EMITTED),
    "terminated": EventForm(
        HeadReading.nothing, SUBTASK, ("complete",), state=_PHASE, meaning="The head has terminated."
    ),
}
"""Events of a head; those with channels also of who writes to it."""
_FORM = LogForm(
    TITLE,
    {
        "deployed": EventForm(
            None, OF_ATTEMPT, args={"graph": GRAPH}, meaning="The JobMaster deploys the subtasks of this graph."
        ),
        **_MEANING,
        "finished": EventForm(None, OF_ATTEMPT, meaning="All subtasks have terminated: no record is left in a loop."),
    },
    (BY_NUMBER, BY_CHANNEL),
    LACKING,
)

BINDING = RuntimeCyclic(_FORM)
