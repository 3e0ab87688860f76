"""The way of a baton (FLIP-15, part III): which subtasks it visits, by which channels, and where it is awaited.

An attempt belongs to a scope, its origin, and starts at the heads of that scope. In each loop on its way a baton makes two
turns: the first collects the status of all operators in the loop, the second carries the result out of it. In the origin a
second turn is made only if the scope has several heads. The goal of a baton is the innermost scope of its first turns.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from streamproof_runtime.jobs.graph import ExecutionGraph
from streamproof_runtime.jobs.scopes import Scope


@dataclass(frozen=True, slots=True)
class Baton:
    """A kind of baton: its origin, the loops inside the origin that it is in, and its turn in each, the origin's first."""

    origin: Scope
    inner: tuple[str, ...] = ()
    turns: tuple[int, ...] = (1,)

    @property
    def goal(self) -> Scope:
        """The scope of the heads that await it."""
        depth = max((at for at, turn in enumerate(self.turns) if turn == 1), default=0)
        return Scope(self.origin.loops + self.inner[:depth])

    def entering(self, loop: str) -> Baton:
        """In its first turn in a further loop."""
        return Baton(self.origin, (*self.inner, loop), (*self.turns, 1))

    def turned(self) -> Baton:
        """In its second turn in the innermost loop."""
        return Baton(self.origin, self.inner, (*self.turns[:-1], 2))

    def outside(self, scope: Scope) -> Baton:
        """After it has left the loops inside `scope`."""
        depth = scope.level - self.origin.level
        return Baton(self.origin, self.inner[:depth], self.turns[: depth + 1])

    def __str__(self) -> str:
        """The loops, with a plus for a second turn: ``L/M+`` is an attempt of L that leaves M."""
        loops = (str(self.origin), *self.inner)
        return "/".join(loop + "+" * (turn - 1) for loop, turn in zip(loops, self.turns, strict=True))


@dataclass(slots=True)
class Itinerary:
    """What one subtask knows of batons."""

    own: tuple[Baton, ...] = ()
    """A head: the batons of its own attempts, the second one only if the scope has several heads."""
    onward: dict[Baton, list[tuple[str, Baton]]] = field(default_factory=dict)
    """The channels on which it sends a baton, each with the baton as its receiver sees it."""
    awaited: dict[Baton, list[str]] = field(default_factory=dict)
    """The channels on which it receives a baton."""
    stray: dict[Baton, list[tuple[str, Baton]]] = field(default_factory=dict)
    """The outputs on which it does not send a baton."""


def itineraries(graph: ExecutionGraph) -> dict[str, Itinerary]:
    """The itinerary of each subtask."""
    found = {task: Itinerary() for task in graph.tasks}
    leading = {scope: _leading_back(graph, scope) for scope in {graph.scope(head) for head in graph.heads}}
    pending: list[tuple[str, Baton]] = []
    for head in graph.tasks:
        if head in graph.heads:
            first = Baton(graph.scope(head))
            single = graph.operator_of[head].parallelism == 1
            found[head].own = (first,) if single else (first, first.turned())
            pending += [(head, baton) for baton in found[head].own]
    while pending:
        task, baton = pending.pop(0)
        if baton in found[task].onward:
            continue
        onward = found[task].onward[baton] = _onward(graph, task, baton, leading[baton.goal])
        outputs = graph.outputs(task, feedback=False)
        found[task].stray[baton] = [(c, baton) for c in outputs if c not in {name for name, _ in onward}]
        for name, seen in onward:
            channel = graph.channels[name]
            target = found[channel.target]
            awaiting = target.awaited.setdefault(seen, [])
            if name not in awaiting:
                awaiting.append(name)
            pending += ((channel.target, answer) for answer in _answers(graph, name, seen))
    return found


def _leading_back(graph: ExecutionGraph, scope: Scope) -> frozenset[str]:
    """The subtasks in a loop from which its feedback channels can be reached inside the loop."""
    inside = {task for task in graph.tasks if scope.contains(graph.scope(task))}
    reached = {
        c.source
        for c in graph.channels.values()
        if c.edge.feedback and graph.scope(c.target) == scope and c.source in inside
    }
    new: Iterable[str] = reached
    while new:
        new = {
            c.source
            for c in graph.channels.values()
            if c.target in reached and c.source in inside and not c.edge.feedback
        } - reached
        reached |= set(new)
    return frozenset(reached)


def _onward(graph: ExecutionGraph, task: str, baton: Baton, leading: frozenset[str]) -> list[tuple[str, Baton]]:
    sent = []
    for channel in graph.channels.values():
        if channel.source != task:
            continue
        if channel.edge.feedback and graph.scope(channel.target) == baton.goal:
            sent.append((channel.name, baton.outside(baton.goal)))
        elif not channel.edge.feedback and channel.target in leading:
            sent.append((channel.name, baton.outside(channel.edge.scope)))
    return sent


def _answers(graph: ExecutionGraph, name: str, baton: Baton) -> tuple[Baton, ...]:
    """What the receiver of a channel sends when it has received a baton on all channels that carry it."""
    channel = graph.channels[name]
    if channel.target not in graph.heads:
        return (baton,)
    scope = graph.scope(channel.target)
    if not channel.edge.feedback:
        return (baton.entering(scope.loops[-1]),)
    return () if baton.origin == scope else (baton.turned(),)
