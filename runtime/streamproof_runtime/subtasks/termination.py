"""Termination by the baton of FLIP-15, part III: the rules by which a subtask ends, each a method.

1. A source that has ended sends END on every output, and has terminated.
2. An operator that is not a head, with END on all inputs and no record, terminates and sends END.
3. A head with END on all inputs except feedback starts the first attempt of its scope.
4. Batons follow only channels that lead back to their goal, within its scope.
5. An operator forwards a baton when it has it on all inputs that carry it; records behind it are not blocked.
6. A baton is BUSY if one of those received was, or if the sender holds a record.
7. The head of an inner loop sends an outer baton around its own loop first; BUSY also if it received a record meanwhile.
8. A head with its own baton back, IDLE, that received no record meanwhile, terminates and sends END.
9. Otherwise it starts the next attempt, with the next id; it ignores batons with another id.
10. Each of several heads of a scope sends its result around once more, and all decide by what returns.
11. END is never sent on a feedback channel; inner loops of a completed scope make attempts of their own.
"""

from __future__ import annotations

from collections.abc import Callable

from streamproof_runtime.subtasks.batons import Baton
from streamproof_runtime.subtasks.buffers import BYTES
from streamproof_runtime.subtasks.items import BATON, END, Item
from streamproof_runtime.subtasks.output_buffers import EVENT
from streamproof_runtime.subtasks.subtask import ATTEMPTING, TERMINATED, Log, Subtask, TaskPlan

IDS = 2
"""Attempts are numbered modulo this: a head has one baton under way, so that two numbers tell old from new."""
NONE, CLEAN, DIRTY = "NONE", "CLEAN", "DIRTY"
"""Whether a head's baton is away, and whether it has received a record since."""


