"""Lowering of Python expressions: constants are folded, state-dependent expressions become terms or formulas.

Tuple, list, set and dict literals and comprehensions come first.
"""

from __future__ import annotations

import ast
import builtins
import types
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from streamproof.base.errors import ModelError, suggest
from streamproof.language.declare.primitives import OPERATORS, always, eventually, leads_to
from streamproof.language.lower import operators, sequences
from streamproof.language.lower.calls import formula
from streamproof.language.lower.comprehensions import comprehended
from streamproof.language.lower.conversion import expect_faithful
from streamproof.language.lower.elements import distinct, generator, refuse_used_up, unconditional
from streamproof.language.lower.lowering_context import Evaluator, Frame, Halt, boolean, where
from streamproof.language.lower.lvalues import dereference, replaced
from streamproof.language.lower.sources import mangled, text
from streamproof.language.lower.terms import (
    Closure,
    HeapCell,
    PartialList,
    Ref,
    Several,
    StateRef,
    Term,
    Undefined,
    describe,
    is_expr,
    is_formula,
    known,
    symbolic,
)
from streamproof.system import build as b
from streamproof.system.expr import Expr, variables
from streamproof.system.formula import FORMULAS, Always, AndF, Atom, Eventually, Formula, LeadsTo, NotF, OrF, Until

LANGUAGE = "use arithmetic, comparisons, and/or/not, conditional expressions, indexing, comprehensions and calls"


def tuple_display(ev: Evaluator, node: ast.Tuple, frame: Frame) -> Term:
    """``(a, b)``."""
    return _reusable(ev, tuple(spread(ev, node.elts, frame)), node, frame)


def list_display(ev: Evaluator, node: ast.List, frame: Frame) -> Term:
    """``[a, b]``."""
    return ev.context.allocate(_reusable(ev, tuple(spread(ev, node.elts, frame)), node, frame))


def set_display(ev: Evaluator, node: ast.Set, frame: Frame) -> Term:
    """``{a, b}``."""
    return _make_set(ev, [(b.TRUE, v) for v in spread(ev, node.elts, frame)], node, frame)


def list_comprehension(ev: Evaluator, node: ast.ListComp, frame: Frame) -> Term:
    """``[a for ...]``."""
    items = comprehended(ev, node.generators, node.elt, frame, in_turn=True)
    return ev.context.allocate(sequences.listed(items))


def set_comprehension(ev: Evaluator, node: ast.SetComp, frame: Frame) -> Term:
    """``{a for ...}``."""
    return _make_set(ev, comprehended(ev, node.generators, node.elt, frame), node, frame)


def generator_expression(ev: Evaluator, node: ast.GeneratorExp, frame: Frame) -> Term:
    """``(a for ...)``; its elements are evaluated on use."""
    return generator(ev.context, lambda: comprehended(ev, node.generators, node.elt, frame))


def dict_comprehension(ev: Evaluator, node: ast.DictComp, frame: Frame) -> Term:
    """``{a: b for ...}``."""
    pair = ast.copy_location(ast.Tuple(elts=[node.key, node.value], ctx=ast.Load()), node)
    made = {}
    for there, (key, value) in comprehended(ev, node.generators, pair, frame):
        if there is not b.TRUE:
            raise ModelError(
                "the keys of a local dict depend on the state",
                loc=where(frame, node),
                remedy="use an Array of the state",
            )
        made[dict_key(ev, key, node.key, frame)] = value
    return ev.context.allocate(made)


def refused(ev: Evaluator, node: ast.expr, frame: Frame) -> Term:
    """Rejects a construct outside the language."""
    loc = where(frame, node)
    match node:
        case ast.NamedExpr():
            raise ModelError("':=' is not part of the language", loc=loc, remedy="assign on a line of its own")
        case ast.Await() | ast.Yield() | ast.YieldFrom():
            raise ModelError(
                f"{text(node)!r} is not part of the language",
                loc=loc,
                remedy="interleaving is what the checker explores: use actions",
            )
    raise ModelError(f"{text(node)!r} ({type(node).__name__}) is not part of the language", loc=loc, remedy=LANGUAGE)


def _reusable(ev: Evaluator, parts: tuple[Term, ...], node: ast.expr, frame: Frame) -> tuple[Term, ...]:
    """The elements of a literal; iterators, which a first use would exhaust, are rejected."""
    for part in parts:
        refuse_used_up(part, where(frame, node))
    return parts


def spread(ev: Evaluator, nodes: list[ast.expr], frame: Frame) -> Iterator[Term]:
    """The elements of a literal or the arguments of a call, with starred ones expanded."""
    for n in nodes:
        if isinstance(n, ast.Starred):
            spread = ev.value(n.value, frame)
            if isinstance(spread, set | frozenset):
                expect_faithful(spread, where(frame, n))  # a set literal ignores their __iter__
            yield from unconditional(ev.context, spread, where(frame, n))
        else:
            yield ev.value(n, frame)


