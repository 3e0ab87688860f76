"""Decision of temporal properties on a state graph in files: fair cycles by sets of nodes (`set_search`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cached_property

import numpy as np

from streamproof.base.errors import TooLarge
from streamproof.base.records import replace
from streamproof.explicit.liveness.buchi import BuchiAutomaton, Scc, negation_automaton
from streamproof.explicit.liveness.fair_graph import Lasso, TemporalAnswer, without_stutter
from streamproof.explicit.liveness.step_monitors import begins, bit_name
from streamproof.explicit.liveness.tableau import triggers
from streamproof.explicit.mapped_graph import (
    Array,
    Constraints,
    CycleFinder,
    Readers,
    StoredGraph,
    cycle_beyond_reach,
)
from streamproof.explicit.set_search import FairCycle, NodePaths, NodeSet
from streamproof.system.expr import Expr
from streamproof.system.formula import Formula, Recurs, claims
from streamproof.system.model import Fairness, System, fairness_constraints
from streamproof.transform.constraint import turned

MOST_NODES = 0xFFFF_FFF0
"""Limit on the number of states with their bits: they are numbered in 32 bits."""
PIECE = 1 << 20
"""Number of steps or states that are handled at a time."""


class StoredChecker:
    """As `TemporalChecker`, on a graph in files. Lassos may be longer: their cycles are not the shortest."""

    def __init__(
        self,
        system: System,
        graph: Callable[[], StoredGraph],
        ever_true: Callable[[Sequence[Expr]], Sequence[bool]],
        divided: CycleFinder | None = None,
    ) -> None:
        """`divided`: the same graph in the files of several processes, which find out whether there is a fair cycle."""
        self._made, self._divided = graph, divided
        self._ever_true = ever_true
        self._valuations: dict[Sequence[Expr], Array] = {}
        constraints = fairness_constraints(system)
        numbers = [np.array(one.numbers, dtype=np.int64) for one in constraints]
        weak = [one.fairness is Fairness.WEAK for one in constraints]
        self._constraints = Constraints(len(system.instances), numbers, weak)

    @cached_property
    def graph(self) -> StoredGraph:
        """The graph in files of this process."""
        return self._made()

    def decide(self, formula: Formula) -> TemporalAnswer:
        """Whether `formula` is true of every fair behaviour. Raises `TooLarge` for too many atoms, or a full disk."""
        for part in claims(formula):
            automaton = negation_automaton(part)
            for scc in automaton.sccs:
                if scc.cyclic and scc.accepting:
                    lasso = self._accepted(automaton, scc)
                    if lasso is not None:
                        return TemporalAnswer(lasso)
        return TemporalAnswer(None, self.vacuous(formula))

    def monitored(self, claim: Formula, names: Mapping[Recurs, str], most: int) -> Lasso | None:
        """As `decide`, a lasso of a formula with bits of these names for its conditions on steps: nodes are states with the
        bits that the steps before have flipped. Raises `TooLarge` above `most` nodes."""
        graph, width, states = self.graph, len(names), self.graph.states
        nodes = states << width
        if nodes > min(most, MOST_NODES):
            raise TooLarge(
                f"{states:,} states with {width} monitors of steps are {nodes:,}",
                remedy=f"at most {min(most, MOST_NODES):,}: choose smaller parameters",
            )
        flips = graph.changes([condition.step for condition in names])
        files = graph.files.more()
        offsets = files.array(np.int64, nodes + 1)
        targets, labels = files.array(np.uint32, graph.steps << width), files.array(np.uint16, graph.steps << width)
        for bits in range(1 << width):
            base = bits * graph.steps
            for first in range(0, graph.steps, PIECE):
                some, here = (
                    slice(first, first + PIECE),
                    slice(base + first, min(base + first + PIECE, base + graph.steps)),
                )
                after = (flips[some] ^ np.uint16(bits)).astype(np.uint32)
                targets[here] = after * np.uint32(states) + graph.targets[some]
                labels[here] = graph.labels[some]
                files.pulse()
            for first in range(0, states + 1, PIECE):
                part = graph.offsets[first : first + PIECE]
                offsets[bits * states + first : bits * states + first + len(part)] = base + part

        def valuations(conditions: Sequence[Expr]) -> Array:
            terms = [bit_name(term) for term in conditions]
            found = files.array(np.uint16, nodes)
            own = [k for k, name in enumerate(terms) if name not in held]
            values = graph.valuations([conditions[k] for k in own])
            for bits in range(1 << width):
                fixed = sum(1 << k for k, name in enumerate(terms) if name in held and bits >> held[name] & 1)
                for first in range(0, states, PIECE):
                    part = values[first : first + PIECE]
                    moved = np.full(len(part), fixed, dtype=np.uint16)
                    for at, k in enumerate(own):
                        moved |= (part >> np.uint16(at) & np.uint16(1)) << np.uint16(k)
                    found[bits * states + first : bits * states + first + len(part)] = moved
                    files.pulse()
            return found

        held = {name: at for at, name in enumerate(names.values())}
        whole = replace(graph, files=files, offsets=offsets, targets=targets, labels=labels, valuations=valuations)
        monitored = copy(self)
        monitored.graph, monitored._divided, monitored._valuations = whole, None, {}
        monitored._ever_true = lambda conditions: [True] * len(conditions)
        lasso = monitored.decide(turned(claim, names)).lasso
        return (
            None if lasso is None else Lasso(*(tuple(k % states for k in part) for part in (lasso.stem, lasso.cycle)))
        )

    def vacuous(self, formula: Formula) -> bool:
        """Whether the formula consists of implications whose antecedents are never true."""
        conditions = triggers(formula)
        return bool(conditions) and not any(self._ever_true(conditions))

    def never_begins(self, claim: Formula) -> bool:
        """Whether a claim is about what follows steps that no behaviour makes."""
        step = begins(claim)
        return step is not None and not self.graph.changes([step.step]).any()

    def _accepted(self, automaton: BuchiAutomaton, scc: Scc) -> Lasso | None:
        """A fair lasso whose cycle is read by the states of one component of the automaton, or None."""
        sets = len(scc.acceptance_sets or ())
        kinds = 1 << len(automaton.conditions)
        accepts = np.zeros((len(scc.members), kinds), dtype=np.uint64)
        for bit, tables in enumerate(scc.acceptance_sets or ()):
            for at, table in enumerate(tables):
                accepts[at] |= _column(table, kinds).astype(np.uint64) << np.uint64(bit)
        members = _readers(automaton, scc.members, accepts, sets)
        # Behaviours up to a node of the set, by all states of the automaton.
        every = range(len(automaton.states))
        whole = _readers(automaton, every, np.zeros((len(every), kinds), dtype=np.uint64), 0)
        place = np.full(len(every), -1, dtype=np.int64)
        place[list(scc.members)] = np.arange(len(scc.members))
        initial = [k for k, one in enumerate(automaton.states) if one.initial]
        divided = self._divided
        if divided is not None and not divided.accepts(
            members, self._constraints, whole, place.tolist(), initial, automaton.conditions
        ):
            return None
        if divided is None:
            return self._lasso(members, whole, place, initial, automaton.conditions)
        with cycle_beyond_reach("fair cycle"):
            lasso = self._lasso(members, whole, place, initial, automaton.conditions)
        assert lasso is not None, "both find the same cycles"
        return lasso

    def _lasso(
        self, members: Readers, whole: Readers, place: Array, initial: Sequence[int], conditions: Sequence[Expr]
    ) -> Lasso | None:
        """A fair lasso whose cycle `members` read."""
        graph, files = self.graph, self.graph.files.more()
        if conditions not in self._valuations:
            self._valuations = {conditions: graph.valuations(conditions)}
        valuations = self._valuations[conditions]
        members, whole = (replace(readers, valuations=valuations) for readers in (members, whole))
        among = NodeSet(graph, members, self._constraints, files)
        if not among.shrink():
            return None

        def inside(nodes: Array) -> Array:
            reader, state = np.divmod(nodes, graph.states)
            found = place[reader] >= 0
            found[found] = among.has(place[reader[found]] * graph.states + state[found])
            return found

        def readable(nodes: Array) -> Array:
            reader, state = np.divmod(nodes, graph.states)
            return whole.reads[reader, valuations[state]]

        paths = NodePaths(graph, whole, readable, files)
        starts = np.concatenate([reader * graph.states + np.arange(graph.initial) for reader in initial])
        found = paths.search(starts, inside)
        if found is None:
            return None
        stem = [node % graph.states for node in paths.path(found)]
        entry = int(place[found // graph.states]) * graph.states + found % graph.states
        del paths
        paths = NodePaths(graph, members, among.has, files)
        path, start = among.component(entry, paths)
        stem += [node % graph.states for node in path[1:]]
        cycle = without_stutter([node % graph.states for node in FairCycle(among, paths, start).run()])
        return Lasso(tuple(without_stutter(stem)), tuple(cycle[:-1]) if len(cycle) > 1 else tuple(cycle))


def _column(table: int, kinds: int) -> Array:
    """A truth table as an array."""
    return np.array([bool(table >> kind & 1) for kind in range(kinds)], dtype=np.bool_)


def _readers(automaton: BuchiAutomaton, members: Sequence[int], accepts: Array, sets: int) -> Readers:
    """Readers without the valuations of a graph."""
    kinds = accepts.shape[1]
    states = [automaton.states[k] for k in members]
    return Readers(
        np.array([[other in one.after for other in members] for one in states], dtype=np.bool_),
        np.array([_column(one.label, kinds) for one in states], dtype=np.bool_),
        accepts,
        np.empty(0, dtype=np.uint16),
        sets,
    )
