"""Auxiliary invariants of one channel of credit-based flow control, for proofs by induction."""

from __future__ import annotations

from streamproof import invariant, lemma
from streamproof_models.credit_channel import PRIORITY, TIMEOUTABLE


def is_data(m, x):
    """Whether a message on its way contains data."""
    return x.message == "BufferResponse" and x.data_type in m.data


def is_blocking(m, x):
    """Whether a message on its way is a blocking event."""
    return x.message == "BufferResponse" and x.data_type in m.blocking


def blocking_in_flight(m, s):
    """Number of blocking events that are on their way."""
    return sum(int(is_blocking(m, x)) for x in s.responses)


def data_in_flight(m, s):
    """Number of data messages that are on their way and have not taken their buffer."""
    return sum(int(is_data(m, x)) for x in s.responses) - int(s.buffer_requested)


def numbers_in_flight(s):
    """Number of sequence numbers that are on their way."""
    sent = sum(x.partial_buffers if x.message == "BufferResponse" else 0 for x in s.responses)
    return sent - s.partial_buffers_received


def promised(s):
    """Number of credits that the producer does not know of."""
    gained = sum(0 if x is None else x for x in s.credit_gained)
    return sum(s.add_credits) + s.unannounced_credit + gained


def credit(m, s):
    """Number of credits: available, promised, or spent for data that are on their way."""
    initial = m.exclusive if s.exclusive_requested else 0
    available = s.num_credits_available if s.reader_created else initial
    return available + promised(s) + data_in_flight(m, s)


def buffers(m, s):
    """Number of free buffers; of a released channel, of all its buffers."""
    return m.exclusive + m.floating if s.channel_released else m.available(s)


@invariant
def nothing_before_it_opens(m, s):
    """Before the reader has its view nothing is sent, received or gained; exclusive buffers precede the request."""
    sends = s.sequence_number == 0 and not s.is_blocked and (s.reader_created or s.num_credits_available == 0)
    travels = len(s.responses) == 0 and len(s.add_credits) == 0 and not s.resume_consumption_sent
    receives = s.expected_sequence_number == 0 and s.partial_buffers_received == 0 and s.bytes_received == 0
    queues = len(s.received_buffers) == 0 and len(s.received_priority_buffers) == 0
    blocks = s.blocking_event == "NONE" and s.received_blocking_event is None and s.sender_backlog is None
    gains = s.floating_buffers == 0 and s.unannounced_credit == 0 and all(x is None for x in s.credit_gained)
    waits = not s.is_waiting_for_floating_buffers and not s.buffer_requested and not s.requested_exclusive
    idle = sends and travels and receives and queues and blocks and gains and waits and s.exclusive_in_use == 0
    requested = s.exclusive_buffers > 0 or s.partition_requests > 0 or s.reader_created
    opened = s.in_all_readers or s.reader_released
    return (opened or idle) and (s.reader_created or not opened) and (s.exclusive_requested or not requested)


@invariant
def requested_once(m, s):
    """The subpartition is requested once."""
    return s.partition_requests + int(s.reader_created) <= 1


@lemma
def queued_are_counted(m, s):
    """The producer's buffers are queued, sent or dropped, and at most one is sent in part."""
    data = sum(int(x in m.data) for x in s.buffers)
    queued, made = len(s.buffers) + len(s.priority_buffers), s.total_number_of_buffers
    sent = s.sequence_number + queued <= made + 1 and s.sequence_number <= 2 * made
    counted = sent and queued <= made and made <= m.produced
    return data <= s.buffers_in_backlog and s.buffers_in_backlog <= made and (not m.pipelined or counted)


@lemma
def made_one_by_one(m, s):
    """Every blocking event that is queued, on its way or received was added; data were added besides."""
    queued = sum(int(x in m.blocking) for x in s.buffers)
    events = queued + blocking_in_flight(m, s) + int(s.received_blocking_event is not None)
    data = any(x in m.data for x in s.buffers) or any(is_data(m, x) for x in s.responses)
    return not m.pipelined or events + int(data) <= s.total_number_of_buffers


@invariant
def whole_messages(m, s):
    """Each message of a pipelined partition is one buffer, and is received completely at once."""
    whole = s.partial_buffers_received == 0 and s.bytes_received == 0
    return not m.pipelined or (whole and all(x.partial_buffers == 1 for x in s.responses))


@lemma
def backlogs_in_buffers(m, s):
    """A backlog is announced separately only if the channel has no exclusive buffers."""
    return m.exclusive == 0 or all(x.message == "BufferResponse" for x in s.responses)


@invariant
def numbers_conserved(m, s):
    """Every number that was sent has been received or is on its way, or was discarded."""
    arrived = s.sequence_number - numbers_in_flight(s)
    return s.expected_sequence_number <= arrived and (s.channel_released or s.expected_sequence_number == arrived)


@lemma
def received_are_numbered(m, s):
    """Every message received and not taken has a number; the announcement of a barrier has that of the barrier."""
    ordered = len(s.received_buffers) + int(s.received_blocking_event is not None)
    urgent, received = len(s.received_priority_buffers), s.expected_sequence_number
    alone = TIMEOUTABLE in m.data_types or ordered + urgent <= received
    return alone and ordered <= received and urgent <= received


@invariant
def requested_for_data(m, s):
    """A buffer is requested for the next message only, which is a data message."""
    fits = not s.buffer_requested or (len(s.responses) > 0 and is_data(m, s.responses.head))
    return fits and (s.buffer_requested or not s.requested_exclusive)


