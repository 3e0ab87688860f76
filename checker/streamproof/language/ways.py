"""The ways through an action's choices: what they have in common is lowered once.

An action is read once per combination of what its ``choose(...)`` calls take. Two ways that follow each other differ from
some choice on; the statements of the action's body before the one that makes this choice need no second reading.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from streamproof.language.functions import underlying
from streamproof.language.lowering import Lowering
from streamproof.language.sources import definition
from streamproof.language.terms import Cases, Cell, Method, Ref, StateRef, Term, is_expr
from streamproof.language.world import Frame, Halt, Mark, World
from streamproof.system import build as b
from streamproof.system.records import dataclass

_PLAIN = frozenset({bool, int, float, str, bytes, types.NoneType, range, type, types.ModuleType})
"""Values that no statement changes."""


@dataclass(slots=True)
class _Fork:
    """A statement of the body that made a choice."""

    statement: int
    choices: int
    """How many choices were made before it."""
    mark: Mark


def ways(begin: Callable[[], World], function: Any, args: list[Term], *, apart: bool = False) -> Iterator[World]:
    """What lowering an action comes to on each way through its choices; to be looked at before the next is asked for.

    `begin` makes what lowering starts with. `apart`: every way is read from its first statement on. Raises `ModelError`.
    """
    world = begin()
    lowering = Lowering(world)
    frame = lowering.begun(function, args)
    forks: list[_Fork] = []
    at = 0
    while True:
        if _read(lowering, frame, definition(underlying(function)).body, at, forks):
            lowering.ended(function, frame)
        yield world
        script = _next(world)
        if script is None:
            return
        while forks and forks[-1].choices >= len(script):
            forks.pop()
        if apart or not forks:
            world = begin()
            lowering = Lowering(world)
            frame, at, forks = lowering.begun(function, args), 0, []
        else:
            fork = forks.pop()
            world.back(frame, fork.mark)
            at = fork.statement
        world.script = script


def _read(lowering: Lowering, frame: Frame, body: list[ast.stmt], at: int, forks: list[_Fork]) -> bool:
    """Lowers the statements from `at` on, and notes those that make choices; whether the end was reached on some path."""
    world, model = lowering.world, next(iter(frame.locals.values()), None)
    try:
        while at < len(body) and b.or_((frame.returned, frame.broke, frame.continued)) is b.FALSE:
            fork = _Fork(at, len(world.widths), world.mark(frame))
            try:
                lowering.block(body[at : at + 1], frame)
            finally:
                if len(world.widths) > fork.choices and _kept(fork.mark, model):
                    forks.append(fork)
            at += 1
        lowering.block(body[at:], frame)
    except Halt:
        return False
    return True


def _next(world: World) -> tuple[int, ...] | None:
    """The choices of the next way: the last one that can take another option does."""
    script = world.script
    taken = [script[i] if i < len(script) else 0 for i in range(len(world.widths))]
    while taken and taken[-1] + 1 >= world.widths[len(taken) - 1]:
        taken.pop()
    if not taken:
        return None
    taken[-1] += 1
    return tuple(taken)


def _kept(mark: Mark, model: Any) -> bool:
    """Whether all that a way had until then is as it was when another way goes on from there; that no rule changes the
    model is seen to by `unchanged`."""
    held = [*mark.locals.values()]
    for content in mark.heap.values():
        held += content.values() if isinstance(content, Mapping) else content
    return all(value is model or _fixed(value) for value in held)


def _fixed(value: Term) -> bool:
    """Whether a value is the same whatever is done after it was made."""
    if type(value) in _PLAIN or is_expr(value) or isinstance(value, Ref | StateRef | Cell):
        return True
    if isinstance(value, Cases):
        return _fixed(value.then) and _fixed(value.other)
    if isinstance(value, Method):
        return _fixed(value.owner)
    return type(value) in (tuple, frozenset) and all(map(_fixed, value))
