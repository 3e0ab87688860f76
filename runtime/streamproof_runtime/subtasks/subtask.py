"""The dataflow of one subtask, as a state machine without input and output.

The host delivers items to the channels of a subtask, asks for the enabled actions, lets it do one, and carries away what
it has sent. A subtask *holds* a buffer between receiving it and sending on its outputs: meanwhile it is busy.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol, TypeAlias

from streamproof_runtime.errors import CannotStore
from streamproof_runtime.jobs.functions import Context, Operation, line_of
from streamproof_runtime.jobs.graph import ExecutionGraph
from streamproof_runtime.jobs.operators import Edge, Operator
from streamproof_runtime.jobs.records import content, total_size
from streamproof_runtime.jobs.scopes import Scope
from streamproof_runtime.subtasks.barriers import Alignment, Snapshot, state_of
from streamproof_runtime.subtasks.batons import Itinerary, itineraries
from streamproof_runtime.subtasks.buffers import BYTES, PIECE, Output
from streamproof_runtime.subtasks.feedback_logs import FeedbackLog, buffers
from streamproof_runtime.subtasks.items import BARRIER, END, PART, RECORD, Clock, Item, kind_of
from streamproof_runtime.subtasks.loop_heads import LoopHead
from streamproof_runtime.subtasks.output_buffers import EVENT, OutputBuffers
from streamproof_runtime.subtasks.routing import Router
from streamproof_runtime.subtasks.spanning import Deserialisers
from streamproof_runtime.subtasks.spilling import SpillingQueue
from streamproof_runtime.subtasks.unaligned import InFlight

RUNNING, ATTEMPTING, TERMINATED = "RUNNING", "ATTEMPTING", "TERMINATED"

Action: TypeAlias = tuple[str, str]
"""What a subtask can do next, with the channel from which it takes an item."""

PRODUCE, TAKE, WORK, FINISH, SNAPSHOT = "produce", "take", "work", "finish", "snapshot"
HELD = 8
"""Buffers that a subtask holds at most."""
_LOOK = 8
"""Containers inside each other that count for the size of what a source takes."""


class Log(Protocol):
    """Where a subtask records its events; an event is recorded before anything that it sends can leave."""

    def __call__(
        self, process: str, event: str, args: Mapping[str, Any], state: Mapping[str, Any], clock: Clock, /
    ) -> None:
        """Records one event."""


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """What a subtask knows of its job."""

    name: str
    number: int
    operator: Operator
    inputs: tuple[str, ...]
    feedback_inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    feedback_outputs: tuple[str, ...]
    routes: tuple[tuple[Edge, tuple[str, ...]], ...]
    """Each outgoing edge with its channels, in the order of the target's subtasks."""
    itinerary: Itinerary
    is_head: bool
    behind: frozenset[Scope]
    """The loops with a head from which a record can reach this subtask."""


def plans(graph: ExecutionGraph) -> dict[str, TaskPlan]:
    """The plan of each subtask of a job."""
    ways = itineraries(graph)
    return {task: _plan(graph, task, ways[task]) for task in graph.tasks}


def _plan(graph: ExecutionGraph, task: str, itinerary: Itinerary) -> TaskPlan:
    own = [c for c in graph.channels.values() if c.source == task]
    edges = [e for e in graph.job.edges if e.source == graph.operator_of[task].name]
    return TaskPlan(
        task,
        graph.number[task],
        graph.operator_of[task],
        graph.inputs(task, feedback=False),
        graph.inputs(task, feedback=True),
        graph.outputs(task, feedback=False),
        graph.outputs(task, feedback=True),
        tuple((edge, tuple(c.name for c in own if c.edge is edge)) for edge in edges),
        itinerary,
        task in graph.heads,
        _loops_before(graph, task),
    )


def _loops_before(graph: ExecutionGraph, task: str) -> frozenset[Scope]:
    reached, new = {task}, {task}
    while new:
        new = {c.source for c in graph.channels.values() if c.target in new} - reached
        reached |= new
    return frozenset(graph.scope(t) for t in reached & graph.heads)


