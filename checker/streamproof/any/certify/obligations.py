"""The proof obligations of an induction over a parametric system, each as an SMT-LIB script that must be unsatisfiable.

Claims are proved together: initial states satisfy each state claim, and every rule preserves each, from a state that
satisfies the assumed claims; a step claim holds for every step from such a state. One claim is always included: `SAFE`,
that no evaluation error occurs and every variable has a value of its sort. Frame condition: a rule preserves the
variables that it does not write.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from streamproof.any.certify.smt_conditions import Conditions
from streamproof.any.certify.smt_script import TRUTH, Script, SmtTerm, Untranslatable, number
from streamproof.any.certify.smt_sums import Sums
from streamproof.any.certify.smt_terms import SmtView, constant
from streamproof.base.records import dataclass
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.model import Instance, Kind, Property
from streamproof.system.sorts import (
    INFINITY,
    ArraySort,
    EnumSort,
    OptionSort,
    RangeSort,
    RecordSort,
    TermRange,
    values,
)
from streamproof.transform.unbounded import BINDING, Parametric, any_length, at_most, exists, forall

ROUNDS = 3
"""Largest number of rounds of instantiation; each instantiates conditions at the witnesses of the rounds before, and at what
arrays have at these. It ends when there is nothing new."""


@dataclass(frozen=True, slots=True)
class CertifiedClaim:
    """`condition` holds in every reachable state, or for every step if `step`."""

    name: str
    condition: e.Expr
    step: bool = False


SAFE = CertifiedClaim("no evaluation error", b.TRUE)
"""No evaluation error occurs and every variable has a value of its sort; `ProofObligation` generates the condition."""


def claim_of(parametric: Parametric, prop: Property) -> CertifiedClaim:
    """The condition of a property or lemma, including that its evaluation is not an error. Raises `Untranslatable` for
    other kinds."""
    sound = [b.not_(check.condition) for check in prop.checks]
    if prop.kind is Kind.DEADLOCK:
        system = parametric.system
        going = [] if system.terminal is None else [system.terminal]
        for instance in system.instances:
            enabled = b.and_(conjunct.expr for conjunct in instance.guard)
            for parameter in parameters(instance):
                enabled = exists(parameter, enabled)
            going.append(enabled)
        return CertifiedClaim(prop.name, b.and_([b.or_(going), *sound]))
    if prop.kind not in (Kind.INVARIANT, Kind.STEP):
        raise Untranslatable(f"{prop.name} is of kind {prop.kind.value}, which has no proof for every size")
    return CertifiedClaim(prop.name, b.and_([prop.expr, *sound]), prop.kind is Kind.STEP)


def parameters(instance: Instance) -> list[e.Var]:
    """The index parameters of a rule."""
    return [value for _, value in instance.args if isinstance(value, e.Var)]


def expected(parametric: Parametric, claims: Sequence[CertifiedClaim]) -> list[tuple[CertifiedClaim, int | None]]:
    """Every obligation: a claim with the number of a rule, or None for the initial states."""
    found: list[tuple[CertifiedClaim, int | None]] = []
    for claim in claims:
        found += [] if claim.step else [(claim, None)]
        for at, instance in enumerate(parametric.system.instances):
            written = {name for name, _ in instance.updates}
            if claim is SAFE or claim.step or e.variables(claim.condition) & written:
                found.append((claim, at))
    return found


def expect_distinct_names(parametric: Parametric, claims: Sequence[CertifiedClaim]) -> None:
    """Raises `Untranslatable` for an ambiguous or undefined name in the system or the claims.

    A claim may bind the parameters of rules, which it cannot read otherwise: deadlock freedom does.
    """
    system = parametric.system
    known = {v.name: v.sort for v in system.variables} | {f.name: f.sort for f in parametric.free}
    arguments = {v.name for instance in system.instances for v in parameters(instance)}
    rules = [parametric.initial]
    for instance in system.instances:
        rules += [conjunct.expr for conjunct in instance.guard]
        rules += [check.condition for check in (*instance.guard_checks, *instance.effect_checks)]
        rules += [term for _, term in instance.updates]
    if len(known) < len(system.variables) + len(parametric.free) or known.keys() & arguments:
        raise Untranslatable("two variables or parameters have one name")
    for terms, others in [(rules, arguments), *(([claim.condition], set[str]()) for claim in claims)]:
        every = list(e.subterms(*terms))
        binding: list[Any] = [t for t in every if isinstance(t, BINDING)]
        bound = {t.bound.name for t in binding}
        if bound & (known.keys() | others):
            raise Untranslatable("an index has the name of a variable or parameter")
        for term in every:
            if isinstance(term, e.Var | e.Next) and known.get(term.name, term.sort) != term.sort:
                raise Untranslatable(f"{term.name} has another sort in a term")
            if isinstance(term, e.Var | e.Next) and term.name not in known.keys() | others | bound:
                raise Untranslatable(f"{term.name} is not a variable or parameter")


class ProofObligation:
    """One obligation: a rule (None: the initial states) cannot make `goal` false if `assumed` is true before."""

    def __init__(
        self, parametric: Parametric, goal: CertifiedClaim, rule: int | None, assumed: Sequence[CertifiedClaim]
    ) -> None:
        self.parametric, self.goal, self.assumed = parametric, goal, assumed
        self.instance = None if rule is None else parametric.system.instances[rule]
        self.script = s = Script()
        self.conditions = Conditions(s, frozenset(f.name for f in parametric.free))
        self.sums = Sums(self.conditions)
        self.arguments = [] if self.instance is None else parameters(self.instance)
        names = {v.name: constant(s, v.sort) for v in parametric.system.variables}
        names |= {f.name: constant(s, f.sort) for f in parametric.free}
        names |= {v.name: constant(s, v.sort) for v in self.arguments}
        self.before = self.after = SmtView(s, names)
        if self.instance is not None:
            changed = {name: self.before.value(term) for name, term in self.instance.updates}
            self.after = SmtView(s, {**names, **changed})
            self.before.following = self.after
        self._mention()
        known = -1
        for _ in range(ROUNDS):
            if known < len(self.conditions.indices):
                known = len(self.conditions.indices)
                self.conditions.instantiated = tuple(self.conditions.indices)
                self.parts = list(self._parts())

    @property
    def text(self) -> str:
        """The script."""
        return self.script.text(term for _, term in self.parts)

    @property
    def terms(self) -> list[str]:
        """The terms at which universal conditions are instantiated, by their names in the script."""
        return [term.text for term in self.conditions.instantiated]

    def _mention(self) -> None:
        """The instantiation terms other than witnesses: first indices, parameters, and indices read by the rule, the goal and
        the assumed claims."""
        for v in self.parametric.system.variables:
            sort: Any = v.sort
            while any_length(sort):
                self.conditions.mention(self.conditions.ends(self.before, sort.index)[0], sort.index)
                sort = sort.element
        for parameter in self.arguments:
            self.conditions.mention(self.before.scalar(parameter), parameter.sort)
        if self.instance is not None:
            checks = (*self.instance.guard_checks, *self.instance.effect_checks)
            terms = [*(c.expr for c in self.instance.guard), *(c.condition for c in checks)]
            self.conditions.mention_in(self.before, *terms, *(term for _, term in self.instance.updates))
        self.conditions.mention_in(self.before if self.goal.step else self.after, self.goal.condition)
        self.conditions.mention_in(self.before, *(claim.condition for claim in self.assumed if not claim.step))

    def _parts(self) -> Iterator[tuple[str | None, SmtTerm]]:
        """The assertions, each with the name of the claim that implies it, if any."""
        s, before, after, of = self.script, self.before, self.after, self.conditions
        for free in self.parametric.free:
            (value,) = before.names[free.name]
            yield from [] if free.least is None else [(None, s.op("<=", TRUTH, number(free.least), value))]
            yield from [] if free.most is None else [(None, s.op("<=", TRUTH, value, number(free.most)))]
        if self.instance is None:
            yield None, of.formula(before, self.parametric.initial, True, ("initial",))
        for parameter in self.arguments:
            yield None, of.in_range(before, parameter.sort, before.scalar(parameter))
        for at, claim in enumerate(self.assumed):
            condition = formed(self.parametric) if claim is SAFE else claim.condition
            yield claim.name, of.formula(before, condition, True, ("claim", at))
        yield None, self._broken()
        if self.instance is None:
            yield from ((None, axiom) for axiom in self.sums.first(before, self.parametric.initial))
        else:
            yield from ((None, axiom) for axiom in self.sums.next(before, after, self.parametric.system.index))
            yield from ((None, axiom) for axiom in self.sums.change(before, after, self.instance.updates))
        if SAFE in self.assumed:
            yield from ((SAFE.name, axiom) for axiom in self.sums.parts(before))
        yield from ((None, formula) for formula in of.tables(before, after))
        yield from ((None, formula) for formula in of.named(before, after))
        for view in dict.fromkeys((before, after)):
            yield from ((None, axiom) for axiom in self.sums.empty(view))

    def _broken(self) -> SmtTerm:
        """The goal is false initially, after the step, or for the step."""
        s, of, instance = self.script, self.conditions, self.instance
        if instance is None:
            condition = formed(self.parametric) if self.goal is SAFE else self.goal.condition
            return of.formula(self.before, condition, False, ("goal",))
        guard = b.and_(conjunct.expr for conjunct in instance.guard)
        taken = of.formula(self.before, guard, True, ("guard",))
        if self.goal is SAFE:
            early = b.or_(check.condition for check in instance.guard_checks)
            wrong = b.or_(check.condition for check in instance.effect_checks)
            leaving = of.formula(self.after, formed(self.parametric), False, ("goal",))
            broken = s.any_of([leaving, of.formula(self.before, wrong, True, ("wrong",))])
            return s.any_of([s.all_of([taken, broken]), of.formula(self.before, early, True, ("early",))])
        view = self.before if self.goal.step else self.after
        return s.all_of([taken, of.formula(view, self.goal.condition, False, ("goal",))])


def formed(parametric: Parametric) -> e.Expr:
    """Every variable has a value of its sort."""
    variables = (b.var(v.name, v.sort) for v in parametric.system.variables)
    return b.and_(limit for variable in variables for limit in limits(variable))


def limits(variable: e.Expr) -> Iterator[e.Expr]:
    """The domain conditions of a term, one for each limit of each scalar in it; comparisons are not simplified, which would
    assume the sort.

    A scalar inside an option has its limits or the option is absent, and one inside an array of unbounded length has them
    at every index.
    """
    pending: list[tuple[e.Expr, tuple[e.Expr, ...], tuple[e.Var, ...]]] = [(variable, (), ())]
    while pending:
        term, absent, indices = pending.pop()
        found: list[e.Expr] = []
        match term.sort:
            case OptionSort():
                pending.append((b.unwrap(term), (*absent, b.is_none(term)), indices))
            case RecordSort(fields):
                pending += [(b.field(term, name), absent, indices) for name, _ in fields]
            case ArraySort(index=TermRange() as index):
                at: Any = b.var(f"at'{len(indices)}", index)
                pending.append((b.select(term, at), absent, (*indices, at)))
            case ArraySort(index=index):
                pending += [(b.select(term, b.const(index, key)), absent, indices) for key in values(index)]
            case EnumSort(members) as sort:
                found = [b.or_(b.eq(term, b.const(sort, member)) for member in members)]
            case TermRange(least=least, most=most):
                found = [at_most(least, term), at_most(term, most)]
            case RangeSort(lo, hi):
                found = [] if lo == -INFINITY else [at_most(b.num(lo), term)]
                found += [] if hi == INFINITY else [at_most(term, b.num(hi))]
        for limit in found:
            claimed = b.or_([*absent, limit])
            for at in reversed(indices):
                claimed = forall(at, claimed)
            yield claimed
