"""Slot allocation with locks and queues: the scheduler of Flink 1.0 to 1.4.

A caller schedules a subtask. For a subtask of the slot sharing group, the group may offer a place in a shared slot, and an
instance a new slot; the call uses one and releases the other. A subtask without a group takes a slot, or waits in the task
queue. A free slot is announced to the scheduler through a queue: the thread that returns a slot holds locks that the
scheduler takes after its own (`Scheduler`, `SlotSharingGroupAssignment`, `CoLocationConstraint`, `Instance`). Locks are taken
in the order scheduler, group, instance. A step that takes a lock and releases it requires that the lock is free. One rule is
not Flink's: a call takes no announcements while a subtask is queued (`drains_past_queue`).

Abstractions: one sharing group; each subtask is scheduled once; an announcement is its own handler, because Flink starts one
handler for each; any instance where Flink takes the first of a hash map; errors of a call only where both slots are known.
"""

from __future__ import annotations

from dataclasses import dataclass

from streamproof import (
    WEAK,
    Array,
    Enum,
    Model,
    Option,
    Queue,
    Range,
    Set,
    State,
    action,
    choose,
    first,
    require,
    terminal,
)

AT = ("CREATED", "FIND", "ALLOCATE", "DECIDE", "QUEUED", "RUNNING", "RETURN", "FINISHED", "FAILED")
"""What a subtask's thread does next: FIND, ALLOCATE, DECIDE within `scheduleTask`; RETURN within `releaseSlot`."""


@dataclass(frozen=True)
class Subtask:
    """A word of the parameter `tasks`."""

    vertex: str
    """A letter; Q is a subtask without a sharing group."""
    constraint: int | None
    """Number of its co-location constraint."""

    @property
    def is_shared(self) -> bool:
        """Whether it belongs to the slot sharing group."""
        return self.vertex != "Q"

    @property
    def group(self) -> str:
        """Subtasks with the same group never share a slot: those of a vertex, or of the co-location group."""
        return self.vertex if self.constraint is None else "co-located"


def parse_subtask(word: str) -> Subtask:
    """A letter, for a vertex of the group an optional digit."""
    if not word[:1].isupper() or not (word[1:].isdecimal() or len(word) == 1) or (word[0] == "Q" and len(word) > 1):
        raise ValueError(f"{word!r} is not a subtask: write Q, or another letter with an optional number, like A or H0")
    return Subtask(word[0], int(word[1:]) if word[1:] else None)


