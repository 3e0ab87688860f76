"""A shared slot that is oversubscribed: it releases a child, whose task requests a slot again during the release.

Source: the description of FLINK-14701 (apache/flink#10867). `SlotSharingManager.allTaskSlots` has the current allocation of
each slot request. When a `MultiTaskSlot` releases a `SingleTaskSlot`, the task fails over and allocates again under the same
request id; then the release goes on, and removes the entry of that id. Since the fix it removes the entry only if it is that
of its own child.

Abstraction: physical slots are not counted; an allocation is returned or not.
"""

from __future__ import annotations

from streamproof import Array, Enum, Model, Option, Range, State, action, require, terminal


class SharedSlot(Model):
    """Slot requests of tasks, their allocations in a shared slot, and the table of the slot sharing manager."""

    name = "shared_slot"

    requests: int = 2
    """Number of slot requests, one per task."""
    allocations: int = 2
    """Maximum number of allocations under one request id."""

    limits = {"requests": (1, None), "allocations": (1, None)}
    tests_child = True
    """A release removes only the entry of its own child; since FLINK-14701."""

    def setup(self):
        """Each allocation is a request id and a number."""
        self.ids = [(r, a) for r in range(self.requests) for a in range(self.allocations)]

    def state(self):
        """The comments name Flink's fields."""
        return State(
            task=Array(self.requests, Enum("NEW", "DEPLOYED", "DONE")),
            entry=Array(self.requests, Option(Range(0, self.allocations - 1))),  # SlotSharingManager.allTaskSlots
            slot=Array(self.ids, Enum("NONE", "ALLOCATED", "RELEASING", "RETURNED")),  # MultiTaskSlot.children
        )

    @action(r="requests")
    def allocate(self, s, r):
        """A task gets its first allocation."""
        require(s.task[r] == "NEW")
        s.task[r] = "DEPLOYED"
        s.entry[r] = 0
        s.slot[r, 0] = "ALLOCATED"

    @action(i="ids")
    def begin_release(self, s, i):
        """`SharedSlotOversubscribedException`: the shared slot releases a child, whose task fails."""
        require(s.slot[i] == "ALLOCATED" and s.task[i[0]] == "DEPLOYED" and s.entry[i[0]] == i[1])
        require(i[1] + 1 < self.allocations)
        s.slot[i] = "RELEASING"

    @action(i="ids")
    def allocate_again(self, s, i):
        """During the release, the task allocates again under the same request id."""
        require(s.slot[i] == "RELEASING" and s.entry[i[0]] == i[1])
        s.entry[i[0]] = i[1] + 1
        s.slot[i[0], i[1] + 1] = "ALLOCATED"

    @action(i="ids")
    def release_child(self, s, i):
        """`MultiTaskSlot.releaseChild`: the release goes on after the task has allocated again."""
        require(s.slot[i] == "RELEASING" and s.entry[i[0]] != i[1])
        s.slot[i] = "RETURNED"
        if not self.tests_child:
            s.entry[i[0]] = None

    @action(r="requests")
    def end(self, s, r):
        """A task ends, and its allocation is looked up by its request id and returned."""
        require(s.task[r] == "DEPLOYED" and not any(s.slot[r, a] == "RELEASING" for a in range(self.allocations)))
        s.task[r] = "DONE"
        if s.entry[r] is not None:
            s.slot[r, s.entry[r]] = "RETURNED"
            s.entry[r] = None

    @terminal
    def done(self, s):
        """Every task has ended."""
        return all(at == "DONE" for at in s.task)


class RemovesAny(SharedSlot, variant="removes-any"):
    """Before FLINK-14701: a release removes the entry of its request id, whatever allocation it has."""

    tests_child = False


class WaitsForRelease(SharedSlot, variant="waits-for-release"):
    """A task allocates again after the release of its child, which goes on after the task has allocated."""

    def allocate_again(self, s, i):
        """No release is under way."""
        require(s.slot[i] != "RELEASING")
        super().allocate_again(s, i)
