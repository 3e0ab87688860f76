"""Properties of flow control in a loop: no loss, no deadlock, and no input that waits forever."""

from __future__ import annotations

from streamproof import Spec, Sweep, invariant, leads_to, lemma, measure, reachable, refines, temporal
from streamproof_models.cyclic.counts import CyclicCounts
from streamproof_models.cyclic.machine import FEEDBACK, POLICIES, Cyclic
from streamproof_models.cyclic.variants import (  # noqa: F401  (declaring a variant registers it)
    AlignedBarriers,
    BarrierOvertakes,
    Bounded,
    BoundedUnamplified,
    FeedbackFirst,
    FeedbackFirstInMemory,
    FeedbackFirstWhenUtilised,
    ForwardFirst,
    ForwardFirstUntilUtilised,
    OneTooMany,
    SpillDropped,
    SpillForgotten,
    SpillNewestFirst,
    SpillOvertaken,
    SpillReadTwice,
    StrictTurns,
)
from streamproof_specs.cyclic.claims import COMPARISON


def everywhere(m, s):
    """The number of records and of barriers, wherever they are."""
    queues = [*(channel.items for channel in s.channel), s.back.memory, s.back.disk]
    records = sum(item.kind == "RECORD" for queue in queues for item in queue)
    barriers = sum(item.kind == "BARRIER" for queue in queues for item in queue)
    held = sum(operator.copies + (operator.task == "LEAVE") for operator in s.operator)
    held_barriers = sum(operator.task == "BARRIER" for operator in s.operator)
    return s.unborn + records + held, s.untriggered + barriers + held_barriers


@invariant
def conserved(m, s):
    """Every record and every barrier is in exactly one place: no loss and no duplicates."""
    return everywhere(m, s) == (m.records, m.barriers)


@lemma
def never_more(m, s):
    """No duplicates, except the one that the reader of the disk repeats after a failure; losses are possible."""
    records, barriers = everywhere(m, s)
    repeated = m.repeated(s)
    each_kind = records <= m.records + repeated and barriers <= m.barriers + repeated
    return each_kind and records + barriers <= m.records + m.barriers + repeated


@lemma
def copies_are_sent(m, s):
    """An operator has copies to write exactly while it is writing."""
    return all((operator.task == "SEND") == (operator.copies > 0) for operator in s.operator)


def counted(m, s):
    """As counters, it is the loop of which more is proved for every capacity."""
    return {
        "unborn": min(s.unborn + s.untriggered, m.most),  # where something is there twice, `conserved` says so
        "queue": [len(channel.items) for channel in s.channel],
        "held": [operator.copies + (operator.task in ("LEAVE", "BARRIER")) for operator in s.operator],
        "memory": len(s.back.memory),
        "disk": min(len(s.back.disk), m.most),
    }


refines(
    CyclicCounts,
    counted,
    operators="operators",
    buffers="buffers",
    amplification="amplification",
    records="most",
    spilling="spilling",
    entry="entry",
)


@temporal
def forward_served(m, s):
    """Items on the forward input are read eventually."""
    return leads_to(len(s.channel[0].items) > 0, s.operator[0].task != "IDLE" and s.operator[0].last_read == "FORWARD")


@temporal
def feedback_served(m, s):
    """Items on the feedback edge are read eventually."""
    return leads_to(m.back.waiting(s.back) > 0, s.operator[0].task != "IDLE" and s.operator[0].last_read == "FEEDBACK")


@temporal
def unblocked(m, s):
    """No operator waits for room forever."""
    return all(leads_to(operator.task != "IDLE", operator.task == "IDLE") for operator in s.operator)


@temporal
def checkpoints_complete(m, s):
    """A barrier that entered completes its round eventually."""
    return leads_to(s.untriggered < m.barriers, m.operator[0].completing(s.operator[0]))


@reachable
def spills(m, s):
    """Something is written to disk."""
    return len(s.back.disk) > 0


@measure
def longest_spill(m, s):
    """Items on disk."""
    return len(s.back.disk)


@measure
def longest_forward_wait(m, s):
    """Items of the feedback edge that are read while one waits on the forward input, counted up to `watch`."""
    return s.forward_wait if m.watch else None


@measure
def longest_feedback_wait(m, s):
    """Items of the forward input that are read while one waits on the feedback edge, counted up to `watch`."""
    return s.feedback_wait if m.watch else None


@measure
def longest_log(m, s):
    """Records read from the feedback edge while a barrier is in the loop, counted up to `watch`."""
    return s.logged if m.watch else None


