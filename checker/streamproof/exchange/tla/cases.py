"""Unions, options and queues in TLA+: partial operations get a test, unless the known conditions make it superfluous."""

from __future__ import annotations

from collections.abc import Sequence

from streamproof.exchange.tla.families import Terms, parts
from streamproof.exchange.tla.layout import Bind, Text, beside, chosen, closed, listed
from streamproof.exchange.tla.names import string
from streamproof.exchange.tla.passage import Passage
from streamproof.exchange.tla.values import case_fields, fields, literal, message, record, resting, tag_field
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.sorts import OptionSort, QueueSort, RecordSort, UnionSort, default


def of_union(at: Passage, terms: Terms) -> Text:
    """A case, its test or its fields."""
    first, [arg] = terms[0], parts(terms)
    match first:
        case e.MakeCase(sort=UnionSort() as sort, case=case):
            names = [n for n, _ in sort.payload(case).fields]
            return message(sort, case, [at.text(tuple(b.field(t, n) for t in arg)) for n in names])
        case e.Payload(sort=RecordSort() as own):
            return record(
                [(n, case_field(at, terms, name)) for (n, _), (name, _) in zip(fields(own), own.fields, strict=True)]
            )
        case _:
            return is_case(at, terms, "=")


def is_case(at: Passage, terms: Terms, operator: str) -> Text:
    """The test of the case of a union; `operator` is ``=`` or ``#``."""
    first, [arg] = terms[0], parts(terms)
    assert isinstance(first, e.IsCase)
    assert isinstance(first.arg.sort, UnionSort)
    tag = f".{tag_field(first.arg.sort)} {operator} {string(first.case)}"
    return beside(closed(at.text(arg), Bind.ATOM), tag, bind=Bind.COMPARED)


def case_field(at: Passage, payload: Terms, name: str) -> Text:
    """A field of a case, with its default in other cases."""
    first, [arg] = payload[0], parts(payload)
    assert isinstance(first, e.Payload)
    union, own, case = first.arg.sort, first.sort, first.case
    assert isinstance(union, UnionSort)
    assert isinstance(own, RecordSort)
    place = own.index(name)
    value = beside(closed(at.text(arg), Bind.ATOM), f".{case_fields(union, case)[place][0]}")
    if at.sure(lambda t: b.is_case(t, case), arg):
        return value
    there = beside(closed(at.text(arg), Bind.ATOM), f".{tag_field(union)} = {string(case)}", bind=Bind.COMPARED)
    return chosen(there, value, literal(own.fields[place][1], default(own)[place]))


def of_option(at: Passage, terms: Terms) -> Text:
    """An option, its test or its value, with the default where there is none."""
    first, [arg] = terms[0], parts(terms)
    text = at.text(arg)
    match first:
        case e.Some():
            return beside("Some(", text, ")")
        case e.IsNone():
            return beside(closed(text, Bind.ATOM), '.tag = "None"', bind=Bind.COMPARED)
        case _:
            sort = arg[0].sort
            assert isinstance(sort, OptionSort)
            value, usual = beside(closed(text, Bind.ATOM), ".value"), default(sort.element)
            if usual == resting(sort.element) or at.sure(lambda t: b.not_(b.is_none(t)), arg):
                return value
            there = beside(closed(text, Bind.ATOM), '.tag = "Some"', bind=Bind.COMPARED)
            return chosen(there, value, literal(sort.element, usual))


def of_queue(at: Passage, terms: Terms) -> Text:
    """The length or an element of a queue, or a changed one."""
    first, args = terms[0], parts(terms)
    sort = args[0][0].sort
    assert isinstance(sort, QueueSort)
    queue = at.text(args[0])
    size = beside("Len(", queue, ")")
    match first:
        case e.Length():
            return size
        case e.Pop():
            rest = beside("Tail(", queue, ")")
            if at.sure(lambda q: b.less(b.num(0), b.length(q)), args[0]):
                return rest
            empty = beside(closed(queue, Bind.COMPUTED), " = <<>>", bind=Bind.COMPARED)
            return chosen(empty, queue, rest)
        case e.Push():
            longer = beside("Append(", queue, ", ", at.text(args[1]), ")")
            if at.sure(lambda q: b.less(b.length(q), b.num(sort.capacity)), args[0]):
                return longer
            return chosen(beside(size, f" < {sort.capacity}", bind=Bind.COMPARED), longer, queue)
        case _:
            return _peeked(at, sort, queue, size, args)


def _peeked(at: Passage, sort: QueueSort, queue: Text, size: Text, args: Sequence[Terms]) -> Text:
    index = args[1]
    constants = {t.value for t in index if isinstance(t, e.Const)}
    text = at.text(index)
    if constants == {0}:
        found = beside("Head(", queue, ")")
    elif len(constants) == len(set(index)) == 1:
        found = beside(closed(queue, Bind.ATOM), f"[{constants.pop() + 1}]")
    else:
        found = beside(closed(queue, Bind.ATOM), "[", closed(text, Bind.ATOM), " + 1]")
    whole = list(zip(at.given, args[0], index, strict=True))
    if all(here(b.and_((b.less_eq(b.num(0), i), b.less(i, b.length(q))))) is b.TRUE for here, q, i in whole):
        return found
    number = closed(text, Bind.COMPUTED)
    short = beside(size, " > ", number, bind=Bind.COMPARED)
    if set(index) == {b.num(0)}:
        inside = beside(closed(queue, Bind.COMPUTED), " # <<>>", bind=Bind.COMPARED)
    elif all(here(b.less_eq(b.num(0), i)) is b.TRUE for here, _, i in whole):
        inside = short
    else:
        inside = listed("/\\", [beside(number, " >= 0", bind=Bind.COMPARED), short])
    return chosen(inside, found, literal(sort.element, default(sort.element)))
