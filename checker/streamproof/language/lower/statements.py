"""Lowering of statements: an action in ordinary Python becomes guards, updates and checks.

Conditions are split into conjuncts with their source texts, so that a report can name the false one.
"""

from __future__ import annotations

import ast
import builtins
from functools import partial
from typing import Any

from streamproof.base.errors import Loc, ModelError
from streamproof.language.declare.primitives import require
from streamproof.language.lower import lvalues, operators
from streamproof.language.lower.access import assigned_variable, mutation
from streamproof.language.lower.calls import truth
from streamproof.language.lower.comprehensions import bind, each_index, each_round, indices, quantified, unpacked
from streamproof.language.lower.elements import Loop, elements, in_sequence, refuse_used_up
from streamproof.language.lower.expressions import dict_key
from streamproof.language.lower.functions import call, means
from streamproof.language.lower.inlining import closure
from streamproof.language.lower.lift import widened
from streamproof.language.lower.lowering_context import UNROLL_LIMIT, Evaluator, Frame, Halt, boolean, where
from streamproof.language.lower.sequences import listed
from streamproof.language.lower.sources import mangled, text
from streamproof.language.lower.terms import (
    Cases,
    HeapCell,
    NewCase,
    PartialList,
    Ref,
    Several,
    StateRef,
    Term,
    describe,
    is_expr,
    known,
    symbolic,
)
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.sorts import ArraySort, OptionSort, RecordSort, SetSort, Sort, UnionSort
from streamproof.transform.unbounded import any_length, tabulated

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
        and means(node.func, builtins.all, frame)
        and len(node.args) == 1
        and isinstance(node.args[0], ast.GeneratorExp)
    )


def _each(
    ev: Evaluator, node: ast.GeneratorExp, frame: Frame, suffix: str, outer: tuple[tuple[str, bool, Any], ...] = ()
) -> list[Part]:
    """The conjuncts of the element for every iteration of the loops, with the values of the loop variables; `outer`:
    those of loops around these."""
    loops, further = node.generators, None
    if ev.context.free and len(loops) > 1:  # one of the inner loops may be unbounded
        loops, further = loops[:1], ast.copy_location(ast.GeneratorExp(node.elt, loops[1:]), node)
    names = [n.id for loop in loops for n in ast.walk(loop.target) if isinstance(n, ast.Name)]
    parts: list[Part] = []

    def visit(there: Expr, inner: Frame) -> Expr:
        values = (*outer, *((name, *known(inner.locals[name])) for name in dict.fromkeys(names)))
        note = ", ".join(f"{name}={host}" for name, is_known, host in values if is_known)
        label = f"{suffix}  [{note}]" if note else suffix
        if further is None:
            found = conjuncts(ev, node.elt, inner, label)
        elif indices(ev, further, inner) is None:
            found = _each(ev, further, inner, suffix, values)
        else:
            every = truth(ev.context, quantified(ev, further, inner, "all"), "all", where(frame, node))
            found = [(every, f"all({text(node)}){label}", node)]
        parts.extend((b.implies(there, cond), label, at) for cond, label, at in found)
        return b.and_(cond for cond, _, _ in found)

    each_round(ev, loops, frame, visit)
    return parts


REFUSED: dict[type[ast.stmt], tuple[str, str]] = {
    ast.While: ("'while' may not end", "loop with 'for' over a finite range and test the condition inside"),
    ast.Try: ("'try' is not part of the language", "nothing raises: test the condition with 'if' or require(...)"),
    ast.With: ("'with' is not part of the language", "a rule only reads and changes the state"),
    ast.Raise: ("'raise' is not part of the language", "forbid the state with require(...) or an invariant"),
    ast.Assert: ("'assert' inside a rule", "state it as an @invariant, or make it a require(...)"),
    ast.Delete: ("'del' is not part of the language", "set an Option to None, discard from a Set, pop from a Queue"),
    ast.Global: ("'global' is not part of the language", "everything that changes belongs to the state"),
    ast.Nonlocal: ("'nonlocal' is not part of the language", "return the value instead"),
    ast.Import: ("imports belong at the top of the file", "move the import out of the rule"),
    ast.ImportFrom: ("imports belong at the top of the file", "move the import out of the rule"),
    ast.ClassDef: ("a class inside a rule", "define it outside"),
    ast.AsyncFunctionDef: (
        "'async' is not part of the language",
        "interleaving is what the checker explores: use actions",
    ),
    ast.AsyncFor: ("'async' is not part of the language", "interleaving is what the checker explores: use actions"),
    ast.AsyncWith: ("'async' is not part of the language", "interleaving is what the checker explores: use actions"),
}


