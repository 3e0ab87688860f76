"""Variants of `slots`: what else may go wrong with announcements, places, futures and calls."""

from __future__ import annotations

from streamproof import Array, Bool, Option, Range, State, action, choose, invariant, require
from streamproof_models.slots.machine import Slots


class Coalesced(Slots, variant="coalesced"):
    """An instance that is announced already is not announced again; a handler serves one queued subtask."""

    def announce_slot(self, s, i):
        """The queue of announcements is a set."""
        if i not in s.announced:
            s.announced.push(i)


class NotPutBack(Slots, variant="not-put-back"):
    """An instance that a call has taken a slot of is not available any more, also with another free slot."""

    def allocate(self, s, t, i):
        """Only an announcement makes it available again."""
        super().allocate(s, t, i)
        s.available.discard(i)


class NeverLocked(Slots, variant="never-locked"):
    """The location of the first subtask of a constraint is recorded, and binds no later one."""

    def is_locked(self, s, t):
        """`CoLocationConstraint.isAssigned` is never true."""
        return False


class PlaceWithheld(Slots, variant="place-withheld"):
    """The place of a subtask that has ended does not go back to the group: its vertex gets no other place in the slot."""

    def state(self):
        """Also: the places that are not offered, each of a subtask in a slot."""
        places = [(slot, t) for slot in self.all_slots for t in self.threads]
        return State(**dict(super().state().items()), withheld=Array(places, Bool()))

    def finish(self, s, t):
        """The shared slot lives on without the subtask."""
        for slot in self.all_slots:
            if s.slot[t] == slot and self.holders(s, slot) > 1:
                s.withheld[slot, t] = True
        super().finish(s, t)

    def return_slot(self, s, slot):
        """The next shared slot is a new one."""
        super().return_slot(s, slot)
        for t in self.threads:
            s.withheld[slot, t] = False

    def offered(self, s, t, slot):
        """Not to the vertex whose subtask has ended there."""
        same = [u for u in self.threads if self.work[u].group == self.work[t].group]
        return super().offered(s, t, slot) and not any(s.withheld[slot, u] for u in same)


class FutureFails(Slots, variant="future-fails"):
    """The future of a queued subtask that gets a slot may fail: the subtask fails, and returns the slot."""

    returns_slot = True
    """The subtask has the slot when it fails."""

    def serve_queue(self, s, i):
        """`QueuedTask.getFuture().complete(slot)` throws: `Execution.fail`."""
        require(len(s.queue) > 0)
        t = s.queue.head
        super().serve_queue(s, i)
        fails = choose([False, True])
        require(not fails or s.at[t] == "RUNNING")
        if fails:
            slot = s.slot[t]
            s.at[t] = "FAILED"
            s.slot[t] = None
            if self.returns_slot:
                self.return_slot(s, slot)


class FutureLeaks(FutureFails, variant="future-leaks"):
    """The future fails before the subtask has the slot, and the handler does not return it: the quoted code."""

    returns_slot = False


class Refusing(Slots, variant="refusing"):
    """A call may be refused: for a subtask of the group that is to be queued, or one without a group that may not wait."""

    @action(t="threads")
    def refuse(self, s, t):
        """`IllegalArgumentException`, with the global lock and before anything is taken."""
        require(s.at[t] == "CREATED" and self.work[t].is_shared and s.global_lock == "FREE")
        s.at[t] = "FAILED"

    def find_instance(self, s, t):
        """`NoResourceAvailableException` in place of the queue."""
        super().find_instance(s, t)
        may_wait = choose([True, False])
        require(may_wait or s.at[t] == "QUEUED")
        if not may_wait:
            self.take_off(s, t)

    def take_off(self, s, t):
        """The call fails: its subtask is not queued."""
        s.queue.pop(len(s.queue) - 1)
        s.at[t] = "FAILED"


class ForcedLocation(Refusing, variant="forced-location", without="refuse"):
    """`forceExternalLocation`, which the quoted code never sets: a call allocates at its preferred location only."""

    def state(self):
        """Also: the location that is forced from outside."""
        forced = Array(self.threads, Option(Range(0, self.instances - 1)))
        return State(**dict(super().state().items()), forced=forced)

    def schedule(self, s, t):
        """A constraint and a forced location exclude each other."""
        where = choose([None, *range(self.instances)])
        require(where is None or self.work[t].constraint is None)
        s.forced[t] = where
        super().schedule(s, t)
        if not self.work[t].is_shared:
            s.preferred = where
        elif where is not None:
            local = s.slot[t] is not None and self.instance_of(s.slot[t]) == where
            require(s.preferred == where if s.at[t] == "FIND" else local)

    def is_local_only(self, s, t):
        """`localOnly`."""
        return super().is_local_only(s, t) or s.forced[t] is not None

    def find_instance(self, s, t):
        """A subtask without a group is queued before its forced location is looked at."""
        Slots.find_instance(self, s, t)
        if s.at[t] == "QUEUED":
            s.preferred = None

    @invariant
    def forced_respected(self, s):
        """A subtask whose location is forced runs there."""
        return all(
            s.at[t] != "RUNNING" or s.forced[t] is None or self.instance_of(s.slot[t]) == s.forced[t]
            for t in self.threads
        )


class ForcedLocationOnly(ForcedLocation, variant="forced-location-only"):
    """The same, and no place elsewhere is used, and no subtask with a forced location is queued."""

    def offered(self, s, t, slot):
        """Only at the forced location."""
        return super().offered(s, t, slot) and (s.forced[t] is None or self.instance_of(slot) == s.forced[t])

    def find_instance(self, s, t):
        """The call fails."""
        super().find_instance(s, t)
        if s.at[t] == "QUEUED" and s.forced[t] is not None:
            self.take_off(s, t)
