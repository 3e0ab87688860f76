"""The automaton that is multiplied with the graph: places that read one state each, made as few as possible.

A run visits one place per state of the behaviour; a place reads the states whose valuation is in its `label`. A run is
accepted when it stays, from some point on, in one strongly connected part and meets every *mark* of that part again and
again; a visit meets a mark where the valuation is in the place's table for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from streamproof.explicit.liveness.tableau import Move, Node, Tableau
from streamproof.system.expr import Expr
from streamproof.system.records import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """One place of the automaton."""

    label: int
    """The truth table of the states that it reads."""
    initial: bool
    """Whether a run may begin here."""
    after: tuple[int, ...]
    """The places that may follow."""


@dataclass(frozen=True, slots=True)
class Part:
    """A strongly connected part of the automaton."""

    places: tuple[int, ...]
    cyclic: bool
    """Whether a run can stay in it."""
    marks: tuple[tuple[int, ...], ...] | None
    """What must be met again and again: per mark, a truth table per place. None: no run that stays here is accepted."""


@dataclass(frozen=True)
class Automaton:
    """The places and their strongly connected parts, each part before those it leads to."""

    conditions: tuple[Expr, ...]
    everything: int
    places: tuple[Place, ...]
    parts: tuple[Part, ...]

    def before(self, place: int) -> tuple[int, ...]:
        """The places that `place` may follow."""
        return tuple(k for k, p in enumerate(self.places) if place in p.after)


def automaton(table: Tableau) -> Automaton:
    """The automaton of a tableau, with a place for each pair of nodes that a move joins; like places are one."""
    steps: dict[tuple[Node, Node], list[Move]] = {}
    for node, moves in table.moves.items():
        for move in moves:
            steps.setdefault((node, move.to), []).append(move)
    pairs = list(steps)
    labels = [_union(move.table for move in steps[pair]) for pair in pairs]
    after = [{k for k, pair in enumerate(pairs) if pair[0] == own[1]} for own in pairs]
    marks = [
        [_union(m.table for m in steps[pair] if promise not in m.put_off) for promise in table.promises]
        for pair in pairs
    ]
    start = [pair[0] == table.start for pair in pairs]
    return _Reduction(table, labels, after, marks, start).run()


def _union(tables: Iterable[int]) -> int:
    whole = 0
    for one in tables:
        whole |= one
    return whole


class _Reduction:
    def __init__(
        self, table: Tableau, labels: list[int], after: list[set[int]], marks: list[list[int]], start: list[bool]
    ) -> None:
        self.table, self.labels, self.after, self.marks, self.start = table, labels, after, marks, start

    def run(self) -> Automaton:
        self._keep(self._useful())
        self._merge()
        self._fold()
        order = components(self.after)
        parts = tuple(self._part(tuple(sorted(members))) for members in order)
        places = tuple(
            Place(label, start, tuple(sorted(after)))
            for label, start, after in zip(self.labels, self.start, self.after, strict=True)
        )
        return Automaton(self.table.conditions, self.table.everything, places, parts)

    def _cyclic(self, members: Sequence[int]) -> bool:
        return len(members) > 1 or members[0] in self.after[members[0]]

    def _part(self, members: tuple[int, ...]) -> Part:
        cyclic = self._cyclic(members)
        if not cyclic:
            return Part(members, False, None)
        needed = []
        for at in range(len(self.table.promises)):
            tables = tuple(self.marks[k][at] for k in members)
            if not any(tables):
                return Part(members, True, None)
            if any(own != self.labels[k] for own, k in zip(tables, members, strict=True)):
                needed.append(tables)
        return Part(members, True, tuple(dict.fromkeys(needed)))

    def _useful(self) -> list[int]:
        """The places that can be reached, and from which a run can be accepted."""
        good = {
            k for members in components(self.after) if self._part(tuple(members)).marks is not None for k in members
        }
        backwards: list[set[int]] = [set() for _ in self.after]
        for k, following in enumerate(self.after):
            for other in following:
                backwards[other].add(k)
        forward = _closure({k for k, first in enumerate(self.start) if first}, self.after)
        return sorted(_closure(good, backwards) & forward)

    def _keep(self, kept: Sequence[int], renamed: Mapping[int, int] | None = None) -> None:
        names = {k: k for k in kept} if renamed is None else renamed
        position = {k: at for at, k in enumerate(kept)}
        after = [{position[names[o]] for o in self.after[k] if o in names and names[o] in position} for k in kept]
        begins = {names[k] for k, first in enumerate(self.start) if first and k in names}
        self.labels = [self.labels[k] for k in kept]
        self.marks = [self.marks[k] for k in kept]
        self.start = [k in begins for k in kept]
        self.after = after

    def _merge(self) -> None:
        """Places that read the same and go on alike are one (partition refinement)."""
        relevant: dict[int, tuple[object, ...]] = {}
        for members in components(self.after):
            part = self._part(tuple(sorted(members)))
            for at, k in enumerate(part.places):
                relevant[k] = (part.marks is not None, tuple(t[at] for t in part.marks or ()))
        block: list[object] = [(self.labels[k], relevant[k]) for k in range(len(self.labels))]
        while True:
            finer = [(block[k], frozenset(block[o] for o in self.after[k])) for k in range(len(block))]
            numbers: dict[object, int] = {}
            named: list[object] = [numbers.setdefault(signature, len(numbers)) for signature in finer]
            if len(numbers) == len(set(block)):
                break
            block = named
        first: dict[object, int] = {}
        renamed = {k: first.setdefault(own, k) for k, own in enumerate(block)}
        self._keep(sorted(set(renamed.values())), renamed)

    def _fold(self) -> None:
        """A place that is visited once at most gives way to a lasting one that reads the same and goes on alike."""
        while True:
            lasting = {k for members in components(self.after) if self._cyclic(tuple(members)) for k in members}
            pair = next(
                (
                    (k, o)
                    for k in range(len(self.labels))
                    if k not in lasting
                    for o in sorted(lasting)
                    if self.labels[k] == self.labels[o] and self.after[k] == self.after[o]
                ),
                None,
            )
            if pair is None:
                return
            renamed = {k: k for k in range(len(self.labels))} | {pair[0]: pair[1]}
            self._keep([k for k in range(len(self.labels)) if k != pair[0]], renamed)


def _closure(start: set[int], after: Sequence[set[int]]) -> set[int]:
    seen, todo = set(start), list(start)
    while todo:
        for other in after[todo.pop()] - seen:
            seen.add(other)
            todo.append(other)
    return seen


def components(after: Sequence[set[int]]) -> list[list[int]]:
    """The strongly connected components of a small graph, each before those it leads to."""
    reach = [_closure({k}, after) for k in range(len(after))]
    found: list[list[int]] = []
    for k in range(len(after)):
        home = next((members for members in found if members[0] in reach[k] and k in reach[members[0]]), None)
        if home is None:
            found.append([k])
        else:
            home.append(k)
    # What can be reached from a component is a proper superset of what those after it can reach.
    return sorted(found, key=lambda members: -len(reach[members[0]]))
