"""The small graph, made ready for the search of fair cycles: which steps take what is owed, which states satisfy what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from itertools import compress, pairwise

from streamproof.explicit.liveness.automaton import Automaton
from streamproof.explicit.small_graph import SmallGraph
from streamproof.system.model import Fairness
from streamproof.system.records import dataclass
from streamproof.system.temporal import Obligation

BITS = 8
"""Of a byte."""


@dataclass(frozen=True)
class Arena:
    """The steps, with what they are owed. Staying where one is is possible in every state, and takes nothing; so do the
    steps that change nothing.

    A set of obligations is a number whose bit `k` says whether the k-th is in it.
    """

    graph: SmallGraph
    takes: list[int]
    """Per step, the set of the obligation whose instance takes it, or the empty set."""
    offered: list[int]
    """Per state, the obligations whose instance can be taken, and that changes something."""
    obligations: tuple[Obligation, ...]
    weak: int
    """The obligations that are owed weak fairness; the others are owed strong fairness."""

    @classmethod
    def of(cls, graph: SmallGraph, obligations: tuple[Obligation, ...], instances: int) -> Arena:
        """From a graph, what is owed fairness, and the number of instances of the system."""
        owner = [0] * instances
        weak = 0
        for at, obligation in enumerate(obligations):
            weak |= (obligation.fairness is Fairness.WEAK) << at
            for number in obligation.numbers:
                owner[number] = 1 << at
        takes = [owner[instance] for instance in graph.instances]
        offered = []
        for state, (first, last) in enumerate(pairwise(graph.offsets)):
            here = 0
            for step in range(first, last):
                if graph.targets[step] == state:
                    takes[step] = 0
                here |= takes[step]
            offered.append(here)
        return cls(graph, takes, offered, obligations, weak)

    def taken(self, before: int, after: int) -> int:
        """The obligations that a step between two states takes."""
        first, last = self.graph.offsets[before], self.graph.offsets[before + 1]
        found = 0
        for step in range(first, last):
            if self.graph.targets[step] == after:
                found |= self.takes[step]
        return found


@dataclass(frozen=True)
class Labels:
    """Which states satisfy which truth tables of an automaton."""

    valuations: Sequence[int]
    """Per state, the valuation of the automaton's conditions."""
    atoms: int
    everything: int
    _known: dict[int, bytes] = field(default_factory=dict)

    @classmethod
    def of(cls, graph: SmallGraph, automaton: Automaton) -> Labels:
        """The valuation of every state."""
        rows = graph.evaluate(automaton.conditions)
        valuations: Sequence[int]
        if len(rows) <= BITS:  # a number of as many bytes as there are states has them side by side
            whole = sum(int.from_bytes(row, "little") << at for at, row in enumerate(rows))
            valuations = whole.to_bytes(graph.states, "little")
        else:
            valuations = [sum(true << at for at, true in enumerate(bits)) for bits in zip(*rows, strict=True)]
        return cls(valuations, len(rows), automaton.everything)

    def mask(self, table: int) -> bytes:
        """For each state whether it satisfies a truth table, as a byte."""
        if table not in self._known:
            column = bytes(table >> valuation & 1 for valuation in range(1 << self.atoms))
            if isinstance(self.valuations, bytes):
                self._known[table] = self.valuations.translate(column.ljust(256, b"\0"))
            else:
                self._known[table] = bytes(map(column.__getitem__, self.valuations))
        return self._known[table]


def both(mask: bytes, other: bytes) -> bytes:
    """Where both of two masks are true."""
    return (int.from_bytes(mask, "little") & int.from_bytes(other, "little")).to_bytes(len(mask), "little")


def marked(mask: Sequence[int]) -> list[int]:
    """The numbers at which a mask is true."""
    return list(compress(range(len(mask)), mask))
