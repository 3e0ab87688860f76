"""Fairness constraints, lassos, and findings of temporal properties."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from streamproof.system.errors import TooLarge
from streamproof.system.fairness import FairnessConstraint, fairness_constraints
from streamproof.system.model import Property, System
from streamproof.system.records import dataclass
from streamproof.system.verdict import Finding, Owed, Trace, Verdict
from streamproof.system.wording import lasso_text

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
