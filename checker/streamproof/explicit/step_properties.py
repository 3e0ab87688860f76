"""Step properties in generated code: evaluated per instance, or by a function of two states."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias, cast

from streamproof.explicit.loader import load
from streamproof.explicit.writer import Writer, shared
from streamproof.system import build as b
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.model import Property, State, System
from streamproof.system.substitute import Substitution

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
