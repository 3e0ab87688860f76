"""Tableau construction: from a temporal formula to an automaton with acceptance on transitions.

R. Gerth, D. Peled, M. Vardi, P. Wolper 1995, with acceptance on transitions (J.-M. Couvreur 1999). A node is a set of
formulas that must hold from the current state on. A transition reads one state of the behaviour; it has a truth table of
valuations, a target node, and the *until* formulas that it postpones. A run is accepted if it postpones no *until* from some
point on.

Conditions on one state are truth tables over the atoms: bit `v` is set if valuation `v` satisfies the condition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias, assert_never

from streamproof.base.errors import TooLarge
from streamproof.base.records import dataclass
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.formula import (
    Always,
    AndF,
    Atom,
    Eventually,
    Formula,
    Happens,
    LeadsTo,
    NotF,
    OrF,
    Recurs,
    Release,
    Until,
    claims,
    parts,
)

MOST_ATOMS = 12
"""Limit on the number of atoms (conditions on states) of one formula; each doubles the truth tables."""


@dataclass(frozen=True, slots=True)
class Now:
    """A condition on the current state."""

    table: int


@dataclass(frozen=True, slots=True)
class Both:
    """A conjunction."""

    parts: frozenset[Term]


@dataclass(frozen=True, slots=True)
class Either:
    """A disjunction."""

    parts: frozenset[Term]


@dataclass(frozen=True, slots=True)
class Strong:
    """Strong until: `right` becomes true, and `left` is true until then."""

    left: Term
    right: Term


@dataclass(frozen=True, slots=True)
class Weak:
    """Release: `right` is true up to and including the first state where `left` is; always if `left` never is."""

    left: Term
    right: Term


Term: TypeAlias = Now | Both | Either | Strong | Weak
"""A formula in negation normal form over truth tables."""

Node: TypeAlias = frozenset[Term]


@dataclass(frozen=True, slots=True)
class Transition:
    """A transition: the valuations that it reads, its target, and the *until* formulas that it postpones."""

    table: int
    to: Node
    put_off: frozenset[Strong]


@dataclass(frozen=True)
class Tableau:
    """An automaton for a formula: `moves` has all nodes reachable from `start`."""

    conditions: tuple[Expr, ...]
    """The atoms; bit `k` of a valuation is the value of atom `k`."""
    start: Node
    moves: Mapping[Node, tuple[Transition, ...]]
    promises: tuple[Strong, ...]

    @property
    def everything(self) -> int:
        """The truth table that is always true."""
        return _everything(len(self.conditions))


def tableau(formula: Formula) -> Tableau:
    """The automaton of the behaviours that satisfy `formula`. Raises `TooLarge` for too many atoms."""
    conditions = tuple(dict.fromkeys(conditions_of(formula)))
    if len(conditions) > MOST_ATOMS:
        raise TooLarge(
            f"a temporal formula with {len(conditions)} different conditions on states",
            remedy=f"at most {MOST_ATOMS} per formula; split a conjunction into several properties",
        )
    return _Expansion(conditions).run(formula)


def _everything(atoms: int) -> int:
    return (1 << (1 << atoms)) - 1


def state_term(formula: Formula) -> Expr | None:
    """The condition on one state of a formula without temporal operators; None for other formulas."""
    if isinstance(formula, Atom):
        return formula.expr
    terms = [term for part in parts(formula) if (term := state_term(part)) is not None]
    if not isinstance(formula, NotF | AndF | OrF) or len(terms) < len(parts(formula)):
        return None
    if isinstance(formula, NotF):
        return b.not_(terms[0])
    return b.and_(terms) if isinstance(formula, AndF) else b.or_(terms)


def triggers(formula: Formula) -> tuple[Expr, ...]:
    """The antecedents of a formula whose conjuncts are all *leads to* from a condition on one state; else none."""
    found: list[Expr | None] = []
    for claim in claims(formula):
        inner = claim.arg if isinstance(claim, Always) else claim
        found.append(state_term(inner.left) if isinstance(inner, LeadsTo) else None)
    return tuple(condition for condition in found if condition is not None) if None not in found else ()


def conditions_of(formula: Formula) -> Iterator[Expr]:
    """The largest conditions on single states, without their negations; constants need no atom."""
    term = state_term(formula)
    if term is None:
        for part in parts(formula):
            yield from conditions_of(part)
    else:
        term = term.arg if isinstance(term, e.Not) else term
        if not isinstance(term, e.Const):
            yield term


class _Expansion:
    def __init__(self, conditions: tuple[Expr, ...]) -> None:
        self.conditions = conditions
        self.all = _everything(len(conditions))
        self.tables = {condition: self._column(at) for at, condition in enumerate(conditions)}
        self.true, self.false = Now(self.all), Now(0)

    def _column(self, atom: int) -> int:
        return sum(1 << v for v in range(1 << len(self.conditions)) if v >> atom & 1)

    def run(self, formula: Formula) -> Tableau:
        start = self.node([self.normal(formula, True)])
        moves: dict[Node, tuple[Transition, ...]] = {}
        todo = [] if start is None else [start]
        while todo:
            node = todo.pop()
            if node not in moves:
                moves[node] = self.moves(node)
                todo += [move.to for move in moves[node]]
        promises = tuple(dict.fromkeys(p for some in moves.values() for m in some for p in m.put_off))
        return Tableau(self.conditions, frozenset([self.false]) if start is None else start, moves, promises)

    # --- normal form

    def normal(self, formula: Formula, wanted: bool) -> Term:
        """`formula`, or its negation, in normal form."""
        term = state_term(formula)
        if term is not None:
            table = self._table(term)
            return Now(table if wanted else self.all & ~table)
        match formula:
            case NotF(arg):
                return self.normal(arg, not wanted)
            case AndF(args) | OrF(args):
                join = self.both if isinstance(formula, AndF) is wanted else self.either
                return join([self.normal(arg, wanted) for arg in args])
            case Always(arg):
                return self.normal(Release(Atom(b.FALSE), arg), wanted)
            case Eventually(arg):
                return self.normal(Until(Atom(b.TRUE), arg), wanted)
            case Until(left, right) | Release(left, right):
                made = self.strong if isinstance(formula, Until) is wanted else self.weak
                return made(self.normal(left, wanted), self.normal(right, wanted))
            case LeadsTo(left, right):
                return self.normal(Always(OrF((NotF(left), Eventually(right)))), wanted)
            case Atom():
                raise AssertionError("an atom is a condition on one state")
            case Recurs() | Happens():
                raise AssertionError("conditions on steps are brought to conditions on states before")
            case _:
                assert_never(formula)

    def _table(self, term: Expr) -> int:
        if isinstance(term, e.Const):
            return self.all if term.value else 0
        if isinstance(term, e.Not):
            return self.all & ~self._table(term.arg)
        return self.tables[term]

    def both(self, terms: Iterable[Term]) -> Term:
        """Conjunction, without implied parts."""
        flat = self._flat(terms, Both)
        table = self.all
        for part in flat:
            table &= part.table if isinstance(part, Now) else self.all
        rest: set[Term] = {part for part in flat if not isinstance(part, Now)}
        lasting = {part.right for part in rest if isinstance(part, Weak) and part.left == self.false}
        rest -= {part for part in rest if part in lasting or (isinstance(part, Strong) and part.right in lasting)}
        for part in lasting:
            if isinstance(part, Now):
                if not part.table & table:
                    return self.false
                if part.table | table == table or table == self.all:
                    table = self.all
        if table == 0:
            return self.false
        return self._joined(rest, Now(table), self.true, Both)

    def either(self, terms: Iterable[Term]) -> Term:
        """Disjunction."""
        flat = self._flat(terms, Either)
        table = 0
        for part in flat:
            table |= part.table if isinstance(part, Now) else 0
        if table == self.all:
            return self.true
        rest: set[Term] = {part for part in flat if not isinstance(part, Now)}
        return self._joined(rest, Now(table), self.false, Either)

    def _flat(self, terms: Iterable[Term], kind: type[Both] | type[Either]) -> set[Term]:
        flat: set[Term] = set()
        for term in terms:
            flat |= term.parts if isinstance(term, Both | Either) and isinstance(term, kind) else {term}
        return flat

    def _joined(self, rest: set[Term], now: Now, neutral: Now, kind: type[Both] | type[Either]) -> Term:
        found = rest if now == neutral else rest | {now}
        if not found:
            return neutral
        return next(iter(found)) if len(found) == 1 else kind(frozenset(found))

    def strong(self, left: Term, right: Term) -> Term:
        """`left` until `right`; eventually, when `left` is true."""
        if right in (self.true, self.false) or left == self.false:
            return right
        if isinstance(right, Strong) and right.left == left:
            return right
        if left == self.true and self._is_again_and_again(right):
            return right
        return Strong(left, right)

    def weak(self, left: Term, right: Term) -> Term:
        """`left` releases `right`; always `right` if `left` is false."""
        if right in (self.true, self.false) or left == self.true:
            return right
        if isinstance(right, Weak) and right.left == left:
            return right
        if left == self.false:
            if isinstance(right, Both):
                return self.both(self.weak(left, part) for part in right.parts)
            if isinstance(right, Strong) and right.left == self.true and self._is_lasting(right.right):
                return right
        return Weak(left, right)

    def _is_again_and_again(self, term: Term) -> bool:
        """Whether the term is *always eventually*: if it is true at one position, it is true at all."""
        return (
            self._is_lasting(term)
            and isinstance(term, Weak)
            and isinstance(term.right, Strong)
            and (term.right.left == self.true)
        )

    def _is_lasting(self, term: Term) -> bool:
        return isinstance(term, Weak) and term.left == self.false

    # --- expansion

    def node(self, terms: Iterable[Term]) -> Node | None:
        """The node at which all of `terms` must be true; None if they are contradictory."""
        whole = self.both(terms)
        if whole == self.false:
            return None
        if whole == self.true:
            return frozenset()
        return whole.parts if isinstance(whole, Both) else frozenset([whole])

    def moves(self, node: Node) -> tuple[Transition, ...]:
        found: dict[tuple[Node, frozenset[Strong]], int] = {}
        for table, after, put_off in self._expansions(list(node), self.all, frozenset(), frozenset(), frozenset()):
            to = self.node(after)
            if to is not None and table:
                found[to, put_off] = found.get((to, put_off), 0) | table
        kept = []
        for (to, put_off), table in found.items():
            better = (t for (n, p), t in found.items() if n == to and p < put_off)
            for other in better:
                table &= ~other
            if table:
                kept.append(Transition(table, to, put_off))
        return tuple(kept)

    def _expansions(
        self, todo: list[Term], table: int, after: Node, put_off: frozenset[Strong], done: Node
    ) -> Iterator[tuple[int, Node, frozenset[Strong]]]:
        """All expansions of `todo`: truth table now, terms after this state, postponed *until* formulas."""
        if not table:
            return
        if not todo:
            yield table, after, put_off
            return
        term, rest = todo[0], todo[1:]
        if term in done:
            yield from self._expansions(rest, table, after, put_off, done)
            return
        done = done | {term}
        match term:
            case Now(own):
                yield from self._expansions(rest, table & own, after, put_off, done)
            case Both(terms):
                yield from self._expansions([*terms, *rest], table, after, put_off, done)
            case Either(terms):
                for one in terms:
                    yield from self._expansions([one, *rest], table, after, put_off, done)
            case Strong(left, right):
                yield from self._expansions([right, *rest], table, after, put_off, done)
                yield from self._expansions([left, *rest], table, after | {term}, put_off | {term}, done)
            case Weak(left, right):
                yield from self._expansions([left, right, *rest], table, after, put_off, done)
                yield from self._expansions([right, *rest], table, after | {term}, put_off, done)
            case _:
                assert_never(term)
