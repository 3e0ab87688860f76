"""Lowering of statements: an action in ordinary Python becomes guards, updates and checks."""

from __future__ import annotations

import ast
from typing import Any

from streamproof.language import operators, places
from streamproof.language.conjuncts import conjuncts
from streamproof.language.effects import mutation
from streamproof.language.elements import Loop, refuse_used_up, unconditional
from streamproof.language.functions import Functions, returns_always, underlying
from streamproof.language.primitives import require
from streamproof.language.sources import definition, text
from streamproof.language.temporal import formula, is_formula
from streamproof.language.terms import (
    Cases,
    Cell,
    Ref,
    Several,
    StateRef,
    Term,
    describe,
    is_expr,
    known,
    symbolic,
)
from streamproof.language.world import UNROLL_LIMIT, Frame, Halt, boolean, where
from streamproof.system import build as b
from streamproof.system.errors import Loc, ModelError
from streamproof.system.expr import Expr
from streamproof.system.formula import Formula
from streamproof.system.model import Conjunct
from streamproof.system.sorts import ArraySort, RecordSort, SetSort

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
    ast.Match: ("'match' is not part of the language", "use if/elif"),
}


class Lowering(Functions):
    """Walks function bodies."""

    def block(self, body: list[ast.stmt], frame: Frame) -> None:
        """A sequence of statements; what follows a conditional return or loop exit runs only where that did not happen."""
        for at, statement in enumerate(body):
            gone = b.or_((frame.returned, frame.broke, frame.continued))
            if gone is b.TRUE:
                return
            if gone is not b.FALSE:

                def rest(statements: list[ast.stmt] = body[at:]) -> None:
                    frame.returned = frame.broke = frame.continued = b.FALSE
                    self.block(statements, frame)

                self.world.branch(frame, b.not_(gone), rest, _nothing, where(frame, statement))
                return
            try:
                self.statement(statement, frame)
            except ModelError as error:
                if error.loc is not None:
                    raise
                raise ModelError(error.message, loc=where(frame, statement), remedy=error.remedy) from None

    def statement(self, node: ast.stmt, frame: Frame) -> None:
        """One statement."""
        match node:
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                return
            case ast.Expr(value=ast.Call() as call):
                self._call_statement(call, frame)
            case ast.Expr(value=ast.Yield() | ast.YieldFrom() | ast.Await()):
                self.value(node.value, frame)
            case ast.Expr():
                raise ModelError(
                    f"{text(node)!r} has no effect",
                    loc=where(frame, node),
                    remedy="assign it, or require(...) it" if self.world.in_action else "return it",
                )
            case ast.Assign(targets=targets, value=value):
                term = self._assigned(value, frame, targets[0])
                with self.world.assignment():
                    for target in targets:
                        self.assign(target, term, frame)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.assign(target, self._assigned(value, frame, target), frame)
            case ast.AnnAssign():
                return
            case ast.AugAssign(target=target, op=op, value=value):
                self._augmented(node, target, op, value, frame)
            case ast.If():
                self._if(node, frame)
            case ast.For():
                self._for(node, frame)
            case ast.Return(value=given):
                frame.result = _kept(self.value(given, frame), frame, given) if given else None
                frame.returned = b.TRUE
            case ast.Break():
                frame.broke = b.TRUE
            case ast.Continue():
                frame.continued = b.TRUE
            case ast.FunctionDef(name=name):
                frame.locals[name] = self.closure(node, frame)
            case _:
                what, remedy = REFUSED.get(
                    type(node),
                    (f"{type(node).__name__} is not part of the language", "use if, for, assignments, calls"),
                )
                raise ModelError(what, loc=where(frame, node), remedy=remedy)

    def _call_statement(self, call: ast.Call, frame: Frame) -> None:
        if isinstance(call.func, ast.Name | ast.Attribute) and self.names(call.func, require, frame):
            loc = where(frame, call)
            if not self.world.in_action:
                raise ModelError("require(...) outside an action", loc=loc, remedy="return a condition")
            if len(call.args) != 1 or call.keywords:
                raise ModelError("require takes one condition", loc=loc, remedy="write require(s.credit > 0)")
            self._require(call.args[0], frame)
            return
        self.value(call, frame)

    def _require(self, node: ast.expr, frame: Frame) -> None:
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
            for part in node.values:
                self._require(part, frame)
            return
        dead = False
        for cond, label, at in conjuncts(self, node, frame):
            self.world.guard(b.implies(self.world.path, cond), label, where(frame, at))
            dead = dead or cond is b.FALSE
        if dead:
            raise Halt

    def _assigned(self, value: ast.expr, frame: Frame, target: ast.expr) -> Term:
        if isinstance(value, ast.Call):
            return _kept(self.call(value, frame, target.id if isinstance(target, ast.Name) else None), frame, value)
        return _kept(self.value(value, frame), frame, value)

    def assign(self, target: ast.expr, value: Term, frame: Frame) -> None:
        """Assignment to a name, a place of the state, an element of a local list or dict, or a tuple of these."""
        loc = where(frame, target)
        match target:
            case ast.Name(id=name):
                frame.locals[name] = value
            case ast.Tuple() | ast.List():
                for t, v in zip(target.elts, self.unpacked(target, value, frame), strict=True):
                    self.assign(t, v, frame)
            case ast.Attribute() | ast.Subscript():
                place = self.place(target, frame)
                if isinstance(place, Ref):
                    places.replace_whole(self.world, place, value, loc, text(target))
                else:
                    self._put(place[0], place[1], value)
            case _:
                raise ModelError(
                    f"cannot assign to {text(target)!r}", loc=loc, remedy="assign to a name or a place of the state"
                )

    def _put(self, cell: Cell, key: Any, value: Term) -> None:
        content = self.world.content(cell)
        if isinstance(content, tuple):
            self.world.put(cell, (*content[:key], value, *content[key:][1:]))
        else:
            self.world.put(cell, {**content, key: value})

    def place(self, node: ast.Attribute | ast.Subscript, frame: Frame) -> Ref | tuple[Cell, Any]:
        """Where an assignment goes: a place of the state, or a local container and a key."""
        owner, loc = self.value(node.value, frame), where(frame, node)
        if isinstance(owner, StateRef | Ref) and not self.world.in_action:
            raise ModelError(
                "a property cannot change the state", loc=loc, remedy="only actions do; return a condition"
            )
        if isinstance(node, ast.Attribute):
            return self._field_place(owner, node, frame)
        if isinstance(node.slice, ast.Slice):
            raise ModelError("a slice cannot be assigned", loc=loc, remedy="assign element by element")
        if isinstance(owner, StateRef):
            raise ModelError("the state is not indexed", loc=loc, remedy="write s.name")
        key = places.plain(self.world, self.value(node.slice, frame))
        if isinstance(owner, Ref) and isinstance(owner.sort, ArraySort):
            return places.item(self.world, owner, key, loc, text(node.slice))
        if isinstance(owner, Cell):
            return self._cell_place(owner, key, node, frame)
        if is_expr(owner) or isinstance(owner, Ref):
            raise ModelError(
                f"cannot assign into {describe(owner)}",
                loc=loc,
                remedy="assign to the variable or field that holds it; only arrays are assigned element by element",
            )
        raise ModelError(
            f"cannot assign into {describe(owner)}",
            loc=loc,
            remedy="everything that changes belongs to the state: declare it in state(); a local list starts with []",
        )

    def _field_place(self, owner: Term, node: ast.Attribute, frame: Frame) -> Ref:
        loc = where(frame, node)
        if isinstance(owner, StateRef):
            if owner.after:
                raise ModelError("the next state cannot be assigned", loc=loc, remedy="only actions assign, to s")
            name = self.variable(owner, node, frame)
            return Ref(name, (), self.world.sorts[name], self.world.generation)
        if isinstance(owner, Ref) and isinstance(owner.sort, RecordSort):
            return places.attribute(self.world, owner, node.attr, loc)
        if is_expr(owner):
            raise ModelError(
                f"cannot assign to a part of {describe(owner)} that is only a value here",
                loc=loc,
                remedy="assign the whole record to the place it lies in",
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

    def _cell_place(self, owner: Cell, key: Term, node: ast.Subscript, frame: Frame) -> tuple[Cell, Any]:
        is_known, host = known(key)
        if not is_known:
            raise ModelError(
                "a local list or dict is written at a position that depends on the state",
                loc=where(frame, node),
                remedy="loop over the positions and write under an if",
            )
        content = self.world.content(owner)
        if not isinstance(content, tuple):
            return owner, self.key(key, node.slice, frame)
        if not isinstance(host, int):
            raise ModelError(f"a list has no position {host!r}", loc=where(frame, node), remedy="use an integer")
        operators.host(self.world, lambda: content[host], where(frame, node))
        return owner, host % len(content)

    def _augmented(
        self, node: ast.AugAssign, target: ast.expr, op: ast.operator, value: ast.expr, frame: Frame
    ) -> None:
        loc, texts = where(frame, node), (text(target), text(value))
        if isinstance(target, ast.Name):
            now = self.value(ast.copy_location(ast.Name(target.id, ast.Load()), target), frame)
            given = self.value(value, frame)
            self._expect_unshared(now, op, frame, target, loc)
            if isinstance(now, Cell):
                if not isinstance(op, ast.Add):
                    raise ModelError("a local list only has +=", loc=loc, remedy="build a new list")
                self.world.put(now, (*self.world.content(now), *unconditional(self.world, given, loc)))
            elif isinstance(now, Ref):  # as in Python, the place the name stands for is changed
                result = operators.binary(self.world, op, places.read(self.world, now), given, loc, texts)
                places.write(self.world, now, result, loc, text(target))
            elif isinstance(now, list | dict | set | bytearray):
                raise mutation(text(node), loc)
            else:
                frame.locals[target.id] = operators.binary(self.world, op, now, given, loc, texts)
            return
        if not isinstance(target, ast.Attribute | ast.Subscript):
            raise ModelError(f"cannot assign to {text(target)!r}", loc=loc, remedy="assign to a name or a place")
        place = self.place(target, frame)
        if isinstance(place, Ref):
            old = places.settle(self.world, place)
            given = self.value(value, frame)
            result = operators.binary(self.world, op, places.plain(self.world, old), given, loc, texts)
            places.write(self.world, place, result, loc, text(target))
            return
        cell, key = place
        content = self.world.content(cell)
        old = operators.host(self.world, lambda: content[key], loc)
        given = self.value(value, frame)
        if isinstance(old, Cell):
            raise ModelError("'+=' on a list inside a list", loc=loc, remedy="use extend(...)")
        self._expect_unshared(old, op, frame, target, loc, (cell, key))
        self._put(cell, key, operators.binary(self.world, op, old, given, loc, texts))

    def _expect_unshared(
        self, now: Term, op: ast.operator, frame: Frame, target: ast.expr, loc: Loc, at: tuple[Cell, Any] | None = None
    ) -> None:
        """Raises `ModelError` where an augmented assignment changes an object that has another name as well.

        Python changes a set in place, while lowering gives `target` a new value. `at`: the position of a local list or
        dict that is assigned, if any.
        """
        if isinstance(now, Cases) and _stands_for_a_place(now):
            raise ModelError(
                f"which place {text(target)!r} stands for depends on the state",
                loc=loc,
                remedy="assign under an 'if', once for each of them",
            )
        if not isinstance(op, ast.BitOr | ast.BitAnd | ast.Sub | ast.BitXor) or not _is_set(now):
            return
        scope: Frame | None = frame
        known: list[Term] = list(frame.given)
        while scope is not None:
            own = target.id if isinstance(target, ast.Name) and scope is frame else None
            known += [v for name, v in scope.locals.items() if name != own]
            scope = scope.parent
        for number, content in self.world.heap.items():
            held = content.items() if isinstance(content, dict) else enumerate(content)
            known += [v for key, v in held if at is None or (number, key) != (at[0].number, at[1])]
        if is_expr(now) or any(_holds(v, now) for v in known):
            raise ModelError(
                f"{text(target)!r} is changed in place, and the set may have another name",
                loc=loc,
                remedy=f"make a new set: {text(target)} = {text(target)} {operators.SYMBOLS[type(op)]} ...",
            )

    def _if(self, node: ast.If, frame: Frame) -> None:
        value = places.plain(self.world, self.value(node.test, frame))
        if not symbolic(value):
            self.block(node.body if value else node.orelse, frame)
            return
        self.world.branch(
            frame,
            boolean(value, where(frame, node.test)),
            lambda: self.block(node.body, frame),
            lambda: self.block(node.orelse, frame),
            where(frame, node),
        )

    def _for(self, node: ast.For, frame: Frame) -> None:
        loc = where(frame, node)
        if node.orelse:
            raise ModelError("'for ... else' is not part of the language", loc=loc, remedy="use a flag")
        loop = Loop(self.world, self.value(node.iter, frame), where(frame, node.iter), in_turn=True)
        for done, (there, item) in enumerate(loop.items, 1):
            self.world.unrolled += 1
            if self.world.unrolled > UNROLL_LIMIT:
                raise ModelError(
                    f"loops unroll to more than {UNROLL_LIMIT:,} iterations", loc=loc, remedy="use smaller ranges"
                )
            gone = b.or_((frame.returned, frame.broke))
            if gone is b.TRUE:
                break

            def iteration(item: Term = item, done: int = done) -> None:
                frame.returned = frame.broke = b.FALSE
                before = loop.begin()
                self.bind(node.target, item, frame)
                self.block(node.body, frame)
                loop.end(before, done, b.or_((frame.returned, frame.broke)))
                frame.continued = b.FALSE

            runs = b.and_((there, b.not_(gone)))
            if runs is b.TRUE:
                iteration()
            else:
                self.world.branch(frame, runs, iteration, _nothing, loc)
            loop.check()
        frame.broke = b.FALSE

    # --- whole functions

    def action(self, function: Any, args: list[Term]) -> None:
        """The body of an action. Raises `ModelError`, also where it returns a value."""
        frame = self.enter(function, args, {}, 0, None)
        try:
            self.block(definition(underlying(function)).body, frame)
        except Halt:
            return
        if frame.result is not None:
            returns = [n for n in ast.walk(definition(underlying(function))) if isinstance(n, ast.Return) and n.value]
            raise ModelError(
                f"action {function.__name__} returns a value",
                loc=where(frame, returns[0]),
                remedy="an action changes the state and returns nothing; a condition goes into require(...)",
            )

    def predicate(self, function: Any, args: list[Term]) -> tuple[Expr, tuple[Conjunct, ...]]:
        """The condition a property function returns, taken apart where it ends in a single ``return``."""
        frame = self.enter(function, args, {}, 0, None)
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
        cond = boolean(places.plain(self.world, frame.result), where(frame, last))
        return cond, (Conjunct(cond, node.name, where(frame, node)),)

    def returned(self, function: Any, args: list[Term]) -> tuple[Term, Loc]:
        """What a function of the state gives back, with every place read, and where."""
        frame = self.enter(function, args, {}, 0, None)
        node = definition(underlying(function))
        self.block(node.body, frame)
        loc = where(frame, node.body[-1])
        if frame.returned is not b.TRUE and not returns_always(node.body):
            raise ModelError(f"{node.name}() does not return on every path", loc=loc, remedy="end with 'return ...'")
        return places.resolved(self.world, frame.result), loc

    def behaviour(self, function: Any, args: list[Term]) -> Formula:
        """What a temporal property says of behaviours."""
        frame = self.enter(function, args, {}, 0, None)
        node = definition(underlying(function))
        loc = where(frame, node.body[-1])
        self.block(node.body, frame)
        if frame.returned is not b.TRUE and not returns_always(node.body):
            raise ModelError(
                f"{node.name}() does not return a formula on every path",
                loc=where(frame, node),
                remedy="end with 'return ...'",
            )
        value = places.plain(self.world, frame.result)
        if not isinstance(value, bool) and not is_formula(value):
            raise ModelError(
                f"{node.name}() says nothing about behaviours: it returns {describe(value)}",
                loc=loc,
                remedy="return always(...), eventually(...), leads_to(..., ...) or until(..., ...); "
                "a condition on states is an @invariant",
            )
        return formula(self.world, value, node.name, loc)


def _kept(value: Term, frame: Frame, node: ast.expr) -> Term:
    """A value that is given a name; a generator is refused, since its second use would find it empty."""
    refuse_used_up(value, where(frame, node))
    return value


def _stands_for_a_place(value: Term) -> bool:
    """Whether a value is, in some states, a place of the state or a local list or dict."""
    if isinstance(value, Cases):
        return _stands_for_a_place(value.then) or _stands_for_a_place(value.other)
    return isinstance(value, Ref | Cell)


def _is_set(value: Term) -> bool:
    """Whether a value is a set that lies outside the state."""
    if isinstance(value, Cases):
        return _is_set(value.then) or _is_set(value.other)
    if is_expr(value):
        return isinstance(value.sort, SetSort)
    return type(value) is frozenset or (isinstance(value, Several) and not value.once)


def _holds(value: Term, wanted: Term) -> bool:
    """Whether a value is `wanted`, the very object, or has it inside."""
    if value is wanted:
        return True
    if isinstance(value, tuple):
        return any(_holds(v, wanted) for v in value)
    if isinstance(value, Cases):
        return _holds(value.then, wanted) or _holds(value.other, wanted)
    return isinstance(wanted, Cases) and (_holds(value, wanted.then) or _holds(value, wanted.other))


def _nothing() -> None:
    """The branch that does nothing."""
