"""Actions in temporal formulas: ``always(eventually(happened(self.send)))``.

``happened(self.send, c)`` is a condition on a step: it changes the state, and the rule could have made it with these
arguments and some picks, as ``<<send(c)>>_vars`` in TLA+. Formulas are invariant under stuttering, so it is read only where
infinitely many steps, or none from some state on, are
demanded: ``[]<><<A>>_vars`` is `Recurs`, and ``<>[][~A]_vars`` its negation.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator, Sequence
from typing import Any

from streamproof.base.errors import Loc, ModelError
from streamproof.base.records import dataclass
from streamproof.language.lower.conversion import plain_inside
from streamproof.language.lower.expressions import spread
from streamproof.language.lower.lowering_context import Evaluator, Frame, where
from streamproof.language.lower.sources import text
from streamproof.language.lower.terms import is_expr, symbolic
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.formula import (
    Always,
    AndF,
    Atom,
    Eventually,
    Formula,
    NotF,
    OrF,
    Recurs,
    mapped,
    subformulas,
)
from streamproof.system.model import Instance


@dataclass(frozen=True, slots=True)
class StepCondition(Atom):
    """A condition on a step, in a formula that is being read."""


def happened(ev: Evaluator, node: ast.Call, frame: Frame) -> Formula:
    """``happened(self.send, c)``: the disjunction of the steps of the rule's instances with these arguments, or with any."""
    loc, context = where(frame, node), ev.context
    if not context.temporal or context.rules is None:
        raise ModelError(
            "happened(...) outside a temporal property",
            loc=loc,
            remedy="use it in a @temporal method: always(eventually(happened(self.send)))",
        )
    rule, *given = ([] if node.keywords else [*spread(ev, node.args, frame)]) or [None]
    if not isinstance(rule, types.MethodType):
        raise ModelError(
            "happened(...) takes a rule of the model and, if some steps are meant, the rule's arguments",
            loc=loc,
            remedy="write happened(self.send) or happened(self.send, c)",
        )
    if any(map(symbolic, given)):
        raise ModelError(
            f"an argument of happened({rule.__name__}, ...) depends on the state or on a free parameter",
            loc=loc,
            remedy="name each: any(happened(self.send, c) for c in range(3)), or leave the arguments out",
        )
    rules, context.stepwise = context.rules(rule, None, loc), True
    if any(is_expr(value) for args in rules.arguments for value in args):
        raise ModelError(
            "happened(...) in a proof for every size",
            loc=loc,
            remedy="choose sizes, and search them: streamproof check",
        )
    wanted = [*map(_compared, given)]
    if given and rules.arguments and not any([*map(_compared, args)] == wanted for args in rules.arguments):
        raise _no_instance(rule.__name__, given, rules.arguments, loc)
    steps = [i for i in rules.instances if not given or [_compared(value) for _, value in i.args] == wanted]
    return StepCondition(b.or_((_step(ev, i) for i in steps), loc), text(node), loc)


def _compared(value: Any) -> Any:
    """An argument for comparisons, equal to that of an instance if it is the same value: 1 and True differ."""
    value = plain_inside(frozenset(value) if isinstance(value, set) else value)
    if isinstance(value, tuple):
        return (tuple, [*map(_compared, value)])
    return (type(value), value)


def _no_instance(name: str, given: Sequence[Any], known: Sequence[Sequence[Any]], loc: Loc) -> ModelError:
    if len(known[0]) != len(given):
        return ModelError(
            f"{name} takes {len(known[0])} arguments behind the state, got {len(given)}",
            loc=loc,
            remedy="give each of them, in order, or none",
        )
    first = ", ".join(f"{name}({_shown(args)})" for args in known[:3])
    return ModelError(
        f"{name}({_shown(given)}) is no instance of the rule, so that no step is one of it",
        loc=loc,
        remedy=f"the instances are {first}{', ...' if len(known) > 3 else ''}",
    )


def _shown(args: Sequence[Any]) -> str:
    return ", ".join(map(repr, args))


def _step(ev: Evaluator, instance: Instance) -> Expr:
    """The step is one of an instance, which changes a variable that the machine sees."""
    new, sorts = dict(instance.updates), ev.context.sorts
    arrives = [b.eq(b.next_(n, s), new.get(n, b.var(n, s))) for n, s in sorts.items()]
    moves = b.or_(b.not_(b.eq(b.next_(n, sorts[n]), b.var(n, sorts[n]))) for n in new)
    return b.and_((*(c.expr for c in instance.guard), moves, *arrives))


def without_step_conditions(formula: Formula) -> Formula:
    """The formula with `Recurs` in place of conditions on steps. Raises `ModelError` where one stands elsewhere."""
    if not any(isinstance(part, StepCondition) for part in subformulas(formula)):
        return formula  # a part without any
    match formula:
        case StepCondition(text=label, loc=loc):
            raise _misplaced(label, loc)
        case Always(AndF(args)):
            return AndF(tuple(without_step_conditions(Always(arg)) for arg in args))
        case Eventually(OrF(args)) if not _is_condition(formula.arg):
            return OrF(tuple(without_step_conditions(Eventually(arg)) for arg in args))
        case Always(Eventually(arg)) if _is_condition(arg):
            return _recurs([*_some(arg)])
        case Eventually(Always(arg)) if _is_condition(arg):
            return NotF(_recurs([*_none(arg)]))
        case _:
            return mapped(formula, without_step_conditions)


def _recurs(steps: list[StepCondition]) -> Recurs:
    return Recurs(b.or_(one.expr for one in steps), " or ".join(one.text for one in steps), steps[0].loc)


def _is_condition(formula: Formula) -> bool:
    return not any(isinstance(part, Always | Eventually) for part in subformulas(formula))


def _some(formula: Formula) -> Iterator[StepCondition]:
    """The steps of which one is meant."""
    match formula:
        case StepCondition():
            yield formula
        case OrF(args):
            for arg in args:
                yield from _some(arg)
        case _:
            raise _misplaced_in(formula)


def _none(formula: Formula) -> Iterator[StepCondition]:
    """The steps of which none is meant."""
    match formula:
        case NotF(arg):
            yield from _some(arg)
        case AndF(args):
            for arg in args:
                yield from _none(arg)
        case _:
            raise _misplaced_in(formula)


def _misplaced_in(formula: Formula) -> ModelError:
    parts = [part for part in subformulas(formula) if isinstance(part, Atom)]
    steps = [part for part in parts if isinstance(part, StepCondition)]
    one = next(iter(steps or parts), None)
    return _misplaced("happened(...)" if one is None or not steps else one.text, None if one is None else one.loc)


def _misplaced(label: str, loc: Loc | None) -> ModelError:
    return ModelError(
        f"{label} is a condition on a step, and stands where a condition on a state is needed",
        loc=loc,
        remedy="write always(eventually(happened(...))) or eventually(always(not happened(...))), also with several joined "
        "by 'or'; for other formulas, record the action in a variable of the state",
    )
