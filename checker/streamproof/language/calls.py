"""Built-in functions and the methods of queues, sets, options and local lists, as the language knows them."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from streamproof.language import places
from streamproof.language.operators import elements, equal, integer, plain
from streamproof.language.terms import Cell, Guarded, Method, Ref, Term, as_constant, describe, lift, merge, symbolic
from streamproof.language.world import World
from streamproof.system import build as b
from streamproof.system.errors import Loc, ModelError
from streamproof.system.expr import Expr, Node
from streamproof.system.sorts import BOOL, ArraySort, QueueSort, RangeSort, SetSort, cardinality

LISTS = {"append", "extend", "insert", "pop", "copy", "index", "count", "remove", "clear", "sort", "reverse"}
DICTS = {"get", "items", "keys", "values", "copy", "pop", "setdefault", "update"}


def length(world: World, value: Term, loc: Loc) -> Term:
    """``len``."""
    if isinstance(value, Cell):
        return len(world.heap[value.number])
    if isinstance(value, Guarded):
        return _count(world, [(c, b.TRUE) for c, _ in value.items], loc)
    whole = plain(world, value)
    if isinstance(whole, Node):
        term: Expr = whole  # type: ignore[assignment]
        if isinstance(term.sort, QueueSort):
            return b.length(term, loc)
        if isinstance(term.sort, SetSort):
            return b.size(term, loc)
        if isinstance(term.sort, ArraySort):
            return cardinality(term.sort.index)
        raise ModelError(f"a {term.sort} has no length", loc=loc, remedy="len works on queues, sets and arrays")
    return len(whole)


def _count(world: World, items: list[tuple[Expr, Expr]], loc: Loc) -> Term:
    total: Expr = b.num(0)
    for present, value in items:
        total = b.add(total, b.ite(b.and_((present, value)), b.num(1), b.num(0)), loc)
    return total


def quantifier(world: World, name: str, value: Term, loc: Loc) -> Term:
    """``all`` and ``any`` over a finite collection."""
    terms = []
    for present, v in elements(world, value, loc):
        known, host = as_constant(v)
        truth = b.truth(bool(host)) if known else plain(world, v)
        if getattr(truth, "sort", None) != BOOL:
            raise ModelError(f"{name}(...) needs truth values, got {describe(v)}", loc=loc, remedy="compare inside")
        terms.append(b.implies(present, truth) if name == "all" else b.and_((present, truth)))
    return (b.and_ if name == "all" else b.or_)(terms, loc)


def total(world: World, value: Term, start: Term, loc: Loc) -> Term:
    """``sum`` of integers and truth values."""
    result = integer(world, start, loc, "start")
    for present, v in elements(world, value, loc):
        result = b.add(result, b.ite(present, integer(world, v, loc, "element"), b.num(0)), loc)
    return result


def extreme(world: World, name: str, options: list[tuple[Expr, Term]], fallback: Term, loc: Loc) -> Term:
    """``min`` and ``max``; of conditional elements, `fallback` where none is present."""
    best: Expr | None = None
    there: Expr = b.FALSE
    for present, v in options:
        term = integer(world, v, loc, "element")
        if best is None:
            best, there = term, present
            continue
        better = b.less(term, best) if name == "min" else b.less(best, term)
        best = b.ite(b.and_((present, b.or_((b.not_(there), better)))), term, best, loc)
        there = b.or_((there, present))
    if best is None:
        if fallback is None:
            raise ModelError(f"{name}() of an empty collection", loc=loc, remedy=f"give {name}(..., default=value)")
        return fallback
    if there is not b.TRUE:
        if fallback is None:
            world.check(b.not_(there), f"{name}() of an empty collection", loc)
            return best
        return b.ite(there, best, integer(world, fallback, loc, "default"), loc)
    return best


def builtin(world: World, function: Any, args: list[Term], kwargs: dict[str, Term], loc: Loc) -> Term:
    """A call of one of Python's own functions with something symbolic among its arguments; NotImplemented if unknown."""
    match function:
        case builtins.len:
            return length(world, args[0], loc)
        case builtins.all | builtins.any:
            return quantifier(world, function.__name__, args[0], loc)
        case builtins.sum:
            return total(world, args[0], args[1] if len(args) > 1 else kwargs.get("start", 0), loc)
        case builtins.min | builtins.max:
            options = elements(world, args[0], loc) if len(args) == 1 else [(b.TRUE, a) for a in args]
            return extreme(world, function.__name__, options, kwargs.get("default"), loc)
        case builtins.abs:
            term = integer(world, args[0], loc, "argument")
            return b.ite(b.less(term, b.num(0)), b.sub(b.num(0), term), term, loc)
        case builtins.bool:
            known, host = as_constant(args[0])
            return bool(host) if known else args[0] if getattr(args[0], "sort", None) == BOOL else NotImplemented
        case builtins.int:
            return integer(world, args[0], loc, "argument")
        case builtins.tuple:
            return tuple(_unconditional(world, args[0], loc))
        case builtins.list:
            return world.allocate(_unconditional(world, args[0], loc))
        case builtins.dict if not args:
            return world.allocate(dict(kwargs))
        case builtins.dict if isinstance(args[0], Cell):
            return world.allocate({**world.heap[args[0].number], **kwargs})
        case builtins.enumerate:
            start = args[1] if len(args) > 1 else kwargs.get("start", 0)
            return tuple((start + i, v) for i, v in enumerate(_unconditional(world, args[0], loc)))
        case builtins.zip:
            return tuple(zip(*(_unconditional(world, a, loc) for a in args), strict=False))
        case builtins.reversed:
            return tuple(reversed(_unconditional(world, args[0], loc)))
        case builtins.range:
            raise ModelError(
                "the bounds of a range depend on the state",
                loc=loc,
                remedy="loop over the largest range and test the bound inside the loop",
            )
        case _:
            return NotImplemented


