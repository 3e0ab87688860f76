"""The reductions that a search applies, and the reasons why other requested reductions do not apply."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from streamproof.system.model import Kind, Property, System
from streamproof.system.records import dataclass
from streamproof.system.scalarise import Scalarised
from streamproof.system.verdict import Reduction
from streamproof.system.wording import number_of

if TYPE_CHECKING:
    from streamproof.explicit.reductions.stubborn import StubbornSets
    from streamproof.explicit.reductions.symmetry import Symmetry

SYMMETRY, PARTIAL_ORDER = "symmetry", "partial order"

SAFETY = (Kind.INVARIANT, Kind.STEP, Kind.REACHABLE, Kind.DEADLOCK)
"""The kinds of property over states and steps."""


@dataclass(frozen=True, slots=True)
class ReductionPlan:
    """The reductions of a search: symmetry, stubborn sets, both or none.

    `refused` has the requested reductions that do not apply, with their reasons.
    """

    symmetry: Symmetry | None = None
    stubborn: StubbornSets | None = None
    refused: tuple[Reduction, ...] = ()

    @property
    def reduces(self) -> bool:
        """Whether the search is not the full one."""
        return self.symmetry is not None or self.stubborn is not None

    def count(self, states: int) -> str:
        """A number of states of the search, as text."""
        if self.stubborn is None:
            return number_of(states, "reachable state") + (" up to symmetry" if self.symmetry is not None else "")
        found = f"{number_of(states, 'state')} of the reduced search"
        return f"{found}, up to symmetry," if self.symmetry is not None else found

    def given_up(self, states: int) -> ReductionPlan:
        """The plan of the full search, which finished when the reduced search had found `states` states."""
        names = [SYMMETRY] if self.symmetry is not None else []
        names += [PARTIAL_ORDER] if self.stubborn is not None else []
        because = f"given up after {states:,} states: the full search finished with less work"
        return ReductionPlan(refused=(*(Reduction(name, False, because) for name in names), *self.refused))

    def report(self) -> tuple[Reduction, ...]:
        """The requested reductions, after the search: the effect of the applied ones, the reasons of the others."""
        made: list[Reduction] = []
        if self.symmetry is not None:
            names = " and ".join(f"{{{', '.join(sort.members)}}}" for sort in self.symmetry.sorts)
            because = f"any two of {names} can be exchanged, so one state of each orbit was searched and counted"
            made.append(Reduction(SYMMETRY, True, because))
        if self.stubborn is not None:
            cut, expanded = self.stubborn.cut, self.stubborn.expanded
            because = f"in {cut:,} of {expanded:,} states some enabled steps were left out"
            if not cut:
                because = f"no effect: in each of {expanded:,} states every enabled step was needed"
            made.append(Reduction(PARTIAL_ORDER, True, because))
        return tuple(sorted((*made, *self.refused), key=lambda r: (SYMMETRY, PARTIAL_ORDER).index(r.name)))


def plan(
    scalarised: Scalarised,
    simple: System,
    properties: Sequence[Property],
    *,
    symmetry: bool = False,
    por: bool = False,
) -> ReductionPlan:
    """The requested reductions that apply to `properties` of `simple`, the simplified scalar system."""
    refused: list[Reduction] = []
    same = _symmetry(scalarised, simple, properties, refused) if symmetry else None
    stubborn = _stubborn(scalarised, simple, properties, refused) if por else None
    return ReductionPlan(same, stubborn, tuple(refused))


def _symmetry(
    scalarised: Scalarised, simple: System, properties: Sequence[Property], refused: list[Reduction]
) -> Symmetry | None:
    from streamproof.explicit.reductions.automorphism import Asymmetric, verify
    from streamproof.explicit.reductions.symmetry import Symmetry, TooManyRenamings

    endless = [p.name for p in properties if p.kind not in SAFETY]
    if endless:
        because = f"{endless[0]} is about endless behaviours; leave it out, with --property, to reduce for the others"
        refused.append(Reduction(SYMMETRY, False, because))
        return None
    try:
        found = Symmetry(scalarised.original, simple, verify(scalarised, simple, [p.name for p in properties]))
        found.prepare()
    except (Asymmetric, TooManyRenamings) as reason:
        refused.append(Reduction(SYMMETRY, False, str(reason)))
        return None
    return found


def _stubborn(
    scalarised: Scalarised, simple: System, properties: Sequence[Property], refused: list[Reduction]
) -> StubbornSets | None:
    from streamproof.explicit.reductions.images import liveness
    from streamproof.explicit.reductions.stubborn import stubborn_sets

    ordered = [p.name for p in properties if p.kind not in (*SAFETY, Kind.TERMINATION)]
    if ordered:
        because = f"{ordered[0]} depends on the order of steps; leave it out, with --property, to reduce for the others"
        refused.append(Reduction(PARTIAL_ORDER, False, because))
        return None
    alive = dict(zip([v.name for v in simple.variables], liveness(scalarised.original), strict=True))
    return stubborn_sets(simple, properties, alive)
