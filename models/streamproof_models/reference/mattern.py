"""Detecting termination by counting messages twice: the four-counter method.

Friedemann Mattern, "Algorithms for distributed termination detection", Distributed Computing 2, 1987. A token asks every
process round a ring how many messages it has sent and received; nothing is blackened, and messages are not acknowledged. The
computation has ended when the messages received by the end of one round are as many as those sent by the end of the next.
Processes work on a budget of `messages`. Exploration by TLC of the exported model counts the same states as streamproof.
"""

from __future__ import annotations

from streamproof import ANY, WEAK, Array, Bool, Range, State, action, require
from streamproof_models.reference.detector import Ring


class Mattern(Ring):
    """The token leaves process 0, visits n-1, ..., 1, each when it is passive, and comes back with two sums."""

    name = "reference.mattern"
    messages: int = 3
    sizes = {"small": {"n": 2, "messages": 2}, "medium": {"n": 3, "messages": 3}, "large": {"n": 4, "messages": 4}}
    limits = {"n": (2, None), "messages": (0, None)}

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
        require(i != j and s.active[i] and sum(s.sent) < self.messages)
        s.sent[i] += 1
        s.pending[j] += 1

    @action(i="n")
    def receive(self, s, i):
        """A message sets its receiver to work."""
        require(s.pending[i] > 0)
        s.pending[i] -= 1
        s.received[i] += 1
        s.active[i] = True

    def counts(self, s, i):
        """Whether a process counts now."""
        return not s.active[i]

    @action(fairness=WEAK)
    def begin_round(self, s):
        """Process 0 remembers what was received by the last round, and sends the token with its own counts."""
        require(s.token_at == 0 and self.counts(s, 0) and not self.detected(s))
        self.receive_control(s)
        s.earlier = s.sum_received
        s.sum_sent = s.sent[0]
        s.sum_received = s.received[0]
        s.token_at = self.n - 1

    @action(i="others", fairness=WEAK)
    def pass_token(self, s, i):
        """A passive process adds its counts; with process 1 the round is complete."""
        require(s.token_at == i and self.counts(s, i))
        self.receive_control(s)
        s.sum_sent += s.sent[i]
        s.sum_received += s.received[i]
        s.token_at = i - 1
        if i == 1:
            s.rounds = min(2, s.rounds + 1)

    def detected(self, s):
        """What was sent by the last round had been received by the one before."""
        return s.token_at == 0 and s.rounds == 2 and s.earlier == s.sum_sent
