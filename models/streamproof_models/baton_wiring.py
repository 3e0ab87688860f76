"""Routes of batons in a scoped graph: subtasks, channels, and the batons that each channel carries.

An attempt has an origin, the scope of its head. In an inner loop it makes two *turns*: the first collects the status of
every operator in the loop, the second carries the result, including the inner head's records received meanwhile, out of
the loop. `Baton.turns` has the turn for each level from the origin's on: of the origin itself the second is the
confirmation that parallel heads need.

The goal of a baton is a head: that of the innermost scope in which it makes its first turn. It is sent only along edges
that lead there within that scope: operators without such a path are not visited.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import cached_property

from streamproof_models.scopes import Edge, Pattern, ScopedGraph, StreamScope


@dataclass(frozen=True, slots=True)
class Baton:
    """A kind of baton: its attempt, and its turn in each loop around its position."""

    origin: StreamScope
    loops: tuple[str, ...]
    """The loops that contain it, from the origin's on, by name."""
    turns: tuple[int, ...]

    @property
    def goal(self) -> StreamScope:
        """The scope of its goal."""
        first = [at for at, turn in enumerate(self.turns) if turn == 1]
        return StreamScope(self.origin.loops + self.loops[1 : first[-1] + 1] if first else self.origin.loops)

    def at(self, scope: StreamScope) -> Baton:
        """The baton after leaving the loops inside `scope`; unchanged outside its goal."""
        if not self.goal.contains(scope):
            return self
        depth = scope.level - self.origin.level + 1
        return Baton(self.origin, self.loops[:depth], self.turns[:depth])

    def entering(self, scope: StreamScope, turn: int) -> Baton:
        """The baton at a turn in the loop `scope` as well."""
        return Baton(self.origin, (*self.loops, scope.loops[-1]), (*self.turns, turn))

    @property
    def around(self) -> Baton:
        """The baton before it entered the innermost loop."""
        return Baton(self.origin, self.loops[:-1], self.turns[:-1])

    def __str__(self) -> str:
        """The loops with a plus for the second turn: ``L/M+`` is L's attempt, leaving M."""
        return "/".join(loop + "+" * (turn - 1) for loop, turn in zip(self.loops, self.turns, strict=True))


def attempt(scope: StreamScope, turn: int = 1) -> Baton:
    """The baton that the head of `scope` sends for its own attempt."""
    return Baton(scope, (".".join(scope.loops),), (turn,))


@dataclass(frozen=True, slots=True)
class Link:
    """A channel between two subtasks."""

    name: str
    source: str
    target: str
    edge: Edge
    feedback: bool


