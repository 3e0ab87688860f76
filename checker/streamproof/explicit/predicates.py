"""Generated functions that evaluate conditions in every state of a list, and step properties of instances."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeAlias, cast

from streamproof.explicit.writer import Writer, load, local_names, shared
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.assume import Substitution
from streamproof.system.expr import Expr
from streamproof.system.model import Property, State, System
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


Judge: TypeAlias = Callable[[State, State], int]
"""Called with a state and its successor: 0 if the step satisfies the property, 1 if not, 2 at an evaluation error."""

LARGE = 24
"""Number of terms of the next state above which a property is not specialised for each instance."""


class StepClaim:
    """A numbered step property of a simplified scalar system, specialised for the steps of an instance.

    Specialised forms are cached: most instances leave the variables of the property unchanged and share one form.
    """

    def __init__(self, system: System, number: int, prop: Property) -> None:
        self.number = number
        self._system = system
        self._mistake, self._broken = b.or_(check.condition for check in prop.checks), b.not_(prop.expr)
        terms = set(e.subterms(self._mistake, self._broken))
        self._unmoved = {term: term for term in _of_one_state(self._mistake, self._broken)}
        self.large = len(terms) - len(self._unmoved) > LARGE
        """Whether the property is evaluated by a function of its own."""
        self._then = [(at, term) for at, v in enumerate(system.variables) if (term := b.next_(v.name, v.sort)) in terms]
        self._known: dict[tuple[Expr, ...], tuple[Expr, Expr]] = {}

    def of(self, after: Sequence[Expr]) -> tuple[Expr, Expr]:
        """Its evaluation error and its negation, as conditions on the state before a step to the values `after`."""
        values = tuple(after[at] for at, _ in self._then)
        known = self._known.get(values)
        if known is None:
            step = Substitution({**self._unmoved, **{term: after[at] for at, term in self._then}})
            known = self._known[values] = step(self._mistake), step(self._broken)
        return known

    def moved(self, before: Sequence[Expr], after: Sequence[Expr]) -> bool:
        """Whether a step between these values may change a variable whose next value the property reads."""
        return any(after[at] is not before[at] for at, _ in self._then)

    def judge(self) -> Judge:
        """A generated function that checks a step against the property."""
        variables = self._system.variables
        later = {term: b.var(f"{variables[at].name}'", variables[at].sort) for at, term in self._then}
        step = Substitution(later)
        mistake, broken = step(self._mistake), step(self._broken)
        # Subscripts, not local variables: the first conjunct often decides, and reads few variables.
        writer = Writer(
            {v.name: f"_state[{at}]" for at, v in enumerate(variables)}
            | {f"{variables[at].name}'": f"_next[{at}]" for at, _ in self._then}
        )
        common = shared((mistake, broken))
        with writer.block("def judge(_state, _next):"):
            if mistake is not b.FALSE:
                with writer.block(f"if {writer.term(mistake, common)}:"):
                    writer.line("return 2")
            excuses = (
                broken.arg.args if isinstance(broken, e.Not) and isinstance(broken.arg, e.Or) else (b.not_(broken),)
            )
            for excuse in excuses:
                with writer.block(f"if {writer.term(excuse, common)}:"):
                    writer.line("return 0")
            writer.line("return 1")
        return cast(Judge, load("judge", self._system.name, writer.source))


def _of_one_state(*roots: Expr) -> Iterable[Expr]:
    """The subterms of `roots` that do not read the next state."""
    found: set[Expr] = set()
    for term in e.subterms(*roots):
        if not isinstance(term, e.Next) and found.issuperset(e.children(term)):
            found.add(term)
    return found
