"""Detecting termination by counting messages twice: the four-counter method.

Friedemann Mattern, "Algorithms for distributed termination detection", Distributed Computing 2, 1987. A token asks every
process round a ring how many messages it has sent and received; nothing is blackened, and messages are not acknowledged. The
computation has ended when the messages received by the end of one round are as many as those sent by the end of the next.
Processes work on a budget of `messages`. Exploration by TLC of the exported model counts the same states as streamproof.
"""

from __future__ import annotations

from streamproof import ANY, WEAK, Array, Bool, Range, State, action, invariant, leads_to, require, temporal
from streamproof_models.reference.counting import Counting


class Mattern(Counting):
    """The token leaves process 0, visits n-1, ..., 1, each when it is passive, and comes back with two sums."""

    name = "reference.mattern"
    n: int = 3
    messages: int = 3
    sizes = {"small": {"n": 2, "messages": 2}, "medium": {"n": 3, "messages": 3}, "large": {"n": 4, "messages": 4}}
    limits = {"n": (2, None), "messages": (0, None)}
    check_deadlock = False  # after the detection the system is idle

    def setup(self):
        self.others = range(1, self.n)

    def state(self):
        process = range(self.n)
        count = Range(0, self.messages)
        return State(
            active=Array(process, Bool(init=ANY)),
            sent=Array(process, count),
            received=Array(process, count),
            pending=Array(process, count),
            token_at=Range(0, self.n - 1),
            sum_sent=count,
            sum_received=count,
            earlier=count,
            rounds=Range(0, 2),
            **self.counter(),
        )

    @action(i="n", j="n")
    def send(self, s, i, j):
        """An active process sends another a message, as long as the budget lasts."""
        require(i != j and s.active[i])
        require(sum(s.sent) < self.messages)
        s.sent[i] += 1
        s.pending[j] += 1

    @action(i="n")
    def receive(self, s, i):
        """A message sets its receiver to work."""
        require(s.pending[i] > 0)
        s.pending[i] -= 1
        s.received[i] += 1
        s.active[i] = True

    @action(i="n")
    def deactivate(self, s, i):
        """A process has nothing left to do."""
        require(s.active[i])
        s.active[i] = False

    def lets_the_token_go(self, s, i):
        """Whether a process counts now."""
        return not s.active[i]

    def another_round(self, s):
        """Whether process 0 sends the token once more."""
        return not self.detected(s)

    @action(fairness=WEAK)
    def begin_round(self, s):
        """Process 0 remembers what was received by the last round, and sends the token with its own counts."""
        require(s.token_at == 0 and self.lets_the_token_go(s, 0))
        require(self.another_round(s))
        self.receive_control(s)
        s.earlier = s.sum_received
        s.sum_sent = s.sent[0]
        s.sum_received = s.received[0]
        s.token_at = self.n - 1

    @action(i="others", fairness=WEAK)
    def pass_token(self, s, i):
        """A passive process adds its counts; with process 1 the round is complete."""
        require(s.token_at == i and self.lets_the_token_go(s, i))
        self.receive_control(s)
        s.sum_sent += s.sent[i]
        s.sum_received += s.received[i]
        s.token_at = i - 1
        if i == 1:
            s.rounds = min(2, s.rounds + 1)

    def ended(self, s):
        """No process is active and no message is on its way."""
        return all(not s.active[i] and s.pending[i] == 0 for i in range(self.n))

    def detected(self, s):
        """What was sent by the last round had been received by the one before."""
        return s.token_at == 0 and s.rounds == 2 and s.earlier == s.sum_sent

    @invariant
    def detection_is_right(self, s):
        """When process 0 concludes that the computation has ended, it has."""
        return not self.detected(s) or self.ended(s)

    @temporal
    def end_is_detected(self, s):
        """When the computation has ended, process 0 comes to know it."""
        return leads_to(self.ended(s), self.detected(s))


class TwoCounters(Mattern, variant="two-counters"):
    """One round is believed: a message that the token misses is made up for by one that it counts only where it arrived."""

    def detected(self, s):
        return s.token_at == 0 and s.rounds > 0 and s.sum_received == s.sum_sent


class CountsTheActive(Mattern, variant="counts-the-active"):
    """Processes count while they work, so that one which works for long is not noticed."""

    def lets_the_token_go(self, s, i):
        return True


class GivesUp(Mattern, variant="gives-up"):
    """After two rounds there is no other."""

    def another_round(self, s):
        return s.rounds < 2
