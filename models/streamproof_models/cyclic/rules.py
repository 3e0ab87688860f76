"""How the entry of a loop chooses between its inputs: the rules that `cyclic` and `loop_head` share, with `feedback.py`."""

from __future__ import annotations


class EntryRules:
    """Rules for models with a `policy`, which say what waits, and which input was read last."""

    policy: str

    def feedback_waits(self, s, kind):
        """Whether the feedback edge has an item that can be read instead of one of this kind."""
        raise NotImplementedError

    def forward_waits(self, s, kind):
        """Whether the forward input has one."""
        raise NotImplementedError

    def is_utilised(self, s):
        """Whether as many items wait on the feedback edge as it has buffers."""
        raise NotImplementedError

    def last_read(self, s):
        """The input that was read last."""
        raise NotImplementedError

    def may_read_forward(self, s, kind):
        """Whether the entry may read an item of this kind from its forward input."""
        return not self.feedback_waits(s, kind) or not self.prefers_feedback(s)

    def may_read_feedback(self, s, kind):
        """Whether the entry may read an item of this kind from the feedback edge."""
        return not self.forward_waits(s, kind) or self.prefers_feedback(s)

    def prefers_feedback(self, s):
        """Whether the entry reads the feedback edge first."""
        return preferred(self.policy, self.is_utilised(s), self.last_read(s) == "FORWARD")


def preferred(policy, utilised, turn):
    """Whether a policy reads the feedback edge first: its buffers may be in use, and it may be its turn."""
    return {
        "feedback-first": True,
        "feedback-first-in-memory": True,
        "feedback-first-when-utilised": utilised or turn,
        "forward-first-until-utilised": utilised,
        "fair": turn,
        "forward-first": False,
    }[policy]
