"""Properties of a pool of buffers: no segment is lost, and every channel that waits gets a buffer."""

from __future__ import annotations

from streamproof import Spec, invariant, leads_to, temporal
from streamproof_models.defects.buffer_pool import BufferPool


@invariant
def conserved(m, s):
    """Every segment is held by other tasks, free, available in the pool, or read by a channel."""
    return s.others + s.free + s.available + sum(int(at == "READS") for at in s.channel) == m.segments


@temporal
def served(m, s):
    """A channel that waits for a buffer gets one."""
    return all(leads_to(s.channel[c] == "LISTENS", s.channel[c] != "LISTENS") for c in range(m.channels))


SPEC = Spec(
    BufferPool,
    properties=(conserved, served),
    expected={
        "without-reserve": {"served": "violated", "deadlock": "violated"},
        "unused-dropped": {"conserved": "violated", "served": "violated", "deadlock": "violated"},
    },
    variant_parameters={
        "without-reserve": {"channels": 1, "segments": 1},  # the pool and the channel of the report
        "unused-dropped": {"segments": 1},
    },
)
