"""Lowering of statements and functions: an action in ordinary Python becomes guards, updates and checks."""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Iterator
from typing import Any

from streamproof.language import calls, operators, places
from streamproof.language.expressions import Expressions
from streamproof.language.primitives import choose, require
from streamproof.language.sources import definition, text
from streamproof.language.terms import Cell, Closure, Ref, StateRef, Term, as_constant, describe
from streamproof.language.world import UNROLL_LIMIT, Frame, boolean, where
from streamproof.system import build as b
from streamproof.system.errors import ModelError
from streamproof.system.expr import Expr, Node
from streamproof.system.model import Conjunct
from streamproof.system.sorts import ArraySort, RecordSort

REFUSED: dict[str, tuple[str, str]] = {
    "While": ("'while' may not end", "loop with 'for' over a finite range and test the condition inside"),
    "Try": ("'try' is not part of the language", "nothing raises: test the condition with 'if' or require(...)"),
    "With": ("'with' is not part of the language", "a rule only reads and changes the state"),
    "Raise": ("'raise' is not part of the language", "forbid the state with require(...) or an invariant"),
    "Assert": ("'assert' inside a rule", "state it as an @invariant, or make it a require(...)"),
    "Delete": ("'del' is not part of the language", "set an Option to None, discard from a Set, pop from a Queue"),
    "Global": ("'global' is not part of the language", "everything that changes belongs to the state"),
    "Nonlocal": ("'nonlocal' is not part of the language", "return the value instead"),
    "Import": ("imports belong at the top of the file", "move the import out of the rule"),
    "ImportFrom": ("imports belong at the top of the file", "move the import out of the rule"),
    "ClassDef": ("a class inside a rule", "define it outside"),
    "AsyncFunctionDef": (
        "'async' is not part of the language",
        "interleaving is what the checker explores: use actions",
    ),
    "Match": ("'match' is not part of the language yet", "use if/elif"),
}


