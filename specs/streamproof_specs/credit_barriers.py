"""What must hold of flow control with barriers: what holds without, and a barrier keeps its place and stops its sender."""

from __future__ import annotations

from typing import Any

from streamproof import Spec, invariant, leads_to, step, temporal
from streamproof_models.credit_barriers import (  # noqa: F401  (declaring a variant registers it)
    Aligned,
    BarrierCostsCredit,
    BarrierOvertakes,
    CreditBarriers,
    KeepsWhileStopped,
    NoExclusive,
    NotForgotten,
    NotStopped,
)
from streamproof_specs.credit import SPEC as FLOW


@invariant
def in_order(m: CreditBarriers, s: Any) -> Any:
    """A barrier is read when everything that was produced before it has been read."""
    return all(s.barrier[c].place != "READ" or s.barrier[c].older == 0 for c in range(m.channels))


@invariant
def nothing_after(m: CreditBarriers, s: Any) -> Any:
    """While a checkpoint is taken behind a barrier, nothing of what came after it has reached the receiver."""
    return all(s.barrier[c].place != "READ" or s.flow.wire[c] + s.flow.queued[c] == 0 for c in range(m.channels))


@invariant
def accounted(m: CreditBarriers, s: Any) -> Any:
    """A channel's buffers are credits, announced or not, but for void ones, and what is on the wire and queued."""
    return all(
        s.flow.credit[c]
        + s.flow.announced[c]
        + s.flow.wire[c]
        + s.flow.queued[c]
        + s.flow.unannounced[c]
        - m.void(s, c)
        == m.exclusive + s.flow.lent[c]
        for c in range(m.channels)
    )


@step
def free_of_charge(m: CreditBarriers, s: Any, t: Any) -> Any:
    """Sending a barrier costs no credit."""
    return all(
        s.barrier[c].place != "BACKLOG" or t.barrier[c].place != "WIRE" or t.flow.credit[c] == s.flow.credit[c]
        for c in range(m.channels)
    )


@temporal
def checkpointed(m: CreditBarriers, s: Any) -> Any:
    """While all consumers read, every barrier is read in the end and its sender resumed."""
    return all(
        leads_to(pending(m, s, c), not m.flow.all_read(s.flow) or not pending(m, s, c)) for c in range(m.channels)
    )


@temporal
def barrier_isolation(m: CreditBarriers, s: Any) -> Any:
    """A consumer that reads gets every barrier and resumes its sender in the end, whatever the others do."""
    return all(
        leads_to(pending(m, s, c), s.flow.consumer[c] != "LIVE" or not pending(m, s, c)) for c in range(m.channels)
    )


def pending(m: CreditBarriers, s: Any, c: int) -> Any:
    """Whether a barrier of a channel is under way."""
    return s.barrier[c].place != "NONE" or s.barrier[c].resuming


SPEC = Spec(
    CreditBarriers,
    properties=(in_order, nothing_after, accounted, free_of_charge, checkpointed, barrier_isolation),
    carries={"flow": FLOW},
    expected={
        "barrier-overtakes": {"in_order": "violated"},
        "barrier-costs-credit": {
            "free_of_charge": "violated",
            "accounted": "violated",
            "flow.conservation": "violated",
            "flow.isolation": "violated",
        },
        "not-stopped": {"nothing_after": "violated"},
        "aligned": {"barrier_isolation": "violated", "flow.isolation": "violated"},
        "zero-exclusive": {
            "barrier_isolation": "violated",
            "flow.isolation": "violated",
            "flow.conservation": "violated",
        },
        "zero-exclusive-keeping": {
            "checkpointed": "violated",
            "barrier_isolation": "violated",
            "flow.consumed": "violated",
            "flow.isolation": "violated",
            "flow.returned": "violated",
        },
        "zero-exclusive-no-reset": {
            "accounted": "violated",
            "barrier_isolation": "violated",
            "flow.no_overflow": "violated",
            "flow.conservation": "violated",
            "flow.consumed": "violated",
            "flow.isolation": "violated",
        },
    },
)
