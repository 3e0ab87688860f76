"""Fairness constraints on some steps of an action, `Fairness.where` and `Fairness.branch`: the steps that they concern.

A parameter of the condition is a parameter of the rule, or a variable of the rule that receives a choice. It has the value
of that variable; a name that may have another value than that of one choice is rejected, with the lines that assign it.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from streamproof.base.errors import ModelError
from streamproof.base.records import replace
from streamproof.language.declare.declarations import known_names
from streamproof.language.declare.primitives import ActionMark, choose
from streamproof.language.lower.lowering import PropertyReader, expect_total
from streamproof.language.lower.lowering_context import OutsideCalls, Pick
from streamproof.language.lower.sources import (
    bindings,
    calls,
    decoration,
    definition,
    local_names,
    own_statements,
    parameters,
    place,
    static_value,
    underlying,
)
from streamproof.language.lower.terms import Cases, NewCase, StateRef, describe, is_expr, symbolic
from streamproof.language.lower.totality import may_be_true
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.model import Conjunct, Instance

Values: TypeAlias = Sequence[tuple[Expr, Any]]
"""The values of a variable, each with its condition; None where no condition is true."""


class FairSteps:
    """The steps of one rule that its fairness constraint concerns, or each of several."""

    def __init__(
        self,
        properties: PropertyReader,
        name: str,
        mark: ActionMark,
        function: types.FunctionType,
        outside: OutsideCalls,
    ) -> None:
        self._properties, self._name, self._mark, self._function = properties, name, mark, function
        self._outside = outside
        self._several = [FairSteps(properties, name, one, function, outside) for one in mark.several]
        self._seen: set[str] | None = None
        """The parameters of the condition that had a value in some reading of the rule; None if there was no reading."""

    def parts(self, instance: Instance, args: Mapping[str, Any], picks: Sequence[Pick]) -> Iterator[Instance]:
        """The instance, or its steps that the constraint concerns, and the others."""
        if self._several:
            parts = [instance]
            for at, one in enumerate(self._several):
                split = ((part, piece) for part in parts for piece in one.parts(replace(part, fair=True), args, picks))
                parts = [
                    replace(piece, fair=False, listed=(*part.listed, at) if piece.fair else part.listed)
                    for part, piece in split
                ]
            yield from parts
            return
        if self._mark.branches:
            yield replace(instance, fair=any(branch in instance.branches for branch in self._mark.branches))
            return
        if self._mark.where is None:
            yield instance
            return
        condition = self._condition()
        wanted = parameters(condition)[2:]
        values = {name: self._values(name, args, picks) for name in wanted}
        self._seen = (self._seen or set()) | {name for name, every in values.items() if every}
        whole = self._value(condition, [], [*values.values()])
        for applies, term in ((True, whole), (False, b.not_(whole))):
            if term is not b.FALSE:
                text = condition.__name__ if applies else f"not {condition.__name__}"
                own = () if term is b.TRUE else (Conjunct(term, text, place(condition)),)
                yield replace(instance, guard=(*instance.guard, *own), fair=applies)

    def expect_known(self, given: Sequence[str], branches: Sequence[str], rules: Iterable[types.FunctionType]) -> None:
        """Raises `ModelError` if the constraint names a branch, a parameter or a choice that the rule does not have; `rules`
        are the rule and those of its name that it calls."""
        for one in self._several:
            one.expect_known(given, branches, rules)
        for branch in self._mark.branches:
            if branch not in branches:
                raise ModelError(
                    f"the fairness of {self._name} concerns the branch {branch!r}, which it does not have",
                    loc=decoration(self._function),
                    remedy=known_names(branch, branches, "its branches")
                    if branches
                    else f"label it: choose({branch}=..., ...)",
                )
        if self._mark.where is None or self._seen is None:
            return
        known = {*given, *self._seen, *(node.id for rule in rules for node in receivers(rule))}
        for wanted in parameters(self._condition())[2:]:
            if wanted not in known:
                raise ModelError(
                    f"the fairness of {self._name} depends on {wanted!r}, which is neither a parameter nor a pick of it",
                    loc=decoration(self._function),
                    remedy="name a parameter of the action, or the variable that receives the value of choose(...)",
                )

    def _condition(self) -> types.FunctionType:
        """The function of the constraint."""
        where = self._mark.where
        condition = getattr(type(self._properties.model), where, None) if isinstance(where, str) else where
        if not isinstance(condition, types.FunctionType) or len(parameters(condition)) < 2:
            raise ModelError(
                f"{where!r} is no condition for the fairness of {self._name}",
                loc=decoration(self._function),
                remedy="give a function (self, s, ...) or the name of a method",
            )
        return condition

    def _values(self, name: str, args: Mapping[str, Any], picks: Sequence[Pick]) -> Values:
        """The values of a variable of the rule. Raises `ModelError` unless each step has that of one choice."""
        own = name in local_names(definition(self._function))
        found = [p for p in picks if p.variable == name and p.frame.parent is None and (p.frame.depth == 0) is own]
        homes = [self._function] if own else [*dict.fromkeys(underlying(p.frame.function) for p in found)]
        assigned = [node for home in homes for at, node in bindings(definition(home).body) if at == name]
        if name in args:
            if assigned:
                raise self._ambiguous(name, [definition(self._function), *assigned])
            return [(b.TRUE, args[name])]
        chosen = {*(p.target for p in found), *(node for home in homes for node in receivers(home) if node.id == name)}
        if chosen and not chosen.issuperset(assigned):
            raise self._ambiguous(name, assigned)
        for at, pick in enumerate(found):
            if not _is_value(pick.received):
                raise ModelError(
                    f"the fairness of {self._name} depends on {name!r}, {describe(pick.received)}, which may change",
                    loc=pick.loc,
                    remedy="choose numbers, names or other values that do not change",
                )
            for other in found[at + 1 :]:
                both = b.and_((pick.reached_when, other.reached_when))
                if both is not b.FALSE and may_be_true(both):
                    raise self._ambiguous(name, [pick.target, other.target])
        certain = next((p for p in found if not p.first or p.reached_when is b.TRUE), None)
        return [(b.TRUE, certain.received)] if certain else [(p.reached_when, p.received) for p in found]

    def _ambiguous(self, name: str, nodes: Iterable[Any]) -> ModelError:
        lines = sorted({node.lineno for node in nodes})
        return ModelError(
            f"the fairness of {self._name} depends on {name!r}, which may get several values in one step: "
            f"line{'s' * (len(lines) > 1)} {' and '.join(map(str, lines))}",
            loc=decoration(self._function),
            remedy="receive the choice that it concerns in a variable of its own, outside of loops",
        )

    def _value(self, condition: types.FunctionType, known: list[Any], rest: Sequence[Values]) -> Expr:
        """The condition with these values of its first parameters, and all those of the others."""
        if rest:
            every = [*rest[0]] if any(reached is b.TRUE for reached, _ in rest[0]) else [*rest[0], (b.TRUE, None)]
            terms = [(reached, self._value(condition, [*known, value], rest[1:])) for reached, value in every]
            whole = terms[-1][1]
            for reached, term in terms[-2::-1]:
                whole = b.ite(reached, term, whole)
            return whole
        given = [self._properties.model, StateRef(names=self._properties.names), *known]
        expr, _, checks = self._properties.condition(condition, given, self._outside)
        expect_total(checks, f"{condition.__name__}, the fairness of {self._name}", "the condition", "states")
        return expr


def labels(function: types.FunctionType) -> Iterator[str]:
    """The labels of branches in the source of a rule, those included that no reading of it reaches."""
    for node in calls(function):
        if node.keywords and static_value(node.func, function) is choose:
            yield from (keyword.arg for keyword in node.keywords if keyword.arg is not None)


def inherited_rules(rule: types.FunctionType, name: str, owners: Sequence[type]) -> list[types.FunctionType]:
    """A rule, and those of its name that it calls by ``super()`` or by their class, in turn: a choice that no reading reaches
    may be in one of them. `owners` are the classes of the model, in the order of resolution."""
    found: list[types.FunctionType] = []
    todo: list[Any] = [rule]
    while todo:
        current = todo.pop()
        if not isinstance(current, types.FunctionType) or current in found:
            continue
        found.append(current)
        home = next((at for at, owner in enumerate(owners) if vars(owner).get(name) is current), len(owners))
        for node in calls(current):
            called = node.func
            if not isinstance(called, ast.Attribute) or called.attr != name:
                continue
            if isinstance(called.value, ast.Call) and static_value(called.value.func, current) is super:
                todo.append(next((vars(owner)[name] for owner in owners[home + 1 :] if name in vars(owner)), None))
            else:
                todo.append(getattr(static_value(called.value, current), name, None))
    return found


@lru_cache(maxsize=1024)
def receivers(function: types.FunctionType) -> tuple[ast.Name, ...]:
    """The variables that receive a choice in the source of a rule, those included that no reading of it reaches."""
    found = []
    for node in own_statements(definition(function)):
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        called = value.func if isinstance(value, ast.Call) else None
        if isinstance(target, ast.Name) and called is not None and static_value(called, function) is choose:
            found.append(target)
    return tuple(found)


def _is_value(term: Any) -> bool:
    """Whether a value during lowering stays the same, unlike a container in the state or in a local variable."""
    match term:
        case Cases():
            return _is_value(term.then) and _is_value(term.other)
        case NewCase():
            return all(map(_is_value, term.values))
        case tuple():
            return all(map(_is_value, term))
    return is_expr(term) or not symbolic(term)
