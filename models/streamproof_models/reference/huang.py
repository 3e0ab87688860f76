"""Detecting termination by throwing weights: whoever works holds a share of one whole, and gives it back.

Shing-Tsaan Huang, "Detecting termination of distributed computations by external agents", ICDCS 1989. Process 0 is the
leader. Weights are counted in shares of the whole, so that halves are exact. As in the published run of the TLA+
specification (Kuppe 2021; 5 processes, 8 shares) messages are received in any order, a process may send to itself, the
leader works on its own account, and a weight that cannot be halved counts as a step that leads nowhere: 81,256 states.
"""

from __future__ import annotations

from streamproof import WEAK, Array, Bool, Queue, Range, State, action, choose, invariant, require
from streamproof_models.reference.detector import Detector


class Huang(Detector):
    """A message takes half of its sender's weight along; who has finished sends all it holds to the leader."""

    name = "reference.huang"
    n: int = 5
    shares: int = 8
    leader_gets_work: bool = True  # where it gets none, all that it receives is weight given back
    sizes = {"small": {"n": 3, "shares": 4}, "medium": {"n": 5, "shares": 8}, "large": {"n": 6, "shares": 8}}
    limits = {"n": (2, None), "shares": (1, None)}

    def state(self):
        if self.shares & (self.shares - 1):
            raise ValueError("shares is a power of two: 1, 2, 4, 8")
        return State(
            active=Array(range(self.n), Bool(), init=[i == 0 for i in range(self.n)]),
            weight=Array(range(self.n), Range(0, self.shares), init=[self.shares] + [0] * len(self.others)),
            box=Array(range(self.n), Queue(Range(1, self.shares), capacity=self.shares)),
            **self.counter(),
        )

    def put(self, s, i, weight):
        """A message arrives behind those that are there, as long as there is room."""
        if not s.box[i].full:
            s.box[i].push(weight)

    def held(self, s, i, weight):
        """What a process holds when it receives a weight."""
        return s.weight[i] + weight

    @action(i="n", j="n")
    def send(self, s, i, j):
        """An active process sends a message with half of its weight, as long as that can be halved."""
        require(s.active[i] and (j != 0 or self.leader_gets_work))
        if s.weight[i] % 2 == 0 and s.weight[i] > 0:
            s.weight[i] //= 2
            self.put(s, j, s.weight[i])

    @action(i="n", fairness=WEAK)
    def receive(self, s, i):
        """The weight of a message is its receiver's; others than the leader are set to work by it."""
        k = choose(range(self.shares))
        require(k < len(s.box[i]))
        if i == 0:
            self.receive_control(s)
        else:
            s.active[i] = True
        s.weight[i] = self.held(s, i, s.box[i].pop(k))

    @action(i="others", fairness=WEAK)
    def finish(self, s, i):
        """A process has nothing left to do, and sends the leader what it holds."""
        require(s.active[i])
        s.active[i] = False
        self.put(s, 0, s.weight[i])
        s.weight[i] = 0

    @action(fairness=WEAK)
    def rest(self, s):
        """The leader has nothing to do."""
        s.active[0] = False

    def ended(self, s):
        """No process but the leader works, and no message is on its way to one."""
        return all(not s.active[i] and len(s.box[i]) == 0 for i in self.others)

    def over(self, s):
        return self.ended(s) and not s.active[0]

    def detected(self, s):
        """The leader has the whole again."""
        return s.weight[0] == self.shares

    @invariant
    def weight_is_conserved(self, s):
        """What processes hold and messages carry is the whole."""
        return sum(s.weight) + sum(sum(s.box[i]) for i in range(self.n)) == self.shares
