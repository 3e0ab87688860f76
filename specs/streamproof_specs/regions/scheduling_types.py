"""Which types of output and of scheduling go together: every record is read, and no slot is held in vain."""

from __future__ import annotations

from streamproof import Spec, eventually, invariant, temporal
from streamproof_models.regions.scheduling_types import CONSUMER, SchedulingTypes


@temporal
def everything_read(m, s):
    """Every record that is counted is read in the end."""
    return eventually(all(s.read[p] == m.records for p in m.sources))


@invariant
def slot_in_use(m, s):
    """While the consumer runs, all or any of its inputs may be read, by the constraint: it does not hold a slot in vain."""
    return s.status[CONSUMER] != "RUNNING" or m.among([m.is_readable(s, p) for p in m.sources])


SPEC = Spec(
    SchedulingTypes,
    properties=(everything_read, slot_in_use),
    expected={
        "bounded-on-complete-output": {"everything_read": "violated", "deadlock": "violated"},
        "unbounded-on-complete-output": {"everything_read": "violated", "deadlock": "violated"},
        "blocking-on-first-output": {"slot_in_use": "violated"},
        "blocking-all-at-once": {"slot_in_use": "violated"},
        "blocking-any-input": {"everything_read": "violated", "deadlock": "violated"},
        "bounded-with-few-slots": {"everything_read": "violated", "deadlock": "violated"},
        "unbounded-all-at-once": {},
        "unbounded-on-first-output": {},
        "bounded-all-at-once": {},
        "blocking-on-complete-output": {},
    },
)
