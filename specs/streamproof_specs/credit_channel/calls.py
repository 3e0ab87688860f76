"""What a call of each end may change, and what must follow: step properties and progress of one channel."""

from __future__ import annotations

from streamproof import invariant, leads_to, reachable, step, temporal
from streamproof_specs.credit_channel.lemmas import is_data, promised


def sends(s, t):
    """Whether the step sends a buffer or an event."""
    return t.sequence_number > s.sequence_number


def receives(s, t):
    """Whether the step receives a buffer or an event, or a part of one."""
    return t.expected_sequence_number > s.expected_sequence_number


def takes_buffer(s, t):
    """Whether the step takes a receive buffer for the data that arrive."""
    return t.buffer_requested and not s.buffer_requested


def arrives_blocking(s, t):
    """Whether the step begins to receive a blocking event."""
    return t.blocking_event == "ARRIVING" and s.blocking_event != "ARRIVING"


def queued(s):
    """Number of buffers and events of the subpartition that are not sent."""
    return len(s.buffers) + len(s.priority_buffers)


def ended(s):
    """Whether the subpartition, its reader or the channel is released, or the reader cancelled."""
    return s.reader_released or s.subpartition_released or s.channel_released or s.cancel_requests > 0


# --- the producer


@invariant
def backlog_counted(m, s):
    """The backlog is the number of data buffers that are queued; a released subpartition has none queued."""
    data = sum(int(x in m.data) for x in s.buffers)
    return queued(s) == 0 if s.subpartition_released else s.buffers_in_backlog == data


@step
def queued_or_sent(m, s, t):
    """Each buffer of a pipelined subpartition is added at once and alone, and leaves the queue to be sent, or as an empty
    one, or with the partition, which is released with what it has."""
    added = t.total_number_of_buffers - s.total_number_of_buffers
    gone = t.subpartition_released and not s.subpartition_released
    kept = queued(t) == queued(s) + added or sends(s, t) or gone
    taken = added == 0 or (added == 1 and not s.is_finished and not s.subpartition_released)
    return not m.pipelined or (taken and kept and (not gone or queued(s) > 0))


@step
def sent_while_readable(m, s, t):
    """Only a reader with a view sends, or one that a cancellation left in the queue of available readers, and never a
    blocked subpartition. It stays available only if there is more to send."""
    late = s.reader_released and s.cancel_requests > 0
    may = s.reader_created and (s.in_all_readers or late) and not s.is_blocked
    turn = s.in_available_readers or not s.is_registered_as_available
    more = not m.pipelined or (queued(t) > 0 and not t.is_blocked)
    again = t.in_available_readers == t.is_registered_as_available and (not t.in_available_readers or more)
    return not sends(s, t) or (may and turn and again)


@step
def told_backlog(m, s, t):
    """A message tells the backlog of what is queued behind it, perhaps without the last buffer, to which the task writes."""
    grew = len(t.responses) > len(s.responses)
    return not grew or not m.pipelined or is_backlog(m, t, t.responses[len(t.responses) - 1].backlog)


def is_backlog(m, t, last):
    """Whether a message may have told this backlog."""
    unfinished = len(t.buffers) > 0 and t.buffers[len(t.buffers) - 1] in m.data
    exact = last == t.buffers_in_backlog or (unfinished and last == t.buffers_in_backlog - 1)
    return last == 0 if t.is_blocked or len(t.buffers) == 0 else exact


@step
def lives_once(m, s, t):
    """A reader is known while it has a view of a partition that is not released, and is released once, out of both lists."""
    opened = (
        s.in_all_readers
        or not t.in_all_readers
        or (s.reader_created and not s.reader_released and not s.subpartition_released)
    )
    closed = t.in_all_readers or not s.in_all_readers or t.reader_released
    left = s.in_all_readers and not (t.in_all_readers or t.in_available_readers or t.is_registered_as_available)
    return opened and closed and (t.reader_released == s.reader_released or (t.reader_released and left))


