"""Lowering of temporal properties to formulas; loaded for models that have some."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from streamproof.language import lvalues
from streamproof.language.lowering_context import Context, Evaluator, Frame, where
from streamproof.language.primitives import OPERATORS, always, eventually, leads_to
from streamproof.language.sources import text
from streamproof.language.terms import (
    Cases,
    Closure,
    HeapCell,
    PartialList,
    StateRef,
    Term,
    describe,
    is_expr,
    is_formula,
    symbolic,
)
from streamproof.system import build as b
from streamproof.system.errors import Loc, ModelError
from streamproof.system.expr import Expr
from streamproof.system.formula import (
    FORMULAS,
    Always,
    AndF,
    Atom,
    Eventually,
    Formula,
    LeadsTo,
    NotF,
    OrF,
    Until,
)
from streamproof.system.sorts import BOOL


def operator(ev: Evaluator, function: Any, node: ast.Call, frame: Frame) -> Formula:
    """A call of a temporal operator. Its arguments refer to other states: facts and values of the current state are
    invalid there."""
    context, loc = ev.context, where(frame, node)
    name = function.__name__
    if not context.temporal:
        kind = "an action" if context.in_action else "a property of states or steps"
        raise ModelError(
            f"{name}(...) in {kind}", loc=loc, remedy="it speaks of a whole behaviour: state it in a @temporal method"
        )
    wanted = OPERATORS[function]
    if len(node.args) != wanted or node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
        shape = {always: "s.p", eventually: "s.p"}.get(function, "s.p, s.q")
        raise ModelError(
            f"{name} takes {'one condition' if wanted == 1 else 'two conditions'}",
            loc=loc,
            remedy=f"write {name}({shape})",
        )
    for argument in node.args:
        _refuse_values_of_now(ev, argument, frame)
    outer, context.path = context.path, b.TRUE
    try:
        found = [formula(context, ev.value(a, frame), text(a), where(frame, a)) for a in node.args]
    finally:
        context.path = outer
    if function is always:
        return Always(found[0])
    if function is eventually:
        return Eventually(found[0])
    return LeadsTo(*found) if function is leads_to else Until(*found)


def formula(context: Context, value: Term, label: str, loc: Loc) -> Formula:
    """A value as a formula; a state condition applies to the first state of the behaviour."""
    if isinstance(value, FORMULAS):
        return value
    if isinstance(value, Cases) and is_formula(value):
        test = Atom(value.cond, f"({label})", loc)
        then, other = (formula(context, side, label, loc) for side in (value.then, value.other))
        return OrF((AndF((test, then)), AndF((NotF(test), other))))
    plain = lvalues.dereference(context, value)
    if isinstance(plain, bool):
        return Atom(b.truth(plain), str(plain), loc)
    if is_expr(plain) and plain.sort == BOOL:
        return Atom(plain, label, loc)
    raise ModelError(
        f"a temporal formula needs a condition here, got {describe(plain)}",
        loc=loc,
        remedy="compare explicitly: x != 0, len(q) > 0, o is not None",
    )


def together(parts: Sequence[tuple[Expr, Formula]], loc: Loc, *, every: bool) -> Formula:
    """``all`` and ``any``: each part with the condition under which it is present in the current state."""
    found: list[Formula] = []
    for there, part in parts:
        if there is b.TRUE:
            found.append(part)
        elif every:
            found.append(OrF((Atom(b.not_(there), "", loc), part)))
        else:
            found.append(AndF((Atom(there, "", loc), part)))
    return AndF(tuple(found)) if every else OrF(tuple(found))


def _refuse_values_of_now(ev: Evaluator, argument: ast.expr, frame: Frame) -> None:
    for node in ast.walk(argument):
        if not isinstance(node, ast.Name):
            continue
        scope: Frame | None = frame
        while scope is not None and node.id not in scope.locals:
            scope = scope.parent
        if scope is not None and _of_now(ev, scope.locals[node.id]):
            raise ModelError(
                f"{node.id!r} was read in another state than the one that is meant here",
                loc=where(frame, node),
                remedy="read the state inside the temporal operator: eventually(s.done), or call a method with s",
            )


def _of_now(ev: Evaluator, value: Term) -> bool:
    if isinstance(value, (StateRef, *FORMULAS)):
        return False
    if isinstance(value, Closure):
        return any(_of_now(ev, default) for _, default in value.defaults)
    if isinstance(value, HeapCell):
        content = ev.context.content(value)
        if isinstance(content, PartialList):
            return True
        held = content if isinstance(content, tuple) else tuple(content.values())
        return any(_of_now(ev, part) for part in held)
    if isinstance(value, tuple):
        return any(_of_now(ev, part) for part in value)
    return symbolic(value)
