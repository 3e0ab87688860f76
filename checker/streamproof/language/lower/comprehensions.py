"""Lowering of comprehension loops, quantifiers and sums over them, and the binding of loop variables."""

from __future__ import annotations

import ast
from collections.abc import Callable

from streamproof.base.errors import ModelError
from streamproof.language.lower import operators
from streamproof.language.lower.calls import formula, together, truth
from streamproof.language.lower.elements import Loop, Over, everywhere, refuse_used_up, unconditional
from streamproof.language.lower.lowering_context import Evaluator, Frame, Halt, where
from streamproof.language.lower.sources import text
from streamproof.language.lower.terms import Term, is_formula, simple
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.formula import Formula
from streamproof.transform.unbounded import exists, forall, total


def comprehended(
    ev: Evaluator, generators: list[ast.comprehension], elt: ast.expr, frame: Frame, *, in_turn: bool = False
) -> list[tuple[Expr, Term]]:
    """Each element of a comprehension, with the condition under which it is present; `in_turn`: their order matters."""
    made: list[tuple[Expr, Term]] = []

    def keep(there: Expr, inner: Frame) -> Expr:
        value = ev.value(elt, inner)
        refuse_used_up(value, where(frame, elt))
        made.append((there, value))
        return b.TRUE

    each_round(ev, generators, frame, keep, in_turn=in_turn)
    return made


def each_round(
    ev: Evaluator,
    generators: list[ast.comprehension],
    frame: Frame,
    visit: Callable[[Expr, Frame], Expr],
    *,
    in_turn: bool = False,
) -> None:
    """Calls `visit` once per combination of loop variables of a comprehension, guarded by its presence condition.

    `visit` receives that condition and the frame, and returns the condition under which iteration continues.
    """
    names = frozenset(n.id for g in generators for n in ast.walk(g.target) if isinstance(n, ast.Name))
    inner = Frame(frame.function, frame.file, {}, frame.globals, names, parent=frame, depth=frame.depth)
    _each(ev, generators, inner, frame, b.TRUE, visit, in_turn)


def _each(
    ev: Evaluator,
    generators: list[ast.comprehension],
    frame: Frame,
    outside: Frame,
    there: Expr,
    visit: Callable[[Expr, Frame], Expr],
    in_turn: bool,
) -> Expr:
    """One level of nested loops. Returns the condition under which iteration continues after it."""
    first, rest = generators[0], generators[1:]
    loc = where(frame, first.iter)
    if first.is_async:
        raise ModelError("'async for' is not part of the language", loc=loc, remedy="use 'for'")
    loop = Loop(ev.context, ev.value(first.iter, outside), loc, in_turn)
    going: Expr = b.TRUE
    for done, (cond, item) in enumerate(loop.items, 1):
        here = b.and_((there, cond))

        def body(item: Term = item, here: Expr = here, done: int = done) -> Expr:
            before = loop.begin()
            bind(ev, first.target, item, frame)
            goes = _filtered(ev, first.ifs, rest, frame, here, visit, in_turn)
            loop.end(before, done, b.not_(goes))
            return goes

        try:
            goes = ev.context.guarded(b.and_((cond, going)), body, loc)
        except Halt:
            if b.and_((cond, going)) is b.TRUE:
                raise
            goes = b.FALSE
        going = b.and_((going, b.implies(cond, goes)))
        loop.check()
    return going


def _filtered(
    ev: Evaluator,
    tests: list[ast.expr],
    rest: list[ast.comprehension],
    frame: Frame,
    there: Expr,
    visit: Callable[[Expr, Frame], Expr],
    in_turn: bool,
) -> Expr:
    """The filters of one loop, then its inner loops, then the element."""
    if tests:
        test = ev.condition(tests[0], frame)
        if test is b.FALSE:
            return b.TRUE
        try:
            goes: Expr = ev.context.guarded(
                test,
                lambda: _filtered(ev, tests[1:], rest, frame, b.and_((there, test)), visit, in_turn),
                where(frame, tests[0]),
            )
        except Halt:
            if test is b.TRUE:
                raise
            return b.not_(test)
        return b.implies(test, goes)
    if rest:
        return _each(ev, rest, frame, frame, there, visit, in_turn)
    return visit(there, frame)


def quantified(ev: Evaluator, node: ast.GeneratorExp, frame: Frame, name: str) -> Term:
    """``all(... for ...)`` or ``any(...)``; like Python, it stops at the first decisive element."""
    over = indices(ev, node, frame)
    if over is not None:
        return _every(ev, node, over, frame, name)
    parts: list[Expr] = []
    said: list[tuple[Expr, Formula]] = []
    loops = node.generators
    further = None
    if ev.context.free and len(loops) > 1:  # one of the inner loops may be unbounded
        loops, further = loops[:1], ast.copy_location(ast.GeneratorExp(node.elt, loops[1:]), node)

    def judge(there: Expr, inner: Frame) -> Expr:
        value = ev.value(node.elt, inner) if further is None else quantified(ev, further, inner, name)
        if is_formula(value):
            said.append((there, formula(ev.context, value, text(node.elt), where(frame, node.elt))))
            return b.TRUE
        part = truth(ev.context, value, name, where(frame, node.elt))
        parts.append(b.implies(there, part) if name == "all" else b.and_((there, part)))
        return part if name == "all" else b.not_(part)

    each_round(ev, loops, frame, judge)
    return together(name, parts, said, text(node), where(frame, node))


