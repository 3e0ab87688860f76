"""A sliding window over links that lose messages, with sequence numbers of a few bits.

After N. V. Stenning, "A data transfer protocol", Computer Networks 1(2), 1976; go-back-N if the receive window is one.
"""

from streamproof import STRONG, Array, Model, Option, Queue, Range, State
from streamproof import action, choose, eventually, invariant, require, temporal


class SlidingWindow(Model):
    """Message `x` has the number `x` modulo `modulus`; of what arrives, both ends read the number only."""

    name = "reference.sliding_window"
    total: int = 4
    send_window: int = 2
    receive_window: int = 2
    modulus: int = 4
    overtaking: bool = False
    check_deadlock = False  # it ends when all is acknowledged

    def state(self):
        content = Range(0, self.total - 1)
        return State(
            acknowledged=Range(0, self.total),
            wire=Queue(content, capacity=self.send_window),
            kept=Array(self.modulus, Option(content)),
            delivered=Queue(content, capacity=self.total),
            acks=Queue(Range(0, self.modulus - 1), capacity=self.send_window),
        )

    def receive(self, link, message):
        require(message in (link if self.overtaking else link[:1]))
        link.remove(message)

    def arrives(self, s, fate):  # the branch that is fair
        return fate == "arrives"

    @action(x="total", fairness=STRONG)
    def send(self, s, x):
        """The sender sends a message of its window, for the first time or again."""
        require(s.acknowledged <= x < s.acknowledged + self.send_window and not s.wire.full)
        s.wire.push(x)

    @action(x="total", fairness=STRONG.where("arrives"))
    def carry(self, s, x):
        """A message arrives, is delivered or kept until its turn, and acknowledged if there is room; or it is lost."""
        self.receive(s.wire, x)
        fate = choose(["arrives", "is lost"])
        if fate == "arrives":
            if (x - len(s.delivered)) % self.modulus < self.receive_window:
                s.kept[x % self.modulus] = x
            for _ in range(self.receive_window):
                slot = len(s.delivered) % self.modulus
                if s.kept[slot] is not None and not s.delivered.full:
                    s.delivered.push(s.kept[slot])
                    s.kept[slot] = None
            if not s.acks.full:
                s.acks.push(len(s.delivered) % self.modulus)

    @action(number="modulus", fairness=STRONG.where("arrives"))
    def carry_ack(self, s, number):
        """An acknowledgement arrives or is lost; the window moves up to its number."""
        self.receive(s.acks, number)
        fate = choose(["arrives", "is lost"])
        steps = (number - s.acknowledged) % self.modulus
        if fate == "arrives" and steps <= self.send_window:
            s.acknowledged = min(s.acknowledged + steps, self.total)

    @invariant
    def in_order(self, s):
        """Every message is delivered once, in its place, if the windows together are not larger than the modulus."""
        return all(x == k for k, x in enumerate(s.delivered))

    @temporal
    def all_arrive(self, s):
        """All messages are delivered, and the sender learns that."""
        return eventually(len(s.delivered) == self.total and s.acknowledged == self.total)


class Overtaking(SlidingWindow, variant="overtaking"):
    """Messages may overtake each other."""

    overtaking: bool = True


class LosesAll(SlidingWindow, variant="loses-all"):
    """The links may lose every message."""

    def arrives(self, s, fate):
        return True
