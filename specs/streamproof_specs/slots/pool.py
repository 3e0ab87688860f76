"""Properties of Flink 2.3's slots: the views of JobMaster, TaskExecutor and ResourceManager agree in the end."""

from __future__ import annotations

from streamproof import Spec, invariant, leads_to, lemma, step, temporal
from streamproof_models.slots import pool_variants, runtime_rules  # noqa: F401  (declaring a variant registers it)
from streamproof_models.slots.pool import SlotPool


@invariant
def budget(m, s):
    """The free slots and the allocated ones are the slots of the TaskExecutor."""
    return s.free_slots + sum(int(te != "ABSENT") for te in s.te) == m.slots


@invariant
def task_in_slot(m, s):
    """A task runs in a slot that is ACTIVE or RELEASING."""
    return all(not s.task[a] or s.te[a] in ("ACTIVE", "RELEASING") for a in range(m.allocations))


@invariant
def counted(m, s):
    """The ResourceManager counts every slot that is requested or allocated."""
    return all(s.rm[a] != "UNUSED" or (s.te[a] == "ABSENT" and not s.request[a]) for a in range(m.allocations))


@invariant
def rejection_current(m, s):
    """A slot that the JobMaster holds is not about to be freed as rejected."""
    return all(s.answer[a] != "REJECTED" or s.jm[a] == "ABSENT" for a in range(m.allocations))


@invariant
def failed_gone(m, s):
    """A slot that the TaskExecutor fails is not in its table, or RELEASING."""
    return all(not s.fail[a] or s.te[a] in ("ABSENT", "RELEASING") for a in range(m.allocations))


@step
def kept(m, s, t):
    """The TaskExecutor frees no ACTIVE slot that the JobMaster holds, and by the JobMaster's list no slot that it holds."""
    return all(
        s.jm[a] == "ABSENT"
        or (
            (s.te[a] != "ACTIVE" or t.te[a] == "ACTIVE" or t.jm[a] == "ABSENT")
            and (s.te[a] != "ALLOCATED" or t.te[a] != "ABSENT" or s.held[a] == "NONE" or t.held[a] != "NONE")
        )
        for a in range(m.allocations)
    )


@temporal
def orphans_freed(m, s):
    """An ACTIVE slot that the JobMaster does not hold is eventually freed."""
    return all(
        leads_to(s.te[a] == "ACTIVE" and s.jm[a] == "ABSENT", s.te[a] != "ACTIVE" or s.jm[a] != "ABSENT")
        for a in range(m.allocations)
    )


@temporal
def phantoms_dropped(m, s):
    """A slot that only the JobMaster has is eventually dropped."""
    return all(
        leads_to(s.te[a] == "ABSENT" and s.jm[a] != "ABSENT", s.te[a] != "ABSENT" or s.jm[a] == "ABSENT")
        for a in range(m.allocations)
    )


@temporal
def counted_down(m, s):
    """An allocation that only the ResourceManager has is eventually free."""
    return all(
        leads_to(s.rm[a] == "ALLOCATED" and s.te[a] == "ABSENT", s.rm[a] != "ALLOCATED" or s.te[a] != "ABSENT")
        for a in range(m.allocations)
    )


@temporal
def idle_released(m, s):
    """The JobMaster eventually releases slots that the job does not require, unless it requires another number."""
    return all(leads_to(excess(s) and s.required == n, not excess(s) or s.required != n) for n in range(m.demand + 1))


def excess(s):
    """Whether the JobMaster holds more slots than it requires."""
    return sum(int(jm != "ABSENT") for jm in s.jm) > s.required


@temporal
def fulfilled(m, s):
    """A requirement that the TaskExecutor has slots for is eventually fulfilled, unless it changes."""
    return all(
        leads_to(open_request(s) and s.required == n, not open_request(s) or s.required != n)
        for n in range(1, min(m.demand, m.slots) + 1)
    )


def open_request(s):
    """Whether a request has no slot."""
    return s.required > sum(int(jm == "RESERVED") for jm in s.jm)


@lemma
def requests_counted(m, s):
    """Every reserved slot belongs to a request."""
    return s.required >= sum(int(jm == "RESERVED") for jm in s.jm)


