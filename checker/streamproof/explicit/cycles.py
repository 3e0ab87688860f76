"""Cycles in the graph of reachable states, found on the stored edges."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterator, Sequence

from streamproof.system.records import dataclass


@dataclass(frozen=True, slots=True)
class Graph:
    """Successor lists, one after the other: those of state `k` are `targets[starts[k]:starts[k + 1]]`."""

    starts: Sequence[int]
    targets: Sequence[int]

    @classmethod
    def parse(cls, edges: array[int], states: int) -> Graph:
        """From the successors' numbers with -1 after each state's last; states that were not expanded have none.

        Edges to states that an interrupted batch had begun to add, and that are forgotten again, are left out.
        """
        starts, targets = array("q", [0]), array("i")
        for target in edges:
            if target < 0:
                starts.append(len(targets))
            elif target < states:
                targets.append(target)
        while len(starts) <= states:
            starts.append(len(targets))
        return cls(starts, targets)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def successors(self, state: int) -> Sequence[int]:
        """The numbers of the successors, duplicates included."""
        return self.targets[self.starts[state] : self.starts[state + 1]]


def find_cycle(graph: Graph) -> list[int] | None:
    """The states of a cycle, or None when there is none.

    The cycle starts at the first state (in the order of discovery) that lies on any cycle, so the way to it is as short
    as possible, and it is the shortest one through that state.
    """
    left = _not_sorted(graph)
    on_cycles = [part for part in components(graph, left) if len(part) > 1 or part[0] in graph.successors(part[0])]
    if not on_cycles:
        return None
    component = min(on_cycles, key=min)
    return _shortest_round(graph, min(component), set(component))


def _not_sorted(graph: Graph) -> bytearray:
    """Marks the states that a topological sort cannot place: those on cycles or behind one."""
    incoming = array("i", bytes(4 * len(graph)))
    for target in graph.targets:
        incoming[target] += 1
    ready = [state for state in range(len(graph)) if not incoming[state]]
    left = bytearray(b"\x01" * len(graph))
    while ready:
        state = ready.pop()
        left[state] = 0
        for target in graph.successors(state):
            incoming[target] -= 1
            if not incoming[target]:
                ready.append(target)
    return left


def components(graph: Graph, among: bytearray) -> Iterator[list[int]]:
    """The strongly connected components of the marked states (Tarjan's algorithm, without recursion).

    Successors of marked states must be marked; a component comes after those that it leads to.
    """
    nodes, met = len(graph), 0
    # Numbers from 1 in the order of discovery; beyond all of them once a component is complete.
    order, low = [0] * nodes, [0] * nodes
    stack: list[int] = []
    for root in range(nodes):
        if not among[root] or order[root]:
            continue
        met += 1
        order[root] = low[root] = met
        stack.append(root)
        way, ahead = [root], [iter(graph.successors(root))]
        while way:
            state = way[-1]
            for target in ahead[-1]:
                seen = order[target]
                if not seen:
                    met += 1
                    order[target] = low[target] = met
                    stack.append(target)
                    way.append(target)
                    ahead.append(iter(graph.successors(target)))
                    break
                if seen < low[state]:
                    low[state] = seen
            else:
                way.pop()
                ahead.pop()
                if way:
                    low[way[-1]] = min(low[way[-1]], low[state])
                if low[state] == order[state]:
                    component: list[int] = []
                    while not component or component[-1] != state:
                        component.append(stack.pop())
                        order[component[-1]] = nodes + 1
                    yield component


def _shortest_round(graph: Graph, start: int, component: set[int]) -> list[int]:
    """The states of a shortest cycle through `start` that stays in its component, `start` first."""
    before: dict[int, int] = {}
    queue = deque([start])
    while queue:
        state = queue.popleft()
        for target in graph.successors(state):
            if target == start:
                back = [state]
                while back[-1] != start:
                    back.append(before[back[-1]])
                return back[::-1]
            if target in component and target not in before:
                before[target] = state
                queue.append(target)
    raise AssertionError("a component without a way round")