@measure
def buffers_in_use(m, s):
    """Buffers of the loop's own channels, the feedback edge's memory included, that hold something."""
    return sum(len(s.channel[i].items) for i in m.inner) + len(s.back.memory)


@measure
def items_in_the_loop(m, s):
    """Records and barriers behind the forward input: in channels, on disk, and with operators."""
    held = sum(operator.copies + (operator.task in ("LEAVE", "BARRIER")) for operator in s.operator)
    return sum(len(s.channel[i].items) for i in m.inner) + m.back.waiting(s.back) + held


SPEC = Spec(
    Cyclic,
    comparison=COMPARISON,
    measures=(
        longest_spill,
        longest_forward_wait,
        longest_feedback_wait,
        longest_log,
        buffers_in_use,
        items_in_the_loop,
    ),
    properties=(
        conserved,
        never_more,
        copies_are_sent,
        counted,
        forward_served,
        feedback_served,
        unblocked,
        checkpoints_complete,
        spills,
    ),
    expected={
        "bounded": {
            "feedback_served": "violated",
            "unblocked": "violated",
            "checkpoints_complete": "violated",
            "spills": "violated",
            "deadlock": "violated",
        },
        "bounded-unamplified": {
            "feedback_served": "violated",
            "unblocked": "violated",
            "checkpoints_complete": "violated",
            "spills": "violated",
            "deadlock": "violated",
        },
        "feedback-first": {"forward_served": "violated", "checkpoints_complete": "violated"},
        "feedback-first-when-utilised": {"forward_served": "violated", "checkpoints_complete": "violated"},
        "forward-first-until-utilised": {
            "forward_served": "violated",
            "feedback_served": "violated",
            "checkpoints_complete": "violated",
        },
        "forward-first": {"feedback_served": "violated", "checkpoints_complete": "violated"},
        "strict-turns": {
            "forward_served": "violated",
            "feedback_served": "violated",
            "checkpoints_complete": "violated",
            "deadlock": "violated",
        },
        "aligned-barriers": {
            "forward_served": "violated",
            "feedback_served": "violated",
            "checkpoints_complete": "violated",
            "deadlock": "violated",
        },
        "one-too-many": {
            "channel.within_capacity": "violated",
            "back.within_capacity": "violated",
            "counted": "violated",
        },
        "spill-dropped": {
            "conserved": "violated",
            "counted": "violated",
            "back.in_order": "violated",
            "checkpoints_complete": "violated",
            "spills": "violated",
        },
        "spill-overtaken": {"back.in_order": "violated", "counted": "violated", "checkpoints_complete": "violated"},
        "barrier-overtakes": {"back.in_order": "violated", "counted": "violated"},
        "spill-newest-first": {"back.in_order": "violated", "checkpoints_complete": "violated"},
        "spill-read-twice": {"conserved": "violated", "counted": "violated", "back.in_order": "violated"},
        "spill-left-over": {"conserved": "violated", "counted_start": "violated", "counted": "violated"},
        "spill-forgotten": {
            "forward_served": "violated",
            "feedback_served": "violated",
            "checkpoints_complete": "violated",
        },
        "feedback-first-in-memory": {"forward_served": "violated", "checkpoints_complete": "violated"},
    },
    variant_parameters={  # the smallest that show what breaks
        "bounded": {"buffers": 1},
        "spill-left-over": {"buffers": 1, "records": 1},
        "bounded-unamplified": {"buffers": 1},
        "feedback-first": {"buffers": 1},
        "forward-first": {"buffers": 1},
        "strict-turns": {"buffers": 1},
        "aligned-barriers": {"buffers": 1},
        "one-too-many": {"buffers": 1},
        "spill-dropped": {"buffers": 1},
        "spill-overtaken": {"buffers": 1},
        "barrier-overtakes": {"buffers": 1},
        "spill-newest-first": {"buffers": 1},
        "spill-read-twice": {"buffers": 1},
        "spill-forgotten": {"buffers": 1},
        "feedback-first-in-memory": {"buffers": 1},
    },
    sweeps=Sweep(
        axes={
            "policy": POLICIES,
            "feedback": FEEDBACK,
            "buffers": (1, 2),
            "amplification": (1, 2),
            "records": range(2, 6),
        },
        properties=("conserved", "forward_served", "feedback_served", "unblocked", "checkpoints_complete", "deadlock"),
    ),
)
