"""Cycles and fair cycles in a graph that is in files, by sets of nodes: memory does not grow with the graph.

A node is a state of the graph and a *reader*, a state of an automaton. Each node has a word of bits: whether it is in the
set, and which obligations of a fair cycle can be met from it on within the set. The words are computed in passes over all
steps, from the last state to the first: states are numbered breadth first, so most steps that lead on are to a word that is
known by then. Nodes that have no successor in the set, or from which an obligation cannot be met, are
removed until nothing changes (E. A. Emerson, C.-L. Lei 1987; for strong fairness Y. Kesten, A. Pnueli, L. Raviv 1998). Then
every bottom component of the set is a fair one, and the set is empty if and only if there is no fair cycle.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

import numpy as np

from streamproof.base.errors import TooLarge
from streamproof.explicit.compiled.memory import WordBlock
from streamproof.explicit.kernel_compiler import translate
from streamproof.explicit.mapped_graph import Array, Constraints, MappedFiles, Readers, StoredGraph
from streamproof.explicit.native_code import Module, build

if TYPE_CHECKING:
    from streamproof.explicit.kernel_builtins import bytes_at, halves_at, shorts_at, word, words, words_at

    # Constants that are filled in when the kernels are translated: positions in the control block, and a bit.
    STATES = READERS = OFFSETS = TARGETS = LABELS = WORDS = VALUATIONS = OWNERS = OWN = AFTER = 0
    KINDS = STAYS = WEAK = STRONG = MUST = REMOVED = ALIVE = 0

CONTROL = (
    "STATES", "READERS", "OFFSETS", "TARGETS", "LABELS", "WORDS", "VALUATIONS", "OWNERS", "OWN", "AFTER", "KINDS", "STAYS",
    "WEAK", "STRONG", "MUST", "REMOVED",
)  # fmt: skip
"""The words of the control block, by position."""
IN_SET = 1 << 63
"""The bit of the nodes in the set."""
BITS = 62
"""Number of obligations that are followed at a time."""
PIECE = 1 << 12
"""Number of states per call of compiled code."""
BLOCK = 1 << 20
"""Number of nodes that are handled at a time elsewhere."""


def _enabled(c: words, state: word) -> word:
    """The obligations of the steps from a state that change it."""
    offsets = words_at(c[OFFSETS])
    targets = halves_at(c[TARGETS])
    labels = shorts_at(c[LABELS])
    owners = words_at(c[OWNERS])
    found = 0
    for step in range(offsets[state], offsets[state + 1]):
        if targets[step] != state:
            found |= owners[labels[step]]
    return found


def _in_set(c: words, state: word) -> word:
    """Whether a node of a state is in the set."""
    marks = words_at(c[WORDS])
    found = 0
    for reader in range(c[READERS]):
        found |= marks[reader * c[STATES] + state]
    return found != 0


def settle(c: words, first: word, last: word) -> word:
    """Compute the words of the states from `first` to `last`, the last one first; returns the number of changes."""
    offsets = words_at(c[OFFSETS])
    targets = halves_at(c[TARGETS])
    labels = shorts_at(c[LABELS])
    owners = words_at(c[OWNERS])
    marks = words_at(c[WORDS])
    valuations = shorts_at(c[VALUATIONS])
    own = words_at(c[OWN])
    after = bytes_at(c[AFTER])
    readers = c[READERS]
    states = c[STATES]
    changes = 0
    state = last
    while state > first:
        state -= 1
        if _in_set(c, state):
            idle = c[WEAK] ^ (c[WEAK] & _enabled(c, state))
            for reader in range(readers):
                have = marks[reader * states + state]
                if have:
                    found = have | idle | own[reader * c[KINDS] + valuations[state]]
                    follows = 0
                    if c[STAYS]:
                        for other in range(readers):
                            if after[reader * readers + other] and marks[other * states + state]:
                                found |= marks[other * states + state]
                                follows = 1
                    for step in range(offsets[state], offsets[state + 1]):
                        target = targets[step]
                        if target != state or c[STAYS] == 0:
                            for other in range(readers):
                                if after[reader * readers + other] and marks[other * states + target]:
                                    found |= marks[other * states + target]
                                    found |= owners[labels[step]] if target != state else 0
                                    follows = 1
                    if follows == 0:
                        c[REMOVED] += 1
                        found = 0
                    if found != have:
                        marks[reader * states + state] = found
                        changes += 1
    return changes


def prune(c: words, first: word, last: word) -> word:
    """Remove the nodes that do not meet all obligations, and clear the words of the others; returns the number of these."""
    marks = words_at(c[WORDS])
    states = c[STATES]
    left = 0
    for state in range(first, last):
        if _in_set(c, state):
            needed = c[MUST]
            if c[STRONG]:
                needed |= c[STRONG] & _enabled(c, state)
            for reader in range(c[READERS]):
                have = marks[reader * states + state]
                if have:
                    if (needed & have) != needed:
                        marks[reader * states + state] = 0
                        c[REMOVED] += 1
                    else:
                        marks[reader * states + state] = ALIVE
                        left += 1
    return left


@cache
def _compiled() -> Module:
    constants = {**{name: at for at, name in enumerate(CONTROL)}, "ALIVE": IN_SET}
    return build(translate((_enabled, _in_set, settle, prune), constants), ["settle", "prune"], optimise=True)


class Steps(Protocol):
    """The steps from states, as of a `StoredGraph`."""

    @property
    def offsets(self) -> Array:
        """Of each state the number of its first step, and then the number of all steps."""

    @property
    def targets(self) -> Array:
        """The state that follows."""

    @property
    def labels(self) -> Array:
        """The instance."""


class NodeWords:
    """The words of nodes. Those of the first `own` states are computed; those behind them are given."""

    def __init__(self, graph: Steps, readers: Readers, words: Array, own: int, pulse: Callable[[], None]) -> None:
        self._graph, self._readers, self.words, self._pulse = graph, readers, words, pulse
        self._own, self.live = own, list(range(0, own, PIECE))
        self._after = np.ascontiguousarray(readers.after, dtype=np.uint8)

    def settle(self, owners: Array, accepts: Array, **values: int) -> WordBlock:
        """Compute the words until nothing changes. `owners`: the obligations that each instance meets; `accepts`: those met
        in the states of a valuation; other words of the control block by name. Returns it."""
        graph, readers = self._graph, self._readers
        own = np.ascontiguousarray(accepts, dtype=np.uint64)
        places = {
            "OFFSETS": graph.offsets, "TARGETS": graph.targets, "LABELS": graph.labels, "WORDS": self.words,
            "VALUATIONS": readers.valuations, "OWNERS": owners, "OWN": own, "AFTER": self._after,
        }  # fmt: skip
        given = {
            **{name: place.ctypes.data for name, place in places.items()}, **values,
            "STATES": len(self.words) // len(readers.after), "READERS": len(readers.after), "KINDS": own.shape[1],
            "STAYS": int(readers.stays),
        }  # fmt: skip
        control = WordBlock([given.get(name, 0) for name in CONTROL])
        run, changes = _compiled().function("settle", 3), 1
        while changes:
            changes = 0
            for first in reversed(self.live):
                changes += run(control.address, first, min(self._own, first + PIECE))
                self._pulse()
        return control

    def prune(self, control: WordBlock) -> int:
        """Remove the nodes that do not meet all obligations; returns the number of nodes removed, in `settle` too."""
        run, live = _compiled().function("prune", 3), []
        for first in self.live:
            if run(control.address, first, min(self._own, first + PIECE)):
                live.append(first)
            self._pulse()
        self.live = live
        # Nodes removed while words were computed may have left bits behind: then the words are computed once more.
        return self.removed(control)

    def removed(self, control: WordBlock) -> int:
        """The number of nodes that were removed."""
        return control[CONTROL.index("REMOVED")]


class FairSet(ABC):
    """A set of nodes, until `shrink` leaves those from which there is a fair cycle."""

    def __init__(self, readers: Readers, constraints: Constraints) -> None:
        self.readers, self.constraints = readers, constraints
        if readers.sets > BITS // 2:
            raise TooLarge(f"{readers.sets} acceptance sets", remedy=f"at most {BITS // 2}: a smaller formula")

    @abstractmethod
    def _some_left(self) -> bool:
        """Whether there are nodes in the set, as far as is known."""

    @abstractmethod
    def _round(self, owners: Array, accepts: Array, **values: int) -> int:
        """Compute all words until nothing changes, and remove nodes; returns the number of nodes removed."""

    def shrink(self) -> bool:
        """Remove the nodes from which there is no fair cycle; returns whether some are left."""
        count, sets = len(self.constraints.weak), self.readers.sets
        most = BITS - sets
        groups = [range(at, min(count, at + most)) for at in range(0, max(count, 1), most)]
        while self._some_left():
            removed = 0
            for group in groups:
                owners = np.zeros(self.constraints.instances, dtype=np.uint64)
                weak = strong = 0
                for bit, constraint in enumerate(group, sets):
                    owners[self.constraints.numbers[constraint]] |= np.uint64(1 << bit)
                    weak |= self.constraints.weak[constraint] << bit
                    strong |= (not self.constraints.weak[constraint]) << bit
                must = weak | ((1 << sets) - 1)
                removed += self._round(owners, self.readers.accepts, WEAK=weak, STRONG=strong, MUST=must)
            if not removed:
                return True
        return False


class NodeSet(FairSet):
    """A set of nodes of a graph in mapped files: those that readers read, until it is shrunk."""

    def __init__(self, graph: StoredGraph, readers: Readers, constraints: Constraints, files: MappedFiles) -> None:
        super().__init__(readers, constraints)
        self.graph = graph
        self._files = files
        self.words = files.array(np.uint64, len(readers.after) * graph.states)
        for reader, first, last in self._blocks():
            read = readers.reads[reader][readers.valuations[first:last]]
            self.words[reader * graph.states + first : reader * graph.states + last] = np.where(read, IN_SET, 0)
            files.pulse()
        self._marks = NodeWords(graph, readers, self.words, graph.states, files.pulse)

    def _blocks(self) -> Iterator[tuple[int, int, int]]:
        states = self.graph.states
        for reader in range(len(self.readers.after)):
            for first in range(0, states, BLOCK):
                yield reader, first, min(states, first + BLOCK)

    def _some_left(self) -> bool:
        return bool(self._marks.live)

    def _round(self, owners: Array, accepts: Array, **values: int) -> int:
        return self._marks.prune(self._marks.settle(owners, accepts, **values))

    def has(self, nodes: Array) -> Array:
        """Which nodes are in the set."""
        found: Array = self.words[nodes] != 0
        return found

    def component(self, node: int, paths: NodePaths) -> tuple[list[int], int]:
        """Reduce the set to a bottom component that can be reached from a node; returns a path to a node of it."""
        path = [node]
        none = np.zeros(self.constraints.instances, dtype=np.uint64)
        while True:
            paths.search(np.array([path[-1]]), None)
            for first in range(0, len(self.words), BLOCK):
                some = slice(first, first + BLOCK)
                self.words[some] = np.where(paths.before[some] != 0, IN_SET, 0)
                self._files.pulse()
            self.words[path[-1]] |= np.uint64(1)
            self._marks.settle(none, np.zeros((len(self.readers.after), self.readers.accepts.shape[1])))
            rest = self.first(1, paths.last)
            if rest is None:
                return path, path[-1]
            path += paths.path(rest)[1:]

    def first(self, without: int = 0, likely: Sequence[int] | Array = ()) -> int | None:
        """A node of the set whose word lacks a bit: one of the likely ones, or else the first."""
        for first in (-1, *range(0, len(self.words), BLOCK)):
            nodes = (
                np.array(likely, dtype=np.int64) if first < 0 else np.arange(first, min(first + BLOCK, len(self.words)))
            )
            words = self.words[nodes]
            found = nodes[(words != 0) & (words & np.uint64(without) == 0)]
            self._files.pulse()
            if len(found):
                return int(found[0])
        return None


class NodePaths:
    """Shortest paths of nodes, breadth first. `allowed`: the nodes that are visited."""

    def __init__(
        self, graph: StoredGraph, readers: Readers, allowed: Callable[[Array], Array], files: MappedFiles
    ) -> None:
        self._graph, self._readers, self._allowed, self._files = graph, readers, allowed, files
        self.before = files.array(np.int64, len(readers.after) * graph.states)
        """Of each node that was visited its predecessor plus 1, of a start itself plus 1."""
        self.last: Array = np.empty(0, dtype=np.int64)
        """The nodes that are farthest from the starts, after a search without a goal."""

    def search(self, starts: Array, goal: Callable[[Array], Array] | None, *, back: bool = False) -> int | None:
        """The nearest node that meets `goal`, if there is one; with `back`, a start counts only if it is reached again."""
        for first in range(0, len(self.before), BLOCK):
            self.before[first : first + BLOCK] = 0
            self._files.pulse()
        starts = starts[self._allowed(starts)]
        if not back:
            self.before[starts] = starts + 1
        level, met = starts, goal is not None and not back
        while len(level):
            hits = level[goal(level)] if met and goal is not None else level[:0]
            if len(hits):
                return int(hits[0])
            self.last, met = level, goal is not None
            level = np.sort(np.concatenate([self._visit(level[at : at + PIECE]) for at in range(0, len(level), PIECE)]))
        return None

    def _visit(self, nodes: Array) -> Array:
        sources, targets, _ = self.steps(nodes)
        new = (self.before[targets] == 0) & self._allowed(targets)
        found, at = np.unique(targets[new], return_index=True)
        self.before[found] = nodes[sources[new][at]] + 1
        self._files.pulse()
        return found

    def steps(self, nodes: Array) -> tuple[Array, Array, Array]:
        """The steps from nodes: the position of the node, the node that follows, and the instance; -1 for stuttering and
        for steps that change nothing."""
        graph, readers = self._graph, self._readers
        reader, state = np.divmod(nodes, graph.states)
        begins = graph.offsets[state]
        degrees = graph.offsets[state + 1] - begins
        which = np.repeat(np.arange(len(nodes)), degrees)
        steps = np.arange(len(which)) + np.repeat(begins - (np.cumsum(degrees) - degrees), degrees)
        goals, labels = graph.targets[steps].astype(np.int64), graph.labels[steps].astype(np.int64)
        labels[goals == state[which]] = -1
        if readers.stays:
            which, goals = np.concatenate([which, np.arange(len(nodes))]), np.concatenate([goals, state])
            labels = np.concatenate([labels, np.full(len(nodes), -1)])
        found = []
        for other in range(len(readers.after)):
            ok = readers.after[reader[which], other]
            found.append((which[ok], other * graph.states + goals[ok], labels[ok]))
        sources, targets, names = (np.concatenate(column) for column in zip(*found, strict=True))
        return sources, targets, names

    def path(self, node: int, start: int | None = None) -> list[int]:
        """The nodes of the path to a node that was found; with `start`, back to it."""
        found = [node]
        while True:
            before = int(self.before[found[-1]]) - 1
            if before == found[-1]:
                return found[::-1]
            found.append(before)
            if before == start:
                return found[::-1]


class FairCycle:
    """A closed walk through a bottom component of a shrunk set that meets every obligation."""

    def __init__(self, among: NodeSet, paths: NodePaths, start: int) -> None:
        self._set, self._paths = among, paths
        self._states = among.graph.states
        self.walk = [start]

    def run(self) -> list[int]:
        """The nodes of the walk; the last is the first."""
        weak = self._set.constraints.weak
        for bit in range(self._set.readers.sets):
            if not self._accepts(np.array(self.walk), bit).any():
                self._extend(lambda nodes, bit=bit: self._accepts(nodes, bit))  # type: ignore[misc]
        for constraint in np.flatnonzero(weak).tolist():
            if not self._taken(constraint) and self._enabled(np.array(self.walk), constraint).all():
                self._take(constraint, or_rest=True)
        while True:
            due = next((c for c in np.flatnonzero(~np.array(weak, dtype=np.bool_)).tolist() if self._due(c)), None)
            if due is not None:
                self._take(due, or_rest=False)
            elif self._closed():
                return self.walk
            else:
                self._close()

    def _closed(self) -> bool:
        reader = self.walk[0] // self._states
        alone = bool(self._set.readers.after[reader, reader]) and self._set.readers.stays
        return self.walk[-1] == self.walk[0] and (len(self.walk) > 1 or alone)

    def _close(self) -> None:
        start = self.walk[0]
        if len(self.walk) > 1:
            self._extend(lambda nodes: nodes == start)
            return
        self._paths.search(np.array([start]), lambda nodes: nodes == start, back=True)
        path = self._paths.path(start, start)
        self.walk = path if len(path) > 1 else [start, start]

    def _extend(self, goal: Callable[[Array], Array]) -> None:
        found = self._paths.search(np.array([self.walk[-1]]), goal)
        assert found is not None, "an obligation can be met from every node"
        self.walk += self._paths.path(found)[1:]

    def _take(self, constraint: int, *, or_rest: bool) -> None:
        """Extend the walk by a step that takes a constraint or, with `or_rest`, to a node that disables it."""

        def goal(nodes: Array) -> Array:
            found = np.zeros(len(nodes), dtype=np.bool_)
            found[self._taking(nodes, constraint)[0]] = True
            return found | ~self._enabled(nodes, constraint) if or_rest else found

        self._extend(goal)
        _, targets = self._taking(np.array(self.walk[-1:]), constraint)
        if len(targets) and not (or_rest and not self._enabled(np.array(self.walk[-1:]), constraint)[0]):
            self.walk.append(int(targets[0]))

    def _accepts(self, nodes: Array, bit: int) -> Array:
        reader, state = np.divmod(nodes, self._states)
        readers = self._set.readers
        found: Array = readers.accepts[reader, readers.valuations[state]] >> bit & 1 != 0
        return found

    def _owned(self, nodes: Array, constraint: int) -> tuple[Array, Array]:
        """The steps that take a constraint: positions of their nodes, and the nodes that follow."""
        sources, targets, labels = self._paths.steps(nodes)
        mine = labels >= 0
        mine[mine] = self._set.constraints.taken(labels[mine], constraint)
        return sources[mine], targets[mine]

    def _taking(self, nodes: Array, constraint: int) -> tuple[Array, Array]:
        """Those of them that stay in the component."""
        sources, targets = self._owned(nodes, constraint)
        inside = self._set.has(targets)
        return sources[inside], targets[inside]

    def _enabled(self, nodes: Array, constraint: int) -> Array:
        graph = self._set.graph
        found = np.zeros(len(nodes), dtype=np.bool_)
        for at, state in enumerate((nodes % self._states).tolist()):
            steps = slice(int(graph.offsets[state]), int(graph.offsets[state + 1]))
            mine = self._set.constraints.taken(graph.labels[steps], constraint)
            found[at] = bool((mine & (graph.targets[steps] != state)).any())
        return found

    def _taken(self, constraint: int) -> bool:
        """Whether a step of the walk takes a constraint."""
        graph = self._set.graph
        for before, after in pairwise([node % self._states for node in self.walk]):
            steps = slice(int(graph.offsets[before]), int(graph.offsets[before + 1]))
            mine = self._set.constraints.taken(graph.labels[steps], constraint)
            if before != after and bool((mine & (graph.targets[steps] == after)).any()):
                return True
        return False

    def _due(self, constraint: int) -> bool:
        return not self._taken(constraint) and bool(self._enabled(np.array(self.walk), constraint).any())


def find_cycle(graph: StoredGraph, instances: int) -> list[int] | None:
    """The states of a cycle of steps; None if there is none."""
    files = graph.files.more()
    one = np.ones((1, 1), dtype=np.bool_)
    nothing = files.array(np.uint16, graph.states)
    readers = Readers(one, one, np.zeros((1, 1), dtype=np.uint64), nothing, 0, stays=False)
    among = NodeSet(graph, readers, Constraints(instances, (), ()), files)
    if not among.shrink():
        return None
    paths = NodePaths(graph, readers, among.has, files)
    start = among.first()
    assert start is not None, "the set is not empty"
    # Each start that is on no cycle is followed by one from which it cannot be reached.
    while paths.search(np.array([start]), lambda nodes, start=start: nodes == start, back=True) is None:  # type: ignore[misc]
        start = int(paths.last[0])
    return paths.path(start, start)[:-1] or [start]