def expression_statement(ev: Evaluator, node: ast.Expr, frame: Frame) -> None:
    """An expression statement: a call for its effect, or a docstring."""
    match node.value:
        case ast.Constant():
            return
        case ast.Call() as made:
            _call_statement(ev, made, frame)
        case ast.Yield() | ast.YieldFrom() | ast.Await():
            ev.value(node.value, frame)
        case _:
            raise ModelError(
                f"{text(node)!r} has no effect",
                loc=where(frame, node),
                remedy="assign it, or require(...) it" if ev.context.in_action else "return it",
            )


def assignment(ev: Evaluator, node: ast.Assign, frame: Frame) -> None:
    """``a = b = value``."""
    match node:
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript() as place], value=ast.ListComp() as made):
            if _tabulated(ev, place, made, frame):
                return
    term = _assigned(ev, node.value, frame, node.targets[0])
    with ev.context.assignment():
        for target in node.targets:
            _assign(ev, target, term, frame)


def _tabulated(ev: Evaluator, target: ast.Attribute | ast.Subscript, made: ast.ListComp, frame: Frame) -> bool:
    """Whether ``s.array = [value for ...]`` writes an array of unbounded length, element by element, and was done."""
    if indices(ev, made, frame) is None:
        return False
    place = _target(ev, target, frame)
    if not isinstance(place, Ref):
        return False
    name, loc = text(target), where(frame, target)
    table = _table(ev, made, place.sort, name, loc, frame)
    if table is None:
        return False
    with ev.context.assignment():
        lvalues.replace_with(ev.context, place, table, loc, name)
    return True


def _table(ev: Evaluator, made: ast.ListComp, sort: Sort, name: str, loc: Loc, frame: Frame) -> Expr | None:
    """The array of unbounded length that a comprehension writes to a place of `sort`; None if it is another value."""
    over = indices(ev, made, frame)
    if over is None or len(made.generators) > 1 or made.generators[0].ifs:
        return None
    if not any_length(sort) or sort.index != over.sort:
        return None

    def judge(_: ast.expr | None, inner: Frame) -> Expr:
        if isinstance(made.elt, ast.ListComp):
            row = _table(ev, made.elt, sort.element, name, loc, inner)
            if row is not None:
                return row
        value = ev.value(made.elt, inner)
        term = lvalues.convert(ev.context, value, sort.element, loc, f"an element of the new {name}")
        outside = b.not_(b.in_domain(term, sort.element))
        ev.context.check(
            outside, f"an element of {name} leaves {sort.element}", loc, (f"element of the new {name}", term)
        )
        return widened(term, sort.element)

    bound, body = each_index(ev, made, over, frame, judge)
    return tabulated(sort, bound, body, loc)


def annotated_assignment(ev: Evaluator, node: ast.AnnAssign, frame: Frame) -> None:
    """``a: int = value``; without a value it has no effect."""
    if node.value is not None:
        _assign(ev, node.target, _assigned(ev, node.value, frame, node.target), frame)


def return_statement(ev: Evaluator, node: ast.Return, frame: Frame) -> None:
    """``return value``."""
    frame.result = _kept(ev.value(node.value, frame), frame, node.value) if node.value else None
    frame.returned = b.TRUE


def break_statement(ev: Evaluator, node: ast.Break, frame: Frame) -> None:
    """``break``."""
    frame.broke = b.TRUE


def continue_statement(ev: Evaluator, node: ast.Continue, frame: Frame) -> None:
    """``continue``."""
    frame.continued = b.TRUE


def pass_statement(ev: Evaluator, node: ast.Pass, frame: Frame) -> None:
    """``pass``."""


def function_definition(ev: Evaluator, node: ast.FunctionDef, frame: Frame) -> None:
    """A nested function."""
    frame.locals[node.name] = closure(ev, node, frame)


def refused_statement(ev: Evaluator, node: ast.stmt, frame: Frame) -> None:
    """Rejects a statement outside the language."""
    what, remedy = REFUSED.get(
        type(node), (f"{type(node).__name__} is not part of the language", "use if, for, assignments, calls")
    )
    raise ModelError(what, loc=where(frame, node), remedy=remedy)


def _call_statement(ev: Evaluator, call: ast.Call, frame: Frame) -> None:
    if isinstance(call.func, ast.Name | ast.Attribute) and means(call.func, require, frame):
        loc = where(frame, call)
        if not ev.context.in_action:
            raise ModelError("require(...) outside an action", loc=loc, remedy="return a condition")
        if len(call.args) != 1 or call.keywords:
            raise ModelError("require takes one condition", loc=loc, remedy="write require(s.credit > 0)")
        _require(ev, call.args[0], frame)
        return
    ev.value(call, frame)


