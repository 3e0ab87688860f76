"""Checkpoints of a streaming job: `machine.py` has tasks and CheckpointCoordinator, `variants.py` the refuted rules."""