def _make_set(ev: Evaluator, items: list[tuple[Expr, Term]], node: ast.expr, frame: Frame) -> Term:
    if any(symbolic(v) or there is not b.TRUE for there, v in items):
        for _, v in items:
            if isinstance(v, HeapCell | Several):
                raise ModelError(
                    f"{describe(v)} cannot be a member of a set", loc=where(frame, node), remedy="use a tuple instead"
                )
        return distinct(ev.context, items, operators.equal, where(frame, node))
    operators.expect_no_model([v for _, v in items], where(frame, node))
    try:
        return frozenset(v for _, v in items)
    except TypeError as error:
        raise ModelError(
            f"a set needs hashable members: {error}", loc=where(frame, node), remedy="use tuples instead of lists"
        ) from None


def dict_key(ev: Evaluator, key: Term, node: ast.expr, frame: Frame) -> Any:
    """A key of a local dict."""
    is_known, host = known(key)
    if isinstance(key, HeapCell):
        raise ModelError("a list cannot be a key", loc=where(frame, node), remedy="use a tuple instead")
    if not is_known:
        raise ModelError(
            "a key of a local dict depends on the state",
            loc=where(frame, node),
            remedy="use an Array of the state, or create every key and test with 'if'",
        )
    operators.expect_no_model([host], where(frame, node))
    try:
        hash(host)
    except TypeError as error:
        raise ModelError(
            f"a dict needs hashable keys: {error}", loc=where(frame, node), remedy="use tuples instead of lists"
        ) from None
    return host


def dict_display(ev: Evaluator, node: ast.Dict, frame: Frame) -> Term:
    """``{a: b}``."""
    made: dict[Any, Term] = {}
    for key_node, value_node in zip(node.keys, node.values, strict=True):
        if key_node is None:
            held = ev.value(value_node, frame)
            content = ev.context.content(held) if isinstance(held, HeapCell) else held
            if not isinstance(content, Mapping):
                raise ModelError(
                    f"'**' needs a dict, got {describe(held)}", loc=where(frame, value_node), remedy="name the keys"
                )
            made.update(content)
            continue
        key = dict_key(ev, ev.value(key_node, frame), key_node, frame)
        made[key] = ev.value(value_node, frame)
        refuse_used_up(made[key], where(frame, value_node))
    return ev.context.allocate(made)


_MISSING = object()
_CONVERSIONS: dict[int, Callable[[Any], Any]] = {-1: lambda v: v, ord("r"): repr, ord("s"): str, ord("a"): ascii}


def binary(ev: Evaluator, node: ast.BinOp, frame: Frame) -> Term:
    """A binary operation, such as ``a + b``."""
    left = ev.value(node.left, frame)
    right = ev.value(node.right, frame)
    texts = (text(node.left), text(node.right))
    return operators.binary(ev.context, node.op, left, right, where(frame, node), texts)


def name_value(ev: Evaluator, node: ast.Name, frame: Frame) -> Term:
    """The value of a name: local, enclosing scope, module or built-in."""
    for scope in frame.scopes():
        if node.id in scope.locals:
            found = scope.locals[node.id]
            if isinstance(found, Undefined):
                raise ModelError(f"{node.id!r} {found.why}", loc=where(frame, node), remedy=found.remedy)
            if isinstance(found, Ref):
                replaced(ev.context, found, where(frame, node), node.id)
            return found
        if node.id in scope.own:
            raise ModelError(
                f"{node.id!r} is used before it has a value",
                loc=where(frame, node),
                remedy="assign it first; a name that is assigned anywhere in a function is local to it",
            )
    found = outside(frame, node.id, _MISSING)
    if found is _MISSING:
        remedy = f"the state variable is s.{node.id}"
        if node.id not in ev.context.sorts:
            names = [*frame.locals, *frame.globals, *ev.context.sorts]
            remedy = suggest(node.id, names, "define or import it")
        raise ModelError(f"name {node.id!r} is not defined", loc=where(frame, node), remedy=remedy)
    return found


def joined_text(ev: Evaluator, node: ast.JoinedStr, frame: Frame) -> Term:
    """An f-string with constant values."""
    parts = []
    for piece in node.values:
        if isinstance(piece, ast.Constant):
            parts.append(str(piece.value))
            continue
        assert isinstance(piece, ast.FormattedValue)
        is_known, value = known(ev.value(piece.value, frame))
        spec = joined_text(ev, piece.format_spec, frame) if isinstance(piece.format_spec, ast.JoinedStr) else ""
        if not is_known:
            raise ModelError(
                "text cannot depend on the state", loc=where(frame, node), remedy="use an Enum, or a known value"
            )
        shown = _CONVERSIONS[piece.conversion](value)
        parts.append(operators.host(ev.context, partial(format, shown, spec), where(frame, piece)))
    return "".join(parts)


