"""Detecting that a distributed computation has ended, with a token that travels round a ring of machines.

Edsger W. Dijkstra, W.H.J. Feijen, A.J.M. van Gasteren, "Derivation of a termination detection algorithm for
distributed computations", EWD 840, 1983. A message activates its receiver at once. Published for n = 2..6 machines:
54, 302, 1,566, 7,742, 36,990 states; where there are several reasons for a step, each of them counts.
"""

from __future__ import annotations

from streamproof import ANY, WEAK, Array, Bool, Enum, Range, State, action, choose, invariant, require
from streamproof_models.reference.detector import Ring


class Ewd840(Ring):
    """Machine 0 sends a white token down the ring n-1, ..., 1; machines that may have woken a later one blacken it."""

    name = "reference.ewd840"
    sizes = {"small": {"n": 3}, "medium": {"n": 4}, "large": {"n": 6}}

    def state(self):
        machine = range(self.n)
        return State(
            active=Array(machine, Bool(init=ANY)),
            colour=Array(machine, Enum("white", "black", init=ANY)),
            token_at=Range(0, self.n - 1, init=ANY),
            token=Enum("white", "black", init="black"),
            **self.counter(),
        )

    @action(fairness=WEAK)
    def initiate_probe(self, s):
        """Machine 0 has the token of an inconclusive round and starts another."""
        require(s.token_at == 0)
        if choose(["black token", "black machine"]) == "black token":
            require(s.token == "black")
        else:
            require(s.colour[0] == "black")
        self.receive_control(s)
        s.token_at = self.n - 1
        s.token = "white"
        s.colour[0] = "white"

    @action(i="others", fairness=WEAK)
    def pass_token(self, s, i):
        """Machine `i` hands the token on when it is passive, or when the round is inconclusive anyway."""
        require(s.token_at == i)
        because = choose(["passive", "black machine", "black token"])
        if because == "passive":
            require(not s.active[i])
        elif because == "black machine":
            require(s.colour[i] == "black")
        else:
            require(s.token == "black")
        self.receive_control(s)
        s.token_at = i - 1
        if s.colour[i] == "black":
            s.token = "black"
        s.colour[i] = "white"

    @action(i="n", j="n")
    def send(self, s, i, j):
        """An active machine activates another; sending to a later one could deceive the token, so it turns black."""
        require(i != j and s.active[i])
        s.active[j] = True
        if j > i:
            s.colour[i] = "black"

    def ended(self, s):
        """No machine is active."""
        return not any(s.active)

    def detected(self, s):
        """What machine 0 takes as proof that the computation has ended."""
        return s.token_at == 0 and s.token == "white" and s.colour[0] == "white" and not s.active[0]

    @invariant
    def dijkstra(self, s):
        """The invariant of EWD 840: the machines behind the token are passive, or the round will be inconclusive."""
        return (
            all(not s.active[i] for i in range(self.n) if s.token_at < i)
            or any(s.colour[j] == "black" for j in range(self.n) if j <= s.token_at)
            or s.token == "black"
        )
