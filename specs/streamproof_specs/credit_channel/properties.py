"""Properties of one channel of credit-based flow control, for every behaviour of its ends and its pool.

A record of real calls is accepted only if it satisfies the invariants: each accepted record is a behaviour of this
machine.
"""

from __future__ import annotations

from streamproof import Spec, invariant, step
from streamproof_models.credit_channel import (  # noqa: F401  (declaring a variant registers it)
    BarrierPasses,
    CreditChannel,
    DoubledCredit,
    Renumbered,
    Unpaid,
)
from streamproof_specs.credit_channel.calls import CALLS
from streamproof_specs.credit_channel.lemmas import LEMMAS, credit, data_in_flight


@invariant
def conserved(m, s):
    """Every free buffer of the consumer is one credit: available, on its way, unannounced, just gained, or spent."""
    restarts = m.exclusive == 0 and (s.blocking_event != "NONE" or s.is_blocked or s.resume_consumption_sent)
    return s.channel_released or restarts or m.available(s) == credit(m, s)


@invariant
def no_overflow(m, s):
    """There is a free buffer for every data message that is on its way."""
    return s.channel_released or data_in_flight(m, s) <= m.available(s)


@invariant
def nothing_behind_a_barrier(m, s):
    """Only priority events follow a blocking event until the consumer has taken it."""
    follows = any(x.message != "BufferResponse" or x.data_type in m.data for x in s.responses)
    return s.received_blocking_event is None or not follows


@step
def numbered(m, s, t):
    """Sequence numbers increase on both ends, the consumer's never beyond the producer's."""
    increase = t.sequence_number >= s.sequence_number and t.expected_sequence_number >= s.expected_sequence_number
    return increase and t.expected_sequence_number <= t.sequence_number


UNSEEN = (
    "cancelled_by_consumer",
    "floating_as_required",
    "handled_once",
    "nothing_before_it_opens",
    "required_for_backlog",
    "sent_while_readable",
)
"""What traces of messages alone do not show: the backlog, the pool and the release are not recorded."""

SPEC = Spec(
    CreditChannel,
    properties=(conserved, no_overflow, nothing_behind_a_barrier, numbered, *CALLS, *LEMMAS),
    expected={
        "doubled-credit": {"conserved": "violated", "no_overflow": "violated"},
        "unpaid": {"conserved": "violated", "no_overflow": "violated"},
        "barrier-passes": {"nothing_behind_a_barrier": "violated", "stopped_by_a_barrier": "violated"},
        "renumbered": {"numbered": "violated"},
        "flink": {"cancelled_by_consumer": "violated"},
        "outlined": dict.fromkeys(UNSEEN, "violated"),
    },
)
