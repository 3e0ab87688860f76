"""Methods of queues, sets and bags of the state, and of local lists and dicts; positions and slices of queues and lists."""

from __future__ import annotations

from collections.abc import Mapping

from streamproof.base.errors import Loc, ModelError
from streamproof.language.lower import lvalues, sequences
from streamproof.language.lower.conversion import no_field
from streamproof.language.lower.elements import elements, in_sequence, iterator
from streamproof.language.lower.lift import condition_of, merge
from streamproof.language.lower.lowering_context import Context
from streamproof.language.lower.operators import equal, host, integer
from streamproof.language.lower.sequences import Items, count, inserted, listed, ranks, without
from streamproof.language.lower.terms import (
    QUEUE,
    Cases,
    HeapCell,
    Method,
    PartialList,
    Ref,
    Term,
    arity,
    is_expr,
    known,
    simple,
)
from streamproof.system import build as b
from streamproof.system.expr import Expr, Node
from streamproof.system.sorts import BagSort, OptionSort, QueueSort, RangeSort, RecordSort, SetSort, Sort, default

_KINDS: dict[type[Sort], tuple[str, str]] = {
    QueueSort: ("a Queue", QUEUE),
    SetSort: ("a Set", "a Set has add, discard, remove, clear, len, in, | & - and <="),
    BagSort: ("a Bag", "a Bag has add, discard, remove, clear, count, len, in, iteration, == and <="),
}
"""The sorts that have methods, in words, and their methods."""
_OTHERS = "only records have fields, only queues, sets and bags have methods; arrays are indexed"
DICT = "a local dict has get, items, keys, values, copy, len, in and []"
_LIST_METHODS = {
    **dict.fromkeys(("clear", "reverse", "copy"), (0, 0)),
    **dict.fromkeys(("append", "extend", "remove", "count", "index"), (1, 1)),
    "pop": (0, 1),
    "insert": (2, 2),
}
"""The methods of a local list, with the least and greatest number of arguments."""
LIST = "a local list has append, extend, insert, pop, remove, clear, copy, reverse, count, index, len, in, + and []"


def method(context: Context, m: Method | Cases, args: list[Term], kwargs: dict[str, Term], loc: Loc, text: str) -> Term:
    """A method call on a place of the state, or on a local list or dict, one of several perhaps; `text` is the source of
    the owner."""
    if isinstance(m, Cases):
        return context.by_case(m, lambda one: method(context, one, args, kwargs, loc, text), loc)
    if isinstance(m.owner, Ref | Node) and isinstance(m.owner.sort, RecordSort):
        return _with_fields(context, m.owner, args, kwargs, loc)
    if kwargs:
        raise ModelError(f"{m.name}() takes no keyword arguments", loc=loc, remedy="pass the value alone")
    if isinstance(m.owner, HeapCell):
        content = context.content(m.owner)
        if isinstance(content, Mapping):
            return _dict_method(context, m.owner, content, m.name, args, loc)
        return _list_method(context, m.owner, m.name, args, loc)
    ref = m.owner
    if isinstance(ref, Cases):
        raise ModelError(
            f"which place {text!r} refers to depends on the state",
            loc=loc,
            remedy="call the method under an 'if', once for each of them",
        )
    if is_expr(ref) and isinstance(ref.sort, BagSort):
        return _count(context, ref, args, loc, text)
    if is_expr(ref) and isinstance(ref.sort, QueueSort):
        return _count_or_index(context, ref, m.name, args, loc, text)
    assert isinstance(ref, Ref)
    if isinstance(ref.sort, QueueSort):
        return _queue_method(context, ref, m.name, args, loc, text)
    if isinstance(ref.sort, SetSort | BagSort):
        return _collection_method(context, ref, m.name, args, loc, text)
    raise no_method(ref.sort, m.name, loc)