def indices(ev: Evaluator, node: ast.GeneratorExp | ast.ListComp, frame: Frame) -> Over | None:
    """The range of a generator's first loop, if it iterates over an unbounded index range or the elements at such indices."""
    if not ev.context.free:
        return None
    return everywhere(ev.context, ev.value(node.generators[0].iter, frame), where(frame, node))


def each_index(
    ev: Evaluator, node: ast.ListComp, over: Over, frame: Frame, judge: Callable[[ast.expr | None, Frame], Expr]
) -> tuple[Expr, Expr]:
    """The bound variable of a comprehension with one loop and no condition, and the value of `judge` for an element."""
    return _over(ev, ast.copy_location(ast.GeneratorExp(node.elt, node.generators), node), over, frame, judge, b.TRUE)


def _over(
    ev: Evaluator,
    node: ast.GeneratorExp,
    over: Over,
    frame: Frame,
    judge: Callable[[ast.expr | None, Frame], Expr],
    no: Expr,
) -> tuple[Expr, Expr]:
    """The bound variable of a generator's first loop and the value of `judge` for an element; `no` where none is present.

    `judge` receives a generator of the remaining loops (None if there are none) and the frame.
    """
    first, rest = node.generators[0], node.generators[1:]
    loc = where(frame, first.target)
    if not isinstance(first.target, ast.Name):
        raise ModelError("an index is one name", loc=loc, remedy="write for c in range(...)")
    name = first.target.id
    inner = Frame(frame.function, frame.file, {}, frame.globals, frozenset({name}), parent=frame, depth=frame.depth)
    further = ast.copy_location(ast.GeneratorExp(node.elt, rest), node) if rest else None

    def run(bound: Expr) -> Expr:
        inner.locals[name] = over.item(bound)
        test: Expr = b.TRUE
        for condition in first.ifs:
            one = ev.context.guarded(test, lambda at=condition: ev.condition(at, inner), loc)  # type: ignore[misc]
            test = b.and_((test, one))
        if test is b.FALSE:
            return no
        return b.ite(test, ev.context.guarded(test, lambda: judge(further, inner), loc), no)

    return ev.context.every(name, over.sort, run)


def _every(ev: Evaluator, node: ast.GeneratorExp, over: Over, frame: Frame, name: str) -> Term:
    """``all`` or ``any`` over an unbounded index range.

    A temporal formula keeps the index as a variable that is neither of the state nor a parameter: such a formula is true
    if it is for every value of these variables."""
    loc = where(frame, node)
    said: list[Formula] = []

    def judge(further: ast.expr | None, inner: Frame) -> Expr:
        value = ev.value(node.elt, inner) if further is None else None
        if isinstance(further, ast.GeneratorExp):
            value = quantified(ev, further, inner, name)
        if is_formula(value):
            if name != "all" or node.generators[0].ifs:
                raise ModelError(
                    "temporal formulas over any number of indices",
                    loc=loc,
                    remedy="write all(...) without a condition on the index, or give the parameter a value",
                )
            said.append(formula(ev.context, value, text(node.elt), loc))
            return b.TRUE
        return truth(ev.context, value, name, loc)

    if name == "all":
        every = forall(*_over(ev, node, over, frame, judge, b.TRUE), loc)
        return said[0] if said else simple(every)
    return simple(exists(*_over(ev, node, over, frame, judge, b.FALSE), loc))


def summed(ev: Evaluator, node: ast.GeneratorExp, over: Over, frame: Frame) -> Term:
    """``sum`` over an unbounded index range."""
    loc = where(frame, node)

    def judge(further: ast.expr | None, inner: Frame) -> Expr:
        if further is not None:
            raise ModelError("a sum over two indices", loc=loc, remedy="write a sum of sums: sum(sum(...) for ...)")
        return operators.integer(ev.context, ev.value(node.elt, inner), loc, text(node.elt))

    return simple(total(*_over(ev, node, over, frame, judge, b.num(0)), loc))


def bind(ev: Evaluator, target: ast.expr, value: Term, frame: Frame) -> None:
    """Binds a loop or comprehension variable."""
    if isinstance(target, ast.Name):
        frame.locals[target.id] = value
    elif isinstance(target, ast.Tuple | ast.List):
        for t, v in zip(target.elts, unpacked(ev, target, value, frame), strict=True):
            bind(ev, t, v, frame)
    else:
        raise ModelError(
            "a loop variable must be a name", loc=where(frame, target), remedy="use a name or a tuple of names"
        )


def unpacked(ev: Evaluator, target: ast.Tuple | ast.List, value: Term, frame: Frame) -> list[Term]:
    """The components of `value` for the names in `target`."""
    loc = where(frame, target)
    for t in target.elts:
        if isinstance(t, ast.Starred):
            raise ModelError("'*' in an assignment is not part of the language", loc=loc, remedy="index instead")
    parts = unconditional(ev.context, value, loc)
    if len(parts) != len(target.elts):
        raise ModelError(f"{len(target.elts)} names for {len(parts)} values", loc=loc, remedy="match their numbers")
    return parts
