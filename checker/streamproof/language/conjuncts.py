"""Splitting of a condition into conjuncts with their source texts, so that a report can name the false one."""

from __future__ import annotations

import ast
import builtins
from functools import partial

from streamproof.language.comprehensions import each_round, indices
from streamproof.language.functions import means
from streamproof.language.lowering_context import Evaluator, Frame, Halt, where
from streamproof.language.sources import text
from streamproof.language.terms import known
from streamproof.system import build as b
from streamproof.system.expr import Expr

Part = tuple[Expr, str, ast.expr]


def conjuncts(ev: Evaluator, node: ast.expr, frame: Frame, suffix: str = "") -> list[Part]:
    """The conjuncts of a condition with their source texts; ``and`` and ``all(...)`` are split.

    As in Python, a later conjunct is evaluated only where the earlier ones hold.
    """
    context = ev.context
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        parts: list[Part] = []
        for operand in node.values:
            reached = b.and_(c for c, _, _ in parts)
            try:
                judge = partial(conjuncts, ev, operand, frame, suffix)
                parts += context.guarded(reached, judge, where(frame, operand))
            except Halt:
                if reached is b.TRUE:
                    raise
                break
        return parts
    if _is_plain_all(ev, node, frame):
        assert isinstance(node, ast.Call)
        assert isinstance(node.args[0], ast.GeneratorExp)
        if indices(ev, node.args[0], frame) is not None:
            return [(ev.condition(node, frame), text(node) + suffix, node)]
        return _each(ev, node.args[0], frame, suffix)
    return [(ev.condition(node, frame), text(node) + suffix, node)]


def _is_plain_all(ev: Evaluator, node: ast.expr, frame: Frame) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and means(ev, node.func, builtins.all, frame)
        and len(node.args) == 1
        and isinstance(node.args[0], ast.GeneratorExp)
    )


def _each(ev: Evaluator, node: ast.GeneratorExp, frame: Frame, suffix: str) -> list[Part]:
    """The conjuncts of the element for every iteration of the loops, with the values of the loop variables."""
    names = [n.id for loop in node.generators for n in ast.walk(loop.target) if isinstance(n, ast.Name)]
    parts: list[Part] = []

    def visit(there: Expr, inner: Frame) -> Expr:
        values = ((name, *known(inner.locals[name])) for name in dict.fromkeys(names))
        note = ", ".join(f"{name}={host}" for name, is_known, host in values if is_known)
        found = conjuncts(ev, node.elt, inner, f"{suffix}  [{note}]" if note else suffix)
        parts.extend((b.implies(there, cond), label, at) for cond, label, at in found)
        return b.and_(cond for cond, _, _ in found)

    each_round(ev, node.generators, frame, visit)
    return parts
