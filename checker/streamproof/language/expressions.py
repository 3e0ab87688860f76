"""Lowering of Python expressions: what is known is computed, what depends on the state becomes a term."""

from __future__ import annotations

import ast
import builtins
import types
from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, get_args

from streamproof.language import operators
from streamproof.language.access import Access, near
from streamproof.language.amounts import unveiled
from streamproof.language.places import plain, replaced
from streamproof.language.sources import text
from streamproof.language.steady import is_steady
from streamproof.language.temporal import formula, is_formula
from streamproof.language.terms import (
    ORDINARY,
    Cell,
    Closure,
    Method,
    Ref,
    StateRef,
    Term,
    Undefined,
    known,
    simple,
    symbolic,
)
from streamproof.language.world import Frame, Halt, World, boolean, where
from streamproof.system import build as b
from streamproof.system.errors import ModelError
from streamproof.system.expr import Const, Expr
from streamproof.system.formula import AndF, Atom, Formula, NotF, OrF

_MISSING = object()
_AS_IT_IS = ORDINARY | {Cell, Method, Ref, StateRef, tuple, *(set(get_args(Expr)) - {Const})}
"""Types of values that are neither amounts nor constants."""
_CONVERSIONS: dict[int, Callable[[Any], Any]] = {-1: lambda v: v, ord("r"): repr, ord("s"): str, ord("a"): ascii}


