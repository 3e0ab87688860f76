"""Properties of a loop proved for every capacity, every number of records and every amplification."""

from __future__ import annotations

from streamproof import Spec, invariant, lemma
from streamproof_models.cyclic.counts import (  # noqa: F401  (declaring a variant registers it)
    AmplifiedCounts,
    BoundedCounts,
    CyclicCounts,
    FirstCounts,
    GatedCounts,
    ReadBackUnchecked,
    SpillDropped,
    UngatedCounts,
)


@invariant
def conserved(m, s):
    """Every record is in one place."""
    return s.unborn + sum(s.queue[i] + s.held[i] for i in range(m.operators)) + s.memory + s.disk == m.records


@invariant
def within_capacity(m, s):
    """No channel holds more than it has buffers."""
    return all(s.queue[i] <= m.buffers for i in range(m.operators)) and s.memory <= m.buffers


@invariant
def never_stuck(m, s):
    """Some step is always possible, even if no operator lets a record leave."""
    return m.moves(s)


@invariant
def spill_bounded(m, s):
    """Where the entry lets nothing in while something waits, the disk never takes more than the rest of the loop can hold."""
    return m.entry != "not-waiting" or s.disk <= (m.operators - 1) * m.buffers + m.operators


@lemma
def place_left(m, s):
    """Without a disk and without amplification, a loop that lets nothing in while the feedback edge is full is never full."""
    return m.entry != "not-full" or m.inside(s) < m.operators * m.buffers + m.operators


@lemma
def few_inside(m, s):
    """Without amplification, a loop that lets nothing in while something waits holds what its channels and operators can."""
    return m.entry != "not-waiting" or m.inside(s) <= (m.operators - 1) * m.buffers + m.operators


@lemma
def one_held(m, s):
    """No operator holds more than it makes of one record."""
    return all(s.held[i] <= m.amplification for i in range(m.operators))


SPEC = Spec(
    CyclicCounts,
    properties=(conserved, within_capacity, never_stuck, spill_bounded, place_left, few_inside, one_held),
    expected={
        "bounded": {"never_stuck": "violated"},
        "bounded-unamplified": {"never_stuck": "violated"},
        "bounded-gated": {},
        "feedback-first": {},
        "feedback-first-amplified": {"spill_bounded": "violated"},
        "spill-dropped": {"conserved": "violated"},
        "read-back-unchecked": {"within_capacity": "violated"},
    },
    variant_parameters={"feedback-first-amplified": {"records": 6}},
)
