"""What the decision on a temporal formula comes to, and what fairness is owed to before it: no arrays, no lists of states."""

from __future__ import annotations

from streamproof.system.errors import TooLarge
from streamproof.system.model import Property, System
from streamproof.system.records import dataclass
from streamproof.system.temporal import Obligation, obligations
from streamproof.system.verdict import Finding, Owed, Trace, Verdict
from streamproof.system.wording import lasso_text

MOST_OBLIGATIONS = (1 << 15) - 1


@dataclass(frozen=True, slots=True)
class Lasso:
    """Numbers of states: `stem` ends where `cycle` begins. A cycle of one state: nothing happens any more."""

    stem: tuple[int, ...]
    cycle: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Decided:
    """The answer on one formula: a fair lasso on which it is false, or None, and whether nothing was put to the test."""

    lasso: Lasso | None
    vacuous: bool = False


def owed_by(system: System) -> tuple[Obligation, ...]:
    """What fairness is owed to. Raises `TooLarge` when that is more than can be numbered."""
    owed = obligations(system)
    if len(owed) > MOST_OBLIGATIONS:
        raise TooLarge(
            f"fairness is owed to {len(owed):,} action instances",
            remedy=f"at most {MOST_OBLIGATIONS:,}: choose smaller parameters, or fairness for fewer actions",
        )
    return owed


def without_stutter(states: list[int]) -> list[int]:
    """The states with those left out that are the same as the one before."""
    return [state for at, state in enumerate(states) if at == 0 or state != states[at - 1]]


def violated(prop: Property, trace: Trace, fair: tuple[Owed, ...]) -> Finding:
    """The finding for a property that a lasso, fair as told, makes false."""
    assert trace.loop is not None, "a lasso"
    because = lasso_text(trace.loop, 0 if trace.stutters else len(trace.steps) - trace.loop, fair=True)
    return Finding(prop.name, prop.kind, Verdict.VIOLATED, trace, because, fair=fair)
