"""The binding of the runtime's event logs to the baton: each attempt of a job is one behaviour, of its own graph.

The events of all subtasks are merged by their vector clocks: a subtask never makes an action of another impossible, so
that every order that agrees with the clocks is a behaviour of the machine, or none is. What an event records, the status
of a baton and the state of the subtask after the event, must be what the machine has.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from streamproof.conformance import (
    BY_VALUE,
    INTEGER,
    TEXT,
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
)
from streamproof_models.baton import variants  # noqa: F401  (declaring a variant registers it)
from streamproof_models.baton.machine import Baton
from streamproof_models.scopes.graph import ScopeError
from streamproof_models.scopes.text import parse
from streamproof_specs.runtime.clocks import contradictions
from streamproof_specs.runtime.ends import missing_ends
from streamproof_specs.runtime.instances import Instances
from streamproof_specs.runtime.logs import FLOW, JOBMASTER, RuntimeLogs, attempts
from streamproof_specs.runtime.sessions import reused_attempts, unscheduled_attempts
from streamproof_specs.runtime.vocabulary import (
    BY_CLOCK,
    BY_NUMBER,
    CHANNEL,
    CHANNELS,
    CONTENT,
    CONTENTS,
    DONE,
    GRAPH,
    LACKING,
    NO_CONTENT,
    OF_ATTEMPT,
    SUBTASK,
    TITLE,
)

EMITS = ("record_processed", "buffers_flushed")
"""Events with which buffers of an operator leave."""
REPLAYED = "buffers_replayed"
"""The first event of a subtask that goes on from a checkpoint: its feedback channels and outputs begin with these buffers."""
MILESTONES = ("deployed", "started", "finished")
"""Events of the JobMaster about an attempt, in their order."""
RECORD_EVENTS = ("record_produced", "record_received", *EMITS)
MOST = 200
"""Largest number of subtasks of a graph."""
MOST_DONE = 100_000
"""Largest number of records that are done with one event."""
STATES = {"phase": "phase", "held": "held", "attempt": "id"}
"""Variables of the machine by the names in the recorded states."""


@lru_cache(maxsize=64)
def machine(graph: str, work: int, variant: str | None = None) -> Machine:
    """The baton for a graph, with room for a number of records."""
    return Machine(graph, work, variant)


class Machine:
    """The baton for one graph; its actions by their arguments, choices included."""

    def __init__(self, graph: str, work: int, variant: str | None) -> None:
        """`graph` is the text of a scoped graph."""
        self.model = Baton.build(variant, topology=graph, work=work)
        self.system = compile_model(self.model, without_properties=True)
        self.instances = Instances(self.system)

    @cached_property
    def sources(self) -> frozenset[str]:
        """The subtasks of sources."""
        return frozenset(self.model.sources)

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        """All subtasks."""
        return tuple(self.model.tasks)


class RuntimeBaton(RuntimeLogs):
    """Follows every attempt of every job in an event log of the runtime.

    A run on processes is a folder with `jobmaster.ndjson` and one log of each TaskExecutor's process; together they are
    one event log.
    """

    def behaviours(self, name: str, events: list[Event]) -> Plan:
        """One case for each attempt, and one for each contradiction between attempts and their JobMasters."""
        counted = {"channel_released", "buffers_sent", "record_spans", "snapshot_taken"}
        if any(event.event == "job_started" and event.args.get("unaligned") for event in events):
            counted = {"channel_released"}  # buffers of a checkpoint are sent again, without an event of their own
        flow = [event for event in events if event.event in counted]
        events = [event for event in events if event.event not in FLOW]
        traces = attempts(events)
        begun = {
            t: own for t, own in traces.items() if any(e.process != JOBMASTER or e.event == "finished" for e in own)
        }
        cases = (*(_case(trace, own, flow) for trace, own in begun.items()), *reused_attempts(events))
        cases = (*cases, *unscheduled_attempts(events), *missing_ends(events))
        return Plan(name, cases, tuple(events), unit="attempt", nothing="no attempt of the job has begun")


def _case(trace: str, events: Sequence[Event], flow: Iterable[Event]) -> Unit:
    """The case of an attempt; `flow`: the events with which items are sent, a barrier follows, or END is taken, of all
    attempts."""
    name, _, number = trace.rpartition("#")
    title = f"attempt {number} of {name}"
    of_master = {e.event: e for e in events if e.process == JOBMASTER}
    deployed = of_master.get("deployed")
    if deployed is None or not isinstance(deployed.args.get("graph"), str):
        return Unit(trace, title, (), False, ("the JobMaster recorded no graph of this attempt",))
    leaving = (*EMITS, REPLAYED)
    records = 1 + sum(
        len(_texts(e, "channels")) if e.event in leaving else e.event == "record_produced" for e in events
    )
    replayed = any(e.event == REPLAYED and e.args.get("channels") for e in events)
    of = machine(graph_of(deployed), 1 << records.bit_length(), "restored" if replayed else None)
    own = _in_order([e for e in events if e.process != JOBMASTER])
    own.sort(key=lambda e: (e.clock or {}) != {e.process: 1} or e.event != REPLAYED)
    wrong = contradictions(_by_process(own), ("record_produced", *leaving))
    observed = [_observed(e, of, wrong.get((e.process, e.seq))) for e in own]
    if "finished" in of_master:
        observed.append(Observation(of_master["finished"], before=tuple(_finished(of.tasks))))
    observed += _out_of_order(e for e in events if e.process == JOBMASTER)
    flow = [e for e in flow if e.trace == trace]
    observed += _unsent(own, (e for e in flow if e.event == "channel_released"), of.model.source)
    if "~" not in deployed.args["graph"]:  # else batons are items, too
        observed += _unexplained(own, flow)
    return Unit(trace, title, (Task(trace, of.system, (Stream(observed),), grounding=of.instances),))


def _unsent(own: Iterable[Event], released: Iterable[Event], source: Mapping[str, str]) -> Iterable[Observation]:
    """Who has sent END has terminated, by an event before that."""
    over = {event.process for event in own if (event.state or {}).get("phase") == "TERMINATED"}
    for event in released:
        sender = source.get(str(event.args.get("channel")))
        if sender is not None and sender not in over:
            yield Observation(event, impossible=f"END was taken, but {sender} has not terminated")


def _unexplained(own: Iterable[Event], flow: Sequence[Event]) -> Iterable[Observation]:
    """What a subtask has sent by a channel is its buffers, barriers, and END if it has terminated; a record that
    spans buffers is as many as it has parts."""
    items = Counter[tuple[str, str]]()
    last: dict[tuple[str, str], Event] = {}
    barriers = Counter(event.process for event in flow if event.event == "snapshot_taken")
    for event in flow:
        produced = event.args.get("produced") if event.event == "buffers_sent" else None
        for channel, number in produced.items() if isinstance(produced, dict) else ():
            items[event.process, channel] += number if type(number) is int else 0
            last[event.process, channel] = event
    buffers = Counter[tuple[str, str]]()
    for event in (e for e in flow if e.event == "record_spans"):
        more = event.args.get("parts")
        buffers[event.process, str(event.args.get("channel"))] += more - 1 if type(more) is int else 0
    over: set[str] = set()
    for event in own:
        if event.event == "record_produced":
            buffers[event.process, str(event.args.get("channel"))] += 1
        elif event.event in (*EMITS, REPLAYED):
            buffers.update((event.process, channel) for channel in _texts(event, "channels"))
        if (event.state or {}).get("phase") == "TERMINATED":
            over.add(event.process)
    for (process, channel), number in items.items():
        if number > buffers[process, channel] + barriers[process] + (process in over):
            why = f"{process} has sent more on {channel} than the log has of it: {number} items"
            yield Observation(last[process, channel], impossible=f"{why}; END is sent by who has terminated")


def _out_of_order(of_master: Iterable[Event]) -> Iterable[Observation]:
    """The JobMaster deploys, starts and finishes an attempt once, and in this order."""
    seen: list[str] = []
    for event in sorted(of_master, key=lambda e: e.seq):
        if event.event in MILESTONES:
            if [*seen, event.event] != [*MILESTONES[: len(seen) + 1]]:
                yield Observation(event, impossible=f"the attempt is {seen[-1] if seen else 'not deployed'}")
            else:
                seen.append(event.event)


def graph_of(deployed: Event) -> str:
    """The recorded graph. Raises `InputError` for one that no program of the Loops API makes, and for a very large one."""
    text: str = deployed.args["graph"]
    try:
        size = sum(operator.parallelism for operator in parse(text).operators)
    except ScopeError as error:
        raise InputError(str(error), loc=deployed.loc) from error
    if size > MOST:
        raise InputError(f"the graph has {size:,} subtasks; up to {MOST} can be followed", loc=deployed.loc)
    return text if ";" in text else f"{text};"  # not the name of a graph


def _in_order(events: Sequence[Event]) -> list[Event]:
    """All events in an order that agrees with their clocks: the sum of a clock rises from cause to effect.

    Raises `InputError` for an event without a clock, and for a process whose own count is not that of its events.
    """
    counts: dict[str, int] = {}
    for event in sorted(events, key=lambda e: e.seq):
        count = counts[event.process] = counts.get(event.process, 0) + 1
        if not event.clock or event.clock.get(event.process) != count:
            raise InputError(
                f"the vector clock of {event} does not count it as event {count} of {event.process!r}",
                loc=event.loc,
                remedy="give the whole log of every process",
            )
    return sorted(events, key=lambda e: (sum((e.clock or {}).values()), e.process, e.seq))


def _by_process(events: Sequence[Event]) -> dict[str, list[Event]]:
    found: dict[str, list[Event]] = {}
    for event in sorted(events, key=lambda e: e.seq):
        found.setdefault(event.process, []).append(event)
    return found


def _observed(event: Event, of: Machine, impossible: str | None) -> Observation:
    if event.process not in of.tasks:
        raise InputError(f"{event.process!r} is no subtask of the graph", loc=event.loc)
    if event.event not in _MEANING:
        raise InputError(f"{event.event!r} is no event of the runtime", loc=event.loc)
    moves = tuple(_FORM.read(event, event, of))
    before = (_status(event),) if event.event == "baton_received" else ()
    after = [_agrees(event, name, value) for name, value in sorted((event.state or {}).items())]
    if event.event in RECORD_EVENTS:
        after.append(_NONE_LOST)
    return Observation(event, (moves,), tuple(after), before, impossible, like=BY_VALUE)


def _agrees(event: Event, name: str, value: Any) -> Constraint:
    """A recorded part of the state is that of the machine; a source holds nothing."""
    if name not in STATES:
        raise InputError(f"{name!r} is no part of a subtask's state", loc=event.loc)

    test = _Holds(STATES[name], event.process, type(value), value)
    return Constraint(
        lambda look: f"{name} of {event.process} is {test.read(look)} in the model, and {json.dumps(value)} in the log",
        test,
    )


@dataclass(frozen=True, slots=True)
class _Holds:
    """Whether a part of a subtask's state is what is recorded; compared by value."""

    name: str
    process: str
    kind: type
    value: Any

    def read(self, look: StateReader) -> Any:
        """What the machine has."""
        try:
            return look(self.name, self.process)
        except KeyError:
            return 0

    def __call__(self, look: StateReader) -> bool:
        """Whether that is recorded."""
        found = self.read(look)
        return type(found) is self.kind and bool(found == self.value)


