"""Variants of `slot_owners` that omit one rule."""

from __future__ import annotations

from streamproof_models.slots.owners import SlotOwners


class SharedTwiceOwners(SlotOwners, variant="shared-twice"):
    """The group offers a shared slot again to the vertex that it was given to."""

    excludes_vertex = False


class DeadInstanceOwners(SlotOwners, variant="dead-instance"):
    """A dead instance goes on to allocate."""

    tests_death = False


class LocationPreferredOwners(SlotOwners, variant="location-preferred"):
    """A locked location is preferred, not required."""

    forces_location = False


class LeakOnErrorOwners(SlotOwners, variant="leak-on-error"):
    """A call that fails keeps its slots."""

    returns_on_error = False


class UnlockedGroup(SlotOwners, variant="unlocked-group"):
    """The thread that returns a shared slot does not hold the lock of the group: a call gets a place in the slot."""

    locks_group = False
