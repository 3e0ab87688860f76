"""Shmuel Safra's detection of the end of a computation whose messages take their time.

Edsger W. Dijkstra, "Shmuel Safra's version of termination detection", EWD 998, 1987. The counters are bounded as in
the published runs: three machines, at most three messages pending at a machine, counters up to 3, the token's up to 9.
Published: 1,520,618 states, 11,238,019 generated, depth 59 (a step that leaves the bounds counts, but leads nowhere;
a probe counts once for each reason there is to start it).
"""

from __future__ import annotations

from streamproof import (
    ANY,
    WEAK,
    Array,
    Bool,
    Enum,
    Range,
    State,
    action,
    choose,
    invariant,
    leads_to,
    require,
    temporal,
)
from streamproof_models.reference.counting import Counting


class Ewd998(Counting):
    """As EWD 840, with a count of sent minus received messages at every machine; the token gathers the sum."""

    name = "reference.ewd998"
    n: int = 3
    most: int = 3
    sizes = {"small": {"n": 2}, "medium": {"n": 3}, "large": {"n": 4}}
    check_deadlock = False  # after a conclusive round the system is idle

    def setup(self):
        self.others = range(1, self.n)

    def state(self):
        machine = range(self.n)
        most, least = self.most, -self.most * self.n * self.n
        return State(
            active=Array(machine, Bool(init=ANY)),
            colour=Array(machine, Enum("white", "black", init=ANY)),
            counter=Array(machine, Range(-most * self.n, most, init=0)),
            pending=Array(machine, Range(0, most)),
            token_at=Range(0, self.n - 1, init=ANY),
            token=Enum("white", "black", init="black"),
            sum=Range(least, most * self.n, init=0),
            **self.counter(),
        )

    @action(fairness=WEAK)
    def initiate_probe(self, s):
        """Machine 0 has the token of an inconclusive round and starts another."""
        require(s.token_at == 0)
        because = choose(["black token", "black machine", "messages on their way"])
        if because == "black token":
            require(s.token == "black")
        elif because == "black machine":
            require(s.colour[0] == "black")
        else:
            require(s.counter[0] + s.sum > 0)
        self.receive_control(s)
        s.token_at = self.n - 1
        s.token = "white"
        s.sum = 0
        s.colour[0] = "white"

    @action(i="others", fairness=WEAK)
    def pass_token(self, s, i):
        """A passive machine adds its counter to the token's, stains the token if black, and turns white."""
        require(s.token_at == i and not s.active[i])
        if s.sum + s.counter[i] <= self.most * self.n:
            self.receive_control(s)
            s.token_at = i - 1
            s.sum += s.counter[i]
            if s.colour[i] == "black":
                s.token = "black"
            s.colour[i] = "white"

    @action(i="n", j="n")
    def send(self, s, i, j):
        """An active machine sends a message to another."""
        require(i != j and s.active[i])
        if s.counter[i] < self.most and s.pending[j] < self.most:
            s.counter[i] += 1
            s.pending[j] += 1

    @action(i="n")
    def receive(self, s, i):
        """A message activates its receiver and blackens it."""
        require(s.pending[i] > 0)
        s.pending[i] -= 1
        s.counter[i] -= 1
        s.colour[i] = "black"
        s.active[i] = True

    @action(i="n")
    def deactivate(self, s, i):
        """A machine has nothing left to do."""
        require(s.active[i])
        s.active[i] = False

    def ended(self, s):
        """No machine is active and no message is on its way."""
        return all(not s.active[i] and s.pending[i] == 0 for i in range(self.n))

    def detected(self, s):
        """What machine 0 takes as proof that the computation has ended."""
        return (
            s.token_at == 0
            and s.token == "white"
            and s.sum + s.counter[0] == 0
            and s.colour[0] == "white"
            and not s.active[0]
        )

    @invariant
    def detection_is_right(self, s):
        """When machine 0 concludes that the computation has ended, it has."""
        return not self.detected(s) or self.ended(s)

    @invariant
    def safra(self, s):
        """The invariant of EWD 998."""
        on_their_way = sum(s.pending)
        behind = [i > s.token_at for i in range(self.n)]
        passed = sum(s.counter[i] for i in range(self.n) if behind[i])
        ahead = sum(s.counter[i] for i in range(self.n) if not behind[i])
        return on_their_way == sum(s.counter) and (
            (all(not s.active[i] for i in range(self.n) if behind[i]) and s.sum == passed)
            or ahead + s.sum > 0
            or any(s.colour[i] == "black" for i in range(self.n) if not behind[i])
            or s.token == "black"
        )

    @temporal
    def end_is_detected(self, s):
        """When the computation has ended, machine 0 comes to know it."""
        return leads_to(self.ended(s), self.detected(s))
