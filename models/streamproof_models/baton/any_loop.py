"""The baton of one loop for proofs about every graph of operators and channels inside it, and any number of records.

The graph is part of the first state, which is any. Every operator has a way to the head, the operator at which records enter
and the baton starts; a second way around the loop that does not pass the head is a cycle that no baton leaves. The rules
are those of `baton` for a loop with one head, with differences that make it a machine of any size:

* **Channels** are the numbers of records before and behind the baton.
* **Rounds** are counted, by the head and by each operator, where `baton` has ids and forgets which batons have arrived.
* **Records from outside** arrive until the first baton starts.

`clean`, `blame`, `channel` and `operator` are for the proof: rules write them, and none depends on them.
"""

from __future__ import annotations

from streamproof import ANY, Array, Bool, Enum, Model, Range, State, action, initially, require

HEAD = 0
"""The number of the head."""


class BatonAnyLoop(Model):
    """Termination of one loop, of any form, by a baton."""

    name = "baton_any_loop"

    operators: int = 2
    """Number of operators, with the head."""
    channels: int = 2
    """Number of channels."""
    work: int = 1
    """Largest number of records at a time."""
    rounds: int = 2
    """Number of batons that the head may start."""
    instance_bounds = ("operators", "channels", "work", "rounds")
    limits = {"operators": (1, None), "channels": (1, None), "work": (0, None), "rounds": (1, None)}
    sizes = {"small": {}, "medium": {"work": 2, "rounds": 3}}
    check_deadlock = False  # a baton never leaves a cycle without the head

    def state(self):
        """No record, no baton, a graph of any form."""
        o, c = range(self.operators), range(self.channels)
        number, round = Range(0, self.work), Range(0, self.rounds)
        operator, channel = Range(0, self.operators - 1, init=ANY), Range(0, self.channels - 1, init=ANY)
        return State(
            # the graph
            source=Array(c, operator),
            target=Array(c, operator),
            reaches=Array(o, Array(o, Bool(init=ANY))),  # by a way that does not pass the head
            last=Array(o, Array(o, channel)),  # the last channel of a way between two operators
            toward=Array(o, channel),  # an output of each operator
            # records
            records=number,
            held=Array(o, number),
            before=Array(c, number),
            behind=Array(c, number),
            # the baton
            phase=Enum("RUNNING", "ATTEMPTING", "TERMINATED"),
            dirty=Bool(),
            baton=Array(c, Bool()),
            status=Array(c, Bool()),
            taken=Array(c, round),
            round=Array(o, round),
            busy=Array(o, Bool()),
            # for the proof: no record was found; else where the status BUSY is, that the head will get
            clean=Bool(),
            blame=Enum("NONE", "CHANNEL", "OPERATOR"),
            channel=Range(0, self.channels - 1),
            operator=Range(0, self.operators - 1),
        )

    @initially
    def is_loop(self, s):
        """Ways end with their last channel, and every operator has an output and a way to the head."""
        return all(
            self.is_way(s, a, z) and self.is_led(s, a) for a in range(self.operators) for z in range(self.operators)
        )

    def is_way(self, s, a, z):
        """A way from operator `a` to `z` is none, or has a last channel, to whose source there is a way."""
        c = s.last[a][z]
        ends = not s.reaches[a][z] or a == z or (s.target[c] == z and s.reaches[a][s.source[c]])
        return s.reaches[a][a] and (not s.reaches[a][HEAD] or a == HEAD) and ends

    def is_led(self, s, o):
        """Operator `o` has an output and a way to the head."""
        c = s.last[o][HEAD]
        return s.source[s.toward[o]] == o and s.target[c] == HEAD and s.reaches[o][s.source[c]]

    # --- records

    @action
    def arrive(self, s):
        """A record from outside."""
        require(s.phase == "RUNNING" and s.round[HEAD] == 0 and s.records < self.work)
        s.records += 1
        s.held[HEAD] += 1

    @action(c="channels")
    def receive(self, s, c):
        """An operator receives a record; the head notes that there was one."""
        require(s.phase != "TERMINATED" and s.before[c] > 0)
        s.before[c] -= 1
        s.held[s.target[c]] += 1
        if s.target[c] == HEAD:
            s.dirty = True
            s.clean = False

    @action(c="channels")
    def send(self, s, c):
        """An operator sends a record that it holds."""
        require(s.held[s.source[c]] > 0)
        s.held[s.source[c]] -= 1
        if s.baton[c]:
            s.behind[c] += 1
        else:
            s.before[c] += 1

    @action(o="operators")
    def produce(self, s, o):
        """An operator makes another record of one that it holds."""
        require(s.held[o] > 0 and s.records < self.work)
        s.records += 1
        s.held[o] += 1

    @action(o="operators")
    def drop(self, s, o):
        """An operator is done with a record."""
        require(s.held[o] > 0)
        s.records -= 1
        s.held[o] -= 1

    # --- the baton

    @action
    def start(self, s):
        """The head sends a baton on all outputs, and notes whether it holds a record."""
        require(s.phase == "RUNNING" and s.round[HEAD] < self.rounds)
        s.phase = "ATTEMPTING"
        s.dirty, s.clean = s.held[HEAD] > 0, s.held[HEAD] == 0
        s.blame = "NONE"
        self.pass_on(s, HEAD, False)

    def pass_on(self, s, o, busy):
        """Operator `o` sends the baton, with a status, on all outputs."""
        s.round[o] += 1
        s.status = [busy if s.source[c] == o else s.status[c] for c in range(self.channels)]
        s.baton = [s.baton[c] or s.source[c] == o for c in range(self.channels)]

    @action(c="channels")
    def take(self, s, c):
        """An operator takes the baton from an input; it waits for those on its other inputs."""
        require(s.phase == "ATTEMPTING" and s.baton[c] and s.before[c] == 0)
        s.baton[c] = False
        s.before[c], s.behind[c] = s.behind[c], 0
        s.taken[c] += 1
        s.busy[s.target[c]] = s.busy[s.target[c]] or s.status[c]
        if s.blame == "CHANNEL" and s.channel == c:
            s.blame = "OPERATOR"
            s.operator = s.target[c]

    @action(o="operators")
    def forward(self, s, o):
        """An operator that has the baton of every input passes it on: BUSY if one was, or if it holds a record."""
        require(s.phase == "ATTEMPTING" and o != HEAD and s.round[o] < s.round[HEAD])
        require(self.is_aligned(s, o) and s.source[s.toward[o]] == o)
        busy = self.is_busy(s, o)
        self.pass_on(s, o, busy)
        s.busy[o] = False
        if busy:
            s.clean = False
            s.blame = "CHANNEL"
            s.channel = s.toward[o]

    def is_aligned(self, s, o):
        """Whether operator `o` has taken the baton from every input."""
        return all(s.target[c] != o or s.taken[c] > s.round[o] for c in range(self.channels))

    def is_busy(self, s, o):
        """The status that operator `o` passes on."""
        return s.busy[o] or s.held[o] > 0

    @action
    def decide(self, s):
        """The head has the baton from every input: the loop terminates, unless somebody was BUSY or a record passed the
        head."""
        require(s.phase == "ATTEMPTING")
        require(all(s.target[c] != HEAD or s.taken[c] == s.round[HEAD] for c in range(self.channels)))
        s.phase = "RUNNING" if s.busy[HEAD] or self.is_dirty(s) else "TERMINATED"
        s.busy[HEAD] = False
        s.blame = "NONE"

    def is_dirty(self, s):
        """Whether a record passed the head since the baton started."""
        return s.dirty


class NoAlignmentAnyLoop(BatonAnyLoop, variant="no-alignment"):
    """An operator passes the baton on that arrives first."""

    def is_aligned(self, s, o):
        """Whether operator `o` has taken the baton from one input."""
        return any(s.target[c] == o and s.taken[c] > s.round[o] for c in range(self.channels))


class StatusDroppedAnyLoop(BatonAnyLoop, variant="status-dropped"):
    """An operator does not say that it holds a record."""

    def is_busy(self, s, o):
        """The status that has arrived."""
        return s.busy[o]


class NoDirtyCheckAnyLoop(BatonAnyLoop, variant="no-dirty-check"):
    """The head does not ask whether a record passed it."""

    def is_dirty(self, s):
        """Nobody looks."""
        return False