class Slots(Model):
    """Instances, their slots, the subtasks that hold them, and the scheduler's calls."""

    name = "slots"

    instances: int = 2
    """Number of instances."""
    slots: int = 1
    """Number of slots per instance."""
    tasks: str = "H0 T0 Q"
    """The subtasks: Q may be queued; another letter is a vertex of the sharing group, a number its co-location constraint."""
    gang: int = 1
    """Number of consecutive queued subtasks that finish only together."""
    deaths: int = 1
    """Maximum number of instances that die."""

    limits = {"instances": (1, None), "slots": (1, None), "gang": (1, None), "deaths": (0, None)}
    sizes = {"small": {}, "medium": {"tasks": "A H0 T0 Q Q"}, "large": {"instances": 3, "tasks": "A H0 T0 Q Q"}}
    instance_bounds = ("instances", "deaths")
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
    announces_in_lock = False
    """The thread that returns a slot waits for the scheduler's lock, and holds those of the group and of the instance."""

    def setup(self):
        """The subtasks, and the gang of each."""
        self.work = [parse_subtask(word) for word in self.tasks.split()]
        self.threads = range(len(self.work))
        if len(self.work) == 0:
            raise ValueError("give at least one subtask, like 'A B Q'")
        self.constraints = max((1 + t.constraint for t in self.work if t.constraint is not None), default=0)
        queued = [t for t in self.threads if not self.work[t].is_shared]
        self.gangs = {t: queued[k - k % self.gang :][: self.gang] for k, t in enumerate(queued)}
        self.all_slots = range(self.instances * self.slots)

    def state(self):
        """No instance is registered, no subtask is scheduled."""
        thread, instance = Range(0, len(self.work) - 1), Range(0, self.instances - 1)
        slot = Range(0, len(self.all_slots) - 1)
        return State(
            at=Array(self.threads, Enum(*AT)),
            slot=Array(self.threads, Option(slot)),  # the subtask's slot; during a call, its place from the group
            instance=Array(self.instances, Enum("ABSENT", "ALIVE", "DEAD", "REMOVED")),
            allocated=Array(self.all_slots, Enum("FREE", "SIMPLE", "SHARED")),  # Instance.allocatedSlots
            available=Set(instance),  # Scheduler.instancesWithAvailableResources
            announced=Queue(instance, capacity=len(self.all_slots) + len(self.work)),  # newlyAvailableInstances
            queue=Queue(thread, capacity=max(len(self.gangs), 1)),  # Scheduler.taskQueue
            locked=Array(self.constraints, Option(instance)),  # CoLocationConstraint.lockedLocation
            global_lock=Enum("FREE", "CALL", "HANDLER"),  # Scheduler.globalLock, and the kind of its holder
            group_lock=Option(thread),  # SlotSharingGroupAssignment.lock, held by a thread that returns its slot
            instance_lock=Array(self.instances, Option(thread)),  # Instance.instanceLock
            preferred=Option(instance),  # the preferred location of the call
            found=Option(instance),  # the instance that the holder of the global lock tries
            new_slot=Option(slot),  # the new slot of the call
        )

    # --- slots

    def instance_of(self, slot):
        """The instance of a slot."""
        return slot // self.slots

    def slots_of(self, i):
        """The slots of an instance."""
        return range(i * self.slots, (i + 1) * self.slots)

    def holders(self, s, slot):
        """Number of subtasks with a place in a slot."""
        return sum(s.slot[t] == slot for t in self.threads)

    def is_free(self, s, slot):
        """Whether an instance can allocate a slot."""
        return s.instance[self.instance_of(slot)] == "ALIVE" and s.allocated[slot] == "FREE"

    def has_resources(self, s, i):
        """`Instance.hasResourcesAvailable`."""
        return any(self.is_free(s, slot) for slot in self.slots_of(i))

    def allocate_slot(self, s, i, kind):
        """`Instance.allocateSimpleSlot`, `allocateSharedSlot`: the first free slot."""
        slot = first(x for x in self.slots_of(i) if s.allocated[x] == "FREE")
        s.allocated[slot] = kind
        return slot

    def return_slot(self, s, slot):
        """`Instance.returnAllocatedSlot`: the slot is free, and announced. A dead instance announces nothing."""
        s.allocated[slot] = "FREE"
        if s.instance[self.instance_of(slot)] == "ALIVE":
            self.announce_slot(s, self.instance_of(slot))

    def announce_slot(self, s, i):
        """`newSlotAvailable`: the instance goes into the queue, once for each slot."""
        s.announced.push(i)

    # --- instances

    @action(i="instances")
    def register(self, s, i):
        """`newInstanceAvailable`: the instance is available, and each of its slots is announced."""
        require(s.instance[i] == "ABSENT" and s.global_lock == "FREE")
        s.instance[i] = "ALIVE"
        s.available.add(i)
        for _ in range(self.slots):
            self.announce_slot(s, i)

    @action(i="instances")
    def die(self, s, i):
        """`Instance.markDead`: the instance allocates nothing more. The scheduler does not know yet."""
        require(s.instance[i] == "ALIVE" and s.instance_lock[i] is None)
        require(sum(at in ("DEAD", "REMOVED") for at in s.instance) < self.deaths)
        s.instance[i] = "DEAD"

    @action(i="instances", fairness=WEAK)
    def remove(self, s, i):
        """`removeInstance`: the scheduler forgets a dead instance."""
        require(s.instance[i] == "DEAD" and s.global_lock == "FREE")
        s.instance[i] = "REMOVED"
        s.available.discard(i)

    # --- subtasks that hold a slot

    @action(t="threads", fairness=WEAK)
    def lose_slot(self, s, t):
        """`markDead` releases the slots of the instance one after the other; a subtask that runs in one fails."""
        require(s.at[t] in ("FIND", "ALLOCATE", "DECIDE", "RUNNING") and s.slot[t] is not None)
        require(s.instance[self.instance_of(s.slot[t])] in ("DEAD", "REMOVED") and s.group_lock is None)
        slot = s.slot[t]
        s.slot[t] = None
        if self.holders(s, slot) == 0:
            self.return_slot(s, slot)
        if s.at[t] == "RUNNING":
            s.at[t] = "FAILED"

    def may_finish(self, s, t):
        """Whether the subtasks of its gang run, or have run."""
        return all(s.at[u] in ("RUNNING", "RETURN", "FINISHED", "FAILED") for u in self.gangs.get(t, ()))

    def is_finite(self, s, t):
        """A subtask of the sharing group may never end, as in a streaming job; a queued one ends."""
        return not self.work[t].is_shared

    @action(t="threads", fairness=WEAK.where("is_finite"))
    def finish(self, s, t):
        """A subtask ends and releases its place; for the last one in a slot, its thread locks group and instance."""
        require(s.at[t] == "RUNNING" and self.may_finish(s, t))
        require(not self.work[t].is_shared or s.group_lock is None)
        i = self.instance_of(s.slot[t])
        require(s.instance[i] == "ALIVE")
        if self.holders(s, s.slot[t]) > 1:
            s.slot[t] = None
            s.at[t] = "FINISHED"
        else:
            require(s.instance_lock[i] is None)
            s.instance_lock[i] = t
            if self.work[t].is_shared:
                s.group_lock = t
            s.at[t] = "RETURN"

    @action(t="threads", fairness=WEAK)
    def announce(self, s, t):
        """With both locks, the thread returns the slot and announces it."""
        require(s.at[t] == "RETURN" and not (self.announces_in_lock and s.global_lock != "FREE"))
        self.return_slot(s, s.slot[t])
        s.instance_lock[self.instance_of(s.slot[t])] = None
        s.slot[t] = None
        s.at[t] = "FINISHED"
        if self.work[t].is_shared:
            s.group_lock = None

    @terminal
    def over(self, s):
        """Every subtask has ended, or is queued while no slot is free."""
        waits = any(at == "QUEUED" for at in s.at) and any(self.is_free(s, slot) for slot in self.all_slots)
        return all(at in ("FINISHED", "FAILED", "QUEUED") for at in s.at) and not waits

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

    def is_local_only(self, s, t):
        """Whether the call may use no other location than the preferred one."""
        return self.forces_location and self.is_locked(s, t)

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
        elif len(s.available) == 0 or self.is_local_only(s, t):
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
        both = new is not None and place is not None
        if both and constrained and not self.tests_place and not self.is_better(s, new):
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
