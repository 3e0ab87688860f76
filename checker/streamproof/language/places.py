"""Reading and writing places in the state, with the checks that make every slip an error of the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamproof.language import conversion
from streamproof.language.conversion import expect_faithful, unknown_member
from streamproof.language.lift import lift, merge, widened
from streamproof.language.terms import Cases, HeapCell, Ref, Several, Term, describe, is_expr, known, symbolic
from streamproof.language.world import Replacement, World
from streamproof.system import build as b
from streamproof.system.errors import Loc, ModelError
from streamproof.system.expr import Expr
from streamproof.system.records import replace
from streamproof.system.sorts import (
    ArraySort,
    EnumSort,
    OptionSort,
    RecordSort,
    Sort,
    TermRange,
    compatible,
    default,
    is_scalar,
    position,
)


def outdated(world: World, ref: Ref) -> Replacement | None:
    """The assignment that replaced the container that `ref` stands for, or may have: Python's reference keeps the old one."""
    if ref.since == world.generation:
        return None
    return next((r for r in world.replaced if r.generation > ref.since and _within(ref, r.place)), None)


def replaced(world: World, ref: Ref, loc: Loc | None, name: str = "") -> Replacement | None:
    """None where `ref` stands for what lies at its place now. Raises `ModelError` where it may not.

    What an assignment itself replaces, its right-hand side still stands for: then the replacement that it came before.
    """
    one = outdated(world, ref)
    if one is None:
        return None
    certain = one.place.path == ref.path[: len(one.place.path)] and one.path is world.path
    if world.assigning is None or one.generation <= world.assigning or not certain:
        raise _gone(one, name or str(ref), loc)
    return one


def _gone(one: Replacement, name: str, loc: Loc | None) -> ModelError:
    return ModelError(
        f"{name!r} stands for a container that the assignment to {one.target} replaced",
        loc=loc,
        remedy="use it before the assignment, read the state again, or copy the old elements first: list(...)",
    )


def read(world: World, ref: Ref) -> Expr:
    """The content of the container that a reference stands for."""
    one = replaced(world, ref, None)
    return content(ref, world.state[ref.root] if one is None else one.before)


def content(ref: Ref, whole: Expr) -> Expr:
    """What lies at a place where its variable is `whole`."""
    for kind, key in ref.path:
        whole = b.select(whole, key) if kind == "index" else b.field(whole, key)
    return whole


def _within(ref: Ref, place: Ref) -> bool:
    """Whether `ref` may be `place` or lie in it."""
    if ref.root != place.root or len(ref.path) < len(place.path):
        return False
    for (_, one), (_, other) in zip(ref.path, place.path, strict=False):
        if one != other and (isinstance(one, str) or (known(one)[0] and known(other)[0])):
            return False
    return True


def settle(world: World, ref: Ref) -> Term:
    """A scalar or option is read at once, by value; a container stays a place, as a Python reference would."""
    return read(world, ref) if is_scalar(ref.sort) or isinstance(ref.sort, OptionSort) else ref


def variable(world: World, name: str, sort: Sort) -> Term:
    """A variable of the state, as `settle` leaves it."""
    return (
        world.state[name] if is_scalar(sort) or isinstance(sort, OptionSort) else Ref(name, (), sort, world.generation)
    )


def plain(world: World, value: Term) -> Term:
    """Places are read, also where one of two is meant; everything else stays."""
    if isinstance(value, Ref):
        return read(world, value)
    if isinstance(value, Cases) and (isinstance(value.then, Ref | Cases) or isinstance(value.other, Ref | Cases)):
        return merge(value.cond, plain(world, value.then), plain(world, value.other), None)
    return value


def resolved(world: World, value: Term) -> Term:
    """`value` with every place read and every local container replaced by what it holds, all the way down."""
    value = plain(world, value)
    if isinstance(value, HeapCell):
        held = world.content(value)
        if isinstance(held, Mapping):
            return {k: resolved(world, v) for k, v in held.items()}
        return [resolved(world, v) for v in held]
    if type(value) is tuple:
        return tuple(resolved(world, v) for v in value)
    if isinstance(value, Cases):
        return Cases(value.cond, resolved(world, value.then), resolved(world, value.other))
    if isinstance(value, Several):
        return replace(value, items=tuple((c, resolved(world, v)) for c, v in value.items))
    return value


def fitted(world: World, value: Term, sort: Sort, loc: Loc, text: str) -> Expr:
    """`value` as an expression where `sort` is wanted; an option is unwrapped, with a check that it is there."""

    def unwrap(term: Expr, inside: bool) -> Expr:
        return present(world, term, loc, f"a part of {text}" if inside else text)

    return lift(resolved(world, value), sort, loc, unwrap, world)


def present(world: World, term: Expr, loc: Loc, text: str) -> Expr:
    """The value of an option, with a check that it is there."""
    world.check(b.is_none(term), f"{text} is None where a value is needed", loc, (text, term))
    return b.unwrap(term, loc)


