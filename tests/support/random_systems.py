"""Random small systems for property-based tests: every sort, every kind of property, mistakes of the model included.

``@given(systems())`` needs Hypothesis; `random_system` alone does not. A system has at most `LARGEST` combinations of
values, so the interpreter explores it in a moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from random import Random
from typing import TYPE_CHECKING, assert_never

from streamproof.base.errors import SystemFailure
from streamproof.base.records import dataclass
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.formula import (
    Always,
    AndF,
    Atom,
    Eventually,
    Formula,
    LeadsTo,
    NotF,
    OrF,
    Recurs,
    Release,
    Until,
    parts,
)
from streamproof.system.model import Action, Check, Conjunct, Fairness, Instance, Kind, Property, System, Variable
from streamproof.system.sorts import (
    BOOL,
    ArraySort,
    BagSort,
    BoolSort,
    EnumSort,
    OptionSort,
    QueueSort,
    RangeSort,
    RecordSort,
    SetSort,
    Sort,
    UnionSort,
    Value,
    bag_sort,
    cardinality,
    is_scalar,
    key_sort,
    tuple_sort,
    values,
)

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

KINDS = (Kind.INVARIANT, Kind.STEP, Kind.REACHABLE, Kind.DEADLOCK, Kind.TERMINATION)
"""The kinds of property that random systems have."""

MOST_OPERATORS = 4
"""Most temporal operators in a random formula, a leads-to and a condition on steps counting twice."""

LARGEST = 2000
"""Most combinations of variable values of a random system; a clock may multiply them by six."""


def systems() -> SearchStrategy[System]:
    """A Hypothesis strategy for random systems; raises `SystemFailure` where Hypothesis is not installed."""
    try:
        from hypothesis import strategies as st
    except ImportError:
        raise SystemFailure(
            "random systems as a strategy need Hypothesis",
            remedy="pip install hypothesis, or use random_system(Random(seed))",
        ) from None
    return st.randoms(use_true_random=False).map(random_system)


def temporal_system(random: Random, *, recurring: bool = False, bags: bool = False) -> System:
    """A very small system with temporal properties only, for referees that take their time.

    Some of its actions have picks where others have parameters. With `recurring`, some formulas speak of steps; with
    `bags`, some variables are bags.
    """
    drawing = _Draw(random, largest=24, recurring=recurring, bags=bags)
    system = drawing.system()
    actions = tuple(
        replace(a, instances=tuple(map(_picking, a.instances))) if random.randrange(3) == 0 else a
        for a in system.actions
    )
    formulas = [drawing.behaviour(3) for _ in range(3)]
    properties = tuple(
        Property(f"p{k}", Kind.TEMPORAL, b.TRUE, checks=drawing.checks_of_property(), formula=formula)
        for k, formula in enumerate(formulas)
    )
    return replace(system, actions=actions, properties=properties)


def _operators(formula: Formula) -> int:
    weights: dict[type, int] = {LeadsTo: 2, Recurs: 2, Atom: 0, NotF: 0, AndF: 0, OrF: 0}
    own = weights.get(type(formula), 1)
    return own + sum(map(_operators, parts(formula)))


def _picking(instance: Instance) -> Instance:
    return replace(instance, args=(), picks=instance.args)


def random_system(random: Random, *, bags: bool = False) -> System:
    """A system drawn with `random`: the same draws give the same system. With `bags`, some variables are bags."""
    return _Draw(random, bags=bags).system()


@dataclass(slots=True)
class _Draw:
    random: Random
    variables: tuple[Variable, ...] = ()
    timed: bool = False
    """Whether the last variable is a clock that every instance advances, so that every behaviour ends."""
    stepping: bool = False
    """Whether terms may speak of the next state."""
    largest: int = LARGEST
    """Most combinations of variable values, without the clock."""
    recurring: bool = False
    """Whether temporal formulas may say of steps that they recur."""
    bags: bool = False
    """Whether variables may be bags, or contain them."""

    def system(self) -> System:
        self.variables = self._variables()
        self.timed = self._rarely(4)
        if self.timed:
            self.variables += (Variable("clock", RangeSort(0, self.random.randint(2, 5)), (0,)),)
        actions = tuple(self._action(f"act{k}") for k in range(self.random.randint(2, 5)))
        properties = tuple(self._property(kind, k) for k, kind in enumerate(self._kinds()))
        return System(
            "random",
            self.variables,
            actions,
            properties,
            initially=self.truth(2) if self._rarely(8) else b.TRUE,
            terminal=self.truth(2) if self._rarely(2) else None,
        )

    def _rarely(self, times: int) -> bool:
        """Whether a draw with this chance succeeds: one in so many."""
        return self.random.randrange(times) == 0

    # --- declarations ---

    def _variables(self) -> tuple[Variable, ...]:
        chosen: list[Variable] = []
        size = 1
        for k in range(self.random.randint(2, 5)):
            sort = self._sort(2)
            if size * cardinality(sort) > self.largest:
                sort = BOOL
            if size * cardinality(sort) > self.largest:
                break
            size *= cardinality(sort)
            every = tuple(values(sort))
            initial = tuple(self.random.choice(every) for _ in range(self.random.choice((1, 1, 2, 3))))
            chosen.append(Variable(f"v{k}", sort, initial))
        return tuple(chosen)

    def _sort(self, depth: int) -> Sort:
        simple: tuple[Sort, ...] = (BOOL, self._range(), self._range(), EnumSort(("A", "B", "C")), EnumSort(("X",)))
        if depth == 0 or self._rarely(3):
            return self.random.choice(simple)
        inner = self._sort(depth - 1)
        while cardinality(inner) > 9:
            inner = self._sort(0)
        sort: Sort
        match self.random.randrange(9 if self.bags else 6):
            case 6 | 7 | 8:
                sort = bag_sort(inner, self.random.randint(0, 3))
            case 5:
                cases = (("P", (("f", inner),)), ("Q", ()), ("R", (("g", self._sort(0)), ("f", self._sort(0)))))
                chosen = self.random.sample(cases, self.random.randint(1, 3))
                sort = UnionSort(tuple((name, RecordSort(fields)) for name, fields in chosen))
            case 0:
                index = self.random.choice((BOOL, RangeSort(0, 1), RangeSort(-1, 1), EnumSort(("A", "B"))))
                if isinstance(index, EnumSort) and is_scalar(inner):
                    index = key_sort(((0, "a"), (1, "b")))
                sort = ArraySort(index, inner)
            case 1:
                other = self._sort(0)
                named = RecordSort((("f", inner), ("g", other)))
                sort = tuple_sort((inner, other)) if isinstance(inner, RangeSort) else named
            case 2:
                sort = inner if isinstance(inner, OptionSort) else OptionSort(inner)
            case 3:
                sort = QueueSort(inner, self.random.randint(0, 2))
            case _:
                sort = SetSort(inner if cardinality(inner) <= 4 else self._range())
        return sort if cardinality(sort) <= LARGEST else self._range()

    def _range(self) -> RangeSort:
        lo = self.random.randint(-2, 1)
        return RangeSort(lo, lo + self.random.randint(0, 3))

    def _action(self, name: str) -> Action:
        count = self.random.randint(1, 2)
        instances = tuple(self._instance(name, (("p", k),) if count > 1 else ()) for k in range(count))
        return Action(name, ("p",) if count > 1 else (), self.random.choice(tuple(Fairness)), instances)

    def _instance(self, name: str, args: tuple[tuple[str, int], ...]) -> Instance:
        guard = tuple(Conjunct(self.truth(2), f"guard {k}", None) for k in range(self.random.choice((0, 1, 1, 2))))
        updates: list[tuple[str, Expr]] = []
        checks: list[Check] = []
        clock = self.variables[-1]
        if self.timed:
            now, last = b.var(clock.name, clock.sort), b.num(cardinality(clock.sort) - 1)
            guard = (Conjunct(b.less(now, last), "before the end", None), *guard)
            updates.append((clock.name, b.add(now, b.num(1))))
        free = self.variables[:-1] if self.timed else self.variables
        for v in self.random.sample(free, self.random.randint(0, min(3, len(free)))):
            if isinstance(v.sort, RangeSort) and self._rarely(8):
                term = self.number(2)
                checks.append(Check(b.not_(b.in_domain(term, v.sort)), "out of range", None, ((v.name, term),)))
            else:
                term = self.term(v.sort, 2) if self._rarely(3) else self._moved(b.var(v.name, v.sort), v.sort)
            updates.append((v.name, term))
        wrong = b.and_((self.truth(1), self.truth(1), self.truth(2)))
        guard_checks = (Check(wrong, "guard", None),) if self._rarely(12) else ()
        return Instance(name, args, (), guard, tuple(updates), guard_checks, tuple(checks))

    def _kinds(self) -> Sequence[Kind]:
        return self.random.choices(KINDS, k=self.random.randint(1, 6))

    def _property(self, kind: Kind, number: int) -> Property:
        if kind in (Kind.DEADLOCK, Kind.TERMINATION):
            return Property(f"p{number}", kind, b.TRUE)
        self.stepping = kind is Kind.STEP
        parts = tuple(self.truth(2) for _ in range(self.random.randint(1, 2)))
        checks = self.checks_of_property()
        self.stepping = False
        expr = b.and_(parts) if kind is Kind.REACHABLE else b.or_(parts)
        return Property(f"p{number}", kind, expr, (Conjunct(expr, "all of it", None),), checks)

    def checks_of_property(self) -> tuple[Check, ...]:
        """A mistake in evaluating a property, or mostly none."""
        return (Check(b.and_((self.truth(1), self.truth(2))), "property", None),) if self._rarely(8) else ()

    def behaviour(self, depth: int) -> Formula:
        """A temporal formula with operators in it, few enough for a referee."""
        while True:
            formula = self._formula(depth)
            if 1 <= _operators(formula) <= MOST_OPERATORS:
                return formula

    def _formula(self, depth: int) -> Formula:
        if depth == 0 or self._rarely(5):
            return self._recurs() if self.recurring and self._rarely(2) else Atom(self.truth(1))
        one = self._formula(depth - 1)
        match self.random.randrange(10):
            case 0:
                return NotF(one)
            case 1:
                return AndF((one, self._formula(depth - 1)))
            case 2:
                return OrF((one, self._formula(depth - 1)))
            case 3 | 4:
                return Always(one)
            case 5 | 6:
                return Eventually(one)
            case 7:
                return Until(one, self._formula(depth - 1))
            case 8:
                return Release(one, self._formula(depth - 1))
            case _:
                return LeadsTo(one, self._formula(depth - 1))

    def _recurs(self) -> Formula:
        self.stepping = True
        step = self.truth(1)
        self.stepping = False
        return Recurs(step)

    # --- terms: every value of `term(sort)` is in the domain of `sort` ---

    def truth(self, depth: int) -> Expr:
        """A Bool term."""
        if depth == 0:
            read = self._read(BOOL)
            return self._compare(0) if read is None else read
        match self.random.randrange(7):
            case 0:
                return b.not_(self.truth(depth - 1))
            case 1:
                return b.and_(self.truth(depth - 1) for _ in range(2))
            case 2:
                return b.or_(self.truth(depth - 1) for _ in range(2))
            case 3:
                return b.ite(self.truth(depth - 1), self.truth(depth - 1), self.truth(depth - 1))
            case _:
                return self._compare(depth)

    def _compare(self, depth: int) -> Expr:
        sort = self.random.choice(self.variables).sort
        read = self._read(sort)
        left = self.term(sort, depth) if read is None else read
        below = max(0, depth - 1)
        match sort:
            case OptionSort() if self._rarely(2):
                return b.is_none(left)
            case UnionSort() if self._rarely(2):
                return b.is_case(left, self.random.choice(sort.tag.members))
            case SetSort(element) if self._rarely(2):
                return b.member(left, self.term(element, below))
            case SetSort() if self._rarely(2):
                return b.subset(left, self.term(sort, below))
            case RangeSort() if self._rarely(2):
                return self.random.choice((b.less, b.less_eq))(left, self.number(below))
            case QueueSort() if self._rarely(2):
                return b.less(self.number(below), b.length(left))
            case BagSort(index) if self._rarely(2):
                count = b.select(left, self._index(index, below))
                return b.less(self.number(below), self.random.choice((b.bag_size(left), count)))
            case _:
                return b.eq(left, self.term(sort, below))

    def number(self, depth: int) -> Expr:
        """An integer term, of any value."""
        leaf = self._read(self._range_read()) if self._rarely(2) else None
        if depth == 0 or self._rarely(4):
            return b.num(self.random.randint(-2, 3)) if leaf is None else leaf
        x, y = (self.number(depth - 1) if leaf is None else leaf), self.number(depth - 1)
        match self.random.randrange(8):
            case 0:
                return b.ite(self.truth(depth - 1), x, y)
            case 1:
                size = self._size(depth - 1)
                return b.add(x, y) if size is None else size
            case k:
                return (b.add, b.sub, b.mul, b.floor_div, b.mod, b.add)[k - 2](x, y)

    def _range_read(self) -> Sort:
        ranges = [v.sort for v in self.variables if isinstance(v.sort, RangeSort)]
        return self.random.choice(ranges) if ranges else RangeSort(0, 0)

    def _size(self, depth: int) -> Expr | None:
        sort = self.random.choice(self.variables).sort
        match sort:
            case QueueSort():
                return b.length(self.term(sort, depth))
            case SetSort():
                return b.size(self.term(sort, depth))
            case BagSort():
                return b.bag_size(self.term(sort, depth))
            case _:
                return None

    def term(self, sort: Sort, depth: int) -> Expr:
        """A term whose values are in `sort`; its own sort may be narrower."""
        if depth == 0 or self._rarely(6):
            read = self._read(sort) if self._rarely(2) else None
            return self._constant(sort) if read is None else read
        if self._rarely(5):
            return b.ite(self.truth(depth - 1), self.term(sort, depth - 1), self.term(sort, depth - 1))
        if self._rarely(3):
            found = (self._read(sort), self._part(sort, depth - 1), self._constant(sort))
            return next(t for t in found if t is not None)
        return self._made(sort, depth - 1)

    def _read(self, sort: Sort) -> Expr | None:
        same = [v.name for v in self.variables if v.sort == sort]
        if not same:
            return None
        make = b.next_ if self.stepping and self._rarely(2) else b.var
        return make(self.random.choice(same), sort)

    def _part(self, sort: Sort, depth: int) -> Expr | None:
        """A part of a composite variable that has this sort."""
        found: list[Expr] = []
        for v in self.variables:
            whole = self._read(v.sort)
            assert whole is not None
            match v.sort:
                case ArraySort(index, element) if element == sort:
                    found.append(b.select(whole, self._index(index, depth)))
                case RecordSort(fields):
                    found += [b.field(whole, name) for name, inner in fields if inner == sort]
                case UnionSort(cases):
                    read = [b.payload(whole, name) for name, _ in cases]
                    found += [
                        b.field(p, n)
                        for p, (_, own) in zip(read, cases, strict=True)
                        for n, s in own.fields
                        if s == sort
                    ]
                    found += [p for p in read if p.sort == sort]
                case OptionSort(element) if element == sort:
                    found.append(b.unwrap(whole))
                case QueueSort(element, _) if element == sort:
                    found.append(b.peek(whole, self.number(depth)))
                case _:
                    pass
        return self.random.choice(found) if found else None

    def _index(self, index: Sort, depth: int) -> Expr:
        return self.number(depth) if isinstance(index, RangeSort) else self.term(index, depth)

    def _made(self, sort: Sort, depth: int) -> Expr:
        match sort:
            case BoolSort():
                return self.truth(depth)
            case RangeSort():
                number = self.number(depth)
                return b.ite(b.in_domain(number, sort), number, self._constant(sort))
            case EnumSort():
                return self._constant(sort)
            case RecordSort(fields):
                if not fields or self._rarely(2):
                    return b.make_record(sort, (self.term(inner, depth) for _, inner in fields))
                name, inner = self.random.choice(fields)
                return b.with_field(self.term(sort, depth), name, self.term(inner, depth))
            case UnionSort(cases):
                name, own = self.random.choice(cases)
                if self._rarely(3):
                    one, other = self.term(sort, depth), self.term(sort, depth)
                    return b.ite(b.is_case(one, name), other, one)
                return b.make_case(sort, name, self.term(own, depth))
            case OptionSort(element):
                return b.some(self.term(element, depth))
            case BagSort(index, element):
                bag = self.term(sort, depth)
                if self._rarely(2):
                    parts = [self.term(element, depth) for _ in values(index)]
                    size = reduce(b.add, parts, b.num(0))
                    return b.ite(b.less_eq(size, b.num(sort.capacity)), b.make_array(sort, parts), bag)
                return self._recounted(bag, self._index(index, depth), self.term(element, depth), sort)
            case ArraySort(index, element):
                if self._rarely(2):
                    return b.make_array(sort, (self.term(element, depth) for _ in values(index)))
                return b.store(self.term(sort, depth), self._index(index, depth), self.term(element, depth))
            case QueueSort(element, _):
                line = self.term(sort, depth)
                return b.pop(line) if self._rarely(2) else b.push(line, self.term(element, depth))
            case SetSort(element):
                one, other = self.term(sort, depth), self.term(sort, depth)
                member = self.term(element, depth)
                return self.random.choice(
                    (
                        b.insert(self._widened(one, sort), member),
                        b.remove(one, member),
                        b.union(one, other),
                        b.intersection(one, other),
                        b.difference(one, other),
                    )
                )
            case _:
                assert_never(sort)

    def _widened(self, term: Expr, sort: SetSort) -> Expr:
        """The same set with the whole of `sort` for its sort, so that a member may be added."""
        return b.union(term, b.const(sort, frozenset()))

    def _recounted(self, bag: Expr, at: Expr, count: Expr, sort: BagSort) -> Expr:
        """A bag with another number of occurrences of a value, if that is within its capacity."""
        size = b.add(b.sub(b.bag_size(bag), b.select(bag, at)), count)
        return b.ite(b.less_eq(size, b.num(sort.capacity)), b.store(bag, at, count), bag)

    def _moved(self, term: Expr, sort: Sort) -> Expr:
        """A value of `sort` that lies near the one of `term`: the next number, one element more, a part that moved."""
        match sort:
            case BoolSort():
                return b.not_(term)
            case RangeSort(lo, hi):
                return b.ite(b.less(term, b.num(hi)), b.add(term, b.num(1)), b.num(lo))
            case RecordSort(fields) if fields:
                name, inner = self.random.choice(fields)
                return b.with_field(term, name, self._moved(b.field(term, name), inner))
            case UnionSort(cases):
                name, own = self.random.choice(cases)
                return b.make_case(sort, name, self._moved(b.payload(term, name), own))
            case OptionSort(element):
                none = b.const(sort, None)
                return self.random.choice((none, b.ite(b.is_none(term), b.some(self.term(element, 1)), none)))
            case BagSort(index):
                at = self._index(index, 1)
                count = b.select(term, at)
                less = b.store(term, at, b.ite(b.less(b.num(0), count), b.sub(count, b.num(1)), b.num(0)))
                return less if self._rarely(3) else self._recounted(term, at, b.add(count, b.num(1)), sort)
            case ArraySort(index, element):
                at = self._index(index, 1)
                return b.store(term, at, self._moved(b.select(term, at), element))
            case QueueSort(element, _):
                return b.pop(term) if self._rarely(3) else b.push(term, self.term(element, 1))
            case SetSort(element):
                return self.random.choice((b.insert, b.insert, b.remove))(term, self.term(element, 1))
            case _:
                return self.term(sort, 1)

    def _constant(self, sort: Sort) -> Expr:
        value: Value = self.random.choice(tuple(values(sort)))
        return b.const(self._narrowed(sort, value) if self._rarely(2) else sort, value)

    def _narrowed(self, sort: Sort, value: Value) -> Sort:
        """A narrower sort that still has `value`: ranges from it upwards, in options and queues too."""
        match sort:
            case RangeSort(_, hi):
                return RangeSort(value, hi)
            case OptionSort(RangeSort(lo, hi)):
                return OptionSort(RangeSort(min(lo + 1, hi) if value is None else value, hi))
            case QueueSort(RangeSort(_, hi), capacity) if value:
                return QueueSort(RangeSort(min(value), hi), capacity)
            case _:
                return sort
