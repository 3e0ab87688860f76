"""What must hold of one channel of credit-based flow control, whatever its ends and its pool do.

The invariants are those that a record of real calls is accepted by only if they hold of it: each accepted record is a
behaviour of this machine.
"""

from __future__ import annotations

from typing import Any

from streamproof import Spec, invariant, step
from streamproof_models.credit_channel import (  # noqa: F401  (declaring a variant registers it)
    BarrierPasses,
    CreditChannel,
    DoubledCredit,
    Unpaid,
)


def settled(m: CreditChannel, s: Any) -> Any:
    """Whether credit is counted: not while a channel without exclusive buffers begins again at zero."""
    return not s.released and (m.exclusive > 0 or (s.stop == "NO" and not s.blocked and not s.resuming))


def in_flight(m: CreditChannel, s: Any) -> Any:
    """Data messages that are on their way and have not taken their buffer."""
    sent = sum(int(x.what == "BUFFER" and x.kind in m.data) for x in s.down)
    return sent - int(s.holding)


@invariant
def conserved(m: CreditChannel, s: Any) -> Any:
    """Every free buffer of the consumer is one credit: left, under way, not announced, not counted yet, or spent."""
    left = s.credits if s.opened else (m.exclusive if s.ready else 0)
    owed = sum(0 if x is None else x for x in s.owed)
    credit = left + sum(s.up) + s.unannounced + owed + in_flight(m, s)
    return not settled(m, s) or s.free + s.borrowed == credit


@invariant
def no_overflow(m: CreditChannel, s: Any) -> Any:
    """There is a free buffer for every data message that is on its way."""
    return s.released or in_flight(m, s) <= s.free + s.borrowed


@invariant
def nothing_behind_a_barrier(m: CreditChannel, s: Any) -> Any:
    """Nothing but what is urgent follows a blocking event until the consumer has taken it."""
    return s.barrier is None or all(x.what == "BUFFER" and x.kind not in m.data for x in s.down)


@step
def numbered(m: CreditChannel, s: Any, t: Any) -> Any:
    """Numbers go up on both ends, the consumer's never beyond the producer's."""
    return t.sent >= s.sent and t.expected >= s.expected and t.expected <= t.sent


SPEC = Spec(
    CreditChannel,
    properties=(conserved, no_overflow, nothing_behind_a_barrier, numbered),
    expected={
        "doubled-credit": {"conserved": "violated", "no_overflow": "violated"},
        "unpaid": {"conserved": "violated", "no_overflow": "violated"},
        "barrier-passes": {"nothing_behind_a_barrier": "violated"},
    },
)