class Subtask:
    """The dataflow of a subtask; a subclass has the protocol of termination."""

    alignment_type, feedback_log_type, in_flight_type = Alignment, FeedbackLog, InFlight
    deserialisers_type = Deserialisers

    def __init__(
        self,
        plan: TaskPlan,
        log: Log,
        choose: Callable[[int], int],
        records: int = 1,
        timeout: float | None = None,
        size: int = BYTES,
    ) -> None:
        """`choose` makes the choices of user functions; `records` is the largest number of records in a buffer, `timeout`
        the buffer timeout in milliseconds, and `size` that of a buffer in bytes."""
        self.plan, self.name, self._log = plan, plan.name, log
        self.unfinished = OutputBuffers(records, timeout, size)
        self.phase = RUNNING
        self.is_recorded = True
        """Whether there is a log."""
        self.queues: dict[str, deque[Item] | SpillingQueue] = {
            c: deque() for c in (*plan.inputs, *plan.feedback_inputs)
        }
        self.head: LoopHead | None = None
        """The choice between input and feedback, if there is feedback."""
        self.about: dict[str, object] = {}
        """What the event of the item that is being taken says of it: its channel, and its number if it was fed back."""
        self.held: deque[tuple[int, list[Any], str]] = deque()
        """Inputs, records, and channels of buffers that have not been processed."""
        self.sent: list[tuple[str, Item]] = []
        self.clock: Clock = {}
        self.lost = self.records = 0
        """Records that came too late, and all that it has received or, as a source, made."""
        self.ended: set[str] = set()
        """Inputs on which END has been taken."""
        self.items: Iterator[Any] = iter(())
        self.left = self._cut = self._all = 0
        """Records that a source will make, those that it will not since it was stopped, and all that it has."""
        self.is_stopped = False
        operator, number = plan.operator, plan.operator.first + plan.number
        if operator.items is not None:
            own = operator.items[number :: operator.of or operator.parallelism]
            self.items, self.left = iter(own), len(own)
            self._all = self.left
        self.operation = Operation(operator.inputs, Context(choose, number))
        self._piece = PIECE if self.unfinished.records > PIECE else 1
        self.router = Router(plan.routes, number, together=self._piece > 1)
        self._done = 0
        """Records of the buffer held longest that the user function has had."""
        self._made: list[Output] = []
        self.alignment = self.alignment_type(plan.inputs)
        self.feedback_log = self.feedback_log_type()
        self.known_actions: Sequence[Action] | None = None
        """The possible actions, as long as nothing has changed since they were found; for the host."""
        self.is_unaligned = False
        """Whether barriers overtake buffers."""
        self.in_flight = self.in_flight_type(self._waiting)
        self.deserialisers = self.deserialisers_type()
        self._taken: tuple[int, Any] = (0, None)
        """The checkpoint whose snapshot was taken last, and its state."""
        self._is_reported = True
        """Whether the buffers of an unaligned snapshot are complete."""

    # --- for the host

    def deliver(self, channel: str, item: Item) -> None:
        """Appends an item to an input channel, unless it is a barrier that overtakes what is there."""
        if self.is_unaligned and item[0] == BARRIER:
            self.barrier_arrives(channel, item[2])
            return
        self.queues[channel].append(item)
        if item[0] == END:
            self.in_flight.close(channel)
        if self.head is not None:
            self.head.arrived(channel, kind_of(item))

    def enabled(self) -> list[Action]:
        """The possible actions, in a fixed order."""
        if self.is_unaligned and self.is_due():
            return [(WORK, "") if self._done else (SNAPSHOT, "")]
        held, alignment = self.held, self.alignment
        full, kept, arrived = len(held) >= HELD, self.feedback_log.kept, alignment.arrived
        is_asked = alignment.is_asked
        # what is held is processed, and the snapshot taken, also if feedback never ends
        queues = () if is_asked and self.is_aligned() else self.queues.items()
        found = [
            (TAKE, c)
            for c, queue in queues
            if queue
            and not (full and queue[0][0] == RECORD)
            and not (arrived and alignment.blocks(c))
            and c not in kept
            and self.is_ready(c, queue[0])
        ]
        if self.head is not None:
            found = self.head.preferred(found)
        if is_asked and self.may_take_snapshot():
            found.append((SNAPSHOT, ""))
        if held:
            found.append((WORK, ""))
        if self.left:
            found.append((PRODUCE, ""))
        elif self.phase is RUNNING and self.may_finish():
            found.append((FINISH, ""))
        return found

    def enabled_without_credit(self) -> list[Action]:
        """The possible actions while an output waits for credit: a snapshot whose barriers overtake it."""
        return [(SNAPSHOT, "")] if self.is_unaligned and not self._done and self.is_due() else []

    def do(self, action: Action) -> None:
        """Does an enabled action; what it sends is appended to `sent`."""
        kind, channel = action
        if kind is TAKE:
            self.take(channel)
        elif kind is WORK:
            self.work()
        elif kind is PRODUCE:
            self.produce()
        elif kind is SNAPSHOT and self.is_unaligned:
            self.take_unaligned_snapshot()
        elif kind is SNAPSHOT:
            self.take_snapshot()
        else:
            self.flush(EVENT)
            self.finish()
        if self.feedback_log.away and self.phase is TERMINATED:
            self.complete_log()

    def result(self) -> Any:
        """The records of a sink, in its form; None if it has received none."""
        return self.operation.states.get(None, {}).get("records") if self.plan.operator.is_sink else None

    # --- records

    def produce(self) -> None:
        """A source takes its next records; each buffer that leaves is an event."""
        values: list[Any] = []
        taken, most = 0, min(self.left, self._piece if self.unfinished.stay else self.unfinished.records)
        while len(values) < most and taken < BYTES:  # first one, then as many as fit if they are as large
            number = min(most - len(values), max(1, (BYTES - taken) * len(values) // (taken or 1)))
            new = [*islice(self.items, number)]
            if len(new) < number:
                raise ValueError(f"{self.name} has fewer items than its length says")
            values += new
            taken += total_size(new, _LOOK)
        self.left -= len(values)
        self.records += len(values)
        self._produced(self.unfinished.add(self.router.routed(values)))

    @property
    def position(self) -> int:
        """Records that a source has made, those before its checkpoint included."""
        return self._all - self.left - self._cut

    def stop(self, at: int = 0) -> int:
        """A source ends where it is, or at a later position; returns the number of records that it will have made."""
        position, rest = self.position, self.left + self._cut
        self.is_stopped, self.left = True, max(0, at - position)
        self._cut = rest - self.left
        return position + self.left

    def ending(self) -> dict[str, object]:
        """What the event of its end says of an unbounded source: its position."""
        return {"position": self.position} if self.plan.operator.is_unbounded else {}

    def _produced(self, buffers: Iterable[Output]) -> None:
        for channel, side, outputs in buffers:
            clock = self.record("record_produced", {"channel": channel, **self._content(outputs)})
            self.sent.append((channel, (RECORD, clock, side, outputs)))

    def take(self, channel: str) -> None:
        """Takes the next item of a channel."""
        item = self.queues[channel].popleft()
        self.about = {"channel": channel} if self.head is None else self.head.taken(channel)
        self.merge(item[1])
        if item[0] == PART:
            self.note("part_received", {**self.about, "gathered": self.deserialisers.gather(channel, item[3])}, {})
        elif item[0] == RECORD:
            self.take_records(channel, item[2], item[3])
        elif item[0] == BARRIER:
            self.take_barrier(channel, item[2])
        else:
            self.take_control(channel, item)
        if self.head is not None:
            try:
                self.head.read_back(channel)
            except OSError as error:
                raise CannotStore(f"cannot read its feedback: {error}") from error

    def take_records(self, channel: str, side: int, values: list[Any] | bytes) -> None:
        """Takes a buffer of records, or the last part of a record that spans buffers."""
        about: dict[str, object] = {}
        if isinstance(values, bytes):
            values, about["parts"] = self.deserialisers.complete(channel, values)
        self.records += len(values)
        if self.phase is TERMINATED:
            self.lost += len(values)
        else:
            self.held.append((side, values, channel))
            self.note_record(channel)
            self.feedback_log.note(channel, side, values)
            self.in_flight.note(channel, side, values)
        self.record("record_received", {**self.about, **about, **self._content(values)})

    def work(self) -> None:
        """Applies the user function to the next records of the buffer held longest. Without a buffer timeout all outputs
        are sent after the last one, else those in full buffers at once."""
        side, values, _ = self.held[0]
        start = self._done
        self._done += self._piece
        outputs = self.router.routed(self.operation.outputs(side, values[start : self._done]))
        is_last, unfinished = self._done >= len(values), self.unfinished
        if is_last:
            self._done = 0
            self.held.popleft()
        if unfinished.stay:
            made = unfinished.add(outputs)
            if is_last:
                unfinished.processed()
            self._processed("record_processed", made)
            return
        self._made += outputs
        if is_last:
            made, self._made = unfinished.add(self._made), []
            self._send(made, self.record("record_processed", self._leaving(made)))

    def flush(self, why: str) -> None:
        """Output buffers that are not full leave."""
        if not self.unfinished.stay:
            return
        made = self.unfinished.flush()
        if self.plan.operator.items is not None:
            self._produced(made)
        else:
            self._processed("buffers_flushed", made, why=why)

    def _processed(self, event: str, made: Sequence[Output], **more: str) -> None:
        """Buffers leave, and those of whose outputs none is left here are held no more."""
        done = self.unfinished.done()
        if made or done:
            self._send(made, self.record(event, {**self._leaving(made), "done": done, **more}))

    def _leaving(self, made: Sequence[Output]) -> dict[str, Any]:
        """The channels of buffers that leave, and what is in them."""
        about: dict[str, Any] = {"channels": [channel for channel, _, _ in made]}
        if self.is_recorded:
            about["contents"] = [content(outputs) for _, _, outputs in made]
        return about

    def _content(self, records: list[Any]) -> dict[str, str]:
        """What the log says of the records of a buffer."""
        return {"content": content(records)} if self.is_recorded else {}

    def _send(self, made: Sequence[Output], clock: Clock) -> None:
        self.sent += [(channel, (RECORD, clock, side, outputs)) for channel, side, outputs in made]

    def line(self) -> str:
        """The file and the line of the function whose outputs cannot be sent, or of that of the operator."""
        functions = [self.router.maker] if self.router.maker else [function for function, _ in self.operation.inputs]
        return next(filter(None, map(line_of, functions)), "")

    # --- checkpoints

    def take_barrier(self, channel: str, checkpoint: int) -> None:
        """No further item of this input is taken before the snapshot; the log of a feedback channel is complete."""
        self.note("barrier_received", {**self.about, "checkpoint": checkpoint}, {})
        if channel not in self.plan.feedback_inputs:
            self.alignment.arrive(channel, checkpoint)
            return
        is_logging = bool(self.feedback_log.away)
        if self.phase is not TERMINATED:
            self.feedback_log.returned(channel)
        if is_logging and not self.feedback_log.away:
            self.complete_log()

    def is_aligned(self) -> bool:
        """Whether the barrier of a checkpoint has come on all inputs but feedback, and the log of the one before is
        complete."""
        return not self.feedback_log.away and self.alignment.is_complete(self.ended)

    def may_take_snapshot(self) -> bool:
        """Whether a checkpoint is aligned, and all that was received before it has been processed."""
        return not self.held and self.is_aligned()

    def take_snapshot(self) -> None:
        """Takes a snapshot, and sends the barrier behind all records, unless END has been sent. A loop head logs its
        feedback from then on."""
        self.flush(EVENT)
        checkpoint = self.alignment.complete()
        self._taken = checkpoint, state_of(self.left + self._cut, self.operation, self.router.turn)
        self.note("snapshot_taken", {"checkpoint": checkpoint}, {})
        if self.phase is not TERMINATED:
            outputs = (*self.plan.outputs, *self.plan.feedback_outputs)
            self.sent += [(channel, (BARRIER, {}, checkpoint)) for channel in outputs]
        self.feedback_log.depart(self.plan.feedback_inputs)
        if self.phase is TERMINATED or not self.feedback_log.away:
            self.complete_log()

    def complete_log(self) -> None:
        """The barrier has returned on all feedback channels, or the loop has ended: the snapshot is complete."""
        checkpoint, state = self._taken
        logged = self.feedback_log.complete()
        if self.plan.feedback_inputs:
            self.note("buffers_logged", {"checkpoint": checkpoint, **self._leaving(buffers(logged))}, {})
        self.alignment.taken.append((checkpoint, (*state, logged)))

    # --- unaligned checkpoints

    def _waiting(self, channel: str) -> Iterator[tuple[int, list[Any]]]:
        """The buffers in the queue of an input; a record that spans buffers is one, if its last part is there."""
        queue: Any = self.queues[channel]
        return self.deserialisers.waiting(channel, queue)

    def _ends(self) -> set[str]:
        """The inputs on which END has come."""
        return self.ended | {c for c in self.plan.inputs if self.queues[c] and self.queues[c][-1][0] == END}

    def barrier_arrives(self, channel: str, checkpoint: int) -> None:
        """A barrier overtakes what is in the queue of its input. One of an earlier checkpoint has no meaning."""
        self.note("barrier_arrived", {"channel": channel, "checkpoint": checkpoint}, {})
        if checkpoint == self._taken[0]:
            self.in_flight.close(channel)
        elif checkpoint > self._taken[0] and checkpoint >= self.alignment.current:
            self.in_flight.arrives(channel, is_first=checkpoint > self.alignment.current)
            self.alignment.arrive(channel, checkpoint)

    def is_due(self) -> bool:
        """Whether a barrier has come, or the JobMaster has asked a subtask that none will reach."""
        return bool(self.alignment.arrived) or self.alignment.is_complete(self._ends())

    def take_unaligned_snapshot(self) -> None:
        """Takes a snapshot with the buffers under way, and sends barriers that overtake those at its outputs."""
        self.flush(EVENT)
        checkpoint = self.alignment.complete()
        self._taken = checkpoint, state_of(self.left + self._cut, self.operation, self.router.turn)
        self.note("snapshot_taken", {"checkpoint": checkpoint}, {})
        self.in_flight.depart(self.plan.inputs, self._ends(), self.held)
        self._is_reported = False
        if self.phase is not TERMINATED:
            self.sent += [(channel, (BARRIER, {}, checkpoint)) for channel in self.plan.outputs]

    def report(self) -> None:
        """A snapshot is complete when a barrier, or END, has come on every input."""
        if self.is_unaligned and not self._is_reported and not self.in_flight.open:
            self._is_reported = True
            checkpoint, state = self._taken
            logged = self.in_flight.complete()
            self.note("buffers_logged", {"checkpoint": checkpoint, **self._leaving(buffers(logged))}, {})
            self.alignment.taken.append((checkpoint, (*state, logged)))

    def restore(self, snapshot: Snapshot) -> None:
        """Goes on from a snapshot, before the first step. Raises `OSError` if there is no space for the log."""
        left, states, turn, logged = deepcopy(snapshot)
        self.items = islice(self.items, self.left - left, None)
        self.left, self.operation.states = left, states
        self.router.turn = turn
        if not (self.plan.feedback_inputs or logged):
            return
        replayed = buffers(self.feedback_log.replayed(logged))
        clock = self.record("buffers_replayed", self._leaving(replayed))
        for channel, side, records in replayed:
            if channel in self.plan.feedback_inputs:
                self.deliver(channel, (RECORD, clock, side, records))
            else:
                self.sent.append((channel, (RECORD, clock, side, records)))

    # --- events

    def record(self, event: str, args: Mapping[str, Any]) -> Clock:
        """Records an event with the state after it; returns its vector clock."""
        name = self.name
        clock = dict(self.clock)
        clock[name] = clock.get(name, 0) + 1
        self.clock = clock
        self._log(name, event, args, self.state(), clock)
        return clock

    def note(self, event: str, args: Mapping[str, Any], state: Mapping[str, Any]) -> None:
        """Records an event of flow control, which has no clock: it happens between two events of the subtask."""
        self._log(self.name, event, args, state, {})

    def state(self) -> dict[str, Any]:
        """What the subtask knows of its own state."""
        held = len(self.held)
        return {"phase": self.phase, "held": held + self.unfinished.held if self.unfinished.stay else held}

    def merge(self, clock: Clock) -> None:
        """What is known after receiving an item with this clock."""
        own, known = self.clock, self.clock.get
        if newer := {name: count for name, count in clock.items() if known(name, 0) < count}:
            self.clock = {**own, **newer}

    # --- for the protocol of termination

    def is_ready(self, channel: str, item: Item) -> bool:
        """Whether the first item of a channel can be taken."""
        raise NotImplementedError

    def may_finish(self) -> bool:
        """Whether all inputs have ended, as far as the subtask awaits that."""
        raise NotImplementedError

    def finish(self) -> None:
        """Terminates, or starts to attempt it."""
        raise NotImplementedError

    def take_control(self, channel: str, item: Item) -> None:
        """Takes an END or a baton."""
        raise NotImplementedError

    def note_record(self, channel: str) -> None:
        """The protocol's part in receiving a record."""
        raise NotImplementedError
