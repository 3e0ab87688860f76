"""Which reductions a search makes, and why the others that were asked for do not apply."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streamproof.explicit.reductions.automorphism import Asymmetric, verify
from streamproof.explicit.reductions.symmetry import Symmetry, TooManyRenamings
from streamproof.system.model import Kind, Property, System
from streamproof.system.scalarise import Scalarised
from streamproof.system.verdict import Reduction

SYMMETRY, PARTIAL_ORDER = "symmetry", "partial order"

SAFETY = (Kind.INVARIANT, Kind.STEP, Kind.REACHABLE, Kind.DEADLOCK)
"""The kinds of property that speak of states and steps."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a search leaves out. `asked` says of each reduction asked for whether it is made, and why not."""

    asked: tuple[Reduction, ...] = ()
    symmetry: Symmetry | None = None

    @property
    def reduces(self) -> bool:
        """Whether the search is not the full one."""
        return self.symmetry is not None

    def count(self, states: int) -> str:
        """So many states of the search, in words."""
        what = f"{states:,} reachable state" + ("" if states == 1 else "s")
        return f"{what} up to symmetry" if self.symmetry is not None else what


def plan(
    scalarised: Scalarised, simple: System, properties: Sequence[Property], *, symmetry: bool = False, por: bool = False
) -> Plan:
    """The reductions asked for that apply to deciding `properties` of `simple`, the simplified scalar system."""
    asked: list[Reduction] = []
    found = _symmetry(scalarised, simple, properties, asked) if symmetry else None
    return Plan(tuple(asked), found)


def _symmetry(
    scalarised: Scalarised, simple: System, properties: Sequence[Property], asked: list[Reduction]
) -> Symmetry | None:
    endless = [p.name for p in properties if p.kind not in SAFETY]
    if endless:
        because = f"{endless[0]} is about behaviours without end; leave it out with --property to reduce the others"
        asked.append(Reduction(SYMMETRY, False, because))
        return None
    try:
        found = Symmetry(scalarised.original, simple, verify(scalarised, simple, [p.name for p in properties]))
        found.canonical  # noqa: B018 - raises when there are too many renamings
    except (Asymmetric, TooManyRenamings) as reason:
        asked.append(Reduction(SYMMETRY, False, str(reason)))
        return None
    names = " and ".join(f"{{{', '.join(sort.members)}}}" for sort in found.sorts)
    asked.append(
        Reduction(SYMMETRY, True, f"any two of {names} can be exchanged; one state of each orbit was searched")
    )
    return found