@dataclass(frozen=True, slots=True)
class _Sent:
    """Whether the first item of a channel is a baton with the recorded status and number; compared by value."""

    channel: str
    kinds: tuple[type, type]
    recorded: tuple[Any, Any]

    def read(self, look: StateReader) -> dict[str, Any]:
        """The first item."""
        first = look("channel", self.channel)
        return dict(zip(look.fields("channel"), first[0], strict=True)) if first else {"kind": "nothing"}

    def __call__(self, look: StateReader) -> bool:
        """Whether it is as recorded."""
        item = self.read(look)
        return (item.get("busy"), item.get("id")) == self.recorded


_NONE_LOST = Constraint("a record has arrived at a subtask that has terminated", lambda look: not look("lost"))


def _status(event: Event) -> Constraint:
    """The baton that is received has the recorded status and number."""
    recorded = event.args.get("busy"), event.args.get("id")
    sent = _Sent(event.args["channel"], (type(recorded[0]), type(recorded[1])), recorded)

    def text(look: StateReader) -> str:
        item = sent.read(look)
        return f"{sent.channel} has {item['kind']}, busy {item.get('busy')}, id {item.get('id')}; the log has {event}"

    return Constraint(text, sent)


def _finished(tasks: Iterable[str]) -> Iterable[Constraint]:
    def terminated(task: str) -> Constraint:
        text = f"the job has finished, but {task} has not terminated"
        return Constraint(text, lambda look: look("phase", task) == "TERMINATED")

    return map(terminated, tasks)


