"""The state graph with fairness constraints, and its product with one SCC of a Büchi automaton.

The graph has the constraints that each step takes, and the valuation of each state. Of the product, the reachable part is
built, with paths to its nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from streamproof.base.errors import TooLarge
from streamproof.base.records import dataclass
from streamproof.explicit.liveness.buchi import BuchiAutomaton, Scc
from streamproof.explicit.state_graph import Digraph, StateGraph, sources
from streamproof.system.model import Fairness, System, fairness_constraints

MOST_CONSTRAINTS = (1 << 15) - 1


@dataclass(frozen=True, slots=True)
class Lasso:
    """Numbers of states: `stem` ends where `cycle` begins. A cycle of one state is stuttering."""

    stem: tuple[int, ...]
    cycle: tuple[int, ...]

    @property
    def steps(self) -> int:
        """The number of steps of stem and cycle."""
        return len(self.stem) - 1 + (len(self.cycle) if len(self.cycle) > 1 else 0)

    def renumbered(self, numbers: Sequence[int] | npt.NDArray[np.int32]) -> Lasso:
        """The lasso with ``numbers[k]`` for each state `k`."""
        return Lasso(*(tuple(int(numbers[k]) for k in part) for part in (self.stem, self.cycle)))


@dataclass(frozen=True, slots=True)
class TemporalAnswer:
    """The result for one formula: a fair lasso on which it is false, or None, and whether it is vacuously true."""

    lasso: Lasso | None
    vacuous: bool = False


def without_stutter(states: list[int]) -> list[int]:
    """The states without those equal to their predecessor."""
    return [state for at, state in enumerate(states) if at == 0 or state != states[at - 1]]


Mask: TypeAlias = npt.NDArray[np.bool_]
Numbers: TypeAlias = npt.NDArray[np.int32]
Constraints: TypeAlias = npt.NDArray[np.int16]
"""Positions of sets of fairness constraints in `FairGraph.sets`; -1 for the empty set."""
Scalar = TypeVar("Scalar", bound=np.generic)
PIECE = 1 << 16
"""Number of steps or states evaluated at a time: intermediate arrays stay in the processor's cache."""


def refuse_more_steps(steps: int) -> None:
    """Raises `TooLarge` if the steps cannot be numbered in 32 bits."""
    if steps >= 1 << 31:
        raise TooLarge(
            f"a graph of {steps:,} steps, for a temporal property", remedy="at most 2,147,483,647: smaller parameters"
        )


def gather(values: npt.NDArray[Scalar], at: npt.NDArray[np.integer[Any]]) -> npt.NDArray[Scalar]:
    """``values[at]``, piece by piece: NumPy would first copy all of `at` to a wider type."""
    found = np.empty(len(at), dtype=values.dtype)
    for first in range(0, len(at), PIECE):
        np.take(values, at[first : first + PIECE], out=found[first : first + PIECE], mode="clip")
    return found


