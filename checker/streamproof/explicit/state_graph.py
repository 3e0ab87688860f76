"""The state graph, and directed graphs: strongly connected components, breadth-first search, a first and shortest cycle.

The loops are kernels in the language of `kernel_compiler`. On `array`s (the Python tier) and for few edges they run as
Python functions; on larger NumPy arrays they are compiled. NumPy is loaded for temporal properties only.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeAlias

from streamproof.base.options import TUNING, Tuning
from streamproof.base.records import dataclass
from streamproof.system.expr import Expr

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from streamproof.explicit.kernel_builtins import bytes_, halves, word, words
    from streamproof.explicit.native_code import Module

Numbers: TypeAlias = "array[int] | npt.NDArray[np.integer[Any] | np.bool_]"
Truths: TypeAlias = "npt.NDArray[np.bool_]"
"""Truth values of Boolean terms; shape (terms, states) or (terms, steps)."""


def number_components(
    offsets: words, targets: halves, number: halves, stack: halves, ahead: halves, root: bytes_, nodes: word
) -> word:
    """Number the strongly connected components (SCCs) of all nodes in topological order, from 0; returns the number of SCCs.

    The algorithm is that of D. Pearce, "A space-efficient algorithm for finding strongly connected components", 2016: depth
    first, with one `number` a node, zero at first. Complete components have numbers from `nodes` downwards until the end.
    ``stack[:depth]`` is the path, `ahead` the number of edges visited of each of its nodes; ``stack[waiting:]`` has the nodes
    of incomplete components; `root` marks nodes from which no earlier node on the path has been reached.
    """
    index = 1
    unused = nodes
    waiting = nodes
    for start in range(nodes):
        if number[start] == 0:
            number[start] = index
            index += 1
            root[start] = 1
            stack[0] = start
            ahead[0] = 0
            depth = 1
            while depth > 0:
                node = stack[depth - 1]
                low = number[node]
                edge = offsets[node] + ahead[depth - 1]
                last = offsets[node + 1]
                target = node
                while edge < last:
                    target = targets[edge]
                    seen = number[target]
                    if seen == 0:
                        break
                    if seen < low:
                        low = seen
                        root[node] = 0
                    edge += 1
                number[node] = low
                if edge < last:
                    ahead[depth - 1] = edge - offsets[node]
                    number[target] = index
                    index += 1
                    root[target] = 1
                    stack[depth] = target
                    ahead[depth] = 0
                    depth += 1
                else:
                    depth -= 1
                    if root[node] == 0:
                        waiting -= 1
                        stack[waiting] = node
                    else:
                        index -= 1
                        while waiting < nodes and number[stack[waiting]] >= low:
                            number[stack[waiting]] = unused
                            waiting += 1
                            index -= 1
                        number[node] = unused
                        unused -= 1
    for node in range(nodes):
        number[node] -= unused + 1
    return nodes - unused


def first_on_cycle(offsets: words, targets: halves, number: halves, nodes: word) -> word:
    """The first node on a cycle: it has an edge into its own component. `nodes` if the graph is acyclic."""
    for node in range(nodes):
        for edge in range(offsets[node], offsets[node + 1]):
            if number[targets[edge]] == number[node]:
                return node
    return nodes


def breadth_first(
    offsets: words, targets: halves, order: halves, before: halves, found: word, done: word, last: word
) -> word:
    """Visit the successors of the nodes in ``order[done:last]`` and append new nodes to `order`; returns its new length.

    `before` is 0 for a node that is not found yet, else its predecessor plus 1.
    """
    while done < last and done < found:
        node = order[done]
        for edge in range(offsets[node], offsets[node + 1]):
            target = targets[edge]
            if before[target] == 0:
                before[target] = node + 1
                order[found] = target
                found += 1
        done += 1
    return found


@dataclass(frozen=True, slots=True)
class Digraph:
    """Nodes from 0 on; the edges of node `k`, which may be parallel, lead to ``targets[offsets[k]:offsets[k + 1]]``."""

    offsets: Numbers
    """64-bit integers."""
    targets: Numbers
    """32-bit integers."""
    few_edges: int = TUNING.few_edges
    """The largest number of edges for which kernels run as Python also on NumPy arrays."""

    @classmethod
    def parse(cls, edges: array[int], nodes: int) -> Digraph:
        """A graph from the successors' numbers, with -1 after each node's last; nodes that were not expanded have no edges.

        Edges to states that an interrupted batch added, and that were removed again, are left out.
        """
        offsets, targets = array("q", [0]), array("i")
        for target in edges:
            if target < 0:
                offsets.append(len(targets))
            elif target < nodes:
                targets.append(target)
        while len(offsets) <= nodes:
            offsets.append(len(targets))
        return cls(offsets, targets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def successors(self, node: int) -> Numbers:
        """The numbers of the successors, duplicates included."""
        return self.targets[self.offsets[node] : self.offsets[node + 1]]

    def components(self) -> tuple[int, Numbers]:
        """The number of strongly connected components, and for each node that of its component: from 0 on, in topological
        order."""
        nodes = len(self)
        number, stack, ahead = (self._zeros("i", nodes) for _ in range(3))
        count = self._run(number_components, number, stack, ahead, self._zeros("B", nodes), nodes)
        return count, number

    def reached(self, entries: npt.NDArray[np.int32]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """The nodes reachable from `entries`, nearest first, and the breadth-first predecessor of each node; -1 for entries
        and unreachable nodes. For graphs in NumPy arrays."""
        order, before = self._zeros("i", len(self)), self._zeros("i", len(self))
        order[: len(entries)] = entries
        before[entries] = entries + 1
        found = self._run(breadth_first, order, before, len(entries), 0, len(self))
        before -= 1
        before[entries] = -1
        return order[:found], before

    def path(self, start: int, goal: npt.NDArray[np.bool_]) -> list[int]:
        """The nodes after `start` on a shortest path to the nearest node marked in `goal`, of several the one with the least
        number. A marked node must be reachable, and `start` not marked. For graphs in NumPy arrays."""
        order, before = self._zeros("i", len(self)), self._zeros("i", len(self))
        order[0], before[start] = start, start + 1
        done, found = 0, 1
        while True:
            last = self._run(breadth_first, order, before, found, done, found)
            assert last > found, "a marked node can be reached"
            level = order[found:last]
            level.sort()
            hits = level[goal[level]]
            if len(hits):
                return _back(before, int(hits[0]), start)
            done, found = found, last

    def cycle(self) -> list[int] | None:
        """The nodes of a shortest cycle through the first node that lies on a cycle; None if the graph is acyclic."""
        number = self.components()[1]
        first = self._run(first_on_cycle, number, len(self))
        if first == len(self):
            return None
        order, before = self._zeros("i", len(self) + 1), self._zeros("i", len(self))
        order[0] = first
        self._run(breadth_first, order, before, 1, 0, len(self) + 1)
        return [first, *_back(before, first, first)[:-1]]

    def lasso(self, levels: Sequence[int], work: int) -> tuple[list[int], bool] | None:
        """Of the cycles and the shortest paths to them, one with the fewest steps together, and whether that is proved; None
        if the graph is acyclic. At most `work` edges are followed. `levels` are the numbers of nodes of the levels."""
        best = self.cycle()
        if best is None or len(self.targets) > work * 100:
            return None if best is None else (best, False)
        number, first, ends = self.components()[1], best[0], [0, *accumulate(levels)]
        nearest = bisect_right(ends, first) - 1
        total = nearest + len(best)
        for depth in range(nearest, len(levels)):
            for node in range(max(ends[depth], first), ends[depth + 1]) if depth + 1 < total else ():
                found, work = self._closed(node, total - depth, number, work)
                if work < 0:
                    return best, False
                if found is not None:
                    best, total = found, depth + len(found)
        return best, True

    def _closed(self, start: int, most: int, number: Numbers, work: int) -> tuple[list[int] | None, int]:
        """The nodes of a shortest cycle of fewer than `most` steps through a node, or None; and what is left of the work."""
        before, level = {start: -1}, [start]
        for _ in range(1, most):
            following = []
            for here in level:
                targets = self.targets[self.offsets[here] : self.offsets[here + 1]].tolist()
                work -= len(targets)
                if work < 0:
                    return None, work
                for to in targets:
                    if to == start:
                        way = [here]
                        while (here := before[here]) >= 0:
                            way.append(here)
                        return way[::-1], work
                    if to not in before and number[to] == number[start]:
                        before[to] = here
                        following.append(to)
            level = following
            if not level:
                break
        return None, work

    def _zeros(self, kind: str, count: int) -> Any:
        if isinstance(self.targets, array):
            return array(kind, [0]) * count
        import numpy as np

        return np.zeros(count, dtype=kind)

    def _run(self, kernel: Callable[..., int], *arguments: Numbers | int) -> int:
        """Run a kernel on this graph: compiled if it is in NumPy arrays of more than `few_edges` edges and llvmlite is
        installed, else as Python."""
        whole = (self.offsets, self.targets, *arguments)
        try:
            if not isinstance(self.targets, array) and len(self.targets) > self.few_edges:
                return _compiled().function(kernel.__name__, len(whole))(*_addresses(kernel, whole))
        except ImportError:
            pass
        # The elements of a view are Python's numbers, as those of an array; it writes to the array that it shows.
        return kernel(*(x if isinstance(x, int) else memoryview(x) for x in whole))  # type: ignore[arg-type]


def _back(before: Numbers, last: int, start: int) -> list[int]:
    """The nodes after `start` on the path to `last`."""
    path = [last]
    while (node := int(before[path[-1]]) - 1) != start:
        path.append(node)
    return path[::-1]


def _addresses(kernel: Callable[..., int], arguments: tuple[Any, ...]) -> Iterator[int]:
    """The arguments of a compiled kernel: numbers unchanged, arrays as their addresses."""
    from streamproof.explicit.kernel_compiler import WIDTHS

    for name, argument in zip(kernel.__code__.co_varnames, arguments, strict=False):
        if isinstance(argument, int):
            yield argument
        else:
            kind = kernel.__annotations__[name]
            whole = 8 * argument.itemsize == WIDTHS[kind] and argument.flags.c_contiguous
            assert whole, f"{kernel.__name__}: {name} must be {kind}, one after the other"
            yield argument.ctypes.data


@cache
def _compiled() -> Module:
    from streamproof.explicit.kernel_compiler import translate
    from streamproof.explicit.native_code import build

    kernels = (number_components, first_on_cycle, breadth_first)
    return build(translate(kernels, {}), [kernel.__name__ for kernel in kernels], optimise=True)


@dataclass(frozen=True)
class StateGraph:
    """All reachable states, numbered from 0 in the order of discovery, and all steps between them.

    The steps from state `k` have the numbers ``offsets[k]`` to ``offsets[k + 1] - 1``, in the order of the instances. All
    terms are terms of the simplified scalar system that was searched.
    """

    initial: int
    """Number of initial states; they come first."""
    offsets: npt.NDArray[np.int64]
    """Shape (states + 1,)."""
    targets: npt.NDArray[np.int32]
    """Shape (steps,): the target state of each step."""
    instances: npt.NDArray[np.integer[Any]]
    """Shape (steps,): the position in `System.instances` of the instance of each step."""
    path: Callable[[int], list[int]]
    """A shortest path from an initial state to this one: the numbers of its states, both ends included."""
    evaluate: Callable[[Sequence[Expr]], Truths]
    """Evaluates terms of one state in all states."""
    evaluate_steps: Callable[[Sequence[Expr]], Truths]
    """Evaluates terms of a state and its successor in all steps."""
    tuning: Tuning = TUNING

    @property
    def states(self) -> int:
        """Number of states."""
        return len(self.offsets) - 1

    @property
    def steps(self) -> int:
        """Number of steps, self-loops and parallel steps included."""
        return len(self.targets)

    @property
    def sources(self) -> npt.NDArray[np.int32]:
        """Per step, its source state; computed on each access."""
        return sources(self.offsets)

    @property
    def digraph(self) -> Digraph:
        """The states and steps, without their terms."""
        return Digraph(self.offsets, self.targets, self.tuning.few_edges)


def sources(offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    """Per edge, its source node."""
    import numpy as np

    return np.repeat(np.arange(len(offsets) - 1, dtype=np.int32), np.diff(offsets))
