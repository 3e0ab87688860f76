"""Components on which a fair run can stay for ever: weak fairness and marks by a look, strong fairness by taking apart.

Fairness on a component as a whole is not enough where it is strong: a cycle may have to avoid the states in which an
instance is enabled that no step of the component takes. These states are left out and what remains is decomposed again
(A. Pnueli, O. Lichtenstein 1985; E. A. Emerson, C.-L. Lei 1987).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamproof.explicit.liveness.arena import Arena, Labels, Mask, Numbers
from streamproof.explicit.liveness.automaton import Automaton, Part
from streamproof.explicit.liveness.region import Region
from streamproof.system.records import dataclass

SLICE = 1 << 18
"""Nodes whose edges are looked at together."""

LARGEST_TABLE = 100_000_000
"""Entries of the table of which obligations are taken on which components, at most."""


@dataclass(frozen=True)
class Fair:
    """The components of a region on which a fair and accepted run can stay.

    `region` is what was decomposed, `component` has a number per node, -1 for nodes on no such component.
    """

    region: Region
    component: Numbers


def fair_components(arena: Arena, automaton: Automaton, part: Part, labels: Labels, start: Region) -> list[Fair]:
    """Every such component of a region over the places of `part`, none twice."""
    found: list[Fair] = []
    todo = [start]
    while todo:
        region = todo.pop()
        if not region.nodes:
            continue
        _, of = region.components()
        sizes = np.bincount(of)
        met = marks_met(automaton, part, labels, region)
        good = _single(arena, automaton, region, sizes[of] == 1, met)
        component = np.where(good, of, np.int32(-1))
        larger = sizes > 1
        if larger.any():
            wins, split, removed = _judge(arena, region, of, larger, met)
            component = np.where(wins[of], of, component)
            if split.any():
                todo.append(region.only(split[of] & ~removed))
        if (component >= 0).any():
            found.append(Fair(region, component.astype(np.int32)))
    return found


def marks_met(automaton: Automaton, part: Part, labels: Labels, region: Region) -> list[Mask]:
    """For each mark of the part, the nodes that meet it."""
    found: list[Mask] = []
    for tables in part.marks or ():
        met = np.zeros(region.nodes, dtype=np.bool_)
        for place, table in zip(part.places, tables, strict=True):
            at = region.place == place if len(part.places) > 1 else slice(None)
            met[at] = labels.mask(table, region.state[at])
        found.append(met)
    return found


def resting(arena: Arena, automaton: Automaton, region: Region, met: Sequence[Mask]) -> Mask:
    """The nodes in which a fair and accepted run can stay for ever."""
    can_stay = np.array([k in p.after for k, p in enumerate(automaton.places)], dtype=np.bool_)
    good = can_stay[region.place]
    for mask in met:
        good &= mask
    if arena.obligations:
        good &= ~arena.fair[region.state]
    return good


def _single(arena: Arena, automaton: Automaton, region: Region, alone: Mask, met: Sequence[Mask]) -> Mask:
    return alone & resting(arena, automaton, region, met) if alone.any() else alone


def _judge(arena: Arena, region: Region, of: Numbers, larger: Mask, met: Sequence[Mask]) -> tuple[Mask, Mask, Mask]:
    """Of the components with several nodes: those that are fair, those to be taken apart, and the nodes to leave out."""
    alive = larger.copy()
    for mask in met:
        has = np.zeros(len(larger), dtype=np.bool_)
        has[of[mask]] = True
        alive &= has
    removed = np.zeros(region.nodes, dtype=np.bool_)
    split = np.zeros(len(larger), dtype=np.bool_)
    for obligation, taken in _taken(arena, region, of, larger):
        open_ = alive & ~taken
        if not open_.any():
            continue
        nodes = np.flatnonzero(open_[of])
        enabled = arena.enabled(obligation)[region.state[nodes]]
        if arena.is_weak(obligation):
            rests = np.zeros(len(larger), dtype=np.bool_)
            rests[of[nodes[~enabled]]] = True
            alive &= taken | rests
        else:
            removed[nodes[enabled]] = True
            split[of[nodes[enabled]]] = True
    split &= alive
    return alive & ~split, split, removed


def _taken(arena: Arena, region: Region, of: Numbers, larger: Mask) -> list[tuple[int, Mask]]:
    """For each obligation, the components within which some step takes it."""
    count = len(arena.obligations)
    if not count:
        return []
    names = np.cumsum(larger, dtype=np.int32) - np.int32(1)
    size = int(names[-1]) + 1
    found: list[tuple[int, Mask]] = []
    for first in range(0, count, max(1, LARGEST_TABLE // size)):
        table = np.zeros((min(max(1, LARGEST_TABLE // size), count - first), size), dtype=np.bool_)
        for node in range(0, region.nodes, SLICE):
            offsets = region.offsets[node : node + SLICE + 1]
            edges = slice(offsets[0], offsets[-1])
            homes, owed = np.repeat(of[node : node + SLICE], np.diff(offsets)), region.owed[edges]
            inside = homes == of[region.targets[edges]]
            inside &= (owed >= first) & (owed < first + len(table))
            table[owed[inside] - first, names[homes[inside]]] = True
            if table.all():
                break
        for at, row in enumerate(table):
            taken = np.zeros(len(larger), dtype=np.bool_)
            taken[larger] = row
            found.append((first + at, taken))
    return found