def _unconditional(world: World, value: Term, loc: Loc) -> list[Term]:
    items = elements(world, value, loc)
    if any(c is not b.TRUE for c, _ in items):
        raise ModelError(
            "how many elements there are depends on the state",
            loc=loc,
            remedy="use any, all, sum, len or a for loop over it directly",
        )
    return [v for _, v in items]


def method(world: World, m: Method, args: list[Term], loc: Loc, text: str) -> Term:
    """A method call on a place of the state or on a local list or dict."""
    if isinstance(m.owner, Cell):
        return _cell_method(world, m, args, loc)
    ref = m.owner
    assert isinstance(ref, Ref)
    whole = places.read(world, ref)
    if isinstance(ref.sort, QueueSort):
        return _queue_method(world, ref, whole, m.name, args, loc, text)
    if isinstance(ref.sort, SetSort):
        return _set_method(world, ref, whole, m.name, args, loc)
    raise ModelError(f"a {ref.sort} has no method {m.name!r}", loc=loc, remedy="only queues and sets have methods")


def _arity(name: str, args: list[Term], n: int, loc: Loc) -> None:
    if len(args) != n:
        raise ModelError(
            f"{name}() takes {n} argument(s), got {len(args)}", loc=loc, remedy="see the language reference"
        )


def _queue_method(world: World, ref: Ref, whole: Expr, name: str, args: list[Term], loc: Loc, text: str) -> Term:
    sort = ref.sort
    assert isinstance(sort, QueueSort)
    n = b.length(whole)
    match name:
        case "push" | "append":
            _arity(name, args, 1, loc)
            value = lift(plain(world, args[0]), sort.element, loc)
            world.check(b.less_eq(b.num(sort.capacity), n), f"push on the full queue {text}", loc, (text, whole))
            world.check(
                b.not_(b.in_domain(value, sort.element)), f"pushed value leaves {sort.element}", loc, ("value", value)
            )
            places.store(world, ref, b.push(whole, value, loc), loc)
            return None
        case "pop" | "popleft":
            _arity(name, args, 0, loc)
            head = queue_item(world, whole, 0, loc, text)
            places.store(world, ref, b.pop(whole, loc), loc)
            return head
        case "clear":
            _arity(name, args, 0, loc)
            places.store(world, ref, b.const(sort, ()), loc)
            return None
    raise ModelError(
        f"a Queue has no method {name!r}", loc=loc, remedy="it has push, pop, clear, head, full, len and []"
    )


