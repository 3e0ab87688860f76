"""What goes wrong in Huang's detection when a weight is copied, lost or given back too early."""

from __future__ import annotations

from streamproof import WEAK, action, require
from streamproof_models.reference.huang import Huang


class KeepsItsWeight(Huang, variant="keeps-its-weight"):
    """The sender of a message does not lose what it sends, so that there is more than the whole."""

    @action(i="n", j="n")
    def send(self, s, i, j):
        require(s.active[i] and (j != 0 or self.leader_gets_work))
        if s.weight[i] % 2 == 0 and s.weight[i] > 0:
            self.put(s, j, s.weight[i] // 2)

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
