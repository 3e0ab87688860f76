"""The rule by which a ranking function proves that a condition leads to another, over arrays of any length: its claims.

A rank is a sum of terms of the state, and of sums over an index. While a behaviour waits, these claims make it decrease
again and again; `wait` are the states in which it waits, R is the rank, and some fairness constraints are *helpful*:

1. every step out of `wait` leads to `q`, or does not increase R, and the behaviour waits on;
2. in `wait`, R is not negative;
3. every step of a helpful instance out of `wait` leads to `q` or decreases R: proved of the system with these rules alone;
4. in `wait`, some instance of a helpful constraint is enabled, for some index;
5. every step out of `wait` leads to `q`, or decreases R, or leaves enabled helpful instances enabled, for every index.

"Enabled" and "step of a helpful instance" mean steps that change the state: these are what fairness is about. If `q` were
never reached, R would be constant from some step on, by 1 and 2; then an instance is enabled, by 4, and stays so, by 5; it is
taken, by weak fairness, and R decreases, by 3: a contradiction. A strong constraint implies the weak one.

A property of every index, ``all(leads_to(p[c], q[c]) for c in range(n))``, is claimed of a system with one more variable for
the index: it has any value, and no rule writes it. A constraint may then be helpful at that index alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from streamproof.base.records import dataclass, replace
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.formula import Always, Atom, Eventually, Formula, LeadsTo, NotF, OrF, atoms, claims
from streamproof.system.model import (
    Check,
    Conjunct,
    FairnessConstraint,
    Instance,
    Kind,
    Property,
    Variable,
    fairness_constraints,
    mapped_conjuncts,
)
from streamproof.system.sorts import ArraySort, RangeSort, TermRange
from streamproof.transform.assume import Substitution
from streamproof.transform.unbounded import (
    BINDING,
    Forall,
    Parametric,
    Tabulated,
    Total,
    any_length,
    at_most,
    exists,
    forall,
    tabulated,
    total,
    written,
)


@dataclass(frozen=True, slots=True)
class Waiting:
    """The states in which a behaviour waits: `region` and not `goal`; at any values of the `indices` of the property."""

    region: Expr
    goal: Expr
    indices: tuple[e.Var, ...] = ()

    @property
    def condition(self) -> Expr:
        """The condition on the state."""
        return b.and_((self.region, b.not_(self.goal)))


@dataclass(frozen=True, slots=True)
class Helpful:
    """A fairness constraint, at every index, or with some of its indices equal to indices of the property."""

    constraint: FairnessConstraint
    at: tuple[tuple[e.Var, e.Var], ...] = ()
    """Indices of the constraint, each with the index of the property that it equals."""

    @property
    def label(self) -> str:
        """As text, with the names of its indices: ``send(i)``, or ``send(i=c)`` at the index `c` of the property."""
        own, o = dict(self.at), self.constraint
        args = (
            f"{n}={_short(own[v]) if v in own else text}" if v in own or not isinstance(v, e.Var) else n
            for (n, v), text in zip(o.args, o.texts, strict=True)
        )
        branch = "" if o.branch is None else f": {o.branch}"
        return f"{o.action}({', '.join(args)}){branch}"

    def is_part_of(self, other: Helpful) -> bool:
        """Whether the other one has its instances and more."""
        return self.constraint == other.constraint and self.at != other.at and {*other.at} <= {*self.at}


@dataclass(frozen=True)
class RankRule:
    """The claims about the states in which a behaviour of `original` waits.

    `idles`: a step that changes nothing counts neither as enabled nor as helpful. Without `idles` every step counts, and the
    claims imply that helpful steps change the state.
    """

    original: Parametric
    waiting: Waiting
    idles: bool

    @property
    def parametric(self) -> Parametric:
        """The system that the claims are about: with a variable for each index of the property."""
        system, indices = self.original.system, self.waiting.indices
        variables = (*system.variables, *(Variable(v.name, v.sort, ()) for v in indices))
        ranges = (limit for v in indices for limit in _within(v))
        initial = b.and_((self.original.initial, *ranges))
        return replace(self.original, system=replace(system, variables=variables), initial=initial)

    def claims(self, rank: Expr, helpful: Sequence[Helpful]) -> Iterator[Property]:
        """The claims 1, 2, 4 and 5."""
        waiting, later = self.waiting, self._later
        not_here = b.not_(waiting.condition)
        goes_on = b.and_((at_most(later(rank), rank), later(waiting.region)))
        yield as_claim("the rank does not increase", Kind.STEP, b.or_((not_here, later(waiting.goal), goes_on)))
        yield as_claim("the rank is not negative", Kind.INVARIANT, b.or_((not_here, at_most(b.num(0), rank))))
        some = []
        for one in helpful:
            indices, enabled = self._can(one)
            for index in indices:
                enabled = exists(index, enabled)
            some.append(enabled)
        yield as_claim("a helpful action is enabled", Kind.INVARIANT, b.or_((not_here, *some)))
        for number, one in enumerate(helpful, 1):
            indices, enabled = self._can(one)
            smaller = (not_here, later(waiting.goal), self._smaller(rank))
            stays = b.or_((*smaller, b.not_(enabled), later(enabled)))
            for index in indices:
                stays = forall(index, stays)
            yield as_claim(f"{one.label} stays enabled (helpful constraint {number})", Kind.STEP, stays)

    def decreases(self, rank: Expr) -> Property:
        """Claim 3, about the system `helping`."""
        system = self.original.system
        changes = b.or_(_differ(b.next_(v.name, v.sort), b.var(v.name, v.sort)) for v in system.variables)
        idle = b.not_(changes) if self.idles else b.FALSE
        waiting = self.waiting
        claim = b.or_((b.not_(waiting.condition), self._later(waiting.goal), self._smaller(rank), idle))
        return as_claim("a helpful step decreases the rank", Kind.STEP, claim)

    def helping(self, helpful: Sequence[Helpful]) -> Parametric:
        """The system with the rules of helpful constraints alone, at their indices; without properties and lemmas."""
        parametric = self.parametric
        system = parametric.system
        chosen = dict.fromkeys((number, one.at) for one in helpful for number in one.constraint.numbers)
        rules = [_at(system.instances[number], dict(at)) for number, at in chosen]
        actions = (replace(a, instances=tuple(i for i in rules if i.action == a.name)) for a in system.actions)
        kept = tuple(a for a in actions if a.instances)
        return replace(parametric, system=replace(system, actions=kept, properties=(), lemmas=()))

    def _later(self, term: Expr) -> Expr:
        """A term about the state after a step."""
        variables = self.original.system.variables
        return _Replaced({b.var(v.name, v.sort): b.next_(v.name, v.sort) for v in variables})(term)

    def _can(self, helpful: Helpful) -> tuple[list[Expr], Expr]:
        """An instance is enabled, and changes the state: the indices other than the property's, and the condition."""
        rules = [self.original.system.instances[number] for number in helpful.constraint.numbers]
        sorts = {v.name: v.sort for v in self.original.system.variables}
        changes = (
            b.or_(_differ(t, b.var(n, sorts[n])) for n, t in rule.updates) if self.idles else b.TRUE for rule in rules
        )
        enabled = b.or_(b.and_((*(c.expr for c in rule.guard), x)) for rule, x in zip(rules, changes, strict=True))
        put: dict[Expr, Expr] = dict(helpful.at)
        for _, v in helpful.constraint.args:
            if isinstance(v, e.Var) and v not in put:
                put[v] = b.var(f"{v.name}''", v.sort)  # a name that no rule has
        return [index for v, index in put.items() if v not in dict(helpful.at)], _Replaced(put)(enabled)

    def _smaller(self, rank: Expr) -> Expr:
        return b.not_(at_most(rank, self._later(rank)))


