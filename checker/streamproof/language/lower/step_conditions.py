"""Actions in temporal formulas: ``always(eventually(happened(self.send)))``, ``leads_to(happened(self.send), s.got)``.

``happened(self.send, c)`` is a condition on a step: it changes the state, and the rule could have made it with these
arguments and some picks, as ``<<send(c)>>_vars`` in TLA+. Formulas are invariant under stuttering, so it is read only where a
step, and not a state, is meant: ``[]<><<A>>_vars`` is `Recurs`, and ``<>[][~A]_vars`` its negation; ``<><<A>>_vars`` is
`Happens`, and ``[][~A]_vars`` its negation. What ``leads_to`` demands after a step is demanded of the state after it.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Sequence
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
    Happens,
    LeadsTo,
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
    """The formula with `Recurs` and `Happens` in place of conditions on steps. Raises `ModelError` where one stands beside a
    condition on states, or in an until."""
    if not any(isinstance(part, StepCondition) for part in subformulas(formula)):
        return formula
    match formula:
        case StepCondition(text=label, loc=loc):
            raise _misplaced(label, loc)
        case Always(AndF(args)):
            return AndF(tuple(without_step_conditions(Always(arg)) for arg in args))
        case Eventually(OrF(args)) if not all(map(_is_steps, args)):
            return OrF(tuple(without_step_conditions(Eventually(arg)) for arg in args))
        case Always(Eventually(arg)) if _is_steps(arg):
            return _recurs(arg)
        case Eventually(Always(arg)) if _is_no_step(arg):
            return NotF(_recurs(arg))
        case Eventually(arg) if _is_steps(arg):
            return _happens(arg)
        case Always(arg) if _is_no_step(arg):
            return NotF(_happens(arg))
        case LeadsTo(left, right) if _is_steps(left):
            return NotF(_happens(left, NotF(Eventually(_later(right)))))
        case LeadsTo(left, right):
            return LeadsTo(without_step_conditions(left), _later(right))
        case _:
            return mapped(formula, without_step_conditions)


def _is_steps(formula: Formula) -> bool:
    """Whether steps are meant, one of which happens."""
    return isinstance(formula, StepCondition) or (isinstance(formula, OrF) and all(map(_is_steps, formula.args)))


def _is_no_step(formula: Formula) -> bool:
    """Whether steps are meant, none of which happens."""
    if isinstance(formula, NotF):
        return _is_steps(formula.arg)
    return isinstance(formula, AndF) and all(map(_is_no_step, formula.args))


def _later(formula: Formula) -> Formula:
    """What a `leads_to` demands now or later, in which a condition on a step means that the step happens."""
    if isinstance(formula, OrF) and not _is_steps(formula):
        return OrF(tuple(map(_later, formula.args)))
    return _happens(formula) if _is_steps(formula) else without_step_conditions(formula)


def _recurs(steps: Formula) -> Recurs:
    given = [part for part in subformulas(steps) if isinstance(part, StepCondition)]
    if not given:  # any(...) of nothing
        return Recurs(b.FALSE)
    return Recurs(b.or_(one.expr for one in given), " or ".join(one.text for one in given), given[0].loc)


def _happens(steps: Formula, then: Formula | None = None) -> Happens:
    one = _recurs(steps)
    return Happens(one.step, AndF(()) if then is None else then, one.text, one.loc)


def _misplaced(label: str, loc: Loc | None) -> ModelError:
    return ModelError(
        f"{label} is a condition on a step, and stands where a condition on a state is needed",
        loc=loc,
        remedy="write always, eventually or leads_to of happened(...), also with several joined by 'or'; for other formulas, "
        "record the action in a variable of the state",
    )
