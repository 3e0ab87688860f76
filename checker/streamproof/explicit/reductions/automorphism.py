"""Verification that exchanging two names is an automorphism of a system, instance by instance.

The renamed system is scalarised and simplified like the original, and both are compared: initial states, each instance with
the instance of its renamed arguments, terminal states, and the requested properties. Updates are compared only where the
instance is enabled without evaluation error, guards only where they can be evaluated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import field
from itertools import pairwise

from streamproof.base.records import dataclass
from streamproof.explicit.reductions.equivalence import THOROUGH, Assignment, EffortSpent, Equivalence, TermEffort
from streamproof.explicit.reductions.images import liveness
from streamproof.explicit.reductions.renaming import Renaming, renamed_system, symmetric_sorts, with_keys
from streamproof.system import build as b
from streamproof.system.expr import Expr, subterms
from streamproof.system.model import Check, Instance, Property, System
from streamproof.system.sorts import EnumSort
from streamproof.transform.assume import simplify
from streamproof.transform.scalarise import Scalarised, scalarise

MOST_CANDIDATES = 24
"""Limit on the candidates per instance: instances that pick the same values in another order."""


RENAMING = 15
"""Compared terms that cost as much as to rename a term of the system and to simplify it."""


class Asymmetric(Exception):
    """A system is not symmetric, or this could not be verified; the argument is the reason."""


def verify(
    scalarised: Scalarised, simple: System, properties: Collection[str], effort: TermEffort
) -> tuple[EnumSort, ...]:
    """The symmetric sorts of a system that is symmetric in all of them, properties included.

    `simple` is the simplified scalar system of `scalarised`; `effort`: the terms that all comparisons may visit. Raises
    `Asymmetric`.
    """
    sorts = symmetric_sorts(scalarised.original)
    if not sorts:
        raise Asymmetric("no variable has a symmetric sort; declare interchangeable names with Symmetric(...)")
    leaves = [leaf.name for leaf in simple.variables]
    equal = Equivalence(dict(zip(leaves, liveness(scalarised.original), strict=True)))
    for sort in sorts:
        for one, other in pairwise(sort.members):  # these exchanges generate all permutations
            names = {name: name for name in sort.members} | {one: other, other: one}
            exchange = f"exchanging {one} and {other}"
            _OrderComparison(
                scalarised.original, simple, with_keys(scalarised.original, {sort: names}), exchange, equal, effort
            ).run(properties)
    return sorts


@dataclass(slots=True)
class _OrderComparison:
    original: System
    simple: System
    renaming: Renaming
    exchange: str
    equal: Equivalence
    effort: TermEffort
    other: System = field(init=False)

    def run(self, properties: Collection[str]) -> None:
        self._spend(RENAMING * sum(1 for _ in subterms(*_terms(self.simple))))
        renamed = renamed_system(self.original, self.renaming)
        for v, w in zip(self.original.variables, renamed.variables, strict=True):
            if set(v.initial) != set(w.initial):
                raise Asymmetric(f"{self.exchange} changes the initial values of {v.name}")
        self.other = simplify(scalarise(renamed).system)
        self._same("the initial condition", [(self.simple.initially, self.other.initially)])
        self._instances()
        if self.simple.terminal is not None and self.other.terminal is not None:
            self._same("the terminal states", [(self.simple.terminal, self.other.terminal)])
        for prop in self.simple.properties:
            if prop.name in properties:
                self._property(prop, self.other.property(prop.name))

    def _spend(self, terms: int) -> None:
        try:
            self.effort.spend(terms)
        except EffortSpent:
            raise Asymmetric(f"it could not be verified that {self.exchange} preserves the system") from None

    def _property(self, prop: Property, renamed: Property) -> None:
        faults = _any(prop.checks)
        self._same(f"property {prop.name}", [(faults, _any(renamed.checks))])
        self._same(f"property {prop.name}", [(prop.expr, renamed.expr)], b.not_(faults))

    def _instances(self) -> None:
        """Match every renamed instance with an instance; then the steps of a renamed state are the renamed steps.

        An exchange may permute the picks of a rule with one pick per name, so instances with the same picks in another order
        are candidates too. A candidate with the same form comes first.
        """
        candidates: dict[tuple[object, ...], list[Instance]] = {}
        forms: dict[tuple[object, ...], Instance] = {}
        for rule in self.simple.instances:
            candidates.setdefault(_picking(rule), []).append(rule)
            forms.setdefault((_picking(rule), self._form(rule)), rule)
        for instance, renamed in zip(self.simple.instances, self.other.instances, strict=True):
            found = candidates.get(_picking(renamed), [])
            if not found:
                raise Asymmetric(
                    f"{self.exchange} would make {instance.label} into {renamed.label}, which is not a rule"
                )
            same = forms.get((_picking(renamed), self._form(renamed)))
            ordered = sorted(found, key=lambda rule: rule.picks != renamed.picks)[:MOST_CANDIDATES]
            self._any_rule(instance, ordered if same is None else [same], renamed)

    def _form(self, rule: Instance) -> tuple[object, ...]:
        """A key that is equal for two rules only if they are equivalent in every state."""
        form = self.equal.forms
        updates = dict(rule.updates)
        return (
            form(_any(rule.guard_checks)),
            form(b.and_(c.expr for c in rule.guard)),
            form(_any(rule.effect_checks)),
            *(form(updates.get(v.name, b.var(v.name, v.sort))) for v in self.simple.variables),
        )

    def _any_rule(self, instance: Instance, rules: list[Instance], renamed: Instance) -> None:
        """Check that `renamed` (from `instance`) is equivalent to one of the rules."""
        refusals: list[Asymmetric] = []
        for rule in rules:
            try:
                return self._rule(instance, rule, renamed)
            except Asymmetric as refusal:
                refusals.append(refusal)
        raise refusals[0]

    def _rule(self, instance: Instance, rule: Instance, renamed: Instance) -> None:
        """Check that `renamed` (from `instance`) is equivalent to `rule`."""
        what = f"action {instance.label}"
        if rule.label != instance.label:
            what += f": it is not equivalent to {rule.label}"
        undefined = _any(rule.guard_checks)
        self._same(what, [(undefined, _any(renamed.guard_checks))])
        guard = b.and_(c.expr for c in rule.guard)
        under = b.not_(undefined)
        self._same(what, [(guard, b.and_(c.expr for c in renamed.guard))], under)
        under = b.and_((under, guard))
        taking = _any(rule.effect_checks)
        self._same(what, [(taking, _any(renamed.effect_checks))], under)
        one, other = dict(rule.updates), dict(renamed.updates)
        pairs: list[tuple[Expr, Expr]] = []
        for v in self.simple.variables:
            if v.name in one or v.name in other:
                stays = b.var(v.name, v.sort)
                pairs.append((one.get(v.name, stays), other.get(v.name, stays)))
        self._same(what, pairs, b.and_((under, b.not_(taking))))

    def _same(self, what: str, pairs: list[tuple[Expr, Expr]], under: Expr = b.TRUE) -> None:
        share = min(THOROUGH, self.effort.left)
        spent = TermEffort(share)
        try:
            found = self.equal.difference(pairs, under, spent)
        except EffortSpent:
            self.effort.left -= share - spent.left
            raise Asymmetric(
                f"it could not be verified that {self.exchange} preserves {what.partition(': ')[0]}"
            ) from None
        self.effort.left -= share - spent.left
        if found is not None:
            raise Asymmetric(f"{self.exchange} changes {what}{_where(found)}")


def _terms(system: System) -> Iterator[Expr]:
    for rule in system.instances:
        yield from (c.expr for c in rule.guard)
        yield from (term for _, term in rule.updates)
        yield from (check.condition for check in (*rule.guard_checks, *rule.effect_checks))
    yield from (p.expr for p in system.properties)


def _where(assignment: Assignment) -> str:
    shown = ", ".join(f"{name} = {value}" for name, value in sorted(assignment.items()))
    return f" (for instance where {shown})" if shown else ""


def _any(checks: Iterable[Check]) -> Expr:
    return b.or_(check.condition for check in checks)


def _picking(instance: Instance) -> tuple[object, ...]:
    """A key of an instance without the order of its picks."""
    return (instance.action, instance.args, frozenset(Counter(value for _, value in instance.picks).items()))