def _with_fields(context: Context, owner: Term, args: list[Term], kwargs: dict[str, Term], loc: Loc) -> Term:
    """``record._replace(number=1)``: the value with other fields."""
    whole = lvalues.dereference(context, owner)
    sort = whole.sort
    assert isinstance(sort, RecordSort)
    arity("_replace", args, 0, 0, loc, "name the fields: _replace(number=1)")
    old: dict[str, Term] = {name: b.field(whole, name, loc) for name, _ in sort.fields}
    for name in kwargs:
        if name not in old:
            raise no_field(sort, name, loc)
    return lvalues.convert(context, {**old, **kwargs}, sort, loc, "the record")


def no_method(sort: Sort, name: str, loc: Loc) -> ModelError:
    """The error for an unknown attribute of values of `sort`."""
    whole, remedy = _KINDS.get(type(sort), (str(sort), _OTHERS))
    return ModelError(f"{whole} has no {name!r}", loc=loc, remedy=remedy)


def _collection_method(context: Context, ref: Ref, name: str, args: list[Term], loc: Loc, text: str) -> Term:
    """A method of a set or a bag of the state, written as `text`."""
    sort = ref.sort
    assert isinstance(sort, SetSort | BagSort)
    is_bag = isinstance(sort, BagSort)
    if name == "count" and is_bag:
        return _count(context, lvalues.read(context, ref), args, loc, text)
    if name == "clear":
        arity(name, args, 0, 0, loc, f"write {text}.clear()")
        lvalues.store(context, ref, b.const(sort, default(sort)), loc)
        return None
    if name not in ("add", "discard", "remove"):
        raise no_method(sort, name, loc)
    item = sort.item if isinstance(sort, BagSort) else sort.element
    arity(name, args, 1, 1, loc, f"write {text}.{name}(value)")
    value = lvalues.convert(context, args[0], item, loc, "the value")
    whole = lvalues.read(context, ref)
    if name == "add":
        if isinstance(sort, BagSort):
            full = b.less_eq(b.num(sort.capacity), b.bag_size(whole))
            context.check(full, f"add to the full bag {text}", loc, (text, whole))
        _expect_value(context, value, item, f"the value added to {text}", loc)
    if name == "remove":
        zero = b.num(0)
        absent = b.less_eq(sequences.count_of(whole, value, loc), zero) if is_bag else b.not_(b.member(whole, value))
        context.check(absent, f"remove() of a value that is not in {text}", loc, ("value", value))
    if is_bag:
        made = (sequences.with_one if name == "add" else sequences.without_one)(whole, value, loc)
    else:
        made = (b.insert if name == "add" else b.remove)(whole, value, loc)
    lvalues.store(context, ref, made, loc)
    return None


def _count(context: Context, whole: Expr, args: list[Term], loc: Loc, text: str) -> Term:
    """``bag.count(value)``: the number of its occurrences."""
    arity("count", args, 1, 1, loc, f"write {text}.count(value)")
    assert isinstance(whole.sort, BagSort)
    value = lvalues.convert(context, args[0], whole.sort.item, loc, "the value")
    return simple(sequences.count_of(whole, value, loc))


def _dict_method(
    context: Context, cell: HeapCell, content: Mapping[object, Term], name: str, args: list[Term], loc: Loc
) -> Term:
    parts = {"items": content.items(), "keys": content.keys(), "values": content.values()}
    if name in parts:
        arity(name, args, 0, 0, loc, DICT)
        return iterator(context, [(b.TRUE, v) for v in parts[name]], (cell,))
    if name == "copy":
        arity(name, args, 0, 0, loc, DICT)
        return context.allocate(dict(content))
    if name == "get":
        arity(name, args, 1, 2, loc, DICT)
        is_known, key = known(args[0])
        if is_known:
            return content.get(key, args[1] if len(args) > 1 else None)
    raise ModelError(f"dict.{name}() cannot be lowered here", loc=loc, remedy=DICT)


# --- queues


