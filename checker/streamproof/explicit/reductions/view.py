"""Views: states with equal values of chosen variables and derived values are searched once, as with TLC's `VIEW`.

Of all states with one view, the search explores the first that it finds. Every explored state was found by a step from an
explored state, so counterexamples are behaviours of the system. For all other verdicts, the obligations of the view
(`view_obligations`) must be met. A property with an open obligation is inconclusive if nothing violates it; for the reason,
the search looks for two states with equal views in which the obligation differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from streamproof.base.options import either
from streamproof.base.records import dataclass
from streamproof.explicit.reductions.view_obligations import Obligation, Obligations, Row, evaluated
from streamproof.system import expr as e
from streamproof.system.expr import Expr
from streamproof.system.model import Property, State, System
from streamproof.system.sorts import show
from streamproof.transform.assume import Assuming
from streamproof.transform.flatten import Rewriter
from streamproof.transform.scalarise import Scalarised


def terms_of(scalarised: Scalarised, names: Sequence[str]) -> tuple[Expr, ...]:
    """The scalar terms of a view. Raises `UsageError` for an unknown name, and for a value that some states do not have."""
    system, rewriter, plain = scalarised.original, Rewriter(), Assuming()
    found: list[Expr] = []
    for term in system.values_of(names).values():
        found += map(plain, rewriter.flat(term, term.sort))
    return tuple(dict.fromkeys(term for term in found if not isinstance(term, e.Const)))


@dataclass
class StateView:
    """The view of a search: the explored state of each view, and the obligations that are open."""

    scalarised: Scalarised
    system: System
    """The scalar system that is searched."""
    properties: Sequence[Property]
    """The properties of that system to decide."""
    names: tuple[str, ...]
    _explored: dict[Row, State] = field(default_factory=dict)
    _differ: dict[int, tuple[State, State]] = field(default_factory=dict)
    """For the position of an open obligation: an explored state and another one with its view, in which it differs."""

    def __post_init__(self) -> None:
        terms = terms_of(self.scalarised, self.names)
        self._key = evaluated(self.system, terms)
        obligations = Obligations(self.scalarised, self.system, terms)
        common = tuple(obligations.common())
        self._open = {p.name: (*common, *obligations.of(p)) for p in self.properties}
        every = (one for found in (common, *self._open.values()) for one in found if one.terms)
        self._watched = tuple(dict.fromkeys(every))
        self._values = evaluated(self.system, [t for one in self._watched for t in (one.guard, *one.terms)])

    @property
    def proved(self) -> bool:
        """Whether all obligations are met."""
        return not any(self._open.values())

    def canonical(self, state: State) -> State:
        """The explored state with the view of this one: itself, if it is the first."""
        first = self._explored.setdefault(self._key(state), state)
        if first != state and len(self._differ) < len(self._watched):
            self._compare(first, state)
        return first

    def known(self, state: State) -> State:
        """The explored state with the view of this one; itself, if there is none."""
        return self._explored.get(self._key(state), state)

    def _compare(self, first: State, other: State) -> None:
        one, two, at = self._values(first), self._values(other), 0
        for number, obligation in enumerate(self._watched):
            end = at + 1 + len(obligation.terms)
            if one[at] and two[at] and one[at:end] != two[at:end]:
                self._differ.setdefault(number, (first, other))
            at = end

    def doubt(self, name: str) -> str | None:
        """Why a property that no explored state violates may be violated in others; None if none can violate it."""
        found = self._open[name]
        if not found:
            return None
        numbers = {one: k for k, one in enumerate(self._watched)}
        shown = next((one for one in found if numbers.get(one) in self._differ), None)
        text = ", ".join(self.names)
        if shown is not None:
            first, other = self._differ[numbers[shown]]
            return f"two states with equal {text} differ in {shown.what}: {self._texts(first, other)}"
        hidden = ", ".join(self._owners(found[0]))
        remedy = either(f"add {hidden} to the view", "leave out --view")
        return f"it is not shown that {found[0].what}, which depends on {hidden}, is a function of {text}; {remedy}"

    def _owners(self, obligation: Obligation) -> list[str]:
        """The variables of the original that an obligation reads outside the view."""
        hidden = set(obligation.hidden)
        return [name for name, leaves in self.scalarised.leaves.items() if not hidden.isdisjoint(leaves)]

    def _texts(self, first: State, other: State) -> str:
        variables = self.scalarised.original.variables
        one, two = self.scalarised.decode(first), self.scalarised.decode(other)
        rows = [(v.name, show(v.sort, x), show(v.sort, y)) for v, x, y in zip(variables, one, two, strict=True)]
        unlike = ", ".join(f"{name}={y}" for name, x, y in rows if x != y)
        return f"{', '.join(f'{name}={x}' for name, x, _ in rows)}; and the same with {unlike}"
