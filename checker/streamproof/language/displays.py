"""Lowering of tuples, lists, sets, dicts and comprehensions, and of the names that loops bind."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from streamproof.language import operators
from streamproof.language.calls import truth
from streamproof.language.elements import Loop, Over, distinct, everywhere, generator, refuse_used_up, unconditional
from streamproof.language.faithful import expect_faithful
from streamproof.language.sources import text
from streamproof.language.temporal import formula, is_formula, together
from streamproof.language.terms import Cell, Several, Term, describe, known, simple, symbolic
from streamproof.language.world import Frame, Halt, World, where
from streamproof.system import build as b
from streamproof.system.errors import ModelError
from streamproof.system.expr import Expr
from streamproof.system.formula import Atom, Formula
from streamproof.system.unbounded import exists, forall, total

LANGUAGE = "use arithmetic, comparisons, and/or/not, conditional expressions, indexing, comprehensions and calls"


class Displays(ABC):
    """Evaluates what makes a container."""

    def __init__(self, world: World) -> None:
        self.world = world

    @abstractmethod
    def value(self, node: ast.expr, frame: Frame) -> Term:
        """The value of an expression."""

    @abstractmethod
    def condition(self, node: ast.expr, frame: Frame) -> Expr:
        """The value of an expression used as a condition."""

    def display(self, node: ast.expr, frame: Frame) -> Term:
        """A display, a comprehension, or what is not part of the language."""
        loc = where(frame, node)
        match node:
            case ast.Tuple(elts=parts):
                return self._reusable(tuple(self.spread(parts, frame)), node, frame)
            case ast.List(elts=parts):
                return self.world.allocate(self._reusable(tuple(self.spread(parts, frame)), node, frame))
            case ast.Set(elts=parts):
                return self._set([(b.TRUE, v) for v in self.spread(parts, frame)], node, frame)
            case ast.Dict():
                return self._dict(node, frame)
            case ast.ListComp(generators=generators, elt=elt):
                items = self.comprehended(generators, elt, frame)
                if any(there is not b.TRUE for there, _ in items):
                    raise ModelError(
                        "how many elements the list has depends on the state",
                        loc=loc,
                        remedy="use any, all, sum, min, max over a generator, or a list of truth values",
                    )
                return self.world.allocate(tuple(v for _, v in items))
            case ast.SetComp(generators=generators, elt=elt):
                return self._set(self.comprehended(generators, elt, frame), node, frame)
            case ast.GeneratorExp(generators=generators, elt=elt):
                return generator(self.world, lambda: self.comprehended(generators, elt, frame))
            case ast.DictComp(generators=generators):
                pair = ast.copy_location(ast.Tuple(elts=[node.key, node.value], ctx=ast.Load()), node)
                made = {}
                for there, (key, value) in self.comprehended(generators, pair, frame):
                    if there is not b.TRUE:
                        raise ModelError(
                            "the keys of a local dict depend on the state", loc=loc, remedy="use an Array of the state"
                        )
                    made[self.key(key, node.key, frame)] = value
                return self.world.allocate(made)
            case ast.NamedExpr():
                raise ModelError("':=' is not part of the language", loc=loc, remedy="assign on a line of its own")
            case ast.Await() | ast.Yield() | ast.YieldFrom():
                raise ModelError(
                    f"{text(node)!r} is not part of the language",
                    loc=loc,
                    remedy="interleaving is what the checker explores: use actions",
                )
        raise ModelError(
            f"{text(node)!r} ({type(node).__name__}) is not part of the language", loc=loc, remedy=LANGUAGE
        )

    def _reusable(self, parts: tuple[Term, ...], node: ast.expr, frame: Frame) -> tuple[Term, ...]:
        """The elements of a display, none of which its first use uses up."""
        for part in parts:
            refuse_used_up(part, where(frame, node))
        return parts

    def spread(self, nodes: list[ast.expr], frame: Frame) -> Iterator[Term]:
        """The elements of a display or the arguments of a call, starred ones spread out."""
        for n in nodes:
            if isinstance(n, ast.Starred):
                spread = self.value(n.value, frame)
                if isinstance(spread, set | frozenset):
                    expect_faithful(spread, where(frame, n))  # a display of a set takes no notice of their __iter__
                yield from unconditional(self.world, spread, where(frame, n))
            else:
                yield self.value(n, frame)

    def _set(self, items: list[tuple[Expr, Term]], node: ast.expr, frame: Frame) -> Term:
        if any(symbolic(v) or there is not b.TRUE for there, v in items):
            self._hashable([v for _, v in items], node, frame)
            return distinct(self.world, items, operators.equal, where(frame, node))
        try:
            return frozenset(v for _, v in items)
        except TypeError as error:
            raise ModelError(
                f"a set needs hashable members: {error}", loc=where(frame, node), remedy="use tuples instead of lists"
            ) from None

    def _hashable(self, items: list[Term], node: ast.expr, frame: Frame) -> None:
        for v in items:
            if isinstance(v, Cell | Several):
                raise ModelError(
                    f"{describe(v)} cannot be a member of a set", loc=where(frame, node), remedy="use a tuple instead"
                )

    def key(self, key: Term, node: ast.expr, frame: Frame) -> Any:
        """A key of a local dict."""
        is_known, host = known(key)
        if isinstance(key, Cell):
            raise ModelError("a list cannot be a key", loc=where(frame, node), remedy="use a tuple instead")
        if not is_known:
            raise ModelError(
                "a key of a local dict depends on the state",
                loc=where(frame, node),
                remedy="use an Array of the state, or create every key and test with 'if'",
            )
        try:
            hash(host)
        except TypeError as error:
            raise ModelError(
                f"a dict needs hashable keys: {error}", loc=where(frame, node), remedy="use tuples instead of lists"
            ) from None
        return host

    def _dict(self, node: ast.Dict, frame: Frame) -> Term:
        made: dict[Any, Term] = {}
        for key_node, value_node in zip(node.keys, node.values, strict=True):
            if key_node is None:
                held = self.value(value_node, frame)
                content = self.world.content(held) if isinstance(held, Cell) else held
                if not isinstance(content, Mapping):
                    raise ModelError(
                        f"'**' needs a dict, got {describe(held)}", loc=where(frame, value_node), remedy="name the keys"
                    )
                made.update(content)
                continue
            key = self.key(self.value(key_node, frame), key_node, frame)
            made[key] = self.value(value_node, frame)
            refuse_used_up(made[key], where(frame, value_node))
        return self.world.allocate(made)

    def comprehended(self, generators: list[ast.comprehension], elt: ast.expr, frame: Frame) -> list[tuple[Expr, Term]]:
        """Each element a comprehension makes, with the condition under which it is there."""
        made: list[tuple[Expr, Term]] = []

        def keep(there: Expr, inner: Frame) -> Expr:
            value = self.value(elt, inner)
            refuse_used_up(value, where(frame, elt))
            made.append((there, value))
            return b.TRUE

        self.each(generators, frame, keep)
        return made

    def each(self, generators: list[ast.comprehension], frame: Frame, visit: Callable[[Expr, Frame], Expr]) -> None:
        """Calls `visit` once per combination of a comprehension's loops, under the condition that it is there.

        `visit` gets that condition and the frame, and returns the condition on which the iteration goes on.
        """
        names = frozenset(n.id for g in generators for n in ast.walk(g.target) if isinstance(n, ast.Name))
        inner = Frame(frame.function, frame.file, {}, frame.globals, names, parent=frame, depth=frame.depth)
        self._each(generators, inner, frame, b.TRUE, visit)

    def _each(
        self,
        generators: list[ast.comprehension],
        frame: Frame,
        outside: Frame,
        there: Expr,
        visit: Callable[[Expr, Frame], Expr],
    ) -> Expr:
        """One level of loops. Returns the condition on which the iteration goes on after them."""
        first, rest = generators[0], generators[1:]
        loc = where(frame, first.iter)
        if first.is_async:
            raise ModelError("'async for' is not part of the language", loc=loc, remedy="use 'for'")
        loop = Loop(self.world, self.value(first.iter, outside), loc)
        going: Expr = b.TRUE
        for done, (cond, item) in enumerate(loop.items, 1):
            here = b.and_((there, cond))

            def body(item: Term = item, here: Expr = here, done: int = done) -> Expr:
                before = loop.begin()
                self.bind(first.target, item, frame)
                goes = self._filtered(first.ifs, rest, frame, here, visit)
                loop.end(before, done, b.not_(goes))
                return goes

            try:
                goes = self.world.under(b.and_((cond, going)), body, loc)
            except Halt:
                if b.and_((cond, going)) is b.TRUE:
                    raise
                goes = b.FALSE
            going = b.and_((going, b.implies(cond, goes)))
            loop.check()
        return going

    def _filtered(
        self,
        tests: list[ast.expr],
        rest: list[ast.comprehension],
        frame: Frame,
        there: Expr,
        visit: Callable[[Expr, Frame], Expr],
    ) -> Expr:
        """The conditions of one loop, then the loops inside it, then the element."""
        if tests:
            test = self.condition(tests[0], frame)
            if test is b.FALSE:
                return b.TRUE
            try:
                goes: Expr = self.world.under(
                    test,
                    lambda: self._filtered(tests[1:], rest, frame, b.and_((there, test)), visit),
                    where(frame, tests[0]),
                )
            except Halt:
                if test is b.TRUE:
                    raise
                return b.not_(test)
            return b.implies(test, goes)
        if rest:
            return self._each(rest, frame, frame, there, visit)
        return visit(there, frame)

    def quantified(self, node: ast.GeneratorExp, frame: Frame, name: str) -> Term:
        """``all(... for ...)`` or ``any(...)``: stops, as Python does, at the first element that decides."""
        over = self.indices(node, frame)
        if over is not None:
            return self._every(node, over, frame, name)
        parts: list[Expr] = []
        said: list[tuple[Expr, Formula]] = []

        def judge(there: Expr, inner: Frame) -> Expr:
            value = self.value(node.elt, inner)
            if is_formula(value):
                said.append((there, formula(self.world, value, text(node.elt), where(frame, node.elt))))
                return b.TRUE
            part = truth(self.world, value, name, where(frame, node.elt))
            parts.append(b.implies(there, part) if name == "all" else b.and_((there, part)))
            return part if name == "all" else b.not_(part)

        self.each(node.generators, frame, judge)
        whole = (b.and_ if name == "all" else b.or_)(parts, where(frame, node))
        if not said:
            return simple(whole)
        if parts:
            said.append((b.TRUE, Atom(whole, text(node), where(frame, node))))
        return together(said, where(frame, node), every=name == "all")

    def indices(self, node: ast.GeneratorExp, frame: Frame) -> Over | None:
        """What a generator's first loop runs over, if that is any number of indices or the elements at them."""
        if not self.world.free:
            return None
        return everywhere(self.world, self.value(node.generators[0].iter, frame), where(frame, node))

    def _over(
        self,
        node: ast.GeneratorExp,
        over: Over,
        frame: Frame,
        judge: Callable[[ast.expr | None, Frame], Expr],
        no: Expr,
    ) -> tuple[Expr, Expr]:
        """The variable of a generator's first loop and what `judge` makes of an element, `no` where there is none.

        `judge` gets a generator of the further loops, or None where there are none, and the frame.
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
                one = self.world.under(test, lambda at=condition: self.condition(at, inner), loc)  # type: ignore[misc]
                test = b.and_((test, one))
            if test is b.FALSE:
                return no
            return b.ite(test, self.world.under(test, lambda: judge(further, inner), loc), no)

        return self.world.every(name, over.sort, run)

    def _every(self, node: ast.GeneratorExp, over: Over, frame: Frame, name: str) -> Term:
        """``all`` or ``any`` over any number of indices."""
        loc = where(frame, node)

        def judge(further: ast.expr | None, inner: Frame) -> Expr:
            value = self.value(node.elt, inner) if further is None else None
            if isinstance(further, ast.GeneratorExp):
                value = self.quantified(further, inner, name)
            if is_formula(value):
                raise ModelError(
                    "temporal formulas over any number of indices", loc=loc, remedy="give the parameter a value"
                )
            return truth(self.world, value, name, loc)

        if name == "all":
            return simple(forall(*self._over(node, over, frame, judge, b.TRUE), loc))
        return simple(exists(*self._over(node, over, frame, judge, b.FALSE), loc))

    def summed(self, node: ast.GeneratorExp, over: Over, frame: Frame) -> Term:
        """``sum`` over any number of indices."""
        loc = where(frame, node)

        def judge(further: ast.expr | None, inner: Frame) -> Expr:
            if further is not None:
                raise ModelError("a sum over two indices", loc=loc, remedy="write a sum of sums: sum(sum(...) for ...)")
            return operators.integer(self.world, self.value(node.elt, inner), loc, text(node.elt))

        return simple(total(*self._over(node, over, frame, judge, b.num(0)), loc))

    def bind(self, target: ast.expr, value: Term, frame: Frame) -> None:
        """Assigns a loop or comprehension variable."""
        if isinstance(target, ast.Name):
            frame.locals[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            for t, v in zip(target.elts, self.unpacked(target, value, frame), strict=True):
                self.bind(t, v, frame)
        else:
            raise ModelError(
                "a loop variable must be a name", loc=where(frame, target), remedy="use a name or a tuple of names"
            )

    def unpacked(self, target: ast.Tuple | ast.List, value: Term, frame: Frame) -> list[Term]:
        """The parts of `value` for the names of `target`."""
        loc = where(frame, target)
        for t in target.elts:
            if isinstance(t, ast.Starred):
                raise ModelError("'*' in an assignment is not part of the language", loc=loc, remedy="index instead")
        parts = unconditional(self.world, value, loc)
        if len(parts) != len(target.elts):
            raise ModelError(f"{len(target.elts)} names for {len(parts)} values", loc=loc, remedy="match their numbers")
        return parts