def queue_item(world: World, whole: Expr, at: Term, loc: Loc, text: str) -> Expr:
    """An element of a queue; negative positions count from the end."""
    index = integer(world, at, loc, "position")
    n = b.length(whole)
    known, host = as_constant(index)
    if known and host < 0:
        index = b.add(n, index, loc)
    bad = b.or_((b.less(index, b.num(0)), b.less_eq(n, index)))
    message = f"head of the empty queue {text}" if known and host == 0 else f"position outside the queue {text}"
    world.check(bad, message, loc, (text, whole))
    return b.peek(whole, index, loc)


def _set_method(world: World, ref: Ref, whole: Expr, name: str, args: list[Term], loc: Loc) -> Term:
    sort = ref.sort
    assert isinstance(sort, SetSort)
    match name:
        case "add" | "discard" | "remove":
            _arity(name, args, 1, loc)
            value = lift(plain(world, args[0]), sort.element, loc)
            world.check(b.not_(b.in_domain(value, sort.element)), f"value leaves {sort.element}", loc, ("value", value))
            if name == "remove":
                world.check(
                    b.not_(b.member(whole, value)), "remove() of a value that is not in the set", loc, ("value", value)
                )
            made = b.insert(whole, value, loc) if name == "add" else b.remove(whole, value, loc)
            places.store(world, ref, made, loc)
            return None
        case "clear":
            _arity(name, args, 0, loc)
            places.store(world, ref, b.const(sort, frozenset()), loc)
            return None
    raise ModelError(
        f"a Set has no method {name!r}", loc=loc, remedy="it has add, discard, remove, clear, in, len, | & - <="
    )


def _cell_method(world: World, m: Method, args: list[Term], loc: Loc) -> Term:
    content = world.heap[m.owner.number]
    if isinstance(content, list):
        return _list_method(world, content, m.name, args, loc)
    pairs: dict[str, Callable[[], Term]] = {
        "items": lambda: tuple(content.items()),
        "keys": lambda: tuple(content),
        "values": lambda: tuple(content.values()),
        "copy": lambda: world.allocate(dict(content)),
    }
    if m.name in pairs:
        return pairs[m.name]()
    if m.name == "get":
        known, key = as_constant(args[0])
        if known:
            return content.get(key, args[1] if len(args) > 1 else None)
    raise ModelError(
        f"dict.{m.name}() cannot be lowered here", loc=loc, remedy="use d[key] with a key known while lowering"
    )


def _list_method(world: World, content: list[Term], name: str, args: list[Term], loc: Loc) -> Term:
    match name:
        case "append":
            _arity(name, args, 1, loc)
            content.append(args[0])
            return None
        case "extend":
            _arity(name, args, 1, loc)
            content.extend(_unconditional(world, args[0], loc))
            return None
        case "copy":
            return world.allocate(list(content))
        case "count":
            return _count(world, [(b.TRUE, equal(world, v, args[0], loc)) for v in content], loc)
    raise ModelError(
        f"list.{name}() cannot be lowered", loc=loc, remedy="lists have append, extend, copy, count, [] and len"
    )


def pick_from_list(world: World, content: list[Term], index: Term, loc: Loc, text: str) -> Term:
    """Element of a host or local sequence at a position that depends on the state."""
    term = integer(world, index, loc, text)
    assert isinstance(term.sort, RangeSort)
    world.check(
        b.not_(b.and_((b.less_eq(b.num(0), term), b.less(term, b.num(len(content)))))),
        f"index outside a sequence of {len(content)}",
        loc,
        (text, term),
    )
    result: Term = content[-1] if content else None
    for at in reversed(range(len(content) - 1)):
        result = merge(b.eq(term, b.num(at)), content[at], result, loc)
    return result


def pick_from_dict(world: World, content: dict[Any, Term], key: Term, loc: Loc, text: str) -> Term:
    """Value of a host or local dict at a key that depends on the state."""
    hits = [(equal(world, key, k, loc), v) for k, v in content.items()]
    if isinstance(key, Node):
        world.check(b.not_(b.or_(c for c, _ in hits)), f"{text} is not a key of the dict", loc, (text, key))  # type: ignore[arg-type]
    result: Term = hits[-1][1] if hits else None
    for cond, value in reversed(hits[:-1]):
        result = merge(cond, value, result, loc)
    return result


def any_symbolic(args: list[Term], kwargs: dict[str, Term]) -> bool:
    """Whether a call needs lowering at all."""
    return any(symbolic(a) for a in args) or any(symbolic(a) for a in kwargs.values())
