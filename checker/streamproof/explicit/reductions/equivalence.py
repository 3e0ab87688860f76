"""Equivalence of scalar terms in all states: by normal forms, then by case splits; exact, or undecided.

Normal forms abstract from the order of commutative operands, linear arithmetic, and conditionals on the value of one scalar.
Otherwise, the values of one variable after the other are substituted; constants fold, so that few cases remain. Above an
effort limit the equivalence is undecided (`EffortSpent`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TypeAlias

from streamproof.base.records import dataclass
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.sorts import BOOL, EnumSort, RangeSort, Value, cardinality, is_scalar, values
from streamproof.transform.assume import Assuming, Substitution

SWITCH_LIMIT = 64
"""Size of the largest sort whose conditionals are expanded value by value."""

Assignment: TypeAlias = dict[str, Value]
"""Values of some variables; names of next-state variables have a prime."""


class EffortSpent(Exception):
    """The effort limit is reached."""


@dataclass(slots=True)
class TermEffort:
    """Remaining effort: number of terms that may be visited, each once per case. Independent of the machine."""

    left: int

    def spend(self, terms: int) -> None:
        """Count visited terms. Raises `EffortSpent` above the limit."""
        self.left -= terms
        if self.left < 0:
            raise EffortSpent


THOROUGH = 1_000_000
"""Default effort for one comparison: some seconds."""


class Forms:
    """Numbers terms: two get the same number only if they have the same value in every state."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[object, ...], int] = {}
        self._shapes: list[tuple[object, ...]] = []
        self._known: dict[Expr, int] = {}

    def __call__(self, term: Expr) -> int:
        """The number of `term`."""
        if term not in self._known:
            for part in e.subterms(term):
                if part not in self._known:
                    self._known[part] = self._form(part)
        return self._known[term]

    def _number(self, *shape: object) -> int:
        if shape not in self._numbers:
            self._numbers[shape] = len(self._shapes)
            self._shapes.append(shape)
        return self._numbers[shape]

    def _form(self, term: Expr) -> int:
        of = self._known
        match term:
            case e.Const(value=value):
                return self._linear({}, value) if type(value) is int else self._number("const", type(value), value)
            case e.Var(name=name):
                return self._number("var", name)
            case e.Next(name=name):
                return self._number("next", name)
            case e.Not(arg=x):
                return self._negation(of[x])
            case e.And(args=args) | e.Or(args=args):
                return self._number(type(term), frozenset(of[x] for x in args))
            case e.Eq(left=x, right=y):
                return self._number("eq", frozenset((of[x], of[y])))
            case e.LessEq(left=x, right=y):
                return self._at_most(of[x], of[y])
            case e.Less(left=x, right=y):
                return self._negation(self._at_most(of[y], of[x]))
            case e.Add(left=x, right=y):
                return self._sum(of[x], of[y], 1)
            case e.Sub(left=x, right=y):
                return self._sum(of[x], of[y], -1)
            case e.Mul(left=x, right=y):
                return self._number("product", tuple(sorted((of[x], of[y]))))
            case e.FloorDiv(left=x, right=y) | e.Mod(left=x, right=y):
                return self._number(type(term), of[x], of[y])
            case e.Ite(cond=c, then=x, other=y):
                return self._switch(c, of[x], of[y])
            case _:
                raise AssertionError(f"{type(term).__name__} is not a scalar term")

    def _negation(self, form: int) -> int:
        shape = self._shapes[form]
        if shape[0] == "not":
            assert isinstance(shape[1], int)
            return shape[1]
        return self._number("not", form)

    def _parts(self, form: int) -> tuple[dict[int, int], int]:
        """A form as a linear sum: the coefficient of each form, and a constant."""
        shape = self._shapes[form]
        if shape[0] == "sum":
            _, items, constant = shape
            assert isinstance(items, frozenset)
            assert isinstance(constant, int)
            return dict(items), constant
        return {form: 1}, 0

    def _sum(self, left: int, right: int, sign: int) -> int:
        items, constant = self._parts(left)
        more, extra = self._parts(right)
        for form, times in more.items():
            items[form] = items.get(form, 0) + sign * times
        return self._linear(items, constant + sign * extra)

    def _linear(self, items: Mapping[int, int], constant: int) -> int:
        kept = {form: times for form, times in items.items() if times}
        if constant == 0 and list(kept.values()) == [1]:
            return next(iter(kept))
        return self._number("sum", frozenset(kept.items()), constant)

    def _at_most(self, left: int, right: int) -> int:
        return self._number("at most 0", self._sum(left, right, -1))

    def _switch(self, cond: Expr, then: int, other: int) -> int:
        if then == other:
            return then
        match cond:
            case e.Eq(left=x, right=e.Const(value=chosen)) if (
                isinstance(x.sort, EnumSort | RangeSort) and cardinality(x.sort) <= SWITCH_LIMIT
            ):
                subject, domain = self._known[x], list(values(x.sort))
            case e.Var(sort=sort) if sort == BOOL:
                subject, chosen, domain = self._known[cond], True, [True, False]
            case _:
                return self._number("if", self._known[cond], then, other)
        shape = self._shapes[other]
        table: dict[object, int] = dict.fromkeys(domain, other)
        if shape[0] == "switch" and shape[1] == subject:
            assert isinstance(shape[2], frozenset)
            table |= dict(shape[2])
        inner = self._shapes[then]
        if inner[0] == "switch" and inner[1] == subject:
            assert isinstance(inner[2], frozenset)
            then = dict(inner[2]).get(chosen, then)
        table[chosen] = then
        if len(set(table.values())) == 1:
            return next(iter(table.values()))
        return self._number("switch", subject, frozenset(table.items()))


