"""Reading and writing places in the state, with the checks that make every slip an error of the model."""

from __future__ import annotations

from typing import Any

from streamproof.language.terms import Cases, Ref, Term, as_constant, describe, lift
from streamproof.language.world import World
from streamproof.system import build as b
from streamproof.system.errors import Loc, ModelError
from streamproof.system.expr import Expr, Node
from streamproof.system.sorts import (
    ArraySort,
    BoolSort,
    EnumSort,
    OptionSort,
    RangeSort,
    RecordSort,
    Sort,
    compatible,
    is_scalar,
    position,
)


def read(world: World, ref: Ref) -> Expr:
    """The present content of a place."""
    term = world.state[ref.root]
    for kind, key in ref.path:
        term = b.select(term, key) if kind == "index" else b.field(term, key)
    return term


def settle(world: World, ref: Ref) -> Term:
    """A scalar or option is read at once, by value; a container stays a place, as a Python reference would."""
    return read(world, ref) if is_scalar(ref.sort) or isinstance(ref.sort, OptionSort) else ref


def index_term(world: World, sort: ArraySort, key: Term, loc: Loc, text: str) -> Expr:
    """`key` as an index of `sort`, with a check where it may lie outside."""
    known, host = as_constant(key)
    if known:
        if position(sort.index, host) is None:
            outside(world, f"index {host!r} is outside {sort.index}", loc)
            return b.const(sort.index, _first(sort.index))
        return b.const(sort.index, host, loc)
    if isinstance(key, Cases):
        return b.ite(
            key.cond, index_term(world, sort, key.then, loc, text), index_term(world, sort, key.other, loc, text), loc
        )
    if not isinstance(key, Node):
        raise ModelError(f"{describe(key)} cannot index {sort}", loc=loc, remedy=f"use a value of {sort.index}")
    term: Expr = key  # type: ignore[assignment]
    if isinstance(term.sort, OptionSort):
        term = present(world, term, loc, text)
    if not compatible(term.sort, sort.index):
        raise ModelError(f"{term.sort} cannot index {sort}", loc=loc, remedy=f"use a value of {sort.index}")
    world.check(b.not_(b.in_domain(term, sort.index)), f"index outside {sort.index}", loc, (text, term))
    return term


def _first(sort: BoolSort | RangeSort | EnumSort) -> Any:
    return False if isinstance(sort, BoolSort) else sort.lo if isinstance(sort, RangeSort) else sort.members[0]


def outside(world: World, message: str, loc: Loc) -> None:
    """A certain mistake: refused while lowering when nothing guards it, else noted as a check."""
    if world.path is b.TRUE and not world.guards:
        raise ModelError(message, loc=loc, remedy="stay inside the declared index, or widen it")
    world.check(b.TRUE, message, loc)


def present(world: World, term: Expr, loc: Loc, text: str) -> Expr:
    """The value of an option, with a check that it is there."""
    world.check(b.is_none(term), f"{text} is None where a value is needed", loc, (text, term))
    return b.unwrap(term, loc)


def item(world: World, ref: Ref, key: Term, loc: Loc, text: str) -> Ref:
    """The place of an array's element."""
    assert isinstance(ref.sort, ArraySort)
    index = index_term(world, ref.sort, key, loc, text)
    return Ref(ref.root, (*ref.path, ("index", index)), ref.sort.element)


def attribute(ref: Ref, name: str, loc: Loc) -> Ref:
    """The place of a record's field."""
    assert isinstance(ref.sort, RecordSort)
    try:
        at = ref.sort.index(name)
    except KeyError:
        names = ", ".join(n for n, _ in ref.sort.fields)
        raise ModelError(f"no field {name!r} in {ref.sort}", loc=loc, remedy=f"its fields are {names}") from None
    return Ref(ref.root, (*ref.path, ("field", name)), ref.sort.fields[at][1])


def write(world: World, ref: Ref, value: Term, loc: Loc, text: str) -> None:
    """Puts `value` at a place, checking that it is a value of the place's sort."""
    if isinstance(value, Ref):
        value = read(world, value)
    term = lift(value, ref.sort, loc)
    world.check(b.not_(b.in_domain(term, ref.sort)), f"{text} leaves {_brief(ref.sort)}", loc, (f"new {text}", term))
    store(world, ref, term, loc)


def _brief(sort: Sort) -> str:
    return str(sort)


def store(world: World, ref: Ref, term: Expr, loc: Loc) -> None:
    """Puts a term that is known to fit at a place."""
    world.written.setdefault(ref.root, loc)
    world.state[ref.root] = _rebuilt(world.state[ref.root], ref.path, term, loc)


def _rebuilt(whole: Expr, path: tuple[tuple[str, Any], ...], term: Expr, loc: Loc) -> Expr:
    if not path:
        return term
    (kind, key), rest = path[0], path[1:]
    if kind == "index":
        return b.store(whole, key, _rebuilt(b.select(whole, key), rest, term, loc), loc)
    return b.with_field(whole, key, _rebuilt(b.field(whole, key), rest, term, loc), loc)
