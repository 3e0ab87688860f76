"""Variants of the baton that omit or change one rule, to be switched on for demonstration; most are wrong.

The rules by number are those of `termination`. The harmless ones are sound, or only take more messages or memory.
"""

from __future__ import annotations

from typing import Any

from streamproof_runtime.subtasks.batons import Baton
from streamproof_runtime.subtasks.items import END, RECORD, Item
from streamproof_runtime.subtasks.output_buffers import EVENT
from streamproof_runtime.subtasks.subtask import ATTEMPTING, RUNNING, TERMINATED, Action
from streamproof_runtime.subtasks.termination import CLEAN, DIRTY, NONE, BatonSubtask

TIME_OUT = "time-out"


class FirstEnd(BatonSubtask):
    """Rules 2 and 3: END on one input counts as END on all."""

    def has_ended(self) -> bool:
        """One is enough."""
        return bool(self.ended) or not self.plan.inputs


class FirstEntry(BatonSubtask):
    """Rule 3: for a head, END on one input counts as END on all."""

    def has_ended(self) -> bool:
        """One is enough for a head."""
        return super().has_ended() or (self.plan.is_head and bool(self.ended))


class UpstreamUnwaited(BatonSubtask):
    """Rule 2: an operator outside loops that holds a record sends END with the status BUSY, and is not visited again."""

    ends_busy = False

    def may_finish(self) -> bool:
        """Held records do not matter."""
        return self.has_ended()

    def take_control(self, channel: str, item: Item) -> None:
        """The status of END is noted."""
        self.ends_busy = self.ends_busy or (item[0] == END and item[2])
        super().take_control(channel, item)

    def finish(self) -> None:
        """END goes on with the status."""
        if self.plan.is_head:
            super().finish()
            return
        busy = bool(self.held)
        self.phase = ATTEMPTING if busy else TERMINATED
        clock = self.record("terminated", {})
        self.sent += [(channel, (END, clock, busy)) for channel in self.plan.outputs]

    def work(self) -> None:
        """The operator terminates with its last record."""
        super().work()
        if self.phase is ATTEMPTING and not self.plan.is_head and not self.held:
            self.flush(EVENT)
            self.phase = TERMINATED
            self.record("terminated", {})

    def own_status(self) -> bool:
        """The first attempt is BUSY if one of the ENDs was."""
        busy, self.ends_busy = self.ends_busy, False
        return busy or super().own_status()


class Broadcast(BatonSubtask):
    """Rule 4: batons are sent on every output; operators that cannot answer drop them. Harmless but for memory."""

    def send(self, baton: Baton, busy: bool, id: int, event: str, about: dict[str, object]) -> None:
        """On every output."""
        super().send(baton, busy, id, event, about)
        self.push(self.plan.itinerary.stray[baton], self.clock, busy, id)

    def align(self, channel: str, baton: Baton, busy: bool, id: int, about: dict[str, object]) -> None:
        """Only what leads back."""
        if channel in self.plan.itinerary.awaited.get(baton, ()):
            super().align(channel, baton, busy, id, about)
        else:
            self.record("baton_received", about)


class NoAlignment(BatonSubtask):
    """Rule 5: each copy of a baton is forwarded at once, and the first one that returns decides."""

    def align(self, channel: str, baton: Baton, busy: bool, id: int, about: dict[str, object]) -> None:
        """No waiting."""
        self.handle(channel, baton, busy, id, about)


class BlockingAlignment(BatonSubtask):
    """Rule 5: records behind a baton wait while it is awaited elsewhere. Harmless."""

    def is_ready(self, channel: str, item: Item) -> bool:
        """Not behind a baton."""
        waits = item[0] == RECORD and any(channel in arrived for arrived in self.arrived.values())
        return not waits and super().is_ready(channel, item)


