"""Operators of a loop, which amplify records, and its entry, which has two inputs."""

from __future__ import annotations

from streamproof import WEAK, Enum, Model, Range, State, action, choose, require
from streamproof_models.cyclic.parts import KINDS, all_rounds


class Operator(Model):
    """An operator that takes one item, and turns a record into some others, or lets it leave the loop."""

    name = "operator"

    amplification: int = 2
    """Maximum number of records created from one."""
    records: int = 3
    """Maximum number of records that exist at a time."""
    rounds: int = 0
    """Maximum number of rounds of a record; 0: no limit."""
    closing: bool = False
    """Whether it writes to the feedback edge, which uses one of a record's rounds."""

    limits = {"amplification": (1, None), "records": (1, None), "rounds": (0, None)}

    def state(self):
        """Idle. `unborn` is the source's."""
        return State(
            unborn=Range(0, self.records + 1, init=self.records),
            task=Enum("IDLE", "SEND", "LEAVE", "BARRIER"),
            copies=Range(0, self.amplification),
            left=Range(0, self.rounds),
        )

    @action(kind=KINDS, rounds=all_rounds, fairness=WEAK)
    def read(self, s, kind, rounds):
        """An idle operator takes an item; it chooses how many records it makes of one, none if the record leaves."""
        require(s.task == "IDLE")
        if kind == "BARRIER":
            s.task = "BARRIER"
        else:
            copies = choose(range(self.amplification + 1))
            if copies == 0:
                s.task = "LEAVE"
            else:
                require(s.unborn >= copies - 1)
                require(not (self.rounds and self.closing) or rounds > 0)
                s.unborn -= copies - 1
                s.task = "SEND"
                s.copies = copies
                s.left = rounds

    @action(kind=KINDS, rounds=all_rounds, fairness=WEAK)
    def send(self, s, kind, rounds):
        """An operator writes its barrier, or one of its records."""
        require(s.task == ("BARRIER" if kind == "BARRIER" else "SEND"))
        require(rounds == (s.left - 1 if self.rounds and self.closing and kind == "RECORD" else s.left))
        if s.copies > 0:
            s.copies -= 1
        if s.copies == 0:
            s.task = "IDLE"
            s.left = 0

    @action(fairness=WEAK)
    def leave(self, s):
        """A record leaves the loop."""
        require(s.task == "LEAVE")
        require(s.unborn <= self.records)  # false only if the environment has more records than there can be
        s.task = "IDLE"
        s.unborn += 1


class Entry(Operator):
    """The first operator of a loop: it reads a forward input and the feedback edge, and completes barriers."""

    name = "entry"

    barriers: int = 1
    """Maximum number of barriers that exist at a time."""

    limits = {"barriers": (0, None)}

    def state(self):
        """Idle. `untriggered` is the source's."""
        return State(
            **dict(super().state().items()),
            untriggered=Range(0, self.barriers + 1, init=self.barriers),
            last_read=Enum("FEEDBACK", "FORWARD"),
        )

    @action(kind=KINDS, rounds=all_rounds, fairness=WEAK)
    def read_forward(self, s, kind, rounds):
        """The entry takes an item from its forward input."""
        self.read(s, kind, rounds)
        s.last_read = "FORWARD"

    @action(kind=KINDS, rounds=all_rounds, fairness=WEAK)
    def read_feedback(self, s, kind, rounds):
        """The entry takes an item from the feedback edge."""
        self.read(s, kind, rounds)
        s.last_read = "FEEDBACK"

    def completing(self, s):
        """Whether the entry has a barrier that has been around."""
        return s.task == "BARRIER" and s.last_read == "FEEDBACK"

    @action(kind=KINDS, rounds=all_rounds, fairness=WEAK)
    def send(self, s, kind, rounds):
        """A barrier goes around once."""
        require(not self.completing(s))
        super().send(s, kind, rounds)

    @action(fairness=WEAK)
    def complete(self, s):
        """The checkpoint of a barrier that has been around is complete."""
        require(self.completing(s))
        require(s.untriggered <= self.barriers)
        s.task = "IDLE"
        s.untriggered += 1