class FairGraph:
    """The state graph and the fairness constraints.

    A constraint is *enabled* in states with an enabled instance of its action that changes the state; such a step *takes* it.
    Every state may stutter, which takes no constraint. Raises `TooLarge` for more steps or constraints than can be numbered.
    """

    def __init__(self, system: System, graph: StateGraph) -> None:
        self.constraints = fairness_constraints(system)
        if len(self.constraints) > MOST_CONSTRAINTS:
            raise TooLarge(
                f"fairness is required of {len(self.constraints):,} action instances",
                remedy=f"at most {MOST_CONSTRAINTS:,}: choose smaller parameters, or fairness for fewer actions",
            )
        refuse_more_steps(graph.steps)
        self.graph, self.states = graph, graph.states
        self.offsets, self.targets = graph.offsets, graph.targets
        self.sources: Numbers = graph.sources
        """Per step, its source state."""
        self.sets: list[tuple[int, ...]] = [(at,) for at in range(len(self.constraints))]
        """Sets of constraints that a step takes at once; the first are those of one constraint."""
        owner = self._owners(len(system.instances))
        self._within = [[at for at, some in enumerate(self.sets) if k in some] for k in range(len(self.constraints))]
        self.taken: Constraints = gather(owner, graph.instances)
        """Per step, the set of constraints that it takes."""
        self.taken[self.sources == graph.targets] = -1
        self.restless: Mask = np.zeros(graph.states, dtype=np.bool_)
        """The states in which some constraint is enabled: infinite stuttering there is not fair."""
        leaving = np.diff(graph.offsets) > 0
        if self.constraints and graph.steps:
            self.restless[leaving] = np.maximum.reduceat(self.taken, graph.offsets[:-1][leaving]) >= 0

    def _owners(self, instances: int) -> Constraints:
        """Per instance of an action, the number of the set of its constraints."""
        several: dict[int, tuple[int, ...]] = {}
        for at, constraint in enumerate(self.constraints):
            for number in constraint.numbers:
                several[number] = (*several.get(number, ()), at)
        numbers = {some: at for at, some in enumerate(self.sets)}
        owner = np.full(instances, -1, dtype=np.int16)
        for number, some in several.items():
            if some not in numbers:
                if len(self.sets) >= MOST_CONSTRAINTS:
                    raise TooLarge(
                        f"more than {MOST_CONSTRAINTS:,} combinations of fairness constraints",
                        remedy="choose smaller parameters, or fairness for fewer actions",
                    )
                numbers[some] = len(self.sets)
                self.sets.append(some)
            owner[number] = numbers[some]
        return owner

    def among(self, taken: Constraints, constraint: int) -> Mask:
        """Which of these sets contain a constraint."""
        own = self._within[constraint]
        found: Mask = taken == own[0] if len(own) == 1 else np.isin(taken, own)
        return found

    def enabled(self, constraint: int) -> Mask:
        """The states in which a constraint is enabled."""
        found = np.zeros(self.states, dtype=np.bool_)
        found[self.sources[self.among(self.taken, constraint)]] = True
        return found

    def takes(self, constraint: int, before: int, after: int) -> bool:
        """Whether a step from one state to the other takes a constraint."""
        first, last = self.offsets[before], self.offsets[before + 1]
        return bool(((self.targets[first:last] == after) & self.among(self.taken[first:last], constraint)).any())

    def is_enabled(self, constraint: int, state: int) -> bool:
        """Whether a constraint is enabled in one state."""
        return bool(self.among(self.taken[self.offsets[state] : self.offsets[state + 1]], constraint).any())

    def is_weak(self, constraint: int) -> bool:
        """Whether the constraint is weak fairness (else strong)."""
        return self.constraints[constraint].fairness is Fairness.WEAK


class Labels:
    """The valuations of all states for the truth tables of an automaton."""

    def __init__(self, graph: StateGraph, automaton: BuchiAutomaton) -> None:
        self.atoms = len(automaton.conditions)
        self.valuations: npt.NDArray[np.uint16] = np.zeros(graph.states, dtype=np.uint16)
        """Per state, the valuation of the automaton's conditions."""
        for at, row in enumerate(graph.evaluate(automaton.conditions) if automaton.conditions else ()):
            self.valuations |= row.astype(np.uint16) << at

    def mask(self, table: int, among: Numbers | None = None) -> Mask:
        """The states, or those of `among`, that satisfy a truth table."""
        column = np.array([bool(table >> v & 1) for v in range(1 << self.atoms)], dtype=np.bool_)
        found: Mask = column[self.valuations if among is None else self.valuations[among]]
        return found


@dataclass(frozen=True)
class Product:
    """Nodes (a state of the graph and an automaton state that reads it) and edges.

    A node can stutter if its automaton state has a self-loop; stutter edges are not stored.
    """

    state: Numbers
    """Per node, its state of the graph."""
    reader: npt.NDArray[np.int16]
    """Per node, its automaton state."""
    offsets: npt.NDArray[np.int64]
    """Offset of the edges of each node; shape (nodes + 1,)."""
    targets: Numbers
    taken: Constraints
    """Per edge, the set of fairness constraints that it takes; -1 for edges that change only the automaton state."""
    few_edges: int
    """As of `Digraph`."""

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.state)

    @property
    def digraph(self) -> Digraph:
        """The nodes and edges, without labels."""
        return Digraph(self.offsets, self.targets, self.few_edges)

    @property
    def sources(self) -> Numbers:
        """Per edge, its source node; computed on each access."""
        return sources(self.offsets)

    def only(self, kept: Mask) -> Product:
        """The subgraph of these nodes, in the same order."""
        names = np.cumsum(kept, dtype=np.int32) - np.int32(1)
        inside = np.repeat(kept, np.diff(self.offsets))
        inside &= gather(kept, self.targets)
        offsets = _fewer(self.offsets, inside, kept)
        return Product(
            self.state[kept],
            self.reader[kept],
            offsets,
            gather(names, self.targets[inside]),
            self.taken[inside],
            self.few_edges,
        )


