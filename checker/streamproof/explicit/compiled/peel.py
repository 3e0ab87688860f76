"""Whether a stored graph has a cycle at all: states that no step leads to are taken away, one after the other."""

from __future__ import annotations

from functools import cache

import numpy as np

from streamproof.explicit.compiled.kernel import translate
from streamproof.explicit.compiled.native import Module, build
from streamproof.explicit.compiled.words import halves_at, word, words_at
from streamproof.explicit.graph import StateGraph


def peel(offsets: word, targets: word, incoming: word, queue: word, states: word) -> word:
    """How many states can be taken away, each after all states with a step to it; all of them if there is no cycle."""
    ends = words_at(offsets)
    steps = halves_at(targets)
    left = halves_at(incoming)
    ready = halves_at(queue)
    for i in range(ends[states]):
        left[steps[i]] += 1
    last = 0
    for s in range(states):
        if left[s] == 0:
            ready[last] = s
            last += 1
    first = 0
    while first < last:
        s = ready[first]
        first += 1
        for i in range(ends[s], ends[s + 1]):
            t = steps[i]
            left[t] -= 1
            if left[t] == 0:
                ready[last] = t
                last += 1
    return last


def has_cycle(graph: StateGraph) -> bool:
    """Whether some state can be reached from itself, by a step to itself or a longer way."""
    incoming, queue = np.zeros(graph.states, dtype=np.uint32), np.zeros(graph.states, dtype=np.uint32)
    offsets, targets = np.ascontiguousarray(graph.offsets), np.ascontiguousarray(graph.targets)
    places = [array.ctypes.data for array in (offsets, targets, incoming, queue)]
    return _code().function("peel", 5)(*places, graph.states) < graph.states


@cache
def _code() -> Module:
    return build(translate([peel], {}), ["peel"], optimise=True)
