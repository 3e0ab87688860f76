"""The dataflow whose termination the baton detects: records in the channels and operators of a scoped graph.

An operator receives a record, may hold it arbitrarily long, and sends any number on, as long as at most `work` records
exist at a time. Records share their FIFO channels with the items of the protocol, END and batons.
"""

from __future__ import annotations

from streamproof import WEAK, Array, Bool, Enum, Model, Range, State, action, choose, require, terminal
from streamproof_models.baton_routes import Routes
from streamproof_models.scoped_topologies import topology


class Dataflow(Model):
    """Records in a scoped graph; the protocol declares the channels, and decides who terminates."""

    topology: str = "nested"
    """The job graph: a name of the catalogue, or a graph as text."""
    work: int = 1
    """Maximum number of records that exist at a time."""

    limits = {"work": (0, None)}

    def make_routes(self):
        """The subtasks and channels of the job graph, and the routes of its batons."""
        return Routes(topology(self.topology))

    def setup(self):
        """Subtasks and channels by name."""
        self.routes = routes = self.make_routes()
        self.tasks, self.sources, self.heads = routes.tasks, routes.sources, routes.heads
        self.operators = tuple(t for t in self.tasks if t not in self.sources)
        self.channels = tuple(routes.links)
        self.source = {c: link.source for c, link in routes.links.items()}
        self.target = {c: link.target for c, link in routes.links.items()}
        self.from_sources = tuple(c for c in self.channels if self.source[c] in self.sources)
        self.from_operators = tuple(c for c in self.channels if c not in self.from_sources)
        self.most_batons = 2 if any(routes.peers(h) for h in self.heads) else 1
        self.sections = 1 + len(routes.graph.scopes)

    def room(self, c):
        """How many items a channel has room for: all records, and the batons that the rules allow."""
        return self.work + self.most_batons

    def state(self):
        """All subtasks run, and there is no record."""
        declared = {
            "phase": Array(self.tasks, Enum("RUNNING", "ATTEMPTING", "TERMINATED")),
            "records": Range(0, self.work),
            "lost": Bool(),
        }
        if self.operators:
            declared["held"] = Array(self.operators, Range(0, self.work))
        return State(**declared)

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
            if o in self.heads:
                self.note_record(s, o)

    def note_record(self, s, o):
        """The protocol's part in a head's receiving a record."""

    def push(self, s, c, kind, busy=False, id=0):
        """Appends an item to a channel that has room: RECORD, END, or a baton with its status and attempt."""
        require(len(s.channel[c]) < self.room(c))
        s.channel[c].push({"kind": kind, "busy": busy, "id": id})

    def is_next(self, s, c, kind):
        """Whether the first item of a channel is of that kind."""
        return len(s.channel[c]) > 0 and s.channel[c].head.kind == kind

    def take(self, s, c, kind):
        """Removes the first item of a channel, which is of that kind."""
        require(self.is_next(s, c, kind))
        s.channel[c].pop()

    @terminal
    def done(self, s):
        """Every subtask has terminated."""
        return all(phase == "TERMINATED" for phase in s.phase)
