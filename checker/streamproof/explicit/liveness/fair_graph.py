"""The state graph with fairness constraints: the constraint that each step takes, and the valuation of each state; lassos."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from streamproof.explicit.liveness.buchi import BuchiAutomaton
from streamproof.explicit.state_graph import StateGraph
from streamproof.system.errors import TooLarge
from streamproof.system.fairness import FairnessConstraint, fairness_constraints
from streamproof.system.model import Fairness, Property, System
from streamproof.system.records import dataclass
from streamproof.system.verdict import Finding, Owed, Trace, Verdict, lasso_text

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MOST_CONSTRAINTS = (1 << 15) - 1


@dataclass(frozen=True, slots=True)
class Lasso:
    """Numbers of states: `stem` ends where `cycle` begins. A cycle of one state is stuttering."""

    stem: tuple[int, ...]
    cycle: tuple[int, ...]

    def renumbered(self, numbers: Sequence[int] | npt.NDArray[np.int32]) -> Lasso:
        """The lasso with ``numbers[k]`` for each state `k`."""
        return Lasso(*(tuple(int(numbers[k]) for k in part) for part in (self.stem, self.cycle)))


@dataclass(frozen=True, slots=True)
class TemporalAnswer:
    """The result for one formula: a fair lasso on which it is false, or None, and whether it is vacuously true."""

    lasso: Lasso | None
    vacuous: bool = False


def numbered_constraints(system: System) -> tuple[FairnessConstraint, ...]:
    """The fairness constraints of a system. Raises `TooLarge` for more than can be numbered."""
    found = fairness_constraints(system)
    if len(found) > MOST_CONSTRAINTS:
        raise TooLarge(
            f"fairness is required of {len(found):,} action instances",
            remedy=f"at most {MOST_CONSTRAINTS:,}: choose smaller parameters, or fairness for fewer actions",
        )
    return found


def without_stutter(states: list[int]) -> list[int]:
    """The states without those equal to their predecessor."""
    return [state for at, state in enumerate(states) if at == 0 or state != states[at - 1]]


def violated(prop: Property, trace: Trace, fair: tuple[Owed, ...]) -> Finding:
    """The finding for a property that a fair lasso makes false."""
    assert trace.loop is not None, "a lasso"
    because = lasso_text(trace.loop, 0 if trace.stutters else len(trace.steps) - trace.loop, fair=True)
    return Finding(prop.name, prop.kind, Verdict.VIOLATED, trace, because, fair=fair)


Mask: TypeAlias = npt.NDArray[np.bool_]
Numbers: TypeAlias = npt.NDArray[np.int32]
Constraints: TypeAlias = npt.NDArray[np.int16]
"""Positions of fairness constraints; -1 for none."""
Scalar = TypeVar("Scalar", bound=np.generic)
PIECE = 1 << 16
"""Number of steps or states evaluated at a time: intermediate arrays stay in the processor's cache."""


def refuse_more_steps(steps: int) -> None:
    """Raises `TooLarge` if the steps cannot be numbered in 32 bits."""
    if steps >= 1 << 31:
        raise TooLarge(
            f"a graph of {steps:,} steps, for a temporal property", remedy="at most 2,147,483,647: smaller parameters"
        )


def gather(values: npt.NDArray[Scalar], at: npt.NDArray[np.integer[Any]]) -> npt.NDArray[Scalar]:
    """``values[at]``, piece by piece: NumPy would first copy all of `at` to a wider type."""
    found = np.empty(len(at), dtype=values.dtype)
    for first in range(0, len(at), PIECE):
        np.take(values, at[first : first + PIECE], out=found[first : first + PIECE], mode="clip")
    return found


@dataclass(frozen=True)
class FairGraph:
    """The state graph and the fairness constraints.

    A constraint is *enabled* in states with an enabled instance of its action that changes the state; such a step *takes* it.
    Every state may stutter, which takes no constraint.
    """

    graph: StateGraph
    sources: Numbers
    """Per step, its source state."""
    taken: Constraints
    """Per step, the constraint that it takes."""
    constraints: tuple[FairnessConstraint, ...]
    restless: Mask
    """The states in which some constraint is enabled: infinite stuttering there is not fair."""

    @classmethod
    def of(cls, graph: StateGraph, constraints: Sequence[FairnessConstraint], instances: int) -> FairGraph:
        """The fair graph of a state graph; `instances` is the number of instances of the system.

        Raises `TooLarge` for more steps than can be numbered.
        """
        refuse_more_steps(graph.steps)
        sources = graph.sources
        owner = np.full(instances, -1, dtype=np.int16)
        for at, constraint in enumerate(constraints):
            owner[list(constraint.numbers)] = at
        taken = gather(owner, graph.instances)
        taken[sources == graph.targets] = -1
        restless = np.zeros(graph.states, dtype=np.bool_)
        leaving = np.diff(graph.offsets) > 0
        if constraints and graph.steps:
            restless[leaving] = np.maximum.reduceat(taken, graph.offsets[:-1][leaving]) >= 0
        return cls(graph, sources, taken, tuple(constraints), restless)

    @property
    def targets(self) -> Numbers:
        """Per step, its target state."""
        return self.graph.targets

    @property
    def offsets(self) -> npt.NDArray[np.int64]:
        """Offset of the steps of each state; shape (states + 1,)."""
        return self.graph.offsets

    @property
    def states(self) -> int:
        """Number of states."""
        return self.graph.states

    def enabled(self, constraint: int) -> Mask:
        """The states in which a constraint is enabled."""
        found = np.zeros(self.states, dtype=np.bool_)
        found[self.sources[self.taken == constraint]] = True
        return found

    def takes(self, constraint: int, before: int, after: int) -> bool:
        """Whether a step from one state to the other takes a constraint."""
        first, last = self.offsets[before], self.offsets[before + 1]
        return bool(((self.targets[first:last] == after) & (self.taken[first:last] == constraint)).any())

    def is_enabled(self, constraint: int, state: int) -> bool:
        """Whether a constraint is enabled in one state."""
        return bool((self.taken[self.offsets[state] : self.offsets[state + 1]] == constraint).any())

    def is_weak(self, constraint: int) -> bool:
        """Whether the constraint is weak fairness (else strong)."""
        return self.constraints[constraint].fairness is Fairness.WEAK


@dataclass(frozen=True)
class Labels:
    """The valuations of all states for the truth tables of an automaton."""

    valuations: npt.NDArray[np.uint16]
    """Per state, the valuation of the automaton's conditions."""
    atoms: int

    @classmethod
    def of(cls, graph: StateGraph, automaton: BuchiAutomaton) -> Labels:
        """The valuation of every state."""
        valuations = np.zeros(graph.states, dtype=np.uint16)
        for at, row in enumerate(graph.evaluate(automaton.conditions) if automaton.conditions else ()):
            valuations |= row.astype(np.uint16) << at
        return cls(valuations, len(automaton.conditions))

    def mask(self, table: int, among: Numbers | None = None) -> Mask:
        """The states, or those of `among`, that satisfy a truth table."""
        column = np.array([bool(table >> v & 1) for v in range(1 << self.atoms)], dtype=np.bool_)
        found: Mask = column[self.valuations if among is None else self.valuations[among]]
        return found