def product(fair: FairGraph, automaton: BuchiAutomaton, readers: Sequence[int], inside: Sequence[Mask]) -> Product:
    """The product of the automaton states `readers` and, for each of them, the states marked in `inside`.

    Nodes are ordered by automaton state, then by state. Raises `TooLarge` for more edges than can be numbered.
    """
    few = fair.graph.tuning.few_edges
    names = np.full((len(readers), fair.states), -1, dtype=np.int32)
    total = 0
    for at, mask in enumerate(inside):
        count = int(np.count_nonzero(mask))
        names[at, mask] = np.arange(total, total + count, dtype=np.int32)
        total += count
    state = np.concatenate([np.flatnonzero(mask).astype(np.int32) for mask in inside])
    reader = np.concatenate([np.full(np.count_nonzero(m), r, np.int16) for r, m in zip(readers, inside, strict=True)])
    if len(readers) == 1:
        if inside[0].all():
            return Product(state, reader, fair.offsets, fair.targets, fair.taken, few)
        kept = gather(inside[0], fair.sources)
        kept &= gather(inside[0], fair.targets)
        offsets = _fewer(fair.offsets, kept, inside[0])
        return Product(state, reader, offsets, gather(names[0], fair.targets[kept]), fair.taken[kept], few)
    before, targets, taken = [], [], []
    for at, one in enumerate(readers):
        for to, other in enumerate(readers):
            if other not in automaton.states[one].after:
                continue
            kept = gather(inside[at], fair.sources) & gather(inside[to], fair.targets)
            before.append(gather(names[at], fair.sources[kept]))
            targets.append(gather(names[to], fair.targets[kept]))
            taken.append(fair.taken[kept])
            if one != other:
                stays = inside[at] & inside[to]
                before.append(names[at][stays])
                targets.append(names[to][stays])
                taken.append(np.full(np.count_nonzero(stays), -1, dtype=np.int16))
    refuse_more_steps(sum(map(len, before)))
    whole = np.concatenate(before)
    order = np.argsort(whole, kind="stable")
    offsets = np.zeros(total + 1, dtype=np.int64)
    np.cumsum(np.bincount(whole, minlength=total), out=offsets[1:])
    return Product(state, reader, offsets, np.concatenate(targets)[order], np.concatenate(taken)[order], few)


def _fewer(offsets: npt.NDArray[np.signedinteger[Any]], edges: Mask, nodes: Mask) -> npt.NDArray[np.int64]:
    """Offsets of the edges of each node in a subgraph; all kept edges start at kept nodes."""
    counts = np.zeros(len(nodes), dtype=np.int32)
    for first in range(0, len(nodes), PIECE):
        ends = offsets[first : first + PIECE + 1]
        sums = np.zeros(int(ends[-1] - ends[0]) + 1, dtype=np.int32)
        np.cumsum(edges[ends[0] : ends[-1]], dtype=np.int32, out=sums[1:])
        counts[first : first + PIECE] = np.diff(sums[ends - ends[0]])
    found = np.zeros(np.count_nonzero(nodes) + 1, dtype=np.int64)
    np.cumsum(counts[nodes], out=found[1:])
    return found


