"""Properties of one channel of credit-based flow control, for every behaviour of its ends and its pool.

A record of real calls is accepted only if it satisfies the invariants: each accepted record is a behaviour of this
machine.
"""

from __future__ import annotations

from streamproof import Spec, invariant, lemma, step
from streamproof_models.credit_channel import (  # noqa: F401  (declaring a variant registers it)
    URGENT,
    BarrierPasses,
    CreditChannel,
    DoubledCredit,
    Unpaid,
)


def settled(m, s):
    """Whether credit is counted: not while a channel without exclusive buffers restarts at zero."""
    return not s.released and (m.exclusive > 0 or (s.stop == "NO" and not s.blocked and not s.resuming))


def in_flight(m, s):
    """Data messages that are on their way and have not taken their buffer."""
    sent = sum(int(x.what == "BUFFER" and x.kind in m.data) for x in s.down)
    return sent - int(s.holding)


@invariant
def conserved(m, s):
    """Every free buffer of the consumer is one credit: left, on its way, unannounced, not counted yet, or spent."""
    left = s.credits if s.opened else (m.exclusive if s.ready else 0)
    owed = sum(0 if x is None else x for x in s.owed)
    credit = left + sum(s.up) + s.unannounced + owed + in_flight(m, s)
    return not settled(m, s) or s.free + s.borrowed == credit


@invariant
def no_overflow(m, s):
    """There is a free buffer for every data message that is on its way."""
    return s.released or in_flight(m, s) <= s.free + s.borrowed


@invariant
def nothing_behind_a_barrier(m, s):
    """Only urgent messages follow a blocking event until the consumer has taken it."""
    return s.barrier is None or all(x.what == "BUFFER" and x.kind not in m.data for x in s.down)


@step
def numbered(m, s, t):
    """Numbers go up on both ends, the consumer's never beyond the producer's."""
    return t.sent >= s.sent and t.expected >= s.expected and t.expected <= t.sent


def left(s):
    """Numbers that are on their way."""
    return sum(x.pieces if x.what == "BUFFER" else 0 for x in s.down) - s.piece


def promised(s):
    """Credits that the producer does not know of."""
    return sum(s.up) + s.unannounced + sum(0 if x is None else x for x in s.owed)


@lemma
def nothing_before_it_opens(m, s):
    """Before the subpartition is open nothing is sent, received or gained; exclusive buffers precede the request."""
    idle = s.sent == 0 and len(s.down) == 0 and len(s.up) == 0 and s.piece == 0 and s.filled == 0
    idle = idle and s.credits == 0 and not s.blocked and s.stated is None and s.unannounced == 0
    idle = idle and s.borrowed == 0 and not s.waiting and s.used == 0 and len(s.inbox) == 0 and len(s.first) == 0
    idle = idle and s.stop == "NO" and s.barrier is None and all(x is None for x in s.owed)
    idle = idle and not s.holding and not s.own and not s.resuming and s.expected == 0
    return (s.opened or idle) and (s.ready or (s.free == 0 and s.requests == 0 and not s.opened))


@lemma
def asked_for_once(m, s):
    """The subpartition is requested once."""
    return s.requests + int(s.opened) <= 1


@lemma
def queued_are_counted(m, s):
    """The producer's messages are queued, sent or dropped, and at most one is sent in part."""
    data = sum(int(x in m.data) for x in s.queue)
    queued = len(s.queue) + len(s.urgent)
    made = s.sent + queued <= s.made + 1 and queued <= s.made and s.sent <= 2 * s.made and s.made <= m.produced
    return data <= s.stock and s.stock <= s.made and (not m.pipelined or made)


@lemma
def made_one_by_one(m, s):
    """Every blocking event that waits, is on its way or has arrived was produced; data messages were produced besides."""
    under_way = sum(int(x.what == "BUFFER" and x.kind in m.blocking) for x in s.down)
    events = sum(int(x in m.blocking) for x in s.queue) + under_way + int(s.barrier is not None)
    data = any(x in m.data for x in s.queue) or any(x.what == "BUFFER" and x.kind in m.data for x in s.down)
    return not m.pipelined or events + int(data) <= s.made


@lemma
def whole_messages(m, s):
    """Without a stored partition each message is one buffer, and is received completely at once."""
    return not m.pipelined or (s.piece == 0 and s.filled == 0 and all(x.pieces == 1 for x in s.down))


@lemma
def backlogs_in_buffers(m, s):
    """A backlog is announced separately only if the channel has no exclusive buffers."""
    return m.exclusive == 0 or all(x.what == "BUFFER" for x in s.down)


@lemma
def numbers_conserved(m, s):
    """Every number that was sent has been received or is on its way, or was discarded."""
    return s.expected <= s.sent - left(s) and (s.released or s.expected == s.sent - left(s))


@lemma
def received_are_numbered(m, s):
    """Every message received and not taken has a number."""
    return len(s.inbox) + len(s.first) + int(s.barrier is not None) <= s.expected


@lemma
def held_for_data(m, s):
    """A buffer is reserved for the next message only, which is a data message."""
    fits = not s.holding or (len(s.down) > 0 and s.down.head.what == "BUFFER" and s.down.head.kind in m.data)
    return fits and (s.holding or not s.own)


@lemma
def exclusive_buffers_counted(m, s):
    """The number of exclusive buffers, free, reserved, received or used, is exact, and that of floating ones bounded."""
    received = sum(int(x.own) for x in s.inbox)
    return s.free + s.used + int(s.own) + received <= m.exclusive and s.borrowed <= m.floating