@dataclass(frozen=True)
class RankProof:
    """A proof of one ``leads_to``. `lemmas` are names of invariants and lemmas of the system; `discovered` are the other
    invariants that it uses, by name."""

    rule: RankRule
    rank: Expr
    helpful: tuple[Helpful, ...]
    lemmas: tuple[str, ...] = ()
    discovered: tuple[tuple[str, Expr], ...] = ()
    name: str = ""
    """The quantity of the model that is the rank, if it is one."""

    @property
    def text(self) -> str:
        """The rank as it can be given, and written in an answer."""
        return self.name or written(with_names(self.rank, self.rule.waiting.indices, self.rule.original))


def helpful_constraints(parametric: Parametric, indices: Sequence[e.Var]) -> tuple[Helpful, ...]:
    """The constraints that may be helpful: the rules of each read only the state, free parameters and their own indices."""
    system = parametric.system
    known = {*system.index, *(f.name for f in parametric.free)}
    found = []
    for o in fairness_constraints(system):
        own = [v for _, v in o.args if isinstance(v, e.Var)]
        rules = [system.instances[number] for number in o.numbers]
        terms = [t for i in rules for t in (*(c.expr for c in i.guard), *(t for _, t in i.updates))]
        if _unbound(*terms) - known - {v.name for v in own}:
            continue
        places = [(None, *(index for index in indices if index.sort == v.sort)) for v in own]
        for chosen in product(*places):
            at = tuple((v, index) for v, index in zip(own, chosen, strict=True) if index is not None)
            found.append(Helpful(o, at))
    return tuple(found)


def waitings(parametric: Parametric, formula: Formula) -> Iterator[tuple[Waiting, ...]]:
    """Of each conjunct of a formula the states in which its behaviours wait: all without the goal, or those of them in which
    the condition is still true. Empty for a conjunct that is no ``leads_to`` of conditions."""
    for claim in claims(formula):
        found = waiting_for(claim)
        if found is None:
            yield ()
            continue
        p, q = found
        regions = (b.TRUE,) if p is b.TRUE else (b.TRUE, p)
        # No rule and no other property has these names, as a quantifier there has that of an index here.
        own: dict[Expr, Expr] = {v: b.var(f"{v.name}'of", v.sort) for v in indices_of(parametric, claim)}
        put = _Replaced(own)
        indices = tuple(v for v in own.values() if isinstance(v, e.Var))
        yield tuple(Waiting(put(region), put(q), indices) for region in regions)


