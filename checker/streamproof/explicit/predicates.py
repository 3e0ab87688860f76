"""Generated functions that evaluate conditions in every state of a list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeAlias, cast

from streamproof.explicit.loader import load
from streamproof.explicit.writer import Writer, local_names, shared
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.model import State, System
from streamproof.system.records import dataclass

FEW = 3
"""Variables are read one by one, not by unpacking the state, if at most one variable in `FEW` is read."""
LARGEST_BATCH = 4096
"""Largest number of states per call of generated code."""

Hit: TypeAlias = tuple[int, int, bool]
"""Number of a watch, number of the state, and whether the evaluation error was found rather than the condition."""


@dataclass(frozen=True, slots=True)
class Watch:
    """A search for a state where `condition` is true; where `mistake` is true, `condition` has no value."""

    number: int
    condition: Expr
    mistake: Expr


Inspect: TypeAlias = Callable[[Sequence[State], int, list[Hit]], None]
"""Called with states, the number of the first of them, and the list that receives the hits in order."""

Keep: TypeAlias = Callable[[Sequence[State]], list[State]]
"""Called with states; returns those that satisfy a condition, in order."""

Count: TypeAlias = Callable[[Sequence[State]], tuple[int, ...]]
"""Called with states; returns for each condition the number of states that satisfy it."""


def unpacking(system: System) -> str:
    """The target that unpacks a state of a scalar system into local variables."""
    names = local_names(system).values()
    return f"({', '.join(names)},)" if names else "()"


def reading(system: System, terms: Iterable[Expr]) -> str:
    """A line that loads the variables that `terms` read from `_state`; all variables if many are read."""
    names = local_names(system)
    read = {term.name for term in e.subterms(*terms) if isinstance(term, e.Var)}
    if not read:
        return "pass"
    if FEW * len(read) > len(names):
        return f"{unpacking(system)} = _state"
    return "; ".join(f"{name} = _state[{at}]" for at, (of, name) in enumerate(names.items()) if of in read)


def inspector(system: System, watches: Sequence[Watch]) -> Inspect:
    """A function that reports every state in which the condition or the mistake of one of `watches` is true."""
    writer = Writer(local_names(system))
    terms = [term for w in watches for term in (w.mistake, w.condition)]
    common = shared(terms)
    with (
        writer.block("def inspect(_states, _number, _hits):"),
        writer.block("for _number, _state in enumerate(_states, _number):"),
    ):
        writer.line(reading(system, terms))
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
            writer.line(reading(system, [condition]))
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
        with writer.block("for _state in _states:"):
            writer.line(reading(system, conditions))
            for number, condition in enumerate(conditions):
                with writer.block(f"if {writer.term(condition, common)}:"):
                    writer.line(f"_n{number} += 1")
        writer.line(f"return ({''.join(f'_n{number}, ' for number in range(len(conditions)))})")
    return cast(Count, load("count", system.name, writer.source))


def largest(system: System, term: Expr, states: Iterable[State]) -> int:
    """The largest value of an integer term in the states; requires at least one state."""
    writer = Writer(local_names(system))
    with writer.block("def values(_states):"), writer.block("for _state in _states:"):
        writer.line(reading(system, [term]))
        writer.line(f"yield {writer.term(term, shared([term]))}")
    values = cast(Callable[[Iterable[State]], Iterator[int]], load("values", system.name, writer.source))
    return max(values(states))


def ever_true(system: System, conditions: Sequence[Expr], states: Iterable[State]) -> list[bool]:
    """For each condition, whether it is true in at least one of the states. Stops when all have been true."""
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