@step
def cancelled_one_by_one(m, s, t):
    """Each request to cancel is counted, and takes the reader from the queue of available readers."""
    one = t.cancel_requests == s.cancel_requests + 1 and not t.in_available_readers
    return t.cancel_requests == s.cancel_requests or one


@step
def cancelled_by_consumer(m, s, t):
    """A request to cancel comes from a released channel, to a reader that was requested."""
    return t.cancel_requests == s.cancel_requests or (s.reader_created and s.channel_released)


@step
def unblocked_by_consumer(m, s, t):
    """Messages of the consumer are for a reader with a view: credit, and, behind the credits sent before it, the message
    that unblocks the subpartition."""
    credit = t.num_credits_available <= s.num_credits_available or s.in_all_readers or not s.reader_created
    resumed = s.in_all_readers and s.resume_consumption_sent and s.add_credits_before_resume == 0
    return credit and (not s.is_blocked or t.is_blocked or resumed)


# --- the consumer


@invariant
def exclusive_conserved(m, s):
    """Each exclusive buffer is free, taken for the data that arrive, received, or used by the task."""
    received = sum(int(x.exclusive) for x in s.received_buffers)
    count = s.exclusive_buffers + s.exclusive_in_use + int(s.requested_exclusive) + received
    whole = s.channel_released or not m.pipelined or count == (m.exclusive if s.exclusive_requested else 0)
    return whole and count <= m.exclusive


@invariant
def pool_limits(m, s):
    """The pool grants no more floating buffers than it has."""
    return s.floating_buffers <= m.floating


@invariant
def waits_for_missing(m, s):
    """A channel with fewer buffers than it requires waits for floating ones."""
    return s.channel_released or s.num_required_buffers <= m.available(s) or s.is_waiting_for_floating_buffers


@step
def required_for_backlog(m, s, t):
    """A backlog requires as many buffers and the exclusive ones; data that take a buffer require one less. Only a channel
    without exclusive buffers requires none when it is blocked."""
    handled = s.sender_backlog is not None and t.sender_backlog is None and not s.channel_released
    released = m.exclusive == 0 and t.floating_released and not s.floating_released
    if handled:
        return t.num_required_buffers == s.sender_backlog + m.exclusive
    return t.num_required_buffers == (0 if released else s.num_required_buffers - int(takes_buffer(s, t)))


@step
def handled_once(m, s, t):
    """A backlog is noted and handled once, before the next message is received."""
    new = t.sender_backlog is not None and s.sender_backlog is None
    done = t.sender_backlog is None and s.sender_backlog is not None
    noted = not t.backlog_noted or t.sender_backlog is not None
    alone = t.sender_backlog is None or s.sender_backlog is None or t.sender_backlog == s.sender_backlog
    announced = new and len(s.responses) > 0 and s.responses.head.message == "BacklogAnnouncement"
    return noted and alone and (not done or s.backlog_noted) and (not new or t.backlog_noted == announced)


@step
def floating_as_required(m, s, t):
    """Floating buffers are requested up to the required number, by a channel that is not released, which waits if it has
    got fewer."""
    gained = t.floating_buffers > s.floating_buffers
    missing = m.available(t) < t.num_required_buffers
    as_required = m.available(t) <= t.num_required_buffers and t.is_waiting_for_floating_buffers == missing
    return not gained or (not s.channel_released and as_required)


@step
def buffer_for_data(m, s, t):
    """Data that arrive take one free buffer, and have none only in a released channel. Else free buffers leave as surplus,
    all at once with the channel, or, without exclusive buffers, before a barrier."""
    free, left = m.available(s), m.available(t)
    taken = left == free - 1 if free > 0 else left == 0 and s.channel_released
    surplus = left == free and t.exclusive_buffers == s.exclusive_buffers + 1
    all_released = t.buffers_released and not s.buffers_released
    before_barrier = m.exclusive == 0 and t.floating_released and not s.floating_released
    kept = t.floating_buffers >= s.floating_buffers and t.exclusive_buffers >= s.exclusive_buffers
    return taken if takes_buffer(s, t) else kept or surplus or all_released or before_barrier