def _require(ev: Evaluator, node: ast.expr, frame: Frame) -> None:
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        for part in node.values:
            _require(ev, part, frame)
        return
    dead = False
    for cond, label, at in conjuncts(ev, node, frame):
        ev.context.guard(b.implies(ev.context.path, cond), label, where(frame, at))
        dead = dead or cond is b.FALSE
    if dead:
        raise Halt


def _assigned(ev: Evaluator, value: ast.expr, frame: Frame, target: ast.expr) -> Term:
    if isinstance(value, ast.Call):
        return _kept(call(ev, value, frame, target if isinstance(target, ast.Name) else None), frame, value)
    return _kept(ev.value(value, frame), frame, value)


def _assign(ev: Evaluator, target: ast.expr, value: Term, frame: Frame) -> None:
    """Assignment to a name, a place of the state, an element of a local list or dict, or a tuple of these."""
    loc = where(frame, target)
    match target:
        case ast.Name(id=name):
            frame.locals[name] = value
        case ast.Tuple() | ast.List():
            for t, v in zip(target.elts, unpacked(ev, target, value, frame), strict=True):
                _assign(ev, t, v, frame)
        case ast.Attribute() | ast.Subscript():
            place = _target(ev, target, frame)
            if isinstance(place, Ref):
                lvalues.replace_whole(ev.context, place, value, loc, text(target))
            else:
                _put(ev, place[0], place[1], value)
                if ev.context.attributes is not None and place[0] is ev.context.attributes[1]:
                    from streamproof.language.free.host_values import host_value

                    host_value(ev, value, loc)
        case _:
            raise ModelError(
                f"cannot assign to {text(target)!r}", loc=loc, remedy="assign to a name or a place of the state"
            )


def _put(ev: Evaluator, cell: HeapCell, key: Any, value: Term) -> None:
    content = ev.context.content(cell)
    assert not isinstance(content, PartialList)
    if isinstance(content, tuple):
        ev.context.put(cell, (*content[:key], value, *content[key:][1:]))
    else:
        ev.context.put(cell, {**content, key: value})


def _target(ev: Evaluator, node: ast.Attribute | ast.Subscript, frame: Frame) -> Ref | tuple[HeapCell, Any]:
    """The target of an assignment: a place of the state, or a local container and a key."""
    owner, loc = ev.value(node.value, frame), where(frame, node)
    if isinstance(owner, StateRef | Ref) and not ev.context.in_action:
        raise ModelError("a property cannot change the state", loc=loc, remedy="only actions do; return a condition")
    if isinstance(node, ast.Attribute):
        return _field_target(ev, owner, node, frame)
    if isinstance(node.slice, ast.Slice):
        raise ModelError("a slice cannot be assigned", loc=loc, remedy="assign element by element")
    if isinstance(owner, StateRef):
        raise ModelError("the state is not indexed", loc=loc, remedy="write s.name")
    key = lvalues.dereference(ev.context, ev.value(node.slice, frame))
    if isinstance(owner, Ref) and isinstance(owner.sort, ArraySort):
        return lvalues.item(ev.context, owner, key, loc, text(node.slice))
    if isinstance(owner, HeapCell):
        return _cell_target(ev, owner, key, node, frame)
    if is_expr(owner) or isinstance(owner, Ref):
        raise ModelError(
            f"cannot assign into {describe(owner)}",
            loc=loc,
            remedy=f"an Option is assigned as a whole: {text(node.value)} = ..."
            if is_expr(owner) and isinstance(owner.sort, OptionSort)
            else "assign to the variable or field that holds it; only arrays are assigned element by element",
        )
    raise ModelError(
        f"cannot assign into {describe(owner)}",
        loc=loc,
        remedy="everything that changes belongs to the state: declare it in state(); a local list starts with []",
    )