@lemma
def requested_once(m, s):
    """While a request is on the way, nothing else is known of its allocation."""
    return all(
        not s.request[a]
        or (
            (s.rm[a] == "PENDING" and s.te[a] == "ABSENT" and s.ack[a] == "NONE" and not s.available[a])
            and (s.jm[a] == "ABSENT" and s.offers[a] == 0 and s.answer[a] == "NONE" and s.free[a] == "NONE")
            and (s.held[a] in ("NONE", "NOT_HELD") and s.slot_report[a] in ("NONE", "HAS_NOT") and not s.fail[a])
        )
        for a in range(m.allocations)
    )


@lemma
def free_is_absent(m, s):
    """What the ResourceManager hears of a free slot is true when it arrives."""
    return all(
        ((not s.available[a] and s.ack[a] != "REFUSED" and s.slot_report[a] != "HAS_NOT") or s.te[a] == "ABSENT")
        and (s.slot_report[a] != "BEFORE" or s.rm[a] != "ALLOCATED")
        for a in range(m.allocations)
    )


@lemma
def answered_last(m, s):
    """An answer belongs to the last offer; the timer of an ACTIVE slot is not valid."""
    return all(
        (s.answer[a] == "NONE" or s.offers[a] == 0) and (s.timer[a] != "VALID" or s.te[a] == "ALLOCATED")
        for a in range(m.allocations)
    )


@lemma
def active_is_answered(m, s):
    """An ACTIVE slot has no offer on the way, and no answer."""
    return all(s.te[a] != "ACTIVE" or (s.offers[a] == 0 and s.answer[a] == "NONE") for a in range(m.allocations))


@lemma
def earlier_first(m, s):
    """A list without a slot that the JobMaster holds, and an earlier return of it, arrive before the slot is ACTIVE."""
    return all(
        s.jm[a] == "ABSENT"
        or (
            (s.answer[a] != "ACCEPTED" or (s.held[a] != "NOT_HELD" and s.free[a] != "SENT"))
            and (s.te[a] != "ACTIVE" or (s.held[a] in ("NONE", "HELD") and s.free[a] == "NONE"))
        )
        for a in range(m.allocations)
    )


SPEC = Spec(
    SlotPool,
    properties=(
        *(budget, task_in_slot, counted, rejection_current, failed_gone, kept),
        *(orphans_freed, phantoms_dropped, counted_down, idle_released, fulfilled),
        *(requests_counted, requested_once, free_is_absent, answered_last, active_is_answered, earlier_first),
    ),
    expected={
        "unchecked-ticket": {"kept": "violated"},
        "answer-overtakes": {"kept": "violated", "fulfilled": "violated"},
        "allocated-freed": {"kept": "violated", "fulfilled": "violated"},
        "pending-freed": {"counted": "violated"},
        "stale-answer": {"rejection_current": "violated", "kept": "violated"},
        "no-reconciliation": dict.fromkeys(("orphans_freed", "fulfilled"), "violated"),
        "silent": {"phantoms_dropped": "violated"},
        "no-slot-report": {"counted_down": "violated", "fulfilled": "violated"},
        "never-idle": {"idle_released": "violated"},
        "freed-with-task": {"task_in_slot": "violated"},
        "budget-early": {"budget": "violated"},
        "known-rejected": {"rejection_current": "violated"},
        "task-before-reply": {"kept": "violated"},
        "active-once": {"failed_gone": "violated"},
        "task-overtakes": {"kept": "violated"},
        "runtime": dict.fromkeys(
            ("counted", "failed_gone", "kept", "orphans_freed", "phantoms_dropped", "counted_down", "fulfilled"),
            "violated",
        ),
    },
    variant_parameters={
        "unchecked-ticket": {"failures": 1},
        "answer-overtakes": {"failures": 0},
        "allocated-freed": {"failures": 0},
        "pending-freed": {"failures": 0},
        "stale-answer": {"failures": 1},
        "no-reconciliation": {"failures": 1},
        "silent": {"failures": 1},
        "no-slot-report": {"failures": 1},
        "never-idle": {"failures": 0},
        "freed-with-task": {"failures": 0},
        "budget-early": {"failures": 0},
        "known-rejected": {"failures": 1},
        "task-before-reply": {"failures": 1},
        "active-once": {"failures": 0},
        "task-overtakes": {"failures": 0},
        "runtime": {"failures": 0},
    },
)