def index_term(world: World, sort: ArraySort, key: Term, loc: Loc, text: str) -> Expr:
    """`key` as an index of `sort`, with a check where it may lie outside."""
    key = plain(world, key)
    if isinstance(key, Cases):
        one, two = key.then, key.other
        chosen: Expr = world.either(
            key.cond,
            lambda: index_term(world, sort, one, loc, text),
            lambda: index_term(world, sort, two, loc, text),
            loc,
        )
        return chosen
    if not symbolic(key) and type(key) is not bool:
        expect_faithful(key, loc)
        key = conversion.plain(key)
    is_known, host = known(key)
    if is_known and not is_expr(key) and type(host) is not type(default(sort.index)):
        raise ModelError(f"{describe(key)} cannot index {sort}", loc=loc, remedy=f"use a value of {sort.index}")
    if is_known and isinstance(sort.index, TermRange) and isinstance(host, int):
        key, is_known = b.num(host), False
    if is_known and not is_expr(key):
        if isinstance(sort.index, EnumSort) and host not in sort.index.members:
            raise unknown_member(sort.index, host, loc)
        if position(sort.index, host) is None:
            world.check(b.TRUE, f"index outside {sort.index}", loc, (text, b.num(host)))
        return b.const(sort.index, host, loc)
    if not is_expr(key):
        raise ModelError(f"{describe(key)} cannot index {sort}", loc=loc, remedy=f"use a value of {sort.index}")
    if isinstance(key.sort, OptionSort):
        key = present(world, key, loc, text)
    if not compatible(key.sort, sort.index):
        raise ModelError(f"{describe(key)} cannot index {sort}", loc=loc, remedy=f"use a value of {sort.index}")
    index: Expr = key
    world.check(b.not_(b.in_domain(index, sort.index)), f"index outside {sort.index}", loc, (text, index))
    return index


def item(world: World, ref: Ref, key: Term, loc: Loc, text: str) -> Ref:
    """The place of an array's element."""
    assert isinstance(ref.sort, ArraySort)
    return _part(world, ref, ("index", index_term(world, ref.sort, key, loc, text)), ref.sort.element, loc)


def _part(world: World, ref: Ref, step: tuple[str, Any], sort: Sort, loc: Loc) -> Ref:
    """What `ref` holds now."""
    one = replaced(world, ref, loc)
    return Ref(ref.root, (*ref.path, step), sort, world.generation if one is None else one.generation - 1)


def attribute(world: World, ref: Ref, name: str, loc: Loc) -> Ref:
    """The place of a record's field."""
    assert isinstance(ref.sort, RecordSort)
    try:
        at = ref.sort.index(name)
    except KeyError:
        raise no_field(ref.sort, name, loc) from None
    return _part(world, ref, ("field", name), ref.sort.fields[at][1], loc)


def no_field(sort: RecordSort, name: str, loc: Loc) -> ModelError:
    """The error for a field that a record does not have."""
    names = ", ".join(n for n, _ in sort.fields)
    return ModelError(f"no field {name!r} in {sort}", loc=loc, remedy=f"its fields are {names}")


def write(world: World, ref: Ref, value: Term, loc: Loc, text: str) -> None:
    """Puts `value` at a place, checking that it is a value of the place's sort."""
    term = fitted(world, value, ref.sort, loc, f"the new {text}")
    world.check(b.not_(b.in_domain(term, ref.sort)), f"{text} leaves {ref.sort}", loc, (f"new {text}", term))
    store(world, ref, widened(term, ref.sort), loc)


def replace_whole(world: World, ref: Ref, value: Term, loc: Loc, text: str) -> None:
    """Assigns to a place, as `text` names it: what referred to the container there keeps the old one."""
    before = world.state[ref.root]
    write(world, ref, value, loc, text)
    if not is_scalar(ref.sort) and not isinstance(ref.sort, OptionSort):
        world.replace(ref, text, before)


def store(world: World, ref: Ref, term: Expr, loc: Loc) -> None:
    """Puts a term that is known to fit at a place."""
    if not world.in_action:
        raise ModelError("a property cannot change the state", loc=loc, remedy="only actions do; return a condition")
    one = outdated(world, ref)
    if one is not None:
        raise _gone(one, str(ref), loc)
    world.state = {**world.state, ref.root: _rebuilt(world.state[ref.root], ref.path, term, loc)}


def _rebuilt(whole: Expr, path: tuple[tuple[str, Any], ...], term: Expr, loc: Loc) -> Expr:
    if not path:
        return term
    (kind, key), rest = path[0], path[1:]
    if rest:
        inner = b.select(whole, key) if kind == "index" else b.field(whole, key)
        term = _rebuilt(inner, rest, term, loc)
    return b.store(whole, key, term, loc) if kind == "index" else b.with_field(whole, key, term, loc)
