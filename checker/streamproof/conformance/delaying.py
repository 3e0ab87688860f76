"""Hidden actions taken late: which ones an observation needs, and why the others may wait.

Hidden actions that do not affect each other may have happened or not, in every combination. Instead of all combinations
the tracker keeps states in which they have not happened yet. A set R of states represents its *closure*, all states that
hidden actions reach from R, and a step of the tracker yields, for an observation, states whose closure is that of all
states after it. It is exact, in three parts.

*Groups.* The hidden instances are split into groups. Each is explored alone from the state, and its footprint is the
cells read and written in all that was evaluated there, disabled instances included. Groups are merged until none writes
a cell in the footprint of another. Then an instance does the same whatever the other groups have done, by induction on
the number of steps, so the reachable states are exactly the combinations of one local state of each group.

*Splitting.* An observation is tried in a state, and the cells that it reads, and writes, are recorded. A group matters if
it writes one that is read, or has one in its footprint that is written. If only other groups have taken steps, the
observation does the same, and these steps can be taken after it. Otherwise the first group that matters, in the order of
reading, has taken steps: each of its local states is tried in the same way, with the earlier ones left as they are. A
condition that is false for one group is false for all combinations of the later ones, which are never made.

*Coverage.* A state that hidden actions reach from another one kept is omitted, unless values are read in it.

TLC and other explorers reduce interleavings by conditions on the text of a model; here the cells are those of one step
in one state, so that an action on a whole array depends only on the elements that it touches.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from streamproof.base.records import dataclass
from streamproof.conformance.belief import HiddenGroup, Taken, Variant
from streamproof.conformance.binding import Move, Observation
from streamproof.conformance.moves import SystemMoves
from streamproof.conformance.recording import RecordingReader
from streamproof.system import Instance, State
from streamproof.transform.footprint import Cells


class TooMany(Exception):
    """More states than the limit."""


class Delaying:
    """Takes observations of one machine in states with hidden actions that have not happened yet."""

    def __init__(self, steps: SystemMoves, limit: int) -> None:
        self._steps, self._limit = steps, limit
        self._footprints, self._layout = steps.footprints, steps.footprints.layout

    def groups(self, hidden: Sequence[Instance], state: State) -> tuple[HiddenGroup, ...]:
        """The groups that can take a step. Raises `TooMany`."""
        idle: list[tuple[Instance, Iterable[int]]] = []
        parts: list[list[Instance]] = []
        for instance in hidden:
            effect = self._footprints.take(instance, state)
            if effect.writes:
                parts.append([instance])
            else:
                idle.append((instance, effect.reads))
        found = [(part, self._explored(part, state)) for part in parts]
        settled = False
        # Invariant: each group was explored alone with all its instances, and every instance of `hidden` is in a group
        # or idle. When nothing changes, no group writes a cell that another one, or an idle instance, reads or writes.
        while not settled:
            settled = True
            for at, (part, group) in enumerate(found):
                woken = [instance for instance, reads in idle if not group.written.isdisjoint(reads)]
                others = [
                    i for i, (_, other) in enumerate(found) if i != at and not (group.written.isdisjoint(other.touched))
                ]
                if woken or others:
                    idle = [one for one in idle if one[0] not in woken]
                    joined = [*part, *woken, *(i for o in others for i in found[o][0])]
                    found = [one for i, one in enumerate(found) if i != at and i not in others]
                    found.append((joined, self._explored(joined, state)))
                    settled = False
                    break
        return tuple(group for _, group in found)

    def _explored(self, part: Sequence[Instance], state: State) -> HiddenGroup:
        """A group explored alone."""
        touched, written = set[int](), set[int]()
        known: dict[State, Variant] = {state: Variant({}, ())}
        queue = [state]
        # Invariant: `known` has the local states found, with the cells that differ; those in the queue were not
        # expanded. What a disabled instance reads is part of the footprint: it could become enabled by a change of
        # these cells.
        while queue:
            at = queue.pop(0)
            before = known[at]
            for instance in part:
                effect = self._footprints.take(instance, at)
                touched.update(effect.reads)
                if effect.writes:
                    written.update(effect.writes)
                    after = self._layout.written(at, effect.writes)
                    if after not in known:
                        if len(known) > self._limit:
                            raise TooMany
                        known[after] = Variant({**before.writes, **effect.writes}, (*before.taken, instance.action))
                        queue.append(after)
        del known[state]
        return HiddenGroup(frozenset(touched | written), frozenset(written), known)

    def reaches(self, state: State, groups: tuple[HiddenGroup, ...], other: State) -> bool:
        """Whether hidden actions lead from a state, in which these groups were found, to another one."""
        read, left = self._layout.read, self._layout.different(state, other)
        for group in groups:
            if left.isdisjoint(group.written):
                continue
            changed = {cell: read(other, cell) for cell in left & group.written}
            if self._layout.written(state, changed) not in group.variants:
                return False
            left -= group.written
        return not left

    def after(self, observation: Observation, state: State, groups: tuple[HiddenGroup, ...]) -> dict[State, Taken]:
        """States whose closure is that of all states after an observation. Raises `TooMany`."""
        found: dict[State, Taken] = {}
        if observation.impossible is None:
            for way in observation.alternatives:
                self._split(_DelayedNode(state, groups, ()), observation, way, found)
        return found

    def _split(
        self, root: _DelayedNode, observation: Observation, way: tuple[Move, ...], found: dict[State, Taken]
    ) -> None:
        queue, met = [root], 0
        # Invariant: every state after the observation is in the closure of a state in `found`, or of one that comes
        # from a node in the queue. A node stands for all combinations of its open groups (`groups`) with the steps
        # already taken in it.
        while queue:
            node = queue.pop()
            met += 1
            if met > self._limit:
                raise TooMany
            tried = self._tried(observation, way, node.state)
            for end, taken in tried.ends.items():
                if end not in node.covered:
                    found.setdefault(end, (*node.taken, *taken))
            order = {cell: i for i, cell in enumerate(tried.reads)}
            mattering: list[tuple[int, int]] = []
            for at, group in enumerate(node.groups):
                first = min((order[cell] for cell in group.written if cell in order), default=len(order))
                if first < len(order) or not group.touched.isdisjoint(tried.writes):
                    mattering.append((first, at))
            fixed = set[int]()
            children: list[_DelayedNode] = []
            # The children divide the rest by the first group, in the order of reading, that takes steps: the earlier
            # ones stay as they are, so no combination is tried twice, and a condition that one group makes false ends
            # all that come after it.
            for _, at in sorted(mattering):
                fixed.add(at)
                group = node.groups[at]
                later = tuple(g for i, g in enumerate(node.groups) if i not in fixed)
                waits = observation.reads is None and group.touched.isdisjoint(tried.writes)
                for variant in group.variants.values():
                    put = self._layout.written
                    covered = frozenset(put(end, variant.writes) for end in tried.ends) if waits else frozenset()
                    child = put(node.state, variant.writes)
                    children.append(_DelayedNode(child, later, (*node.taken, *variant.taken), covered))
            queue += reversed(children)

    def _tried(self, observation: Observation, way: tuple[Move, ...], state: State) -> _Tried:
        """An observation by one sequence of moves, without hidden actions."""
        steps, tried = self._steps, _Tried({}, set(), {})
        look = RecordingReader(steps.system, state, self._layout, tried.reads)
        if observation.unmet_before(look) is not None:
            return tried

        def take(instance: Instance, at: State) -> State | None:
            effect = self._footprints.take(instance, at)
            tried.reads.update(effect.reads)
            if effect.writes is None:
                return None
            tried.writes.update(effect.writes)
            return self._layout.written(at, effect.writes)

        for end, taken in steps.along(way, state, take):
            look = RecordingReader(steps.system, end, self._layout, tried.reads)
            if all(c.test(look) for c in observation.constraints):
                tried.ends.setdefault(end, taken)
                if observation.reads is not None:
                    observation.reads(look)
        return tried


@dataclass(frozen=True, slots=True)
class _DelayedNode:
    """A state in which some groups have taken steps; `groups` are those whose steps are still open."""

    state: State
    groups: tuple[HiddenGroup, ...]
    taken: Taken
    covered: frozenset[State] = frozenset()
    """Ends that hidden actions reach from those of the node before."""


@dataclass(frozen=True, slots=True)
class _Tried:
    """An observation in one state: the cells read, in their order, the cells written, and the states after it."""

    reads: Cells
    writes: set[int]
    ends: dict[State, Taken]
