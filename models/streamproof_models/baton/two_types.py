"""Heads and operators with a feedback link as two types of operators, as in FLIP-15, part III, step 2.

In figure 1 the feedback edge leads to `H`, the head (type 1), and from there to `b`, the operator with the feedback link
(type 2). The machine has one operator for both. Here they are apart: `H` forwards records at once, makes the attempts
(step 4) and notes what it has received; `b` adds its status to each baton that passes (step 3.2). The sources' event goes
around the loop once, with the scope that `b` associates, before `H` starts its attempts.
"""

from __future__ import annotations

from streamproof import WEAK, action, require
from streamproof_models.baton.machine import Baton, Routes, TerminationAttempt
from streamproof_models.baton.readings import SecondPassUnchecked, UncoordinatedHeads
from streamproof_models.scopes.graph import Edge, Operator, ScopedGraph, StreamScope
from streamproof_models.scopes.topologies import topology


class TypedGraph(ScopedGraph):
    """A scoped graph in which a loop is entered at an operator that is not the head."""

    def stream_scope(self, edge: Edge) -> StreamScope:
        """The reader's scope, and for an edge into a loop the scope around it."""
        reader, writer = self.operator(edge.target).scope, self.operator(edge.source).scope
        return reader if reader.contains(writer) else reader.unnest()


def with_heads(graph: ScopedGraph) -> TypedGraph:
    """The graph with a head `Hb` in front of each operator `b` with a feedback link; feedback edges lead to it."""
    linked = [o for o in graph.operators if graph.is_head(o)]
    heads = [Operator(f"H{o.name}", o.scope, o.parallelism) for o in linked]
    edges = [Edge(f"H{o.name}", o.name) for o in linked]
    feedback = [Edge(e.source, f"H{e.target}", e.pattern) for e in graph.feedback]
    return TypedGraph((*graph.operators, *heads), (*graph.edges, *edges), tuple(feedback))


class TypedRoutes(Routes):
    """The routes of batons in such a graph."""

    def __init__(self, graph: ScopedGraph) -> None:
        """The operators with a feedback link, each with the channel from its head."""
        super().__init__(graph)
        self.links_from_heads = {n.target: name for name, n in self.links.items() if n.source in self.heads}

    def answer(self, channel: str, baton: TerminationAttempt) -> TerminationAttempt | None:
        """The baton that the receiver of a channel sends."""
        link = self.links[channel]
        own = baton.origin == self.scope(link.target)
        if link.target in self.heads:
            return None if own else baton
        if link.target not in self.links_from_heads or (link.source in self.heads and own):
            return baton
        return baton.second_turn if link.source in self.heads else baton.entering(self.scope(link.target))


class TwoTypes(Baton, variant="two-types"):
    """Step 2: the head of a loop (type 1) and the operator with its feedback link (type 2) are two operators."""

    def make_routes(self):
        """With heads."""
        return TypedRoutes(with_heads(topology(self.topology)))

    def setup(self):
        """Also operators with a feedback link."""
        super().setup()
        self.linked = tuple(self.routes.links_from_heads)
        self.plain = tuple(o for o in self.others if o not in self.linked)
        self.marked = (*self.heads, *self.linked)

    @action(c="channels", fairness=WEAK)
    def receive(self, s, c):
        """A head forwards the record."""
        o = self.target[c]
        if o in self.heads and s.phase[o] != "TERMINATED":
            self.take(s, c, "RECORD")
            self.note_record(s, o)
            self.push(s, self.routes.outputs[o][0], "RECORD")
        else:
            super().receive(s, c)

    @action(o="plain", fairness=WEAK)
    def terminate(self, s, o):
        """Type 3."""
        super().terminate(s, o)

    @action(o="linked", fairness=WEAK)
    def start_attempts(self, s, o):
        """Step 3.2: the sources' event gets the scope of the loop and the status of the operator, and goes around."""
        require(s.phase[o] == "RUNNING")
        link = self.routes.links_from_heads[o]
        for c in self.routes.inputs[o]:
            if c != link:
                self.take(s, c, "END")
        head = self.source[link]
        s.phase[o] = "ATTEMPTING"
        s.phase[head] = "ATTEMPTING"
        self.send(s, o, self.routes.own(head)[0], s.held[o] > 0, 0)

    @action(o="linked", fairness=WEAK)
    def terminate_linked(self, s, o):
        """Step 4.1.2: the head has terminated and forwarded the event."""
        require(s.phase[o] == "ATTEMPTING")
        self.take(s, self.routes.links_from_heads[o], "END")
        require(s.held[o] == 0)
        s.phase[o] = "TERMINATED"
        self.send_end(s, o)

    def handle(self, s, c, baton, busy, id):
        """Steps 3.1 to 3.3: every operator adds its status; a head holds no record."""
        o = self.target[c]
        own = baton.origin == self.routes.scope(o)
        if o in self.heads and own:
            self.receive_own(s, o, baton, busy, id)
        elif o not in self.linked or (own and self.source[c] in self.heads):
            self.send(s, o, baton, self.collective_status(busy, s.held[o] > 0), id)
        elif self.source[c] in self.heads:
            self.leave_loop(s, o, baton, busy, id)
        else:
            self.enter_loop(s, o, baton, busy, id)

    def receive_own(self, s, o, baton, busy, id):
        """Step 3.3: the sources' event has arrived, and the first attempt begins."""
        if s.phase[o] == "ATTEMPTING" and s.since_baton[o] == "NONE" and baton.turn == 1:
            self.attempt(s, o, False)
        else:
            super().receive_own(s, o, baton, busy, id)


class LiteralTwoTypes(SecondPassUnchecked, UncoordinatedHeads, TwoTypes, variant="literal-two-types"):
    """The text at its word with both types of operators: second-pass-unchecked and uncoordinated-heads together."""