def _field_target(ev: Evaluator, owner: Term, node: ast.Attribute, frame: Frame) -> Ref | tuple[HeapCell, Any]:
    loc = where(frame, node)
    if ev.context.attributes is not None and owner is ev.context.attributes[0]:  # in setup()
        return ev.context.attributes[1], mangled(node.attr, frame.function)
    if isinstance(owner, StateRef):
        if owner.after:
            raise ModelError("the next state cannot be assigned", loc=loc, remedy="only actions assign, to s")
        name = assigned_variable(ev, owner, node, frame)
        return Ref(name, (), ev.context.sorts[name], ev.context.generation)
    if isinstance(owner, Ref) and isinstance(owner.sort, RecordSort):
        return lvalues.attribute(ev.context, owner, node.attr, loc)
    if isinstance(owner, NewCase) or (is_expr(owner) and isinstance(owner.sort, UnionSort)):
        raise ModelError(
            f"cannot assign to {text(node)!r}: the values of a union do not change",
            loc=loc,
            remedy="assign a new value to the place that holds it",
        )
    if is_expr(owner):
        raise ModelError(
            f"cannot assign to a part of {describe(owner)} that is only a value here",
            loc=loc,
            remedy=f"an Option is assigned as a whole: {text(node.value)} = ..."
            if isinstance(owner.sort, OptionSort)
            else "assign the whole record to the place it lies in",
        )
    if isinstance(owner, Cases):
        raise ModelError(
            f"cannot assign to {text(node)!r}: which part it is depends on the state",
            loc=loc,
            remedy="loop over the parts, and assign under an if",
        )
    raise ModelError(
        f"cannot assign to an attribute of {describe(owner)}",
        loc=loc,
        remedy="everything that changes belongs to the state: declare it in state()",
    )


def _cell_target(ev: Evaluator, owner: HeapCell, key: Term, node: ast.Subscript, frame: Frame) -> tuple[HeapCell, Any]:
    is_known, host = known(key)
    if not is_known:
        raise ModelError(
            "a local list or dict is written at a position that depends on the state",
            loc=where(frame, node),
            remedy="loop over the positions and write under an if",
        )
    content = ev.context.content(owner)
    if isinstance(content, PartialList):
        raise ModelError(
            "a list whose length depends on the state is written at a position",
            loc=where(frame, node),
            remedy="make a new list: [... for i, v in enumerate(...)]",
        )
    if not isinstance(content, tuple):
        return owner, dict_key(ev, key, node.slice, frame)
    if not isinstance(host, int):
        raise ModelError(f"a list has no position {host!r}", loc=where(frame, node), remedy="use an integer")
    operators.host(ev.context, lambda: content[host], where(frame, node), host)
    return owner, host % len(content)


def augmented_assignment(ev: Evaluator, node: ast.AugAssign, frame: Frame) -> None:
    """``a += b``; as in Python, aliases of a local set or list would change with it."""
    target, op, value = node.target, node.op, node.value
    loc, texts = where(frame, node), (text(target), text(value))
    if isinstance(target, ast.Name):
        now = ev.value(ast.copy_location(ast.Name(target.id, ast.Load()), target), frame)
        given = ev.value(value, frame)
        _expect_unshared(ev, now, op, frame, target, loc)
        if isinstance(now, HeapCell):
            if not isinstance(op, ast.Add):
                raise ModelError("a local list only has +=", loc=loc, remedy="build a new list")
            more = in_sequence(ev.context, given, loc)
            ev.context.put(now, listed([*elements(ev.context, now, loc), *more]))
        elif isinstance(now, Ref):  # as in Python, the place that the name refers to is changed
            result = operators.binary(ev.context, op, lvalues.read(ev.context, now), given, loc, texts)
            lvalues.write(ev.context, now, result, loc, text(target))
        elif isinstance(now, list | dict | set | bytearray):
            raise mutation(text(node), loc)
        else:
            frame.locals[target.id] = operators.binary(ev.context, op, now, given, loc, texts)
        return
    if not isinstance(target, ast.Attribute | ast.Subscript):
        raise ModelError(f"cannot assign to {text(target)!r}", loc=loc, remedy="assign to a name or a place")
    place = _target(ev, target, frame)
    if isinstance(place, Ref):
        old = lvalues.load(ev.context, place)
        given = ev.value(value, frame)
        result = operators.binary(ev.context, op, lvalues.dereference(ev.context, old), given, loc, texts)
        lvalues.write(ev.context, place, result, loc, text(target))
        return
    cell, key = place
    content = ev.context.content(cell)
    assert not isinstance(content, PartialList)
    old = operators.host(ev.context, lambda: content[key], loc, key)
    given = ev.value(value, frame)
    if isinstance(old, HeapCell):
        raise ModelError("'+=' on a list inside a list", loc=loc, remedy="use extend(...)")
    _expect_unshared(ev, old, op, frame, target, loc, (cell, key))
    _put(ev, cell, key, operators.binary(ev.context, op, old, given, loc, texts))


