"""Termination of a dataflow with loops: the TerminationAttempt baton of FLIP-15, part III, made sound.

`Routes` has the ways of batons in a scoped graph, `Baton` the dataflow and the protocol: batons share the FIFO channels with
records. The docstrings number the rules as docs/protocols/baton.md does, which also has the reason for each.

An operator receives a record, may hold it arbitrarily long, and sends any number on, as long as at most `work` records
exist at a time. An attempt has an origin: the scope whose heads make it. In each inner loop on its way, its baton makes two
*turns*: the first collects the status of every operator in the loop, the second carries the result out of the loop. In the
origin itself, a second turn is made only where several heads have to agree. The goal of a baton is a head: that of the
innermost scope in which the baton makes its first turn.

Of the five fields of a TerminationAttempt, scope, id and status are in the baton; the level of the last visited
operator is known from the channel; END announces completed scopes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from streamproof import (
    WEAK,
    Array,
    Bool,
    Enum,
    Model,
    Queue,
    Range,
    Record,
    Set,
    State,
    action,
    choose,
    require,
    terminal,
)
from streamproof_models.scopes.graph import ScopedGraph, StreamScope, reachable
from streamproof_models.scopes.subtasks import Subtasks
from streamproof_models.scopes.topologies import topology


@dataclass(frozen=True, slots=True)
class TerminationAttempt:
    """A kind of baton: the attempt, and its turn in each loop at its position."""

    origin: StreamScope
    loops: tuple[str, ...]
    """The loops that contain it, from the origin's on, by name."""
    turns: tuple[int, ...]
    """Its turn in each of these loops: 1 or 2."""

    @property
    def turn(self) -> int:
        """Its turn in the innermost loop."""
        return self.turns[-1]

    @property
    def goal(self) -> StreamScope:
        """The scope of its goal."""
        first = [at for at, turn in enumerate(self.turns) if turn == 1]
        return StreamScope(self.origin.loops + self.loops[1 : first[-1] + 1] if first else self.origin.loops)

    def at(self, scope: StreamScope) -> TerminationAttempt:
        """The baton after leaving the loops inside `scope`; unchanged outside its goal."""
        if not self.goal.contains(scope):
            return self
        depth = scope.level - self.origin.level + 1
        return TerminationAttempt(self.origin, self.loops[:depth], self.turns[:depth])

    def entering(self, scope: StreamScope) -> TerminationAttempt:
        """The baton in its first turn in the inner loop `scope`."""
        return TerminationAttempt(self.origin, (*self.loops, scope.loops[-1]), (*self.turns, 1))

    @property
    def second_turn(self) -> TerminationAttempt:
        """The baton in its second turn in the innermost loop."""
        return TerminationAttempt(self.origin, self.loops, (*self.turns[:-1], 2))

    def __str__(self) -> str:
        """The loops with a plus for the second turn: ``L/M+`` is L's attempt, leaving M."""
        return "/".join(loop + "+" * (turn - 1) for loop, turn in zip(self.loops, self.turns, strict=True))