class FirstStatus(BatonSubtask):
    """Rule 6: an operator that waits for a baton on several inputs reads its own status when the first copy arrives."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.first: dict[Baton, bool] = {}

    def align(self, channel: str, baton: Baton, busy: bool, id: int, about: dict[str, object]) -> None:
        """The status of that moment is kept."""
        self.first.setdefault(baton, bool(self.held))
        super().align(channel, baton, busy, id, about)

    def handle(self, channel: str, baton: Baton, busy: bool, id: int, about: dict[str, object]) -> None:
        """The status of a later moment does not count."""
        status = self.first.pop(baton)
        if self.plan.is_head:
            super().handle(channel, baton, busy, id, about)
        else:
            self.flush(EVENT)
            self.send(baton, self.collective_status(busy, status), id, "baton_received", about)


class StatusDropped(BatonSubtask):
    """Rule 6: an operator overwrites the status of a baton."""

    def collective_status(self, busy: bool, busy_too: bool) -> bool:
        """The last one."""
        return busy_too


class HeadUnasked(BatonSubtask):
    """Rule 6: a head that starts an attempt does not add its own status."""

    def own_status(self) -> bool:
        """IDLE."""
        return False


class InnerForward(BatonSubtask):
    """Rule 7: the head of an inner loop forwards an outer baton without a turn around its own loop."""

    def enter_loop(self, baton: Baton, busy: bool, id: int, about: dict[str, object]) -> None:
        """Out of the loop at once."""
        out = baton.entering(self.plan.operator.scope.loops[-1]).turned()
        self.send(out, self.collective_status(busy, bool(self.held)), id, "baton_received", about)


class SecondPassUnchecked(BatonSubtask):
    """Rule 7: the head of an inner loop adds its status to each pass of an outer baton, but not what it received between."""

    def leave_loop(self, baton: Baton, busy: bool, id: int, about: dict[str, object]) -> None:
        """The second pass."""
        self.since_baton = NONE
        self.send(baton.turned(), self.collective_status(busy, bool(self.held)), id, "baton_received", about)


class NotAbsorbed(BatonSubtask):
    """Rule 7: the head of an inner loop forwards an outer baton each time that it arrives, also around its own loop again."""

    def leave_loop(self, baton: Baton, busy: bool, id: int, about: dict[str, object]) -> None:
        """Out of the loop, and around it."""
        super().leave_loop(baton, busy, id, about)
        self.since_baton = CLEAN
        again = self.collective_status(busy, bool(self.held))
        self.push(self.plan.itinerary.onward[baton], self.clock, again, id)


class NoSecondWait(BatonSubtask):
    """Rule 7: a baton goes around the inner loop and out of it at once; the result counts in the next attempt."""

    def enter_loop(self, baton: Baton, busy: bool, id: int, about: dict[str, object]) -> None:
        """Both turns at once."""
        found = self.collective_status(busy, bool(self.held)) or self.is_dirty()
        self.since_baton = CLEAN
        around = baton.entering(self.plan.operator.scope.loops[-1])
        self.send(around, found, id, "baton_received", about)
        self.push(self.plan.itinerary.onward[around.turned()], self.clock, found, id)

    def leave_loop(self, baton: Baton, busy: bool, id: int, about: dict[str, object]) -> None:
        """The head remembers the result."""
        self.since_baton = DIRTY if busy or self.is_dirty() else NONE
        self.record("baton_received", about)


class NoDirtyCheck(BatonSubtask):
    """Rules 7 and 8: a head ignores records received since it sent the baton."""

    def is_dirty(self) -> bool:
        """Never."""
        return False


class Timeout(BatonSubtask):
    """What the proposal replaces: a head whose feedback inputs are empty terminates, after any time."""

    def enabled(self) -> list[Action]:
        """Nothing more comes from outside the loop, and nothing is there from inside."""
        empty = not any(self.queues[c] for c in self.plan.feedback_inputs)
        can = self.plan.is_head and self.phase is ATTEMPTING and not self.held and empty
        return [*super().enabled(), (TIME_OUT, "")] if can else super().enabled()

    def do(self, action: Action) -> None:
        """The head terminates."""
        if action[0] == TIME_OUT:
            self.flush(EVENT)
            self.phase = TERMINATED
            self.send_end("terminated", {})
        else:
            super().do(action)


class StaleAttempt(BatonSubtask):
    """Rule 9: a head does not compare ids. Harmless: it has one baton under way."""

    def is_current(self, id: int) -> bool:
        """Always."""
        return True


class EagerRetry(BatonSubtask):
    """Rule 9: a single head makes another attempt as soon as it receives a record. Harmless while no id is reused."""

    ids = 4

    def take(self, channel: str) -> None:
        """Another attempt after a record."""
        is_record = self.queues[channel][0][0] == RECORD
        super().take(channel)
        if is_record and len(self.plan.itinerary.own) == 1 and self.phase is ATTEMPTING:
            self.flush(EVENT)
            self.next_attempt("attempt_started", {})


class EagerRetryStale(EagerRetry):
    """As eager-retry, but ids are not compared: an aborted attempt counts as the current one."""

    def is_current(self, id: int) -> bool:
        """Always."""
        return True


class UncoordinatedHeads(BatonSubtask):
    """Rule 10: each of several heads decides alone."""

    def confirm(self, busy: bool, about: dict[str, object]) -> None:
        """Without another turn."""
        self.decide(busy, about)


class MarkReset(BatonSubtask):
    """Rule 10: a head begins the second lap of an attempt anew, without what it found in the first."""

    def confirm(self, busy: bool, about: dict[str, object]) -> None:
        """As if it were the first."""
        self.since_baton = CLEAN
        self.send(self.plan.itinerary.own[1], self.own_status(), self.id, "baton_received", about)


class InnerFirst(BatonSubtask):
    """Rule 11: the head of an inner loop completes its own scope first, and drops the outer baton."""

    def enter_loop(self, baton: Baton, busy: bool, id: int, about: dict[str, object]) -> None:
        """An attempt of its own scope."""
        if self.phase is RUNNING:
            self.phase = ATTEMPTING
            self.attempt("baton_received", about)
        else:
            self.record("baton_received", about)


class CompletedTogether(BatonSubtask):
    """Rule 11: a completed scope completes the loops in it."""

    def finish(self) -> None:
        """Only the outermost head makes attempts."""
        if self.plan.is_head and self.plan.operator.scope.level > 1:
            self.phase = TERMINATED
            self.send_end("terminated", {})
        else:
            super().finish()


class ScopeKept(BatonSubtask):
    """Rule 11: END keeps the scope of the loop that it has passed, so that the next head does nothing."""

    def may_finish(self) -> bool:
        """Only where END has passed no other loop."""
        scope = self.plan.operator.scope
        passed = self.plan.is_head and not all(scope.contains(other) for other in self.plan.behind)
        return not passed and super().may_finish()


class Literal(InnerForward, UncoordinatedHeads):
    """The text of the proposal at its word: inner-forward and uncoordinated-heads."""


def _name(variant: type[BatonSubtask]) -> str:
    return "".join("-" + c.lower() if c.isupper() else c for c in variant.__name__).removeprefix("-")


VARIANTS: dict[str, type[BatonSubtask]] = {
    _name(v): v
    for v in (
        *(FirstEnd, FirstEntry, UpstreamUnwaited, Broadcast, NoAlignment, BlockingAlignment, FirstStatus),
        *(
            StatusDropped,
            HeadUnasked,
            InnerForward,
            SecondPassUnchecked,
            NotAbsorbed,
            NoSecondWait,
            MarkReset,
            NoDirtyCheck,
            Timeout,
            StaleAttempt,
            EagerRetry,
        ),
        *(EagerRetryStale, UncoordinatedHeads, InnerFirst, CompletedTogether, ScopeKept, Literal),
    )
}
"""All variants by name."""
HARMLESS = frozenset({"blocking-alignment", "stale-attempt"})
"""Variants that no log tells from the rules, or only by an order that the rules allow as well."""