@dataclass(slots=True)
class Equivalence:
    """Decides whether terms are equal wherever a condition holds.

    `alive` has the condition under which each leaf is meaningful; otherwise the leaf has the default of its sort.
    """

    alive: Mapping[str, Expr] = field(default_factory=dict)
    forms: Forms = field(default_factory=Forms)

    def difference(
        self, pairs: Sequence[tuple[Expr, Expr]], under: Expr = b.TRUE, effort: TermEffort | None = None
    ) -> Assignment | None:
        """Values of some variables for which `under` is true and a pair differs, or None if all pairs are equal under it.

        Raises `EffortSpent` above the limit of `effort` (default: `THOROUGH`).
        """
        left = [pair for pair in pairs if self.forms(pair[0]) != self.forms(pair[1])]
        if not left:
            return None
        under = b.and_((under, self._meaningful(*(t for pair in left for t in pair), under)))
        return self._differ(left, under, TermEffort(THOROUGH) if effort is None else effort)

    def _meaningful(self, *terms: Expr) -> Expr:
        """The condition that meaningless leaves read by `terms` have default values, as in all states."""
        facts: list[Expr] = []
        waiting = [t for t in e.subterms(*terms) if isinstance(t, e.Var | e.Next)]
        done: set[Expr] = set()
        while waiting:
            leaf = waiting.pop()
            if leaf in done:
                continue
            done.add(leaf)
            assert isinstance(leaf, e.Var | e.Next)
            alive = self.alive.get(leaf.name, b.TRUE)
            if alive is b.TRUE:
                continue
            if isinstance(leaf, e.Next):
                alive = _primed(alive)
            usual = b.const(leaf.sort, next(iter(values(leaf.sort))))
            facts.append(b.or_((alive, b.eq(leaf, usual))))
            waiting.extend(t for t in e.subterms(alive) if isinstance(t, e.Var | e.Next))
        return b.and_(facts)

    def _differ(self, pairs: Sequence[tuple[Expr, Expr]], under: Expr, effort: TermEffort) -> Assignment | None:
        size = sum(1 for _ in e.subterms(under, *(t for pair in pairs for t in pair)))
        effort.spend(size)
        if under is b.FALSE:
            return None
        here = Assuming([under])
        simple = [(here(x), here(y)) for x, y in pairs]
        open_ = [(x, y) for x, y in simple if self.forms(x) != self.forms(y)]
        if not open_:
            return None
        if under is b.TRUE and any(isinstance(x, e.Const) and isinstance(y, e.Const) for x, y in open_):
            return {}
        leaf = _split_variable(under, open_)
        effort.spend(size * cardinality(leaf.sort))
        for value in values(leaf.sort):
            put = Assuming()
            put.assume(b.eq(leaf, b.const(leaf.sort, value)))
            now = [(put(x), put(y)) for x, y in open_]
            found = self._differ(now, put(under), effort)
            if found is not None:
                return {**found, leaf.name + ("'" if isinstance(leaf, e.Next) else ""): value}
        return None


def _primed(term: Expr) -> Expr:
    return Substitution({t: b.next_(t.name, t.sort) for t in e.subterms(term) if isinstance(t, e.Var)})(term)


def _split_variable(under: Expr, pairs: Sequence[tuple[Expr, Expr]]) -> e.Var | e.Next:
    """The variable to split on: the one with the largest ratio of occurrences to values; of several, the first."""
    uses: Counter[e.Var | e.Next] = Counter()
    for term in e.subterms(under, *(t for pair in pairs for t in pair)):
        for child in e.children(term):
            if isinstance(child, e.Var | e.Next):
                uses[child] += 1
    for root in (under, *(t for pair in pairs for t in pair)):
        if isinstance(root, e.Var | e.Next):
            uses[root] += 1
    assert all(is_scalar(leaf.sort) for leaf in uses)
    return max(uses, key=lambda leaf: uses[leaf] / cardinality(leaf.sort))
