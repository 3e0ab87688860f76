"""Benchmark model: termination detection on a ring, with states of two machine words."""

from __future__ import annotations

from streamproof import Array, Bool, Model, Range, State, action, invariant, require


class RingBench(Model):
    """Termination detection on a ring, after EWD 998, with a budget of messages: two words per state."""

    n: int = 6
    messages: int = 6
    check_deadlock = False  # without messages left, the system terminates

    def setup(self):
        """All machines except 0 pass the token on."""
        self.passing = range(1, self.n)

    def state(self):
        """Per machine: active, black, message counter, and pending messages; and the token."""
        machine = range(self.n)
        return State(
            active=Array(machine, Bool(init=True)),
            black=Array(machine, Bool()),
            counter=Array(machine, Range(-31, 32, init=0)),
            pending=Array(machine, Range(0, 15)),
            place=Range(0, self.n - 1, init=0),
            stained=Bool(init=True),
            sum=Range(-63, 64, init=0),
            left=Range(0, 15, init=self.messages),
        )

    @action
    def initiate(self, s):
        """Machine 0 starts a new round."""
        require(s.place == 0 and (s.stained or s.black[0] or s.counter[0] + s.sum > 0))
        s.place = self.n - 1
        s.stained = False
        s.sum = 0
        s.black[0] = False

    @action(i="passing")
    def hand_on(self, s, i):
        """A passive machine adds its counter to the token's, and passes the token on."""
        require(s.place == i and not s.active[i])
        s.place = i - 1
        s.sum += s.counter[i]
        s.stained = s.stained or s.black[i]
        s.black[i] = False

    @action(i="n")
    def send(self, s, i):
        """A message to the next machine but one."""
        require(s.active[i] and s.left > 0)
        s.left -= 1
        s.counter[i] += 1
        s.pending[(i + 2) % self.n] += 1

    @action(i="n")
    def receive(self, s, i):
        """A message makes its receiver active and black."""
        require(s.pending[i] > 0)
        s.pending[i] -= 1
        s.counter[i] -= 1
        s.active[i] = True
        s.black[i] = True

    @action(i="n")
    def rest(self, s, i):
        """A machine becomes passive."""
        require(s.active[i])
        s.active[i] = False

    @invariant
    def detected_is_right(self, s):
        """When machine 0 detects termination, no machine is active and no message is in flight."""
        concluded = s.place == 0 and not s.stained and not s.black[0] and not s.active[0] and s.sum + s.counter[0] == 0
        return not concluded or all(not s.active[i] and s.pending[i] == 0 for i in range(self.n))
