"""Variants of `slots`: Flink's own rule, earlier ones, and rules that break it."""

from __future__ import annotations

from streamproof import require
from streamproof_models.slots.machine import Slots


class Literal(Slots, variant="literal"):
    """Flink's rule: every call takes all announcements, so that their handlers find none for the queued subtask."""

    drains_past_queue = True


class SynchronousAnnouncement(Slots, variant="synchronous-announcement"):
    """The thread that returns a slot announces it directly: it takes the global lock last, the scheduler takes it first."""

    announces_in_lock = True


class LeakOnError(Slots, variant="leak-on-error"):
    """A call that fails keeps its slots."""

    returns_on_error = False


class UnusedKept(Slots, variant="unused-kept"):
    """A call keeps the slot that it does not use."""

    returns_unused = False


class SharedTwice(Slots, variant="shared-twice"):
    """The group offers a shared slot again to the vertex that it was given to."""

    excludes_vertex = False


class DeadInstance(Slots, variant="dead-instance"):
    """A dead instance goes on to allocate."""

    tests_death = False


class ReleasedPlace(Slots, variant="released-place"):
    """A call uses its place from the group although the new slot of the co-location constraint released it."""

    tests_place = False


class LocationPreferred(Slots, variant="location-preferred"):
    """A locked location is preferred, not required."""

    forces_location = False


class FarPlace(Slots, variant="far-place"):
    """A place from the group is used even if the new slot is local."""

    prefers_local = False


class PartialGang(Slots, variant="partial-gang"):
    """Pipelined subtasks: they are queued one by one, and finish only together."""

    gang: int = 2


class NewestFirst(Slots, variant="newest-first"):
    """The handler serves the subtask that was queued last: what the description says, and its code does not."""

    def serve_queue(self, s, i):
        """The last subtask of the queue gets a slot."""
        require(s.global_lock == "HANDLER" and s.found == i and s.instance_lock[i] is None)
        if s.instance[i] == "ALIVE" or not self.tests_death:
            t = s.queue.pop(len(s.queue) - 1)
            s.slot[t] = self.allocate_slot(s, i, "SIMPLE")
            s.at[t] = "RUNNING"
        else:
            s.available.discard(i)
        s.found = None
        s.global_lock = "FREE"
