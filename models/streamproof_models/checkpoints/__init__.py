"""Checkpoints of a streaming job: `machine.py` has tasks and CheckpointCoordinator, `variants.py` the refuted rules.

`views.py` has what logs show, `views_variants.py`; the rules of both are in `rules.py`.
"""
