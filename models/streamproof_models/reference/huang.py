"""Detecting termination by throwing weights: whoever works holds a share of one whole, and gives it back.

Shing-Tsaan Huang, "Detecting termination of distributed computations by external agents", ICDCS 1989. Process 0 is the
leader. Weights are counted in shares of the whole, so that halves are exact; `shares` is a power of two, and one share is
not divided any more. As in the published run of the TLA+ specification (Kuppe 2021; 5 processes, 8 shares) messages lie in
the order of their arrival and are received in any, a process may send to itself, what the leader receives does not set it to
work, and a weight that cannot be halved counts as a step that leads nowhere. Published: 81,256 states.
"""

from __future__ import annotations

from streamproof import WEAK, Array, Bool, Range, State, action, choose, invariant, leads_to, require, temporal
from streamproof_models.reference.counting import Counting


class Huang(Counting):
    """A message takes half of its sender's weight along; who has finished sends all it holds to the leader."""

    name = "reference.huang"
    n: int = 5
    shares: int = 8
    leader_gets_work: bool = True
    """Whether messages are also sent to the leader; where they are not, all that it receives is weight given back."""
    sizes = {"small": {"n": 3, "shares": 4}, "medium": {"n": 5, "shares": 8}, "large": {"n": 6, "shares": 8}}
    limits = {"n": (2, None), "shares": (1, None)}
    check_deadlock = False  # after the detection the system is idle

    def setup(self):
        self.others = range(1, self.n)
        if self.shares & (self.shares - 1):
            raise ValueError("shares is a power of two: 1, 2, 4, 8")

    def state(self):
        process = range(self.n)
        share = Range(0, self.shares)
        whole = [self.shares if i == 0 else 0 for i in process]
        return State(
            active=Array(process, Bool(), init=[i == 0 for i in process]),
            weight=Array(process, share, init=whole),
            box=Array(process, Array(self.shares, share)),
            **self.counter(),
        )

    def put(self, s, i, weight):
        """A message arrives behind those that are there; 0 is the empty place."""
        placed = False
        for k in range(self.shares):
            here = not placed and s.box[i][k] == 0
            if here:
                s.box[i][k] = weight
            placed = placed or here

    def take(self, s, i, k):
        """The message at place `k`; what lies behind it moves up."""
        weight = s.box[i][k]
        for later in range(self.shares - 1):
            if later >= k:
                s.box[i][later] = s.box[i][later + 1]
        s.box[i][self.shares - 1] = 0
        return weight

    def kept(self, s, i):
        """What the sender of a message still holds."""
        return s.weight[i] // 2

    def held(self, s, i, weight):
        """What a process holds when it receives a weight."""
        return s.weight[i] + weight

    @action(i="n", j="n")
    def send(self, s, i, j):
        """An active process sends a message with half of its weight, as long as that can be halved."""
        require(s.active[i] and (j != 0 or self.leader_gets_work))
        if s.weight[i] % 2 == 0 and s.weight[i] > 0:
            half = s.weight[i] // 2
            s.weight[i] = self.kept(s, i)
            self.put(s, j, half)

    @action(i="others", fairness=WEAK)
    def receive(self, s, i):
        """A message sets its receiver to work, and its weight is the receiver's."""
        k = choose(range(self.shares))
        require(s.box[i][k] > 0)
        s.weight[i] = self.held(s, i, self.take(s, i, k))
        s.active[i] = True

    @action(i="others", fairness=WEAK)
    def finish(self, s, i):
        """A process has nothing left to do, and sends the leader what it holds."""
        require(s.active[i])
        s.active[i] = False
        self.put(s, 0, s.weight[i])
        s.weight[i] = 0

    @action(fairness=WEAK)
    def collect(self, s):
        """The leader adds up what comes back."""
        k = choose(range(self.shares))
        require(s.box[0][k] > 0)
        self.receive_control(s)
        s.weight[0] = self.held(s, 0, self.take(s, 0, k))

    @action(fairness=WEAK)
    def rest(self, s):
        """The leader has nothing to do."""
        s.active[0] = False

    def ended(self, s):
        """No process but the leader works, and no message is on its way to one."""
        return all(not s.active[i] and s.box[i][0] == 0 for i in self.others)

    def over(self, s):
        return self.ended(s) and not s.active[0]

    def detected(self, s):
        """The leader has the whole again."""
        return s.weight[0] == self.shares

    @invariant
    def detection_is_right(self, s):
        """When the leader has the whole again, no other process works and none will."""
        return not self.detected(s) or self.ended(s)

    @invariant
    def weight_is_conserved(self, s):
        """What processes hold and messages carry is the whole."""
        return sum(s.weight) + sum(sum(s.box[i]) for i in range(self.n)) == self.shares

    @temporal
    def end_is_detected(self, s):
        """When no other process works and none will, the leader gets the whole again."""
        return leads_to(self.ended(s), self.detected(s))


class KeepsItsWeight(Huang, variant="keeps-its-weight"):
    """The sender of a message does not lose what it sends, so that there is more than the whole."""

    def kept(self, s, i):
        return s.weight[i]

    def held(self, s, i, weight):
        return min(self.shares, s.weight[i] + weight)


class Overwrites(Huang, variant="overwrites"):
    """The weight of a message takes the place of what its receiver held, which is lost."""

    def held(self, s, i, weight):
        return weight


class ReturnsEarly(Huang, variant="returns-early"):
    """A process gives its weight back and works on."""

    @action(i="others", fairness=WEAK)
    def finish(self, s, i):
        require(s.active[i])
        if s.weight[i] > 0:
            self.put(s, 0, s.weight[i])
            s.weight[i] = 0
        else:
            s.active[i] = False