def unary(ev: Evaluator, node: ast.UnaryOp, frame: Frame) -> Term:
    """``not a``, ``-a`` and ``+a``."""
    value, loc = ev.value(node.operand, frame), where(frame, node)
    if isinstance(node.op, ast.Not) and is_formula(value):
        return NotF(formula(ev.context, value, text(node.operand), loc))
    value = dereference(ev.context, value)
    is_host = not symbolic(value)
    match node.op:
        case ast.Not():
            return (not value) if is_host else b.not_(boolean(value, loc), loc)
        case ast.USub() if is_host:
            return operators.host(ev.context, lambda: -value, loc)
        case ast.USub():
            return b.sub(b.num(0), operators.integer(ev.context, value, loc, text(node.operand)), loc)
        case ast.UAdd() if is_host:
            return operators.host(ev.context, lambda: +value, loc)
        case ast.UAdd():
            return operators.integer(ev.context, value, loc, text(node.operand))
        case _ if is_host:
            return operators.host(ev.context, lambda: ~value, loc)
    raise ModelError("'~' is not part of the language", loc=loc, remedy="use 'not' for truth values")


def connective(ev: Evaluator, node: ast.BoolOp, frame: Frame) -> Term:
    """``and``/``or`` with short-circuit evaluation: later operands are guarded by the earlier ones."""
    conj, loc = isinstance(node.op, ast.And), where(frame, node)
    parts: list[Expr] = []
    stated: list[ast.expr] = []
    said: list[Formula] = []
    reached: Expr = b.TRUE
    for at, operand in enumerate(node.values):
        try:
            value = ev.context.guarded(reached, partial(ev.value, operand, frame), loc)
        except Halt:
            if not parts:
                raise
            break
        if is_formula(value):
            said.append(formula(ev.context, value, text(operand), where(frame, operand)))
            continue
        value = dereference(ev.context, value)
        if not symbolic(value) and not parts and not said:
            if bool(value) != conj or at == len(node.values) - 1:
                return value
            continue
        if not symbolic(value) and not isinstance(value, bool):
            raise ModelError(
                f"{text(operand)!r} is not a truth value", loc=where(frame, operand), remedy="compare explicitly"
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


def temporal_operator(ev: Evaluator, function: Any, node: ast.Call, frame: Frame) -> Formula:
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


def _refuse_values_of_now(ev: Evaluator, argument: ast.expr, frame: Frame) -> None:
    for node in ast.walk(argument):
        if not isinstance(node, ast.Name):
            continue
        scope = next((scope for scope in frame.scopes() if node.id in scope.locals), None)
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
    return symbolic(value) and not (is_expr(value) and variables(value) <= ev.context.indices)


def compare(ev: Evaluator, node: ast.Compare, frame: Frame) -> Term:
    """A comparison; chains are short-circuited, and each operand is evaluated once."""
    loc = where(frame, node)
    left, left_text = ev.value(node.left, frame), text(node.left)
    if len(node.ops) == 1:
        at = node.comparators[0]
        right = ev.value(at, frame)
        return operators.compare(ev.context, node.ops[0], left, right, loc, (left_text, text(at)))
    parts: list[Expr] = []
    reached: Expr = b.TRUE
    for op, right_node in zip(node.ops, node.comparators, strict=True):

        def one(op: ast.cmpop = op, at: ast.expr = right_node, left: Term = left, label: str = left_text) -> Term:
            right = ev.value(at, frame)
            return right, operators.compare(ev.context, op, left, right, loc, (label, text(at)))

        try:
            left, part = ev.context.guarded(reached, one, loc)
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


def conditional(ev: Evaluator, node: ast.IfExp, frame: Frame) -> Term:
    """``a if test else b``."""
    value = dereference(ev.context, ev.value(node.test, frame))
    if not symbolic(value):
        return ev.value(node.body if value else node.orelse, frame)
    return ev.context.conditional(
        boolean(value, where(frame, node.test)),
        lambda: ev.value(node.body, frame),
        lambda: ev.value(node.orelse, frame),
        where(frame, node),
    )


def outside(frame: Frame, name: str, default: Any = None) -> Any:
    """The value of a name outside of a function's variables: of an enclosing function, the module, or built in."""
    name, cells = mangled(name, frame.function), closed_over(frame)
    if name in cells:
        return cells[name]
    if name in frame.globals:
        return frame.globals[name]
    known = getattr(frame.function, "__builtins__", vars(builtins))
    return known.get(name, default)


def closed_over(frame: Frame) -> dict[str, Any]:
    """The free variables of a function."""
    function = frame.function
    if not isinstance(function, types.FunctionType) or not function.__closure__:
        return {}
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__, strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # an empty cell: the name is unbound
            continue
    return found