@dataclass
class ReachableProduct:
    """The reachable product, computed SCC by SCC of the automaton.

    All states of the graph are reachable, so an initial automaton state with a self-loop that reads everything reads all of
    them.
    """

    fair: FairGraph
    automaton: BuchiAutomaton
    labels: Labels
    everywhere: set[int] = field(default_factory=set)
    """Automaton states that read every state of the graph on a run that visits no other automaton state."""
    reads: dict[int, Mask] = field(default_factory=dict)
    """Per automaton state, the states that it reads on some run."""
    products: dict[int, tuple[Product, Numbers]] = field(default_factory=dict)
    """Per automaton state on a cycle, the product over its SCC, and for each node its predecessor on a run; -1 where the SCC
    is entered."""

    def enter(self, scc: Scc) -> Product | None:
        """The reachable product over an SCC, or None if it is empty. Requires that earlier SCCs have been entered."""
        fair, states = self.fair, self.automaton.states
        if len(scc.members) == 1:
            only = scc.members[0]
            if scc.cyclic and states[only].initial and states[only].label == self.automaton.everything:
                self.everywhere.add(only)
                self.reads[only] = np.ones(fair.states, dtype=np.bool_)
                if not scc.accepting:
                    return None
        entries = {k: self._entries(scc, k) & self.labels.mask(states[k].label) for k in scc.members}
        if not any(mask.any() for mask in entries.values()):
            self.reads.update({k: mask for k, mask in entries.items() if k not in self.everywhere})
            return None
        if not scc.cyclic:
            self.reads.update(entries)
            return None
        inside = [self.labels.mask(states[k].label) for k in scc.members]
        whole = product(fair, self.automaton, scc.members, inside)
        if all((entries[k] == mask).all() for k, mask in zip(scc.members, inside, strict=True)):
            before = np.full(whole.nodes, -1, dtype=np.int32)
        elif scc.members[0] in self.everywhere:
            return whole
        else:
            begins = [np.flatnonzero(entries[k][whole.state] & (whole.reader == k)) for k in scc.members]
            order, before = whole.digraph.reached(np.sort(np.concatenate(begins)).astype(np.int32))
            if len(order) < whole.nodes:
                kept = before >= 0
                kept[order] = True
                names = np.cumsum(kept, dtype=np.int32) - np.int32(1)
                before = np.where(before >= 0, names[before], np.int32(-1))[kept]
                whole = whole.only(kept)
        for k in scc.members:
            reads = np.zeros(fair.states, dtype=np.bool_)
            reads[whole.state[whole.reader == k]] = True
            self.reads[k] = reads
            self.products[k] = (whole, before)
        return whole

    def _entries(self, scc: Scc, reader: int) -> Mask:
        """The states at which a run can enter the SCC in this automaton state, its label ignored."""
        found = np.zeros(self.fair.states, dtype=np.bool_)
        if self.automaton.states[reader].initial:
            found[: self.fair.graph.initial] = True
        for other in self.automaton.before(reader):
            if other not in scc.members:
                reads = self.reads[other]
                found |= reads
                if not reads.all() and reads.any():
                    found[self.fair.targets[gather(reads, self.fair.sources)]] = True
        return found

    def stem(self, reader: int, state: int) -> list[int]:
        """The states of a run from an initial state to `state`, read by `reader`."""
        path: list[int] = []
        while True:
            if reader in self.everywhere:
                return [*self.fair.graph.path(state), *reversed(path)]
            if reader in self.products:
                reader, state = self._through(reader, state, path)
            path.append(state)
            if self.automaton.states[reader].initial and state < self.fair.graph.initial:
                return path[::-1]
            reader, state = self._before(reader, state)

    def _through(self, reader: int, state: int, path: list[int]) -> tuple[int, int]:
        """The node where the run enters the SCC of `reader`; appends the states after it to `path`."""
        whole, before = self.products[reader]
        node = int(np.flatnonzero((whole.state == state) & (whole.reader == reader))[0])
        while before[node] >= 0:
            path.append(int(whole.state[node]))
            node = int(before[node])
        return int(whole.reader[node]), int(whole.state[node])

    def _before(self, reader: int, state: int) -> tuple[int, int]:
        """The predecessor of (`reader`, `state`) on a run: an automaton state of an earlier SCC, and the state that it
        reads."""
        own = next(scc for scc in self.automaton.sccs if reader in scc.members)
        others = [other for other in self.automaton.before(reader) if other not in own.members]
        for other in others:
            if self.reads[other][state]:
                return other, state
        steps = np.flatnonzero(self.fair.targets == state)
        for other in others:
            sources = self.fair.sources[steps]
            found = np.flatnonzero(self.reads[other][sources])
            if len(found):
                return other, int(sources[found[0]])
        raise AssertionError("a node that was reached has a predecessor")
