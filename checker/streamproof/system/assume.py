"""Simplification of terms under assumed conditions.

An engine that evaluates an instance's updates and checks only where its guard holds may simplify them under the guard:
most checks of a careful model disappear, and with them most conditionals of queues. Integer comparisons are normalised
to ``t <= k`` or its negation, with constants on the right, so that assumptions are recognised syntactically.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.basics import offset
from streamproof.system.expr import Expr
from streamproof.system.formula import rewritten
from streamproof.system.model import Check, Conjunct, Instance, Property, System
from streamproof.system.records import replace
from streamproof.system.sorts import RangeSort, is_scalar
from streamproof.system.substitute import Substitution


class Assuming(Substitution):
    """Simplifies terms; the result has the same value in every state that satisfies all assumptions.

    `plain` is a simplifier without assumptions, with a cache: most subterms read no variable of the assumptions, and
    simplify to the same term with and without them.
    """

    def __init__(self, conditions: Iterable[Expr] = (), plain: Assuming | None = None) -> None:
        super().__init__({})
        self._plain = plain
        self._facts: dict[Expr, Expr] = {}
        self._bounds: dict[Expr, tuple[int, int]] = {}
        self._masks: dict[Expr, int] = {}
        """The variables that a term reads, as a bit mask."""
        self._bits: dict[tuple[type, str], int] = {}
        self._needed: set[int] = set()
        """The variables of each assumption, and of each term with known bounds, as bit masks."""
        self._concerned: dict[int, bool] = {}
        """Whether an assumption can apply during the simplification of a term with these variables, by bit mask."""
        for condition in conditions:
            self.assume(condition)

    def __call__(self, term: Expr) -> Expr:
        """`term`, simplified."""
        plain = self._plain
        if plain is None:
            return super().__call__(term)
        if not self._needed:
            return plain(term)
        plain.mask(term)
        masks, concerned, done = plain._masks, self._concerned, self._done
        stack: list[Expr | None] = [term]
        while stack:
            part = stack.pop()
            if part is None:  # its subterms were above it on the stack and are done
                part = cast(Expr, stack.pop())
                done[part] = self.rebuild(part)
            elif part not in done:
                mask = masks[part]
                if mask not in concerned:
                    # Terms created during the simplification read no additional variables.
                    concerned[mask] = any(needed & mask == needed for needed in self._needed)
                if concerned[mask]:
                    stack += (part, None)
                    stack.extend(reversed(e.children(part)))
                else:
                    done[part] = plain(part)
        return done[term]

    def mask(self, term: Expr) -> int:
        """The variables that a term reads, as a bit mask."""
        masks = self._masks
        for part in e.unfinished(term, masks):
            mask = 0
            if isinstance(part, e.Var | e.Next):
                mask = 1 << self._bits.setdefault((type(part), part.name), len(self._bits))
            for child in e.children(part):
                mask |= masks[child]
            masks[part] = mask
        return masks[term]

    def fork(self) -> Assuming:
        """A copy with the same assumptions, to be extended."""
        other = Assuming(plain=self._plain)
        other._facts, other._bounds, other._done = dict(self._facts), dict(self._bounds), dict(self._done)
        other._needed, other._concerned = set(self._needed), dict(self._concerned)
        return other

    def assume(self, condition: Expr) -> Expr:
        """Adds an assumption; returns its simplified form under the earlier ones."""
        simple = self(condition)
        self._note(simple)
        self._done = dict(self._facts)
        return simple

    def rebuild(self, term: Expr) -> Expr:
        """`term` from its simplified subterms, in normal form, and replaced by its value if the assumptions imply it."""
        match term:
            case e.LessEq(left=x, right=y):
                result = _at_most(self._done[x], self._done[y])
            case e.Less(left=x, right=y):
                result = b.not_(_at_most(self._done[y], self._done[x]))
            case e.Eq(left=x, right=y):
                result = _equal(self._done[x], self._done[y])
            case _:
                result = super().rebuild(term)
        return self._decided(result)

    def _decided(self, term: Expr) -> Expr:
        if isinstance(term, e.Not):
            return b.not_(self._decided(term.arg))
        if term in self._facts:
            return self._facts[term]
        match term:
            case e.LessEq(left=x, right=e.Const(value=k)):
                lo, hi = self._range(x)
                return b.TRUE if hi <= k else b.FALSE if lo > k else term
            case e.Eq(left=x, right=e.Const(value=k)) if isinstance(x.sort, RangeSort):
                lo, hi = self._range(x)
                return b.FALSE if not lo <= k <= hi else b.TRUE if lo == hi else term
            case _:
                return term

    def _range(self, term: Expr) -> tuple[int, int]:
        assert isinstance(term.sort, RangeSort)
        return self._bounds.get(term, (term.sort.lo, term.sort.hi))

    def _note(self, condition: Expr) -> None:
        """Records a simplified assumption and its immediate consequences."""
        if isinstance(condition, e.Const):
            return
        self._tell(condition, b.TRUE)
        match condition:
            case e.And(args=args):
                for part in args:
                    self._note(part)
            case e.Not(arg=x):
                self._tell(x, b.FALSE)
                match x:
                    case e.Or(args=args):
                        for part in args:
                            self._note(b.not_(part))
                    case e.LessEq(left=t, right=e.Const(value=k)):
                        lo, hi = self._range(t)
                        self._bound(t, max(lo, k + 1), hi)
                    case _:
                        pass
            case e.LessEq(left=t, right=e.Const(value=k)):
                lo, hi = self._range(t)
                self._bound(t, lo, min(hi, k))
            case e.Eq(left=t, right=e.Const() as value) if is_scalar(t.sort):
                self._tell(t, value)
            case _:
                pass

    def _tell(self, term: Expr, value: Expr) -> None:
        self._facts[term] = value
        self._concern(term)

    def _bound(self, term: Expr, lo: int, hi: int) -> None:
        self._bounds[term] = (lo, hi)
        self._concern(term)

    def _concern(self, term: Expr) -> None:
        """Records that something is known about `term`."""
        if self._plain is not None:
            self._needed.add(self._plain.mask(term))
            self._concerned = {}


def simplify(system: System) -> System:
    """An equivalent system with less to evaluate.

    Updates and effect checks are simplified under the instance's guard, and are meaningless elsewhere; identity updates
    and unsatisfiable checks are dropped. Guard conjuncts are simplified individually.
    """
    plain = Assuming()
    return replace(
        system,
        actions=tuple(
            replace(a, instances=tuple(_instance(system, plain, i) for i in a.instances)) for a in system.actions
        ),
        properties=tuple(_property(plain, p) for p in system.properties),
        initially=plain(system.initially),
        terminal=None if system.terminal is None else plain(system.terminal),
        lemmas=tuple(_property(plain, p) for p in system.lemmas),
    )


def _instance(system: System, plain: Assuming, instance: Instance) -> Instance:
    guard = _conjuncts(plain, instance.guard)
    here = Assuming((c.expr for c in guard), plain)
    updates = [(name, here(term)) for name, term in instance.updates]
    return replace(
        instance,
        guard=guard,
        updates=tuple((name, t) for name, t in updates if not (isinstance(t, e.Var) and t.name == name)),
        guard_checks=_checks(instance.guard_checks, Assuming(plain=plain)),
        effect_checks=_checks(instance.effect_checks, here),
    )


def _property(plain: Assuming, prop: Property) -> Property:
    return replace(
        prop,
        expr=plain(prop.expr),
        conjuncts=_conjuncts(plain, prop.conjuncts),
        checks=_checks(prop.checks, Assuming(plain=plain)),
        formula=None if prop.formula is None else rewritten(prop.formula, plain),
    )


def _conjuncts(plain: Assuming, conjuncts: Iterable[Conjunct]) -> tuple[Conjunct, ...]:
    return tuple(replace(c, expr=plain(c.expr)) for c in conjuncts)


def _checks(checks: Iterable[Check], given: Assuming) -> tuple[Check, ...]:
    simple = (replace(check, condition=_fault(check.condition, given)) for check in checks)
    return tuple(check for check in simple if check.condition is not b.FALSE)


def _fault(condition: Expr, given: Assuming) -> Expr:
    """A check's condition under `given`; each conjunct is also simplified under the earlier ones."""
    here = given.fork()
    simple = here(condition)
    return b.and_(here.assume(part) for part in simple.args) if isinstance(simple, e.And) else simple


def _at_most(left: Expr, right: Expr) -> Expr:
    """`left <= right` as ``t <= k``, its negation, or a comparison of two terms."""
    (x, m), (y, n) = offset(left), offset(right)
    if x is None and y is None:
        return b.truth(m <= n)
    if y is None:
        assert x is not None
        return b.less_eq(x, b.num(n - m))
    if x is None:
        return b.not_(b.less_eq(y, b.num(m - n - 1)))
    if x is y:
        return b.truth(m <= n)
    if n - m == -1:
        return b.not_(b.less_eq(y, x))
    return b.less_eq(x, b.add(y, b.num(n - m)))


def _equal(left: Expr, right: Expr) -> Expr:
    """`left == right`, with constants on the right for integers."""
    if not (isinstance(left.sort, RangeSort) and isinstance(right.sort, RangeSort)):
        return b.eq(left, right)
    (x, m), (y, n) = offset(left), offset(right)
    if x is None or y is None:
        term = x if y is None else y
        return b.truth(m == n) if term is None else b.eq(term, b.num(n - m if y is None else m - n))
    if x is y:
        return b.truth(m == n)
    return b.eq(x, b.add(y, b.num(n - m)))
