"""Generated functions that evaluate conditions in every state of a list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from streamproof.explicit.loader import load
from streamproof.explicit.writer import Writer, local_names, shared
from streamproof.system.expr import Expr
from streamproof.system.model import State, System

Hit: TypeAlias = tuple[int, int, bool]
"""Which watch, in which state (its number), and whether it is the mistake that was found rather than the condition."""


@dataclass(frozen=True, slots=True)
class Watch:
    """Looks for a state where `condition` is true; where `mistake` is true the condition has no meaning."""

    number: int
    condition: Expr
    mistake: Expr


Inspect: TypeAlias = Callable[[Sequence[State], int, list[Hit]], None]
"""Called with states, the number of the first of them, and the list that receives the hits in order."""

Keep: TypeAlias = Callable[[Sequence[State]], list[State]]
"""Called with states; gives those that satisfy a condition, in order."""


def unpacking(system: System) -> str:
    """The target that unpacks a state of a scalar system into local variables."""
    names = local_names(system).values()
    return f"({', '.join(names)},)" if names else "()"


def inspector(system: System, watches: Sequence[Watch]) -> Inspect:
    """A function that reports every state in which one of `watches` sees something."""
    writer = Writer(local_names(system))
    common = shared(term for w in watches for term in (w.mistake, w.condition))
    with (
        writer.block("def inspect(_states, _number, _hits):"),
        writer.block(f"for _number, {unpacking(system)} in enumerate(_states, _number):"),
    ):
        writer.line("pass")
        for watch in watches:
            mistake = writer.term(watch.mistake, common)
            condition = writer.term(watch.condition, common)
            if mistake == "False":
                with writer.block(f"if {condition}:"):
                    writer.line(f"_hits.append(({watch.number}, _number, False))")
            else:
                with writer.block(f"if {mistake} or {condition}:"):
                    writer.line(f"_hits.append(({watch.number}, _number, {mistake}))")
    return cast(Inspect, load("inspect", system.name, writer.source))


def keeper(system: System, condition: Expr) -> Keep:
    """A function that keeps the states in which `condition` is true."""
    writer = Writer(local_names(system))
    with writer.block("def keep(_states):"):
        writer.line("_kept = []")
        with writer.block("for _state in _states:"):
            writer.line(f"{unpacking(system)} = _state")
            with writer.block(f"if {writer.term(condition, shared([condition]))}:"):
                writer.line("_kept.append(_state)")
        writer.line("return _kept")
    return cast(Keep, load("keep", system.name, writer.source))