@step
def exclusive_returned(m, s, t):
    """An exclusive buffer that data have taken is free again when they are used, or are empty; or it is dropped with them."""
    free = t.exclusive_buffers == s.exclusive_buffers + 1 or (t.buffers_released and not s.buffers_released)
    used = t.exclusive_in_use >= s.exclusive_in_use or free
    kept = t.requested_exclusive or not s.requested_exclusive or s.channel_released
    return used and (kept or receives(s, t) or s.responses.head.size == 0)


@invariant
def flags_in_order(m, s):
    """A reader becomes available when it has sent something, only a released channel returns all its buffers, and a blocking
    event arrives at the head of the messages."""
    arrives = s.blocking_event != "ARRIVING" or s.channel_released or s.responses.head.data_type in m.blocking
    begun = s.sequence_number > 0 or not (s.in_available_readers or s.floating_released)
    return arrives and begun and (s.channel_released or not s.buffers_released)


@step
def one_message_at_a_time(m, s, t):
    """The network thread begins with a message when its calls for the message before are finished."""
    begins = takes_buffer(s, t) or arrives_blocking(s, t) or receives(s, t)
    return not begins or (s.sender_backlog is None and s.credit_gained[0] is None)


@step
def received_as_sent(m, s, t):
    """A channel that is not released receives what was sent: type, number and size. A message without data is dropped. The
    last part of a message brings the backlog."""
    return not receives(s, t) or (not s.channel_released and is_received(m, s, t, s.responses.head))


def is_received(m, s, t, message):
    """Whether a message, or a part of it, was queued, or is empty, and has brought its backlog if it is whole."""
    backlog = len(t.responses) == len(s.responses) or t.sender_backlog == message.backlog
    return backlog and (is_queued(m, s, t, message) or (message.size == 0 and is_data(m, message)))


def is_queued(m, s, t, message):
    """Whether a message, or a part of it, was queued."""
    if message.data_type in m.blocking:
        return t.received_blocking_event is not None and t.received_blocking_event.data_type == message.data_type
    if message.data_type in m.priority:
        return len(t.received_priority_buffers) == len(s.received_priority_buffers) + 1
    added = len(t.received_buffers) == len(s.received_buffers) + 1
    return added and is_sent(t.received_buffers[len(t.received_buffers) - 1], s.expected_sequence_number, message)


@step
def released_drops_all(m, s, t):
    """Only a released channel drops its buffers, or what it has received without the task having taken it, and then all of
    it."""
    dropped = (
        s.received_blocking_event is not None and t.received_blocking_event is None and t.blocking_event != "POLLED"
    )
    cleared = (
        len(t.received_buffers) == 0 and len(t.received_priority_buffers) == 0 and t.received_blocking_event is None
    )
    returned = t.buffers_released and not s.buffers_released
    unused = m.available(t) == 0 and t.exclusive_in_use == 0 and not t.requested_exclusive
    few = len(t.received_buffers) < len(s.received_buffers) and s.blocking_event == t.blocking_event
    taken = (
        few
        and len(t.received_buffers) == len(s.received_buffers) - 1
        and (t.exclusive_in_use == s.exclusive_in_use + int(s.received_buffers.head.exclusive))
    )
    drops = dropped or (few and not taken)
    return (not drops or (s.channel_released and cleared)) and (not returned or (s.channel_released and unused))


@step
def asks_while_open(m, s, t):
    """A channel requests its subpartition, and resumes it after the barrier was taken, only until it is released."""
    idle = any(x is None for x in s.credit_gained)
    asks = t.partition_requests > s.partition_requests or (t.resume_consumption_sent and not s.resume_consumption_sent)
    resumes = t.resume_consumption_sent and not s.resume_consumption_sent
    return not asks or (not s.channel_released and (not resumes or (s.blocking_event == "POLLED" and idle)))