def _expect_unshared(
    ev: Evaluator,
    now: Term,
    op: ast.operator,
    frame: Frame,
    target: ast.expr,
    loc: Loc,
    at: tuple[HeapCell, Any] | None = None,
) -> None:
    """Raises `ModelError` if an augmented assignment mutates an aliased object.

    Python changes a set in place, while lowering gives `target` a new value. `at`: the assigned position of a local
    list or dict, if any.
    """
    if isinstance(now, Cases) and _stands_for_a_place(now):
        raise ModelError(
            f"which place {text(target)!r} refers to depends on the state",
            loc=loc,
            remedy="assign under an 'if', once for each of them",
        )
    if not isinstance(op, ast.BitOr | ast.BitAnd | ast.Sub | ast.BitXor) or not _is_set(now):
        return
    known: list[Term] = list(frame.given)
    for scope in frame.scopes():
        own = target.id if isinstance(target, ast.Name) and scope is frame else None
        known += [v for name, v in scope.locals.items() if name != own]
    for number, content in ev.context.heap.items():
        if isinstance(content, PartialList):
            known += [v for _, v in content.items]
            continue
        held = content.items() if isinstance(content, dict) else enumerate(content)
        known += [v for key, v in held if at is None or (number, key) != (at[0].number, at[1])]
    if is_expr(now) or any(_holds(v, now) for v in known):
        raise ModelError(
            f"{text(target)!r} is changed in place, and the set may have another name",
            loc=loc,
            remedy=f"make a new set: {text(target)} = {text(target)} {operators.SYMBOLS[type(op)]} ...",
        )


def if_statement(ev: Evaluator, node: ast.If, frame: Frame) -> None:
    """``if``; both branches are lowered if the condition depends on the state."""
    value = lvalues.dereference(ev.context, ev.value(node.test, frame))
    if not symbolic(value):
        ev.block(node.body if value else node.orelse, frame)
        return
    ev.context.branch(
        frame,
        boolean(value, where(frame, node.test)),
        lambda: ev.block(node.body, frame),
        lambda: ev.block(node.orelse, frame),
        where(frame, node),
    )


def for_statement(ev: Evaluator, node: ast.For, frame: Frame) -> None:
    """``for``, unrolled."""
    loc = where(frame, node)
    if node.orelse:
        raise ModelError("'for ... else' is not part of the language", loc=loc, remedy="use a flag")
    loop = Loop(ev.context, ev.value(node.iter, frame), where(frame, node.iter), in_turn=True)
    for done, (there, item) in enumerate(loop.items, 1):
        ev.context.unrolled += 1
        if ev.context.unrolled > UNROLL_LIMIT:
            raise ModelError(
                f"loops unroll to more than {UNROLL_LIMIT:,} iterations", loc=loc, remedy="use smaller ranges"
            )
        gone = b.or_((frame.returned, frame.broke))
        if gone is b.TRUE:
            break

        def iteration(item: Term = item, done: int = done) -> None:
            frame.returned = frame.broke = b.FALSE
            before = loop.begin()
            bind(ev, node.target, item, frame)
            ev.block(node.body, frame)
            loop.end(before, done, b.or_((frame.returned, frame.broke)))
            frame.continued = b.FALSE

        runs = b.and_((there, b.not_(gone)))
        if runs is b.TRUE:
            iteration()
        else:
            ev.context.branch(frame, runs, iteration, nothing, loc)
        loop.check()
    frame.broke = b.FALSE


def _kept(value: Term, frame: Frame, node: ast.expr) -> Term:
    """A value bound to a name; a generator is rejected, because a second use would find it empty."""
    refuse_used_up(value, where(frame, node))
    return value


def _stands_for_a_place(value: Term) -> bool:
    """Whether a value is, in some states, a place of the state or a local list or dict."""
    if isinstance(value, Cases):
        return _stands_for_a_place(value.then) or _stands_for_a_place(value.other)
    return isinstance(value, Ref | HeapCell)


def _is_set(value: Term) -> bool:
    """Whether a value is a set outside the state."""
    if isinstance(value, Cases):
        return _is_set(value.then) or _is_set(value.other)
    if is_expr(value):
        return isinstance(value.sort, SetSort)
    return type(value) is frozenset or (isinstance(value, Several) and not value.once)


def _holds(value: Term, wanted: Term) -> bool:
    """Whether a value is, or contains, the object `wanted`."""
    if value is wanted:
        return True
    if isinstance(value, tuple):
        return any(_holds(v, wanted) for v in value)
    if isinstance(value, Cases):
        return _holds(value.then, wanted) or _holds(value.other, wanted)
    return isinstance(wanted, Cases) and (_holds(value, wanted.then) or _holds(value, wanted.other))


def nothing() -> None:
    """The empty branch."""
