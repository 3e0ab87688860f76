"""Components on which a fair run can stay for ever: weak fairness and marks by a look, strong fairness by taking apart.

Fairness on a component as a whole is not enough where it is strong: a cycle may have to avoid the states in which an
instance is enabled that no step of the component takes. These states are left out and what remains is decomposed again
(A. Pnueli, O. Lichtenstein 1985; E. A. Emerson, C.-L. Lei 1987).
"""

from __future__ import annotations

from collections.abc import Sequence

from streamproof.explicit.liveness.automaton import Automaton, Part
from streamproof.explicit.liveness.small.arena import Arena, Labels, both
from streamproof.explicit.liveness.small.region import Region
from streamproof.system.records import dataclass


@dataclass(frozen=True)
class Fair:
    """The components of a region on which a fair and accepted run can stay.

    `region` is what was decomposed, `component` has a number per node, -1 for nodes on no such component; `met` has for
    each mark of the part the nodes that meet it, and `rests` the nodes in which such a run can stay for ever.
    """

    region: Region
    component: Sequence[int]
    met: Sequence[bytes]
    rests: bytes


def fair_components(arena: Arena, automaton: Automaton, part: Part, labels: Labels, start: Region) -> list[Fair]:
    """Every such component of a region over the places of `part`, none twice."""
    found: list[Fair] = []
    todo = [start]
    while todo:
        region = todo.pop()
        met = marks_met(part, labels, region)
        rests = resting(arena, automaton, region, met)
        component = [-1] * region.nodes
        left = bytearray(region.nodes)
        for number, members in enumerate(region.components()):
            if len(members) == 1:
                fair = bool(rests[members[0]])
            else:
                fair = all(any(mask[node] for node in members) for mask in met)
                if fair and arena.obligations:
                    kept = _kept(arena, region, members)
                    fair = len(kept) == len(members)
                    if not fair:
                        for node in kept:
                            left[node] = 1
            if fair:
                for node in members:
                    component[node] = number
        if any(left):
            todo.append(region.only(left))
        if max(component, default=-1) >= 0:
            found.append(Fair(region, component, met, rests))
    return found


def marks_met(part: Part, labels: Labels, region: Region) -> list[bytes]:
    """For each mark of the part, the nodes that meet it."""
    found = []
    for tables in part.marks or ():
        masks = {place: labels.mask(table) for place, table in zip(part.places, tables, strict=True)}
        found.append(bytes(masks[p][state] for p, state in zip(region.place, region.state, strict=True)))
    return found


def resting(arena: Arena, automaton: Automaton, region: Region, met: Sequence[bytes]) -> bytes:
    """The nodes in which a fair and accepted run can stay for ever: nothing that is owed fairness is enabled there."""
    can_stay = [place in own.after for place, own in enumerate(automaton.places)]
    good = bytes(
        can_stay[place] and not arena.offered[state] for place, state in zip(region.place, region.state, strict=True)
    )
    for mask in met:
        good = both(good, mask)
    return good


def _kept(arena: Arena, region: Region, members: Sequence[int]) -> Sequence[int]:
    """Which of a component's nodes a fair run that stays in it may visit, as far as one look can tell: all of them when
    there is one that visits all for ever, none when there is none at all."""
    inside = set(members)
    everywhere, anywhere, taken = -1, 0, 0
    for node in members:
        offered = arena.offered[region.state[node]]
        everywhere &= offered
        anywhere |= offered
        for edge in region.edges(node):
            if region.targets[edge] in inside:
                taken |= region.takes[edge]
    if everywhere & arena.weak & ~taken:
        return ()
    barred = anywhere & ~arena.weak & ~taken
    return [node for node in members if not arena.offered[region.state[node]] & barred] if barred else members
