"""Termination of a dataflow with loops: the TerminationAttempt baton of FLIP-15, part III, made sound.

Batons travel along the same FIFO channels as records (`baton_dataflow`), on the routes of `baton_routes`. The docstrings
number the rules as docs/protocols/baton.md does, which also has the reason for each.

Of the five fields of a TerminationAttempt, scope, id and status are in the baton; the level of the last visited
operator is known from the channel; END announces completed scopes.
"""

from __future__ import annotations

from streamproof import WEAK, Array, Bool, Enum, Queue, Range, Record, Set, State, action, require
from streamproof_models.baton_dataflow import Dataflow


class Baton(Dataflow):
    """Termination of a dataflow with loops by passing a baton (FLIP-15)."""

    name = "baton"

    ids: int = 2
    """Attempts are numbered modulo this; 1: they are indistinguishable."""

    limits = {"ids": (1, None)}
    sizes = {"small": {}, "medium": {"work": 6}, "large": {"work": 9}}

    def setup(self):
        """The batons of each channel by name, and the channels on which an operator waits for the same baton."""
        super().setup()
        self.others = tuple(o for o in self.operators if o not in self.heads)
        self.batons = {c: {str(b): b for b in batons} for c, batons in self.carried().items()}
        self.kinds = sorted({baton for batons in self.batons.values() for baton in batons})
        self.joins = {f"{b} at {o}": channels for (o, b), channels in self.routes.joins.items()}

    def carried(self):
        """The batons that each channel carries (rule 4)."""
        return self.routes.carried

    def state(self):
        """All channels are empty, and no baton is under way. Variables without an index are left out."""
        item = Record(kind=Enum("RECORD", "END", *self.kinds), busy=Bool(), id=Range(0, self.ids - 1))
        declared = dict(super().state().items())
        if self.channels:
            declared["channel"] = Array(self.channels, Queue(item, capacity=max(map(self.room, self.channels))))
        if self.heads:
            declared["since_baton"] = Array(self.heads, Enum("NONE", "CLEAN", "DIRTY"))
            declared["id"] = Array(self.heads, Range(0, self.ids - 1))
        if self.joins:
            declared["arrived"] = Array(tuple(self.joins), Set(Enum(*self.channels)))
            declared["busy"] = Array(tuple(self.joins), Bool())
        return State(**declared)

    # --- END

    @action(o="sources", fairness=WEAK)
    def end_source(self, s, o):
        """Rule 1: a source that has ended sends END on every output, and has terminated."""
        require(s.phase[o] == "RUNNING")
        s.phase[o] = "TERMINATED"
        self.send_end(s, o)

    @action(o="others", fairness=WEAK)
    def terminate(self, s, o):
        """Rule 2: an operator that is not a head, with END on all inputs and no record, terminates and sends END."""
        require(s.phase[o] == "RUNNING")
        self.take_ends(s, o)
        require(s.held[o] == 0)
        s.phase[o] = "TERMINATED"
        self.send_end(s, o)

    @action(o="heads", fairness=WEAK)
    def start_attempts(self, s, o):
        """Rule 3: a head with END on all inputs except feedback starts the first attempt of its scope."""
        require(s.phase[o] == "RUNNING")
        self.take_ends(s, o)
        s.phase[o] = "ATTEMPTING"
        self.attempt(s, o, s.held[o] > 0)

    def take_ends(self, s, o):
        """Takes END from all inputs except feedback."""
        for c in self.routes.inputs[o]:
            self.take(s, c, "END")

    def send_end(self, s, o):
        """Rule 11: END goes to every output except feedback, also into the loops of a completed scope."""
        for c in self.routes.outputs[o]:
            self.push(s, c, "END")

    # --- batons

    @action(c="channels", baton=lambda m, c: m.batons[c], fairness=WEAK)
    def receive_baton(self, s, c, baton):
        """An operator receives a baton; one that has terminated ignores it."""
        require(self.is_next(s, c, baton))
        busy, id = s.channel[c].head.busy, s.channel[c].head.id
        s.channel[c].pop()
        if s.phase[self.target[c]] != "TERMINATED":
            self.align(s, c, self.batons[c][baton], busy, id)

    def send(self, s, o, baton, busy, id):
        """Rule 4: a baton follows only edges that lead back to its destination head, within its scope."""
        for c, received in self.routes.onward(o, baton):
            self.push(s, c, str(received), busy, id)

    def align(self, s, c, baton, busy, id):
        """Rule 5: an operator waits for a baton on all inputs that carry it; records behind it are not blocked meanwhile."""
        join = f"{baton} at {self.target[c]}"
        if join not in self.joins:
            self.handle(s, c, baton, busy, id)
        else:
            require(c not in s.arrived[join])
            s.arrived[join].add(c)
            s.busy[join] = self.collective_status(s.busy[join], busy)
            if len(s.arrived[join]) == len(self.joins[join]):
                together = s.busy[join]
                s.arrived[join].clear()
                s.busy[join] = False
                self.handle(s, c, baton, together, id)

    def collective_status(self, busy, busy_too):
        """Rule 6: a baton is BUSY if one of those received was, or if its sender holds a record: BUSY stays."""
        return busy or busy_too

    def handle(self, s, c, baton, busy, id):
        """An operator that has a baton on all inputs that carry it forwards it, unless it is a head; `c` is one input."""
        o = self.target[c]
        if o not in self.heads:
            self.send(s, o, baton, self.collective_status(busy, s.held[o] > 0), id)
        elif c not in self.routes.feedback_inputs[o]:
            self.enter_loop(s, o, baton, busy, id)
        elif baton.origin != self.routes.scope(o):
            self.leave_loop(s, o, baton, busy, id)
        else:
            self.receive_own(s, o, baton, busy, id)

    def enter_loop(self, s, o, baton, busy, id):
        """Rule 7, first turn: the head of an inner loop first sends an outer baton around its own loop."""
        s.since_baton[o] = "CLEAN"
        around = baton.entering(self.routes.scope(o))
        self.send(s, o, around, self.collective_status(busy, s.held[o] > 0), id)

    def leave_loop(self, s, o, baton, busy, id):
        """Rule 7, second turn: the head sends it out of the loop, BUSY also if it has received a record in between."""
        found = busy or self.is_dirty(s, o)
        s.since_baton[o] = "NONE"
        self.send(s, o, baton.second_turn, found, id)

    def is_dirty(self, s, o):
        """Whether a head has received a record since it sent the baton."""
        return s.since_baton[o] == "DIRTY"

    def receive_own(self, s, o, baton, busy, id):
        """A head that is attempting has its own baton back on all feedback inputs (rules 8 to 10)."""
        if s.phase[o] == "ATTEMPTING" and self.is_current(s, o, id):
            found = busy or self.is_dirty(s, o)
            if baton.turn == 1 and not self.routes.is_only_head(o):
                self.confirm(s, o, found)
            else:
                self.decide(s, o, found)

    def decide(self, s, o, busy):
        """A head completes its scope, or starts another attempt."""
        if busy:
            self.next_attempt(s, o)
        else:
            self.complete_scope(s, o)

    def complete_scope(self, s, o):
        """Rule 8: a head with its baton back IDLE, and no record received in between, terminates and sends END."""
        s.phase[o] = "TERMINATED"
        s.since_baton[o] = "NONE"
        s.id[o] = 0
        self.send_end(s, o)

    def next_attempt(self, s, o):
        """Rule 9: otherwise it starts the next attempt, with the next id."""
        s.id[o] = (s.id[o] + 1) % self.ids
        self.attempt(s, o, s.held[o] > 0)

    def is_current(self, s, o, id):
        """Rule 9: a head ignores a baton with another id than that of its current attempt."""
        return id == s.id[o]

    def confirm(self, s, o, busy):
        """Rule 10: each of several heads of a scope sends its result around once more, and all decide by what returns."""
        _, confirmation = self.routes.own(o)
        s.since_baton[o] = "NONE"
        self.send(s, o, confirmation, busy, s.id[o])

    def note_record(self, s, o):
        """A head whose baton is away notes that it has received a record (rules 7 and 8)."""
        if s.since_baton[o] == "CLEAN":
            s.since_baton[o] = "DIRTY"

    def attempt(self, s, o, busy):
        """A head sends the baton of its current attempt around its loop."""
        s.since_baton[o] = "CLEAN"
        self.send(s, o, self.routes.own(o)[0], busy, s.id[o])
