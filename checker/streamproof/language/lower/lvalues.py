"""Loads and stores of places in the state, with the checks that make every domain error an error of the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamproof.base.errors import Loc, ModelError
from streamproof.base.records import replace
from streamproof.language.lower import conversion
from streamproof.language.lower.conversion import (
    as_operand,
    cases_of,
    expect_faithful,
    key_term,
    named_parts,
    unknown_member,
)
from streamproof.language.lower.lift import lifted, merge, recast, to_term, widened
from streamproof.language.lower.lowering_context import Context, Replacement
from streamproof.language.lower.terms import (
    Cases,
    HeapCell,
    NewCase,
    PartialList,
    Ref,
    Several,
    Term,
    describe,
    is_expr,
    known,
    simple,
    symbolic,
)
from streamproof.system import build as b
from streamproof.system import sorts
from streamproof.system.expr import Expr


def outdated(context: Context, ref: Ref) -> Replacement | None:
    """The assignment that (possibly) replaced the container that `ref` refers to; as in Python, the reference keeps the
    old one."""
    if ref.since == context.generation:
        return None
    return next((r for r in context.replaced if r.generation > ref.since and _within(ref, r.place)), None)


def replaced(context: Context, ref: Ref, loc: Loc | None, name: str = "") -> Replacement | None:
    """None if `ref` refers to the current contents of its place. Raises `ModelError` if it may refer to a replaced container.

    The right-hand side of an assignment refers to the containers before it; the result is then the replacement after
    them.
    """
    one = outdated(context, ref)
    if one is None:
        return None
    certain = one.place.path == ref.path[: len(one.place.path)] and one.path is context.path
    if context.assigning is None or one.generation <= context.assigning or not certain:
        raise _gone(one, name or str(ref), loc)
    return one


def _gone(one: Replacement, name: str, loc: Loc | None) -> ModelError:
    return ModelError(
        f"{name!r} refers to a container that the assignment to {one.target} replaced",
        loc=loc,
        remedy="use it before the assignment, read the state again, or copy the old elements first: list(...)",
    )


def read(context: Context, ref: Ref) -> Expr:
    """The contents of the referenced container."""
    one = replaced(context, ref, None)
    return content(ref, context.state[ref.root] if one is None else one.before)


def content(ref: Ref, whole: Expr) -> Expr:
    """The contents of a place in the variable value `whole`."""
    for kind, key in ref.path:
        whole = b.select(whole, key) if kind == "index" else b.field(whole, key)
    return whole


def _within(ref: Ref, place: Ref) -> bool:
    """Whether `ref` may equal `place` or lie inside it."""
    if ref.root != place.root or len(ref.path) < len(place.path):
        return False
    for (_, one), (_, other) in zip(ref.path, place.path, strict=False):
        if one != other and (isinstance(one, str) or (known(one)[0] and known(other)[0])):
            return False
    return True


def by_value(sort: sorts.Sort) -> bool:
    """Whether values of a sort are read by value: scalars, options, unions and tuples."""
    return sorts.is_scalar(sort) or isinstance(sort, sorts.OptionSort | sorts.UnionSort | sorts.TupleSort)


def load(context: Context, ref: Ref) -> Term:
    """Scalars, options, unions and tuples are read immediately, by value; a container stays a reference, as in Python."""
    return read(context, ref) if by_value(ref.sort) else ref


def variable(context: Context, name: str, sort: sorts.Sort) -> Term:
    """A state variable, as loaded by `load`."""
    return context.state[name] if by_value(sort) else Ref(name, (), sort, context.generation)


def dereference(context: Context, value: Term) -> Term:
    """Reads a reference, also inside a conditional value; other values are unchanged."""
    if isinstance(value, Ref):
        return read(context, value)
    if isinstance(value, Cases) and (isinstance(value.then, Ref | Cases) or isinstance(value.other, Ref | Cases)):
        return merge(value.cond, dereference(context, value.then), dereference(context, value.other), None)
    return value


def resolve_deep(context: Context, value: Term) -> Term:
    """`value` with every reference and local container read, recursively."""
    value = dereference(context, value)
    if isinstance(value, HeapCell):
        held = context.content(value)
        if isinstance(held, Mapping):
            return {k: resolve_deep(context, v) for k, v in held.items()}
        if isinstance(held, PartialList):
            return PartialList(tuple((c, resolve_deep(context, v)) for c, v in held.items))
        return [resolve_deep(context, v) for v in held]
    if type(value) is tuple:
        return tuple(resolve_deep(context, v) for v in value)
    if isinstance(value, NewCase):
        return NewCase(value.kind, resolve_deep(context, value.values))
    if isinstance(value, Cases):
        return Cases(value.cond, resolve_deep(context, value.then), resolve_deep(context, value.other))
    if isinstance(value, Several):
        return replace(value, items=tuple((c, resolve_deep(context, v)) for c, v in value.items))
    return value


def convert(context: Context, value: Term, sort: sorts.Sort, loc: Loc, text: str) -> Expr:
    """`value` as an expression of `sort`; an option is unwrapped, with a check that it is present."""

    def unwrap(term: Expr, inside: bool) -> Expr:
        return unwrap_option(context, term, loc, f"a part of {text}" if inside else text)

    return to_term(resolve_deep(context, value), sort, loc, unwrap, context)


def unwrap_option(context: Context, term: Expr, loc: Loc, text: str) -> Expr:
    """The value of an option, with a check that it is present."""
    context.check(b.is_none(term), f"{text} is None where a value is needed", loc, (text, term))
    return b.unwrap(term, loc)


def contained_value(context: Context, value: Term, loc: Loc, text: str = "the collection") -> Term:
    """`value`, unwrapped if it is an option of a container, with a check that it is present."""
    if not is_expr(value) or not isinstance(value.sort, sorts.OptionSort) or by_value(value.sort.element):
        return value
    return unwrap_option(context, value, loc, text)


def as_tuple(context: Context, value: Term, loc: Loc, text: str = "the tuple") -> Term:
    """A record as the tuple of its fields, as `load` gives them; an option of a record is unwrapped, with a check that it
    is present. Other values are unchanged."""
    if isinstance(value, Cases) and _has_record(value):
        return context.by_case(value, lambda one: as_tuple(context, one, loc, text), loc)
    if isinstance(value, Ref) and isinstance(value.sort, sorts.RecordSort):
        return tuple(load(context, attribute(context, value, name, loc)) for name, _ in value.sort.fields)
    if not is_expr(value):
        return value
    if isinstance(value.sort, sorts.OptionSort) and isinstance(value.sort.element, sorts.RecordSort):
        value = unwrap_option(context, value, loc, text)
    return _fields(value, loc) if isinstance(value.sort, sorts.RecordSort) else value


def _has_record(value: Term) -> bool:
    if isinstance(value, Cases):
        return _has_record(value.then) or _has_record(value.other)
    if not isinstance(value, Ref) and not is_expr(value):
        return False
    sort = value.sort.element if isinstance(value.sort, sorts.OptionSort) else value.sort
    return isinstance(sort, sorts.RecordSort)


def is_tuple(value: Term) -> bool:
    """Whether `as_tuple` of a value is a tuple, or one of several, depending on the state."""
    if isinstance(value, Cases):
        return is_tuple(value.then) and is_tuple(value.other)
    return type(value) is tuple or _has_record(value)


def _fields(record: Expr, loc: Loc) -> tuple[Term, ...]:
    assert isinstance(record.sort, sorts.RecordSort)
    return tuple(simple(b.field(record, name, loc)) for name, _ in record.sort.fields)


def index_term(context: Context, sort: sorts.ArraySort, key: Term, loc: Loc, text: str) -> Expr:
    """`key` as an index of `sort`, with a check if it may be outside."""
    key = dereference(context, key)
    if isinstance(sort.index, sorts.KeySort) or sorts.is_empty(sort.index):
        return _keyed(context, sort.index, resolve_deep(context, key), loc, text)
    if isinstance(key, Cases):
        chosen: Expr = context.by_case(key, lambda one: index_term(context, sort, one, loc, text), loc)
        return chosen
    if not symbolic(key) and type(key) is not bool:
        expect_faithful(key, loc)
        key = conversion.plain(key)
    is_known, host = known(key)
    if is_known and not is_expr(key) and type(host) is not type(sorts.default(sort.index)):
        raise ModelError(f"{describe(key)} cannot index {sort}", loc=loc, remedy=f"use a value of {sort.index}")
    if is_known and isinstance(sort.index, sorts.TermRange) and isinstance(host, int):
        key, is_known = b.num(host), False
    if is_known and not is_expr(key):
        if isinstance(sort.index, sorts.EnumSort) and host not in sort.index.members:
            raise unknown_member(sort.index, host, loc)
        if sorts.position(sort.index, host) is None:
            context.check(b.TRUE, f"index outside {sort.index}", loc, (text, b.num(host)))
        return b.const(sort.index, host, loc)
    if not is_expr(key):
        raise ModelError(f"{describe(key)} cannot index {sort}", loc=loc, remedy=f"use a value of {sort.index}")
    if isinstance(key.sort, sorts.OptionSort):
        key = unwrap_option(context, key, loc, text)
    if isinstance(key.sort, sorts.EnumSort) and lifted(key.sort, sort.index) is not None:
        key = recast(key, sort.index, loc)
    if not sorts.compatible(key.sort, sort.index):
        raise ModelError(f"{describe(key)} cannot index {sort}", loc=loc, remedy=f"use a value of {sort.index}")
    index: Expr = key
    context.check(b.not_(b.in_domain(index, sort.index)), f"index outside {sort.index}", loc, (text, index))
    return index


def _keyed(context: Context, index: sorts.Scalar, key: Term, loc: Loc, text: str) -> Expr:
    """`key` as one of the keys of an array, with a check if it may be none of them."""

    def present(part: Term) -> Term:
        if type(part) is tuple:
            return tuple(map(present, part))
        if is_expr(part) and isinstance(part.sort, sorts.OptionSort):
            part = unwrap_option(context, part, loc, text)
        if is_expr(part) and isinstance(part.sort, sorts.RecordSort):
            return present(_fields(part, loc))
        return part

    if (split := cases_of(key)) is not None:
        chosen: Expr = context.by_case(split, lambda one: _keyed(context, index, one, loc, text), loc)
        return chosen
    key = present(key)
    term, outside = key_term(index, key, loc) if isinstance(index, sorts.KeySort) else (b.num(0), b.TRUE)
    if outside is not b.FALSE:
        parts = [(name, as_operand(part)) for name, part in named_parts(text, key)]
        context.check(outside, f"index outside {index}", loc, *parts)
    return term


def item(context: Context, ref: Ref, key: Term, loc: Loc, text: str) -> Ref:
    """A reference to an array element."""
    assert isinstance(ref.sort, sorts.ArraySort)
    if isinstance(ref.sort, sorts.BagSort):
        remedy = f"write {ref}.count({text}), {ref}.add({text}) or {ref}.remove({text})"
        raise ModelError("a Bag is not indexed", loc=loc, remedy=remedy)
    return _part(context, ref, ("index", index_term(context, ref.sort, key, loc, text)), ref.sort.element, loc)


def _part(context: Context, ref: Ref, step: tuple[str, Any], sort: sorts.Sort, loc: Loc) -> Ref:
    """A reference to a component of `ref`."""
    one = replaced(context, ref, loc)
    return Ref(ref.root, (*ref.path, step), sort, context.generation if one is None else one.generation - 1)


def attribute(context: Context, ref: Ref, name: str, loc: Loc) -> Ref:
    """A reference to a record field."""
    assert isinstance(ref.sort, sorts.RecordSort)
    try:
        at = ref.sort.index(name)
    except KeyError:
        raise conversion.no_field(ref.sort, name, loc) from None
    return _part(context, ref, ("field", name), ref.sort.fields[at][1], loc)


def write(context: Context, ref: Ref, value: Term, loc: Loc, text: str) -> None:
    """Stores `value` at a place, with a check that it is in the place's sort."""
    term = convert(context, value, ref.sort, loc, f"the new {text}")
    context.check(b.not_(b.in_domain(term, ref.sort)), f"{text} leaves {ref.sort}", loc, (f"new {text}", term))
    store(context, ref, widened(term, ref.sort), loc)


