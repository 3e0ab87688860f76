"""Slot allocation with locks and queues: the scheduler of Flink 1.0 to 1.4.

A caller schedules a subtask. For a subtask of the slot sharing group, the group may offer a place in a shared slot, and an
instance a new slot; the call uses one and releases the other. A subtask without a group takes a slot, or waits in the task
queue. A free slot is announced to the scheduler through a queue: the thread that returns a slot holds locks that the
scheduler takes after its own (`Scheduler`, `SlotSharingGroupAssignment`, `CoLocationConstraint`, `Instance`).

Locks are taken in the order scheduler, group, instance. A step that takes a lock and releases it requires that the lock is
free. One rule is not Flink's: a call takes no announcements while a subtask is queued (`drains_past_queue`).

Abstractions: one sharing group; each subtask is scheduled once; an announcement is its own handler, because Flink starts one
handler for each; any instance where Flink takes the first of a hash map; errors of a call only where both slots are known.
"""

from __future__ import annotations

from streamproof import WEAK, action, choose, require
from streamproof_models.slot_instances import SlotInstances


class Slots(SlotInstances):
    """The scheduler's calls, and its handler of announced slots."""

    name = "slots"
    sizes = {
        "small": {},
        "medium": {"tasks": "A H0 T0 Q Q"},
        "large": {"instances": 3, "tasks": "A H0 T0 Q Q"},
    }

    drains_past_queue = False
    """A call takes the announcements also while a subtask is queued; Flink does."""
    excludes_vertex = True
    """The group offers no place beside another subtask of the same vertex."""
    tests_death = True
    """A dead instance refuses to allocate."""
    tests_place = True
    """The call uses its place from the group only if the place was not released."""
    prefers_local = True
    """A new slot at the preferred location is better than a place in a shared slot elsewhere."""
    forces_location = True
    """A locked constraint allows its location only."""
    returns_unused = True
    """The call releases the slot that it does not use."""
    returns_on_error = True
    """The call releases both if there is an error."""

    # --- scheduleTask

    def offered(self, s, t, slot):
        """Whether the group offers a place in a slot to a subtask."""
        same = [u for u in self.threads if self.work[u].group == self.work[t].group]
        return (
            s.allocated[slot] == "SHARED"
            and self.holders(s, slot) > 0
            and not (self.excludes_vertex and any(s.slot[u] == slot for u in same))
        )

    def is_locked(self, s, t):
        """Whether the subtask has a co-location constraint with a locked location."""
        return self.work[t].constraint is not None and s.locked[self.work[t].constraint] is not None

    @action(t="threads")
    def schedule(self, s, t):
        """The call takes the global lock, and asks the group for a place; a local or unconstrained one is good."""
        require(s.at[t] == "CREATED" and s.global_lock == "FREE")
        s.global_lock = "CALL"
        s.at[t] = "FIND"
        if self.work[t].is_shared:
            require(s.group_lock is None)
            preferred = choose([None, *range(self.instances)])
            if self.is_locked(s, t):
                require(preferred == s.locked[self.work[t].constraint])
            s.preferred = preferred
            self.take_place(s, t)
            if s.slot[t] is not None and (preferred is None or self.instance_of(s.slot[t]) == preferred):
                self.succeed(s, t)

    def take_place(self, s, t):
        """`SlotSharingGroupAssignment.getSlotForTask`: beside the subtasks of its constraint; or local, or any place."""
        place = choose([None, *self.all_slots])
        constraint = self.work[t].constraint
        beside = [
            u for u in self.threads if u != t and constraint is not None and self.work[u].constraint == constraint
        ]
        local = [slot for slot in self.all_slots if self.offered(s, t, slot) and self.instance_of(slot) == s.preferred]
        if any(s.slot[u] is not None for u in beside):
            require(any(s.slot[u] == place and place is not None for u in beside))
        elif len(local) > 0:
            require(any(slot == place for slot in local))
        elif any(self.offered(s, t, slot) for slot in self.all_slots) and not self.is_locked(s, t):
            require(place is not None and self.offered(s, t, place))
        else:
            require(place is None)
        s.slot[t] = place

    @action(t="threads", fairness=WEAK)
    def find_instance(self, s, t):
        """The call takes an instance with resources: at the preferred location, or any."""
        require(s.at[t] == "FIND")
        if self.drains_past_queue or len(s.queue) == 0:
            for i in range(self.instances):
                if i in s.announced:
                    s.available.add(i)
            s.announced.clear()
        found = choose([None, *range(self.instances)])
        if any(i == s.preferred for i in s.available):
            require(found == s.preferred)
        elif len(s.available) == 0 or (self.forces_location and self.is_locked(s, t)):
            require(found is None)
        else:
            require(found is not None and found in s.available)
        s.found = found
        if found is not None:
            s.available.discard(found)
            s.at[t] = "ALLOCATE"
        elif self.work[t].is_shared:
            s.at[t] = "DECIDE"
        else:
            s.queue.push(t)
            s.at[t] = "QUEUED"
            s.global_lock = "FREE"

    @action(t="threads", i="instances", fairness=WEAK)
    def allocate(self, s, t, i):
        """With the lock of the instance, the call allocates a slot; a dead instance is removed, a full one skipped."""
        require(s.at[t] == "ALLOCATE" and s.found == i and s.instance_lock[i] is None)
        s.found = None
        if (s.instance[i] != "ALIVE" and self.tests_death) or all(s.allocated[x] != "FREE" for x in self.slots_of(i)):
            s.at[t] = "FIND"
        else:
            slot = self.allocate_slot(s, i, "SHARED" if self.work[t].is_shared else "SIMPLE")
            if self.has_resources(s, i):
                s.available.add(i)
            if self.work[t].is_shared:
                s.new_slot = slot
                s.at[t] = "DECIDE"
            else:
                s.slot[t] = slot
                self.succeed(s, t)

    @action(t="threads", fairness=WEAK)
    def decide(self, s, t):
        """With the lock of the group, the call uses the new slot or its place, and releases the other; or fails."""
        require(s.at[t] == "DECIDE" and s.group_lock is None)
        new, place = s.new_slot, s.slot[t]
        error = choose([False, True])
        s.new_slot = None
        if new is None and place is None:
            require(not error)
            self.fail(s, t)
        elif error:
            s.slot[t] = None
            if self.returns_on_error:
                self.release(s, new)
                self.release(s, place)
            self.fail(s, t)
        else:
            self.use_one(s, t, new, place)

    def use_one(self, s, t, new, place):
        """A constraint that gets a new slot releases its place at once (`setSharedSlot`), so that the new slot is used."""
        constrained = self.work[t].constraint is not None
        if (
            not self.tests_place
            and constrained
            and new is not None
            and place is not None
            and not self.is_better(s, new)
        ):
            s.slot[t] = new
            self.succeed(s, t)
            s.slot[t] = None
            self.release(s, place)
            self.release(s, new)
            s.slot[t] = place
        elif new is not None and (place is None or constrained or self.is_better(s, new)):
            s.slot[t] = new
            if self.returns_unused:
                self.release(s, place)
            self.succeed(s, t)
        else:
            if self.returns_unused:
                self.release(s, new)
            self.succeed(s, t)

    def is_better(self, s, new):
        """Whether the new slot is local; the place from the group is not, or the call would be over."""
        return self.prefers_local and self.instance_of(new) == s.preferred

    def release(self, s, slot):
        """A place is released within the call; the last one in a slot returns it, with the lock of the instance."""
        if slot is not None and self.holders(s, slot) == 0:
            require(s.instance_lock[self.instance_of(slot)] is None)
            self.return_slot(s, slot)

    def succeed(self, s, t):
        """The call returns the slot. The first one locks the location of the constraint."""
        constraint = self.work[t].constraint
        if constraint is not None and s.locked[constraint] is None:
            s.locked[constraint] = self.instance_of(s.slot[t])
        s.at[t] = "RUNNING"
        self.unlock(s)

    def fail(self, s, t):
        """The call throws an exception."""
        s.at[t] = "FAILED"
        self.unlock(s)

    def unlock(self, s):
        """The global lock is released."""
        s.preferred = None
        s.global_lock = "FREE"

    # --- handleNewSlot

    @action(i="instances", fairness=WEAK)
    def handle_new_slot(self, s, i):
        """An announced instance is available, or is tried for the first queued subtask."""
        require(s.global_lock == "FREE" and len(s.announced) > 0 and s.announced.head == i)
        s.announced.pop()
        if self.has_resources(s, i):
            if len(s.queue) == 0:
                s.available.add(i)
            else:
                s.found = i
                s.global_lock = "HANDLER"

    @action(i="instances", fairness=WEAK)
    def serve_queue(self, s, i):
        """With the lock of the instance, the first queued subtask gets a slot, unless the instance has died."""
        require(s.global_lock == "HANDLER" and s.found == i and s.instance_lock[i] is None)
        if s.instance[i] == "ALIVE" or not self.tests_death:
            t = s.queue.pop()
            s.slot[t] = self.allocate_slot(s, i, "SIMPLE")
            s.at[t] = "RUNNING"
        else:
            s.available.discard(i)
        s.found = None
        s.global_lock = "FREE"
