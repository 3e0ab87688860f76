"""Properties of the assignment of splits: none is lost, and the reader ends."""

from __future__ import annotations

from streamproof import Spec, invariant
from streamproof_models.defects.split_assignment import SplitAssignment


@invariant
def none_is_lost(m, s):
    """No split is assigned to a reader that does not have it after a failover."""
    return all(x != "ORPHAN" for x in s.split)


SPEC = Spec(
    SplitAssignment,
    properties=(none_is_lost,),
    expected={
        "ignores-events": {"none_is_lost": "violated"},
        "forgets-failed": {"none_is_lost": "violated"},
        "end-with-splits": {"deadlock": "violated"},
    },
    variant_parameters={
        "ignores-events": {"splits": 1, "checkpoints": 1, "faults": 1},
        "forgets-failed": {"splits": 1, "checkpoints": 1, "faults": 1},
        "end-with-splits": {"splits": 1, "checkpoints": 0, "faults": 1},
    },
)
