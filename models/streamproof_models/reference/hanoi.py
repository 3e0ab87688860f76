"""The towers of Hanoi: move all discs from the first to the last tower, never a larger one onto a smaller one.

After the model in the TLA+ examples, which distinguishes a move to an empty tower from a move onto larger discs and
counts a move that is both twice. Published for five discs and three towers: 243 states, 913 generated, depth 32; the
shortest solution passes through 32 states.
"""

from __future__ import annotations

from streamproof import Array, Model, Range, State, action, reachable, require


class Hanoi(Model):
    """Disc 0 is the smallest. Where every disc lies says all: on a tower, discs are in order of size."""

    name = "reference.hanoi"
    discs: int = 5
    towers: int = 3

    def state(self):
        return State(lies_on=Array(range(self.discs), Range(0, self.towers - 1)))

    def free_above(self, s, disc):
        """No smaller disc lies on `disc`."""
        return all(s.lies_on[smaller] != s.lies_on[disc] for smaller in range(disc))

    @action(disc="discs", to="towers")
    def move_onto_larger(self, s, disc, to):
        """`to` has no disc smaller than `disc`."""
        require(s.lies_on[disc] != to and self.free_above(s, disc))
        require(all(s.lies_on[smaller] != to for smaller in range(disc)))
        s.lies_on[disc] = to

    @action(disc="discs", to="towers")
    def move_to_empty(self, s, disc, to):
        """`to` has no disc at all."""
        require(s.lies_on[disc] != to and self.free_above(s, disc))
        require(all(s.lies_on[other] != to for other in range(self.discs)))
        s.lies_on[disc] = to

    @reachable
    def solved(self, s):
        """All discs lie on the last tower."""
        return all(on == self.towers - 1 for on in s.lies_on)
