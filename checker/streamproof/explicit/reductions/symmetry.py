"""Symmetry reduction: states that differ only by a permutation of interchangeable names are searched once.

The renamings of a system that is symmetric in its sorts (`automorphism`) form a group. Two states are in the same *orbit* if
a renaming maps one to the other; they satisfy the same properties, and their steps correspond. A search that replaces every
state by the canonical representative of its orbit visits every reachable orbit, at the same level as the full search (Emerson
and Sistla, "Symmetry and Model Checking", 1996; Ip and Dill, "Better Verification Through Symmetry", 1996). It decides
properties of states and steps; temporal properties need a full search.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import permutations, product
from operator import itemgetter
from typing import Any, TypeAlias

from streamproof.base.records import dataclass
from streamproof.explicit.reductions.images import liveness, origins
from streamproof.explicit.reductions.renaming import Renaming, with_keys
from streamproof.explicit.writer import Writer, load, local_names, shared, unpacking
from streamproof.system.model import State, System
from streamproof.system.sorts import EnumSort, Value, default

PERMUTATION_LIMIT = 5040
"""Order of the largest group whose renamings are enumerated: that of seven names."""

Canonical: TypeAlias = Callable[[State], State]
"""Returns the canonical representative of the orbit of a scalar state."""


class TooManyRenamings(Exception):
    """The group is too large to enumerate, and the states do not consist of parts per member that could be sorted."""


@dataclass(frozen=True)
class Symmetry:
    """The group of renamings of a system that is verified to be symmetric in `sorts`."""

    original: System
    system: System
    """The scalar system whose states are reduced."""
    sorts: tuple[EnumSort, ...]

    @property
    def order(self) -> int:
        """Order of the group, the identity included."""
        return math.prod(math.factorial(len(sort.members)) for sort in self.sorts)

    def renamings(self) -> Iterator[Renaming]:
        """All renamings, the identity first. Raises `TooManyRenamings` above `PERMUTATION_LIMIT`."""
        if self.order > PERMUTATION_LIMIT:
            names = " and ".join(str(len(sort.members)) for sort in self.sorts)
            raise TooManyRenamings(f"{names} names have {self.order:,} renamings, more than {PERMUTATION_LIMIT:,}")
        for chosen in product(*(permutations(sort.members) for sort in self.sorts)):
            moved = {s: dict(zip(s.members, order, strict=True)) for s, order in zip(self.sorts, chosen, strict=True)}
            yield with_keys(self.original, moved)

    @property
    def work(self) -> int:
        """Cost of one canonical representative, in evaluated terms."""
        return len(self.system.variables) * (1 if self.blocks is not None else max(1, self.order // 3))

    def prepare(self) -> None:
        """Make `canonical` ready. Raises `TooManyRenamings`."""
        _ = self.canonical

    @cached_property
    def blocks(self) -> tuple[tuple[tuple[int, ...], ...], ...] | None:
        """For each sort and each of its members, the positions of the leaves that belong to the member alone, in equal order.

        None if some leaf holds a name or belongs to several members: then sorting the parts of the members is not enough.
        """
        found: list[tuple[tuple[int, ...], ...]] = []
        taken: set[int] = set()
        for sort in self.sorts:
            first, *others = sort.members
            mine: dict[str, tuple[int, ...]] = {}
            for other in others:
                moves = self._moves(sort, first, other)
                if moves is None:
                    return None
                own = tuple(at for at, source in moves if at < source)
                mine[first] = own
                mine[other] = tuple(source for at, source in moves if at < source)
            rows = tuple(mine[member] for member in sort.members)
            flat = [at for row in rows for at in row]
            if len({len(row) for row in rows}) > 1 or len(set(flat)) < len(flat) or taken & set(flat):
                return None
            taken |= set(flat)
            found.append(rows)
        return tuple(found) if self._sortable(found) else None

    def _moves(self, sort: EnumSort, one: str, other: str) -> list[tuple[int, int]] | None:
        """The positions that an exchange moves, with their source positions; None if it renames values."""
        if any(leaf.sort in self.sorts for leaf in self.system.variables):
            return None
        names = {name: name for name in sort.members} | {one: other, other: one}
        exchange = with_keys(self.original, {sort: names})
        return [(at, source) for at, source in enumerate(origins(self.original, exchange)) if at != source]

    def _sortable(self, found: Sequence[tuple[tuple[int, ...], ...]]) -> bool:
        """Whether every exchange of two members only exchanges their rows, entry by entry."""
        for sort, rows in zip(self.sorts, found, strict=True):
            for k, one in enumerate(sort.members):
                for j in range(k):
                    expected = {*zip(rows[k], rows[j], strict=True), *zip(rows[j], rows[k], strict=True)}
                    moves = self._moves(sort, one, sort.members[j])
                    if moves is None or set(moves) != expected:
                        return False
        return True

    @cached_property
    def canonical(self) -> Canonical:
        """The function from a scalar state to the canonical representative of its orbit, which is a member of the orbit.

        Raises `TooManyRenamings`.
        """
        return _by_sorting(self) if self.blocks is not None else _by_trying(self)


_Pick: TypeAlias = Callable[[Sequence[Value]], tuple[Value, ...]]


def _pick(positions: Sequence[int]) -> _Pick:
    """A function that takes these positions out of a tuple."""
    if len(positions) > 1:
        return itemgetter(*positions)
    if not positions:
        return lambda state: ()
    at = positions[0]
    return lambda state: (state[at],)


def _by_sorting(symmetry: Symmetry) -> Canonical:
    """Canonical representatives by sorting the parts of the members."""
    assert symmetry.blocks is not None
    moving = [at for rows in symmetry.blocks for row in rows for at in row]
    staying = sorted(set(range(len(symmetry.system.variables))) - set(moving))
    now = {at: place for place, at in enumerate([*staying, *moving])}
    rest = _pick(staying)
    parts = [[_pick(row) for row in rows] for rows in symmetry.blocks]
    back = _pick([now[at] for at in range(len(now))])

    def canonical(state: State) -> State:
        flat = list(rest(state))
        for rows in parts:
            for row in sorted([take(state) for take in rows]):
                flat += row
        return back(flat)

    return canonical


def _by_trying(symmetry: Symmetry) -> Canonical:
    """Canonical representatives as the least renamed state: plain leaves are compared first, then leaves with names."""
    variables = symmetry.system.variables
    named = [at for at, leaf in enumerate(variables) if leaf.sort in symmetry.sorts]
    plain = [at for at in range(len(variables)) if at not in set(named)]
    tokens = _tokens(symmetry, named)
    trials = list(_trials(symmetry, plain, named))
    now = {at: place for place, at in enumerate([*plain, *named])}
    back = _pick([now[at] for at in range(len(now))])

    def canonical(state: State) -> State:
        held = tokens(state)
        best: tuple[Value, ...] | None = None
        best_names: tuple[Value, ...] = ()
        for plain_of, names_of, becomes in trials:
            row = plain_of(state)
            if best is None or row <= best:
                names = tuple([new[old] for new, old in zip(becomes, names_of(held), strict=True)])
                if row != best or names < best_names:
                    best, best_names = row, names
        assert best is not None
        return back(best + best_names)

    return canonical


def _trials(
    symmetry: Symmetry, plain: Sequence[int], named: Sequence[int]
) -> Iterator[tuple[_Pick, _Pick, list[dict[Value, Value]]]]:
    """Each renaming, prepared: the sources of plain leaves and of names, and the image of each name."""
    variables = symmetry.system.variables
    order = {at: k for k, at in enumerate(named)}
    for renaming in symmetry.renamings():
        found = origins(symmetry.original, renaming)
        sorts: list[Any] = [variables[at].sort for at in named]
        becomes = [{None: default(sort), **renaming[sort]} for sort in sorts]
        yield _pick([found[at] for at in plain]), _pick([order[found[at]] for at in named]), becomes


def _tokens(symmetry: Symmetry, named: Sequence[int]) -> Callable[[State], tuple[Value, ...]]:
    """A generated function that returns the names in leaves; None for a meaningless leaf."""
    variables, alive = symmetry.system.variables, liveness(symmetry.original)
    names = local_names(symmetry.system)
    writer = Writer(names)
    common = shared(alive[at] for at in named)
    with writer.block("def tokens(_state):"):
        writer.line(f"{unpacking(symmetry.system)} = _state")
        parts = []
        for at in named:
            condition = writer.term(alive[at], common)
            name = names[variables[at].name]
            parts.append(name if condition == "True" else f"{name} if {condition} else None")
        writer.line(f"return ({''.join(f'{part}, ' for part in parts)})")
    return load("tokens", symmetry.system.name, writer.source)
