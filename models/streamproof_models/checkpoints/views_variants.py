"""Variants of `checkpoint_views` that omit one rule."""

from __future__ import annotations

from streamproof_models.checkpoints.views import CheckpointViews


class SubsumedKeptViews(CheckpointViews, variant="subsumed-kept"):
    """Earlier pending checkpoints stay when one completes."""

    def drop_subsumed(self, s, c):
        """None is aborted."""


class CompletesAfterFailureViews(CheckpointViews, variant="completes-after-failure"):
    """The pending checkpoints are not aborted when the job restarts (FLINK-13497)."""

    def abort_pending(self, s):
        """None."""


class UsedIds(CheckpointViews, variant="used-ids"):
    """A restart sets the counter of ids back."""

    ids_are_new = False


class EarlierRestored(CheckpointViews, variant="earlier-restored"):
    """A restart goes on from any checkpoint."""

    restores_last = False