class Wiring:
    """Subtasks and channels of a graph, and the batons of each channel."""

    def __init__(self, graph: ScopedGraph, scoped: bool = True) -> None:
        """Expands operators to subtasks and edges to channels; `scoped`: batons stay within their scope."""
        self.graph = graph
        self.scoped = scoped
        self.operator_of = {task: o for o in graph.operators for task in _tasks(o.name, o.parallelism)}
        self.tasks = tuple(self.operator_of)
        self.links = {link.name: link for link in self._links()}
        self.heads = tuple(t for t, o in self.operator_of.items() if graph.is_head(o))
        fed = {link.target for link in self.links.values()}
        self.sources = tuple(t for t in self.tasks if t not in fed)

    def _links(self) -> list[Link]:
        made = []
        for feedback, edges in ((False, self.graph.edges), (True, self.graph.feedback)):
            for edge in edges:
                sources, targets = (
                    _tasks(name, self.graph.operator(name).parallelism) for name in (edge.source, edge.target)
                )
                pairs = [(a, b) for a in sources for b in targets]
                if edge.pattern is Pattern.POINTWISE:
                    pairs = list(zip(sources, targets, strict=True))
                made += [Link(a + ("~" if feedback else ">") + b, a, b, edge, feedback) for a, b in pairs]
        return made

    def scope(self, task: str) -> StreamScope:
        """The scope of a subtask."""
        return self.operator_of[task].scope

    def inputs(self, task: str) -> tuple[str, ...]:
        """Channels into a subtask, except feedback."""
        return tuple(n for n, link in self.links.items() if link.target == task and not link.feedback)

    def outputs(self, task: str) -> tuple[str, ...]:
        """Channels out of a subtask, except feedback."""
        return tuple(n for n, link in self.links.items() if link.source == task and not link.feedback)

    def alone(self, task: str) -> bool:
        """Whether a head is the only one of its scope."""
        return self.operator_of[task].parallelism == 1

    @cached_property
    def leading(self) -> dict[StreamScope, frozenset[str]]:
        """For each loop the operators in it with a path to its feedback edges within it."""
        found = {}
        for scope in self.graph.scopes:
            head = {o.name for o in self.graph.heads(scope)}
            inside = {o.name for o in self.graph.operators if not self.scoped or scope.contains(o.scope)}
            reached = {e.source for e in self.graph.feedback if e.target in head} & inside
            before = -1
            while len(reached) > before:
                before = len(reached)
                reached |= {e.source for e in self.graph.edges if e.target in reached} & inside
            found[scope] = frozenset(reached)
        return found

    def onward(self, task: str, baton: Baton) -> tuple[tuple[str, Baton], ...]:
        """The channels on which a subtask sends a baton on, each with the baton as its reader sees it."""
        goal = baton.goal
        sent = []
        for name, link in self.links.items():
            if link.source != task:
                continue
            target = self.operator_of[link.target]
            if link.feedback and target.scope == goal:
                sent.append((name, baton.at(goal)))
            elif not link.feedback and target.name in self.leading[goal]:
                sent.append((name, baton.at(self.graph.stream_scope(link.edge))))
        return tuple(sent)

    @cached_property
    def carried(self) -> dict[str, tuple[Baton, ...]]:
        """The batons that each channel carries."""
        found: dict[str, dict[Baton, None]] = {name: {} for name in self.links}
        left = deque((head, baton) for head in self.heads for baton in self.own(head))
        seen = set(left)
        while left:
            task, baton = left.popleft()
            for name, as_read in self.onward(task, baton):
                found[name][as_read] = None
                for step in self.sent_for(name, as_read):
                    if (link := (self.links[name].target, step)) not in seen:
                        seen.add(link)
                        left.append(link)
        return {name: tuple(batons) for name, batons in found.items()}

    def own(self, head: str) -> tuple[Baton, ...]:
        """The baton that a head sends for its own attempts."""
        scope = self.scope(head)
        return (attempt(scope),) if self.alone(head) else (attempt(scope), attempt(scope, 2))

    def sent_for(self, channel: str, baton: Baton) -> tuple[Baton, ...]:
        """The baton that the reader of a channel sends after receiving that baton on all channels that carry it."""
        link = self.links[channel]
        scope = self.scope(link.target)
        if link.target not in self.heads:
            return (baton,)
        if not link.feedback:
            return (baton.entering(scope, 1),)
        return () if baton.origin == scope else (baton.around.entering(scope, 2),)

    @cached_property
    def aligned(self) -> dict[tuple[str, Baton], tuple[str, ...]]:
        """For each subtask and baton the channels on which it waits for that baton."""
        found: dict[tuple[str, Baton], tuple[str, ...]] = {}
        for name, batons in self.carried.items():
            for baton in batons:
                key = (self.links[name].target, baton)
                found[key] = (*found.get(key, ()), name)
        return found

    def meet(self, head: str, other: str) -> bool:
        """Whether the batons of one head reach another of the same scope."""
        scope = self.scope(head)
        links = [n for n in self.links.values() if all(scope.contains(self.scope(t)) for t in (n.source, n.target))]
        reached, before = {head}, -1
        while len(reached) > before:
            before = len(reached)
            reached |= {link.target for link in links if link.source in reached}
        return other in reached

    def reaching(self, task: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Subtasks from which a record can reach `task`, including itself, and channels in which one can."""
        tasks, before = {task}, -1
        while len(tasks) > before:
            before = len(tasks)
            tasks |= {link.source for link in self.links.values() if link.target in tasks}
        channels = tuple(name for name, link in self.links.items() if link.target in tasks)
        return tuple(t for t in self.tasks if t in tasks), channels


def _tasks(name: str, parallelism: int) -> tuple[str, ...]:
    return (name,) if parallelism == 1 else tuple(f"{name}{i}" for i in range(parallelism))