class Routes(Subtasks):
    """A scoped graph with the batons of each channel (rules 4, 7 and 10)."""

    def __init__(self, graph: ScopedGraph, scoped: bool = True) -> None:
        """`scoped`: batons stay within their scope."""
        super().__init__(graph)
        self.scoped = scoped

    @cached_property
    def _leading_back(self) -> dict[StreamScope, frozenset[str]]:
        """For each loop the operators in it with a path to its feedback edges within it."""
        found = {}
        for scope in self.graph.scopes:
            inside = {o.name for o in self.graph.operators if not self.scoped or scope.contains(o.scope)}
            heads = {o.name for o in self.graph.heads(scope)}
            tails = {e.source for e in self.graph.feedback if e.target in heads} & inside
            found[scope] = reachable(tails, [(e.target, e.source) for e in self.graph.edges if e.source in inside])
        return found

    def onward(self, task: str, baton: TerminationAttempt) -> tuple[tuple[str, TerminationAttempt], ...]:
        """The channels on which a subtask sends a baton: those that lead back to its goal, within the goal's scope.

        Each with the baton as its receiver sees it: no longer in the loops that the channel leaves.
        """
        goal = baton.goal
        sent = []
        for name, link in self.links.items():
            target = self.operator_of[link.target]
            if link.source == task and link.feedback and target.scope == goal:
                sent.append((name, baton.at(goal)))
            elif link.source == task and not link.feedback and target.name in self._leading_back[goal]:
                sent.append((name, baton.at(self.graph.stream_scope(link.edge))))
        return tuple(sent)

    def own(self, head: str) -> tuple[TerminationAttempt, ...]:
        """The batons that a head sends for attempts of its own scope: a second turn only if the scope has several heads."""
        scope = self.scope(head)
        first = TerminationAttempt(scope, (".".join(scope.loops),), (1,))
        return (first,) if self.is_only_head(head) else (first, first.second_turn)

    def answer(self, channel: str, baton: TerminationAttempt) -> TerminationAttempt | None:
        """The baton that the receiver of a channel sends when it has that baton on all inputs that carry it."""
        link = self.links[channel]
        if link.target not in self.heads:
            return baton
        if not link.feedback:
            return baton.entering(self.scope(link.target))
        return None if baton.origin == self.scope(link.target) else baton.second_turn

    @cached_property
    def carried(self) -> dict[str, tuple[TerminationAttempt, ...]]:
        """The batons that each channel carries."""
        found: dict[str, dict[TerminationAttempt, None]] = {name: {} for name in self.links}
        sent = [(head, baton) for head in self.heads for baton in self.own(head)]
        for task, baton in sent:  # grows meanwhile
            for name, received in self.onward(task, baton):
                found[name][received] = None
                answer = self.answer(name, received)
                if answer is not None and (self.links[name].target, answer) not in sent:
                    sent.append((self.links[name].target, answer))
        return {name: tuple(batons) for name, batons in found.items()}

    @cached_property
    def joins(self) -> dict[tuple[str, TerminationAttempt], tuple[str, ...]]:
        """For each subtask and baton the channels that carry it there, where there are several."""
        found: dict[tuple[str, TerminationAttempt], tuple[str, ...]] = {}
        for name, batons in self.carried.items():
            for baton in batons:
                key = (self.links[name].target, baton)
                found[key] = (*found.get(key, ()), name)
        return {key: channels for key, channels in found.items() if len(channels) > 1}


