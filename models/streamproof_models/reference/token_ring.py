"""A ring of machines that, from any state whatever, comes to have exactly one token.

Edsger W. Dijkstra, "Self-stabilizing systems in spite of distributed control", CACM 17(11), 1974 (EWD 426). Published
for six machines with six values: all 46,656 states initial, 248,832 generated.
"""

from __future__ import annotations

from streamproof import (
    ANY,
    WEAK,
    Array,
    Model,
    Range,
    State,
    action,
    always,
    eventually,
    invariant,
    require,
    step,
    temporal,
)


class TokenRing(Model):
    """A machine has the token when its counter differs from its left neighbour's; the first one, when they are equal."""

    name = "reference.token_ring"
    n: int = 6
    values: int = 6

    def setup(self):
        self.others = range(1, self.n)

    def state(self):
        return State(counter=Array(range(self.n), Range(0, self.values - 1, init=ANY)))

    @action(fairness=WEAK)
    def create(self, s):
        """The first machine starts another round."""
        require(s.counter[0] == s.counter[self.n - 1])
        s.counter[0] = (s.counter[self.n - 1] + 1) % self.values

    @action(i="others", fairness=WEAK)
    def hand_on(self, s, i):
        """Any other machine follows its neighbour."""
        require(s.counter[i] != s.counter[i - 1])
        s.counter[i] = s.counter[i - 1]

    def tokens(self, s):
        """How many machines have a token."""
        first = s.counter[0] == s.counter[self.n - 1]
        return first + sum(s.counter[i] != s.counter[i - 1] for i in self.others)

    @invariant
    def some_token(self, s):
        """There is never no token."""
        return self.tokens(s) >= 1

    @step
    def never_more_tokens(self, s, t):
        """No step makes more tokens; in particular a single one stays single."""
        return self.tokens(t) <= self.tokens(s)

    @temporal
    def stabilises(self, s):
        """From any state on, there is eventually one token."""
        return eventually(always(self.tokens(s) == 1))
