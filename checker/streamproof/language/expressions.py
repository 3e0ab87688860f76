"""Lowering of Python expressions: what is known is computed, what depends on the state becomes a term."""

from __future__ import annotations

import ast
import builtins
import difflib
import types
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from streamproof.language import methods, operators, places
from streamproof.language.calls import truth
from streamproof.language.elements import distinct, elements, unconditional
from streamproof.language.places import plain
from streamproof.language.sources import text
from streamproof.language.terms import (
    Cases,
    Cell,
    Closure,
    Method,
    Ref,
    Several,
    StateRef,
    Term,
    Undefined,
    describe,
    is_expr,
    known,
    simple,
    symbolic,
)
from streamproof.language.world import Frame, Halt, World, boolean, where
from streamproof.system import build as b
from streamproof.system.errors import ModelError
from streamproof.system.expr import Expr
from streamproof.system.sorts import ArraySort, OptionSort, QueueSort, RecordSort, SetSort

_MISSING = object()
_CONVERSIONS: dict[int, Callable[[Any], Any]] = {-1: lambda v: v, ord("r"): repr, ord("s"): str, ord("a"): ascii}

LANGUAGE = "use arithmetic, comparisons, and/or/not, conditional expressions, indexing, comprehensions and calls"


class Expressions(ABC):
    """Evaluates expression nodes in a frame."""

    def __init__(self, world: World) -> None:
        self.world = world

    @abstractmethod
    def call(self, node: ast.Call, frame: Frame, name: str | None = None) -> Term:
        """A call; `name` is the variable its value is assigned to, if any."""

    @abstractmethod
    def closure(self, node: ast.Lambda | ast.FunctionDef, frame: Frame) -> Closure:
        """A function made inside a rule."""

    def value(self, node: ast.expr, frame: Frame) -> Term:
        """The value of an expression."""
        return simple(self._value(node, frame))

    def _value(self, node: ast.expr, frame: Frame) -> Term:
        match node:
            case ast.Constant():
                return node.value
            case ast.Name():
                return self._name(node, frame)
            case ast.Attribute():
                return self._attribute(node, frame)
            case ast.Subscript():
                return self._subscript(node, frame)
            case ast.BinOp():
                left = self.value(node.left, frame)
                right = self.value(node.right, frame)
                texts = (text(node.left), text(node.right))
                return operators.binary(self.world, node.op, left, right, where(frame, node), texts)
            case ast.UnaryOp():
                return self._unary(node, frame)
            case ast.BoolOp():
                return self._connective(node, frame)
            case ast.Compare():
                return self._compare(node, frame)
            case ast.IfExp():
                return self._conditional(node, frame)
            case ast.Call():
                return self.call(node, frame)
            case ast.Lambda():
                return self.closure(node, frame)
            case ast.JoinedStr():
                return self._joined(node, frame)
            case _:
                return self._display(node, frame)

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
                remedy=_state_hint(self.world, node.id) or _near(node.id, names, "define or import it"),
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
        value, loc = plain(self.world, self.value(node.operand, frame)), where(frame, node)
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
        reached: Expr = b.TRUE
        for at, operand in enumerate(node.values):
            try:
                value = plain(self.world, self.world.under(reached, partial(self.value, operand, frame), loc))
            except Halt:
                if not parts:
                    raise
                break
            if not symbolic(value) and not parts:
                if bool(value) != conj or at == len(node.values) - 1:
                    return value
                continue
            if not symbolic(value) and not isinstance(value, bool):
                raise ModelError(
                    f"{text(operand)!r} is no truth value", loc=where(frame, operand), remedy="compare explicitly"
                )
            term = boolean(value, where(frame, operand))
            parts.append(term)
            reached = b.and_((reached, term if conj else b.not_(term)))
            if reached is b.FALSE:
                break
        return (b.and_ if conj else b.or_)(parts, loc)

    def _compare(self, node: ast.Compare, frame: Frame) -> Term:
        """A comparison, chained ones short-circuit and with each operand evaluated once."""
        loc = where(frame, node)
        left, left_text = self.value(node.left, frame), text(node.left)
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
            if len(node.ops) == 1:
                return part
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

    # --- displays and comprehensions

    def _display(self, node: ast.expr, frame: Frame) -> Term:
        loc = where(frame, node)
        match node:
            case ast.Tuple(elts=parts):
                return tuple(self.spread(parts, frame))
            case ast.List(elts=parts):
                return self.world.allocate(tuple(self.spread(parts, frame)))
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
                return Several(tuple(self.comprehended(generators, elt, frame)), once=True)
            case ast.DictComp(generators=generators):
                pair = ast.copy_location(ast.Tuple(elts=[node.key, node.value], ctx=ast.Load()), node)
                made = {}
                for there, (key, value) in self.comprehended(generators, pair, frame):
                    if there is not b.TRUE:
                        raise ModelError(
                            "the keys of a local dict depend on the state", loc=loc, remedy="use an Array of the state"
                        )
                    made[self._key(key, node.key, frame)] = value
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

    def spread(self, nodes: list[ast.expr], frame: Frame) -> Iterator[Term]:
        """The elements of a display or the arguments of a call, starred ones spread out."""
        for n in nodes:
            if isinstance(n, ast.Starred):
                yield from unconditional(self.world, self.value(n.value, frame), where(frame, n))
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

    def _key(self, key: Term, node: ast.expr, frame: Frame) -> Any:
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
            key = self._key(self.value(key_node, frame), key_node, frame)
            made[key] = self.value(value_node, frame)
        return self.world.allocate(made)

    def comprehended(self, generators: list[ast.comprehension], elt: ast.expr, frame: Frame) -> list[tuple[Expr, Term]]:
        """Each element a comprehension makes, with the condition under which it is there."""
        made: list[tuple[Expr, Term]] = []

        def keep(there: Expr, inner: Frame) -> Expr:
            made.append((there, self.value(elt, inner)))
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
        items = elements(self.world, self.value(first.iter, outside), loc)
        going: Expr = b.TRUE
        for cond, item in items:
            here = b.and_((there, cond))

            def body(item: Term = item, here: Expr = here) -> Expr:
                self.bind(first.target, item, frame)
                return self._filtered(first.ifs, rest, frame, here, visit)

            try:
                goes = self.world.under(b.and_((cond, going)), body, loc)
            except Halt:
                if b.and_((cond, going)) is b.TRUE:
                    raise
                goes = b.FALSE
            going = b.and_((going, b.implies(cond, goes)))
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
        parts: list[Expr] = []

        def judge(there: Expr, inner: Frame) -> Expr:
            part = truth(self.world, self.value(node.elt, inner), name, where(frame, node.elt))
            parts.append(b.implies(there, part) if name == "all" else b.and_((there, part)))
            return part if name == "all" else b.not_(part)

        self.each(node.generators, frame, judge)
        return simple((b.and_ if name == "all" else b.or_)(parts, where(frame, node)))

    def bind(self, target: ast.expr, value: Term, frame: Frame) -> None:
        """Assigns a loop or comprehension variable."""
        loc = where(frame, target)
        if isinstance(target, ast.Name):
            frame.locals[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            for t, v in zip(target.elts, self.unpacked(target, value, frame), strict=True):
                self.bind(t, v, frame)
        else:
            raise ModelError("a loop variable must be a name", loc=loc, remedy="use a name or a tuple of names")

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

    # --- attributes and indexing

    def _attribute(self, node: ast.Attribute, frame: Frame) -> Term:
        return self.attribute(self.value(node.value, frame), node, frame)

    def attribute(self, owner: Term, node: ast.Attribute, frame: Frame) -> Term:
        """``owner.name``."""
        name, loc = node.attr, where(frame, node)
        match owner:
            case StateRef():
                return self.state_variable(owner, name, node, frame)
            case Ref():
                return self._place_attribute(owner, node, frame)
            case Cell():
                return Method(owner, name)
            case Cases(then=one, other=two) if _is_place(one) and _is_place(two):
                if isinstance(one.sort, QueueSort | SetSort) and name not in ("head", "full"):
                    return Method(Cases(owner.cond, one, two), name)
                return self.world.either(
                    owner.cond, lambda: self.attribute(one, node, frame), lambda: self.attribute(two, node, frame), loc
                )
            case Cases(then=one, other=two):
                return self.world.either(
                    owner.cond, lambda: self.attribute(one, node, frame), lambda: self.attribute(two, node, frame), loc
                )
        if is_expr(owner):
            return self._term_attribute(owner, node, frame)
        if symbolic(owner):
            raise ModelError(f"{describe(owner)} has no {name!r}", loc=loc, remedy="index it, or use its elements")
        if name.startswith("__") and not name.endswith("__"):
            name = _mangled(name, frame)
        try:
            return getattr(owner, name)
        except AttributeError:
            remedy = _near(name, dir(owner), "define it in the model, for example in setup()")
            raise ModelError(f"{_kind(owner)} has no attribute {name!r}", loc=loc, remedy=remedy) from None

    def state_variable(self, owner: StateRef, name: str, node: ast.AST, frame: Frame) -> Term:
        """``s.name``."""
        if name not in self.world.sorts:
            raise ModelError(
                f"no state variable {name!r}",
                loc=where(frame, node),
                remedy=_near(name, list(self.world.sorts), f"the state has {', '.join(self.world.sorts)}"),
            )
        sort = self.world.sorts[name]
        if owner.after:
            return b.next_(name, sort, where(frame, node))
        return places.settle(self.world, Ref(name, (), sort))

    def _place_attribute(self, owner: Ref, node: ast.Attribute, frame: Frame) -> Term:
        name, loc = node.attr, where(frame, node)
        if isinstance(owner.sort, RecordSort):
            return places.settle(self.world, places.attribute(owner, name, loc))
        if isinstance(owner.sort, QueueSort) and name in ("head", "full"):
            return self._queue_attribute(places.read(self.world, owner), node, frame)
        if not isinstance(owner.sort, QueueSort | SetSort):
            raise methods.no_method(owner.sort, name, loc)
        return Method(owner, name)

    def _queue_attribute(self, whole: Expr, node: ast.Attribute, frame: Frame) -> Term:
        loc, sort = where(frame, node), whole.sort
        assert isinstance(sort, QueueSort)
        if node.attr == "full":
            return b.less_eq(b.num(sort.capacity), b.length(whole), loc)
        return methods.queue_head(self.world, whole, loc, text(node.value))

    def _term_attribute(self, owner: Expr, node: ast.Attribute, frame: Frame) -> Term:
        name, loc = node.attr, where(frame, node)
        if isinstance(owner.sort, OptionSort):
            owner = places.present(self.world, owner, loc, text(node.value))
        if isinstance(owner.sort, RecordSort):
            if name not in [n for n, _ in owner.sort.fields]:
                raise places.no_field(owner.sort, name, loc)
            return b.field(owner, name, loc)
        if isinstance(owner.sort, QueueSort) and name in ("head", "full"):
            return self._queue_attribute(owner, node, frame)
        if isinstance(owner.sort, QueueSort | SetSort):
            raise ModelError(
                f"{name!r} cannot change {describe(owner)} that is only a value here",
                loc=loc,
                remedy="change it where it lies in the state",
            )
        raise methods.no_method(owner.sort, name, loc)

    def _subscript(self, node: ast.Subscript, frame: Frame) -> Term:
        owner, loc = self.value(node.value, frame), where(frame, node)
        if isinstance(node.slice, ast.Slice):
            return self._slice(owner, node.slice, loc, frame)
        key = plain(self.world, self.value(node.slice, frame))
        return self.indexed(owner, key, node, frame)

    def indexed(self, owner: Term, key: Term, node: ast.Subscript, frame: Frame) -> Term:
        """``owner[key]``."""
        loc, label = where(frame, node), text(node.slice)
        if isinstance(owner, Cases):
            one, two = owner.then, owner.other
            return self.world.either(
                owner.cond,
                lambda: self.indexed(one, key, node, frame),
                lambda: self.indexed(two, key, node, frame),
                loc,
            )
        if isinstance(owner, Ref) and isinstance(owner.sort, ArraySort):
            return places.settle(self.world, places.item(self.world, owner, key, loc, label))
        whole = plain(self.world, owner)
        if is_expr(whole):
            if isinstance(whole.sort, OptionSort):
                whole = places.present(self.world, whole, loc, text(node.value))
            if isinstance(whole.sort, ArraySort):
                return b.select(whole, places.index_term(self.world, whole.sort, key, loc, label), loc)
            if isinstance(whole.sort, QueueSort):
                return methods.queue_item(self.world, whole, key, loc, text(node.value))
            raise ModelError(f"{describe(whole)} cannot be indexed", loc=loc, remedy="arrays and queues can")
        content = self.world.content(whole) if isinstance(whole, Cell) else whole
        if isinstance(content, StateRef):
            raise ModelError("the state is not indexed", loc=loc, remedy="write s.name")
        if isinstance(content, Several | Closure | Method):
            raise ModelError(f"{describe(content)} cannot be indexed", loc=loc, remedy="arrays, queues and lists can")
        is_known, host = known(key)
        if is_known:
            return operators.host(self.world, lambda: content[host], loc)
        if isinstance(content, Mapping) and content:
            return methods.pick_from_dict(self.world, content, key, loc, label)
        if isinstance(content, list | tuple | range) and content:
            return methods.pick_from_list(self.world, tuple(content), key, loc, label)
        raise ModelError(
            f"{describe(whole)} cannot be indexed by {describe(key)}", loc=loc, remedy="use a tuple, a list or a dict"
        )

    def _slice(self, owner: Term, node: ast.Slice, loc: Any, frame: Frame) -> Term:
        ends = [self.value(x, frame) if x else None for x in (node.lower, node.upper, node.step)]
        content = self.world.content(owner) if isinstance(owner, Cell) else owner
        if any(symbolic(x) for x in ends) or not isinstance(content, tuple | list | str | range):
            raise ModelError(
                "only local and host sequences can be sliced, at known positions", loc=loc, remedy="index one by one"
            )
        part = operators.host(self.world, lambda: content[slice(*ends)], loc)
        if isinstance(owner, Cell):
            return self.world.allocate(part)
        return self.world.allocate(tuple(part)) if isinstance(part, list) else part


def _is_place(value: Term) -> bool:
    return isinstance(value, Ref)


def _kind(owner: object) -> str:
    """What to call the owner of an attribute that does not exist."""
    if isinstance(owner, types.ModuleType):
        return f"module {owner.__name__}"
    return "the base class" if isinstance(owner, super) else type(owner).__name__


def _near(name: str, candidates: list[str], otherwise: str) -> str:
    found = difflib.get_close_matches(name, [c for c in candidates if not c.startswith("_")], n=1)
    return f"did you mean {found[0]!r}?" if found else otherwise


def _state_hint(world: World, name: str) -> str:
    return f"the state variable is s.{name}" if name in world.sorts else ""


def _mangled(name: str, frame: Frame) -> str:
    """A private name as Python stores it in the class that the function belongs to."""
    owner = getattr(frame.function, "__qualname__", "").split(".<locals>")[-1].split(".")[:-1]
    return f"_{owner[-1].lstrip('_')}{name}" if owner else name


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
