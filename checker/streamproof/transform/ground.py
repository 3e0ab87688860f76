"""Grounding of a parametric system at values of its free parameters, by substitution only.

Quantifiers and sums become conjunctions and additions over the index range, arrays of unbounded length get a length,
and every rule becomes one instance per combination of its index parameters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, product
from math import prod

from streamproof.base.errors import UsageError
from streamproof.base.records import replace
from streamproof.base.text import parameters_text
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.model import Check, Instance, Property, System, Variable, mapped_conjuncts
from streamproof.system.sorts import ArraySort, BagSort, OptionSort, RangeSort, RecordSort, Sort, TermRange, cardinality
from streamproof.transform.assume import Substitution
from streamproof.transform.unbounded import BINDING, Forall, Parametric, Tabulated, Total


class Empty(UsageError):
    """An array without elements, or a range without values: the finite system does not exist."""


class Ground(Substitution):
    """Evaluates terms of a parametric system at values of its free parameters and bound indices."""

    def __init__(self, values: Mapping[str, int], bound: Mapping[str, int] | None = None) -> None:
        super().__init__({})
        self._values, self._bound = values, dict(bound or {})
        self._known: dict[TermRange, tuple[int, int]] = {}

    def __call__(self, term: Expr) -> Expr:
        """The term at these values. Raises `Empty`."""
        done = self._done
        for part in e.unfinished(term, done, lambda t: () if isinstance(t, BINDING) else e.children(t)):
            done[part] = self._grounded(part)
        return done[term]

    def _grounded(self, term: Expr) -> Expr:
        match term:
            case e.Var(name=name):
                if name in self._bound:
                    return b.num(self._bound[name])
                return b.num(self._values[name]) if name in self._values else b.var(name, self.sort(term.sort))
            case e.Next(name=name):
                return b.next_(name, self.sort(term.sort), term.loc)
            case e.Const(sort=OptionSort(), value=None):
                return b.const(self.sort(term.sort), None, term.loc)
            case Forall(body=body):
                return b.and_((Ground(self._values, at)(body) for at in self._indices(term)), term.loc)
            case Total(body=body):
                whole: Expr = b.num(0)
                for at in self._indices(term):
                    whole = b.add(whole, Ground(self._values, at)(body), term.loc)
                return whole
            case Tabulated(sort=sort, body=body):
                own = self.sort(sort)
                assert isinstance(own, ArraySort)
                return b.make_array(own, [Ground(self._values, at)(body) for at in self._indices(term)], term.loc)
            case _:
                return self.rebuild(term)

    def _indices(self, term: Forall | Total | Tabulated) -> Iterator[dict[str, int]]:
        assert isinstance(term.bound, e.Var)
        assert isinstance(term.bound.sort, RangeSort)
        for index in self.indices(term.bound.sort):
            yield {**self._bound, term.bound.name: index}

    def indices(self, sort: RangeSort) -> range:
        """The numbers in a range; none if it is empty."""
        low, high = self._ends(sort)
        return range(low, high + 1)

    def _ends(self, sort: RangeSort) -> tuple[int, int]:
        if not isinstance(sort, TermRange):
            return sort.lo, sort.hi
        if sort not in self._known:
            ends = [Ground(self._values)(end) for end in (sort.least, sort.most)]
            low, high = (int(end.value) for end in ends if isinstance(end, e.Const))
            self._known[sort] = low, high
        return self._known[sort]

    def sort(self, sort: Sort) -> Sort:
        """A sort at these values. Raises `Empty`."""
        match sort:
            case TermRange():
                low, high = self._ends(sort)
                if low > high:
                    raise Empty(f"{sort} has no values at {parameters_text(self._values)}")
                return RangeSort(low, high)
            case BagSort():
                return sort
            case ArraySort(index, element):
                within = self.sort(index)
                assert not isinstance(within, ArraySort)
                return ArraySort(within, self.sort(element))  # type: ignore[arg-type]
            case RecordSort(fields):
                return replace(sort, fields=tuple((n, self.sort(s)) for n, s in fields))
            case OptionSort(element):
                return OptionSort(self.sort(element))
            case _:
                return sort


def ground(parametric: Parametric, values: Mapping[str, int]) -> System:
    """The finite system of `parametric` at `values`, one for each free parameter.

    Its variables have no initial values: `initially` is the initial condition. Raises `Empty` for a sort without
    values.
    """
    put = Ground(values)
    system = parametric.system

    def checks(of: tuple[Check, ...], put: Ground) -> tuple[Check, ...]:
        return tuple(Check(put(c.condition), c.message, c.loc) for c in of)

    def instance(i: Instance) -> Iterator[Instance]:
        given = [(n, v.sort if isinstance(v, e.Var) else None, v) for n, v in i.args]
        ranges = [put.indices(s) if isinstance(s, RangeSort) else [v] for _, s, v in given]
        for chosen in product(*ranges):
            bound = {v.name: at for (_, s, v), at in zip(given, chosen, strict=True) if s is not None}
            own = Ground(values, bound)
            yield replace(
                i,
                args=tuple((n, at) for (n, _, _), at in zip(given, chosen, strict=True)),
                guard=mapped_conjuncts(i.guard, own),
                updates=tuple((n, own(t)) for n, t in i.updates),
                guard_checks=checks(i.guard_checks, own),
                effect_checks=checks(i.effect_checks, own),
            )

    def prop(p: Property) -> Property:
        return replace(p, expr=put(p.expr), conjuncts=mapped_conjuncts(p.conjuncts, put), checks=checks(p.checks, put))

    return replace(
        system,
        variables=tuple(Variable(v.name, put.sort(v.sort), (), v.loc) for v in system.variables),
        actions=tuple(
            replace(a, instances=tuple(chain.from_iterable(map(instance, a.instances)))) for a in system.actions
        ),
        properties=tuple(prop(p) for p in system.properties if p.formula is None),
        lemmas=tuple(prop(p) for p in system.lemmas),
        initially=put(parametric.initial),
        terminal=None if system.terminal is None else put(system.terminal),
        parameters={**parametric.fixed, **values},
    )


class Weight:
    """An estimate of the number of terms in the system at values of the free parameters: a shared term counts once in a
    rule, and as often as the indices around it have values."""

    def __init__(self, parametric: Parametric) -> None:
        self._parametric = parametric
        self._terms: Counter[tuple[RangeSort, ...]] = Counter()
        """The number of terms inside the same ranges of indices."""
        for i in parametric.system.instances:
            terms = [*(c.expr for c in i.guard), *(t for _, t in i.updates)]
            terms += [c.condition for c in (*i.guard_checks, *i.effect_checks)]
            sorts = (v.sort for _, v in i.args if isinstance(v, e.Var))
            self._count(terms, tuple(sort for sort in sorts if isinstance(sort, RangeSort)))
        for p in (*parametric.system.properties, *parametric.system.lemmas):
            self._count([p.expr, *(c.condition for c in p.checks)], ())

    def _count(self, roots: Iterable[Expr], around: tuple[RangeSort, ...]) -> None:
        pending = [(root, around) for root in roots]
        seen = set(pending)
        while pending:
            term, ranges = pending.pop()
            self._terms[ranges] += 1
            if isinstance(term, BINDING):
                assert isinstance(term.bound.sort, RangeSort)
                ranges = (*ranges, term.bound.sort)
            new = [place for child in e.children(term) if (place := (child, ranges)) not in seen]
            seen.update(new)
            pending += dict.fromkeys(new)

    def __call__(self, values: Mapping[str, int]) -> int:
        """The size at these values."""
        put = Ground(values)
        whole = sum(n * prod(max(1, len(put.indices(r))) for r in ranges) for ranges, n in self._terms.items())
        for v in self._parametric.system.variables:
            whole += _size(v.sort, put)
            if (
                isinstance(v.sort, ArraySort) and self._parametric.firsts.get(v.name, 1) > 1
            ):  # its initial values are listed
                whole += self._parametric.firsts[v.name] ** min(len(put.indices(v.sort.index)), 30)  # type: ignore[arg-type]
        return whole


def _size(sort: Sort, put: Ground) -> int:
    match sort:
        case ArraySort(index=TermRange() as index, element=element):
            return len(put.indices(index)) * _size(element, put)
        case ArraySort(index, element):
            return cardinality(index) * _size(element, put)
        case RecordSort(fields):
            return sum(_size(s, put) for _, s in fields)
        case OptionSort(element):
            return 1 + _size(element, put)
        case _:
            return 1