def replace_whole(context: Context, ref: Ref, value: Term, loc: Loc, text: str) -> None:
    """Assigns to a place, written as `text`; existing references to its container keep the old one."""
    before = context.state[ref.root]
    write(context, ref, value, loc, text)
    _replaced_by(context, ref, text, before)


def replace_with(context: Context, ref: Ref, term: Expr, loc: Loc, text: str) -> None:
    """As `replace_whole`, with a term of the place's sort."""
    before = context.state[ref.root]
    store(context, ref, term, loc)
    _replaced_by(context, ref, text, before)


def _replaced_by(context: Context, ref: Ref, text: str, before: Expr) -> None:
    if not by_value(ref.sort):
        context.replace(ref, text, before)


def store(context: Context, ref: Ref, term: Expr, loc: Loc) -> None:
    """Stores a term at a place without a domain check."""
    if not context.in_action:
        raise ModelError("a property cannot change the state", loc=loc, remedy="only actions do; return a condition")
    one = outdated(context, ref)
    if one is not None:
        raise _gone(one, str(ref), loc)
    context.state = {**context.state, ref.root: _rebuilt(context.state[ref.root], ref.path, term, loc)}


def _rebuilt(whole: Expr, path: tuple[tuple[str, Any], ...], term: Expr, loc: Loc) -> Expr:
    if not path:
        return term
    (kind, key), rest = path[0], path[1:]
    if rest:
        inner = b.select(whole, key) if kind == "index" else b.field(whole, key)
        term = _rebuilt(inner, rest, term, loc)
    return b.store(whole, key, term, loc) if kind == "index" else b.with_field(whole, key, term, loc)