def _queue_method(context: Context, ref: Ref, name: str, args: list[Term], loc: Loc, text: str) -> Term:
    """A method of a queue of the state, written as `text`."""
    sort = ref.sort
    assert isinstance(sort, QueueSort)
    whole = lvalues.read(context, ref)
    match name:
        case "push" | "append":
            arity(name, args, 1, 1, loc, f"write {text}.push(value)")
            value = lvalues.convert(context, args[0], sort.element, loc, "the value")
            _expect_room(context, whole, f"push on the full queue {text}", loc, text)
            _expect_value(context, value, sort.element, f"the value pushed on {text}", loc)
            lvalues.store(context, ref, b.push(whole, value, loc), loc)
            return None
        case "pop" | "popleft" if not args:
            head = queue_head(context, whole, loc, text)
            lvalues.store(context, ref, b.pop(whole, loc), loc)
            return head
        case "pop":
            arity(name, args, 0, 1, loc, f"write {text}.pop() for the head, or {text}.pop(position)")
            index = queue_position(context, whole, args[0], loc, text)
            taken = simple(b.peek(whole, index, loc))
            lvalues.store(context, ref, _without_position(whole, sort, index, loc), loc)
            return taken
        case "insert":
            arity(name, args, 2, 2, loc, f"write {text}.insert(position, value)")
            index = _place(context, args[0], b.length(whole), loc)
            value = lvalues.convert(context, args[1], sort.element, loc, "the value")
            _expect_room(context, whole, f"insert into the full queue {text}", loc, text)
            _expect_value(context, value, sort.element, f"the value inserted into {text}", loc)
            lvalues.store(context, ref, _with_position(whole, sort, index, value, loc), loc)
            return None
        case "remove":
            arity(name, args, 1, 1, loc, f"write {text}.remove(value)")
            items = elements(context, whole, loc)
            gone = _first(context, items, args[0], loc, f"remove() of a value that is not in {text}")
            lvalues.store(context, ref, _queue(sort, without(items, gone), loc), loc)
            return None
        case "extend":
            arity(name, args, 1, 1, loc, f"write {text}.extend(values)")
            given = in_sequence(context, args[0], loc)
            more = list(
                context.of_each(given, lambda v: lvalues.convert(context, v, sort.element, loc, "the value"), loc)
            )
            total = b.add(b.length(whole), count(more))
            full = b.less(b.num(sort.capacity), total)
            context.check(full, f"extend beyond the capacity of the queue {text}", loc, (text, whole))
            for there, value in more:
                outside = b.and_((there, b.not_(b.in_domain(value, sort.element))))
                context.check(outside, f"the value pushed on {text} leaves {sort.element}", loc, ("value", value))
            lvalues.store(context, ref, _queue(sort, more, loc, whole), loc)
            return None
        case "clear":
            arity(name, args, 0, 0, loc, f"write {text}.clear()")
            lvalues.store(context, ref, b.const(sort, ()), loc)
            return None
        case "count" | "index":
            return _count_or_index(context, whole, name, args, loc, text)
    raise no_method(sort, name, loc)


def _count_or_index(context: Context, whole: Expr, name: str, args: list[Term], loc: Loc, text: str) -> Term:
    arity(name, args, 1, 1, loc, f"write {text}.{name}(value)")
    return _found(context, name, elements(context, whole, loc), args[0], loc, text)


def _expect_room(context: Context, whole: Expr, message: str, loc: Loc, text: str) -> None:
    assert isinstance(whole.sort, QueueSort)
    full = b.less_eq(b.num(whole.sort.capacity), b.length(whole))
    context.check(full, message, loc, (text, whole))


def _expect_value(context: Context, value: Expr, sort: Sort, what: str, loc: Loc) -> None:
    context.check(b.not_(b.in_domain(value, sort)), f"{what} leaves {sort}", loc, ("value", value))


def queue_head(context: Context, whole: Expr, loc: Loc, text: str) -> Term:
    """The head of a queue."""
    context.check(b.less_eq(b.length(whole), b.num(0)), f"head of the empty queue {text}", loc, (text, whole))
    return simple(b.peek(whole, b.num(0), loc))