def _texts(event: Event, name: str) -> list[str]:
    value = event.args.get(name)
    if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
        raise InputError(f"{event} needs the argument {name!r}, a list of texts", loc=event.loc)
    return value


def _processed(event: Event, of: Machine) -> Iterable[Move]:
    """A record is sent on any number of times, and then done. With a buffer timeout the event says how many are done."""
    for channel in _texts(event, "channels"):
        yield Move("emit", {"c": channel, "keep": True})
    done = event.args.get("done", 1)
    if type(done) is not int or not 0 <= done <= MOST_DONE:
        raise InputError(f"{event} needs the argument 'done', a number from 0 to {MOST_DONE:,}", loc=event.loc)
    yield from [Move("finish", {"o": event.process})] * done


def _replayed(event: Event, of: Machine) -> Iterable[Move]:
    """Raises `InputError` for channels that are neither outputs of the subtask nor feedback to it."""
    for channel in _texts(event, "channels"):
        link = of.model.routes.links.get(channel)
        if link is None or event.process != (link.target if link.feedback else link.source):
            raise InputError(f"{event}: {channel!r} does not begin at {event.process!r}", loc=event.loc)
        yield Move("replay", {"c": channel})


def _terminated(event: Event, of: Machine) -> Iterable[Move]:
    yield Move("end_source" if event.process in of.sources else "terminate", {"o": event.process})


