"""Lowering of rules to guards, updates and checks, and of properties to conditions and formulas.

A table maps each node kind of a syntax tree to its function. `PropertyReader` reads what a machine states about its states,
steps and behaviours.
"""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, get_args

from streamproof.base.errors import Loc, ModelError
from streamproof.base.records import dataclass
from streamproof.language.declare.model import Model
from streamproof.language.declare.primitives import PropertyMark
from streamproof.language.free.symbolic_parameters import as_term
from streamproof.language.lower import access, expressions, functions, lvalues, statements
from streamproof.language.lower.access import is_plain_value
from streamproof.language.lower.calls import formula
from streamproof.language.lower.inlining import closure, enter, returns_always
from streamproof.language.lower.lift import as_any_term
from streamproof.language.lower.lowering_context import (
    Context,
    Evaluator,
    Frame,
    Halt,
    OutsideCalls,
    RuleInstances,
    boolean,
    where,
)
from streamproof.language.lower.mutation_guard import MutationGuard
from streamproof.language.lower.sources import definition, parameters, place, underlying
from streamproof.language.lower.statements import conjuncts
from streamproof.language.lower.terms import (
    ORDINARY,
    HeapCell,
    Method,
    NewCase,
    Ref,
    ScopeNames,
    StateRef,
    Term,
    describe,
    is_expr,
    is_formula,
    simple,
)
from streamproof.system import build as b
from streamproof.system.expr import Const, Expr
from streamproof.system.formula import Formula
from streamproof.system.model import Check, Conjunct, Derived, Kind, Property
from streamproof.system.sorts import RangeSort, Sort
from streamproof.system.verdict import Measure

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
    ast.Lambda: closure,
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
    from streamproof.language.lower.matching import match_statement

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


def _located(error: ModelError, frame: Frame, node: ast.expr | ast.stmt) -> ModelError:
    """The error, at the line of a node unless it names one."""
    if error.loc is not None:
        return error
    return type(error)(error.message, loc=where(frame, node), remedy=error.remedy)


class Lowering:
    """The `Evaluator` for one lowering of a rule or property."""

    def __init__(self, context: Context) -> None:
        self.context = context

    def within(self, context: Context) -> Lowering:
        """The same in another context."""
        return Lowering(context)

    def value(self, node: ast.expr, frame: Frame) -> Term:
        """The value of an expression."""
        try:
            found = EXPRESSIONS.get(type(node), expressions.refused)(self, node, frame)
        except ModelError as error:
            raise _located(error, frame, node) from error.__cause__
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
                raise _located(error, frame, statement) from error.__cause__

    def _entered(self, function: Any, args: list[Term]) -> tuple[Frame, ast.FunctionDef]:
        return enter(self, function, args, {}, 0, None), definition(underlying(function))

    def _expect_result(self, frame: Frame, node: ast.FunctionDef, at: ast.AST, what: str = "") -> None:
        if frame.returned is not b.TRUE and not returns_always(node.body):
            raise ModelError(
                f"{node.name}() does not return{what} on every path",
                loc=where(frame, at),
                remedy="end with 'return ...'",
            )

    def action(self, function: Any, args: list[Term]) -> None:
        """Lowers an action for the choices in the script. Raises `ModelError`."""
        frame, node = self._entered(function, args)
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
        frame, node = self._entered(function, args)
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
        self._expect_result(frame, node, node, " a condition")
        cond = boolean(lvalues.dereference(self.context, frame.result), where(frame, last))
        return cond, (Conjunct(cond, node.name, where(frame, node)),)

    def returned(self, function: Any, args: list[Term]) -> tuple[Term, Loc]:
        """The return value of a function of the state, fully dereferenced, and its position."""
        frame, node = self._entered(function, args)
        self.block(node.body, frame)
        self._expect_result(frame, node, node.body[-1])
        return lvalues.resolve_deep(self.context, frame.result), where(frame, node.body[-1])

    def behaviour(self, function: Any, args: list[Term]) -> Formula:
        """The formula of a temporal property."""
        frame, node = self._entered(function, args)
        loc = where(frame, node.body[-1])
        self.block(node.body, frame)
        self._expect_result(frame, node, node, " a formula")
        value = lvalues.dereference(self.context, frame.result)
        if not isinstance(value, bool) and not is_formula(value):
            raise ModelError(
                f"{node.name}() does not return a temporal formula: it returns {describe(value)}",
                loc=loc,
                remedy="return always(...), eventually(...), leads_to(..., ...) or until(..., ...), several of them "
                "joined with 'and' or all(... for ...); a condition on states is an @invariant",
            )
        found = formula(self.context, value, node.name, loc)
        if not self.context.stepwise:
            return found
        from streamproof.language.lower.step_conditions import without_step_conditions

        return without_step_conditions(found)


