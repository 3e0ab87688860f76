"""Substitution of terms, simplification under assumed conditions, and bounds on integers that conditions imply.

Substitution rebuilds terms through `build`, so that new constants fold.

An engine that evaluates an instance's updates and checks only where its guard holds may simplify them under the guard:
most checks of a careful model disappear, and with them most conditionals of queues. Integer comparisons are normalised
to ``t <= k`` or its negation, with constants on the right, so that assumptions are recognised syntactically.

Most rules test a bound before a step (``require(s.credit > 0)``, then ``s.credit -= 1``): `GuardFacts` refutes such checks
while a rule is lowered, which saves every engine the same test in every state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import cast

from streamproof.base.records import replace
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.basics import offset
from streamproof.system.expr import Expr
from streamproof.system.model import Check, Conjunct, Instance, System, mapped_conjuncts
from streamproof.system.sorts import ArraySort, RangeSort, RecordSort, UnionSort, Value, is_scalar


class Substitution:
    """Simultaneously replaces every occurrence of the keys by their values; shared terms are rebuilt once."""

    def __init__(self, mapping: Mapping[Expr, Expr]) -> None:
        self._done: dict[Expr, Expr] = dict(mapping)

    def __call__(self, term: Expr) -> Expr:
        """`term` after the replacement; replacements are not substituted again."""
        done = self._done
        if term not in done:
            for part in e.unfinished(term, done):
                done[part] = self.rebuild(part)
        return done[term]

    def _rebuilt_all(self, terms: Iterable[Expr]) -> tuple[Expr, ...]:
        return tuple(self._done[t] for t in terms)

    def rebuild(self, term: Expr) -> Expr:
        """`term` from its substituted operands."""
        done = self._done
        for part in e.children(term):
            if done[part] is not part:
                break
        else:
            return term
        of, loc = done.__getitem__, term.loc
        match term:
            case e.Const() | e.Var() | e.Next():
                return term
            case e.And(args=args):
                return b.and_(self._rebuilt_all(args), loc)
            case e.Or(args=args):
                return b.or_(self._rebuilt_all(args), loc)
            case e.MakeArray(sort=sort, elements=parts):
                assert isinstance(sort, ArraySort)
                return b.make_array(sort, self._rebuilt_all(parts), loc)
            case e.MakeRecord(sort=sort, values=parts):
                assert isinstance(sort, RecordSort)
                return b.make_record(sort, self._rebuilt_all(parts), loc)
            case e.Field(record=x, name=name):
                return b.field(of(x), name, loc)
            case e.WithField(record=x, name=name, value=y):
                return b.with_field(of(x), name, of(y), loc)
            case e.MakeCase(sort=sort, case=case, payload=x):
                assert isinstance(sort, UnionSort)
                return b.make_case(sort, case, of(x), loc)
            case e.IsCase(arg=x, case=case):
                return b.is_case(of(x), case, loc)
            case e.Payload(arg=x, case=case):
                return b.payload(of(x), case, loc)
            case _:
                return b.OPERATIONS[type(term)](*map(of, e.children(term)), loc)


class _Unchanged(dict[Expr, Expr]):
    """Terms by what they become; a term that is not a key stays as it is."""

    def __missing__(self, term: Expr) -> Expr:
        return term


class CellSubstitution:
    """Replaces variables in the same terms again and again, where most replacements write a few elements of an array.

    Only terms that read one of the elements written are rebuilt: of a condition on 500 tasks, that on one of them.
    """

    def __init__(self, roots: Iterable[Expr]) -> None:
        self._terms = tuple(e.subterms(*roots))
        """Each term after its subterms."""
        self._readers: dict[Expr, dict[Value, list[int]]] = {}
        """By variable and constant index, the positions of the terms that read this element; under `_WHOLE`, those of the
        terms that read the whole variable."""

    def changed(self, mapping: Mapping[Expr, Expr]) -> Mapping[Expr, Expr]:
        """The terms that become others, by the replacement of variables; a term without an entry stays as it is."""
        affected = set[int]()
        for variable, value in mapping.items():
            readers = self._readers_of(variable)
            written = _elements(variable, value)
            for element in readers if written is None else (*written, _WHOLE):
                affected.update(readers.get(element, ()))
        change = Substitution({})
        change._done = done = _Unchanged(mapping)
        for at in sorted(affected):
            term = self._terms[at]
            if term not in done:
                done[term] = change.rebuild(term)
        return done

    def _readers_of(self, variable: Expr) -> dict[Value, list[int]]:
        known = self._readers.get(variable)
        if known is None:
            known = self._read(variable, by_element=True)
            if known is None:
                known = self._read(variable, by_element=False) or {}
            self._readers[variable] = known
        return known

    def _read(self, variable: Expr, *, by_element: bool) -> dict[Value, list[int]] | None:
        """See `_readers`; None if it is large, as of a long chain of writes under conditions."""
        known: dict[Value, list[int]] = {}
        reads: dict[Expr, frozenset[Value]] = {variable: frozenset({_WHOLE})}
        none, left = frozenset[Value](), _ENTRIES * len(self._terms)
        for at, term in enumerate(self._terms):
            if by_element and isinstance(term, e.Select) and term.array is variable and isinstance(term.index, e.Const):
                found = frozenset({term.index.value})
            else:
                found = none.union(*(reads.get(part, none) for part in e.children(term)))
            if found:
                left -= len(found)
                if left < 0 and by_element:
                    return None
                reads.setdefault(term, found)
                for element in found:
                    known.setdefault(element, []).append(at)
        return known


_WHOLE = object()
"""In place of the elements of a variable that is read as a whole."""
_ENTRIES = 16
"""Maximum number of elements by which a term is listed, on average."""


def _elements(variable: Expr, value: Expr) -> set[Value] | None:
    """The indices of the elements of an array that differ in a term for it, at most; None if they are not known."""
    found = set[Value]()
    while isinstance(value, e.Store) and isinstance(value.index, e.Const):
        found.add(value.index.value)
        value = value.array
    return found if value is variable else None


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
        self._assign(condition, b.TRUE)
        match condition:
            case e.And(args=args):
                for part in args:
                    self._note(part)
            case e.Not(arg=x):
                self._assign(x, b.FALSE)
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
                self._assign(t, value)
            case _:
                pass

    def _assign(self, term: Expr, value: Expr) -> None:
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
    return system.rewritten(partial(_instance, plain), plain, lambda checks: _checks(checks, Assuming(plain=plain)))


def _instance(plain: Assuming, instance: Instance) -> Instance:
    guard = mapped_conjuncts(instance.guard, plain)
    here = Assuming((c.expr for c in guard), plain)
    updates = [(name, here(term)) for name, term in instance.updates]
    return replace(
        instance,
        guard=guard,
        updates=tuple((name, t) for name, t in updates if not (isinstance(t, e.Var) and t.name == name)),
        guard_checks=_checks(instance.guard_checks, Assuming(plain=plain)),
        effect_checks=_checks(instance.effect_checks, here),
    )


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


Interval = tuple[int, int]


class GuardFacts:
    """Bounds and truth values implied by the learnt conditions."""

    def __init__(self) -> None:
        self._learnt: tuple[int, Expr | None] = (0, None)
        self._bounds: dict[Expr, Interval] = {}
        self._truths: dict[Expr, bool] = {}
        self._known: dict[Expr, Interval] = {}
        self._decided: dict[Expr, bool | None] = {}

    def learn(self, guards: Iterable[Conjunct], path: Expr) -> None:
        """Replaces the learnt conditions (cheap if they extend the previous ones)."""
        conditions = [g.expr for g in guards]
        if self._learnt == (len(conditions), path):
            return
        self._learnt = (len(conditions), path)
        self._bounds, self._truths = {}, {}
        self._forget()
        for condition in (*conditions, path):
            self._assume(condition, True)

    def _forget(self) -> None:
        """Clears derived facts after a new condition."""
        self._known, self._decided = {}, {}

    def refute(self, condition: Expr) -> bool:
        """Whether the facts imply that `condition` is false."""
        return self._decide(condition) is False

    def _assume(self, term: Expr, truth: bool) -> None:
        match term:
            case e.Not(arg=arg):
                self._assume(arg, not truth)
            case e.And(args=args) if truth:
                for arg in args:
                    self._assume(arg, True)
            case e.Or(args=args) if not truth:
                for arg in args:
                    self._assume(arg, False)
            case e.Less(left=a, right=c) if truth:
                self._below(a, c, 1)
            case e.Less(left=a, right=c):
                self._below(c, a, 0)
            case e.LessEq(left=a, right=c) if truth:
                self._below(a, c, 0)
            case e.LessEq(left=a, right=c):
                self._below(c, a, 1)
            case e.Eq(left=a, right=c) if truth and isinstance(a.sort, RangeSort):
                self._below(a, c, 0)
                self._below(c, a, 0)
        self._truths[term] = truth
        self._forget()

    def _below(self, low: Expr, high: Expr, gap: int) -> None:
        """Records ``low + gap <= high``."""
        (_, top), (bottom, _) = self.interval(high), self.interval(low)
        self._narrow(low, None, top - gap)
        self._narrow(high, bottom + gap, None)

    def _narrow(self, term: Expr, lo: int | None, hi: int | None) -> None:
        now = self.interval(term)
        self._bounds[term] = (now[0] if lo is None else max(lo, now[0]), now[1] if hi is None else min(hi, now[1]))
        self._forget()
        match term:
            case e.Add(left=inner, right=e.Const(value=c)) | e.Add(left=e.Const(value=c), right=inner):
                self._narrow(inner, None if lo is None else lo - c, None if hi is None else hi - c)
            case e.Sub(left=inner, right=e.Const(value=c)):
                self._narrow(inner, None if lo is None else lo + c, None if hi is None else hi + c)

    def interval(self, term: Expr) -> Interval:
        """Bounds of an integer term under the facts."""
        if term not in self._known:
            self._known[term] = self._interval(term)
        return self._known[term]

    def _interval(self, term: Expr) -> Interval:
        assert isinstance(term.sort, RangeSort)
        lo, hi = self._bounds.get(term, (term.sort.lo, term.sort.hi))
        match term:
            case e.Add(left=a, right=c):
                (al, ah), (cl, ch) = self.interval(a), self.interval(c)
                lo, hi = max(lo, al + cl), min(hi, ah + ch)
            case e.Sub(left=a, right=c):
                (al, ah), (cl, ch) = self.interval(a), self.interval(c)
                lo, hi = max(lo, al - ch), min(hi, ah - cl)
            case e.Ite(cond=cond, then=a, other=c):
                truth = self._decide(cond)
                (al, ah), (cl, ch) = self.interval(a), self.interval(c)
                if truth is None:
                    lo, hi = max(lo, min(al, cl)), min(hi, max(ah, ch))
                else:
                    lo, hi = (max(lo, al), min(hi, ah)) if truth else (max(lo, cl), min(hi, ch))
        return lo, hi

    def _decide(self, term: Expr) -> bool | None:
        """True or False if the facts imply it, else None."""
        if term not in self._decided:
            self._decided[term] = self._truths[term] if term in self._truths else self._judge(term)
        return self._decided[term]

    def _judge(self, term: Expr) -> bool | None:
        match term:
            case e.Const(value=bool() as value):
                return value
            case e.Not(arg=arg):
                inner = self._decide(arg)
                return None if inner is None else not inner
            case e.And(args=args):
                return self._connect(args, False)
            case e.Or(args=args):
                return self._connect(args, True)
            case e.Less(left=a, right=c):
                return self._compare(a, c, 1)
            case e.LessEq(left=a, right=c):
                return self._compare(a, c, 0)
            case e.Eq(left=a, right=c) if isinstance(a.sort, RangeSort) and isinstance(c.sort, RangeSort):
                (al, ah), (cl, ch) = self.interval(a), self.interval(c)
                if ah < cl or ch < al:
                    return False
                return True if al == ah == cl == ch else None
        return None

    def _connect(self, args: tuple[Expr, ...], zero: bool) -> bool | None:
        parts = [self._decide(a) for a in args]
        return zero if zero in parts else None if None in parts else not zero

    def _compare(self, low: Expr, high: Expr, gap: int) -> bool | None:
        """Whether the facts imply ``low + gap <= high``."""
        (al, ah), (cl, ch) = self.interval(low), self.interval(high)
        return True if ah + gap <= cl else False if al + gap > ch else None
