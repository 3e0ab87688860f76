"""A can of black and white beans: the colour of the last one is known beforehand.

David Gries, "The Science of Programming", 1981, after a letter of Edsger W. Dijkstra. Published for up to 1,000 beans,
every can initial: 501,500 states, 2,000,002 generated.
"""

from __future__ import annotations

from streamproof import ANY, WEAK, Model, Range, State, action, eventually, initially, require, step, temporal


class CoffeeCan(Model):
    """Take two beans out; put a black one in for two of a colour, the white one back otherwise."""

    name = "reference.coffee_can"
    beans: int = 1000
    sizes = {"small": {"beans": 10}, "medium": {"beans": 100}, "large": {"beans": 1000}}

    def state(self):
        return State(black=Range(0, self.beans, init=ANY), white=Range(0, self.beans, init=ANY))

    @initially
    def some_can(self, s):
        """At least one bean, at most `beans`."""
        return 1 <= s.black + s.white <= self.beans

    @action(fairness=WEAK)
    def two_white(self, s):
        """Two white beans become a black one."""
        require(s.white >= 2)
        s.black += 1
        s.white -= 2

    @action(fairness=WEAK)
    def two_black(self, s):
        """Two black beans become one."""
        require(s.black >= 2)
        s.black -= 1

    @action(fairness=WEAK)
    def one_of_each(self, s):
        """The white bean goes back."""
        require(s.black >= 1 and s.white >= 1)
        s.black -= 1

    @action
    def one_left(self, s):
        """Nothing more can be done."""
        require(s.black + s.white == 1)

    @step
    def beans_decrease(self, s, t):
        """Every step but the last takes one bean."""
        return s.black + s.white == 1 or t.black + t.white == s.black + s.white - 1

    @step
    def parity_of_white(self, s, t):
        """The parity of the white beans is invariant, so the last one is white exactly if it is odd."""
        return s.white % 2 == t.white % 2

    @temporal
    def one_bean_is_left(self, s):
        """It ends with one bean."""
        return eventually(s.black + s.white == 1)
