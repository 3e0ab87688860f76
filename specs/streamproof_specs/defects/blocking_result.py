"""Properties of a blocking result: its buffers return, and it is written to its end."""

from __future__ import annotations

from streamproof import Spec, invariant
from streamproof_models.defects.blocking_result import BlockingResult


@invariant
def conserved(m, s):
    """Every buffer is in the pool or in one subpartition."""
    held = sum(int(b in ("FILLING", "FULL")) for b in s.buffer)
    return s.free + held == m.subpartitions + m.spare


SPEC = Spec(
    BlockingResult,
    properties=(conserved,),
    expected={"without-spare": {"deadlock": "violated"}, "kept-at-end": {"conserved": "violated"}},
    variant_parameters={
        "without-spare": {"subpartitions": 2, "records": 3},
        "kept-at-end": {"subpartitions": 1, "records": 1},
    },
)