def queue_item(context: Context, whole: Expr, at: Term, loc: Loc, text: str) -> Term:
    """An element of a queue; negative positions count from the end, as in Python."""
    return simple(b.peek(whole, queue_position(context, whole, at, loc, text), loc))


def queue_position(context: Context, whole: Expr, at: Term, loc: Loc, text: str) -> Expr:
    """A position in a queue, counted from the head, with a check that there is an element."""
    n = b.length(whole)
    index = _from_start(integer(context, at, loc, "position"), n, loc)
    bad = b.or_((b.less(index, b.num(0)), b.less_eq(n, index)))
    context.check(bad, f"position outside the queue {text}", loc, ("position", index), (text, whole))
    return index


def _without_position(whole: Expr, sort: QueueSort, index: Expr, loc: Loc) -> Expr:
    """A queue without the element at `index`: those behind it move up."""
    n, result = b.sub(b.length(whole), b.num(1)), b.const(sort, (), loc)
    for at in range(sort.capacity - 1):
        value = b.ite(b.less(b.num(at), index), b.peek(whole, b.num(at)), b.peek(whole, b.num(at + 1)), loc)
        result = b.ite(b.less(b.num(at), n), b.push(result, value, loc), result, loc)
    return result


def _with_position(whole: Expr, sort: QueueSort, index: Expr, value: Expr, loc: Loc) -> Expr:
    """A queue that is not full with another element at `index`: those behind it move down."""
    n, result = b.length(whole), b.const(sort, (), loc)
    for at in range(sort.capacity):
        here = b.peek(whole, b.num(at - 1)) if at else value
        here = b.ite(b.eq(b.num(at), index), value, here, loc)
        here = b.ite(b.less(b.num(at), index), b.peek(whole, b.num(at)), here, loc)
        result = b.ite(b.less_eq(b.num(at), n), b.push(result, here, loc), result, loc)
    return result


def _queue(sort: QueueSort, items: Items, loc: Loc, before: Expr | None = None) -> Expr:
    """The elements as a queue, after those of `before`."""
    result: Expr = b.const(sort, (), loc) if before is None else before
    for there, value in items:
        term = value if is_expr(value) else b.const(sort.element, value, loc)
        result = b.ite(there, b.push(result, term, loc), result, loc)
    return result


# --- local lists


def _list_method(context: Context, cell: HeapCell, name: str, args: list[Term], loc: Loc) -> Term:
    """A method of a local list."""
    content = context.content(cell)
    assert isinstance(content, tuple | PartialList)
    if name not in _LIST_METHODS:
        raise ModelError(f"list.{name}() cannot be lowered", loc=loc, remedy=LIST)
    arity(name, args, *_LIST_METHODS[name], loc, LIST)
    if isinstance(content, tuple) and name in ("insert", "pop") and all(isinstance(a, int) for a in args[:1]):
        changed = list(content)  # a known position of a list of known length
        taken = host(context, lambda: getattr(changed, name)(*args), loc, *args)
        context.put(cell, tuple(changed))
        return taken
    items = content.items if isinstance(content, PartialList) else tuple((b.TRUE, v) for v in content)
    made: Items = []
    match name:
        case "append":
            made = [*items, (b.TRUE, args[0])]
        case "extend":
            made = [*items, *in_sequence(context, args[0], loc)]
        case "reverse":
            made = items[::-1]
        case "copy":
            return context.allocate(content)
        case "pop":
            index = position_in(context, items, args[0] if args else -1, loc)
            taken = _at(items, index)
            context.put(cell, listed(without(items, [b.eq(rank, index) for rank in ranks(items)])))
            return taken
        case "insert":
            made = inserted(items, _place(context, args[0], count(items), loc), args[1])
        case "remove":
            made = without(items, _first(context, items, args[0], loc, "remove() of a value that is not in the list"))
        case "count" | "index":
            return _found(context, name, items, args[0], loc, "the list")
    context.put(cell, listed(made))
    return None