@dataclass(frozen=True, eq=False, slots=True)
class PropertyReader:
    """Lowers functions of the state of one machine."""

    model: Model
    sorts: dict[str, Sort]
    names: ScopeNames | None
    free: frozenset[str]
    outside: OutsideCalls
    rules: Callable[[types.MethodType, StateRef | None, Loc], RuleInstances]
    """Gives the instances of a rule, for `enabled` and `happened`."""

    def _context(self, name: str, **more: Any) -> Context:
        """The context of a function of states."""
        state = {n: b.var(n, s) for n, s in self.sorts.items()}
        return Context(self.sorts, state, f"{name}()", in_action=False, **more)

    def property(self, name: str, mark: PropertyMark, function: Callable[..., Any]) -> Property:
        """A property, or a lemma. Raises `ModelError`."""
        if mark.kind is Kind.TEMPORAL:
            return self._temporal(name, function)
        expr, parts, checks = self.predicate(function, 2 if mark.kind is Kind.STEP else 1)
        return Property(name, mark.kind, expr, parts, checks, place(function), inspect.getdoc(function) or "")

    def _temporal(self, name: str, function: Callable[..., Any]) -> Property:
        _expect_parameters(function, name, "a temporal property", "(self, s)", ": there is no next state in it")
        context = self._context(name, temporal=True, free=self.free, outside=self.outside, rules=self.rules)
        formula = Lowering(context).behaviour(function, [self.model, StateRef(names=self.names)])
        checks = tuple(p.check for p in context.checks)
        doc = inspect.getdoc(function) or ""
        return Property(name, Kind.TEMPORAL, b.TRUE, (), checks, place(function), doc, formula)

    def predicate(
        self, function: Callable[..., Any], states: int
    ) -> tuple[Expr, tuple[Conjunct, ...], tuple[Check, ...]]:
        """A condition on one state, or on the two of a step: its term, conjuncts and checks. Raises `ModelError`."""
        name = function.__name__
        if states == 1:
            _expect_parameters(function, name, "a condition on states", "(self, s)")
        else:
            _expect_parameters(function, name, "a condition on steps", "(self, s, t)")
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
        context = self._context(function.__name__, free=self.free, outside=outside, rules=self.rules)
        expr, parts = Lowering(context).predicate(function, args)
        return expr, parts, tuple(p.check for p in context.checks)

    def derived(self, name: str, function: types.FunctionType) -> Derived:
        """A value of each state."""
        _expect_parameters(function, name, "a value of every state", "(self, s)")
        context = self._context(name, outside=self.outside, rules=self.rules)
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
        _expect_parameters(function, name, "a number for every state", "(self, s)")
        context = self._context(name, free=self.free, rules=self.rules)
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


def _expect_parameters(function: Callable[..., Any], name: str, kind: str, shape: str, more: str = "") -> None:
    """Raises `ModelError` unless a function has as many parameters as `shape`."""
    got = parameters(function)
    if len(got) != len(shape.split(",")):
        raise ModelError(
            f"{name}({', '.join(got)}) is {kind}", loc=place(function), remedy=f"write def {name}{shape}{more}"
        )


def expect_total(checks: Sequence[Check], where: str, condition: str, everywhere: str) -> None:
    """Raises `ModelError` if a check of a condition may be true for some values of the variables."""
    for check in checks:
        from streamproof.language.lower.totality import may_be_true

        if may_be_true(check.condition):
            raise ModelError(
                f"{check.message}, perhaps, in {where}",
                loc=check.loc,
                remedy=f"test first that the value is there: {condition} must be defined for all {everywhere}",
            )
