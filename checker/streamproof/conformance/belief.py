"""Beliefs, the sets of states that fit a log so far, and the steps between them by observations.

Behaviours of equal machines pass through the same beliefs: 6,400 attempts of a job have a few dozen. Each of them is kept
once, with its steps by what observations mean (`Observation.like`), like a deterministic automaton that is built as far as
logs need it. Where beliefs do not recur, because something is counted, none are kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from typing import TypeAlias

from streamproof.base.records import dataclass
from streamproof.conformance.run_verdict import Tracked
from streamproof.system import State
from streamproof.system.sorts import Value

Taken: TypeAlias = tuple[str, ...]
Link: TypeAlias = tuple[int, Taken]
"""How a state is reached: the position of a state in the belief before, and the actions taken since."""

KEPT = 20_000
"""Maximum number of kept beliefs of a machine."""
TRIED = 1_000
"""Number of steps after which beliefs are kept only if at least half of the steps were known."""


@dataclass(frozen=True, eq=False, slots=True)
class Path:
    """How a state of a belief was reached: the actions taken since the state before."""

    before: Path | None
    taken: Taken

    def counts(self) -> Counter[str]:
        """The number of occurrences of each action on the whole path."""
        total: Counter[str] = Counter()
        at: Path | None = self
        while at is not None:
            total.update(at.taken)
            at = at.before
        return total


START = Path(None, ())


@dataclass(frozen=True, slots=True)
class Variant:
    """Another local state of a group: the cells that differ, and the actions that lead there."""

    writes: Mapping[int, Value]
    taken: Taken


@dataclass(frozen=True, slots=True)
class HiddenGroup:
    """Hidden instances that no other group affects, with their footprint in all local states."""

    touched: frozenset[int]
    """The cells read or written."""
    written: frozenset[int]
    variants: Mapping[State, Variant]
    """The other local states, by the whole state with only this group's changes."""


class Belief:
    """States in the order in which they were found, with what is known of the steps from them."""

    __slots__ = ("closed", "groups", "states", "steps")

    def __init__(self, states: tuple[State, ...]) -> None:
        self.states = states
        self.steps: dict[Hashable, BeliefStep | None] = {}
        """By meaning of an observation; None: it is impossible."""
        self.closed: Mapping[State, Link] | None = None
        """The states that are followed further: with what hidden actions reach, or without what they reach from others."""
        self.groups: dict[State, tuple[HiddenGroup, ...]] = {}
        """By followed state: the groups of hidden actions that are taken late."""


@dataclass(frozen=True, slots=True)
class BeliefStep:
    """The belief after an observation, and how each of its states is reached."""

    after: Belief
    links: tuple[Link, ...]
    size: int
    """The number of states before, with those that hidden actions reach."""

    def paths(self, before: list[Path]) -> list[Path]:
        """The paths of the states after, from those of the states before."""
        return [Path(before[at], taken) if taken else before[at] for at, taken in self.links]


@dataclass(frozen=True, slots=True)
class AcceptedRun:
    """The outcome of a whole log, without its events, and the order in which these were accepted, by stream and position."""

    outcome: Tracked
    order: tuple[tuple[int, int], ...]


class Beliefs:
    """The kept beliefs of one machine, and the outcomes of whole logs that were accepted."""

    def __init__(self) -> None:
        self.accepted: dict[Hashable, AcceptedRun] = {}
        """By the meaning of all observations; most attempts of a job are like others."""
        self._kept: dict[tuple[Hashable, tuple[State, ...]], Belief] = {}
        self._computed = self._asked = 0
        self.recurring = True
        """Whether beliefs are kept."""

    def get(self, kind: Hashable, states: Iterable[State]) -> Belief:
        """The belief with these states, where `kind` are the hidden actions and the bounds; a new one if it is not kept."""
        found = tuple(states)
        if not self.recurring:
            return Belief(found)
        known = self._kept.get((kind, found))
        if known is None:
            if len(self._kept) >= KEPT:
                self._kept.clear()
            known = self._kept[kind, found] = Belief(found)
        return known

    def accept(self, key: Hashable, run: AcceptedRun) -> None:
        """Keeps the outcome of a log for equal ones."""
        if len(self.accepted) >= KEPT:
            self.accepted.clear()
        self.accepted[key] = run

    def count(self, computed: bool) -> None:
        """Counts a step, computed or known, and ends the keeping if most steps have to be computed."""
        self._asked += 1
        self._computed += computed
        if self._asked >= TRIED:
            if 2 * self._computed > self._asked:
                self.recurring = False
                self._kept.clear()
            self._asked = self._computed = 0
