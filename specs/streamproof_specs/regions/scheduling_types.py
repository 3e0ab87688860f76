"""Which types of output and of scheduling go together: every record is read, and no slot is held in vain."""

from __future__ import annotations

from streamproof import Spec, eventually, invariant, leads_to, step, temporal
from streamproof_models.regions.scheduling_types import CONSUMER, SchedulingTypes


@temporal
def everything_read(m, s):
    """Every record that is counted is read in the end."""
    return eventually(all(s.read[p] == m.records for p in m.sources))


@invariant
def slot_in_use(m, s):
    """While the consumer runs, all or any of its inputs may be read, by the constraint: it does not hold a slot in vain."""
    return s.status[CONSUMER] != "RUNNING" or m.among([m.is_readable(s, p) for p in m.sources])


@invariant
def awaits_records(m, s):
    """A consumer that is deployed on its own has all or any of its inputs begun, by the constraint."""
    return (
        m.scheduling == "all-at-once" or s.status[CONSUMER] == "CREATED" or m.among([s.made[p] > 0 for p in m.sources])
    )


@invariant
def none_lost(m, s):
    """Each record that was made waits or was read, unless they are not counted."""
    return m.output == "unbounded" or all(s.made[p] == s.waiting[p] + s.read[p] for p in m.sources)


@step
def by_running_tasks(m, s, t):
    """Each step deploys or ends tasks, or a running producer adds a record, or the running consumer takes one."""
    return any(s.status[x] != t.status[x] for x in m.tasks) or any(
        (s.status[p] == "RUNNING" and t.waiting[p] == s.waiting[p] + 1)
        or (s.status[CONSUMER] == "RUNNING" and t.waiting[p] == s.waiting[p] - 1)
        for p in m.sources
    )


@step
def finished_for_good(m, s, t):
    """No task runs twice."""
    return all(s.status[x] != "FINISHED" or t.status[x] == "FINISHED" for x in m.tasks)


@temporal
def ends(m, s):
    """A job that is not unbounded ends when everything is read."""
    return leads_to(
        m.output != "unbounded" and all(s.read[p] == m.records for p in m.sources), s.status[CONSUMER] == "FINISHED"
    )


SPEC = Spec(
    SchedulingTypes,
    properties=(everything_read, slot_in_use, awaits_records, none_lost, by_running_tasks, finished_for_good, ends),
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
