"""Candidate bounds and exclusions: simple inequalities that every sampled state satisfies."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, permutations

from streamproof.any.engine.claims import ParametricClaim
from streamproof.any.engine.laws import name_of
from streamproof.any.engine.local import Local, local
from streamproof.any.engine.samples import Instantiate, samples
from streamproof.base.records import dataclass
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.interpreter import Interpreter
from streamproof.system.sorts import INFINITY, BoolSort, EnumSort, RangeSort, TermRange, Value
from streamproof.transform.unbounded import Parametric, forall, ranges, written

MOST = 600
"""Maximum number of candidates, simpler ones first."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A leaf with its term; `key` are the indices in it: bounds relate leaves with the same key, and those without one."""

    name: str
    term: Expr
    key: tuple[str, ...]


def bound_candidates(parametric: Parametric, instantiate: Instantiate) -> list[ParametricClaim]:
    """Bounds on one and two leaves, and exclusions by control states, that all sampled states satisfy."""
    view = local(parametric)
    if view is None:
        return []
    finder = _BoundFinder(parametric, view, list(samples(parametric, view, instantiate)))
    found: dict[str, ParametricClaim] = {}
    for claim in finder.claims():
        found.setdefault(claim.name, claim)
        if len(found) == MOST:
            break
    return list(found.values())


class _BoundFinder:
    def __init__(self, parametric: Parametric, view: Local, seen: Sequence[Mapping[str, Value]]) -> None:
        self._view = view
        self._seen = seen
        free = {f.name for f in parametric.free}
        places = [_Place(n, t, _key(n, view)) for n, t in view.terms.items() if n not in free]
        self._numbers = [p for p in places if isinstance(p.term.sort, RangeSort)]
        self._modes = [(p, v) for p in places for v in _values(p.term)]
        self._limits = list(dict.fromkeys(_limits(parametric)))
        value = Interpreter(view.system).value
        self._known = [{limit: value(limit, tuple(sample.values())) for limit in self._limits} for sample in seen]

    def claims(self) -> Iterator[ParametricClaim]:
        for p in self._numbers:
            for limit in self._limits:
                if self._always(lambda s, a, p=p, limit=limit: s[p.name] <= a[limit]):
                    yield self._claim(b.less_eq(p.term, limit), f"{name_of(p.term)} <= {written(limit)}", (p,))
        for p, q in combinations(self._numbers, 2):
            if _related(p, q):
                for limit in self._limits:
                    if self._always(lambda s, a, p=p, q=q, limit=limit: s[p.name] + s[q.name] <= a[limit]):
                        text = f"{name_of(p.term)} + {name_of(q.term)} <= {written(limit)}"
                        yield self._claim(b.less_eq(b.add(p.term, q.term), limit), text, (p, q))
        for p, q in permutations(self._numbers, 2):
            if _related(p, q) and self._always(lambda s, a, p=p, q=q: s[p.name] <= s[q.name]):
                yield self._claim(b.less_eq(p.term, q.term), f"{name_of(p.term)} <= {name_of(q.term)}", (p, q))
        for mode, value in self._modes:
            there = b.eq(mode.term, b.const(mode.term.sort, value))
            for p in self._numbers:
                if not _related(mode, p) or not self._sometimes(mode, value):
                    continue
                if self._always(lambda s, a, p=p, m=mode, v=value: s[m.name] != v or s[p.name] == 0):
                    text = f"{name_of(there)} implies {name_of(p.term)} = 0"
                    yield self._claim(b.implies(there, b.eq(p.term, b.num(0))), text, (mode, p))
        for (one, x), (other, y) in combinations(self._modes, 2):
            if one is other or not _related(one, other):
                continue
            apart = self._always(lambda s, a, m=one, n=other, x=x, y=y: s[m.name] != x or s[n.name] != y)
            if apart and self._sometimes(one, x) and self._sometimes(other, y):
                first, second = (b.eq(p.term, b.const(p.term.sort, v)) for p, v in ((one, x), (other, y)))
                text = f"not both {name_of(first)} and {name_of(second)}"
                yield self._claim(b.not_(b.and_((first, second))), text, (one, other))

    def _always(self, condition: Callable[..., bool]) -> bool:
        return bool(self._seen) and all(map(condition, self._seen, self._known))

    def _sometimes(self, mode: _Place, value: Value) -> bool:
        return any(sample[mode.name] == value for sample in self._seen)

    def _claim(self, condition: Expr, text: str, places: Iterable[_Place]) -> ParametricClaim:
        for p in places:
            if p.name in self._view.index:
                return ParametricClaim(f"for all c: {text}", forall(self._view.index[p.name], condition), found=True)
        return ParametricClaim(text, condition, found=True)


def _limits(parametric: Parametric) -> Iterator[Expr]:
    """Terms over the parameters that bounds may use: parameters, and the ends of declared ranges."""
    for f in parametric.free:
        yield b.var(f.name, f.sort)
    for v in parametric.system.variables:
        for sort in ranges(v.sort):
            if isinstance(sort, TermRange):
                yield sort.most
            elif sort.hi < INFINITY:
                yield b.num(sort.hi)


def _key(name: str, view: Local) -> tuple[str, ...]:
    return (*re.findall(r"\[.*?\]", name), *(["for all"] if name in view.index else []))


def _related(one: _Place, other: _Place) -> bool:
    return not one.key or not other.key or one.key == other.key


def _values(term: Expr) -> tuple[Value, ...]:
    match term.sort:
        case BoolSort():
            return (True, False)
        case EnumSort(members):
            return members
        case _:
            return ()
