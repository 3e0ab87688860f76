"""The reductions that a search applies, and the reasons why other requested reductions do not apply."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from streamproof.base.options import TUNING
from streamproof.explicit.level_search import PARTIAL_ORDER, SYMMETRY, ReductionPlan
from streamproof.explicit.reductions.automorphism import Asymmetric, verify
from streamproof.explicit.reductions.equivalence import EffortSpent, TermEffort
from streamproof.explicit.reductions.images import liveness
from streamproof.explicit.reductions.stubborn import stubborn_sets
from streamproof.explicit.reductions.symmetry import Symmetry, TooManyRenamings
from streamproof.system.model import Kind, Property, System
from streamproof.system.verdict import Reduction
from streamproof.transform.scalarise import Scalarised

if TYPE_CHECKING:
    from streamproof.explicit.reductions.stubborn import StubbornSets
    from streamproof.explicit.reductions.symmetry import Symmetry

SAFETY = (Kind.INVARIANT, Kind.STEP, Kind.REACHABLE, Kind.DEADLOCK)
"""The kinds of property over states and steps."""


def plan(
    scalarised: Scalarised,
    simple: System,
    properties: Sequence[Property],
    symmetry: bool = False,
    por: bool = False,
    view: tuple[str, ...] | None = None,
    effort: int = TUNING.symmetry_effort,
    limit: int | None = None,
) -> ReductionPlan:
    """The requested reductions that apply to `properties` of `simple`, the simplified scalar system; `effort`: the terms that
    are compared to verify a symmetry. Raises `EffortSpent` if more than `limit` terms must be compared."""
    if view is not None:
        from streamproof.explicit.reductions.view import StateView

        return ReductionPlan(view=StateView(scalarised, simple, properties, tuple(dict.fromkeys(view))))
    refused: list[Reduction] = []
    same = _symmetry(scalarised, simple, properties, refused, effort, limit) if symmetry else None
    stubborn = _stubborn(scalarised, simple, properties, refused, limit) if por else None
    return ReductionPlan(same, stubborn, tuple(refused))


def _symmetry(
    scalarised: Scalarised,
    simple: System,
    properties: Sequence[Property],
    refused: list[Reduction],
    effort: int,
    limit: int | None,
) -> Symmetry | None:
    endless = [p.name for p in properties if p.kind not in SAFETY]
    if endless:
        because = f"{endless[0]} is about endless behaviours; leave it out, with --property, to reduce for the others"
        refused.append(Reduction(SYMMETRY, False, because))
        return None
    try:
        limited = TermEffort(effort if limit is None else min(effort, limit))
        try:
            sorts = verify(scalarised, simple, [p.name for p in properties], limited)
        except Asymmetric:
            if limited.left <= 0 and limit is not None and limit < effort:
                raise EffortSpent from None
            raise
        found = Symmetry(scalarised.original, simple, sorts)
        found.prepare()
    except (Asymmetric, TooManyRenamings) as reason:
        refused.append(Reduction(SYMMETRY, False, str(reason)))
        return None
    return found


def _stubborn(
    scalarised: Scalarised,
    simple: System,
    properties: Sequence[Property],
    refused: list[Reduction],
    limit: int | None,
) -> StubbornSets | None:
    ordered = [p.name for p in properties if p.kind not in (*SAFETY, Kind.TERMINATION)]
    if ordered:
        because = f"{ordered[0]} depends on the order of steps; leave it out, with --property, to reduce for the others"
        refused.append(Reduction(PARTIAL_ORDER, False, because))
        return None
    alive = dict(zip([v.name for v in simple.variables], liveness(scalarised.original), strict=True))
    return stubborn_sets(simple, properties, alive, limit)
