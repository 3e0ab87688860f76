"""Dining philosophers who hand forks to each other, clean, and dirty them by eating.

After the solution of K. M. Chandy and J. Misra, "The Drinking Philosophers Problem", ACM TOPLAS 6(4), 1984, in the
form of the TLA+ examples. Published for five philosophers: 67 states, 336 generated, depth 29.
"""

from __future__ import annotations

from streamproof import (
    WEAK,
    Array,
    Bool,
    Enum,
    Model,
    Range,
    Record,
    State,
    action,
    invariant,
    leads_to,
    require,
    temporal,
)


class DiningPhilosophers(Model):
    """Philosopher p sits between fork p on the left and fork p+1 on the right."""

    name = "reference.dining_philosophers"
    philosophers: int = 5

    def state(self):
        seat = Range(0, self.philosophers - 1)
        dirty_forks = [{"holder": 0 if f == 1 else f, "clean": False} for f in range(self.philosophers)]
        return State(
            fork=Array(seat, Record(holder=seat, clean=Bool()), init=dirty_forks),
            hungry=Array(seat, Bool(init=True)),
            doing=Array(seat, Enum("deciding", "eating", "thinking")),
        )

    def right(self, p):
        """The fork, and the neighbour, to the right."""
        return (p + 1) % self.philosophers

    @action(p="philosophers", fairness=WEAK)
    def decide(self, s, p):
        """Hand over one dirty fork, cleaned; then eat with two clean forks, wait for them, or think when not hungry."""
        require(s.doing[p] == "deciding")
        left, right = s.fork[p], s.fork[self.right(p)]
        if left.holder == p and not left.clean:
            s.fork[p] = {"holder": (p - 1) % self.philosophers, "clean": True}
        elif right.holder == p and not right.clean:
            s.fork[self.right(p)] = {"holder": self.right(p), "clean": True}
        if not s.hungry[p]:
            s.doing[p] = "thinking"
        elif all(s.fork[f].holder == p and s.fork[f].clean for f in (p, self.right(p))):
            s.doing[p] = "eating"

    @action(p="philosophers", fairness=WEAK)
    def think(self, s, p):
        """Thinking makes hungry."""
        require(s.doing[p] == "thinking")
        s.hungry[p] = True
        s.doing[p] = "deciding"

    @action(p="philosophers", fairness=WEAK)
    def eat(self, s, p):
        """Eating dirties both forks."""
        require(s.doing[p] == "eating")
        s.hungry[p] = False
        s.fork[p].clean = False
        s.fork[self.right(p)].clean = False
        s.doing[p] = "deciding"

    @invariant
    def neighbours_never_eat_together(self, s):
        """Two philosophers who share a fork do not eat at the same time."""
        return all(
            s.doing[p] != "eating" or s.doing[self.right(p)] != "eating"
            for p in range(self.philosophers)
            if self.right(p) != p
        )

    @temporal
    def nobody_starves(self, s):
        """Who is hungry eats."""
        return all(leads_to(s.hungry[p], not s.hungry[p]) for p in range(self.philosophers))