_STATE = {
    "phase": TEXT("the phase of the subtask").or_none(),
    "held": INTEGER("the buffers that it holds").or_none(),
    "attempt": INTEGER("its attempt to end a loop").or_none("the subtask is no head"),
}
_EMITTED = EventForm(
    _processed,
    SUBTASK,
    ("emit", "finish"),
    {"channels": CHANNELS, "contents": CONTENTS.or_none(NO_CONTENT), "done": DONE.or_none("1")},
    _STATE,
)
_OF_BUFFER = {"channel": CHANNEL, "content": CONTENT}
_MEANING: Mapping[str, EventForm] = {
    "record_produced": EventForm(
        lambda e, _: (Move("produce", {"c": e.args["channel"]}),),
        SUBTASK,
        ("produce",),
        _OF_BUFFER,
        _STATE,
        "A source has made a buffer.",
    ),
    "record_received": EventForm(
        lambda e, _: (Move("receive", {"c": e.args["channel"]}),),
        SUBTASK,
        ("receive",),
        _OF_BUFFER,
        _STATE,
        "A subtask takes a buffer.",
    ),
    **dict.fromkeys(EMITS, _EMITTED),
    "terminated": EventForm(
        _terminated,
        SUBTASK,
        ("end_source", "terminate"),
        state={**_STATE, "phase": TEXT("the phase of the subtask")},
        meaning="A subtask ends, and sends END.",
    ),
    REPLAYED: EventForm(
        _replayed,
        SUBTASK,
        ("replay",),
        {"channels": CHANNELS, "contents": CONTENTS.or_none(NO_CONTENT)},
        _STATE,
        "A subtask goes on from a checkpoint, and sends these buffers again; its first event.",
    ),
    "attempt_started": EventForm(
        lambda e, _: (Move("start_attempts", {"o": e.process}),),
        SUBTASK,
        ("start_attempts",),
        state=_STATE,
        meaning="A head begins to end its loop.",
    ),
    "baton_received": EventForm(
        lambda e, _: (Move("receive_baton", {"c": e.args["channel"], "baton": e.args["baton"]}),),
        SUBTASK,
        ("receive_baton",),
        {
            "channel": CHANNEL,
            "baton": TEXT("the operator whose loop it ends"),
            "busy": TRUTH("whether it has met a busy subtask"),
            "id": INTEGER("the attempt that it is of"),
        },
        _STATE,
        "A subtask takes a baton.",
    ),
}
"""The events of a subtask."""
_FORM = LogForm(
    TITLE,
    {
        "deployed": EventForm(
            None, OF_ATTEMPT, args={"graph": GRAPH}, meaning="The JobMaster deploys the subtasks of this graph."
        ),
        "started": EventForm(None, OF_ATTEMPT, meaning="The subtasks of the attempt begin."),
        **_MEANING,
        "finished": EventForm(None, OF_ATTEMPT, meaning="All subtasks have terminated."),
    },
    (BY_NUMBER, BY_CLOCK),
    LACKING,
)

BINDING = RuntimeBaton(_FORM)