class Lowering(Expressions):
    """Walks function bodies."""

    # --- functions

    def call_function(
        self, function: Any, args: list[Term], kwargs: dict[str, Term], frame: Frame, node: ast.AST
    ) -> Term:
        """Inlines a call of a function written in Python."""
        if isinstance(function, Closure):
            return self._call_closure(function, args, kwargs, frame, node)
        inner = self.enter(function, args, kwargs, frame.depth + 1, where(frame, node))
        body = definition(_underlying(function)).body
        self.block(body, inner)
        return inner.result

    def enter(self, function: Any, args: list[Term], kwargs: dict[str, Term], depth: int, loc: Any) -> Frame:
        """A frame with the arguments bound."""
        plain = _underlying(function)
        if inspect.isgeneratorfunction(plain) or inspect.iscoroutinefunction(plain):
            raise ModelError(
                f"{plain.__name__}() is a generator or coroutine", loc=loc, remedy="return a tuple or list instead"
            )
        try:
            bound = inspect.signature(function).bind(*args, **kwargs)
        except TypeError as error:
            raise ModelError(f"{plain.__name__}(): {error}", loc=loc, remedy="match its parameters") from None
        bound.apply_defaults()
        local = dict(bound.arguments)
        if isinstance(function, types.MethodType):
            local = {next(iter(inspect.signature(plain).parameters)): function.__self__, **local}
        return Frame(plain, plain.__code__.co_filename, local, plain.__globals__, depth=depth)

    def _call_closure(
        self, closure: Closure, args: list[Term], kwargs: dict[str, Term], frame: Frame, node: ast.AST
    ) -> Term:
        spec, home = closure.node.args, closure.frame
        names = [a.arg for a in spec.args]
        local = dict(zip(names, args, strict=False))
        local.update(kwargs)
        for name, given in zip(reversed(names), reversed(spec.defaults), strict=False):
            if name not in local:
                local[name] = self.value(given, home)
        if len(args) > len(names) or set(local) != set(names) or spec.vararg or spec.kwarg or spec.kwonlyargs:
            raise ModelError(
                "the call does not match the function's parameters", loc=where(frame, node), remedy="match them"
            )
        inner = Frame(home.function, home.file, local, home.globals, parent=home, depth=frame.depth + 1)
        if isinstance(closure.node, ast.Lambda):
            return self.value(closure.node.body, inner)
        self.block(closure.node.body, inner)
        return inner.result

    # --- statements

    def block(self, body: list[ast.stmt], frame: Frame) -> None:
        """A sequence of statements; what follows a conditional return or loop exit runs only where that did not happen."""
        for at, statement in enumerate(body):
            gone = b.or_((frame.returned, frame.broke, frame.continued))
            if gone is b.TRUE:
                return
            if gone is not b.FALSE:
                rest = body[at:]
                self.world.branch(
                    frame,
                    b.not_(gone),
                    lambda rest=rest: self._rest(rest, frame),
                    lambda: None,
                    where(frame, statement),  # type: ignore[misc]
                )
                return
            self.statement(statement, frame)

    def _rest(self, rest: list[ast.stmt], frame: Frame) -> None:
        """Runs `rest` where nothing has returned or left the loop; the flags are put together again by the caller's merge."""
        frame.returned = frame.broke = frame.continued = b.FALSE
        self.block(rest, frame)

    def statement(self, node: ast.stmt, frame: Frame) -> None:
        """One statement."""
        match node:
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                return
            case ast.Expr(value=ast.Call() as call):
                self._expression_statement(call, frame)
            case ast.Expr():
                raise ModelError(
                    f"{text(node)!r} has no effect", loc=where(frame, node), remedy="assign it, or require(...) it"
                )
            case ast.Assign(targets=targets, value=value):
                term = self._assigned(value, frame, targets[0])
                for target in targets:
                    self.assign(target, term, frame)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.assign(target, self._assigned(value, frame, target), frame)
            case ast.AnnAssign():
                return
            case ast.AugAssign(target=target, op=op, value=value):
                self._augmented(node, target, op, value, frame)
            case ast.If(test=test, body=body, orelse=orelse):
                self._if(node, test, body, orelse, frame)
            case ast.For():
                self._for(node, frame)
            case ast.Return(value=given):
                frame.result = operators.plain(self.world, self.value(given, frame)) if given else None
                frame.returned = b.TRUE
            case ast.Break():
                frame.broke = b.TRUE
            case ast.Continue():
                frame.continued = b.TRUE
            case ast.FunctionDef(name=name):
                frame.locals[name] = Closure(node, frame)
            case _:
                what, remedy = REFUSED.get(
                    type(node).__name__,
                    (f"{type(node).__name__} is not part of the language", "use if, for, assignments, calls"),
                )
                raise ModelError(what, loc=where(frame, node), remedy=remedy)

    def _expression_statement(self, call: ast.Call, frame: Frame) -> None:
        if isinstance(call.func, ast.Name | ast.Attribute):
            function = self.value(call.func, frame) if isinstance(call.func, ast.Name) else None
            if function is require:
                if not self.world.in_action:
                    raise ModelError(
                        "require(...) outside an action", loc=where(frame, call), remedy="return a condition"
                    )
                if len(call.args) != 1 or call.keywords:
                    raise ModelError(
                        "require takes one condition", loc=where(frame, call), remedy="require(s.credit > 0)"
                    )
                self._require(call.args[0], frame)
                return
        self.value(call, frame)

    def _require(self, node: ast.expr, frame: Frame) -> None:
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
            for part in node.values:
                self._require(part, frame)
            return
        for cond, label, at in self.conjuncts(node, frame):
            self.guard(cond, label, at, frame)

    def conjuncts(self, node: ast.expr, frame: Frame, suffix: str = "") -> Iterator[tuple[Expr, str, ast.expr]]:
        """The parts of a condition that must each hold, with their text: ``and`` and ``all(...)`` are taken apart."""
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
            outer = self.world.path
            try:
                for part in node.values:
                    found = list(self.conjuncts(part, frame, suffix))
                    yield from found
                    self.world.path = b.and_((self.world.path, *(c for c, _, _ in found)))
            finally:
                self.world.path = outer
            return
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "all"
            and len(node.args) == 1
            and isinstance(node.args[0], ast.GeneratorExp)
            and len(node.args[0].generators) == 1
            and not node.args[0].generators[0].ifs
        ):
            yield from self._all(node.args[0], frame, suffix)
            return
        yield self.condition(node, frame), text(node) + suffix, node

    def _all(self, node: ast.GeneratorExp, frame: Frame, suffix: str) -> Iterator[tuple[Expr, str, ast.expr]]:
        loop, outer = node.generators[0], self.world.path
        inner = Frame(frame.function, frame.file, {}, frame.globals, parent=frame, depth=frame.depth)
        items = operators.elements(self.world, self.value(loop.iter, frame), where(frame, loop.iter))
        for present, item in items:
            self.bind(loop.target, item, inner)
            known, host = as_constant(item)
            note = suffix + (f"  [{text(loop.target)}={host}]" if known else "")
            try:
                self.world.path = b.and_((outer, present))
                found = list(self.conjuncts(node.elt, inner, note)) if self.world.path is not b.FALSE else []
            finally:
                self.world.path = outer
            for cond, label, at in found:
                yield b.implies(present, cond), label, at

    def _assigned(self, value: ast.expr, frame: Frame, target: ast.expr) -> Term:
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and self.value(value.func, frame) is choose:
            return self.choice(value, frame, target.id if isinstance(target, ast.Name) else None)
        return self.value(value, frame)

    def assign(self, target: ast.expr, value: Term, frame: Frame) -> None:
        """Assignment to a name, a place of the state, an element of a local list or dict, or a tuple of these."""
        loc = where(frame, target)
        match target:
            case ast.Name(id=name):
                frame.locals[name] = value
            case ast.Tuple() | ast.List():
                parts = calls._unconditional(self.world, value, loc)
                if len(parts) != len(target.elts):
                    raise ModelError(
                        f"{len(target.elts)} names for {len(parts)} values", loc=loc, remedy="match their numbers"
                    )
                parts = [operators.plain(self.world, p) for p in parts]
                for t, v in zip(target.elts, parts, strict=True):
                    self.assign(t, v, frame)
            case ast.Attribute() | ast.Subscript():
                place = self.place(target, frame)
                if isinstance(place, Ref):
                    content = value
                    if isinstance(value, Cell):
                        held = self.world.heap[value.number]
                        content = tuple(held) if isinstance(held, list) else dict(held)
                    places.write(self.world, place, content, loc, text(target))
                else:
                    container, key = place
                    container[key] = operators.plain(self.world, value)
            case _:
                raise ModelError(
                    f"cannot assign to {text(target)!r}", loc=loc, remedy="assign to a name or a place of the state"
                )

    def place(self, node: ast.expr, frame: Frame) -> Ref | tuple[Any, Any]:
        """Where an assignment goes: a place of the state, or (local container, key)."""
        loc = where(frame, node)
        assert isinstance(node, ast.Attribute | ast.Subscript)
        owner: Term
        if isinstance(node.value, ast.Attribute | ast.Subscript):
            above = self._container(node.value, frame)
            owner = above
        else:
            owner = self.value(node.value, frame)
        if isinstance(node, ast.Attribute):
            if isinstance(owner, StateRef):
                if owner.after or owner.frozen or not self.world.in_action:
                    raise ModelError("a property cannot change the state", loc=loc, remedy="only actions assign")
                self.state_variable(owner, node.attr, node, frame)
                return Ref(node.attr, (), self.world.sorts[node.attr])
            if isinstance(owner, Ref) and isinstance(owner.sort, RecordSort):
                return places.attribute(owner, node.attr, loc)
            raise ModelError(
                f"cannot assign to an attribute of {describe(owner)}",
                loc=loc,
                remedy="everything that changes belongs to the state: declare it in state()",
            )
        key = operators.plain(self.world, self.value(node.slice, frame))
        if isinstance(owner, Ref) and isinstance(owner.sort, ArraySort):
            if not self.world.in_action:
                raise ModelError("a property cannot change the state", loc=loc, remedy="only actions assign")
            return places.item(self.world, owner, key, loc, text(node.slice))
        if isinstance(owner, Cell):
            known, host = as_constant(key)
            if known:
                return self.world.heap[owner.number], host
            raise ModelError(
                "a local list or dict is written at a position that depends on the state",
                loc=loc,
                remedy="loop over the positions and write under an if",
            )
        raise ModelError(
            f"cannot assign into {describe(owner)}", loc=loc, remedy="assign into the state or a local list"
        )

    def _container(self, node: ast.expr, frame: Frame) -> Term:
        """The owner of an assigned place: a place, the state, or a local container."""
        owner = self.value(node, frame)
        if isinstance(owner, Node):
            found = self.place(node, frame)
            if isinstance(found, Ref):
                return found
        return owner

    def _augmented(
        self, node: ast.AugAssign, target: ast.expr, op: ast.operator, value: ast.expr, frame: Frame
    ) -> None:
        loc, texts = where(frame, node), (text(target), text(value))
        if isinstance(target, ast.Name):
            now = self.value(ast.copy_location(ast.Name(target.id, ast.Load()), target), frame)
            given = self.value(value, frame)
            if isinstance(now, Cell) and isinstance(op, ast.Add):
                self.world.heap[now.number].extend(calls._unconditional(self.world, given, loc))
                return
            frame.locals[target.id] = operators.binary(self.world, op, now, given, loc, texts)
            return
        place = self.place(target, frame)
        given = self.value(value, frame)
        if isinstance(place, Ref):
            result = operators.binary(self.world, op, places.read(self.world, place), given, loc, texts)
            places.write(self.world, place, result, loc, text(target))
            return
        container, key = place
        container[key] = operators.binary(self.world, op, container[key], given, loc, texts)

    def _if(self, node: ast.If, test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt], frame: Frame) -> None:
        value = operators.plain(self.world, self.value(test, frame))
        known, host = as_constant(value)
        if known:
            self.block(body if host else orelse, frame)
            return
        cond = boolean(value, frame, test)
        self.world.branch(
            frame, cond, lambda: self.block(body, frame), lambda: self.block(orelse, frame), where(frame, node)
        )

    def _for(self, node: ast.For, frame: Frame) -> None:
        if node.orelse:
            raise ModelError("'for ... else' is not part of the language", loc=where(frame, node), remedy="use a flag")
        loc = where(frame, node)
        outer = (frame.broke, frame.continued)
        frame.broke = frame.continued = b.FALSE
        for present, item in operators.elements(self.world, self.value(node.iter, frame), where(frame, node.iter)):
            self.world.unrolled += 1
            if self.world.unrolled > UNROLL_LIMIT:
                raise ModelError(
                    f"loops unroll to more than {UNROLL_LIMIT:,} iterations", loc=loc, remedy="use smaller ranges"
                )
            frame.continued = b.FALSE
            gone = b.or_((frame.returned, frame.broke))
            if gone is b.TRUE:
                break
            runs = b.and_((present, b.not_(gone)))
            if runs is b.TRUE:
                self._iteration(node, item, frame)
            else:
                self.world.branch(
                    frame,
                    runs,
                    lambda item=item: self._alive_iteration(node, item, frame),
                    lambda: None,
                    loc,  # type: ignore[misc]
                )
        frame.broke, frame.continued = outer

    def _alive_iteration(self, node: ast.For, item: Term, frame: Frame) -> None:
        frame.returned = frame.broke = b.FALSE
        self._iteration(node, item, frame)

    def _iteration(self, node: ast.For, item: Term, frame: Frame) -> None:
        self.bind(node.target, item, frame)
        self.block(node.body, frame)
        frame.continued = b.FALSE

    # --- whole functions

    def predicate(self, function: Any, args: list[Term]) -> tuple[Expr, tuple[Conjunct, ...]]:
        """The condition a property function returns, taken apart where it ends in a single ``return``."""
        frame = self.enter(function, args, {}, 0, None)
        node = definition(_underlying(function))
        body = node.body
        last = body[-1]
        self.block(body[:-1], frame)
        if isinstance(last, ast.Return) and last.value is not None and frame.returned is b.FALSE:
            parts = tuple(Conjunct(c, t, where(frame, n)) for c, t, n in self.conjuncts(last.value, frame))
            return b.and_(p.expr for p in parts), parts
        if frame.returned is not b.TRUE:
            self.block([last], frame)
        if frame.returned is not b.TRUE:
            raise ModelError(
                f"{node.name}() does not return a condition on every path",
                loc=where(frame, node),
                remedy="end with 'return ...'",
            )
        cond = boolean(frame.result, frame, node)
        return cond, (Conjunct(cond, node.name, where(frame, node)),)


def _underlying(function: Any) -> types.FunctionType:
    plain = function.__func__ if isinstance(function, types.MethodType) else function
    plain = inspect.unwrap(plain)
    assert isinstance(plain, types.FunctionType)
    return plain
