"""What engines answer: verdicts per property, counts, and the behaviours that show a violation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from typing import NamedTuple

from streamproof.system.errors import EvaluationError, Loc
from streamproof.system.model import Fairness, Instance, Kind, State
from streamproof.system.records import dataclass


class Verdict(Enum):
    """The four answers. `HOLDS` is only ever given for what was covered completely."""

    HOLDS = "holds"
    VIOLATED = "violated"
    INCONCLUSIVE = "inconclusive"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Trace:
    """A behaviour: `states[k+1]` follows `states[k]` by `steps[k]`.

    With `loop`, the behaviour is infinite: one more step, `steps[-1]`, leads from the last state back to
    `states[loop]`, so there are as many steps as states. Without it there is one step fewer than states. A behaviour
    that stays in its last state for ever has one step fewer too, and its loop is that state: it `stutters`.
    """

    states: tuple[State, ...]
    steps: tuple[Instance, ...]
    loop: int | None = None

    def __len__(self) -> int:
        return len(self.states)

    @property
    def stutters(self) -> bool:
        """Whether nothing happens any more after the last state, for ever, though something might."""
        return self.loop is not None and self.loop == len(self.steps) == len(self.states) - 1


@dataclass(frozen=True, slots=True)
class Owed:
    """How the cycle of a lasso treats one action instance that a scheduler owes fairness.

    `taken`: the first step of the cycle, counted from 1, that takes the instance. `enabled`, `disabled`: the first
    states of the cycle, counted from 0, in which it is and is not enabled. None: there is none.
    """

    label: str
    fairness: Fairness
    taken: int | None
    enabled: int | None
    disabled: int | None

    @property
    def paid(self) -> bool:
        """Whether the lasso is fair to the instance."""
        if self.fairness is Fairness.NONE or self.taken is not None:
            return True
        return self.enabled is None or (self.fairness is Fairness.WEAK and self.disabled is not None)

    @property
    def because(self) -> str:
        """Why it is fair to the instance, or that it is not."""
        if self.taken is not None:
            return f"taken by step {self.taken}"
        if self.enabled is None:
            return "never enabled on the cycle"
        if self.paid:
            return f"not enabled in state {self.disabled}"
        return f"enabled in state {self.enabled} and not taken on the cycle"


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer for one property, by one engine.

    `trace` is the counterexample of a violation, or the witness of a reachability property that holds.
    `because` says, in a sentence, what was covered (holds), or which limit was met and what to try (inconclusive).
    """

    property: str
    kind: Kind
    verdict: Verdict
    trace: Trace | None = None
    because: str = ""
    vacuous: bool = False
    fair: tuple[Owed, ...] = ()
    """For a violated temporal property: how the cycle of `trace` treats each fair action instance."""
    sizes: str | tuple[Mapping[str, int], ...] | None = None
    """Where sizes were asked about: ``any``, when it is proved for every value of the free parameters, or else the values
    at which it was found to hold. None where one instance was asked about."""


class OutDegree(NamedTuple):
    """How many successors the expanded states have, duplicates and self-loops included."""

    least: int
    mean: float
    most: int


@dataclass(frozen=True, slots=True)
class Counts:
    """State counts by TLC's rules.

    `generated`: initial states and every successor, duplicates included. `distinct`: reachable states.
    `depth`: breadth-first levels, the initial one being 1. `levels`: distinct states first met at each level.
    `queue`: states whose successors were not looked at. `out_degree`: None when no state was expanded.
    """

    distinct: int
    generated: int
    depth: int
    levels: tuple[int, ...] = ()
    queue: int = field(default=0, compare=False)
    out_degree: OutDegree | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Progress:
    """What a long run reports about once a second."""

    elapsed: float
    depth: int
    distinct: int
    generated: int
    queue: int


@dataclass(frozen=True, slots=True)
class Condition:
    """A guard conjunct of an action, and the number of expanded states in which some instance of the action satisfies it."""

    action: str
    text: str
    loc: Loc | None
    states: int


@dataclass(frozen=True, slots=True)
class Coverage:
    """How often each action led to a state (`generated`) and to a new one (`distinct`)."""

    generated: Mapping[str, int] = field(default_factory=dict)
    distinct: Mapping[str, int] = field(default_factory=dict)
    never_true: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Per action, the guard conjuncts (as written) that no reachable state satisfies for any of its instances."""
    conditions: tuple[Condition, ...] | None = None
    """Every guard conjunct of every action, in the order of the rules; None when they were not counted."""
    expanded: int = 0
    """The states whose successors were looked at: what `conditions` counts among."""
    complete: bool = True
    """Whether these are all reachable states: what was not seen in a search that was cut short may come later."""

    @property
    def never(self) -> tuple[str, ...]:
        """Actions that are enabled in no reachable state; none where not all states were searched."""
        return tuple(a for a, n in self.generated.items() if n == 0) if self.complete else ()


@dataclass(frozen=True, slots=True)
class Reduction:
    """A reduction that was asked for: whether it was made, and in a clause what it left out or why it does not apply."""

    name: str
    applied: bool
    because: str


@dataclass(frozen=True, slots=True)
class Mistake:
    """An evaluation error of the model itself that ended an engine, with the way to the state where it shows."""

    trace: Trace
    error: EvaluationError


@dataclass(frozen=True, slots=True)
class Seconds:
    """Wall-clock times: in all, preparing the engine, searching or proving, and deciding temporal properties afterwards."""

    total: float = 0.0
    compile: float = 0.0
    explore: float = 0.0
    liveness: float = 0.0


@dataclass(frozen=True)
class CheckResult:
    """What an engine answers. Every trace in it has been confirmed by the interpreter.

    Engines that do not count states have no `counts` and no `coverage`.
    """

    findings: tuple[Finding, ...] = ()
    """One per property that was to be decided, in declaration order."""
    counts: Counts | None = None
    coverage: Coverage | None = None
    mistake: Mistake | None = None
    stopped: str | None = None
    """The limit that kept the engine from covering everything; None where there was none."""
    interrupted: bool = False
    """Whether the user ended it; `findings` are what was known then."""
    seconds: Seconds = Seconds()
    reductions: tuple[Reduction, ...] = ()
    """Those asked for, made or not; `counts` are of what was searched."""
    shortest: bool = True
    """Whether its traces are shortest ones."""
    notes: tuple[str, ...] = ()
    """More to show to people, a sentence each."""

    def finding(self, name: str) -> Finding:
        """The finding for the property called `name`; raises `KeyError`."""
        for finding in self.findings:
            if finding.property == name:
                return finding
        raise KeyError(name)
