"""The slots of `slots` and who owns them, for proofs about any number of instances, slots, subtasks and constraints.

What `slots` has and proofs for every size do not support is abstracted: instances with free slots are not listed, and
announced ones not queued; a call may find any slot that its locks and rules allow, and any queued subtask may be served. So
this model has more behaviours, and no liveness. A call still takes its slots step by step, with the scheduler's lock.
"""

from __future__ import annotations

from streamproof import Array, Bool, Enum, Model, Range, State, action, choose, require


class SlotOwners(Model):
    """Slots of the scheduler of Flink 1.0 to 1.4, without queues."""

    name = "slot_owners"

    instances: int = 2
    """Number of instances."""
    slots: int = 2
    """Number of slots of all instances."""
    subtasks: int = 2
    """Number of subtasks."""
    vertices: int = 2
    """Number of vertices of the sharing group."""
    constraints: int = 1
    """Number of co-location constraints."""

    check_deadlock = False  # nothing has to happen
    limits = {
        "instances": (1, None), "slots": (1, None), "subtasks": (1, None), "vertices": (1, None), "constraints": (1, None),
    }  # fmt: skip
    sizes = {"small": {}, "medium": {"subtasks": 3}}

    # --- rules that variants change

    excludes_vertex = True
    """The group offers no place beside another subtask of the same vertex."""
    tests_death = True
    """A dead instance refuses to allocate."""
    forces_location = True
    """A locked constraint allows its location only."""
    returns_on_error = True
    """A call that fails releases its slots."""
    locks_group = True
    """The thread that returns a slot holds the lock of the group."""

    def state(self):
        """No slot is registered, no subtask scheduled."""
        return State(
            dead=Array(self.instances, Bool()),
            # the slots
            allocated=Array(self.slots, Enum("ABSENT", "FREE", "SIMPLE", "SHARED")),
            home=Array(self.slots, Range(0, self.instances - 1)),
            owner=Array(self.slots, Range(0, self.subtasks - 1)),  # one of the subtasks in it, for the proof
            # the subtasks
            at=Array(self.subtasks, Enum("CREATED", "CALL", "QUEUED", "RUNNING", "RETURN", "ENDED")),
            shared=Array(self.subtasks, Bool()),  # it belongs to the sharing group, or may be queued
            vertex=Array(self.subtasks, Range(0, self.vertices - 1)),
            constrained=Array(self.subtasks, Bool()),
            constraint=Array(self.subtasks, Range(0, self.constraints - 1)),
            holds=Array(self.subtasks, Bool()),
            slot=Array(self.subtasks, Range(0, self.slots - 1)),
            # the constraints
            locked=Array(self.constraints, Bool()),
            location=Array(self.constraints, Range(0, self.instances - 1)),
            # the call
            global_lock=Bool(),
            has_new=Bool(),
            new_slot=Range(0, self.slots - 1),
        )

    # --- instances

    @action(x="slots", i="instances")
    def register(self, s, x, i):
        """An instance registers with a slot."""
        require(s.allocated[x] == "ABSENT" and not s.dead[i] and not s.global_lock)
        s.allocated[x] = "FREE"
        s.home[x] = i

    @action(i="instances")
    def die(self, s, i):
        """An instance dies; not while a thread holds its lock to return a slot."""
        require(not any(s.at[t] == "RETURN" and s.home[s.slot[t]] == i for t in range(self.subtasks)))
        s.dead[i] = True

    @action(t="subtasks", x="slots", heir="subtasks")
    def lose_slot(self, s, t, x, heir):
        """The slots of a dead instance are released one after the other; a subtask that runs in one fails."""
        require(s.holds[t] and s.slot[t] == x and s.dead[s.home[x]] and not self.is_group_locked(s))
        require(s.at[t] in ("CALL", "RUNNING"))
        self.leave(s, t, x, heir)
        if s.at[t] == "RUNNING":
            s.at[t] = "ENDED"

    def leave(self, s, t, x, heir):
        """A subtask releases its place; the last one in a slot returns it. `heir` is another one in the slot, or itself."""
        if heir == t:
            require(not self.has_other(s, t, x))
            s.allocated[x] = "FREE"
        else:
            require(s.holds[heir] and s.slot[heir] == x)
            s.owner[x] = heir
        s.holds[t] = False

    def has_other(self, s, t, x):
        """Whether another subtask has a place in the slot."""
        return any(u != t and s.holds[u] and s.slot[u] == x for u in range(self.subtasks))

    def is_group_locked(self, s):
        """Whether a thread that returns a shared slot holds the lock of the group."""
        return self.locks_group and any(s.at[t] == "RETURN" and s.shared[t] for t in range(self.subtasks))

    # --- the call

    @action(t="subtasks", v="vertices", c="constraints")
    def schedule(self, s, t, v, c):
        """A subtask of the group, perhaps with a constraint, or another one is scheduled: the call takes the global lock."""
        require(s.at[t] == "CREATED" and not s.global_lock)
        kind = choose(["SHARED", "CONSTRAINED", "ALONE"])
        if kind == "CONSTRAINED":  # a constraint has one subtask of a vertex
            require(
                not any(
                    s.at[u] != "CREATED" and s.constrained[u] and s.constraint[u] == c and s.vertex[u] == v
                    for u in range(self.subtasks)
                )
            )
        s.global_lock = True
        s.at[t] = "CALL"
        s.shared[t] = kind != "ALONE"
        s.constrained[t] = kind == "CONSTRAINED"
        s.vertex[t], s.constraint[t] = v, c

    @action(t="subtasks", x="slots")
    def take_place(self, s, t, x):
        """The group offers a place in a shared slot; that of a locked constraint is beside a running subtask of it."""
        require(s.at[t] == "CALL" and s.shared[t] and not s.holds[t] and not s.has_new and not self.is_group_locked(s))
        require(s.allocated[x] == "SHARED" and self.has_other(s, t, x))
        require(not (self.excludes_vertex and self.has_vertex(s, t, x)))
        if s.constrained[t] and s.locked[s.constraint[t]]:
            require(self.has_partner_at(s, t, x))
        s.holds[t], s.slot[t] = True, x

    def has_vertex(self, s, t, x):
        """Whether a subtask of the same vertex has a place in the slot."""
        return any(
            u != t and s.holds[u] and s.slot[u] == x and s.vertex[u] == s.vertex[t] for u in range(self.subtasks)
        )

    def is_partner(self, s, t, u):
        """Whether another subtask of the same constraint runs."""
        same = s.constrained[t] and s.constrained[u] and s.constraint[u] == s.constraint[t]
        return u != t and same and s.at[u] == "RUNNING"

    def has_partner_at(self, s, t, x):
        """Whether a running subtask of the constraint is in the slot."""
        return any(self.is_partner(s, t, u) and s.slot[u] == x for u in range(self.subtasks))

    @action(t="subtasks", x="slots")
    def allocate(self, s, t, x):
        """The call allocates a free slot; for a locked constraint at its location, if no other subtask of it runs."""
        require(s.at[t] == "CALL" and not s.has_new and s.allocated[x] == "FREE")
        require(not (self.tests_death and s.dead[s.home[x]]))
        if s.constrained[t] and s.locked[s.constraint[t]] and self.forces_location:
            require(s.home[x] == s.location[s.constraint[t]] and not s.holds[t])
            require(not any(self.is_partner(s, t, u) for u in range(self.subtasks)))
        s.allocated[x] = "SHARED" if s.shared[t] else "SIMPLE"
        s.has_new, s.new_slot = True, x

    @action(t="subtasks", x="slots", heir="subtasks")
    def drop_place(self, s, t, x, heir):
        """The call releases its place: it uses the new slot, or fails."""
        require(s.at[t] == "CALL" and s.holds[t] and s.slot[t] == x and not self.is_group_locked(s))
        self.leave(s, t, x, heir)

    @action(t="subtasks", x="slots")
    def drop_new(self, s, t, x):
        """The call releases the new slot: it uses its place, or fails."""
        require(s.at[t] == "CALL" and s.has_new and s.new_slot == x)
        s.allocated[x] = "FREE"
        s.has_new = False

    @action(t="subtasks", c="constraints", x="slots")
    def use_place(self, s, t, c, x):
        """The call returns the place."""
        require(s.at[t] == "CALL" and s.holds[t] and s.slot[t] == x and not s.has_new and s.constraint[t] == c)
        self.succeed(s, t, c, x)

    @action(t="subtasks", c="constraints", x="slots")
    def use_new(self, s, t, c, x):
        """The call returns the new slot."""
        require(s.at[t] == "CALL" and not s.holds[t] and s.has_new and s.new_slot == x and s.constraint[t] == c)
        s.holds[t], s.slot[t], s.owner[x] = True, x, t
        s.has_new = False
        self.succeed(s, t, c, x)

    def succeed(self, s, t, c, x):
        """The first slot locks the location of the constraint."""
        if s.constrained[t] and not s.locked[c]:
            s.locked[c], s.location[c] = True, s.home[x]
        s.at[t] = "RUNNING"
        s.global_lock = False

    @action(t="subtasks")
    def fail(self, s, t):
        """The call throws an exception."""
        require(s.at[t] == "CALL" and not (self.returns_on_error and (s.holds[t] or s.has_new)))
        s.holds[t], s.has_new = False, False
        s.at[t] = "ENDED"
        s.global_lock = False

    @action(t="subtasks")
    def wait(self, s, t):
        """A subtask without a group finds no slot, and is queued."""
        require(s.at[t] == "CALL" and not s.shared[t] and not s.has_new)
        s.at[t] = "QUEUED"
        s.global_lock = False

    # --- queued subtasks, and the end of a subtask

    @action(t="subtasks", x="slots")
    def serve_queue(self, s, t, x):
        """A queued subtask gets a free slot."""
        require(s.at[t] == "QUEUED" and not s.global_lock and s.allocated[x] == "FREE")
        require(not (self.tests_death and s.dead[s.home[x]]))
        s.allocated[x] = "SIMPLE"
        s.holds[t], s.slot[t], s.owner[x] = True, x, t
        s.at[t] = "RUNNING"

    @action(t="subtasks", x="slots", heir="subtasks")
    def finish(self, s, t, x, heir):
        """A subtask ends and releases its place; for the last one in a slot, its thread locks group and instance."""
        require(s.at[t] == "RUNNING" and s.slot[t] == x and not s.dead[s.home[x]] and not self.is_group_locked(s))
        if heir == t:
            require(not self.has_other(s, t, x))
            s.at[t] = "RETURN"
        else:
            self.leave(s, t, x, heir)
            s.at[t] = "ENDED"

    @action(t="subtasks", x="slots")
    def return_slot(self, s, t, x):
        """With both locks, the thread returns the slot."""
        require(s.at[t] == "RETURN" and s.slot[t] == x)
        s.allocated[x] = "FREE"
        s.holds[t] = False
        s.at[t] = "ENDED"