@lemma
def exclusive_buffers_counted(m, s):
    """The number of exclusive buffers, free, requested, received or used, is exact, and that of floating ones bounded."""
    received = sum(int(x.exclusive) for x in s.received_buffers)
    exclusive = s.exclusive_buffers + s.exclusive_in_use + int(s.requested_exclusive) + received
    return exclusive <= m.exclusive and s.floating_buffers <= m.floating


@lemma
def requirement_bounded(m, s):
    """The required number of buffers decreases by one with each data message that takes a buffer."""
    return s.num_required_buffers + s.sequence_number - numbers_in_flight(s) + int(s.buffer_requested) >= 0


@lemma
def credits_bounded(m, s):
    """Credits are at most the number of buffers for them."""
    return m.exclusive == 0 or credit(m, s) <= buffers(m, s)


@lemma
def initial_credit_paid_with(m, s):
    """The initial credit is left, or a message was sent for it."""
    return not s.reader_created or m.exclusive == 0 or s.num_credits_available + s.sequence_number >= m.exclusive


@lemma
def unpaid_bounded(m, s):
    """If a message was sent without credit, it was sent when the initial credit was spent."""
    unpaid = s.sequence_number - min(s.sequence_number, m.exclusive)
    return m.exclusive == 0 or credit(m, s) <= unpaid + buffers(m, s)


@lemma
def promises_bounded(m, s):
    """A credit is announced for a floating buffer, or for one taken by an earlier message."""
    taken = s.sequence_number - numbers_in_flight(s) + int(s.buffer_requested)
    given = promised(s) + (m.exclusive if s.exclusive_requested else 0)
    return m.exclusive == 0 or given <= taken + buffers(m, s)


@lemma
def nothing_gained_at_first(m, s):
    """Until a message is received there are the initial credits, data on their way or to come, and their buffers."""
    waits = s.is_waiting_for_floating_buffers or s.sender_backlog is not None
    none = promised(s) == 0 and s.exclusive_in_use == 0 and not waits
    under_way = data_in_flight(m, s) + int(s.buffer_requested)
    available = s.num_credits_available if s.reader_created else 0
    kept = not s.exclusive_requested or m.available(s) + int(s.buffer_requested) >= m.exclusive
    first = s.expected_sequence_number == 0 and not s.channel_released and m.exclusive > 0
    return not first or (none and available + under_way <= m.exclusive and kept)


@lemma
def credit_for_the_last(m, s):
    """While a message may follow and none is on its way, there is no credit without a buffer."""
    follows = s.sequence_number <= s.total_number_of_buffers and numbers_in_flight(s) == 0
    none = not s.reader_created or s.num_credits_available + promised(s) == 0
    return not follows or s.channel_released or m.exclusive == 0 or none or m.available(s) > 0


@lemma
def data_are_not_empty(m, s):
    """If the channel has exclusive buffers, no data of a pipelined partition are empty."""
    return not m.pipelined or m.exclusive == 0 or all(not is_data(m, x) or x.size > 0 for x in s.responses)


@invariant
def stopped_by_a_barrier(m, s):
    """The subpartition is blocked while one blocking event is on its way or handled, and until it is resumed."""
    handled = int(s.blocking_event in ("RECEIVED", "POLLED")) + int(s.resume_consumption_sent)
    return blocking_in_flight(m, s) + handled <= int(s.is_blocked)


@lemma
def nothing_overtakes_a_barrier(m, s):
    """Only priority events are behind a blocking event on its way, and no others are on their way while one is handled."""
    handled = s.blocking_event in ("RECEIVED", "POLLED") or s.resume_consumption_sent
    return all(
        k >= len(s.responses)
        or s.responses[k].data_type not in (*m.data, *m.blocking)
        or (not handled and not any(is_blocking(m, s.responses[j]) for j in range(k)))
        for k in range((m.produced + 1) * 3)
    )


@invariant
def blocked_in_order(m, s):
    """A blocking event that was received is kept until it is polled; only channels without exclusive buffers release."""
    received = s.received_blocking_event is None or s.blocking_event == "RECEIVED"
    return received and (m.exclusive == 0 or s.blocking_event != "ARRIVING" or s.floating_released)


@lemma
def priority_apart(m, s):
    """Priority events are queued apart."""
    alone = all(x not in (*m.data, *m.blocking) for x in s.priority_buffers)
    return alone and (PRIORITY not in m.data_types or all(x != PRIORITY for x in s.buffers))


@invariant
def resumed_behind_credits(m, s):
    """The AddCredits before ResumeConsumption are on their way."""
    return s.add_credits_before_resume <= len(s.add_credits)


LEMMAS = (
    nothing_before_it_opens,
    requested_once,
    queued_are_counted,
    made_one_by_one,
    whole_messages,
    backlogs_in_buffers,
    numbers_conserved,
    received_are_numbered,
    requested_for_data,
    exclusive_buffers_counted,
    requirement_bounded,
    credits_bounded,
    initial_credit_paid_with,
    unpaid_bounded,
    promises_bounded,
    nothing_gained_at_first,
    credit_for_the_last,
    data_are_not_empty,
    stopped_by_a_barrier,
    nothing_overtakes_a_barrier,
    blocked_in_order,
    priority_apart,
    resumed_behind_credits,
)
"""Lemmas: auxiliary invariants for the induction."""