@lemma
def requirement_bounded(m, s):
    """The required number of buffers decreases by one with each data message that takes a buffer."""
    return s.required + s.sent - left(s) + int(s.holding) >= 0


@lemma
def credits_bounded(m, s):
    """Credits known, on their way, or unannounced are at most the number of buffers for them."""
    known = s.credits if s.opened else (m.exclusive if s.ready else 0)
    credit = known + promised(s) + in_flight(m, s)
    return m.exclusive == 0 or credit <= (m.exclusive + m.floating if s.released else s.free + s.borrowed)


@lemma
def initial_credit_paid_with(m, s):
    """The initial credit is left, or a message was sent for it."""
    return not s.opened or m.exclusive == 0 or s.credits + s.sent >= m.exclusive


@lemma
def unpaid_bounded(m, s):
    """If a message was sent without credit, it was sent when the initial credit was spent."""
    known = s.credits if s.opened else (m.exclusive if s.ready else 0)
    credit = known + promised(s) + in_flight(m, s)
    unpaid = s.sent - min(s.sent, m.exclusive)
    return m.exclusive == 0 or credit <= unpaid + (m.exclusive + m.floating if s.released else s.free + s.borrowed)


@lemma
def promises_bounded(m, s):
    """A credit is announced for a floating buffer, or for one taken by an earlier message."""
    taken = s.sent - left(s) + int(s.holding)
    given = promised(s) + (m.exclusive if s.ready else 0)
    return m.exclusive == 0 or given <= taken + (m.exclusive + m.floating if s.released else s.free + s.borrowed)


@lemma
def nothing_gained_at_first(m, s):
    """Until a message is received there are the initial credits, data on their way or to come, and their buffers."""
    none = promised(s) == 0 and not s.waiting and s.used == 0 and s.stated is None
    under_way = in_flight(m, s) + int(s.holding)
    known = s.credits if s.opened else 0
    spent = known + under_way <= m.exclusive and (not s.ready or s.free + s.borrowed + int(s.holding) >= m.exclusive)
    return s.expected > 0 or s.released or m.exclusive == 0 or (none and spent)


@lemma
def credit_for_the_last(m, s):
    """While a message may follow and none is on its way, there is no credit without a buffer."""
    follows = s.sent <= s.made and left(s) == 0 and not s.released and m.exclusive > 0
    return not follows or not s.opened or s.credits + promised(s) == 0 or s.free + s.borrowed > 0


@lemma
def data_hold_something(m, s):
    """If channels have exclusive buffers, no data message is empty, unless it was stored."""
    sizes = all(x.what != "BUFFER" or x.kind not in m.data or x.size > 0 for x in s.down)
    return not m.pipelined or m.exclusive == 0 or sizes


@lemma
def stopped_by_a_barrier(m, s):
    """The producer is blocked while one blocking event is on its way or handled, and until it is resumed."""
    under_way = sum(int(x.what == "BUFFER" and x.kind in m.blocking) for x in s.down)
    return under_way + int(s.stop in ("HERE", "HANDLED")) + int(s.resuming) <= int(s.blocked)


@lemma
def nothing_overtakes_a_barrier(m, s):
    """Only urgent messages are behind a blocking event on its way, and no others are on their way while one is handled."""
    handled = s.stop in ("HERE", "HANDLED") or s.resuming
    return all(
        k >= len(s.down)
        or s.down[k].kind not in (*m.data, *m.blocking)
        or (not handled and all(s.down[j].what != "BUFFER" or s.down[j].kind not in m.blocking for j in range(k)))
        for k in range((m.produced + 1) * 3)
    )


@lemma
def stops_in_order(m, s):
    """A blocking event that has arrived is kept until it is handled; only a channel without exclusive buffers drains."""
    return (s.barrier is None or s.stop == "HERE") and (m.exclusive == 0 or s.stop != "COMING" or s.drained)


@lemma
def urgent_apart(m, s):
    """Urgent events have a separate queue."""
    return all(x not in (*m.data, *m.blocking) for x in s.urgent) and (
        URGENT not in m.kinds or all(x != URGENT for x in s.queue)
    )


@lemma
def resumed_behind_credits(m, s):
    """Messages for the producer before it is resumed are on their way."""
    return s.ahead <= len(s.up)


LEMMAS = (
    nothing_before_it_opens,
    asked_for_once,
    queued_are_counted,
    made_one_by_one,
    whole_messages,
    backlogs_in_buffers,
    numbers_conserved,
    received_are_numbered,
    held_for_data,
    exclusive_buffers_counted,
    requirement_bounded,
    credits_bounded,
    initial_credit_paid_with,
    unpaid_bounded,
    promises_bounded,
    nothing_gained_at_first,
    credit_for_the_last,
    data_hold_something,
    stopped_by_a_barrier,
    nothing_overtakes_a_barrier,
    stops_in_order,
    urgent_apart,
    resumed_behind_credits,
)
"""Lemmas: auxiliary invariants for the induction."""


SPEC = Spec(
    CreditChannel,
    properties=(conserved, no_overflow, nothing_behind_a_barrier, numbered, *LEMMAS),
    expected={
        "doubled-credit": {"conserved": "violated", "no_overflow": "violated"},
        "unpaid": {"conserved": "violated", "no_overflow": "violated"},
        "barrier-passes": {"nothing_behind_a_barrier": "violated"},
    },
)
