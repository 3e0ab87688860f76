"""What every kind of search offers to those who judge it: the attributes and questions that the two tiers share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from streamproof.explicit.limits import Budget, Stop
from streamproof.system.expr import Expr
from streamproof.system.model import Property, State, System
from streamproof.system.records import dataclass
from streamproof.system.scalarise import Scalarised

if TYPE_CHECKING:
    from streamproof.explicit.state_graph import StateGraph


@dataclass(frozen=True, slots=True)
class SearchEvent:
    """Where a property was decided during the search."""

    state: int
    instance: int | None
    """The instance whose step from `state` broke a step property."""
    mistake: bool
    """Whether evaluating the property is a mistake there."""


class Found(Protocol):
    """A search and what it has found so far. States are numbered in the order of discovery."""

    scalarised: Scalarised
    system: System
    """The scalar system, simplified: the one that is searched."""
    properties: Sequence[Property]
    """Of `system`; those about behaviours are decided afterwards, from `cycle` and `graph`."""
    budget: Budget
    levels: list[int]
    """States first met at each level."""
    initial: int
    """How many states are initial."""
    stopped: Stop | None
    compile_seconds: float

    @property
    def events(self) -> Mapping[int, SearchEvent]:
        """Where properties were decided, by position in `properties`."""

    @property
    def expanded(self) -> int:
        """How many states' successors have all been looked at."""

    @property
    def known(self) -> int:
        """Distinct states so far."""

    @property
    def total(self) -> int:
        """Initial states and every successor, duplicates included."""

    @property
    def generated(self) -> Sequence[int]:
        """Successors per instance, duplicates included."""

    @property
    def distinct(self) -> Sequence[int]:
        """States met for the first time, per instance."""

    @property
    def least(self) -> int:
        """The smallest number of successors of an expanded state."""

    @property
    def most(self) -> int:
        """The largest."""

    @property
    def stuck(self) -> int:
        """The first state without a successor that is no legal end, or -1."""

    @property
    def faulty(self) -> int:
        """The state where the model makes a mistake, or -1."""

    def run(self) -> None:
        """Search until nothing is left or a limit is met; `stopped` says which."""

    def state(self, number: int) -> State:
        """A scalar state by its number."""

    def states(self) -> Iterator[State]:
        """The scalar states in the order of discovery."""

    def parent(self, number: int) -> int:
        """The number of a state's predecessor, or -1."""

    def instance(self, before: int, after: int) -> int | None:
        """The position of the first instance whose step leads from one known state to another, if that has been noted."""

    def ever_true(self, conditions: Sequence[Expr]) -> list[bool]:
        """For each condition, whether it is true in at least one known state."""

    def largest(self, term: Expr) -> int:
        """The largest value of an integer term in the known states."""

    def cycle(self) -> list[int] | None:
        """The states of a shortest cycle through the first state that lies on one; None when there is none."""

    def graph(self) -> StateGraph:
        """Every step between the known states; asked only after a search that was not cut short."""