class Baton(Model):
    """Termination of a dataflow with loops by passing a baton (FLIP-15)."""

    name = "baton"

    topology: str = "nested"
    """The job graph: a name of the catalogue, or a graph as text."""
    work: int = 1
    """Maximum number of records that exist at a time."""
    ids: int = 2
    """Attempts are numbered modulo this; 1: they are indistinguishable."""
    instance_bounds = ("work",)
    limits = {"work": (0, None), "ids": (1, None)}
    sizes = {"small": {}, "medium": {"work": 6}, "large": {"work": 9}}

    def make_routes(self):
        """The subtasks and channels of the job graph, and the routes of its batons."""
        return Routes(topology(self.topology))

    def setup(self):
        """Subtasks, channels and the batons of each channel by name; the channels on which an operator waits for a baton."""
        self.routes = routes = self.make_routes()
        self.tasks, self.sources, self.heads = routes.tasks, routes.sources, routes.heads
        self.operators = tuple(t for t in self.tasks if t not in self.sources)
        self.marked = self.heads
        self.channels = tuple(routes.links)
        self.source = {c: link.source for c, link in routes.links.items()}
        self.target = {c: link.target for c, link in routes.links.items()}
        self.from_sources = tuple(c for c in self.channels if self.source[c] in self.sources)
        self.from_operators = tuple(c for c in self.channels if c not in self.from_sources)
        self.most_batons = 2 if any(routes.peers(h) for h in self.heads) else 1
        self.sections = 1 + len(routes.graph.scopes)
        self.others = tuple(o for o in self.operators if o not in self.heads)
        self.batons = {c: {str(b): b for b in batons} for c, batons in self.carried().items()}
        self.kinds = sorted({baton for batons in self.batons.values() for baton in batons})
        self.joins = {f"{b} at {o}": channels for (o, b), channels in routes.joins.items()}

    def room(self, c):
        """How many items a channel has room for: all records, and the batons that the rules allow."""
        return self.work + self.most_batons

    def carried(self):
        """The batons that each channel carries (rule 4)."""
        return self.routes.carried

    def state(self):
        """All subtasks run, and there is neither record nor baton. Variables without an index are left out."""
        declared = {
            "phase": Array(self.tasks, Enum("RUNNING", "ATTEMPTING", "TERMINATED")),
            "records": Range(0, self.work),
            "lost": Bool(),
        }
        if self.operators:
            declared["held"] = Array(self.operators, Range(0, self.work))
        if self.channels:
            declared = {**declared, **self.contents()}
        if self.heads:
            declared["since_baton"] = Array(self.marked, Enum("NONE", "CLEAN", "DIRTY"))
            declared["id"] = Array(self.heads, Range(0, self.ids - 1))
        if self.joins:
            declared["arrived"] = Array(tuple(self.joins), Set(Enum(*self.channels)))
            declared["busy"] = Array(tuple(self.joins), Bool())
        return State(**declared)

    def contents(self):
        """The variables of channels: queues of records, batons and END."""
        item = Record(kind=Enum("RECORD", "END", *self.kinds), busy=Bool(), id=Range(0, self.ids - 1))
        return {"channel": Array(self.channels, Queue(item, capacity=max(self.room(c) for c in self.channels)))}

    # --- records

    @action(c="from_sources")
    def produce(self, s, c):
        """A source sends a record."""
        require(s.phase[self.source[c]] == "RUNNING")
        require(s.records < self.work)
        s.records += 1
        self.push(s, c, "RECORD")

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
        self.push(s, c, "RECORD")

    @action(o="operators")
    def finish(self, s, o):
        """An operator is done with a record that it holds."""
        require(s.held[o] > 0)
        s.held[o] -= 1
        s.records -= 1

    @action(c="channels", fairness=WEAK)
    def receive(self, s, c):
        """An operator receives a record; one that has terminated loses it."""
        o = self.target[c]
        self.take(s, c, "RECORD")
        if s.phase[o] == "TERMINATED":
            s.lost = True
            s.records -= 1
        else:
            s.held[o] += 1
            if o in self.marked:
                self.note_record(s, o)

    def push(self, s, c, kind, busy=False, id=0):
        """Appends an item to a channel that has room: RECORD, END, or a baton with its status and attempt."""
        require(len(s.channel[c]) < self.room(c))
        s.channel[c].push({"kind": kind, "busy": busy, "id": id})

    def is_next(self, s, c, kind):
        """Whether the first item of a channel is of that kind."""
        return len(s.channel[c]) > 0 and s.channel[c].head.kind == kind

    def is_empty(self, s, c):
        """Whether a channel has no item."""
        return len(s.channel[c]) == 0

    def has_no_record(self, s, c):
        """Whether a channel has no record."""
        return all(item.kind != "RECORD" for item in s.channel[c])

    def take(self, s, c, kind):
        """Removes the first item of a channel, which is of that kind."""
        require(self.is_next(s, c, kind))
        s.channel[c].pop()

    def take_baton(self, s, c, baton):
        """Removes the first item of a channel, which is that baton, and returns its status and attempt."""
        require(self.is_next(s, c, baton))
        busy, id = s.channel[c].head.busy, s.channel[c].head.id
        s.channel[c].pop()
        return busy, id

    @terminal
    def done(self, s):
        """Every subtask has terminated."""
        return all(phase == "TERMINATED" for phase in s.phase)

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
        busy, id = self.take_baton(s, c, baton)
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
