"""The reader of what a machine states about its states, steps and behaviours: properties, values, measures."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Sequence
from typing import Any

from streamproof.language.lift import as_any_term
from streamproof.language.lowering import Lowering
from streamproof.language.lowering_context import Context, OutsideCalls
from streamproof.language.model import Model
from streamproof.language.mutation_guard import MutationGuard
from streamproof.language.primitives import PropertyMark
from streamproof.language.sources import parameters, place
from streamproof.language.terms import ScopeNames, StateRef, describe, is_expr
from streamproof.system import build as b
from streamproof.system.errors import Loc, ModelError
from streamproof.system.expr import Expr
from streamproof.system.model import Check, Conjunct, Derived, Instance, Kind, Property
from streamproof.system.sorts import RangeSort, Sort
from streamproof.system.verdict import Measure


class PropertyReader:
    """Lowers functions of the state of one machine. `rules` gives the instances of a rule, for `enabled`."""

    def __init__(
        self,
        model: Model,
        sorts: dict[str, Sort],
        names: ScopeNames | None,
        free: frozenset[str],
        outside: OutsideCalls,
        rules: Callable[[types.MethodType, StateRef, Loc], Sequence[Instance]],
    ) -> None:
        self.model, self.sorts, self.names, self.free, self.outside, self.rules = (
            model,
            sorts,
            names,
            free,
            outside,
            rules,
        )

    def property(self, name: str, mark: PropertyMark, function: Callable[..., Any]) -> Property:
        """A property, or a lemma. Raises `ModelError`."""
        if mark.kind is Kind.TEMPORAL:
            return self._temporal(name, function)
        expr, parts, checks = self.predicate(function, 2 if mark.kind is Kind.STEP else 1)
        return Property(name, mark.kind, expr, parts, checks, place(function), inspect.getdoc(function) or "")

    def _temporal(self, name: str, function: Callable[..., Any]) -> Property:
        got = parameters(function)
        if len(got) != 2:
            raise ModelError(
                f"{name}({', '.join(got)}) is a temporal property",
                loc=place(function),
                remedy=f"write def {name}(self, s): there is no next state in it",
            )
        context = Context(
            sorts=self.sorts,
            state={n: b.var(n, s) for n, s in self.sorts.items()},
            label=f"{name}()",
            in_action=False,
            temporal=True,
            free=self.free,
            outside=self.outside,
            rules=self.rules,
        )
        formula = Lowering(context).behaviour(function, [self.model, StateRef(names=self.names)])
        checks = tuple(p.check for p in context.checks)
        doc = inspect.getdoc(function) or ""
        return Property(name, Kind.TEMPORAL, b.TRUE, (), checks, place(function), doc, formula)

    def predicate(
        self, function: Callable[..., Any], states: int
    ) -> tuple[Expr, tuple[Conjunct, ...], tuple[Check, ...]]:
        """A condition on one state, or on the two of a step: its term, conjuncts and checks. Raises `ModelError`."""
        name = function.__name__
        got = parameters(function)
        if len(got) != 1 + states:
            shape = "(self, s)" if states == 1 else "(self, s, t)"
            kind = "a condition on states" if states == 1 else "a condition on steps"
            raise ModelError(
                f"{name}({', '.join(got)}) is {kind}", loc=place(function), remedy=f"write def {name}{shape}"
            )
        args: list[Any] = [self.model, StateRef(names=self.names), StateRef(True, self.names)][: 1 + states]
        outside = OutsideCalls()
        found = self.condition(function, args, outside)
        if outside.impure:
            self.outside.impure = True
            if self.condition(function, args, outside) != found:
                raise ModelError(
                    f"{name} is not deterministic: two evaluations gave different results",
                    loc=place(function),
                    remedy="a property must be a function of the state",
                )
        return found

    def condition(
        self, function: Callable[..., Any], args: list[Any], outside: OutsideCalls
    ) -> tuple[Expr, tuple[Conjunct, ...], tuple[Check, ...]]:
        """The condition that a function returns for these arguments; `outside` records its calls into ordinary Python."""
        context = Context(
            sorts=self.sorts,
            state={n: b.var(n, s) for n, s in self.sorts.items()},
            label=f"{function.__name__}()",
            in_action=False,
            free=self.free,
            outside=outside,
            rules=self.rules,
        )
        expr, parts = Lowering(context).predicate(function, args)
        return expr, parts, tuple(p.check for p in context.checks)

    def derived(self, name: str, function: types.FunctionType) -> Derived:
        """A value of each state."""
        got = parameters(function)
        if len(got) != 2:
            raise ModelError(
                f"{name}({', '.join(got)}) is a value of every state",
                loc=place(function),
                remedy=f"write def {name}(self, s)",
            )
        context = Context(
            sorts=self.sorts,
            state={n: b.var(n, s) for n, s in self.sorts.items()},
            label=f"{name}()",
            in_action=False,
            outside=self.outside,
            rules=self.rules,
        )
        value, loc = Lowering(context).returned(function, [self.model, StateRef(names=self.names)])
        expr = as_any_term(value, loc)
        if expr is None:
            raise ModelError(
                f"{name}() returns {describe(value)}",
                loc=loc,
                remedy="return a number, a truth value, a name, or a part of the state",
            )
        doc = inspect.getdoc(function) or ""
        return Derived(name, expr, tuple(p.check for p in context.checks), place(function), doc)

    def measure(self, name: str, function: Callable[..., Any], unchanged: MutationGuard) -> Measure | None:
        """A quantity; None if it is None in every state. `unchanged` guards what ordinary Python code could mutate."""
        got = list(inspect.signature(function, follow_wrapped=False).parameters)
        if len(got) != 2:
            raise ModelError(
                f"{name}({', '.join(got)}) is a number for every state",
                loc=place(function),
                remedy=f"write def {name}(self, s)",
            )
        state = {n: b.var(n, s) for n, s in self.sorts.items()}
        context = Context(sorts=self.sorts, state=state, label=f"{name}()", in_action=False)
        value, loc = Lowering(context).returned(function, [self.model, StateRef(names=self.names)])
        if context.outside.impure:
            unchanged.check(function)
        if value is None:
            return None
        if isinstance(value, int) and not isinstance(value, bool):
            value = b.num(value)
        if not is_expr(value) or not isinstance(value.sort, RangeSort):
            raise ModelError(
                f"{name}() returns {describe(value)}",
                loc=loc,
                remedy="return an integer: len(s.queue), sum(...), max(...)",
            )
        checks = tuple(p.check for p in context.checks)
        return Measure(name, value, checks, place(function), inspect.getdoc(function) or "")

    def total(self, function: Callable[..., Any], mark: str, what: str, states: int = 1) -> Expr:
        """A condition on states or steps that must have a value everywhere."""
        expr, _, checks = self.predicate(function, states)
        expect_total(checks, f"@{mark} {function.__name__}", f"a condition on {what}", "of them")
        return expr


def expect_total(checks: Sequence[Check], where: str, condition: str, everywhere: str) -> None:
    """Raises `ModelError` if a check of a condition may be true for some values of the variables."""
    for check in checks:
        from streamproof.language.totality import may_be_true

        if may_be_true(check.condition):
            raise ModelError(
                f"{check.message}, perhaps, in {where}",
                loc=check.loc,
                remedy=f"test first that the value is there: {condition} must be defined for all {everywhere}",
            )
