"""The stored graph, made ready for the search of fair cycles: which steps take what is owed, which states satisfy what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from streamproof.explicit.graph import StateGraph
from streamproof.explicit.liveness.automaton import Automaton
from streamproof.system.errors import TooLarge
from streamproof.system.model import Fairness
from streamproof.system.records import dataclass
from streamproof.system.temporal import Obligation

Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int32]
Scalar = TypeVar("Scalar", bound=np.generic)
PIECE = 1 << 16
"""Steps, or states, that are looked at together: what is computed of them stays in the processor's cache."""


def refuse_more_steps(steps: int) -> None:
    """Raises `TooLarge` when so many steps cannot be numbered in 32 bits."""
    if steps >= 1 << 31:
        raise TooLarge(
            f"a graph of {steps:,} steps, for a temporal property", remedy="at most 2,147,483,647: smaller parameters"
        )


def gather(values: npt.NDArray[Scalar], at: npt.NDArray[np.integer[Any]]) -> npt.NDArray[Scalar]:
    """``values[at]``, piece by piece: NumPy would first make a copy of all of `at`, in twice the bytes."""
    found = np.empty(len(at), dtype=values.dtype)
    for first in range(0, len(at), PIECE):
        np.take(values, at[first : first + PIECE], out=found[first : first + PIECE], mode="clip")
    return found


@dataclass(frozen=True)
class Arena:
    """The steps, with what they are owed. Staying where one is is possible in every state, and takes nothing; so do the
    steps that change nothing."""

    graph: StateGraph
    sources: Numbers
    """Per step, the state that it leaves."""
    owed: npt.NDArray[np.int16]
    """Per step: the position of the obligation whose instance takes it, or -1."""
    obligations: tuple[Obligation, ...]
    fair: Mask
    """The states in which some instance that is owed fairness is enabled: staying there for ever is not fair."""

    @classmethod
    def of(cls, graph: StateGraph, obligations: Sequence[Obligation], instances: int) -> Arena:
        """From a stored graph, what is owed fairness, and the number of instances of the system.

        Raises `TooLarge` when there are more steps than can be numbered.
        """
        refuse_more_steps(graph.steps)
        degrees = np.diff(graph.offsets)
        sources = np.repeat(np.arange(graph.states, dtype=np.int32), degrees)
        owner = np.full(instances, -1, dtype=np.int16)
        for at, obligation in enumerate(obligations):
            owner[list(obligation.numbers)] = at
        owed = gather(owner, graph.instances)
        owed[sources == graph.targets] = -1
        fair = np.zeros(graph.states, dtype=np.bool_)
        if obligations and graph.steps:
            fair[degrees > 0] = np.maximum.reduceat(owed, graph.offsets[:-1][degrees > 0]) >= 0
        return cls(graph, sources, owed, tuple(obligations), fair)

    @property
    def targets(self) -> Numbers:
        """Per step, the state that it leads to."""
        return self.graph.targets

    @property
    def offsets(self) -> npt.NDArray[np.int64]:
        """Where the steps of each state begin; one more at the end."""
        return self.graph.offsets

    @property
    def states(self) -> int:
        """How many states there are."""
        return len(self.offsets) - 1

    def enabled(self, obligation: int) -> Mask:
        """The states in which the obligation's instance can be taken and that changes something."""
        found = np.zeros(self.states, dtype=np.bool_)
        found[self.sources[self.owed == obligation]] = True
        return found

    def takes(self, obligation: int, before: int, after: int) -> bool:
        """Whether the step between two states takes the obligation's instance."""
        first, last = self.offsets[before], self.offsets[before + 1]
        return bool(((self.targets[first:last] == after) & (self.owed[first:last] == obligation)).any())

    def is_enabled(self, obligation: int, state: int) -> bool:
        """Whether the obligation's instance can be taken in one state, and that changes something."""
        return bool((self.owed[self.offsets[state] : self.offsets[state + 1]] == obligation).any())

    def is_weak(self, obligation: int) -> bool:
        """Whether weak fairness is owed, not strong."""
        return self.obligations[obligation].fairness is Fairness.WEAK


@dataclass(frozen=True)
class Labels:
    """Which states satisfy which truth tables of an automaton."""

    valuations: npt.NDArray[np.uint16]
    """Per state, the valuation of the automaton's conditions."""
    atoms: int
    everything: int

    @classmethod
    def of(cls, graph: StateGraph, automaton: Automaton) -> Labels:
        """The valuation of every state."""
        valuations = np.zeros(graph.states, dtype=np.uint16)
        for at, row in enumerate(graph.evaluate(automaton.conditions) if automaton.conditions else ()):
            valuations |= row.astype(np.uint16) << at
        return cls(valuations, len(automaton.conditions), automaton.everything)

    def mask(self, table: int, among: Numbers | None = None) -> Mask:
        """Which states, or which of those `among`, satisfy a truth table."""
        column = np.array([bool(table >> v & 1) for v in range(1 << self.atoms)], dtype=np.bool_)
        found: Mask = column[self.valuations if among is None else self.valuations[among]]
        return found
