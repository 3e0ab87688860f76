"""Ranks of states, for a certificate: numbers that show that nothing, or nothing fair, goes on for ever as it must not."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import field
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from streamproof.certify.verifier import Node, Tableau, Verifier
from streamproof.certify.writing import numbers_data
from streamproof.explicit.cycles import Graph, components
from streamproof.explicit.found import Found
from streamproof.explicit.graph import StateGraph
from streamproof.system.errors import Exit, StreamproofError
from streamproof.system.formula import Formula
from streamproof.system.model import Fairness, Property, System
from streamproof.system.records import dataclass
from streamproof.system.reference_temporal import plain
from streamproof.system.temporal import obligations

BOUND = 1 << 32
"""Ranks are written as numbers below this."""


class NoRanks(StreamproofError):
    """A property that was found to hold, and for which the ranks that show it do not exist: one of the two is wrong."""

    exit_code = Exit.DISAGREE


def terminating(graph: StateGraph) -> bytes:
    """For each state a rank such that every step leads to a smaller one: the steps that are possible at most."""
    order = _graph(graph.offsets.tolist(), graph.targets.tolist())
    height = array("I", bytes(4 * graph.states))
    for component in components(order, bytearray(b"\x01" * graph.states)):
        (state,) = component
        followers = order.successors(state)
        if state in followers:
            raise NoRanks("termination is said to hold, and a step leads from a state to itself")
        height[state] = 1 + max((height[to] for to in followers), default=-1)
    return numbers_data(height, BOUND)


def _graph(offsets: Sequence[int], targets: Sequence[int]) -> Graph:
    return Graph(array("q", offsets), array("i", targets))


def examined(system: System, found: Found, graph: StateGraph) -> Verifier:
    """The states and steps as the verifier will see them, for `fruitless`; they come from the stored graph."""
    seen = Verifier(system, {"claims": {}}, {}, b"", lambda _: None)
    seen.states = list(map(found.scalarised.decode, found.states()))
    seen.ends = (graph.initial,)
    owner = np.zeros(len(system.instances), dtype=object)
    for at, one in enumerate(obligations(system)):
        owner[list(one.numbers)] = 1 << at
    offsets, targets, takes = graph.offsets.tolist(), graph.targets.tolist(), owner[graph.instances].tolist()
    for at, (first, last) in enumerate(pairwise(offsets)):
        followers: dict[int, int] = {}
        for step in range(first, last):
            to = targets[step]
            followers[to] = followers.get(to, 0) | (takes[step] if to != at else 0)
        seen.follow.append(followers)
    return seen


def fruitless(seen: Verifier, prop: Property, formula: Formula) -> tuple[list[dict[str, Any]], list[bytes]]:
    """Why no fair behaviour makes the formula false: tables of ranks, with the reasons for each rank that needs one.

    Raises `NoRanks` where there is no reason: then such a behaviour exists.
    """
    ranking = _Ranking(Tableau(seen, prop, plain(formula)), len(seen.states))
    ranking.split(ranking.tableau.reachable(), 0)
    tables = [
        {"guesses": list(table.columns), "reasons": {str(rank): list(why) for rank, why in table.reasons.items()}}
        for table in ranking.tables
    ]
    return tables, [numbers_data(column, BOUND) for table in ranking.tables for column in table.columns.values()]


Why: TypeAlias = tuple[str, int]
"""Why nobody stays among some nodes, and which *until* or fair action is the reason; see `Verifier.temporal`."""

PASSING: Why = ("passing", -1)


@dataclass
class _Table:
    """One table of ranks: for each guess that occurs a rank for each state, and the reasons that ranks have."""

    columns: dict[int, array[int]] = field(default_factory=dict)
    reasons: dict[int, Why] = field(default_factory=dict)
    used: int = 0


@dataclass
class _Ranking:
    tableau: Tableau
    states: int
    tables: list[_Table] = field(default_factory=list)

    def split(self, nodes: set[Node], depth: int) -> None:
        """Give the nodes ranks in the table of this depth, and in the next those that a strong fairness leaves."""
        if len(self.tables) <= depth:
            self.tables.append(_Table())
        table = self.tables[depth]
        found = self._components(nodes)
        keys = sorted({(height, why) for height, why, _ in found})
        rank_of = {key: table.used + at for at, key in enumerate(keys)}
        table.used += len(keys)
        table.reasons.update({rank_of[key]: key[1] for key in keys if key[1] != PASSING})
        left: dict[int, set[Node]] = {}
        for height, why, members in found:
            rank = rank_of[height, why]
            for node in members:
                if node[1] not in table.columns:
                    table.columns[node[1]] = array("I", bytes(4 * self.states))
                table.columns[node[1]][node[0]] = rank
                if why[0] == "strong" and not self.tableau.enabled(node) >> why[1] & 1:
                    left.setdefault(rank, set()).add(node)
        for some in left.values():
            self.split(some, depth + 1)

    def _components(self, nodes: set[Node]) -> list[tuple[int, Why, list[Node]]]:
        """The strongly connected components: the longest way down from each, why nobody stays in it, and its nodes.

        There are no edges between components of one height.
        """
        names = list(nodes)
        number = {node: at for at, node in enumerate(names)}
        offsets, targets, takes = array("q", [0]), array("i"), list[int]()
        for node in names:
            for to, taken in self.tableau.after(node):
                if to in number:
                    targets.append(number[to])
                    takes.append(taken)
            offsets.append(len(targets))
        graph = Graph(offsets, targets)
        home = [-1] * len(names)
        heights: list[int] = []
        found: list[tuple[int, Why, list[Node]]] = []
        for own, component in enumerate(components(graph, bytearray(b"\x01" * len(names)))):
            for at in component:
                home[at] = own
            height, taken, cyclic = 0, 0, False
            for at in component:
                for step in range(offsets[at], offsets[at + 1]):
                    if home[targets[step]] == own:
                        taken, cyclic = taken | takes[step], True
                    else:
                        height = max(height, heights[home[targets[step]]] + 1)
            heights.append(height)
            members = [names[at] for at in component]
            found.append((height, self._why(members, taken) if cyclic else PASSING, members))
        return found

    def _why(self, members: list[Node], taken: int) -> Why:
        """Why no fair behaviour stays among the members of a component for ever, in which these actions are taken."""
        tableau = self.tableau
        for at, until in enumerate(tableau.untils):
            if all(node[1] >> at & 1 and not tableau.true(until.right, node) for node in members):
                return ("until", at)
        enabled = [tableau.enabled(node) for node in members]
        for at in range(len(tableau.owed)):
            if not taken >> at & 1 and all(here >> at & 1 for here in enabled):
                return ("weak", at)
        for at, owed in enumerate(tableau.owed):
            if owed.fairness is Fairness.STRONG and not taken >> at & 1 and any(here >> at & 1 for here in enabled):
                return ("strong", at)
        raise NoRanks(
            f"{tableau.prop.name} is said to hold, and nothing shows that a fair behaviour cannot make it false",
            remedy="this is a defect of streamproof; please report it with the model",
        )