def waiting_for(claim: Formula) -> tuple[Expr, Expr] | None:
    """`p` and `q` of a claim that `p` leads to `q`; None for any other."""
    match claim:
        case LeadsTo(left, right):
            p, q = _condition(left), _condition(right)
        case Always(Eventually(right)) | Eventually(right):
            p, q = b.TRUE, _condition(right)
        case _:
            return None
    return None if p is None or q is None else (p, q)


def _condition(formula: Formula) -> Expr | None:
    match formula:
        case Atom(expr):
            return expr
        case NotF(arg):
            inner = _condition(arg)
            return None if inner is None else b.not_(inner)
        case OrF(args):
            parts = [_condition(arg) for arg in args]
            return None if None in parts else b.or_(part for part in parts if part is not None)
        case _:
            return None


def indices_of(parametric: Parametric, formula: Formula) -> tuple[e.Var, ...]:
    """The indices that ``all(... for c in ...)`` around a formula leaves open: it is claimed for every value of them."""
    known = {*parametric.system.index, *(f.name for f in parametric.free)}
    found: dict[e.Var, None] = {}
    for atom in atoms(formula):
        open_ = _unbound(atom.expr) - known
        found |= {t: None for t in e.subterms(atom.expr) if isinstance(t, e.Var) and t.name in open_}
    return tuple(found)


def _unbound(*terms: Expr) -> frozenset[str]:
    """The names that some terms read; each index that a term binds has a name of its own."""
    binding: list[Any] = [t for t in e.subterms(*terms) if isinstance(t, BINDING)]
    return e.variables(*terms) - {t.bound.name for t in binding}


def index_names(parametric: Parametric, indices: Sequence[e.Var]) -> dict[e.Var, str]:
    """The indices of a property with names for people, which nothing else has."""
    taken = {*parametric.system.index, *(f.name for f in parametric.free)}
    names: dict[e.Var, str] = {}
    for index in indices:
        name = _short(index)
        while name in taken:
            name += "_"
        names[index] = name
        taken.add(name)
    return names


def with_names(term: Expr, indices: Sequence[e.Var], parametric: Parametric) -> Expr:
    """A term with the names for people of the indices of a property."""
    return _Replaced({index: b.var(n, index.sort) for index, n in index_names(parametric, indices).items()})(term)


def as_claim(name: str, kind: Kind, condition: Expr) -> Property:
    """A condition as a property."""
    return Property(name, kind, condition, (Conjunct(condition, name, None),))


class _Replaced(Substitution):
    """A substitution of names that no quantifier binds, also under quantifiers and sums."""

    def rebuild(self, term: Expr) -> Expr:
        """The term from its substituted operands."""
        if isinstance(term, BINDING) and isinstance(term.bound.sort, TermRange):
            ends = (term.bound.sort.least, term.bound.sort.most)
            assert all(self(end) is end for end in ends), "the language and ranks have ranges of parameters only"
        match term:
            case Forall(bound=bound, body=body):
                return forall(bound, self(body), term.loc)
            case Total(bound=bound, body=body):
                return total(bound, self(body), term.loc)
            case Tabulated(sort=ArraySort() as sort, bound=bound, body=body):
                return tabulated(sort, bound, self(body), term.loc)
            case _:
                return super().rebuild(term)


def _at(instance: Instance, at: Mapping[e.Var, e.Var]) -> Instance:
    """An instance with some of its indices equal to others."""
    places: dict[Expr, Expr] = dict(at.items())
    put = _Replaced(places)

    def checks(of: Sequence[Check]) -> tuple[Check, ...]:
        return tuple(replace(check, condition=put(check.condition)) for check in of)

    return replace(
        instance,
        args=tuple((n, _short(at[v]) if v in at else v) for n, v in instance.args),
        guard=mapped_conjuncts(instance.guard, put),
        updates=tuple((n, put(t)) for n, t in instance.updates),
        guard_checks=checks(instance.guard_checks),
        effect_checks=checks(instance.effect_checks),
    )


def _within(index: e.Var) -> Iterator[Expr]:
    sort = index.sort
    assert isinstance(sort, RangeSort)
    ends = (sort.least, sort.most) if isinstance(sort, TermRange) else (b.num(sort.lo), b.num(sort.hi))
    return iter((at_most(ends[0], index), at_most(index, ends[1])))


def _differ(one: Expr, other: Expr) -> Expr:
    """Two values of a variable are different."""
    if any_length(other.sort):
        at = b.var("at'", other.sort.index)
        return b.not_(forall(at, b.not_(_differ(b.select(one, at), b.select(other, at)))))
    return b.not_(b.eq(one, other))


def _short(index: e.Var) -> str:
    """The name of an index in the source."""
    return index.name.partition("'")[0]