class BatonSubtask(Subtask):
    """A subtask that terminates by the rules above."""

    ids = IDS

    def __init__(
        self,
        plan: TaskPlan,
        log: Log,
        choose: Callable[[int], int],
        records: int = 1,
        timeout: float | None = None,
        size: int = BYTES,
    ) -> None:
        super().__init__(plan, log, choose, records, timeout, size)
        self.id = 0
        self.since_baton = NONE
        self.arrived: dict[Baton, set[str]] = {}
        self.busy: dict[Baton, bool] = {}

    def state(self) -> dict[str, object]:
        """Heads also know the number of their attempt."""
        own = super().state()
        if self.plan.is_head:
            own["attempt"] = self.id
        return own

    # --- END

    def is_ready(self, channel: str, item: Item) -> bool:
        """A baton waits behind the same baton for the other inputs (rule 5)."""
        return item[0] != BATON or self.phase is TERMINATED or channel not in self.arrived.get(item[2], ())

    def may_finish(self) -> bool:
        """Rules 1 to 3."""
        return self.has_ended() and (self.plan.is_head or not self.held)

    def has_ended(self) -> bool:
        """Whether END has arrived on all inputs except feedback."""
        return len(self.ended) == len(self.plan.inputs)

    def finish(self) -> None:
        """Rules 1 to 3: a head starts an attempt, all others terminate."""
        if self.plan.is_head:
            self.phase = ATTEMPTING
            self.attempt("attempt_started", {})
        else:
            self.phase = TERMINATED
            self.send_end("terminated", self.ending())

    def send_end(self, event: str, args: dict[str, object]) -> None:
        """Rule 11."""
        clock = self.record(event, args)
        self.sent += [(channel, (END, clock, False)) for channel in self.plan.outputs]

    # --- batons

    def take_control(self, channel: str, item: Item) -> None:
        """END is noted. A terminated operator ignores batons."""
        if item[0] == END:
            self.ended.add(channel)
            return
        _, _, baton, busy, id = item
        about: dict[str, object] = {**self.about, "baton": str(baton), "busy": busy, "id": id}
        if self.phase is TERMINATED:
            self.record("baton_received", about)
        else:
            self.align(channel, baton, busy, id, about)

    def align(self, channel: str, baton: Baton, busy: bool, id: int, about: dict[str, object]) -> None:
        """Rule 5."""
        arrived = self.arrived.setdefault(baton, set())
        arrived.add(channel)
        together = self.collective_status(self.busy.get(baton, False), busy)
        if len(arrived) < len(self.plan.itinerary.awaited[baton]):
            self.busy[baton] = together
            self.record("baton_received", about)
        else:
            del self.arrived[baton]
            self.busy.pop(baton, None)
            self.handle(channel, baton, together, id, about)

    def collective_status(self, busy: bool, busy_too: bool) -> bool:
        """Rule 6: BUSY stays."""
        return busy or busy_too

    def handle(self, channel: str, baton: Baton, busy: bool, id: int, about: dict[str, object]) -> None:
        """A baton has arrived on all inputs that carry it; `channel` is the last one. It follows what is in unfinished
        buffers."""
        self.flush(EVENT)
        if not self.plan.is_head:
            self.send(baton, self.collective_status(busy, bool(self.held)), id, "baton_received", about)
        elif channel not in self.plan.feedback_inputs:
            self.enter_loop(baton, busy, id, about)
        elif baton.origin != self.plan.operator.scope:
            self.leave_loop(baton, busy, id, about)
        elif self.phase is ATTEMPTING and self.is_current(id):
            found = busy or self.is_dirty()
            if baton.turns[-1] == 1 and len(self.plan.itinerary.own) > 1:
                self.confirm(found, about)
            else:
                self.decide(found, about)
        else:
            self.record("baton_received", about)

    def enter_loop(self, baton: Baton, busy: bool, id: int, about: dict[str, object]) -> None:
        """Rule 7, the first turn."""
        self.since_baton = CLEAN
        around = baton.entering(self.plan.operator.scope.loops[-1])
        self.send(around, self.collective_status(busy, bool(self.held)), id, "baton_received", about)

    def leave_loop(self, baton: Baton, busy: bool, id: int, about: dict[str, object]) -> None:
        """Rule 7, the second turn."""
        found = busy or self.is_dirty()
        self.since_baton = NONE
        self.send(baton.turned(), found, id, "baton_received", about)

    def is_dirty(self) -> bool:
        """Whether a head has received a record since it sent the baton."""
        return self.since_baton is DIRTY

    def is_current(self, id: int) -> bool:
        """Rule 9."""
        return id == self.id

    def confirm(self, busy: bool, about: dict[str, object]) -> None:
        """Rule 10."""
        self.since_baton = NONE
        self.send(self.plan.itinerary.own[1], busy, self.id, "baton_received", about)

    def decide(self, busy: bool, about: dict[str, object]) -> None:
        """Rules 8 and 9."""
        if busy:
            self.next_attempt("baton_received", about)
        else:
            self.phase, self.since_baton, self.id = TERMINATED, NONE, 0
            self.send_end("baton_received", about)

    def next_attempt(self, event: str, about: dict[str, object]) -> None:
        """Rule 9."""
        self.id = (self.id + 1) % self.ids
        self.attempt(event, about)

    def attempt(self, event: str, about: dict[str, object]) -> None:
        """A head sends the baton of an attempt of its own."""
        self.since_baton = CLEAN
        self.send(self.plan.itinerary.own[0], self.own_status(), self.id, event, about)

    def own_status(self) -> bool:
        """Rule 6 for a head that starts an attempt."""
        return bool(self.held)

    def note_record(self, channel: str) -> None:
        """Rules 7 and 8: a head whose baton is away notes that it has received a record."""
        if self.since_baton is CLEAN:
            self.since_baton = DIRTY

    def send(self, baton: Baton, busy: bool, id: int, event: str, about: dict[str, object]) -> None:
        """Rule 4: records the event, then sends the baton on every channel that leads back to its goal."""
        clock = self.record(event, about)
        self.push(self.plan.itinerary.onward[baton], clock, busy, id)

    def push(self, channels: list[tuple[str, Baton]], clock: object, busy: bool, id: int) -> None:
        """Sends a baton on channels."""
        self.sent += [(channel, (BATON, clock, seen, busy, id)) for channel, seen in channels]
