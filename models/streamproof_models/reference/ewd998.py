"""Shmuel Safra's detection of the end of a computation whose messages take their time.

Edsger W. Dijkstra, "Shmuel Safra's version of termination detection", EWD 998, 1987. Bounded as in the published runs: three
machines, at most three messages pending at each, counters up to 3, the token's up to 9; a step that leaves the bounds counts,
but leads nowhere. Published: 1,520,618 states, 11,238,019 generated, depth 59 (a probe counts once for each reason).
"""

from __future__ import annotations

from streamproof import ANY, WEAK, Array, Bool, Enum, Range, State, action, choose, invariant, require
from streamproof_models.reference.detector import Ring


class Ewd998(Ring):
    """As EWD 840, with a count of sent minus received messages at every machine; the token gathers the sum."""

    name = "reference.ewd998"
    most: int = 3
    sizes = {"small": {"n": 2}, "medium": {"n": 3}, "large": {"n": 4}}

    def state(self):
        machine = range(self.n)
        return State(
            active=Array(machine, Bool(init=ANY)),
            colour=Array(machine, Enum("white", "black", init=ANY)),
            counter=Array(machine, Range(-self.most * self.n, self.most, init=0)),
            pending=Array(machine, Range(0, self.most)),
            token_at=Range(0, self.n - 1, init=ANY),
            token=Enum("white", "black", init="black"),
            sum=Range(-self.most * self.n * self.n, self.most * self.n, init=0),
            **self.counter(),
        )

    @action(fairness=WEAK)
    def initiate_probe(self, s):
        """Machine 0 has the token of an inconclusive round and starts another."""
        require(s.token_at == 0)
        because = choose(["black token", "black machine", "messages on their way"])
        black = s.colour[0] if because == "black machine" else s.token
        require(s.counter[0] + s.sum > 0 if because == "messages on their way" else black == "black")
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

    def detected(self, s):
        """What machine 0 takes as proof that the computation has ended."""
        white = s.token_at == 0 and s.token == s.colour[0] == "white"
        return white and not s.active[0] and s.sum + s.counter[0] == 0

    @invariant
    def safra(self, s):
        """The invariant of EWD 998."""
        passed = sum(s.counter[i] for i in range(self.n) if i > s.token_at)
        return sum(s.pending) == sum(s.counter) and (
            (s.sum == passed and not any(s.active[i] for i in range(self.n) if i > s.token_at))
            or s.sum + sum(s.counter[i] for i in range(self.n) if i <= s.token_at) > 0
            or any(s.colour[i] == "black" for i in range(self.n) if i <= s.token_at)
            or s.token == "black"
        )
