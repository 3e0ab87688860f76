"""Generated functions that evaluate conditions in every state of a list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import TypeAlias, cast

from streamproof.explicit.loader import load
from streamproof.explicit.writer import Writer, local_names, shared
from streamproof.system import build as b
from streamproof.system.expr import Expr
from streamproof.system.model import State, System
from streamproof.system.records import dataclass

LARGEST_BATCH = 4096
"""So many states at most are handed to generated code at once."""

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

Count: TypeAlias = Callable[[Sequence[State]], tuple[int, ...]]
"""Called with states; gives for each condition in how many of them it is true."""


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


def counter(system: System, conditions: Sequence[Expr]) -> Count:
    """A function that counts for each condition the states in which it is true."""
    writer = Writer(local_names(system))
    common = shared(conditions)
    with writer.block("def count(_states):"):
        for number in range(len(conditions)):
            writer.line(f"_n{number} = 0")
        with writer.block(f"for {unpacking(system)} in _states:"):
            writer.line("pass")
            for number, condition in enumerate(conditions):
                with writer.block(f"if {writer.term(condition, common)}:"):
                    writer.line(f"_n{number} += 1")
        writer.line(f"return ({''.join(f'_n{number}, ' for number in range(len(conditions)))})")
    return cast(Count, load("count", system.name, writer.source))


def ever_true(system: System, conditions: Sequence[Expr], states: Iterable[State]) -> list[bool]:
    """For each condition, whether it is true in at least one of the states. Stops when all of them were."""
    found = [condition is b.TRUE for condition in conditions]
    remaining, size = iter(states), 64
    while True:
        watches = [
            Watch(k, condition, b.FALSE)
            for k, condition in enumerate(conditions)
            if not found[k] and condition is not b.FALSE
        ]
        if not watches:
            return found
        inspect = inspector(system, watches)
        hits: list[Hit] = []
        while not hits:
            batch = list(islice(remaining, size))
            if not batch:
                return found
            inspect(batch, 0, hits)
            size = min(2 * size, LARGEST_BATCH)
        for number, _, _ in hits:
            found[number] = True