def position_in(context: Context, items: Items, at: Term, loc: Loc) -> Expr:
    """A position in a list, counted from the start, with a check that there is an element."""
    n = count(items)
    index = _from_start(integer(context, at, loc, "position"), n, loc)
    bad = b.or_((b.less(index, b.num(0)), b.less_eq(n, index))) if items else b.TRUE
    context.check(bad, "position outside the list", loc, ("position", index))
    return index


def list_item(context: Context, items: Items, at: Term, loc: Loc) -> Term:
    """The element of a list at a position; negative positions count from the end."""
    return _at(items, position_in(context, items, at, loc))


def _at(items: Items, index: Expr) -> Term:
    result: Term = items[-1][1]
    for (there, value), rank in reversed(list(zip(items[:-1], ranks(items), strict=False))):
        result = merge(b.and_((there, b.eq(rank, index))), value, result, None)
    return result


def sliced(context: Context, items: Items, lower: Term, upper: Term, loc: Loc) -> list[tuple[Expr, Term]]:
    """The elements from position `lower` up to, not including, `upper`; None: the ends."""
    n = count(items)
    (no_low, low), (no_high, high) = (_bound(context, end, n, loc) for end in (lower, upper))
    kept = []
    for (there, value), rank in zip(items, ranks(items), strict=True):
        behind, before = b.or_((no_low, b.less_eq(low, rank))), b.or_((no_high, b.less(rank, high)))
        kept.append((b.and_((there, behind, before)), value))
    return kept


def _bound(context: Context, end: Term, n: Expr, loc: Loc) -> tuple[Expr, Expr]:
    """Whether a slice has no bound on this side, which None means in Python, and the bound otherwise."""
    if end is None:
        return b.TRUE, n
    if is_expr(end) and isinstance(end.sort, OptionSort):
        return b.is_none(end), _from_start(integer(context, b.unwrap(end, loc), loc, "position"), n, loc)
    return b.FALSE, _from_start(integer(context, end, loc, "position"), n, loc)


# --- both


def _from_start(index: Expr, n: Expr, loc: Loc) -> Expr:
    """A position that may be negative, counted from the start."""
    assert isinstance(index.sort, RangeSort)
    return b.ite(b.less(index, b.num(0)), b.add(n, index), index, loc) if index.sort.lo < 0 else index


def _place(context: Context, at: Term, n: Expr, loc: Loc) -> Expr:
    """The position at which ``insert(at, ...)`` puts an element: at least 0 and at most the length, as in Python."""
    index = _from_start(integer(context, at, loc, "position"), n, loc)
    return b.ite(b.less(index, b.num(0)), b.num(0), b.ite(b.less(n, index), n, index))


def _matches(context: Context, items: Items, value: Term, loc: Loc) -> list[Expr]:
    """For each element, whether it is present and equal to `value`."""
    return [b.and_((there, condition_of(equal(context, x, value, loc)))) for there, x in items]


def _first(context: Context, items: Items, value: Term, loc: Loc, message: str) -> list[Expr]:
    """For each element, whether it is the first that is equal to `value`, with a check that there is one."""
    hits = _matches(context, items, value, loc)
    context.check(b.not_(b.or_(hits)), message, loc)
    return [b.and_((hit, b.not_(b.or_(hits[:at])))) for at, hit in enumerate(hits)]


def _found(context: Context, name: str, items: Items, value: Term, loc: Loc, text: str) -> Term:
    """``count`` or ``index``."""
    if name == "count":
        return simple(count([(hit, None) for hit in _matches(context, items, value, loc)], loc))
    hits = _first(context, items, value, loc, f"index() of a value that is not in {text}")
    result: Expr = b.num(0)
    for hit, rank in reversed(list(zip(hits, ranks(items), strict=True))):
        result = b.ite(hit, rank, result, loc)
    return simple(result)
