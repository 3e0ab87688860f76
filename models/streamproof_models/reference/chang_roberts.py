"""Electing a leader in a ring of processes that differ in their numbers only.

Ernest Chang and Rosemary Roberts, "An improved algorithm for decentralized extrema-finding in circular configurations of
processes", CACM 22(5), 1979. As in the TLA+ examples (Stephan Merz), any processes initiate the election, messages may
overtake each other, and a process that has lost passes on whatever comes; here the greatest number wins, and every
arrangement of the numbers is initial. Published for three processes and one arrangement: 137 states, 227 generated, depth 10.
"""

from __future__ import annotations

from itertools import permutations

from streamproof import WEAK, Array, Bool, Enum, Model, Range, Record, Set, State, any_of
from streamproof import action, choose, invariant, leads_to, require, temporal, terminal


class ChangRoberts(Model):
    """A candidate passes greater numbers on and gives up; it becomes leader when its own number comes back."""

    name = "reference.chang_roberts"
    n: int = 4
    sizes = {"small": {"n": 3}, "medium": {"n": 4}, "large": {"n": 5}}
    limits = {"n": (2, None)}

    def state(self):
        process = range(self.n)
        number = Range(0, self.n - 1)
        node = Record(initiator=Bool(), role=Enum("candidate", "lost", "leader"), begun=Bool())
        initiator = {"initiator": True, "role": "candidate", "begun": False}
        other = {"initiator": False, "role": "lost", "begun": False}
        return State(
            number=Array(process, number, init=any_of(*map(list, permutations(process)))),
            node=Array(process, node, init=[any_of(initiator, other)] * self.n),
            inbox=Array(process, Set(number)),
        )

    def send(self, s, i, number):
        """Process `i` sends a number to its neighbour."""
        s.inbox[(i + 1) % self.n].add(number)

    def gives_up(self, own, number):
        """Whether a candidate with the number `own` passes `number` on; otherwise it discards it."""
        return number > own

    @action(i="n", fairness=WEAK)
    def begin(self, s, i):
        """An initiator sends its own number."""
        require(not s.node[i].begun)
        s.node[i].begun = True
        if s.node[i].initiator:
            self.send(s, i, s.number[i])

    @action(i="n", fairness=WEAK)
    def receive(self, s, i):
        """A process handles any of the numbers that have arrived."""
        require(s.node[i].begun)
        number = choose(s.inbox[i])
        s.inbox[i].remove(number)
        if s.node[i].role != "lost" and number == s.number[i]:
            s.node[i].role = "leader"
        elif s.node[i].role == "lost" or self.gives_up(s.number[i], number):
            s.node[i].role = "lost"
            self.send(s, i, number)

    @invariant
    def one_leader(self, s):
        """The leader is the initiator with the greatest number, and every other process has lost."""
        return all(
            s.node[j].role == "lost" and (s.number[j] < s.number[i] or not s.node[j].initiator)
            for i in range(self.n)
            for j in range(self.n)
            if s.node[i].role == "leader" and j != i
        )

    @temporal
    def elected(self, s):
        """If there is a candidate, a leader is elected."""
        return leads_to(any(p.role == "candidate" for p in s.node), any(p.role == "leader" for p in s.node))

    @terminal
    def ended(self, s):
        """No message is left."""
        return all(p.begun for p in s.node) and all(len(box) == 0 for box in s.inbox)


class Meek(ChangRoberts, variant="meek"):
    """A candidate gives up whatever number comes."""

    def gives_up(self, own, number):
        return True
