"""Lowering of a rule's syntax tree to guards, updates and checks; a table maps each node kind to its function."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, get_args

from streamproof.language import access, expressions, functions, lvalues, statements
from streamproof.language.access import is_plain_value
from streamproof.language.calls import formula
from streamproof.language.functions import enter, returns_always, underlying
from streamproof.language.lowering_context import Context, Evaluator, Frame, Halt, boolean, where
from streamproof.language.sources import definition
from streamproof.language.statements import conjuncts
from streamproof.language.symbolic_parameters import as_term
from streamproof.language.terms import (
    ORDINARY,
    HeapCell,
    Method,
    NewCase,
    Ref,
    StateRef,
    Term,
    describe,
    is_formula,
    simple,
)
from streamproof.system import build as b
from streamproof.system.errors import Loc, ModelError
from streamproof.system.expr import Const, Expr
from streamproof.system.formula import Formula
from streamproof.system.model import Conjunct

ValueOf: TypeAlias = Callable[[Evaluator, Any, Frame], Term]
"""Lowers an expression of one kind."""
Lower: TypeAlias = Callable[[Evaluator, Any, Frame], None]
"""Lowers a statement of one kind."""

_AS_IT_IS = ORDINARY | {HeapCell, Method, NewCase, Ref, StateRef, tuple, *(set(get_args(Expr)) - {Const})}
"""Types of values that are neither symbolic parameters nor constants."""

EXPRESSIONS: Mapping[type[ast.expr], ValueOf] = {
    ast.Constant: lambda ev, node, frame: node.value,
    ast.Name: expressions.name_value,
    ast.Attribute: lambda ev, node, frame: access.attribute(ev, ev.value(node.value, frame), node, frame),
    ast.Subscript: access.subscript,
    ast.BinOp: expressions.binary,
    ast.UnaryOp: expressions.unary,
    ast.BoolOp: expressions.connective,
    ast.Compare: expressions.compare,
    ast.IfExp: expressions.conditional,
    ast.JoinedStr: expressions.joined_text,
    ast.Call: functions.call,
    ast.Lambda: functions.closure,
    ast.Tuple: expressions.tuple_display,
    ast.List: expressions.list_display,
    ast.Set: expressions.set_display,
    ast.Dict: expressions.dict_display,
    ast.ListComp: expressions.list_comprehension,
    ast.SetComp: expressions.set_comprehension,
    ast.DictComp: expressions.dict_comprehension,
    ast.GeneratorExp: expressions.generator_expression,
}
"""The function for each kind of expression; other kinds are rejected."""


def _match_statement(ev: Evaluator, node: ast.Match, frame: Frame) -> None:
    from streamproof.language.matching import match_statement

    match_statement(ev, node, frame)


STATEMENTS: Mapping[type[ast.stmt], Lower] = {
    ast.Expr: statements.expression_statement,
    ast.Pass: statements.pass_statement,
    ast.Assign: statements.assignment,
    ast.AnnAssign: statements.annotated_assignment,
    ast.AugAssign: statements.augmented_assignment,
    ast.If: statements.if_statement,
    ast.For: statements.for_statement,
    ast.Match: _match_statement,
    ast.Return: statements.return_statement,
    ast.Break: statements.break_statement,
    ast.Continue: statements.continue_statement,
    ast.FunctionDef: statements.function_definition,
}
"""The function for each kind of statement; other kinds are rejected."""


class Lowering:
    """The `Evaluator` for one lowering of a rule or property."""

    def __init__(self, context: Context) -> None:
        self.context = context

    def value(self, node: ast.expr, frame: Frame) -> Term:
        """The value of an expression."""
        found = EXPRESSIONS.get(type(node), expressions.refused)(self, node, frame)
        if type(found) in _AS_IT_IS:
            return found
        if not is_plain_value(found):
            self.context.outside.impure = True
        return simple(as_term(found))

    def condition(self, node: ast.expr, frame: Frame) -> Expr:
        """The value of an expression used as a condition."""
        return boolean(lvalues.dereference(self.context, self.value(node, frame)), where(frame, node))

    def block(self, body: list[ast.stmt], frame: Frame) -> None:
        """A sequence of statements; those after a conditional return or loop exit are guarded by its negation."""
        for at, statement in enumerate(body):
            gone = b.or_((frame.returned, frame.broke, frame.continued))
            if gone is b.TRUE:
                return
            if gone is not b.FALSE:

                def rest(statements: list[ast.stmt] = body[at:]) -> None:
                    frame.returned = frame.broke = frame.continued = b.FALSE
                    self.block(statements, frame)

                self.context.branch(frame, b.not_(gone), rest, statements.nothing, where(frame, statement))
                return
            try:
                STATEMENTS.get(type(statement), statements.refused_statement)(self, statement, frame)
            except ModelError as error:
                if error.loc is not None:
                    raise
                raise ModelError(error.message, loc=where(frame, statement), remedy=error.remedy) from None

    def action(self, function: Any, args: list[Term]) -> None:
        """Lowers an action for the choices in the script. Raises `ModelError`."""
        frame = enter(self, function, args, {}, 0, None)
        node = definition(underlying(function))
        try:
            self.block(node.body, frame)
        except Halt:
            return
        if frame.result is not None:
            returns = [n for n in ast.walk(node) if isinstance(n, ast.Return) and n.value]
            raise ModelError(
                f"action {function.__name__} returns a value",
                loc=where(frame, returns[0]),
                remedy="an action changes the state and returns nothing; a condition goes into require(...)",
            )

    def predicate(self, function: Any, args: list[Term]) -> tuple[Expr, tuple[Conjunct, ...]]:
        """The condition of a property function, split into conjuncts if the function ends in a single ``return``."""
        frame = enter(self, function, args, {}, 0, None)
        node = definition(underlying(function))
        last = node.body[-1]
        try:
            self.block(node.body[:-1], frame)
            if isinstance(last, ast.Return) and last.value is not None and frame.returned is b.FALSE:
                parts = tuple(Conjunct(c, t, where(frame, n)) for c, t, n in conjuncts(self, last.value, frame))
                return b.and_(p.expr for p in parts), parts
            if frame.returned is not b.TRUE:
                self.block([last], frame)
        except Halt:
            return b.FALSE, ()
        if frame.returned is not b.TRUE and not returns_always(node.body):
            raise ModelError(
                f"{node.name}() does not return a condition on every path",
                loc=where(frame, node),
                remedy="end with 'return ...'",
            )
        cond = boolean(lvalues.dereference(self.context, frame.result), where(frame, last))
        return cond, (Conjunct(cond, node.name, where(frame, node)),)

    def returned(self, function: Any, args: list[Term]) -> tuple[Term, Loc]:
        """The return value of a function of the state, fully dereferenced, and its position."""
        frame = enter(self, function, args, {}, 0, None)
        node = definition(underlying(function))
        self.block(node.body, frame)
        loc = where(frame, node.body[-1])
        if frame.returned is not b.TRUE and not returns_always(node.body):
            raise ModelError(f"{node.name}() does not return on every path", loc=loc, remedy="end with 'return ...'")
        return lvalues.resolve_deep(self.context, frame.result), loc

    def behaviour(self, function: Any, args: list[Term]) -> Formula:
        """The formula of a temporal property."""
        frame = enter(self, function, args, {}, 0, None)
        node = definition(underlying(function))
        loc = where(frame, node.body[-1])
        self.block(node.body, frame)
        if frame.returned is not b.TRUE and not returns_always(node.body):
            raise ModelError(
                f"{node.name}() does not return a formula on every path",
                loc=where(frame, node),
                remedy="end with 'return ...'",
            )
        value = lvalues.dereference(self.context, frame.result)
        if not isinstance(value, bool) and not is_formula(value):
            raise ModelError(
                f"{node.name}() does not return a temporal formula: it returns {describe(value)}",
                loc=loc,
                remedy="return always(...), eventually(...), leads_to(..., ...) or until(..., ...), several of them "
                "joined with 'and' or all(... for ...); a condition on states is an @invariant",
            )
        return formula(self.context, value, node.name, loc)