def is_sent(x, number, message):
    """Whether `x` was received with this number, as it was sent."""
    same = x.data_type == message.data_type and x.sequence_number == number
    return same and (x.size == message.size or message.partial_buffers > 1)


# --- what must follow


@temporal
def arrives(m, s):
    """What is on its way to a channel that is not released is received, also the backlog; its credit reaches the reader."""
    message = leads_to(len(s.responses) > 0, len(s.responses) == 0 or s.channel_released)
    backlog = leads_to(s.sender_backlog is not None, s.sender_backlog is None)
    credit = leads_to(promised(s) > 0, promised(s) == 0 or not s.in_all_readers)
    return message and backlog and credit


@temporal
def returned(m, s):
    """What a channel has received is taken by the task, and its exclusive buffers become free."""
    taken = leads_to(len(s.received_buffers) > 0, len(s.received_buffers) == 0)
    urgent = leads_to(len(s.received_priority_buffers) > 0, len(s.received_priority_buffers) == 0)
    free = leads_to(s.exclusive_in_use > 0, s.exclusive_in_use == 0 or s.channel_released)
    return taken and urgent and free


@temporal
def resumed(m, s):
    """A blocked subpartition is unblocked, unless the channel or the reader is released."""
    return leads_to(s.is_blocked, not s.is_blocked or s.channel_released or s.reader_released)


@temporal
def sent(m, s):
    """A reader that was requested gets its view, and sends what is queued if the channel has exclusive buffers, unless the
    partition, the channel or the reader is released."""
    view = leads_to(s.reader_created, s.in_all_readers or ended(s) or not s.reader_created)
    return view and leads_to(m.exclusive > 0 and s.in_all_readers and queued(s) > 0, queued(s) == 0 or ended(s))


@temporal
def floating_arrive(m, s):
    """A channel with exclusive buffers does not wait for floating ones forever."""
    return leads_to(m.exclusive > 0 and s.is_waiting_for_floating_buffers, not s.is_waiting_for_floating_buffers)


# --- what must be possible


@reachable
def written_while_read(m, s):
    """A buffer is received that the task still writes to, and what is written later is received, too."""
    received = s.expected_sequence_number == s.sequence_number and s.exclusive_in_use == 0
    return not m.pipelined or (
        received and s.sequence_number > s.total_number_of_buffers and s.total_number_of_buffers > 0
    )


@reachable
def released_under_way(m, s):
    """All is released while a message is on its way, which is dropped and answered with a request to cancel."""
    ends = s.reader_released and s.buffers_released and (s.subpartition_released or not m.pipelined)
    return ends and len(s.responses) == 0 and s.sequence_number > s.expected_sequence_number and s.cancel_requests > 1


@reachable
def barrier_dropped(m, s):
    """A barrier that was received is dropped with the channel."""
    return s.blocking_event == "RECEIVED" and s.received_blocking_event is None


@reachable
def data_dropped(m, s):
    """Data that were received are dropped with the channel: their exclusive buffer is returned with the others."""
    received = sum(int(x.exclusive) for x in s.received_buffers) + int(s.requested_exclusive)
    missing = s.exclusive_buffers + s.exclusive_in_use + received < m.exclusive
    return m.exclusive == 0 or (s.exclusive_requested and not s.buffers_released and missing)


CALLS = (
    backlog_counted,
    queued_or_sent,
    sent_while_readable,
    told_backlog,
    lives_once,
    cancelled_one_by_one,
    cancelled_by_consumer,
    unblocked_by_consumer,
    exclusive_conserved,
    pool_limits,
    waits_for_missing,
    required_for_backlog,
    handled_once,
    floating_as_required,
    buffer_for_data,
    exclusive_returned,
    flags_in_order,
    one_message_at_a_time,
    received_as_sent,
    released_drops_all,
    asks_while_open,
    arrives,
    returned,
    resumed,
    sent,
    floating_arrive,
    written_while_read,
    released_under_way,
    barrier_dropped,
    data_dropped,
)
"""The properties of this module."""
