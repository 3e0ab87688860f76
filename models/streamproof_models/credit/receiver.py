"""The variant of `credit` that follows the logs of the runtime, and refines another one."""

from __future__ import annotations

from streamproof import WEAK, Array, Queue, Range, State, action, refines, require
from streamproof_models.credit.machine import Credit


class AtTheReceiver(Credit, variant="runtime"):
    """As in the runtime, backlogs travel, with buffers and alone, and a channel is released at its receiver alone.

    The sender, which does not know, goes on: what it sends is not received. A backlog that arrives late may be out of date,
    so that a channel may keep floating buffers, and credits of a released channel are void. Every step is one of
    `any-backlog`, in which a released channel is void at both ends.
    """

    def state(self):
        """Also the backlogs on their way: with buffers, and announced by senders without credit."""
        channel, backlog = range(self.channels), Range(0, self.depth)
        sent = Array(channel, Queue(backlog, capacity=self.most() + 1))
        # Credits do not bound announcements; each follows a buffer that has been produced.
        announced = Array(channel, Queue(backlog, capacity=self.depth))
        return State(**dict(super().state().items()), sent_backlog=sent, announced_backlog=announced)

    def send(self, s, c):
        """With the backlog that stays behind."""
        super().send(s, c)
        s.sent_backlog[c].push(s.buffers_in_backlog[c])

    def announce_backlog(self, s, c):
        """The receiver learns of it later."""
        require(s.buffers_in_backlog[c] > 0 and s.num_credits_available[c] == 0)
        require(len(s.announced_backlog[c]) < self.depth)
        s.announced_backlog[c].push(s.buffers_in_backlog[c])

    @action(c="channels", fairness=WEAK)
    def receive_backlog(self, s, c):
        """An announced backlog arrives."""
        require(len(s.announced_backlog[c]) > 0)
        s.sender_backlog[c] = s.announced_backlog[c].head
        s.announced_backlog[c].pop()

    def receive(self, s, c):
        """With the backlog at the time of sending."""
        require(s.consumer[c] != "GONE" and len(s.sent_backlog[c]) > 0)
        super().receive(s, c)
        s.sender_backlog[c] = s.sent_backlog[c].head
        s.sent_backlog[c].pop()

    def release(self, s, c):
        """The end of a channel has been read: its floating buffers return to the pool."""
        require(s.consumer[c] != "GONE" and s.received_buffers[c] == 0)
        s.consumer[c] = "GONE"
        self.return_floating_buffers(s, c, s.floating_buffers[c])

    @refines(Credit, variant="any-backlog", **{name: name for name in ("channels", "exclusive", "floating", "depth")})
    def counted(self, s):
        """A channel that is released at its receiver is void."""
        return {
            "to_produce": self.unless_gone(s, s.to_produce, 0),
            "buffers_in_backlog": self.unless_gone(s, s.buffers_in_backlog, 0),
            "num_credits_available": self.unless_gone(s, s.num_credits_available, self.exclusive),
            "in_flight": self.unless_gone(s, s.in_flight, 0),
            "announced_credit": self.unless_gone(s, s.announced_credit, 0),
            "sender_backlog": [0] * self.channels,
            "available_buffers": self.unless_gone(s, s.available_buffers, self.exclusive),
            "received_buffers": self.unless_gone(s, s.received_buffers, 0),
            "unannounced_credit": self.unless_gone(s, s.unannounced_credit, 0),
        }

    def unless_gone(self, s, counter, void):
        """A counter of each channel that is not released, and its value for a released one."""
        return [void if s.consumer[c] == "GONE" else counter[c] for c in range(self.channels)]
