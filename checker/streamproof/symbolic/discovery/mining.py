"""Candidates from explored states: excluded values, bounds, linear equations, orders, mutual exclusions.

They hold in the explored states and may be false elsewhere. Comparisons in the rules also give candidates: the
comparisons themselves, and bounds of their differences.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, combinations

from streamproof.symbolic.discovery.linear import ONE, Number, as_term, features, form, null_space, plus
from streamproof.symbolic.discovery.samples import Samples
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.model import System
from streamproof.system.sorts import EnumSort, RangeSort

MOST_EXCLUSIONS = 3_000
"""Maximum number of mutual exclusions, in the order of the leaves."""
FEW_VALUES = 8
"""Maximum number of values of a numeric leaf that are excluded individually."""
_FIRST_ROWS = 200
"""Initial number of states for linear equations; states that refute one are added."""


def mined(samples: Samples) -> Iterator[tuple[Expr, ...]]:
    """The candidates, in groups to be tried in order, small and significant ones first."""
    yield _distinct(_bounds(samples), _equations(samples), _compared(samples))
    yield _distinct(_orders(samples), _exclusions(samples))


def _distinct(*groups: Iterator[Expr]) -> tuple[Expr, ...]:
    """The nontrivial candidates, without duplicates."""
    return tuple(c for c in dict.fromkeys(chain(*groups)) if not isinstance(c, e.Const))


def _bounds(samples: Samples) -> Iterator[Expr]:
    """Values that single leaves never have."""
    for v in samples.system.variables:
        leaf, seen = b.var(v.name, v.sort), samples.values(v.name)
        match v.sort:
            case RangeSort(lo, hi):
                if min(seen) > lo:
                    yield b.less_eq(b.num(min(seen)), leaf)
                if max(seen) < hi:
                    yield b.less_eq(leaf, b.num(max(seen)))
            case EnumSort(members):
                yield from (b.not_(b.eq(leaf, b.const(v.sort, m))) for m in members if m not in seen)
            case _:
                if len(seen) == 1:
                    yield leaf if True in seen else b.not_(leaf)


def _equations(samples: Samples) -> Iterator[Expr]:
    """The linear equations that all states satisfy."""
    places = [f for v in samples.system.variables if len(samples.values(v.name)) > 1 for f in features(v)]
    unknowns = (*places, ONE)

    def row(at: int) -> dict[Expr, Number]:
        values = {p: int(samples.column(p)[at]) for p in places}
        return {ONE: 1, **{p: value for p, value in values.items() if value}}

    rows = [row(at) for at in range(0, len(samples.states), max(1, len(samples.states) // _FIRST_ROWS))]
    while True:
        relations = null_space(rows, unknowns)
        # The first state that refutes each refuted relation.
        wrong = {int(sums.nonzero()[0][0]) for r in relations if (sums := samples.sums(r)).any()}
        if not wrong:
            for r in relations:
                yield b.eq(as_term({t: n for t, n in r.items() if t is not ONE}), b.num(-r.get(ONE, 0)))
            return
        rows += [row(at) for at in wrong]


def _compared(samples: Samples) -> Iterator[Expr]:
    """Orders and bounds for the pairs compared in guards, updates and properties."""
    for left, right in comparisons(samples.system):
        difference = plus(form(left), form(right), -1)
        if any(len(e.variables(term)) > 1 for term in difference):
            continue
        sums = samples.sums(difference)
        least, greatest = int(sums.min()), int(sums.max())
        if least == greatest:
            yield b.eq(left, b.add(right, b.num(least)))
            continue
        if greatest <= 0:
            yield b.less_eq(left, right)
        if least >= 0:
            yield b.less_eq(right, left)
        yield b.less_eq(left, b.add(right, b.num(greatest)))
        yield b.less_eq(right, b.add(left, b.num(-least)))


def comparisons(system: System) -> tuple[tuple[Expr, Expr], ...]:
    """The pairs of numbers that the rules of a scalar system compare, if they read several leaves."""
    roots = [c.expr for i in system.instances for c in i.guard]
    roots += [term for i in system.instances for _, term in i.updates]
    found = {
        (term.left, term.right): None
        for term in e.subterms(*roots)
        if isinstance(term, e.Less | e.LessEq | e.Eq)
        and isinstance(term.left.sort, RangeSort)
        and len(e.variables(term)) > 1
    }
    return tuple(found)


def _orders(samples: Samples) -> Iterator[Expr]:
    """Bounds of sums and differences of two numbers that are stricter than the bounds of the numbers imply."""
    numbers = [v for v in samples.system.variables if isinstance(v.sort, RangeSort) and len(samples.values(v.name)) > 1]
    for one, other in combinations(numbers, 2):
        x, y = b.var(one.name, one.sort), b.var(other.name, other.sort)
        xs, ys = samples.values(one.name), samples.values(other.name)
        pairs = [(i, j) for i, here in xs.items() for j, there in ys.items() if here & there]
        differences, sums = [i - j for i, j in pairs], [i + j for i, j in pairs]
        if max(differences) < max(xs) - min(ys):
            yield b.less_eq(x, b.add(y, b.num(max(differences))))
        if min(differences) > min(xs) - max(ys):
            yield b.less_eq(y, b.add(x, b.num(-min(differences))))
        if max(sums) < max(xs) + max(ys):
            yield b.less_eq(b.add(x, y), b.num(max(sums)))
        if min(sums) > min(xs) + min(ys):
            yield b.less_eq(b.num(min(sums)), b.add(x, y))


def _exclusions(samples: Samples) -> Iterator[Expr]:
    """Pairs of values of two leaves that never occur together."""
    atoms: list[tuple[str, Expr, int]] = []
    for v in samples.system.variables:
        seen = samples.values(v.name)
        if 1 < len(seen) <= FEW_VALUES or isinstance(v.sort, EnumSort):
            leaf = b.var(v.name, v.sort)
            atoms += [(v.name, b.eq(leaf, b.const(v.sort, value)), mask) for value, mask in seen.items()]
    count = 0
    for (one, left, here), (other, right, there) in combinations(atoms, 2):
        if one != other and not here & there:
            yield b.or_((b.not_(left), b.not_(right)))
            count += 1
            if count == MOST_EXCLUSIONS:
                return
