"""Lowering of Python expressions: what is known is computed, what depends on the state becomes a term."""

from __future__ import annotations

import ast
import builtins
import inspect
import types
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

from streamproof.language import calls, operators, places
from streamproof.language.primitives import choose, require
from streamproof.language.sources import text
from streamproof.language.terms import (
    Cases,
    Cell,
    Closure,
    Guarded,
    Method,
    Ref,
    StateRef,
    Term,
    Undefined,
    as_constant,
    describe,
    merge,
    symbolic,
)
from streamproof.language.world import CALL_DEPTH, Frame, World, boolean, where
from streamproof.system import build as b
from streamproof.system.errors import ModelError
from streamproof.system.expr import Expr, Node
from streamproof.system.model import Conjunct
from streamproof.system.sorts import ArraySort, OptionSort, QueueSort, RecordSort

_MISSING = object()


class Expressions(ABC):
    """Evaluates expression nodes in a frame."""

    def __init__(self, world: World) -> None:
        self.world = world

    @abstractmethod
    def call_function(
        self, function: Any, args: list[Term], kwargs: dict[str, Term], frame: Frame, node: ast.AST
    ) -> Term:
        """Inlines a call of a function written in Python."""

    def value(self, node: ast.expr, frame: Frame) -> Term:
        """The value of an expression."""
        handler: Callable[[Any, Frame], Term] | None = getattr(self, f"_{type(node).__name__.lower()}", None)
        if handler is None:
            raise ModelError(
                f"{text(node)!r} ({type(node).__name__}) is not part of the language",
                loc=where(frame, node),
                remedy="use arithmetic, comparisons, and/or/not, conditional expressions, indexing, calls",
            )
        return handler(node, frame)

    def condition(self, node: ast.expr, frame: Frame) -> Expr:
        """The value of an expression used as a condition."""
        return boolean(operators.plain(self.world, self.value(node, frame)), frame, node)

    # --- names and constants

    def _constant(self, node: ast.Constant, frame: Frame) -> Term:
        return node.value

    def _name(self, node: ast.Name, frame: Frame) -> Term:
        scope: Frame | None = frame
        while scope is not None:
            if node.id in scope.locals:
                found = scope.locals[node.id]
                if isinstance(found, Undefined):
                    raise ModelError(
                        f"{node.id!r} is assigned on some paths only",
                        loc=where(frame, node),
                        remedy="give it a value before the if",
                    )
                return found
            scope = scope.parent
        cells = _cells(frame)
        if node.id in cells:
            return cells[node.id]
        if node.id in frame.globals:
            return frame.globals[node.id]
        found = getattr(builtins, node.id, _MISSING)
        if found is _MISSING:
            raise ModelError(f"name {node.id!r} is not defined", loc=where(frame, node), remedy="define or import it")
        return found

    def _joinedstr(self, node: ast.JoinedStr, frame: Frame) -> Term:
        parts = []
        for piece in node.values:
            if isinstance(piece, ast.Constant):
                parts.append(str(piece.value))
                continue
            assert isinstance(piece, ast.FormattedValue)
            known, host = as_constant(self.value(piece.value, frame))
            if not known:
                raise ModelError(
                    "text cannot depend on the state", loc=where(frame, node), remedy="use an Enum, or a known value"
                )
            parts.append(format(host, ""))
        return "".join(parts)

    # --- operators

    def _binop(self, node: ast.BinOp, frame: Frame) -> Term:
        left, right = self.value(node.left, frame), self.value(node.right, frame)
        if isinstance(node.op, ast.Mult) and isinstance(left, Cell) and isinstance(right, int):
            return self.world.allocate(list(self.world.heap[left.number]) * right)
        if isinstance(node.op, ast.Add) and isinstance(left, Cell) and isinstance(right, Cell):
            return self.world.allocate(list(self.world.heap[left.number]) + list(self.world.heap[right.number]))
        return operators.binary(
            self.world, node.op, left, right, where(frame, node), (text(node.left), text(node.right))
        )

    def _unaryop(self, node: ast.UnaryOp, frame: Frame) -> Term:
        if isinstance(node.op, ast.Not):
            value = operators.plain(self.world, self.value(node.operand, frame))
            known, host = as_constant(value)
            return (not host) if known else b.not_(boolean(value, frame, node.operand), where(frame, node))
        value = self.value(node.operand, frame)
        known, host = as_constant(value)
        if isinstance(node.op, ast.USub):
            loc = where(frame, node)
            return (
                -host if known else b.sub(b.num(0), operators.integer(self.world, value, loc, text(node.operand)), loc)
            )
        if isinstance(node.op, ast.UAdd):
            return value
        raise ModelError("'~' is not part of the language", loc=where(frame, node), remedy="use 'not' for truth values")

    def _boolop(self, node: ast.BoolOp, frame: Frame) -> Term:
        """``and``/``or``, short-circuit: later operands are judged only where the earlier ones let Python get there."""
        conj = isinstance(node.op, ast.And)
        outer = self.world.path
        parts: list[Expr] = []
        try:
            for at, operand in enumerate(node.values):
                value = operators.plain(self.world, self.value(operand, frame))
                known, host = as_constant(value)
                if known and not parts:
                    if bool(host) != conj or at == len(node.values) - 1:
                        return host
                    continue
                term = boolean(value, frame, operand)
                parts.append(term)
                if term is (b.FALSE if conj else b.TRUE):
                    break
                self.world.path = b.and_((self.world.path, term if conj else b.not_(term)))
                if self.world.path is b.FALSE and outer is not b.FALSE:
                    break
        finally:
            self.world.path = outer
        return (b.and_ if conj else b.or_)(parts, where(frame, node))

    def _compare(self, node: ast.Compare, frame: Frame) -> Term:
        left = self.value(node.left, frame)
        left_text, parts, hosts = text(node.left), [], True
        result: Term = True
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.value(right_node, frame)
            part = operators.compare(self.world, op, left, right, where(frame, node), (left_text, text(right_node)))
            known, host = as_constant(part)
            if known:
                if not host:
                    return False
                result = host
            else:
                hosts = False
                parts.append(part)
            left, left_text = right, text(right_node)
        return result if hosts else b.and_(parts, where(frame, node))

    def _ifexp(self, node: ast.IfExp, frame: Frame) -> Term:
        value = operators.plain(self.world, self.value(node.test, frame))
        known, host = as_constant(value)
        if known:
            return self.value(node.body if host else node.orelse, frame)
        cond, loc, outer = boolean(value, frame, node.test), where(frame, node), self.world.path
        yes, no = b.and_((outer, cond)), b.and_((outer, b.not_(cond)))
        try:
            if yes is b.FALSE:
                return self.value(node.orelse, frame)
            self.world.path = yes
            then = operators.plain(self.world, self.value(node.body, frame))
            if no is b.FALSE:
                return then
            self.world.path = no
            other = operators.plain(self.world, self.value(node.orelse, frame))
        finally:
            self.world.path = outer
        return merge(cond, then, other, loc)

    def _namedexpr(self, node: ast.NamedExpr, frame: Frame) -> Term:
        value = self.value(node.value, frame)
        frame.locals[node.target.id] = value
        return value

    # --- containers

    def _tuple(self, node: ast.Tuple, frame: Frame) -> Term:
        return tuple(self._spread(node.elts, frame))

    def _list(self, node: ast.List, frame: Frame) -> Term:
        return self.world.allocate(list(self._spread(node.elts, frame)))

    def _set(self, node: ast.Set, frame: Frame) -> Term:
        items = tuple(self._spread(node.elts, frame))
        if symbolic(items):
            return items
        try:
            return frozenset(items)
        except TypeError as error:
            raise ModelError(
                f"a set needs hashable members: {error}", loc=where(frame, node), remedy="use tuples instead of lists"
            ) from None

    def _dict(self, node: ast.Dict, frame: Frame) -> Term:
        made: dict[Any, Term] = {}
        for key_node, value_node in zip(node.keys, node.values, strict=True):
            if key_node is None:
                raise ModelError(
                    "'**' in a dict is not part of the language", loc=where(frame, node), remedy="name the keys"
                )
            known, key = as_constant(self.value(key_node, frame))
            if not known:
                raise ModelError(
                    "a dict key depends on the state", loc=where(frame, key_node), remedy="use an Array of the state"
                )
            try:
                made[key] = operators.plain(self.world, self.value(value_node, frame))
            except TypeError as error:
                raise ModelError(
                    f"a dict needs hashable keys: {error}",
                    loc=where(frame, key_node),
                    remedy="use tuples instead of lists",
                ) from None
        return self.world.allocate(made)

    def _spread(self, nodes: list[ast.expr], frame: Frame) -> Iterator[Term]:
        for n in nodes:
            if isinstance(n, ast.Starred):
                yield from calls._unconditional(self.world, self.value(n.value, frame), where(frame, n))
            else:
                value = self.value(n, frame)
                yield value

    def _listcomp(self, node: ast.ListComp, frame: Frame) -> Term:
        return self.world.allocate(self._collected(node, frame, "a list"))

    def _setcomp(self, node: ast.SetComp, frame: Frame) -> Term:
        items = tuple(self._collected(node, frame, "a set"))
        return items if symbolic(items) else frozenset(items)

    def _generatorexp(self, node: ast.GeneratorExp, frame: Frame) -> Term:
        return Guarded(tuple(self.comprehended(node.generators, node.elt, frame)))

    def _dictcomp(self, node: ast.DictComp, frame: Frame) -> Term:
        pair = ast.copy_location(ast.Tuple(elts=[node.key, node.value], ctx=ast.Load()), node)
        made = {}
        for cond, (key_term, value) in self.comprehended(node.generators, pair, frame):
            known, key = as_constant(key_term)
            if cond is not b.TRUE or not known:
                raise ModelError(
                    "the keys of a local dict depend on the state",
                    loc=where(frame, node),
                    remedy="use an Array of the state",
                )
            made[key] = value
        return self.world.allocate(made)

    def _collected(self, node: ast.ListComp | ast.SetComp, frame: Frame, what: str) -> list[Term]:
        items = list(self.comprehended(node.generators, node.elt, frame))
        if any(c is not b.TRUE for c, _ in items):
            raise ModelError(
                f"how many elements {what} has depends on the state",
                loc=where(frame, node),
                remedy="use any, all, sum or len over a generator, or a list of truth values",
            )
        return [v for _, v in items]

    def comprehended(
        self, generators: list[ast.comprehension], elt: ast.expr, frame: Frame
    ) -> Iterator[tuple[Expr, Term]]:
        """Each element a comprehension makes, with the condition under which it is there."""
        inner = Frame(frame.function, frame.file, {}, frame.globals, parent=frame, depth=frame.depth)
        yield from self._nested(generators, elt, inner, b.TRUE)

    def _nested(
        self, generators: list[ast.comprehension], elt: ast.expr, frame: Frame, present: Expr
    ) -> Iterator[tuple[Expr, Term]]:
        if not generators:
            yield present, operators.plain(self.world, self.value(elt, frame))
            return
        first, outer = generators[0], self.world.path
        for cond, item in operators.elements(self.world, self.value(first.iter, frame), where(frame, first.iter)):
            self.bind(first.target, item, frame)
            here = b.and_((present, cond))
            try:
                self.world.path = b.and_((outer, here))
                for test in first.ifs:
                    here = b.and_((here, self.condition(test, frame)))
                    self.world.path = b.and_((outer, here))
                if here is not b.FALSE:
                    results = list(self._nested(generators[1:], elt, frame, here))
                else:
                    results = []
            finally:
                self.world.path = outer
            yield from results

    def bind(self, target: ast.expr, value: Term, frame: Frame) -> None:
        """Assigns a loop or comprehension variable."""
        if isinstance(target, ast.Name):
            frame.locals[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            parts = calls._unconditional(self.world, value, where(frame, target))
            if len(parts) != len(target.elts):
                raise ModelError(
                    f"{len(target.elts)} names for {len(parts)} values",
                    loc=where(frame, target),
                    remedy="match their numbers",
                )
            for t, v in zip(target.elts, parts, strict=True):
                self.bind(t, v, frame)
        else:
            raise ModelError(
                "a loop variable must be a name", loc=where(frame, target), remedy="use a name or a tuple of names"
            )

    # --- attributes and indexing

    def _attribute(self, node: ast.Attribute, frame: Frame) -> Term:
        owner, loc = self.value(node.value, frame), where(frame, node)
        if isinstance(owner, StateRef):
            return self.state_variable(owner, node.attr, node, frame)
        if isinstance(owner, Ref | Node):
            return self._term_attribute(owner, node.attr, node, frame)
        if isinstance(owner, Cell):
            return Method(owner, node.attr)
        if isinstance(owner, Cases):
            return merge(
                owner.cond,
                self._host_attribute(owner.then, node.attr, node, frame),
                self._host_attribute(owner.other, node.attr, node, frame),
                loc,
            )
        return self._host_attribute(owner, node.attr, node, frame)

    def state_variable(self, owner: StateRef, name: str, node: ast.AST, frame: Frame) -> Term:
        """``s.name``."""
        if name not in self.world.sorts:
            raise ModelError(
                f"no state variable {name!r}",
                loc=where(frame, node),
                remedy=f"the state has {', '.join(self.world.sorts)}",
            )
        sort = self.world.sorts[name]
        if owner.after:
            return b.next_(name, sort, where(frame, node))
        return places.settle(self.world, Ref(name, (), sort))

    def _term_attribute(self, owner: Ref | Expr, name: str, node: ast.Attribute, frame: Frame) -> Term:
        loc, sort = where(frame, node), owner.sort
        if isinstance(sort, OptionSort):
            assert isinstance(owner, Node)
            owner = places.present(self.world, owner, loc, text(node.value))  # type: ignore[arg-type]
            sort = owner.sort
        if isinstance(sort, RecordSort):
            if isinstance(owner, Ref):
                return places.settle(self.world, places.attribute(owner, name, loc))
            return b.field(owner, name, loc)
        if isinstance(sort, QueueSort) and name in ("head", "full"):
            whole = operators.plain(self.world, owner)
            if name == "full":
                return b.less_eq(b.num(sort.capacity), b.length(whole), loc)
            return calls.queue_item(self.world, whole, 0, loc, text(node.value))
        if isinstance(owner, Ref):
            return Method(owner, name)
        raise ModelError(f"a {sort} has no attribute {name!r}", loc=loc, remedy="only records have fields")

    def _host_attribute(self, owner: Any, name: str, node: ast.AST, frame: Frame) -> Term:
        try:
            return getattr(owner, name)
        except AttributeError as error:
            raise ModelError(
                str(error), loc=where(frame, node), remedy="define it in the model, for example in setup()"
            ) from None

    def _subscript(self, node: ast.Subscript, frame: Frame) -> Term:
        owner, loc = self.value(node.value, frame), where(frame, node)
        if isinstance(node.slice, ast.Slice):
            return self._slice(owner, node, frame)
        key = operators.plain(self.world, self.value(node.slice, frame))
        label = text(node.slice)
        if isinstance(owner, Ref) and isinstance(owner.sort, ArraySort):
            return places.settle(self.world, places.item(self.world, owner, key, loc, label))
        whole = operators.plain(self.world, owner)
        if isinstance(whole, Node):
            term: Expr = whole  # type: ignore[assignment]
            if isinstance(term.sort, ArraySort):
                return b.select(term, places.index_term(self.world, term.sort, key, loc, label), loc)
            if isinstance(term.sort, QueueSort):
                return calls.queue_item(self.world, term, key, loc, text(node.value))
            raise ModelError(f"a {term.sort} cannot be indexed", loc=loc, remedy="arrays and queues can")
        content = self.world.heap[whole.number] if isinstance(whole, Cell) else whole
        if isinstance(whole, Cases):
            raise ModelError("what is indexed depends on the state", loc=loc, remedy="index first, then choose")
        known, host = as_constant(key)
        if not known:
            if isinstance(content, dict):
                return calls.pick_from_dict(self.world, content, key, loc, label)
            if isinstance(content, list | tuple | range):
                return calls.pick_from_list(self.world, list(content), key, loc, label)
            raise ModelError(
                f"{describe(whole)} cannot be indexed by the state", loc=loc, remedy="use a tuple, list or dict"
            )
        try:
            return content[host]
        except (IndexError, KeyError, TypeError) as error:
            raise ModelError(
                f"{type(error).__name__}: {error}",
                loc=loc,
                remedy="this is ordinary Python, evaluated while the model is read",
            ) from None

    def _slice(self, owner: Term, node: ast.Subscript, frame: Frame) -> Term:
        assert isinstance(node.slice, ast.Slice)
        ends = [self.value(x, frame) if x else None for x in (node.slice.lower, node.slice.upper, node.slice.step)]
        if isinstance(owner, Cell):
            return self.world.allocate(self.world.heap[owner.number][slice(*ends)])
        if isinstance(owner, tuple | list | str | range) and not any(symbolic(x) for x in ends):
            return owner[slice(*ends)]
        raise ModelError(
            "only local and host sequences can be sliced", loc=where(frame, node), remedy="index one by one"
        )

    def _lambda(self, node: ast.Lambda, frame: Frame) -> Term:
        return Closure(node, frame)

    # --- calls

    def _call(self, node: ast.Call, frame: Frame) -> Term:
        loc = where(frame, node)
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args:
            return self._super(node, frame)
        function = self.value(node.func, frame)
        if function is choose:
            return self.choice(node, frame, None)
        if function is require:
            raise ModelError("require(...) is a statement of its own", loc=loc, remedy="write it on a line by itself")
        args = list(self._spread(node.args, frame))
        kwargs: dict[str, Term] = {}
        for k in node.keywords:
            if k.arg is None:
                raise ModelError("'**' in a call is not part of the language", loc=loc, remedy="name the arguments")
            kwargs[k.arg] = self.value(k.value, frame)
        if isinstance(function, Method):
            owner = function.owner
            return calls.method(
                self.world,
                function,
                args,
                loc,
                text(node.func.value) if isinstance(node.func, ast.Attribute) else str(owner),
            )
        return self.call(function, args, kwargs, frame, node)

    def call(self, function: Term, args: list[Term], kwargs: dict[str, Term], frame: Frame, node: ast.AST) -> Term:
        """Calls anything: natively when all is known, else as a built-in or inlined."""
        loc = where(frame, node)
        if frame.depth > CALL_DEPTH:
            raise ModelError(
                f"calls nest deeper than {CALL_DEPTH}",
                loc=loc,
                remedy="recursion must end on values known while lowering; bound it by an argument",
            )
        if isinstance(function, Closure):
            return self.call_function(function, args, kwargs, frame, node)
        if symbolic(function):
            raise ModelError(f"{describe(function)} is not a function", loc=loc, remedy="call a function or method")
        args = [operators.plain(self.world, a) if not isinstance(a, Ref) else a for a in args]
        if not calls.any_symbolic(args, kwargs):
            if function is range and sum(1 for _ in args) and all(isinstance(a, int) for a in args):
                return range(*args)
            return self._native(function, args, kwargs, loc)
        result = calls.builtin(self.world, function, args, kwargs, loc)
        if result is not NotImplemented:
            return result
        if isinstance(function, types.FunctionType | types.MethodType):
            return self.call_function(function, args, kwargs, frame, node)
        raise ModelError(
            f"{getattr(function, '__name__', function)!r} cannot be called with values of the state",
            loc=loc,
            remedy="it is not written in Python or not known to the language; compute with the state in plain Python instead",
        )

    def _native(self, function: Any, args: list[Term], kwargs: dict[str, Term], loc: Any) -> Term:
        module = getattr(function, "__module__", None)
        if module in ("random", "time", "secrets", "uuid", "datetime") or function in (print, input, open):
            raise ModelError(
                f"{getattr(function, '__name__', function)}() has effects or answers differently each time",
                loc=loc,
                remedy="nondeterminism comes from choose(...), and a rule changes the state only",
            )
        try:
            return function(*args, **kwargs)
        except ModelError as error:
            raise error if error.loc else ModelError(error.message, loc=loc, remedy=error.remedy) from None
        except Exception as error:
            raise ModelError(
                f"{type(error).__name__} in {getattr(function, '__name__', function)}(): {error}",
                loc=loc,
                remedy="this call has no values of the state, so it is ordinary Python, run while the model is read",
            ) from error

    def _super(self, node: ast.Call, frame: Frame) -> Term:
        cls = _cells(frame).get("__class__")
        first = next(iter(inspect.signature(frame.function).parameters), None)
        if cls is None or first is None:
            raise ModelError("super() outside a method", loc=where(frame, node), remedy="call the function by its name")
        return super(cls, frame.locals[first])  # type: ignore[arg-type]

    def choice(self, node: ast.Call, frame: Frame, name: str | None) -> Term:
        """One branch of a `choose`: which one is given by the script; the driver runs them all."""
        world, loc = self.world, where(frame, node)
        if not world.in_action:
            raise ModelError(
                "choose(...) outside an action", loc=loc, remedy="properties look at states, they do not choose"
            )
        if len(node.args) != 1 or node.keywords:
            raise ModelError("choose takes one argument", loc=loc, remedy="choose(range(3))")
        options = operators.elements(world, self.value(node.args[0], frame), loc)
        for _, v in options:
            if isinstance(v, Node | Ref | Cases):
                raise ModelError(
                    "the values to choose from depend on the state",
                    loc=loc,
                    remedy="choose an index or a value from a fixed domain, then require(...) what it must satisfy",
                )
        if not options:
            self.guard(b.FALSE, "choose from nothing", node, frame)
            return 0
        at = world.script[len(world.widths)] if len(world.widths) < len(world.script) else 0
        world.widths.append(len(options))
        present, value = options[at]
        world.picks.append((name or f"choice{len(world.widths)}", value))
        allowed = b.and_((world.path, present)) if at else b.or_((b.not_(world.path), present))
        self.guard_raw(allowed, text(node), node, frame)
        return value

    def guard(self, cond: Expr, label: str, node: ast.AST, frame: Frame) -> None:
        """A condition for the action to be enabled, on the present path."""
        self.guard_raw(b.implies(self.world.path, cond), label, node, frame)

    def guard_raw(self, cond: Expr, label: str, node: ast.AST, frame: Frame) -> None:
        """A condition that already accounts for the path."""
        if cond is not b.TRUE:
            self.world.guards.append(Conjunct(cond, label, where(frame, node)))


def _cells(frame: Frame) -> dict[str, Any]:
    function = frame.function
    if isinstance(function, types.MethodType):
        function = function.__func__
    if not isinstance(function, types.FunctionType) or not function.__closure__:
        return {}
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__, strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # an empty cell: the name is not bound yet
            continue
    return found
