"""How checkpoints end: the rules of the `CheckpointCoordinator` that `checkpoints` and `checkpoint_views` share."""

from __future__ import annotations

from streamproof import require


class CheckpointRules:
    """Rules for models with an array `checkpoint` of states."""

    keys: range
    """The keys of the array."""

    def is_pending(self, s, c):
        """Whether a checkpoint is neither complete nor aborted."""
        return s.checkpoint[c] == "PENDING"

    def is_before(self, s, earlier, c):
        """Whether a checkpoint has a lower id than another one, which subsumes it."""
        return earlier < c

    def expire(self, s, c):
        """`CheckpointCanceller`: the time-out of a pending checkpoint."""
        require(self.is_pending(s, c))
        s.checkpoint[c] = "ABORTED"

    def drop_subsumed(self, s, c):
        """`dropSubsumedCheckpoints`: earlier pending checkpoints."""
        for earlier in self.keys:
            if self.is_before(s, earlier, c) and self.is_pending(s, earlier):
                s.checkpoint[earlier] = "ABORTED"

    def abort_pending(self, s):
        """`abortPendingCheckpoints`."""
        for c in self.keys:
            if self.is_pending(s, c):
                s.checkpoint[c] = "ABORTED"
