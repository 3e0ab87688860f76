"""The routes of batons in a scoped graph (rules 4, 7 and 10 of the protocol).

An attempt has an origin: the scope whose heads make it. In each inner loop on its way, its baton makes two *turns*: the
first collects the status of every operator in the loop, the second carries the result out of the loop. In the origin
itself, a second turn is made only where several heads have to agree.

The goal of a baton is a head: that of the innermost scope in which the baton makes its first turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from streamproof_models.scoped_subtasks import Subtasks
from streamproof_models.scopes import ScopedGraph, StreamScope, reachable


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
    """A scoped graph with the batons of each channel."""

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