class Expressions(Access):
    """Evaluates expression nodes in a frame."""

    @abstractmethod
    def call(self, node: ast.Call, frame: Frame, name: str | None = None) -> Term:
        """A call; `name` is the variable its value is assigned to, if any."""

    @abstractmethod
    def closure(self, node: ast.Lambda | ast.FunctionDef, frame: Frame) -> Closure:
        """A function made inside a rule."""

    def value(self, node: ast.expr, frame: Frame) -> Term:
        """The value of an expression."""
        found = self._value(node, frame)
        if type(found) in _AS_IT_IS:
            return found
        if not is_steady(found):
            self.world.outside.asked = True
        return simple(unveiled(found))

    def _value(self, node: ast.expr, frame: Frame) -> Term:
        read = _READ.get(type(node))
        return self.display(node, frame) if read is None else read(self, node, frame)

    def _binary(self, node: ast.BinOp, frame: Frame) -> Term:
        left = self.value(node.left, frame)
        right = self.value(node.right, frame)
        texts = (text(node.left), text(node.right))
        return operators.binary(self.world, node.op, left, right, where(frame, node), texts)

    def condition(self, node: ast.expr, frame: Frame) -> Expr:
        """The value of an expression used as a condition."""
        return boolean(plain(self.world, self.value(node, frame)), where(frame, node))

    # --- names and text

    def _name(self, node: ast.Name, frame: Frame) -> Term:
        scope: Frame | None = frame
        while scope is not None:
            if node.id in scope.locals:
                found = scope.locals[node.id]
                if isinstance(found, Undefined):
                    raise ModelError(f"{node.id!r} {found.why}", loc=where(frame, node), remedy=found.remedy)
                if isinstance(found, Ref):
                    replaced(self.world, found, where(frame, node), node.id)
                return found
            if node.id in scope.own:
                raise ModelError(
                    f"{node.id!r} is used before it has a value",
                    loc=where(frame, node),
                    remedy="assign it first; a name that is assigned anywhere in a function is local to it",
                )
            scope = scope.parent
        cells = closed_over(frame)
        if node.id in cells:
            return cells[node.id]
        if node.id in frame.globals:
            return frame.globals[node.id]
        found = getattr(builtins, node.id, _MISSING)
        if found is _MISSING:
            names = [*frame.locals, *frame.globals, *self.world.sorts]
            raise ModelError(
                f"name {node.id!r} is not defined",
                loc=where(frame, node),
                remedy=_state_hint(self.world, node.id) or near(node.id, names, "define or import it"),
            )
        return found

    def _joined(self, node: ast.JoinedStr, frame: Frame) -> Term:
        parts = []
        for piece in node.values:
            if isinstance(piece, ast.Constant):
                parts.append(str(piece.value))
                continue
            assert isinstance(piece, ast.FormattedValue)
            is_known, value = known(self.value(piece.value, frame))
            spec = self._joined(piece.format_spec, frame) if isinstance(piece.format_spec, ast.JoinedStr) else ""
            if not is_known:
                raise ModelError(
                    "text cannot depend on the state", loc=where(frame, node), remedy="use an Enum, or a known value"
                )
            shown = _CONVERSIONS[piece.conversion](value)
            parts.append(operators.host(self.world, partial(format, shown, spec), where(frame, piece)))
        return "".join(parts)

    # --- operators

    def _unary(self, node: ast.UnaryOp, frame: Frame) -> Term:
        value, loc = self.value(node.operand, frame), where(frame, node)
        if isinstance(node.op, ast.Not) and is_formula(value):
            return NotF(formula(self.world, value, text(node.operand), loc))
        value = plain(self.world, value)
        is_host = not symbolic(value)
        match node.op:
            case ast.Not():
                return (not value) if is_host else b.not_(boolean(value, loc), loc)
            case ast.USub() if is_host:
                return operators.host(self.world, lambda: -value, loc)
            case ast.USub():
                return b.sub(b.num(0), operators.integer(self.world, value, loc, text(node.operand)), loc)
            case ast.UAdd() if is_host:
                return operators.host(self.world, lambda: +value, loc)
            case ast.UAdd():
                return operators.integer(self.world, value, loc, text(node.operand))
            case _ if is_host:
                return operators.host(self.world, lambda: ~value, loc)
        raise ModelError("'~' is not part of the language", loc=loc, remedy="use 'not' for truth values")

    def _connective(self, node: ast.BoolOp, frame: Frame) -> Term:
        """``and``/``or``, short-circuit: later operands happen only where the earlier ones let Python get there."""
        conj, loc = isinstance(node.op, ast.And), where(frame, node)
        parts: list[Expr] = []
        stated: list[ast.expr] = []
        said: list[Formula] = []
        reached: Expr = b.TRUE
        for at, operand in enumerate(node.values):
            try:
                value = self.world.under(reached, partial(self.value, operand, frame), loc)
            except Halt:
                if not parts:
                    raise
                break
            if is_formula(value):
                said.append(formula(self.world, value, text(operand), where(frame, operand)))
                continue
            value = plain(self.world, value)
            if not symbolic(value) and not parts and not said:
                if bool(value) != conj or at == len(node.values) - 1:
                    return value
                continue
            if not symbolic(value) and not isinstance(value, bool):
                raise ModelError(
                    f"{text(operand)!r} is no truth value", loc=where(frame, operand), remedy="compare explicitly"
                )
            term = boolean(value, where(frame, operand))
            parts.append(term)
            stated.append(operand)
            reached = b.and_((reached, term if conj else b.not_(term)))
            if reached is b.FALSE:
                break
        whole = (b.and_ if conj else b.or_)(parts, loc)
        if not said:
            return whole
        label = (" and " if conj else " or ").join(map(text, stated))
        first: tuple[Formula, ...] = (Atom(whole, label, loc),) if parts else ()
        return AndF((*first, *said)) if conj else OrF((*first, *said))

    def _compare(self, node: ast.Compare, frame: Frame) -> Term:
        """A comparison, chained ones short-circuit and with each operand evaluated once."""
        loc = where(frame, node)
        left, left_text = self.value(node.left, frame), text(node.left)
        if len(node.ops) == 1:
            at = node.comparators[0]
            right = self.value(at, frame)
            return operators.compare(self.world, node.ops[0], left, right, loc, (left_text, text(at)))
        parts: list[Expr] = []
        reached: Expr = b.TRUE
        for op, right_node in zip(node.ops, node.comparators, strict=True):

            def one(op: ast.cmpop = op, at: ast.expr = right_node, left: Term = left, label: str = left_text) -> Term:
                right = self.value(at, frame)
                return right, operators.compare(self.world, op, left, right, loc, (label, text(at)))

            try:
                left, part = self.world.under(reached, one, loc)
            except Halt:
                if not parts:
                    raise
                break
            left_text = text(right_node)
            if not symbolic(part) and not part:
                return b.and_([*parts, b.FALSE])
            parts.append(boolean(part, loc))
            reached = b.and_((reached, parts[-1]))
            if reached is b.FALSE:
                break
        return b.and_(parts, loc)

    def _conditional(self, node: ast.IfExp, frame: Frame) -> Term:
        value = plain(self.world, self.value(node.test, frame))
        if not symbolic(value):
            return self.value(node.body if value else node.orelse, frame)
        return self.world.either(
            boolean(value, where(frame, node.test)),
            lambda: self.value(node.body, frame),
            lambda: self.value(node.orelse, frame),
            where(frame, node),
        )


_READ: Mapping[type[ast.expr], Callable[[Expressions, Any, Frame], Term]] = {
    ast.Constant: lambda self, node, frame: node.value,
    ast.Name: Expressions._name,
    ast.Attribute: lambda self, node, frame: self.attribute(self.value(node.value, frame), node, frame),
    ast.Subscript: Expressions.subscript,
    ast.BinOp: Expressions._binary,
    ast.UnaryOp: Expressions._unary,
    ast.BoolOp: Expressions._connective,
    ast.Compare: Expressions._compare,
    ast.IfExp: Expressions._conditional,
    ast.Call: lambda self, node, frame: self.call(node, frame),
    ast.Lambda: lambda self, node, frame: self.closure(node, frame),
    ast.JoinedStr: Expressions._joined,
}
"""What gives the value of an expression, by its kind; of the others, `display`."""


def _state_hint(world: World, name: str) -> str:
    return f"the state variable is s.{name}" if name in world.sorts else ""


def closed_over(frame: Frame) -> dict[str, Any]:
    """The variables a function closes over."""
    function = frame.function
    if not isinstance(function, types.FunctionType) or not function.__closure__:
        return {}
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__, strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # an empty cell: the name is not bound yet
            continue
    return found
