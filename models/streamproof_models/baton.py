"""Termination of a dataflow with loops: the TerminationAttempt baton of FLIP-15, part III, made sound.

Records travel along FIFO channels; an operator takes one, may hold it arbitrarily long, and sends any number on, as
long as at most `work` records exist at a time. The duration is unlimited: the results of a record are nondeterministic.
Batons travel along the same channels. The rules, explained in docs/protocols/baton.md:

1. A source that has ended sends END on every output, and has terminated.
2. An operator that is not a head, with END on all inputs and nothing held, terminates and sends END.
3. A head with END on all inputs except feedback starts the first attempt of its scope: it sends a baton.
4. Batons are sent only along edges that lead back to their goal, a head, within its scope.
5. An operator sends a baton on when it has it on all inputs that carry it; records behind it are not blocked meanwhile.
6. A baton sent on is BUSY if one of those received was, or the sender holds a record: BUSY is never reset.
7. The head of an inner loop sends a baton from outside around its loop first; when it returns, it sends it out of the loop,
   BUSY also if the head has received a record in between.
8. A head whose own baton has returned on all feedback inputs, IDLE, without a record received in between, completes its
   scope: it terminates and sends END.
9. Otherwise it starts the next attempt, with the next id; a baton with another id than the current one is ignored.
10. If a scope has several heads, each sends its result around once more, and all decide by what returns.
11. END is never sent on a feedback edge. The loops in a completed scope get END like any other input, by rule 3.

Of the five fields of a TerminationAttempt, scope, id and status are in the baton; the level of the last visited
operator is known from the channel; END announces completed scopes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from streamproof import WEAK, Array, Bool, Enum, Model, Queue, Range, Record, State, action, choose, require, terminal
from streamproof_models.baton_wiring import Baton as Kind
from streamproof_models.baton_wiring import Wiring
from streamproof_models.scoped_topologies import topology
from streamproof_models.scopes import StreamScope


class Baton(Model):
    """Termination of a dataflow with loops by passing a baton (FLIP-15)."""

    name = "baton"

    topology: str = "nested"
    """The job graph: a name of the catalogue, or a graph as text."""
    work: int = 1
    """Maximum number of records that exist at a time."""
    capacity: int = 0
    """Capacity of a channel, in records and batons; 0: unlimited."""
    spilling: bool = True
    """Whether feedback edges have unlimited capacity."""
    hold: int = 0
    """Maximum number of records that an operator holds at a time; 0: no limit."""
    insist: bool = False
    """Whether an operator decides immediately what becomes of a record, and holds one to be sent on until there is room."""
    ids: int = 2
    """Attempts are numbered modulo this; 1: they are indistinguishable."""

    limits = {
        "work": (0, None),
        "capacity": (0, None),
        "hold": (0, None),
        "ids": (1, None),
    }
    sizes = {
        "small": {},
        "medium": {"work": 6},
        "large": {"work": 9},
    }

    more: ClassVar[int] = 0
    """Number of batons for which an unlimited channel has room, beyond those that the rules allow."""

    # --- structure, computed once from the graph

    def wire(self) -> Wiring:
        """The subtasks of the job graph, their channels, and the routes of batons."""
        return Wiring(topology(self.topology))

    def setup(self):
        """Subtasks, channels, and the batons of each channel."""
        self.wiring = wiring = self.wire()
        self.tasks, self.heads, self.sources = wiring.tasks, wiring.heads, wiring.sources
        self.operators = tuple(t for t in self.tasks if t not in self.sources)
        self.others = tuple(t for t in self.operators if t not in self.heads)
        self.channels = tuple(wiring.links)
        self.source = {name: link.source for name, link in wiring.links.items()}
        self.target = {name: link.target for name, link in wiring.links.items()}
        self.from_sources = tuple(c for c in self.channels if self.source[c] in self.sources)
        self.from_operators = tuple(c for c in self.channels if c not in self.from_sources)
        self.inputs = {t: wiring.inputs(t) for t in self.tasks}
        self.outputs = {t: wiring.outputs(t) for t in self.tasks}
        self.feedbacks = {
            h: tuple(c for c in self.channels if wiring.links[c].feedback and self.target[c] == h) for h in self.heads
        }
        scope = wiring.scope
        self.around = tuple(
            (h, tuple(o for o in self.heads_of(outer) if o in wiring.reaching(h)[0]))
            for h in self.heads
            for outer in wiring.graph.scopes
            if outer.is_outer_of(scope(h))
        )
        fellows = ((a, b) for a in self.heads for b in self.heads if a != b and scope(a) == scope(b))
        self.fellow_heads = tuple((a, b) for a, b in fellows if wiring.meet(a, b))
        self.most_batons = 2 if self.fellow_heads else 1
        self.own_kinds = {h: tuple(str(b) for b in wiring.own(h)) for h in self.heads}
        self.things = 1 + len(wiring.graph.scopes)
        self.batons = {(c, str(b)): b for c, batons in self.carried().items() for b in batons}
        self.kinds = tuple(sorted({kind for _, kind in self.batons}))
        self.waiting = {
            key: channels for key, channels in wiring.aligned.items() if self.aligns(*key) and len(channels) > 1
        }
        self.pieces = tuple(_at(c, b) for (_, b), channels in self.waiting.items() for c in channels)
        self.groups = tuple(_at(t, b) for t, b in self.waiting)
        self.limited = {
            c: self.capacity > 0 and not (self.spilling and wiring.links[c].feedback) for c in self.channels
        }
        self.most_held = min(self.hold or self.work, self.work)

    def heads_of(self, scope: StreamScope) -> tuple[str, ...]:
        """The heads of a scope."""
        return tuple(h for h in self.heads if self.wiring.scope(h) == scope)

    def carried(self) -> Mapping[str, tuple[Kind, ...]]:
        """The batons that each channel carries."""
        return self.wiring.carried

    def aligns(self, task: str, baton: Kind) -> bool:
        """Whether a subtask waits for that baton on all inputs that carry it."""
        return True

    def room(self, c: str) -> int:
        """The contents of a channel, including batons."""
        return self.capacity if self.limited[c] else self.work + self.most_batons + self.more

    def state(self):
        """All subtasks run, and all channels are empty."""
        item = Record(kind=Enum("RECORD", "END", *self.kinds), busy=Bool(), id=Range(0, self.ids - 1))
        declared: dict[str, Any] = {
            "status": Array(self.tasks, Enum("RUNNING", "ATTEMPTING", "TERMINATED")),
            "records": Range(0, self.work),
            "lost": Bool(),
        }
        if self.operators:
            declared["held"] = Array(self.operators, Range(0, self.most_held))
            declared["channel"] = Array(self.channels, Queue(item, capacity=max(self.room(c) for c in self.channels)))
        if self.heads:
            declared["turn"] = Array(self.heads, Enum("NONE", "CLEAN", "DIRTY"))
            declared["id"] = Array(self.heads, Range(0, self.ids - 1))
        if self.groups:
            declared["got"] = Array(self.pieces, Bool())
            declared["busy"] = Array(self.groups, Bool())
        return State(**declared)

    # --- records

    @action(c="from_sources")
    def produce(self, s, c):
        """A source sends a record."""
        require(s.status[self.source[c]] == "RUNNING")
        require(s.records < self.work)
        s.records += 1
        self.push(s, c, "RECORD", False, 0)

    @action(c="from_operators")
    def emit(self, s, c):
        """An operator sends a record on for one that it holds; it may keep that one and send more."""
        require(s.held[self.source[c]] > 0)
        keep = choose([False, True])
        if keep:
            require(s.records < self.work)
            s.records += 1
        else:
            s.held[self.source[c]] -= 1
        self.push(s, c, "RECORD", False, 0)

    @action(o="operators")
    def finish(self, s, o):
        """An operator is done with a record that it holds."""
        require(not self.insist)
        require(s.held[o] > 0)
        s.held[o] -= 1
        s.records -= 1

    @action(c="channels", fairness=WEAK)
    def receive(self, s, c):
        """An operator takes a record; one that has terminated loses it."""
        target = self.target[c]
        require(len(s.channel[c]) > 0)
        require(s.channel[c].head.kind == "RECORD")
        s.channel[c].pop()
        if s.status[target] == "TERMINATED":
            s.lost = True
            s.records -= 1
        else:
            require(s.held[target] < self.most_held)
            if self.insist and self.used_up(target):
                s.records -= 1
            else:
                s.held[target] += 1
            if target in self.heads:
                self.notice(s, target)

    def used_up(self, o: str) -> Any:
        """Whether an operator drops the record that it takes; it must if it has no output."""
        if not any(self.source[c] == o for c in self.channels):
            return True
        nothing = choose([False, True])
        return nothing

    def notice(self, s, o):
        """A head that waits for a baton records that it has received a record."""
        if s.turn[o] == "CLEAN":
            s.turn[o] = "DIRTY"

    # --- END

    @action(o="sources", fairness=WEAK)
    def end(self, s, o):
        """A source has ended (rule 1)."""
        require(s.status[o] == "RUNNING")
        self.complete(s, o)

    @action(o="others", fairness=WEAK)
    def terminate(self, s, o):
        """An operator that gets nothing more, and holds nothing, terminates (rule 2)."""
        require(s.status[o] == "RUNNING")
        self.take_ends(s, o)
        require(s.held[o] == 0)
        self.complete(s, o)

    @action(o="heads", fairness=WEAK)
    def begin(self, s, o):
        """A head that gets nothing more from outside its loop starts the first attempt (rule 3)."""
        require(s.status[o] == "RUNNING")
        self.take_ends(s, o)
        s.status[o] = "ATTEMPTING"
        s.turn[o] = "CLEAN"
        self.send_own(s, o, 1, s.held[o] > 0)

    def take_ends(self, s, o):
        """Takes END from all inputs except feedback."""
        for c in self.inputs[o]:
            require(len(s.channel[c]) > 0)
            require(s.channel[c].head.kind == "END")
            s.channel[c].pop()

    def complete(self, s, o):
        """Terminates, and sends END on all outputs except feedback."""
        s.status[o] = "TERMINATED"
        for c in self.outputs[o]:
            self.push(s, c, "END", False, 0)

    # --- batons

    @action(c="channels", baton="kinds", fairness=WEAK)
    def take(self, s, c, baton):
        """An operator takes a baton, and if it has it on all inputs that carry it, handles it (rule 5)."""
        require((c, baton) in self.batons)
        require(len(s.channel[c]) > 0)
        require(s.channel[c].head.kind == baton)
        target, kind = self.target[c], self.batons[c, baton]
        busy, id = s.channel[c].head.busy, s.channel[c].head.id
        s.channel[c].pop()
        if s.status[target] != "TERMINATED":
            if (target, kind) in self.waiting:
                self.align(s, c, kind, busy, id)
            else:
                self.handle(s, c, kind, busy, id)

    def align(self, s, c, kind, busy, id):
        """Records that the baton has arrived on channel `c`; the last channel makes it complete."""
        target = self.target[c]
        channels, group = self.waiting[target, kind], _at(target, kind)
        require(not s.got[_at(c, kind)])
        if all(s.got[_at(other, kind)] for other in channels if other != c):
            together = self.joined(s.busy[group], busy)
            for other in channels:
                s.got[_at(other, kind)] = False
            s.busy[group] = False
            self.handle(s, c, kind, together, id)
        else:
            s.got[_at(c, kind)] = True
            s.busy[group] = self.joined(s.busy[group], busy)

    def joined(self, first: Any, second: Any) -> Any:
        """The common status of batons from several inputs: BUSY if one is (rule 6)."""
        return first or second

    def handle(self, s, c, kind, busy, id):
        """Handles a baton that has arrived on all inputs that carry it; `c` is one of them."""
        target = self.target[c]
        if target not in self.heads:
            self.send(s, target, kind, self.added(s, target, busy), id)
        elif c not in self.feedbacks[target]:
            self.enter(s, target, kind, busy, id)
        elif kind.origin != self.wiring.scope(target):
            self.leave(s, target, kind, busy, id)
        else:
            self.return_own(s, target, kind, busy, id)

    def added(self, s, o, busy):
        """The status of a baton combined with the operator's own (rule 6)."""
        return busy or s.held[o] > 0

    def enter(self, s, o, kind, busy, id):
        """The head of an inner loop sends a baton from outside around its loop (rule 7)."""
        s.turn[o] = "CLEAN"
        self.send(s, o, kind.entering(self.wiring.scope(o), 1), self.added(s, o, busy), id)

    def leave(self, s, o, kind, busy, id):
        """The baton has returned, so it is sent out of the loop, with the head's own status (rule 7)."""
        found = busy or self.dirty(s, o)
        s.turn[o] = "NONE"
        self.send(s, o, kind.around.entering(self.wiring.scope(o), 2), found, id)

    def dirty(self, s, o):
        """Whether a head has received a record since it sent the baton."""
        return s.turn[o] == "DIRTY"

    def return_own(self, s, o, kind, busy, id):
        """A head receives its own baton (rules 8 to 10)."""
        if s.status[o] == "ATTEMPTING" and self.current(s, o, id):
            if kind.turns[-1] == 1:
                found = busy or self.dirty(s, o)
                if self.decides_alone(o):
                    self.decide(s, o, found)
                else:
                    s.turn[o] = "NONE"
                    self.send_own(s, o, 2, found)
            else:
                self.decide(s, o, busy)

    def current(self, s, o, id):
        """Whether a baton belongs to the head's current attempt (rule 9)."""
        return id == s.id[o]

    def decides_alone(self, o: str) -> bool:
        """Whether a head is the only one of its scope (rule 10)."""
        return self.wiring.alone(o)

    def decide(self, s, o, busy):
        """The scope is complete, or another attempt begins (rules 8 and 9)."""
        if busy:
            s.id[o] = (s.id[o] + 1) % self.ids
            s.turn[o] = "CLEAN"
            self.send_own(s, o, 1, s.held[o] > 0)
        else:
            s.turn[o] = "NONE"
            s.id[o] = 0
            self.complete(s, o)

    def send_own(self, s, o, turn, busy):
        """A head sends a baton of its current attempt."""
        self.send(s, o, self.wiring.own(o)[turn - 1], busy, s.id[o])

    def send(self, s, o, kind, busy, id):
        """Sends a baton on every edge that leads to its goal (rule 4)."""
        for c, as_read in self.wiring.onward(o, kind):
            self.push(s, c, str(as_read), busy, id)

    def push(self, s, c, kind, busy, id):
        """Appends to a channel that has room."""
        require(len(s.channel[c]) < self.room(c))
        s.channel[c].push({"kind": kind, "busy": busy, "id": id})

    @terminal
    def done(self, s):
        """Everybody has terminated."""
        return all(s.status[t] == "TERMINATED" for t in self.tasks)


def _at(place: str, baton: Kind) -> str:
    """A baton at a channel or subtask."""
    return f"{baton} at {place}"
