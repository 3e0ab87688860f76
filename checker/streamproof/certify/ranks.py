"""Ranks of states, for a certificate: evidence for termination and temporal properties."""

from __future__ import annotations

from array import array
from dataclasses import field
from itertools import pairwise

import numpy as np

from streamproof.base.errors import Exit, StreamproofError
from streamproof.base.records import dataclass
from streamproof.certify.verifier import Endless, Node, Verifier
from streamproof.explicit.level_search import LevelSearch
from streamproof.explicit.state_graph import Digraph, StateGraph
from streamproof.system.formula import Formula
from streamproof.system.model import System, fairness_constraints


class NoRanks(StreamproofError):
    """A property with the verdict "holds" for which no ranks exist: a contradiction between the two computations."""

    exit_code = Exit.DISAGREE


def terminating(graph: StateGraph) -> list[int]:
    """For each state a rank that decreases with every step: the length of the longest path from it."""
    count, number = graph.digraph.components()
    if count < graph.states:
        raise NoRanks("termination has the verdict holds, but the states have a cycle")
    offsets, targets = graph.offsets.tolist(), graph.targets.tolist()
    height = array("I", bytes(4 * graph.states))
    for state in np.argsort(number)[::-1].tolist():
        followers = targets[offsets[state] : offsets[state + 1]]
        if state in followers:
            raise NoRanks("termination has the verdict holds, but a step leads from a state to itself")
        height[state] = 1 + max((height[to] for to in followers), default=-1)
    return height.tolist()


def examined(system: System, found: LevelSearch, graph: StateGraph) -> Verifier:
    """The states and steps in the verifier's form, for `fruitless`, from the stored graph."""
    seen = Verifier(system, {}, {}, lambda _: None)
    seen.states = list(map(found.scalarised.decode, found.states()))
    seen.initial = graph.initial
    owner = np.zeros(len(system.instances), dtype=object)
    for at, one in enumerate(fairness_constraints(system)):
        owner[list(one.numbers)] |= 1 << at
    offsets, targets, takes = graph.offsets.tolist(), graph.targets.tolist(), owner[graph.instances].tolist()
    for at, (first, last) in enumerate(pairwise(offsets)):
        followers: dict[int, int] = {}
        for step in range(first, last):
            to = targets[step]
            followers[to] = followers.get(to, 0) | (takes[step] if to != at else 0)
        seen.follow.append(followers)
    return seen


def fruitless(seen: Verifier, name: str, formula: Formula) -> list[dict[str, list[int]]]:
    """The proof that no fair behaviour violates the formula: tables with a rank for each guess and state.

    Raises `NoRanks` if none exist: then such a behaviour exists.
    """
    ranking = _Ranking(Endless(seen, name, formula), len(seen.states))
    ranking.split(ranking.endless.reachable(), 0)
    return [{str(guess): column.tolist() for guess, column in table.items()} for table in ranking.tables]


@dataclass
class _Ranking:
    endless: Endless
    states: int
    tables: list[dict[int, array[int]]] = field(default_factory=list)
    """For each guess that occurs a rank for each state."""

    def split(self, nodes: set[Node], depth: int) -> None:
        """Assigns ranks to the nodes in the table of this depth, and in the next table to nodes where a fair behaviour
        may stay.

        Ranks are longest-path lengths in the component graph, so they never increase along a path. Components of equal
        length have no edges between them; those with internal edges get separate ranks, the others share one.
        """
        if len(self.tables) <= depth:
            self.tables.append({})
        table = self.tables[depth]
        found = sorted(self._components(nodes), key=lambda one: (one[0], one[1] is not None))
        rank, before = 0, (0, False)
        for height, taken, members in found:
            if taken is not None or before != (height, False):
                rank += 1
            before = (height, taken is not None)
            for guess in {node[1] for node in members} - table.keys():
                table[guess] = array("I", bytes(4 * self.states))
            for at, guess in members:
                table[guess][at] = rank
            if taken is not None:
                left = self.endless.staying(members, taken)
                if len(left) == len(members):
                    raise NoRanks(
                        f"{self.endless.name} has the verdict holds, but no ranks prove it",
                        remedy="this is a defect of streamproof; please report it with the model",
                    )
                if left:
                    self.split(left, depth + 1)

    def _components(self, nodes: set[Node]) -> list[tuple[int, int | None, list[Node]]]:
        """The strongly connected components: the longest path from each, the fair actions taken inside (None: no
        internal edges), and its nodes."""
        names = list(nodes)
        number = {node: at for at, node in enumerate(names)}
        offsets, targets, takes = array("q", [0]), array("i"), list[int]()
        for node in names:
            for to, taken in self.endless.edges[node]:
                if to in number:
                    targets.append(number[to])
                    takes.append(taken)
            offsets.append(len(targets))
        count, home = Digraph(offsets, targets).components()
        members: list[list[int]] = [[] for _ in range(count)]
        for at, own in enumerate(home):
            members[own].append(at)
        heights = [0] * count
        found: list[tuple[int, int | None, list[Node]]] = []
        for own in reversed(range(count)):
            component = members[own]
            height, inside = 0, None
            for at in component:
                for step in range(offsets[at], offsets[at + 1]):
                    if home[targets[step]] == own:
                        inside = (inside or 0) | takes[step]
                    else:
                        height = max(height, heights[home[targets[step]]] + 1)
            heights[own] = height
            found.append((height, inside, [names[at] for at in component]))
        return found
